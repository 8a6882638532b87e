//! Findings: each fault once, with the pages that belong to it.

use std::collections::HashMap;

use assay_load::Op;

use crate::{
    Fault,
    history::Entry,
    phase::Phase,
    stamp::{PageId, Stamp, Unit},
    user::User,
};

/// Findings of a kind, persistent and transient apart, whose images are kept; more are counted and described without.
pub(crate) const WITH_IMAGES: usize = 25;
/// Pages whose wrong bytes are remembered: 80 MB.
const IMAGES_MAX: usize = 10_000;

/// One fault that was found.
#[derive(Debug, Clone)]
pub struct Finding {
    pub id: usize,
    pub kind: Fault,
    /// Names of faults that look the same.
    pub also: Vec<Fault>,
    pub persistent: bool,
    pub at: PageId,
    pub pages: u32,
    pub phase: Phase,
    pub cycle: u32,
    pub found_ns: u64,
    pub user: User,
    pub rereads: u32,
    pub explanation: String,
    pub expected: Option<(Stamp, u32)>,
    pub units: Vec<Unit>,
    /// Ranges of bytes that differ, from and to (excluded).
    pub ranges: Vec<(u32, u32)>,
    /// Where the page was found instead, or whose page was found here.
    pub elsewhere: Option<PageId>,
    pub op: Op,
    pub errno: Option<i32>,
    pub expected_image: Option<Box<[u8]>>,
    pub received_image: Option<Box<[u8]>>,
    pub other_images: Vec<Box<[u8]>>,
    pub history: Vec<Entry>,
}

/// Which write a stale page missed, and which write a misplaced page is.
type Write = (PageId, u32);

#[derive(Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    changed: Vec<usize>,
    stale: HashMap<Write, usize>,
    misplaced: HashMap<Write, usize>,
    alike: HashMap<(Fault, bool), usize>,
    /// Bytes of pages that were wrong for good.
    images: HashMap<PageId, Box<[u8]>>,
}

impl Findings {
    /// Notes a finding, or brings it together with its other half: a page found in another's place, and the older
    /// generation found in its own.
    pub(crate) fn add(&mut self, mut finding: Finding) {
        if finding.persistent && matches!(finding.kind, Fault::Lost | Fault::LogBreak) {
            let write = (finding.at, finding.expected.map_or(0, |(stamp, _)| stamp.generation));
            if let Some(other) = self.misplaced.remove(&write) {
                return self.complete(other, &finding, finding.at);
            }
            self.stale.insert(write, self.list.len());
        }
        // A single read of a misplaced page says no less, if the page it belongs to lacks that write.
        if matches!(finding.kind, Fault::MisdirectedWrite | Fault::MisdirectedRead) {
            let origins = finding.units.iter().filter_map(|unit| match unit {
                Unit::Foreign(Some(origin)) if origin.id != finding.at => Some((origin.id, origin.generation)),
                _ => None,
            });
            if let Some(write) = origins.clone().next() {
                finding.elsewhere = Some(write.0);
                if let Some(other) = self.stale.remove(&write) {
                    return self.complete(other, &finding, finding.at);
                }
                self.misplaced.insert(write, self.list.len());
            }
        }
        finding.id = self.list.len() + 1;
        // A rare fault keeps its evidence, however many of another kind come before it.
        let alike = self.alike.entry((finding.kind, finding.persistent)).or_default();
        *alike += 1;
        if *alike > WITH_IMAGES {
            (finding.expected_image, finding.received_image) = (None, None);
            (finding.other_images, finding.history, finding.ranges) = (Vec::new(), Vec::new(), Vec::new());
        }
        self.changed.push(self.list.len());
        self.list.push(finding);
    }

    /// The first half of a misdirected write was found before; `half` is the other.
    fn complete(&mut self, index: usize, half: &Finding, elsewhere: PageId) {
        let first = &mut self.list[index];
        first.explanation = format!("{}; {}", first.explanation, half.explanation);
        first.kind = Fault::MisdirectedWrite;
        first.also.clear();
        first.elsewhere = Some(elsewhere);
        if first.received_image.is_some() {
            first.other_images.extend(half.received_image.clone());
        }
        self.changed.push(index);
    }

    /// Keeps the bytes of a page that was wrong for good.
    pub(crate) fn keep_image(&mut self, id: PageId, image: &[u8]) {
        if self.images.len() < IMAGES_MAX || self.images.contains_key(&id) {
            self.images.insert(id, image.into());
        }
    }

    /// Bytes of a page when it was last found wrong.
    pub(crate) fn image(&self, id: PageId) -> Option<&[u8]> {
        self.images.get(&id).map(|image| &**image)
    }

    pub(crate) fn all(&self) -> &[Finding] {
        &self.list
    }

    pub(crate) fn any_persistent_in(&self, phase: Phase, cycle: u32) -> bool {
        self.list.iter().any(|finding| finding.persistent && finding.phase == phase && finding.cycle == cycle)
    }

    /// Findings that are new or changed since the last call.
    pub(crate) fn take_changed(&mut self) -> Vec<Finding> {
        self.changed.sort_unstable();
        self.changed.dedup();
        self.changed.drain(..).map(|index| self.list[index].clone()).collect()
    }
}

/// Ranges of bytes in which two images differ.
pub(crate) fn differing(left: &[u8], right: &[u8]) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for (at, _) in left.iter().zip(right).enumerate().filter(|(_, (left, right))| left != right) {
        let at = at as u32;
        match ranges.last_mut() {
            Some(last) if last.1 == at => last.1 = at + 1,
            _ => ranges.push((at, at + 1)),
        }
    }
    ranges
}

/// A unit as results name it.
pub struct DescribedUnit {
    pub state: &'static str,
    pub id: Option<PageId>,
    pub generation: Option<u32>,
}

/// Names a unit of page `at`.
pub fn describe_unit(unit: &Unit, at: PageId) -> DescribedUnit {
    let (state, id, generation) = match *unit {
        Unit::Expected => ("expected", None, None),
        Unit::Older { generation } => ("older", Some(at), Some(generation)),
        Unit::Known => ("older", None, None),
        Unit::Foreign(origin) => ("foreign", origin.map(|origin| origin.id), origin.map(|origin| origin.generation)),
        Unit::NotRead => ("not-read", None, None),
        Unit::Corrupt { generation } => ("corrupt", None, generation),
    };
    DescribedUnit { state, id, generation }
}

/// Content of the units of a page, in words.
pub(crate) fn describe(units: &[Unit], generation: u32, file_name: impl Fn(u16) -> String) -> String {
    let mut parts = Vec::new();
    let mut start = 0;
    while start < units.len() {
        let same = |unit: &Unit| match (unit, &units[start]) {
            (Unit::Foreign(Some(one)), Unit::Foreign(Some(other))) => {
                (one.id, one.generation) == (other.id, other.generation)
            }
            (Unit::Corrupt { .. }, Unit::Corrupt { .. }) => true,
            (one, other) => one == other,
        };
        let end = units[start..].iter().position(|unit| !same(unit)).map_or(units.len(), |length| start + length);
        let holds = match units[start] {
            Unit::Expected => format!("generation {generation}, as expected"),
            Unit::Older { generation: 0 } => "what was there before the run".to_owned(),
            Unit::Older { generation } => format!("the older generation {generation}"),
            Unit::Known => "the wrong bytes that were found there before".to_owned(),
            Unit::Foreign(None) => "a page of another run".to_owned(),
            Unit::Foreign(Some(origin)) => {
                let (file, page) = (file_name(origin.id.file), origin.id.page);
                format!("page {page} of {file}, generation {}", origin.generation)
            }
            Unit::NotRead => "nothing: the bytes were not read".to_owned(),
            Unit::Corrupt { .. } => "corrupted bytes".to_owned(),
        };
        let which = match (start, end) {
            (0, end) if end == units.len() => "the page holds".to_owned(),
            (start, end) if end - start == 1 => format!("unit {start} holds"),
            (start, end) => format!("units {start}-{} hold", end - 1),
        };
        parts.push(format!("{which} {holds}"));
        start = end;
    }
    parts.join(", ")
}
