"""Parts of a run as its manifest lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.workloads.plan import Part
from assay.workloads.registry import load_plan_of_any_kind, workload_of


def part_report(part: Part[Any]) -> dict[str, Any]:
    """A part as the manifest lists it."""
    own = {
        **({"target": part.target_text} if part.target_text is not None else {}),
        **({"more_targets": list(part.more_targets)} if part.more_targets else {}),
        **({"continues": True} if part.continues else {}),
        **({"optional": True} if part.optional else {}),
        **({"beside": part_report(part.beside)} if part.beside is not None else {}),
        **({"follows": part.follows} if part.follows is not None else {}),
        **({"published": dict(part.published)} if part.published is not None else {}),
    }
    return {
        "name": part.name,
        "title": part.title,
        "planned_s": part.planned_s,
        "spent_s": None,
        "plan": part.plan.model_dump(mode="json"),
        **own,
    }


def part_from_report(report: Mapping[str, Any], study: Mapping[str, Any] | None, *, source: str) -> Part[Any]:
    """A part as a manifest lists it, without its target examined.

    Raises
    ------
    UsageError
        Its plan is not valid.
    """
    beside = report.get("beside")
    return Part(
        name=report["name"],
        title=report["title"],
        plan=load_plan_of_any_kind(report["plan"], source=source),
        planned_s=report["planned_s"],
        levels=study["levels"].get(report["name"], {}) if study is not None else {},
        target_text=report.get("target"),
        more_targets=tuple(report.get("more_targets", ())),
        continues=report.get("continues", False),
        optional=report.get("optional", False),
        follows=report.get("follows"),
        beside=part_from_report(beside, None, source=source) if beside is not None else None,
        published=report.get("published"),
    )


def estimate_s(parts: Sequence[Part[Any]]) -> tuple[float, float]:
    """Shortest and longest time the parts take, infinite until interrupted; without making targets ready."""
    each = [workload_of(part.plan).estimate_s(part.plan) for part in parts]
    return sum(shortest for shortest, _ in each), sum(longest for _, longest in each)
