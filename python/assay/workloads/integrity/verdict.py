"""The verdict line of a run that verified."""

from __future__ import annotations

from assay.record.shapes.point import VerdictLine
from assay.workloads.integrity.shapes import Integrity


def integrity_line(integrity: Integrity) -> VerdictLine:
    """The verdict line of an integrity run (docs/integrity.md): failed on any finding, passed once all was audited."""
    found = {name: count for name, count in integrity["findings"].items() if count}
    verified = f"{integrity['pages_verified']:,} pages verified, {integrity['pages_written']:,} written"
    if found:
        met, meaning = False, f"FAILED: {', '.join(f'{name} {count}' for name, count in found.items())}; {verified}"
    elif integrity["passed"] and (journal := integrity.get("journal")):
        acknowledged = f"{journal['acknowledged']:,} acknowledged writes"
        met, meaning = True, f"everything promised by {acknowledged} is there or newer, and nothing is torn; {verified}"
    elif integrity["passed"]:
        met, meaning = True, f"every page was read and right at the end; {verified}"
    else:
        met, meaning = None, f"nothing wrong was found until the run ended early, before its audit; {verified}"
    value = sum(found.values())
    return VerdictLine(
        question="integrity findings", limit=None, value=value, unit="count", met=met, meaning=meaning, point_id=None
    )
