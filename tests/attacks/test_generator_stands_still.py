"""The load generator is stopped from outside: what it then sees is its own absence, and it says so."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from assay_command import Bench, Started

pytestmark = pytest.mark.timing

STOPPED_S = 1.0
"""Four times what Assay takes for a standstill."""


def stand_still(started: Started) -> None:
    """Stop the process once its workers are at work, as a signal, a frozen cgroup or a paused machine does."""
    tasks = Path(f"/proc/{started.process.pid}/task")

    def is_at_work() -> bool:
        try:
            return any((task / "comm").read_text().strip() == "assay-heartbeat" for task in tasks.iterdir())
        except (FileNotFoundError, ProcessLookupError):  # a thread, or the command, has just ended
            return False

    started.wait_until(is_at_work)
    started.process.send_signal(signal.SIGSTOP)
    try:
        # The length of the standstill is what is being tried; nothing waits for anything here.
        time.sleep(STOPPED_S)
    finally:
        started.process.send_signal(signal.SIGCONT)


def profile_file(bench: Bench, *arguments: str) -> tuple[dict[str, Any], str]:
    made = bench.measure(bench.target, "--size", "8M", "--queue-depth", "1")
    assert made.code == 0, made.stderr
    return profile(bench, str(bench.target), *arguments)


def profile(bench: Bench, target: str, *arguments: str, code: int | None = 0) -> tuple[dict[str, Any], str]:
    with bench.started(
        "profile", target, *arguments, "--warmup", "0s", "--duration", "2s", "--no-report", "--json"
    ) as started:
        stand_still(started)
        outcome = started.end()
    assert code is None or outcome.code == code, outcome.stderr
    return outcome.document, outcome.stderr


@pytest.mark.parametrize("backend", ["io-uring", "threads"])
def test_a_stopped_generator_does_not_give_its_absence_to_the_device(bench: Bench, backend: str) -> None:
    document, shown = profile_file(bench, "--queue-depth", "4", "--read", "70", "--backend", backend)
    (point,) = document["points"]
    gaps = point["generator"]["gaps"]
    assert gaps["count"] >= 1
    assert STOPPED_S * 0.8e9 <= gaps["longest_ns"] <= gaps["total_ns"]
    assert (point["generator"]["saturated"], point["generator"]["reason"]) == (True, "stood still")
    # No latency holds the standstill, nor one that was under way.
    for side in ("read", "write", "total"):
        assert point[side]["latency_ns"]["max"] < STOPPED_S * 1e9 * 0.9
    assert "generator stood still for" in shown
    (notice,) = [notice for notice in document["notices"] if "stood still" in notice]
    assert "are not the device's" in notice


def test_arrivals_due_meanwhile_are_counted_apart(bench: Bench) -> None:
    document, _ = profile_file(bench, "--rate", "500", "--queue-depth", "16", "--read", "100")
    (point,) = document["points"]
    # Some 500 were due, and none of them waited for the device.
    assert point["generator"]["gaps"]["ios"] >= 250
    assert point["total"]["latency_ns"]["max"] < STOPPED_S * 1e9 * 0.9


def test_a_search_takes_no_such_point_for_an_answer(bench: Bench) -> None:
    # A device far from every limit and an end nearby: the search has few loads to try, however fast this machine is.
    asked = ("--search", "rate", "--rate", "200", "--end", "400")
    document, _ = profile(bench, "null:?latency=1ms", *asked, code=None)
    (answer,) = document["answers"]
    stood_still = {point["id"] for point in document["points"] if point["generator"]["reason"] == "stood still"}
    assert stood_still
    if answer["max"] is None:
        assert answer["limited_by"] == "generator"
    else:  # repeats made up for it
        assert answer["max"]["point_id"] not in stood_still
        # A busy machine may hold up the generator once more.
        assert answer["max"]["iops"] > 190 or answer["limited_by"] == "generator"


def test_verify_does_not_accuse_the_storage_of_a_long_io(bench: Bench) -> None:
    asked = ("--size", "16M", "--duration", "2s", "--long-io", "0.5s", "--io-timeout", "0.8s")
    with bench.started("verify", str(bench.target), *asked, "--no-report", "--json") as started:
        stand_still(started)
        outcome = started.end()
    assert outcome.code == 0, outcome.stderr
    document = outcome.document
    assert set(document["integrity"]["findings"].values()) == {0}
    stood_still = [point for point in document["points"] if point["generator"]["reason"] == "stood still"]
    assert stood_still
    assert any("stood still" in notice for notice in document["notices"])
    for point in stood_still:
        assert point["total"] is None or point["total"]["latency_ns"]["max"] < STOPPED_S * 1e9 * 0.9


def test_a_device_that_stalls_is_still_the_device(bench: Bench) -> None:
    outcome = bench.profile(
        "null:?latency=1ms&stall_at=500ms&stall=1s", "--queue-depth", "4", "--warmup", "0s", "--duration", "2s",
        "--json",
    )  # fmt: skip
    (point,) = outcome.document["points"]
    assert point["total"]["latency_ns"]["max"] > 0.9e9
    if not point["generator"]["gaps"]["count"]:  # a starved machine may add one of its own
        assert point["generator"]["gaps"]["ios"] == 0
        # Cores that others keep busy saturate the generator, too, and are no standstill.
        assert point["generator"]["reason"] is None
