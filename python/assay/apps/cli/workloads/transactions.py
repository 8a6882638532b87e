"""What the verbs of transactions have in common: their targets and actions, and their options made into a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from assay.apps.cli.repeating import start
from assay.apps.cli.verb import Given
from assay.base.errors import UsageError
from assay.workloads.databases.plan import Action, split_actions
from assay.workloads.plan import Part

TARGETS = "TARGET... [ACTION]..."

TARGETS_HELP = (
    "embedded:DIR, postgresql://USER@HOST/DATABASE, mariadb://..., mssql://...; then actions, in that order: "
    + ", ".join(get_args(Action))
    + " (load unless loaded, run, check)."
)


def run_verb(given: Given, words: Sequence[str], part: str) -> None:
    """Run what the words ask for: targets, then actions.

    Parameters
    ----------
    part
        Name of the part.

    Raises
    ------
    UsageError
        No target is named, or options exclude each other.
    """
    given.shown.validate()
    targets, actions = split_actions(words)
    if not targets:
        raise UsageError("no target; name a database, such as embedded:./assay-data/pg")
    chosen = build_plan(given, actions)
    start("oltp", given.request(targets), [Part(name=part, title=chosen.title, plan=chosen)], given.shown)


def build_plan(given: Given, actions: Sequence[Action]) -> Any:
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
    return given.plan(data)
