"""A synthetic plan of a trace: its sizes, mix, skew, streams and arrivals with their bursts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from assay.base.units import format_bytes
from assay.traces.character.places import EXTENT_BITS, HOT_SHARES
from assay.traces.character.whole import TraceCharacter
from assay.workloads.io.activities import IoActivity
from assay.workloads.io.plan import IoPlan, load_plan

SECTOR, PAGE = 512, 4096
SIZES_MAX = 8
SIZE_SHARE_LEAST = 0.01
"""Rarer sizes become one, of their mean."""
WAVE_PEAK_LEAST = 1.3
WAVE_DISPERSION_LEAST = 3.0
"""Below either, arrivals are as even as random ones are."""
SEQUENTIAL_LEAST = 0.02
HOT_LEAST = 2 * HOT_SHARES[-1]
DURABLE_LEAST = 0.5
DURATION_S = (30.0, 600.0)
WAVES_IN_DURATION = 4
STEPS_LEAST = 20


Keys = dict[str, object]
"""Keys of an activity, as a plan has them."""


class Waves(TypedDict):
    """Arrivals in waves, as an activity has them."""

    arrivals: str
    wave_period_s: float
    wave_share: float
    wave_peak: float


@dataclass(frozen=True)
class PlanOfTrace:
    """A plan, and what of the trace it does not say.

    Attributes
    ----------
    activities
        Tables of the plan.
    span_bytes
        The extents that the trace touched: what the plan's volume should have.
    left_out
        A sentence each.
    """

    title: str
    activities: tuple[Keys, ...]
    span_bytes: int
    duration_s: float
    left_out: tuple[str, ...]

    def plan(self) -> IoPlan:
        """The plan itself."""
        return load_plan(
            {"name": "trace", "title": self.title, "size": str(self.span_bytes), "activity": [*self.activities],
             "timing": {"warmup_s": 5.0, "duration_s": self.duration_s}}, source="the plan of the trace",
        )  # fmt: skip

    def toml(self) -> str:
        """The plan as a file for `assay profile --plan`."""
        lines = [f"# {text}" for text in (f"Made by assay trace plan of {self.title}.", *self.left_out)]
        lines += ['name = "trace"', f"title = {_toml(self.title)}", f'size = "{self.span_bytes}"', "", "[timing]",
                  "warmup_s = 5.0", f"duration_s = {self.duration_s:g}"]  # fmt: skip
        for activity in self.activities:
            lines += ["", "[[activity]]", *(f"{key} = {_toml(value)}" for key, value in activity.items())]
        return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{key}" = {one:.4g}' for key, one in value.items()) + " }"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def plan_of_trace(found: TraceCharacter, title: str) -> PlanOfTrace:
    """Make a plan that asks for what a trace asked for, reads and writes as activities at once."""
    left_out: list[str] = []
    waves = _waves(found)
    if found.counts["discards"]:
        left_out.append(f"{found.counts['discards']:,} discards are not in it.")
    if waves is None and any(one.dispersion > WAVE_DISPERSION_LEAST for one in found.bursts):
        left_out.append("Its bursts are shorter than what the plan can say, and are not in it.")
    extents = found.skew.extents if found.skew is not None else 1
    duration_s = DURATION_S[0]
    if waves is not None:
        longest_s, period_s = DURATION_S[1] / WAVES_IN_DURATION, waves["wave_period_s"]
        if period_s > longest_s:
            left_out.append(
                f"Its waves come every {period_s:,.0f} s in the trace, and every {longest_s:g} s in the plan."
            )
            waves["wave_period_s"] = period_s = longest_s
        # Whole waves, so that the measured rate is the mean.
        duration_s = max(WAVES_IN_DURATION, math.ceil(DURATION_S[0] / period_s)) * period_s
    activities = []
    for number, side in enumerate(("read", "write")):
        count = found.counts[f"{side}s"]
        if count:
            rate = float(f"{count / found.seconds:.6g}")
            activity: Keys = {"name": f"{side}s", **_access(found, number), "rate": rate}
            activities.append({**activity, **(waves or {"arrivals": "poisson"})})
    span_bytes = max(extents << EXTENT_BITS, 64 << 20)
    together = format_bytes(span_bytes)
    left_out.append(f"The {together} that were touched lie together, and several devices of the trace are one.")
    return PlanOfTrace(title, tuple(activities), span_bytes, duration_s, tuple(left_out))


def _access(found: TraceCharacter, number: int) -> Keys:
    """Sizes, order and skew of reads (0) or writes (1); only what differs from a plan's defaults."""
    sizes = _sizes(found.sizes[number])
    sequential = found.sequential[number] or 0.0
    most_frequent = max(sizes, key=lambda size: sizes[size])
    access: Keys = {
        "block_bytes": most_frequent if len(sizes) == 1 else {str(size): weight for size, weight in sizes.items()},
        "read_share": 1.0 - number,
        "random_share": float(f"{1 - sequential:.3g}"),
    }
    if sequential > SEQUENTIAL_LEAST:
        access["streams"] = min(max(round(found.interleaved), 1), 64)
    if found.skew is not None and found.skew.hot[-1] > HOT_LEAST:
        access["skew"] = f"hot:{found.skew.hot[-1]:.3f}/{HOT_SHARES[-1]:g}"
    if number and found.counts["writes"]:
        durable = (found.counts["fua"] + found.counts["preflushes"]) / found.counts["writes"]
        if durable >= DURABLE_LEAST:
            access["sync"] = "dsync"
        elif found.counts["flushes"]:
            every = max(round(found.counts["writes"] / found.counts["flushes"]), 1)
            access |= {"sync": "fdatasync", "sync_every": every}
    known = IoActivity.model_fields
    return {key: value for key, value in access.items() if key in ("block_bytes", "read_share")
            or value != known[key].default}  # fmt: skip


def _sizes(counts: dict[int, int]) -> dict[int, float]:
    """Weights of sizes in percent; rare sizes become one of their mean, so that the bytes stay the same."""
    rounded: dict[int, int] = {}
    for size, count in counts.items():
        own = max(-(-size // SECTOR) * SECTOR, SECTOR)
        rounded[own] = rounded.get(own, 0) + count
    total = sum(rounded.values())
    frequent = sorted(rounded, key=lambda size: -rounded[size])[:SIZES_MAX]
    kept = {size: rounded[size] for size in frequent if rounded[size] >= SIZE_SHARE_LEAST * total}
    rest = {size: count for size, count in rounded.items() if size not in kept}
    if rest:
        mean = sum(size * count for size, count in rest.items()) / sum(rest.values())
        own = max(round(mean / PAGE) * PAGE, SECTOR)
        kept[own] = kept.get(own, 0) + sum(rest.values())
    return {size: float(f"{100 * kept[size] / total:.4g}") for size in sorted(kept)}


def _waves(found: TraceCharacter) -> Waves | None:
    """Waves that are nearest to the course of the load: the split into high and low that explains most of its variance.

    The split maximises the variance between the two classes (N. Otsu, 1979); None where arrivals are as even as random
    ones, or the trace is too short.
    """
    columns = found.over_time.columns
    ios = (columns["reads"] + columns["writes"])[: found.span_ns // found.over_time.step_ns]
    if found.windows > 1 or len(ios) < STEPS_LEAST or not ios.any() or ios.var() < WAVE_DISPERSION_LEAST * ios.mean():
        return None
    ordered = np.sort(ios)[::-1]
    count = np.arange(1, len(ordered))
    high = np.cumsum(ordered)[:-1] / count
    low = (ordered.sum() - np.cumsum(ordered)[:-1]) / (len(ordered) - count)
    share = count / len(ordered)
    best = int(np.argmax(share * (1 - share) * (high - low) ** 2))
    peak = high[best] / ios.mean()
    if peak < WAVE_PEAK_LEAST:
        return None
    is_high = ios >= ordered[best]
    waves = int((np.diff(is_high.astype(np.int8), prepend=0) == 1).sum())
    period_s = found.span_ns / 1e9 / max(waves, 1)
    # Both are rounded down, so that the peak never has more than all I/Os.
    low_share = math.floor(share[best] * 10_000) / 10_000
    return {"arrivals": "waves", "wave_period_s": float(f"{period_s:.4g}"), "wave_share": low_share,
            "wave_peak": max(math.floor(min(peak, 1 / low_share) * 1000) / 1000, 1.0)}  # fmt: skip
