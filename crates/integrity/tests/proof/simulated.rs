//! A run in virtual time on a faulty device in memory, with all users active.

use assay_integrity::{
    AuditPlan, BulkUpdatePlan, FaultCounts, FaultyClock, FaultyFile, FaultyOptions, FaultyQueue, FilePlan, Finding,
    Injection, Memory, PAGE_BYTES, RandomPlan, ReadAheadPlan, ShrinkPlan, Truth, Verifier, VerifyPlan,
};

const MS: u64 = 1_000_000;
const DATA_PAGES: u64 = 96;
const LOG_BLOCKS: u64 = 256;

/// What became of a run.
pub(crate) struct Outcome {
    pub(crate) findings: Vec<Finding>,
    pub(crate) found: FaultCounts,
    pub(crate) truth: Truth,
    pub(crate) injections: Vec<Injection>,
    pub(crate) audited: bool,
    pub(crate) pages_verified: u64,
}

impl Outcome {
    /// Findings and injections, for a look into a seed that failed.
    pub(crate) fn listing(&self) -> String {
        let found = self.findings.iter().map(|finding| {
            let (kind, at) = (finding.kind.name(), finding.at);
            let persistent = if finding.persistent { "persistent" } else { "transient" };
            format!(
                "found {kind} {persistent} at {at:?} at {} ns: {} (by {}, also {:?})",
                finding.found_ns,
                finding.explanation,
                finding.user.kind.name(),
                finding.also
            )
        });
        let injected = self.injections.iter().map(|injection| format!("injected {injection:?}"));
        found.chain(injected).collect::<Vec<_>>().join("\n")
    }
}

/// Options with a probability for each fault.
pub(crate) fn options(seed: u64, rates: [f64; 9]) -> FaultyOptions {
    let [torn, lost, misdirected_write, misdirected_read, corrupt, short_read, log_break, io_error, long_io] = rates;
    FaultyOptions {
        seed,
        torn,
        lost,
        misdirected_write,
        misdirected_read,
        corrupt,
        short_read,
        log_break,
        io_error,
        long_io,
        ..FaultyOptions::default()
    }
}

/// A small database with every user at work.
pub(crate) fn plan(seed: u64) -> VerifyPlan {
    let file = |name: &str, size_bytes, max_bytes, log| FilePlan {
        name: name.into(),
        path: name.into(),
        held: None,
        base_bytes: 0,
        size_bytes,
        max_bytes,
        increment_bytes: 8 * u64::from(PAGE_BYTES),
        log,
        data_page_bytes: PAGE_BYTES,
        sector_bytes: if seed.is_multiple_of(2) { 512 } else { 4096 },
        direct: false,
    };
    let sector_bytes = if seed.is_multiple_of(2) { 512 } else { 4096 };
    let data_bytes = DATA_PAGES * u64::from(PAGE_BYTES);
    VerifyPlan {
        files: vec![
            file("data", data_bytes, data_bytes * 2, false),
            file("log", LOG_BLOCKS * sector_bytes, LOG_BLOCKS * sector_bytes, true),
            file("data2", data_bytes / 2, data_bytes / 2, false),
        ],
        seed,
        run_id: seed ^ 0x5eed,
        cycles: if seed.is_multiple_of(5) { 2 } else { 1 },
        stress_ns: 100 * MS,
        pool_bytes: 64 * u64::from(PAGE_BYTES),
        cache_hit_share: 0.2,
        max_outstanding: 16,
        target_io_ns: 100 * MS,
        bursts: true,
        scatter_gather: !seed.is_multiple_of(3),
        write_through: !seed.is_multiple_of(4),
        force_read_ahead: !seed.is_multiple_of(7),
        look_first: seed.is_multiple_of(2),
        rewrite_after_ns: if seed.is_multiple_of(3) { 0 } else { 2 * MS },
        pages_per_io: 8,
        rereads: 15,
        reread_pause_ns: MS,
        long_io_ns: 15_000 * MS,
        io_timeout_ns: 120_000 * MS,
        stop_on_error: false,
        interval_ns: 500 * MS,
        random: RandomPlan {
            users: 3,
            jump_share: 0.1,
            chain_min: 2,
            chain_max: 10,
            update_share: 0.7,
            log_bytes_min: 64,
            log_bytes_max: 2048,
            rollback_share: 0.2,
            sleep_ns: MS / 2,
        },
        audit: AuditPlan { users: 1, pages: 16, delay_after_cycles: 2, delay_ns: 2 * MS },
        read_ahead: ReadAheadPlan { users: 1, pages_min: 4, pages_max: 8, delay_after_cycles: 2, delay_ns: 2 * MS },
        bulk_update: BulkUpdatePlan { users: 1, pages_min: 4, pages_max: 16, delay_after_cycles: 2, delay_ns: 4 * MS },
        shrink: ShrinkPlan {
            users: 1,
            interval_min_ns: 5 * MS,
            interval_max_ns: 20 * MS,
            extents_min: 1,
            extents_max: 4,
        },
    }
}

pub(crate) fn faulty_files(plan: &VerifyPlan) -> Vec<FaultyFile> {
    let of_file = |file: &FilePlan| FaultyFile {
        page_bytes: if file.log { file.sector_bytes } else { PAGE_BYTES },
        base_bytes: file.base_bytes,
        size_bytes: file.size_bytes,
        log: file.log,
        write_through: plan.write_through,
        scattered: plan.scatter_gather && !file.log,
    };
    plan.files.iter().map(of_file).collect()
}

/// Runs a plan to its end.
pub(crate) fn simulate(seed: u64, options: FaultyOptions) -> Outcome {
    let plan = plan(seed);
    let files = faulty_files(&plan);
    let (depth, frames) = Verifier::queue_needs(&plan);
    let medium = Memory::new(&files);
    let clock = FaultyClock::virtual_time();
    let queue = FaultyQueue::new(options, files, medium, clock, depth, frames, PAGE_BYTES).unwrap();
    let mut verifier = Verifier::new(plan, Box::new(queue), Box::new(())).unwrap();
    verifier.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    let (findings, standing) = (verifier.findings(), verifier.standing());
    let queue: Box<dyn std::any::Any> = verifier.into_queue();
    let queue = queue.downcast::<FaultyQueue<Memory>>().unwrap();
    let mut found = FaultCounts::default();
    findings.iter().for_each(|finding| found[finding.kind] += 1);
    Outcome {
        findings,
        found,
        truth: Truth { injected: queue.injected(), observable: queue.observable(), masked: queue.masked() },
        injections: queue.injections().to_vec(),
        audited: standing.audited,
        pages_verified: standing.counts.pages_verified,
    }
}
