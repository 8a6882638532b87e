//! Telemetry of a model as rows of the series.

use assay_array_model::{GateReading, HostReading, LimitReading, LogReading, MemberReading, PortReading, Reading};
use serde::Serialize;

/// Rows of the series over one interval.
#[derive(Serialize)]
pub(crate) struct Telemetry {
    at_ns: u64,
    interval_ns: u64,
    rows: Vec<Row>,
}

/// Entity, metric, kind, value.
type Row = (String, &'static str, &'static str, f64);

impl Telemetry {
    pub(crate) fn of(reading: &Reading) -> Self {
        let mut rows = Vec::new();
        let interval_ns = reading.interval_ns as f64;
        for (number, (before, after)) in reading.before.iter().zip(&reading.after).enumerate() {
            match (&before.gate, &after.gate) {
                (Some(gate_before), Some(gate_after)) => gate_rows(gate_before, gate_after, interval_ns, &mut rows),
                _ => member_rows(&format!("member{number}"), before, after, interval_ns, &mut rows),
            }
            if after.loaded_bytes > 0 {
                let name = after.gate.as_ref().map_or_else(|| format!("member{number}"), |gate| gate.name.clone());
                rows.push((name, "loaded_bytes", "delta", (after.loaded_bytes - before.loaded_bytes) as f64));
            }
        }
        for (number, (before, after)) in reading.hosts_before.iter().zip(&reading.hosts_after).enumerate() {
            host_rows(&format!("host{number}"), before, after, interval_ns, &mut rows);
        }
        if let Some([before, after]) = &reading.log {
            log_rows("log", before, after, &mut rows);
        }
        Self { at_ns: reading.at_ns, interval_ns: reading.interval_ns, rows }
    }
}

/// Limits of a volume or machine in the words of the providers' own metrics, as the importers of CloudWatch and Azure have them.
fn gate_rows(before: &GateReading, after: &GateReading, interval_ns: f64, rows: &mut Vec<Row>) {
    let mut row = |metric: &'static str, kind: &'static str, value: f64| {
        rows.push((after.name.clone(), metric, kind, value));
    };
    let exceeded = |before: &LimitReading, after: &LimitReading| {
        ((after.exceeded_ns - before.exceeded_ns) as f64 / interval_ns).min(1.0)
    };
    row("ios_count", "delta", (after.operations.passed - before.operations.passed) as f64);
    row("transferred_bytes", "delta", (after.transfer.passed - before.transfer.passed) as f64);
    row("iops_exceeded_share", "gauge", exceeded(&before.operations, &after.operations));
    row("bandwidth_exceeded_share", "gauge", exceeded(&before.transfer, &after.transfer));
    if let Some(share) = after.operations.balance_share {
        row("burst_balance_share", "gauge", share);
    }
    if let Some(share) = after.transfer.balance_share {
        row("bandwidth_balance_share", "gauge", share);
    }
}

fn member_rows(name: &str, before: &MemberReading, after: &MemberReading, interval_ns: f64, rows: &mut Vec<Row>) {
    let mut row = |entity: &str, metric: &'static str, kind: &'static str, value: f64| {
        rows.push((entity.into(), metric, kind, value))
    };
    let reads = after.reads - before.reads;
    if reads > 0 {
        row(name, "read_hit_share", "gauge", (after.read_hits - before.read_hits) as f64 / reads as f64);
    }
    row(name, "dirty_bytes", "gauge", after.dirty_bytes as f64);
    row(name, "held_bytes", "gauge", after.held_bytes as f64);
    row(name, "written_bytes", "delta", (after.written_bytes - before.written_bytes) as f64);
    row(name, "destaged_bytes", "delta", (after.destaged_bytes - before.destaged_bytes) as f64);
    row(name, "writes_waited_count", "delta", (after.writes_waited - before.writes_waited) as f64);
    if after.rebuilt_bytes > 0 {
        row(name, "rebuilt_bytes", "delta", (after.rebuilt_bytes - before.rebuilt_bytes) as f64);
    }
    if after.cleaned_bytes > 0 {
        row(name, "cleaned_bytes", "delta", (after.cleaned_bytes - before.cleaned_bytes) as f64);
        row(name, "moved_bytes", "delta", (after.moved_bytes - before.moved_bytes) as f64);
    }
    if let Some(live_share) = after.live_share {
        row(name, "live_share", "gauge", live_share);
        let destaged = (after.destaged_bytes - before.destaged_bytes) as f64;
        if destaged > 0.0 {
            row(name, "write_amplification", "gauge", 1.0 + (after.moved_bytes - before.moved_bytes) as f64 / destaged);
        }
    }
    let pieces = after.ahead_pieces - before.ahead_pieces;
    if pieces > 0 {
        row(name, "ahead_piece_bytes", "gauge", (after.ahead_bytes - before.ahead_bytes) as f64 / pieces as f64);
    }
    let cpu_ns = (after.cpu_busy_ns - before.cpu_busy_ns) as f64;
    row(name, "cpu_busy_share", "gauge", cpu_ns / interval_ns / f64::from(after.cores));
    for (number, (before, after)) in before.disks.iter().zip(&after.disks).enumerate() {
        let entity = format!("{name}/disk{number}");
        row(&entity, "read_ios_count", "delta", (after.reads - before.reads) as f64);
        row(&entity, "write_ios_count", "delta", (after.writes - before.writes) as f64);
        row(&entity, "read_bytes", "delta", (after.read_bytes - before.read_bytes) as f64);
        row(&entity, "write_bytes", "delta", (after.write_bytes - before.write_bytes) as f64);
        row(&entity, "busy_share", "gauge", (after.busy_ns - before.busy_ns) as f64 / interval_ns);
        row(&entity, "queue_mean_count", "gauge", (after.queue_ns - before.queue_ns) as f64 / interval_ns);
        let programmed = (after.programmed_bytes - before.programmed_bytes) as f64;
        if programmed > 0.0 {
            row(&entity, "programmed_bytes", "delta", programmed);
            row(&entity, "erases_count", "delta", (after.erases - before.erases) as f64);
        }
        if let (Some(before), Some(after)) = (before.throttled_ns, after.throttled_ns) {
            row(&entity, "throttled_share", "gauge", (after - before) as f64 / interval_ns);
        }
    }
    port_rows(name, &before.ports, &after.ports, interval_ns, rows);
}

fn host_rows(name: &str, before: &HostReading, after: &HostReading, interval_ns: f64, rows: &mut Vec<Row>) {
    let mut gauge = |metric: &'static str, value: f64| rows.push((name.into(), metric, "gauge", value));
    let reads = (after.reads - before.reads) as f64;
    if reads > 0.0 {
        let memory = (after.memory_hits - before.memory_hits) as f64 / reads;
        let flash = (after.flash_hits - before.flash_hits) as f64 / reads;
        let remote = (after.remote_hits - before.remote_hits) as f64 / reads;
        gauge("read_hit_share", memory + flash);
        // Of the reads that memory did not answer.
        if memory < 1.0 {
            gauge("flash_hit_share", flash / (1.0 - memory));
        }
        gauge("memory_read_share", memory);
        gauge("flash_read_share", flash);
        gauge("remote_read_share", remote);
        gauge("node_read_share", 1.0 - memory - flash - remote);
    }
    if after.cores > 0 {
        let (cpu_ns, flash_ns) = (after.cpu_busy_ns - before.cpu_busy_ns, after.flash_busy_ns - before.flash_busy_ns);
        gauge("cpu_busy_share", cpu_ns as f64 / interval_ns / f64::from(after.cores));
        gauge("flash_busy_share", flash_ns as f64 / interval_ns / f64::from(after.flash_channels));
    }
    port_rows(name, &before.ports, &after.ports, interval_ns, rows);
}

fn log_rows(name: &str, before: &LogReading, after: &LogReading, rows: &mut Vec<Row>) {
    let mut gauge = |metric: &'static str, value: f64| rows.push((name.into(), metric, "gauge", value));
    let appends = (after.appends - before.appends) as f64;
    if appends > 0.0 {
        gauge("write_amplification", 1.0 + (after.moves - before.moves) as f64 / appends);
    }
    gauge("live_share", after.live_share);
    gauge("held_share", after.held_share);
    gauge("snapshots_count", f64::from(after.snapshots));
}

fn port_rows(name: &str, before: &[PortReading], after: &[PortReading], interval_ns: f64, rows: &mut Vec<Row>) {
    let mut row = |entity: &str, metric: &'static str, kind: &'static str, value: f64| {
        rows.push((entity.into(), metric, kind, value))
    };
    for (number, (before, after)) in before.iter().zip(after).enumerate() {
        let entity = format!("{name}/port{number}");
        row(&entity, "in_bytes", "delta", (after.in_bytes - before.in_bytes) as f64);
        row(&entity, "out_bytes", "delta", (after.out_bytes - before.out_bytes) as f64);
        let busy_ns = (after.in_busy_ns - before.in_busy_ns).max(after.out_busy_ns - before.out_busy_ns);
        row(&entity, "busy_share", "gauge", busy_ns as f64 / interval_ns);
        let packets = after.packets - before.packets;
        if packets > 0 {
            let again = (after.packets_again - before.packets_again) as f64;
            row(&entity, "segments_out_count", "delta", packets as f64);
            row(&entity, "segments_retransmitted_count", "delta", again);
            row(&entity, "retransmit_share", "gauge", (again / packets as f64).min(1.0));
        }
    }
}
