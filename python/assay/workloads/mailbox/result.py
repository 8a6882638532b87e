"""What a load of mailboxes, a backup or a recovery did, as points and manifests say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.workloads.mailbox.layout import PlacedDatabase, layout_meant
from assay.workloads.mailbox.plan import MailboxPlan

Record = Mapping[str, Any]

PEAK_WINDOW_S = 15.0
"""Maxima are the highest mean of any window of this length."""

EXPECTED = {"read_write": (1.5, 2.0), "database_log": (8.0, 12.0), "log_write_bytes": (6144.0, 8192.0)}
"""Where tuning of such tests aims (docs/mailbox.md): 3:2 to 2:1, 8:1 to 12:1, 6 to 8 KiB."""

ACTIVITIES = ("database", "log", "maintenance", "shipping", "replay", "backup", "recovery", "whole")
"""As the compiled core counts them (crates/mailbox/src/plan.rs)."""

OPERATIONS = {
    "insert": "inserts", "replace": "replaces", "delete": "deletes", "seek": "seeks", "split": "splits", "full": "full",
}  # fmt: skip

ACHIEVED_SHARE = 0.99
"""A target counts as achieved from here on: what is under way at the window's ends is no shortfall."""


def stream_name(database: str, activity: str) -> str:
    """What the compiled core calls I/O of a database."""
    return database if activity == "database" else f"{database} {activity}"


def peaks(ticks: Sequence[Record], from_tick: int, to_tick: int, interval_s: float) -> dict[tuple[int, str], float]:
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
                    by_tick[tick["tick"]] = before[0] + count, before[1] + count * tick[side]["mean_ns"]
    found = {}
    for key, by_tick in sums.items():
        highest = count = total = 0.0
        for end in range(from_tick, to_tick):
            one = by_tick.get(end, (0.0, 0.0))
            gone = by_tick.get(end - length, (0.0, 0.0)) if end - length >= from_tick else (0.0, 0.0)
            count, total = count + one[0] - gone[0], total + one[1] - gone[1]
            if count > 0.5 and end - from_tick + 1 >= length:
                highest = max(highest, total / count)
        found[key] = highest
    return found


def database_figures(
    placed: Sequence[PlacedDatabase], point: Record, highest: Mapping[tuple[int, str], float]
) -> list[dict[str, Any]]:
    """What each database did, of a point's streams."""
    streams = {volume["name"]: volume for volume in point["volumes"]}
    found = []
    for number, one in enumerate(placed):
        done: dict[str, Any] = {"name": one.name, "server": one.server, "passive": one.passive}
        for place, activity in enumerate(ACTIVITIES[:-1]):
            sides = streams.get(stream_name(one.name, activity)) or {}
            for side in ("read", "write"):
                peak = highest.get((number * len(ACTIVITIES) + place, side))
                told = _stream(sides.get(side), peak)
                if told is not None:
                    done[f"{activity}_{side}"] = told
        done["transactional_iops"] = _per_s(done, "database_read") + _per_s(done, "database_write")
        found.append(done)
    return found


def _stream(side: Record | None, peak: float | None) -> dict[str, Any] | None:
    if not side:
        return None
    return {
        "per_s": side["iops"],
        "bytes_mean": side["bytes_per_s"] / side["iops"] if side["iops"] else None,
        "latency_mean_ns": side["latency_ns"]["mean"],
        "latency_peak_ns": peak,
    }


def _per_s(done: Record, stream: str) -> float:
    found = done.get(stream) or {}
    return float(found.get("per_s") or 0.0)


def server_figures(plan: MailboxPlan, databases: Sequence[Record], target_iops: float) -> list[dict[str, Any]]:
    """What the databases of each server did together."""
    found = []
    for server in range(1, plan.servers + 1):
        own = [one for one in databases if one["server"] == server]
        kept = [one[key] for one in own for key in one if isinstance(one[key], dict)]
        share = 1 / plan.servers
        achieved = sum(one["transactional_iops"] for one in own)
        means = {
            f"{stream}_latency_mean_ns": _mean_latency(own, stream)
            for stream in ("database_read", "database_write", "log_write")
        }
        found.append(
            {
                "name": f"server{server}",
                "mailboxes": round(plan.mailboxes * share),
                "target_iops": target_iops * share,
                "transactional_iops": achieved,
                **means,
                "total_iops": sum(stream["per_s"] for stream in kept),
                "bytes_per_s": sum(stream["per_s"] * (stream["bytes_mean"] or 0) for stream in kept),
                "passed": None,
            }
        )
    return found


def _mean_latency(databases: Sequence[Record], stream: str) -> float | None:
    own = [one[stream] for one in databases if one.get(stream)]
    count = sum(one["per_s"] for one in own)
    return sum(one["per_s"] * one["latency_mean_ns"] for one in own) / count if count else None


def ratios(databases: Sequence[Record]) -> dict[str, Any]:
    """Ratios that came of the run, each with the range in which it is expected; reads of the log are left out."""
    active = [one for one in databases if not one["passive"]]
    reads, writes, log_writes = (
        sum(_per_s(one, stream) for one in active) for stream in ("database_read", "database_write", "log_write")
    )
    log_bytes = sum(_per_s(one, "log_write") * ((one.get("log_write") or {}).get("bytes_mean") or 0) for one in active)
    values = {
        "read_write": reads / writes if writes else None,
        "database_log": (reads + writes) / log_writes if log_writes else None,
        "log_write_bytes": log_bytes / log_writes if log_writes else None,
    }
    return {name: {"value": value, "expected": list(EXPECTED[name])} for name, value in values.items()}


def operations(before: Sequence[Record], after: Sequence[Record]) -> dict[str, int]:
    """Operations of all databases between two reports of the core."""
    return {
        name: sum(later[key] - earlier[key] for earlier, later in zip(before, after, strict=True))
        for name, key in OPERATIONS.items()
    }


def has_achieved(achieved_iops: float | None, target_iops: float) -> bool:
    """Whether a target was achieved."""
    return achieved_iops is not None and achieved_iops >= ACHIEVED_SHARE * target_iops


def server_passed(plan: MailboxPlan, server: Record) -> bool:
    """Whether a server achieved its target within the mean latencies."""
    criteria = plan.criteria
    latencies = {
        "database_read_latency_mean_ns": criteria.read_mean_s,
        "database_write_latency_mean_ns": criteria.write_mean_s,
        "log_write_latency_mean_ns": criteria.log_write_mean_s,
    }
    within = all((server[name] or 0) <= seconds * 1e9 for name, seconds in latencies.items())
    return within and has_achieved(server["transactional_iops"], server["target_iops"])


def profile(plan: MailboxPlan, placed: Sequence[PlacedDatabase], cache_bytes: int) -> dict[str, Any]:
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
