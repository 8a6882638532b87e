use crate::{database::Event, kernel::Kernel, log::GATHERED_BYTES, plan::Activity};

/// Writes the log of a database: what gathers while a write is under way goes with the next one.
pub(super) async fn log_writer(kernel: Kernel, at: usize) {
    loop {
        kernel
            .until(at, Event::LogWanted, |core| {
                let log = &core.databases[at].log;
                (log.pending_bytes() > 0 && (log.wanted || log.pending_bytes() >= GATHERED_BYTES)).then_some(())
            })
            .await;
        // All that commits wait for, in as many units as it takes.
        let until_lsn = kernel.of(at, |database| {
            database.log.wanted = false;
            database.log.next_lsn
        });
        while kernel.of(at, |database| database.log.durable_lsn < until_lsn) {
            let unit = kernel.with(|core| {
                let run_id = core.plan.run_id;
                core.databases[at].log.next_unit(run_id, at as u32)
            });
            let Some(unit) = unit else { break };
            kernel.write_unit(at, unit, Activity::Log).await;
        }
    }
}
