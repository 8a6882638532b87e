"""What the examination asks of I/O: where caches end, transactions, scans, a log, a whole database."""

from __future__ import annotations

from typing import Any

from assay.workloads.examination import Examination
from assay.workloads.io.cache_span import PART as CACHE_SPAN
from assay.workloads.io.cache_span_plan import cache_span_plan
from assay.workloads.io.needed import needed_plan_data
from assay.workloads.io.plan import IoPlan, fit_bursts, load_plan
from assay.workloads.plan import ExaminationPart, Part
from assay.workloads.registry import workload_named

REDUCED: dict[str, dict[str, list[str] | list[float]]] = {
    "oltp": {"block_bytes": ["8K", "64K"], "read_share": [0.7]},
    "dss": {"block_bytes": ["256K"]},
    "log": {"block_bytes": ["512", "8K", "60K"]},
}
"""Levels of the first activity that a small budget measures."""

POINTS_PER_SEARCH = 18
"""Points a search takes on average: doublings, halvings, repeats until the limit is decided."""


def _cache_span(asked: Examination) -> Part[IoPlan]:
    # The spans depend on the size of the file, which is chosen later.
    return Part(name=CACHE_SPAN, title="Latency against span", plan=cache_span_plan(1 << 30), planned_s=asked.planned_s)


def _preset(name: str, share: float) -> ExaminationPart:
    """A part that measures a preset."""
    return ExaminationPart(name=name, share=share, part=lambda asked: _measured(name, asked))


def _measured(name: str, asked: Examination) -> Part[IoPlan]:
    """A preset."""
    preset = workload_named("io").preset(name)
    return _fitted(name, preset.model_dump(mode="json", exclude_unset=True) | asked.given, asked)


def _needed(asked: Examination) -> Part[IoPlan]:
    """The need that the user gave."""
    assert asked.need is not None
    return _fitted(asked.need["part"], needed_plan_data(asked.need) | asked.given, asked)


def _fitted(name: str, data: dict[str, Any], asked: Examination) -> Part[IoPlan]:
    """A plan, fitted to its share of the budget."""
    data = data | asked.own_limits
    activities = list(data["activity"])
    if not asked.is_full:
        activities[0] = {**activities[0], **REDUCED.get(name, {})}
        data["search"] = {**data.get("search", {}), "resolution_share": 0.12}
    if not asked.is_direct:
        activities = [{**activity, "io_mode": "buffered"} for activity in activities]
    data["activity"] = activities
    data["timing"] = _timing(load_plan(data, source="part"), asked)
    if "duration_s" in data["timing"]:
        data["activity"] = fit_bursts(activities, data["timing"]["duration_s"])
    if asked.timeout_s is not None:
        data["timing"]["io_timeout_s"] = asked.timeout_s
    plan = load_plan(data, source=f"part {name}")
    return Part(name=name, title=plan.title, plan=plan, planned_s=asked.planned_s)


def _timing(draft: IoPlan, asked: Examination) -> dict[str, float]:
    """Warm-up, least and most time of a point, so that the part takes about its share."""
    per_workload = 1 if draft.search.axis == "none" else POINTS_PER_SEARCH
    each_s = asked.planned_s / (len(draft.workloads()) * per_workload)
    warmup_s = min(max(each_s * 0.15, 0.3), 5.0)
    longest_s = max(each_s - warmup_s, 1.0)
    if draft.timing.duration_s is not None:
        return {"warmup_s": warmup_s, "duration_s": longest_s}
    shortest_s = max(longest_s * (0.5 if asked.is_full else 0.8), 0.8)
    return {"warmup_s": warmup_s, "min_s": shortest_s, "max_s": longest_s}


PARTS = (
    ExaminationPart(name="need", share=0.25, part=_needed, of_need=True),
    ExaminationPart(name=CACHE_SPAN, share=0.06, part=_cache_span),
    _preset("oltp", 0.42),
    _preset("dss", 0.13),
    _preset("log", 0.13),
    _preset("database", 0.18),
)
