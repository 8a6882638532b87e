"""All causes that are looked for."""

from __future__ import annotations

from assay.insight.diagnosis.causes import (
    arrays,
    database,
    disks,
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
    *paths.CAUSES,
    *arrays.CAUSES,
    *neighbours.CAUSES,
    *queues.CAUSES,
    *disks.CAUSES,
)
