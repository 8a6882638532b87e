"""`assay dss`: scans and joins on real databases, with the storage under them recorded."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.repeating import start
from assay.apps.cli.verb import Given, measuring
from assay.apps.cli.workloads.transactions import TARGETS, TARGETS_HELP
from assay.base.errors import UsageError
from assay.workloads.databases.plan import split_actions
from assay.workloads.plan import Part
from assay.workloads.tpch.plan import TpchPlan

EXAMPLES = """
Examples:

`assay dss tpch duckdb:/data/tpch.duckdb`

`assay dss tpch embedded:/data/pg load --scale 10`

`assay dss tpch embedded:/data/pg run --test throughput --streams 4`

`assay dss tpch embedded:/data/pg duckdb:/data/tpch.duckdb load check --scale 0.1`

`assay dss tpch postgresql://tester@db/tpch run --partition lineitem:l_shipdate:8 --query-timeout 10m`
"""

PART = TpchPlan.model_fields["kind"].default


@usual("--scale", "--test", "--streams", "--queries", "--cache", "--limit", "--json", "--dry-run")
@measuring("dss", TpchPlan, on=opt.DATABASES_IN_TURNS, presets="tpch")
def tpch(
    given: Given,
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar=TARGETS,
            help=f"duckdb:PATH, {TARGETS_HELP}",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Load, run and check a TPC-H-like workload on real databases."""
    given.shown.validate()
    targets, actions = split_actions(target or [])
    if not targets:
        raise UsageError("no target; name a database, such as duckdb:./assay-data/tpch.duckdb")
    data = given.changed(given.base() or given.preset_default(), {})
    if actions:
        data["actions"] = actions
    chosen: TpchPlan = given.plan(data)
    part = Part(name=PART, title=chosen.title, plan=chosen)
    start("dss", given.request(targets), [part], given.shown)
