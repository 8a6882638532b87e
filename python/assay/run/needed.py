"""Whether a need is held: decided once, from the search that measured it, for every reader of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from assay.base.units import format_bytes, format_iops, format_share
from assay.record.judgement import GENERATOR
from assay.record.limits import parse_limits, show_value
from assay.record.shapes.need import AskedNeed, NeededStream
from assay.record.shapes.point import Answer, Crossing, End, Limiting, VerdictLine
from assay.record.standstill import HOSTS_APART

NOT_STORAGE = {
    GENERATOR: (
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
MISSES = {
    "rate not sustained": "requests arrive faster than they are served",
    "saturation": "throughput stops rising",
    "errors": "I/O fails",
}
"""What more than the storage holds brings, besides a missed limit."""
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
    # A reader of the report does not know the command's option.
    source = need["source"].removeprefix("--need").lstrip(", ")
    asked = WORDS[held].format(need_words(need) + (f" ({source})" if source else ""))
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
    if not reached and reason in NOT_STORAGE:
        why, step = NOT_STORAGE[reason]
        where = _held_words(need, failing, wanted) if failing is not None else "every rate that was tried"
        return None, times, f"{why} at {where}", step
    low, high = _crossing(answer.get("crossing"), edge, failing)
    if answer.get("undecided") and low / wanted < 1 <= high / wanted * (1 + SAME_SHARE):
        ends = f"{format_share(low / wanted)} and {format_share(high / wanted)}"
        near = f"the limits are crossed between {ends} of it, too near to tell"
        return None, times, near, "measure again with longer points and more repeats (--min-time, --repeats)"
    if not reached:
        return False, times, _short_words(need, edge, failing, reason), None
    assert edge is not None
    if failing is None or reason in NOT_STORAGE:
        return True, times, f"it is held, and so is {_held_words(need, edge, wanted)}, the most that was tried", None
    spare = f"{format_share(times - 1)} to spare" if times and times > 1 + SAME_SHARE else "nothing to spare"
    most = f"up to {_held_words(need, edge, wanted)}; with more {_miss_words(reason)}"
    return True, times, f"it is held with {spare}, {most}", None


def _short_words(need: AskedNeed, edge: End | None, failing: End | None, reason: str) -> str:
    """How far the storage falls short of a need: the most that it holds, or what the smallest rate tried gave."""
    wanted = need["streams"][0]["rate"]
    if edge is not None:
        most = _held_words(need, edge, wanted)
        return f"within the limits the storage holds {most}; with more {_miss_words(reason)}"
    if failing is None:
        return f"no rate that was tried met the limits: {_miss_words(reason)}"
    limiting = failing.get("limiting")
    found = _measured_words(limiting) if limiting is not None and reason not in MISSES else None
    return f"at {_held_words(need, failing, wanted)}, {found or _miss_words(reason)}; lower rates were not tried"


def _miss_words(reason: str) -> str:
    return MISSES.get(reason, f"it misses {reason}")


def _measured_words(limiting: Limiting) -> str | None:
    """A measured value beside its limit; None where the share of the limit does not give it."""
    text, share = limiting.get("limit"), limiting.get("share")
    if not text or share is None or not (limit := parse_limits([text])[0]).is_upper:
        return None
    name = f"{limit.role or ''} {limit.name}".replace(".", " ").strip()
    value, bound = (show_value(one, limit.unit) for one in (share * limit.value, limit.value))
    return f"{name} is {value} (limit {bound})"


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
    """The tone of the sentence of a need."""
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
