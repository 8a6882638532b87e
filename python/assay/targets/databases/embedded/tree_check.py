"""Whether a tree holds only what PostgreSQL itself makes, looked at before anything in it is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from assay.base.errors import RefusedTarget
from assay.base.paths import printable
from assay.targets.databases.common.tree_copy import opened_below
from assay.targets.kernel import Kernel


@dataclass(frozen=True, kw_only=True)
class TreeCheck:
    """What a tree may hold.

    Attributes
    ----------
    display
        Begins the message of a refusal.
    owners
        Users whom everything in it may belong to.
    links
        Where links may lead, by their path in the tree or by that of the folder they are in.
    """

    display: str
    owners: Collection[int]
    links: Mapping[str, Collection[str]] = field(default_factory=dict)

    def refuse_foreign(self, folder: int, where: Path) -> None:
        """Refuse an open folder that holds what PostgreSQL has not made there.

        Parameters
        ----------
        where
            The folder's path, for messages.

        Raises
        ------
        RefusedTarget
            A link, a file with a second name, a device, a mount, or something of another user is in it.
        """
        # One of the same file system, or of a file, has nothing else to be told by.
        for mount in Kernel().mounts():
            if where in Path(mount.mount_point).parents:
                self._refuse(Path(mount.mount_point), "is a mount")
        status = os.fstat(folder)
        self._refuse_owner(status, where)
        self._look_into(folder, where, "", status.st_dev)

    def _look_into(self, folder: int, where: Path, below: str, device: int) -> None:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
        for name, status in found:
            path = f"{below}/{name}" if below else name
            self._refuse_owner(status, where / path)
            if stat.S_ISDIR(status.st_mode):
                if status.st_dev != device:
                    self._refuse(where / path, "is a mount of another file system")
                with opened_below(name, folder) as inner:
                    self._look_into(inner, where, path, device)
            elif stat.S_ISLNK(status.st_mode):
                target = os.readlink(name, dir_fd=folder)
                if target not in (*self.links.get(path, ()), *self.links.get(below, ())):
                    self._refuse(where / path, f"is a link to {printable(target)}, which Assay did not make")
            elif not stat.S_ISREG(status.st_mode):
                self._refuse(where / path, "is neither a file nor a folder")
            elif status.st_nlink != 1:
                self._refuse(where / path, "has a second name elsewhere")

    def _refuse_owner(self, status: os.stat_result, path: Path) -> None:
        if status.st_uid not in self.owners:
            self._refuse(path, f"belongs to user {status.st_uid}, who does not run this database")

    def _refuse(self, path: Path, why: str) -> None:
        raise RefusedTarget(
            f"{self.display}: {printable(path)} {why}; remove it if you know it, or give another folder"
        )
