"""Results of other programs that measure storage, one file per format."""

from __future__ import annotations

from assay.workloads.imported import RunImporter
from assay.workloads.io.importers.diskspd import DiskSpd, DiskSpdText
from assay.workloads.io.importers.fio import Fio, FioText
from assay.workloads.io.importers.iometer import Iometer

IMPORTERS: tuple[RunImporter, ...] = (Fio(), FioText(), DiskSpd(), DiskSpdText(), Iometer())
