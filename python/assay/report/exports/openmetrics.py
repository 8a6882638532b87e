"""Points as OpenMetrics 1.0 text, for Prometheus and what reads its format.

Every sample carries the time at which its point ended, so that the file can be imported as history (`promtool tsdb
create-blocks-from openmetrics`). Units are OpenMetrics' base units, seconds and bytes, not the nanoseconds used inside.
The rules are those of the specification: prometheus.io/docs/specs/om/open_metrics_spec.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TextIO

from assay.record.figures import Figure, value_of
from assay.record.histograms import histogram_of
from assay.record.shapes.access import accesses_of
from assay.record.shapes.point import Latency
from assay.record.types import Direction, Manifest, Point
from assay.report.exports.kinds import own_figures

BUCKETS_NS = (*(round(mantissa * 10**exponent) for exponent in range(4, 10) for mantissa in (1, 2.5, 5)), 10**10)
"""Upper bounds of the histogram's buckets: 10 us to 10 s in steps of 1, 2.5 and 5."""
QUANTILES: dict[Literal["p50", "p90", "p95", "p99", "p99_9", "p99_99", "max"], str] = {
    "p50": "0.5",
    "p90": "0.9",
    "p95": "0.95",
    "p99": "0.99",
    "p99_9": "0.999",
    "p99_99": "0.9999",
    "max": "1.0",
}
"""Quantile of each key of `latency_ns`."""
DIRECTIONS: tuple[Literal["read", "write", "flush"], ...] = ("read", "write", "flush")

_ESCAPES = {"\\": "\\\\", "\n": "\\n", '"': '\\"'}


@dataclass
class _Family:
    """One metric family: its metadata once, then all its samples, because families must not interleave."""

    name: str
    kind: str
    help: str
    unit: str = ""
    samples: list[str] = field(default_factory=list)

    def add(self, suffix: str, labels: Mapping[str, str], value: float | int | bool, time_s: str) -> None:
        number = str(int(value)) if isinstance(value, (bool, int)) else repr(value)
        text = ",".join(f'{name}="{_escape(label)}"' for name, label in labels.items())
        self.samples.append(f"{self.name}{suffix}{{{text}}} {number}{time_s}")

    def lines(self) -> Iterator[str]:
        if not self.samples:
            return
        yield f"# TYPE {self.name} {self.kind}"
        if self.unit:
            yield f"# UNIT {self.name} {self.unit}"
        yield f"# HELP {self.name} {_escape(self.help)}"
        yield from self.samples


def _escape(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)


def _families() -> dict[str, _Family]:
    families = [
        _Family("assay_run", "info", "The run: tool, host and engine."),
        _Family("assay_point", "info", "What each point asked, and of what load."),
        _Family(
            "assay_measured_seconds", "gauge", "Time over which a point was measured, warm-up excluded.", "seconds"
        ),
        _Family("assay_ios", "counter", "I/Os completed while the point was measured."),
        _Family("assay_transferred_bytes", "counter", "Bytes transferred while the point was measured.", "bytes"),
        _Family("assay_io_errors", "counter", "I/Os that failed, by kind."),
        _Family("assay_latency_seconds", "histogram", "Latency of I/Os, in fixed buckets.", "seconds"),
        _Family("assay_latency_quantile_seconds", "summary", "Quantiles of latency; 1.0 is the largest.", "seconds"),
        _Family("assay_service_latency_seconds", "summary", "Latency from submission, open loop only.", "seconds"),
        _Family("assay_steady", "gauge", "1 where the point reached its steady state."),
        _Family("assay_generator_cpu_ratio", "gauge", "CPU of the load threads over one core each.", "ratio"),
        _Family("assay_generator_saturated", "gauge", "1 where the generator was the bottleneck."),
        _Family("assay_limit_met", "gauge", "1 where the limit is met, 0 where it is missed."),
    ]
    return {family.name: family for family in families}


def _figure_families(points: Sequence[Point]) -> dict[str, _Family]:
    """A family of each figure that the kinds of the points export."""
    figures = {_metric(figure)[0]: figure for point in points for figure in own_figures(point).values()}
    return {
        name: _Family(name, "gauge", f"{figure.title}.", "seconds" if figure.unit == "ns" else "")
        for name, figure in figures.items()
    }


def _metric(figure: Figure) -> tuple[str, float]:
    """Name of a figure's family, and what its values are multiplied by."""
    name = "assay_" + re.sub(r"[^a-zA-Z0-9_]", "_", figure.name)
    return (f"{name.removesuffix('_ns')}_seconds", 1e-9) if figure.unit == "ns" else (name, 1.0)


def export_openmetrics(manifest: Manifest, points: Sequence[Point], out: TextIO) -> None:
    """Write all points as one OpenMetrics text, ending with `# EOF`.

    Parameters
    ----------
    manifest, points
        The run (docs/results.md).
    out
        Open text file, UTF-8, lines ending with a line feed.
    """
    families = _families() | _figure_families(points)
    families["assay_run"].add("_info", _run_labels(manifest), 1, _time(manifest.get("started_utc_ns")))
    for point in points:
        _add_point(families, point, str(manifest.get("run_id") or ""))
    for family in families.values():
        for line in family.lines():
            out.write(line + "\n")
    out.write("# EOF\n")


def openmetrics_files(manifest: Manifest, points: Sequence[Point]) -> dict[str, str]:
    """The text as `openmetrics.txt`."""
    out = io.StringIO(newline="")
    export_openmetrics(manifest, points, out)
    return {"openmetrics.txt": out.getvalue()}


def _run_labels(manifest: Manifest) -> dict[str, str]:
    host, build, engine = manifest.get("host") or {}, manifest.get("build") or {}, manifest.get("engine") or {}
    labels = {
        "run_id": manifest.get("run_id"),
        "verb": manifest.get("verb"),
        "version": build.get("version"),
        "hostname": host.get("hostname"),
        "kernel": host.get("kernel"),
        "backend": engine.get("backend"),
    }
    # An empty label is the same as none (specification, "Label").
    return {name: str(value) for name, value in labels.items() if value not in (None, "")}


def _time(utc_ns: int | None) -> str:
    return f" {utc_ns // 10**9}.{utc_ns % 10**9 // 10**6:03d}" if utc_ns else ""


def _add_point(families: Mapping[str, _Family], point: Point, run_id: str) -> None:
    seconds = float(point.get("measured_s") or 0)
    elapsed_ns = round((seconds + float(point.get("warmup_s") or 0)) * 10**9)
    started_ns = point.get("started_utc_ns")
    time_s = _time(started_ns + elapsed_ns if started_ns else None)
    identity = {"run_id": run_id, "point": str(point.get("id") or "")}
    families["assay_point"].add("_info", identity | _point_labels(point), 1, time_s)
    families["assay_measured_seconds"].add("", identity, seconds, time_s)
    for direction in DIRECTIONS:
        if measured := point.get(direction):
            _add_direction(families, measured, identity | {"direction": direction}, seconds, time_s)
    _add_summary(families["assay_service_latency_seconds"], point.get("service_latency_ns"), identity, None, time_s)
    errors = point.get("errors")
    for kind, count in ((errors.get("kinds") or {}) if errors else {}).items():
        families["assay_io_errors"].add("_total", identity | {"kind": kind}, int(count), time_s)
    for figure in own_figures(point).values():
        value, (name, factor) = value_of(figure, point), _metric(figure)
        if value is not None:
            families[name].add("", identity, value * factor, time_s)
    _add_judgement(families, point, identity, time_s)


def _point_labels(point: Point) -> dict[str, str]:
    workload, load = accesses_of(point), point.get("load") or {}
    labels: dict[str, str | float | dict[str, float] | None] = {
        "part": point.get("part"),
        "purpose": point.get("purpose"),
        "repeat": point.get("repeat"),
        "workload": workload.get("name"),
        "role": workload.get("role"),
        "block_bytes": workload.get("block_bytes"),
        "read_share": workload.get("read_share"),
        "random_share": workload.get("random_share"),
        "io_mode": workload.get("io_mode"),
        "sync": workload.get("sync"),
        "queue_depth": load.get("queue_depth"),
        "workers": load.get("workers"),
        "outstanding": load.get("outstanding"),
        "rate": load.get("rate"),
        "arrivals": load.get("arrivals"),
    }
    return {name: _label(value) for name, value in labels.items() if value is not None and value != ""}


def _label(value: str | float | dict[str, float]) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}:{share}" for key, share in value.items())
    return str(value)


def _add_direction(
    families: Mapping[str, _Family], measured: Direction, labels: dict[str, str], seconds: float, time_s: str
) -> None:
    families["assay_ios"].add("_total", labels, int(measured["count"]), time_s)
    transferred_bytes = round(float(measured["bytes_per_s"]) * seconds)
    families["assay_transferred_bytes"].add("_total", labels, transferred_bytes, time_s)
    latency = measured["latency_ns"]
    _add_summary(families["assay_latency_quantile_seconds"], latency, labels, int(measured["count"]), time_s)
    _add_histogram(families["assay_latency_seconds"], measured, labels, time_s)


def _add_summary(
    family: _Family, latency: Latency | None, labels: dict[str, str], count: int | None, time_s: str
) -> None:
    if not latency:
        return
    for key, quantile in QUANTILES.items():
        if (value := latency.get(key)) is not None:
            family.add("", labels | {"quantile": quantile}, value / 10**9, time_s)
    mean = latency.get("mean")
    if count is not None and mean is not None:
        family.add("_count", labels, count, time_s)
        family.add("_sum", labels, mean * count / 10**9, time_s)


def _add_histogram(family: _Family, measured: Direction, labels: dict[str, str], time_s: str) -> None:
    histogram = histogram_of(measured)
    if histogram is None:
        return
    bins = histogram.bins()
    for bound_ns in BUCKETS_NS:
        below = sum(count for latency_ns, count in bins if latency_ns <= bound_ns)
        family.add("_bucket", labels | {"le": _canonical(bound_ns / 10**9)}, below, time_s)
    total = sum(count for _, count in bins)
    family.add("_bucket", labels | {"le": "+Inf"}, total, time_s)
    family.add("_count", labels, total, time_s)
    family.add("_sum", labels, sum(latency_ns * count for latency_ns, count in bins) / 10**9, time_s)


def _canonical(number: float) -> str:
    """Return the one spelling the specification asks of `le` ("Considerations: Canonical Numbers").

    Examples
    --------
    >>> _canonical(0.001), _canonical(1), _canonical(1e-05)
    ('0.001', '1.0', '1e-05')
    """
    return re.sub(r"\.0e", "e", repr(float(number)))


def _add_judgement(families: Mapping[str, _Family], point: Point, identity: dict[str, str], time_s: str) -> None:
    steady, generator = point.get("steady") or {}, point.get("generator") or {}
    gauges = {
        "assay_steady": steady.get("reached"),
        "assay_generator_cpu_ratio": generator.get("cpu_share"),
        "assay_generator_saturated": generator.get("saturated"),
    }
    for name, value in gauges.items():
        if value is not None:
            families[name].add("", identity, value, time_s)
    for limit in point.get("limits") or []:
        if (met := limit.get("met")) is not None:
            labels = identity | {"limit": str(limit["limit"]), "scope": str(limit.get("scope") or "")}
            families["assay_limit_met"].add("", labels, met, time_s)
