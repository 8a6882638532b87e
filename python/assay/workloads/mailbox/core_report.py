"""What the compiled core reports of databases at work, and where that is read (crates/python/src/mailbox.rs)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from assay.measure.core_reports import CoreTelemetry, CoreTick


class PhaseSpan(TypedDict):
    """A phase, and when it began and ended; the last one may go on."""

    name: str
    from_ns: int
    to_ns: int | None


class OperationCounts(TypedDict):
    """Operations of a database so far."""

    inserts: int
    replaces: int
    deletes: int
    seeks: int
    splits: int
    full: int


class DatabaseCounts(OperationCounts):
    """Facts of a database, and what it did so far."""

    pages: int
    leaves: int
    cache_pages: int
    dirty_pages: int
    pages_written: int
    log_record_bytes: int
    log_written_bytes: int
    log_files: int
    backlog: int


class WrongPage(TypedDict):
    """A page whose bytes are not those written, or a piece of a log, which has no page."""

    database: int
    page: int | None
    volume: int
    offset_bytes: int
    what: str
    activity: str


class MailboxReport(TypedDict):
    """How a run stands, and its ticks since the last report."""

    state: str
    detail: str | None
    complete_ticks: int
    now_ns: int
    ticks: list[CoreTick]
    phase: str | None
    phases: list[PhaseSpan]
    done: int
    of: int
    pages_verified: int
    bad_pages: int
    log_files_replayed: int
    bad: list[WrongPage]
    databases: list[DatabaseCounts]
    settled: bool
    telemetry: list[CoreTelemetry]


def mailbox_report(text: str) -> MailboxReport:
    """Read a run's report."""
    found: MailboxReport = json.loads(text)
    return found
