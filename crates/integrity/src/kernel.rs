//! Operations of users on the imitated engine: read, change, log and write pages, and wait for each.

use std::{cell::RefCell, future::poll_fn, rc::Rc, task::Poll};

use assay_load::tasks::{Schedule, Scheduled};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

use crate::{
    core::{Core, Event, most_pages_per_io},
    expected::{Flag, state_mut},
    failure::Failure,
    in_flight::Purpose,
    in_flight::RawEnd,
    phase::Phase,
    stamp::PageId,
    user::User,
};

/// Suspects that wait to be looked into, before reads wait for them.
const SUSPECTS_MAX: usize = 256;

/// The imitated engine as its users see it. Reads and writes return when the I/O is issued; `settle` waits for its end.
#[derive(Clone)]
pub(crate) struct Kernel(pub Rc<RefCell<Core>>);

impl Scheduled for Kernel {
    fn schedule<T>(&self, look: impl FnOnce(&mut Schedule) -> T) -> T {
        self.with(|core| look(&mut core.schedule))
    }
}

impl Kernel {
    pub(crate) fn data_files(&self) -> Vec<u16> {
        self.with(|core| (0..core.files.len() as u16).filter(|file| !core.is_log(*file)).collect())
    }

    /// Tries until it works; between the tries `event` must happen.
    async fn until<T>(&self, event: Event, mut attempt: impl FnMut(&mut Core) -> Option<T>) -> T {
        poll_fn(|_| {
            let mut core = self.0.borrow_mut();
            match attempt(&mut core) {
                Some(value) => Poll::Ready(value),
                None => {
                    core.wait_for(event);
                    Poll::Pending
                }
            }
        })
        .await
    }

    pub(crate) fn with<T>(&self, action: impl FnOnce(&mut Core) -> T) -> T {
        action(&mut self.0.borrow_mut())
    }

    /// A generator of random numbers for one user, determined by the run's seed.
    pub(crate) fn rng(&self, user: User) -> SmallRng {
        self.with(|core| {
            let stream = u64::from(core.course.cycle) << 32 | u64::from(user.kind.writer(user.number));
            SmallRng::seed_from_u64(core.plan.seed.wrapping_add(stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        })
    }

    /// Whether users go on.
    pub(crate) fn stressing(&self) -> bool {
        self.with(|core| !core.course.stopping && core.now_ns < core.course.stress_ends_ns)
    }

    /// Waits; a stop, and the end of the stress phase, cut it short.
    pub(crate) async fn rest(&self, duration_ns: u64) {
        let ends_ns = self.with(|core| core.now_ns.saturating_add(duration_ns).min(core.course.stress_ends_ns));
        self.sleep_until(ends_ns, true).await;
    }

    /// Waits.
    pub(crate) async fn pause(&self, duration_ns: u64) {
        let ends_ns = self.with(|core| core.now_ns.saturating_add(duration_ns));
        self.sleep_until(ends_ns, false).await;
    }

    async fn sleep_until(&self, ends_ns: u64, until_stopped: bool) {
        let mut asleep = false;
        poll_fn(|_| {
            let mut core = self.0.borrow_mut();
            if core.now_ns >= ends_ns || until_stopped && core.course.stopping {
                return Poll::Ready(());
            }
            if !asleep {
                asleep = true;
                let task = core.schedule.current;
                core.schedule.wake_at(ends_ns, task);
            }
            Poll::Pending
        })
        .await;
    }

    /// Lets other tasks run.
    pub(crate) async fn yield_now(&self) {
        let mut yielded = false;
        poll_fn(|_| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            self.with(|core| {
                let task = core.schedule.current;
                core.schedule.wake(task);
            });
            Poll::Pending
        })
        .await;
    }

    /// Most pages of one I/O to a file.
    pub(crate) fn most_pages(&self, file: u16) -> u32 {
        self.with(|core| most_pages_per_io(&core.plan, usize::from(file)))
    }

    /// Most pages of one write to a data file.
    pub(crate) fn most_pages_of_write(&self, file: u16) -> u32 {
        self.with(|core| core.plan.pages_per_io).min(self.most_pages(file))
    }

    /// Pages of a file that may be touched.
    pub(crate) fn pages(&self, file: u16) -> u32 {
        self.with(|core| core.files[usize::from(file)].pages)
    }

    /// A random data file, drawn in proportion to its size.
    pub(crate) fn any_data_file(&self, rng: &mut SmallRng) -> u16 {
        self.with(|core| {
            let sizes = || core.files.iter().map(|file| if file.plan.log { 0 } else { u64::from(file.pages) });
            let mut place = rng.random_range(0..sizes().sum::<u64>().max(1));
            for (file, pages) in sizes().enumerate() {
                if place < pages {
                    return file as u16;
                }
                place -= pages;
            }
            0
        })
    }

    /// Latches pages, unless they are no longer in the file.
    pub(crate) async fn latch(&self, id: PageId, pages: u32) -> bool {
        self.until(Event::Unlatched, |core| {
            if id.page + pages > core.files[usize::from(id.file)].pages {
                return Some(false);
            }
            core.try_latch(id, pages).then_some(true)
        })
        .await
    }

    async fn slot(&self, file: u16, pages: u32, throttled: bool) -> u32 {
        let mut waited = false;
        self.until(Event::SlotFree, |core| {
            let slot = core.try_slot(file, pages, throttled);
            if slot.is_none() && throttled && !std::mem::replace(&mut waited, true) {
                core.throttles[usize::from(file)].throttled += 1;
            }
            slot
        })
        .await
    }

    /// Issues a read of pages; they are verified when it ends. Nothing happens when they are no longer in the file.
    pub(crate) async fn read(&self, id: PageId, pages: u32, user: User) {
        // A user that finds faults faster than they can be looked into waits: each is a page in memory.
        self.until(Event::Unlatched, |core| (core.verdict.suspects.len() <= SUSPECTS_MAX).then_some(())).await;
        if self.latch(id, pages).await {
            let tag = self.slot(id.file, pages, true).await;
            self.with(|core| core.submit_read(tag, id, pages, user, Purpose::Verify));
        }
    }

    /// Issues a write of new generations of pages that belong to log record `lsn`, once that is on the storage.
    pub(crate) async fn write(&self, id: PageId, pages: u32, lsn: u64, user: User) {
        self.durable(lsn).await;
        if self.latch(id, pages).await {
            self.write_latched(id, pages, user, |_| lsn).await;
        }
    }

    /// Issues a write of new generations of latched pages.
    pub(crate) async fn write_latched(&self, id: PageId, pages: u32, user: User, lsn_of: impl Fn(u32) -> u64) {
        let tag = self.slot(id.file, pages, true).await;
        self.with(|core| {
            for page in id.page..id.page + pages {
                core.dirty.remove(&PageId { page, ..id });
            }
            core.submit_write(tag, id, pages, user, lsn_of);
        });
    }

    /// Waits for the ends of all I/Os of this task.
    pub(crate) async fn settle(&self) {
        poll_fn(|_| {
            self.with(|core| {
                let outstanding = core.ios.outstanding_of.get(core.schedule.current).copied().unwrap_or(0);
                if outstanding == 0 { Poll::Ready(()) } else { Poll::Pending }
            })
        })
        .await;
    }

    /// Waits until no write is in doubt.
    pub(crate) async fn writes_certain(&self) {
        self.until(Event::Unlatched, |core| (core.verdict.writes_in_doubt == 0).then_some(())).await;
    }

    /// Waits until nothing is outstanding or being looked into.
    pub(crate) async fn quiet(&self) {
        self.until(Event::Quiet, |core| (core.is_quiet() || core.failure.is_some()).then_some(())).await;
    }

    /// Waits until pages are free of latches.
    pub(crate) async fn unlatched(&self, id: PageId, pages: u32) {
        self.until(Event::Unlatched, |core| core.try_latch(id, pages).then_some(())).await;
        self.with(|core| core.unlatch(id, pages));
    }

    /// Reads pages that are about to be overwritten, and waits until they are verified.
    pub(crate) async fn look(&self, id: PageId, pages: u32, user: User) {
        if self.with(|core| core.plan.look_first) {
            self.read(id, pages, user).await;
            self.settle().await;
        }
    }

    /// Whether pages were written so long ago that they may be changed again.
    pub(crate) fn may_change(&self, id: PageId, pages: u32) -> bool {
        self.with(|core| {
            let end_us = core.now_ns.saturating_sub(core.plan.rewrite_after_ns) / 1000;
            let states = core.files[usize::from(id.file)].states.iter().skip(id.page as usize).take(pages as usize);
            states.into_iter().all(|state| state.stamp().time_us <= end_us)
        })
    }

    /// Notes a change of a page that log record `lsn` describes; the checkpoint writes it.
    pub(crate) fn change(&self, id: PageId, lsn: u64) {
        self.with(|core| {
            if id.page >= core.files[usize::from(id.file)].pages {
                return;
            }
            let Core { pool, files, rng, dirty, .. } = core;
            pool.touch(files, id, rng);
            state_mut(files, id).set(Flag::Dirty, true);
            dirty.insert(id, lsn);
        });
    }

    /// Waits until the pool holds few enough changed pages.
    pub(crate) async fn room_for_changes(&self) {
        self.until(Event::Cleaned, |core| {
            let full = core.dirty.len() > core.pool.capacity() / 2;
            if full {
                core.course.checkpoint_wanted = true;
                core.wake(Event::CheckpointWanted);
            }
            (!full || core.course.stopping).then_some(())
        })
        .await;
    }

    /// Appends records to the log; returns the LSN of the last. They are on the storage when `durable` says so.
    pub(crate) async fn append(&self, bytes: u32) -> u64 {
        self.until(Event::LogSpace, |core| {
            let blocks = core.log.blocks_for(bytes);
            if core.log.is_filling() {
                core.course.checkpoint_wanted = true;
                core.wake(Event::CheckpointWanted);
            }
            // The checkpoint frees only what is durable.
            core.wake(Event::LogWanted);
            core.log.has_room(blocks).then(|| {
                core.log.head += blocks;
                core.log.head - 1
            })
        })
        .await
    }

    /// Waits until a log record and all before it are on the storage.
    pub(crate) async fn durable(&self, lsn: u64) {
        self.until(Event::LogDurable, |core| {
            if core.log.durable > lsn {
                return Some(());
            }
            core.wake(Event::LogWanted);
            None
        })
        .await;
    }

    /// Waits for something to be wanted.
    pub(crate) async fn wanted(&self, event: Event, wanted: impl Fn(&Core) -> bool) -> bool {
        self.until(event, |core| {
            if wanted(core) {
                return Some(true);
            }
            core.course.closing.then_some(false)
        })
        .await
    }

    /// Makes everything written to a file durable, where writes are not so by themselves.
    pub(crate) async fn flush(&self, file: u16, user: User) -> RawEnd {
        let tag = self.slot(file, 0, false).await;
        self.with(|core| core.submit_flush(tag, file, user));
        self.raw_end().await
    }

    /// Reads a latched page and gives it back as it came.
    pub(crate) async fn reread(&self, id: PageId, user: User) -> RawEnd {
        let tag = self.slot(id.file, 1, false).await;
        self.with(|core| core.submit_read(tag, id, 1, user, Purpose::Raw));
        self.raw_end().await
    }

    /// Writes latched pages as they should be already.
    pub(crate) async fn rewrite(&self, id: PageId, pages: u32, user: User) -> RawEnd {
        let tag = self.slot(id.file, pages, false).await;
        self.with(|core| core.submit_rewrite(tag, id, pages, user));
        self.raw_end().await
    }

    async fn raw_end(&self) -> RawEnd {
        poll_fn(|_| {
            self.with(|core| {
                let task = core.schedule.current;
                core.ios.mailbox[task].take().map_or(Poll::Pending, Poll::Ready)
            })
        })
        .await
    }

    /// Gives a file another size. Nothing of what is cut off may be in use.
    pub(crate) fn resize(&self, file: u16, pages: u32) -> Result<(), i32> {
        self.with(|core| {
            let bytes = core.files[usize::from(file)].offset_bytes(pages);
            let resized = core.queue.resize(file, bytes);
            match resized {
                Ok(()) => core.counts.resizes += 1,
                Err(errno) => core.fail(file, -errno, "a change of its size failed"),
            }
            resized
        })
    }

    /// Reads a part of the log.
    pub(crate) async fn read_log(&self, first: u64, last: u64, user: User) {
        let mut lsn = first;
        while lsn <= last {
            let (id, left) = self.with(|core| core.log.place(lsn));
            let blocks = (last - lsn + 1).min(left).min(u64::from(self.most_pages(id.file)));
            self.read(id, blocks as u32, user).await;
            lsn += blocks;
        }
    }

    /// Notes how much of a phase is done.
    pub(crate) fn progress(&self, phase: Phase, done: u64, of: u64) {
        self.with(|core| {
            if core.course.phase == phase {
                core.course.phase_done = done as f64 / of.max(1) as f64;
            }
        });
    }

    pub(crate) fn failed(&self) -> bool {
        self.with(|core| core.failure.is_some())
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.with(|core| core.schedule.spawn(task));
    }
}

impl Core {
    /// Ends the run where going on has no sense: the storage is full, or gone.
    pub(crate) fn fail(&mut self, file: u16, errno: i32, what: &'static str) {
        let name = self.files[usize::from(file)].plan.path.display().to_string();
        self.failure.get_or_insert(Failure::of_errno(&name, errno, what));
        self.wake(Event::Quiet);
    }
}
