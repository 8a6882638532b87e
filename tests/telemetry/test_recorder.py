"""The recorder: samples on schedule, keeps true intervals, survives its collectors, and sums a point up."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import ExitCode, UsageError
from assay.record.run_folder import RunFolder
from assay.telemetry import recorder as module
from assay.telemetry.columns import Reading, SeriesColumns
from assay.telemetry.recorder import Recorder
from assay.telemetry.summary import summarise
from series_rows import batches_of, rows_of

SECOND_NS = 10**9


class Counting:
    """Counts its samples; each interval is one delta."""

    tier = "storage"
    source = "model"

    def __init__(self, name: str = "counting", fails_at: int | None = None) -> None:
        self.name = name
        self.samples = 0
        self.fails_at = fails_at
        self.closed = False

    def sample(self) -> int:
        self.samples += 1
        if self.samples == self.fails_at:
            raise RuntimeError("the source\nwent away")
        return self.samples

    def readings(self, before: int, after: int, interval_ns: int) -> Iterator[Reading]:
        assert interval_ns > 0
        yield Reading(self.name, "samples_count", "delta", float(after - before), role="data")

    def close(self) -> None:
        self.closed = True


class Clock:
    """A clock that moves only when told, in place of the `time` module of the recorder."""

    def __init__(self) -> None:
        self.now_ns = 1000 * SECOND_NS
        self.thread_ns = 0

    def monotonic_ns(self) -> int:
        return self.now_ns

    def time_ns(self) -> int:
        return self.now_ns + 10**18

    def thread_time_ns(self) -> int:
        self.thread_ns += 1_000_000
        return self.thread_ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def drained(recorder: Recorder) -> list[dict[str, Any]]:
    columns = SeriesColumns()
    recorder.drain(columns)
    return rows_of(columns.take())


def of(rows: list[dict[str, Any]], entity: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["entity"] == entity]


def until(reached: Callable[[], bool]) -> None:
    for _ in range(6000):
        if reached():
            return
        time.sleep(0.01)
    pytest.fail("not reached within a minute")


def test_rows_have_the_columns_of_the_series(clock: Clock) -> None:
    recorder = Recorder([Counting()])
    recorder.sample()
    assert drained(recorder) == [], "the first sample begins the first interval"
    clock.now_ns += 2 * SECOND_NS
    recorder.sample()
    counting, own = drained(recorder)
    assert counting == {
        "t_ns": clock.now_ns + 10**18, "clock": "wall", "interval_ns": 2 * SECOND_NS, "tier": "storage",
        "host": own["host"], "source": "model", "entity": "counting", "role": "data", "metric": "samples_count",
        "kind": "delta", "value": 1.0,
    }  # fmt: skip
    assert drained(recorder) == []


def test_rows_fit_the_series_of_a_run(clock: Clock, tmp_path: Path) -> None:
    recorder = Recorder([Counting()])
    for _ in range(3):
        recorder.sample()
        clock.now_ns += SECOND_NS
    columns = SeriesColumns()
    recorder.drain(columns)
    batches = columns.take()
    with RunFolder.create(tmp_path, "record", {}) as folder:
        folder.series_writer().write(batches)
        assert folder.series().records() == rows_of(batches)


def test_the_recorder_records_its_own_cost(clock: Clock) -> None:
    recorder = Recorder([])
    for _ in range(3):
        recorder.sample()
        clock.now_ns += SECOND_NS
    rows = drained(recorder)
    assert {(row["tier"], row["source"], row["entity"], row["metric"], row["kind"]) for row in rows} == {
        ("client", "assay", "recorder", "cpu_share", "gauge")
    }
    # Every call takes 1 ms of CPU by this clock.
    assert [row["value"] for row in rows] == [0.001, 0.001]


def test_a_sample_right_after_another_is_left_out(clock: Clock) -> None:
    counting = Counting()
    recorder = Recorder([counting])
    recorder.sample()
    clock.now_ns += SECOND_NS // 100
    recorder.sample()
    clock.now_ns += SECOND_NS - SECOND_NS // 100
    recorder.sample()
    assert counting.samples == 2
    rows = drained(recorder)
    assert [row["interval_ns"] for row in of(rows, "counting")] == [SECOND_NS]
    assert [row["value"] for row in of(rows, "recorder")] == [0.002], "the cost of the one left out counts, too"


def test_late_samples_keep_their_true_interval_and_the_next_is_on_time_again(clock: Clock) -> None:
    """Lateness in seconds of each waking; 2.6 s oversleeps two samples."""
    lateness_s = [0.0, 0.3, 0.0, 2.6, 0.0, 0.9, 0.0]
    recorder = Recorder([Counting()])
    recorder.sample()
    began_ns = clock.now_ns

    def wait(timeout: float) -> bool:
        if not lateness_s:
            return True
        clock.now_ns += round((timeout + lateness_s.pop(0)) * SECOND_NS)
        return False

    recorder._stopping = SimpleNamespace(wait=wait)  # type: ignore[assignment]
    recorder._run()
    rows = of(drained(recorder), "counting")
    seconds = [(row["t_ns"] - 10**18 - began_ns) / SECOND_NS for row in rows]
    assert seconds == pytest.approx([1.0, 2.3, 3.0, 6.6, 7.0, 8.9, 9.0])
    assert [row["interval_ns"] / SECOND_NS for row in rows] == pytest.approx([1.0, 1.3, 0.7, 3.6, 0.4, 1.9, 0.1])


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_a_collector_that_fails_is_dropped_with_a_notice_and_the_others_go_on(clock: Clock, fails_at: int) -> None:
    failing, counting = Counting("failing", fails_at), Counting()
    recorder = Recorder([failing, counting])
    for _ in range(5):
        recorder.sample()
        clock.now_ns += SECOND_NS
    rows = drained(recorder)
    assert recorder.notices == ["recorder: failing is not recorded: the source went away"]
    assert len(of(rows, "failing")) == max(0, fails_at - 2)
    assert len(of(rows, "counting")) == 4
    assert failing.samples == fails_at


def test_rows_nobody_drains_are_bounded_and_the_newest_are_kept(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PENDING_READINGS_MAX", 10)
    recorder = Recorder([Counting()])
    for _ in range(50):
        recorder.sample()
        clock.now_ns += SECOND_NS
    rows = drained(recorder)
    assert len(rows) == 10
    assert rows[-1]["t_ns"] == clock.now_ns - SECOND_NS + 10**18
    assert recorder.notices == ["recorder: rows were not drained in time; the oldest are lost"]


def test_collectors_of_a_part_are_recorded_while_it_runs_and_closed_then(clock: Clock) -> None:
    always, own = Counting("always"), Counting("own")
    recorder = Recorder([always])
    recorder.sample()
    with recorder.also([own]):
        assert own.samples == 1, "what cannot be recorded is known at once"
        for _ in range(3):
            clock.now_ns += SECOND_NS
            recorder.sample()
    clock.now_ns += SECOND_NS
    recorder.sample()

    rows = drained(recorder)
    assert own.closed
    assert own.samples == 4
    assert len(of(rows, "own")) == 3, "its first sample begins its first interval"
    assert len(of(rows, "always")) == 4
    assert not always.closed


def test_a_collector_of_a_part_that_failed_is_closed_with_the_others(clock: Clock) -> None:
    clock.now_ns += SECOND_NS
    failing = Counting("failing", fails_at=1)
    recorder = Recorder([])
    with recorder.also([failing]):
        recorder.sample()

    assert failing.closed
    assert recorder.notices == ["recorder: failing is not recorded: the source went away"]


@pytest.mark.parametrize("interval_s", [0, -1, float("nan")])
def test_an_interval_must_be_above_zero(interval_s: float) -> None:
    with pytest.raises(UsageError, match="interval of the recorder") as caught:
        Recorder([], interval_s=interval_s)
    assert caught.value.exit_code == ExitCode.USAGE


def test_it_records_in_the_background_until_stopped() -> None:
    counting = Counting()
    with Recorder([counting], interval_s=0.01) as recorder:
        until(lambda: counting.samples >= 4)
        assert any(thread.name == "assay-recorder" and thread.daemon for thread in threading.enumerate())
    samples = counting.samples
    assert counting.closed
    assert not any(thread.name == "assay-recorder" for thread in threading.enumerate())
    rows = of(drained(recorder), "counting")
    assert sum(row["value"] for row in rows) == samples - 1, "no interval is lost"
    assert all(earlier["t_ns"] <= later["t_ns"] for earlier, later in pairwise(rows))
    recorder.stop()
    recorder.sample()
    assert counting.samples == samples


def test_a_run_shorter_than_the_interval_has_one_interval(clock: Clock) -> None:
    counting = Counting()
    with Recorder([counting], interval_s=60) as recorder:
        clock.now_ns += 5 * SECOND_NS
    assert [row["interval_ns"] for row in of(drained(recorder), "counting")] == [5 * SECOND_NS]


def test_stopping_one_that_was_never_started_is_harmless() -> None:
    Recorder([Counting()]).stop()


def test_a_collector_that_hangs_stops_neither_draining_nor_stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HANG_S", 0.01)
    release = threading.Event()

    class Hanging(Counting):
        def sample(self) -> int:
            if super().sample() == 2:
                release.wait()
            return self.samples

    hanging = Hanging()
    recorder = Recorder([hanging], interval_s=0.01)
    recorder.start()
    until(lambda: hanging.samples == 2)
    recorder.sample()
    recorder.drain()
    recorder.stop()
    release.set()
    assert recorder.notices == ["recorder: a collector does not return; the last seconds are not recorded"]
    recorder._thread.join()


def test_it_imports_no_heavy_package() -> None:
    code = (
        "import sys, assay.telemetry.recorder, assay.telemetry.collectors;"
        "print({'polars', 'arro3', 'numpy', 'scipy', 'altair', 'duckdb'} & set(sys.modules))"
    )
    source = Path(__file__).parents[2] / "python"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(source)}, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("set()\n", "")


# The telemetry of a point


def row(source: str, entity: str, metric: str, value: float, end_s: float = 1, interval_s: float = 1) -> dict[str, Any]:
    gauge = metric.endswith("_share") or metric == "queue_mean_count"
    return {
        "t_ns": round(end_s * SECOND_NS), "interval_ns": round(interval_s * SECOND_NS), "source": source,
        "entity": entity, "metric": metric, "kind": "gauge" if gauge else "delta", "value": value,
    }  # fmt: skip


NOTHING = {
    "cpu_share": None, "iowait_share": None, "steal_share": None, "tcp_retransmit_share": None, "device_iops": None,
    "memory_available_bytes": None, "device_bytes_per_s": None, "device_queue": None,
}  # fmt: skip


def test_without_rows_in_the_window_all_is_null() -> None:
    rows = [row("host", "cpu", "user_share", 0.5, end_s=1), row("host", "cpu", "system_share", 0.5, end_s=4)]
    assert summarise([], 0, SECOND_NS) == NOTHING
    assert summarise(batches_of(rows), 1 * SECOND_NS, 3 * SECOND_NS) == NOTHING


def test_gauges_are_means_over_the_time_they_share_with_the_window() -> None:
    rows = [
        row("host", "cpu", metric, value, end_s, interval_s)
        for metric, factor in (("user_share", 1), ("system_share", 0.5), ("iowait_share", 0.1), ("steal_share", 0.01))
        for value, end_s, interval_s in ((0.1 * factor, 1, 1), (0.4 * factor, 4, 3), (0.6 * factor, 5, 1))
    ]
    found = summarise(batches_of(rows), round(0.5 * SECOND_NS), 4 * SECOND_NS)
    mean = (0.1 * 0.5 + 0.4 * 3) / 3.5
    assert found["cpu_share"] == pytest.approx(mean * 1.5)
    assert found["iowait_share"] == pytest.approx(mean * 0.1)
    assert found["steal_share"] == pytest.approx(mean * 0.01)


def test_deltas_count_in_proportion_and_devices_add_up() -> None:
    rows = [
        row("block", device, metric, value * factor, end_s)
        for device, factor in (("vda", 1), ("vdb", 10))
        for end_s in (1, 2, 3)
        for metric, value in (
            ("read_ios_count", 100),
            ("write_ios_count", 50),
            ("read_bytes", 4096),
            ("write_bytes", 0),
        )
    ]
    rows += [row("block", device, "queue_mean_count", queue) for device, queue in (("vda", 2), ("vdb", 3))]
    window = (round(0.5 * SECOND_NS), round(2.5 * SECOND_NS))
    found = summarise(batches_of(rows), *window)
    assert found["device_iops"] == pytest.approx(1650)
    assert found["device_bytes_per_s"] == pytest.approx(4096 * 11)
    assert found["device_queue"] == pytest.approx(5)
    only = summarise(batches_of(rows), *window, devices=["vda"])
    assert only["device_iops"] == pytest.approx(150)
    assert only["device_queue"] == pytest.approx(2)
    assert summarise(batches_of(rows), *window, devices=["sda"])["device_iops"] is None


def test_the_retransmit_share_weighs_seconds_by_what_was_sent() -> None:
    rows = [
        row("net", "tcp", metric, value, end_s)
        for end_s, out, again in ((1, 1, 1), (2, 9999, 0))
        for metric, value in (("segments_out_count", out), ("segments_retransmitted_count", again))
    ]
    assert summarise(batches_of(rows), 0, 2 * SECOND_NS)["tcp_retransmit_share"] == pytest.approx(0.0001)
    idle = [{**each, "value": 0.0} for each in rows]
    assert summarise(batches_of(idle), 0, 2 * SECOND_NS)["tcp_retransmit_share"] is None


@given(
    ends=st.lists(st.floats(0.1, 5), min_size=1, max_size=10),
    rate=st.floats(0, 1e6),
    window=st.tuples(st.floats(0, 10), st.floats(0.01, 10)),
)
def test_a_constant_rate_is_found_in_any_window_whatever_the_intervals(
    ends: list[float], rate: float, window: tuple[float, float]
) -> None:
    rows, end_s = [], 0.0
    for interval_s in ends:
        end_s += interval_s
        rows.append(row("block", "vda", "read_ios_count", rate * interval_s, end_s, interval_s))
    start_ns, length_ns = (round(edge * SECOND_NS) for edge in window)
    found = summarise(batches_of(rows), start_ns, start_ns + length_ns)["device_iops"]
    if window[0] < end_s - 0.001:
        assert found == pytest.approx(rate, rel=1e-6)
    elif window[0] > end_s + 0.001:
        assert found is None
