"""What `--set` says of a study on databases: keys of its plan, or options of the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.errors import UsageError
from assay.reading import nearest
from assay.studies.study import Study, load_study
from assay.workloads.tpcc.plan import TpccLayout, TpccPlan, TpccTiming, parse_mix

LISTS = ("directories", "limits", "background")
"""Keys whose values are lists, given with commas."""

RAW = "raw"
"""Where a study that measures storage beside its databases does so."""

_NOT_SET = ("kind", "name", "title", "actions", "timing", "search", "layout", "seed", "user_limits")
"""Keys that make a study what it is."""


def with_settings(study: Study, given: Mapping[str, str]) -> tuple[Study, dict[str, str]]:
    """The study with what `--set` says of its plan, and what is left: options of the target.

    Parameters
    ----------
    study
        Its plan is one of transactions; of others all is left.
    given
        Keys as in the plan, those of `timing` without their unit (`duration`, `warmup`, `rest`) and those of `layout`
        by themselves.

    Raises
    ------
    UsageError
        A key is unknown (the nearest known one is named), its levels are what the study varies, or a value is wrong.
    """
    if study.plan.get("kind") != "tpcc":
        return study, dict(given)
    places = _places()
    plan: dict[str, Any] = {**study.plan, **{name: dict(study.plan.get(name, {})) for name in ("timing", "layout")}}
    left: dict[str, str] = {}
    for key, text in given.items():
        if key.startswith("set.") or (key == RAW and any(case.follows for case in study.case)):
            left[key] = text
            continue
        if key not in places:
            meant = nearest(key, places)
            hint = f"did you mean {meant!r}? " if meant else ""
            raise UsageError(f"--set {key}: unknown; {hint}accepted: {', '.join(places)}, set.NAME of embedded:")
        table, name = places[key]
        _refuse_varied(study, table, name, key)
        value = parse_mix(text, what=f"--set {key}") if key == "mix" else text
        (plan if table == "plan" else plan[table])[name] = text.split(",") if key in LISTS else value
    if len(left) == len(given):
        return study, left
    changed = study.model_dump(mode="json", exclude_unset=True) | {"plan": plan}
    return load_study(changed, source="--set"), left


def _places() -> dict[str, tuple[str, str]]:
    """Table and key in the plan, by the word of `--set`."""
    keys = {key: ("plan", key) for key in TpccPlan.model_fields if key not in _NOT_SET}
    keys |= {key.removesuffix("_s"): ("timing", key) for key in TpccTiming.model_fields}
    return keys | {key.removesuffix("_s"): ("layout", key) for key in TpccLayout.model_fields}


def _refuse_varied(study: Study, table: str, name: str, key: str) -> None:
    for factor in study.factor:
        if factor.of == table and any(name in factor.changes(level) for level in factor.levels):
            raise UsageError(
                f"--set {key}: the levels of {factor.name} set it; choose among them with --levels {factor.name}=..."
            )
