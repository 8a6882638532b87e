"""The mailbox workload (docs/mailbox.md): what `assay mailbox` runs, as a plan in TOML or JSON."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from assay.base.fields import Bytes, FieldValueError, Seconds, Share, Strict, named_by_key
from assay.base.units import format_bytes, parse_bytes
from assay.workloads.options import BACKEND, LOAD, TIME, Option
from assay.workloads.plan import AnyPlan, SearchPlan

DATABASES = "Mailboxes and databases"
"""Group of options."""

MAILBOXES_PER_SERVER_MAX = 10_000
"""One server holds no more active mailboxes; larger boxes are tested as several virtual servers."""

CACHE_MAX_BYTES = 256 << 20
"""What a storage test takes for its cache at most: a larger one would hide the storage."""

CHECKPOINT_ALONE_BYTES, CHECKPOINT_COPIES_BYTES, CHECKPOINT_PASSIVE_BYTES = 20 << 20, 100 << 20, 5 << 20
"""Depth of checkpoints: a database with one copy, an active one with more, a passive copy."""

LONG_TEST_S = 6 * 3600.0
"""A test that lasts longer is a stress test."""

PERFORMANCE_S, STRESS_S, SEARCH_POINT_S = 2 * 3600.0, 24 * 3600.0, 60.0
"""How long tests last, and a load of a search, unless the plan says otherwise."""

COPIES_NEEDED = {"separate": 1, "together": 2, "jbod": 3}
"""Copies of each database that a layout asks for: what is lost with a disk must be elsewhere."""

DATABASE_MIN_BYTES = 1 << 20
EXTENT_BYTES = 1 << 20
"""Databases and logs begin and end at multiples of this."""

TestName = Literal["performance", "stress", "backup", "recovery"]


class OperationMix(Strict):
    """Shares of the operations; the rest are seeks."""

    insert: Share = 0.40
    replace: Share = 0.05
    delete: Share = 0.20
    lazy: Annotated[Share, Option("--lazy", "Share of commits that do not wait for the log.", DATABASES)] = 0.70

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        changed = self.insert + self.replace + self.delete
        if changed > 1 + 1e-9:
            raise ValueError(f"insert, replace and delete add up to {changed:.0%}; 100 % is all there is")
        if changed == 0:
            raise FieldValueError("insert", "no operation changes anything; give insert, replace or delete a share")
        return self

    @property
    def seek(self) -> float:
        """Share of the operations that change nothing."""
        return 1 - self.insert - self.replace - self.delete


class Criteria(Strict):
    """What passes. The maxima are the highest mean of any 15 s, for tests up to six hours and for longer ones."""

    read_mean_s: Seconds = 0.020
    write_mean_s: Seconds = 0.020
    log_write_mean_s: Seconds = 0.010
    strict_peak_s: Seconds = 0.100
    long_peak_s: Seconds = 0.200


class MailboxTiming(Strict):
    """How long."""

    warmup_s: Annotated[Seconds, Option("--warmup", "Warm-up of each load, not measured.", TIME)] = 10.0
    duration_s: Annotated[
        Annotated[Seconds, Field(gt=0)] | None,
        Option("--duration", "Measured time (2h; stress 24h; loads of a search 60s).", TIME),
    ] = None
    io_timeout_s: Annotated[
        Seconds, Field(gt=0), Option("--io-timeout", "An I/O outstanding longer than this ends the run (30s).", TIME)
    ] = 30.0


class MailboxSearch(SearchPlan):
    """How the most I/Os per second within the limits, and so the most mailboxes, are looked for."""

    axis: Literal["none", "rate"] = "none"


class MailboxPlan(AnyPlan):
    """A plan of `assay mailbox`."""

    kind: Literal["mailbox"] = "mailbox"
    name: str = "mailbox"
    title: str = "Mailboxes"
    test: Annotated[TestName, Option("--type", "Test: {choices}.", DATABASES)] = "performance"
    mailboxes: Annotated[
        int, Field(ge=1, le=10_000_000), Option("--mailboxes", "Mailboxes of all servers together.", DATABASES)
    ] = 8000
    iops_per_mailbox: Annotated[
        float,
        Field(gt=0, le=1e6),
        Option("--iops-per-mailbox", "Transactional I/Os per second of a mailbox.", DATABASES),
    ] = 0.1
    mailbox_size_bytes: Annotated[
        Bytes, Option("--mailbox-size", "Size of a mailbox, with white space and deleted items.", DATABASES)
    ] = 2 << 30
    databases: Annotated[int, Field(ge=1, le=100), Option("--databases", "Databases of each server.", DATABASES)] = 5
    copies: Annotated[
        int,
        Field(ge=1, le=16),
        Option("--copies", "Copies of each database, over all servers of the group.", DATABASES),
    ] = 2
    servers: Annotated[int, Field(ge=1, le=100), Option("--servers", "Virtual servers on the storage.", DATABASES)] = 1
    passive: Annotated[
        int, Field(ge=0, le=100), Option("--passive", "Passive copies on each server, which replay logs.", DATABASES)
    ] = 0
    layout: Annotated[
        Literal["auto", "separate", "together", "jbod"],
        Option("--layout", "Logs apart from databases, together, or a disk for each: {choices}.", DATABASES),
    ] = "auto"
    page_bytes: Annotated[
        Literal[4096, 8192, 16384, 32768],
        named_by_key(parse_bytes),
        Option("--page", "Page of the databases: 4K, 8K, 16K or 32K.", DATABASES, metavar="SIZE"),
    ] = 32768
    cache_bytes: Annotated[Bytes, Option("--cache", "Page cache of all databases (256M at most).", DATABASES)] = (
        CACHE_MAX_BYTES
    )
    mix: OperationMix = OperationMix()
    checkpoint_depth_bytes: Annotated[
        Bytes | None,
        Option(
            "--checkpoint-depth",
            "Length of the log behind which checkpoints write pages (20M; with copies 100M).",
            DATABASES,
        ),
    ] = None
    log_file_bytes: Annotated[Bytes, Option("--log-file", "Size of a log file.", DATABASES)] = 1 << 20
    log_size_bytes: Annotated[
        Bytes | None, Option("--log-size", "Size of each database's log, which is reused in a ring.", DATABASES)
    ] = None
    maintenance_bytes_per_s: Annotated[
        int,
        named_by_key(parse_bytes),
        Field(ge=0, lt=1 << 40),
        Option("--maintenance", "Bytes per second that maintenance reads from each database (5MB).", LOAD),
    ] = 5_000_000
    backup_streams: Annotated[
        int,
        Field(ge=0, le=100),
        Option("--backup-streams", "Databases that are backed up while the test measures.", LOAD),
    ] = 0
    log_files: Annotated[
        int, Field(ge=1, le=100_000), Option("--log-files", "Log files that a recovery replays per database.", LOAD)
    ] = 50
    backend: Annotated[Literal["auto", "io-uring", "threads"], BACKEND] = "auto"
    no_buffering: Annotated[
        bool, Option("--buffered", "Through the page cache instead of O_DIRECT.", LOAD, values=(False,))
    ] = True
    criteria: Criteria = Criteria()
    timing: MailboxTiming = MailboxTiming()
    search: MailboxSearch = MailboxSearch()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.mailboxes < self.servers * self.databases:
            raise FieldValueError(
                "mailboxes",
                f"{self.mailboxes} mailboxes are fewer than the {self.servers * self.databases} databases; give fewer"
                " databases or servers",
            )
        most = -(-self.mailboxes // self.servers)
        if most > MAILBOXES_PER_SERVER_MAX:
            raise FieldValueError(
                "mailboxes",
                f"{most:,} mailboxes on a server; one holds {MAILBOXES_PER_SERVER_MAX:,} active ones at most, and more"
                f" are tested as several: give --servers {-(-self.mailboxes // MAILBOXES_PER_SERVER_MAX)}",
            )
        if self.cache_bytes > CACHE_MAX_BYTES:
            raise FieldValueError(
                "cache_bytes",
                f"{format_bytes(self.cache_bytes)} is above {format_bytes(CACHE_MAX_BYTES)}: a larger cache would hide"
                " the storage that is tested",
            )
        needed = COPIES_NEEDED.get(self.layout, 1)
        if self.copies < needed:
            raise FieldValueError("copies", few_copies(self.layout, self.copies))
        if self.passive and self.copies < 2:
            raise FieldValueError("passive", "a database of one copy has no passive ones; give --copies 2")
        if self.log_file_bytes % 65536:
            raise FieldValueError("log_file_bytes", f"{self.log_file_bytes} bytes is not a multiple of 64 KiB")
        if self.search.axis != "none" and self.test not in ("performance", "stress"):
            raise FieldValueError("search", f"a test of type {self.test} has no rate to search; leave --search out")
        return self

    # What follows

    @property
    def is_loaded(self) -> bool:
        """Whether mailboxes are at work, at a rate."""
        return self.test in ("performance", "stress")

    @property
    def target_iops(self) -> float:
        """Transactional I/Os per second of all mailboxes."""
        return self.mailboxes * self.iops_per_mailbox

    @property
    def database_bytes(self) -> int:
        """Size of each database."""
        count = self.servers * self.databases
        size = -(-self.mailboxes * self.mailbox_size_bytes // count)
        return max(-(-size // EXTENT_BYTES) * EXTENT_BYTES, DATABASE_MIN_BYTES)

    @property
    def depth_bytes(self) -> int:
        """Depth of checkpoints of active databases."""
        of_copies = CHECKPOINT_ALONE_BYTES if self.copies == 1 else CHECKPOINT_COPIES_BYTES
        return self.checkpoint_depth_bytes or of_copies

    @property
    def log_bytes(self) -> int:
        """Size of each log: what checkpoints and a recovery need, no more than a quarter of a small database."""
        files = 16
        if self.log_size_bytes is not None:
            files = self.log_size_bytes // self.log_file_bytes
        else:
            wanted = min(4 * self.depth_bytes, self.database_bytes // 4)
            files = max(files, wanted // self.log_file_bytes)
        if self.test == "recovery":
            files = max(files, self.log_files + 8)
        return -(-files * self.log_file_bytes // EXTENT_BYTES) * EXTENT_BYTES

    @property
    def is_long(self) -> bool:
        """Whether the maxima of long tests apply."""
        return self.test == "stress" or (self.timing.duration_s or 0) > LONG_TEST_S

    @property
    def measured_s(self) -> float:
        """How long each load is measured."""
        if self.timing.duration_s is not None:
            return self.timing.duration_s
        if self.search.axis != "none":
            return SEARCH_POINT_S
        return STRESS_S if self.test == "stress" else PERFORMANCE_S

    @property
    def own_limits(self) -> tuple[str, ...]:
        """What passes, as limits; nothing where no mailboxes are at work."""
        if not self.is_loaded:
            return ()
        criteria = self.criteria
        peak = criteria.long_peak_s if self.is_long else criteria.strict_peak_s
        return (
            f"data.read.mean<={_ms(criteria.read_mean_s)}",
            f"data.write.mean<={_ms(criteria.write_mean_s)}",
            f"log.write.mean<={_ms(criteria.log_write_mean_s)}",
            f"database_read.peak<={_ms(peak)}",
            f"log_write.peak<={_ms(peak)}",
        )


def too_many(mailboxes: float, servers: int) -> str | None:
    """What to say where a search finds I/Os for more mailboxes than the servers may have.

    Examples
    --------
    >>> too_many(9000, 1) is None
    True
    >>> str(too_many(24_000, 2)).partition(": ")[2]
    'test them with --servers 3'
    """
    each = mailboxes / servers
    if each <= MAILBOXES_PER_SERVER_MAX:
        return None
    needed = math.ceil(mailboxes / MAILBOXES_PER_SERVER_MAX)
    return (
        f"the storage holds the I/Os of {mailboxes:,.0f} mailboxes, {each:,.0f} a server; one server has"
        f" {MAILBOXES_PER_SERVER_MAX:,} active ones at most: test them with --servers {needed}"
    )


def few_copies(layout: str, copies: int) -> str:
    """Why a layout needs more copies than there are."""
    needed = COPIES_NEEDED[layout]
    why = {
        "together": "a database and its log on the same disks are lost together",
        "jbod": "a disk without RAID takes a database and its log with it",
    }[layout]
    have = f"{copies} {'copy' if copies == 1 else 'copies'}"
    return f"{have}, but layout {layout} needs {needed}: {why}; give --copies {needed}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:g}ms"


def with_own_limits(plan: MailboxPlan) -> MailboxPlan:
    """The plan with the limits that follow from it, unless it has some."""
    if plan.limits:
        return plan
    return plan.model_copy(update={"limits": plan.own_limits})
