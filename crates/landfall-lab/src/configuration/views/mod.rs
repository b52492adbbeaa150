//! What experiments on databases give to the page alike.

pub(crate) mod charts;
pub(crate) mod tables;
