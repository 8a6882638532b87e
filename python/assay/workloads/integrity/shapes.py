"""What a run that verifies adds to points and manifests (docs/integrity.md)."""

from __future__ import annotations

from typing import Annotated, Required

from pydantic import Field, with_config
from typing_extensions import TypedDict

from assay.record.shapes.kinds import Shapes
from assay.record.shapes.terms import (
    STRICT,
    Count,
    Counts,
    Flag,
    Integer,
    MaybeAmount,
    MaybeCount,
    PointId,
    Text,
    Texts,
)  # fmt: skip


class Unit(TypedDict, total=False):
    """A run of equal units of a page."""

    first: Annotated[int, Field(ge=0, le=10**6)] | None
    last: Annotated[int, Field(ge=0, le=10**6)] | None
    state: Text
    file: Text
    page: MaybeCount
    generation: MaybeCount


class Expected(TypedDict, total=False):
    """What a page should have held."""

    file: Text
    page: MaybeCount
    generation: MaybeCount
    written_utc_ns: MaybeCount
    writer: Integer | str | None
    lsn: MaybeCount
    checksum: Integer | str | None


class Finding(TypedDict, total=False):
    """One finding."""

    id: Annotated[str, Field(pattern=r"\AF[0-9]{1,12}\z")] | None
    kind: Text
    also: Texts
    persistent: Flag
    file: Text
    page: MaybeCount
    offset_bytes: MaybeCount
    length_bytes: MaybeCount
    phase: Text
    cycle: MaybeCount
    found_utc_ns: MaybeCount
    by: Text
    rereads: MaybeCount
    explanation: Text
    expected: Expected | None
    units: list[Unit] | None
    differing_bytes: MaybeCount
    ranges: list[list[Count]] | None
    elsewhere: Expected | None
    operation: Text
    errno: Integer | None
    evidence: Text


class Phase(TypedDict, total=False):
    """A phase of a cycle."""

    name: Text
    cycle: MaybeCount
    seconds: MaybeAmount
    point_id: PointId | None
    pages_verified: MaybeCount
    pages_written: MaybeCount


class VerifiedFile(TypedDict, total=False):
    """A file and what was done to it."""

    name: Text
    path: Text
    log: Flag
    size_bytes: MaybeCount
    target_io_ms: MaybeAmount
    average_io_ms: MaybeAmount
    throttled: MaybeCount
    reads: MaybeCount
    scatter_reads: MaybeCount
    writes: MaybeCount
    gather_writes: MaybeCount
    io_time_ms: MaybeAmount
    slowest_io_ms: MaybeAmount


class JournalDrive(TypedDict, total=False):
    """A drive that was a volume as a whole, as it was before the run that crashed.

    Attributes
    ----------
    unsafe_shutdowns
        How often it had lost its power without warning, by its own count.
    """

    name: Required[Text]
    model: Text
    firmware: Text
    serial: Text
    wwn: Text
    unsafe_shutdowns: MaybeCount


class Journal(TypedDict, total=False):
    """What the journal of a run that crashed holds.

    Attributes
    ----------
    run
        Identity of that run, hexadecimal.
    page_bytes, write_bytes_max
        Its pages of data, and its largest write of them.
    max_outstanding
        Most I/Os that it had outstanding.
    outstanding_pages
        Pages whose newest write was not promised when it ended, of those with an earlier promise.
    """

    acknowledged: MaybeCount
    promised_pages: MaybeCount
    log_promised: MaybeCount
    log_end: MaybeCount
    complete: Flag
    ended: Flag
    cut_off: Flag
    run: Text
    page_bytes: MaybeCount
    write_bytes_max: MaybeCount
    write_through: Flag
    direct: Flag
    max_outstanding: MaybeCount
    outstanding_pages: MaybeCount
    drives: list[JournalDrive] | None


class Integrity(TypedDict, total=False):
    """What a run that verifies found."""

    passed: Flag
    audited: Flag
    findings: Required[dict[str, Count]]
    transient: Counts
    persistent: Counts
    injected: Counts
    observable: Counts
    masked: Counts
    seed: Integer | None
    run_identity: Text
    cycles: MaybeCount
    pages: MaybeCount
    pages_verified: MaybeCount
    bytes_verified: MaybeCount
    pages_written: MaybeCount
    bytes_written: MaybeCount
    expected_state_bytes: MaybeCount
    log_blocks: MaybeCount
    resizes: MaybeCount
    stopped_on_error: Flag
    phases: list[Phase] | None
    files: list[VerifiedFile] | None
    understood: Texts
    details: list[Finding] | None
    details_left_out: MaybeCount
    evidence: Text
    error_log: Text
    journal: Journal | None


class PhaseFacts(TypedDict, total=False):
    """Which phase a point is."""

    phase: Text
    cycle: MaybeCount
    page_bytes: MaybeCount


class PhaseAsked(PhaseFacts, total=False):
    """What a point says of its workload."""

    kind: Text
    name: Text
    io_mode: Text
    sync: Text


@with_config(STRICT)
class IntegrityPoint(TypedDict, total=False):
    """A phase as a point."""

    workload: PhaseFacts


@with_config(STRICT)
class IntegrityManifest(TypedDict, total=False):
    """A manifest of a run that verifies."""

    integrity: Integrity | None


SHAPES = Shapes(point=IntegrityPoint, manifest=IntegrityManifest)
