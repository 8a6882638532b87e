"""Causes within a database: its log, locks, latches, checkpoints, files, and what it does besides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.causes.cause import Cause, those
from assay.insight.diagnosis.evidence import MIB, add_pressure, add_slower, device_bytes, devices, smooth
from assay.insight.diagnosis.observed import DATABASES, SAMPLES_MIN, SECOND_NS, Flags, Numbers, Observations, Track
from assay.insight.diagnosis.signals import CauseSignals, Suspicion
from assay.record.shapes.access import bursts_of

ACTIVE_MIN = 1.0
"""Sessions at work below which the shares of what they wait for say nothing."""

PAGE_BYTES = 8192
"""A page of PostgreSQL as it is usually built (block_size). A share is at most this: free space is left out."""

QUIET = 0.10
"""Waits for I/O below this share: storage is not what sessions wait for."""


def servers(observed: Observations) -> list[tuple[str, str]]:
    """Host and source of each database server."""
    return list(dict.fromkeys((one.host, one.source) for one in observed.tracks if one.source in DATABASES))


def waits(observed: Observations, host: str, source: str, kind: str) -> list[Track]:
    """Shares of the sessions at work that wait for a kind of event, where enough are at work."""
    found = []
    for track in observed.find(f"waits_{kind}_share", source=source, host=host):
        active = observed.of(track, "sessions_active_count")
        values = (
            track.values
            if active is None
            else np.where(np.nan_to_num(active.values) >= ACTIVE_MIN, track.values, np.nan)
        )
        found.append(track.having(smooth(values)))
    return found


def log_flush(observed: Observations) -> list[Suspicion]:
    """Commits that wait for the log: late flushes of a database, or late log writes of a load that imitates one."""
    found = []
    for host, source in servers(observed):
        signals = CauseSignals(observed)
        for metric in ("log_flush_latency_mean_ns", "log_write_latency_mean_ns"):
            for track in observed.find(metric, source=source, host=host):
                signals.add("latency", f"{track.entity}: a log flush takes", track, at.LOG_LATENCY, strong=True)
        for track in waits(observed, host, source, "log"):
            signals.add("waits", f"{track.entity}: sessions wait for the log", track, at.WAITS)
        for track in observed.find("log_wait_time_ns", source=source, host=host):
            signals.add("waits", f"{track.entity}: sessions wait for the log", track.values / SECOND_NS, at.WAITS)
        for track in observed.find("log_flush_time_ns", source=source, host=host):
            signals.add("busy", f"{track.entity}: time with a flush under way", track.values / SECOND_NS, at.FLUSHING)
        notes = _shared_log(observed, host)
        found.append(_log(signals, notes, needs=("latency",)))
    for track in observed.latencies("block", "flush"):
        # A device that is late with all its I/Os is late with flushes too: it is no consequence of these.
        found.append(_log(_flushes(observed, track), [], needs=("latency",), explains=()))
    found.append(_log(_log_of_load(observed), _shared_log(observed, None), needs=("latency",)))
    return those(*found)


def _flushes(observed: Observations, track: Track) -> CauseSignals:
    """Flushes of a device, one of which each commit waits for."""
    signals = CauseSignals(observed)
    bound = at.LOG_LATENCY if "log" in track.role else at.FLUSH_LATENCY
    signals.add("latency", f"{track.entity}: a flush takes", track, bound, strong=True)
    flushes = observed.of(track, "flush_ios_count")
    if flushes is not None:
        share = np.minimum(flushes.values * track.values / SECOND_NS, 1.0)
        signals.add("busy", f"{track.entity}: time with a flush under way", share, at.FLUSHING,
                    entity=track.entity, host=track.host)  # fmt: skip
    return signals


def _log(
    signals: CauseSignals,
    notes: Sequence[str],
    needs: Sequence[str],
    explains: Sequence[str] = ("slow-disk", "slow-writes"),
) -> Suspicion | None:
    return signals.agree(
        "log-flush",
        resource="disk",
        needs=needs,
        advice="Give the log storage of its own with a protected write cache, RAID 10 rather than RAID 5 or 6;"
        " commit more rows at once, or group commits.",
        against=[
            "Throughput stays when commits do not wait (synchronous_commit=off, innodb_flush_log_at_trx_commit=2),"
            " as a test."
        ],
        explains=explains,
        notes=notes,
        confirm="sessions that wait for the log (a database's URL), and how often it is flushed",
    )


def _log_of_load(observed: Observations) -> CauseSignals:
    signals = CauseSignals(observed)
    volumes = _roles(observed)
    for side in ("read", "write"):
        for track in observed.latencies("assay", side):
            if side == "write" and (track.role == "log" or volumes.get(track.entity) == "log"):
                signals.add("latency", f"{track.entity}: log writes take", track, at.LOG_LATENCY, required=True)
    logs, under_way = np.full(observed.steps, np.nan), np.full(observed.steps, np.nan)
    for window in observed.windows:
        log = (window.point.get("roles") or {}).get("log")
        own = log.get("write") if log else None
        mean = own["latency_ns"].get("mean") if own else None
        if own and mean is not None:
            logs[window.steps] = float(mean)
            under_way[window.steps] = float(own["iops"]) * float(mean) / SECOND_NS
    if not any(one.of == "latency" for one in signals.found):
        signals.add("latency", "log writes take", logs, at.LOG_LATENCY, required=True)
    signals.add("busy", "time with a log write under way", np.minimum(under_way, 1.0), at.FLUSHING)
    disks = observed.find("busy_share", source="model", where=lambda one: "/disk" in one.entity)
    for track in disks:
        if np.nan_to_num(np.nanmax(track.values)) >= at.DISK_BUSY.value:
            signals.add("shared", f"{track.entity}: a disk that holds data and log is busy", track, at.DISK_BUSY)
            break
    for track in devices(observed, "queue_mean_count"):
        if "log" in track.role and "data" in track.role:
            signals.add("shared", f"{track.entity}: holds data and log, and I/Os queue", track, at.QUEUE)
    return signals


def _roles(observed: Observations) -> dict[str, str]:
    return {
        str(volume.get("name")): str(volume.get("role") or "")
        for source in observed.sources
        for volume in (source.manifest.get("target") or {}).get("volumes") or []
    }


def _shared_log(observed: Observations, host: str | None) -> list[str]:
    """Devices on which the log lies beside data."""
    names = dict.fromkeys(
        track.entity
        for track in observed.tracks
        if track.source == "block" and "log" in track.role and "data" in track.role and host in (None, track.host)
    )
    return [f"{name} holds data and log" for name in names]


def lock_wait(observed: Observations) -> list[Suspicion]:
    """Sessions that wait for rows or tables which others hold: it looks like a slow disk, and storage is quiet."""
    found = []
    for host, source in servers(observed):
        signals = CauseSignals(observed)
        for track in waits(observed, host, source, "lock"):
            signals.add("sessions", f"{track.entity}: sessions wait for locks", track, at.WAITS)
        for track in observed.find("lock_wait_time_ns", source=source, host=host):
            signals.add(
                "sessions", f"{track.entity}: time that sessions wait for locks, in each second", track, at.LOCK_TIME
            )
        for track in observed.find("row_lock_time_ns", source=source, host=host):
            signals.add(
                "sessions", f"{track.entity}: time that sessions wait for rows, in each second", track, at.LOCK_TIME
            )
        for track in observed.find("lock_waiting_count", source=source, host=host):
            waiting = _filled(observed, track)
            words = f"{track.entity}: sessions wait for locks on it"
            signals.add("table", words, waiting, at.LOCK_WAITING, entity=track.entity, host=host)
        for track in observed.find("row_lock_latency_mean_ns", source=source, host=host):
            signals.add("latency", f"{track.entity}: a row's lock takes", track, at.ROW_LOCK_LATENCY)
        quiet = _storage_is_quiet(observed, host, source)
        if quiet is not None and any(one.of == "sessions" for one in signals.found):
            signals.add_where("storage", f"{host}: storage is quiet meanwhile", quiet)
        found.append(
            signals.agree(
                "lock-wait",
                resource="disk",
                needs=("sessions",),
                advice="Find the transaction that holds the lock (pg_blocking_pids, INNODB_TRX, sys.dm_tran_locks):"
                " shorten it, order its updates, spread the hot row or partition the table; storage has nothing to"
                " do with it.",
                against=["Storage is busy meanwhile, and locks are held for as long as I/Os take."],
                explains=("throttled-queue", "latch-wait"),
                notes=_tables(observed, host, source),
            )
        )
    return those(*found)


def _filled(observed: Observations, track: Track) -> Numbers:
    """Sessions that wait at each step: a step without a row has none."""
    return smooth(np.where(observed.counted, np.nan_to_num(track.values), np.nan))


def _tables(observed: Observations, host: str, source: str) -> list[str]:
    tracks = observed.find("lock_waiting_count", source=source, host=host)
    ordered = sorted(tracks, key=lambda one: -float(np.nansum(one.values)))
    return [f"most wait for {one.entity}" for one in ordered[:1]]


def _storage_is_quiet(observed: Observations, host: str, source: str) -> Flags | None:
    """Steps in which devices have little to do and sessions do not wait for them; None where that is not recorded."""
    queues = devices(observed, "queue_mean_count", host)
    io_waits = waits(observed, host, source, "io")
    if not queues and not io_waits:
        return None
    quiet = np.ones(observed.steps, dtype=bool)
    if queues:
        quiet &= np.nan_to_num(observed.largest_of(queues)) < at.QUEUE.value  # type: ignore[arg-type]
    for track in io_waits:
        quiet &= np.nan_to_num(track.values) < QUIET
    return quiet


def latch_wait(observed: Observations) -> list[Suspicion]:
    """Sessions that wait for pages or structures in memory, with processors to spare and storage quiet."""
    found = []
    for host, source in servers(observed):
        signals = CauseSignals(observed)
        for track in waits(observed, host, source, "lwlock"):
            signals.add("sessions", f"{track.entity}: sessions wait for latches", track, at.WAITS)
        for track in observed.find("latch_wait_time_ns", source=source, host=host):
            signals.add(
                "sessions", f"{track.entity}: time that sessions wait for latches, in each second", track, at.LOCK_TIME
            )
        for track in observed.find("latch_latency_mean_ns", source=source, host=host):
            signals.add("latency", f"{track.entity}: a latch takes", track, at.LATCH_LATENCY)
        for track in observed.find("latch_waits_count", source=source, host=host):
            signals.add("count", f"{track.entity}: latches are waited for", track, at.EXTENSIONS)
        quiet = _storage_is_quiet(observed, host, source)
        if quiet is not None and any(one.of == "sessions" for one in signals.found):
            signals.add_where("storage", f"{host}: storage is quiet meanwhile", quiet)
        found.append(
            signals.agree(
                "latch-wait",
                resource="memory",
                needs=("sessions",) if any(one.of == "sessions" for one in signals.found) else ("latency",),
                advice="Find the page or structure (wait_event, sys.dm_os_waiting_tasks): partition the hot table or"
                " index, spread inserts, give tempdb more files.",
                against=["Processors are full: then who holds the latch waits for a processor."],
                explains=("throttled-queue",),
            )
        )
    return those(*found)


def checkpoint_storm(observed: Observations) -> list[Suspicion]:
    """Checkpoints that come often or write much, and response times that suffer while they do."""
    found = []
    for host, source in servers(observed):
        signals = CauseSignals(observed)
        for track in observed.find("checkpoints_count", source=source, host=host):
            rate = smooth(track.values * 60.0, observed.steps_of(60))
            signals.add("frequency", f"{track.entity}: checkpoints a minute", rate, at.CHECKPOINTS)
        for track in observed.find("checkpoint_written_bytes", source=source, host=host):
            bursts = _bursts(track)
            if bursts is None:
                continue
            total = observed.sum_of(devices(observed, "write_bytes", host))
            if total is not None:
                share = np.where(total >= MIB, np.minimum(track.values / total, 1.0), np.nan)
                signals.add(
                    "writes", f"{track.entity}: of the bytes written are a checkpoint's", share, at.CHECKPOINT_SHARE
                )
            add_slower(signals, host, bursts, "a checkpoint writes")
        for pages in observed.find("log_full_pages_count", source=source, host=host):
            log = observed.of(pages, "log_bytes")
            if log is not None:
                share = np.where(log.values >= MIB, np.minimum(pages.values * PAGE_BYTES / log.values, 1.0), np.nan)
                words = f"{pages.entity}: of the log's bytes are whole pages, as after each checkpoint"
                signals.add("full-pages", words, share, at.FULL_PAGES)
        found.append(_storm(signals))
    found.append(_storm(_bursts_of_load(observed)))
    return those(*found)


def _storm(signals: CauseSignals) -> Suspicion | None:
    return signals.agree(
        "checkpoint-storm",
        resource="disk",
        needs=("frequency",) if any(one.of == "frequency" for one in signals.found) else ("latency",),
        advice="Let checkpoints come more rarely and take longer: max_wal_size, checkpoint_timeout,"
        " checkpoint_completion_target; innodb_redo_log_capacity, innodb_io_capacity; indirect checkpoints"
        " (TARGET_RECOVERY_TIME).",
        against=["Response times are as long between checkpoints as during them."],
        explains=("slow-disk", "log-flush", "full-cache"),
    )


def _bursts_of_load(observed: Observations) -> CauseSignals:
    """Checkpoints that a load imitates: reads during them against reads between."""
    signals = CauseSignals(observed)
    ratio = np.full(observed.steps, np.nan)
    frequency = np.full(observed.steps, np.nan)
    for window in observed.windows:
        told = bursts_of(window.point)
        during, between = (
            side["latency_ns"].get("mean") if side else None
            for side in (told.get("read_during"), told.get("read_between"))
        )
        if during and between:
            ratio[window.steps] = during / between
        count, measured_s = told.get("count"), window.point.get("measured_s")
        if count and measured_s:
            frequency[window.steps] = 60.0 * float(count) / float(measured_s)
    signals.add("latency", "reads during checkpoints, over those between", ratio, at.HALF_MORE)
    signals.add("frequency", "checkpoints a minute", frequency, at.CHECKPOINTS)
    return signals


def _bursts(track: Track) -> Flags | None:
    """Steps in which most is written; None where it is written all the time alike."""
    known = track.values[np.isfinite(track.values)]
    if known.size < 2 * SAMPLES_MIN or np.nanmax(known) <= 0:
        return None
    level = max(float(np.median(known)) * 2.0, float(np.max(known)) / 4.0)
    bursts = track.above(level)
    return bursts if SAMPLES_MIN <= bursts.sum() <= 0.8 * known.size else None


def file_growth(observed: Observations) -> list[Suspicion]:
    """Files that grow in small steps, for which sessions wait."""
    found = []
    for host, source in servers(observed):
        signals = CauseSignals(observed)
        for metric in ("log_growths_total_count", "file_growths_count"):
            for track in observed.find(metric, source=source, host=host):
                grown = np.diff(track.values, prepend=track.values[:1])
                recent = (
                    smooth(
                        np.where(np.isfinite(track.values), (grown > 0).astype(np.float64), np.nan),
                        observed.steps_of(60),
                    )
                    > 0
                )
                signals.add_where("growth", f"{track.entity}: its log file grows", recent, entity=track.entity)
        for track in observed.find("log_used_share", source=source, host=host):
            signals.add("full", f"{track.entity}: of its log file is in use", track, at.LOG_USED)
        for track in observed.find("extends_count", source=source, host=host):
            signals.add("growth", f"{track.entity}: files are extended", track, at.EXTENSIONS)
        for track in observed.find("extend_time_ns", source=source, host=host):
            signals.add(
                "time", f"{track.entity}: time that extending takes, in each second", track.values / SECOND_NS, at.WAITS
            )
        for track in waits(observed, host, source, "extend"):
            signals.add("waits", f"{track.entity}: sessions wait for a file to grow", track, at.WAITS)
        for track in observed.find("log_wait_time_ns", source=source, host=host):
            signals.add("waits", f"{track.entity}: sessions wait for the log", track.values / SECOND_NS, at.WAITS)
        for metric in ("log_flush_latency_mean_ns", "log_wait_mean_ns"):
            for track in observed.find(metric, source=source, host=host):
                signals.add("latency", f"{track.entity}: a log flush takes", track, at.LOG_LATENCY, strong=True)
        found.append(
            signals.agree(
                "file-growth",
                resource="disk",
                needs=("growth",),
                advice="Size files beforehand and let them grow in large steps (FILEGROWTH in MB with instant file"
                " initialisation; load in fewer, larger batches; innodb_autoextend_increment).",
                against=["Files keep their size while sessions wait."],
                explains=("log-flush", "lock-wait", "slow-disk", "checkpoint-storm"),
            )
        )
    return those(*found)


def backup_or_vacuum(observed: Observations) -> list[Suspicion]:
    """A backup or vacuum at work, and response times or devices that feel it."""
    found = []
    for host, source in servers(observed):
        signals = CauseSignals(observed)
        for metric, what in (("backups_running_count", "a backup runs"), ("vacuums_running_count", "a vacuum runs")):
            for track in observed.find(metric, source=source, host=host):
                # Asked at one moment of each step: what was seen a moment before and after ran meanwhile, too.
                active = np.nan_to_num(_filled(observed, track)) > 0
                if signals.add_where("activity", f"{track.entity}: {what}", active, entity=track.entity, host=host):
                    add_slower(signals, host, active, what)
                    _more_bytes(signals, observed, host, active, what)
        for queue in devices(observed, "queue_mean_count", host):
            signals.add("queue", f"{queue.entity}: I/Os queue", queue, at.QUEUE)
        add_pressure(signals, host)
        found.append(
            signals.agree(
                "backup-or-vacuum",
                resource="disk",
                needs=("activity",),
                advice="Move it to a quiet hour, or slow it down (pg_basebackup --max-rate, vacuum_cost_limit), or"
                " let it read from a standby or a snapshot.",
                against=["Response times are as long when nothing of it runs."],
                explains=("slow-disk", "noisy-neighbour", "log-flush", "cache-too-small", "throttled-queue"),
            )
        )
    return those(*found)


def _more_bytes(signals: CauseSignals, observed: Observations, host: str, active: Flags, what: str) -> None:
    total = device_bytes(observed, host)
    if total is None:
        return
    apart = total[~active & np.isfinite(total)]
    if apart.size >= SAMPLES_MIN:
        usual = max(float(np.median(apart)), MIB)
        words = f"{host}: bytes of the devices, as a multiple of those when not, while {what}"
        signals.add("bytes", words, total / usual, at.TWICE, where=active)


CAUSES = (
    Cause(
        name="lock-wait",
        sources=DATABASES,
        title="Sessions wait for locks",
        needs="waits of sessions, better with the tables",
        find=lock_wait,
    ),
    Cause(
        name="latch-wait",
        sources=DATABASES,
        title="Sessions wait for latches",
        needs="waits of sessions, or latch counters",
        find=latch_wait,
    ),
    Cause(
        name="backup-or-vacuum",
        sources=DATABASES,
        title="A backup or vacuum is in the way",
        needs="what a database says it is doing",
        find=backup_or_vacuum,
    ),
    Cause(
        name="file-growth",
        sources=DATABASES,
        title="Files grow in small steps",
        needs="growths or extensions of files",
        find=file_growth,
    ),
    Cause(
        name="checkpoint-storm",
        sources=DATABASES,
        title="Checkpoints come in storms",
        needs="checkpoints of a database, or of the load",
        find=checkpoint_storm,
    ),
    Cause(
        name="log-flush",
        sources=DATABASES,
        title="Commits wait for the log",
        needs="times of log flushes, and waits or roles",
        find=log_flush,
    ),
)
