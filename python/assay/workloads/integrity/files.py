"""The files of the imitated database: which part of which volume they are, made ready before a run and tidied after."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypedDict

from assay import _core
from assay.base.errors import AssayError, NotAnswering, UsageError
from assay.base.paths import printable
from assay.base.units import format_bytes
from assay.targets.answering import answer_within
from assay.targets.files.hold import Hold
from assay.targets.files.room import usable_bytes
from assay.targets.files.safety import ExaminedVolume
from assay.targets.files.target import (
    STORED_IN_FILES,
    StorageTarget,
    discard_created,
    make_file,
    reserving_most_s,
    restore_sizes,
)
from assay.targets.files.volume import OpenVolume
from assay.workloads.integrity.plan import PAGE_BYTES, DatabaseFile, IntegrityPlan

FILE_MIN_BYTES = 1 << 20
PAGES_MAX = (1 << 32) - 1
"""Page numbers have 32 bits."""

SHARED_LOG_SHARE = 0.1
SHARED_LOG_MIN_BYTES, SHARED_LOG_MAX_BYTES = 8 << 20, 1 << 30
"""Part of a volume that a log takes which shares it with data."""

GROWTH_MAX = 2
INCREMENTS = 20
"""A file may grow to twice its size, by twentieths of it."""


class PlannedFile(TypedDict):
    """A file as the compiled core takes it (`crates/integrity/src/plan.rs`), with the descriptor that is held of it."""

    name: str
    path: str
    log: bool
    base_bytes: int
    size_bytes: int
    max_bytes: int
    increment_bytes: int
    sector_bytes: int
    data_page_bytes: int
    held: int | None
    direct: bool


@dataclass(frozen=True, kw_only=True)
class PlacedFile:
    """One file of the imitated database in its place.

    Attributes
    ----------
    name
        Unique; the volume's, with the role after it where two share the volume.
    volume
        Name of the volume.
    path
        Symbolic links resolved.
    base_bytes
        Where it begins in `path`.
    max_bytes, increment_bytes
        It may grow to this in such steps; equal to `size_bytes` and 0 where its size must not change.
    sector_bytes
        What I/O is aligned to, and the block of a log.
    data_page_bytes
        A page of a data file.
    held
        Descriptor of the file or device; None before it is made.
    """

    name: str
    volume: str
    path: Path
    log: bool
    base_bytes: int
    size_bytes: int
    max_bytes: int
    increment_bytes: int
    sector_bytes: int
    held: int | None = None
    data_page_bytes: int = PAGE_BYTES

    @property
    def pages(self) -> int:
        """Pages, or blocks of a log, it has at the begin."""
        return self.size_bytes // self.page_bytes

    @property
    def pages_most(self) -> int:
        """Pages, or blocks of a log, it can ever have."""
        return self.max_bytes // self.page_bytes

    @property
    def page_bytes(self) -> int:
        """Bytes of a page, or of a block of a log."""
        return self.sector_bytes if self.log else self.data_page_bytes

    @property
    def can_grow(self) -> bool:
        """Whether its size may change."""
        return self.max_bytes > self.size_bytes

    def to_plan(self, *, direct: bool) -> PlannedFile:
        """The file as the compiled core takes it."""
        return {
            "name": self.name,
            "path": printable(self.path),
            "log": self.log,
            "base_bytes": self.base_bytes,
            "size_bytes": self.size_bytes,
            "max_bytes": self.max_bytes,
            "increment_bytes": self.increment_bytes,
            "sector_bytes": self.sector_bytes,
            "data_page_bytes": self.data_page_bytes,
            "held": self.held,
            "direct": direct,
        }


def place_files(target: StorageTarget, plan: IntegrityPlan) -> list[PlacedFile]:
    """Data and log files on the volumes; without a volume for it, the log takes the first part of the first one.

    Raises
    ------
    UsageError
        There is no data volume, or a file would be too small or too large.
    """
    most_bytes = plan.most_bytes
    volumes = [
        replace(volume, size_bytes=min(volume.size_bytes, most_bytes)) if most_bytes else volume
        for volume in target.volumes
    ]
    data = [volume for volume in volumes if volume.roles != ("log",)]
    if not data:
        raise UsageError("no data volume: give a file, a folder or a device, or --volume data=PATH,log=PATH")
    has_log = any("log" in volume.roles for volume in volumes)
    placed: list[PlacedFile] = []
    place = partial(_place, page_bytes=plan.page_bytes)
    for volume, examined in zip(volumes, target.examined, strict=True):
        if examined.path is None:
            raise UsageError("null: keeps nothing that could be verified; give a file, a folder or a device")
        if volume.roles == ("log",):
            placed.append(place(volume, examined, log=True, base_bytes=0, size_bytes=volume.size_bytes))
        elif "log" in volume.roles or (not has_log and volume is data[0]):
            log_bytes = _shared_log_bytes(volume.size_bytes)
            rest_bytes = volume.size_bytes - log_bytes
            placed.append(place(volume, examined, log=False, base_bytes=log_bytes, size_bytes=rest_bytes))
            log = place(volume, examined, log=True, base_bytes=0, size_bytes=log_bytes)
            placed.append(replace(log, name=f"{volume.name}-log"))
        else:
            placed.append(place(volume, examined, log=False, base_bytes=0, size_bytes=volume.size_bytes))
    for file in placed:
        _check_size(file)
    return _with_growth(placed, target, plan)


def _shared_log_bytes(size_bytes: int) -> int:
    """A tenth, within bounds; of a small volume half at most. A multiple of 1 MiB, so that data pages stay aligned."""
    wanted = min(max(int(size_bytes * SHARED_LOG_SHARE), SHARED_LOG_MIN_BYTES), SHARED_LOG_MAX_BYTES)
    return min(wanted, size_bytes // 2) >> 20 << 20


def _place(
    volume: OpenVolume, examined: ExaminedVolume, *, log: bool, base_bytes: int, size_bytes: int, page_bytes: int
) -> PlacedFile:
    assert examined.path is not None
    sector_bytes = 512 if volume.sector_bytes <= 512 else 4096
    unit_bytes = max(sector_bytes, 4096) if log else page_bytes
    size_bytes = size_bytes // unit_bytes * unit_bytes
    return PlacedFile(
        name=volume.name,
        volume=volume.name,
        path=examined.path,
        log=log,
        base_bytes=base_bytes,
        size_bytes=size_bytes,
        max_bytes=size_bytes,
        increment_bytes=0,
        sector_bytes=sector_bytes,
        data_page_bytes=page_bytes,
        held=volume.hold.descriptor if volume.hold is not None else None,
    )


def _check_size(file: PlacedFile) -> None:
    kind = "log" if file.log else "data"
    if file.size_bytes < FILE_MIN_BYTES:
        raise UsageError(
            f"{file.path}: leaves {format_bytes(file.size_bytes)} for the {kind}, which needs at least"
            f" {format_bytes(FILE_MIN_BYTES)}; give a larger --size"
        )
    if file.pages_most > PAGES_MAX:
        most = PAGES_MAX * (file.size_bytes // file.pages)
        raise UsageError(
            f"{file.path}: {format_bytes(file.size_bytes)} of {kind} are more than the {format_bytes(most)} that page"
            " numbers reach; give a smaller --size"
        )


# Growth


def _with_growth(placed: Sequence[PlacedFile], target: StorageTarget, plan: IntegrityPlan) -> list[PlacedFile]:
    """Data files with the sizes they may grow to: what Assay made may, where the plan wants it and there is room."""
    examined = {volume.spec.name: volume for volume in target.examined}
    asked = files_by_path(plan)

    def path_of(file: PlacedFile) -> str:
        return str(examined[file.volume].spec.path)

    growing = [
        file
        for file in placed
        if plan.shrink.users
        # A journal's pages must have their places whatever a crash leaves of a file.
        and target.journal is None
        and not file.log
        and _may_change(examined[file.volume], plan, asked.get(path_of(file)))
    ]
    on_device = Counter(examined[file.volume].device_id for file in growing)
    rooms = {
        device: usable_bytes(target.examined, _needed(target), device) // count
        for device, count in on_device.items()
        if device is not None
    }
    made = []
    for file in placed:
        device = examined[file.volume].device_id
        if file in growing and device is not None:
            made.append(_grown(file, asked.get(path_of(file)), rooms[device]))
        else:
            made.append(file)
    return made


def _may_change(volume: ExaminedVolume, plan: IntegrityPlan, asked: DatabaseFile | None) -> bool:
    wanted = plan.shrinkable if asked is None else asked.shrinkable
    return wanted and volume.spec.kind in STORED_IN_FILES and _is_ours(volume)


def _is_ours(volume: ExaminedVolume) -> bool:
    """Whether Assay made the file, or will: one that is empty becomes its."""
    return volume.created_by_assay or not volume.exists or volume.is_empty


def _needed(target: StorageTarget) -> dict[str, int]:
    return {volume.spec.name: target.sizes[volume.spec.name] for volume in target.unwritten}


def _grown(file: PlacedFile, asked: DatabaseFile | None, room_bytes: int) -> PlacedFile:
    increment = asked.increment_bytes if asked is not None and asked.increment_bytes else file.size_bytes // INCREMENTS
    page = file.page_bytes
    increment = max(increment // page * page, page)
    wanted = GROWTH_MAX * file.size_bytes if asked is None else asked.most_bytes
    most = min(wanted, file.size_bytes + room_bytes, PAGES_MAX * page) // page * page
    if most < file.size_bytes + increment:
        return file
    return replace(file, max_bytes=most, increment_bytes=increment)


def files_by_path(plan: IntegrityPlan) -> dict[str, DatabaseFile]:
    """The files a plan names, by absolute path."""
    return {os.path.abspath(os.path.expanduser(file.path)): file for file in plan.files}


# Making ready and tidying


def make_files(target: StorageTarget, files: Sequence[PlacedFile], plan: IntegrityPlan) -> None:
    """Create and reserve the files; they are not filled, since preparing writes every page of them.

    Raises
    ------
    OutOfSpace, OpenFailed, IoFailed, NotAnswering
        Files made for this run are removed first.
    """
    ends = _ends(files)
    try:
        for volume in target.examined:
            if volume.spec.kind in STORED_IN_FILES:
                _make(volume, ends[volume.spec.name], target, plan)
    except BaseException as error:
        if not isinstance(error, NotAnswering):
            discard_created(target)
            restore_sizes(target)
        raise


def _make(volume: ExaminedVolume, size_bytes: int, target: StorageTarget, plan: IntegrityPlan) -> None:
    path = volume.path
    assert path is not None
    if volume.spec.name in target.laid_out_bytes:
        # An earlier part of the run has made it.
        volume = replace(volume, exists=True, created_by_assay=_is_ours(volume))
    answer_within(
        reserving_most_s(size_bytes, plan.timing.io_timeout_s),
        lambda: make_file(
            volume,
            size_bytes,
            target,
            emptied=plan.delete_at_startup,
            sparse=volume.spec.name in target.sparse,
        ),
        what=str(path),
    )


def tidy_files(target: StorageTarget, files: Sequence[PlacedFile], plan: IntegrityPlan, *, keep: bool) -> None:
    """Give files that Assay made the size back they had, or remove them if the plan says so.

    `keep` leaves everything as it is, for the search for a finding's cause. Failures are passed over: whatever is wrong
    with a file by now, the run has found it or is over.
    """
    ends = _ends(files)
    for volume in target.examined:
        if volume.spec.kind not in STORED_IN_FILES or not _is_ours(volume):
            continue
        hold, size_bytes = target.holds.get(volume.spec.name), ends[volume.spec.name]
        if hold is None:
            continue
        # Other parts may use more of the file than this one does; what was emptied stays a hole, and is laid out again.
        whole_bytes = max(size_bytes, target.sizes[volume.spec.name])

        def tidy(
            hold: Hold = hold,
            size_bytes: int = size_bytes,
            whole_bytes: int = whole_bytes,
            name: str = volume.spec.name,
        ) -> None:
            if plan.delete_at_shutdown and not keep:
                hold.remove()
                return
            size_now = os.fstat(hold.descriptor).st_size
            if not keep and size_now != whole_bytes:
                if name not in target.sparse and size_now < size_bytes:
                    _core.allocate(hold.descriptor, hold.path, size_bytes)
                os.ftruncate(hold.descriptor, whole_bytes)
            hold.end_writing()

        with suppress(OSError, AssayError):
            answer_within(reserving_most_s(size_bytes, plan.timing.io_timeout_s), tidy, what=str(hold.path))


def _ends(files: Sequence[PlacedFile]) -> dict[str, int]:
    """Where the last file of each volume ends, by volume."""
    ends: dict[str, int] = {}
    for file in files:
        ends[file.volume] = max(ends.get(file.volume, 0), file.base_bytes + file.size_bytes)
    return ends
