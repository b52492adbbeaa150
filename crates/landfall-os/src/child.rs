//! Programs that are not to outlive who started them.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::c_int;
use rustix::process::{Signal, getppid};

/// Has the kernel send `signal` to the program that `command` starts as soon as the thread ends that
/// started it, however that ends: also by SIGKILL, after which nobody could clean up.
///
/// So the thread must live as long as the program is wanted. What the program starts itself is its own
/// business. (PR_SET_PDEATHSIG in prctl(2); a program with set-user-id rights does not keep it.)
pub fn end_with_this_thread(command: &mut Command, signal: Signal) {
    let parent = std::process::id();
    let signal: c_int = signal.as_raw();
    let prepare = move || {
        // SAFETY: prctl is a system call that reads nothing but its arguments.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // It may have ended before that was asked for; it is its process that can be seen.
        let is_there = getppid().is_some_and(|now| now.as_raw_nonzero().get() as u32 == parent);
        if is_there {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    };
    // SAFETY: between fork and exec it makes two system calls and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        let mut child = thread::spawn(|| {
            let mut command = Command::new("sleep");
            command.arg("600");
            end_with_this_thread(&mut command, Signal::TERM);
            let mut child = command.spawn().unwrap();
            assert!(child.try_wait().unwrap().is_none());
            child
        })
        .join()
        .unwrap();
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
    }
}
