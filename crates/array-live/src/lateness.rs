//! How late answers leave, against the time that the model gives them; and what the last seconds were like.

use std::collections::VecDeque;

use assay_load::LatencyHistogram;
use serde::Serialize;

use crate::io::IoKind;

/// Answers this late are felt.
const LATE_NS: u64 = 1_000_000;
/// Share of a second's answers that may be late before the second counts as overdriven.
const LATE_SHARE: f64 = 0.01;
/// Share of the model's latencies that lateness may add to them before the second counts as overdriven.
const ADDED_SHARE: f64 = 0.10;
const SECOND_NS: u64 = 1_000_000_000;
const SECONDS_KEPT: usize = 7_200;

/// One second of service.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Second {
    pub(crate) at_s: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) bytes: u64,
    pub(crate) read_mean_ns: u64,
    pub(crate) write_mean_ns: u64,
    pub(crate) late: u64,
    /// How late all answers were together.
    pub(crate) late_ns: u64,
    pub(crate) errors: u64,
    pub(crate) overdriven: bool,
}

/// I/Os of a volume since it is shown.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Served {
    pub(crate) reads: u64,
    pub(crate) read_bytes: u64,
    /// How long all reads took together, by the model.
    pub(crate) read_ns: u64,
    pub(crate) writes: u64,
    pub(crate) write_bytes: u64,
    pub(crate) write_ns: u64,
    pub(crate) flushes: u64,
    pub(crate) errors: u64,
}

/// How an I/O went.
pub(crate) struct Ended {
    pub(crate) volume: usize,
    pub(crate) kind: EndedKind,
    pub(crate) bytes: u64,
    /// By the model.
    pub(crate) latency_ns: u64,
    pub(crate) late_ns: u64,
    pub(crate) failed: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum EndedKind {
    Read,
    Write,
    Flush,
}

impl EndedKind {
    /// Class under which an I/O is counted.
    pub(crate) fn of(kind: &IoKind) -> Self {
        match kind {
            IoKind::Read => Self::Read,
            IoKind::Write { .. } | IoKind::Discard | IoKind::Modify(_) => Self::Write,
            IoKind::Flush | IoKind::Probe => Self::Flush,
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct LatenessReading {
    pub(crate) count: u64,
    /// How late all answers were together.
    pub(crate) late_ns: u64,
    pub(crate) mean_ns: f64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) p99_9_ns: u64,
    pub(crate) max_ns: u64,
    pub(crate) overdriven_s: u64,
    pub(crate) overdriven: bool,
}

pub(crate) struct Lateness {
    all: LatencyHistogram,
    now: Second,
    pub(crate) seconds: VecDeque<Second>,
    /// By volume.
    pub(crate) served: Vec<Served>,
    late_ns: u64,
    overdriven_s: u64,
}

impl Lateness {
    pub(crate) fn new(volumes: usize) -> Self {
        Self {
            all: LatencyHistogram::new(),
            now: Second::default(),
            seconds: VecDeque::new(),
            served: vec![Served::default(); volumes],
            late_ns: 0,
            overdriven_s: 0,
        }
    }

    pub(crate) fn note(&mut self, ended: &Ended) {
        let &Ended { volume, kind, bytes, latency_ns, late_ns, failed } = ended;
        self.all.record(late_ns);
        self.late_ns += late_ns;
        let served = &mut self.served[volume];
        served.errors += u64::from(failed);
        match kind {
            EndedKind::Read => {
                served.reads += 1;
                served.read_bytes += bytes;
                served.read_ns += latency_ns;
            }
            EndedKind::Write => {
                served.writes += 1;
                served.write_bytes += bytes;
                served.write_ns += latency_ns;
            }
            EndedKind::Flush => served.flushes += 1,
        }
        let now = &mut self.now;
        now.bytes += bytes;
        now.late += u64::from(late_ns > LATE_NS);
        now.late_ns += late_ns;
        now.errors += u64::from(failed);
        // Sums, until the second is over.
        if kind != EndedKind::Read {
            now.writes += 1;
            now.write_mean_ns += latency_ns;
        } else {
            now.reads += 1;
            now.read_mean_ns += latency_ns;
        }
    }

    /// Ends the second if it is over.
    pub(crate) fn tick(&mut self, now_ns: u64) {
        let at_s = now_ns / SECOND_NS;
        if at_s == self.now.at_s {
            return;
        }
        let mut second = std::mem::replace(&mut self.now, Second { at_s, ..Second::default() });
        let latency_ns = second.read_mean_ns + second.write_mean_ns;
        second.read_mean_ns /= second.reads.max(1);
        second.write_mean_ns /= second.writes.max(1);
        let all = second.reads + second.writes;
        let is_late = second.late as f64 > LATE_SHARE * all as f64;
        second.overdriven = all > 0 && (is_late || second.late_ns as f64 > ADDED_SHARE * latency_ns as f64);
        self.overdriven_s += u64::from(second.overdriven);
        if all > 0 || second.errors > 0 {
            self.seconds.push_back(second);
        }
        if self.seconds.len() > SECONDS_KEPT {
            self.seconds.pop_front();
        }
    }

    pub(crate) fn reading(&self) -> LatenessReading {
        let busy = self.seconds.len() as u64;
        LatenessReading {
            count: self.all.count(),
            late_ns: self.late_ns,
            mean_ns: self.all.mean_ns().unwrap_or(0.0),
            p50_ns: self.all.percentile_ns(50.0),
            p99_ns: self.all.percentile_ns(99.0),
            p99_9_ns: self.all.percentile_ns(99.9),
            max_ns: self.all.max_ns(),
            overdriven_s: self.overdriven_s,
            // A hiccup is no overload.
            overdriven: self.overdriven_s * 20 > busy,
        }
    }
}
