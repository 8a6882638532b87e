"""What was measured as a need: a table of its load, and the gap between raw profile and database."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from assay.base.errors import UsageError
from assay.base.tables import TableValue
from assay.base.units import count_of
from assay.insight.sizing.measured import MeasuredDemand, is_scanned
from assay.insight.studies.raw_gap import gap_shares
from assay.record.run_folder import RunFolder


def table_of(measured: MeasuredDemand, table: Mapping[str, TableValue] | None) -> dict[str, TableValue]:
    """A need's table with what was measured: one of its own, or a stated one whose database takes the measured load.

    Raises
    ------
    UsageError
        Nothing says how large the data are, or the stated need has other than one database.
    """
    made: dict[str, TableValue] = dict(table or {"title": f"Measured: {measured.source}"})
    given = made.get("database", [{}])
    databases = [dict(one) for one in given if isinstance(one, Mapping)] if isinstance(given, list | tuple) else []
    if len(databases) != 1:
        raise UsageError(
            f"--from {measured.source}: the need has {count_of(len(databases), 'database')}; give one, whose load is"
            " then the measured one"
        )
    database = databases[0]
    for key in ("iops", "transactions", "ios_per_transaction"):
        database.pop(key, None)
    data, log = measured.roles.get("data"), measured.roles.get("log")
    total = sum(one.iops for one in measured.roles.values())
    database.setdefault("name", "measured")
    if data is not None and is_scanned(data):
        database |= {"scan": f"{data.bytes_per_s:.0f}B/s", "scan_block": f"{data.block_bytes}B"}
        if log is not None:
            database |= {"iops": log.iops, "log": "100%"}
    else:
        database |= {"iops": total, "log": f"{(log.iops if log else 0.0) / total * 100:.4f}%"}
        if data is not None:
            database |= {"block": f"{data.block_bytes}B", "read": f"{data.read_share * 100:.4f}%"}
    if log is not None:
        database["log_block"] = f"{log.block_bytes}B"
    if measured.transactions_per_s and "scan" not in database:
        database |= {"transactions": measured.transactions_per_s,
                     "ios_per_transaction": total / measured.transactions_per_s}  # fmt: skip
        del database["iops"]
    if "size" not in database:
        if measured.size_bytes is None:
            raise UsageError(
                f"--from {measured.source}: does not say how large the data are; give a need with a [[database]] and"
                " its size, too"
            )
        database["size"] = f"{measured.size_bytes}B"
    if measured.growth is not None and measured.growth > 0:
        database.setdefault("growth", f"{min(measured.growth, 99) * 100:.2f}%")
    if measured.spread is not None:
        made.setdefault("spread", f"{measured.spread * 100:.2f}%")
    if measured.cpu_per_transaction_s and measured.cores:
        stated_server = made.get("server", {})
        server = dict(stated_server) if isinstance(stated_server, Mapping) else {}
        server.setdefault("cpu_per_transaction", f"{measured.cpu_per_transaction_s * 1e6:.3f}us")
        server.setdefault("cores", measured.cores)
        made["server"] = server
    made["database"] = [database]
    return made


def derating_of(path: Path) -> list[tuple[tuple[str, str], str, str]]:
    """What a run of a study of raw profile against database says: keys of a need, values, and where they are from.

    Raises
    ------
    UsageError
        It is no such run, or it found no gap.
    """
    manifest = RunFolder.open(path).manifest
    gaps = (manifest.get("study") or {}).get("gaps") or []
    shares = gap_shares(gaps)
    if not shares:
        raise UsageError(
            f"--derating {path}: has no gap between raw profile and database; give a run of"
            " `assay study run raw-vs-database`"
        )
    found = []
    for in_order, each in shares.items():
        key = "derating_scans" if in_order else "derating_transactions"
        share = min(max(fmean(each), 0.0), 0.94)
        repeats = f", mean of {len(each)} repeats" if len(each) > 1 else ""
        found.append((("rules", key), f"{share * 100:.2f}%", f"measured: run {path.name}{repeats}"))
    return found
