//! Portals that listen, and event loops that serve.

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use tokio::sync::{Notify, mpsc};

use crate::{
    blocks::Blocks,
    config::Config,
    connection,
    shared::{SessionReading, Shared},
};

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen at {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// An iSCSI server.
pub struct Server {
    shared: Arc<Shared>,
    stops: Vec<Arc<Notify>>,
    threads: Vec<JoinHandle<()>>,
}

/// A connection on its way to an event loop.
type Accepted = (std::net::TcpStream, usize, bool);

impl Server {
    /// Listens at all portals and serves.
    ///
    /// # Errors
    /// An address cannot be listened at.
    pub fn start(config: Config, blocks: Arc<dyn Blocks>) -> Result<Self, StartError> {
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        for address in config.portals.iter().chain(config.group.as_ref()).copied() {
            let listen = |error| StartError::Listen { address, error };
            let listener = TcpListener::bind(address).map_err(listen)?;
            listener.set_nonblocking(true).map_err(listen)?;
            addresses.push(listener.local_addr().map_err(listen)?);
            listeners.push(listener);
        }
        let shared = Arc::new(Shared::new(config, blocks, addresses));
        let mut server = Self { shared, stops: Vec::new(), threads: Vec::new() };
        let mut loops = Vec::new();
        for number in 0..server.shared.config.threads.max(1) {
            let (give, take) = mpsc::unbounded_channel();
            loops.push(give);
            server.spawn(format!("assay-iscsi-{number}"), move |shared, stop| serve(shared, take, stop))?;
        }
        server.spawn("assay-iscsi-accept".into(), move |shared, stop| accept(shared, listeners, loops, stop))?;
        Ok(server)
    }

    fn spawn<F: Future<Output = ()>>(
        &mut self,
        name: String,
        make: impl FnOnce(Arc<Shared>, Arc<Notify>) -> F + Send + 'static,
    ) -> Result<(), StartError> {
        let (shared, stop) = (Arc::clone(&self.shared), Arc::new(Notify::new()));
        self.stops.push(Arc::clone(&stop));
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime needs but an event queue");
            tokio::task::LocalSet::new().block_on(&runtime, make(shared, stop));
        };
        let thread = std::thread::Builder::new().name(name).spawn(run).map_err(StartError::Thread)?;
        self.threads.push(thread);
        Ok(())
    }

    /// Where portals listen, the group's last.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.shared.addresses()
    }

    /// Takes a portal away with its sessions, or brings it back.
    pub fn set_portal(&self, portal: usize, is_up: bool) {
        self.shared.set_portal(portal, is_up);
    }

    /// Whether a portal is there.
    #[must_use]
    pub fn is_up(&self, portal: usize) -> bool {
        self.shared.is_up(portal)
    }

    /// Tells all initiators that the content of their disks has changed beneath them.
    pub fn medium_changed(&self) {
        self.shared.units.iter().for_each(|unit| unit.medium_changed());
    }

    /// Makes every answer of a portal later.
    pub fn delay_portal(&self, portal: usize, delay: Duration) {
        self.shared.delay_portal(portal, delay);
    }

    /// Asks the sessions of a portal to log out and in again.
    pub fn ask_to_leave(&self, portal: usize) {
        self.shared.ask_to_leave(portal);
    }

    /// A disk has grown.
    pub fn grow(&self, disk: usize, bytes: u64) {
        if let Some(unit) = self.shared.units.get(disk) {
            unit.grow(bytes);
        }
    }

    /// Sessions that there are now.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionReading> {
        self.shared.readings()
    }

    /// Ends all sessions and the threads.
    pub fn stop(&mut self) {
        self.stops.drain(..).for_each(|stop| stop.notify_one());
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Accepts connections and gives them to the event loops in turn.
async fn accept(
    shared: Arc<Shared>,
    listeners: Vec<TcpListener>,
    loops: Vec<mpsc::UnboundedSender<Accepted>>,
    stop: Arc<Notify>,
) {
    let group = shared.config.portals.len();
    for (portal, listener) in listeners.into_iter().enumerate() {
        let (shared, loops) = (Arc::clone(&shared), loops.clone());
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { continue };
        tokio::task::spawn_local(async move {
            let mut next = portal;
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    // Out of descriptors: those that end give some back.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let Ok(stream) = stream.into_std() else { continue };
                if !shared.connects(portal) {
                    continue;
                }
                let _ = loops[next % loops.len()].send((stream, portal, portal == group));
                next += 1;
            }
        });
    }
    stop.notified().await;
}

/// An event loop: serves the connections that it is given.
async fn serve(shared: Arc<Shared>, mut accepted: mpsc::UnboundedReceiver<Accepted>, stop: Arc<Notify>) {
    loop {
        tokio::select! {
            () = stop.notified() => return,
            Some((stream, portal, is_group)) = accepted.recv() => {
                let shared = Arc::clone(&shared);
                tokio::task::spawn_local(async move {
                    if let Ok(stream) = tokio::net::TcpStream::from_std(stream) {
                        connection::serve(Arc::clone(&shared), stream, portal, is_group).await;
                    }
                    shared.disconnects();
                });
            }
        }
    }
}
