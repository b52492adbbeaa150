//! A network that nobody else is in.

use std::cell::Cell;
use std::io;
use std::os::fd::AsRawFd;

use libc::{c_char, c_short};
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::UnshareFlags;

/// The interface that every network has, and that is down at first.
const LOOPBACK: &[u8] = b"lo";

thread_local! {
    static ISOLATED: Cell<bool> = const { Cell::new(false) };
}

/// Gives the calling thread, and those that it starts from now on, a network of their own, in which there is nothing but
/// 127.0.0.1: all ports are free, nobody else can speak to what listens there, and nothing leaves the machine. It is gone
/// with the last thread or program that is in it, however they end. Needs root. The second call does nothing.
pub fn isolate_network() -> io::Result<()> {
    if ISOLATED.get() {
        return Ok(());
    }
    // SAFETY: of what `unshare` can take away from other threads only the network goes a separate way; no descriptor is
    // affected, and sockets that are open stay in the network that they were made in.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
    raise_loopback()?;
    ISOLATED.set(true);
    Ok(())
}

fn raise_loopback() -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: `ifreq` is made of numbers, of which all may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(LOOPBACK) {
        *to = *from as c_char;
    }
    // SAFETY: the kernel reads the name, which ends with a zero, and writes the flags into the same structure, which lives
    // until the call returns.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just written the flags: of the union's members they are the one that is there.
    unsafe { request.ifr_ifru.ifru_flags |= libc::IFF_UP as c_short };
    // SAFETY: the kernel reads the name and the flags.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::*;

    #[test]
    fn two_networks_have_the_same_port_each_for_itself() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: a network of one's own needs root");
            return;
        }
        let listen = || {
            isolate_network().unwrap();
            isolate_network().unwrap();
            let listener = TcpListener::bind("127.0.0.1:4222").unwrap();
            // Threads that are started here are in it too.
            let connects = thread::spawn(|| TcpStream::connect("127.0.0.1:4222").is_ok());
            assert!(connects.join().unwrap());
            listener
        };
        let listeners = [thread::spawn(listen), thread::spawn(listen)];
        let listeners = listeners.map(|thread| thread.join().unwrap());
        // From here nobody can come to either of them.
        assert!(TcpStream::connect("127.0.0.1:4222").is_err());
        drop(listeners);
    }
}
