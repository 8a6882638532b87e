"""Figures that points of every kind may have: reads and writes by role and volume, and the host's shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from assay.base.tables import Record
from assay.base.units import format_iops, format_latency, format_throughput
from assay.record.figures import STATISTICS, Figure
from assay.record.shapes.point import Point

ROLES = ("data", "log", "tempdb")
DIRECTIONS = ("read", "write", "total", "flush")
RATES = {"iops": "iops", "throughput": "bytes_per_s"}
"""Rates of a direction: as limits name them, and as documents do."""
HOST = {
    "cpu": "cpu_share",
    "iowait": "iowait_share",
    "steal": "steal_share",
    "tcp.retransmit": "tcp_retransmit_share",
}
"""Shares of the host: as limits name them, and as telemetry does."""
RESPONSE = "response"
"""What limits call the time that users wait. Only some kinds measure it; all plans may bound it."""


def _side(sides: Record, direction: str) -> Record | None:
    """One direction of a point, role or volume; None where it did no I/O."""
    found: Record | None = sides.get(direction)
    return found


def rate_of(sides: Record, direction: str, key: str) -> float | None:
    """A rate of one direction of a point, role or volume; None where it did no I/O."""
    found = _side(sides, direction)
    return float(found[key]) if found else None


def latency_of(sides: Record, direction: str, statistic: str) -> float | None:
    """A latency of one direction; None where it is not known, as percentiles of a device's counters are not."""
    return latency_in(_side(sides, direction), statistic)


def latency_in(record: Record | None, statistic: str) -> float | None:
    """A latency of a record with `latency_ns`; None where there is none."""
    found = ((record or {}).get("latency_ns") or {}).get(statistic.replace(".", "_"))
    return None if found is None else float(found)


def batches_of(point: Point, direction: str, key: str) -> list[float]:
    """Batches of a point; those in which nothing ended are left out."""
    batches: Record = point.get("batches") or {}
    return [float(value) for value in (batches.get(direction) or {}).get(key) or () if value is not None]


def scaled_batches(point: Point, of: Figure, value: float | None) -> list[float]:
    """Batches of a figure that has none of its own, such as bytes: they follow those of another."""
    other = of.value(point)
    return [batch * value / other for batch in of.batches(point)] if value is not None and other else []


def share_words(share: float) -> str:
    """A share for people."""
    return f"{share * 100:.3g} %"


def iops_words(iops: float) -> str:
    """I/Os per second for people."""
    return f"{format_iops(iops)} IOPS"


def _scopes(
    point: Point,
    role: str | None,
    read: Callable[[Record], float | None],
    record: Callable[[Record], Record | None] = lambda _sides: None,
) -> Iterator[tuple[str, float | None, Record | None]]:
    """Roles, then each role's volumes where it has several, or where volumes carry several roles."""
    volumes = point.get("volumes") or []
    for name, sides in (point.get("roles") or {}).items():
        if role is not None and name != role:
            continue
        yield name, read(sides), record(sides)
        of_role = [volume for volume in volumes if volume.get("role") == name]
        if len(of_role) > 1:
            for volume in of_role:
                yield f"{name}/{volume['name']}", read(volume), record(volume)


def _direction_figures(direction: str) -> Iterator[Figure]:
    before, words = ("", "") if direction == "total" else (f"{direction}_", f"{direction} ")
    read = partial(rate_of, direction=direction, key="iops")
    iops = Figure(
        name=f"{before}iops", unit="iops", title=f"{words}IOPS", better="higher", value=read, words=iops_words,
        batches=partial(batches_of, direction=direction, key="iops"), full=f"{words}I/Os per second",
        study=f"{before}iops", limit=f"{direction}.iops",
        scopes=partial(_scopes, read=read), failed="I/O errors", nothing="no I/O ended",
    )  # fmt: skip
    yield iops
    moved = partial(rate_of, direction=direction, key="bytes_per_s")
    yield Figure(
        name=f"{before}bytes_per_s", unit="bytes_per_s", title=f"{words}throughput", better="higher", value=moved,
        words=format_throughput, batches=lambda point: scaled_batches(point, iops, moved(point)),
        study=f"{before}bytes_per_s", limit=f"{direction}.throughput", scopes=partial(_scopes, read=moved),
        follows=lambda _point: iops.name,
    )  # fmt: skip
    for statistic in STATISTICS:
        yield _latency_figure(direction, statistic)


def _latency_figure(direction: str, statistic: str) -> Figure:
    read = partial(latency_of, direction=direction, statistic=statistic)
    is_mean = statistic == "mean"
    return Figure(
        name=f"{direction}_latency_{statistic.replace('.', '_')}_ns",
        unit="ns",
        title=f"{direction} {statistic}",
        better="lower",
        value=read,
        words=format_latency,
        # Those of the mean also tell of percentiles how much neighbouring I/Os resemble each other.
        batches=partial(batches_of, direction=direction, key="latency_mean_ns"),
        noun=f"{direction} latency" if is_mean else "",
        full=f"mean {direction} latency" if is_mean else "",
        study=f"{direction}_latency" if is_mean else "",
        limit=f"{direction}.{statistic}",
        scopes=partial(_scopes, read=read, record=partial(_side, direction=direction)),
        record=partial(_side, direction=direction),
        statistic=statistic,
        follows=partial(_rate_that_tells, direction=direction) if is_mean else lambda _point: None,
    )


def _rate_that_tells(point: Point, direction: str) -> str | None:
    """The rate that a mean latency follows from, by J. D. C. Little's law (Operations Research 9, 1961).

    Of I/Os that are always outstanding, IOPS x mean latency is their number. Of reads and writes together one mean then
    follows from IOPS and the other mean: the one that takes more of the time.
    """
    if "outstanding" not in point["load"]:
        return None
    spent = {name: (rate_of(point, name, "iops") or 0.0) * (latency_of(point, name, "mean") or 0.0)
             for name in ("read", "write")}  # fmt: skip
    return "iops" if direction == max(spent, key=lambda name: spent[name]) else None


def _host_figure(limit: str, key: str) -> Figure:
    def value(point: Point) -> float | None:
        found: float | None = (point.get("telemetry") or {}).get(key)
        return found

    return Figure(
        name=key, unit="share", title=limit, better="lower", value=value, words=share_words, compared=False,
        limit=limit, scopes=lambda point, _role: [("host", value(point), None)],
    )  # fmt: skip


def _cpu_per_io(point: Point) -> float | None:
    return (point.get("generator") or {}).get("cpu_ns_per_io")


def _cpu_units_per_io(point: Point) -> float | None:
    unit_ns = (point.get("generator") or {}).get("cpu_unit_ns")
    return None if (cpu_ns := _cpu_per_io(point)) is None or not unit_ns else cpu_ns / unit_ns


GENERATOR_FIGURES = (
    Figure(
        name="generator_cpu_ns_per_io", unit="ns", title="generator CPU per I/O", better="lower", value=_cpu_per_io,
        words=lambda value: f"{value:,.3g} ns", compared=False, of_generator=True, limit="generator.cpu_ns_per_io",
    ),
    Figure(
        name="generator_cpu_units_per_io", unit="ratio", title="generator CPU per I/O in units of the processor",
        better="lower", value=_cpu_units_per_io, words=lambda value: f"{value:,.3g} units", compared=False,
        of_generator=True, limit="generator.cpu_units_per_io",
    ),
)  # fmt: skip
"""What an I/O costs the load generator: CPU time, and the same in units of the processor (`measure/processor_unit.py`).
"""


def _response_figure(statistic: str) -> Figure:
    return Figure(
        name=f"{RESPONSE}_{statistic.replace('.', '_')}_ns", unit="ns", title=f"{RESPONSE} {statistic}", better="lower",
        value=lambda _point: None, words=format_latency, compared=False, limit=f"{RESPONSE}.{statistic}",
        statistic=statistic,
    )  # fmt: skip


COMMON_FIGURES: Mapping[str, Figure] = {
    figure.name: figure
    for figures in (
        *map(_direction_figures, DIRECTIONS),
        (_host_figure(*names) for names in HOST.items()),
        map(_response_figure, STATISTICS),
    )
    for figure in figures
}
"""Figures by name. Limits of every kind may bound them; a kind's own figures replace those of the same limit."""
