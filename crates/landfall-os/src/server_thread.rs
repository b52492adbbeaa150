//! What a thread must be that serves a block device to the kernel from user space.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::RawFd;

use rustix::process::{DumpableBehavior, configure_io_flusher_behavior, set_dumpable_behavior};
use rustix::thread::set_current_timer_slack;

/// Makes the calling thread one that serves a block device.
///
/// - It gets a table of descriptors of its own that holds copies of the standard streams and of
///   `keep`, and nothing else. What it opens from now on is therefore closed when this thread, and those that it
///   starts, end, even while another thread of a killed process hangs in a write to that very device.
///   The kernel then fails that write, and the process can die.
/// - The process dumps no core from now on: before it dumps one, all its threads must have ended, and one that hangs in
///   a write to the device ends only when this thread has closed its descriptors, which it does after the dump.
/// - Memory that it allocates never waits for dirty pages to be written, which might be its own device's.
/// - It sleeps to the microsecond.
///
/// **No descriptor may be used on both sides of this call**, except those in `keep`, under the same
/// number. Nothing checks that: a file that the thread had open before, and uses or drops behind, may be another one by then. The function
/// is not `unsafe` only because the crate that calls it may have no such block; it calls it first thing on threads of its own.
pub fn serve_block_device(keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<libc::c_uint> = keep
        .iter()
        .filter_map(|fd| libc::c_uint::try_from(*fd).ok())
        .collect();
    keep.extend([0, 1, 2]);
    keep.sort_unstable();
    // SAFETY: other threads keep the table that they have. What this thread's caller may not use any more is not ensured by
    // anything here: the documentation asks for it.
    let unshared = unsafe { libc::unshare(libc::CLONE_FILES) };
    if unshared == -1 {
        return Err(io::Error::last_os_error());
    }
    let mut first = 0;
    for fd in keep.into_iter().chain([libc::c_uint::MAX]) {
        if first < fd {
            // SAFETY: as above; the table is this thread's alone by now.
            unsafe { libc::syscall(libc::SYS_close_range, first, fd - 1, 0) };
        }
        first = fd.saturating_add(1);
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Both are improvements, not conditions.
    let _ = configure_io_flusher_behavior(true);
    let _ = set_current_timer_slack(NonZeroU64::new(1000));
    Ok(())
}
