"""`assay oltp`: transactions on real databases, with the storage under them recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from assay.cli import options as opt
from assay.cli.running import start
from assay.cli.verb import Given, group, measuring
from assay.errors import UsageError
from assay.workloads.databases.plan import Action, split_actions
from assay.workloads.plan import Part
from assay.workloads.tpcc.plan import TpccPlan

EXAMPLES = """
Examples:

`assay oltp tpcc embedded:/data/pg`

`assay oltp tpcc embedded:/data/pg load --warehouses 100`

`assay oltp tpcc embedded:/data/pg run check --users 16 --duration 5m`

`assay oltp tpcc postgresql://tester@db/tpcc run --search users --limit "response.p90<500ms"`

`assay oltp tpcc mariadb://tester@db/tpcc run --rate 200 --duration 2m`
"""

PART = TpccPlan.model_fields["kind"].default


@measuring("oltp", TpccPlan, on=opt.ON_DATABASES, presets="hammerdb (as HammerDB draws it) or strict")
def tpcc(
    given: Given,
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET... [load|run|check|save|restore|drop]...",
            help="embedded:DIR, postgresql://USER@HOST/DATABASE, mariadb://..., mssql://...; then what to do, in that"
            " order (load unless loaded, run, check).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Load, run and check a TPC-C-like workload on real databases."""
    given.shown.validate()
    targets, actions = split_actions(target or [])
    if not targets:
        raise UsageError("no target; name a database, such as embedded:./assay-data/pg")
    chosen = build_plan(given, actions)
    part = Part(name=PART, title=chosen.title, plan=chosen)
    start("oltp", given.request(targets), [part], given.shown)


def build_plan(given: Given, actions: Sequence[Action]) -> TpccPlan:
    """The plan that preset, file and options ask for together: options win over both.

    Raises
    ------
    UsageError
        Options exclude each other, or a value is not accepted; the message names the option.
    """
    base: Any = given.base() or given.preset_default()
    if given.values.get(("search", "axis")) == "rate" and ("rate",) in given.values:
        given.values.setdefault(("search", "start"), given.values.pop(("rate",)))
    data = given.changed(base, {("users",): base.users})
    if data["users"] < base.users and ("connections",) not in given.values and base.connections is not None:
        # Fewer users than the plan has connections for.
        data["connections"] = min(base.connections, data["users"])
    if actions:
        data["actions"] = actions
    chosen: TpccPlan = given.plan(data)
    return chosen


def add_verbs(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    oltp = group(app, "oltp", help="Run transactions on real databases: embedded PostgreSQL, or servers of yours.")
    oltp.command(name=PART, epilog=EXAMPLES)(tpcc)
