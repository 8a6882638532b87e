"""Sessions of the load generator: one is followed until nothing is outstanding any more."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from assay import _core

DRAIN_LOOK_S = 0.01


AnySession = _core.Session | _core.ModelSession
"""A workload at work, on the wall clock or on a model's; both have the same methods."""


def drain(session: AnySession, timeout_s: float) -> Iterator[dict[str, Any]]:
    """Stop a session and wait for what is outstanding; gives reports, of which the last says how it ended.

    The wait is here rather than in the compiled core, so that a second Ctrl-C is heard.
    """
    session.stop()
    if isinstance(session, _core.ModelSession):
        yield json.loads(session.finish(timeout_s))
        return
    deadline = time.monotonic() + timeout_s
    report = json.loads(session.poll())
    while report["state"] == "running" and time.monotonic() < deadline:
        yield report
        time.sleep(DRAIN_LOOK_S)
        report = json.loads(session.poll())
    yield report if report["state"] != "running" else json.loads(session.finish(0.0))
