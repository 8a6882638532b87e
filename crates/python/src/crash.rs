use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use assay_integrity::{CrashCheck as Checked, CrashProgress, RunError, RunPlan, check_after_crash};
use pyo3::prelude::*;

use crate::{
    errors::raise,
    finding::FindingReport,
    summary::{no_engine, to_json},
    verification::{CountsReport, JournalReport, RunReport, of_run_error, parse},
};

type End = Result<Checked, RunError>;

/// Check of a target against the journal of the run that wrote it. Its reports have the form of a `Verification`'s.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct CrashCheck {
    run: RunPlan,
    progress: Arc<CrashProgress>,
    /// The end, once it has come.
    end: Mutex<(mpsc::Receiver<End>, Option<End>)>,
    /// Findings are reported once.
    reported: AtomicU64,
}

#[pymethods]
impl CrashCheck {
    /// Starts reading.
    #[new]
    fn new(plan_json: &str) -> PyResult<Self> {
        let run: RunPlan = parse(plan_json)?;
        let progress = Arc::new(CrashProgress::default());
        let (sender, ended) = mpsc::channel();
        let (of_thread, of_progress) = (run.clone(), Arc::clone(&progress));
        thread::Builder::new()
            .name("assay-crash".into())
            .spawn(move || {
                // Nobody waits for the end of a check that was given up.
                let _ = sender.send(check_after_crash(&of_thread, &of_progress));
            })
            .map_err(|error| raise("IoFailed", format!("starting the check: {error}")))?;
        Ok(Self { run, progress, end: Mutex::new((ended, None)), reported: AtomicU64::new(0) })
    }

    /// State of the check; its findings come once, with its end.
    fn poll(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.report(Duration::ZERO))
    }

    /// Ends the check early and waits for its end, `timeout_s` at most; returns as `poll` does.
    fn stop(&self) {
        self.progress.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the check early and waits for its end, `timeout_s` at most; returns what `poll` does.
    fn finish(&self, py: Python<'_>, timeout_s: f64) -> PyResult<String> {
        self.stop();
        py.detach(|| self.report(Duration::from_secs_f64(timeout_s)))
    }

    /// Figures of a finished phase; a check has none.
    fn point(&self, phase: usize) -> PyResult<String> {
        Err(raise("UsageError", format!("phase {phase}: a check has no phases")))
    }

    /// No engine is measured.
    fn engine(&self) -> String {
        no_engine(None)
    }
}

impl CrashCheck {
    fn report(&self, timeout: Duration) -> PyResult<String> {
        let mut guard = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let (ended, end) = &mut *guard;
        if end.is_none() {
            *end = ended.recv_timeout(timeout).ok();
        }
        let done = self.progress.done_bytes.load(Ordering::Relaxed);
        let all = self.progress.all_bytes.load(Ordering::Relaxed);
        let mut report = RunReport {
            state: "running",
            detail: None,
            error: None,
            now_ns: 0,
            phase: "audit",
            cycle: 1,
            done_share: Some(done as f64 / all.max(1) as f64),
            phase_elapsed_ns: 0,
            outstanding: 0,
            audited: false,
            stopped_on_error: false,
            counts: CountsReport { bytes_verified: done, ..CountsReport::default() },
            long_outstanding: Vec::new(),
            ticks: Vec::new(),
            findings: Vec::new(),
            phases: Vec::new(),
            files: Vec::new(),
            injected: None,
            observable: None,
            masked: None,
            journal: None,
        };
        match end {
            None => {}
            Some(Err(error)) => return Err(of_run_error(error)),
            Some(Ok(check)) => self.put_end(&mut report, check),
        }
        Ok(to_json(&report))
    }

    fn put_end(&self, report: &mut RunReport, check: &Checked) {
        report.state = "ended";
        report.audited = check.complete && check.findings.is_empty();
        report.counts.pages_verified = check.pages_read;
        report.counts.bytes_verified = check.bytes_read;
        let plan = &check.plan;
        report.journal = Some(JournalReport {
            acknowledged: check.acknowledged,
            promised_pages: check.promised,
            log_promised: check.log_promised,
            log_end: check.log_end,
            complete: check.complete,
            ended: check.ended,
            cut_off: check.cut_off,
            run: format!("{:016x}", plan.run_id),
            page_bytes: plan.frame_bytes(),
            write_bytes_max: plan.data_write_bytes_max(),
            write_through: plan.write_through,
            direct: plan.files.iter().all(|file| file.direct),
            max_outstanding: plan.max_outstanding,
            outstanding_pages: check.outstanding_pages,
            note: check.note.clone(),
        });
        if self.reported.fetch_add(1, Ordering::Relaxed) > 0 {
            return;
        }
        let findings = check.findings.iter().map(|finding| FindingReport::of_journal(finding, &self.run.plan));
        report.findings = findings.collect();
    }
}
