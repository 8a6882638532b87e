//! The server: where it listens, and its exports from outside.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
};

use assay_disk_server::{Blocks, Front, Listener, Loops, StartError};
use tokio::net::TcpStream;

use crate::{
    connection,
    shared::{Export, Shared},
};

/// Configuration of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub exports: Vec<Export>,
    /// Where clients connect.
    pub addresses: Vec<SocketAddr>,
}

impl Front for Shared {
    type Door = ();

    fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        _door: Self::Door,
        is_too_many: bool,
    ) -> impl Future<Output = ()> + 'static {
        connection::serve(self, stream, is_too_many)
    }
}

/// An NBD server.
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    loops: Arc<Loops>,
}

impl Server {
    /// Listens at all addresses and serves in event loops.
    ///
    /// # Errors
    /// An address cannot be listened at.
    pub fn start(config: Config, blocks: Arc<dyn Blocks>, loops: Arc<Loops>) -> Result<Self, StartError> {
        let listeners: Vec<Listener> = config.addresses.into_iter().map(Listener::bind).collect::<Result<_, _>>()?;
        let addresses = listeners.iter().map(Listener::address).collect();
        let shared = Arc::new(Shared::new(config.exports, blocks, Arc::clone(&loops.budget)));
        for listener in listeners {
            loops.listen(listener, Arc::clone(&shared), ());
        }
        Ok(Self { shared, addresses, loops })
    }

    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Numbers of the exports that clients are connected to.
    #[must_use]
    pub fn in_use(&self) -> Vec<usize> {
        let exports = self.shared.exports.iter().enumerate();
        exports.filter(|(_, export)| export.users.load(Ordering::Relaxed) > 0).map(|(number, _)| number).collect()
    }

    /// An export has grown. The protocol has no word for it: who connects from now on sees it.
    pub fn grow(&self, export: usize, bytes: u64) {
        if let Some(export) = self.shared.exports.get(export) {
            export.bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// Bytes that requests under way hold.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.shared.budget.held_bytes()
    }

    /// Ends all connections, and the event loops.
    pub fn stop(&mut self) {
        self.loops.stop();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
