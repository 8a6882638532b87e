//! When each I/O of a trace begins again.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, HashMap, VecDeque},
};

use crate::{Feed, Pace, TracedIo, feed::Taken};

/// I/Os that are read ahead, since an I/O may begin before an earlier one.
const WINDOW: usize = 1 << 16;
/// Ends that are kept for I/Os that follow: an I/O follows one of the [`WINDOW`] before it.
const ENDS_KEPT: usize = 2 * WINDOW;
const NOT_ENDED: u64 = u64::MAX;

/// One worker's I/Os of a trace: which begins next, and when.
pub(crate) struct Replay {
    feed: Feed,
    pace: Pace,
    chunk: std::vec::IntoIter<TracedIo>,
    head: Option<TracedIo>,
    /// No chunk comes before this.
    later_ns: u64,
    is_fed: bool,
    outstanding: u32,
    /// Number of the next I/O that is read.
    next: u64,
    /// Numbers of the I/Os that are outstanding, by tag.
    numbers: Vec<u64>,
    following: Following,
}

/// I/Os that follow others.
#[derive(Default)]
struct Following {
    due: BinaryHeap<Reverse<Due>>,
    waiting: HashMap<u64, Vec<Due>>,
    waiting_count: usize,
    /// When the last I/Os that were read ended; the first of them has the number `first`.
    ends: VecDeque<u64>,
    first: u64,
}

#[derive(Clone, Copy)]
struct Due {
    at_ns: u64,
    number: u64,
    io: TracedIo,
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ns, self.number).cmp(&(other.at_ns, other.number))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

impl Replay {
    pub(crate) fn new(feed: Feed, pace: Pace, queue_depth: u32) -> Self {
        Self {
            feed,
            pace,
            chunk: Vec::new().into_iter(),
            head: None,
            later_ns: 0,
            is_fed: true,
            outstanding: 0,
            next: 0,
            numbers: vec![0; queue_depth as usize],
            following: Following::default(),
        }
    }

    /// The next I/O and its intended start, if it is to begin by `now_ns`.
    #[inline]
    pub(crate) fn take(&mut self, now_ns: u64, tag: u32) -> Option<(u64, TracedIo)> {
        if self.pace == Pace::Following {
            return self.take_following(now_ns, tag);
        }
        self.read(now_ns);
        let head = self.head?;
        let intended_ns = match self.pace {
            Pace::Timed if head.at_ns <= now_ns => head.at_ns,
            // No more than were outstanding then are now.
            Pace::Outstanding if self.outstanding <= head.link => now_ns,
            _ => return None,
        };
        self.head = self.chunk.next();
        self.begin(tag, self.next);
        self.next += 1;
        Some((intended_ns, head))
    }

    fn take_following(&mut self, now_ns: u64, tag: u32) -> Option<(u64, TracedIo)> {
        self.read_ahead(now_ns);
        let Reverse(first) = self.following.due.peek().copied()?;
        if first.at_ns > now_ns {
            return None;
        }
        self.following.due.pop();
        self.begin(tag, first.number);
        Some((first.at_ns, first.io))
    }

    fn begin(&mut self, tag: u32, number: u64) {
        self.numbers[tag as usize] = number;
        self.outstanding += 1;
    }

    /// The I/O with this tag ended.
    #[inline]
    pub(crate) fn ended(&mut self, tag: u32, at_ns: u64) {
        self.outstanding -= 1;
        if self.pace == Pace::Following {
            self.following.ended(self.numbers[tag as usize], at_ns);
        }
    }

    /// When the next I/O is to begin, unless one ends before; `u64::MAX` where an end decides that.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        match self.pace {
            Pace::Following => {
                let due_ns = self.following.due.peek().map_or(u64::MAX, |Reverse(due)| due.at_ns);
                if self.wants_more() { due_ns.min(self.later_ns) } else { due_ns }
            }
            _ => match self.head {
                Some(head) if self.pace == Pace::Timed => head.at_ns,
                Some(head) if self.outstanding <= head.link => 0,
                Some(_) => u64::MAX,
                None if self.is_fed => self.later_ns,
                None => u64::MAX,
            },
        }
    }

    /// Whether every I/O has begun. A timed replay lasts until it is stopped: the time after its last I/O is part of it.
    pub(crate) fn is_over(&self) -> bool {
        self.pace != Pace::Timed
            && !self.is_fed
            && self.head.is_none()
            && self.following.due.is_empty()
            && self.following.waiting_count == 0
    }

    /// I/Os that were due before `until_ns` and have not begun, and the age of the oldest.
    pub(crate) fn unfinished(&self, until_ns: u64) -> (u64, u64) {
        let (count, first_ns) = match self.pace {
            Pace::Outstanding => (0, until_ns),
            Pace::Following => {
                let due = self.following.due.iter().filter(|Reverse(due)| due.at_ns < until_ns);
                (due.count() as u64, self.next_ns())
            }
            Pace::Timed => {
                let read = self.head.iter().chain(self.chunk.as_slice()).filter(|io| io.at_ns < until_ns).count();
                (read as u64 + self.feed.count_due(until_ns), self.next_ns())
            }
        };
        (count, if count > 0 { until_ns.saturating_sub(first_ns) } else { 0 })
    }

    /// Makes the next I/O the head, if it is there.
    #[inline]
    fn read(&mut self, now_ns: u64) {
        if self.head.is_none() && self.is_fed && now_ns >= self.later_ns {
            self.read_chunk(now_ns);
        }
    }

    fn read_chunk(&mut self, now_ns: u64) {
        match self.feed.take(now_ns, self.pace == Pace::Timed) {
            Taken::Chunk(chunk) => {
                self.chunk = chunk.into_iter();
                self.head = self.chunk.next();
            }
            Taken::Later(later_ns) => self.later_ns = later_ns,
            Taken::Over => self.is_fed = false,
        }
    }

    fn wants_more(&self) -> bool {
        self.is_fed && self.following.count() < WINDOW
    }

    fn read_ahead(&mut self, now_ns: u64) {
        while self.wants_more() {
            self.read(now_ns);
            let Some(io) = self.head else { return };
            self.following.add(Due { at_ns: io.at_ns, number: self.next, io });
            self.next += 1;
            self.head = self.chunk.next();
        }
    }
}

impl Following {
    fn count(&self) -> usize {
        self.due.len() + self.waiting_count
    }

    fn add(&mut self, due: Due) {
        self.ends.push_back(NOT_ENDED);
        if self.ends.len() > ENDS_KEPT {
            self.ends.pop_front();
            self.first += 1;
        }
        let link = u64::from(due.io.link);
        if link == 0 || link > due.number || link > WINDOW as u64 {
            self.due.push(Reverse(due));
            return;
        }
        let followed = due.number - link;
        let ended_ns = self.ends[(followed - self.first) as usize];
        if ended_ns == NOT_ENDED {
            self.waiting.entry(followed).or_default().push(due);
            self.waiting_count += 1;
        } else {
            self.due.push(Reverse(Due { at_ns: ended_ns + due.io.at_ns, ..due }));
        }
    }

    fn ended(&mut self, number: u64, at_ns: u64) {
        if let Some(end) = number.checked_sub(self.first).and_then(|place| self.ends.get_mut(place as usize)) {
            *end = at_ns;
        }
        for due in self.waiting.remove(&number).unwrap_or_default() {
            self.waiting_count -= 1;
            self.due.push(Reverse(Due { at_ns: at_ns + due.io.at_ns, ..due }));
        }
    }
}
