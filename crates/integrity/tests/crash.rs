//! Power cuts at any operation: an honest device is never accused, and one that lies about its flushes is found out.

use std::{fs, path::PathBuf, thread, time::Duration};

use assay_integrity::{
    CrashCheck, CrashProgress, Fault, FaultyOptions, FilePlan, PAGE_BYTES, Run, RunPlan, VerifyPlan, check_after_crash,
};

const SEEDS: u64 = 60;
const MS: u64 = 1_000_000;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, seed: u64) -> Self {
        let path = std::env::temp_dir().join(format!("assay-crash-{}-{name}-{seed}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn plan(folder: &Folder, seed: u64, write_through: bool, page_bytes: u32) -> VerifyPlan {
    let file = |name: &str, size_bytes: u64, log| {
        let path = folder.0.join(name);
        fs::File::create(&path).unwrap().set_len(size_bytes).unwrap();
        FilePlan {
            name: name.into(),
            path,
            held: None,
            base_bytes: 0,
            size_bytes,
            max_bytes: size_bytes,
            increment_bytes: 0,
            log,
            sector_bytes: 512,
            data_page_bytes: page_bytes,
            direct: false,
        }
    };
    let files = vec![file("data", 64 * u64::from(page_bytes), false), file("log", 256 * 512, true)];
    let users = serde_json::json!({
        "random": {"users": 3, "jump_share": 0.1, "chain_min": 2, "chain_max": 8, "update_share": 0.8, "log_bytes_min": 64,
                   "log_bytes_max": 2048, "rollback_share": 0.1, "sleep_ns": 0},
        "audit": {"users": 1, "pages": 16, "delay_after_cycles": 2, "delay_ns": MS},
        "read_ahead": {"users": 1, "pages_min": 4, "pages_max": 8, "delay_after_cycles": 2, "delay_ns": MS},
        "bulk_update": {"users": 1, "pages_min": 4, "pages_max": 16, "delay_after_cycles": 2, "delay_ns": MS},
        "shrink": {"users": 0, "interval_min_ns": 1, "interval_max_ns": 1, "extents_min": 1, "extents_max": 1},
        "files": [], "seed": seed, "run_id": seed + 1000, "cycles": 1, "stress_ns": 30 * MS,
        "pool_bytes": 32 * page_bytes, "cache_hit_share": 0.2, "max_outstanding": 8, "target_io_ns": 100 * MS,
        "bursts": true, "scatter_gather": true, "write_through": write_through, "force_read_ahead": true,
        "look_first": false, "rewrite_after_ns": 0, "pages_per_io": 8, "rereads": 2, "reread_pause_ns": 0,
        "long_io_ns": 15_000 * MS, "io_timeout_ns": 60_000 * MS, "stop_on_error": false, "interval_ns": 5 * MS,
    });
    VerifyPlan { files, ..serde_json::from_value(users).unwrap() }
}

/// Runs until the power is cut, and checks what is left.
fn crash(name: &str, seed: u64, write_through: bool, options: FaultyOptions) -> (CrashCheck, Folder) {
    crash_of_pages(name, seed, write_through, options, PAGE_BYTES)
}

fn crash_of_pages(
    name: &str,
    seed: u64,
    write_through: bool,
    options: FaultyOptions,
    page_bytes: u32,
) -> (CrashCheck, Folder) {
    let folder = Folder::new(name, seed);
    let plan = plan(&folder, seed, write_through, page_bytes);
    let journal = folder.0.join("journal");
    let mut run = RunPlan {
        plan,
        backend: serde_json::from_str("\"auto\"").unwrap(),
        faulty: Some(options),
        journal: Some(journal),
        note: Some(format!("{name} {seed}")),
    };
    let running = Run::start(run.clone()).unwrap();
    while running.look(|report| report.end.is_none()) {
        thread::sleep(Duration::from_millis(2));
    }
    drop(running);
    run.faulty = None;
    (check_after_crash(&run, &CrashProgress::default()).unwrap(), folder)
}

fn options(seed: u64, atomic_unit_bytes: u32) -> FaultyOptions {
    let power_cut_after = Some(20 + seed * 37 % 1500);
    FaultyOptions { seed, volatile_cache: true, power_cut_after, atomic_unit_bytes, ..FaultyOptions::default() }
}

#[test]
fn an_honest_device_is_never_accused() {
    let mut promised = 0;
    for seed in 0..SEEDS {
        let (check, _folder) = crash("honest", seed, seed % 2 == 0, options(seed, PAGE_BYTES));
        assert!(check.findings.is_empty(), "seed {seed}: {:#?}", check.findings[0]);
        promised += check.promised;
    }
    assert!(promised > 0);
}

#[test]
fn writes_that_were_never_acknowledged_may_be_torn_and_are_said_to_be() {
    let mut torn = 0;
    for seed in 0..SEEDS {
        let (check, _folder) = crash("sectors", seed, seed % 2 == 0, options(seed, 512));
        for finding in &check.findings {
            assert_eq!(finding.kind, Fault::Torn, "seed {seed}: {finding:#?}");
            assert!(finding.explanation.contains("was not"), "seed {seed}: {}", finding.explanation);
        }
        torn += check.findings.len();
    }
    assert!(torn > 0, "no page was torn in {SEEDS} power cuts");
}

#[test]
fn pages_of_16_kib_are_torn_by_a_device_that_writes_8_kib_whole_and_by_no_better_one() {
    let (mut torn, mut outstanding) = (0, 0);
    for seed in 0..SEEDS {
        let (better, _folder) = crash_of_pages("better", seed, seed % 2 == 0, options(seed, 16384), 16384);
        assert!(better.findings.is_empty(), "seed {seed}: {:#?}", better.findings[0]);
        assert_eq!((better.plan.frame_bytes(), better.plan.data_write_bytes_max()), (16384, 8 * 16384));
        outstanding += better.outstanding_pages;
        let (worse, _folder) = crash_of_pages("worse", seed, seed % 2 == 0, options(seed, 8192), 16384);
        torn += worse.findings.iter().filter(|finding| finding.kind == Fault::Torn).count();
        assert!(worse.outstanding_pages >= worse.findings.len() as u64);
    }
    assert!(outstanding > 0 && torn > 0, "{outstanding} outstanding, {torn} torn in {SEEDS} power cuts");
}

#[test]
fn a_device_that_lies_about_flushes_is_found_out() {
    let (mut cut, mut convicted) = (0, 0);
    for seed in 0..SEEDS {
        let liar = FaultyOptions { ignores_flush: true, ..options(seed, PAGE_BYTES) };
        let (check, _folder) = crash("liar", seed, seed % 2 == 0, liar);
        convicted +=
            u64::from(check.findings.iter().any(|finding| matches!(finding.kind, Fault::Lost | Fault::LogBreak)));
        // On a busy machine a run may end before it has asked so much that the power is cut.
        cut += u64::from(!check.ended);
    }
    assert!(cut > 0 && convicted > cut / 2, "{convicted} of {cut}");
}

#[test]
fn a_page_that_is_overwritten_after_the_run_is_missed() {
    let honest = FaultyOptions::default();
    let (check, folder) = crash("whole", 1, true, honest);
    assert!(check.ended && check.findings.is_empty());
    assert_eq!((check.outstanding_pages, check.note.as_deref()), (0, Some("whole 1")));
    let path = folder.0.join("data");
    let mut bytes = fs::read(&path).unwrap();
    bytes[5 * 8192..6 * 8192].fill(0);
    bytes[9 * 8192 + 700] ^= 4;
    bytes.copy_within(20 * 8192..21 * 8192, 21 * 8192);
    fs::write(&path, bytes).unwrap();
    let plan = VerifyPlan { files: plan_of(&folder), ..plan(&Folder::new("other", 1), 1, true, PAGE_BYTES) };
    let run = RunPlan {
        plan,
        backend: serde_json::from_str("\"auto\"").unwrap(),
        faulty: None,
        journal: Some(folder.0.join("journal")),
        note: None,
    };
    let check = check_after_crash(&run, &CrashProgress::default()).unwrap();
    let found: Vec<_> = check.findings.iter().map(|finding| (finding.at.page, finding.kind)).collect();
    assert_eq!(found, [(5, Fault::Lost), (9, Fault::Corrupt), (21, Fault::MisdirectedWrite)]);
}

/// The files of a folder, as they are.
fn plan_of(folder: &Folder) -> Vec<FilePlan> {
    let journal = assay_integrity::JournalReader::open(&folder.0.join("journal")).unwrap();
    journal.plan().files.clone()
}
