//! Options of all sockets to servers.

use std::{io, os::fd::AsRawFd};

use tokio::net::TcpStream;

/// A peer that is silent for so long is asked whether it is there, then every few seconds, and given up after the last.
pub(crate) const KEEPALIVE_AFTER_S: libc::c_int = 15;
const KEEPALIVE_EVERY_S: libc::c_int = 5;
const KEEPALIVE_MAX: libc::c_int = 3;
/// Longest wait for the confirmation of sent bytes: after it the peer counts as gone.
const UNCONFIRMED_MAX_MS: libc::c_int = 30_000;

/// Sends without delay, and notices when a host vanishes without a word.
pub(crate) fn watch_over(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    for (level, option, value) in [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, KEEPALIVE_AFTER_S),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, KEEPALIVE_EVERY_S),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, KEEPALIVE_MAX),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, UNCONFIRMED_MAX_MS),
    ] {
        let pointer = (&raw const value).cast();
        let length = size_of_val(&value) as libc::socklen_t;
        // SAFETY: `pointer` is to a whole number of the length given, which the call copies.
        if unsafe { libc::setsockopt(stream.as_raw_fd(), level, option, pointer, length) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
