//! A store for which the kernel has no page: SIGBUS, turned into an error.
//!
//! A store into a shared mapping needs a page of the file. Where there is none to be had (the disk is
//! full, or fails when the page is read) the kernel sends SIGBUS, which ends the program. While a
//! [`Watch`] is held for the mapping, a page of anonymous memory takes the missing one's place, the
//! store succeeds into nothing, and [`Watch::was_hit`] says so.
//!
//! **Global state.** A process has one handler for a signal. The first watch installs ours, and it
//! stays; a fault outside every watched mapping goes to whatever was there before.
//!
//! **Threads.** Any thread may fault in any watched mapping. There is room for a fixed number of
//! watches, because a signal handler must not take a lock.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

/// Mappings that may be watched at once.
const WATCHES: usize = 64;

struct Range {
    /// First address; 0 while the place is free, 1 while it is being taken.
    start: AtomicUsize,
    end: AtomicUsize,
    hit: AtomicBool,
}

impl Range {
    /// Whether `address` lies in it. Another thread may be giving the place to another mapping
    /// meanwhile: the start is read on both sides of the end, so that the two belong together.
    fn holds(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::Acquire);
        let end = self.end.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        start > 1 && start == self.start.load(Ordering::Relaxed) && (start..end).contains(&address)
    }
}

static RANGES: [Range; WATCHES] = [const {
    Range {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        hit: AtomicBool::new(false),
    }
}; WATCHES];

static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// Turns bus errors in one mapping into a flag for as long as it lives.
pub(crate) struct Watch {
    range: &'static Range,
}

impl Watch {
    /// Watches `len` bytes from `base`, which must stay a mapping of the caller's until this is
    /// dropped.
    pub(crate) fn new(base: *mut c_void, len: usize) -> io::Result<Watch> {
        install()?;
        let start = base as usize;
        for range in &RANGES {
            let free = range
                .start
                .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
            if free.is_ok() {
                // Whoever sees the new end sees at least that the place is being taken (`holds`).
                fence(Ordering::Release);
                range.hit.store(false, Ordering::Relaxed);
                range.end.store(start + len, Ordering::Relaxed);
                // From here on the handler sees the range as a whole.
                range.start.store(start, Ordering::Release);
                return Ok(Watch { range });
            }
        }
        Err(io::Error::other(
            "too many mappings are being written at once",
        ))
    }

    /// Whether a page was missing.
    pub(crate) fn was_hit(&self) -> bool {
        self.range.hit.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.range.start.store(0, Ordering::Release);
    }
}

/// Installs the handler, once for the process.
fn install() -> io::Result<()> {
    static FAILED: OnceLock<Option<i32>> = OnceLock::new();
    let failed = FAILED.get_or_init(|| {
        PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
        // SAFETY: both structures are plain data for which all zeros is a valid value; the handler has
        // the signature that SA_SIGINFO asks for, and does only what a signal handler may (see there).
        // What was there before is kept before the handler can run, or is the default.
        unsafe {
            let mut previous: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, ptr::null(), &mut previous) != 0 {
                return io::Error::last_os_error().raw_os_error();
            }
            let _ = PREVIOUS.set(previous);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            // On the thread's alternative stack, where it has one: Rust's handlers expect that too.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            if libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) != 0 {
                return io::Error::last_os_error().raw_os_error();
            }
        }
        None
    });
    match failed {
        Some(code) => Err(io::Error::from_raw_os_error(*code)),
        None => Ok(()),
    }
}

/// The handler. It reads atomics, and calls `mmap`, `sigaction` and `raise` only: no lock, no allocation.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo to a handler with SA_SIGINFO. For a SIGBUS of its own (a
    // positive code) it holds the address; one that a program sent holds other numbers there, which are
    // not used. `__errno_location` is this thread's errno, saved and put back because the interrupted
    // code may be about to read it. The page that is replaced lies in a range that its owner has given
    // to `Watch::new` as its own mapping and keeps until the watch is dropped.
    unsafe {
        let errno = *libc::__errno_location();
        let page = PAGE.load(Ordering::Relaxed);
        let by_kernel = (*info).si_code > 0;
        let address = (*info).si_addr() as usize;
        for range in &RANGES {
            if by_kernel && range.holds(address) {
                let replaced = libc::mmap(
                    (address - address % page) as *mut c_void,
                    page,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                    -1,
                    0,
                );
                if replaced != libc::MAP_FAILED {
                    range.hit.store(true, Ordering::Relaxed);
                    *libc::__errno_location() = errno;
                    return;
                }
            }
        }
        pass_on(signal, info, context);
    }
}

/// Leaves the fault to whatever handled it before.
///
/// # Safety
/// Only for the handler, with its own arguments.
unsafe fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    type Simple = extern "C" fn(c_int);
    type Full = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    let previous = PREVIOUS.get();
    let handler = previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    // SAFETY: a value other than the two constants is the address of a function of the type that the
    // flags name, as sigaction(2) has it. With the default action restored, returning repeats the
    // faulting store, and the process ends as it would have without us; a signal that a program sent
    // has no store to repeat and is sent again, to be delivered when the handler returns.
    unsafe {
        match previous {
            Some(previous) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
                if previous.sa_flags & libc::SA_SIGINFO != 0 {
                    std::mem::transmute::<usize, Full>(handler)(signal, info, context);
                } else {
                    std::mem::transmute::<usize, Simple>(handler)(signal);
                }
            }
            _ => {
                let was_sent = (*info).si_code <= 0;
                if was_sent && handler == libc::SIG_IGN {
                    return;
                }
                let mut default: libc::sigaction = std::mem::zeroed();
                default.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(libc::SIGBUS, &default, ptr::null_mut());
                if was_sent {
                    libc::raise(signal);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::Mapping;

    #[test]
    fn a_range_holds_its_addresses_and_none_once_it_is_given_back() {
        let range = Range {
            start: AtomicUsize::new(4096),
            end: AtomicUsize::new(8192),
            hit: AtomicBool::new(false),
        };
        let held = |range: &Range| [4095, 4096, 8191, 8192].map(|address| range.holds(address));
        assert_eq!(held(&range), [false, true, true, false]);
        for free_or_being_taken in [0, 1] {
            range.start.store(free_or_being_taken, Ordering::Relaxed);
            assert_eq!(held(&range), [false; 4]);
        }
    }

    /// Runs a test of this module again, in a process of its own; nothing in that process.
    fn in_a_process_of_its_own(test: &str) -> Option<std::process::Output> {
        const ALONE: &str = "LANDFALL_TEST_ALONE";
        if std::env::var_os(ALONE).is_some() {
            return None;
        }
        let program = std::env::current_exe().unwrap();
        let mut command = std::process::Command::new(program);
        command.args(["--exact", &format!("bus_error::tests::{test}")]);
        Some(command.env(ALONE, "1").output().unwrap())
    }

    fn one_page() -> std::fs::File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        file
    }

    /// A bus error that is nobody's watched mapping ends the program, as it would have without us.
    #[test]
    fn a_bus_error_elsewhere_is_still_deadly() {
        use std::os::unix::process::ExitStatusExt;
        let test = "a_bus_error_elsewhere_is_still_deadly";
        if let Some(output) = in_a_process_of_its_own(test) {
            assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{output:?}");
            return;
        }
        let file = one_page();
        let watched = Mapping::new(&file, 1 << 20).unwrap();
        let _watch = watched.watch().unwrap();
        let mut unwatched = Mapping::new(&file, 1 << 20).unwrap();
        let _ = unwatched.store(&[1], 8192);
    }

    #[test]
    fn there_is_room_for_so_many_watches_and_no_more() {
        let test = "there_is_room_for_so_many_watches_and_no_more";
        if let Some(output) = in_a_process_of_its_own(test) {
            assert!(output.status.success(), "{output:?}");
            return;
        }
        let mapping = Mapping::new(&one_page(), 4096).unwrap();
        let mut watches: Vec<Watch> = (0..WATCHES).map(|_| mapping.watch().unwrap()).collect();
        assert!(mapping.watch().is_err());
        watches.pop();
        assert!(mapping.watch().is_ok());
    }
}
