"""Images, loop devices, mounts and unprivileged users for the tests of targets."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from embedded_database import SMALL, Embedded

from assay.targets.databases import open_database, parse_database
from assay.targets.databases.embedded.database import EmbeddedPostgresql
from assay.workloads.tpcc.tables import TABLES
from servers.process import folder_of_files

NOBODY = 65534


def _run(*command: str | Path) -> str:
    return subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True, env=_environment()
    ).stdout.strip()


def _environment() -> dict[str, str]:
    # mkfs and losetup live in sbin, which is not in every user's PATH.
    return os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}


def _tool(name: str) -> str:
    """Path of a program, or the test is skipped."""
    found = shutil.which(name, path=_environment()["PATH"])
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def _need_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root for loop devices and mounts")


@pytest.fixture
def run() -> Callable[..., str]:
    """Run a program that must succeed; gives what it printed."""
    return _run


@pytest.fixture
def tool() -> Callable[[str], str]:
    """Path of a program, or the test is skipped."""
    return _tool


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder every user may use as `/tmp`; pytest's own may not be entered."""
    made = Path(tempfile.mkdtemp(prefix="assay-test-"))
    made.chmod(0o1777)
    yield made
    made.chmod(0o777)
    shutil.rmtree(made)


@pytest.fixture
def unprivileged() -> Callable[[], AbstractContextManager[None]]:
    """Do something as a user without rights: root steps down for it, others are such a user already."""

    @contextmanager
    def step_down() -> Iterator[None]:
        if os.geteuid() != 0:
            yield
            return
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)

    return step_down


@pytest.fixture
def loop_device(folder: Path) -> Iterator[Callable[[int], Path]]:
    """Make loop devices of a size in bytes; all are detached afterwards."""
    _need_root()
    losetup = _tool("losetup")
    made: list[str] = []

    def attach(size_bytes: int) -> Path:
        image = folder / f"image{len(made)}"
        with image.open("wb") as file:
            file.truncate(size_bytes)
        try:
            made.append(_run(losetup, "--find", "--show", image))
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no loop device to be had: {error.stderr.strip()}")
        return Path(made[-1])

    yield attach
    for device in made:
        _run(losetup, "--detach", device)


@pytest.fixture
def mounted(folder: Path) -> Iterator[Callable[..., Path]]:
    """Mount a source on a new folder: `mounted("-t", "tmpfs", "-o", "size=4m", "none")`."""
    _need_root()
    mount = _tool("mount")
    made: list[Path] = []

    def attach(*arguments: str | Path) -> Path:
        point = folder / f"mount{len(made)}"
        point.mkdir()
        try:
            _run(mount, *arguments, point)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"mounting is not allowed here: {error.stderr.strip()}")
        made.append(point)
        return point

    yield attach
    for point in reversed(made):
        _run(_tool("umount"), point)


@pytest.fixture
def database_folder() -> Iterator[Path]:
    """A folder for embedded databases, closed to other users."""
    with folder_of_files("assay-embedded-") as folder:
        yield folder


@pytest.fixture
def embedded() -> Iterator[Embedded]:
    """Make the embedded database of a folder, not opened; all are closed afterwards."""
    made: list[EmbeddedPostgresql] = []

    def make(folder: Path, options: str = "") -> EmbeddedPostgresql:
        database = open_database(parse_database(f"embedded:{folder}?{SMALL}{options}"), TABLES)
        assert isinstance(database, EmbeddedPostgresql)
        made.append(database)
        return database

    yield make
    for database in made:
        database.close()
