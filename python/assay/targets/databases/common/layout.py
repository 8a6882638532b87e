"""How the workload's tables lie on storage: spread over places, and one of them partitioned.

One file per kind of server says how it is done there; restoring the saved state brings the plain layout back.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from typing_extensions import TypedDict

from assay.base.errors import NotSupported, RefusedTarget, UsageError
from assay.base.paths import open_without_links, printable
from assay.record.shapes.terms import MaybeCount, Text, Texts
from assay.targets.databases.common.database import Database, file_errors
from assay.targets.databases.common.table_set import Key

FOLDER = "assay-tablespaces"
"""Folder of tablespaces outside the server's data, beside it or in a directory that the user names."""


@dataclass(frozen=True, kw_only=True)
class TableLayout:
    """The layout that a plan asks for.

    Attributes
    ----------
    places
        Places over which tables and indexes are spread; 1 leaves them where they are unless a directory is named.
    directories
        Folders for the places on the server's host, used in turn; none: beside its data.
    table
        Table to partition; empty: none.
    ways
        Into so many ranges.
    by_columns
        Tables that are kept by columns.
    """

    places: int = 1
    directories: tuple[str, ...] = ()
    table: str = ""
    ways: int = 1
    by_columns: tuple[str, ...] = ()

    @property
    def places_count(self) -> int:
        """Places that are made: those that are asked for; partitions alone take one for each directory."""
        if self.places > 1:
            return self.places
        return len(self.directories) if self.table else len(self.directories[:1])

    def over(self, usual: Sequence[str]) -> TableLayout:
        """The layout with its partitions in places of their own, where the database has several and none is named.

        Parameters
        ----------
        usual
            Folders that the database has for places.
        """
        if not self.table or self.places > 1 or self.directories or len(usual) < 2:
            return self
        return replace(self, directories=(*usual[: self.ways],))

    @property
    def spreads(self) -> bool:
        """Whether all tables move, not just the partitioned one."""
        return self.places > 1 or (bool(self.directories) and not self.table)


class Place(TypedDict, total=False):
    """A place of a layout, and the tables, indexes and partitions in it; bytes where the server tells them."""

    name: Text
    directory: Text
    bytes: MaybeCount
    relations: Texts


class PartitionedTable(TypedDict, total=False):
    """A table and the column whose ranges its partitions are.

    It has the first key of each but the first once they are made, and how many ways where they are asked for.
    """

    table: Text
    column: Text
    first_keys: list[Key] | None
    ways: MaybeCount
    dropped_foreign_keys: Texts


class LaidOutTables(TypedDict, total=False):
    """How the tables of a database were laid out."""

    places: list[Place] | None
    partition: PartitionedTable | None


def refuse_layout(database: Database, *, places: int, ways: int | None, scale: int | None) -> None:
    """Refuse a layout that cannot be made here, before anything is loaded.

    Parameters
    ----------
    places
        Places to spread over.
    ways
        Partitions; None: more than there are keys.
    scale
        How much is loaded.

    Raises
    ------
    NotSupported
        Tables cannot be spread on this kind of server.
    UsageError
        Too little is loaded.
    """
    why = {
        "mssql": "spreading tables over file groups is not built; partition a table instead",
        "mariadb": "InnoDB keeps every table in a file of its own and moves none to another directory; partition one",
        "mysql": "InnoDB keeps every table in a file of its own and moves none to another directory; partition one",
        "duckdb": "it keeps all tables in one file",
        "spark": "it keeps each table in a folder of Parquet files",
    }
    if places > 1 and database.dialect in why:
        raise NotSupported(f"{database.spec.display}: has no tablespaces to spread over: {why[database.dialect]}")
    if ways not in (None, 1) and database.in_process:
        raise NotSupported(f"{database.spec.display}: has no partitions; a column store skips what a filter leaves out")
    if ways is None:
        raise UsageError(
            f"{database.spec.display}: a table cannot be partitioned into more ways than there are"
            f" {database.table_set.scale}, {scale}; load more, or give fewer ways"
        )


def make_folder(database: Database, data: Path, folder: Path) -> str:
    """Make a folder that belongs to whom the server's data belongs to, and its parent; gives its path.

    Raises
    ------
    UsageError
        What it is to lie in does not exist.
    RefusedTarget
        Something that is not the server's stands there, or a link.
    OpenFailed
        It cannot be made.
    """
    if not folder.parent.parent.is_dir():
        raise UsageError(f"{database.spec.display}: directory {folder.parent.parent} does not exist; make it first")
    with file_errors(database.spec.display), contextlib.ExitStack() as stack:
        owner = data.stat()
        way = open_without_links(os.path.realpath(folder.parent.parent), os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, way)
        for path in (folder.parent, folder):
            with contextlib.suppress(FileExistsError):
                os.mkdir(path.name, 0o700, dir_fd=way)
            way = _opened_here(path, way, database.spec.display)
            stack.callback(os.close, way)
            status = os.fstat(way)
            if (status.st_uid, status.st_gid) != (owner.st_uid, owner.st_gid):
                # The server's user may have put another folder there: only an empty one of this user's is given away.
                if status.st_uid != os.geteuid() or os.listdir(way):
                    raise _in_the_way(path, database.spec.display)
                os.fchown(way, owner.st_uid, owner.st_gid)
    return str(folder)


def _opened_here(path: Path, way: int, display: str) -> int:
    try:
        return os.open(path.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=way)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise _in_the_way(path, display) from None
        raise


def _in_the_way(path: Path, display: str) -> RefusedTarget:
    return RefusedTarget(
        f"{display}: {printable(path)} is a link, a file, or a folder that is not the server's; move it away, or name"
        " another directory"
    )


def spread(sizes: Mapping[str, float], filled: Sequence[float]) -> dict[str, int]:
    """Place of each relation: the largest first, each to where least is so far.

    Parameters
    ----------
    sizes
        Bytes by name.
    filled
        Bytes that each place holds already.

    Examples
    --------
    >>> spread({"a": 5, "b": 4, "c": 3, "d": 3}, [0, 0])
    {'a': 0, 'b': 1, 'c': 1, 'd': 0}
    """
    totals = list(filled)
    chosen: dict[str, int] = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        place = min(range(len(totals)), key=lambda number: totals[number])
        totals[place] += sizes[name]
        chosen[name] = place
    return chosen
