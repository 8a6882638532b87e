"""`assay trace`: I/O of one's own load, captured or imported, and understood. Each command is a file of its own."""

from __future__ import annotations

from assay.apps.cli import trace_import
from assay.apps.cli.commands import App

EXAMPLES = """
Examples:

`assay trace import sda.blktrace.0 sda.blktrace.1 -o orders.trace`

`assay trace import --help`
"""

app = App(
    name="trace",
    help="The I/O of your own load: import it from other programs, and see what it asks for.",
    epilog=EXAMPLES,
    no_args_is_help=True,
)

app.command(name="import", epilog=trace_import.EXAMPLES)(trace_import.import_trace)


@app.callback()
def _trace() -> None:
    """The verb has commands, also while there is one alone."""
