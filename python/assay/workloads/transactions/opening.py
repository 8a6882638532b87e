"""What transactions need of their databases, beside their tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from assay.base.errors import UsageError
from assay.targets.databases.common.layout import refuse_layout
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.databases.opening import examine_actions
from assay.workloads.databases.opening import prepare as prepare_databases
from assay.workloads.databases.plan import load_connections
from assay.workloads.transactions.background import refuse_unknown
from assay.workloads.transactions.plan import TransactionsPlan

P = TypeVar("P", bound=TransactionsPlan)

OWN_CONNECTIONS = 2
"""Connections of Assay's beside those of the users: the recorder's, and one for what a point asks meanwhile."""


def prepare(
    target: DatabaseTarget,
    plan: P,
    show: Callable[[str], None],
    *,
    examining: Callable[[DatabaseTarget, P], P] | None = None,
) -> P:
    """Open the databases and examine them for a plan, unless that was done for this very plan.

    Raises
    ------
    UsageError, OpenFailed, NotSupported, RefusedTarget, OutOfSpace
        As `assay.workloads.databases.opening.prepare` raises them.
    """
    return prepare_databases(
        target,
        plan,
        examine=examining or examine,
        connections=connections_needed(plan, len(target.databases)),
        show=show,
        folders=plan.layout.directories,
    )


def examine(target: DatabaseTarget, plan: P) -> P:
    """Refuse what the plan's actions cannot do with what is there, before anything is written.

    Returns
    -------
    P
        The plan with a search that ends where the servers' connections do.

    Raises
    ------
    UsageError, RefusedTarget, OutOfSpace
        There is nothing to run on, something else is there, or there is too little of something.
    """
    if not plan.shares(len(target.databases))[-1]:
        size = target.databases[0].table_set.size
        raise UsageError(
            f"--{size.option} {plan.scale_asked}: {len(target.databases)} databases need one each at least"
        )
    examine_actions(target, plan)
    if "run" not in plan.actions:
        return plan
    for database in target.databases:
        refuse_unknown(database, plan.background)
        scale = target.scale[database.name]
        refuse_layout(database, places=plan.layout.tablespaces, ways=plan.ways_of(scale), scale=scale)
    for option, count in (("users", plan.users), ("connections", plan.connections)):
        if count is not None and count < len(target.databases):
            raise UsageError(f"--{option} {count}: {len(target.databases)} databases need one each at least")
    return _within_connections(target, plan)


def _within_connections(target: DatabaseTarget, plan: P) -> P:
    count, facts = len(target.databases), target.facts()
    free = {facts["name"]: facts["connections_free"] for facts in facts["databases"]}
    name = min(free, key=lambda one: math.inf if (count_free := free[one]) is None else count_free, default=None)
    least = free[name] if name is not None else None
    if name is None or least is None:
        return plan
    # The recorder and work beside the transactions have connections of their own.
    least = max(least - OWN_CONNECTIONS - len(plan.background), 0)
    of_load = _of_load(plan, plan.connections or plan.users, plan.users, count)
    if of_load > least:
        most = next(facts["max_connections"] for facts in facts["databases"] if facts["name"] == name)
        raise UsageError(
            f"{name}: {of_load * count} connections for {plan.users} users are more than its server"
            f" takes ({least} are free, max_connections is {most}); give fewer --users, or let them share:"
            f" --connections {_most_users(plan, least, count)}"
        )
    if (
        plan.search.axis != "users"
        or plan.connections is not None
        or plan.search.last_load <= _most_users(plan, least, count)
    ):
        return plan
    most_users = _most_users(plan, least, count)
    if plan.search.end is not None:
        raise UsageError(
            f"{name}: a search up to {plan.search.end:.0f} users needs as many connections, and {least} are free;"
            f" give --end {most_users}, or let users share: --connections"
        )
    target.notices.append(f"the search ends at {most_users} users: the server of {name} takes no more connections")
    return plan.model_copy(update={"search": plan.search.model_copy(update={"end": float(most_users)})})


def _of_load(plan: TransactionsPlan, connections: int, users: int, databases: int) -> int:
    """Connections of users and of who works for them, to each database."""
    return max(math.ceil((connections + plan.desk_connections(users, databases)) / databases), 1)


def _most_users(plan: TransactionsPlan, each: int, databases: int) -> int:
    """Users with a connection each that fit so many connections to each database."""
    most = each * databases
    while most > 1 and _of_load(plan, most, most, databases) > each:
        most -= 1
    return most


def connections_needed(plan: TransactionsPlan, databases: int) -> int:
    """Connections to each database that the plan may open at once."""
    users = max(plan.users, int(plan.search.last_load)) if plan.search.axis == "users" else plan.users
    of_run = _of_load(plan, plan.connections or users, users, databases)
    return max(of_run, load_connections(plan))
