//! State that all sessions share: disks, portals and their faults, who is logged in.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering},
    },
};

use assay_disk_server::{Blocks, Budget, Loops, Notes};
use tokio::sync::Notify;

use crate::{
    config::Config,
    login::status,
    portals::{Place, Portal, Portals},
    scsi::{reservations::Nexus, unit::Unit},
};

/// A session, as reports tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionReading {
    pub initiator: String,
    pub disk: usize,
    /// Number of the portal in the plan.
    pub portal: usize,
}

/// A session as the server sees it.
pub(crate) struct Standing {
    pub(crate) portal: Arc<Portal>,
    ends: Notify,
    leaves: Notify,
    is_asked_to_leave: AtomicBool,
    is_over: AtomicBool,
    number: u64,
}

impl Standing {
    pub(crate) async fn is_ended(&self) {
        self.ends.notified().await;
    }

    pub(crate) async fn is_asked_to_leave(&self) {
        self.leaves.notified().await;
    }

    /// Whether another session has taken its place: its commands are not obeyed.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    fn ask_to_leave(&self) {
        if !self.is_asked_to_leave.swap(true, Ordering::Relaxed) {
            self.leaves.notify_one();
        }
    }
}

type Key = (Nexus, Option<usize>);
/// A session with its key.
type Open<'a> = (&'a Key, &'a Arc<Standing>);

/// State that all sessions share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) units: Vec<Unit>,
    pub(crate) blocks: Arc<dyn Blocks>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) portals: Portals,
    sessions: Mutex<HashMap<Key, Arc<Standing>>>,
    connections_most: usize,
    next_session: AtomicU16,
    next_number: AtomicU64,
    pub(crate) notes: Notes,
}

impl Shared {
    pub(crate) fn new(config: Config, blocks: Arc<dyn Blocks>, portals: Portals, loops: &Loops) -> Self {
        let notes = Notes::new("iSCSI", Arc::clone(&blocks));
        Self {
            units: config.disks.iter().cloned().map(Unit::new).collect(),
            blocks,
            budget: Arc::clone(&loops.budget),
            portals,
            sessions: Mutex::default(),
            connections_most: loops.connections_most(),
            next_session: AtomicU16::new(1),
            next_number: AtomicU64::new(0),
            notes,
            config,
        }
    }

    /// A login has failed.
    pub(crate) fn note_refused(&self, from: IpAddr, failed: u16) {
        let why = match failed {
            // It goes on elsewhere.
            status::MOVED => return,
            status::UNPROVEN => "it does not prove the secret of CHAP",
            status::FORBIDDEN => "it is not on the list of initiators",
            status::NO_TARGET => "it asks for a disk that there is not",
            status::UNAVAILABLE => "no portal takes sessions",
            status::OUT_OF_RESOURCES => "there are as many connections as there may be",
            _ => "its login is malformed",
        };
        self.notes.note(from, &format!(": refused: {why}"));
    }

    pub(crate) fn set_portal(&self, number: usize, is_up: bool) {
        let Some(portal) = self.portals.get(number) else { return };
        portal.set_up(is_up);
        if !is_up {
            self.locked()
                .values()
                .filter(|one| one.portal.number == Some(number))
                .for_each(|one| one.ends.notify_one());
        }
    }

    /// Asks all sessions of a portal to log in elsewhere; gives their count.
    pub(crate) fn retire(&self, number: usize) -> usize {
        let Some(portal) = self.portals.get(number) else { return 0 };
        portal.leave();
        let sessions = self.locked();
        let leaving = sessions.values().filter(|one| one.portal.number == Some(number));
        leaving.inspect(|one| one.ask_to_leave()).count()
    }

    /// Asks sessions to log in elsewhere until all open portals have equally many; gives the count of the sessions.
    ///
    /// The latest sessions go first. A session stays where it is rather than go to a portal that its initiator uses for the
    /// same disk already.
    pub(crate) fn balance(&self) -> usize {
        let sessions = self.locked();
        let list = self.portals.list();
        let open = list.iter().filter(|portal| portal.is_open()).filter_map(|portal| portal.number);
        let mut held: Vec<(usize, Vec<Open<'_>>)> = open.map(|number| (number, Vec::new())).collect();
        for (key, standing) in sessions.iter().filter(|((_, disk), _)| disk.is_some()) {
            if let Some((_, own)) = held.iter_mut().find(|(number, _)| standing.portal.number == Some(*number)) {
                own.push((key, standing));
            }
        }
        held.iter_mut().for_each(|(_, own)| own.sort_by_key(|(_, standing)| standing.number));
        let mut asked = 0;
        loop {
            held.sort_by_key(|(_, own)| own.len());
            let [least, .., most] = held.as_mut_slice() else { return asked };
            if most.1.len() <= least.1.len() + 1 {
                return asked;
            }
            let is_apart = |((nexus, disk), _): &Open<'_>| {
                !least.1.iter().any(|((other, held), _)| other.initiator == nexus.initiator && held == disk)
            };
            let Some(at) = most.1.iter().rposition(is_apart) else { return asked };
            let moved = most.1.remove(at);
            moved.1.ask_to_leave();
            least.1.push(moved);
            asked += 1;
        }
    }

    pub(crate) fn readings(&self) -> Vec<SessionReading> {
        let sessions = self.locked();
        let reading = |((nexus, disk), standing): (&Key, &Arc<Standing>)| {
            Some(SessionReading { initiator: nexus.initiator.clone(), disk: (*disk)?, portal: standing.portal.number? })
        };
        sessions.iter().filter_map(reading).collect()
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Key, Arc<Standing>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where SendTargets says that disks are: at the group, or at every portal that takes sessions.
    pub(crate) fn told(&self, own: &str) -> Vec<String> {
        if let Some(group) = self.portals.group() {
            return vec![group.address.to_string()];
        }
        let list = self.portals.list();
        let open = list.iter().filter(|portal| portal.is_open());
        let told: Vec<String> = open.map(|portal| portal.address.to_string()).collect();
        // An address that stands for all of them is told as the one by which the initiator came.
        let is_any = list.iter().any(|portal| portal.address.ip().is_unspecified());
        if is_any || told.is_empty() { vec![own.to_owned()] } else { told }
    }

    /// Place where a login to a disk that came to a portal goes on.
    pub(crate) fn place(&self, portal: &Portal, initiator: &str, disk: usize) -> Place {
        let own: Vec<usize> = {
            let sessions = self.locked();
            let own = sessions.iter().filter(|((nexus, held), _)| *held == Some(disk) && nexus.initiator == initiator);
            own.filter_map(|(_, standing)| standing.portal.number).collect()
        };
        let has = |number: usize| own.iter().filter(|one| **one == number).count();
        self.portals.place(portal, initiator, disk, has)
    }

    /// A handle for a session, never zero; None if there are too many.
    pub(crate) fn next_session(&self) -> Option<u16> {
        (self.locked().len() < self.connections_most).then(|| self.next_session.fetch_add(1, Ordering::Relaxed).max(1))
    }

    /// A session begins; one of the same initiator to the same disk ends (RFC 7143, 6.3.5).
    pub(crate) fn opened(&self, nexus: &Nexus, disk: Option<usize>, portal: Arc<Portal>) -> Arc<Standing> {
        let standing = Arc::new(Standing {
            portal,
            ends: Notify::new(),
            leaves: Notify::new(),
            is_asked_to_leave: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            number: self.next_number.fetch_add(1, Ordering::Relaxed),
        });
        if let Some(number) = disk {
            // Disk and list change together: the end of an earlier session comes before or after both.
            let mut sessions = self.locked();
            if let Some(before) = sessions.insert((nexus.clone(), disk), Arc::clone(&standing)) {
                before.is_over.store(true, Ordering::Release);
                before.ends.notify_one();
            }
            self.units[number].open(nexus);
        }
        if let Some(disk) = disk {
            standing.portal.opens();
            if let Some(portal) = standing.portal.number {
                self.portals.kept(portal, &nexus.initiator, disk);
            }
        }
        standing
    }

    /// A session has ended.
    pub(crate) fn closed(&self, nexus: &Nexus, disk: Option<usize>, standing: &Standing) {
        let Some(number) = disk else { return };
        standing.portal.closes();
        let key = (nexus.clone(), disk);
        let mut sessions = self.locked();
        // One that took its place goes on.
        if sessions.get(&key).is_some_and(|one| one.number == standing.number) {
            sessions.remove(&key);
            self.units[number].close(nexus);
        }
    }
}
