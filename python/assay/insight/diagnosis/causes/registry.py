"""All causes that are looked for."""

from __future__ import annotations

from assay.insight.diagnosis.causes import (
    arrays,
    database,
    disks,
    drives,
    memory,
    neighbours,
    network,
    paths,
    processors,
    queues,
)
from assay.insight.diagnosis.causes.cause import Cause

CAUSES: tuple[Cause, ...] = (
    *processors.CAUSES,
    *memory.CAUSES,
    *network.CAUSES,
    *database.CAUSES,
    *drives.CAUSES,
    *paths.CAUSES,
    *arrays.CAUSES,
    *neighbours.CAUSES,
    *queues.CAUSES,
    *disks.CAUSES,
)
