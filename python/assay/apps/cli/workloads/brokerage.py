"""`assay oltp brokerage`: the transactions of a brokerage on real databases, with the storage under them recorded."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.verb import Given, measuring
from assay.apps.cli.workloads.transactions import TARGETS, TARGETS_HELP, run_verb
from assay.workloads.brokerage.plan import BrokeragePlan
from assay.workloads.brokerage.tables import KIND

EXAMPLES = """
Examples:

`assay oltp brokerage embedded:/data/pg`

`assay oltp brokerage embedded:/data/pg load --customers 5000 --days 30`

`assay oltp brokerage embedded:/data/pg run check --users 16 --duration 5m`

`assay oltp brokerage postgresql://tester@db/brokerage run --search users --preset strict`

`assay oltp brokerage mariadb://tester@db/brokerage run --rate 200 --duration 2m`
"""


@usual("--preset", "--customers", "--users", "--rate", "--duration", "--search", "--limit", "--json")
@measuring("oltp", BrokeragePlan, on=opt.DATABASES_IN_TURNS, presets="orders (the published mix) or strict")
def brokerage(
    given: Given,
    target: Annotated[list[str] | None, typer.Argument(metavar=TARGETS, help=TARGETS_HELP, show_default=False)] = None,
) -> None:
    """Load, run and check a TPC-E-like workload on real databases."""
    run_verb(given, target or [], KIND)
