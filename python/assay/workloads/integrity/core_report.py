"""What the compiled core reports of a run that verifies, and where that is read (crates/python/src/verification.rs)."""

from __future__ import annotations

import json
from typing import NotRequired, TypedDict

from assay.measure.core_reports import FileTick


class VerifiedTick(FileTick):
    """A tick of a file, which is told by its number."""

    file: int


class VerifiedCounts(TypedDict):
    """What was verified and written so far."""

    pages_verified: int
    bytes_verified: int
    pages_written: int
    bytes_written: int
    resizes: int


class OutstandingIo(TypedDict):
    """An I/O that is outstanding for longer than it may be."""

    file: int
    op: str
    page: int
    pages: int
    age_ns: int
    user: str


class EndedPhase(TypedDict):
    """A phase that ended; its times count from the begin of the run."""

    name: str
    cycle: int
    from_ns: int
    to_ns: int
    pages_verified: int
    pages_written: int


class FileWork(TypedDict):
    """The work of one file so far."""

    target_io_ns: int
    average_io_ns: float
    throttled: int
    reads: int
    scatter_reads: int
    writes: int
    gather_writes: int
    io_time_ns: int
    slowest_io_ns: int
    size_bytes: int


class PagePlace(TypedDict):
    """A page of a file."""

    file: int
    page: int


class LastWrite(PagePlace):
    """The last write that a page should hold, as far as it is known."""

    generation: int
    written_ns: int | None
    writer: str | None
    lsn: int | None
    checksum: int | None


class UnitRun(TypedDict):
    """Equal neighbouring units of a page."""

    first: int
    last: int
    state: str
    file: int | None
    page: int | None
    generation: int | None


class NearOperation(TypedDict):
    """An operation near a finding."""

    at_ns: int
    ended_ns: int | None
    op: str
    user: str
    file: int
    page: int
    pages: int
    generation: int
    result: int


class FoundImages(TypedDict):
    """Bytes of the page of a finding, base64, and the operations before it."""

    expected_image: str | None
    received_image: str | None
    other_images: list[str]
    history: list[NearOperation]


class CoreFinding(FoundImages):
    """A finding; files are told by their numbers, times count from the begin of the run."""

    id: int
    kind: str
    also: list[str]
    persistent: bool
    file: int
    page: int
    offset_bytes: int
    length_bytes: int
    phase: str
    cycle: int
    found_ns: int
    by: str
    rereads: int
    explanation: str
    expected: LastWrite | None
    units: list[UnitRun]
    differing_bytes: int
    ranges: list[list[int]]
    elsewhere: PagePlace | None
    operation: str
    errno: int | None


class ReadJournal(TypedDict):
    """What the journal of a run that crashed holds."""

    acknowledged: int
    promised_pages: int
    log_promised: int
    log_end: int
    complete: bool
    ended: bool
    cut_off: bool
    run: str
    page_bytes: int
    write_bytes_max: int
    write_through: bool
    direct: bool
    max_outstanding: int
    outstanding_pages: int
    note: str | None


class VerificationReport(TypedDict):
    """How a run stands, and what is new since the last report; a check after a crash has its journal at its end."""

    state: str
    detail: str | None
    error: str | None
    now_ns: int
    phase: str
    cycle: int
    done_share: float | None
    phase_elapsed_ns: int
    outstanding: int
    audited: bool
    stopped_on_error: bool
    counts: VerifiedCounts
    long_outstanding: list[OutstandingIo]
    ticks: list[VerifiedTick]
    findings: list[CoreFinding]
    phases: list[EndedPhase]
    files: list[FileWork]
    injected: dict[str, int] | None
    observable: dict[str, int] | None
    masked: dict[str, int] | None
    journal: NotRequired[ReadJournal]


def verification_report(text: str) -> VerificationReport:
    """Read a run's report."""
    found: VerificationReport = json.loads(text)
    return found
