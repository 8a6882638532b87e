"""A need as it was measured: from a recording the busiest hours of a week, from a run the load of its busiest point."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from assay.base.errors import UsageError
from assay.base.units import count_of, format_duration
from assay.insight.diagnosis.inputs import sources_of
from assay.insight.diagnosis.observed import ObservedSource
from assay.insight.recording import HOUR_NS, SECOND_NS, DeviceRows, device_rows, hours_of, step_of, trends
from assay.record.rows import Rows, grouped
from assay.record.shapes.point import Point
from assay.record.shapes.sizing import Coverage, MeasuredLoad, MeasuredVolume
from assay.telemetry.importers.importer import Options
from assay.telemetry.importers.recording import parse_roles
from assay.workloads.databases.seen import seen_at
from assay.workloads.registry import workload_recorded
from assay.workloads.seen import SeenIo, block_of

WEEK_HOURS = 168
LEAST_S = 3600.0
"""Less than an hour has no busiest hours."""
HOUR_COVERED_SHARE = 0.5
"""An hour of the week counts as covered from this share of it on."""
SPREAD_LEAST = 0.05
SCAN_BYTES, SCAN_READS = 65536, 0.9
"""From this mean size and share of reads on a load is taken for scans: random I/O of databases is pages."""


@dataclass(frozen=True, kw_only=True)
class VolumeDemand:
    """What a device or all of a role did in the busiest hours: rates at the percentile, the rest as means."""

    name: str
    role: str
    iops: float
    bytes_per_s: float
    read_share: float
    block_bytes: int

    def facts(self) -> MeasuredVolume:
        """The volume as documents carry it."""
        return {
            "name": self.name, "role": self.role, "iops": self.iops, "bytes_per_s": self.bytes_per_s,
            "read_share": self.read_share, "block_bytes": self.block_bytes,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MeasuredDemand:
    """What was measured.

    Attributes
    ----------
    roles
        All volumes of a role together, by role.
    spread
        Standard deviation of the logarithm of the busiest hours' means.
    size_bytes, growth
        Of the data and a year; None where the source does not say.
    coverage
        How much of a week it covers, with `text`; None for a run, which is no week's load.
    """

    source: str
    percentile: float
    volumes: Sequence[VolumeDemand]
    roles: Mapping[str, VolumeDemand]
    spread: float | None = None
    size_bytes: int | None = None
    growth: float | None = None
    coverage: Coverage | None = None
    transactions_per_s: float | None = None
    cpu_per_transaction_s: float | None = None
    cores: int | None = None
    notices: Sequence[str] = ()

    def facts(self) -> MeasuredLoad:
        """What was measured, as documents carry it."""
        return {
            "source": self.source, "percentile": self.percentile,
            "volumes": [one.facts() for one in self.volumes],
            "roles": {role: one.facts() for role, one in self.roles.items()},
            "spread": self.spread, "size_bytes": self.size_bytes, "growth": self.growth, "coverage": self.coverage,
            "transactions_per_s": self.transactions_per_s, "cpu_per_transaction_s": self.cpu_per_transaction_s,
            "notices": list(self.notices),
        }  # fmt: skip


def measure(
    path: Path,
    *,
    percentile: float,
    busiest: int,
    short: bool = False,
    volumes: Sequence[str] = (),
    rate: float | None = None,
    what: str = "--from",
) -> MeasuredDemand:
    """What a run, a recording or a file of another tool says of the load.

    Parameters
    ----------
    percentile
        Of the intervals within the busiest hours, 0 to 1.
    busiest
        How many hours these are.
    short
        Accept less than an hour.
    volumes
        Of files of other tools: what a device is for, such as `log=sdb`.
    what
        The option that names it.
    rate
        Of a run: the transactions, or without any the I/Os, a second that are needed of its mix.

    Raises
    ------
    UsageError
        Nothing was recorded there, no I/O was done, it is shorter than an hour, or a run says nothing of what is needed
        because it went as fast as its target let it, and no rate is given.
    """
    roles = parse_roles(list(volumes))
    sources, notices, _ = sources_of([path], Options(host="imported", zone_s=None, roles=roles))
    source = sources[0]
    if "recording" not in source.manifest:
        return _of_run(source, percentile, notices, rate, what)
    if rate is not None:
        raise UsageError(f"--rate: {source.name} is a recording, whose rate is measured; leave out --rate")
    return _of_recording(source, percentile, busiest, notices, short=short, what=what)


# Recordings


def _of_recording(
    source: ObservedSource, percentile: float, busiest: int, notices: Sequence[str], *, short: bool, what: str
) -> MeasuredDemand:
    assert source.series is not None
    own = device_rows(source.series).own()
    if not own["ios"].sum():
        raise UsageError(f"{what} {source.name}: no device did any I/O there; record the hosts of the databases")
    covered_s = own.recorded_s
    if covered_s < LEAST_S and not short:
        raise UsageError(
            f"{what} {source.name}: covers {format_duration(covered_s)} and has no busiest hours; record an hour at"
            " least, a week if you can, or give --short"
        )
    hours = _busiest(own, busiest)
    within = own.where(np.isin(hours_of(own), hours))
    several = len(own.rows.distinct("host")) > 1
    volumes = [
        _volume(part, f"{host} {name}" if several else name, _role(role), percentile)
        for (host, name, role), part in _parts(within, "host", "entity", "role")
    ]
    by_role = replace(within, rows=within.rows.renamed("role", _role))
    roles = {role: _volume(part, role, role, percentile) for (role,), part in _parts(by_role, "role")}
    size, growth = size_and_growth(source.series)
    told = list(notices)
    if "log" not in roles:
        told.append(
            "no volume is recorded as the log's: its writes count as data and are not judged by the log's limit"
        )
    if "data" in roles and is_scanned(roles["data"]):
        told.append("large reads: the load is taken for scans, in order")
    return MeasuredDemand(
        source=source.name,
        percentile=percentile,
        volumes=volumes,
        roles=roles,
        spread=_spread(within),
        size_bytes=size,
        growth=growth,
        coverage=_coverage(own, covered_s, len(hours)),
        notices=told,
    )


def _role(role: str) -> str:
    """The role that is sized for: what is neither log nor data is data."""
    return "log" if role == "log" else "data"


def _parts(rows: DeviceRows, *names: str) -> Iterator[tuple[tuple[str, ...], DeviceRows]]:
    """Yield the rows of each group of texts that did any I/O."""
    each = rows.rows.groups(*names)
    for first, places in zip(each.first.tolist(), each.places(), strict=True):
        part = rows.where(places)
        if part["ios"].sum():
            yield tuple(rows.rows.at(name, first) for name in names), part


def _busiest(own: DeviceRows, most: int) -> list[int]:
    """Beginnings of the hours with the highest rate of I/Os."""
    begins = hours_of(own)
    hours = grouped(begins)
    rates = hours.sums(own["ios"]) / own.covered_ns(hours)
    found: list[int] = begins[hours.first][np.argsort(-rates, kind="stable")][:most].tolist()
    return found


def _volume(part: DeviceRows, name: str, role: str, percentile: float) -> VolumeDemand:
    """All rows of a part as one volume: rates are of their sum at each moment."""
    moments = grouped((part.rows.t_ns - 1) // step_of(part))
    seconds = part.covered_ns(moments) / SECOND_NS
    ios, moved = float(part["ios"].sum()), float(part["bytes"].sum())
    reads, writes = (float(np.nansum(part[f"{side}_ios_count"])) for side in ("read", "write"))
    return VolumeDemand(
        name=name,
        role=role,
        iops=float(np.quantile(moments.sums(part["ios"]) / seconds, percentile)),
        bytes_per_s=float(np.quantile(moments.sums(part["bytes"]) / seconds, percentile)),
        read_share=reads / (reads + writes) if reads + writes else 0.7,
        block_bytes=block_of(moved / ios if ios else 8192.0),
    )


def _spread(within: DeviceRows) -> float | None:
    """How far the busiest hours differ; None of fewer than three."""
    hours = grouped(hours_of(within))
    rates = hours.sums(within["ios"]) / hours.sums(within.rows.interval_ns)
    logs = [math.log(one) for one in rates.tolist() if one > 0]
    if len(logs) < 3:
        return None
    mean = sum(logs) / len(logs)
    return max(math.sqrt(sum((one - mean) ** 2 for one in logs) / (len(logs) - 1)), SPREAD_LEAST)


def _coverage(own: DeviceRows, covered_s: float, busiest: int) -> Coverage:
    """How much of a week is covered, hour of the week by hour."""
    begins = hours_of(own)
    each = own.rows.groups("host", "entity", by=[begins])
    is_covered = each.sums(own.rows.interval_ns) >= HOUR_COVERED_SHARE * HOUR_NS
    of_hours = np.unique(begins[each.first][is_covered]).tolist()
    whens = [datetime.datetime.fromtimestamp(hour / SECOND_NS, tz=datetime.UTC) for hour in of_hours]
    hours = {(when.weekday(), when.hour) for when in whens}
    days = len({day for day, _ in hours})
    text = (
        f"covers {format_duration(covered_s)}: {count_of(len(hours), 'hour')} of the {WEEK_HOURS} of a week, on"
        f" {count_of(days, 'day')} of seven; the demand is of the {count_of(busiest, 'busiest hour')}, in intervals of"
        f" {format_duration(step_of(own) / SECOND_NS)}"
    )
    missing = WEEK_HOURS - len(hours)
    if missing:
        text += f"; what happens in the other {missing} is not known"
    return {"seconds": covered_s, "hours_of_week": len(hours), "share": len(hours) / WEEK_HOURS, "days": days,
            "text": text}  # fmt: skip


def size_and_growth(series: Rows) -> tuple[int | None, float | None]:
    """Bytes of the databases, else of the file systems, and their growth a year."""
    of_volume = series.are("source", "volume")
    databases = series.where(~of_volume & series.are("metric", "size_bytes"))
    chosen = databases if len(databases) else series.where(of_volume & series.are("metric", "used_bytes"))
    if not len(chosen):
        return None, None
    latest = chosen.latest("host", "source", "entity")
    size = float(latest.value.sum())
    names = set(latest.distinct("entity"))
    a_day = sum(one.per_day for one in trends(series) if one.name in names and one.low > 0)
    return (round(size) or None), (a_day * 365 / size if size and a_day else None)


# Runs

RATE_ASKED = {
    "--from": (
        "give the rate that is needed of its mix: --rate 500 (transactions a second, of I/Os where there are none)"
    ),
    "--need-from": "give the rate that is needed: --need '500 iops 8k 70/30 read.p99<5ms'",
}
"""How to say the rate that a saturated run does not say, by the option that names the run."""


def _of_run(
    source: ObservedSource, percentile: float, notices: Sequence[str], rate: float | None, what: str
) -> MeasuredDemand:
    """The busiest point of a run: a run holds one load at a time, and no week."""
    found = [
        (seen, is_paced(point)) for point in source.points if (seen := seen_at(point) or _plain(point)) is not None
    ]
    if not found:
        raise UsageError(f"{what} {source.name}: no point of the run says how many I/Os the storage did")
    asked = [seen for seen, paced in found if paced]
    if rate is None and not asked:
        raise UsageError(
            f"{what} {source.name}: the run went as fast as its target let it (no rate, no think time), and a saturated"
            f" benchmark is no need; {RATE_ASKED[what]}, or measure it with --rate or --think"
        )
    seen = max(asked or [seen for seen, _ in found], key=lambda one: one.iops)
    if rate is not None:
        seen = _at_rate(seen, rate)
    log_iops = min(seen.log_writes_per_s or 0.0, seen.iops * (1 - seen.read_share))
    log_bytes = min(seen.log_bytes_per_s or 0.0, seen.bytes_per_s)
    data_iops = max(seen.iops - log_iops, 0.0)
    reads = seen.iops * seen.read_share
    roles = {}
    if data_iops:
        moved = seen.bytes_per_s - log_bytes
        roles["data"] = VolumeDemand(
            name="data", role="data", iops=data_iops, bytes_per_s=moved, read_share=min(reads / data_iops, 1.0),
            block_bytes=block_of(moved / data_iops),
        )  # fmt: skip
    if log_iops:
        roles["log"] = VolumeDemand(
            name="log", role="log", iops=log_iops, bytes_per_s=log_bytes, read_share=0.0,
            block_bytes=block_of(log_bytes / log_iops),
        )  # fmt: skip
    host = source.manifest.get("host") or {}
    cores = host.get("cpu_count")
    tps, busy = seen.transactions_per_s, seen.cpu_share
    size = size_and_growth(source.series)[0] if source.series is not None and len(source.series) else None
    counted = "counted by its devices" if seen.by_devices else "counted by the servers of its databases"
    return MeasuredDemand(
        source=source.name,
        percentile=percentile,
        volumes=list(roles.values()),
        roles=roles,
        size_bytes=size,
        transactions_per_s=tps,
        cpu_per_transaction_s=busy * cores / tps if tps and busy and cores else None,
        cores=cores,
        notices=[*notices, _words_of_run(counted, rate)],
    )


def _words_of_run(counted: str, rate: float | None) -> str:
    if rate is not None:
        return f"the mix is that of the busiest point of a run, {counted}; the rate of {rate:,g} a second is stated"
    return f"the demand is that of the busiest point of a run, {counted}; it says nothing of a week"


def is_paced(point: Point) -> bool:
    """Whether a point's load was asked for, and was held."""
    kind = workload_recorded(point)
    is_kept = (point.get("offered") or {}).get("sustained") is not False
    return kind is not None and kind.is_asked(point) and is_kept and not (point.get("generator") or {}).get("saturated")


def _at_rate(seen: SeenIo, rate: float) -> SeenIo:
    """The I/O of a mix at another rate, of transactions or, without any, of I/Os; what a processor does follows."""
    times = rate / (seen.transactions_per_s or seen.iops)

    def scaled(value: float | None) -> float | None:
        return None if value is None else value * times

    return replace(
        seen,
        iops=seen.iops * times,
        transactions_per_s=scaled(seen.transactions_per_s),
        log_writes_per_s=scaled(seen.log_writes_per_s),
        log_bytes_per_s=scaled(seen.log_bytes_per_s),
        cpu_share=scaled(seen.cpu_share),
    )


def _plain(point: Point) -> SeenIo | None:
    """I/O of a point that asked the storage itself."""
    total, read = point.get("total"), point.get("read")
    if not total or not total.get("iops") or not total.get("bytes_per_s"):
        return None
    return SeenIo(
        iops=total["iops"],
        size_mean_bytes=total["bytes_per_s"] / total["iops"],
        read_share=(read["iops"] if read else 0.0) / total["iops"],
        by_devices=True,
    )


def is_scanned(volume: VolumeDemand) -> bool:
    """Whether a load is taken for scans."""
    return volume.block_bytes >= SCAN_BYTES and volume.read_share >= SCAN_READS
