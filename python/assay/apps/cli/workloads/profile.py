"""`assay profile`: how much load a target holds within limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.console import say
from assay.apps.cli.need import Need, NeedFrom, asked_need
from assay.apps.cli.repeating import start
from assay.apps.cli.verb import Given, measuring
from assay.base.errors import UsageError
from assay.base.paths import plain, printable
from assay.base.reading import plans_within, read_text, table_of
from assay.base.units import parse_bytes
from assay.record.shapes.need import AskedNeed
from assay.workloads.io.cache_span import PART
from assay.workloads.io.foreign import asked_elsewhere
from assay.workloads.io.foreign.asked import AskedElsewhere
from assay.workloads.io.needed import needed_plan_data
from assay.workloads.io.plan import IoPlan, fit_bursts, load_plan
from assay.workloads.options import TIME, Keys
from assay.workloads.plan import Part

EXAMPLES = """
Examples:

`assay profile /data --preset oltp --size 20G`

`assay profile /data/f --block 8K --read 70 --queue-depth 1,4,16 --duration 30s --limit "read.p99<=2ms"`

`assay profile --volume data=/dev/sdb,log=/dev/sdc --overwrite /dev/sdb --overwrite /dev/sdc --preset database`

`assay profile "model:ps6100xv?raid=50&volumes=12&members=2" --block 8K --read 70`

`assay profile /data --need "5000 iops 8k 70/30 read.p99<2ms"`

`assay profile /data --search rate --block 8K --read 70 --limit "read.p99<=2ms"`

`assay profile --plan job.fio --dry-run`
"""

QUICK: dict[Keys, float] = {
    ("timing", "warmup_s"): 0.5,
    ("timing", "min_s"): 1.5,
    ("timing", "max_s"): 4.0,
    ("search", "repeats"): 0,
}
QUICK_DURATION_S = 8.0
"""Duration of points whose plan gives them one."""
METHOD_LIMITS = ("read.mean<=20ms", "write.mean<=20ms")
"""What the method asks of volumes under transactions (EqualLogic OLTP study)."""
REPLACED = {
    "queue_depth": ("outstanding",),
    "outstanding": ("queue_depth", "rate"),
    "rate": ("queue_depth", "outstanding"),
}
"""Loads that options give, and what of a preset's load each takes the place of."""
BURSTS = ("burst_interval_s", "burst_bytes", "burst_spread")


@usual(
    "--preset", "--size", "--block", "--read", "--queue-depth", "--duration", "--search", "--limit", "--overwrite",
    "--json",
)  # fmt: skip
@measuring(
    "profile",
    IoPlan,
    on={**opt.ON_STORAGE, **opt.WRITES_MUCH, **opt.IN_TURNS},
    presets="oltp, dss, log, tempdb, database, sqlio-random, sqlio-sequential",
)
def profile(
    given: Given,
    path: Annotated[
        list[str] | None, typer.Argument(help="File, folder, device, null:, or model:NAME.", show_default=False)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Short points, small file: a first look.")] = False,
    cache_span: Annotated[
        bool, typer.Option("--cache-span", help="Show where a cache ends.", rich_help_panel=TIME)
    ] = False,
    need: Need = None,
    need_from: NeedFrom = None,
) -> None:
    """Find how much load files, devices or volumes hold within latency limits."""
    asked = asked_need(need, need_from)
    elsewhere = _elsewhere(given, has_target=bool(path or given.target.get("volumes")))
    bases: list[IoPlan | None] = [*elsewhere.plans] or [None]
    plans = [build_plan(given, quick=quick, need=asked, base=one) for one in bases]
    chosen = max(plans, key=lambda plan: parse_bytes(plan.size) if elsewhere.plans and plan.size else 0)
    request = given.request(path or elsewhere.paths, size=chosen.size)
    if quick:
        request.size_most_bytes = 1 << 30
    parts = [Part(name=plan.name, title=plan.title or "Custom profile", plan=plan) for plan in plans]
    if cache_span:
        from assay.workloads.io.cache_span_plan import cache_span_plan

        parts.insert(0, Part(name=PART, title="Latency against span", plan=cache_span_plan(1 << 30), planned_s=10.0))
    told = {} if asked is None else {"need": {**asked, "limits": list(chosen.limits)}}
    start("profile", request, parts, given.shown, told=lambda: told)


def _elsewhere(given: Given, *, has_target: bool) -> AskedElsewhere:
    """What a file of another load generator asks for, said a line each; no plans where `--plan` is none."""
    if given.plan_file is None or given.preset is not None:
        # Both exclude each other, which `Given.base` says.
        return AskedElsewhere(plans=[])
    source = f"--plan {printable(given.plan_file)}"
    text = read_text(given.plan_file, source)
    if text.lstrip().startswith("{"):
        return AskedElsewhere(plans=[load_plan(data, source=source) for data in plans_within(table_of(text, source))])
    found = asked_elsewhere(text, source, has_target=has_target)
    if found is None:
        return AskedElsewhere(plans=[])
    if not given.shown.quiet:
        for line in found.lines:
            say(f"{printable(given.plan_file)}: {plain(line)}")
    return found


def build_plan(given: Given, *, quick: bool, need: AskedNeed | None = None, base: IoPlan | None = None) -> IoPlan:
    """The plan that preset, file and options ask for together: options win over both.

    Parameters
    ----------
    base
        The plan of a file that is no plan of Assay's.

    Raises
    ------
    UsageError
        Options exclude each other, or the plan is wrong.
    """
    given = replace(given, values=dict(given.values))
    access = given.take("activity")
    bursts = {key: access.pop(key) for key in BURSTS if key in access}
    searched = ("search", "axis") in given.values
    if need is not None:
        _refuse_beside_need(given, [*access, *bursts])
    base = (
        _needed(need)
        if need is not None
        else base or given.base() or (_custom(access, searched=searched) if access else given.preset_default())
    )
    data = given.changed(base, QUICK if quick else None)
    _choose_duration(data, given, base, quick=quick)
    _apply_access(data, access, searched=searched)
    _apply_bursts(data, bursts)
    depth = access.get("queue_depth")
    if data.get("search", {}).get("axis") == "queue-depth" and isinstance(depth, int):
        data["search"] = {**data["search"], "start": given.values.get(("search", "start"), depth)}
    chosen: IoPlan = given.plan(data)
    return chosen


def _refuse_beside_need(given: Given, loads: Sequence[str]) -> None:
    """Refuse options that say what a need says.

    Raises
    ------
    UsageError
        Such an option is given.
    """
    taken = ("preset", given.preset), ("plan", given.plan_file)
    both = [f"--{name}" for name, value in taken if value is not None]
    says = {("activity", key) for key in loads} | {("search", key) for key in ("axis", "start", "end")}
    both += [flag for path, flag in given.flags.items() if path in says]
    if both:
        raise UsageError(f"{both[0]}: the need says which I/O is asked for, and how much; leave out {both[0]}")


def _needed(need: AskedNeed) -> IoPlan:
    return load_plan(needed_plan_data(need), source="--need")


def _custom(access: Mapping[str, object], *, searched: bool) -> IoPlan:
    """Without preset: 8 KiB random 70/30, searched on queue depth unless a load is given."""
    loaded = _is_load(access)
    return load_plan(
        {
            "name": "custom",
            "title": "Custom profile",
            "limits": () if loaded and not searched else METHOD_LIMITS,
            "search": {"axis": "none" if loaded else "queue-depth"},
            "activity": [{"role": "data", "block_bytes": "8K", "read_share": 0.7, "random_share": 1.0}],
        },
        source="options",
    )


def _is_load(access: Mapping[str, object]) -> bool:
    return any(key in access for key in REPLACED)


def _choose_duration(data: dict[str, Any], given: Given, base: IoPlan, *, quick: bool) -> None:
    """A duration, or least and most time: what is given ends what the plan had of the other."""
    timed = {path[1] for path in given.values if path[0] == "timing"}
    if {"min_s", "max_s"} & timed:
        if "duration_s" in timed:
            raise UsageError("--duration excludes --min-time and --max-time: every point lasts just that long")
        data["timing"]["duration_s"] = None
    elif quick and base.timing.duration_s is not None and "duration_s" not in timed:
        data["timing"]["duration_s"] = QUICK_DURATION_S


def _apply_access(data: dict[str, Any], access: Mapping[str, object], *, searched: bool) -> None:
    """Options of access and load change the first activity, and win over the cases."""
    first, *others = data.get("activity", [{}])
    if "block_bytes" in access:
        data["fits_sector"] = False
    replaced = {old for key in access for old in REPLACED.get(key, ())}
    first = {key: value for key, value in first.items() if key not in replaced}
    data["activity"] = [{**first, **access}, *others]
    data["case"] = _without(data.get("case", [{}]), set(access))
    if not searched and _is_load(access):
        data["search"] = {**data.get("search", {}), "axis": "none"}


def _apply_bursts(data: dict[str, Any], bursts: Mapping[str, object]) -> None:
    """Apply options to the activities that have bursts; without options bursts are fitted to short points."""
    if bursts:
        if not any("burst_bytes" in activity for activity in data["activity"]):
            raise UsageError(
                "--burst-interval, --burst-bytes, --burst-spread: this plan has no bursts; see --preset database"
            )
        data["activity"] = [
            {**activity, **bursts} if "burst_bytes" in activity else activity for activity in data["activity"]
        ]
    elif data.get("timing", {}).get("duration_s"):
        data["activity"] = fit_bursts(data["activity"], data["timing"]["duration_s"])


def _without(cases: list[dict[str, Any]], keys: set[str]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    for case in cases:
        rest = {key: value for key, value in case.items() if key not in keys}
        if rest not in kept:
            kept.append(rest)
    return kept
