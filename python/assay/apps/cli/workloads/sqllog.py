"""`assay oltp replay`: the statements of a server's log on another database, in their sessions and at their times."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.repeating import start
from assay.apps.cli.verb import Given, measuring
from assay.base.errors import UsageError
from assay.targets.databases.common.spec import is_database
from assay.workloads.plan import Part
from assay.workloads.sqllog.application import KIND
from assay.workloads.sqllog.plan import StatementsPlan

EXAMPLES = """
Examples:

`assay oltp replay postgresql://tester@new/shop postgresql.csv`

`assay oltp replay postgresql://tester@new/shop postgresql.csv --speed 2 --writes`

`assay oltp replay mariadb://tester@new/shop slow.log --dry-run`

`assay oltp replay postgresql://tester@new/shop postgresql.log --prefix "%m [%p] %u@%d "`
"""


@usual("--speed", "--writes", "--prefix", "--from-database", "--warmup", "--search", "--limit", "--json")
@measuring("oltp", StatementsPlan, on=opt.DATABASES_IN_TURNS)
def replay(
    given: Given,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATABASE LOG...",
            help="embedded:DIR, postgresql://USER@HOST/DATABASE or mariadb://...; then logs, the oldest first.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Replay the statements that a server logged on another database, and tell which became slower."""
    given.shown.validate()
    found = list(words or [])
    base = given.base()
    data = given.changed(base)
    if not found or not is_database(found[0]):
        raise UsageError("no target; name a database first, such as postgresql://tester@new/shop, then the logs")
    if second := next((word for word in found[1:] if is_database(word)), None):
        raise UsageError(f"{second!r}: a log is replayed on one database; name one")
    if found[1:]:
        data["logs"] = found[1:]
    elif base is None:
        raise UsageError("no log; name one behind the database, such as postgresql.csv")
    chosen: StatementsPlan = given.plan(data)
    start("oltp", given.request(found[:1]), [Part(name=KIND, title=chosen.title, plan=chosen)], given.shown)
