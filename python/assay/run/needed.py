"""Whether a need is held: decided once, from the search that measured it, for every reader of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from assay.base.units import format_bytes, format_iops, format_share
from assay.record.shapes.need import AskedNeed, NeededStream
from assay.record.shapes.point import Answer, Crossing, End, VerdictLine
from assay.record.standstill import HOSTS_APART

NOT_STORAGE = {
    "generator": (
        "the load generator was the bottleneck",
        "measure again from a host with more or idle processors, or from several hosts (--hosts)",
    ),
    HOSTS_APART: ("the hosts measured too far apart", "set their clocks, and measure again"),
}
"""What ends a search and says nothing of the storage: why, and what to do."""
WORDS: Mapping[bool | None, str] = {
    True: "Good enough for the need of {}",
    False: "Not good enough for the need of {}",
    None: "Whether it is good enough for the need of {} is not known",
}
SAME_SHARE = 1e-6
"""Rates nearer than this are one: they come from doublings."""


def stream_words(stream: NeededStream) -> str:
    """A stream for people.

    Examples
    --------
    >>> stream_words({"role": "data", "rate": 5e3, "block_bytes": 8192, "read_share": 0.7, "random_share": 1.0})
    '5,000 IOPS of 8 KiB, 70/30 random'
    """
    reads = stream["read_share"] * 100
    mix = "reads" if reads == 100 else "writes" if reads == 0 else f"{reads:.0f}/{100 - reads:.0f}"
    order = "random" if stream["random_share"] > 0.5 else "in order"
    role = "" if stream["role"] == "data" else f" for the {stream['role']}"
    return f"{format_iops(stream['rate'])} IOPS of {format_bytes(stream['block_bytes'])}, {mix} {order}{role}"


def need_words(need: AskedNeed) -> str:
    """What is needed, in a clause."""
    within = f" within {', '.join(need['limits'])}" if need["limits"] else ""
    return f"{' and '.join(map(stream_words, need['streams']))}{within}"


def judged_need(need: AskedNeed, answers: Sequence[Answer]) -> AskedNeed:
    """The need with whether it is held, how many times, both in a sentence, and what to do where it is not known."""
    answer = next((one for one in answers if one["part"] == need["part"]), None)
    held, times, told, step = _judged(need, answer)
    asked = WORDS[held].format(f"{need_words(need)} ({need['source']})")
    told = f"{asked}: {told}."
    return {**need, "held": held, "times": times, "next_step": step, "sentence": told}


def _judged(need: AskedNeed, answer: Answer | None) -> tuple[bool | None, float | None, str, str | None]:
    """Whether a need is held, how many times, why, and what to do where it is not known."""
    if answer is None:
        return None, None, "it was not measured to its end", "measure it to its end"
    wanted = need["streams"][0]["rate"]
    edge, failing, reason = answer.get("edge"), answer.get("first_failing"), answer.get("limited_by") or ""
    times = _rate(edge) / wanted if edge else None
    reached = times is not None and times >= 1 - SAME_SHARE
    if failing is not None and not reached and reason in NOT_STORAGE:
        why, step = NOT_STORAGE[reason]
        return None, times, f"{why} at {_held_words(need, failing, wanted)}", step
    low, high = _crossing(answer.get("crossing"), edge, failing)
    if answer.get("undecided") and low / wanted < 1 <= high / wanted * (1 + SAME_SHARE):
        ends = f"{format_share(low / wanted)} and {format_share(high / wanted)}"
        near = f"the limits are crossed between {ends} of it, too near to tell"
        return None, times, near, "measure again with longer points and more repeats (--min-time, --repeats)"
    if not reached:
        most = _held_words(need, edge, wanted) if edge else "less than a quarter of it"
        return False, times, f"within the limits the storage holds {most}; with more it misses {reason}", None
    assert edge is not None
    if failing is None or reason in NOT_STORAGE:
        return True, times, f"it is held, and so is {_held_words(need, edge, wanted)}, the most that was tried", None
    spare = f"{format_share(times - 1)} to spare" if times and times > 1 + SAME_SHARE else "nothing to spare"
    return True, times, f"it is held with {spare}, up to {_held_words(need, edge, wanted)}; more misses {reason}", None


def _held_words(need: AskedNeed, end: End, wanted: float) -> str:
    """A load of the search as I/Os a second of all streams, and as a share of the need."""
    share = _rate(end) / wanted
    total = sum(one["rate"] for one in need["streams"]) * share
    return f"{format_iops(total)} IOPS, {format_share(share)} of it"


def _rate(end: End) -> float:
    return float(end.get("rate") or 0.0)


def _crossing(crossing: Crossing | None, edge: End | None, failing: End | None) -> tuple[float, float]:
    """Between which rates the limits are crossed: by the interval of the crossing, else by the loads around it."""
    interval = (crossing or {}).get("interval_95")
    if interval is not None:
        return interval[0], interval[1]
    return _rate(edge) if edge else 0.0, _rate(failing) if failing else math.inf


def need_tone(need: AskedNeed) -> Literal["good", "bad", "warn"]:
    """How the sentence of a need is shown."""
    held = need.get("held")
    return "warn" if held is None else "good" if held else "bad"


def need_line(need: AskedNeed, answer: Answer | None) -> VerdictLine:
    """The verdict's line of a need that was judged."""
    edge = answer.get("edge") if answer is not None else None
    return VerdictLine(
        question="The need", limit="; ".join(need["limits"]) or None, value=edge["iops"] if edge else None,
        unit="iops", met=need.get("held"), meaning=need.get("sentence"), point_id=edge["point_id"] if edge else None,
        part=need["part"], asked=True,
    )  # fmt: skip
