"""Commands that go on from runs of several kinds, each with what it is for; `run` is a folder for a shell."""

from __future__ import annotations


def compare_step(run: str) -> str:
    """Comparing with the same command after a change."""
    return f"assay compare {run} AFTER (once the same command ran again, after a change)"


def diagnose_step(run: str) -> str:
    """Finding the bottleneck."""
    return f"assay diagnose {run} (which tier and resource holds it back)"
