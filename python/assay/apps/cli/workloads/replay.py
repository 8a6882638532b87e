"""`assay replay`: the I/Os of a trace, asked for again elsewhere, at their own times or faster."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.running import start
from assay.apps.cli.verb import Given, measuring
from assay.base.errors import UsageError
from assay.workloads.plan import Part
from assay.workloads.replay.plan import REPLAY, ReplayPlan

PART = "replay"

EXAMPLES = """
Examples:

`assay replay orders.trace /data/f.dat`

`assay replay orders.trace "model:ps6100xv?raid=10" --search speed --limit "read.p99<=5ms"`

`assay replay orders.trace /dev/sdb --overwrite /dev/sdb --map scale --window busiest:10m`

`assay replay a.trace model:ps6210xs --with b.trace@30s --with c.trace@1m`
"""


@usual(
    "--speed", "--closed", "--think", "--window", "--map", "--with", "--search", "--limit", "--overwrite", "--json",
)  # fmt: skip
@measuring("replay", ReplayPlan, on=opt.ON_STORAGE)
def replay(
    given: Given,
    trace: Annotated[str | None, typer.Argument(metavar="TRACE", help="Trace to replay.", show_default=False)] = None,
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET", help="File, folder, device, array: or model:NAME.", show_default=False),
    ] = None,
    more: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="TRACE@TIME",
            help="Lay another trace over the first, begun after this time: b.trace@30s.",
            rich_help_panel=REPLAY,
        ),
    ] = None,
) -> None:
    """Replay the I/Os of traces on other storage, and find how much more of such a load it holds."""
    base = given.base()
    if base is None and trace is None:
        raise UsageError("no trace given; give TRACE and TARGET, as in assay replay orders.trace /data/f.dat")
    paths = list(path or [])
    data = given.changed(base)
    if base is not None and trace is not None:
        # The plan names the traces: all that is given is the target.
        paths.insert(0, trace)
    elif base is None:
        data["traces"] = [trace, *(more or [])]
    if base is not None and more:
        raise UsageError("--with: the plan names its traces; add this one to its key traces")
    chosen: ReplayPlan = given.plan(data)
    request = given.request(paths, size=chosen.size)
    start("replay", request, [Part(name=PART, title=chosen.title, plan=chosen)], given.shown)
