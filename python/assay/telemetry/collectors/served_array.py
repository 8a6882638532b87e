"""What a served array tells of itself each second: volumes, hosts, members or data nodes, disks, how late answers left.

Source: `crates/array-live`, the command `counters`. Times of volumes are the model's; lateness is what this host added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from assay.telemetry.columns import Reading

if TYPE_CHECKING:
    from assay.targets.arrays.live.events import ArrayCommand

State = Mapping[str, Any]


class ServedArrayCollector:
    """Counters of one array.

    Parameters
    ----------
    ask
        Has a command carried out and returns the answer.
    roles
        Role of each volume.
    prefix
        Stands before all names, where a run has several arrays.
    """

    name = "array"
    tier = "storage"
    source = "array"

    def __init__(self, ask: Callable[[ArrayCommand], Any], roles: Mapping[str, str], *, prefix: str = "") -> None:
        self._ask, self._roles, self._prefix = ask, roles, prefix

    def sample(self) -> State:
        """Ask for the counters.

        Raises
        ------
        AssayError
            The array is gone.
        """
        found: State = self._ask({"command": "counters"})
        return found

    def readings(self, before: State, after: State, interval_ns: int) -> Iterator[Reading]:
        """Values of the interval between two samples."""
        for reading in self._own(before, after, interval_ns):
            yield reading._replace(entity=f"{self._prefix}{reading.entity}")

    def _own(self, before: State, after: State, interval_ns: int) -> Iterator[Reading]:
        for old, new in zip(before["volumes"], after["volumes"], strict=True):
            role = self._roles.get(new["name"], "data")
            yield from _volume(f"volume/{new['name']}", old["served"], new["served"], role)
        for old, new in zip(before["members"], after["members"], strict=False):
            yield from _member(old, new, interval_ns)
        for old, new in zip(before.get("hosts", ()), after.get("hosts", ()), strict=True):
            yield from _host(old, new)
        for old, new in zip(before.get("gates", ()), after.get("gates", ()), strict=True):
            yield from _gate(old, new, interval_ns)
        yield from _whole(before, after)

    def close(self) -> None:
        """Nothing is held."""


def _volume(entity: str, old: State, new: State, role: str) -> Iterator[Reading]:
    for side in ("read", "write"):
        count = new[f"{side}s"] - old[f"{side}s"]
        yield Reading(entity, f"{side}_ios_count", "delta", float(count), role)
        yield Reading(entity, f"{side}_bytes", "delta", float(new[f"{side}_bytes"] - old[f"{side}_bytes"]), role)
        if count:
            mean_ns = (new[f"{side}_ns"] - old[f"{side}_ns"]) / count
            yield Reading(entity, f"{side}_latency_mean_ns", "gauge", mean_ns, role)
    yield Reading(entity, "flush_ios_count", "delta", float(new["flushes"] - old["flushes"]), role)
    yield Reading(entity, "error_count", "delta", float(new["errors"] - old["errors"]), role)


def _member(old: State, new: State, interval_ns: int) -> Iterator[Reading]:
    entity = new["name"]
    for metric in ("written_bytes", "destaged_bytes", "rebuilt_bytes"):
        # A rebuild that begins counts from nothing.
        yield Reading(entity, metric, "delta", float(max(new[metric] - old[metric], 0)))
    reads, hits = new["reads"] - old["reads"], new["read_hits"] - old["read_hits"]
    yield Reading(entity, "read_ios_count", "delta", float(reads))
    if reads > 0:
        yield Reading(entity, "read_hit_share", "gauge", hits / reads)
    yield Reading(entity, "dirty_bytes", "gauge", float(new["dirty_bytes"]))
    if "lost_chunks" in new:
        yield Reading(entity, "lost_chunks_count", "gauge", float(new["lost_chunks"]))
    missing = sum(disk["state"] != "present" for disk in new["disks"])
    yield Reading(entity, "degraded_count", "gauge", float(missing))
    shares = [disk["rebuilt_share"] for disk in new["disks"] if disk["rebuilt_share"] is not None]
    if shares:
        yield Reading(entity, "rebuilt_share", "gauge", min(shares))
    for before, after in zip(old["disks"], new["disks"], strict=True):
        for side in ("read", "write"):
            count = max(after[f"{side}s"] - before[f"{side}s"], 0)
            yield Reading(after["name"], f"{side}_ios_count", "delta", float(count))
        busy = max(after["busy_ns"] - before["busy_ns"], 0) / interval_ns
        yield Reading(after["name"], "busy_share", "gauge", min(busy, 1.0))
        yield from _flash(before, after, interval_ns)


def _flash(old: State, new: State, interval_ns: int) -> Iterator[Reading]:
    """What a drive of flash programmed, and the share of the time in which heat slowed it down."""
    programmed = new.get("programmed_bytes", 0) - old.get("programmed_bytes", 0)
    if programmed > 0:
        yield Reading(new["name"], "write_bytes", "delta", float(max(new["write_bytes"] - old["write_bytes"], 0)))
        yield Reading(new["name"], "programmed_bytes", "delta", float(programmed))
    if new.get("throttled_ns") is not None and old.get("throttled_ns") is not None:
        share = max(new["throttled_ns"] - old["throttled_ns"], 0) / interval_ns
        yield Reading(new["name"], "throttled_share", "gauge", min(share, 1.0))


def _host(old: State, new: State) -> Iterator[Reading]:
    """Reads of a host with flash, and how many found their blocks in its memory or flash."""
    reads = new["reads"] - old["reads"]
    yield Reading(new["name"], "read_ios_count", "delta", float(reads))
    if reads > 0:
        hits = sum(new[level] - old[level] for level in ("memory_hits", "flash_hits"))
        yield Reading(new["name"], "read_hit_share", "gauge", hits / reads)


def _gate(old: State, new: State, interval_ns: int) -> Iterator[Reading]:
    """Limits of a cloud's volume or machine, in the words of the providers' own metrics."""
    entity = new["name"] if new["name"] == "machine" else f"volume/{new['name']}"
    balances = {"iops": "burst_balance_share", "bandwidth": "bandwidth_balance_share"}
    for limit, balance in balances.items():
        exceeded = (new[limit]["exceeded_ns"] - old[limit]["exceeded_ns"]) / interval_ns
        yield Reading(entity, f"{limit}_exceeded_share", "gauge", min(max(exceeded, 0.0), 1.0))
        if new[limit]["balance_share"] is not None:
            yield Reading(entity, balance, "gauge", float(new[limit]["balance_share"]))
    # As the provider counts: in units, and merged. A volume has its reads and writes beside it.
    metric = "ios_count" if new["name"] == "machine" else "counted_ios_count"
    yield Reading(entity, metric, "delta", float(new["iops"]["passed"] - old["iops"]["passed"]))


def _whole(before: State, after: State) -> Iterator[Reading]:
    late, earlier = after["lateness"], before["lateness"]
    count = late["count"] - earlier["count"]
    if count > 0:
        yield Reading("array", "lateness_mean_ns", "gauge", (late["late_ns"] - earlier["late_ns"]) / count)
    overdriven = late["overdriven_s"] > earlier["overdriven_s"]
    yield Reading("array", "overdriven_share", "gauge", float(overdriven))
    yield Reading("array", "power_share", "gauge", float(after["power"]))
    if after.get("rebalance"):
        yield Reading("array", "rebalanced_share", "gauge", float(after["rebalance"]["moved_share"]))
    yield Reading("array", "volatile_bytes", "gauge", float(after["volatile_bytes"]))
    if "pool" in after:
        yield Reading("array", "lost_chunks_count", "gauge", float(after["pool"]["lost_blocks"]))
        yield Reading("array", "missing_pieces_count", "gauge", float(after["pool"]["missing_pieces"]))
