"""What verifying told of a run, in the form that the report counts on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.record.source import Record, RunFacts, records

KIND = "integrity"


def integrity_of(facts: RunFacts) -> Record | None:
    """What a run found, as docs/integrity.md describes it; None when it verified nothing.

    Counts hold only numbers, and lists only records of the expected form.
    """
    found = facts.told(KIND)
    if found is None:
        return None
    made: dict[str, Any] = {**found}
    for name in ("findings", "persistent", "transient"):
        made[name] = _counts(found.get(name))
    for name in ("injected", "observable", "masked"):
        made[name] = _counts(found[name]) if isinstance(found.get(name), Mapping) else None
    for name in ("phases", "files"):
        made[name] = records(found.get(name))
    made["understood"] = [str(line) for line in found.get("understood") or []]
    made["details"] = [_finding(detail) for detail in records(found.get("details"))]
    return made


def _finding(finding: Record) -> Record:
    ranges = [pair for pair in finding.get("ranges") or [] if isinstance(pair, list) and len(pair) == 2]
    units = [unit for unit in records(finding.get("units")) if None not in (unit.get("first"), unit.get("last"))]
    also = [str(name) for name in finding.get("also") or []]
    return {**finding, "ranges": ranges, "units": units, "also": also, "expected": finding.get("expected") or {}}


def _counts(counts: Record | None) -> Record:
    return {name: count for name, count in (counts or {}).items() if isinstance(count, int)}
