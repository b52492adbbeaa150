//! Shows what was found: takes tables, prose and charts as data, and lays them out. Each module is a back end, which knows
//! [`landfall_results::view`] and no experiment.

pub mod html;
pub mod markdown;
pub mod style;
pub mod text;
