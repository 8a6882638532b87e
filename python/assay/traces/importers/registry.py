"""Forms of traces that are imported, in the order in which they are tried."""

from __future__ import annotations

from assay.traces.importers.blktrace import BlkparseText, BlktraceBinary
from assay.traces.importers.delimited import Alibaba, DiskSim, Fiu, Msr, Spc, Systor, Tencent
from assay.traces.importers.fio_iolog import FioIolog
from assay.traces.importers.form import TraceForm
from assay.traces.importers.vscsi import VscsiRecords, VscsiText
from assay.traces.importers.windows import DiskIoTable, XperfText

TRACE_FORMS: tuple[type[TraceForm], ...] = (
    BlktraceBinary, FioIolog, Msr, Systor, Alibaba, Tencent, Spc, VscsiText, XperfText, DiskIoTable, BlkparseText,
    Fiu, DiskSim,
    # Last of all: it has no mark but plausible numbers.
    VscsiRecords,
)  # fmt: skip


def form_of(head: bytes) -> type[TraceForm] | None:
    """The form of a file that begins so; None if it is of none that is known."""
    return next((one for one in TRACE_FORMS if one().recognises(head)), None)


def form_named(name: str) -> type[TraceForm] | None:
    """The form that `--format` calls so."""
    return next((one for one in TRACE_FORMS if one.name == name), None)
