"""How the hits of a database's cache grow with memory, as a study of its cache measured it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from assay.analysis.diagnosis.inputs import source_of
from assay.analysis.diagnosis.observed import DATABASES
from assay.errors import UsageError
from assay.sizing.demand import growth_factors
from assay.sizing.measured import size_and_growth
from assay.sizing.need import Asked
from assay.units import count_of, format_bytes
from assay.workloads.registry import workload_recorded

if TYPE_CHECKING:
    import polars as pl


def with_hit_curve(asked: Asked, path: Path) -> Asked:
    """A need whose servers' hit curve is the one that a study of the cache found.

    A cache's hits hang on the share of the data that it holds: caches of the study are multiplied by what the need's
    data, at the end of its years, are to the study's. Repeats are averaged. Shares that fall with more memory are
    noise, and are pooled with their neighbours: isotonic regression (Barlow and others, Statistical Inference under
    Order Restrictions, 1972).

    Raises
    ------
    UsageError
        The run says nothing of hits at two sizes of a cache or more or not how large its data are, or the need states
        no server.
    """
    from scipy.optimize import isotonic_regression

    said = f"--hit-curve {path}"
    if asked.need.server is None:
        raise UsageError(f"{said}: the need says nothing of servers; give it a [server], or take one by --from RUN")
    source = source_of(path)
    found: dict[int, list[float]] = defaultdict(list)
    for point in source.points:
        kind = workload_recorded(point)
        seen = kind.seen(point) if kind is not None and not kind.verifies else None  # type: ignore[arg-type]
        share = seen.facts.get("buffer_hit_share") if seen is not None else None
        cache = _cache_bytes(source.series, point)
        if share is not None and cache:
            found[cache].append(float(share))
    if len(found) < 2:
        raise UsageError(
            f"{said}: tells the hits of {count_of(len(found), 'size')} of a database's cache, and a curve takes two;"
            " give a run of `assay study run cache-size embedded:DIR`"
        )
    studied = size_and_growth(source.series)[0] if source.series is not None else None
    if not studied:
        raise UsageError(f"{said}: does not say how large its data were, which the cache is measured by")
    sizes = sorted(found)
    shares = isotonic_regression([fmean(found[size]) for size in sizes], weights=[len(found[size]) for size in sizes]).x
    needed = sum(one.size * growth_factors(one, asked.need.years)[0] for one in asked.need.database)
    scale = needed / studied
    curve = [[f"{round(size * scale)}B", f"{share * 100:.4f}%"] for size, share in zip(sizes, shares, strict=True)]
    origin = (
        f"measured: run {path.name}, caches of {format_bytes(sizes[0])} to {format_bytes(sizes[-1])} for"
        f" {format_bytes(studied)} of data"
    )
    return asked.with_value(("server", "hit_curve"), curve, origin)


def _cache_bytes(series: pl.DataFrame | None, point: Mapping[str, Any]) -> int | None:
    """Cache of all servers of databases while a point was measured; None where nothing recorded it."""
    import polars as pl

    start, end = point.get("measured_from_utc_ns"), point.get("measured_to_utc_ns")
    if series is None or series.is_empty() or start is None or end is None:
        return None
    text = [pl.col(name).cast(pl.String) for name in ("host", "entity", "metric", "source")]
    rows = series.with_columns(text).filter(
        (pl.col("metric") == "cache_bytes") & pl.col("source").is_in(DATABASES) & pl.col("t_ns").is_between(start, end)
    )
    if rows.is_empty():
        return None
    return round(rows.sort("t_ns").group_by("host", "source", "entity").agg(pl.col("value").last())["value"].sum())
