//! After a crash: is everything there that the journal says was acknowledged?

use std::{
    collections::{HashMap, HashSet},
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use assay_device::{DeviceError, VolumeFile};
use assay_load::{Op, Sync};

use crate::{
    Fault, FilePlan, Finding, JournalError, JournalReader, Phase, Record, RunError, RunPlan, VerifyPlan, classify,
    finding::describe,
    log::Log,
    stamp::{PageId, Stamp, Stamper, Unit},
    user::{User, UserKind},
};

const CHUNK_BYTES: usize = 1 << 20;
const ALIGNMENT: usize = 4096;
/// More findings say no more.
const FINDINGS_MAX: usize = 100_000;
/// Pages looked at to see whose they are, before all are read.
const SAMPLE: usize = 1024;
const USER: User = User { kind: UserKind::FinalAudit, number: 0 };

/// Result of a check.
#[derive(Debug)]
pub struct CrashCheck {
    pub findings: Vec<Finding>,
    /// Writes that the journal says were acknowledged.
    pub acknowledged: u64,
    /// Pages and log blocks with a promise: acknowledged, and followed by a flush where the run was not write-through.
    pub promised: u64,
    pub pages_read: u64,
    pub bytes_read: u64,
    /// The last record of the log that was promised, and the last up to which all are there.
    pub log_promised: u64,
    pub log_end: u64,
    /// Every page was read.
    pub complete: bool,
    /// The run ended by itself: there was no crash.
    pub ended: bool,
    /// The journal's last block was being written when it ended.
    pub cut_off: bool,
    /// Data pages whose newest write the storage had not promised at the end, and that an earlier promise covers: they
    /// are the ones of which a crash may leave a part.
    pub outstanding_pages: u64,
    /// The plan of the run that crashed, and what its caller noted.
    pub plan: VerifyPlan,
    pub note: Option<String>,
}

/// How far a check is, and whether it goes on.
#[derive(Debug, Default)]
pub struct CrashProgress {
    pub done_bytes: AtomicU64,
    pub all_bytes: AtomicU64,
    pub stop: AtomicBool,
}

/// Looks whether a journal can be read and is of this target, without reading all of that.
///
/// # Errors
/// The journal is none, damaged, or of another target; the files cannot be opened.
pub fn examine_journal(run: &RunPlan) -> Result<(), RunError> {
    open_both(run).map(|_| ())
}

/// State at the beginning of a check.
type Opened = (VerifyPlan, Option<String>, Promises, Vec<Reader>);

fn open_both(run: &RunPlan) -> Result<Opened, RunError> {
    let path = run.journal.as_deref().unwrap_or_else(|| Path::new(""));
    let mut journal = JournalReader::open(path)?;
    let plan = journal.plan().clone();
    compare_files(path, &plan, &run.plan)?;
    let promises = Promises::of(path, &plan, &mut journal)?;
    let readers = run.plan.files.iter().map(Reader::open);
    let mut files = readers.collect::<Result<Vec<Reader>, DeviceError>>()?;
    refuse_other_runs(path, &Stamper::new(plan.run_id), &plan, &promises, &mut files)?;
    Ok((plan, journal.note().map(str::to_owned), promises, files))
}

/// Holds a target against the journal of the run that wrote it. Nothing is written.
///
/// # Errors
/// As [`examine_journal`].
pub fn check_after_crash(run: &RunPlan, progress: &CrashProgress) -> Result<CrashCheck, RunError> {
    let (plan, note, promises, mut files) = open_both(run)?;
    let all_bytes: u64 = plan.files.iter().map(|file| file.size_bytes).sum();
    progress.all_bytes.store(all_bytes, Ordering::Relaxed);
    let stamper = Stamper::new(plan.run_id);
    let log = Log::new(&plan.files);
    let mut check = Check {
        stamper,
        plan: &plan,
        promises: &promises,
        progress,
        findings: Vec::new(),
        pages: 0,
        bytes: 0,
        outstanding: 0,
    };
    // The log is read first: what it holds says which pages may be on the storage.
    let mut records = vec![0; log.blocks() as usize];
    for (index, reader) in of_kind(&plan, &mut files, true) {
        check.file(index, reader, |id, stamp| {
            records[log.position(id) as usize] = stamp.lsn;
            None
        })?;
    }
    let log_promised = promises.log;
    // A journal that lost its last part may be more than a round behind. Room for new records is made only when all
    // records of the round before are durable, so what is older than one round was.
    let newest = records.iter().copied().max().unwrap_or(0);
    let mut log_end = log_promised.max(newest.saturating_sub(log.blocks()));
    while log.blocks() > 0 && records[(log_end % log.blocks()) as usize] == log_end + 1 {
        log_end += 1;
    }
    for (index, reader) in of_kind(&plan, &mut files, false) {
        check.file(index, reader, |_, stamp| {
            (stamp.lsn > log_end).then(|| {
                format!(
                    "the page needs log record {}, and the log ends with {log_end}: it was written before its log",
                    stamp.lsn
                )
            })
        })?;
    }
    let complete = check.findings.len() < FINDINGS_MAX && !progress.stop.load(Ordering::Relaxed);
    Ok(CrashCheck {
        acknowledged: promises.acknowledged,
        promised: promises.of_file.iter().flatten().filter(|generation| **generation > 0).count() as u64,
        pages_read: check.pages,
        bytes_read: check.bytes,
        outstanding_pages: check.outstanding,
        findings: check.findings,
        log_promised,
        log_end,
        complete,
        ended: promises.ended,
        cut_off: promises.lost_blocks > 0,
        plan,
        note,
    })
}

fn of_kind<'a>(plan: &VerifyPlan, files: &'a mut [Reader], log: bool) -> Vec<(u16, &'a mut Reader)> {
    let indexed = (0..).zip(files);
    indexed.filter(|(index, _)| plan.files[usize::from(*index)].log == log).collect()
}

/// The newest promised generation of every page; 0 where nothing is promised.
struct Promises {
    of_file: Vec<Vec<u32>>,
    /// Pages that were written again since, which no flush has covered.
    unflushed: HashSet<PageId>,
    /// The newest promised record of the log.
    log: u64,
    acknowledged: u64,
    /// The run ended by itself.
    ended: bool,
    /// Blocks at the journal's end that are not whole, or follow one.
    lost_blocks: u64,
}

/// A page, its generation, and the log sequence number of a log block.
type Write = (u32, u32, u64);

/// Acknowledged writes of a file that no flush has covered yet.
#[derive(Default)]
struct Waiting {
    log: bool,
    /// Since the last flush was issued.
    since: Vec<Write>,
    /// Before each flush that was issued and not acknowledged yet.
    before: HashMap<u32, Vec<Write>>,
}

impl Promises {
    fn of(path: &Path, plan: &VerifyPlan, journal: &mut JournalReader) -> Result<Self, JournalError> {
        let mut promises = Self {
            of_file: plan.files.iter().map(|file| vec![0; file.pages() as usize]).collect(),
            unflushed: HashSet::new(),
            log: 0,
            acknowledged: 0,
            ended: false,
            lost_blocks: 0,
        };
        let mut waiting: Vec<Waiting> =
            plan.files.iter().map(|file| Waiting { log: file.log, ..Waiting::default() }).collect();
        let mut is_known = true;
        promises.lost_blocks = journal.visit(|record| {
            is_known &= promises.take(record, plan.write_through, &mut waiting).is_some();
        })?;
        for (file, waiting) in (0..).zip(&waiting) {
            let writes = waiting.since.iter().chain(waiting.before.values().flatten());
            promises.unflushed.extend(writes.map(|(page, ..)| PageId { file, page: *page }));
        }
        let what = || "it names a page that is not there".to_owned();
        if is_known { Ok(promises) } else { Err(JournalError::Damaged { path: path.to_owned(), what: what() }) }
    }

    /// Takes a record; `None` when it names something that is not there.
    fn take(&mut self, record: Record, write_through: bool, waiting: &mut [Waiting]) -> Option<()> {
        self.ended = record == Record::End;
        match record {
            Record::Acknowledged { id, generation, lsn } => {
                self.acknowledged += 1;
                let file = usize::from(id.file);
                self.of_file.get(file)?.get(id.page as usize)?;
                let write = (id.page, generation, if waiting[file].log { lsn } else { 0 });
                if write_through {
                    self.promise(file, write);
                } else {
                    waiting[file].since.push(write);
                }
            }
            Record::Flushing { file, number } => {
                let waiting = waiting.get_mut(usize::from(file))?;
                waiting.before.insert(number, std::mem::take(&mut waiting.since));
            }
            Record::Flushed { file, number } => {
                let file = usize::from(file);
                for write in waiting.get_mut(file)?.before.remove(&number).unwrap_or_default() {
                    self.promise(file, write);
                }
            }
            Record::End => {}
        }
        Some(())
    }

    fn promise(&mut self, file: usize, (page, generation, lsn): Write) {
        let promised = &mut self.of_file[file][page as usize];
        *promised = generation.max(*promised);
        self.log = self.log.max(lsn);
    }
}

fn compare_files(path: &Path, of_journal: &VerifyPlan, of_target: &VerifyPlan) -> Result<(), JournalError> {
    let other = |what: String| Err(JournalError::OtherTarget { path: path.to_owned(), what });
    let (ours, theirs) = (&of_target.files, &of_journal.files);
    if ours.len() != theirs.len() {
        return other(format!("its run had {} files, the target has {}", theirs.len(), ours.len()));
    }
    for (our, their) in ours.iter().zip(theirs) {
        let facts = |file: &FilePlan| (file.log, file.base_bytes, file.page_bytes());
        if facts(our) != facts(their) {
            return other(format!("{} is laid out differently than {} was", our.path.display(), their.path.display()));
        }
    }
    Ok(())
}

/// Refuses a target on which another run wrote, and one at another path that holds no page of this run.
fn refuse_other_runs(
    path: &Path,
    stamper: &Stamper,
    plan: &VerifyPlan,
    promises: &Promises,
    files: &mut [Reader],
) -> Result<(), RunError> {
    let mut others = 0;
    let mut looked_at = 0;
    for (file, reader) in files.iter_mut().enumerate() {
        let page_bytes = plan.files[file].page_bytes() as usize;
        let promised: Vec<u32> = (0..)
            .zip(&promises.of_file[file])
            .filter(|(_, generation)| **generation > 0)
            .map(|(page, _)| page)
            .collect();
        for &page in promised.iter().step_by((promised.len() / SAMPLE).max(1)) {
            let Ok(bytes) = reader.read(u64::from(page), page_bytes, page_bytes) else { continue };
            looked_at += 1;
            let own = stamper.survey(bytes, PageId { file: file as u16, page }, u32::MAX, false);
            if own.iter().any(|unit| matches!(unit, Unit::Older { .. } | Unit::Foreign(Some(_)))) {
                return Ok(());
            }
            others += usize::from(stamper.is_another_runs(bytes));
        }
    }
    let moved = files.iter().zip(&plan.files).any(|(reader, file)| reader.plan.path != file.path);
    if looked_at > 0 && (others > 0 || moved) {
        let what = if others > 0 { "another run wrote its pages" } else { "no page of it carries the run's mark" };
        return Err(JournalError::OtherTarget { path: path.to_owned(), what: what.into() }.into());
    }
    Ok(())
}

/// Reads a file of the target, past the page cache where that is possible.
struct Reader {
    plan: FilePlan,
    file: VolumeFile,
    buffer: Vec<u8>,
    start: usize,
}

impl Reader {
    fn open(plan: &FilePlan) -> Result<Self, DeviceError> {
        let file = VolumeFile::open(&plan.path, plan.held, false, plan.direct, Sync::None)?;
        let buffer = vec![0; CHUNK_BYTES + ALIGNMENT];
        let start = buffer.as_ptr().align_offset(ALIGNMENT);
        Ok(Self { plan: plan.clone(), file, buffer, start })
    }

    /// Reads at a page of `page_bytes`; gives what there is, less at the end of the file.
    fn read(&mut self, page: u64, page_bytes: usize, bytes: usize) -> io::Result<&[u8]> {
        let offset = self.plan.base_bytes + page * page_bytes as u64;
        let buffer = &mut self.buffer[self.start..self.start + bytes];
        let mut read = 0;
        while read < bytes {
            match self.file.file.read_at(&mut buffer[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Where direct reads stop short of the file's end there is nothing more that is aligned.
                Err(error) if read > 0 && error.raw_os_error() == Some(libc::EINVAL) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(&buffer[..read])
    }
}

struct Check<'a> {
    stamper: Stamper,
    plan: &'a VerifyPlan,
    promises: &'a Promises,
    progress: &'a CrashProgress,
    findings: Vec<Finding>,
    pages: u64,
    bytes: u64,
    outstanding: u64,
}

impl Check<'_> {
    /// Reads a file from its beginning to its end; `whole` looks at the stamp of every whole page, and returns its
    /// fault.
    fn file(
        &mut self,
        file: u16,
        reader: &mut Reader,
        mut whole: impl FnMut(PageId, &Stamp) -> Option<String>,
    ) -> Result<(), RunError> {
        let promised = &self.promises.of_file[usize::from(file)];
        let page_bytes = self.plan.files[usize::from(file)].page_bytes() as usize;
        let mut page = 0;
        let stop = &self.progress.stop;
        while page < promised.len() && self.findings.len() < FINDINGS_MAX && !stop.load(Ordering::Relaxed) {
            let chunk = CHUNK_BYTES.min((promised.len() - page) * page_bytes);
            let read = reader.read(page as u64, page_bytes, chunk).map(<[u8]>::to_vec);
            // A chunk that cannot be read is read page by page, to find the pages that cannot.
            let step = if read.is_ok() { chunk / page_bytes } else { 1 };
            let bytes = read.or_else(|_| reader.read(page as u64, page_bytes, page_bytes).map(<[u8]>::to_vec));
            for index in 0..step {
                let id = PageId { file, page: (page + index) as u32 };
                let generation = promised[page + index];
                match bytes.as_ref().map(|bytes| bytes.get(index * page_bytes..(index + 1) * page_bytes)) {
                    Ok(Some(image)) => {
                        self.pages += 1;
                        self.bytes += page_bytes as u64;
                        self.page(id, generation, image, &mut whole);
                    }
                    Ok(None) if generation > 0 => {
                        let text = "the file ends before the page".to_owned();
                        self.find(classify::stale(self.is_log(id)), id, generation, Vec::new(), text, None);
                    }
                    Err(error) if generation > 0 => {
                        let text = format!("the page cannot be read: {error}");
                        self.find(Fault::IoError, id, generation, Vec::new(), text, None);
                    }
                    Ok(None) | Err(_) => {}
                }
            }
            page += step;
            self.progress.done_bytes.fetch_add((step * page_bytes) as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    fn page(
        &mut self,
        id: PageId,
        promised: u32,
        image: &[u8],
        stamped: &mut impl FnMut(PageId, &Stamp) -> Option<String>,
    ) {
        let whole = self.stamper.whole(image, id);
        let is_newer = whole.as_ref().is_none_or(|stamp| stamp.generation > promised);
        if promised > 0 && !self.is_log(id) && (is_newer || self.promises.unflushed.contains(&id)) {
            self.outstanding += 1;
        }
        if let Some(stamp) = whole {
            let too_early = stamped(id, &stamp);
            if stamp.generation < promised {
                let text = format!("generation {promised} was acknowledged, the page holds {}", stamp.generation);
                let units = vec![Unit::Older { generation: stamp.generation }; image.len() / crate::stamp::UNIT_BYTES];
                self.find(classify::stale(self.is_log(id)), id, promised, units, text, Some(image));
            } else if let Some(text) = too_early {
                self.find(Fault::LogBreak, id, promised, Vec::new(), text, Some(image));
            }
            return;
        }
        // Nothing was promised of a page that was never acknowledged.
        if promised == 0 {
            return;
        }
        let mut units = self.stamper.survey(image, id, u32::MAX, true);
        let newest = units.iter().filter_map(|unit| match unit {
            Unit::Older { generation } => Some(*generation),
            _ => None,
        });
        let newest = newest.max().unwrap_or(0).max(promised);
        for unit in units.iter_mut().filter(|unit| **unit == Unit::Older { generation: newest }) {
            *unit = Unit::Expected;
        }
        let words = describe(&units, newest, |file| self.plan.files[usize::from(file)].name.clone());
        let acknowledged = match newest == promised {
            true => format!("generation {promised} was acknowledged"),
            false => format!("generation {promised} was acknowledged, {newest} was not"),
        };
        // Zeros may be what a corruption left as well as what was there before the run.
        let words = words.replace("what was there before the run", "zeros, or what was there before the run");
        let before = units.contains(&Unit::Older { generation: 0 });
        for named in classify::name(&units, newest, self.is_log(id), true) {
            let text = format!("{acknowledged}; {words}");
            self.find(named.fault, id, promised, units.clone(), text, Some(image));
            if let Some(finding) = self.findings.last_mut() {
                finding.also = named.also;
                if before && named.fault != Fault::Corrupt {
                    finding.also.push(Fault::Corrupt);
                }
            }
        }
    }

    fn is_log(&self, id: PageId) -> bool {
        self.plan.files[usize::from(id.file)].log
    }

    fn find(&mut self, kind: Fault, at: PageId, promised: u32, units: Vec<Unit>, text: String, image: Option<&[u8]>) {
        let stamp = Stamp { generation: promised, ..Stamp::default() };
        let keeps = self.findings.len() < crate::finding::WITH_IMAGES;
        self.findings.push(Finding {
            id: self.findings.len() + 1,
            kind,
            also: Vec::new(),
            persistent: true,
            at,
            pages: 1,
            phase: Phase::Audit,
            cycle: 1,
            found_ns: 0,
            user: USER,
            rereads: 0,
            explanation: text,
            expected: Some((stamp, 0)),
            units,
            ranges: Vec::new(),
            elsewhere: None,
            op: Op::Read,
            errno: None,
            expected_image: None,
            received_image: image.filter(|_| keeps).map(Box::from),
            other_images: Vec::new(),
            history: Vec::new(),
        });
    }
}
