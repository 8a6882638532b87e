//! The users of the imitated engine, as SQLIOSim has them, one file each.

mod audit;
mod bulk_update;
mod checkpoint;
mod log_reader;
mod log_writer;
mod random;
mod read_ahead;
mod shrink;

use std::future::Future;

use rand::{RngExt, rngs::SmallRng};

pub(crate) use checkpoint::{checkpoint, checkpoint_writer};
pub(crate) use log_reader::log_reader;
pub(crate) use log_writer::{log_writer, write_log_round};

use crate::{
    core::{Event, User, UserKind},
    kernel::Kernel,
    stamp::PageId,
};

/// Starts the users of the stress phase.
pub(crate) fn spawn_all(kernel: &Kernel) {
    let plan = kernel.with(|core| core.plan.clone());
    spawn(kernel, UserKind::Random, plan.random.users, random::random);
    spawn(kernel, UserKind::Audit, plan.audit.users, audit::audit);
    spawn(kernel, UserKind::ReadAhead, plan.read_ahead.users, read_ahead::read_ahead);
    spawn(kernel, UserKind::BulkUpdate, plan.bulk_update.users, bulk_update::bulk_update);
    spawn(kernel, UserKind::Shrink, plan.shrink.users.min(1), shrink::shrink);
}

fn spawn<F>(kernel: &Kernel, kind: UserKind, users: u32, run: impl Fn(Kernel, User) -> F)
where
    F: Future<Output = ()> + 'static,
{
    for number in 0..users {
        kernel.with(|core| core.users_alive += 1);
        let (work, kernel) = (run(kernel.clone(), User { kind, number }), kernel.clone());
        kernel.clone().spawn(async move {
            work.await;
            kernel.settle().await;
            kernel.with(|core| {
                core.users_alive -= 1;
                core.wake(Event::Quiet);
            });
        });
    }
}

/// Makes all files durable, where writes are not so by themselves.
pub(crate) async fn flush_all(kernel: &Kernel, user: User) {
    if kernel.with(|core| core.plan.write_through) {
        return;
    }
    let files = kernel.with(|core| core.files.len() as u16);
    for file in 0..files {
        flush(kernel, file, user).await;
    }
}

/// Makes a file durable, where writes are not so by themselves; tells whether it is.
pub(crate) async fn flush(kernel: &Kernel, file: u16, user: User) -> bool {
    if kernel.with(|core| core.plan.write_through) {
        return true;
    }
    let number = kernel.with(|core| {
        core.flushes = core.flushes.wrapping_add(1);
        let number = core.flushes;
        core.observe(|observer, _| observer.flushing(file, number));
        number
    });
    let end = kernel.flush(file, user).await;
    if end.result < 0 {
        kernel.flush_failed(file, -end.result, user);
    } else {
        kernel.with(|core| core.observe(|observer, _| observer.flushed(file, number)));
    }
    end.result >= 0
}

/// Where `pages` consecutive pages of some data file may begin, and how many there are.
fn any_pages(kernel: &Kernel, pages: u32, rng: &mut SmallRng) -> (PageId, u32) {
    let file = kernel.any_data_file(rng);
    let there = kernel.pages(file);
    let count = pages.min(there);
    let page = rng.random_range(0..=there - count);
    (PageId { file, page }, count)
}

/// Rests after every so many cycles.
struct Pace {
    cycles: u32,
    after: u32,
    delay_ns: u64,
}

impl Pace {
    fn new(after: u32, delay_ns: u64) -> Self {
        Self { cycles: 0, after: after.max(1), delay_ns }
    }

    async fn cycle(&mut self, kernel: &Kernel) {
        self.cycles += 1;
        if self.cycles.is_multiple_of(self.after) {
            kernel.rest(self.delay_ns).await;
        }
        kernel.yield_now().await;
    }
}
