//! Operations of tasks on databases: fetch pages, change them, log and write them, and wait for each.

use std::{cell::RefCell, future::poll_fn, rc::Rc, task::Poll};

use assay_load::{
    Op,
    tasks::{Schedule, Scheduled},
};

use crate::{
    cache::Standing,
    core::{Core, Io},
    database::{Database, Event},
    failure::BadPage,
    log::{BLOCK_BYTES, Unit},
    node::Change,
    page::{decode, encode},
    plan::Activity,
    record::Record,
    slots::Size,
};

/// A page cannot be used: its bytes are not those written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bad;

/// The run as its tasks see it.
#[derive(Clone)]
pub(crate) struct Kernel(pub Rc<RefCell<Core>>);

impl Scheduled for Kernel {
    fn schedule<T>(&self, look: impl FnOnce(&mut Schedule) -> T) -> T {
        self.with(|core| look(&mut core.schedule))
    }
}

impl Kernel {
    pub(crate) fn with<T>(&self, action: impl FnOnce(&mut Core) -> T) -> T {
        action(&mut self.0.borrow_mut())
    }

    pub(crate) fn of<T>(&self, database: usize, action: impl FnOnce(&mut Database) -> T) -> T {
        action(&mut self.0.borrow_mut().databases[database])
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.with(|core| core.now_ns)
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.with(|core| core.schedule.spawn(task));
    }

    /// Tries until it works; between the tries `event` must happen.
    pub(crate) async fn until<T>(
        &self,
        database: usize,
        event: Event,
        mut attempt: impl FnMut(&mut Core) -> Option<T>,
    ) -> T {
        poll_fn(|_| {
            let mut core = self.0.borrow_mut();
            match attempt(&mut core) {
                Some(value) => Poll::Ready(value),
                None => {
                    let task = core.schedule.current;
                    core.databases[database].wait_for(event, task);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Waits until a time.
    pub(crate) async fn sleep_until(&self, ends_ns: u64) {
        let mut asleep = false;
        poll_fn(|_| {
            let mut core = self.0.borrow_mut();
            if core.now_ns >= ends_ns || core.stopping {
                return Poll::Ready(());
            }
            if !std::mem::replace(&mut asleep, true) {
                let task = core.schedule.current;
                core.schedule.wake_at(ends_ns, task);
            }
            Poll::Pending
        })
        .await;
    }

    // I/O

    pub(crate) async fn slot(&self, size: Size) -> u32 {
        let mut ticket = None;
        poll_fn(|_| {
            let mut core = self.0.borrow_mut();
            match core.take_slot(size, ticket) {
                Some(tag) => Poll::Ready(tag),
                None => {
                    ticket = Some(core.wait_for_slot(size, ticket));
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Puts an I/O on its way and waits for its end; its memory stays until the place is released.
    pub(crate) async fn transfer(&self, tag: u32, io: Io) {
        self.with(|core| core.submit(tag, io));
        poll_fn(|_| if self.with(|core| core.has_ended(tag)) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    pub(crate) fn release(&self, tag: u32) {
        self.with(|core| core.release(tag));
    }

    /// An I/O to pages of a database.
    pub(crate) fn page_io(&self, op: Op, at: usize, page: u64, pages: u64, activity: Activity, needed_ns: u64) -> Io {
        self.with(|core| {
            let page_bytes = core.plan.page_bytes;
            let database = &core.databases[at];
            Io {
                op,
                database: at,
                activity,
                volume: database.plan.data.volume,
                offset_bytes: database.offset_bytes(page, page_bytes),
                bytes: pages as u32 * page_bytes,
                needed_ns,
            }
        })
    }

    // Pages

    /// Sees to it that a page is in the cache, until the task waits for anything else. `needed_ns` moves to the end of the read, if
    /// there is one. Tells how many reads it took.
    pub(crate) async fn fetch(
        &self,
        at: usize,
        page: u64,
        activity: Activity,
        needed_ns: &mut u64,
    ) -> Result<u32, Bad> {
        loop {
            let must_read = self
                .until(at, Event::Room, |core| {
                    let database = &mut core.databases[at];
                    if database.bad.contains(&page) {
                        return Some(Err(Bad));
                    }
                    match database.cache.standing(page) {
                        Standing::Here => {
                            database.cache.used(page);
                            return Some(Ok(Some(false)));
                        }
                        Standing::Coming => return Some(Ok(None)),
                        Standing::Absent => {}
                    }
                    if database.cache.make_room() {
                        database.cache.add(page, None);
                        return Some(Ok(Some(true)));
                    }
                    core.wake(at, Event::Cleaning);
                    None
                })
                .await?;
            match must_read {
                Some(false) => return Ok(0),
                Some(true) => {
                    self.read_page(at, page, activity, needed_ns).await?;
                    return Ok(1);
                }
                None => self.until_come(at, page).await,
            }
        }
    }

    /// Waits for a page that another task reads.
    async fn until_come(&self, at: usize, page: u64) {
        poll_fn(|_| {
            self.with(|core| {
                let task = core.schedule.current;
                let cache = &mut core.databases[at].cache;
                if !matches!(cache.standing(page), Standing::Coming) {
                    return Poll::Ready(());
                }
                // Each time: the page may have come, gone, and be on its way once more.
                if let Some(entry) = cache.entry_mut(page) {
                    entry.waiting.push(task);
                }
                Poll::Pending
            })
        })
        .await;
    }

    async fn read_page(&self, at: usize, page: u64, activity: Activity, needed_ns: &mut u64) -> Result<(), Bad> {
        let tag = self.slot(Size::Page).await;
        self.transfer(tag, self.page_io(Op::Read, at, page, 1, activity, *needed_ns)).await;
        self.with(|core| {
            *needed_ns = core.now_ns;
            let read = if core.holds_bytes {
                let name = core.name(at, page);
                decode(core.frame(tag, 0), name)
            } else {
                Ok(core.databases[at].unshelved(page))
            };
            core.release(tag);
            let cache = &mut core.databases[at].cache;
            let (waiting, result) = match read {
                Ok(node) => {
                    let waiting = cache.entry_mut(page).map_or_else(Vec::new, |entry| {
                        entry.node = Some(node);
                        std::mem::take(&mut entry.waiting)
                    });
                    cache.used(page);
                    core.counts.pages_verified += u64::from(core.holds_bytes);
                    (waiting, Ok(()))
                }
                Err(what) => {
                    let waiting = cache.remove(page);
                    core.find_bad_page(at, page, activity, what);
                    (waiting, Err(Bad))
                }
            };
            waiting.into_iter().for_each(|task| core.schedule.wake(task));
            result
        })
    }

    /// Makes a change to a page that is in the cache, and logs it; tells whether the page has to be written once more for it.
    pub(crate) fn change(&self, at: usize, page: u64, change: Change, replaces: bool) -> bool {
        self.with(|core| {
            let database = &mut core.databases[at];
            let (begin, lsn) = database.log.append(Record { lsn: 0, page, change: change.clone(), replaces });
            if let Some(node) = database.cache.used(page) {
                node.apply(lsn, &change);
            }
            database.changes += 1;
            let newly = database.cache.changed(page, begin);
            if database.wants_cleaning() {
                core.wake(at, Event::Cleaning);
            }
            if core.databases[at].log.pending_bytes() >= crate::log::GATHERED_BYTES {
                core.wake(at, Event::LogWanted);
            }
            newly
        })
    }

    /// Makes a change that is in the log already to a page that is in the cache, unless the page has it.
    pub(crate) fn redo(&self, at: usize, begin: u64, record: &Record) {
        self.with(|core| {
            let database = &mut core.databases[at];
            let Some(node) = database.cache.used(record.page) else { return };
            if node.lsn < record.lsn {
                node.apply(record.lsn, &record.change);
                database.cache.changed(record.page, begin);
            }
            if database.wants_cleaning() {
                core.wake(at, Event::Cleaning);
            }
        });
    }

    /// Waits for room for `bytes` of records.
    pub(crate) async fn log_room(&self, at: usize, bytes: usize) {
        self.until(at, Event::LogRoom, |core| {
            let database = &core.databases[at];
            if database.log.has_room(bytes, database.needed_lsn()) {
                return Some(());
            }
            core.databases[at].log.wanted = true;
            core.wake(at, Event::LogWanted);
            core.wake(at, Event::Cleaning);
            None
        })
        .await;
    }

    /// Waits until all records below an LSN are on the storage.
    pub(crate) async fn durable(&self, at: usize, lsn: u64) {
        poll_fn(|_| {
            let mut core = self.0.borrow_mut();
            let task = core.schedule.current;
            let database = &mut core.databases[at];
            if database.log.durable_lsn >= lsn {
                return Poll::Ready(());
            }
            database.log.wanted = true;
            database.durable_waiting.push((lsn, task));
            core.wake(at, Event::LogWanted);
            Poll::Pending
        })
        .await;
    }

    /// Writes a unit of the log.
    pub(crate) async fn write_unit(&self, at: usize, unit: Unit, activity: Activity) {
        let needed_ns = self.now_ns();
        let tag = self.slot(Size::Bulk).await;
        let io = self.with(|core| {
            core.fill(tag, &unit.image);
            let database = &core.databases[at];
            let offset_bytes = database.log.offset_bytes(unit.block);
            let volume = database.plan.log.volume;
            Io { op: Op::Write, database: at, activity, volume, offset_bytes, bytes: unit.bytes, needed_ns }
        });
        self.transfer(tag, io).await;
        self.release(tag);
        self.with(|core| {
            let database = &mut core.databases[at];
            database.log.durable_lsn = unit.end_lsn;
            database.log.durable_block = unit.block + u64::from(unit.bytes) / BLOCK_BYTES;
            let waiting = std::mem::take(&mut database.durable_waiting);
            let (ready, waiting): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(lsn, _)| *lsn <= unit.end_lsn);
            database.durable_waiting = waiting;
            ready.into_iter().for_each(|(_, task)| core.schedule.wake(task));
            core.wake(at, Event::FileClosed);
        });
    }

    /// Writes a page that was chosen, once its log is on the storage.
    pub(crate) async fn write_page(&self, at: usize, page: u64, activity: Activity) {
        let needed_ns = self.now_ns();
        let tag = loop {
            let lsn = self.of(at, |database| database.cache.node(page).map_or(0, |node| node.lsn));
            self.durable(at, lsn).await;
            let tag = self.slot(Size::Page).await;
            let is_durable = self.of(at, |database| {
                let is_durable = database.cache.node(page).is_none_or(|node| node.lsn <= database.log.durable_lsn);
                if is_durable {
                    database.cache.begins_writing(page);
                }
                is_durable
            });
            if is_durable {
                break tag;
            }
            // It was changed meanwhile.
            self.release(tag);
        };
        self.with(|core| {
            let name = core.name(at, page);
            let Some(node) = core.databases[at].cache.node(page).cloned() else { return };
            if core.holds_bytes {
                encode(&node, name, core.frame(tag, 0));
            } else {
                core.databases[at].shelve(page, &node);
            }
        });
        self.transfer(tag, self.page_io(Op::Write, at, page, 1, activity, needed_ns)).await;
        self.with(|core| {
            core.release(tag);
            let database = &mut core.databases[at];
            database.cleaning.writing_lsns.remove(&page);
            database.cache.written(page);
            database.cleaning.pages_written += 1;
            database.cleaning.writes_under_way -= 1;
            let needed = database.needed_lsn();
            database.log.forget_before(needed);
            for event in [Event::Room, Event::LogRoom, Event::Cleaning, Event::Unlatched] {
                core.wake(at, event);
            }
        });
    }

    /// Reads pages in one I/O and verifies them; pages that are on their way to the storage are waited for, and none of them is
    /// written meanwhile.
    pub(crate) async fn scan(&self, at: usize, page: u64, pages: u64, activity: Activity, needed_ns: u64) {
        self.until(at, Event::Unlatched, |core| {
            let database = &mut core.databases[at];
            let written = (page..page + pages).any(|page| database.cleaning.writing_lsns.contains_key(&page));
            (!written).then(|| database.scans.push((page, pages)))
        })
        .await;
        let tag = self.slot(Size::Bulk).await;
        self.transfer(tag, self.page_io(Op::Read, at, page, pages, activity, needed_ns)).await;
        self.with(|core| {
            for piece in 0..if core.holds_bytes { pages } else { 0 } {
                let name = core.name(at, page + piece);
                match decode(core.frame(tag, piece as u32), name) {
                    Ok(_) => core.counts.pages_verified += 1,
                    Err(what) => core.find_bad_page(at, page + piece, activity, what),
                }
            }
            core.release(tag);
            let scans = &mut core.databases[at].scans;
            let place = scans.iter().position(|scan| *scan == (page, pages));
            place.map(|place| scans.swap_remove(place));
            core.wake(at, Event::Unlatched);
            core.wake(at, Event::Load);
        });
    }

    /// Reads a piece of a log.
    pub(crate) async fn read_log(&self, at: usize, block: u64, bytes: u32, activity: Activity) -> Vec<u8> {
        let needed_ns = self.now_ns();
        let tag = self.slot(Size::Bulk).await;
        let io = self.with(|core| {
            let database = &core.databases[at];
            let offset_bytes = database.log.offset_bytes(block);
            let volume = database.plan.log.volume;
            Io { op: Op::Read, database: at, activity, volume, offset_bytes, bytes, needed_ns }
        });
        self.transfer(tag, io).await;
        self.with(|core| {
            let bytes = if core.holds_bytes { core.copied(tag, bytes) } else { Vec::new() };
            core.release(tag);
            bytes
        })
    }

    /// Notes a wrong piece of a log.
    pub(crate) fn find_bad_log(&self, at: usize, block: u64, activity: Activity, what: String) {
        self.with(|core| {
            let log = &core.databases[at].log;
            let (volume, offset_bytes) = (core.databases[at].plan.log.volume, log.offset_bytes(block));
            core.find(BadPage { database: at, page: None, volume, offset_bytes, what, activity: activity.name() });
        });
    }
}
