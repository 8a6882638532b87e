"""What verifying told of a run, in the form that the report counts on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from assay.record.source import RunFacts, records
from assay.workloads.integrity.shapes import Finding, Integrity

KIND = "integrity"


def integrity_of(facts: RunFacts) -> Integrity | None:
    """What a run found, as docs/integrity.md describes it; None when it verified nothing.

    Counts hold only numbers, and lists only records of the expected form.
    """
    found = cast("Integrity | None", facts.told(KIND))
    if found is None:
        return None
    made = found.copy()
    made["findings"] = _counts(found.get("findings")) or {}
    made["persistent"] = _counts(found.get("persistent")) or {}
    made["transient"] = _counts(found.get("transient")) or {}
    made["injected"] = _counts(found.get("injected"))
    made["observable"] = _counts(found.get("observable"))
    made["masked"] = _counts(found.get("masked"))
    made["phases"] = records(found.get("phases"))
    made["files"] = records(found.get("files"))
    made["understood"] = [str(line) for line in found.get("understood") or []]
    made["details"] = [_finding(detail) for detail in records(found.get("details"))]
    return made


def _finding(finding: Finding) -> Finding:
    made = finding.copy()
    made["ranges"] = [pair for pair in finding.get("ranges") or [] if isinstance(pair, list) and len(pair) == 2]
    made["units"] = [
        unit for unit in records(finding.get("units")) if None not in (unit.get("first"), unit.get("last"))
    ]
    made["also"] = [str(name) for name in finding.get("also") or []]
    made["expected"] = finding.get("expected") or {}
    return made


def _counts(counts: Mapping[str, int] | None) -> dict[str, int] | None:
    """Counts that are numbers; None where there are no counts."""
    if not isinstance(counts, Mapping):
        return None
    return {name: count for name, count in counts.items() if isinstance(count, int)}
