"""Makes of a study the parts of a run, and what the manifest says of the study."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.base.errors import UsageError
from assay.base.tables import Record
from assay.insight.calibration.published import Published, PublishedPoint, PublishedRanking, read_published
from assay.insight.studies.plan_settings import inner_table, places_asked
from assay.insight.studies.study import (
    ELSEWHERE,
    GIVEN,
    SEED_STEP,
    Combination,
    StudyComparison,
    StudyPlan,
    as_text,
    combination_options,
    combination_places,
    combination_plan,
    combinations,
    places_of,
)
from assay.insight.studies.targets import target_kind, with_options
from assay.record.shapes.study import Capacity, Compared, PublishedOrder, Study
from assay.targets.arrays.model.capacity import survived_failures
from assay.targets.arrays.model.configuration import configure
from assay.targets.arrays.model.options import parse_model_target
from assay.targets.databases import is_database, parse_database
from assay.workloads.capabilities import study_plan
from assay.workloads.plan import Part
from assay.workloads.registry import DEFAULT_KIND, load_plan_of_any_kind, workload_named


def study_parts(
    study: StudyPlan,
    *,
    target: str,
    options: Mapping[str, str] | None = None,
    levels: Mapping[str, Sequence[str]] | None = None,
    beside: str | None = None,
    places: Mapping[str, str] | None = None,
) -> tuple[list[Part[Any]], Study]:
    """Parts in the order of the levels, and the manifest's `study` with the order in which they run.

    Parameters
    ----------
    study
        The study, with the repeats and the seed to use.
    target
        The target as `choose_target` gives it.
    options
        Options of `--set`, for published points, whose targets are their own.
    levels
        Levels to keep, by factor.
    beside
        File or folder on the storage of the databases, for cases that follow them; unless given, a file beside the
        folder of an embedded one.
    places
        Other targets by the names of their places (`study.PLACES`). Beside an embedded server most have one of their
        own; levels without a target are left out.

    Raises
    ------
    UsageError
        A factor or level is unknown, or nothing is left.
    """
    source = f"study {study.name}"
    parts: list[Part[Any]] = []
    groups: list[list[list[str]]] = []
    published = read_published().of((levels or {}).get("source")) if study.published else None
    chosen = [] if published is not None else combinations(study, levels or {}, "--levels" if levels else source)
    where = _places(study, target, places or {}, source)
    chosen = [
        one for one in chosen if {place for of in ELSEWHERE for place in combination_places(study, one, of)} <= {*where}
    ]
    _refuse_no_baseline(study, chosen, "--levels" if levels else source)
    for repeat in range(study.repeats):
        group: list[list[str]] = []
        if published is not None:
            made = _published_parts(study, published, options or {}, repeat)
        else:
            made = [_part(study, one, target, repeat, source, beside, where, chosen[0]) for one in chosen]
        for part in made:
            if (part.continues or part.follows) and group:
                group[-1].append(part.name)
            else:
                group.append([part.name])
        parts += made
        groups.append(group)
    # Levels run in random order within each repeat, so that a drift in time is no difference between them.
    order = [name for repeat, group in enumerate(groups) for name in draw_order(group, study.seed + repeat)]
    return parts, _facts(study, target, parts, order, published)


def _refuse_no_baseline(study: StudyPlan, chosen: Sequence[Combination], source: str) -> None:
    """Refuse several levels without the one they are compared with; one alone is measured for itself."""
    wanted = study.comparison
    if wanted is None:
        return
    baseline = study.factor_named(wanted.by, source).level(wanted.baseline, source).key
    kept = list(dict.fromkeys(one.levels[wanted.by].key for one in chosen if wanted.by in one.levels))
    if len(kept) > 1 and baseline not in kept:
        raise UsageError(
            f"{source}: {wanted.by}={','.join(kept)} are compared with {baseline}, which is not among them; add"
            f" it: {wanted.by}={','.join([baseline, *kept])}, or compare with another: --baseline {kept[0]}"
        )


def _facts(
    study: StudyPlan, target: str, parts: Sequence[Part[Any]], order: Sequence[str], published: Published | None
) -> Study:
    measured = {(name, key) for part in parts for name, key in part.levels.items()}
    return {
        "name": study.name,
        "title": study.title,
        "question": study.question,
        "said": [{"source": one.source, "text": one.text} for one in study.said],
        "target": None if published is not None else shown_target(target),
        "factors": [
            {
                "name": factor.name,
                "title": factor.title,
                "of": factor.of,
                "ordered": factor.ordered,
                "levels": [
                    {"key": level.key, "label": level.name}
                    for level in factor.levels
                    if (factor.name, level.key) in measured
                ],
            }
            for factor in study.factor
        ],
        "comparison": _compared(study.comparison) if study.comparison is not None else None,
        "orders": [_order(order) for order in published.order] if published is not None else [],
        "repeats": study.repeats,
        "seed": study.seed,
        "levels": {part.name: dict(part.levels) for part in parts},
        "capacities": _capacities(study, target, parts),
        "order": list(order),
    }


def _compared(comparison: StudyComparison) -> Compared:
    return {
        "figure": comparison.figure,
        "by": comparison.by,
        "baseline": comparison.baseline,
        "also": list(comparison.also),
        "answer": comparison.answer,
        "answer_for": list(comparison.answer_for),
        "verb": comparison.verb,
        "fall": comparison.fall,
        "capacity": comparison.capacity,
        "states": comparison.states,
    }


def _order(order: PublishedRanking) -> PublishedOrder:
    return {
        "id": order.id,
        "title": order.title,
        "source": order.source,
        "points": list(order.points),
        "note": order.note,
    }


def _capacities(study: StudyPlan, target: str, parts: Sequence[Part[Any]]) -> dict[str, Capacity]:
    """Raw and usable bytes of the model under each part, where the study sets figures beside them."""
    asked = study.comparison is not None and study.comparison.capacity
    texts = {
        part.name: part.target_text or target
        for part in parts
        if asked or (part.published or {}).get("figure") == "usable_bytes"
    }
    arrays = {
        name: configure(*parse_model_target(text)) for name, text in texts.items() if target_kind(text) == "model"
    }
    return {
        name: {
            "raw_bytes": one.raw_bytes,
            "usable_bytes": one.usable_bytes,
            "survives": survived_failures(one.policies),
        }
        for name, one in arrays.items()
    }


def _places(study: StudyPlan, target: str, given: Mapping[str, str], source: str) -> dict[str, str]:
    """Targets of the places that the study's levels name: those given, and beside an embedded server its own."""
    asked = places_asked(study)
    if not asked:
        return {}
    spec = parse_database(target) if is_database(target) else None
    if spec is not None and spec.directory is not None:
        folder = os.path.realpath(spec.directory)
        # What lies beside a mount point is on other storage.
        start = f"{folder}/" if os.path.ismount(folder) else f"{folder}-"
        usual = {
            "same": f"embedded:{start}beside",
            "second": f"embedded:{start}second",
            "column": f"duckdb:{start}column.duckdb",
        }
    else:
        usual = {}
    found = {GIVEN: target} | {name: text for name, text in (usual | dict(given)).items() if name in asked}
    if study.beside and "same" not in found:
        raise UsageError(
            f"{source}: say which database runs {study.beside.get('kind')} beside this one on the same storage: --set"
            " same=TARGET"
        )
    return found


def places_missing(study: StudyPlan, parts: Sequence[Part[Any]]) -> list[str]:
    """Levels of other targets that no part has, since no target was given for their place, in words."""
    missing = []
    for factor in study.factor:
        if factor.of in ELSEWHERE:
            there = {part.levels.get(factor.name) for part in parts}
            for level in factor.levels:
                if level.key not in there:
                    names = [place for place in places_of(level) if place in places_asked(study)]
                    given = " ".join(f"--set {name}=TARGET" for name in names)
                    missing.append(f"{level.name} is not measured: give its target with {given}")
    return missing


def _part(
    study: StudyPlan,
    combination: Combination,
    target: str,
    repeat: int,
    source: str,
    beside: str | None,
    places: Mapping[str, str],
    first: Combination,
) -> Part[Any]:
    is_first = combination is first and not repeat
    options = combination_options(study, combination)
    if repeat and target_kind(target) == "model":
        # Another seed gives the model other spindle phases and other beginnings of volumes.
        options = {"seed": str(_model_seed(target, options) + repeat)} | options
    plan = combination_plan(study, combination, repeat=repeat, source=source, is_first=is_first)
    others = combination_places(study, combination, "databases") or (GIVEN,)
    base = places.get(others[0], target)
    return _named(
        Part(
            name=combination.name,
            title=combination.title,
            plan=plan,
            levels={name: level.key for name, level in combination.levels.items()},
            target_text=_target_text(combination, base, options, source, beside, elsewhere=others != (GIVEN,)),
            more_targets=tuple(places[name] for name in others[1:]),
            continues=combination.case.continues or (bool(study.precondition) and not is_first),
            follows=combination.case.follows,
            beside=_beside(study, combination, places, source),
            # A server need not know a setting; what it is compared with must run.
            optional=target_kind(target) == "database" and bool(options) and not _is_baseline(study, combination),
        ),
        repeat,
    )


def _is_baseline(study: StudyPlan, combination: Combination) -> bool:
    wanted = study.comparison
    if wanted is None or wanted.by not in combination.levels:
        return True
    return combination.levels[wanted.by] == study.factor_named(wanted.by, study.name).level(wanted.baseline, study.name)


def _beside(study: StudyPlan, combination: Combination, places: Mapping[str, str], source: str) -> Part[Any] | None:
    asked = combination_places(study, combination, "beside")
    if not asked:
        return None
    where = asked[0]
    name = f"beside, {where}"
    data = {"name": name, "title": name, **study.beside, "actions": ["load"]}
    workload = workload_named(str(data.get("kind", DEFAULT_KIND)), source=f"{source}: beside: kind")
    plan = study_plan(workload, data, {}, seed=study.seed, source=f"{source}: beside")
    return Part(name=name, title=str(data["title"]), plan=plan, target_text=places[where])


def shown_target(target: str) -> str:
    """A target as it may be shown and kept: of a database's URL without the password."""
    return parse_database(target).display if is_database(target) else target


def _target_text(
    combination: Combination,
    target: str,
    options: Mapping[str, str],
    source: str,
    beside: str | None,
    *,
    elsewhere: bool,
) -> str | None:
    """The target of a part's own, if it has one."""
    if combination.case.follows is None:
        return with_options(target, options) if options or elsewhere else None
    if combination.case.model:
        array = parse_database(with_options(target, options)).array
        if array is None:
            raise UsageError(
                f"{source}: {combination.name} is on the model of a served array: give embedded+array:NAME"
            )
        return array.request().configuration().target_text
    if beside is not None:
        return beside
    directory = parse_database(target).directory
    if directory is None:
        raise UsageError(
            f"{source}: say which file or folder on the storage of the database is to be measured beside it: --set"
            " raw=PATH"
        )
    # What lies beside a mount point is on other storage.
    place = os.path.realpath(directory)
    return f"{place}/assay-raw.dat" if os.path.ismount(place) else f"{place}-raw.dat"


def _model_seed(target: str, options: Mapping[str, str]) -> int:
    given = dict(item.partition("=")[::2] for item in target.partition("?")[2].split("&"))
    seed = options.get("seed", given.get("seed", "1"))
    return int(seed) if seed.isascii() and seed.isdecimal() else 1


def _named(part: Part[Any], repeat: int) -> Part[Any]:
    if not repeat:
        return part
    name, title = f"{part.name} #{repeat + 1}", f"{part.title}, repeat {repeat + 1}"
    follows = f"{part.follows} #{repeat + 1}" if part.follows is not None else None
    return replace(part, name=name, title=title, plan=part.plan.repeated(name, title), follows=follows)


def _published_parts(
    study: StudyPlan, published: Published, options: Mapping[str, str], repeat: int
) -> list[Part[Any]]:
    parts = []
    also: dict[str, list[Record]] = {}
    for point in published.point:
        if point.of is not None:
            also.setdefault(point.of, []).append(_beside_of(point))
    for point in published.point:
        if point.of is not None:
            continue
        data = point.plan | {"name": point.id, "title": point.title, "seed": study.seed + SEED_STEP * repeat}
        if not point.plan:
            data |= {
                "limits": point.limits,
                "activity": [point.activity],
                "search": {**inner_table(study.plan, "search"), **point.search},
                "timing": {**inner_table(study.plan, "timing"), **point.timing},
            }
        own = {key: as_text(value) for key, value in point.target.items()} | dict(options)
        if repeat:
            own = {"seed": str(_model_seed("", own) + repeat)} | own
        part = Part(
            name=point.id,
            title=point.title,
            plan=load_plan_of_any_kind(data, source=f"published.toml: {point.id}"),
            target_text=with_options(f"model:{point.array}", own),
            continues=point.continues,
            published={**_beside_of(point), **({"also": also[point.id]} if point.id in also else {})},
        )
        parts.append(_named(part, repeat))
    return parts


def _beside_of(point: PublishedPoint) -> Record:
    """A published figure as the manifest's parts have it."""
    keys = ("id", "title", "source", "figure", "value", "ratio_of", "fit", "note")
    return {key: getattr(point, key) for key in keys} | ({"within": list(point.within)} if point.within else {})


def draw_order(names: Sequence[Sequence[str]], seed: int) -> list[str]:
    """Names in random order; those of one group stay together and in order.

    Examples
    --------
    >>> sorted(draw_order([["a"], ["b", "c"]], 1)), "b, c" in ", ".join(draw_order([["a"], ["b", "c"]], 1))
    (['a', 'b', 'c'], True)
    """
    groups = [list(group) for group in names]
    random.Random(seed).shuffle(groups)
    return list(itertools.chain.from_iterable(groups))
