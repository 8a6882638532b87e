"""What a load of mailboxes, a backup or a recovery did, as points and manifests say it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from assay.record.judgement import rate_reaches, together
from assay.workloads.mailbox.layout import PlacedDatabase, layout_meant
from assay.workloads.mailbox.plan import MailboxPlan
from assay.workloads.mailbox.shapes import (
    DatabaseDone,
    Operations,
    Profile,
    Ratio,
    Ratios,
    ServerDone,
    Stream,
    StreamName,
)

if TYPE_CHECKING:
    from assay.measure.core_reports import CoreFigures, CoreTick
    from assay.record.shapes.point import Direction, Sides
    from assay.workloads.mailbox.core_report import DatabaseCounts

PEAK_WINDOW_S = 15.0
"""Maxima are the highest mean of any window of this length."""

EXPECTED = {"read_write": (1.5, 2.0), "database_log": (8.0, 12.0), "log_write_bytes": (6144.0, 8192.0)}
"""Where tuning of such tests aims (docs/mailbox.md): 3:2 to 2:1, 8:1 to 12:1, 6 to 8 KiB."""

ACTIVITIES = ("database", "log", "maintenance", "shipping", "replay", "backup", "recovery", "whole")
"""As the compiled core counts them (crates/mailbox/src/plan.rs)."""

STREAMS: tuple[tuple[StreamName, StreamName], ...] = (
    ("database_read", "database_write"),
    ("log_read", "log_write"),
    ("maintenance_read", "maintenance_write"),
    ("shipping_read", "shipping_write"),
    ("replay_read", "replay_write"),
    ("backup_read", "backup_write"),
    ("recovery_read", "recovery_write"),
)
"""Keys of reads and writes of each activity but the last, which verifies."""

ACHIEVED_SHARE = 0.99
"""A target counts as achieved from here on: what is under way at the window's ends is no shortfall."""
AIMED_SHARE = 1.005
"""What the load aims at (crates/mailbox/src/users/mailboxes.rs)."""


def stream_name(database: str, activity: str) -> str:
    """What the compiled core calls I/O of a database."""
    return database if activity == "database" else f"{database} {activity}"


def peaks(ticks: Sequence[CoreTick], from_tick: int, to_tick: int, interval_s: float) -> dict[tuple[int, str], float]:
    """The highest mean latency of any `PEAK_WINDOW_S` of a window, by the core's number of a stream and direction.

    Windows begin at every tick; one that is shorter than they are is judged as a whole.
    """
    length = max(min(round(PEAK_WINDOW_S / interval_s), to_tick - from_tick), 1)
    sums: dict[tuple[int, str], dict[int, tuple[float, float]]] = {}
    for tick in ticks:
        if from_tick <= tick["tick"] < to_tick:
            for side in ("read", "write"):
                count = tick[side]["count"]
                if count:
                    by_tick = sums.setdefault((tick["volume"], side), {})
                    before = by_tick.get(tick["tick"], (0.0, 0.0))
                    by_tick[tick["tick"]] = before[0] + count, before[1] + count * (tick[side]["mean_ns"] or 0.0)
    found = {}
    for key, by_tick in sums.items():
        highest = ended = total = 0.0
        for end in range(from_tick, to_tick):
            one = by_tick.get(end, (0.0, 0.0))
            gone = by_tick.get(end - length, (0.0, 0.0)) if end - length >= from_tick else (0.0, 0.0)
            ended, total = ended + one[0] - gone[0], total + one[1] - gone[1]
            if ended > 0.5 and end - from_tick + 1 >= length:
                highest = max(highest, total / ended)
        found[key] = highest
    return found


def database_figures(
    placed: Sequence[PlacedDatabase], point: CoreFigures, highest: Mapping[tuple[int, str], float]
) -> list[DatabaseDone]:
    """What each database did, of a point's streams."""
    streams = {volume["name"]: volume for volume in point["volumes"]}
    found = []
    for number, one in enumerate(placed):
        done: DatabaseDone = {"name": one.name, "server": one.server, "passive": one.passive}
        for place, (activity, names) in enumerate(zip(ACTIVITIES, STREAMS, strict=False)):
            sides: Sides = streams.get(stream_name(one.name, activity)) or {}
            own = number * len(ACTIVITIES) + place
            read = _stream(sides.get("read"), highest.get((own, "read")))
            if read is not None:
                done[names[0]] = read
            write = _stream(sides.get("write"), highest.get((own, "write")))
            if write is not None:
                done[names[1]] = write
        done["transactional_iops"] = _per_s(done, "database_read") + _per_s(done, "database_write")
        found.append(done)
    return found


def _stream(side: Direction | None, peak: float | None) -> Stream | None:
    if not side:
        return None
    return {
        "per_s": side["iops"],
        "bytes_mean": side["bytes_per_s"] / side["iops"] if side["iops"] else None,
        "latency_mean_ns": side["latency_ns"]["mean"],
        "latency_peak_ns": peak,
    }


def _per_s(done: DatabaseDone, stream: StreamName) -> float:
    found: Stream = done.get(stream) or {}
    return float(found.get("per_s") or 0.0)


def server_figures(
    plan: MailboxPlan, databases: Sequence[DatabaseDone], target_iops: float, mailboxes: int
) -> list[ServerDone]:
    """What the databases of each server did together, for the mailboxes that ask for so much."""
    found: list[ServerDone] = []
    for server in range(1, plan.servers + 1):
        own = [one for one in databases if one["server"] == server]
        kept = [stream for one in own for names in STREAMS for name in names if (stream := one.get(name))]
        share = 1 / plan.servers
        achieved = sum(one["transactional_iops"] or 0.0 for one in own)
        found.append(
            {
                "name": f"server{server}",
                "mailboxes": round(mailboxes * share),
                "target_iops": target_iops * share,
                "transactional_iops": achieved,
                "database_read_latency_mean_ns": _mean_latency(own, "database_read"),
                "database_write_latency_mean_ns": _mean_latency(own, "database_write"),
                "log_write_latency_mean_ns": _mean_latency(own, "log_write"),
                "total_iops": sum(stream["per_s"] or 0.0 for stream in kept),
                "bytes_per_s": sum((stream["per_s"] or 0.0) * (stream["bytes_mean"] or 0) for stream in kept),
                "passed": None,
            }
        )
    return found


def _mean_latency(databases: Sequence[DatabaseDone], name: StreamName) -> float | None:
    own = [stream for one in databases if (stream := one.get(name))]
    count = sum(one["per_s"] or 0.0 for one in own)
    return sum((one["per_s"] or 0.0) * (one["latency_mean_ns"] or 0.0) for one in own) / count if count else None


def ratios(databases: Sequence[DatabaseDone]) -> Ratios:
    """Ratios that came of the run, each with the range in which it is expected; reads of the log are left out."""
    active = [one for one in databases if not one["passive"]]
    reads, writes, log_writes = (
        sum(_per_s(one, stream) for one in active) for stream in ("database_read", "database_write", "log_write")
    )
    log_bytes = sum(_per_s(one, "log_write") * ((one.get("log_write") or {}).get("bytes_mean") or 0) for one in active)
    return {
        "read_write": _ratio("read_write", reads / writes if writes else None),
        "database_log": _ratio("database_log", (reads + writes) / log_writes if log_writes else None),
        "log_write_bytes": _ratio("log_write_bytes", log_bytes / log_writes if log_writes else None),
    }


def _ratio(name: str, value: float | None) -> Ratio:
    return {"value": value, "expected": list(EXPECTED[name])}


def operations(before: Sequence[DatabaseCounts], after: Sequence[DatabaseCounts]) -> Operations:
    """Operations of all databases between two reports of the core."""
    pairs = list(zip(before, after, strict=True))
    return {
        "insert": sum(later["inserts"] - earlier["inserts"] for earlier, later in pairs),
        "replace": sum(later["replaces"] - earlier["replaces"] for earlier, later in pairs),
        "delete": sum(later["deletes"] - earlier["deletes"] for earlier, later in pairs),
        "seek": sum(later["seeks"] - earlier["seeks"] for earlier, later in pairs),
        "split": sum(later["splits"] - earlier["splits"] for earlier, later in pairs),
        "full": sum(later["full"] - earlier["full"] for earlier, later in pairs),
    }


def half_width_iops(achieved_iops: float, seconds: float) -> float:
    """Half of the 95 % interval of a rate whose I/Os arrive as a Poisson process: that of their count."""
    return 1.96 * math.sqrt(achieved_iops / seconds)


def has_achieved(achieved_iops: float | None, target_iops: float, seconds: float) -> bool | None:
    """Whether a target was achieved; None where chance alone may have decided.

    Examples
    --------
    >>> has_achieved(201.0, 200.0, 7200.0), has_achieved(201.0, 200.0, 5.0), has_achieved(150.0, 200.0, 60.0)
    (True, None, False)
    """
    achieved = achieved_iops or 0.0
    return rate_reaches(achieved, ACHIEVED_SHARE * target_iops, half_width_iops(achieved, seconds))


def seconds_to_decide(target_iops: float) -> float:
    """How long a load is measured at least until chance no longer decides: it aims `AIMED_SHARE` at the target."""
    aimed = AIMED_SHARE * target_iops
    return aimed * (1.96 / (aimed - ACHIEVED_SHARE * target_iops)) ** 2


def server_passed(plan: MailboxPlan, server: ServerDone) -> bool | None:
    """Whether a server achieved its target within the mean latencies; None where chance may have decided."""
    criteria = plan.criteria
    latencies = (
        (server["database_read_latency_mean_ns"], criteria.read_mean_s),
        (server["database_write_latency_mean_ns"], criteria.write_mean_s),
        (server["log_write_latency_mean_ns"], criteria.log_write_mean_s),
    )
    within = all((mean_ns or 0) <= seconds * 1e9 for mean_ns, seconds in latencies)
    achieved = has_achieved(server["transactional_iops"], server["target_iops"] or 0.0, plan.measured_s)
    return together((within, achieved))


def profile(plan: MailboxPlan, placed: Sequence[PlacedDatabase], cache_bytes: int) -> Profile:
    """What was asked, as reports of such tests head it."""
    return {
        "mailboxes": plan.mailboxes,
        "iops_per_mailbox": plan.iops_per_mailbox,
        "mailbox_size_bytes": plan.mailbox_size_bytes,
        "servers": plan.servers,
        "databases": plan.databases,
        "passive": plan.passive,
        "copies": plan.copies,
        "layout": layout_meant(plan, placed),
        "page_bytes": plan.page_bytes,
        "cache_bytes": cache_bytes,
        "database_bytes": plan.database_bytes,
        "log_bytes": plan.log_bytes,
        "log_file_bytes": plan.log_file_bytes,
        "checkpoint_depth_bytes": plan.depth_bytes,
        "maintenance_bytes_per_s": plan.maintenance_bytes_per_s,
        "backup_streams": plan.backup_streams,
        "insert_share": plan.mix.insert,
        "replace_share": plan.mix.replace,
        "delete_share": plan.mix.delete,
        "seek_share": plan.mix.seek,
        "lazy_share": plan.mix.lazy,
        "measured_s": plan.measured_s,
    }
