use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use assay_integrity::{
    Failure, Fault, FaultCounts, FileStanding, FileTick, InFlight, PhaseDone, Report, Run, RunError, RunPlan, Verifier,
    VerifyPlan,
};
use assay_load::{DirectionTick, GroupKey, Totals};
use pyo3::prelude::*;
use serde::Serialize;

use crate::{
    errors::{raise, to_python},
    finding::FindingReport,
    summary::{self, Names, Side, to_json},
};

/// A run of `assay verify`. Plans come in and figures go out as JSON text; docs/integrity.md describes it.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct Verification {
    inner: Mutex<Run>,
}

#[pymethods]
impl Verification {
    /// Opens the files and starts.
    #[new]
    fn new(py: Python<'_>, plan_json: &str) -> PyResult<Self> {
        let plan: RunPlan = parse(plan_json)?;
        let run = py.detach(|| Run::start(plan)).map_err(|error| of_run_error(&error))?;
        Ok(Self { inner: Mutex::new(run) })
    }

    /// State of the run, and news since the last poll.
    fn poll(&self, py: Python<'_>) -> String {
        py.detach(|| self.with(report))
    }

    /// Ends the run early and waits for its end, `timeout_s` at most; returns as `poll` does.
    fn stop(&self) {
        self.with(Run::stop);
    }

    /// Ends the run early and waits for its end, `timeout_s` at most; returns what `poll` does.
    fn finish(&self, py: Python<'_>, timeout_s: f64) -> String {
        py.detach(|| {
            self.with(|run| {
                run.finish(Duration::from_secs_f64(timeout_s));
                report(run)
            })
        })
    }

    /// The measured part of a point over the n-th finished phase, once.
    fn point(&self, phase: usize) -> PyResult<String> {
        self.with(|run| {
            let names = Names {
                activities: vec![("data".into(), "data".into()), ("log".into(), "log".into())],
                volumes: run.plan.files.iter().map(|file| file.name.clone()).collect(),
                replays: false,
            };
            let logs: Vec<bool> = run.plan.files.iter().map(|file| file.log).collect();
            let standstills = |from_ns, to_ns| run.standstills(from_ns, to_ns);
            run.look(|report| {
                let done = report.phases.get_mut(phase)?;
                // A phase is asked for once; its histograms would add up in a run of many cycles.
                let files = std::mem::take(&mut done.files).into_iter().enumerate();
                let of_file = files
                    .map(|(volume, interval)| (GroupKey { activity: usize::from(logs[volume]), volume }, interval));
                let totals: Totals = of_file.collect();
                let seconds = ((done.to_ns - done.from_ns) as f64 / 1e9).max(1e-9);
                Some(summary::point(&totals, &names, seconds, 1, 0.0, standstills(done.from_ns, done.to_ns)))
            })
        })
        .ok_or_else(|| raise("UsageError", format!("phase {phase} has not ended")))
    }

    /// Backend and features in force.
    fn engine(&self) -> String {
        self.with(|run| summary::engine(run.engine()))
    }
}

impl Verification {
    fn with<T>(&self, action: impl FnOnce(&Run) -> T) -> T {
        action(&self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Bytes of memory that a plan needs: expected state and buffers.
pub(crate) fn memory_bytes(plan_json: &str) -> PyResult<u64> {
    let plan: VerifyPlan = parse(plan_json)?;
    let (_, frames) = Verifier::queue_needs(&plan);
    let buffers = u64::from(frames) * u64::from(plan.frame_bytes());
    Ok(assay_integrity::expected_state_bytes(&plan.files) + buffers)
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| raise("UsageError", format!("verify plan: {error}")))
}

pub(crate) fn of_run_error(error: &RunError) -> PyErr {
    match error {
        RunError::Device(error) => to_python(error),
        RunError::Failure(failure) => raise(class_of(failure), failure.to_string()),
        RunError::Journal(_) => raise("UsageError", format!("journal {error}")),
    }
}

fn class_of(failure: &Failure) -> &'static str {
    match failure {
        Failure::NoSpace { .. } => "OutOfSpace",
        Failure::NotAnswering { .. } => "NotAnswering",
        Failure::Memory { .. } => "OutOfMemory",
        Failure::Gone { .. } | Failure::Failed { .. } | Failure::Queue(_) | Failure::Journal(_) => "IoFailed",
    }
}

/// How a run, or a check after a crash, stands, and what is new since the last poll.
#[derive(Serialize)]
pub(crate) struct RunReport {
    pub(crate) state: &'static str,
    pub(crate) detail: Option<String>,
    pub(crate) error: Option<&'static str>,
    pub(crate) now_ns: u64,
    pub(crate) phase: &'static str,
    pub(crate) cycle: u32,
    pub(crate) done_share: Option<f64>,
    pub(crate) phase_elapsed_ns: u64,
    pub(crate) outstanding: u32,
    pub(crate) audited: bool,
    pub(crate) stopped_on_error: bool,
    pub(crate) counts: CountsReport,
    pub(crate) long_outstanding: Vec<LongIo>,
    pub(crate) ticks: Vec<FileLine>,
    pub(crate) findings: Vec<FindingReport>,
    pub(crate) phases: Vec<PhaseReport>,
    pub(crate) files: Vec<FileReport>,
    pub(crate) injected: Option<FaultReport>,
    pub(crate) observable: Option<FaultReport>,
    pub(crate) masked: Option<FaultReport>,
    /// Of a check after a crash, at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) journal: Option<JournalReport>,
}

/// Counts by the name of the fault.
type FaultReport = BTreeMap<&'static str, u64>;

#[derive(Serialize, Default)]
pub(crate) struct CountsReport {
    pub(crate) pages_verified: u64,
    pub(crate) bytes_verified: u64,
    pub(crate) pages_written: u64,
    pub(crate) bytes_written: u64,
    pub(crate) resizes: u64,
}

/// An I/O outstanding for longer than it may be.
#[derive(Serialize)]
pub(crate) struct LongIo {
    file: u16,
    op: &'static str,
    page: u32,
    pages: u32,
    age_ns: u64,
    user: &'static str,
}

/// One file in one tick.
#[derive(Serialize)]
pub(crate) struct FileLine {
    tick: u64,
    file: usize,
    read: Side,
    write: Side,
    error_count: u64,
}

/// A phase that ended.
#[derive(Serialize)]
pub(crate) struct PhaseReport {
    name: &'static str,
    cycle: u32,
    from_ns: u64,
    to_ns: u64,
    pages_verified: u64,
    pages_written: u64,
}

/// Work of one file so far.
#[derive(Serialize)]
pub(crate) struct FileReport {
    target_io_ns: u64,
    average_io_ns: f64,
    throttled: u64,
    reads: u64,
    scatter_reads: u64,
    writes: u64,
    gather_writes: u64,
    io_time_ns: u64,
    slowest_io_ns: u64,
    size_bytes: u64,
}

/// Content of the journal of a run that crashed.
#[derive(Serialize)]
pub(crate) struct JournalReport {
    pub(crate) acknowledged: u64,
    pub(crate) promised_pages: u64,
    pub(crate) log_promised: u64,
    pub(crate) log_end: u64,
    pub(crate) complete: bool,
    pub(crate) ended: bool,
    pub(crate) cut_off: bool,
    /// Identity of the run that crashed, in hexadecimal digits.
    pub(crate) run: String,
    pub(crate) page_bytes: u32,
    pub(crate) write_bytes_max: u64,
    pub(crate) write_through: bool,
    pub(crate) direct: bool,
    pub(crate) max_outstanding: u32,
    pub(crate) outstanding_pages: u64,
    pub(crate) note: Option<String>,
}

fn report(run: &Run) -> String {
    let stuck = run.stuck_for();
    let now_ns = run.now_ns();
    run.look(|report| {
        let (state, detail, error) = match &report.end {
            None => match stuck {
                Some(silent) => {
                    let text = format!("the verifier has been stuck in an I/O for {} s", silent.as_secs());
                    ("not-answering", Some(text), None)
                }
                None => ("running", None, None),
            },
            Some(Ok(())) => ("ended", None, None),
            Some(Err(failure @ Failure::NotAnswering { .. })) => ("not-answering", Some(failure.to_string()), None),
            Some(Err(failure)) => ("failed", Some(failure.to_string()), Some(class_of(failure))),
        };
        to_json(&RunReport { state, detail, error, now_ns, ..of_report(report, run) })
    })
}

/// A report without how the run ended.
fn of_report(report: &mut Report, run: &Run) -> RunReport {
    let standing = report.standing;
    let counts = standing.map(|standing| standing.counts).unwrap_or_default();
    let now_ns = standing.map_or(0, |standing| standing.now_ns);
    let truth = |counts: fn(&assay_integrity::Truth) -> FaultCounts| {
        report.truth.as_ref().map(|truth| {
            let counts = counts(truth);
            Fault::ALL.into_iter().map(|fault| (fault.name(), counts[fault])).collect::<FaultReport>()
        })
    };
    RunReport {
        state: "running",
        detail: None,
        error: None,
        now_ns,
        phase: standing.map_or("prepare", |standing| standing.phase.name()),
        cycle: standing.map_or(1, |standing| standing.cycle),
        done_share: standing.map(|standing| standing.phase_done),
        phase_elapsed_ns: now_ns.saturating_sub(report.phase_from_ns),
        outstanding: standing.map_or(0, |standing| standing.outstanding),
        audited: standing.is_some_and(|standing| standing.audited),
        stopped_on_error: standing.is_some_and(|standing| standing.stopped_on_error),
        counts: CountsReport {
            pages_verified: counts.pages_verified,
            bytes_verified: counts.bytes_verified,
            pages_written: counts.pages_written,
            bytes_written: counts.bytes_written,
            resizes: counts.resizes,
        },
        injected: truth(|truth| truth.injected),
        observable: truth(|truth| truth.observable),
        masked: truth(|truth| truth.masked),
        long_outstanding: report.long_outstanding.iter().map(|io| LongIo::of(io, now_ns)).collect(),
        phases: report.phases.iter().map(PhaseReport::of).collect(),
        files: report.files.iter().map(|file| FileReport::of(file, run.plan.target_io_ns)).collect(),
        ticks: report.ticks.drain(..).map(|tick| FileLine::of(&tick)).collect(),
        findings: report.findings.drain(..).map(|finding| FindingReport::of(&finding, &run.plan)).collect(),
        journal: None,
    }
}

impl LongIo {
    fn of(io: &InFlight, now_ns: u64) -> Self {
        Self {
            file: io.id.file,
            op: assay_integrity::op_name(io.op),
            page: io.id.page,
            pages: io.pages,
            age_ns: now_ns.saturating_sub(io.submitted_ns),
            user: io.user.kind.name(),
        }
    }
}

impl PhaseReport {
    fn of(done: &PhaseDone) -> Self {
        Self {
            name: done.phase.name(),
            cycle: done.cycle,
            from_ns: done.from_ns,
            to_ns: done.to_ns,
            pages_verified: done.pages_verified,
            pages_written: done.pages_written,
        }
    }
}

impl FileReport {
    fn of(file: &FileStanding, target_io_ns: u64) -> Self {
        Self {
            target_io_ns,
            average_io_ns: file.average_io_ns,
            throttled: file.io.throttled,
            reads: file.io.reads,
            scatter_reads: file.io.scatter_reads,
            writes: file.io.writes,
            gather_writes: file.io.gather_writes,
            io_time_ns: file.io.io_time_ns,
            slowest_io_ns: file.io.slowest_io_ns,
            size_bytes: file.size_bytes,
        }
    }
}

impl FileLine {
    fn of(tick: &FileTick) -> Self {
        let tally = &tick.interval;
        Self {
            tick: tick.tick,
            file: tick.file,
            read: Side::of(&DirectionTick::of(&tally.read)),
            write: Side::of(&DirectionTick::of(&tally.write)),
            error_count: tally.errors.count(),
        }
    }
}
