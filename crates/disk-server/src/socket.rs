//! Sockets of connections: their bounds, and how answers are written.

use std::{
    io::{ErrorKind, IoSlice, Result},
    time::Duration,
};

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Time in which a client has said who it is and what it wants.
pub const GREETING_MOST: Duration = Duration::from_secs(15);
/// Time in which a client takes some of its answers; one without a sign of life is gone.
pub const TAKE_MOST: Duration = Duration::from_secs(60);
/// Bytes that are read from a socket at once.
pub const READ_BUFFER_BYTES: usize = 64 << 10;
/// Answers that one system call writes.
pub const ANSWERS_AT_ONCE: usize = 64;

/// Writes all bytes, as many with one system call as it takes.
///
/// # Errors
/// The connection has ended.
pub async fn write_all(to: &mut (impl AsyncWrite + Unpin), slices: &mut [IoSlice<'_>]) -> Result<()> {
    let mut rest = slices;
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        let written = to.write_vectored(rest).await?;
        if written == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        IoSlice::advance_slices(&mut rest, written);
    }
    Ok(())
}
