//! Numbers of things, as sentences have them.

use crate::numbers::thousands;

pub(super) fn states(count: u64) -> String {
    counted(count, "crash state", "crash states")
}

pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", whole(count), if count == 1 { one } else { many })
}

pub(super) fn be(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

pub(super) fn whole(count: u64) -> String {
    thousands(count as f64)
}

pub(super) fn number_is(count: u64) -> String {
    format!("{} {}", whole(count), if count == 1 { "is" } else { "are" })
}
