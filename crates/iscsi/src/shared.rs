//! State that all sessions share: disks, portals and their faults, who is logged in.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

use crate::{
    blocks::{Blocks, Budget},
    config::Config,
    scsi::{reservations::Nexus, unit::Unit},
};

/// Memory that commands of all sessions may hold.
const MEMORY_MOST_BYTES: u64 = 512 << 20;
/// Connections at once; more are closed at once.
const CONNECTIONS_MOST: usize = 1024;

/// A session, as reports tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionReading {
    pub initiator: String,
    pub disk: usize,
    /// Number of the portal in the plan.
    pub portal: usize,
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
    pub(crate) fn new(config: Config, blocks: Arc<dyn Blocks>, addresses: Vec<SocketAddr>) -> Self {
        Self {
            units: config.disks.iter().cloned().map(Unit::new).collect(),
            blocks,
            budget: Budget::new(MEMORY_MOST_BYTES),
            portals: addresses.iter().map(|_| Portal::default()).collect(),
            addresses,
            sessions: Mutex::default(),
            connections: AtomicUsize::new(0),
            next_session: AtomicU16::new(1),
            next_number: AtomicU64::new(0),
            config,
        }
    }

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Counts a connection to a portal; false if it is not taken.
    pub(crate) fn connects(&self, portal: usize) -> bool {
        let is_taken = self.is_up(portal) && self.connections.load(Ordering::Relaxed) < CONNECTIONS_MOST;
        self.connections.fetch_add(usize::from(is_taken), Ordering::Relaxed);
        is_taken
    }

    pub(crate) fn disconnects(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn is_up(&self, portal: usize) -> bool {
        self.portals.get(portal).is_some_and(|found| !found.is_down.load(Ordering::Relaxed))
    }

    pub(crate) fn set_portal(&self, portal: usize, is_up: bool) {
        let Some(found) = self.portals.get(portal) else { return };
        found.is_down.store(!is_up, Ordering::Relaxed);
        if !is_up {
            self.locked().values().filter(|one| one.portal == portal).for_each(|one| one.ends.notify_one());
        }
    }

    pub(crate) fn delay_portal(&self, portal: usize, delay: Duration) {
        if let Some(found) = self.portals.get(portal) {
            found.delay_ns.store(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    pub(crate) fn ask_to_leave(&self, portal: usize) {
        self.locked().values().filter(|one| one.portal == portal).for_each(|one| one.leaves.notify_one());
    }

    pub(crate) fn readings(&self) -> Vec<SessionReading> {
        let sessions = self.locked();
        let reading = |((nexus, disk), standing): (&Key, &Arc<Standing>)| {
            Some(SessionReading { initiator: nexus.initiator.clone(), disk: (*disk)?, portal: standing.portal })
        };
        sessions.iter().filter_map(reading).collect()
    }

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
