//! A run from its begin to its end.

use std::{cell::Cell, future::Future, rc::Rc};

use crate::{
    database::Event,
    kernel::Kernel,
    phase::Phase,
    plan::Test,
    users::{
        backup::{backup, backups},
        checkpoint::{checkpoint_writer, flush},
        log_writer::log_writer,
        mailboxes::{arrivals, warm},
        maintenance::maintenance,
        prepare::prepare,
        recovery::{make_log, recover},
        replay::passive,
        shipping::shipping,
        verify::verify,
    },
};

/// Prepares, loads, and in the end writes everything and verifies it.
pub(crate) async fn script(kernel: Kernel) {
    let (databases, holds_bytes, test) = kernel.with(|core| (core.databases.len(), core.holds_bytes, core.plan.test));
    for at in 0..databases {
        if !kernel.of(at, |database| database.plan.passive) {
            kernel.spawn(log_writer(kernel.clone(), at));
        }
        kernel.spawn(checkpoint_writer(kernel.clone(), at));
    }
    let pages = kernel.with(|core| core.databases.iter().map(|database| database.shape.pages).sum());
    if holds_bytes {
        begin(&kernel, Phase::Prepare, pages);
        each(&kernel, prepare).await;
        if kernel.with(|core| core.stopping) {
            return;
        }
    }
    match test {
        Test::Performance => {
            load(&kernel).await;
            if !holds_bytes {
                // What is written in the end is written to be verified.
                return;
            }
        }
        Test::Backup => {
            begin(&kernel, Phase::Backup, pages);
            each(&kernel, backup).await;
            // Every page was read and compared.
            return;
        }
        Test::Recovery => {
            let files = kernel.with(|core| u64::from(core.plan.recovery_files) * databases as u64);
            begin(&kernel, Phase::MakeLog, files);
            each(&kernel, make_log).await;
            begin(&kernel, Phase::Recovery, files);
            each(&kernel, recover).await;
        }
    }
    if kernel.with(|core| core.aborting) {
        return;
    }
    begin(&kernel, Phase::Flush, 0);
    each(&kernel, |kernel, at| async move { flush(&kernel, at).await }).await;
    if holds_bytes {
        begin(&kernel, Phase::Verify, pages);
        each(&kernel, verify).await;
    }
}

/// Mailboxes at work until the run is stopped.
async fn load(kernel: &Kernel) {
    begin(kernel, Phase::Warm, 0);
    each(kernel, warm).await;
    begin(kernel, Phase::Load, 0);
    let (databases, maintained, copies, streams) = kernel.with(|core| {
        let plan = &core.plan;
        (core.databases.len(), plan.maintenance_bytes_per_s > 0.0, plan.shipped_copies, plan.backup_streams)
    });
    for at in 0..databases {
        if maintained {
            kernel.spawn(maintenance(kernel.clone(), at));
        }
        if kernel.of(at, |database| database.plan.passive) {
            kernel.spawn(passive(kernel.clone(), at));
            continue;
        }
        kernel.spawn(arrivals(kernel.clone(), at));
        for _ in 0..copies {
            kernel.spawn(shipping(kernel.clone(), at));
        }
        if (at as u32) < streams {
            kernel.spawn(backups(kernel.clone(), at));
        }
    }
    for at in 0..databases {
        kernel
            .until(at, Event::Load, |core| {
                let database = &core.databases[at];
                (core.stopping && database.running == 0 && database.scans.is_empty()).then_some(())
            })
            .await;
    }
}

fn begin(kernel: &Kernel, phase: Phase, of: u64) {
    kernel.with(|core| core.begin_phase(phase, of));
}

/// Does something with all databases at the same time.
async fn each<T: Future<Output = ()> + 'static>(kernel: &Kernel, action: impl Fn(Kernel, usize) -> T) {
    let databases = kernel.with(|core| core.databases.len());
    let left = Rc::new(Cell::new(databases));
    for at in 0..databases {
        let (work, kernel, left) = (action(kernel.clone(), at), kernel.clone(), Rc::clone(&left));
        kernel.clone().spawn(async move {
            work.await;
            left.set(left.get() - 1);
            kernel.with(|core| core.wake(0, Event::Load));
        });
    }
    kernel.until(0, Event::Load, |_| (left.get() == 0).then_some(())).await;
}
