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
    portals::{Portal, Portals},
    shared::{Connects, SessionReading, Shared},
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
    listens: mpsc::UnboundedSender<Listening>,
}

/// An address that is listened at, before it is a portal of a server.
#[derive(Debug)]
pub struct Listener(TcpListener, SocketAddr);

impl Listener {
    /// Listens at an address.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub fn bind(address: SocketAddr) -> Result<Self, StartError> {
        let failed = |error| StartError::Listen { address, error };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let own = listener.local_addr().map_err(failed)?;
        Ok(Self(listener, own))
    }
}

/// A portal that begins to listen.
type Listening = (TcpListener, Arc<Portal>);

/// A connection on its way to an event loop, its portal, and whether there are too many.
type Accepted = (std::net::TcpStream, Arc<Portal>, bool);

impl Server {
    /// Listens at all portals and serves.
    ///
    /// # Errors
    /// An address cannot be listened at.
    pub fn start(config: Config, blocks: Arc<dyn Blocks>) -> Result<Self, StartError> {
        let listeners: Vec<Listener> =
            config.portals.iter().map(|one| Listener::bind(*one)).collect::<Result<_, _>>()?;
        let group = config.group.map(Listener::bind).transpose()?;
        let addresses: Vec<SocketAddr> = listeners.iter().map(|Listener(_, address)| *address).collect();
        let portals = Portals::new(&addresses, group.as_ref().map(|Listener(_, address)| *address));
        let own = portals.list().into_iter().chain(portals.group().cloned());
        let (listens, listening) = mpsc::unbounded_channel();
        for (Listener(listener, _), portal) in listeners.into_iter().chain(group).zip(own) {
            let _ = listens.send((listener, portal));
        }
        let shared = Arc::new(Shared::new(config, blocks, portals));
        let mut server = Self { shared, stops: Vec::new(), threads: Vec::new(), listens };
        let mut loops = Vec::new();
        for number in 0..server.shared.config.threads.max(1) {
            let (give, take) = mpsc::unbounded_channel();
            loops.push(give);
            server.spawn(format!("assay-iscsi-{number}"), move |shared, stop| serve(shared, take, stop))?;
        }
        server.spawn("assay-iscsi-accept".into(), move |shared, stop| accept(shared, listening, loops, stop))?;
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
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let list = self.shared.portals.list();
        list.iter().chain(self.shared.portals.group()).map(|portal| portal.address).collect()
    }

    /// Adds a portal, which takes sessions from then on; gives its number.
    pub fn add_portal(&self, listener: Listener) -> usize {
        let Listener(listener, address) = listener;
        let portal = self.shared.portals.add(address);
        let number = portal.number.expect("the group's address alone has none");
        let _ = self.listens.send((listener, portal));
        number
    }

    /// Takes a portal away with its sessions, or brings it back.
    pub fn set_portal(&self, portal: usize, is_up: bool) {
        self.shared.set_portal(portal, is_up);
    }

    /// Whether a portal is there.
    #[must_use]
    pub fn is_up(&self, portal: usize) -> bool {
        self.shared.portals.get(portal).is_some_and(|portal| portal.is_up())
    }

    /// Whether a portal takes new sessions.
    #[must_use]
    pub fn is_open(&self, portal: usize) -> bool {
        self.shared.portals.get(portal).is_some_and(|portal| portal.is_open())
    }

    /// Tells all initiators that the content of their disks has changed beneath them.
    pub fn medium_changed(&self) {
        self.shared.units.iter().for_each(|unit| unit.medium_changed());
    }

    /// Makes every answer of a portal later.
    pub fn delay_portal(&self, portal: usize, delay: Duration) {
        if let Some(portal) = self.shared.portals.get(portal) {
            portal.set_delay(delay);
        }
    }

    /// Asks the sessions of a portal to log in at the others, and sends new ones there; gives their count.
    ///
    /// Sessions that are still there after ten seconds are ended.
    pub fn retire_portal(&self, portal: usize) -> usize {
        self.shared.retire(portal)
    }

    /// Asks sessions to log out and in again until all portals have equally many; gives their count.
    pub fn balance(&self) -> usize {
        self.shared.balance()
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

    /// Bytes that commands under way hold, all sessions together.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.shared.budget.held_bytes()
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

/// Accepts connections at all portals, new ones included, and gives them to the event loops in turn.
async fn accept(
    shared: Arc<Shared>,
    mut listening: mpsc::UnboundedReceiver<Listening>,
    loops: Vec<mpsc::UnboundedSender<Accepted>>,
    stop: Arc<Notify>,
) {
    loop {
        tokio::select! {
            () = stop.notified() => return,
            Some((listener, portal)) = listening.recv() => {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { continue };
                tokio::task::spawn_local(listen(Arc::clone(&shared), listener, portal, loops.clone()));
            }
        }
    }
}

/// Accepts connections at a portal.
async fn listen(
    shared: Arc<Shared>,
    listener: tokio::net::TcpListener,
    portal: Arc<Portal>,
    loops: Vec<mpsc::UnboundedSender<Accepted>>,
) {
    let mut next = portal.number.unwrap_or(0);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: those that end give some back.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(stream) = stream.into_std() else { continue };
        let connects = shared.connects(&portal);
        if connects == Connects::Never {
            continue;
        }
        let _ = loops[next % loops.len()].send((stream, Arc::clone(&portal), connects == Connects::TooMany));
        next += 1;
    }
}

/// An event loop: serves the connections that it is given.
async fn serve(shared: Arc<Shared>, mut accepted: mpsc::UnboundedReceiver<Accepted>, stop: Arc<Notify>) {
    loop {
        tokio::select! {
            () = stop.notified() => return,
            Some((stream, portal, is_too_many)) = accepted.recv() => {
                let shared = Arc::clone(&shared);
                tokio::task::spawn_local(async move {
                    if let Ok(stream) = tokio::net::TcpStream::from_std(stream) {
                        connection::serve(Arc::clone(&shared), stream, portal, is_too_many).await;
                    }
                    shared.disconnects();
                });
            }
        }
    }
}
