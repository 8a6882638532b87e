"""Response times of a replay beside those of the log, statement by statement, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

from assay.record.student import quantile
from assay.workloads.sqllog.shapes import StatementCompared, StatementTimes

BATCHES_LEAST = 5
"""Parts of the time that a statement must be in for an interval."""

NOTABLE_SHARE = 0.05
"""A difference below this share is called none, however sure it is."""


class StatementBatch(TypedDict):
    """Statements of a part of the log's time: how many, their time as recorded and as replayed."""

    count: int
    recorded_ns: float
    replayed_ns: float


class CoreStatement(TypedDict):
    """Statements of one fingerprint, as the core tells them."""

    text: str
    kind: str
    count: int
    failed: int
    recorded_ns: StatementTimes | None
    replayed_ns: StatementTimes | None
    batches: list[StatementBatch]


def times_slower(
    batches: Sequence[StatementBatch], round_trip_ns: float = 0.0
) -> tuple[float | None, tuple[float, float] | None]:
    """Time in the replay over time in the log, with its 95 % interval.

    The log has the server's times, the replay the client's: the way to the server and back is taken off each of these.

    The ratio of sums over equal parts of the time, and its variance by the residuals of these parts (Cochran, Sampling
    Techniques, 3rd ed., section 6.4): statements that ran next to each other are not independent, parts nearly are.

    Examples
    --------
    >>> part = {"count": 10, "recorded_ns": 100.0, "replayed_ns": 200.0}
    >>> times_slower([part] * 6)
    (2.0, (2.0, 2.0))
    >>> times_slower([part])
    (2.0, None)
    >>> times_slower([part], round_trip_ns=10.0)
    (1.0, None)
    """
    recorded = sum(batch["recorded_ns"] for batch in batches)
    at_server = [max(batch["replayed_ns"] - batch["count"] * round_trip_ns, 0.0) for batch in batches]
    replayed = sum(at_server)
    if recorded <= 0 or replayed <= 0:
        return None, None
    ratio, count = replayed / recorded, len(batches)
    if count < BATCHES_LEAST:
        return ratio, None
    residuals = sum((own - ratio * batch["recorded_ns"]) ** 2 for own, batch in zip(at_server, batches, strict=True))
    error = math.sqrt(count / (count - 1) * residuals) / recorded
    half = quantile(count - 1, 0.975) * error
    return ratio, (max(ratio - half, 0.0), ratio + half)


def change_of(
    ratio: float | None, interval: tuple[float, float] | None, recorded_ns: float = math.inf, round_trip_ns: float = 0.0
) -> str:
    """`slower`, `faster` or `alike`, or `unknown` where the interval does not decide.

    A difference of mean times that is less than the way to the server and back is not decided either.

    Examples
    --------
    >>> change_of(2.0, (1.5, 2.5)), change_of(1.01, (0.99, 1.03)), change_of(1.5, (0.5, 2.5)), change_of(2.0, None)
    ('slower', 'alike', 'unknown', 'unknown')
    >>> [change_of(2.0, (1.5, 2.5), mean_ns, round_trip_ns=50_000) for mean_ns in (1000, 1_000_000)]
    ['unknown', 'slower']
    """
    if ratio is None or interval is None:
        return "unknown"
    low, high = interval
    is_told = abs(ratio - 1) * recorded_ns > round_trip_ns
    if is_told and low > 1 and ratio > 1 + NOTABLE_SHARE:
        return "slower"
    if is_told and high < 1 and ratio < 1 - NOTABLE_SHARE:
        return "faster"
    is_near = high < 1 + 2 * NOTABLE_SHARE and low > 1 - 2 * NOTABLE_SHARE
    return "alike" if is_near else "unknown"


def compared(found: Sequence[CoreStatement], round_trip_ns: float) -> list[StatementCompared]:
    """Statements with the ratio of their times, those that took most of the time first."""
    told: list[StatementCompared] = []
    for one in found:
        ratio, interval = times_slower(one["batches"], round_trip_ns)
        mean_ns = (one["recorded_ns"] or {}).get("mean") or 0.0
        told.append(
            {
                "text": one["text"],
                "kind": one["kind"],
                "count": one["count"],
                "failed": one["failed"],
                "recorded_ns": one["recorded_ns"],
                "replayed_ns": one["replayed_ns"],
                "times": ratio,
                "interval_95": None if interval is None else list(interval),
                "change": change_of(ratio, interval, mean_ns, round_trip_ns),
            }
        )
    return told
