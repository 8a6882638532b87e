"""Results in the formats of other tools; one file per format.

Every entry of `EXPORTS` takes the manifest, the points and a folder, writes into the folder, and returns the files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.results.exports.csv import save_csv
from assay.results.exports.fio_json import export_fio_json
from assay.results.exports.openmetrics import save_openmetrics

Export = Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]], Path], list[Path]]
"""`export(manifest, points, destination)`: write into the folder `destination`, return the files written."""

EXPORTS: dict[str, Export] = {
    "csv": save_csv,
    "fio-json": export_fio_json,
    "openmetrics": save_openmetrics,
}
"""Formats by the names that `--export` takes."""
