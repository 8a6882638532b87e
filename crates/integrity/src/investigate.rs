//! Investigation of wrong pages: they are read again before the fault is named, 15 times as SQLIOSim does.

use assay_load::Op;

use crate::{
    Fault,
    classify::{self, Named},
    core::{Core, Event},
    expected::{Flag, state_mut},
    failure::Failure,
    finding::{Finding, describe, differing},
    in_flight::InFlight,
    kernel::Kernel,
    phase::Phase,
    stamp::{NOT_READ, PageId, UNIT_BYTES, Unit},
    user::{User, UserKind},
    verdict::Suspect,
};

const HISTORY_DISTANCE_PAGES: u32 = 64;
const HISTORY_MAX: usize = 30;
/// Findings after which wrong pages are read again without pauses.
const FINDINGS_PATIENT: usize = 1000;

type Image = Box<[u8]>;

/// Looks into suspects until the run ends.
pub(crate) async fn investigator(kernel: Kernel, number: u32) {
    let user = User { kind: UserKind::Investigation, number };
    while kernel.wanted(Event::Suspicion, |core| !core.verdict.suspects.is_empty()).await {
        let Some(suspect) = kernel.with(|core| {
            core.verdict.investigating += 1;
            core.verdict.suspects.pop_front()
        }) else {
            continue;
        };
        match suspect {
            Suspect::Page { id, image, user: finder } => {
                Investigation::new(&kernel, id, user, finder).page(image).await;
            }
            Suspect::Io { op: Op::Write, id, pages, errno, user: finder } => {
                failed_write(&kernel, id, pages, errno, user, finder).await;
            }
            Suspect::Io { op, id, pages, errno, user: finder } => {
                let mut readable = true;
                for page in id.page..id.page + pages {
                    let page = Investigation::new(&kernel, PageId { page, ..id }, user, finder);
                    readable &= page.unread_page().await;
                }
                kernel.with(|core| core.find_io_error(op, id, pages, errno, !readable, finder));
            }
        }
        kernel.with(|core| {
            core.verdict.investigating -= 1;
            core.wake(Event::Unlatched);
            if core.is_quiet() {
                core.wake(Event::Quiet);
            }
        });
    }
}

/// A write that failed is repeated; its pages stay latched until then.
async fn failed_write(kernel: &Kernel, id: PageId, pages: u32, errno: i32, user: User, finder: User) {
    let (rereads, pause_ns) = kernel.with(|core| (core.plan.rereads, core.plan.reread_pause_ns));
    let bytes = kernel.with(|core| (pages * core.files[usize::from(id.file)].page_bytes) as i32);
    let mut failures = vec![errno];
    let mut written = false;
    for _ in 0..rereads {
        kernel.pause(pause_ns).await;
        let result = kernel.rewrite(id, pages, user).await.result;
        if result == bytes {
            written = true;
            break;
        }
        if kernel.failed() {
            return;
        }
        failures.push(if result < 0 { -result } else { 0 });
    }
    kernel.with(|core| {
        // One error that stays is one finding; errors that passed are one each.
        failures.truncate(if written { failures.len() } else { 1 });
        for errno in failures {
            core.find_io_error(Op::Write, id, pages, errno, !written, finder);
        }
        if written {
            core.written(id, pages);
        } else {
            for page in id.page..id.page + pages {
                let state = state_mut(&mut core.files, PageId { page, ..id });
                core.verdict.uncertain += u32::from(!state.has(Flag::Uncertain));
                state.set(Flag::Uncertain, true);
            }
        }
        core.verdict.writes_in_doubt -= 1;
        core.unlatch(id, pages);
    });
}

/// One page being looked into. It is latched throughout.
struct Investigation<'a> {
    kernel: &'a Kernel,
    id: PageId,
    /// Who reads it again.
    user: User,
    /// Who found it.
    finder: User,
    rereads: u32,
    /// Images of wrong reads, in their order.
    wrong: Vec<Image>,
    errors: Vec<i32>,
}

impl<'a> Investigation<'a> {
    fn new(kernel: &'a Kernel, id: PageId, user: User, finder: User) -> Self {
        Self { kernel, id, user, finder, rereads: 0, wrong: Vec::new(), errors: Vec::new() }
    }

    /// A page that was wrong, or was not delivered.
    async fn page(mut self, image: Option<Image>) {
        self.wrong.extend(image);
        let right = self.read_again().await;
        if self.kernel.failed() {
            return;
        }
        if !right && self.wrong.is_empty() {
            let errno = self.errors[0];
            self.kernel.with(|core| core.find_io_error(Op::Read, self.id, 1, errno, true, self.finder));
            return self.release().await;
        }
        self.name_errors();
        self.name(right).await;
    }

    /// A page of a read that failed, which is a finding already; tells whether the page can be read.
    async fn unread_page(mut self) -> bool {
        let right = self.read_again().await;
        if self.kernel.failed() {
            return true;
        }
        if !right
            && !self.wrong.is_empty()
            && self.kernel.with(|core| state_mut(&mut core.files, self.id).is_doubtful())
        {
            self.release().await;
            return true;
        }
        if !right && self.wrong.is_empty() {
            self.release().await;
            return false;
        }
        self.name_errors();
        self.name(right).await;
        true
    }

    /// Reads until the page is right, or as often as planned.
    async fn read_again(&mut self) -> bool {
        let (rereads, pause_ns) = self.kernel.with(|core| (core.plan.rereads, core.reread_pause_ns()));
        while self.rereads < rereads {
            if pause_ns > 0 {
                self.kernel.pause(pause_ns).await;
            }
            self.rereads += 1;
            let end = self.kernel.reread(self.id, self.user).await;
            if self.kernel.failed() {
                return false;
            }
            if end.result < 0 {
                self.errors.push(-end.result);
                continue;
            }
            let right = self.kernel.with(|core| {
                let state = *state_mut(&mut core.files, self.id);
                end.result as usize == end.image.len()
                    && core.stamper.is_right(&end.image, self.id, state.generation, state.checksum)
            });
            if right {
                return true;
            }
            self.wrong.push(end.image);
        }
        false
    }

    /// Errors of single repetitions, which passed.
    fn name_errors(&mut self) {
        for errno in self.errors.drain(..) {
            self.kernel.with(|core| core.find_io_error(Op::Read, self.id, 1, errno, false, self.user));
        }
    }

    /// Names the fault that wrong reads showed, and unlatches the page.
    async fn name(self, right: bool) {
        let id = self.id;
        let expected = self.kernel.with(|core| core.expected_image(id));
        let mut stayed = if right { Vec::new() } else { that_stayed(&self.wrong) };
        // What the first read showed may have been overwritten before the second. An older generation was there: no read
        // that goes wrong makes one.
        if let Some(first) = self.wrong.first().filter(|first| !right && !stayed.contains(first)) {
            let units = self.kernel.with(|core| self.units(core, first, &expected));
            if units.iter().all(|unit| matches!(unit, Unit::Expected | Unit::Older { .. })) {
                stayed.insert(0, first.clone());
            }
        }
        let settled = stayed.last().unwrap_or(&expected);
        for image in self.wrong.iter().filter(|image| !stayed.contains(image)) {
            let named = self.kernel.with(|core| {
                let mut units = self.units(core, image, &expected);
                // What a page shows all the time is no part of what a single read showed.
                let parts = image.chunks(UNIT_BYTES).zip(settled.chunks(UNIT_BYTES));
                for (unit, _) in units.iter_mut().zip(parts).filter(|(_, (image, settled))| image == settled) {
                    *unit = Unit::Expected;
                }
                self.named(core, units, false)
            });
            self.find(named, image, settled, false);
        }
        for image in &stayed {
            let (mut names, units) = self.kernel.with(|core| {
                let units = self.units(core, image, &expected);
                self.named(core, units, true)
            });
            if let Some(named) = names.iter_mut().find(|named| named.fault == Fault::MisdirectedWrite) {
                named.also.extend(self.also_in_its_place(&units).await);
            }
            self.find((names, units), image, &expected, true);
            self.kernel.with(|core| core.verdict.findings.keep_image(id, image));
        }
        if right {
            return self.kernel.with(|core| {
                let bytes = expected.len() as u64;
                state_mut(&mut core.files, id).set(Flag::SeenRight, true);
                core.counts.pages_verified += 1;
                core.counts.bytes_verified += bytes;
                core.unlatch(id, 1);
            });
        }
        self.kernel.with(|core| state_mut(&mut core.files, id).set(Flag::KnownWrong, true));
        self.release().await;
    }

    fn units(&self, core: &mut Core, image: &[u8], expected: &[u8]) -> Vec<Unit> {
        let state = *state_mut(&mut core.files, self.id);
        let mut units = core.stamper.examine(image, expected, self.id, state.generation, !state.has(Flag::SeenRight));
        if let Some(known) = core.verdict.findings.image(self.id) {
            let parts = image.chunks(UNIT_BYTES).zip(known.chunks(UNIT_BYTES));
            for (unit, _) in units.iter_mut().zip(parts).filter(|(_, (image, known))| image == known) {
                if matches!(unit, Unit::Foreign(_) | Unit::Corrupt { .. }) {
                    *unit = Unit::Known;
                }
            }
        }
        units
    }

    fn named(&self, core: &mut Core, units: Vec<Unit>, persistent: bool) -> (Vec<Named>, Vec<Unit>) {
        let state = *state_mut(&mut core.files, self.id);
        let log = core.is_log(self.id.file);
        let mut names = classify::name(&units, state.generation, log, persistent);
        let unknown = units.contains(&Unit::Corrupt { generation: None });
        if let Some(corrupt) = names.iter_mut().find(|named| named.fault == Fault::Corrupt && persistent && unknown)
            && !state.has(Flag::SeenRight)
        {
            // They may as well be what was there before the first write.
            let torn = units.contains(&Unit::Expected);
            corrupt.also.push(if torn { Fault::Torn } else { classify::stale(log) });
        }
        if names.is_empty() {
            // All bytes are there, and yet the system said that fewer were read.
            names.push(Named { fault: Fault::ShortRead, also: Vec::new() });
        }
        (names, units)
    }

    /// A page found in a wrong place is also what a read that always goes wrong would show, if the page holds the same in
    /// its own place.
    async fn also_in_its_place(&self, units: &[Unit]) -> Option<Fault> {
        let origin = units.iter().find_map(|unit| match unit {
            Unit::Foreign(Some(origin)) if origin.id != self.id => Some(*origin),
            _ => None,
        })?;
        let is_newest = self.kernel.with(|core| {
            let there = core.files.get(usize::from(origin.id.file)).is_some_and(|file| origin.id.page < file.pages);
            let state = there.then(|| *state_mut(&mut core.files, origin.id));
            state.is_some_and(|state| state.generation == origin.generation && !state.is_doubtful())
        });
        if !is_newest {
            return None;
        }
        if !self.kernel.with(|core| core.try_latch(origin.id, 1)) {
            return Some(Fault::MisdirectedRead);
        }
        let end = self.kernel.reread(origin.id, self.user).await;
        self.kernel.with(|core| {
            let state = *state_mut(&mut core.files, origin.id);
            if end.result < 0 {
                if !Failure::is_failure(-end.result) {
                    let (op, errno, user) = (Op::Read, -end.result, self.user);
                    core.verdict.suspects.push_back(Suspect::Io { op, id: origin.id, pages: 1, errno, user });
                    core.wake(Event::Suspicion);
                }
                return None;
            }
            if core.stamper.is_right(&end.image, origin.id, state.generation, state.checksum) {
                core.unlatch(origin.id, 1);
                return Some(Fault::MisdirectedRead);
            }
            core.verdict.suspects.push_back(Suspect::Page { id: origin.id, image: Some(end.image), user: self.user });
            core.wake(Event::Suspicion);
            None
        })
    }

    /// Writes a page that stays wrong anew, so that the run can go on with it; the last audit leaves it.
    async fn release(&self) {
        let repairs = self.kernel.with(|core| core.course.phase == Phase::Stress && !core.course.stopping);
        if !repairs {
            return self.kernel.with(|core| core.unlatch(self.id, 1));
        }
        let lsn = self.kernel.with(|core| state_mut(&mut core.files, self.id).stamp().lsn);
        self.kernel.write_latched(self.id, 1, self.user, |_| lsn).await;
        self.kernel.settle().await;
    }

    fn find(&self, (names, units): (Vec<Named>, Vec<Unit>), image: &[u8], compared: &[u8], persistent: bool) {
        self.kernel.with(|core| {
            let state = *state_mut(&mut core.files, self.id);
            let ranges = differing(image, compared);
            let corrupt =
                units.iter().zip(image.chunks(UNIT_BYTES)).filter(|(unit, _)| matches!(unit, Unit::Corrupt { .. }));
            let zeros =
                corrupt.clone().count() > 0 && corrupt.clone().all(|(_, bytes)| bytes.iter().all(|byte| *byte == 0));
            let mut words = describe(&units, state.generation, |file| {
                core.files.get(usize::from(file)).map_or_else(|| format!("file {file}"), |file| file.plan.name.clone())
            });
            if zeros {
                words += ", all of them zeros";
            }
            let count = self.rereads;
            let reread =
                if persistent { format!("{count} further reads too") } else { "another read did not".to_owned() };
            for named in names {
                let mut finding = core.finding(named.fault, Op::Read, self.id, 1, persistent, self.finder);
                finding.also = named.also;
                finding.rereads = self.rereads;
                finding.explanation = format!("{words}; {reread}");
                finding.expected = Some((state.stamp(), state.checksum));
                finding.units = units.clone();
                finding.ranges = ranges.clone();
                finding.expected_image = Some(core.expected_image(self.id));
                finding.received_image = Some(image.into());
                core.found(finding);
            }
        });
    }
}

/// Images that several reads showed, in the order of their last showing: an image was there until other bytes were
/// written over it. If no two reads agree, the last one counts. A read that left bytes out says nothing about the page,
/// unless all do.
fn that_stayed(images: &[Image]) -> Vec<Image> {
    let whole: Vec<&Image> = images.iter().filter(|image| !leaves_out(image)).collect();
    let told = if whole.is_empty() { images.iter().collect() } else { whole };
    let mut stayed: Vec<Image> = Vec::new();
    for (index, image) in told.iter().enumerate() {
        let last = !told[index + 1..].contains(image);
        if last && told[..index].contains(image) {
            stayed.push((*image).clone());
        }
    }
    if stayed.is_empty() {
        stayed.extend(told.last().copied().cloned());
    }
    stayed
}

/// Whether some unit still ends with the filling of the buffer.
fn leaves_out(image: &[u8]) -> bool {
    image.chunks(UNIT_BYTES).any(|unit| unit[unit.len() - 16..].iter().all(|byte| *byte == NOT_READ))
}

impl Core {
    /// Pause between two reads of a wrong page: none where more of the same says no more, or the run ends.
    fn reread_pause_ns(&self) -> u64 {
        let many = self.verdict.findings.all().len() >= FINDINGS_PATIENT;
        let hurries = self.course.stopping && !self.plan.stop_on_error;
        if many || hurries { 0 } else { self.plan.reread_pause_ns }
    }

    fn finding(&self, kind: Fault, op: Op, at: PageId, pages: u32, persistent: bool, user: User) -> Finding {
        Finding {
            id: 0,
            kind,
            also: Vec::new(),
            persistent,
            at,
            pages,
            phase: self.course.phase,
            cycle: self.course.cycle,
            found_ns: self.now_ns,
            user,
            rereads: 0,
            explanation: String::new(),
            expected: None,
            units: Vec::new(),
            ranges: Vec::new(),
            elsewhere: None,
            op,
            errno: None,
            expected_image: None,
            received_image: None,
            other_images: Vec::new(),
            history: self.ios.history.near(at, HISTORY_DISTANCE_PAGES, HISTORY_MAX),
        }
    }

    fn found(&mut self, finding: Finding) {
        self.verdict.findings.add(finding);
        if self.plan.stop_on_error {
            self.stop();
        }
    }

    fn find_io_error(&mut self, op: Op, id: PageId, pages: u32, errno: i32, persistent: bool, user: User) {
        let mut finding = self.finding(Fault::IoError, op, id, pages, persistent, user);
        finding.errno = (errno != 0).then_some(errno);
        let said = match errno {
            0 => "moved fewer bytes than asked".to_owned(),
            errno => std::io::Error::from_raw_os_error(errno).to_string(),
        };
        let then = if persistent { "every repetition failed, too" } else { "a repetition succeeded" };
        finding.explanation = format!("{} failed: {said}; {then}", op_name(op));
        self.found(finding);
    }

    pub(crate) fn find_long(&mut self, io: &InFlight, age_ns: u64) {
        let mut finding = self.finding(Fault::LongIo, io.op, io.id, io.pages.max(1), false, io.user);
        finding.explanation = format!("{} outstanding for {:.1} s", op_name(io.op), age_ns as f64 / 1e9);
        self.found(finding);
    }
}

impl Kernel {
    /// Takes a failed flush: earlier writes may or may not be durable.
    pub(crate) fn flush_failed(&self, file: u16, errno: i32, user: User) {
        self.with(|core| {
            if !Failure::is_failure(errno) {
                core.find_io_error(Op::Flush, PageId { file, page: 0 }, 0, errno, true, user);
            }
        });
    }
}

pub fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
    }
}
