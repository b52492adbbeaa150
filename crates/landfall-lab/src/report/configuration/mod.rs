//! What experiments on databases give to the page alike.

pub(super) mod charts;
pub(super) mod tables;
