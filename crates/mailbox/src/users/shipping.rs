use crate::{
    database::Event,
    kernel::Kernel,
    log::{BLOCK_BYTES, Reader},
    plan::{Activity, SCAN_BYTES},
};

/// Reads and verifies closed files of a log, as sending them to another server does.
pub(super) async fn shipping(kernel: Kernel, at: usize) {
    let (file_blocks, rounds_blocks) = kernel.of(at, |database| (database.log.file_blocks(), database.log.blocks()));
    let piece_blocks = file_blocks.min(u64::from(SCAN_BYTES) / BLOCK_BYTES);
    let mut block = 0;
    let mut reader = Reader::at(0);
    loop {
        let head = kernel
            .until(at, Event::FileClosed, |core| {
                let head = core.databases[at].log.durable_block;
                (block + file_blocks <= head / file_blocks * file_blocks).then_some(head)
            })
            .await;
        if head + 2 * file_blocks > block + rounds_blocks {
            // The log has come round: what was not read in time is lost to this copy, which goes on with the newest file.
            block = head / file_blocks * file_blocks - file_blocks;
            reader = Reader::at(block);
        }
        let bytes = kernel.read_log(at, block, (piece_blocks * BLOCK_BYTES) as u32, Activity::Shipping).await;
        let (run_id, holds_bytes) = kernel.with(|core| (core.plan.run_id, core.holds_bytes));
        let is_whole = kernel.of(at, |database| database.log.head_block <= block + rounds_blocks);
        if holds_bytes
            && is_whole
            && let Err(what) = reader.take(&bytes, run_id, at as u32)
        {
            kernel.find_bad_log(at, block, Activity::Shipping, what);
            return;
        }
        block += piece_blocks;
    }
}
