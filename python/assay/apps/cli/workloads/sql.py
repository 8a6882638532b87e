"""`assay oltp sql`: the user's own SQL, in scripts for pgbench, on real databases, with the storage recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.repeating import start
from assay.apps.cli.verb import Given, measuring
from assay.base.errors import UsageError
from assay.targets.databases.common.spec import is_database, parse_database
from assay.workloads.databases.plan import ACTIONS, DATABASE
from assay.workloads.plan import Part
from assay.workloads.sql.plan import SqlPlan
from assay.workloads.sql.scripts import init_source, parse_scripts
from assay.workloads.sql.tables import KIND
from assay.workloads.transactions.plan import MIX

EXAMPLES = """
Examples:

`assay oltp sql embedded:/data/pg tpcb-like --init pgbench --scale 10`

`assay oltp sql postgresql://tester@db/shop order.sql@3 search.sql@1 --users 16 --duration 5m`

`assay oltp sql embedded:/data/pg order.sql --init schema.sql --search users --limit "response.p99<50ms"`

`assay oltp sql mariadb://tester@db/shop order.sql -D customers=100000 --rate 500`
"""


@usual("--init", "--define", "--users", "--rate", "--duration", "--search", "--limit", "--json")
@measuring("oltp", SqlPlan, on=opt.DATABASES_IN_TURNS)
def sql(
    given: Given,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATABASE... SCRIPT[@WEIGHT]... [ACTION]...",
            help="embedded:DIR, postgresql://USER@HOST/DATABASE, mariadb://..., mssql://...; scripts for pgbench, or"
            " tpcb-like, simple-update, select-only; then actions: load, run, save, restore (run; load first with"
            " --init).",
            show_default=False,
        ),
    ] = None,
    init: Annotated[
        list[str] | None,
        typer.Option(
            "--init",
            help="File of SQL that makes the tables, once; pgbench: its own tables.",
            metavar="FILE",
            rich_help_panel=DATABASE,
        ),
    ] = None,
    define: Annotated[
        list[str] | None,
        typer.Option("--define", "-D", help="Variable of the scripts: NAME=VALUE.", rich_help_panel=MIX),
    ] = None,
) -> None:
    """Run your own SQL, in scripts for pgbench, on real databases."""
    given.shown.validate()
    targets, scripts, actions = split_words(words or [])
    base = given.base()
    data = given.changed(base)
    if scripts:
        data["scripts"] = parse_scripts(scripts, parse_database(targets[0]).kind)
    elif base is None:
        raise UsageError("no script; name a file of SQL, or one of tpcb-like, simple-update, select-only")
    if init:
        data["init"] = [init_source(path) for path in init]
    if define:
        data["defines"] = [*data.get("defines", ()), *(_variable(text) for text in define)]
    if actions:
        data["actions"] = actions
    elif init:
        data["actions"] = ["load", "run"]
    if given.values.get(("search", "axis")) == "rate" and ("rate",) in given.values:
        data.setdefault("search", {}).setdefault("start", data.pop("rate"))
    chosen = given.plan(data)
    start("oltp", given.request(targets), [Part(name=KIND, title=chosen.title, plan=chosen)], given.shown)


def split_words(words: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Databases, scripts and actions, in this order.

    Raises
    ------
    UsageError
        No database is named, or a word stands in the wrong place.

    Examples
    --------
    >>> split_words(["embedded:/data/pg", "a.sql@3", "b.sql", "run"])
    (['embedded:/data/pg'], ['a.sql@3', 'b.sql'], ['run'])
    """
    rest = list(words)
    actions: list[str] = []
    while rest and rest[-1] in ACTIONS:
        actions.insert(0, rest.pop())
    is_target = [is_database(word) for word in rest]
    count = is_target.index(False) if False in is_target else len(rest)
    if not count:
        raise UsageError("no target; name a database first, such as embedded:./assay-data/pg")
    if any(is_target[count:]):
        late = rest[count + is_target[count:].index(True)]
        raise UsageError(f"{late!r} stands behind a script; name the databases first, then the scripts")
    return rest[:count], rest[count:], actions


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--define {text}: invalid variable definition; accepted: NAME=VALUE")
    return name, value
