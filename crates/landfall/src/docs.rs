//! The files that the engine writes, and why a power cut loses nothing of them.
//!
//! - [`log_format`], [`snapshot_format`] and [`store_format`] have every byte: enough to write another reader.
//! - [`log_crash_argument`], [`state_crash_argument`], [`store_crash_argument`] and [`store_in_place_crash_argument`] argue, step
//!   by step, what is promised.
//! - [`state`] says how a state is captured while it changes, and what that costs; [`store`] how a store works, and when not
//!   to use it; [`store_buffer`] how it writes fewer bytes, and [`store_in_place`] how it writes leaves over.

// Each page links to others by the names of their files. Of two definitions of a link the first one counts: here, that
// of the module.

pub mod log_format {
    #![doc = "[The crash argument]: super::log_crash_argument\n[Snapshot format]: super::snapshot_format\n"]
    #![doc = include_str!("../docs/log-format.md")]
}

pub mod log_crash_argument {
    #![doc = "[The log format]: super::log_format\n"]
    #![doc = include_str!("../docs/crash-argument-log.md")]
}

pub mod snapshot_format {
    #![doc = "[Log format]: super::log_format\n"]
    #![doc = include_str!("../docs/snapshot-format.md")]
}

pub mod state_crash_argument {
    #![doc = "[the log]: super::log_crash_argument\n"]
    #![doc = include_str!("../docs/crash-argument-state.md")]
}

pub mod state {
    #![doc = "[Snapshot format]: super::snapshot_format\n[the crash argument]: super::state_crash_argument\n"]
    #![doc = include_str!("../docs/state.md")]
}

pub mod store_format {
    #![doc = "[log]: super::log_format\n"]
    #![doc = include_str!("../docs/store-format.md")]
}

pub mod store_crash_argument {
    #![doc = "[the log]: super::log_crash_argument\n[buffer]: super::store_buffer\n[in place]: super::store_in_place_crash_argument\n"]
    #![doc = include_str!("../docs/crash-argument-store.md")]
}

pub mod store_in_place_crash_argument {
    #![doc = "[the store's argument]: super::store_crash_argument\n[in place]: super::store_in_place\n[protection]: super::store_in_place\n"]
    #![doc = include_str!("../docs/crash-argument-store-in-place.md")]
}

pub mod store {
    #![doc = "[Store format]: super::store_format\n[the crash argument]: super::store_crash_argument\n[The buffer]: super::store_buffer\n[Leaves in place]: super::store_in_place\n"]
    #![doc = include_str!("../docs/store.md")]
}

pub mod store_buffer {
    #![doc = "[in place]: super::store_in_place\n[Why a power cut loses nothing of a store]: super::store_crash_argument\n"]
    #![doc = include_str!("../docs/store-buffer.md")]
}

pub mod store_in_place {
    #![doc = "[Why leaves in place lose nothing]: super::store_in_place_crash_argument\n"]
    #![doc = include_str!("../docs/store-in-place.md")]
}
