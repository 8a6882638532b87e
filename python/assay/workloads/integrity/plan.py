"""The integrity workload: what `assay verify` runs, in SQLIOSim's terms but base units.

Plans and presets are TOML with these keys; a `sqliosim.cfg` becomes the same model (`sqliosim.py`).
Sources of defaults: SQLIOSim's documentation (KB 231619) and the configuration files shipped with it. The presets are
the variants it is shipped with; they differ in one thing, they go on after an error and count them all.
"""

from __future__ import annotations

from posixpath import normpath
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, model_validator

from assay.base.fields import Bytes, FieldValueError, Seconds, Share, Strict, named_by_key
from assay.base.units import format_bytes, parse_bytes
from assay.workloads.options import BACKEND, TARGET, TIME, Option
from assay.workloads.plan import AnyPlan

DATABASE = "Imitated database"
"""Group of options."""
USERS = Option("--users", "Users by kind", DATABASE, is_keyed=True)
Users = Annotated[int, Field(ge=-1, le=10_000), USERS]
"""Number of users of a kind; -1 chooses from the number of CPUs."""
Pages = Annotated[int, Field(ge=1, le=1 << 20)]

PAGE_BYTES = 8192
"""A page of data, as SQL Server's."""
PAGES_BYTES = (PAGE_BYTES, 16384)
"""Sizes of pages that a plan may have: those of SQL Server and PostgreSQL, and that of InnoDB."""
Model = TypeVar("Model", bound=Strict)
USERS_MAX_AUTOMATIC = 8
DATA_MAX_BYTES = PAGE_BYTES << 32
LOG_MAX_BYTES = 512 << 32
"""Largest file: page numbers have 32 bits, and blocks of a log may be as small as 512 bytes."""


def _in_order(model: Model, *pairs: tuple[str, str]) -> Model:
    for least, most in pairs:
        if getattr(model, least) > getattr(model, most):
            raise ValueError(f"{least} {getattr(model, least):g} is above {most} {getattr(model, most):g}")
    return model


class DatabaseFile(Strict):
    """One file of the imitated database, where a plan names files of its own."""

    path: Annotated[str, Field(min_length=1, max_length=4096)]
    """Absolute, or relative to the current folder."""
    size_bytes: Bytes
    max_bytes: Bytes | None = None
    """It may grow to this; None: its size."""
    increment_bytes: Annotated[int, named_by_key(parse_bytes), Field(ge=0, lt=1 << 60)] = 0
    """By how much it grows and shrinks; 0: it never does."""
    shrinkable: bool = False
    """Whether it grows and shrinks at all."""
    sparse: bool = False
    """Left unallocated until written."""
    log: bool = False

    @property
    def most_bytes(self) -> int:
        """The largest it ever gets."""
        return self.max_bytes or self.size_bytes

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for key in ("size_bytes", "max_bytes", "increment_bytes"):
            size_bytes = getattr(self, key)
            if size_bytes is not None and size_bytes % PAGE_BYTES:
                raise ValueError(f"{key} {size_bytes} is not a multiple of {PAGE_BYTES}, the size of a page")
        if self.most_bytes < self.size_bytes:
            raise ValueError(f"size_bytes {self.size_bytes} is above max_bytes {self.max_bytes}")
        if self.increment_bytes > self.most_bytes:
            raise ValueError(f"increment_bytes {self.increment_bytes} is more than the file's {self.most_bytes}")
        if self.shrinkable and not self.increment_bytes:
            raise ValueError("shrinkable needs increment_bytes: how much the file grows and shrinks at a time")
        largest_bytes = LOG_MAX_BYTES if self.log else DATA_MAX_BYTES
        if self.most_bytes > largest_bytes:
            what = "log" if self.log else "data"
            raise ValueError(f"a {what} file has at most {format_bytes(largest_bytes)}: page numbers have 32 bits")
        return self


class RandomUser(Strict):
    """Transactions: chains of pages, read, changed in part, logged before they are written."""

    users: Users = -1
    jump_share: Share = 0.05
    """Chance to go on in another region of the file."""
    chain_min: Pages = 50
    chain_max: Pages = 100
    update_share: Share = 0.9
    """Share of the pages read that are changed."""
    log_bytes_min: Annotated[int, Field(ge=1, le=64000)] = 64
    log_bytes_max: Annotated[int, Field(ge=1, le=64000)] = 8192
    """Log written for each changed page."""
    rollback_share: Share = 0.01
    sleep_s: Seconds = 0.005

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return _in_order(self, ("chain_min", "chain_max"), ("log_bytes_min", "log_bytes_max"))


class AuditUser(Strict):
    """Consistency checks: pages read in order."""

    users: Users = 2
    pages: Pages = 64
    delay_after_cycles: Annotated[int, Field(ge=1, le=1 << 20)] = 2
    delay_s: Seconds = 0.2


class ReadAheadUser(Strict):
    """Scans: many pages in one read."""

    users: Users = 2
    pages_min: Pages = 32
    pages_max: Pages = 64
    delay_after_cycles: Annotated[int, Field(ge=1, le=1 << 20)] = 2
    delay_s: Seconds = 0.2

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return _in_order(self, ("pages_min", "pages_max"))


class BulkUpdateUser(ReadAheadUser):
    """Bulk loads: many pages in one write."""

    users: Users = -1
    pages_min: Pages = 64
    pages_max: Pages = 128
    delay_s: Seconds = 0.01


class ShrinkUser(Strict):
    """Files that grow and shrink by extents of their increment."""

    users: Annotated[int, Field(ge=0, le=1), USERS] = 1
    interval_min_s: Seconds = 120.0
    interval_max_s: Seconds = 600.0
    extents_min: Pages = 1
    extents_max: Pages = 20

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return _in_order(self, ("interval_min_s", "interval_max_s"), ("extents_min", "extents_max"))


class IntegrityTiming(Strict):
    """How long, and what counts as too long."""

    stress_s: Annotated[Seconds, Option("--duration", "Length of the stress phase of a cycle (300s).", TIME)] = 300.0
    """Length of the stress phase of one cycle; preparing, the final checkpoint and the audit come on top."""
    long_io_s: Annotated[
        Seconds, Field(gt=0), Option("--long-io", "An I/O outstanding longer is reported (15s).", TIME)
    ] = 15.0
    """An I/O outstanding longer is reported while it is."""
    io_timeout_s: Annotated[
        Seconds, Field(gt=0), Option("--io-timeout", "An older outstanding I/O ends the run (120s).", TIME)
    ] = 120.0
    """An I/O outstanding for longer ends the run: the target does not answer."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return _in_order(self, ("long_io_s", "io_timeout_s"))


class IntegrityPlan(AnyPlan):
    """A plan of `assay verify`."""

    kind: Literal["integrity"] = "integrity"
    name: str = "default"
    title: str = "Integrity under database I/O"
    backend: Annotated[Literal["auto", "io-uring", "threads"], BACKEND] = "auto"
    timing: IntegrityTiming = IntegrityTiming()
    cycles: Annotated[
        int,
        Field(ge=0, le=1 << 20),
        Option("--cycles", "Number of cycles through all phases (1); 0: until Ctrl-C.", TIME),
    ] = 1
    """How often prepare, stress, checkpoint and audit follow each other; 0: until interrupted."""
    memory_bytes: Annotated[Bytes | None, Option("--memory", "Buffer pool of the imitated engine.", DATABASE)] = None
    """Buffer pool of the imitated engine; None: a quarter of the free memory, the data's size at most."""
    cache_hit_share: Share = 0.1
    page_bytes: Annotated[Bytes, Option("--page", "Size of a page of data: 8K or 16K (8K).", DATABASE)] = PAGE_BYTES
    """Size of a page of data, which is what a crash must not tear."""
    max_outstanding: Annotated[int, Field(ge=0, le=140_000)] = 0
    """Most I/Os outstanding; 0 chooses."""
    target_io_s: Annotated[Seconds, Field(gt=0)] = 0.1
    """Mean duration of an I/O above which fewer are issued."""
    bursts: bool = True
    """Preparing and the first and last checkpoint are not throttled."""
    no_buffering: Annotated[
        bool, Option("--buffered", "Through the page cache instead of O_DIRECT.", DATABASE, values=(False,))
    ] = True
    write_through: bool = True
    scatter_gather: bool = True
    force_read_ahead: bool = True
    """Read from the storage what the pool holds, too."""
    delete_at_startup: bool = True
    delete_at_shutdown: bool = False
    look_first: bool = True
    """Pages and log records are read and verified before they are written over."""
    stop_on_error: Annotated[bool, Option("--stop-on-error", "End at the first finding.", DATABASE, values=(True,))] = (
        False
    )
    pages_per_io: Annotated[int, Field(ge=1, le=64)] = 32
    """Most pages of a write, and of a read of the audit; 1: each page is a write of its own."""
    random: RandomUser = RandomUser()
    audit: AuditUser = AuditUser()
    read_ahead: ReadAheadUser = ReadAheadUser()
    bulk_update: BulkUpdateUser = BulkUpdateUser()
    shrink: ShrinkUser = ShrinkUser()
    files: tuple[DatabaseFile, ...] = ()
    """Files by name, from a sqliosim.cfg; empty: the target's volumes."""
    size: Annotated[
        str | None, Option("--size", "Size of each data file at first; by role: data=10G,log=1G.", TARGET)
    ] = None
    """Size of each new file of the target, as `--size` takes it."""
    most_bytes: Bytes | None = None
    """Use no more of each volume than this, from its beginning; None: all of it."""
    shrinkable: bool = True
    """Whether new files of the target grow and shrink."""
    sparse: bool = False
    """New files of the target are left unallocated until written."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.files and len({file.log for file in self.files}) == 1:
            given, needed = ("log", "data") if self.files[0].log else ("data", "log")
            raise FieldValueError("files", f"only {given} files; at least one {needed} file is needed")
        if self.page_bytes not in PAGES_BYTES:
            size, accepted = format_bytes(self.page_bytes), ", ".join(map(format_bytes, PAGES_BYTES))
            raise FieldValueError("page_bytes", f"{size} is not accepted; accepted: {accepted}")
        paths = set()
        for file in self.files:
            path = normpath(file.path)
            if path in paths:
                raise FieldValueError("files", f"{file.path} is named twice")
            paths.add(path)
        return self
