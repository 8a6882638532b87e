"""`benches/results/lab.md`: a line for each test of the lab that ran, and for each that has not.

A test leaves its line under `target/lab/rows`, so that the lab may be run in parts; `python -m lab.results` makes the
table of all lines that are there.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lab.machine import MADE, ROOT

ROWS = MADE / "rows"
RESULTS = ROOT / "benches" / "results" / "lab.md"

NOT_YET = "not run"

UNTRIED = (
    ("Power cuts", "dss and mailbox, cut and checked; a cut of the database's host together with its disk"),
    ("Power cuts", "orders of writes between two flushes other than the one that came (dm-log-writes in the guest)"),
    ("Paths", "LIO as the target of iSCSI: it listens in the initiator's own network, so tgt serves instead"),
    ("Paths", "NVMe over TCP"),
)
"""What the lab is still to try: no test exists. A line leaves this list with the test that tries it."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the results.

    Attributes
    ----------
    line
        What was tried, as `family: subject`, or `family: subject: verb` where each verb is tried on each subject.
    proves, cannot
        What a pass proves, and what software emulation cannot prove.
    """

    test: str
    line: str
    proves: str
    cannot: str
    outcome: str = NOT_YET
    observed: str = ""
    seconds: float = 0.0
    date: str = ""

    @property
    def parts(self) -> list[str]:
        """Family, subject, and verb where there is one."""
        return self.line.split(": ")

    def ended(self, outcome: str, observed: Sequence[str], why: str, seconds: float) -> None:
        """Keep the line as the test left it."""
        said = "; ".join([*observed, *([why] if why else [])])
        date = time.strftime("%Y-%m-%d", time.gmtime())
        replace(self, outcome=outcome, observed=said, seconds=seconds, date=date)._keep()

    def planned(self) -> None:
        """Keep the line as one that has not run, or as it ran at another time, in today's words."""
        before = Row(**json.loads(self._path.read_text())) if self._path.exists() else self
        replace(before, line=self.line, proves=self.proves, cannot=self.cannot)._keep()

    @property
    def _path(self) -> Path:
        return ROWS / f"{re.sub(r'[^A-Za-z0-9_-]', '-', self.test)}.json"

    def _keep(self) -> None:
        ROWS.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(asdict(self), indent=1))


def page(rows: Sequence[Row]) -> str:
    """Return the page: a section for each family, and what has no test."""
    ran = [row for row in rows if row.outcome != NOT_YET]
    passed = sum(row.outcome == "passed" for row in ran)
    text = [
        "# The lab's last results",
        f"`make lab`: {passed} of the {len(ran)} tests that ran passed, {len(rows) - len(ran)} have not run.\n"
        "Machines are emulated in software (QEMU with TCG) and run Debian's kernel; see CONTRIBUTING.md.",
        "On no line does emulation prove anything about latencies and rates, which are those of the emulator,\n"
        "nor about the firmware of disks and controllers, capacitors and cables. Further limits stand on their line.",
    ]
    for family, lines in _grouped(rows, 0).items():
        text.append(f"## {family}")
        text.append(_matrix(lines) if all(len(row.parts) == 3 for row in lines) else _table(lines))
    text += ["## Not run, because no test exists", "\n".join(f"- {family}: {what}." for family, what in UNTRIED)]
    return "\n\n".join(text) + "\n"


def _grouped(rows: Sequence[Row], part: int) -> dict[str, list[Row]]:
    """Rows by a part of their line, in the order of their lines."""
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.line):
        found.setdefault(row.parts[part], []).append(row)
    return found


def _table(rows: Sequence[Row]) -> str:
    head = ("tried", "outcome", "observed", "a pass proves", "emulation cannot prove", "s", "date")
    cells = [
        (": ".join(row.parts[1:]), row.outcome, row.observed, row.proves, row.cannot, f"{row.seconds:.0f}", row.date)
        for row in rows
    ]
    return _markdown(head, cells)


def _matrix(rows: Sequence[Row]) -> str:
    """A table of subjects and aspects, and below what each aspect proves."""
    aspects = _grouped(rows, 2)
    body = []
    for subject, of_subject in _grouped(rows, 1).items():
        by_aspect = {row.parts[2]: f"{row.outcome}: {row.observed}".removesuffix(": ") for row in of_subject}
        body.append((subject, *(by_aspect.get(aspect, NOT_YET) for aspect in aspects)))
    meanings = [
        f"- {aspect}: a pass proves that {of_aspect[0].proves}. Emulation cannot prove {of_aspect[0].cannot}."
        f" All together took {sum(row.seconds for row in of_aspect):.0f} s, until {max(row.date for row in of_aspect)}."
        for aspect, of_aspect in aspects.items()
    ]
    return _markdown(("device", *aspects), body) + "\n\n" + "\n".join(meanings)


def _markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(_cell(text) for text in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main() -> None:
    """Write the page of all lines that are there."""
    RESULTS.write_text(page([Row(**json.loads(path.read_text())) for path in sorted(ROWS.glob("*.json"))]))
    print(RESULTS.relative_to(ROOT))


if __name__ == "__main__":
    main()
