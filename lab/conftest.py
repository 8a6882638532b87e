"""The lab's pytest plugin: machines for a test that asks for them, and a line of the results for each test."""

from __future__ import annotations

import compileall
import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from lab.databases import Loaded, loaded, missing_server
from lab.disks import Disk
from lab.fabric import Array, Initiator, Network
from lab.folder import Folder
from lab.machine import ROOT, Machine, missing
from lab.results import Row

OBSERVED = pytest.StashKey[list[str]]()
LONGEST_FIRST = (
    "test_power_cuts",
    "test_crash_states",
    "test_devices",
    "test_faults",
    "test_databases",
    "test_write_log",
)
"""Files of tests in the order in which they begin, where machines run side by side; the others come after them."""

TOOK_S = pytest.StashKey[float]()
"""Machines that a test is the first to ask for boot in its set-up, so that counts."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test of the lab where the lab cannot run."""
    if item.get_closest_marker("lab") and (why := missing()):
        pytest.skip(why)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Where some tests of the lab will run, those that were not chosen have a line, too."""
    collected = {item: marker for item in items if (marker := item.get_closest_marker("lab"))}
    yield
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))
    # Of several workers one is enough.
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
        return
    if not missing() and not collected.keys().isdisjoint(items):
        for item, marker in collected.items():
            _row(item, marker).planned()


sys.path.insert(0, str(ROOT / "tests"))
"""Its servers are the lab's, too."""

os.environ["PATH"] += os.pathsep + os.pathsep.join(("/usr/sbin", "/sbin"))
"""File systems are made on the host."""


@pytest.fixture(scope="session")
def compiled() -> None:
    """Compile Assay to byte code on this host, because machines only read its files."""
    for folder in ("python/assay", "lab"):
        compileall.compile_dir(ROOT / folder, quiet=1)


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Iterator[Callable[..., Machine]]:
    """Make a machine with these disks: `machine(Disk(name="H"), networks=2).boot()`; it goes with the test's module."""
    request.getfixturevalue("compiled")
    with ExitStack() as machines:

        def make(*disks: Disk, **options: Any) -> Machine:
            return machines.enter_context(Machine(disks, **options))

        yield make


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """A network in which an array is served."""
    network = Network()
    yield network
    network.close()


@pytest.fixture(scope="module")
def array(request: pytest.FixtureRequest, network: Network) -> Iterator[Array]:
    """The module's array, MODEL of SIZE, served by iSCSI."""
    with Array(network, request.module.MODEL, size=request.module.SIZE) as array:
        yield array.serve()


@pytest.fixture(scope="module")
def initiator(machine: Callable[..., Machine], array: Array) -> Initiator:
    """A machine that reaches the array, with initiator and multipathd."""
    return Initiator(machine(Disk(name="OWN"), within=array.within, memory_mib=2048).boot()).start()


@pytest.fixture
def database() -> Iterator[Loaded]:
    """PostgreSQL with a warehouse."""
    if why := missing_server("PostgreSQL"):
        pytest.skip(why)
    folder = Folder("assay-lab-database-")
    try:
        yield loaded("PostgreSQL", folder.path)
    finally:
        folder.remove()


@pytest.fixture
def observed(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Say for the results what was observed, whether the test passes or not."""
    said: list[str] = request.node.stash.setdefault(OBSERVED, [])
    return said.append


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the line of a test that has run."""
    report = yield
    marker = item.get_closest_marker("lab")
    item.stash[TOOK_S] = item.stash.get(TOOK_S, 0.0) + report.duration
    if marker is not None and report.when == "call":
        said = item.stash.get(OBSERVED, [])
        _row(item, marker).ended(report.outcome, said, _why(report), item.stash[TOOK_S])
    return report


def _row(item: pytest.Item, marker: pytest.Mark) -> Row:
    """The line of a test; it names the case of a test that has several."""
    case = item.callspec.params if hasattr(item, "callspec") else {}
    return Row(test=item.name, **{key: text.format(**case) for key, text in marker.kwargs.items()})


def _why(report: pytest.TestReport) -> str:
    """The line that says why a test did not pass."""
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message.splitlines()[0]) if crash else ""
