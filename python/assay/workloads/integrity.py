"""The integrity workload: what `assay verify` runs, in SQLIOSim's terms but base units.

Plans and presets are TOML with these keys; a `sqliosim.cfg` becomes the same model (`assay.workloads.sqliosim`).
Sources of defaults: SQLIOSim's documentation (KB 231619) and the configuration files shipped with it.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, model_validator

from assay.workloads.io import Bytes, Seconds, Share, Strict

Users = Annotated[int, Field(ge=-1, le=10_000)]
"""Number of users of a kind; -1 chooses from the number of CPUs."""
Pages = Annotated[int, Field(ge=1, le=1 << 20)]

PAGE_BYTES = 8192
Model = TypeVar("Model", bound=Strict)
USERS_MOST_AUTOMATIC = 8


def _in_order(model: Model, *pairs: tuple[str, str]) -> Model:
    for least, most in pairs:
        if getattr(model, least) > getattr(model, most):
            raise ValueError(f"{least} {getattr(model, least):g} is above {most} {getattr(model, most):g}")
    return model


class DatabaseFile(Strict):
    """One file of the imitated database, where a plan names files of its own."""

    path: str
    size_bytes: Bytes
    max_bytes: Bytes | None = None
    """It may grow to this; None: its size."""
    increment_bytes: Annotated[int, Field(ge=0)] = 0
    shrinkable: bool = False
    sparse: bool = False
    log: bool = False


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


class BulkUpdateUser(Strict):
    """Bulk loads: many pages in one write."""

    users: Users = -1
    pages_min: Pages = 64
    pages_max: Pages = 128
    delay_after_cycles: Annotated[int, Field(ge=1, le=1 << 20)] = 2
    delay_s: Seconds = 0.01

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return _in_order(self, ("pages_min", "pages_max"))


class ShrinkUser(Strict):
    """Files that grow and shrink by extents of their increment."""

    users: Annotated[int, Field(ge=0, le=1)] = 1
    interval_min_s: Seconds = 120.0
    interval_max_s: Seconds = 600.0
    extents_min: Pages = 1
    extents_max: Pages = 20

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return _in_order(self, ("interval_min_s", "interval_max_s"), ("extents_min", "extents_max"))


class IntegrityTiming(Strict):
    """How long, and what counts as too long."""

    stress_s: Seconds = 300.0
    """Length of the stress phase of one cycle; preparing, the final checkpoint and the audit come on top."""
    long_io_s: Annotated[Seconds, Field(gt=0)] = 15.0
    """An I/O outstanding longer is reported while it is."""
    io_timeout_s: Annotated[Seconds, Field(gt=0)] = 120.0
    """Without any completion for so long the target counts as not answering."""


class IntegrityPlan(Strict):
    """A plan of `assay verify`."""

    kind: Literal["integrity"] = "integrity"
    name: str = "default"
    title: str = "Integrity under database I/O"
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 1
    backend: Literal["auto", "io-uring", "threads"] = "auto"
    timing: IntegrityTiming = IntegrityTiming()
    cycles: Annotated[int, Field(ge=0, le=1 << 20)] = 1
    """How often prepare, stress, checkpoint and audit follow each other; 0: until interrupted."""
    memory_bytes: Bytes | None = None
    """Buffer pool of the imitated engine; None: a quarter of the free memory, the data's size at most."""
    cache_hit_share: Share = 0.1
    max_outstanding: Annotated[int, Field(ge=0, le=140_000)] = 0
    """Most I/Os outstanding; 0 chooses."""
    target_io_s: Annotated[Seconds, Field(gt=0)] = 0.1
    """Mean duration of an I/O above which fewer are issued."""
    bursts: bool = True
    """Preparing and the first and last checkpoint are not throttled."""
    no_buffering: bool = True
    write_through: bool = True
    scatter_gather: bool = True
    force_read_ahead: bool = True
    """Read from the storage what the pool holds, too."""
    delete_at_startup: bool = True
    delete_at_shutdown: bool = False
    stamp_files: bool = False
    """Files that grow are filled with zeros first."""
    stop_on_error: bool = False
    pages_per_io: Annotated[int, Field(ge=1, le=64)] = 32
    """Pages per I/O when all pages are written or read in order: prepare and audit."""
    random: RandomUser = RandomUser()
    audit: AuditUser = AuditUser()
    read_ahead: ReadAheadUser = ReadAheadUser()
    bulk_update: BulkUpdateUser = BulkUpdateUser()
    shrink: ShrinkUser = ShrinkUser()
    files: tuple[DatabaseFile, ...] = ()
    """Files by name, from a sqliosim.cfg; empty: the target's volumes."""

    limits: tuple[str, ...] = ()
    user_limits: bool = False

