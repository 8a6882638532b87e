"""What another user put into the folder of a Spark target, or into the way to it: refused by name, and left alone.

The attack is a link in the place of a table's folder, of a file of it or of the book, a second name, or a folder that
others may write to: rows would go to where a link leads, and Spark would read what others wrote.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from database_folders import STRANGER, contents, need_root

from assay.base.errors import RefusedTarget
from assay.targets.databases.spark.folder import BOOK, LOCK, SparkFolder


def made(path: Path) -> Path:
    folder = SparkFolder(path, "spark-local")
    folder.take()
    folder.make("region")
    folder.release()
    return path


def link_over(name: str) -> Callable[[Path, Path], None]:
    def plant(folder: Path, victim: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(victim)

    return plant


def second_name_over(name: str) -> Callable[[Path, Path], None]:
    def plant(folder: Path, victim: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).hardlink_to(victim / "precious")

    return plant


def open_table(folder: Path, _: Path) -> None:
    (folder / "region").chmod(0o777)


def pipe(folder: Path, _: Path) -> None:
    os.mkfifo(folder / "region/assay-1.parquet")


def anothers(folder: Path, _: Path) -> None:
    need_root()
    os.chown(folder / "region", STRANGER, STRANGER)


PLANTED: dict[str, Callable[[Path, Path], None]] = {
    **{f"a link over {name}": link_over(name) for name in (BOOK, LOCK, "lineitem", "region/assay-1.parquet")},
    **{f"a second name over {name}": second_name_over(name) for name in (BOOK, LOCK, "region/assay-1.parquet")},
    "a table that others may write to": open_table,
    "a pipe for a file": pipe,
    "a table of another's": anothers,
}


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_is_refused_and_leads_nowhere(tmp_path: Path, planted: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("precious")
    folder = made(tmp_path / "db")
    PLANTED[planted](folder, victim)
    before = contents(victim)

    with pytest.raises(RefusedTarget, match="is a link, has a second name, or is another user's"):
        SparkFolder(folder, "spark-local").take()
    assert contents(victim) == before


@pytest.mark.parametrize("how", ["open", "on an open way", "a link of another's"])
def test_a_folder_that_others_may_exchange_is_refused(tmp_path: Path, how: str) -> None:
    way = tmp_path / "way"
    way.mkdir()
    folder = made(way / "db")
    if how == "open":
        folder.chmod(0o777)
    elif how == "on an open way":
        way.chmod(0o777)
    else:
        need_root()
        way.chmod(0o1777)
        (way / "short").symlink_to(folder)
        os.chown(way / "short", STRANGER, STRANGER, follow_symlinks=False)
        folder = way / "short"
    with pytest.raises(RefusedTarget):
        SparkFolder(folder, "spark-local").take()


def test_the_modes_of_a_folder_of_the_users_stay(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o755)
    (folder / "diary").write_text("dear diary")
    before = contents(folder)
    with pytest.raises(RefusedTarget, match="holds diary, which Assay did not make"):
        SparkFolder(folder, "spark-local").take()
    assert contents(folder) == before
