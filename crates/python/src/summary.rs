//! What the collector counted, as the JSON of docs/results.md.

use assay_device::Engine;
use assay_load::{
    Counted, Errors, GroupTick, IoCollector, IoTally, LatencyHistogram, LoadError, Standstills, Tally, Totals,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

const PERCENTILES: [(&str, f64); 6] =
    [("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("p99_9", 99.9), ("p99_99", 99.99)];

pub(crate) fn to_base64(histogram: &LatencyHistogram) -> String {
    STANDARD.encode(histogram.to_hdr_v2())
}

pub(crate) fn from_base64(text: &str) -> Result<LatencyHistogram, LoadError> {
    let bytes = STANDARD.decode(text).map_err(|error| LoadError::InvalidHistogram(error.to_string()))?;
    LatencyHistogram::from_hdr_v2(&bytes)
}

/// `latency_ns` of a direction, or null when nothing was recorded.
pub(crate) fn latency(histogram: &LatencyHistogram) -> Value {
    let Some(mean_ns) = histogram.mean_ns() else { return Value::Null };
    let mut values = Map::new();
    values.insert("mean".into(), json!(mean_ns));
    for (name, percentile) in PERCENTILES {
        values.insert(name.into(), json!(histogram.percentile_ns(percentile)));
    }
    values.insert("max".into(), json!(histogram.max_ns()));
    Value::Object(values)
}

/// A DIRECTION, or null when it did no I/O.
fn direction(counted: &Counted, seconds: f64) -> Value {
    if counted.latency.is_empty() {
        return Value::Null;
    }
    let count = counted.latency.count();
    json!({
        "count": count,
        "iops": count as f64 / seconds,
        "bytes_per_s": counted.bytes as f64 / seconds,
        "latency_ns": latency(&counted.latency),
        "histogram": to_base64(&counted.latency),
    })
}

fn all_reads(interval: &IoTally) -> Counted {
    let mut reads = interval.read.clone();
    reads.merge(&interval.read_in_burst);
    reads
}

fn directions(interval: &IoTally, seconds: f64) -> Map<String, Value> {
    let reads = all_reads(interval);
    let mut total = reads.clone();
    total.merge(&interval.write);
    Map::from_iter([
        ("read".into(), direction(&reads, seconds)),
        ("write".into(), direction(&interval.write, seconds)),
        ("total".into(), direction(&total, seconds)),
    ])
}

fn errors(errors: &Errors) -> Value {
    json!({
        "count": errors.count(),
        "kinds": {"EIO": errors.io, "ENOSPC": errors.no_space, "short": errors.short, "other": errors.other},
    })
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
}

/// The measured part of a point.
pub(crate) fn point(
    totals: &Totals,
    names: &Names,
    seconds: f64,
    workers: usize,
    fullest_worker: f64,
    standstills: Standstills,
) -> Value {
    let all = merged(totals, |_, _| true);
    let mut point = directions(&all, seconds);
    point.insert("flush".into(), direction(&all.flush, seconds));
    let mut roles = Map::new();
    let mut activities = Vec::new();
    for (index, (name, role)) in names.activities.iter().enumerate() {
        if !roles.contains_key(role) {
            let of_role = merged(totals, |activity, _| names.activities[activity].1 == *role);
            roles.insert(role.clone(), Value::Object(directions(&of_role, seconds)));
        }
        let mut activity = directions(&merged(totals, |activity, _| activity == index), seconds);
        activity.insert("name".into(), json!(name));
        activity.insert("role".into(), json!(role));
        activities.push(Value::Object(activity));
    }
    let volumes: Vec<Value> = (0..names.volumes.len())
        .filter(|volume| totals.keys().any(|key| key.volume == *volume))
        .map(|volume| {
            let mut entry = directions(&merged(totals, |_, other| other == volume), seconds);
            entry.insert("name".into(), json!(names.volumes[volume]));
            let role = totals.keys().find(|key| key.volume == volume).map(|key| &names.activities[key.activity].1);
            entry.insert("role".into(), json!(role));
            Value::Object(entry)
        })
        .collect();
    point.insert("roles".into(), Value::Object(roles));
    point.insert("volumes".into(), Value::Array(volumes));
    point.insert("activities".into(), Value::Array(activities));
    point.insert("errors".into(), errors(&all.errors));
    point.insert("service_latency_ns".into(), latency(&all.service));
    point.insert("bursts".into(), bursts(totals, names, seconds));
    let lag_p99_ns = (!all.lag.is_empty()).then(|| all.lag.percentile_ns(99.0));
    point.insert(
        "generator".into(),
        json!({
            "cpu_share": all.cpu_ns as f64 / 1e9 / seconds / workers as f64,
            "fullest_worker_share": fullest_worker,
            "schedule_lag_p99_ns": lag_p99_ns,
            "gaps": gaps(standstills, all.standstill_ios),
        }),
    );
    Value::Object(point)
}

/// Times in which the generator itself stood still, and what was under way then and is in no latency.
pub(crate) fn gaps(standstills: Standstills, ios: u64) -> Value {
    json!({"count": standstills.count, "longest_ns": standstills.longest_ns, "total_ns": standstills.total_ns, "ios": ios})
}

/// Reads of the role that checkpoints write to, during bursts and between them.
fn bursts(totals: &Totals, names: &Names, seconds: f64) -> Value {
    let bursting = |interval: &IoTally| interval.bursts_count > 0 || interval.burst_ns > 0;
    let Some((key, _)) = totals.iter().find(|(_, interval)| bursting(interval)) else { return Value::Null };
    let role = &names.activities[key.activity].1;
    let foreground = merged(totals, |activity, _| names.activities[activity].1 == *role);
    let burst_s = foreground.burst_ns as f64 / 1e9;
    json!({
        "share_of_time": burst_s / seconds,
        "count": foreground.bursts_count,
        "read_during": direction(&foreground.read_in_burst, burst_s.max(1e-9)),
        "read_between": direction(&foreground.read, (seconds - burst_s).max(1e-9)),
    })
}

/// One direction of a tick.
pub(crate) fn side(side: &assay_load::DirectionTick) -> Value {
    json!({"count": side.count, "bytes": side.bytes, "mean_ns": side.mean_ns, "p50_ns": side.p50_ns,
           "p99_ns": side.p99_ns, "max_ns": side.max_ns})
}

/// Backend and features in force.
pub(crate) fn engine(engine: &Engine) -> Value {
    json!({"backend": engine.backend, "features": engine.features, "degraded": engine.degraded})
}

/// Ticks for the series and the steady-state test.
pub(crate) fn ticks(ticks: &[GroupTick]) -> Value {
    ticks
        .iter()
        .map(|tick| {
            json!({"tick": tick.tick, "activity": tick.key.activity, "volume": tick.key.volume,
                   "read": side(&tick.counted.read), "write": side(&tick.counted.write),
                   "error_count": tick.counted.error_count, "cpu_ns": tick.counted.cpu_ns})
        })
        .collect()
}

/// Errors and I/Os that ended after the stop, which are no part of the window but must not be hidden.
pub(crate) fn drained(collector: &IoCollector) -> Value {
    let all = merged(collector.drained(), |_, _| true);
    json!({"errors": errors(&all.errors), "count": all_reads(&all).latency.count() + all.write.latency.count(),
           "bytes": all_reads(&all).bytes + all.write.bytes,
           "max_ns": all_reads(&all).latency.max_ns().max(all.write.latency.max_ns())})
}
