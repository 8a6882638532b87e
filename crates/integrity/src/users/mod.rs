//! The users of the imitated engine, as SQLIOSim has them, one file each.

mod audit;
mod bulk_update;
mod checkpoint;
mod flushing;
mod log_reader;
mod log_writer;
mod pace;
mod random;
mod read_ahead;
mod shrink;

use std::future::Future;

pub(crate) use checkpoint::{checkpoint, checkpoint_writer};
pub(crate) use flushing::flush_all;
pub(crate) use log_reader::log_reader;
pub(crate) use log_writer::{log_writer, write_log_round};

use crate::{
    core::Event,
    kernel::Kernel,
    user::{User, UserKind},
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
        kernel.with(|core| core.course.users_alive += 1);
        let (work, kernel) = (run(kernel.clone(), User { kind, number }), kernel.clone());
        kernel.clone().spawn(async move {
            work.await;
            kernel.settle().await;
            kernel.with(|core| {
                core.course.users_alive -= 1;
                core.wake(Event::Quiet);
            });
        });
    }
}
