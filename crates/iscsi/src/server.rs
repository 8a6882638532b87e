//! Portals that listen, event loops that serve, and the state that all sessions share.

use std::{
    collections::HashMap,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use tokio::sync::{Notify, mpsc};

use crate::{
    blocks::{Blocks, Budget},
    config::Config,
    connection,
    scsi::{reservations::Nexus, unit::Unit},
};

/// Memory that commands of all sessions may hold.
const MEMORY_MOST_BYTES: u64 = 512 << 20;
/// Connections at once; more are closed at once.
const CONNECTIONS_MOST: usize = 1024;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen at {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// A portal's faults.
#[derive(Default)]
struct Portal {
    is_down: AtomicBool,
    delay_ns: AtomicU64,
    sessions: AtomicUsize,
}

/// A session as the server sees it.
pub(crate) struct Standing {
    portal: usize,
    ends: Notify,
    leaves: Notify,
    number: u64,
}

impl Standing {
    pub(crate) async fn is_ended(&self) {
        self.ends.notified().await;
    }

    pub(crate) async fn is_asked_to_leave(&self) {
        self.leaves.notified().await;
    }
}

type Key = (Nexus, Option<usize>);

/// State that all sessions share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) units: Vec<Unit>,
    pub(crate) blocks: Arc<dyn Blocks>,
    pub(crate) budget: Arc<Budget>,
    /// Portals of the plan, and behind them the group's.
    portals: Vec<Portal>,
    /// Where portals really listen: a plan may leave the port to the system.
    addresses: Vec<SocketAddr>,
    sessions: Mutex<HashMap<Key, Arc<Standing>>>,
    connections: AtomicUsize,
    next_session: AtomicU16,
    next_number: AtomicU64,
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, HashMap<Key, Arc<Standing>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_group(&self) -> bool {
        self.config.group.is_some()
    }

    /// Where SendTargets says that disks are: at the group, or at every portal that is up.
    pub(crate) fn told(&self, own: &str) -> Vec<String> {
        if self.has_group() {
            return vec![self.addresses.last().map_or_else(|| own.to_owned(), SocketAddr::to_string)];
        }
        let up = self.addresses.iter().zip(&self.portals).filter(|(_, portal)| !portal.is_down.load(Ordering::Relaxed));
        let mut told: Vec<String> = up.map(|(address, _)| address.to_string()).collect();
        // An address that stands for all of them is told as the one by which the initiator came.
        let is_any = self.addresses.iter().any(|address| address.ip().is_unspecified());
        if is_any || told.is_empty() {
            told = vec![own.to_owned()];
        }
        told
    }

    /// The portal that is up and has the fewest sessions.
    pub(crate) fn portal_for_login(&self, _came_to: SocketAddr) -> Option<SocketAddr> {
        let portals = self.portals.iter().zip(&self.addresses).take(self.config.portals.len());
        let up = portals.filter(|(portal, _)| !portal.is_down.load(Ordering::Relaxed));
        up.min_by_key(|(portal, _)| portal.sessions.load(Ordering::Relaxed)).map(|(_, address)| *address)
    }

    /// A handle for a session, never zero; None if there are too many.
    pub(crate) fn next_session(&self) -> Option<u16> {
        (self.locked().len() < CONNECTIONS_MOST).then(|| self.next_session.fetch_add(1, Ordering::Relaxed).max(1))
    }

    /// A session begins; one of the same initiator to the same disk ends (RFC 7143, 6.3.5).
    pub(crate) fn opened(&self, nexus: &Nexus, disk: Option<usize>, portal: usize) -> Arc<Standing> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let standing = Arc::new(Standing { portal, ends: Notify::new(), leaves: Notify::new(), number });
        if disk.is_some()
            && let Some(before) = self.locked().insert((nexus.clone(), disk), Arc::clone(&standing))
        {
            before.ends.notify_one();
        }
        if let Some(disk) = disk {
            self.units[disk].open(nexus);
            self.portals[portal].sessions.fetch_add(1, Ordering::Relaxed);
        }
        standing
    }

    /// A session has ended.
    pub(crate) fn closed(&self, nexus: &Nexus, disk: Option<usize>, standing: &Standing) {
        let Some(number) = disk else { return };
        self.portals[standing.portal].sessions.fetch_sub(1, Ordering::Relaxed);
        let key = (nexus.clone(), disk);
        let mut sessions = self.locked();
        // One that took its place goes on.
        if sessions.get(&key).is_some_and(|one| one.number == standing.number) {
            sessions.remove(&key);
            drop(sessions);
            self.units[number].close(nexus);
        }
    }

    pub(crate) fn delay(&self, standing: &Standing) -> Option<Duration> {
        match self.portals[standing.portal].delay_ns.load(Ordering::Relaxed) {
            0 => None,
            delay_ns => Some(Duration::from_nanos(delay_ns)),
        }
    }
}

/// A session, as reports tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionReading {
    pub initiator: String,
    pub disk: usize,
    /// Number of the portal in the plan.
    pub portal: usize,
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
        let shared = Arc::new(Shared {
            units: config.disks.iter().cloned().map(Unit::new).collect(),
            blocks,
            budget: Budget::new(MEMORY_MOST_BYTES),
            portals: listeners.iter().map(|_| Portal::default()).collect(),
            addresses,
            sessions: Mutex::default(),
            connections: AtomicUsize::new(0),
            next_session: AtomicU16::new(1),
            next_number: AtomicU64::new(0),
            config,
        });
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
        &self.shared.addresses
    }

    /// Takes a portal away with its sessions, or brings it back.
    pub fn set_portal(&self, portal: usize, is_up: bool) {
        let Some(found) = self.shared.portals.get(portal) else { return };
        found.is_down.store(!is_up, Ordering::Relaxed);
        if !is_up {
            self.shared.locked().values().filter(|one| one.portal == portal).for_each(|one| one.ends.notify_one());
        }
    }

    /// Whether a portal is there.
    #[must_use]
    pub fn is_up(&self, portal: usize) -> bool {
        self.shared.portals.get(portal).is_some_and(|found| !found.is_down.load(Ordering::Relaxed))
    }

    /// Tells all initiators that the content of their disks has changed beneath them.
    pub fn medium_changed(&self) {
        self.shared.units.iter().for_each(Unit::medium_changed);
    }

    /// Makes every answer of a portal later.
    pub fn delay_portal(&self, portal: usize, delay: Duration) {
        if let Some(found) = self.shared.portals.get(portal) {
            found.delay_ns.store(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Asks the sessions of a portal to log out and in again.
    pub fn ask_to_leave(&self, portal: usize) {
        self.shared.locked().values().filter(|one| one.portal == portal).for_each(|one| one.leaves.notify_one());
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
        let sessions = self.shared.locked();
        let reading = |((nexus, disk), standing): (&Key, &Arc<Standing>)| {
            Some(SessionReading { initiator: nexus.initiator.clone(), disk: (*disk)?, portal: standing.portal })
        };
        sessions.iter().filter_map(reading).collect()
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
                let is_refused = shared.portals[portal].is_down.load(Ordering::Relaxed)
                    || shared.connections.load(Ordering::Relaxed) >= CONNECTIONS_MOST;
                if is_refused {
                    continue;
                }
                let Ok(stream) = stream.into_std() else { continue };
                shared.connections.fetch_add(1, Ordering::Relaxed);
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
                    shared.connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
        }
    }
}
