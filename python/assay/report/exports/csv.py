"""Points as one flat CSV table, for spreadsheets and for R.

Column names are those of the data frames that `assay.load` gives, with what does not fit a frame added, and with the
figures that the kinds of the points export: values stay in base units with the unit last in the name, and an empty cell
means not measured. A text that a spreadsheet would take for a formula has an apostrophe before it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import TextIO

from assay.record.figures import value_of
from assay.record.judgement import met
from assay.record.load import LATENCIES, POINT_COLUMNS
from assay.record.types import Manifest, Point
from assay.report.exports.kinds import own_figures

_WORKLOAD = ("skew", "streams", "align_bytes", "compressible_share", "duplicate_share", "io_mode", "sync", "sync_every")
_TELEMETRY = ("cpu_share", "iowait_share", "steal_share", "tcp_retransmit_share")
_TELEMETRY_DEVICE = ("device_iops", "device_bytes_per_s", "device_queue")

COLUMNS: dict[str, tuple[str, ...]] = {
    **{name: keys for name, (_, keys) in POINT_COLUMNS.items()},
    "block_mix": ("workload", "block_bytes"),
    **{name: ("workload", name) for name in _WORKLOAD},
    "arrivals": ("load", "arrivals"),
    **{f"service_latency_{key}_ns": ("service_latency_ns", key) for key in LATENCIES},
    "offered_rate": ("offered", "rate"),
    "offered_unfinished": ("offered", "unfinished"),
    "offered_sustained": ("offered", "sustained"),
    "schedule_lag_p99_ns": ("generator", "schedule_lag_p99_ns"),
    "steady_window_s": ("steady", "window_s"),
    "steady_slope_share": ("steady", "slope_share"),
    "steady_half_width_share": ("steady", "half_width_share"),
    **{f"telemetry_{name}": ("telemetry", name) for name in (*_TELEMETRY, *_TELEMETRY_DEVICE)},
}
"""The keys of each column from the point's root. `block_mix` is JSON, and only there where block sizes are mixed."""


FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n")


def export_csv(manifest: Manifest, points: Sequence[Point], out: TextIO) -> None:
    """Write one header line and one row a point (RFC 4180, lines end with CR LF).

    Parameters
    ----------
    manifest, points
        The run (docs/results.md).
    out
        Open text file; open it with `newline=""`.
    """
    writer = csv.writer(out)
    figures = [own_figures(point) for point in points]
    names = list(dict.fromkeys(name for found in figures for name in found if name not in COLUMNS))
    writer.writerow(["run_id", "verb", *COLUMNS, *names, "met", "limits_missed"])
    run = [_cell(manifest.get("run_id")), _cell(manifest.get("verb"))]
    for point, found in zip(points, figures, strict=True):
        cells = [_cell(_value(point, keys)) for keys in COLUMNS.values()]
        cells[list(COLUMNS).index("block_bytes")] = _cell(_single_block_bytes(point))
        cells[list(COLUMNS).index("block_mix")] = _cell(_block_mix(point))
        cells += [_cell(value_of(found[name], point)) if name in found else "" for name in names]
        writer.writerow([*run, *cells, *_limits(point)])


def csv_files(manifest: Manifest, points: Sequence[Point]) -> dict[str, str]:
    """The table as `points.csv`."""
    out = io.StringIO(newline="")
    export_csv(manifest, points, out)
    return {"points.csv": out.getvalue()}


def _value(document: object, keys: tuple[str, ...]) -> object:
    for key in keys:
        if not isinstance(document, Mapping):
            return None
        document = document.get(key)
    return document


def _single_block_bytes(point: Point) -> object:
    block_bytes = _value(point, ("workload", "block_bytes"))
    return None if isinstance(block_bytes, Mapping) else block_bytes


def _block_mix(point: Point) -> object:
    block_bytes = _value(point, ("workload", "block_bytes"))
    return block_bytes if isinstance(block_bytes, Mapping) else None


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (Mapping, list)):
        return json.dumps(value, sort_keys=True)
    if isinstance(value, int):
        return str(value)
    # `repr` of a float is the shortest text that reads back as the same number.
    return repr(value) if isinstance(value, float) else _plain(str(value))


def _plain(text: str) -> str:
    """Text that no spreadsheet takes for a formula (OWASP, "CSV Injection").

    Examples
    --------
    >>> _plain("=1+1"), _plain("8 KiB random")
    ("'=1+1", '8 KiB random')
    """
    return f"'{text}" if text.startswith(FORMULA_SIGNS) else text


def _limits(point: Point) -> tuple[str, str]:
    """Whether every limit is met, empty where that is unknown, and the missed ones with their scope."""
    judged = point.get("limits") or []
    missed = "; ".join(f"{one['limit']} ({one.get('scope') or '-'})" for one in judged if one.get("met") is False)
    return _cell(met(judged)), _plain(missed)
