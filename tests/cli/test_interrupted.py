"""Ctrl-C and SIGTERM: exit code 130, what is finished is kept, what is half-made is removed, the run can go on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from assay_command import Bench, Outcome, Started

SIGTERM = pytest.param(signal.SIGTERM, marks=pytest.mark.slow(reason="it ends a point as Ctrl-C does, which is tried"))
SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, SIGTERM], ids=lambda number: number.name)


def complaints(outcome: Outcome) -> list[str]:
    return [line for line in outcome.stderr.splitlines() if line.startswith("assay: ")]


@SIGNALS
def test_in_layout_the_half_made_file_is_removed(bench: Bench, number: signal.Signals) -> None:
    load = ("--size", "512M", "--queue-depth", "1", "--warmup", "0s", "--duration", "0.3s")
    with bench.started("profile", bench.target, *load, "--no-report", "-o", bench.results) as running:
        running.wait_until(lambda: bench.target.exists() and bench.target.stat().st_size > 0, every_s=0.001)
        running.process.send_signal(number)
        outcome = running.end()

    assert outcome.code == 130
    said, how_to_go_on = complaints(outcome)
    if "laying out" not in said:
        pytest.skip("the layout was over before the signal came")
    permission = ("--overwrite", str(bench.target))
    # What was made is removed, so that there is nothing to go on with.
    assert f"begin anew with: assay profile {bench.target}" in how_to_go_on
    assert list(bench.target.parent.iterdir()) == []
    assert bench.manifest()["status"] == "interrupted"

    # The folder alone does not decide where a file is made.
    assert bench.assay("profile", "--resume", bench.run).code == 2
    again = bench.assay("profile", "--resume", bench.run, *permission, "--no-report", "--json")
    assert (again.code, again.document["status"], len(again.document["points"])) == (0, "done", 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_in_a_point_the_finished_ones_are_kept(bench: Bench, number: signal.Signals) -> None:
    arguments = ("profile", "null:?latency=1ms", "--queue-depth", "1,2,3", "--warmup", "0s", "--duration", "0.6s")
    with bench.started(*arguments, "--no-report", "--json", "-o", bench.results) as running:
        running.wait_until(bench.point_lines)
        running.process.send_signal(number)
        outcome = running.end()
    kept = bench.point_lines()

    assert outcome.code == 130
    assert len(complaints(outcome)) == 2
    assert outcome.document["status"] == bench.manifest()["status"] == "interrupted"
    assert 1 <= len(kept) == len(outcome.document["points"]) < 3
    again = bench.assay("profile", "--resume", bench.run, "--no-report", "--json")
    assert (again.code, len(again.document["points"])) == (0, 3)
    assert bench.point_lines()[: len(kept)] == kept


GATE = """
from pathlib import Path
from time import sleep

Path({reached!r}).touch()
while True:
    sleep(1)
"""


@contextmanager
def started_to_the_first_figure(bench: Bench, *arguments: str | Path) -> Iterator[Started]:
    """A command that is about to draw its first figure, and never does."""
    gates, reached = bench.folder / "gates", bench.folder / "reached"
    gates.mkdir()
    (gates / "vl_convert.py").write_text(GATE.format(reached=str(reached)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{gates}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        # An interpreter of its own: one that is forked has the library already.
        with bench.started(*arguments, forked=False) as running:
            running.wait_until(reached.exists)
            yield running


@SIGNALS
def test_in_the_report_the_measurements_are_kept(bench: Bench, number: signal.Signals) -> None:
    arguments = ("profile", "null:?latency=1ms", "--queue-depth", "1,2", "--warmup", "0s", "--duration", "0.3s")
    with started_to_the_first_figure(bench, *arguments, "--json", "-o", bench.results) as running:
        running.process.send_signal(number)
        outcome = running.end()
    kept = bench.point_lines()

    assert outcome.code == 130
    assert "Traceback" not in outcome.stderr
    assert "assay report" in complaints(outcome)[0]
    assert (bench.manifest()["status"], len(outcome.document["points"]), len(kept)) == ("done", 2, 2)
    assert not [path for path in bench.run.iterdir() if path.name.endswith((".part", ".tmp"))]
    assert bench.assay("report", bench.run, "--no-pdf").code == 0
    assert (bench.run / "report.html").exists()
    assert bench.point_lines() == kept


@SIGNALS
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_the_verb_report_ends_with_one_line(bench: Bench, number: signal.Signals) -> None:
    bench.measure("null:?latency=1ms", "--queue-depth", "1")
    with started_to_the_first_figure(bench, "report", bench.run) as running:
        running.process.send_signal(number)
        outcome = running.end()

    assert (outcome.code, outcome.complaint) == (130, "assay: interrupted")


def test_a_second_signal_ends_at_once(bench: Bench) -> None:
    load = ("--queue-depth", "1", "--warmup", "0s", "--duration", "30s")
    with bench.started(
        "profile", "null:?stall_at=100ms&stall=60s", *load, "--no-report", "-o", bench.results
    ) as running:
        running.wait_until(lambda: "measuring" in running.stderr)
        # Signals that come before the first is handled count as one.
        running.wait_until_ended(lambda: running.process.send_signal(signal.SIGINT))
        outcome = running.end()

    assert outcome.code == 130
    assert "Traceback" not in outcome.stderr
