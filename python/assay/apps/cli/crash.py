"""`assay crash`: the states that storage may be in after a crash, tried on a real program."""

from __future__ import annotations

from assay.apps.cli import crash_explain, crash_run, crash_show
from assay.apps.cli.commands import App

EXAMPLES = """
Examples:

`assay crash run postgresql --at crash-pg --states 5000`

`assay crash run 'python3 load.py {}' --check 'python3 check.py {}' --at crash-mine`

`assay crash show 1:214:-3 --at crash-pg`

`assay crash explain /dev/sdb --log writes.log --base before.img`
"""

app = App(
    name="crash",
    help="The states that storage may be in after a crash, tried on a real program: which promises it needs.",
    epilog=EXAMPLES,
    no_args_is_help=True,
)

app.command(name="run", epilog=crash_run.EXAMPLES)(crash_run.crash_run)
app.command(name="show", epilog=crash_show.EXAMPLES)(crash_show.crash_show)
app.command(name="explain", epilog=crash_explain.EXAMPLES)(crash_explain.crash_explain)
