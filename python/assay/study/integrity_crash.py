"""After a crash: whether everything that a journal says was acknowledged is on the storage."""

from __future__ import annotations

import json
from typing import Any

from assay import _core


class CrashCheck:
    """The check of a journal, used as a `_core.Verification` that ends at once.

    Parameters
    ----------
    plan_json
        What `_core.Verification` takes, with the journal to be checked.

    Raises
    ------
    UsageError
        The journal is empty, truncated, or belongs to another target.
    OpenFailed, IoFailed, NotAnswering
        As journal and volumes behave.
    """

    def __init__(self, plan_json: str) -> None:
        self._report: dict[str, Any] = json.loads(_core.check_journal(plan_json))

    def poll(self) -> str:
        """The report of the check, with the form of `_core.Verification.poll`; its findings only once."""
        report = self._report
        self._report = {**report, "findings": [], "ticks": []}
        return json.dumps(report)

    def stop(self) -> None:
        """Nothing: the check is over."""

    def point(self, phase: int) -> str:
        """Never asked for: a check has no phases."""
        raise IndexError(phase)

    def engine(self) -> str:
        """No engine is measured."""
        return json.dumps({"backend": None, "features": [], "degraded": []})
