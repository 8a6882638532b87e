"""What `--set` says of a study on databases: keys of its plan, or options of the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast, get_origin

from pydantic.fields import FieldInfo

from assay.base.errors import UsageError
from assay.base.fields import Strict
from assay.base.reading import nearest
from assay.base.tables import TableValue
from assay.insight.studies.study import ELSEWHERE, PLACES, StudyPlan, load_study, places_of
from assay.workloads.capabilities import OnDatabases
from assay.workloads.options import Fixed, Option, value_of
from assay.workloads.registry import DEFAULT_KIND, workload_named

RAW = "raw"
"""Where a study that measures storage beside its databases does so."""

OF_SERVER = ("preset", "read_ahead")
"""Options of the target that say how its server is set, beside `set.NAME`."""

BESIDE_KEY = "beside."
"""Before keys of the plan of what runs beside."""


def places_asked(study: StudyPlan) -> set[str]:
    """Places that the levels of a study name, beside its own target."""
    named = {place for factor in study.factor if factor.of in ELSEWHERE for level in factor.levels
             for place in places_of(level)}  # fmt: skip
    return named & {*PLACES}


_IDENTITY = ("kind", "name", "title", "seed", "user_limits", "search")
"""Keys of plans of every kind that make a study what it is."""


def with_settings(
    study: StudyPlan, given: Mapping[str, str], levels: Mapping[str, Sequence[str]] | None = None
) -> tuple[StudyPlan, dict[str, str]]:
    """The study with what `--set` says of its plan, and what is left: options of the target.

    Parameters
    ----------
    study
        Its plan runs on databases; of others all is left.
    given
        Keys as in the plan, those of its tables by themselves and without `_s` (`duration`, `warmup`, `rest`).
    levels
        Levels by factor that will run; all unless given.

    Raises
    ------
    UsageError
        A key is unknown (the nearest known one is named), its levels are what the study varies, or a value is wrong.
    """
    kind = workload_named(str(study.plan.get("kind", DEFAULT_KIND)), source=f"study {study.name}")
    if not isinstance(kind, OnDatabases):
        return study, dict(given)
    left: dict[str, str] = {}
    own: dict[str, str] = {}
    beside: dict[str, str] = {}
    places = places_asked(study) | ({RAW} if any(case.follows for case in study.case) else set())
    for key, text in given.items():
        if key.startswith("set.") or key in (*OF_SERVER, *places):
            left[key] = text
        elif key.startswith(BESIDE_KEY) and study.beside:
            beside[key] = text
        else:
            own[key] = text
    if not own and not beside:
        return study, left
    changed = study.model_dump(mode="json", exclude_unset=True) | {"plan": _with(study, study.plan, own)}
    if beside:
        changed["beside"] = _with(study, study.beside, beside, prefix=BESIDE_KEY)
    return load_study(changed, source="--set", levels=levels), left


def _with(
    study: StudyPlan, plan: Mapping[str, TableValue], given: Mapping[str, str], *, prefix: str = ""
) -> dict[str, TableValue]:
    """A plan with settings, whose keys begin with `prefix`."""
    workload = workload_named(str(plan.get("kind", DEFAULT_KIND)), source=f"study {study.name}")
    places = _places(workload.plan_type)
    tables = {table for table, _, _ in places.values() if table}
    inner = {name: inner_table(plan, name) for name in tables}
    changed: dict[str, TableValue] = {**plan, **inner}
    for key, text in given.items():
        word = key.removeprefix(prefix)
        if word not in places:
            meant = nearest(word, places)
            hint = f"did you mean {prefix + meant!r}? " if meant else ""
            known = ", ".join(prefix + place for place in places)
            raise UsageError(f"--set {key}: unknown; {hint}accepted: {known}, set.NAME of embedded:")
        table, name, field = places[word]
        if not prefix:
            _refuse_varied(study, table or "plan", name, key)
        several = text.split(",") if get_origin(field.annotation) is tuple else text
        (inner[table] if table else changed)[name] = value_of(field, several, source=f"--set {key}")
    return changed


def inner_table(plan: Mapping[str, TableValue], name: str) -> dict[str, TableValue]:
    """A table of a plan; empty where the plan has none."""
    found = plan.get(name)
    return dict(found) if isinstance(found, Mapping) else {}


def _places(plan_type: type[Strict]) -> dict[str, tuple[str, str, FieldInfo]]:
    """Table, key and field in the plan, by the word of `--set`: a table that is given as one text is a value."""
    plain: dict[str, tuple[str, str, FieldInfo]] = {}
    inner: dict[str, tuple[str, str, FieldInfo]] = {}
    for key, field in plan_type.model_fields.items():
        if key in _IDENTITY or any(isinstance(mark, Fixed) for mark in field.metadata):
            continue
        is_table = isinstance(field.annotation, type) and issubclass(field.annotation, Strict)
        if is_table and not any(isinstance(mark, Option) for mark in field.metadata):
            fields = cast("type[Strict]", field.annotation).model_fields
            inner |= {name.removesuffix("_s"): (key, name, one) for name, one in fields.items()}
        else:
            plain[key] = ("", key, field)
    return plain | inner


def _refuse_varied(study: StudyPlan, table: str, name: str, key: str) -> None:
    for factor in study.factor:
        if factor.of == table and any(name in factor.changes(level) for level in factor.levels):
            raise UsageError(
                f"--set {key}: the levels of {factor.name} set it; choose among them with --levels {factor.name}=..."
            )
