"""How the hits of a database's cache grow with memory, as a study of its cache measured it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from assay.base.errors import UsageError
from assay.base.units import count_of, format_bytes
from assay.insight.diagnosis.inputs import source_of
from assay.insight.diagnosis.observed import DATABASES
from assay.insight.sizing.demand import growth_factors
from assay.insight.sizing.measured import size_and_growth
from assay.insight.sizing.need import NeedAsWritten
from assay.record.ranks import never_falling
from assay.record.shapes.point import Point
from assay.workloads.databases.seen import seen_at

if TYPE_CHECKING:
    from assay.record.rows import Rows


@dataclass(frozen=True)
class CacheStudy:
    """What a study of a database's cache found.

    Attributes
    ----------
    data_bytes
        Size of the data that were studied.
    curve
        Caches in bytes and the share of requests for pages that each answered, neither of which falls.
    """

    path: Path
    data_bytes: int
    curve: Sequence[tuple[int, float]]


def cache_study(path: Path) -> CacheStudy:
    """Read the hits at each size of the cache from a run.

    Repeats are averaged. Shares that fall with more memory are noise, and are pooled with their neighbours
    (`never_falling`).

    Raises
    ------
    UsageError
        The run says nothing of hits at two sizes of a cache or more, or not how large its data are.
    """
    source = source_of(path)
    found: dict[int, list[float]] = defaultdict(list)
    for point in source.points:
        seen = seen_at(point)
        share = seen.facts.get("buffer_hit_share") if seen is not None else None
        cache = _cache_bytes(source.series, point)
        if share is not None and cache:
            found[cache].append(float(share))
    if len(found) < 2:
        raise UsageError(
            f"--hit-curve {path}: tells the hits of {count_of(len(found), 'size')} of a database's cache, and a curve"
            " takes two; give a run of `assay study run cache-size embedded:DIR`"
        )
    studied = size_and_growth(source.series)[0] if source.series is not None else None
    if not studied:
        raise UsageError(f"--hit-curve {path}: does not say how large its data were, which the cache is measured by")
    sizes = sorted(found)
    shares = never_falling([fmean(found[size]) for size in sizes], [len(found[size]) for size in sizes])
    return CacheStudy(path, studied, list(zip(sizes, shares, strict=True)))


def with_hit_curve(asked: NeedAsWritten, study: CacheStudy) -> NeedAsWritten:
    """A need whose servers' hit curve is the one that a study of the cache found.

    A cache's hits hang on the share of the data that it holds: caches of the study are multiplied by what the need's
    data, at the end of its years, are to the study's.

    Raises
    ------
    UsageError
        The need states no server.
    """
    if asked.need.server is None:
        raise UsageError(
            f"--hit-curve {study.path}: the need says nothing of servers; give it a [server], or take one by --from RUN"
        )
    needed = sum(one.size * growth_factors(one, asked.need.years)[0] for one in asked.need.database)
    scale = needed / study.data_bytes
    curve = [[f"{round(size * scale)}B", f"{share * 100:.4f}%"] for size, share in study.curve]
    origin = (
        f"measured: run {study.path.name}, caches of {format_bytes(study.curve[0][0])} to"
        f" {format_bytes(study.curve[-1][0])} for {format_bytes(study.data_bytes)} of data"
    )
    return asked.with_value(("server", "hit_curve"), curve, origin)


def _cache_bytes(series: Rows | None, point: Point) -> int | None:
    """Cache of all servers of databases while a point was measured; None where nothing recorded it."""
    start, end = point.get("measured_from_utc_ns"), point.get("measured_to_utc_ns")
    if series is None or start is None or end is None:
        return None
    inside = (series.t_ns >= start) & (series.t_ns <= end)
    rows = series.where(inside & series.are("metric", "cache_bytes") & series.are("source", *DATABASES))
    return round(float(rows.latest("host", "source", "entity").value.sum())) if len(rows) else None
