"""What collectors of servers share: no server, slow or gone, disturbs the recorder; deltas mean what they say."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import AssayError, NotSupported, OpenFailed
from assay.telemetry.collectors import database
from assay.telemetry.collectors.activity import ServerActivity, activity, hottest
from assay.telemetry.collectors.database import Counters, DatabaseCollector, ObserverSession
from assay.telemetry.recorder import Recorder

SECOND_NS = 10**9


class Scripted:
    """A session whose every query gives the next of some answers, or raises it."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self.answers = list(answers)
        self.closed = False

    def query(self, *_: Any, **__: Any) -> list[tuple[Any, ...]]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [(answer,)]

    def close(self) -> None:
        self.closed = True


class Counted(DatabaseCollector):
    """One counter of a server."""

    source = "postgresql"

    def read(self, session: ObserverSession) -> Counters:
        return Counters({("db", "log_bytes"): float(session.query("")[0][0])}, {}, "one start")


def counted(*sessions: Scripted) -> Counted:
    waiting = list(sessions)

    def connect() -> Scripted:
        if not waiting:
            raise OpenFailed("nobody listens")
        return waiting.pop(0)

    return Counted(connect, {"tpcc": "db"})


def at(t_ns: int, identity: object = 1, gauges: Any = None, **counts: float) -> Counters:
    return Counters({("db", name): value for name, value in counts.items()}, gauges or {}, identity, t_ns=t_ns)


def values(before: Counters | None, after: Counters | None, interval_ns: int = SECOND_NS) -> dict[str, float]:
    own = ("observing_latency_ns", "observing_cpu_share")
    found = counted().readings(before, after, interval_ns)
    return {reading.metric: reading.value for reading in found if reading.metric not in own}


def test_counters_become_deltas_and_times_over_counts_become_means() -> None:
    before = at(SECOND_NS, log_flushes_count=10, log_flush_time_ns=1e6, deadlocks_count=1)
    after = at(2 * SECOND_NS, log_flushes_count=14, log_flush_time_ns=3e6, deadlocks_count=1)
    assert values(before, after) == {"log_flushes_count": 4, "log_flush_time_ns": 2e6, "deadlocks_count": 0,
                                     "log_flush_latency_mean_ns": 5e5}  # fmt: skip


def test_what_is_not_timed_has_no_latency() -> None:
    before, after = (at(t * SECOND_NS, log_flushes_count=t, log_flush_time_ns=0) for t in (1, 2))
    assert "log_flush_latency_mean_ns" not in values(before, after)


@given(late_ns=st.integers(-SECOND_NS // 2, 5 * SECOND_NS), rate=st.integers(0, 10**9))
def test_rates_are_right_when_an_answer_came_late(late_ns: int, rate: int) -> None:
    before, after = at(SECOND_NS, log_bytes=0), at(2 * SECOND_NS + late_ns, log_bytes=rate * (1 + late_ns / SECOND_NS))
    assert values(before, after) == {"log_bytes": pytest.approx(rate)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, at(2, log_bytes=5)),
        (at(1, log_bytes=5), None),
        (at(2, log_bytes=5), at(2, log_bytes=5)),
        (at(1, log_bytes=5, commits_count=1), at(2, log_bytes=4, commits_count=9)),
        (at(1, log_bytes=5), at(2, "restarted", log_bytes=9)),
    ],
    ids=["it came", "it went", "no new answer", "counters reset", "restart"],
)
def test_an_interval_that_means_nothing_is_left_out(before: Counters | None, after: Counters | None) -> None:
    assert values(before, after) == {}


def test_a_metric_that_was_not_there_before_has_no_delta() -> None:
    assert values(at(1, log_bytes=5), at(SECOND_NS + 1, log_bytes=6, temp_bytes=9)) == {"log_bytes": pytest.approx(1)}


def test_gauges_are_those_of_the_later_answer() -> None:
    gauges = {("db", "sessions_active_count"): 3.0}
    assert values(at(1), at(2, gauges=gauges)) == {"sessions_active_count": 3.0}


def test_a_lost_connection_costs_samples_and_is_made_again() -> None:
    first, second = Scripted([10, OpenFailed("gone")]), Scripted([30])
    collector = counted(first, second)
    assert collector.sample() is not None
    assert collector.sample() is None
    assert first.closed
    again = collector.sample()
    assert again is not None
    assert again.counts == {("db", "log_bytes"): 30}
    assert collector.sample() is None
    assert second.closed
    assert collector.sample() is None  # nobody listens any more; the recorder goes on
    collector.close()


def test_a_server_that_never_answered_is_refused_with_its_reason() -> None:
    collector = counted()
    with pytest.raises(NotSupported, match=r"^its counters cannot be read: nobody listens$"):
        collector.sample()
    with Recorder([counted()]) as recorder:
        pass
    assert recorder.notices == ["recorder: postgresql db is not recorded: its counters cannot be read: nobody listens"]


def test_a_server_that_hangs_holds_nobody_up_and_its_late_answer_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    released, arrived = threading.Event(), threading.Event()

    class Hanging(Counted):
        def read(self, session: ObserverSession) -> Counters:
            found = super().read(session)
            if found.counts["db", "log_bytes"] == 20:
                arrived.set()
                released.wait()
            return found

    session = Scripted([10, 20, 30])
    collector = Hanging(lambda: session, {"tpcc": "db"})
    first = collector.sample()
    monkeypatch.setattr(database, "ANSWER_S", 0.01)
    assert collector.sample() is first
    assert arrived.wait(10)
    assert collector.sample() is first
    monkeypatch.setattr(database, "ANSWER_S", 10.0)
    released.set()
    late = collector.sample()
    assert late is not None
    assert late is not first
    collector.close()
    assert session.closed


def test_closing_ends_the_thread_and_the_session() -> None:
    session = Scripted([1])
    collector = counted(session)
    collector.sample()
    collector.close()
    assert session.closed
    assert not any(thread.name == "assay-postgresql" for thread in threading.enumerate())
    counted().close()


# Statements and tables


def statement(text: str, calls: float, time_ns: float) -> dict[str, Any]:
    return {"text": text, "calls_count": calls, "time_ns": time_ns}


def test_the_hottest_statements_are_those_that_took_the_most_time_between() -> None:
    before = ServerActivity({("db", "a"): statement("a", 100, 9e9), ("db", "b"): statement("b", 1, 1e6)})
    after = ServerActivity({("db", "a"): statement("a", 100, 9e9), ("db", "b"): statement("b", 3, 3e9 + 1e6),
                      ("db", "c"): statement("c", 1, 1e9)})  # fmt: skip
    statements, tables = hottest(before, after)
    assert [(found["text"], found["calls_count"], found["mean_ns"], found["share"]) for found in statements] == [
        ("b", 2, 1.5e9, 0.75),
        ("c", 1, 1e9, 0.25),
    ]
    assert tables == []


def test_statements_that_took_next_to_no_time_are_left_out() -> None:
    after = ServerActivity({("db", "a"): statement("-- who?\nselect a", 1, 1e9), ("db", "b"): statement("b", 1, 1e5)})
    assert [found["text"] for found in hottest(ServerActivity(), after)[0]] == ["select a"]


def test_statistics_that_were_reset_between_count_from_zero() -> None:
    before, after = (
        ServerActivity({("db", "a"): statement("a", 100, 9e9)}),
        ServerActivity({("db", "a"): statement("a", 5, 1e9)}),
    )
    assert hottest(before, after)[0][0]["calls_count"] == 5


def test_the_hottest_tables_are_those_read_most_then_changed_most() -> None:
    def table(read: float, inserted: float) -> dict[str, Any]:
        return {"read_bytes": read, "inserted_count": inserted, "updated_count": 0.0, "deleted_count": 0.0}

    after = ServerActivity({}, {("db", "stock"): table(9e6, 0), ("db", "history"): table(0, 7),
                                ("db", "orders"): table(0, 8),
                          ("db", "item"): table(0, 0)})  # fmt: skip
    assert [found["table"] for found in hottest(ServerActivity(), after)[1]] == ["stock", "orders", "history"]


@pytest.mark.parametrize("dialect", ["postgresql", "mariadb", "mssql"])
def test_a_server_that_refuses_its_statistics_is_left_out_with_a_notice(dialect: str) -> None:
    class Refusing:
        name = "db"

        def query(self, *_: Any, **__: Any) -> list[tuple[Any, ...]]:
            raise AssayError("no rights")

    refusing = Refusing()
    refusing.dialect = dialect  # type: ignore[attr-defined]
    found = activity([refusing])  # type: ignore[list-item]
    assert (found.statements, found.tables) == ({}, {})
    assert found.notices == ("db: statistics of its statements cannot be read: no rights",
                             "db: statistics of its tables cannot be read: no rights")  # fmt: skip
