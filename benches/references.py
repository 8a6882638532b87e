"""Reference figures of cloud volumes and published arrays, as models of the catalogue predict them (`assay rank`).

    python benches/references.py

writes python/assay/insight/ranking/references/clouds-modelled.toml and arrays-modelled.toml. What a cloud's provider
states and what an array's model was fitted to is in the model's file. The virtual clock gives the same figures again.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import assay
from assay.targets.arrays.model.configuration import configure
from assay.targets.arrays.model.options import parse_model_target

FOLDER = Path(__file__).parents[1] / "python/assay/insight/ranking/references"
AS_OF = "2026-11"
PLAN = {
    "timing": {"warmup_s": 1.0, "duration_s": 4.0},
    "activity": [
        {"block_bytes": ["4K", "8K"], "read_share": [1.0, 0.7, 0.0], "random_share": 1.0, "outstanding": [1, 4, 16, 64]}
    ],
}
"""The loads of drives, but for the deepest."""
AT_LIMIT = 0.99
METRICS = ("iops", "read_latency_p99_ns", "write_latency_p99_ns")


class Modelled(NamedTuple):
    """A target, and the class it stands for."""

    target: str
    name: str
    title: str


GENERAL = ("cloud-general-ssd", "general-purpose SSD volume of 1 TiB in a cloud")
CLOUDS = [
    Modelled(f"model:{name}?volumes=1&size=1TiB", *GENERAL)
    for name in ("aws-gp2", "aws-gp3", "azure-premium", "gcp-pd-balanced")
]
ISCSI_15K = ("array-disk-15k", "disk array of two dozen 10K to 15K disks")
NL_SAS = ("array-disk-7k", "filer of 16 SATA disks of 7.2K")
ARRAYS = [
    Modelled("model:ps6100xv?raid=50&volumes=1", *ISCSI_15K),
    Modelled("model:ps6100xv?raid=10&volumes=1", *ISCSI_15K),
    Modelled("model:ps6110x?volumes=1", *ISCSI_15K),
    Modelled("model:fas2040?volumes=1", *NL_SAS),
]
FILES = {"clouds-modelled.toml": ("volume", CLOUDS), "arrays-modelled.toml": ("array", ARRAYS)}
HEAD = """\
# Figures that models of the catalogue predict, made by benches/references.py: one volume, random I/O.
schema_version = 1
as_of = "{as_of}"
"""


def storage_text(kind: str, one: Modelled) -> str:
    """A storage with its figures, as the file has it."""
    name, options = parse_model_target(one.target)
    array = configure(name, options)
    with tempfile.TemporaryDirectory() as folder:
        run = assay.profile(one.target, plan=PLAN, output=folder)
        points = limited(run.points_raw) if kind == "volume" else run.points_raw
        figures = [line for point in points for line in lines_of(point, METRICS[:1] if kind == "volume" else METRICS)]
    source = f"{one.target} of the catalogue"
    if kind == "volume":
        source = f"the limits that its provider states, in {source}"
    else:
        source += "; a volume of 100 GB on an otherwise empty array"
    words = f", RAID {array.raid}" if kind == "array" and len(array.model.policies) > 1 else ""
    own = [
        f'of = "{array.model.title}{words}"',
        f'storage_class = "{one.name}"',
        f'title = "{one.title}"',
        f'kind = "{kind}"',
    ]
    own += ['basis = "model"', f'source = "{source}"', 'state = "unknown"', "figure = [", *figures, "]"]
    return "\n".join(["", "[[storage]]", *own, ""])


def limited(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points at which a cloud's volume is at its limit, and would be with latencies four times as long.

    Below that the model's latency decides, which is assumed, because providers state none.
    """
    rates = {load_of(point): point["total"]["iops"] for point in points}
    found = []
    for point in points:
        block, read, outstanding = load_of(point)
        most = max(rate for (*mix, _), rate in rates.items() if mix == [block, read])
        if rates.get((block, read, outstanding // 4), 0.0) >= AT_LIMIT * most:
            found.append(point)
    return found


def load_of(point: dict[str, Any]) -> tuple[int, float, int]:
    """Block, share of reads, and outstanding I/Os."""
    return point["workload"]["block_bytes"], point["workload"]["read_share"], point["load"]["outstanding"]


def lines_of(point: dict[str, Any], metrics: Sequence[str]) -> Iterator[str]:
    """The figures of a point."""
    workload = point["workload"]
    load = f"block_bytes = {workload['block_bytes']}, read_share = {workload['read_share']:.1f}, random_share = 1.0"
    load += f", outstanding = {point['load']['outstanding']}"
    values = {"iops": point["total"]["iops"]}
    for side in ("read", "write"):
        if point[side] is not None:
            values[f"{side}_latency_p99_ns"] = point[side]["latency_ns"]["p99"]
    for metric in metrics:
        if values.get(metric):
            yield f'  {{ metric = "{metric}", value = {values[metric]:.5g}, {load} }},'


def main(files: Sequence[str] = tuple(FILES)) -> None:
    """Write the files."""
    for name in files:
        kind, modelled = FILES[name]
        text = HEAD.format(as_of=AS_OF) + "".join(storage_text(kind, one) for one in modelled)
        (FOLDER / name).write_text(text)
        print(f"written: {name}")


if __name__ == "__main__":
    main(sys.argv[1:] or tuple(FILES))
