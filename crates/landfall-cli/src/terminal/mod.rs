//! Everything about terminals: colour, the progress bar, signals, tables.

mod bar;
mod style;
pub mod table;

pub use bar::Bar;
pub use style::{complain, remark, set_color};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use landfall_lab::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit::{Code, Failure};

/// Makes Ctrl-C, a hang-up and a termination request end the run in good order; a second one ends it
/// at once, since a disk that hangs may keep the first from ever being noticed.
pub fn stop_on_signals(stop: &Stop) -> Result<(), Failure> {
    let at_once = Code::Stopped as i32;
    let cannot = |error| Failure::new(Code::Failed, format!("cannot watch for Ctrl-C: {error}"));
    // A signal that comes between the two registrations below would be taken by the first, which does nothing yet.
    let early = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let watch = signal_hook::flag::register(signal, early.clone()).map_err(cannot)?;
        // In this order: the first signal finds the flag down, and raises it.
        signal_hook::flag::register_conditional_shutdown(signal, at_once, stop.flag())
            .and_then(|_| signal_hook::flag::register(signal, stop.flag()))
            .map_err(cannot)?;
        signal_hook::low_level::unregister(watch);
    }
    if early.load(Ordering::SeqCst) {
        stop.flag().store(true, Ordering::SeqCst);
    }
    Ok(())
}
