"""The document that fio writes: runs in it, their jobs, and which jobs ran at the same time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from assay.telemetry.importers.importer import NotTaken
from assay.telemetry.importers.taken import TakenFile
from assay.workloads.imported import amount, whole
from assay.workloads.io.importers.fio_options import Record

JOBS_MAX = 10_000

ALL_CLIENTS = "All clients"
"""What fio calls the sum of all hosts, which it adds to their jobs."""

TOGETHER_SHARE = 0.5
"""Jobs that share less of the shorter one's time ran one after the other."""

CLOCK_MS = 5000
"""By how much the time between two documents of a run may differ from that between their runtimes."""

STATUS_MS = 500
"""The shortest time between two reports of a run; --status-interval takes a second at least."""


class JobsTogether(NamedTuple):
    """Jobs that ran at the same time.

    Attributes
    ----------
    is_last
        No other group ran until the document was written.
    """

    document: Record
    jobs: list[Record]
    is_last: bool


def start(text: str) -> int | None:
    """Where a document begins: a brace at the beginning of a line."""
    match = re.search(r"^[ \t]*\{", text, re.MULTILINE)
    return match.end() - 1 if match else None


def runs(text: str, taken: TakenFile) -> list[Record]:
    """The document of each run in a file; of several that --status-interval wrote of one run the last."""
    return without_repeats(_documents(text, taken), taken)


def without_repeats(documents: Iterable[Record], taken: TakenFile) -> list[Record]:
    """The documents of a file without those that --status-interval wrote before the last of a run."""
    found: list[Record] = []
    repeated = 0
    for value in documents:
        if found and _is_same_run(found[-1], value):
            found[-1] = value
            repeated += 1
        else:
            found.append(value)
    if repeated:
        taken.note(
            f"holds {repeated + len(found)} documents of --status-interval; each counts from the start, so the last is"
            " taken"
        )
    if len(found) > 1:
        taken.note(f"holds {len(found)} runs, one after the other")
    return found


def _documents(text: str, taken: TakenFile) -> Iterator[Record]:
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    at = start(text) or 0
    if text[:at].strip():
        taken.note(f"begins with what is not fio's document, which is left out: {_line(text[:at])}")
    while True:
        try:
            value, end = decoder.raw_decode(text, at)
        except RecursionError:
            raise NotTaken("is nested too deeply for a document of fio") from None
        except ValueError as error:
            what = str(error).partition(":")[0].lower()
            line = text.count("\n", 0, getattr(error, "pos", at)) + 1
            raise NotTaken(
                f"is damaged or cut off at line {line} ({what[:60]}); fio mixes messages into what it prints, so give"
                " it --output=FILE"
            ) from None
        if not isinstance(value, Mapping) or "fio version" not in value:
            raise NotTaken("holds another document than fio's")
        yield value
        following = start(text[end:])
        if following is None:
            if text[end:].strip():
                taken.note(f"ends with what is not fio's document, which is left out: {_line(text[end:])}")
            return
        at = end + following


def _is_same_run(before: Record, after: Record) -> bool:
    """Whether two documents are of one run: the same jobs, which count up as the time of day goes on."""
    first, second = jobs_of(before), jobs_of(after)
    names, others = (
        [(one.get("jobname"), one.get("groupid"), one.get("pid")) for one in jobs] for jobs in (first, second)
    )
    if names != others or _total(first) > _total(second):
        return False
    starts, begun = ([one.get("job_start") for one in jobs] for jobs in (first, second))
    if any(starts) and any(begun):
        return starts == begun
    written = [whole(one.get("timestamp_ms"), "timestamp_ms") for one in (before, after)]
    ran = [max((_runtime_ms(job) for job in jobs), default=0.0) for jobs in (first, second)]
    if not all(written):
        # Without times a run that goes on is known by what grows, and runs that were appended took about as long.
        grows = _total(second) > _total(first) and ran[1] - ran[0] >= STATUS_MS
        return grows and max(map(_longest, second)) >= max(map(_longest, first))
    return abs((written[1] - written[0]) - (ran[1] - ran[0])) <= CLOCK_MS


def _total(jobs: list[Record]) -> int:
    return sum(whole(side.get("total_ios"), "total_ios") for job in jobs for _, side in sides(job))


def _longest(job: Record) -> float:
    """The longest latency of all directions, in the unit of the document: it never falls while a run goes on."""
    sides = [side for name in ("read", "write", "mixed") if isinstance(side := job.get(name), Mapping)]
    timed = [
        one
        for side in sides
        for key in ("clat", "lat", "clat_ns", "lat_ns")
        if isinstance(one := side.get(key), Mapping)
    ]
    return max((amount(one.get("max"), "max") or 0.0 for one in timed), default=0.0)


def _runtime_ms(job: Record) -> float:
    return max((amount(side.get("runtime"), "runtime") or 0.0 for _, side in sides(job)), default=0.0)


def jobs_of(document: Record) -> list[Record]:
    """Jobs of a document; in client and server mode those of all hosts, without their sum."""
    found = document.get("jobs")
    clients = document.get("client_stats")
    if found is None and isinstance(clients, list):
        found = [one for one in clients if not isinstance(one, Mapping) or one.get("jobname") != ALL_CLIENTS]
    if not isinstance(found, list) or not found:
        raise NotTaken("has no jobs")
    if len(found) > JOBS_MAX:
        raise NotTaken(f"has more than {JOBS_MAX:,} jobs; let fio sum them up (group_reporting)")
    return [one for one in found if isinstance(one, Mapping)]


def groups_of(document: Record, taken: TakenFile) -> list[JobsTogether]:
    """Jobs by what ran at the same time: those of a group, unless they waited for each other."""
    found: dict[object, list[Record]] = {}
    for job in jobs_of(document):
        group = job.get("groupid")
        found.setdefault(group if isinstance(group, int) else 0, []).append(job)
    parts = [part for jobs in found.values() for part in _in_turn(jobs)]
    if len(parts) > len(found):
        taken.note("some jobs of a group waited for others: they are points of their own")
    return [JobsTogether(document, part, len(parts) == 1) for part in parts]


def _in_turn(jobs: list[Record]) -> list[list[Record]]:
    """Jobs of a group in the parts that ran one after the other."""
    starts = [whole(job.get("job_start"), "job_start") for job in jobs]
    if all(starts):
        parts: list[list[Record]] = []
        end = 0.0
        for begin, job in sorted(zip(starts, jobs, strict=True), key=lambda one: one[0]):
            ran = _runtime_ms(job)
            if not parts or (end - begin) < TOGETHER_SHARE * min(ran, max(_runtime_ms(one) for one in parts[-1])):
                parts.append([])
                end = 0.0
            parts[-1].append(job)
            end = max(end, begin + ran)
        return parts
    # Without times `wait_for` alone says who waited.
    place = {str(job.get("jobname")): number for number, job in enumerate(jobs)}
    awaited = [place.get(options_of(job.get("job options")).get("wait_for", "")) for job in jobs]
    stage = [0] * len(jobs)
    for _ in jobs:
        stage = [0 if other is None else min(stage[other] + 1, len(jobs)) for other in awaited]
    return [[job for job, own in zip(jobs, stage, strict=True) if own == one] for one in sorted(set(stage))]


def options_of(value: object) -> dict[str, str]:
    """Options of a job; those of a client come as a list of one."""
    if isinstance(value, list):
        value = value[0] if value else {}
    return {str(name): str(one)[:1000] for name, one in value.items()} if isinstance(value, Mapping) else {}


def _line(text: str) -> str:
    return text.strip().splitlines()[0][:100]


def sides(job: Record) -> Iterator[tuple[str, Record]]:
    """Reads, writes and both of a job."""
    for name in ("read", "write", "mixed"):
        side = job.get(name)
        if isinstance(side, Mapping):
            yield name, side
