"""I/Os of a trace as they are asked for again: places, flushes, and what ties an I/O to those before it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.record.rows import TextColumn
from assay.traces.ios import UNKNOWN_NS, IoFlag, Ios
from assay.workloads.replay.places import DeviceSeat
from assay.workloads.replay.plan import Fit, Pace
from assay.workloads.replay.rows import DURABLE_WRITE, FLUSH, READ, WRITE, RowMaker

MIB = 1 << 20


def seat(**given: Any) -> DeviceSeat:
    return DeviceSeat(**{"volume": 0, "start_bytes": 0, "size_bytes": 64 * MIB, "reach_bytes": 64 * MIB, "fit": "keep",
                   "sector_bytes": 512} | given)  # fmt: skip


def ios_of(asked: list[tuple[int, int, int]], *, flags: list[int] | None = None) -> Ios:
    """I/Os of (time, response time, process)."""
    times, responses, processes = (np.array(column, np.int64) for column in zip(*asked, strict=True))
    count = len(asked)
    return Ios(
        times, np.full(count, UNKNOWN_NS), responses, np.arange(count) * 8192, np.full(count, 8192),
        np.array(flags or [1] * count, np.uint16), TextColumn(np.zeros(count, np.int32), ["vda"]),
        TextColumn(processes.astype(np.int32), ["a", "b", "c"]),
    )  # fmt: skip


def maker(pace: Pace = "timed", **given: Any) -> RowMaker:
    return RowMaker({"vda": seat()}, **{"volumes": [0], "pace": pace, "speed": 1.0, "begin_ns": 0, "at_ns": 0} | given)


def rows_of(made: RowMaker, ios: Ios, *, batches: int = 1) -> Any:
    """The rows of one volume, read in this number of batches."""
    edges = np.linspace(0, len(ios), batches + 1).astype(int)
    parts = [ios.where(slice(begin, end)) for begin, end in pairwise(edges)]
    return np.concatenate([made.rows(part)[0] for part in parts])


STREAM = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 900), st.integers(0, 2)), min_size=1, max_size=60)


def asked_of(drawn: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    times = np.cumsum([gap for gap, _, _ in drawn])
    return [(int(at), response, process) for at, (_, response, process) in zip(times, drawn, strict=True)]


@settings(max_examples=40)
@given(STREAM, st.integers(1, 4))
def test_a_closed_replay_knows_how_many_ios_were_outstanding(drawn: list[tuple[int, int, int]], batches: int) -> None:
    asked = asked_of(drawn)
    rows = rows_of(maker("closed"), ios_of(asked), batches=batches)
    for number, (at, _, _) in enumerate(asked):
        outstanding = sum(1 for begun, response, _ in asked[:number] if begun + response > at)
        assert rows["link"][number] == outstanding


@settings(max_examples=40)
@given(STREAM, st.integers(1, 4))
def test_an_io_follows_the_one_of_its_process_that_ended_last(drawn: list[tuple[int, int, int]], batches: int) -> None:
    asked = asked_of(drawn)
    rows = rows_of(maker("think", speed=2.0), ios_of(asked), batches=batches)
    for number, (at, _, process) in enumerate(asked):
        ends = [begun + response for begun, response, other in asked[:number] if other == process]
        before = max((end for end in ends if end <= at), default=None)
        link = int(rows["link"][number])
        if before is None:
            assert link == 0
            assert rows["at_ns"][number] == at // 2
        else:
            begun, response, other = asked[number - link]
            assert (begun + response, other) == (before, process)
            assert rows["at_ns"][number] == (at - before) // 2


def test_times_are_those_of_the_window_at_the_speed_and_after_the_offset() -> None:
    rows = rows_of(maker(speed=4.0, begin_ns=1000, at_ns=500), ios_of([(1000, 1, 0), (5000, 1, 0)]))
    assert rows["at_ns"].tolist() == [500, 1500]


def test_a_write_that_flushes_first_is_two_and_discards_are_left_out() -> None:
    flags = [IoFlag.READ, IoFlag.WRITE | IoFlag.FLUSH, IoFlag.WRITE | IoFlag.FUA, IoFlag.DISCARD, IoFlag.WRITE]
    ios = ios_of([(at, 1, 0) for at in range(5)], flags=[int(flag) for flag in flags])
    rows = rows_of(maker(), ios)
    assert rows["op"].tolist() == [READ, FLUSH, WRITE, DURABLE_WRITE, WRITE]
    assert rows["length"].tolist() == [8192, 0, 8192, 8192, 8192]
    assert rows["at_ns"].tolist() == [0, 1, 1, 2, 4]


def test_hosts_share_the_ios_and_none_is_asked_for_twice() -> None:
    ios = ios_of([(at, 1, 0) for at in range(100)])
    hosts = [rows_of(maker(host=(place, 3)), ios, batches=7) for place in range(3)]
    assert sorted(np.concatenate([rows["at_ns"] for rows in hosts]).tolist()) == list(range(100))


@settings(max_examples=60)
@given(
    st.sampled_from(["keep", "fold", "scale"]), st.integers(4096, 1 << 24), st.integers(1, 1 << 40),
    st.integers(1, 1 << 20), st.sampled_from([512, 4096]),
)  # fmt: skip
def test_places_stay_within_their_seat_and_are_whole_sectors(
    fit: Fit, size: int, place: int, length: int, sector: int
) -> None:
    size = size // sector * sector
    own = seat(start_bytes=MIB, size_bytes=size, reach_bytes=max(place + length, size), fit=fit, sector_bytes=sector)
    places, lengths = own.placed(np.array([place]), np.array([length]))
    assert MIB <= places[0] <= places[0] + lengths[0] <= MIB + size
    assert (places[0] - MIB) % sector == lengths[0] % sector == 0
    assert lengths[0] >= min(length, size) // sector * sector


@pytest.mark.parametrize(
    ("fit", "size", "reach", "place", "wanted"),
    [("keep", 64, 64, 56, 56), ("fold", 40, 64, 56, 16), ("scale", 40, 80, 56, 28), ("scale", 128, 64, 16, 32)],
)
def test_a_place_is_kept_folded_or_scaled(fit: Fit, size: int, reach: int, place: int, wanted: int) -> None:
    own = seat(size_bytes=size * MIB, reach_bytes=reach * MIB, fit=fit)
    places, _ = own.placed(np.array([place * MIB]), np.array([8192]))
    assert places.tolist() == [wanted * MIB]
