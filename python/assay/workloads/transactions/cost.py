"""What a transaction cost the storage: by the server's own count where there is one, and what devices did beyond it."""

from __future__ import annotations

from typing import NamedTuple

from assay.base.units import format_bytes
from assay.document.text import joined
from assay.workloads.databases.shapes import Storage

BEYOND_LEAST = 0.05
"""What devices moved beyond the server's count is told from this share of theirs on: less is rounding of sectors."""


class Cost(NamedTuple):
    """Bytes of a transaction in one direction: of the server or, where it counts none, of the devices."""

    own: float | None
    beyond: float = 0.0
    is_counted: bool = False


def costs_of(storage: Storage) -> dict[str, Cost]:
    """Costs of a transaction, `read` and `written`; the server counts writes of its log apart from others."""
    each, database = _per_rate(storage), storage.get("database") or {}
    devices = storage.get("bytes_from") != "databases" and storage.get("devices")
    found = {}
    for name, seen, rate in (
        ("read", storage.get("read_bytes_per_transaction"), database.get("read_bytes_per_s")),
        ("written", storage.get("written_bytes_per_transaction"), database.get("write_bytes_per_s")),
    ):
        counted = database.get(f"{name}_bytes_per_transaction")
        if counted is None and rate is not None and each is not None:
            # Runs of before say the server's rates alone.
            counted = rate * each
        if not devices or seen is None or counted is None:
            found[name] = Cost(seen)
            continue
        # What a page cache answered reached no device.
        own = min(counted, seen) if name == "read" else counted
        log = (storage.get("log_bytes_per_transaction") or 0.0) if name == "written" else 0.0
        beyond = seen - own - log
        found[name] = Cost(own, beyond if beyond >= BEYOND_LEAST * seen else 0.0, is_counted=True)
    return found


def _per_rate(storage: Storage) -> float | None:
    """Seconds of the window for each transaction: any of its costs over the rate of the same bytes."""
    database = storage.get("database") or {}
    devices = storage.get("devices") or []
    pairs = (
        (storage.get("log_bytes_per_transaction"), database.get("log_bytes_per_s")),
        (storage.get("read_bytes_per_transaction"), sum(one.get("read_bytes_per_s") or 0.0 for one in devices)),
        (storage.get("written_bytes_per_transaction"), sum(one.get("write_bytes_per_s") or 0.0 for one in devices)),
    )
    return next((cost / rate for cost, rate in pairs if cost and rate), None)


def cost_words(storage: Storage) -> str:
    """What a transaction read, wrote and caused of log, as a clause that names whose count it is; empty if unknown."""
    costs, log = costs_of(storage), storage.get("log_bytes_per_transaction")
    words = [
        f"{verb} {format_bytes(bytes_each)}{what}"
        for verb, bytes_each, what in (
            ("read", costs["read"].own, ""), ("wrote", costs["written"].own, ""), ("caused", log, " of log")
        )
        if bytes_each is not None
    ]  # fmt: skip
    if not words or not any(one.is_counted for one in costs.values()):
        return joined(words)
    beyond = [
        f"{verb} {format_bytes(one.beyond)}"
        for verb, one in (("read", costs["read"]), ("wrote", costs["written"]))
        if one.beyond
    ]
    more = f"; for each, the devices {joined(beyond)} beyond that, for other programs and the file system"
    return f"{joined(words)}, as the server counts{more if beyond else ''}"
