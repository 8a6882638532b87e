"""What is left of a recording's own contract this month: minutes in breach, and minutes that it still allows.

The contract lies as `contract.toml` in the recording's folder. Days that are over are judged once and kept in the
user's cache, so that a look reads the day that goes on and no more, however long the recording is.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from typing_extensions import TypedDict

from assay.base.errors import AssayError, UsageError
from assay.base.paths import printable
from assay.base.reading import TEXT_MAX_BYTES, read_text, table_of
from assay.base.units import format_duration
from assay.insight.contracts.contract import LatencyClause, StorageContract, contract_of
from assay.insight.contracts.intervals import intervals_of
from assay.insight.contracts.latency import JudgedWindow, LatencyJudge, Minutes, month_begin_ns
from assay.insight.contracts.recorded import DAY_NS, JudgedDevices, RecordedSteps, judged_devices
from assay.insight.contracts.words import latency_words
from assay.record.flight import has_recording
from assay.record.flight_window import span
from assay.record.folder import Folder, replace_file
from assay.record.kept_file import form_of, kept_path, load_kept, save_kept
from assay.record.repeats import is_run

CONTRACT_NAME = "contract.toml"
FORM = 1
"""Changes with what is kept of a day."""
WRITTEN_NS = 3600 * 10**9
"""A day that ended longer ago is whole: the recorder writes minutes of it no more."""
WHOLE_TIME = "it is promised over the whole time; assay contract judge judges that"
NO_LATENCY = "it promises no latency, and minutes are counted of latencies; assay contract judge judges the rest"

Tone = Literal["plain", "good", "warn", "bad"]


class ClauseMonth(TypedDict):
    """A clause of latency this month.

    `left_minutes` are the minutes in breach that the contract still allows of the time that counted so far; null where
    that is unknown, and `why` says why. `sentence` says all of it.
    """

    name: str
    promise: str
    counted_minutes: float
    breached_minutes: float
    unknown_minutes: float
    excluded_minutes: float
    left_minutes: float | None
    why: str
    sentence: str
    tone: Tone


class ContractMonth(TypedDict):
    """A recording's contract this month; without clauses `why` says what is wrong."""

    recording: str
    title: str
    vendor: str
    from_utc_ns: int
    clauses: list[ClauseMonth]
    why: str


@dataclass(slots=True)
class KeptClauseDay:
    """A clause on one day: its minutes, and the I/Os that are judged with those of other days."""

    minutes: Minutes = field(default_factory=Minutes)
    window: JudgedWindow | None = None


@dataclass(frozen=True)
class KeptDays:
    """Days of a recording that are over, by their beginning, each with its clauses in order."""

    form: str
    days: dict[int, list[KeptClauseDay]]


def has_contract(recording: Path) -> bool:
    """Whether something with the name of a contract lies in a recording's folder."""
    return os.path.lexists(recording / CONTRACT_NAME) and has_recording(recording)


def recordings_with_contract(folders: Sequence[Path]) -> list[Path]:
    """Recordings that have a contract: some folders, and those directly in them."""
    found = []
    for folder in folders:
        below = sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink())
        found += [one for one in (folder, *below) if is_run(one) and has_contract(one)]
    return found


def keep_contract(contract: Path, recording: Path) -> None:
    """Lay a copy of a contract into a recording's folder; one that lies there is replaced.

    Raises
    ------
    UsageError
        The file cannot be read.
    IoFailed
        The copy cannot be written.
    """
    text = read_text(contract, f"--contract {printable(contract)}")
    replace_file(recording / CONTRACT_NAME, text.encode(), 0o600)


def contract_this_month(recording: Path, now_ns: int) -> ContractMonth:
    """A recording's contract in the month of a time; what is wrong is in it as `why`."""
    from_ns = month_begin_ns(now_ns)
    told: ContractMonth = {
        "recording": str(recording), "title": "", "vendor": "", "from_utc_ns": from_ns, "clauses": [], "why": "",
    }  # fmt: skip
    try:
        contract, digest = _read(recording)
        told["title"], told["vendor"] = contract.title, contract.vendor
        if not contract.latency:
            return {**told, "why": NO_LATENCY}
        days = _days(recording, contract, digest, from_ns, now_ns)
    except AssayError as error:
        return {**told, "why": str(error)}
    if not days:
        return {**told, "why": "nothing was recorded this month"}
    clauses = [_summed(contract, clause, [day[at] for day in days]) for at, clause in enumerate(contract.latency)]
    return {**told, "clauses": clauses}


def _read(recording: Path) -> tuple[StorageContract, str]:
    """The contract in a recording's folder, and a digest of it; links are not followed."""
    source = printable(recording / CONTRACT_NAME)
    try:
        with closing(Folder.open(recording)) as folder:
            data = folder.read(CONTRACT_NAME, TEXT_MAX_BYTES)
        text = data.decode()
    except OSError as error:
        raise UsageError(f"{source}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{source}: cannot be read: it is not UTF-8 text") from None
    return contract_of(table_of(text, source), source), hashlib.sha256(data).hexdigest()


def _days(
    recording: Path, contract: StorageContract, digest: str, from_ns: int, now_ns: int
) -> list[list[KeptClauseDay]]:
    """The days of a month until now: what is kept of them, else judged now."""
    path = kept_path("contract", [os.path.abspath(recording)])
    form = f"{form_of(FORM)} {digest} {os.stat(recording).st_ino}"
    kept = load_kept(path, KeptDays)
    known = kept.days if kept is not None and kept.form == form else {}
    days = {at: day for at, day in known.items() if at >= from_ns and len(day) == len(contract.latency)}
    judged: JudgedDevices | None = None
    found = []
    first_ns, last_ns = span(recording)
    for begin_ns in range(max(from_ns, first_ns // DAY_NS * DAY_NS), min(now_ns, last_ns), DAY_NS):
        if begin_ns not in days:
            judged = judged or judged_devices(recording, contract.storage)
            day, is_whole = _judged_day(recording, contract, judged, begin_ns)
            if is_whole and begin_ns + DAY_NS + WRITTEN_NS < now_ns:
                days[begin_ns] = day
                # Each day is kept as it is judged: what breaks off goes on from here.
                save_kept(path, KeptDays, KeptDays(form, days))
        else:
            day = days[begin_ns]
        if any(one.minutes.counted or one.minutes.excluded or one.window for one in day):
            found.append(day)
    return found


def _judged_day(
    recording: Path, contract: StorageContract, judged: JudgedDevices, begin_ns: int
) -> tuple[list[KeptClauseDay], bool]:
    """A day of the clauses, and whether all of its files could be read."""
    steps = RecordedSteps(recording, judged, since_ns=begin_ns, until_ns=begin_ns + DAY_NS)
    judges = [LatencyJudge(contract, clause) for clause in contract.latency]
    for one in intervals_of(steps, contract.interval_ns):
        for judge in judges:
            judge.take(one)
    day = []
    for judge in judges:
        window = judge.window if judge.clause.over in ("month", "all") else None
        if window is None:
            judge.end()
        day.append(KeptClauseDay(judge.minutes, window))
    return day, not steps.unread


def _summed(contract: StorageContract, clause: LatencyClause, days: Sequence[KeptClauseDay]) -> ClauseMonth:
    """A clause over the days of a month."""
    minutes = Minutes()
    whole: JudgedWindow | None = None
    for day in days:
        minutes.add(day.minutes)
        if day.window is not None:
            whole = whole or JudgedWindow(day.window.key)
            whole.times.add(day.window.times)
            whole.hours |= day.window.hours
            whole.undecided = whole.undecided or day.window.undecided
            whole.unknown = whole.unknown or day.window.unknown
    if whole is not None:
        all_time = clause.over == "all"
        outcome, why = (None, WHOLE_TIME) if all_time else LatencyJudge(contract, clause).outcome(whole)
        minutes.keep(outcome, why, sum(whole.hours.values()))
    return _told(contract, clause, minutes)


def _told(contract: StorageContract, clause: LatencyClause, minutes: Minutes) -> ClauseMonth:
    allowed = clause.allowed * minutes.counted
    left: float | None = max(allowed - minutes.missed, 0.0)
    why = max(minutes.unknown, key=lambda why: minutes.unknown[why], default="")
    if not minutes.counted:
        left, why = None, max(minutes.excluded, key=lambda why: minutes.excluded[why], default="nothing was recorded")
    elif minutes.missed <= allowed < minutes.missed + minutes.unknown_sum:
        # The minutes that cannot be told may be in breach.
        left = None
    found: ClauseMonth = {
        "name": clause.name, "promise": latency_words(contract, clause), "counted_minutes": minutes.counted,
        "breached_minutes": minutes.missed, "unknown_minutes": minutes.unknown_sum,
        "excluded_minutes": minutes.excluded_sum, "left_minutes": left, "why": why, "sentence": "", "tone": "plain",
    }  # fmt: skip
    sentence, tone = _words(clause, found)
    return {**found, "sentence": sentence, "tone": tone}


def _words(clause: LatencyClause, found: ClauseMonth) -> tuple[str, Tone]:
    if not found["counted_minutes"]:
        return f"{clause.name}: unknown, no minute counts: {found['why']}", "warn"
    breached = f"{clause.name}: {_time(found['breached_minutes'])} in breach"
    if found["left_minutes"] is None:
        return f"{breached}, {_time(found['unknown_minutes'])} unknown: {found['why']}", "warn"
    if found["breached_minutes"] > clause.allowed * found["counted_minutes"]:
        return f"{breached}, more than is allowed", "bad"
    if not clause.allowed:
        return f"{breached}, and none is allowed", "good"
    return f"{breached}, {_time(found['left_minutes'])} left", "good" if found["left_minutes"] else "warn"


def _time(minutes: float) -> str:
    return format_duration(minutes * 60) if minutes else "0 min"
