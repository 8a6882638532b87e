use std::{sync::Mutex, sync::PoisonError, time::Duration};

use assay_integrity::{
    Failure, Fault, FaultCounts, FileTick, Finding, Report, Run, RunError, RunPlan, Verifier, VerifyPlan,
};
use assay_load::{DirectionTick, GroupKey, Totals};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::{
    errors::{raise, to_python},
    summary::{self, Names},
};

/// A run of `assay verify`. Plans come in and figures go out as JSON text; docs/integrity.md says what it does.
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

    /// How the run stands, and what is new since the last poll.
    fn poll(&self, py: Python<'_>) -> String {
        py.detach(|| self.with(report))
    }

    /// Ends the run early.
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
                Some(
                    summary::point(&totals, &names, seconds, 1, 0.0, standstills(done.from_ns, done.to_ns)).to_string(),
                )
            })
        })
        .ok_or_else(|| raise("UsageError", format!("phase {phase} has not ended")))
    }

    /// Backend and features in force.
    fn engine(&self) -> String {
        self.with(|run| summary::engine(run.engine()).to_string())
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
    let buffers = u64::from(frames) * u64::from(assay_integrity::PAGE_BYTES);
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
        Failure::Gone { .. } | Failure::Queue(_) | Failure::Journal(_) => "IoFailed",
    }
}

fn report(run: &Run) -> String {
    let stuck = run.stuck_for();
    let now_ns = run.now_ns();
    let mut document = run.look(|report| {
        let (state, detail, error) = match &report.end {
            None => match stuck {
                Some(silent) => {
                    let text = format!("the verifier has been stuck in an I/O for {} s", silent.as_secs());
                    ("not-answering", json!(text), Value::Null)
                }
                None => ("running", Value::Null, Value::Null),
            },
            Some(Ok(())) => ("ended", Value::Null, Value::Null),
            Some(Err(failure @ Failure::NotAnswering { .. })) => {
                ("not-answering", json!(failure.to_string()), Value::Null)
            }
            Some(Err(failure)) => ("failed", json!(failure.to_string()), json!(class_of(failure))),
        };
        let mut document = of_report(report, run);
        document.insert("state".into(), json!(state));
        document.insert("detail".into(), detail);
        document.insert("error".into(), error);
        document
    });
    document.insert("now_ns".into(), json!(now_ns));
    Value::Object(document).to_string()
}

fn of_report(report: &mut Report, run: &Run) -> Map<String, Value> {
    let mut document = Map::new();
    let mut put = |key: &str, value: Value| {
        document.insert(key.into(), value);
    };
    let standing = report.standing;
    let counts = standing.map(|standing| standing.counts).unwrap_or_default();
    let now_ns = standing.map_or(0, |standing| standing.now_ns);
    put("phase", json!(standing.map_or("prepare", |standing| standing.phase.name())));
    put("cycle", json!(standing.map_or(1, |standing| standing.cycle)));
    put("done_share", json!(standing.map(|standing| standing.phase_done)));
    put("phase_elapsed_ns", json!(now_ns.saturating_sub(report.phase_from_ns)));
    put("outstanding", json!(standing.map_or(0, |standing| standing.outstanding)));
    put("audited", json!(standing.is_some_and(|standing| standing.audited)));
    put("stopped_on_error", json!(standing.is_some_and(|standing| standing.stopped_on_error)));
    put(
        "counts",
        json!({"pages_verified": counts.pages_verified, "bytes_verified": counts.bytes_verified,
               "pages_written": counts.pages_written, "bytes_written": counts.bytes_written,
               "resizes": counts.resizes}),
    );
    put(
        "long_outstanding",
        report
            .long_outstanding
            .iter()
            .map(|io| {
                json!({
        "file": io.id.file, "op": assay_integrity::op_name(io.op), "page": io.id.page, "pages": io.pages,
        "age_ns": now_ns.saturating_sub(io.submitted_ns), "user": io.user.kind.name()})
            })
            .collect(),
    );
    put("ticks", report.ticks.drain(..).map(|tick| of_tick(&tick)).collect());
    put("findings", report.findings.drain(..).map(|finding| finding_json(&finding, &run.plan)).collect());
    put(
        "phases",
        report
            .phases
            .iter()
            .map(|done| {
                json!({
        "name": done.phase.name(), "cycle": done.cycle, "from_ns": done.from_ns, "to_ns": done.to_ns,
        "pages_verified": done.pages_verified, "pages_written": done.pages_written})
            })
            .collect(),
    );
    put(
        "files",
        report
            .files
            .iter()
            .map(|file| {
                json!({
        "target_io_ns": run.plan.target_io_ns, "average_io_ns": file.average_io_ns, "throttled": file.io.throttled,
        "reads": file.io.reads, "scatter_reads": file.io.scatter_reads, "writes": file.io.writes,
        "gather_writes": file.io.gather_writes, "io_time_ns": file.io.io_time_ns,
        "slowest_io_ns": file.io.slowest_io_ns, "size_bytes": file.size_bytes})
            })
            .collect(),
    );
    let truth = |counts: fn(&assay_integrity::Truth) -> FaultCounts| {
        report.truth.as_ref().map(|truth| of_counts(&counts(truth)))
    };
    put("injected", json!(truth(|truth| truth.injected)));
    put("observable", json!(truth(|truth| truth.observable)));
    put("masked", json!(truth(|truth| truth.masked)));
    document
}

fn of_counts(counts: &FaultCounts) -> Value {
    Fault::ALL.into_iter().map(|fault| (fault.name().to_owned(), json!(counts[fault]))).collect::<Map<_, _>>().into()
}

fn of_tick(tick: &FileTick) -> Value {
    let interval = &tick.interval;
    json!({"tick": tick.tick, "file": tick.file, "read": summary::side(&DirectionTick::of(&interval.read)),
           "write": summary::side(&DirectionTick::of(&interval.write)), "error_count": interval.errors.count()})
}

/// A finding as docs/integrity.md describes it, with the images in base64.
pub(crate) fn finding_json(finding: &Finding, plan: &VerifyPlan) -> Value {
    let at = finding.at;
    let page_bytes = plan.files[usize::from(at.file)].page_bytes();
    let offset_bytes = plan.files[usize::from(at.file)].base_bytes + u64::from(at.page) * u64::from(page_bytes);
    let image = |image: &Option<Box<[u8]>>| image.as_ref().map(|bytes| STANDARD.encode(bytes));
    json!({
        "id": finding.id, "kind": finding.kind.name(),
        "also": finding.also.iter().map(|fault| fault.name()).collect::<Vec<_>>(),
        "persistent": finding.persistent, "file": at.file, "page": at.page, "offset_bytes": offset_bytes,
        "length_bytes": finding.pages * page_bytes, "phase": finding.phase.name(), "cycle": finding.cycle,
        "found_ns": finding.found_ns, "by": finding.user.kind.name(), "rereads": finding.rereads,
        "explanation": finding.explanation,
        "expected": finding.expected.map(|(stamp, checksum)| json!({
            "file": at.file, "page": at.page, "generation": stamp.generation, "written_ns": stamp.time_us * 1000,
            "writer": assay_integrity::UserKind::writer_name(stamp.writer), "lsn": stamp.lsn, "checksum": checksum})),
        "units": unit_runs(finding),
        "differing_bytes": finding.ranges.iter().map(|(from, to)| to - from).sum::<u32>(),
        "ranges": finding.ranges,
        "elsewhere": finding.elsewhere.map(|id| json!({"file": id.file, "page": id.page})),
        "operation": assay_integrity::op_name(finding.op), "errno": finding.errno,
        "expected_image": image(&finding.expected_image), "received_image": image(&finding.received_image),
        "other_images": finding.other_images.iter().map(|bytes| STANDARD.encode(bytes)).collect::<Vec<_>>(),
        "history": finding.history.iter().map(|entry| json!({
            "at_ns": entry.at_ns, "ended_ns": entry.ended_ns, "op": assay_integrity::op_name(entry.op),
            "user": format!("{} {}", entry.user.kind.name(), entry.user.number), "file": entry.id.file,
            "page": entry.id.page, "pages": entry.pages, "generation": entry.generation,
            "result": entry.result})).collect::<Vec<_>>(),
    })
}

/// Units of a finding, equal neighbours together.
fn unit_runs(finding: &Finding) -> Vec<Value> {
    let mut runs: Vec<(usize, usize, Value)> = Vec::new();
    for (index, unit) in finding.units.iter().enumerate() {
        let described = assay_integrity::describe_unit(unit, finding.at);
        let value = json!({"state": described.state, "file": described.id.map(|id| id.file),
                           "page": described.id.map(|id| id.page), "generation": described.generation});
        match runs.last_mut() {
            Some((_, last, same)) if *same == value => *last = index,
            _ => runs.push((index, index, value)),
        }
    }
    let of_run = |(first, last, mut value): (usize, usize, Value)| {
        value["first"] = json!(first);
        value["last"] = json!(last);
        value
    };
    runs.into_iter().map(of_run).collect()
}
