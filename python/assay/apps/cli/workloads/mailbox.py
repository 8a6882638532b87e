"""`assay mailbox`: how many mailboxes storage holds, and whether it keeps their pages."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.running import start
from assay.apps.cli.verb import Given, measuring
from assay.workloads.mailbox.plan import MailboxPlan
from assay.workloads.options import TARGET
from assay.workloads.plan import Part

PART = MailboxPlan.model_fields["kind"].default

EXAMPLES = """
Examples:

`assay mailbox /data --mailboxes 100 --mailbox-size 50M --duration 10m`

`assay mailbox --volume db1=/disk1/db,db2=/disk2/db,log1=/disk3/log,log2=/disk4/log --databases 2 --mailboxes 500`

`assay mailbox "model:fas2040?volumes=5" --mailboxes 500 --iops-per-mailbox 0.12 --search rate`

`assay mailbox /data --mailboxes 100 --mailbox-size 50M --type recovery`
"""


@usual(
    "--mailboxes", "--mailbox-size", "--iops-per-mailbox", "--databases", "--type", "--volume", "--duration",
    "--search", "--overwrite", "--json",
)  # fmt: skip
@measuring("mailbox", MailboxPlan, on=opt.WRITES_FILES)
def mailbox(
    given: Given,
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET", help="File, folder, device, or model:NAME.", show_default=False),
    ] = None,
    volumes: Annotated[
        list[str] | None,
        typer.Option(
            "--volume",
            help="Volumes by role, or by database: data=PATH,log=PATH or db1=PATH,log1=PATH.",
            rich_help_panel=TARGET,
        ),
    ] = None,
) -> None:
    """Run mailboxes on databases of checksummed pages, derived from what Jetstress does."""
    base = given.base() or given.preset_default()
    data = given.changed(base)
    if ("limits",) not in given.values and not base.user_limits:
        # They follow from test and duration, which options may have changed.
        data.pop("limits", None)
    chosen: MailboxPlan = given.plan(data)
    request = given.request(path, volumes=volumes or [], database=True, numbered=True)
    start("mailbox", request, [Part(name=PART, title=chosen.title, plan=chosen)], given.shown)
