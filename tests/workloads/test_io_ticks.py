"""Ticks of I/O points: whether a volume failed to the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.workloads.io.ticks import FAILED_LAST_MIN, failed_to_the_end


def tick(number: int, *, volume: int = 0, good: int = 0, failed: int = 0) -> Mapping[str, Any]:
    return {
        "tick": number, "volume": volume, "activity": 0, "error_count": failed,
        "read": {"count": good}, "write": {"count": 0},
    }  # fmt: skip


def test_a_volume_that_fails_after_a_good_beginning_is_named() -> None:
    ticks = [tick(0, good=500), tick(1, good=1, failed=900), tick(2, failed=1000), tick(3, failed=1000)]
    assert failed_to_the_end(ticks, 4) == {0}


def test_a_volume_that_has_recovered_is_not() -> None:
    ticks = [tick(0, good=500), tick(1, failed=5000), tick(2, good=1)]
    assert failed_to_the_end(ticks, 3) == set()


def test_one_volume_of_two_is_enough() -> None:
    ticks = [
        tick(n, volume=volume, good=500 * (1 - volume), failed=500 * volume) for n in range(4) for volume in (0, 1)
    ]
    assert failed_to_the_end(ticks, 4) == {1}


def test_a_few_last_errors_say_nothing() -> None:
    assert failed_to_the_end([tick(0, good=1), tick(1, failed=FAILED_LAST_MIN - 1)], 2) == set()


def test_what_ends_after_the_point_does_not_count() -> None:
    assert failed_to_the_end([tick(0, good=1), tick(1, failed=FAILED_LAST_MIN)], 1) == set()
