"""How often a history of unchanged runs raises a false alarm in a year, and after how many runs steps are found.

    python benches/history.py [--histories 10000]

Noises are those of tests/insight/noises.py. The table goes to benches/results/history.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from assay.insight.history.change_points import CHANCE, FALSE_ALARMS_A_YEAR, first_changes

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benches/results/history.md"
SEED = 20261129
AT_ONCE = 1000
"""Histories that are looked at together."""
KNOWN = (20, 40, 90, 180)
STEPS = (1.0, 2.0, 3.0, 5.0, 10.0)
AFTER = 60
STEPPED = 1000

sys.path.insert(0, str(ROOT / "tests" / "insight"))
from noises import DAYS, NOISES  # noqa: E402 - it is a module of the tests


def alarms(histories: int) -> Iterator[str]:
    """A row for each noise: in how many histories a change was found, and its share with the 95 % interval."""
    random = np.random.default_rng(SEED)
    for name, noise in NOISES.items():
        count = 0
        for done in range(0, histories, AT_ONCE):
            series = noise(random, min(AT_ONCE, histories - done), DAYS)
            count += int((first_changes(series)[0] >= 0).sum())
        share = count / histories
        half = 1.96 * np.sqrt(max(share * (1 - share), 1 / histories) / histories)
        print(f"{name}: {count} of {histories}", file=sys.stderr, flush=True)
        yield f"| {name} | {count:,} | {share:.2%} | {max(share - half, 0):.2%} to {share + half:.2%} |"


def found(figures: int) -> Iterator[str]:
    """A row for each number of unchanged runs: after how many runs half of the steps, and nine of ten, are found."""
    random = np.random.default_rng(SEED)
    for known in KNOWN:
        cells = []
        for step in STEPS:
            series = random.standard_normal((STEPPED, known + AFTER))
            series[:, known:] -= step
            found_at, _ = first_changes(series, CHANCE / figures)
            after = np.sort(np.where(found_at >= known, found_at - known + 1, AFTER + 1))
            half, most = after[STEPPED // 2], after[STEPPED * 9 // 10]
            cells.append(" / ".join("-" if runs > AFTER else str(runs) for runs in (half, most)))
        print(f"{known} runs, {figures} figures: {cells}", file=sys.stderr, flush=True)
        yield f"| {known} | {' | '.join(cells)} |"


def main() -> None:
    """Count, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=10_000)
    histories = parser.parse_args().histories
    lines = [
        "# False alarms of histories, and the runs until a step is found",
        "",
        "`python benches/history.py`",
        "",
        f"{histories:,} histories of {DAYS} runs without any change, for each noise. Promised: at most"
        f" {FALSE_ALARMS_A_YEAR:.0%}.",
        "",
        "| noise | histories with a change | share | 95 % interval |",
        "|---|---|---|---|",
        *alarms(histories),
    ]
    for figures in (1, 4):
        lines += [
            "",
            f"Runs after a step until half of {STEPPED:,} steps, and nine of ten, are found; independent normal noise,"
            f" steps in its standard deviations; {figures} figure{'s' if figures > 1 else ''} judged together. A dash:"
            f" not within {AFTER} runs.",
            "",
            "| unchanged runs before | " + " | ".join(f"{step:g}" for step in STEPS) + " |",
            "|---|" + "---|" * len(STEPS),
            *found(figures),
        ]
    RESULT.write_text("\n".join(lines) + "\n")
    print(f"written: {RESULT}")


if __name__ == "__main__":
    main()
