"""`assay study`: vary one thing at a time and say what it changes, on models and on real targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import App, usual
from assay.apps.cli.console import print_json
from assay.apps.cli.running import start
from assay.apps.cli.verb import Given, measuring
from assay.base.errors import UsageError
from assay.base.units import format_duration
from assay.insight.calibration.published import sources_text
from assay.insight.studies.choice import choose_target
from assay.insight.studies.files import read_study, study_names, study_variants
from assay.insight.studies.findings import compared_again
from assay.insight.studies.parts import places_missing, shown_target, study_parts
from assay.insight.studies.plan_settings import RAW, places_asked, with_settings
from assay.insight.studies.study import StudyFactor, StudyPlan, load_study
from assay.insight.studies.targets import has_options, target_kind
from assay.insight.studies.traced import takes_traces, with_traces
from assay.insight.studies.words import comparison_rows
from assay.record.run_folder import RunFolder
from assay.run.part import estimate_s
from assay.workloads.capabilities import OnDatabases
from assay.workloads.options import TARGET, TIME
from assay.workloads.plan import Part
from assay.workloads.registry import workload_of

if TYPE_CHECKING:
    from assay.record.shapes.manifest import Manifest

EXAMPLES = """
Examples:

`assay study list`

`assay study show raid-policy`

`assay study run raid-policy --set members=2`

`assay study run raid-policy model:./mine.toml --levels raid=10,50`

`assay study run raid-policy --levels raid=10,6 --baseline "RAID 6"`

`assay study run queue-depth /data/f --size 10G`

`assay study run steady-state embedded:/data/pg`

`assay study run steady-state embedded:/data/pg --workload brokerage`

`assay study run consolidation --trace orders.trace`

`assay study run published`

`assay study run ./mine-study.toml --dry-run`
"""

app = App(
    name="study",
    help="Vary RAID policy, fill, members, paths and more, and compare.",
    epilog=EXAMPLES,
    no_args_is_help=True,
)

Workload = Annotated[
    str | None,
    typer.Option(
        "--workload",
        help="Workload of a study that has several.",
        show_default=False,
        rich_help_panel=TARGET,
    ),
]

Levels = Annotated[
    list[str] | None,
    typer.Option("--levels", help="Only these levels of a factor: raid=10,50.", rich_help_panel=TARGET),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Option of the target at all levels (members=2); on databases a key of the plan (users=8).",
        rich_help_panel=TARGET,
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        help="The level that others are compared with, by its key or its label; the study's own.",
        show_default=False,
        rich_help_panel=TARGET,
    ),
]
Traces = Annotated[
    list[str] | None,
    typer.Option(
        "--trace",
        metavar="TRACE",
        help="Replay this trace in place of the study's load; several begin at times: b.trace@30s.",
        rich_help_panel=TARGET,
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        help="Runs of every level, each time in another order (3; 1 on a model).",
        rich_help_panel=TIME,
    ),
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick", help="Run each level once; the variation between runs stays unknown.", rich_help_panel=TIME
    ),
]

DEFAULT_TARGETS = {
    "model": "model:", "flash": "model:nvme-raid", "file": "FILE", "database": "embedded:DIR",
    "array": "embedded+array:NAME",
    "embedded": "embedded:DIR", "postgresql": "postgresql://USER@HOST/DATABASE",
    "mariadb": "mariadb://USER@HOST/DATABASE", "mssql": "mssql://USER@HOST/DATABASE", "duckdb": "duckdb:FILE",
    "spark": "spark-local:DIR",
}  # fmt: skip
"""Stand in where a study is shown without a target."""

Name = Annotated[str, typer.Argument(metavar="NAME", help="A study, or the file of one: ./mine.toml.")]


@app.command(name="list", epilog="Examples:\n\n`assay study list --json`")
def list_studies(json: opt.Json = False, debug: opt.Debug = False) -> None:
    """List the studies, each with its question."""
    del debug
    studies = [study_variants(name) for name in study_names()]
    if json:
        keys = ("name", "title", "question", "targets", "target")
        listed = [{key: getattr(study, key) for key in keys} for variants in studies for study in variants]
        print(print_json({"schema_version": 1, "studies": listed}))
        return
    from assay.document.terminal import show, table

    rows = []
    for variants in studies:
        kinds = [kind for study in variants for kind in study.targets]
        questions = dict.fromkeys(study.question for study in variants)
        rows.append((variants[0].name, " ".join(questions), " and ".join(kinds)))
    show([table("", ("study", "question", "on"), rows)])


@app.command(name="show", epilog="Examples:\n\n`assay study show raid-policy --json > mine.json`")
def show_study(
    name: Name,
    target: Annotated[
        str | None,
        typer.Argument(help="Target to run on, if that makes a difference.", show_default=False),
    ] = None,
    workload: Workload = None,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Show what a study asks, varies and compares; `--json` prints it in the form `study run` takes."""
    del debug
    study = read_study(name, target, workload)
    if json:
        shown = {"name": study.name} | ({"target": shown_target(study.target)} if study.target else {})
        print(print_json(study.model_dump(mode="json", exclude_defaults=True) | shown))
        return
    on = target or study.target or DEFAULT_TARGETS[study.targets[0]]
    study = _with_repeats(study, on)
    parts, _ = study_parts(study, target=on)
    for line in _lines(study, parts):
        print(line)


def _lines(study: StudyPlan, parts: Sequence[Part[Any]]) -> list[str]:
    lines = [f"{study.name}: {study.title}", study.question]
    for factor in study.factor:
        labels = [one.key if one.key == one.name else f"{one.key} ({one.name})" for one in factor.levels]
        lines.append(f"factor {factor.name}, {factor.title}, of the {factor.of}: {', '.join(labels)}")
    compared = study.comparison
    if compared is not None:
        lines.append(f"compared: {compared.figure} by {compared.by}, baseline {compared.baseline}")
    if study.published:
        lines += [f"  {part.title}: {part.target_text}" for part in parts]
    lines.append(f"makes sense on: {' and '.join(study.targets)}")
    own = "each figure has its own" if study.published else "none, name one"
    lines.append(f"target unless given: {study.target or own}")
    shortest, longest = estimate_s(parts)
    on_model = study.published or (study.target is not None and target_kind(study.target) == "model")
    clock = " of the model's time, which passes some hundred times faster" if on_model else ""
    lines.append(f"{len(parts)} parts, {format_duration(shortest)} to {format_duration(longest)}{clock}")
    return lines


@app.command(
    name="compare", epilog='Examples:\n\n`assay study compare assay-results/20260102-study-1a2b3c --baseline "RAID 6"`'
)
def compare_levels(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a study's run.")],
    baseline: Baseline = None,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Compare the levels of a finished study with another of its levels; nothing is measured again."""
    del debug
    folder = RunFolder.open(run)
    study = compared_again(cast("Manifest", folder.manifest), folder.whole_points(), baseline)
    if json:
        print(print_json({"schema_version": 1, "verb": "study compare", "study": study}))
        return
    from assay.document.elements import Paragraph
    from assay.document.terminal import show, table

    columns, rows = comparison_rows(study)
    show([*map(Paragraph, study["sentences"] or []), table("", columns, rows)])


@app.command(name="run", epilog=EXAMPLES)
@usual(
    "--levels", "--baseline", "--set", "--size", "--repeats", "--quick", "--overwrite", "-o", "--json", "--dry-run",
)  # fmt: skip
@measuring(
    "study",
    on={"size": opt.ON_STORAGE["size"], **opt.WRITES_FILES, **opt.WRITES_MUCH, **opt.ON_DATABASES},
)
def run(
    given: Given,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A study, or the file of one: ./mine.toml.", show_default=False)
    ] = None,
    target: Annotated[
        str | None,
        typer.Argument(
            help="model:NAME?option=value, a file, folder or device, embedded:DIR, a database; the study's own.",
            show_default=False,
        ),
    ] = None,
    levels: Levels = None,
    baseline: Baseline = None,
    set_options: Settings = None,
    trace: Traces = None,
    repeats: Repeats = None,
    quick: Quick = False,
    workload: Workload = None,
    seed: opt.Seed = None,
) -> None:
    """Run a study: every combination of its levels, in random order, and what they change."""
    if name is None:
        raise UsageError(f"study run: give a study: {', '.join(study_names())}, or the file of one")
    study = read_study(name, target, workload)
    asked = {key: value for key, value in {"repeats": repeats, "seed": seed}.items() if value is not None}
    if asked:
        study = load_study(study.model_dump(mode="json", exclude_unset=True) | asked, source="options")
    if trace:
        study = with_traces(study, trace, _taking_traces())
    kept = _kept_levels(study, _pairs(levels, "--levels", "raid=10,50"))
    study, options = with_settings(study, _pairs(set_options, "--set", "members=2"), kept)
    beside = options.pop(RAW, None) if any(case.follows for case in study.case) else None
    places = {key: options.pop(key) for key in sorted(places_asked(study)) if key in options}
    if study.published:
        if target is not None:
            raise UsageError(
                f"study {study.name}: every published figure has a target of its own; leave out {target!r}"
            )
        chosen = ""
    else:
        chosen = choose_target(study, target, options)
    study = _with_repeats(study, chosen, quick=quick).with_baseline(baseline)
    given.shown.notices += [QUICK_NOTICE] if quick else []
    parts, facts = study_parts(study, target=chosen, options=options, levels=kept, beside=beside, places=places)
    if not kept:
        given.shown.notices += places_missing(study, parts)
    if chosen and target_kind(chosen) == "file" and not has_options(chosen) and any(_writes(part) for part in parts):
        given.shown.notices.append("the levels write to the same target one after the other: its state carries over")
    compared = study.comparison
    if compared is not None and len({part.levels.get(compared.by) for part in parts}) == 1:
        given.shown.notices.append(f"{compared.by} has one level here: nothing is compared")
    start("study", given.request([chosen] if chosen else []), parts, given.shown, facts)


def _taking_traces() -> list[str]:
    """Names of the studies whose load a trace may be."""
    return [name for name in study_names() if any(takes_traces(one) for one in study_variants(name))]


REPEATS_DEFAULT = 3
"""Repeats of every level on what is measured in real time: runs differ by more than the noise within one."""


QUICK_NOTICE = (
    "--quick: each level ran once; intervals hold the noise within a run, and not what varies between runs: a"
    " difference may come from that"
)


def _with_repeats(study: StudyPlan, target: str, *, quick: bool = False) -> StudyPlan:
    """The study with its repeats: those asked for, or three where runs of one setup differ; a model is deterministic.

    Raises
    ------
    UsageError
        --quick and repeats are given.
    """
    asked = "repeats" in study.model_fields_set
    if quick and asked:
        raise UsageError("--quick runs each level once; leave out --quick, or the repeats of --repeats and the study")
    if quick or asked or study.published or target_kind(target) == "model":
        return study
    return study.model_copy(update={"repeats": REPEATS_DEFAULT})


def _writes(part: Part[Any]) -> bool:
    workload = workload_of(part.plan)
    return not isinstance(workload, OnDatabases) and workload.needs(part.plan).writes


def _pairs(values: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    """`key=value` of an option given several times."""
    pairs: dict[str, str] = {}
    for text in values or []:
        key, mark, value = text.partition("=")
        if not (mark and key.strip() and value.strip()) or "&" in text:
            raise UsageError(f"{option} {text!r}: accepted: KEY=VALUE as in {example}")
        if key.strip() in pairs:
            raise UsageError(f"{option}: {key.strip()!r} is given twice; give it once")
        pairs[key.strip()] = value.strip()
    return pairs


def _kept_levels(study: StudyPlan, pairs: Mapping[str, str]) -> dict[str, list[str]]:
    """Levels of `--levels` by factor; published figures have none, and are chosen by their source."""
    if not study.published:
        return {name: _list(study.factor_named(name, "--levels"), value) for name, value in pairs.items()}
    if strange := [*{*pairs} - {"source"}]:
        raise UsageError(f"--levels {strange[0]}=...: published figures are chosen by source={sources_text()}")
    return {name: [one.strip() for one in value.split(",")] for name, value in pairs.items()}


def _list(factor: StudyFactor, text: str) -> list[str]:
    """Levels of `--levels`, by key or label; either may have commas of its own."""
    known = {name for level in factor.levels for name in (level.key, level.name)}
    pieces, found = text.split(","), []
    while pieces:
        own = next((size for size in range(len(pieces), 1, -1) if ",".join(pieces[:size]).strip() in known), 1)
        found.append(",".join(pieces[:own]).strip())
        pieces = pieces[own:]
    if not any(found):
        raise UsageError(f"--levels {factor.name}={text}: names no level")
    return [level for level in found if level]
