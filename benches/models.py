"""Benchmarks of the array model and of parity, and how near its predictions come; outputs kept under benches/results.

Runs the criterion benchmarks of crates/array-model, the published study, and calibration against hidden truth.

    python benches/models.py [--seeds 50]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results"
HEADERS = {
    "model": "Host I/Os simulated per second on one core, and the time of a search; workers and histograms included",
    "parity": "Parity arithmetic on one core, GB of data per second, beside a plain loop and an erasure-coding crate",
}


def machine() -> str:
    """Processor, kernel and compiler, for the head of a result."""
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{cpu}, {os.cpu_count()} CPUs, Linux {platform.release()}, {rustc}"


def criterion(bench: str) -> None:
    """Run one criterion benchmark and keep what it prints."""
    command = ["cargo", "bench", "--quiet", "--package", "assay-array-model", "--bench", bench, "--", "--quiet"]
    done = subprocess.run([*command, "--discard-baseline"], cwd=ROOT, capture_output=True, text=True, check=True)
    figures = [line for line in done.stdout.splitlines() if line.strip()]
    head = [f"# {HEADERS[bench]}", f"# cargo bench -p assay-array-model --bench {bench}; [low estimate high], 95 %"]
    keep(f"{bench}.txt", "\n".join([*head, f"# {machine()}", "", *figures]) + "\n")


def published() -> None:
    """Run the published study and keep its table."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "assay", "study", "run", "published", "--json", "--quiet", "-o", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    document: dict[str, Any] = json.loads(done.stdout)
    lines = ["# Published figures beside the model's (`assay study run published`)", ""]
    lines += ["| figure | study | published | model | error | used for fitting |", "|---|---|---|---|---|---|"]
    for row in document["study"]["published"]:
        lines.append("| " + " | ".join(str(cell) for cell in _cells(row)) + " |")
    keep("published.md", "\n".join(lines) + "\n")


def _cells(row: dict[str, Any]) -> list[str]:
    def shown(value: Any) -> str:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
        return "-" if value is None else str(value)

    error = row.get("error_share")
    return [
        str(row.get("title")),
        str(row.get("source")),
        shown(row.get("published")),
        str(row.get("model_text") or shown(row.get("model"))),
        ("holds" if row.get("holds") else "does not hold") if error is None else f"{error:+.1%}",
        "yes" if row.get("fit") else "no",
    ]


def keep(name: str, text: str) -> None:
    """Write a result and print it."""
    (RESULTS / name).write_text(text, encoding="utf-8")
    print(text)


def main() -> None:
    """Run everything."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=50)
    given = arguments.parse_args()
    criterion("model")
    criterion("parity")
    published()
    command = [sys.executable, str(ROOT / "benches" / "hidden_truth.py"), "--seeds", str(given.seeds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    keep("hidden-truth.txt", done.stdout)


if __name__ == "__main__":
    main()
