"""A plan of transactions as the core takes it."""

from __future__ import annotations

import json

from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.plan import TransactionsPlan


def core_plan(
    target: DatabaseTarget,
    plan: TransactionsPlan,
    application: Application,
    *,
    seed: int,
    interval_s: float,
    keeps_orders: bool,
) -> str:
    """The plan as `assay._core.OltpRun` takes it, JSON.

    Parameters
    ----------
    seed
        Decides what users draw.
    interval_s
        Length of a tick.
    keeps_orders
        Whether the core keeps what was acknowledged, where the kind can.
    """
    rate = None if plan.rate is None else {"rate": plan.rate, "poisson": plan.arrivals == "poisson"}
    asked = {
        "workload": application.kind,
        "databases": [
            {
                "name": database.name,
                "connection": database.connection().core_plan() | {"kind": database.dialect},
                "scale": target.scale[database.name],
            }
            for database in target.databases
        ],
        "users": plan.users,
        "connections": plan.connections,
        "threads": plan.threads,
        "load": {"kind": "closed"} if rate is None else {"kind": "open", **rate},
        "mix": plan.weights,
        "deck": plan.draw == "deck",
        "procedures": plan.mode == "procedures",
        "retries": plan.retries,
        "reconnect_s": plan.reconnect_s,
        "seed": seed,
        "interval_ns": round(interval_s * 1e9),
        **plan.core_fields(target),
        **({"keeps_orders": True} if keeps_orders else {}),
    }
    return json.dumps(asked)
