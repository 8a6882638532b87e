"""`benches/results/lab.md`: a line for each test of the lab that ran, and for each that has not.

A test leaves its line under `target/lab/rows`, so that the lab may be run in parts; `python -m lab.results` makes the
table of all lines that are there.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from lab.machine import MADE, ROOT

ROWS = MADE / "rows"
RESULTS = ROOT / "benches" / "results" / "lab.md"

NOT_RUN = (
    ("Power cuts", "PostgreSQL and MariaDB under `assay oltp`, cut and checked"),
    ("Power cuts", "replay of every flush point of a write log (blklogwrites, dm-log-writes)"),
    ("Kinds of devices", "LUKS, thin pools, discard, write-through disks by the bus"),
    ("Paths", "kernel iSCSI against LIO over delay and loss; retransmits; `diagnose` names the slow path"),
    ("Paths", "figures against fio inside the same machine"),
    ("Faults", "a full thin pool; dm-log-writes prefixes; dm-error in the middle of every verb"),
    ("Night", "eight hours of `verify` with all users on md RAID while disks fail and are rebuilt"),
)
"""What the lab is still to try: no test exists. A line leaves this list with the test that tries it."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the results.

    Attributes
    ----------
    line
        What was tried, as `family: subject`.
    proves, cannot
        What a pass proves, and what software emulation cannot prove.
    """

    test: str
    line: str
    proves: str
    cannot: str
    outcome: str = "not run"
    observed: str = ""
    seconds: float = 0.0
    date: str = ""

    def ended(self, outcome: str, observed: Sequence[str], why: str, seconds: float) -> None:
        """Keep the line as the test left it."""
        said = "; ".join([*observed, *([why] if why else [])])
        date = time.strftime("%Y-%m-%d", time.gmtime())
        kept = asdict(self) | {"outcome": outcome, "observed": said, "seconds": seconds, "date": date}
        ROWS.mkdir(parents=True, exist_ok=True)
        (ROWS / f"{re.sub(r'[^A-Za-z0-9_-]', '-', self.test)}.json").write_text(json.dumps(kept, indent=1))


def table(rows: Sequence[Row]) -> str:
    """Return the page."""
    passed = sum(row.outcome == "passed" for row in rows)
    lines = [
        "# The lab's last results",
        "",
        f"`make lab`: {passed} of {len(rows)} tests passed."
        " Machines are emulated in software (QEMU with TCG) and run Debian's kernel; see CONTRIBUTING.md.",
        "",
        "On no line does emulation prove anything about latencies and rates, which are those of the emulator, nor",
        "about the firmware of disks and controllers, capacitors and cables. Further limits stand on their line.",
        "",
        "| tried | outcome | observed | proves | cannot prove | s | date |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: row.line):
        cells = [row.line, row.outcome, row.observed, row.proves, row.cannot, f"{row.seconds:.0f}", row.date]
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    lines += ["", "Not run, because no test exists yet:", ""]
    lines += [f"- {family}: {what}." for family, what in NOT_RUN]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page of all lines that are there."""
    RESULTS.write_text(table([Row(**json.loads(path.read_text())) for path in sorted(ROWS.glob("*.json"))]))
    print(RESULTS.relative_to(ROOT))


if __name__ == "__main__":
    main()
