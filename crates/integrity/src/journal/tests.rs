use std::fs;

use proptest::prelude::*;

use super::*;
use crate::{AuditPlan, BulkUpdatePlan, RandomPlan, ReadAheadPlan, ShrinkPlan};

const RECORDS: u32 = 600;

fn plan() -> VerifyPlan {
    VerifyPlan {
        files: Vec::new(),
        seed: 1,
        run_id: 77,
        cycles: 1,
        stress_ns: 0,
        pool_bytes: 0,
        cache_hit_share: 0.0,
        max_outstanding: 1,
        target_io_ns: 1,
        bursts: true,
        scatter_gather: true,
        write_through: true,
        force_read_ahead: true,
        look_first: true,
        rewrite_after_ns: 0,
        pages_per_io: 1,
        rereads: 1,
        reread_pause_ns: 0,
        long_io_ns: 1,
        io_timeout_ns: 1,
        stop_on_error: false,
        interval_ns: 1,
        random: RandomPlan {
            users: 0,
            jump_share: 0.0,
            chain_min: 1,
            chain_max: 1,
            update_share: 0.0,
            log_bytes_min: 1,
            log_bytes_max: 1,
            rollback_share: 0.0,
            sleep_ns: 0,
        },
        audit: AuditPlan { users: 0, pages: 1, delay_after_cycles: 1, delay_ns: 0 },
        read_ahead: ReadAheadPlan { users: 0, pages_min: 1, pages_max: 1, delay_after_cycles: 1, delay_ns: 0 },
        bulk_update: BulkUpdatePlan { users: 0, pages_min: 1, pages_max: 1, delay_after_cycles: 1, delay_ns: 0 },
        shrink: ShrinkPlan { users: 0, interval_min_ns: 1, interval_max_ns: 1, extents_min: 1, extents_max: 1 },
    }
}

/// The bytes of a journal of several blocks.
fn journal(name: &str) -> Vec<u8> {
    let path = std::env::temp_dir().join(format!("assay-journal-{}-{name}", std::process::id()));
    let mut journal = Journal::create(&path, &plan(), None).unwrap();
    for page in 0..RECORDS {
        let mut state = PageState::default();
        state.generation = page + 1;
        journal.acknowledged(PageId { file: 0, page }, &[state]);
    }
    journal.finish(true).unwrap();
    assert!(matches!(Journal::create(&path, &plan(), None), Err(JournalError::Exists { .. })));
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    bytes
}

struct Parsed {
    plan: VerifyPlan,
    records: Vec<Record>,
    lost_blocks: u64,
}

fn parse(bytes: &[u8]) -> Result<Parsed, JournalError> {
    let mut reader = JournalReader::new(Path::new("j"), bytes, bytes.len() as u64)?;
    let mut records = Vec::new();
    let lost_blocks = reader.visit(|record| records.push(record))?;
    Ok(Parsed { plan: reader.plan, records, lost_blocks })
}

#[test]
fn what_was_recorded_is_read_back() {
    let read = parse(&journal("back")).unwrap();
    assert_eq!((read.plan, read.lost_blocks), (plan(), 0));
    assert_eq!(read.records.len(), RECORDS as usize + 1);
    assert_eq!(read.records[5], Record::Acknowledged { id: PageId { file: 0, page: 5 }, generation: 6, lsn: 0 });
    assert_eq!(read.records.last(), Some(&Record::End));
}

#[test]
fn damage_is_told_from_what_a_crash_leaves() {
    let whole = journal("damage");
    assert!(matches!(parse(&[]), Err(JournalError::Empty { .. })));
    assert!(matches!(parse(b"what else"), Err(JournalError::NotAJournal { .. })));
    assert!(matches!(parse(&whole[..5]), Err(JournalError::Truncated { .. })));
    assert!(matches!(parse(&whole[..300]), Err(JournalError::Truncated { .. })));
    assert!(matches!(parse(&whole[..whole.len() - 100]), Err(JournalError::Truncated { .. })));
    let head = whole.len() - 3 * BLOCK_BYTES;
    assert!(matches!(parse(&whole[..head]), Err(JournalError::Empty { .. })), "no record was made");
    let mut newer = whole.clone();
    newer[8] = 9;
    assert!(matches!(parse(&newer), Err(JournalError::Version { version: 9, .. })));
    let mut torn = whole.clone();
    *torn.last_mut().unwrap() ^= 1;
    let read = parse(&torn).unwrap();
    assert_eq!((read.lost_blocks, read.records.len()), (1, 2 * RECORDS_PER_BLOCK));
    let mut hole = whole;
    hole[head + BLOCK_BYTES..head + 2 * BLOCK_BYTES].fill(0);
    let read = parse(&hole).unwrap();
    assert_eq!((read.lost_blocks, read.records.len()), (2, RECORDS_PER_BLOCK), "what follows a hole is left out");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
        let _ = parse(&[&MAGIC[..], &1_u32.to_le_bytes(), &bytes].concat());
    }
}

#[test]
fn any_single_change_is_noticed_or_harmless() {
    let whole = journal("change");
    let records = parse(&whole).unwrap().records;
    for at in (0..whole.len()).step_by(7) {
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        if let Ok(read) = parse(&changed) {
            assert!(records.starts_with(&read.records), "byte {at}");
        }
    }
}
