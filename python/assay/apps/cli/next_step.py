"""What to do after a verb has ended: commands that go on from what it found, printed before the path of its report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.base.paths import plain, printable
from assay.workloads.next_steps import compare_step, diagnose_step


def next_steps(manifest: Mapping[str, Any], folder: Path) -> list[str]:
    """Commands that go on from a run, each with what it is for; none from a run that did not end well."""
    run = shlex.quote(printable(folder))
    if manifest.get("status", "done") != "done":
        return []
    if "repeats" in manifest and "parts" not in manifest:
        return [compare_step(run)]
    if (sizing := manifest.get("sizing")) is not None:
        if sizing.get("holds"):
            return [f"assay report --paper {run} (the purchase with its reasons, to forward)"]
        return ["assay size NEED --set KEY=VALUE (what a smaller need or another rule would take)"]
    if manifest.get("reliability") is not None:
        return [f"assay report --paper {run} (the answer with its reasons, to forward)"]
    if manifest.get("imported") is not None:
        return [f"assay compare {run} RUN (against a run of the same workload)"]
    if manifest.get("recording") is not None:
        return [
            diagnose_step(run),
            f"assay size --from {run} (which arrays hold its busiest hours)",
        ]
    if manifest.get("study") is not None:
        return [f"assay report --paper {run} (question, method and figures, to forward)"]
    if (test := manifest.get("contract")) is not None:
        contract = shlex.quote(printable(str(test.get("source"))))
        return [f"assay contract judge {contract} RECORDING (the same contract over months of a recording)"]
    if manifest.get("verb") == "assess":
        return [diagnose_step(run), compare_step(run)]
    from assay.workloads.registry import DEFAULT_KIND, workload_known

    parts = [part.get("plan") or {} for part in manifest.get("parts") or []]
    kinds = dict.fromkeys(workload_known(plan.get("kind") or DEFAULT_KIND) for plan in parts)
    steps = [step for kind in kinds if kind is not None for step in kind.next_steps(manifest, run)]
    return list(dict.fromkeys(steps))


def print_next(steps: Sequence[str]) -> None:
    """Print the steps, a line each: a command that is broken over lines could not be copied."""
    for step in steps:
        print(plain(f"next: {step}"))
