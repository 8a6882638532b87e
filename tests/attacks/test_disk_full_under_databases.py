"""A disk that is full under a database: one line, exit code 3, and what was there before is there still.

The attack fills the file system before a save and before a restore; then it makes room, and the same command goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from database_folders import SMALL
from mount_namespace import MountNamespace, mount_namespace

from assay_command import Outcome

pytestmark = pytest.mark.usefixtures("namespace")
TARGETS = {
    "duckdb": ("dss", "tpch", "duckdb:{}/db", ("--scale", "0.05")),
    "embedded": ("oltp", "tpcc", f"embedded:{{}}/db?{SMALL}", ("--warehouses", "1")),
}


class Small:
    """A file system that can be filled, in a namespace of its own."""

    def __init__(self, namespace: MountNamespace, folder: Path, kind: str) -> None:
        self._namespace = namespace
        self._folder = folder
        self.place = folder / "small"
        self.place.mkdir()
        namespace.tool("mount", "-t", "tmpfs", "-o", "size=1200m,mode=0700", "none", self.place)
        *verb, target, scale = TARGETS[kind]
        self._verb = (*verb, str(target).format(self.place))
        self._scale = scale

    def run(self, *actions: str) -> Outcome:
        scale = self._scale if "load" in actions else ()
        words = (*self._verb, *actions, *scale, "--no-report", "--quiet", "-o", self._folder / "results")
        return self._namespace.assay(self._folder, *words)

    def fill(self) -> None:
        # It ends because nothing more fits.
        self._namespace.tool("sh", "-c", f"dd if=/dev/zero of={self.place}/fill bs=64K 2>/dev/null; true")

    def make_room(self) -> None:
        self._namespace.tool("rm", self.place / "fill")


@pytest.fixture
def namespace() -> Iterator[MountNamespace]:
    with mount_namespace() as made:
        yield made


def refused_in_one_line(outcome: Outcome) -> None:
    assert outcome.code == 3, outcome.stderr
    assert outcome.complaint
    assert "fault of Assay" not in outcome.stderr


@pytest.mark.slow(reason="tests/targets fills the disk under each of them without a command")
@pytest.mark.parametrize("kind", TARGETS)
def test_nothing_is_lost_where_there_is_no_room(tmp_path: Path, namespace: MountNamespace, kind: str) -> None:
    small = Small(namespace, tmp_path, kind)
    assert small.run("load").code == 0
    small.fill()
    refused_in_one_line(small.run("save"))
    small.make_room()
    # What was loaded is there, and was not saved by half.
    assert small.run("check").code == 0
    assert "saved" in small.run("restore").complaint
    assert small.run("save").code == 0
    small.fill()
    if kind == "duckdb":
        # The file is replaced by a whole copy, for which there is no room; PostgreSQL's is deleted first.
        refused_in_one_line(small.run("restore"))
    else:
        small.run("restore")
    small.make_room()
    for action in ("restore", "check"):
        done = small.run(action)
        assert done.code == 0, done.stderr
