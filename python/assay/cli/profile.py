"""`assay profile`: how much load a target holds within limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli import options as opt
from assay.cli.running import OutputOptions, resume, start
from assay.errors import UsageError
from assay.run.request import Request
from assay.units import parse_bytes, parse_duration, parse_percent
from assay.workloads.io.plan import Plan, fit_bursts, load_plan, read_plan, read_preset
from assay.workloads.workload import Part

EXAMPLES = """
Examples:

`assay profile /data --preset oltp --size 20G`

`assay profile /data/f --block 8K --read 70 --queue-depth 1,4,16 --duration 30s --limit "read.p99<=2ms"`

`assay profile --volume data=/dev/sdb,log=/dev/sdc --overwrite /dev/sdb --overwrite /dev/sdc --preset database`

`assay profile "model:ps6100xv?raid=50&volumes=12&members=2" --block 8K --read 70`

`assay profile /data --search rate --block 8K --read 70 --limit "read.p99<=2ms"`
"""

QUICK_TIMING = {"warmup_s": 0.5, "min_s": 1.5, "max_s": 4.0}
METHOD_LIMITS = ("read.mean<=20ms", "write.mean<=20ms")
"""What the method asks of volumes under transactions (EqualLogic OLTP study)."""


OPTION_OF_KEY = {
    "block_bytes": "--block",
    "read_share": "--read",
    "random_share": "--random",
    "align_bytes": "--align",
    "compressible_share": "--compressible",
    "duplicate_share": "--duplicate",
    "queue_depth": "--queue-depth",
    "sync_every": "--sync-every",
    **{key: f"--{key}" for key in ("workers", "rate", "arrivals", "skew", "streams", "region", "role", "sync")},
    **{key: f"--{key}" for key in ("seed", "backend")},
    "search.axis": "--search",
    "search.repeats": "--repeats",
    "timing.duration_s": "--duration",
    "timing.warmup_s": "--warmup",
    "timing.min_s": "--min-time",
    "timing.max_s": "--max-time",
    "timing.rest_s": "--rest",
    "timing.io_timeout_s": "--io-timeout",
}
"""The option of each key of a plan, for messages."""


def profile(
    context: typer.Context,
    path: Annotated[
        list[str] | None, typer.Argument(help="File, folder, device, null:, or model:NAME.", show_default=False)
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="oltp, dss, log, tempdb, database, sqlio-random, sqlio-sequential.")
    ] = None,
    plan: Annotated[Path | None, typer.Option(help="A plan in TOML, or the JSON of --dry-run --json.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Short points, small file: a first look.")] = False,
    volume: opt.Volumes = None,
    size: opt.Size = None,
    cache_size: opt.CacheSize = None,
    block: Annotated[
        str | None, typer.Option(help="Block sizes: 8K,64K; a mix: 8K:80+64K:20.", rich_help_panel=opt.LOAD)
    ] = None,
    read: Annotated[str | None, typer.Option(help="Read shares in percent: 100,70.", rich_help_panel=opt.LOAD)] = None,
    random: Annotated[
        str | None, typer.Option(help="Random shares in percent; the rest is sequential.", rich_help_panel=opt.LOAD)
    ] = None,
    queue_depth: Annotated[
        str | None, typer.Option(help="Outstanding I/Os per worker: 1,4,16.", rich_help_panel=opt.LOAD)
    ] = None,
    workers: Annotated[str | None, typer.Option(help="Workers per volume.", rich_help_panel=opt.LOAD)] = None,
    rate: Annotated[
        str | None,
        typer.Option(help="Open loop: I/Os per second, latency from the intended start.", rich_help_panel=opt.LOAD),
    ] = None,
    arrivals: Annotated[str | None, typer.Option(help="constant or poisson.", rich_help_panel=opt.LOAD)] = None,
    skew: Annotated[str | None, typer.Option(help="uniform, zipf:0.99, hot:0.8/0.2.", rich_help_panel=opt.LOAD)] = None,
    streams: Annotated[
        str | None, typer.Option(help="Independent sequential streams per worker.", rich_help_panel=opt.LOAD)
    ] = None,
    align: Annotated[
        str | None, typer.Option(help="Alignment of offsets (the block).", rich_help_panel=opt.LOAD)
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="Part of the volume in percent: 0-50.", rich_help_panel=opt.LOAD)
    ] = None,
    compressible: Annotated[
        str | None, typer.Option(help="Percent of written bytes that compress.", rich_help_panel=opt.LOAD)
    ] = None,
    duplicate: Annotated[
        str | None, typer.Option(help="Percent of written blocks that repeat.", rich_help_panel=opt.LOAD)
    ] = None,
    role: Annotated[str | None, typer.Option(help="data, log or tempdb.", rich_help_panel=opt.LOAD)] = None,
    buffered: Annotated[
        bool, typer.Option("--buffered", help="Through the page cache instead of O_DIRECT.", rich_help_panel=opt.LOAD)
    ] = False,
    sync: Annotated[
        str | None, typer.Option(help="Durability of writes: none, dsync, fdatasync, fsync.", rich_help_panel=opt.LOAD)
    ] = None,
    sync_every: Annotated[
        str | None, typer.Option(help="With fdatasync, fsync: after every N writes.", rich_help_panel=opt.LOAD)
    ] = None,
    burst_interval: Annotated[
        str | None, typer.Option(help="Time from one checkpoint to the next.", rich_help_panel=opt.LOAD)
    ] = None,
    burst_bytes: Annotated[str | None, typer.Option(help="What a checkpoint writes.", rich_help_panel=opt.LOAD)] = None,
    burst_spread: Annotated[
        str | None, typer.Option(help="Percent of the interval a checkpoint takes.", rich_help_panel=opt.LOAD)
    ] = None,
    backend: opt.Backend = None,
    seed: opt.Seed = None,
    duration: Annotated[
        str | None, typer.Option(help="Every point lasts just this long.", rich_help_panel=opt.TIME)
    ] = None,
    warmup: Annotated[
        str | None, typer.Option(help="Not measured at the start of a point.", rich_help_panel=opt.TIME)
    ] = None,
    min_time: Annotated[
        str | None, typer.Option(help="Least time measured, and window of the steady state.", rich_help_panel=opt.TIME)
    ] = None,
    max_time: Annotated[str | None, typer.Option(help="Most time measured.", rich_help_panel=opt.TIME)] = None,
    rest: Annotated[str | None, typer.Option(help="Pause between points.", rich_help_panel=opt.TIME)] = None,
    io_timeout: opt.IoTimeout = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            help="read.p99<=2ms, log.write.mean<=5ms, cpu<80%; replaces the preset's.", rich_help_panel=opt.TIME
        ),
    ] = None,
    search: Annotated[str | None, typer.Option(help="queue-depth, rate or none.", rich_help_panel=opt.TIME)] = None,
    repeats: Annotated[
        int | None, typer.Option(help="Repeats at both ends of the answer's bracket.", rich_help_panel=opt.TIME)
    ] = None,
    cache_span: Annotated[
        bool, typer.Option("--cache-span", help="Show where a cache ends.", rich_help_panel=opt.TIME)
    ] = False,
    overwrite: opt.Overwrite = None,
    yes_destroy: opt.YesDestroy = None,
    output: opt.Output = opt.OUTPUT_DEFAULT,
    json: opt.Json = False,
    dry_run: opt.DryRun = False,
    report: opt.Report = True,
    export: opt.Export = None,
    resume_run: opt.Resume = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Find how much load files, devices or volumes hold within latency limits."""
    del debug
    shown = OutputOptions(output=output, json=json, dry_run=dry_run, report=report, export=export or [], quiet=quiet)
    if resume_run is not None:
        resume("profile", resume_run, shown, context)
        return
    access: dict[str, Any] = {
        "block_bytes": _levels(block, _block_level, "--block"),
        "read_share": _levels(read, lambda text: parse_percent(text, what="--read"), "--read"),
        "random_share": _levels(random, lambda text: parse_percent(text, what="--random"), "--random"),
        "queue_depth": _levels(queue_depth, lambda text: _whole(text, "--queue-depth"), "--queue-depth"),
        "workers": _levels(workers, lambda text: _whole(text, "--workers"), "--workers"),
        "rate": _levels(rate, lambda text: _number(text, "--rate"), "--rate"),
        "arrivals": arrivals,
        "skew": skew,
        "streams": _levels(streams, lambda text: _whole(text, "--streams"), "--streams"),
        "align_bytes": parse_bytes(align, what="--align") if align else None,
        "region": _region(region),
        "compressible_share": _levels(
            compressible, lambda text: parse_percent(text, what="--compressible"), "--compressible"
        ),
        "duplicate_share": _levels(duplicate, lambda text: parse_percent(text, what="--duplicate"), "--duplicate"),
        "role": role,
        "io_mode": "buffered" if buffered else None,
        "sync": _levels(sync, str, "--sync"),
        "sync_every": _levels(sync_every, lambda text: _whole(text, "--sync-every"), "--sync-every"),
    }
    timing: dict[str, Any] = {
        "duration_s": _seconds(duration, "--duration"),
        "warmup_s": _seconds(warmup, "--warmup"),
        "min_s": _seconds(min_time, "--min-time"),
        "max_s": _seconds(max_time, "--max-time"),
        "rest_s": _seconds(rest, "--rest"),
        "io_timeout_s": _seconds(io_timeout, "--io-timeout"),
    }
    bursts: dict[str, Any] = {
        "burst_interval_s": _seconds(burst_interval, "--burst-interval"),
        "burst_bytes": parse_bytes(burst_bytes, what="--burst-bytes") if burst_bytes else None,
        "burst_spread": parse_percent(burst_spread, what="--burst-spread") if burst_spread else None,
    }
    with _words_of_options():
        chosen = build_plan(
            preset=preset,
            plan_file=plan,
            access={key: value for key, value in access.items() if value is not None},
            timing={key: value for key, value in timing.items() if value is not None},
            limits=limit,
            search=search,
            repeats=repeats,
            quick=quick,
            bursts={key: value for key, value in bursts.items() if value is not None},
            other={
                key: value
                for key, value in {"seed": seed, "backend": backend, "size": size}.items()
                if value is not None
            },
        )
    request = Request(
        paths=path or [],
        volumes=volume or [],
        size=chosen.size,
        cache_size=cache_size,
        overwrite=overwrite or [],
        yes_destroy=yes_destroy or [],
    )
    if quick:
        request.size_most_bytes = 1 << 30
    part = Part(name=chosen.name, title=chosen.title or "Custom profile", plan=chosen)
    parts = [part]
    if cache_span:
        from assay.workloads.io.cache_span import PART
        from assay.workloads.io.cache_span_plan import cache_span_plan

        parts.insert(0, Part(name=PART, title="Latency against span", plan=cache_span_plan(1 << 30), planned_s=10.0))
    start("profile", request, parts, shown)


def build_plan(
    *,
    preset: str | None,
    plan_file: Path | None,
    access: dict[str, Any],
    timing: dict[str, Any],
    limits: list[str] | None,
    search: str | None,
    repeats: int | None,
    quick: bool,
    other: dict[str, Any],
    bursts: dict[str, Any] | None = None,
) -> Plan:
    """The plan that preset, file and options ask for together: options win over both.

    Raises
    ------
    UsageError
        Options exclude each other, or the plan is wrong.
    """
    if preset is not None and plan_file is not None:
        raise UsageError("--preset and --plan exclude each other")
    if plan_file is not None:
        base = read_plan(plan_file)
    elif preset is not None or not access:
        base = read_preset(preset or "oltp")
    else:
        base = _custom(access, search)
    data = base.model_dump(mode="json", exclude_unset=True) | other
    data["timing"] = {**data.get("timing", {}), **(QUICK_TIMING if quick else {}), **timing}
    if {"min_s", "max_s"} & timing.keys():
        if "duration_s" in timing:
            raise UsageError("--duration excludes --min-time and --max-time: every point lasts just that long")
        data["timing"]["duration_s"] = None
    elif quick and base.timing.duration_s is not None and "duration_s" not in timing:
        data["timing"]["duration_s"] = 8.0
    if limits:
        data |= {"limits": limits, "user_limits": True}
    if "block_bytes" in access:
        data["fits_sector"] = False
    _apply_access(data, access, search)
    _apply_bursts(data, bursts)
    searching = {**data.get("search", {})}
    if search is not None:
        searching["axis"] = search
    if repeats is not None:
        searching["repeats"] = repeats
    elif quick:
        searching["repeats"] = 0
    if searching.get("axis") == "queue-depth" and isinstance(access.get("queue_depth"), int):
        searching["start"] = access["queue_depth"]
    data["search"] = searching
    return load_plan(data, source="options" if plan_file is None else f"--plan {plan_file}")


@contextmanager
def _words_of_options() -> Iterator[None]:
    """Say what is wrong with a plan made of options by naming the option instead of the plan's key."""
    try:
        yield
    except UsageError as error:
        message = str(error)
        match = re.fullmatch(r"options: (?:activity \d+: )?([a-z_.]+): (.*)", message)
        if match and match[1] in OPTION_OF_KEY:
            message = f"{OPTION_OF_KEY[match[1]]}: {match[2]}"
        raise UsageError(message.removeprefix("options: ")) from None


def _custom(access: dict[str, Any], search: str | None) -> Plan:
    """Without preset: 8 KiB random 70/30, searched on queue depth unless a load is given."""
    loaded = "queue_depth" in access or "rate" in access
    axis = search or ("none" if loaded else "queue-depth")
    limits = () if loaded and search is None else METHOD_LIMITS
    activity = {"role": "data", "block_bytes": "8K", "read_share": 0.7, "random_share": 1.0}
    return load_plan(
        {
            "name": "custom",
            "title": "Custom profile",
            "limits": limits,
            "search": {"axis": axis},
            "activity": [activity],
        },
        source="options",
    )


def _apply_access(data: dict[str, Any], access: dict[str, Any], search: str | None) -> None:
    """Options of access and load change the first activity, and win over the cases."""
    first, *others = data["activity"]
    if "rate" in access:
        first = {key: value for key, value in first.items() if key != "queue_depth"}
    data["activity"] = [{**first, **access}, *others]
    data["case"] = _without(data.get("case", [{}]), set(access))
    if search is None and ("queue_depth" in access or "rate" in access):
        data["search"] = {**data.get("search", {}), "axis": "none"}


def _apply_bursts(data: dict[str, Any], bursts: dict[str, Any] | None) -> None:
    """Apply options to the activities that have bursts; without options bursts are fitted to short points."""
    if bursts:
        if not any("burst_bytes" in activity for activity in data["activity"]):
            raise UsageError(
                "--burst-interval, --burst-bytes, --burst-spread: this plan has no bursts; see --preset database"
            )
        data["activity"] = [
            {**activity, **bursts} if "burst_bytes" in activity else activity for activity in data["activity"]
        ]
    elif data["timing"].get("duration_s"):
        data["activity"] = fit_bursts(data["activity"], data["timing"]["duration_s"])


def _without(cases: list[dict[str, Any]], keys: set[str]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    for case in cases:
        rest = {key: value for key, value in case.items() if key not in keys}
        if rest not in kept:
            kept.append(rest)
    return kept


def _levels(text: str | None, convert: Any, what: str) -> Any:
    """One value, or a list of them when the option has commas."""
    if text is None:
        return None
    values = [convert(part) for part in text.split(",") if part.strip()]
    if not values:
        raise UsageError(f"{what}: {text!r} is empty; give at least one level")
    return values if len(values) > 1 else values[0]


def _block_level(text: str) -> int | dict[str, float]:
    if ":" not in text:
        return parse_bytes(text, what="--block")
    mix = {}
    for part in text.split("+"):
        block, _, weight = part.partition(":")
        mix[str(parse_bytes(block, what="--block"))] = _number(weight, "--block")
    return mix


def _whole(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{what}: {text!r} is not a whole number") from None


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{what}: {text!r} is not a number") from None


def _seconds(text: str | None, what: str) -> float | None:
    return None if text is None else parse_duration(text, what=what) / 1e9


def _region(text: str | None) -> list[float] | None:
    if text is None:
        return None
    start, dash, end = text.partition("-")
    if not dash:
        raise UsageError(f"--region: {text!r}; accepted: START-END in percent, as in 0-50")
    return [parse_percent(start, what="--region"), parse_percent(end, what="--region")]
