"""A part of a run: a plan of any kind with a name, and how a manifest lists it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.targets.storage.target import Target
from assay.workloads.integrity.plan import IntegrityPlan, load_integrity_plan
from assay.workloads.io.plan import Plan, load_plan
from assay.workloads.tpcc.plan import TpccPlan, load_tpcc_plan
from assay.workloads.tpcc.target import DatabaseTarget

AnyPlan = Plan | IntegrityPlan | TpccPlan
AnyTarget = Target | DatabaseTarget


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of a run: a plan with a name and a title for the report."""

    name: str
    title: str
    plan: AnyPlan
    planned_s: float | None = None
    understood: tuple[str, ...] = ()
    """What the configuration of another tool was taken for, a line each."""
    levels: Mapping[str, str] = field(default_factory=dict)
    """Of a study: the level of each factor, by its key."""
    target_text: str | None = None
    """A target of the part's own, as on the command line."""
    target: AnyTarget | None = None
    """The target of `target_text`: storage that was examined, or databases, which are opened when the part begins."""
    optional: bool = False
    """Left out with a notice where its target cannot be used."""
    follows: str | None = None
    """A part on databases that runs before: the plan takes from it the block size and mix that its storage saw."""
    continues: bool = False
    """Goes on with the state in which the part before left the model."""
    published: Mapping[str, Any] | None = None
    """The published figure that the part stands beside."""


def load_part_plan(data: Mapping[str, Any], *, source: str) -> AnyPlan:
    """A plan of any kind from its JSON form.

    Raises
    ------
    UsageError
        It is not a plan; see `load_plan`.
    """
    if data.get("kind") == "integrity":
        return load_integrity_plan(data, source=source)
    if data.get("kind") == "tpcc":
        return load_tpcc_plan(data, source=source)
    return load_plan(data, source=source)


def part_report(part: Part) -> dict[str, Any]:
    """A part as the manifest lists it."""
    own = {
        **({"target": part.target_text} if part.target_text is not None else {}),
        **({"continues": True} if part.continues else {}),
        **({"optional": True} if part.optional else {}),
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


def part_from_report(report: Mapping[str, Any], study: Mapping[str, Any] | None, *, source: str) -> Part:
    """A part as a manifest lists it, without its target examined.

    Raises
    ------
    UsageError
        Its plan is none.
    """
    return Part(
        name=report["name"],
        title=report["title"],
        plan=load_part_plan(report["plan"], source=source),
        planned_s=report["planned_s"],
        levels=study["levels"].get(report["name"], {}) if study is not None else {},
        target_text=report.get("target"),
        continues=report.get("continues", False),
        optional=report.get("optional", False),
        follows=report.get("follows"),
        published=report.get("published"),
    )
