"""What an integrity run has found: the compiled core's reports in, the `integrity` of docs/integrity.md out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from assay.base.units import format_bytes
from assay.targets.files.spec import FAULTS
from assay.workloads.integrity.core_plan import STATE_BYTES
from assay.workloads.integrity.core_report import (
    CoreFinding,
    FileWork,
    LastWrite,
    PagePlace,
    VerificationReport,
    VerifiedCounts,
)
from assay.workloads.integrity.evidence import FOLDER_NAME, Evidence
from assay.workloads.integrity.files import PlacedFile
from assay.workloads.integrity.power import noted_drives
from assay.workloads.integrity.shapes import Expected, Finding, Integrity, Journal, Phase, VerifiedFile
from assay.workloads.integrity.sqliosim_log import LOG_NAME
from assay.workloads.integrity.verdict import done_words

DETAILS_MAX = 25
"""Findings of a kind, persistent and transient apart, told in detail and with evidence; all are counted."""

NOTHING: VerifiedCounts = {
    "pages_verified": 0, "bytes_verified": 0, "pages_written": 0, "bytes_written": 0, "resizes": 0,
}  # fmt: skip
"""Counts before the first report."""


class TakenFinding(NamedTuple):
    """A finding as docs/integrity.md has it, and its evidence with names of files in the history.

    `is_news` is false for one that was told by this name before, `in_detail` for one that is only counted.
    """

    finding: Finding
    raw: Evidence
    is_news: bool
    in_detail: bool


class IntegrityResult:
    """Everything one integrity run has found so far.

    Parameters
    ----------
    files
        Files of the imitated database, in the order the core was given them.
    seed, run_id
        Seed and id of the run.
    understood
        What a `sqliosim.cfg` asked for, a line each.
    started_ns
        Begin of the run, UTC; the core's times count from it.
    """

    def __init__(
        self, files: Sequence[PlacedFile], *, seed: int, run_id: int, understood: Sequence[str], started_ns: int
    ) -> None:
        self._files = files
        self._seed, self._run_id = seed, run_id
        self._understood = list(understood)
        self._started_ns = started_ns
        self._kinds: dict[int, tuple[str, bool]] = {}
        self._details: dict[int, Finding] = {}
        self._last: VerificationReport | None = None
        self._alike: Counter[tuple[str, bool]] = Counter()
        """Findings so far by kind, persistent and transient apart."""
        self.phases: list[Phase] = []
        """Finished phases, with the ids of their points."""

    @property
    def findings_count(self) -> int:
        """How many findings there are."""
        return len(self._kinds)

    @property
    def has_persistent(self) -> bool:
        """Whether a finding is still to be seen on the storage."""
        return any(persistent for _, persistent in self._kinds.values())

    def take(self, report: VerificationReport) -> list[TakenFinding]:
        """Note a report; gives its findings, new ones and changed ones."""
        self._last = {**report, "ticks": [], "findings": []}
        taken = []
        for raw in report["findings"]:
            number = raw["id"]
            named = (raw["kind"], raw["persistent"])
            is_news = self._kinds.get(number) != named
            self._kinds[number] = named
            finding = self._finding(raw)
            if is_news:
                self._alike[named] += 1
            in_detail = number in self._details or self._alike[named] <= DETAILS_MAX
            if in_detail:
                self._details[number] = finding
            taken.append(TakenFinding(finding, self._evidence(raw), is_news, in_detail))
        return taken

    def _evidence(self, raw: CoreFinding) -> Evidence:
        return {
            "expected_image": raw["expected_image"],
            "received_image": raw["received_image"],
            "other_images": raw["other_images"],
            "history": [{**entry, "file": self._name(entry["file"])} for entry in raw["history"]],
        }

    def document(self) -> Integrity:
        """The `integrity` of docs/integrity.md as far as the run has come."""
        report = self._last
        counts = report["counts"] if report else NOTHING
        audited = report["audited"] if report else False
        data = [file for file in self._files if not file.log]
        logs = [file for file in self._files if file.log]
        pages = sum(file.pages for file in data)
        told: Integrity = {
            "passed": audited and not self._kinds,
            "audited": audited,
            "findings": _counted(kind for kind, _ in self._kinds.values()),
            "transient": _counted(kind for kind, persistent in self._kinds.values() if not persistent),
            "persistent": _counted(kind for kind, persistent in self._kinds.values() if persistent),
            "injected": _named(report["injected"] if report else None),
            "observable": _named(report["observable"] if report else None),
            "masked": _named(report["masked"] if report else None),
            "seed": self._seed,
            "run_identity": f"{self._run_id:016x}",
            "cycles": report["cycle"] if report else 0,
            "pages": pages,
            "pages_verified": counts["pages_verified"],
            "bytes_verified": counts["bytes_verified"],
            "pages_written": counts["pages_written"],
            "bytes_written": counts["bytes_written"],
            "resizes": counts["resizes"],
            "expected_state_bytes": STATE_BYTES * sum(file.pages_most for file in self._files),
            "log_blocks": sum(file.pages for file in logs),
            "stopped_on_error": report["stopped_on_error"] if report else False,
            "phases": self.phases,
            "files": self.file_facts(),
            "understood": self._understood,
            "details": list(self._details.values()),
            "details_left_out": len(self._kinds) - len(self._details),
            "evidence": FOLDER_NAME,
            "error_log": LOG_NAME,
        }
        if report and "journal" in report:
            found = report["journal"]
            known = {key: value for key, value in found.items() if key != "note"}
            told["journal"] = cast("Journal", {**known, "drives": noted_drives(found["note"])})
        return told

    def file_facts(self) -> list[VerifiedFile]:
        """Each file of the database, with what its I/O was like."""
        reported = self._last["files"] if self._last else []
        return [_file_facts(file, raw) for file, raw in zip(self._files, reported, strict=False)]

    def _finding(self, raw: CoreFinding) -> Finding:
        expected = raw["expected"]
        return {
            "id": f"F{raw['id']:04d}",
            "kind": raw["kind"],
            "also": raw["also"],
            "persistent": raw["persistent"],
            "file": self._name(raw["file"]),
            "page": raw["page"],
            "offset_bytes": raw["offset_bytes"],
            "length_bytes": raw["length_bytes"],
            "phase": raw["phase"],
            "cycle": raw["cycle"],
            "found_utc_ns": self._started_ns + raw["found_ns"],
            "by": raw["by"],
            "rereads": raw["rereads"],
            "explanation": raw["explanation"],
            "expected": None if expected is None else self._expected(expected),
            "units": [{**unit, "file": self._name(unit["file"])} for unit in raw["units"]],
            "differing_bytes": raw["differing_bytes"],
            "ranges": raw["ranges"],
            "elsewhere": self._elsewhere(raw["elsewhere"]),
            "operation": raw["operation"],
            "errno": raw["errno"],
            "evidence": None,
        }

    def _expected(self, raw: LastWrite) -> Expected:
        return {
            "file": self._name(raw["file"]),
            "page": raw["page"],
            "generation": raw["generation"],
            "written_utc_ns": None if raw["written_ns"] is None else self._started_ns + raw["written_ns"],
            "writer": raw["writer"],
            "lsn": raw["lsn"],
            "checksum": raw["checksum"],
        }

    def _elsewhere(self, raw: PagePlace | None) -> Expected | None:
        return None if raw is None else {"file": self._name(raw["file"]), "page": raw["page"]}

    def _name(self, index: int | None) -> str | None:
        return None if index is None else self._files[index].name


def findings_line(integrity: Integrity) -> str:
    """Counts of findings by name, in one line."""
    persistent = integrity["persistent"] or {}
    found = [
        f"{name} {count} ({persistent[name]} persistent)" for name, count in integrity["findings"].items() if count
    ]
    return ", ".join(found)


def verified_line(integrity: Integrity) -> str:
    """How much was verified, in words."""
    return done_words(integrity, f" ({format_bytes(integrity['bytes_verified'] or 0)})")


def _counted(kinds: Iterable[str]) -> dict[str, int]:
    counts = dict.fromkeys(FAULTS, 0)
    for kind in kinds:
        counts[kind] += 1
    return counts


def _named(counts: Mapping[str, int] | None) -> dict[str, int] | None:
    return None if counts is None else dict.fromkeys(FAULTS, 0) | dict(counts)


def _file_facts(file: PlacedFile, raw: FileWork) -> VerifiedFile:
    return {
        "name": file.name,
        "path": str(file.path),
        "log": file.log,
        "size_bytes": raw["size_bytes"],
        "target_io_ms": raw["target_io_ns"] / 1e6,
        "average_io_ms": raw["average_io_ns"] / 1e6,
        "throttled": raw["throttled"],
        "reads": raw["reads"],
        "scatter_reads": raw["scatter_reads"],
        "writes": raw["writes"],
        "gather_writes": raw["gather_writes"],
        "io_time_ms": raw["io_time_ns"] / 1e6,
        "slowest_io_ms": raw["slowest_io_ns"] / 1e6,
    }
