"""Verdict lines of loading and of checking."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from assay.base.units import format_duration
from assay.record.shapes.point import VerdictLine
from assay.workloads.databases.shapes import Loading
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.shapes import Condition, CutOfPower, number_of


def load_line(load: Loading, application: Application) -> VerdictLine:
    """The verdict line of what was loaded."""
    meaning = (
        f"{load['rows']:,} rows at {load['rows_per_s']:,.0f} rows/s, {format_duration(load['seconds'] or 0.0)} in all"
    )
    meaning += "; the rest of a load that was cut short" if load["resumed"] else ""
    amount, size = int(number_of(load, application.tables.scale) or 0), application.tables.size
    told = f"{size.words(amount)}: {meaning}"
    return VerdictLine(
        question=f"{size.things} loaded", limit=None, value=amount, unit="count", met=None, meaning=told, point_id=None
    )


def consistency_line(conditions: Sequence[Condition], application: Application) -> VerdictLine:
    """The verdict line of the consistency conditions of a database (docs/oltp-results.md): missed on any violation."""
    violated = [condition for condition in conditions if not condition["met"]]
    if violated:
        listed = "; ".join(
            f"condition {condition['id']} ({condition['title']}) {condition['violations']:,} times in"
            f" {condition['database']}"
            for condition in violated
        )
        meaning = f"FAILED: {listed}"
    else:
        count = len({condition["id"] for condition in conditions})
        left_out = sorted(application.after_load_only - {condition["id"] for condition in conditions})
        meaning = f"all {count} conditions hold"
        if left_out:
            applies = "".join(f"; no. {one} applies only after loading" for one in left_out)
            meaning = f"{count} of {application.conditions_count} conditions checked, all hold{applies}"
    value = sum(condition["violations"] for condition in conditions)
    return VerdictLine(
        question="consistency violations",
        limit=None,
        value=value,
        unit="count",
        met=not violated,
        meaning=meaning,
        point_id=None,
    )


def power_line(cut: CutOfPower, application: Application) -> VerdictLine:
    """The verdict line of a power cut: missed where a transaction that was acknowledged is not there any more."""
    missing, known, things = cut["missing"], cut["acknowledged"], application.first_plural
    if cut["error"] is not None:
        meaning = f"FAILED: it did not come back: {cut['error']}"
    elif missing:
        first = cut["examples"][0]
        moment = datetime.fromtimestamp((first["acknowledged_utc_ns"] or 0) / 1e9, UTC).strftime("%H:%M:%S.%f")[:-3]
        named = f"({application.acknowledged_key}) = ({', '.join(map(str, first['key']))})"
        meaning = (
            f"FAILED: {missing:,} of {known:,} acknowledged {things} are missing; the first has {named} in"
            f" {first['database']} and was acknowledged at {moment} UTC"
        )
    else:
        meaning = f"the database recovered, and all of {known:,} acknowledged {things} are there"
    is_met = missing == 0 and cut["error"] is None
    return VerdictLine(
        question=f"{things} missing after the power cut",
        limit=None,
        value=missing,
        unit="count",
        met=is_met,
        meaning=meaning,
        point_id=None,
    )
