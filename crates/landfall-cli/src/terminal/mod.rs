//! Everything about terminals: colour, the progress bar, signals, tables.

mod bar;
mod style;
pub mod table;

pub use bar::Bar;
pub use style::{complain, remark, set_color};

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use landfall_lab::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use signal_hook::low_level::pipe;

use crate::exit::{Code, Failure};

/// How long another signal is the same wish: a service manager tells each process of a group, and the first of them tells
/// those that it has started.
const SAME_WISH: Duration = Duration::from_secs(1);

/// Makes Ctrl-C, a hang-up and a termination request end the run in good order; a second one, of a second later or more,
/// ends it at once, since a disk that hangs may keep the first from ever being noticed.
pub fn stop_on_signals(stop: &Stop) -> Result<(), Failure> {
    watch(stop)
        .map_err(|error| Failure::new(Code::Failed, format!("cannot watch for Ctrl-C: {error}")))
}

fn watch(stop: &Stop) -> io::Result<()> {
    let at_once = Code::Stopped as i32;
    let is_later = Arc::new(AtomicBool::new(false));
    let (told, mut first) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // This one before the others: from here on no signal is missed.
        register(signal, stop.flag())?;
        pipe::register(signal, told.try_clone()?)?;
        register_conditional_shutdown(signal, at_once, Arc::clone(&is_later))?;
    }
    // It sleeps until the first signal comes, or the program ends.
    let later = move || {
        if first.read_exact(&mut [0]).is_ok() {
            thread::sleep(SAME_WISH);
            is_later.store(true, Ordering::SeqCst);
        }
    };
    let spawned = thread::Builder::new()
        .name("signals".to_owned())
        .spawn(later);
    spawned.map(drop)
}
