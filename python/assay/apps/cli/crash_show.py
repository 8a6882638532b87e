"""`assay crash show`: one state again, for a debugger."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from assay.apps.cli import crash_options as of_crash
from assay.apps.cli import options as opt

EXAMPLES = """
Examples:

`assay crash show 1:214:-3 --at crash-pg`

`assay crash show 1:214:all --at crash-pg --atomic 4K`
"""


def crash_show(
    name: Annotated[str, typer.Argument(metavar="STATE", help="Name of a state, as a run printed it.")],
    at: of_crash.At,
    row: Annotated[int, typer.Option("--row", min=0, max=999, help="Row of the matrix.")] = 0,
    atomic: of_crash.Atomic = "512",
    in_order: of_crash.InOrder = False,
    no_cache: of_crash.NoCache = False,
    withdraw: of_crash.Withdraw = None,
    debug: opt.Debug = False,
) -> None:
    """Mount a state once more, in a mount namespace of its own, until standard input ends.

    Give the same promises as for the run: under other promises the name means another state.
    """
    del debug
    from assay.insight.crash.folder import known_trial
    from assay.insight.crash.process import CrashProcess

    promises = of_crash.promises_of(atomic, in_order, no_cache, withdraw)
    known = known_trial(at, row)
    process = CrashProcess(
        known.folder,
        known.subject,
        known.volume,
        checks=False,
    )
    try:
        place, number = process.show(name, promises)
        print(f"state {name} is at {place}")
        if os.geteuid() == 0:
            print(f"a shell there: nsenter --target {number} --mount sh")
        print("end of input or Ctrl-C takes it away", flush=True)
        sys.stdin.read()
    except KeyboardInterrupt:
        pass
    finally:
        process.close()
