"""The verdict lines of a run of mailboxes: what was achieved, and whether every page was right."""

from __future__ import annotations

from collections.abc import Iterator

from assay.base.units import format_duration, format_iops, format_throughput
from assay.record.shapes.point import VerdictLine
from assay.workloads.mailbox.figures import ACHIEVED
from assay.workloads.mailbox.result import ACHIEVED_SHARE, half_width_iops, has_achieved, seconds_to_decide
from assay.workloads.mailbox.shapes import BadPage, Mailbox


def mailbox_lines(told: Mailbox) -> Iterator[VerdictLine]:
    """What a run found, in the order in which reports of such tests give it."""
    achieved, target = told.get("achieved_iops"), told.get("target_iops")
    profile = told.get("profile")
    seconds = (profile["measured_s"] if profile else None) or 1.0
    if target is not None and achieved is not None:
        yield _line(
            "achieved transactional I/O per second",
            achieved,
            "iops",
            has_achieved(achieved, target, seconds),
            _achieved_words(achieved, target, seconds, told["mailboxes"] or 0),
            told.get("point_id"),
            limit=f"{ACHIEVED.limit}>={ACHIEVED_SHARE * target:g}",
        )
    if backup := told.get("backup"):
        whole = "" if backup["complete"] else ", not all of it"
        yield _line(
            "database backup", backup["bytes_per_s"], "bytes_per_s", None,
            f"read {format_throughput(backup['bytes_per_s'] or 0)} in {format_duration(backup['seconds'] or 0)}{whole}",
        )  # fmt: skip
    if recovery := told.get("recovery"):
        yield _line(
            "log files replayed per second", round(recovery["log_files_per_s"] or 0, 2), "count", None,
            f"replayed {recovery['log_files']} log files in {format_duration(recovery['seconds'] or 0)}, "
            f"{recovery['log_files_per_s'] or 0:.2f} a second",
        )  # fmt: skip
    yield _pages_line(told)
    unknown = "ended early" if told.get("ended_early", True) else "unknown: what is unknown above may fail it"
    words = {True: "passed", False: _failed_words(told), None: unknown}[told.get("passed")]
    line = _line("overall test result", None, None, overall(told), CRITERIA_ALONE if is_unchecked(told) else words)
    # A model is not asked for checksums: the performance criteria decide what the command returns.
    yield {**line, "asked": not is_unchecked(told), "sums_up": True}


CRITERIA_ALONE = "performance criteria met; checksums not checked"
"""The overall result where pages hold no bytes."""


def is_unchecked(told: Mailbox) -> bool:
    """Whether the performance criteria are met and no page could be verified: nothing decides the overall result."""
    return bool(told.get("passed")) and told.get("pages_verified") is None


def overall(told: Mailbox) -> bool | None:
    """The overall result; None where it is not decided."""
    return None if is_unchecked(told) else told.get("passed")


def _achieved_words(achieved: float, target: float, seconds: float, mailboxes: int) -> str:
    text = f"{achieved:,.0f} of {target:,.0f} asked by {mailboxes:,} mailboxes"
    if has_achieved(achieved, target, seconds) is not None:
        return text
    half_width = half_width_iops(achieved, seconds)
    ends = " to ".join(f"{achieved + sign * half_width:,.0f}" for sign in (-1, 1))
    longer = format_duration(max(seconds_to_decide(target), 2 * seconds))
    return (
        f"{text}; unknown: its 95 % interval, {ends}, holds the {ACHIEVED_SHARE * target:,.0f} that are the least;"
        f" measure for {longer} or longer"
    )


def _failed_words(told: Mailbox) -> str:
    """That a test failed; maintenance is named where it made more reads than mailboxes made transactional I/Os."""
    reads = [one.get("maintenance_read") for one in told.get("databases") or ()]
    per_s, achieved = sum((one.get("per_s") or 0.0) for one in reads if one), told.get("achieved_iops")
    if achieved is None or per_s <= achieved:
        return "failed"
    return (
        f"failed; maintenance made {format_iops(per_s)} reads of 256 KiB a second beside {format_iops(achieved)}"
        " transactional I/Os, and is likely what they wait for (--maintenance sets its rate)"
    )


def _pages_line(told: Mailbox) -> VerdictLine:
    bad, verified = told["bad_pages"], told.get("pages_verified")
    if bad:
        first: BadPage = (told.get("bad") or [{}])[0]
        where = f"{first.get('database')}, page {first.get('page')}" if first.get("page") is not None else "a log"
        return _line(
            "bad pages", bad, "count", False, f"FAILED: {bad} bad pages, the first: {where}: {first.get('what')}"
        )
    if verified is None:
        return _line("bad pages", None, "count", None, "a model holds no bytes to verify")
    if told.get("verified"):
        return _line("bad pages", 0, "count", True, f"{verified:,} pages verified, every page at the end among them")
    return _line("bad pages", 0, "count", None, f"{verified:,} pages verified; not every page, the run ended early")


def _line(
    question: str,
    value: float | None,
    unit: str | None,
    met: bool | None,
    meaning: str,
    point_id: str | None = None,
    limit: str | None = None,
) -> VerdictLine:
    return VerdictLine(
        question=question, limit=limit, value=value, unit=unit, met=met, meaning=meaning, point_id=point_id
    )
