"""Studies: what is varied, over which levels, and what is compared; those that come with Assay are in `study_files`.

A study is a plan, a target, and factors. Each combination of levels becomes one part of one run (docs/studies.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from assay.base.errors import UsageError
from assay.base.fields import Strict
from assay.base.reading import EXPECTED, nearest, shortened, validated
from assay.base.tables import TableValue
from assay.insight.calibration.published_papers import sentence_named
from assay.insight.studies.result import study_figures
from assay.insight.studies.servers import load_of_servers
from assay.insight.studies.targets import Kind, is_on_array, is_on_flash, target_kind
from assay.run.chains import points_least
from assay.targets.databases.common.spec import Kind as DatabaseKind
from assay.workloads.capabilities import MeasuresIo, OnDatabases, study_plan
from assay.workloads.plan import COMBINATIONS_MAX
from assay.workloads.registry import DEFAULT_KIND, workload_named, workload_of

Scalar = str | int | float | bool


def _known_figure(name: str) -> str:
    known = study_figures()
    if name not in known:
        raise ValueError(f"studies compare no figure {name!r}; known: {', '.join(known)}")
    return name


FigureName = Annotated[str, AfterValidator(_known_figure)]

ELSEWHERE = ("beside", "databases")
"""Factors whose levels name places: other targets than the study's (docs/studies.md)."""

NOWHERE, GIVEN = "none", "given"
"""No place, and that of the study's own target."""

PLACES = ("same", "apart", "second", "column")
"""Places of other targets: beside the study's on the same storage, on other storage, a second database with the same
tables, an engine that keeps tables by columns."""

SEED_STEP = 100
"""From one repeat's seed to the next: repeats of a search take those between."""


class PlannedLevel(Strict):
    """One level of a factor: the value of the factor's key, or several keys in `set`."""

    label: str = ""
    value: TableValue = None
    set: dict[str, TableValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.value is None) == (not self.set):
            raise ValueError("a level has a value or a table `set`, not both and not neither")
        if self.set and not self.label:
            raise ValueError("a level with a table `set` needs a label")
        return self

    @property
    def name(self) -> str:
        """What people call it: the label, or the value."""
        return self.label or as_text(self.value)

    @property
    def key(self) -> str:
        """What stands in names of parts and in `--levels`: the value where it is plain, else the label."""
        return as_text(self.value) if isinstance(self.value, Scalar) else self.name


def as_text(value: TableValue) -> str:
    """A TOML value as a target's option has it.

    Examples
    --------
    >>> as_text(True), as_text(0.4), as_text("512MiB")
    ('yes', '0.4', '512MiB')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _as_level(given: Any) -> Any:
    """A level that is a value alone stands for the factor's key."""
    return given if isinstance(given, dict | PlannedLevel) else {"value": given}


class StudyFactor(Strict):
    """What is varied: a key of the target's options or of the plan."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
    title: str
    of: Literal["target", "load", "activity", "search", "timing", "plan", "layout", "beside", "databases"] = "target"
    key: str = ""
    """The key that a level's value is for; the factor's name unless given."""
    ordered: bool = True
    """Whether the levels rise: figures then join them with a line, and a trend is looked for."""
    levels: Annotated[tuple[Annotated[PlannedLevel, BeforeValidator(_as_level)], ...], Field(min_length=2)]

    def level(self, text: str, source: str) -> PlannedLevel:
        """A level by its key or its label.

        Raises
        ------
        UsageError
            There is no such level; those there are are listed.
        """
        for level in self.levels:
            if text in (level.key, level.name):
                return level
        keys = [level.key for level in self.levels]
        meant = nearest(text, [*keys, *(level.name for level in self.levels)])
        hint = f"did you mean {meant!r}? " if meant else ""
        raise UsageError(f"{source}: factor {self.name} has no level {text!r}; {hint}levels: {', '.join(keys)}")

    def changes(self, level: PlannedLevel) -> dict[str, TableValue]:
        """The keys a level sets."""
        return dict(level.set) or {self.key or self.name: level.value}


class Case(Strict):
    """One combination of levels that is measured, with what it changes beyond its levels."""

    levels: dict[str, str] = Field(default_factory=dict)
    label: str = ""
    target: dict[str, TableValue] = Field(default_factory=dict)
    activity: dict[str, TableValue] = Field(default_factory=dict)
    search: dict[str, TableValue] = Field(default_factory=dict)
    timing: dict[str, TableValue] = Field(default_factory=dict)
    limits: tuple[str, ...] | None = None
    continues: bool = False
    """Goes on with the state in which the case before left the model."""
    plan: dict[str, TableValue] | None = None
    """A plan of its own, in place of the study's."""
    follows: str | None = None
    """Label of an earlier case on databases. This one is I/O on a file beside them, with the block size and the share
    of reads that their storage saw."""
    model: bool = False
    """Follows on the model of the served array under those databases, in virtual time, in place of a file."""


class StudyComparison(Strict):
    """What is compared: a figure at each level of one factor against the baseline."""

    figure: FigureName = "iops"
    by: str
    baseline: str
    also: tuple[FigureName, ...] = ()
    """Figures drawn beside the one that is compared."""
    answer: str = ""
    """The sentence that answers the question, with `{values}` for the figure at each level."""
    answer_for: tuple[str, ...] = ()
    """Series that the question is about, where there are many: their other levels."""
    verb: str = ""
    """What a level does with the figure, where `holds`, `moves` or `has` reads wrong."""
    fall: str = ""
    """What the figure does where a level has less of it, as in `dip`: the sentence then is about the figure."""
    capacity: bool = False
    """Whether raw and usable capacity of models, and IOPS per usable TB, stand beside it."""
    states: bool = False
    """Whether the levels are states that come by themselves, such as a lost disk: nobody chooses among them."""


class Said(Strict):
    """What a published study says on the question."""

    source: str
    text: str


def _as_said(given: Any) -> Any:
    """A text names the sentence of a published study that Assay knows."""
    if not isinstance(given, str):
        return given
    source, text = sentence_named(given)
    return {"source": source, "text": text}


class StudyPlan(Strict):
    """A study as its TOML file has it."""

    name: str
    title: str
    question: str
    targets: Annotated[tuple[Kind | DatabaseKind, ...], Field(min_length=1)]
    """Kinds of targets, or engines where the study makes sense on some databases alone."""
    target: str | None = None
    """The target unless one is given."""
    said: tuple[Annotated[Said, BeforeValidator(_as_said)], ...] = ()
    """What published studies say on the question, `SOURCE/ID` where Assay knows it; it stands beside the answer."""
    published: bool = False
    """Whether the cases are the published figures of `arrays/published.toml`."""
    plan: dict[str, TableValue] = Field(default_factory=dict)
    precondition: dict[str, TableValue] = Field(default_factory=dict)
    """The state that the target is brought into once; levels follow each other on it, in the order of the file."""
    beside: dict[str, TableValue] = Field(default_factory=dict)
    """Plan of a load that runs while points are measured, on a target of its own (a factor of `beside`)."""
    factor: tuple[StudyFactor, ...] = ()
    case: tuple[Case, ...] = ()
    comparison: StudyComparison | None = None
    repeats: Annotated[int, Field(ge=1, le=20)] = 1
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 1

    def factor_named(self, name: str, source: str) -> StudyFactor:
        """A factor by name.

        Raises
        ------
        UsageError
            There is no such factor; the nearest is named.
        """
        known = {factor.name: factor for factor in self.factor}
        if name not in known:
            meant = nearest(name, known)
            hint = f"did you mean {meant!r}? " if meant else ""
            listed = ", ".join(known) or "none"
            raise UsageError(f"{source}: study {self.name} has no factor {name!r}; {hint}factors: {listed}")
        return known[name]

    def fits(self, target: str) -> bool:
        """Whether the study makes sense on a target."""
        on_array = "array" in self.targets and is_on_array(target)
        on_flash = "flash" in self.targets and is_on_flash(target)
        return target_kind(target) in self.targets or on_array or on_flash or self.is_for_engine(target)

    def is_for_engine(self, target: str) -> bool:
        """Whether the study is for the very engine of a target, or for the drives of a model."""
        if self.targets == ("flash",):
            return is_on_flash(target)
        return target.partition(":")[0].lower() in {*self.targets} - {"database", "file", "model", "array", "flash"}

    def with_baseline(self, text: str | None) -> StudyPlan:
        """The study with another level as its baseline.

        Raises
        ------
        UsageError
            The study compares no levels, or has no such level.
        """
        if text is None:
            return self
        if self.comparison is None:
            raise UsageError(f"--baseline {text}: study {self.name} compares no levels")
        level = self.factor_named(self.comparison.by, "--baseline").level(text, "--baseline")
        return self.model_copy(update={"comparison": self.comparison.model_copy(update={"baseline": level.key})})

    @property
    def varies_target(self) -> bool:
        """Whether levels or cases change the target's options."""
        return any(factor.of == "target" for factor in self.factor) or any(case.target for case in self.case)


def load_study(
    data: Mapping[str, TableValue], *, source: str, levels: Mapping[str, Sequence[str]] | None = None
) -> StudyPlan:
    """A study from its TOML or JSON form.

    Parameters
    ----------
    levels
        Levels by factor of which the plans are checked; all unless given.

    Raises
    ------
    UsageError
        A key, factor or level is unknown, or the plan is wrong; `source` says where.
    """
    study = validated(StudyPlan, data, source)
    _refuse_misshapen(study.plan, f"{source}: plan")
    for position, case in enumerate(study.case, start=1):
        _refuse_misshapen(case.plan or {}, f"{source}: case {position}: plan")
    names = [factor.name for factor in study.factor]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{source}: factor {name!r} is given twice")
    for factor in study.factor:
        keys = [level.key for level in factor.levels]
        if len(set(keys)) < len(keys):
            raise UsageError(f"{source}: factor {factor.name} has two levels {max(keys, key=keys.count)!r}")
    if study.published and (study.factor or study.case):
        raise UsageError(f"{source}: the published figures are the cases; leave out factor and case")
    if not study.published and not study.factor and not study.case:
        raise UsageError(f"{source}: no factor given; a study varies something")
    if study.comparison is not None:
        compared = study.factor_named(study.comparison.by, f"{source}: comparison")
        compared.level(study.comparison.baseline, f"{source}: comparison.baseline")
    for factor in study.factor:
        if factor.of in ELSEWHERE:
            _refuse_unknown_places(factor, source)
    if study.precondition and study.varies_target:
        raise UsageError(f"{source}: precondition: levels that change the target begin afresh; give it in plan")
    if bool(study.beside) != any(factor.of == "beside" for factor in study.factor):
        raise UsageError(f"{source}: a plan `beside` needs a factor of `beside`, and the factor needs the plan")
    combined = [] if study.published else combinations(study, levels or {}, source)
    for combination in combined:
        plan = combination_plan(study, combination, repeat=0, source=source, is_first=True)
        if combination.case.continues and plan.search.axis != "none":
            raise UsageError(f"{source}: a case that continues cannot search; give search.axis none")
    _refuse_following(combined, study, source)
    if combined and combined[0].case.continues:
        raise UsageError(f"{source}: the first case has no case before it to continue")
    return study


def _refuse_unknown_places(factor: StudyFactor, source: str) -> None:
    known = {*PLACES, NOWHERE if factor.of == "beside" else GIVEN}
    for level in factor.levels:
        if strange := {*places_of(level)} - known:
            raise UsageError(
                f"{source}: factor {factor.name}: place {min(strange)!r} is unknown; known: {', '.join(sorted(known))}"
            )


def _refuse_following(combined: Sequence[Combination], study: StudyPlan, source: str) -> None:
    """Refuse a case that follows none on databases, or does not measure one load of I/O."""
    for place, combination in enumerate(combined):
        case = combination.case
        if case.model and case.follows is None:
            raise UsageError(
                f"{source}: case {combination.name!r} is on the model of an array: say which case it follows"
            )
        if case.follows is None:
            continue
        plans = {one.name: combination_plan(study, one, repeat=0, source=source) for one in combined[:place]}
        followed = plans.get(case.follows)
        if followed is None or not isinstance(workload_of(followed), OnDatabases):
            raise UsageError(
                f"{source}: case {combination.name!r} follows {case.follows!r}, no case on databases before it"
            )
        plan = combination_plan(study, combination, repeat=0, source=source)
        if not isinstance(workload_of(plan), MeasuresIo) or points_least(plan) != 1:
            raise UsageError(
                f"{source}: case {combination.name!r} follows databases: give it a plan of one load of I/O"
            )


def _refuse_misshapen(plan: Mapping[str, TableValue], source: str) -> None:
    """Refuse a plan whose parts cannot be combined with those of levels and cases."""
    activities = plan.get("activity", [])
    if not isinstance(activities, list) or not all(isinstance(one, dict) for one in activities):
        raise UsageError(f"{source}.activity: {EXPECTED['tuple_type']} (given {shortened(activities)})")
    for name in ("search", "timing", "layout"):
        if not isinstance(plan.get(name, {}), dict):
            raise UsageError(f"{source}.{name}: {EXPECTED['dict_type']} (given {shortened(plan[name])})")


# Combinations


@dataclass(frozen=True, kw_only=True)
class Combination:
    """Levels by factor, in the study's order, and the case they were listed in."""

    levels: dict[str, PlannedLevel]
    case: Case

    @property
    def name(self) -> str:
        """Name of the part, unique in the study: `raid=10, fill=0.4`."""
        told = ", ".join(f"{factor}={level.key}" for factor, level in self.levels.items())
        return ", ".join(text for text in (self.case.label, told) if text)

    @property
    def title(self) -> str:
        """Title of the part: the labels."""
        told = ", ".join(level.name for level in self.levels.values())
        return ", ".join(text for text in (self.case.label, told) if text)


def combinations(study: StudyPlan, chosen: Mapping[str, Sequence[str]], source: str) -> list[Combination]:
    """What is measured: the listed cases, or every combination of all levels.

    Parameters
    ----------
    study
        The study.
    chosen
        Levels to keep, by factor; all of a factor that is not named.
    source
        What errors name.

    Raises
    ------
    UsageError
        A factor or level is unknown, or nothing is left.
    """
    kept = {name: [study.factor_named(name, source).level(text, source).key for text in texts]
            for name, texts in chosen.items()}  # fmt: skip
    found = [
        combination
        for combination in (_listed(study, source) if study.case else _every(study, source))
        if all(level.key in kept.get(name, [level.key]) for name, level in combination.levels.items())
    ]
    if study.factor and not any(combination.levels for combination in found):
        raise UsageError(f"{source}: study {study.name} has no case with all of these levels")
    names = [combination.name for combination in found]
    for name in names:
        if not name or names.count(name) > 1:
            raise UsageError(f"{source}: two cases are both {name!r}; give them labels")
    return found


def _every(study: StudyPlan, source: str) -> Iterator[Combination]:
    if math.prod(len(factor.levels) for factor in study.factor) > COMBINATIONS_MAX:
        raise UsageError(f"{source}: its levels have more than {COMBINATIONS_MAX:,} combinations; give fewer levels")
    for levels in itertools.product(*(factor.levels for factor in study.factor)):
        named = {factor.name: level for factor, level in zip(study.factor, levels, strict=True)}
        yield Combination(levels=named, case=Case())


def _listed(study: StudyPlan, source: str) -> Iterator[Combination]:
    for position, case in enumerate(study.case, start=1):
        where = f"{source}: case {position}"
        for name in case.levels:
            study.factor_named(name, where)
        named = {
            factor.name: factor.level(case.levels[factor.name], where)
            for factor in study.factor
            if factor.name in case.levels
        }
        yield Combination(levels=named, case=case)


def combination_plan(
    study: StudyPlan, combination: Combination, *, repeat: int, source: str, is_first: bool = False
) -> Any:
    """The plan of a combination, of the kind that the study's plan names; the first one brings the target into a state.

    Raises
    ------
    UsageError
        It is not a plan; the part is named.
    """
    own = study.plan if combination.case.plan is None else combination.case.plan
    data: dict[str, TableValue] = {"name": combination.name, "title": combination.title, **own}
    where = f"{source}: {combination.name}"
    workload = workload_named(str(data.get("kind", DEFAULT_KIND)), source=f"{where}: kind")
    tables: dict[str, dict[str, TableValue]] = {}
    for factor in study.factor:
        if factor.of not in ("target", *ELSEWHERE) and factor.name in combination.levels:
            tables.setdefault(factor.of, {}).update(factor.changes(combination.levels[factor.name]))
    data |= tables.pop("plan", {})
    for servers in tables.pop("load", {}).values():
        data = load_of_servers(workload, data, servers, where)
    if is_first and study.precondition:
        data["precondition"] = study.precondition
    for name in ("activity", "search", "timing"):
        tables.setdefault(name, {}).update(getattr(combination.case, name))
    if combination.case.limits is not None:
        data["limits"] = combination.case.limits
    seed = study.seed + SEED_STEP * repeat
    return study_plan(workload, data, tables, seed=seed, source=where)


def combination_places(study: StudyPlan, combination: Combination, of: str) -> tuple[str, ...]:
    """Places that a combination's levels of `of` name; none where no factor does."""
    return tuple(
        place
        for factor in study.factor
        if factor.of == of and factor.name in combination.levels
        for place in places_of(combination.levels[factor.name])
        if place != NOWHERE
    )


def places_of(level: PlannedLevel) -> list[str]:
    """Places that a level names."""
    return str(level.value).split("+")


def combination_options(study: StudyPlan, combination: Combination) -> dict[str, str]:
    """The target's options that a combination sets."""
    options: dict[str, TableValue] = {}
    for factor in study.factor:
        if factor.of == "target" and factor.name in combination.levels:
            options |= factor.changes(combination.levels[factor.name])
    return {key: as_text(value) for key, value in (options | combination.case.target).items()}
