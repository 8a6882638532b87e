"""`assay agent`: one host's share of a run that is spread over several; started by `--hosts` and `--cluster`."""

from __future__ import annotations

import signal


def agent() -> None:
    """Do one host's share of a run, on command of the process at the other end of the pipe."""
    # Ctrl-C is for the coordinator, and a pipe that ends is what ends an agent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from assay.fleet.agent import serve

    serve()
