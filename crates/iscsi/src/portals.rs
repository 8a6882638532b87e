//! Portals: addresses where initiators connect, their faults, and the choice of a portal for a login.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Time in which an initiator that was sent to a portal is counted there before it has logged in.
const PROMISE_MOST: Duration = Duration::from_secs(5);
/// Promises at once; the oldest are forgotten.
const PROMISES_MOST: usize = 1024;

/// A portal and its faults.
#[derive(Debug)]
pub(crate) struct Portal {
    /// Number in the order in which portals were added; the group's address has none.
    pub(crate) number: Option<usize>,
    /// Where it really listens: a plan may leave the port to the system.
    pub(crate) address: SocketAddr,
    is_down: AtomicBool,
    /// Its sessions are asked to log in elsewhere, and new ones are sent there.
    is_leaving: AtomicBool,
    delay_ns: AtomicU64,
    sessions: AtomicUsize,
}

impl Portal {
    fn new(number: Option<usize>, address: SocketAddr) -> Self {
        Self {
            number,
            address,
            is_down: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            delay_ns: AtomicU64::new(0),
            sessions: AtomicUsize::new(0),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        !self.is_down.load(Ordering::Relaxed)
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    /// Whether new sessions belong here.
    pub(crate) fn is_open(&self) -> bool {
        self.is_up() && !self.is_leaving()
    }

    /// A portal that is brought back takes sessions again.
    pub(crate) fn set_up(&self, is_up: bool) {
        self.is_down.store(!is_up, Ordering::Relaxed);
        self.is_leaving.store(false, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_delay(&self, delay: Duration) {
        self.delay_ns.store(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn delay(&self) -> Option<Duration> {
        match self.delay_ns.load(Ordering::Relaxed) {
            0 => None,
            delay_ns => Some(Duration::from_nanos(delay_ns)),
        }
    }

    pub(crate) fn opens(&self) {
        self.sessions.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn closes(&self) {
        self.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An initiator that was sent to a portal and is on its way.
#[derive(Debug)]
struct Promise {
    initiator: String,
    disk: usize,
    portal: usize,
    until: Instant,
}

/// Place where a login to a disk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Here,
    At(SocketAddr),
    /// No portal takes sessions.
    Nowhere,
}

/// All portals of a server.
#[derive(Debug)]
pub(crate) struct Portals {
    list: RwLock<Vec<Arc<Portal>>>,
    group: Option<Arc<Portal>>,
    promises: Mutex<Vec<Promise>>,
}

impl Portals {
    pub(crate) fn new(addresses: &[SocketAddr], group: Option<SocketAddr>) -> Self {
        let portal = |(number, address): (usize, &SocketAddr)| Arc::new(Portal::new(Some(number), *address));
        Self {
            list: RwLock::new(addresses.iter().enumerate().map(portal).collect()),
            group: group.map(|address| Arc::new(Portal::new(None, address))),
            promises: Mutex::default(),
        }
    }

    /// All portals but the group's address.
    pub(crate) fn list(&self) -> Vec<Arc<Portal>> {
        self.list.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn get(&self, number: usize) -> Option<Arc<Portal>> {
        self.list.read().unwrap_or_else(PoisonError::into_inner).get(number).cloned()
    }

    pub(crate) fn group(&self) -> Option<&Arc<Portal>> {
        self.group.as_ref()
    }

    pub(crate) fn add(&self, address: SocketAddr) -> Arc<Portal> {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        let portal = Arc::new(Portal::new(Some(list.len()), address));
        list.push(Arc::clone(&portal));
        portal
    }

    /// Place where a login that came to `portal` goes on.
    ///
    /// A group sends a login to the open portal on which this initiator has the fewest sessions with this disk, and of
    /// those to the one with the fewest sessions: several paths of one host lie on several portals. `has` counts the
    /// initiator's sessions with the disk on a portal.
    pub(crate) fn place(&self, portal: &Portal, initiator: &str, disk: usize, has: impl Fn(usize) -> usize) -> Place {
        if portal.number.is_some() && !portal.is_leaving() {
            return Place::Here;
        }
        let mut promises = self.promises.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        promises.retain(|promise| promise.until > now);
        let list = self.list();
        let load = |(number, portal): &(usize, &Arc<Portal>)| {
            let promised = promises.iter().filter(|promise| promise.portal == *number);
            let own = promised.clone().filter(|promise| promise.initiator == initiator && promise.disk == disk);
            (has(*number) + own.count(), portal.sessions.load(Ordering::Relaxed) + promised.count())
        };
        let Some((number, chosen)) = list.iter().enumerate().filter(|(_, one)| one.is_open()).min_by_key(load) else {
            return Place::Nowhere;
        };
        if promises.len() >= PROMISES_MOST {
            promises.remove(0);
        }
        promises.push(Promise { initiator: initiator.to_owned(), disk, portal: number, until: now + PROMISE_MOST });
        Place::At(chosen.address)
    }

    /// An initiator has come to the portal that it was sent to.
    pub(crate) fn kept(&self, number: usize, initiator: &str, disk: usize) {
        let mut promises = self.promises.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = |one: &Promise| one.portal == number && one.disk == disk && one.initiator == initiator;
        if let Some(at) = promises.iter().position(kept) {
            promises.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn portals() -> Portals {
        let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        Portals::new(&[address(1), address(2)], Some(address(9)))
    }

    fn sent(portals: &Portals, initiator: &str, disk: usize) -> Place {
        portals.place(portals.group().unwrap(), initiator, disk, |_| 0)
    }

    fn at(port: u16) -> Place {
        Place::At(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    #[test]
    fn two_sessions_of_one_initiator_with_a_disk_go_to_two_portals_though_neither_has_logged_in() {
        let portals = portals();
        assert_eq!([sent(&portals, "one", 0), sent(&portals, "one", 0)], [at(1), at(2)]);
        assert_eq!([sent(&portals, "one", 1), sent(&portals, "one", 1)], [at(1), at(2)]);
    }

    #[test]
    fn a_portal_that_is_down_or_leaves_is_sent_none() {
        let portals = portals();
        portals.get(0).unwrap().set_up(false);
        assert_eq!(sent(&portals, "one", 0), at(2));
        portals.get(1).unwrap().leave();
        assert_eq!(sent(&portals, "one", 0), Place::Nowhere);
        portals.get(0).unwrap().set_up(true);
        assert_eq!(sent(&portals, "one", 0), at(1));
    }

    #[test]
    fn a_login_at_a_portal_goes_on_there_unless_its_sessions_are_to_leave() {
        let portals = portals();
        let first = portals.get(0).unwrap();
        assert_eq!(portals.place(&first, "one", 0, |_| 7), Place::Here);
        first.leave();
        assert_eq!(portals.place(&first, "one", 0, |_| 7), at(2));
    }
}
