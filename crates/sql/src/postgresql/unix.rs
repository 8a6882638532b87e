//! A Unix socket that wakes its thread for what it can read, and for nothing else. With the runtime's own socket every read of
//! the server makes room, is an event, and would wake the thread once more per transaction.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream as StdStream,
};

use tokio::{
    io::{Interest, unix::AsyncFd},
    net::UnixStream,
};

pub(super) struct UnixSocket {
    readable: AsyncFd<StdStream>,
    /// Waits for room, once the socket was full for the first time.
    writable: Option<AsyncFd<StdStream>>,
}

impl UnixSocket {
    pub(super) async fn connect(path: &str) -> io::Result<Self> {
        let stream = UnixStream::connect(path).await?.into_std()?;
        Ok(Self { readable: register(stream, Interest::READABLE)?, writable: None })
    }

    pub(super) async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.readable.get_ref().write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    bytes = &bytes[self.write_when_possible(bytes).await?..];
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes as much as fits when there is room.
    async fn write_when_possible(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let writable = match &mut self.writable {
            Some(writable) => writable,
            none => none.insert(register(self.readable.get_ref().try_clone()?, Interest::WRITABLE)?),
        };
        loop {
            if let Ok(written) = writable.writable().await?.try_io(|socket| socket.get_ref().write(bytes)) {
                return written;
            }
        }
    }

    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.readable.readable().await?;
            match self.readable.get_ref().read(buffer) {
                Ok(count) => {
                    if count < buffer.len() {
                        // All was taken: the next read waits for the next event instead of trying in vain.
                        ready.clear_ready();
                    }
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
    }
}

fn register(stream: StdStream, interest: Interest) -> io::Result<AsyncFd<StdStream>> {
    // SAFETY: the descriptor is owned by what is registered, which never replaces it.
    Ok(unsafe { AsyncFd::register_with_interest(stream, interest) }?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn large_writes_wait_for_the_reader_and_nothing_is_lost() {
        let folder = std::env::temp_dir().join(format!("assay-unix-{}", std::process::id()));
        let listener = UnixListener::bind(&folder).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
        let echo = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut all = vec![0; 3_000_000];
            peer.read_exact(&mut all).unwrap();
            peer.write_all(&all).unwrap();
        });
        let received = runtime.block_on(async {
            let mut socket = UnixSocket::connect(folder.to_str().unwrap()).await.unwrap();
            socket.write_all(&sent).await.unwrap();
            let (mut received, mut buffer) = (Vec::new(), vec![0; 10_000]);
            while received.len() < sent.len() {
                let count = socket.read(&mut buffer).await.unwrap();
                assert!(count > 0);
                received.extend_from_slice(&buffer[..count]);
            }
            received
        });
        echo.join().unwrap();
        std::fs::remove_file(folder).unwrap();
        assert!(received == sent);
    }
}
