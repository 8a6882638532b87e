//! A database at work: its tree, its cache, its log, and the load on it.

use std::collections::{HashMap, HashSet, VecDeque};

use assay_load::tasks::TaskId;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use serde::Serialize;

use crate::{
    cache::Cache,
    log::{BLOCK_BYTES, Log},
    node::{Content, Node, Slot},
    plan::{BULK_BYTES, DatabasePlan, MailboxPlan, Test},
    shape::{LEAF_KEYS, Shape},
};

/// Share of a cache that may be newer than the storage.
const DIRTY_SHARE: f64 = 0.5;
/// Pages of a cache at least: a search needs one of each level, a split some more.
const CACHE_MIN_PAGES: usize = 16;
/// Clients at work at the same time, and what each asks of one neighbourhood before it turns to another.
const CLIENTS: usize = 32;
const CLIENT_OPERATIONS: u32 = 16;
/// Leaves of a neighbourhood: some folders of a mailbox.
const NEIGHBOURHOOD_LEAVES: u64 = 1024;
/// How fast the mean of I/Os per operation follows.
const MEAN_WEIGHT: f64 = 0.002;

/// Event that waiting tasks wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Room in the cache.
    Room,
    /// A page to be written, or a write that ended.
    Cleaning,
    /// Records to be written.
    LogWanted,
    LogRoom,
    /// A scan or a write ended that kept another from its pages.
    Unlatched,
    /// A closed file of the log.
    FileClosed,
    /// An operation ended, or a rate changed.
    Load,
}

const EVENTS: usize = 7;

/// Counts of operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Operations {
    pub inserts: u64,
    pub replaces: u64,
    pub deletes: u64,
    pub seeks: u64,
    pub splits: u64,
    /// Inserts that found neither room in their leaf nor a free page.
    pub full: u64,
}

struct Client {
    first_leaf: u64,
    leaves: u64,
    left: u32,
}

/// Writes of changed pages.
#[derive(Default)]
pub(crate) struct Cleaning {
    /// All changed pages are to be written.
    pub flushing: bool,
    /// Checkpoints rest, so that a recovery has something to do.
    pub checkpoint_rests: bool,
    /// Bytes of the log from which on the oldest changed page is written.
    pub depth_bytes: u64,
    pub writes_under_way: u32,
    /// Pages that were chosen to be written or are being written, with their oldest change: the log is still needed for it.
    pub writing_lsns: HashMap<u64, u64>,
    /// Whether a page was written because of depth or room: the cache is as full of changes as it gets.
    pub settled: bool,
    pub pages_written: u64,
}

/// A database at work.
pub(crate) struct Database {
    pub plan: DatabasePlan,
    pub shape: Shape,
    pub cache: Cache,
    pub log: Log,
    pub next_free: u64,
    /// Ranges of pages that are being scanned: first page and pages.
    pub scans: Vec<(u64, u64)>,
    /// Pages that were found bad.
    pub bad: HashSet<u64>,
    pub rng: SmallRng,
    clients: Vec<Client>,
    /// Intended starts of operations that wait until others end.
    pub backlog: VecDeque<u64>,
    pub running: u32,
    pub operations: Operations,
    /// Records appended, which passive copies follow.
    pub changes: u64,
    /// I/Os that operations were found to need, and the mean per operation.
    pub ios_needed: f64,
    pub ios_mean: f64,
    /// Where no bytes are held: pages on the storage that are not as they were at first.
    pub shelf: HashMap<u64, Shelved>,
    waiting: [VecDeque<TaskId>; EVENTS],
    pub durable_waiting: Vec<(u64, TaskId)>,
    pub cleaning: Cleaning,
    /// LSN from which a passive copy's log is still to be replayed.
    pub replayed_lsn: Option<u64>,
}

/// A leaf that holds no bytes: how many records it has, evenly apart.
#[derive(Debug, Clone)]
pub(crate) enum Shelved {
    Leaf { lsn: u64, low: u64, high: u64, right: u64, records: u16 },
    Inner(Box<Node>),
}

impl Database {
    pub(crate) fn new(number: usize, plan: &MailboxPlan) -> Self {
        let own = plan.databases[number].clone();
        let shape = Shape::new(own.data.size_bytes, plan.page_bytes);
        let pages = plan.cache_bytes / u64::from(plan.page_bytes) / plan.databases.len() as u64;
        let remembers = own.passive || plan.test == Test::Recovery;
        // Logs come to a passive copy file by file.
        let write_max_bytes = if own.passive { BULK_BYTES } else { plan.log_write_max_bytes };
        let log = Log::new(own.log, plan, write_max_bytes, remembers);
        let depth = if own.passive { plan.passive_depth_bytes } else { plan.checkpoint_depth_bytes };
        let seed = plan.seed.wrapping_add((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let changed = plan.mix.insert + plan.mix.replace + plan.mix.delete;
        Self {
            next_free: shape.first_free,
            cache: Cache::new((pages as usize).max(CACHE_MIN_PAGES)),
            // The rest of the log's extent takes records that are written while the oldest page is.
            cleaning: Cleaning { depth_bytes: depth.min(log.blocks() * BLOCK_BYTES / 4), ..Cleaning::default() },
            log,
            shape,
            scans: Vec::new(),
            bad: HashSet::new(),
            rng: SmallRng::seed_from_u64(seed),
            clients: Vec::new(),
            backlog: VecDeque::new(),
            running: 0,
            operations: Operations::default(),
            changes: 0,
            ios_needed: 0.0,
            ios_mean: 1.0 + changed,
            shelf: HashMap::new(),
            waiting: Default::default(),
            durable_waiting: Vec::new(),
            replayed_lsn: own.passive.then_some(1),
            plan: own,
        }
    }

    pub(crate) fn offset_bytes(&self, page: u64, page_bytes: u32) -> u64 {
        self.plan.data.start_bytes + page * u64::from(page_bytes)
    }

    pub(crate) fn wait_for(&mut self, event: Event, task: TaskId) {
        self.waiting[event as usize].push_back(task);
    }

    /// Tasks that wait for an event, which wait no longer.
    pub(crate) fn take_waiting(&mut self, event: Event) -> VecDeque<TaskId> {
        std::mem::take(&mut self.waiting[event as usize])
    }

    pub(crate) fn waits(&self, event: Event) -> bool {
        !self.waiting[event as usize].is_empty()
    }

    /// The log is needed from this LSN on: no page with an older change waits, or is on its way, and all of it was replayed.
    pub(crate) fn needed_lsn(&self) -> u64 {
        let waiting = self.cache.oldest_waiting();
        let writing = self.cleaning.writing_lsns.values().copied().min();
        let end = self.log.next_lsn;
        [waiting, writing, self.replayed_lsn].into_iter().flatten().min().unwrap_or(end)
    }

    /// Whether a page should be written now.
    pub(crate) fn wants_cleaning(&self) -> bool {
        let Some(oldest) = self.cache.oldest_waiting() else { return false };
        if self.cleaning.flushing || self.waits(Event::Room) || self.waits(Event::LogRoom) {
            return true;
        }
        let full = self.cache.dirty_count() as f64 > DIRTY_SHARE * self.cache.capacity() as f64;
        full || !self.cleaning.checkpoint_rests && self.log.depth_bytes(oldest) > self.cleaning.depth_bytes
    }

    /// A key that some client asks for next.
    pub(crate) fn next_key(&mut self) -> u64 {
        if self.clients.len() < CLIENTS {
            let client = self.new_client();
            self.clients.push(client);
        }
        let place = self.rng.random_range(0..self.clients.len());
        if self.clients[place].left == 0 {
            self.clients[place] = self.new_client();
        }
        let client = &mut self.clients[place];
        client.left -= 1;
        let leaf = client.first_leaf + self.rng.random_range(0..client.leaves);
        leaf * LEAF_KEYS + self.rng.random_range(0..LEAF_KEYS)
    }

    fn new_client(&mut self) -> Client {
        let leaves = NEIGHBOURHOOD_LEAVES.min(self.shape.leaves);
        let first_leaf = self.rng.random_range(0..=self.shape.leaves - leaves);
        Client { first_leaf, leaves, left: CLIENT_OPERATIONS }
    }

    /// Counts the I/Os of an operation.
    pub(crate) fn counted(&mut self, ios: f64) {
        self.ios_needed += ios;
        self.ios_mean += MEAN_WEIGHT * (ios - self.ios_mean);
    }

    /// A page as the storage has it, where that holds no bytes.
    pub(crate) fn unshelved(&self, page: u64) -> Node {
        match self.shelf.get(&page) {
            None => self.shape.initial(page),
            Some(Shelved::Inner(node)) => (**node).clone(),
            Some(&Shelved::Leaf { lsn, low, high, right, records }) => {
                let apart = ((high - low) / u64::from(records.max(1))).max(1);
                let slots = (0..u64::from(records)).map(|place| Slot { key: low + place * apart, version: 1 });
                Node { lsn, low, high, right, content: Content::Leaf(slots.collect()) }
            }
        }
    }

    /// Keeps a page as it was written, where the storage holds no bytes.
    pub(crate) fn shelve(&mut self, page: u64, node: &Node) {
        let shelved = match &node.content {
            Content::Leaf(slots) => Shelved::Leaf {
                lsn: node.lsn,
                low: node.low,
                high: node.high,
                right: node.right,
                records: slots.len() as u16,
            },
            _ => Shelved::Inner(Box::new(node.clone())),
        };
        self.shelf.insert(page, shelved);
    }
}
