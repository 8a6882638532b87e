"""`assay oltp`: transactions on real databases, with the storage under them recorded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli import options as opt
from assay.cli.running import OutputOptions, databases_open, refuse_decided, run_to_end, show_finished, show_plan
from assay.cli.verb import Given, measuring
from assay.errors import RunFolderError, UsageError
from assay.results.run_folder import RunFolder
from assay.run.execute import new_folder
from assay.run.part import Part, part_from_report
from assay.run.resumed import refuse_strange_folder
from assay.workloads.tpcc.plan import Action, TpccPlan, split_actions
from assay.workloads.tpcc.runner import DISCLAIMER, actions_done
from assay.workloads.tpcc.target import DatabaseRequest, DatabaseTarget

EXAMPLES = """
Examples:

`assay oltp tpcc embedded:/data/pg`

`assay oltp tpcc embedded:/data/pg load --warehouses 100`

`assay oltp tpcc embedded:/data/pg run check --users 16 --duration 5m`

`assay oltp tpcc postgresql://tester@db/tpcc run --search users --limit "response.p90<500ms"`

`assay oltp tpcc mariadb://tester@db/tpcc run --rate 200 --duration 2m`
"""

PART = TpccPlan.model_fields["kind"].default

app = typer.Typer(
    name="oltp",
    help="Run transactions on real databases: embedded PostgreSQL, or servers of yours.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.callback()
def _oltp() -> None:
    """Run transactions on real databases: embedded PostgreSQL, or servers of yours."""


@app.command(name=PART, epilog=EXAMPLES)
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
    resume_run: opt.Resume = None,
) -> None:
    """Load, run and check a TPC-C-like workload on real databases."""
    given.shown.validate()
    if resume_run is not None:
        _resume(resume_run, given.shown, given.context)
        return
    targets, actions = split_actions(target or [])
    if not targets:
        raise UsageError("no target; name a database, such as embedded:./assay-data/pg")
    chosen = build_plan(given, actions)
    request = DatabaseRequest(targets=targets)
    found = request.choose()
    if given.shown.dry_run:
        _show_plan(found, chosen, given.shown)
        return
    with databases_open(found, Part(name=PART, title=chosen.title, plan=chosen), given.shown) as part:
        folder = new_folder(given.shown.output, "oltp", sys.argv[1:], request.to_dict(), [part])
        run_to_end("oltp", folder, found, [part], given.shown)


def build_plan(given: Given, actions: Sequence[Action]) -> TpccPlan:
    """The plan that preset, file and options ask for together: options win over both.

    Raises
    ------
    UsageError
        Options exclude each other, or a value is not accepted; the message names the option.
    """
    base: Any = given.base() or given.preset_named("hammerdb")
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


def _resume(path: Path, options: OutputOptions, context: typer.Context) -> None:
    """Go on with a run folder and exit."""
    refuse_decided(context)
    folder = RunFolder.open(path)
    manifest = folder.manifest
    if manifest.get("verb") != "oltp" or "request" not in manifest:
        raise RunFolderError(
            f"--resume {path}: is a run of {manifest.get('verb')!r}, which `assay oltp tpcc` cannot go on with"
        )
    folder.check_goes_on()
    if manifest["status"] != "done":
        refuse_strange_folder(folder)
    part = part_from_report(manifest["parts"][0], manifest.get("study"), source=f"--resume {path}")
    plan = part.plan
    if not isinstance(plan, TpccPlan):
        raise RunFolderError(f"--resume {path}: its plan is not one of transactions; the folder was changed")
    try:
        found = DatabaseRequest(**manifest["request"]).choose()
    except TypeError as error:
        raise RunFolderError(f"--resume {path}: its request is not one of databases; the folder was changed") from error
    if options.dry_run:
        _show_plan(found, plan, options)
        return
    if manifest["status"] == "done":
        show_finished(folder, [part], options)
    folder.lock()
    with databases_open(found, part, options, actions_done(manifest, part.name)):
        run_to_end("oltp", folder, found, [part], options)


def _show_plan(target: DatabaseTarget, plan: TpccPlan, options: OutputOptions) -> None:
    """What would be done; no server is asked or started."""
    show_plan("oltp", target, [Part(name=PART, title=plan.title, plan=plan)], options)
    if not options.json:
        print(f"note: {DISCLAIMER}")
