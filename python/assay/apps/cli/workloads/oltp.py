"""`assay oltp`: transactions on real databases, with the storage under them recorded."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.verb import Given, measuring
from assay.apps.cli.workloads.transactions import TARGETS, TARGETS_HELP, run_verb
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


@usual("--preset", "--warehouses", "--users", "--rate", "--duration", "--search", "--limit", "--json")
@measuring("oltp", TpccPlan, on=opt.DATABASES_IN_TURNS, presets="hammerdb (as HammerDB draws it) or strict")
def tpcc(
    given: Given,
    target: Annotated[
        list[str] | None,
        typer.Argument(metavar=TARGETS, help=TARGETS_HELP, show_default=False),
    ] = None,
) -> None:
    """Load, run and check a TPC-C-like workload on real databases."""
    run_verb(given, target or [], PART)
