"""What a cloud volume was provisioned with, as a reference: the limits that its provider states for just that volume.

A volume keeps them where enough I/Os are outstanding. Below that its latency decides, which no provider states: a load
counts only where the limits would be reached also if latency were four times as long as the model assumes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from assay.base.errors import AssayError, UsageError
from assay.base.paths import printable
from assay.base.tables import Record
from assay.insight.ranking.references import ReferenceFigure, ReferenceStorage

if TYPE_CHECKING:
    from assay.record.shapes.point import Point
    from assay.targets.arrays.model.cloud import Cloud

CLASS = "cloud-provisioned"
LATENCY_SLACK = 4.0
"""How much longer than a model assumes latency may be without making a reference untrue."""
TITLE_MAX, SOURCE_MAX = 120, 120
_OF_CATALOGUE = re.compile(r"model:[a-z0-9-]{1,60}(\?\S{0,400})?")
EXAMPLE = "model:aws-gp3?size=1TiB&iops=16000&throughput=500MiB/s"


def provisioned_reference(spec: str, points: Sequence[Point]) -> ReferenceStorage | None:
    """What a cloud volume of the catalogue does at the loads of points; None where none of them reaches its limits.

    Parameters
    ----------
    spec
        The volume as it was provisioned, such as `model:aws-gp3?size=1TiB&iops=16000`.

    Raises
    ------
    UsageError
        It is no volume of a cloud, or what it asks for is not offered.
    """
    cloud = _cloud(spec)
    figures = {(one.block_bytes, one.read_share, one.outstanding): one for one in _figures(cloud, points)}
    if not figures:
        return None
    return ReferenceStorage(
        of=cloud.model.title[:TITLE_MAX], storage_class=CLASS, kind="volume", basis="model",
        title=f"volume as provisioned ({cloud.label})"[:TITLE_MAX],
        source=f"the limits that its provider states, {printable(spec)}"[:SOURCE_MAX],
        state="unknown", figure=tuple(figures.values()),
    )  # fmt: skip


def provisioned_of_run(manifest: Record) -> str | None:
    """The cloud volume of the catalogue that a run was made on; None where it was made on something else."""
    paths = (manifest.get("request") or {}).get("paths") or []
    # A folder from elsewhere names no file that is read here.
    if len(paths) != 1 or not isinstance(paths[0], str) or not _OF_CATALOGUE.fullmatch(paths[0]):
        return None
    try:
        _cloud(paths[0])
    except AssayError:
        return None
    return paths[0]


def _cloud(spec: str) -> Cloud:
    from assay.targets.arrays.model.cloud import Cloud
    from assay.targets.arrays.model.configuration import configure
    from assay.targets.arrays.model.options import parse_model_target

    if not spec.startswith("model:"):
        raise UsageError(f"--provisioned {printable(spec)}: accepted: a cloud's volume, such as {EXAMPLE}")
    found = configure(*parse_model_target(spec))
    if not isinstance(found, Cloud):
        raise UsageError(f"--provisioned {printable(spec)}: is no volume of a cloud; accepted: such as {EXAMPLE}")
    return found


def _figures(cloud: Cloud, points: Sequence[Point]) -> Iterator[ReferenceFigure]:
    for point in points:
        workload: Record = {**point["workload"]}
        block, read = workload.get("block_bytes"), workload.get("read_share")
        outstanding = point["load"].get("outstanding")
        if not isinstance(block, int) or not isinstance(outstanding, int) or not isinstance(read, int | float):
            continue
        # Small I/Os in order are merged, and count otherwise.
        if workload.get("random_share") != 1.0 or not 512 <= block <= 2**30 or not 0 <= read <= 1:
            continue
        iops = _iops(cloud, block)
        latency_ns = read * cloud.value("latency.read") + (1 - read) * cloud.value("latency.write")
        if iops is not None and outstanding >= iops * LATENCY_SLACK * latency_ns / 1e9:
            yield ReferenceFigure(
                metric="iops", value=iops, block_bytes=block, read_share=read, random_share=1.0,
                outstanding=outstanding,
            )  # fmt: skip


def _iops(cloud: Cloud, block_bytes: int) -> float | None:
    """I/Os a second that the volumes were provisioned for; None where bursts let them do more for a while.

    Counted as `crates/array-model/src/cloud/model.rs` counts: an I/O is as many as the units that it fills.
    """
    unit = int(cloud.value("accounting.unit"))
    units = -(-block_bytes // unit) if unit else 1
    counted_bytes = units * unit if unit and cloud.value("accounting.whole_units") else block_bytes
    every = [*cloud.limits, *([cloud.machine_limits] if cloud.machine_limits is not None else [])]
    if any(one.burst_per_s > one.per_s for limits in every for one in (limits.iops, limits.throughput)):
        return None
    found = sum(min(one.iops.per_s / units, one.throughput.per_s / counted_bytes) for one in cloud.limits)
    if (machine := cloud.machine_limits) is not None:
        found = min(found, machine.iops.per_s / units, machine.throughput.per_s / block_bytes)
    return found
