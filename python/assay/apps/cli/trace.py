"""`assay trace`: I/O of one's own load, captured or imported, and understood. Each command is a file of its own."""

from __future__ import annotations

from assay.apps.cli import trace_import, trace_record, trace_show
from assay.apps.cli.commands import App
from assay.apps.cli.workloads import trace_plan

EXAMPLES = """
Examples:

`assay trace record /var/lib/postgresql --for 10m -o orders.trace`

`assay trace import sda.blktrace.0 sda.blktrace.1 -o orders.trace`

`assay trace show orders.trace`
"""

app = App(
    name="trace",
    help="The I/O of your own load: capture it, or import it from other programs, and see what it asks for.",
    epilog=EXAMPLES,
    no_args_is_help=True,
)

app.command(name="record", epilog=trace_record.EXAMPLES)(trace_record.record)
app.command(name="import", epilog=trace_import.EXAMPLES)(trace_import.import_trace)
app.command(name="show", epilog=trace_show.EXAMPLES)(trace_show.show_trace)
app.command(name="plan", epilog=trace_plan.EXAMPLES)(trace_plan.plan_trace)
