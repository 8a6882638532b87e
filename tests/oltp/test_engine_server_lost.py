"""Servers that are killed or stand still while the engine works on them; last, so that all conditions see all runs."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any

from engine import (
    AFTER_RUNS,
    READING,
    TIMEOUT_S,
    Database,
    Run,
    Server,
    assert_failed,
    first_load,
    load_plan,
    loaded,
    loading,
    run_plan,
    running,
)

from assay._core import Histogram


@dataclass(frozen=True)
class Outage:
    """What a load and two runs made of a server that was killed with -9 and started again."""

    ran: Database
    orders: int
    """New orders that the server has of both runs."""
    patient: Run
    impatient: Run
    impatient_status: dict[str, Any]
    filled: Database
    load_status: dict[str, Any]
    chunks_before: int


@functools.cache
def outage(server: Server) -> Outage:
    """Kill the server once, in the middle of all three, since every start costs seconds."""
    ran = loaded(server)
    filled = Database(server.fresh_database(), 1)
    filled.make_tables()
    before = ran.next_orders()
    with (
        running(run_plan(ran, reconnect_s=TIMEOUT_S)) as patient,
        running(run_plan(ran, reconnect_s=0.5, seed=8, procedures=False)) as impatient,
    ):
        patient.until(lambda run: run.count("committed", "new_order") > 0)
        impatient.until(lambda run: run.count("committed", "new_order") > 0)
        with loading(load_plan(filled)) as load:
            chunks_before = load.until(lambda status: status["chunks_done"] >= 4)["chunks_done"]
            server.kill9()
            impatient.until(lambda _: False)
            patient.until(lambda run: run.status["reconnecting"] == 4)
            server.restart()
            load_status = load.end()
        patient.until(lambda run: run.status["reconnecting"] == 0 and run.status["gaps"][-1]["to_ns"] is not None)
        done = patient.done()
        patient.until(lambda run: run.done() >= done + 100)
        impatient_status = impatient.end()
        assert patient.end()["state"] == "ended"
    return Outage(
        ran, ran.next_orders() - before, patient, impatient, impatient_status, filled, load_status, chunks_before
    )


def test_a_run_goes_on_after_a_crash_and_reports_the_gap(server: Server) -> None:
    run = outage(server).patient
    assert run.status["error"] is None
    (gap,) = run.status["gaps"]
    assert 0 < gap["from_ns"] < gap["to_ns"] < run.status["now_ns"]
    assert gap["database"] == 0
    assert len(gap["reason"].splitlines()) == 1
    errors = run.point()["errors"]
    assert 0 < errors["kinds"]["connection"] == errors["count"] == run.count("failed")


def test_a_run_whose_server_stays_away_ends_as_lost(server: Server) -> None:
    found = outage(server)
    assert_failed(found.impatient_status, "lost", "went away and did not come back")
    assert found.impatient.point()["errors"]["kinds"]["connection"] > 0
    assert found.impatient_status["gaps"][-1]["to_ns"] is None


def test_a_database_is_consistent_after_a_crash_and_has_what_was_committed(server: Server) -> None:
    found = outage(server)
    assert found.ran.failing(AFTER_RUNS) == set()
    runs = (found.patient, found.impatient)
    committed = sum(run.count("committed", "new_order") for run in runs)
    # More than the clients know: the answer to a commit may be what was lost, and the last tick is not whole.
    assert committed <= found.orders


def test_a_load_goes_on_after_a_crash_and_is_complete(server: Server) -> None:
    found = outage(server)
    status = found.load_status
    assert found.chunks_before < status["chunks_total"], "the load was over too early"
    assert (status["state"], status["error"], status["chunks_skipped"]) == ("done", None, 0)
    assert status["chunks_done"] == status["chunks_total"] == len(found.filled.chunks())
    assert status["reconnects"] > 0
    # All conditions hold for these rows.
    assert found.filled.contents_of_first_warehouse() == first_load(server).contents


def test_a_stalled_server_shows_in_the_tail(server: Server) -> None:
    database = loaded(server)
    rate, users, long_ns = 50.0, 4, 400_000_000
    plan = run_plan(database, users=users, mix=READING, load={"kind": "open", "rate": rate, "poisson": False})
    with running(plan) as run:
        run.until(lambda run: run.status["complete_ticks"] >= 5)
        with server.frozen():
            began = time.monotonic()
            time.sleep(1.0)
            stalled_s = time.monotonic() - began
        run.ticks(15)
        figures = run.point(3)
        assert (run.status["state"], figures["errors"]["count"]) == ("running", 0)

    latency = figures["total"]["latency_ns"]
    # An arrival just before the stall waits for all of it.
    assert min(latency["p99_9"], latency["max"]) >= (stalled_s - 0.1) * 1e9
    bins = Histogram.from_base64(figures["total"]["histogram"]).bins()
    late = sum(count for value_ns, count in bins if value_ns > long_ns)
    expected = rate * (stalled_s - long_ns / 1e9)
    # Every arrival of the stall counts from its intended start; those behind them may have waited as well.
    assert expected - 2 <= late <= 2 * expected
    # Only what was under way when it began met the stall itself.
    assert late > users
    assert figures["service_latency_ns"]["p90"] < long_ns <= latency["p90"]
    assert figures["schedule"] is not None
