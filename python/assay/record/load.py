"""Reading a run into data frames, whatever state it is in: running, done, interrupted or cut off by a crash."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assay.base.extras import require
from assay.base.units import count_of
from assay.record.figures import answer_values
from assay.record.judgement import counts_words, met, standing_counts
from assay.record.run_folder import RunFolder

if TYPE_CHECKING:
    import polars as pl

    from assay.record.rows import Rows
    from assay.record.shapes.point import Point

Columns = dict[str, tuple[str, tuple[str, ...]]]
"""The polars type of each column and where its value is: the keys from the document's root."""

LATENCIES = ("mean", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max")
"""Keys of `latency_ns` (docs/results.md)."""


def _direction_columns(direction: str) -> Columns:
    rates: Columns = {
        f"{direction}_count": ("Int64", (direction, "count")),
        f"{direction}_iops": ("Float64", (direction, "iops")),
        f"{direction}_bytes_per_s": ("Float64", (direction, "bytes_per_s")),
    }
    return rates | {f"{direction}_latency_{key}_ns": ("Float64", (direction, "latency_ns", key)) for key in LATENCIES}


POINT_COLUMNS: Columns = {
    "id": ("String", ("id",)),
    "key": ("String", ("key",)),
    "part": ("String", ("part",)),
    "purpose": ("String", ("purpose",)),
    "repeat": ("Int64", ("repeat",)),
    "started_utc_ns": ("Int64", ("started_utc_ns",)),
    "warmup_s": ("Float64", ("warmup_s",)),
    "measured_s": ("Float64", ("measured_s",)),
    "ended_by": ("String", ("ended_by",)),
    "workload": ("String", ("workload", "name")),
    "role": ("String", ("workload", "role")),
    "block_bytes": ("Int64", ("workload", "block_bytes")),
    "read_share": ("Float64", ("workload", "read_share")),
    "random_share": ("Float64", ("workload", "random_share")),
    "queue_depth": ("Int64", ("load", "queue_depth")),
    "workers": ("Int64", ("load", "workers")),
    "outstanding": ("Int64", ("load", "outstanding")),
    "rate": ("Float64", ("load", "rate")),
    "users": ("Int64", ("load", "users")),
    "iops": ("Float64", ("total", "iops")),
    **_direction_columns("read"),
    **_direction_columns("write"),
    **_direction_columns("total"),
    **_direction_columns("flush"),
    "steady_reached": ("Boolean", ("steady", "reached")),
    "saturated": ("Boolean", ("generator", "saturated")),
    "generator_cpu_share": ("Float64", ("generator", "cpu_share")),
    "errors_count": ("Int64", ("errors", "count")),
}

ENDS = ("max", "knee", "edge", "first_failing")
"""Loads that an answer names (docs/results.md, Answer)."""

ANSWER_COLUMNS: Columns = {
    "workload": ("String", ("workload", "name")),
    "block_bytes": ("Int64", ("workload", "block_bytes")),
    "read_share": ("Float64", ("workload", "read_share")),
    "random_share": ("Float64", ("workload", "random_share")),
    "part": ("String", ("part",)),
    "axis": ("String", ("axis",)),
    **{
        f"{side}_{key}": (kind, (side, key))
        for side in ENDS
        for key, kind in {
            "outstanding": "Int64",
            "rate": "Float64",
            "users": "Int64",
            "point_id": "String",
        }.items()
    },
    "limited_by": ("String", ("limited_by",)),
    "undecided": ("Boolean", ("undecided",)),
    "non_monotone": ("Boolean", ("non_monotone",)),
}

VERDICT_COLUMNS: Columns = {
    "question": ("String", ("question",)),
    "limit": ("String", ("limit",)),
    "value": ("Float64", ("value",)),
    "unit": ("String", ("unit",)),
    "met": ("Boolean", ("met",)),
    "meaning": ("String", ("meaning",)),
}


@dataclass(frozen=True, repr=False)
class Run:
    """One run as data frames; values are base units, null means not measured.

    A frame is built when it is first asked for and kept. Load a run that is going on again to see what is new.
    """

    path: Path
    """The run folder."""
    manifest: dict[str, Any]
    """Content of `run.json` (docs/results.md, Manifest)."""
    points_raw: list[dict[str, Any]]
    """The points with everything in them, such as histograms (docs/results.md, Point)."""
    first_page: Callable[[Path], str] | None = field(default=None, compare=False)
    """Gives the first page of the report as HTML, for notebooks."""

    def __repr__(self) -> str:
        counts = standing_counts(self.manifest.get("verdict") or [])
        told = [f"{self.manifest.get('status', 'unknown')}, {count_of(len(self.points_raw), 'point')}"]
        told += [counts_words(counts)] if counts else []
        return f"<Run {self.path.name}: {'; '.join(told)}>"

    def _repr_html_(self) -> str | None:
        """The first page of the report; None where nothing can make it."""
        return self.first_page(self.path) if self.first_page is not None else None

    @cached_property
    def points(self) -> pl.DataFrame:
        """One row a point: the columns of `POINT_COLUMNS`, figures that answers of any kind have, and `met`.

        `block_bytes` is null where a workload mixes block sizes. `met` is true if every limit that concerns the point
        is met, false if one is missed, null if that is unknown or there is none. `iops` is that of reads and writes
        together.
        """
        _need_frames()
        import polars as pl

        all_met = pl.Series("met", [met(point.get("limits") or []) for point in self.points_raw], dtype=pl.Boolean)
        frame = _frame(self.points_raw, POINT_COLUMNS)
        values = [answer_values(cast("Point", point)) for point in self.points_raw]
        own = [
            pl.Series(name, [value[name] for value in values], dtype=pl.Float64)
            for name in answer_values({"id": ""})
            if name not in POINT_COLUMNS
        ]
        return frame.with_columns(*own, all_met)

    @cached_property
    def answers(self) -> pl.DataFrame:
        """One row a search: the columns of `ANSWER_COLUMNS`, figures of its loads, the interval of the first figure.

        The interval's columns are `interval_95_low` and `interval_95_high`, in IOPS where I/Os were searched for.
        """
        _need_frames()
        import polars as pl

        answers = self.manifest.get("answers") or []
        intervals = [answer.get("interval_95") or (None, None) for answer in answers]
        low = pl.Series("interval_95_low", [interval[0] for interval in intervals], dtype=pl.Float64, strict=False)
        high = pl.Series("interval_95_high", [interval[1] for interval in intervals], dtype=pl.Float64, strict=False)
        ends: Columns = {
            f"{side}_{name}": ("Float64", (side, name)) for side in ENDS for name in answer_values({"id": ""})
        }
        return _frame(answers, ANSWER_COLUMNS | ends).with_columns(low, high)

    @cached_property
    def verdict(self) -> pl.DataFrame:
        """One row a line of the verdict: the columns of `VERDICT_COLUMNS`."""
        return _frame(self.manifest.get("verdict") or [], VERDICT_COLUMNS)

    @cached_property
    def series(self) -> pl.DataFrame:
        """Telemetry and per-second results, one row a value, by time (docs/results.md, Series).

        Raises
        ------
        RunFolderError
            A closed segment or `series.parquet` is damaged.
        """
        _need_frames()
        import polars as pl

        from assay.record.series_bounds import COLUMNS, NUMBER_COLUMNS

        rows = self.rows

        def column(name: str) -> pl.Series:
            if name in NUMBER_COLUMNS:
                return pl.Series(name, getattr(rows, name))
            own = rows.texts[name]
            return pl.Series(name, own.texts, dtype=pl.Categorical).gather(own.numbers)

        return pl.DataFrame([column(name) for name in COLUMNS])

    @property
    def unread(self) -> Sequence[str]:
        """What of the series could not be read, a sentence each: damaged files of a flight recording."""
        return self.rows.unread

    @cached_property
    def rows(self) -> Rows:
        """The series as Assay holds it."""
        from assay.record.series import read_series

        return read_series(self.path)


def _need_frames() -> None:
    require("data frames of a run", "polars")


def load(path: str | os.PathLike[str], *, first_page: Callable[[Path], str] | None = None) -> Run:
    """Read a run.

    Parameters
    ----------
    path
        The run folder; the run may be going on.
    first_page
        Gives the first page of its report as HTML.

    Returns
    -------
    Run
        Its manifest, points, answers, verdict and series.

    Raises
    ------
    RunFolderError
        It is not a run folder, a newer Assay wrote it, or a file in it is damaged.

    Examples
    --------
    >>> from assay.record.run_folder import RunFolder
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with RunFolder.create(parent, "profile", {}) as folder:
    ...         folder.append_point({"id": "p0001", "load": {"queue_depth": 8}})
    ...     load(folder.path).points["queue_depth"].to_list()
    [8]
    """
    from assay.record.points import current_points

    folder = RunFolder.open(Path(path))
    return Run(folder.path, folder.manifest, current_points(folder.points()), first_page)


def _frame(documents: Iterable[Mapping[str, Any]], columns: Columns) -> pl.DataFrame:
    """Flat columns of nested documents; what a document lacks, or has as another type, is null."""
    _need_frames()
    import polars as pl

    rows = list(documents)
    return pl.DataFrame(
        [
            pl.Series(name, [_value(row, keys) for row in rows], dtype=getattr(pl, kind), strict=False)
            for name, (kind, keys) in columns.items()
        ]
    )


def _value(document: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        if not isinstance(document, Mapping):
            return None
        document = document.get(key)
    if isinstance(document, str):
        # Names of files may hold bytes that are no text, which frames cannot.
        return document.encode("utf-8", errors="backslashreplace").decode()
    return None if isinstance(document, (Mapping, list)) else document
