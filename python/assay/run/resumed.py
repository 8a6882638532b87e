"""Going on with a run: its folder is asked whose it is, and its targets whether they are still those of the run.

A run folder is foreign input: it may have been copied, unpacked or edited. It decides what is measured, but not alone
where anything is written (docs/safety.md).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from assay import _core
from assay.base.errors import RefusedTarget, RunFolderError
from assay.base.paths import printable
from assay.record.run_folder import RunFolder
from assay.targets.files.safety import ExaminedVolume
from assay.targets.files.target import StorageTarget
from assay.targets.target import Target
from assay.targets.trust import others_write
from assay.workloads.workload import SpreadTarget


def folder_identity(folder: RunFolder) -> dict[str, int | None]:
    """What tells a run folder from a copy of it."""
    descriptor = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return {"inode": os.fstat(descriptor).st_ino, "birth_ns": _core.file_identity(descriptor)[0]}
    finally:
        os.close(descriptor)


def refuse_strange_folder(folder: RunFolder) -> None:
    """Refuse to go on with a folder that another user, or another place, may have filled.

    Raises
    ------
    RunFolderError
        It is another user's, others may write to it, or it is not where the run was made.
    """
    shown = printable(folder.path)
    status = os.stat(folder.path)
    if status.st_uid != os.geteuid():
        raise RunFolderError(
            f"--resume {shown}: belongs to user {status.st_uid}, who could name any target in it; resume it as"
            " that user"
        )
    if others_write(folder.path, status):
        raise RunFolderError(
            f"--resume {shown}: other users may write to it, and so name any target in it; begin a new run"
        )
    if folder.manifest.get("folder") != folder_identity(folder):
        raise RunFolderError(
            f"--resume {shown}: was not made here: it is a copy, was unpacked, or is of an earlier version of"
            " Assay; begin a new run, or resume the folder where it was made"
        )


def refuse_other_targets(folder: RunFolder, targets: Sequence[Target], overwrite: Collection[str]) -> None:
    """Refuse to go on where a target is not that of the run.

    Parameters
    ----------
    folder
        The run.
    targets
        As they were examined now.
    overwrite
        Values of `--overwrite` on this command line.

    Raises
    ------
    RefusedTarget
        A file or device is another one, or nothing but the folder says that it belongs to the run.
    """
    volumes = folder.manifest["target"]["volumes"]
    for target in targets:
        if isinstance(target, SpreadTarget):
            target.refuse_others(folder)
    refuse_other_volumes(folder.path.name, volumes, targets, overwrite)


def refuse_other_volumes(
    run: str, volumes: Sequence[Mapping[str, Any]], targets: Sequence[Target], overwrite: Collection[str]
) -> None:
    """Refuse to go on where a volume of this host is not that of the run.

    Parameters
    ----------
    run
        Its id.
    volumes
        As its manifest has them.
    targets, overwrite
        As of `refuse_other_targets`.

    Raises
    ------
    RefusedTarget
        A file or device is another one, or nothing but the folder says that it belongs to the run.
    """
    recorded = {volume["path"]: volume for volume in volumes if volume.get("path")}
    named = {os.path.realpath(path) for path in overwrite}
    for target in targets:
        if not isinstance(target, StorageTarget):
            continue
        for volume in target.examined:
            if volume.path is not None:
                # What is only read needs no permission.
                permitted = volume.spec.name in target.foreign or str(volume.path) in named
                _refuse_other(run, volume, recorded.get(str(volume.spec.path)), permitted)


def _refuse_other(run: str, volume: ExaminedVolume, recorded: Mapping[str, Any] | None, permitted: bool) -> None:
    shown = printable(volume.spec.path or "")
    permission = f"give --overwrite {shown} to say that it is meant"
    identity = (recorded or {}).get("identity")
    if volume.hold is None:
        if not permitted:
            raise RefusedTarget(f"{shown}: does not exist (any more), and would be made anew; {permission}")
        return
    if identity:
        difference = volume.hold.identity().difference(identity, permitted=permitted)
        if difference is not None:
            raise RefusedTarget(
                f"{shown}: is not what the run began with ({difference}), and was not touched; begin a new run"
            )
        return
    mark = volume.hold.mark
    if not permitted and (mark is None or mark.run != run):
        raise RefusedTarget(f"{shown}: nothing but the run folder says that it belongs to the run; {permission}")
