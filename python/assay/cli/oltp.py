"""`assay oltp`: transactions on real databases, with the storage under them recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli import options as opt
from assay.cli.running import OutputOptions
from assay.cli.running import resume as go_on
from assay.cli.running import start as start_run
from assay.errors import UsageError
from assay.run.request import Request
from assay.units import parse_duration
from assay.workloads.tpcc.plan import (
    WAREHOUSES_DEFAULT,
    Action,
    TpccPlan,
    default_users,
    load_tpcc_plan,
    parse_mix,
    read_tpcc_plan,
    read_tpcc_preset,
    split_actions,
)
from assay.workloads.workload import Part

EXAMPLES = """
Examples:

`assay oltp tpcc embedded:/data/pg`

`assay oltp tpcc embedded:/data/pg load --warehouses 100`

`assay oltp tpcc embedded:/data/pg run check --users 16 --duration 5m`

`assay oltp tpcc postgresql://tester@db/tpcc run --search users --limit "response.p90<500ms"`

`assay oltp tpcc mariadb://tester@db/tpcc run --rate 200 --duration 2m`
"""

PART = "tpcc"
DATABASE, USERS, TRANSACTIONS = "Database", "Users", "Transactions"

app = typer.Typer(
    name="oltp",
    help="Run transactions on real databases: embedded PostgreSQL, or servers of yours.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

OPTION_OF_KEY = {
    "timing.duration_s": "--duration",
    "timing.warmup_s": "--warmup",
    "timing.rest_s": "--rest",
    "search.axis": "--search",
    "search.start": "--start",
    "search.end": "--end",
    "search.repeats": "--repeats",
    "search": "--start, --end",
    "load_connections": "--load-connections",
    "think_scale": "--think-scale",
    "reconnect_s": "--reconnect",
    **{key: f"--{key}" for key in ("warehouses", "users", "connections", "threads", "seed", "mix", "draw", "items")},
    **{key: f"--{key}" for key in ("home", "rate", "arrivals", "isolation", "retries")},
}
"""The option of each key of a plan, for messages."""


@app.callback()
def _oltp() -> None:
    """Run transactions on real databases: embedded PostgreSQL, or servers of yours."""


@app.command(name="tpcc", epilog=EXAMPLES)
def tpcc(
    context: typer.Context,
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET... [load|run|check|save|restore|drop]...",
            help="embedded:DIR, postgresql://USER@HOST/DATABASE, mariadb://..., mssql://...; then what to do, in that"
            " order (load unless loaded, run, check).",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[str | None, typer.Option(help="hammerdb (as HammerDB draws it) or strict.")] = None,
    plan: Annotated[Path | None, typer.Option(help="A plan in TOML, or the JSON of --dry-run --json.")] = None,
    warehouses: Annotated[
        int | None,
        typer.Option(
            help=f"How many to load, about 100 MB each ({WAREHOUSES_DEFAULT}, or those that are loaded).",
            rich_help_panel=DATABASE,
        ),
    ] = None,
    load_connections: Annotated[
        int | None, typer.Option(help="Connections that load in parallel (one per core).", rich_help_panel=DATABASE)
    ] = None,
    restore: Annotated[
        bool | None,
        typer.Option(
            "--restore/--no-restore",
            help="Start every point from the saved state (points of a search only).",
            rich_help_panel=DATABASE,
        ),
    ] = None,
    isolation: Annotated[
        str | None,
        typer.Option(
            help="default, read-committed, repeatable-read or serializable.",
            rich_help_panel=DATABASE,
        ),
    ] = None,
    users: Annotated[
        int | None, typer.Option(help="Users, each one transaction at a time (2 per core).", rich_help_panel=USERS)
    ] = None,
    connections: Annotated[
        int | None, typer.Option(help="Connections that users share (one each).", rich_help_panel=USERS)
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Threads that drive the users (one per core).", rich_help_panel=USERS)
    ] = None,
    think: Annotated[
        bool, typer.Option("--think", help="With the specification's keying and thinking times.", rich_help_panel=USERS)
    ] = False,
    think_scale: Annotated[
        float | None, typer.Option(help="With those times, multiplied by this.", rich_help_panel=USERS)
    ] = None,
    home: Annotated[
        str | None,
        typer.Option(help="What a user keeps: warehouse, district, or all for none.", rich_help_panel=USERS),
    ] = None,
    all_warehouses: Annotated[
        bool, typer.Option("--all-warehouses", help="The same as --home all.", rich_help_panel=USERS)
    ] = False,
    rate: Annotated[
        float | None,
        typer.Option(
            help="Open loop: transactions per second, latency from the intended start.", rich_help_panel=USERS
        ),
    ] = None,
    arrivals: Annotated[
        str | None, typer.Option(help="Of --rate: poisson or constant (poisson).", rich_help_panel=USERS)
    ] = None,
    mix: Annotated[
        str | None, typer.Option(help="Weights: new_order=45,payment=43,...", rich_help_panel=TRANSACTIONS)
    ] = None,
    draw: Annotated[
        str | None, typer.Option(help="From a deck of cards, or independent.", rich_help_panel=TRANSACTIONS)
    ] = None,
    items: Annotated[
        str | None, typer.Option(help="Items of an order: uniform or nurand.", rich_help_panel=TRANSACTIONS)
    ] = None,
    procedures: Annotated[
        bool | None,
        typer.Option(
            "--procedures/--statements",
            help="Stored procedures, or one statement after the other.",
            rich_help_panel=TRANSACTIONS,
        ),
    ] = None,
    pipeline: Annotated[
        bool | None,
        typer.Option(
            "--pipeline/--no-pipeline",
            help="Send statements together that do not need each other's results.",
            rich_help_panel=TRANSACTIONS,
        ),
    ] = None,
    retries: Annotated[
        int | None,
        typer.Option(help="Tries after deadlocks and serialisation failures (10).", rich_help_panel=TRANSACTIONS),
    ] = None,
    reconnect: Annotated[
        str | None, typer.Option(help="How long a lost server is waited for (60s).", rich_help_panel=TRANSACTIONS)
    ] = None,
    seed: opt.Seed = None,
    duration: Annotated[
        str | None, typer.Option(help="Time that is measured, after the warm-up (60s).", rich_help_panel=opt.TIME)
    ] = None,
    warmup: Annotated[
        str | None,
        typer.Option(help="Before it (a quarter of the duration, 60s at most).", rich_help_panel=opt.TIME),
    ] = None,
    rest: Annotated[str | None, typer.Option(help="Pause between points.", rich_help_panel=opt.TIME)] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            help="response.p90<2s, log.write.mean<=5ms, cpu<80%; replaces the preset's.", rich_help_panel=opt.TIME
        ),
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(help="Find the most transactions within the limits: users or rate.", rich_help_panel=opt.TIME),
    ] = None,
    start: Annotated[float | None, typer.Option(help="First load of the search.", rich_help_panel=opt.TIME)] = None,
    end: Annotated[float | None, typer.Option(help="Largest load of the search.", rich_help_panel=opt.TIME)] = None,
    repeats: Annotated[
        int | None, typer.Option(help="Repeats at both ends of the answer's bracket.", rich_help_panel=opt.TIME)
    ] = None,
    output: opt.Output = opt.OUTPUT_DEFAULT,
    json: opt.Json = False,
    dry_run: opt.DryRun = False,
    report: opt.Report = True,
    export: opt.Export = None,
    resume_run: opt.Resume = None,
    quiet: opt.Quiet = False,
    password_stdin: opt.PasswordStdin = False,
    debug: opt.Debug = False,
) -> None:
    """Load, run and check a TPC-C-like workload on real databases."""
    del debug, password_stdin
    shown = OutputOptions(output=output, json=json, dry_run=dry_run, report=report, export=export or [], quiet=quiet)
    shown.validate()
    if resume_run is not None:
        go_on("oltp", resume_run, shown, context)
        return
    targets, actions = split_actions(target or [])
    if not targets:
        raise UsageError("no target; name a database, such as embedded:./assay-data/pg")
    given: dict[str, Any] = {
        "warehouses": warehouses,
        "load_connections": load_connections,
        "users": users,
        "connections": connections,
        "threads": threads,
        "seed": seed,
        "mix": parse_mix(mix) if mix is not None else None,
        "draw": draw,
        "items": items,
        "home": _home(home, all_warehouses=all_warehouses),
        "think_scale": think_scale if think_scale is not None else 1.0 if think else None,
        "rate": rate,
        "arrivals": arrivals,
        "mode": None if procedures is None else "procedures" if procedures else "statements",
        "pipeline": pipeline,
        "isolation": isolation,
        "retries": retries,
        "reconnect_s": _seconds(reconnect, "--reconnect"),
        "restores": None if restore is None else "always" if restore else "never",
    }
    timing = {
        "duration_s": _seconds(duration, "--duration"),
        "warmup_s": _seconds(warmup, "--warmup"),
        "rest_s": _seconds(rest, "--rest"),
    }
    chosen = build_plan(
        preset=preset,
        plan_file=plan,
        actions=actions,
        given=_without_none(given),
        timing=_without_none(timing),
        search=_without_none({"axis": search, "start": start, "end": end, "repeats": repeats}),
        limits=limit,
    )
    start_run("oltp", Request(paths=targets), [Part(name=PART, title=chosen.title, plan=chosen)], shown)


def build_plan(
    *,
    preset: str | None,
    plan_file: Path | None,
    actions: Sequence[Action],
    given: dict[str, Any],
    timing: dict[str, Any],
    search: dict[str, Any],
    limits: list[str] | None,
) -> TpccPlan:
    """The plan that preset, file and options ask for together: options win over both.

    Raises
    ------
    UsageError
        Options exclude each other, or a value is not accepted; the message names the option.
    """
    if preset is not None and plan_file is not None:
        raise UsageError("--preset and --plan exclude each other")
    base = read_tpcc_plan(plan_file) if plan_file is not None else read_tpcc_preset(preset or "hammerdb")
    data = base.model_dump(mode="json", exclude_unset=True) | {"users": base.users}
    if search.get("axis") == "rate" and "rate" in given:
        search = {"start": given.pop("rate"), **search}
    if not search.get("axis") and base.search.axis == "none" and search:
        raise UsageError(f"--{next(iter(search))}: says how to search; give --search users or --search rate, too")
    data |= given
    if given.get("users", default_users()) < base.users and "connections" not in given:
        # Fewer users than the plan has connections for.
        data["connections"] = None if base.connections is None else min(base.connections, data["users"])
    if actions:
        data["actions"] = actions
    if limits:
        data |= {"limits": limits, "user_limits": True}
    data["timing"] = {**data.get("timing", {}), **timing}
    data["search"] = {**data.get("search", {}), **search}
    try:
        return load_tpcc_plan(data, source="options")
    except UsageError as error:
        message = str(error).removeprefix("options: ")
        key, colon, rest = message.partition(": ")
        raise UsageError(f"{OPTION_OF_KEY[key]}: {rest}" if colon and key in OPTION_OF_KEY else message) from None


def _home(home: str | None, *, all_warehouses: bool) -> str | None:
    if all_warehouses and home not in (None, "all"):
        raise UsageError(f"--all-warehouses and --home {home} exclude each other")
    return "all" if all_warehouses else home


def _seconds(text: str | None, what: str) -> float | None:
    return None if text is None else parse_duration(text, what=what) / 1e9


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
