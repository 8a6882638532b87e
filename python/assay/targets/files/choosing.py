"""Choosing a target on storage: volumes are examined, and their sizes chosen."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from functools import partial

from assay import _core
from assay.base.errors import RefusedTarget, UsageError
from assay.base.units import format_bytes
from assay.targets.answering import ANSWER_TIMEOUT_S, answer_within
from assay.targets.files.new_files import refuse_new_file
from assay.targets.files.room import check_space
from assay.targets.files.safety import ExaminedVolume, examine
from assay.targets.files.spec import VolumeSpec
from assay.targets.files.target import STORED_IN_FILES, StorageTarget
from assay.targets.host import memory_bytes

NULL_BYTES = 1 << 40
"""Size a null device pretends to have."""

FREE_SHARE_DEFAULT = 0.10
SIZE_MAX_DEFAULT_BYTES = 10 << 30
SIZE_MIN_BYTES = 16 << 20
"""A new file takes a tenth of the free space, 10 GiB at most, unless `--size` says otherwise."""

LOG_SHARE = 0.1
LOG_MIN_BYTES, LOG_MAX_BYTES = 16 << 20, 1 << 30
"""A new log of an imitated database takes a tenth of the data, within these bounds."""


def choose_target(
    specs: Sequence[VolumeSpec],
    *,
    overwrite: Collection[str],
    yes_destroy: Collection[str],
    writes: bool,
    cache_bytes: int | None = None,
    size_most_bytes: int = SIZE_MAX_DEFAULT_BYTES,
    database: bool = False,
    sparse: Collection[str] = (),
    create: bool = True,
) -> StorageTarget:
    """Examine volumes and choose their sizes; nothing is written.

    Without `create` a new file must have a name with a suffix.

    `database` and `sparse` (names) are those of the target; a new log of a database takes a share of the data's size.

    Raises
    ------
    RefusedTarget
        A volume must not be written to.
    OutOfSpace
        A file system has no room.
    UsageError
        A size is too small.
    """
    merged = _merge_shared(specs)
    examined = [examine(spec, overwrite=overwrite, yes_destroy=yes_destroy, writes=writes) for spec, _ in merged]
    for volume in (volume for volume in examined if volume.spec.kind in STORED_IN_FILES):
        refuse_new_file(volume, create=create)
    target = StorageTarget(
        examined=examined,
        sizes={},
        roles={spec.name: roles for spec, roles in merged},
        places={spec.name: places for spec, places in _places(specs, merged)},
        cache_bytes=cache_bytes,
        foreign=frozenset() if writes else _foreign(examined, overwrite),
        database=database,
        sparse=frozenset(sparse),
        array=next((spec.array for spec in specs if spec.array is not None), None),
    )
    target.holds = {volume.spec.name: volume.hold for volume in examined if volume.hold is not None}
    if target.array is not None:
        # Before a run folder is made: the compiled model knows what else no array can be.
        _core.ModelledArray(json.dumps(target.array.plan()))
        target.sizes = dict(target.array.volumes)
        target.notices += target.array.notices
        return target
    _choose_sizes(target, size_most_bytes)
    needed = [volume.spec.name for volume in target.unwritten if volume.spec.name not in target.sparse]
    check_space(examined, {name: target.sizes[name] for name in needed})
    for volume in target.unwritten:
        # What is only read is laid out all the same where it holds no data yet.
        if volume.hold is not None:
            volume.hold.widen()
    if any(volume.spec.name in target.foreign and not volume.fully_allocated for volume in examined):
        target.notices.append("files with holes are read as they are: holes are answered without the device")
    return target


def _choose_sizes(target: StorageTarget, size_most_bytes: int) -> None:
    """Give each volume its size; new files share the most, and a new log takes a share of the data's size."""
    logs = [volume for volume in target.examined if target.database and target.roles[volume.spec.name] == ("log",)]
    first = [volume for volume in target.examined if volume not in logs]
    new_files = sum(1 for volume in first if volume.spec.kind in STORED_IN_FILES and not volume.exists)
    for volume in first:
        target.sizes[volume.spec.name] = _size_of(volume, target, size_most_bytes // max(new_files, 1))
    log_bytes = log_size_bytes(sum(target.sizes.values()))
    for volume in logs:
        target.sizes[volume.spec.name] = _size_of(volume, target, log_bytes, new_bytes=log_bytes)


def log_size_bytes(data_bytes: int) -> int:
    """Size of a new log for so much data, a multiple of 1 MiB."""
    return min(max(int(data_bytes * LOG_SHARE), LOG_MIN_BYTES), LOG_MAX_BYTES) >> 20 << 20


def _foreign(examined: Sequence[ExaminedVolume], overwrite: Collection[str]) -> frozenset[str]:
    """Files with content that is neither Assay's nor named by `--overwrite`: work that only reads may use them."""
    permitted = {os.path.realpath(path) for path in overwrite}
    return frozenset(
        volume.spec.name
        for volume in examined
        if volume.spec.kind in STORED_IN_FILES
        and volume.exists
        and not volume.is_empty
        and not volume.created_by_assay
        and str(volume.path) not in permitted
    )


def _merge_shared(specs: Sequence[VolumeSpec]) -> list[tuple[VolumeSpec, tuple[str, ...]]]:
    """One volume per file or device, with every role it was named for; links lead to one file by several paths."""
    merged: dict[str, tuple[VolumeSpec, tuple[str, ...]]] = {}
    for position, spec in enumerate(specs):
        key = f"{spec.kind} {position}"
        if spec.path is not None:
            key = answer_within(ANSWER_TIMEOUT_S, partial(os.path.realpath, spec.path), what=str(spec.path))
        known = merged.get(key)
        if known is None:
            merged[key] = spec, (spec.role,)
        elif spec.role not in known[1]:
            merged[key] = known[0], (*known[1], spec.role)
    return list(merged.values())


def _places(
    specs: Sequence[VolumeSpec], merged: Sequence[tuple[VolumeSpec, tuple[str, ...]]]
) -> list[tuple[VolumeSpec, tuple[str, ...]]]:
    """The merged volumes, each with all places that it was named for."""
    paths = [os.path.realpath(spec.path) if spec.path is not None else None for spec in specs]
    found = []
    for one, _ in merged:
        path = paths[next(place for place, spec in enumerate(specs) if spec is one)]
        own = [spec.place for spec, other in zip(specs, paths, strict=True) if spec is one or (path and other == path)]
        found.append((one, tuple(filter(None, own))))
    return found


def _size_of(
    volume: ExaminedVolume, target: StorageTarget, size_most_bytes: int, *, new_bytes: int | None = None
) -> int:
    """Size of a volume: the one asked for, its own, or for a new file `new_bytes` or a share of the free space."""
    spec = volume.spec
    if spec.kind == "null":
        return spec.size_bytes or NULL_BYTES
    if spec.size_rule == "2x-cache":
        size_bytes = 2 * _cache_bytes(target)
    elif spec.size_bytes is not None:
        size_bytes = spec.size_bytes
    elif volume.size_bytes:
        size_bytes = volume.size_bytes
    elif new_bytes is not None:
        size_bytes = new_bytes
    else:
        free_bytes = volume.free_bytes or 0
        size_bytes = max(min(int(free_bytes * FREE_SHARE_DEFAULT), size_most_bytes), SIZE_MIN_BYTES)
        size_bytes = size_bytes >> 20 << 20
    if size_bytes < 512:
        raise UsageError(f"{spec.path}: {size_bytes} bytes are smaller than a sector; give --size, at least 512")
    unit = 4096 if size_bytes >= 4096 and size_bytes != volume.size_bytes else 512
    if spec.kind == "device" and volume.size_bytes is not None and size_bytes > volume.size_bytes:
        raise UsageError(f"--size: {format_bytes(size_bytes)} is more than {spec.path} has")
    if spec.name in target.foreign and size_bytes > (volume.size_bytes or 0):
        raise RefusedTarget(
            f"{spec.path}: holds {format_bytes(volume.size_bytes or 0)} that Assay did not write, and"
            f" {format_bytes(size_bytes)} are asked; give a smaller --size, or --overwrite {spec.path} to destroy its"
            " content"
        )
    return size_bytes // unit * unit


def _cache_bytes(target: StorageTarget) -> int:
    if target.cache_bytes is not None:
        return target.cache_bytes
    detected = memory_bytes()
    notice = (
        f"--size 2x-cache: twice the host's memory of {format_bytes(detected)}, the only cache Linux can see;"
        " state an array's cache with --cache-size"
    )
    if notice not in target.notices:
        target.notices.append(notice)
    return detected
