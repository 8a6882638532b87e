use crate::{
    core::Event,
    kernel::Kernel,
    user::{User, UserKind},
};

const USER: User = User { kind: UserKind::LogReader, number: 0 };

/// Reads the log behind its writer, as log backup and replication do: no record is written over that was not verified.
pub(crate) async fn log_reader(kernel: Kernel) {
    if !kernel.with(|core| core.plan.look_first) {
        return;
    }
    while kernel.wanted(Event::LogDurable, |core| core.log.read < core.log.durable).await {
        let (first, durable) = kernel.with(|core| (core.log.read, core.log.durable));
        let (id, _) = kernel.with(|core| core.log.place(first));
        let last = (durable - 1).min(first + u64::from(kernel.most_pages(id.file)) - 1);
        kernel.read_log(first, last, USER).await;
        kernel.settle().await;
        kernel.with(|core| {
            // A new round may have begun meanwhile.
            core.log.read = core.log.read.max(last + 1);
            core.log.free(true);
            core.wake(Event::LogSpace);
        });
    }
}
