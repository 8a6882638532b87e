//! The collector's counts, as the JSON of docs/results.md.

use std::collections::BTreeMap;

use assay_device::Engine;
use assay_load::{
    Counted, Errors, GroupTick, IoCollector, IoTally, LatencyHistogram, LoadError, Standstills, Tally, Totals,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

/// JSON text for Python, its keys in alphabetical order.
pub(crate) fn to_json(document: &impl Serialize) -> String {
    serde_json::to_value(document).expect("names are texts and figures are numbers").to_string()
}

pub(crate) fn to_base64(histogram: &LatencyHistogram) -> String {
    STANDARD.encode(histogram.to_hdr_v2())
}

pub(crate) fn from_base64(text: &str) -> Result<LatencyHistogram, LoadError> {
    let bytes = STANDARD.decode(text).map_err(|error| LoadError::InvalidHistogram(error.to_string()))?;
    LatencyHistogram::from_hdr_v2(&bytes)
}

/// `latency_ns` of a direction.
#[derive(Serialize)]
pub(crate) struct Latency {
    mean: f64,
    p50: u64,
    p90: u64,
    p95: u64,
    p99: u64,
    p99_9: u64,
    p99_99: u64,
    max: u64,
}

impl Latency {
    /// Nothing when nothing was recorded.
    pub(crate) fn of(histogram: &LatencyHistogram) -> Option<Self> {
        Some(Self {
            mean: histogram.mean_ns()?,
            p50: histogram.percentile_ns(50.0),
            p90: histogram.percentile_ns(90.0),
            p95: histogram.percentile_ns(95.0),
            p99: histogram.percentile_ns(99.0),
            p99_9: histogram.percentile_ns(99.9),
            p99_99: histogram.percentile_ns(99.99),
            max: histogram.max_ns(),
        })
    }
}

/// A DIRECTION.
#[derive(Serialize)]
struct Direction {
    count: u64,
    iops: f64,
    bytes_per_s: f64,
    latency_ns: Option<Latency>,
    histogram: String,
}

impl Direction {
    /// Nothing when it did no I/O.
    fn of(counted: &Counted, seconds: f64) -> Option<Self> {
        let latency_ns = Latency::of(&counted.latency)?;
        let count = counted.latency.count();
        Some(Self {
            count,
            iops: count as f64 / seconds,
            bytes_per_s: counted.bytes as f64 / seconds,
            latency_ns: Some(latency_ns),
            histogram: to_base64(&counted.latency),
        })
    }
}

fn all_reads(tally: &IoTally) -> Counted {
    let mut reads = tally.read.clone();
    reads.merge(&tally.read_in_burst);
    reads
}

#[derive(Serialize)]
struct Directions {
    read: Option<Direction>,
    write: Option<Direction>,
    total: Option<Direction>,
}

impl Directions {
    fn of(tally: &IoTally, seconds: f64) -> Self {
        let reads = all_reads(tally);
        let mut total = reads.clone();
        total.merge(&tally.write);
        Self {
            read: Direction::of(&reads, seconds),
            write: Direction::of(&tally.write, seconds),
            total: Direction::of(&total, seconds),
        }
    }
}

/// Failed I/Os.
#[derive(Serialize)]
struct Failed {
    count: u64,
    kinds: FailedKinds,
}

#[derive(Serialize)]
struct FailedKinds {
    #[serde(rename = "EIO")]
    io: u64,
    #[serde(rename = "ENOSPC")]
    no_space: u64,
    short: u64,
    other: u64,
}

impl Failed {
    fn of(errors: &Errors) -> Self {
        let Errors { io, no_space, short, other } = *errors;
        Self { count: errors.count(), kinds: FailedKinds { io, no_space, short, other } }
    }
}

/// Sums of the groups chosen.
fn merged(totals: &Totals, chosen: impl Fn(usize, usize) -> bool) -> IoTally {
    let mut sum = IoTally::default();
    totals.iter().filter(|(key, _)| chosen(key.activity, key.volume)).for_each(|(_, interval)| sum.merge(interval));
    sum
}

/// How a session's groups are to be named: of each activity its name and role, of each volume its name and role.
pub(crate) struct Names {
    pub(crate) activities: Vec<(String, String)>,
    pub(crate) volumes: Vec<String>,
    /// Whether an activity replays a trace.
    pub(crate) replays: bool,
}

/// The measured part of a point.
#[derive(Serialize)]
struct Point<'a> {
    #[serde(flatten)]
    directions: Directions,
    flush: Option<Direction>,
    roles: BTreeMap<&'a str, Directions>,
    volumes: Vec<Part<'a>>,
    activities: Vec<Part<'a>>,
    errors: Failed,
    service_latency_ns: Option<Latency>,
    /// Of replays only.
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness: Option<Lateness>,
    bursts: Option<Bursts>,
    generator: Generator,
}

/// How late I/Os of a trace began although a slot was free, and the number of I/Os without a free slot.
#[derive(Serialize)]
struct Lateness {
    count: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    late_count: u64,
    held_count: u64,
}

/// An I/O that begins this much after its time is late: what Buttress (Anderson and others, FAST 2004) keeps to.
const LATE_NS: u64 = 100_000;

impl Lateness {
    fn of(tally: &IoTally) -> Option<Self> {
        let lag = &tally.lag;
        let late = lag.bins().iter().filter(|(value_ns, _)| *value_ns > LATE_NS).map(|(_, count)| count).sum();
        (!lag.is_empty()).then(|| Self {
            count: lag.count(),
            p50_ns: lag.percentile_ns(50.0),
            p99_ns: lag.percentile_ns(99.0),
            max_ns: lag.max_ns(),
            late_count: late,
            held_count: tally.held,
        })
    }
}

/// An activity or a volume.
#[derive(Serialize)]
struct Part<'a> {
    name: &'a str,
    role: Option<&'a str>,
    #[serde(flatten)]
    directions: Directions,
}

#[derive(Serialize)]
struct Generator {
    cpu_share: f64,
    fullest_worker_share: f64,
    schedule_lag_p99_ns: Option<u64>,
    gaps: Gaps,
}

/// Times in which the generator itself stood still, and what was under way then and is in no latency.
#[derive(Serialize)]
pub(crate) struct Gaps {
    count: u64,
    longest_ns: u64,
    total_ns: u64,
    ios: u64,
}

impl Gaps {
    pub(crate) fn of(standstills: Standstills, ios: u64) -> Self {
        let Standstills { count, longest_ns, total_ns } = standstills;
        Self { count, longest_ns, total_ns, ios }
    }
}

/// Reads of the role that checkpoints write to, during bursts and between them.
#[derive(Serialize)]
struct Bursts {
    share_of_time: f64,
    count: u64,
    read_during: Option<Direction>,
    read_between: Option<Direction>,
}

impl Bursts {
    fn of(totals: &Totals, names: &Names, seconds: f64) -> Option<Self> {
        let bursting = |tally: &IoTally| tally.bursts_count > 0 || tally.burst_ns > 0;
        let (key, _) = totals.iter().find(|(_, tally)| bursting(tally))?;
        let role = &names.activities[key.activity].1;
        let foreground = merged(totals, |activity, _| names.activities[activity].1 == *role);
        let burst_s = foreground.burst_ns as f64 / 1e9;
        Some(Self {
            share_of_time: burst_s / seconds,
            count: foreground.bursts_count,
            read_during: Direction::of(&foreground.read_in_burst, burst_s.max(1e-9)),
            read_between: Direction::of(&foreground.read, (seconds - burst_s).max(1e-9)),
        })
    }
}

/// Complete ticks of a run, `from_tick..to_tick`.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) from_tick: u64,
    pub(crate) to_tick: u64,
    /// Length of a tick.
    pub(crate) interval_s: f64,
}

impl Window {
    pub(crate) fn begin_ns(self) -> u64 {
        self.tick_ns(self.from_tick)
    }

    pub(crate) fn end_ns(self) -> u64 {
        self.tick_ns(self.to_tick)
    }

    fn tick_ns(self, tick: u64) -> u64 {
        (tick as f64 * self.interval_s * 1e9) as u64
    }

    /// The measured part of a point over it, as JSON.
    pub(crate) fn point(
        self,
        collector: &IoCollector,
        names: &Names,
        workers: usize,
        fullest_worker: f64,
        standstills: Standstills,
    ) -> String {
        let totals = collector.totals(self.from_tick, self.to_tick);
        let seconds = (self.to_tick - self.from_tick) as f64 * self.interval_s;
        point(&totals, names, seconds, workers, fullest_worker, standstills)
    }
}

/// The measured part of a point, as JSON.
pub(crate) fn point(
    totals: &Totals,
    names: &Names,
    seconds: f64,
    workers: usize,
    fullest_worker: f64,
    standstills: Standstills,
) -> String {
    let all = merged(totals, |_, _| true);
    let replays = names.replays;
    let mut roles = BTreeMap::new();
    for (_, role) in &names.activities {
        roles.entry(role.as_str()).or_insert_with(|| {
            let of_role = merged(totals, |activity, _| names.activities[activity].1 == *role);
            Directions::of(&of_role, seconds)
        });
    }
    let activities = names.activities.iter().enumerate().map(|(index, (name, role))| Part {
        name,
        role: Some(role),
        directions: Directions::of(&merged(totals, |activity, _| activity == index), seconds),
    });
    let used = names.volumes.iter().enumerate().filter_map(|(volume, name)| {
        let key = totals.keys().find(|key| key.volume == volume)?;
        Some(Part {
            name,
            role: Some(&names.activities[key.activity].1),
            directions: Directions::of(&merged(totals, |_, other| other == volume), seconds),
        })
    });
    to_json(&Point {
        directions: Directions::of(&all, seconds),
        flush: Direction::of(&all.flush, seconds),
        roles,
        volumes: used.collect(),
        activities: activities.collect(),
        errors: Failed::of(&all.errors),
        service_latency_ns: Latency::of(&all.service),
        lateness: if replays { Lateness::of(&all) } else { None },
        bursts: Bursts::of(totals, names, seconds),
        generator: Generator {
            cpu_share: all.cpu_ns as f64 / 1e9 / seconds / workers as f64,
            fullest_worker_share: fullest_worker,
            schedule_lag_p99_ns: (!all.lag.is_empty()).then(|| all.lag.percentile_ns(99.0)),
            gaps: Gaps::of(standstills, all.standstill_ios),
        },
    })
}

/// One direction of a tick.
#[derive(Serialize)]
pub(crate) struct Side {
    count: u64,
    bytes: u64,
    mean_ns: Option<f64>,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
}

impl Side {
    pub(crate) fn of(side: &assay_load::DirectionTick) -> Self {
        let assay_load::DirectionTick { count, bytes, mean_ns, p50_ns, p99_ns, max_ns } = *side;
        Self { count, bytes, mean_ns, p50_ns, p99_ns, max_ns }
    }
}

/// Backend and features in force.
#[derive(Serialize)]
struct EngineFacts<'a> {
    backend: Option<&'a str>,
    features: &'a [String],
    degraded: &'a [String],
}

/// Backend and features in force, as JSON.
pub(crate) fn engine(engine: &Engine) -> String {
    let Engine { backend, features, degraded } = engine;
    to_json(&EngineFacts { backend: Some(backend), features, degraded })
}

/// Engine entry of a target without an engine.
pub(crate) fn no_engine(backend: Option<&str>) -> String {
    to_json(&EngineFacts { backend, features: &[], degraded: &[] })
}

/// A tick for the series and the steady-state test.
#[derive(Serialize)]
pub(crate) struct TickLine {
    tick: u64,
    activity: usize,
    volume: usize,
    read: Side,
    write: Side,
    error_count: u64,
    cpu_ns: u64,
}

impl TickLine {
    pub(crate) fn of(tick: &GroupTick) -> Self {
        Self {
            tick: tick.tick,
            activity: tick.key.activity,
            volume: tick.key.volume,
            read: Side::of(&tick.counted.read),
            write: Side::of(&tick.counted.write),
            error_count: tick.counted.error_count,
            cpu_ns: tick.counted.cpu_ns,
        }
    }
}

/// How a session ended, or why it did not end well.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Detail {
    Unfinished { unfinished: u64, oldest_unfinished_ns: u64 },
    Message(String),
}

/// State of a session, and news since the last poll.
#[derive(Serialize)]
pub(crate) struct SessionReport {
    pub(crate) state: &'static str,
    pub(crate) detail: Option<Detail>,
    pub(crate) complete_ticks: u64,
    pub(crate) now_ns: u64,
    pub(crate) ticks: Vec<TickLine>,
}

/// Errors and I/Os that ended after the stop, which are no part of the window but must not be hidden.
#[derive(Serialize)]
struct Drained {
    errors: Failed,
    count: u64,
    bytes: u64,
    max_ns: u64,
}

/// I/Os that ended after the stop, as JSON.
pub(crate) fn drained(collector: &IoCollector) -> String {
    let all = merged(collector.drained(), |_, _| true);
    let reads = all_reads(&all);
    to_json(&Drained {
        errors: Failed::of(&all.errors),
        count: reads.latency.count() + all.write.latency.count(),
        bytes: reads.bytes + all.write.bytes,
        max_ns: reads.latency.max_ns().max(all.write.latency.max_ns()),
    })
}
