//! The log from crash point to crash point: what is durable at each, and what may be lost.

use std::{ops::Range, sync::Arc};

use crate::{Base, Contents, CrashError, Image, Kind, Log, Name, Order, Piece, Promises, log::SECTOR_BYTES};

/// A moment at which the power may fail, just before outstanding writes become durable, or at the end of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashPoint {
    /// The last event before it.
    pub event: u64,
    /// How much clients were told up to it.
    pub marks: usize,
    /// Whether they were told something since the crash point before.
    pub after_mark: bool,
}

#[derive(Clone, Copy)]
enum Event {
    Submitted(usize),
    Completed(usize),
}

/// Durable and outstanding writes, at one crash point after the other.
///
/// A write that completed before a flush was submitted is durable when the flush completes, and so is a completed FUA
/// write. All others, completed or not, may be there or not.
///
/// Of two outstanding writes to the same sectors the one that was submitted later wins where both are there. A drive may
/// also take them the other way around if both are under way at once. Sectors of such a state are among the states where
/// sectors are the atomic size: the later write lacks those that the earlier one has. With a larger atomic size, or once
/// both are durable, the later one in the log wins: the recorded volume took them in that order.
pub struct Course {
    log: Arc<Log>,
    contents: Arc<Contents>,
    promises: Promises,
    events: Vec<Event>,
    points: Vec<CrashPoint>,
    next_event: usize,
    durable: Image,
    number: u128,
    outstanding: Vec<usize>,
}

impl Course {
    /// The course of a log under these promises, at its first crash point.
    ///
    /// # Errors
    /// The promises contradict themselves.
    pub fn new(log: &Arc<Log>, contents: &Arc<Contents>, promises: Promises) -> Result<Self, CrashError> {
        let promises = promises.checked()?;
        let events = events(log);
        let points = points(log, &events);
        let mut course = Self {
            log: Arc::clone(log),
            contents: Arc::clone(contents),
            promises,
            events,
            points,
            next_event: 0,
            durable: Image::of_base(log),
            number: 0,
            outstanding: Vec::new(),
        };
        course.go_to(0);
        Ok(course)
    }

    /// The log.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// The promises of the storage.
    pub fn promises(&self) -> &Promises {
        &self.promises
    }

    /// All crash points. There is at least one, at the end of the log.
    pub fn points(&self) -> &[CrashPoint] {
        &self.points
    }

    /// Goes to a crash point, back to the beginning of the log if need be.
    pub fn go_to(&mut self, point: usize) {
        let until = self.points[point].event as usize;
        if until < self.next_event {
            self.next_event = 0;
            self.durable = Image::of_base(&self.log);
            self.number = 0;
            self.outstanding.clear();
        }
        while self.next_event < until {
            match self.events[self.next_event] {
                Event::Submitted(request) => {
                    if matches!(self.log.entries()[request].kind, Kind::Write { .. } | Kind::Discard) {
                        self.outstanding.push(request);
                    }
                }
                Event::Completed(request) => self.complete(request),
            }
            self.next_event += 1;
        }
    }

    fn complete(&mut self, request: usize) {
        let log = Arc::clone(&self.log);
        let (entry, promises) = (&log.entries()[request], self.promises);
        let becomes_durable: Box<dyn Fn(usize) -> bool> = match entry.kind {
            Kind::Mark => return,
            Kind::Flush if promises.flush => Box::new(|other| {
                let other = &log.entries()[other];
                other.completed.is_some_and(|at| at < entry.submitted)
                    && (other.kind != Kind::Discard || promises.deterministic_discard)
            }),
            Kind::Flush => return,
            Kind::Write { fua } if !promises.volatile_cache || (fua && promises.fua) => {
                Box::new(move |other| other == request)
            }
            Kind::Discard if !promises.volatile_cache && promises.deterministic_discard => {
                Box::new(move |other| other == request)
            }
            Kind::Write { .. } | Kind::Discard => return,
        };
        let outstanding = std::mem::take(&mut self.outstanding);
        let (durable, left): (Vec<_>, Vec<_>) = outstanding.into_iter().partition(|other| becomes_durable(*other));
        self.outstanding = left;
        for other in durable {
            put(
                &log,
                &self.contents,
                &mut self.durable,
                &mut self.number,
                other,
                log.entries()[other].sectors(),
                |_, _| {},
            );
        }
    }

    /// The parts of outstanding writes, in the order of their submission.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for &request in &self.outstanding {
            let entry = &self.log.entries()[request];
            let sectors = entry.sectors();
            let unit = match self.promises.atomic_bytes {
                Some(bytes) if entry.kind != Kind::Discard => bytes / SECTOR_BYTES,
                _ => u64::MAX,
            };
            let mut first = sectors.start;
            while first < sectors.end {
                let after = (first / unit + 1).saturating_mul(unit).min(sectors.end);
                pieces.push(Piece { request, sectors: first..after });
                first = after;
            }
        }
        pieces
    }

    /// Whether the promises allow this choice of the pieces.
    pub fn allows(&self, chosen: &[bool]) -> bool {
        self.promises.order == Order::Any || !chosen.windows(2).any(|pair| !pair[0] && pair[1])
    }

    /// The image with these pieces, at this crash point.
    pub fn image(&self, pieces: &[Piece], chosen: &[bool]) -> Image {
        let mut image = self.durable.clone();
        for (piece, _) in pieces.iter().zip(chosen).filter(|(_, chosen)| **chosen) {
            image.put(piece.request, piece.sectors.clone(), |_, _| {});
        }
        image
    }

    /// The number of the contents with these pieces, which equal contents share.
    pub fn number(&mut self, pieces: &[Piece], chosen: &[bool]) -> u128 {
        let (before, mut changes) = (self.number, Vec::new());
        for (piece, _) in pieces.iter().zip(chosen).filter(|(_, chosen)| **chosen) {
            let (durable, number) = (&mut self.durable, &mut self.number);
            put(&self.log, &self.contents, durable, number, piece.request, piece.sectors.clone(), |sector, old| {
                changes.push((sector, old));
            });
        }
        for (sector, old) in changes.into_iter().rev() {
            self.durable.restore(sector, old);
        }
        std::mem::replace(&mut self.number, before)
    }

    /// Goes to the crash point of a state; its pieces, and which of them the state has.
    ///
    /// # Errors
    /// The log has no such state.
    pub fn state(&mut self, name: &Name) -> Result<(Vec<Piece>, Vec<bool>), CrashError> {
        let unknown = || CrashError::NoSuchState(name.to_string());
        if name.point >= self.points.len() {
            return Err(unknown());
        }
        self.go_to(name.point);
        let pieces = self.pieces();
        let chosen = name.chosen(&pieces).ok_or_else(unknown)?;
        Ok((pieces, chosen))
    }
}

fn put(
    log: &Log,
    contents: &Contents,
    image: &mut Image,
    number: &mut u128,
    request: usize,
    sectors: Range<u64>,
    mut changed: impl FnMut(u64, Option<usize>),
) {
    image.put(request, sectors, |sector, old| {
        let (new, gone) = (contents.added(log, Some(request), sector), contents.added(log, old, sector));
        *number = number.wrapping_add(new).wrapping_sub(gone);
        changed(sector, old);
    });
}

fn events(log: &Log) -> Vec<Event> {
    let mut events = vec![None; log.events() as usize];
    for (request, entry) in log.entries().iter().enumerate() {
        events[entry.submitted as usize - 1] = Some(Event::Submitted(request));
        if let Some(completed) = entry.completed {
            events[completed as usize - 1] = Some(Event::Completed(request));
        }
    }
    events.into_iter().map(|event| event.expect("each event is a submission or a completion")).collect()
}

fn points(log: &Log, events: &[Event]) -> Vec<CrashPoint> {
    let mut points: Vec<CrashPoint> = Vec::new();
    let (mut marks, mut is_new) = (0, true);
    for (index, event) in events.iter().enumerate() {
        let kind = |request: usize| log.entries()[request].kind;
        if let Event::Completed(request) = *event
            && matches!(kind(request), Kind::Flush | Kind::Write { fua: true })
            && is_new
        {
            let marks_before = points.last().map_or(0, |point| point.marks);
            points.push(CrashPoint { event: index as u64, marks, after_mark: marks > marks_before });
            is_new = false;
        }
        match *event {
            Event::Completed(request) if kind(request) == Kind::Mark => {
                marks += 1;
                is_new = true;
            }
            Event::Submitted(request) if matches!(kind(request), Kind::Write { .. } | Kind::Discard) => is_new = true,
            _ => {}
        }
    }
    let marks_before = points.last().map_or(0, |point| point.marks);
    points.push(CrashPoint { event: events.len() as u64, marks, after_mark: marks > marks_before });
    points
}

impl std::fmt::Debug for Course {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Course").field("points", &self.points.len()).finish_non_exhaustive()
    }
}

/// Reads bytes of an image of a log; used where a state is judged in memory.
impl Course {
    /// All bytes of an image.
    ///
    /// # Errors
    /// The log or the base cannot be read.
    pub fn bytes(&self, image: &Image, base: &Base) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.log.volume_bytes() as usize];
        image.read(&self.log, base, 0, &mut bytes)?;
        Ok(bytes)
    }
}
