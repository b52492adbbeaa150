//! Shows what was found: takes tables and prose as data, and lays them out. Each module is a back end, which knows
//! [`landfall_results::view`] and no experiment.

pub mod markdown;
pub mod style;
pub mod text;
