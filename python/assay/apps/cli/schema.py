"""`assay schema`: the JSON Schemas of results and plans, made from the types that reading checks."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from assay.base.errors import UsageError
from assay.record.schemas import DIALECT, SCHEMAS, schema_id
from assay.workloads.registry import DEFAULT_KIND, workload_named

EXAMPLES = """
Examples:

`assay schema document > document.schema.json`

`assay schema point`

`assay schema plan --kind mailbox`
"""

NAMES = (*SCHEMAS, "plan")
"""What has a schema; `plan` is that of a kind of workload."""


def schema(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"Schema to print: {', '.join(NAMES)}.")],
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="Kind of workload of the plan.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of the JSON document, of a file in a run folder, or of a plan."""
    if name not in NAMES:
        raise UsageError(f"{name!r} has no schema; known: {', '.join(NAMES)}")
    if name == "plan":
        plan = workload_named(kind or DEFAULT_KIND, source="--kind").plan_type
        name = f"plan-{workload_named(kind or DEFAULT_KIND).kind}"
        made = {"$schema": DIALECT, "$id": schema_id(name), **plan.model_json_schema()}
    elif kind is not None:
        raise UsageError("--kind: only plans are of a kind; give it with: assay schema plan")
    else:
        made = SCHEMAS[name]()
    typer.echo(json.dumps(made, indent=1))
