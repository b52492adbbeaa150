//! Everything about terminals: colour, the progress bar, signals, tables.

mod bar;
mod style;
pub mod table;

pub use bar::Bar;
pub use style::{complain, set_color};

use landfall_lab::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit::{Code, Failure};

/// Makes Ctrl-C, a hang-up and a termination request end the run in good order.
pub fn stop_on_signals(stop: &Stop) -> Result<(), Failure> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.flag()).map_err(|error| {
            Failure::new(Code::Failed, format!("cannot watch for Ctrl-C: {error}"))
        })?;
    }
    Ok(())
}
