"""Every export is read back and gives the points it was made of: by Assay's importer, or by the format's own reader.

CSV and OpenMetrics have no importer: spreadsheets and databases of metrics read them (docs/import.md).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.record.run_folder import RunFolder
from assay.report.exports import EXPORTS, save_export
from assay.run.imports import import_files
from assay.telemetry.importers.importer import Options

Read = dict[str, tuple[float, float, float]]
"""Of each direction of a point its name, then I/Os, I/Os per second and mean latency in ns."""


def directions(point: dict[str, Any]) -> Read:
    return {
        side: (found["count"], found["iops"], found["latency_ns"]["mean"])
        for side in ("read", "write")
        if (found := point[side]) is not None
    }


def from_csv(paths: list[Path], work: Path) -> list[Read]:
    del work
    with paths[0].open(newline="") as file:
        rows = list(csv.DictReader(file))
    keys = ("count", "iops", "latency_mean_ns")
    return [
        {side: tuple(float(row[f"{side}_{key}"]) for key in keys) for side in ("read", "write") if row[f"{side}_count"]}  # type: ignore[misc]
        for row in rows
    ]


def from_fio_json(paths: list[Path], work: Path) -> list[Read]:
    found = import_files(paths[:1], into=work, options=Options(), command=[])
    with RunFolder.open(found.path) as folder:
        return [directions(dict(point)) for point in folder.points()]


def from_openmetrics(paths: list[Path], work: Path) -> list[Read]:
    del work
    samples: dict[tuple[str, str, str], float] = {}
    for line in paths[0].read_text().splitlines():
        if match := re.fullmatch(r"(\w+)\{(.*)\} (\S+) \S+", line):
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2]))
            if "quantile" not in labels and "le" not in labels:
                samples[labels.get("point", ""), match[1], labels.get("direction", "")] = float(match[3])
    found: dict[str, Read] = {}
    for (point, name, side), count in samples.items():
        if name == "assay_ios_total" and side in ("read", "write"):
            seconds = samples[point, "assay_measured_seconds", ""]
            mean_ns = samples[point, "assay_latency_seconds_sum", side] / count * 1e9
            found.setdefault(point, {})[side] = (count, count / seconds, mean_ns)
    return [found[point] for point in sorted(found)]


READERS: dict[str, Callable[[list[Path], Path], list[Read]]] = {
    "csv": from_csv, "fio-json": from_fio_json, "openmetrics": from_openmetrics,
}  # fmt: skip


@pytest.mark.parametrize("name", EXPORTS)
def test_what_is_read_back_is_what_was_measured(
    name: str, manifest: dict[str, Any], make_point: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    sequential = {"name": "64 KiB sequential read", "block_bytes": 65536, "read_share": 1.0, "random_share": 0.0}
    one, four = ({"queue_depth": depth, "workers": 1, "outstanding": depth} for depth in (1, 4))
    points = [
        make_point("p0001"),
        make_point("p0002", seed=11, load=one, **sequential),
        make_point("p0003", seed=21, load=four, **sequential),
        make_point("p0004", seed=31, name="log", read_share=0.0, random_share=0.0, sync="dsync"),
    ]

    paths = save_export(name, manifest, points, tmp_path / "run")  # type: ignore[arg-type]
    found = READERS[name](paths, tmp_path / "results")

    for point, read in zip(points, found, strict=True):
        expected = directions(point)
        assert read.keys() == expected.keys(), point["id"]
        for side, values in expected.items():
            assert read[side] == pytest.approx(values, rel=2e-3), (point["id"], side)
