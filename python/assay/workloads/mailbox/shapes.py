"""What mailboxes add to points and manifests (docs/mailbox.md)."""

from __future__ import annotations

from typing import Literal, Required, cast

from pydantic import with_config
from typing_extensions import TypedDict

from assay.record.shapes.kinds import Shapes
from assay.record.shapes.point import End, Point, Workload
from assay.record.shapes.terms import STRICT, Amount, Count, Flag, Interval, MaybeAmount, MaybeCount, PointId, Text


class Stream(TypedDict, total=False):
    """Reads or writes of one kind."""

    per_s: MaybeAmount
    bytes_mean: MaybeAmount
    latency_mean_ns: MaybeAmount
    latency_peak_ns: MaybeAmount


StreamName = Literal[
    "database_read", "database_write", "log_read", "log_write", "maintenance_read", "maintenance_write",
    "shipping_read", "shipping_write", "replay_read", "replay_write", "backup_read", "backup_write", "recovery_read",
    "recovery_write",
]  # fmt: skip
"""Keys of a database's streams."""


class DatabaseDone(TypedDict, total=False):
    """What one database did."""

    name: Text
    server: MaybeCount
    passive: Flag
    database_read: Stream | None
    database_write: Stream | None
    log_read: Stream | None
    log_write: Stream | None
    maintenance_read: Stream | None
    maintenance_write: Stream | None
    shipping_read: Stream | None
    shipping_write: Stream | None
    replay_read: Stream | None
    replay_write: Stream | None
    backup_read: Stream | None
    backup_write: Stream | None
    recovery_read: Stream | None
    recovery_write: Stream | None
    transactional_iops: MaybeAmount
    operations_per_s: MaybeAmount


class ServerDone(TypedDict, total=False):
    """What the databases of a server did together."""

    name: Text
    mailboxes: MaybeCount
    target_iops: MaybeAmount
    transactional_iops: MaybeAmount
    database_read_latency_mean_ns: MaybeAmount
    database_write_latency_mean_ns: MaybeAmount
    log_write_latency_mean_ns: MaybeAmount
    total_iops: MaybeAmount
    bytes_per_s: MaybeAmount
    passed: Flag


class Ratio(TypedDict, total=False):
    """A ratio that came of the run, and where it is expected."""

    value: MaybeAmount
    expected: Interval


class Ratios(TypedDict, total=False):
    """Ratios that came of the run."""

    read_write: Ratio | None
    database_log: Ratio | None
    log_write_bytes: Ratio | None


class Operations(TypedDict, total=False):
    """Operations in the window."""

    insert: MaybeCount
    replace: MaybeCount
    delete: MaybeCount
    seek: MaybeCount
    split: MaybeCount
    full: MaybeCount


class MailboxDone(TypedDict, total=False):
    """What a load of mailboxes did."""

    test: Text
    mailboxes: MaybeCount
    target_iops: MaybeAmount
    achieved_iops: MaybeAmount
    mailboxes_held: MaybeAmount
    databases: list[DatabaseDone] | None
    servers: list[ServerDone] | None
    ratios: Ratios | None
    operations: Operations | None
    settled: Flag


class Backup(TypedDict, total=False):
    """What backups read."""

    seconds: MaybeAmount
    bytes: MaybeCount
    bytes_per_s: MaybeAmount
    complete: Flag


class Recovery(TypedDict, total=False):
    """What a recovery replayed."""

    seconds: MaybeAmount
    log_files: MaybeCount
    log_files_per_s: MaybeAmount
    seconds_per_log_file: MaybeAmount


class BadPage(TypedDict, total=False):
    """A page, or a piece of a log, that was not what was written."""

    database: Text
    page: MaybeCount
    volume: Text
    offset_bytes: MaybeCount
    what: Text
    activity: Text


class Profile(TypedDict):
    """What was asked, as reports of such tests head it."""

    mailboxes: Count
    iops_per_mailbox: Amount
    mailbox_size_bytes: MaybeCount
    servers: MaybeCount
    databases: MaybeCount
    passive: MaybeCount
    copies: MaybeCount
    layout: Text
    page_bytes: MaybeCount
    cache_bytes: MaybeCount
    database_bytes: MaybeCount
    log_bytes: MaybeCount
    log_file_bytes: MaybeCount
    checkpoint_depth_bytes: MaybeCount
    maintenance_bytes_per_s: MaybeCount
    backup_streams: MaybeCount
    insert_share: Amount
    replace_share: Amount
    delete_share: Amount
    seek_share: Amount
    lazy_share: Amount
    measured_s: MaybeAmount


class Mailbox(MailboxDone, total=False):
    """What a run of mailboxes found."""

    passed: Flag
    ended_early: Flag
    point_id: PointId | None
    profile: Profile | None
    backup: Backup | None
    recovery: Recovery | None
    verified: Flag
    pages: MaybeCount
    pages_verified: MaybeCount
    bad_pages: Required[Count]
    bad: list[BadPage] | None


@with_config(STRICT)
class MailboxPoint(TypedDict, total=False):
    """A point of mailboxes."""

    mailbox: MailboxDone | None


@with_config(STRICT)
class MailboxManifest(TypedDict, total=False):
    """A manifest of a run of mailboxes."""

    mailbox: Mailbox | None


class MailboxTest(Workload, total=False):
    """What a point asked."""

    test: Text


class MailboxEnd(End, total=False):
    """A load of a search for mailboxes."""

    achieved_iops: MaybeAmount
    mailboxes: MaybeAmount


def done_of(point: Point) -> MailboxDone:
    """What the mailboxes of a point did; empty where it holds none."""
    return cast("MailboxPoint", point).get("mailbox") or {}


SHAPES = Shapes(point=MailboxPoint, manifest=MailboxManifest)
