from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from assay.base.errors import UsageError
from assay.record.rows import TextColumn
from assay.traces.file import TraceWriter, read_trace
from assay.traces.head import TraceHead
from assay.traces.ios import Ios
from assay.traces.window import chosen_window, window_of

SECOND = 10**9
HOUR = 3600 * SECOND


def trace(path: Path, times_ns: list[int], *, origin_utc_ns: int | None = None) -> Path:
    count = len(times_ns)
    none = TextColumn(np.zeros(count, np.int32), ["vda"])
    numbers = np.zeros(count, np.int64)
    with TraceWriter(path, TraceHead(source="test", origin_utc_ns=origin_utc_ns)) as file:
        file.write(
            Ios(np.array(times_ns), numbers, numbers, numbers, numbers + 512, np.ones(count, np.uint16), none, none)
        )
    return path


def test_the_busiest_window_holds_the_burst(tmp_path: Path) -> None:
    quiet = [second * SECOND for second in range(600)]
    burst = [300 * SECOND + number * 10**6 for number in range(5000)]
    begin, end = chosen_window(read_trace(trace(tmp_path / "x", sorted(quiet + burst))), "busiest:10s")
    assert begin <= 300 * SECOND
    assert end >= 305 * SECOND
    assert end - begin == 10 * SECOND


def test_a_window_of_offsets_counts_from_the_first_io(tmp_path: Path) -> None:
    path = trace(tmp_path / "x", [100 * SECOND, 400 * SECOND, 900 * SECOND])
    assert chosen_window(read_trace(path), "5m-10m") == (400 * SECOND, 700 * SECOND)
    assert chosen_window(read_trace(path), "") == (100 * SECOND, 900 * SECOND + 1)


def test_a_window_of_the_clock_is_that_of_the_day_on_which_the_trace_was_recorded(tmp_path: Path) -> None:
    # Recorded from 23:00 to 02:00.
    origin = 23 * HOUR
    path = trace(tmp_path / "x", [0, 3 * HOUR], origin_utc_ns=origin)
    assert chosen_window(read_trace(path), "23:30-23:40") == (HOUR // 2, HOUR // 2 + 600 * SECOND)
    assert chosen_window(read_trace(path), "01:00-01:10") == (2 * HOUR, 2 * HOUR + 600 * SECOND)
    assert chosen_window(read_trace(path), "23:50-00:10") == (50 * 60 * SECOND, 70 * 60 * SECOND)


@pytest.mark.parametrize("text", ["x", "busiest:", "busiest:0s", "10m", "10m-5m", "25:00-26:00", "a-b"])
def test_other_texts_are_no_windows(text: str) -> None:
    with pytest.raises(ValueError, match="no window"):
        window_of(text)


@pytest.mark.parametrize(("window", "match"), [("10:00-10:10", "time of the day"), ("2h-3h", "no I/O then")])
def test_a_window_that_the_trace_has_not_is_refused(tmp_path: Path, window: str, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        chosen_window(read_trace(trace(tmp_path / "x", [0, SECOND])), window)
