"""The lab's pytest plugin: a machine for each test that asks, and a line of the results for each test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from lab.disks import Disk
from lab.machine import Machine, missing
from lab.results import Row

OBSERVED = pytest.StashKey[list[str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test of the lab where the lab cannot run."""
    if item.get_closest_marker("lab") and (why := missing()):
        pytest.skip(why)


@pytest.fixture
def machine() -> Iterator[Callable[..., Machine]]:
    """Boot a machine with these disks: `machine(Disk(name="H"), networks=2, append="...")`."""
    with ExitStack() as machines:

        def boot(*disks: Disk, **options: Any) -> Machine:
            return machines.enter_context(Machine(disks, **options)).boot()

        yield boot


@pytest.fixture
def observed(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Say for the results what was observed, whether the test passes or not."""
    return request.node.stash.setdefault(OBSERVED, []).append


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Keep the line of a test that has run."""
    outcome = yield
    marker = item.get_closest_marker("lab")
    report = outcome.get_result()  # type: ignore[attr-defined]
    if marker is None or report.when != "call":
        return
    _line_of(item, marker).ended(report.outcome, item.stash.get(OBSERVED, []), _why(report), call.duration)


def _line_of(item: pytest.Item, marker: pytest.Mark) -> Row:
    return Row.of(item.name, **marker.kwargs)


def _why(report: pytest.TestReport) -> str:
    """The line that says why a test did not pass."""
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message.splitlines()[0] if crash else ""
