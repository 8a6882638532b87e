"""A run that is given up."""

from __future__ import annotations

from typing import Any

from assay.workloads.mailbox.running import Running


class Endless:
    """A core with more under way than anybody waits for."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def abort(self) -> None:
        self.said.append("abort")

    def poll(self) -> str:
        self.said.append("poll")
        return '{"state": "running"}'


def test_a_model_is_not_waited_for() -> None:
    running: Any = Running.__new__(Running)
    running.has_ended, running.model, running.core = False, object(), Endless()
    running.abandon(3600)
    assert (running.has_ended, running.core.said) == (True, ["abort"])
