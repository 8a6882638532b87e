"""The `assay` command: one file per verb.

Nothing is imported here but what hides passwords and hears Ctrl-C, because everything else takes its time.
"""

from __future__ import annotations

import sys

from assay.base.command_line import end_at_signals, hide_passwords, open_closed_streams

COMPLETE = "__complete"
"""What a shell calls for completions: `assay __complete SHELL`, with the words on standard input."""


def main() -> None:
    """Entry point of the console script."""
    open_closed_streams()
    end_at_signals()
    if sys.argv[1:2] == [COMPLETE]:
        from assay.apps.cli.completing import answer

        answer(*sys.argv[2:4])
        return
    argv = hide_passwords(sys.argv)
    from assay.apps.cli.app import run

    run(argv)
