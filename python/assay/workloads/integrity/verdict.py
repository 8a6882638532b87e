"""The verdict line of a run that verified."""

from __future__ import annotations

from assay.base.units import count_of
from assay.record.shapes.point import VerdictLine
from assay.workloads.integrity.shapes import Integrity


def done_words(integrity: Integrity, size: str = "") -> str:
    """How many reads were verified and how many writes there were: a page counts as often as it was read or written."""
    return (
        f"{count_of(integrity['pages_verified'] or 0, 'read')}{size} verified, "
        f"{count_of(integrity['pages_written'] or 0, 'write')}, of pages and log blocks"
    )


def integrity_line(integrity: Integrity) -> VerdictLine:
    """The verdict line of an integrity run (docs/integrity.md): failed on any finding, passed once all was audited.

    Of a target that injects faults itself, it is failed where others were found than were injected.
    """
    from assay.workloads.integrity.report.faults import self_test

    found = {name: count for name, count in integrity["findings"].items() if count}
    verified, tested = done_words(integrity), self_test(integrity)
    if tested is not None:
        met, meaning = tested[1] and (True if integrity["audited"] else None), f"{tested[0]}; {verified}"
    elif found:
        met, meaning = False, f"FAILED: {', '.join(f'{name} {count}' for name, count in found.items())}; {verified}"
    elif integrity["passed"] and (journal := integrity.get("journal")):
        acknowledged = f"{journal['acknowledged']:,} acknowledged writes"
        met, meaning = True, f"everything promised by {acknowledged} is there or newer, and nothing is torn; {verified}"
    elif integrity["passed"]:
        met, meaning = True, f"all {integrity.get('pages') or 0:,} pages were right when read at the end; {verified}"
    else:
        met, meaning = None, f"nothing wrong was found until the run ended early, before its audit; {verified}"
    value = sum(found.values())
    return VerdictLine(
        question="integrity findings", limit=None, value=value, unit="count", met=met, meaning=meaning, point_id=None
    )
