//! The flash against what is known of such flash.

mod check_values;
mod properties;
mod recordings;

use super::*;

/// Bytes of a page.
const PAGE: u64 = 4096;
