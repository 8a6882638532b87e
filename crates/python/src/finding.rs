//! Findings of a verification, as Python reads them.

use assay_integrity::{Finding, VerifyPlan};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

/// A finding as docs/integrity.md describes it, with the images in base64.
#[derive(Serialize)]
pub(crate) struct FindingReport {
    id: usize,
    kind: &'static str,
    also: Vec<&'static str>,
    persistent: bool,
    file: u16,
    page: u32,
    offset_bytes: u64,
    length_bytes: u32,
    phase: &'static str,
    cycle: u32,
    found_ns: u64,
    by: &'static str,
    rereads: u32,
    explanation: String,
    expected: Option<Expected>,
    units: Vec<UnitRun>,
    differing_bytes: u32,
    ranges: Vec<(u32, u32)>,
    elsewhere: Option<Place>,
    operation: &'static str,
    errno: Option<i32>,
    #[serde(flatten)]
    images: Images,
    history: Vec<Operation>,
}

/// Bytes of a page in a finding, as base64.
#[derive(Serialize)]
struct Images {
    expected_image: Option<String>,
    received_image: Option<String>,
    other_images: Vec<String>,
}

impl Images {
    fn of(finding: &Finding) -> Self {
        let image = |image: &Option<Box<[u8]>>| image.as_ref().map(|bytes| STANDARD.encode(bytes));
        Self {
            expected_image: image(&finding.expected_image),
            received_image: image(&finding.received_image),
            other_images: finding.other_images.iter().map(|bytes| STANDARD.encode(bytes)).collect(),
        }
    }
}

/// The last write that a page should hold, if it is known.
#[derive(Serialize)]
struct Expected {
    file: u16,
    page: u32,
    generation: u32,
    written_ns: Option<u64>,
    writer: Option<String>,
    lsn: Option<u64>,
    checksum: Option<u32>,
}

/// Equal neighbouring units, from the first to the last.
#[derive(Serialize)]
struct UnitRun {
    first: usize,
    last: usize,
    #[serde(flatten)]
    unit: UnitReport,
}

#[derive(Serialize, PartialEq)]
struct UnitReport {
    state: &'static str,
    file: Option<u16>,
    page: Option<u32>,
    generation: Option<u32>,
}

#[derive(Serialize)]
struct Place {
    file: u16,
    page: u32,
}

/// An operation near a finding.
#[derive(Serialize)]
struct Operation {
    at_ns: u64,
    ended_ns: Option<u64>,
    op: &'static str,
    user: String,
    file: u16,
    page: u32,
    pages: u32,
    generation: u32,
    result: i32,
}

impl FindingReport {
    /// A finding against a journal, which knows the generation of the write that a page should hold, and nothing else of it.
    pub(crate) fn of_journal(finding: &Finding, plan: &VerifyPlan) -> Self {
        let mut report = Self::of(finding, plan);
        if let Some(expected) = &mut report.expected {
            (expected.written_ns, expected.writer, expected.lsn, expected.checksum) = (None, None, None, None);
        }
        report
    }

    pub(crate) fn of(finding: &Finding, plan: &VerifyPlan) -> Self {
        let at = finding.at;
        let file = &plan.files[usize::from(at.file)];
        let expected = finding.expected.map(|(stamp, checksum)| Expected {
            file: at.file,
            page: at.page,
            generation: stamp.generation,
            written_ns: Some(stamp.time_us * 1000),
            writer: Some(assay_integrity::UserKind::writer_name(stamp.writer)),
            lsn: Some(stamp.lsn),
            checksum: Some(checksum),
        });
        let history = finding.history.iter().map(|entry| Operation {
            at_ns: entry.at_ns,
            ended_ns: entry.ended_ns,
            op: assay_integrity::op_name(entry.op),
            user: format!("{} {}", entry.user.kind.name(), entry.user.number),
            file: entry.id.file,
            page: entry.id.page,
            pages: entry.pages,
            generation: entry.generation,
            result: entry.result,
        });
        Self {
            id: finding.id,
            kind: finding.kind.name(),
            also: finding.also.iter().map(|fault| fault.name()).collect(),
            persistent: finding.persistent,
            file: at.file,
            page: at.page,
            offset_bytes: file.base_bytes + u64::from(at.page) * u64::from(file.page_bytes()),
            length_bytes: finding.pages * file.page_bytes(),
            phase: finding.phase.name(),
            cycle: finding.cycle,
            found_ns: finding.found_ns,
            by: finding.user.kind.name(),
            rereads: finding.rereads,
            explanation: finding.explanation.clone(),
            expected,
            units: unit_runs(finding),
            differing_bytes: finding.ranges.iter().map(|(from, to)| to - from).sum(),
            ranges: finding.ranges.clone(),
            elsewhere: finding.elsewhere.map(|id| Place { file: id.file, page: id.page }),
            operation: assay_integrity::op_name(finding.op),
            errno: finding.errno,
            images: Images::of(finding),
            history: history.collect(),
        }
    }
}

/// Units of a finding, equal neighbours together.
fn unit_runs(finding: &Finding) -> Vec<UnitRun> {
    let mut runs: Vec<UnitRun> = Vec::new();
    for (index, unit) in finding.units.iter().enumerate() {
        let described = assay_integrity::describe_unit(unit, finding.at);
        let unit = UnitReport {
            state: described.state,
            file: described.id.map(|id| id.file),
            page: described.id.map(|id| id.page),
            generation: described.generation,
        };
        match runs.last_mut() {
            Some(run) if run.unit == unit => run.last = index,
            _ => runs.push(UnitRun { first: index, last: index, unit }),
        }
    }
    runs
}
