"""The `assay` command: one file per verb.

Nothing is imported here but what hides passwords and hears Ctrl-C, because everything else takes its time.
"""

from __future__ import annotations

import sys

from assay.base.command_line import end_at_signals, hide_passwords, open_closed_streams


def main() -> None:
    """Entry point of the console script."""
    open_closed_streams()
    end_at_signals()
    argv = hide_passwords(sys.argv)
    from assay.apps.cli.app import run

    run(argv)
