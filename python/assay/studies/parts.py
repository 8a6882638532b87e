"""From a study to the parts of a run, and to what the manifest says of the study."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.calibration.published import Published, read_published
from assay.errors import UsageError
from assay.run.part import AnyTarget, Part
from assay.run.request import Request
from assay.studies.study import (
    SEED_STEP,
    Combination,
    Study,
    as_text,
    combination_options,
    combination_plan,
    combinations,
    draw_order,
    target_kind,
    with_options,
)
from assay.targets.databases import is_database, parse_database
from assay.workloads.integrity.plan import IntegrityPlan
from assay.workloads.io.plan import Plan, load_plan
from assay.workloads.tpcc.plan import TpccPlan
from assay.workloads.tpcc.target import DatabaseRequest


def study_parts(
    study: Study,
    *,
    target: str,
    options: Mapping[str, str] | None = None,
    levels: Mapping[str, Sequence[str]] | None = None,
    beside: str | None = None,
) -> tuple[list[Part], dict[str, Any]]:
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

    Raises
    ------
    UsageError
        A factor or level is unknown, or nothing is left.
    """
    source = f"study {study.name}"
    parts: list[Part] = []
    groups: list[list[list[str]]] = []
    published = read_published() if study.published else None
    chosen = [] if published is not None else combinations(study, levels or {}, "--levels" if levels else source)
    _refuse_no_baseline(study, chosen, "--levels" if levels else source)
    for repeat in range(study.repeats):
        group: list[list[str]] = []
        if published is not None:
            made = _published_parts(study, published, options or {}, repeat)
        else:
            made = [_part(study, combination, target, repeat, source, beside) for combination in chosen]
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


def _refuse_no_baseline(study: Study, chosen: Sequence[Combination], source: str) -> None:
    """Refuse several levels without the one they are compared with; one alone is measured for itself."""
    wanted = study.comparison
    if wanted is None:
        return
    baseline = study.factor_named(wanted.by, source).level(wanted.baseline, source).key
    kept = list(dict.fromkeys(one.levels[wanted.by].key for one in chosen if wanted.by in one.levels))
    if len(kept) > 1 and baseline not in kept:
        raise UsageError(
            f"{source}: {wanted.by}={','.join(kept)} are compared with {baseline}, which is not among them; add"
            f" it: {wanted.by}={','.join([baseline, *kept])}"
        )


def _facts(
    study: Study, target: str, parts: Sequence[Part], order: Sequence[str], published: Published | None
) -> dict[str, Any]:
    measured = {(name, key) for part in parts for name, key in part.levels.items()}
    return {
        "name": study.name,
        "title": study.title,
        "question": study.question,
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
        "comparison": study.comparison.model_dump(mode="json") if study.comparison is not None else None,
        "orders": [order.model_dump(mode="json") for order in published.order] if published is not None else [],
        "repeats": study.repeats,
        "seed": study.seed,
        "levels": {part.name: dict(part.levels) for part in parts},
        "order": list(order),
    }


def _part(study: Study, combination: Combination, target: str, repeat: int, source: str, beside: str | None) -> Part:
    options = combination_options(study, combination)
    if repeat and target_kind(target) == "model":
        # Another seed gives the model other spindle phases and other beginnings of volumes.
        options = {"seed": str(_model_seed(target, options) + repeat)} | options
    plan = combination_plan(study, combination, repeat=repeat, source=source)
    if isinstance(plan, TpccPlan) and plan.warehouses is not None and plan.layout.ways_of(plan.warehouses) is None:
        raise UsageError(
            f"{source}: {combination.name}: {plan.layout.partition_ways} partitions by warehouse need as many"
            f" warehouses, and {plan.warehouses} are asked for; give --set warehouses={plan.layout.partition_ways} or"
            " fewer --levels"
        )
    return _named(
        Part(
            name=combination.name,
            title=combination.title,
            plan=plan,
            levels={name: level.key for name, level in combination.levels.items()},
            target_text=_target_text(combination, target, options, source, beside),
            continues=combination.case.continues,
            follows=combination.case.follows,
        ),
        repeat,
    )


def shown_target(target: str) -> str:
    """A target as it may be shown and kept: of a database's URL without the password."""
    return parse_database(target).display if is_database(target) else target


def _target_text(
    combination: Combination, target: str, options: Mapping[str, str], source: str, beside: str | None
) -> str | None:
    """The target of a part's own, if it has one."""
    if combination.case.follows is None:
        return with_options(target, options) if options else None
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


def _named(part: Part, repeat: int) -> Part:
    if not repeat:
        return part
    name, title = f"{part.name} #{repeat + 1}", f"{part.title}, repeat {repeat + 1}"
    # A plan of transactions is named after its preset.
    named = {"title": title} if isinstance(part.plan, TpccPlan) else {"name": name, "title": title}
    follows = f"{part.follows} #{repeat + 1}" if part.follows is not None else None
    return replace(part, name=name, title=title, plan=part.plan.model_copy(update=named), follows=follows)


def _published_parts(study: Study, published: Published, options: Mapping[str, str], repeat: int) -> list[Part]:
    parts = []
    for point in published.point:
        data = {
            **study.plan,
            "name": point.id,
            "title": point.title,
            "seed": study.seed + SEED_STEP * repeat,
            "limits": point.limits,
            "activity": [point.activity],
            "search": {**study.plan.get("search", {}), **point.search},
            "timing": {**study.plan.get("timing", {}), **point.timing},
        }
        own = {key: as_text(value) for key, value in point.target.items()} | dict(options)
        if repeat:
            own = {"seed": str(_model_seed("", own) + repeat)} | own
        part = Part(
            name=point.id,
            title=point.title,
            plan=load_plan(data, source=f"published.toml: {point.id}"),
            target_text=with_options(f"model:{point.array}", own),
            published={
                key: getattr(point, key) for key in ("id", "source", "figure", "value", "ratio_of", "fit", "note")
            },
        )
        parts.append(_named(part, repeat))
    return parts


IO_PLANS = (Plan, IntegrityPlan)
"""Plans of I/O, which needs storage."""


def choose_targets(
    request: Request, parts: Sequence[Part], sizes: dict[str, int] | None = None
) -> tuple[AnyTarget, list[Part]]:
    """The run's target, and the parts with theirs where they have one of their own; nothing is written or opened.

    Parameters
    ----------
    request
        What was asked of the target. A password in the URL of a database is taken out of it, as out of the parts.
    parts
        All parts of the run.
    sizes
        By volume, those a resumed run had.

    Raises
    ------
    RefusedTarget, OutOfSpace, UsageError
        As `Request.choose` and `DatabaseRequest.choose` raise them.
    """
    shared = [part for part in parts if part.target_text is None]
    together: dict[str, list[Part]] = {}
    for part in parts:
        if part.target_text is not None:
            together.setdefault(part.target_text, []).append(part)
    own: dict[str, AnyTarget] = {}
    shown: dict[str, str] = {}
    for text, those in together.items():
        asked = replace(request, paths=[text])
        own[text] = _choose(asked, those)
        shown[text] = asked.to_dict()["paths"][0]
    target = _choose(request, shared, sizes) if shared or not own else next(iter(own.values()))
    return target, [
        replace(part, target=own[part.target_text], target_text=shown[part.target_text])
        if part.target_text is not None
        else part
        for part in parts
    ]


def _choose(request: Request, parts: Sequence[Part], sizes: dict[str, int] | None = None) -> AnyTarget:
    # I/O on a database's URL is refused as any target is that is no storage.
    if not any(is_database(path) for path in request.paths) or any(isinstance(part.plan, IO_PLANS) for part in parts):
        return request.choose(parts, sizes)
    databases = DatabaseRequest(targets=request.paths)
    target = databases.choose()
    request.paths = databases.targets
    return target
