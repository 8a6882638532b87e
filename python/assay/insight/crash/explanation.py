"""What the content of a disk after a power cut says of it: which promises allow it, and which writes it lacks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.units import count_of, format_bytes
from assay.insight.crash.membership import BASE, CrashJudge, Flags, Membership, Numbers, SeenVolume, durable_requests
from assay.insight.crash.promises import WITHDRAWN, Promises
from assay.insight.crash.write_log import SECTOR_BYTES, read_write_log

BrokenKind = Literal["lost", "torn", "foreign"]

_NAMES = {"flush": "flush honoured", "fua": "FUA honoured", "discard": "discards deterministic"}
"""Promises in words, by the names with which they are withdrawn."""

_FOREIGN = -2
"""In place of a request's number: bytes that no request wrote there."""


@dataclass(frozen=True, kw_only=True)
class BrokenWrite:
    """Sectors of one request that the promises do not allow as they are.

    Attributes
    ----------
    kind
        `lost`: a durable request is not there. `torn`: an outstanding one is there in part of what survives whole or
        not at all. `foreign`: sectors hold bytes that no request wrote there.
    request
        Its number in the log, counted from 0; of foreign bytes where no request was durable None.
    at_ns, durable_ns
        When it was submitted, and what made it durable; 0 in logs without times.
    durable_by
        Number of the flush that made it durable, or its own: it was forced, or the storage has no volatile cache.
    wrong_bytes, first_byte
        How much of it is wrong, and where that begins on the volume.
    """

    kind: BrokenKind
    request: int | None
    at_ns: int
    offset_bytes: int
    length_bytes: int
    wrong_bytes: int
    first_byte: int
    durable_by: int | None = None
    durable_ns: int = 0

    @property
    def words(self) -> str:
        """In one sentence.

        Examples
        --------
        >>> BrokenWrite(kind="lost", request=7, at_ns=10**9, offset_bytes=8192, length_bytes=4096, wrong_bytes=512,
        ...             first_byte=8704, durable_by=9, durable_ns=2 * 10**9).words
        'write 7 (4 KiB at 8192, 1.000 s) was durable by flush 9 (2.000 s); 512 B of it are not there, from 8704 on'
        """
        what = (
            f"write {self.request} ({format_bytes(self.length_bytes)} at {self.offset_bytes}{_time(self.at_ns, ', ')})"
        )
        wrong = format_bytes(self.wrong_bytes)
        if self.kind == "torn":
            return f"{what} is there in part: {wrong} of what survives whole or not at all, from {self.first_byte} on"
        flush = f"flush {self.durable_by}{_time(self.durable_ns, ' (', ')')}"
        durable = f"{what} was durable by {flush if self.durable_by != self.request else 'itself'}; "
        if self.kind == "lost":
            return f"{durable}{wrong} of it are not there, from {self.first_byte} on"
        over = durable if self.request is not None else ""
        return f"{over}{wrong} from {self.first_byte} on hold bytes that no write of the log put there"


@dataclass(frozen=True, kw_only=True)
class CrashExplanation:
    """The answer about one content.

    Attributes
    ----------
    requests
        Number of writes, flushes, discards and marks in the log.
    broken
        What the promises do not allow, the latest request first.
    withdrawn
        The fewest promises that must be withdrawn for the content to be allowed; None: no promises allow it.
    """

    promises: Promises
    membership: Membership
    requests: int
    broken: tuple[BrokenWrite, ...]
    withdrawn: tuple[str, ...] | None

    @property
    def is_allowed(self) -> bool:
        """Whether the promises allow the content."""
        return self.membership.is_allowed

    @property
    def counts(self) -> str:
        """How much was outstanding, and how much of it is there."""
        found = self.membership
        lost = found.outstanding - found.kept - found.torn
        return (
            f"{count_of(found.outstanding, 'request')} outstanding at the crash: {found.kept:,} there,"
            f" {found.torn:,} in part, {lost:,} not there"
        )


def explain(log: Path, image: Path, promises: Promises, *, base: Path | None) -> CrashExplanation:
    """CrashJudge a content of the volume at the end of a log.

    Parameters
    ----------
    image
        A file or device with the content.
    base
        The volume as it was when the log began; None: zeroes.

    Raises
    ------
    UsageError
        A file cannot be read or does not fit.
    """
    with (
        SeenVolume(base, "--base") as below,
        SeenVolume(image, "IMAGE") as seen,
        read_write_log(log, seen.size_bytes // SECTOR_BYTES * SECTOR_BYTES) as requests,
    ):
        if requests.volume_bytes > seen.size_bytes:
            raise UsageError(
                f"IMAGE: {printable(image)}: has {seen.size_bytes} bytes, the volume of the log"
                f" {requests.volume_bytes}; give an image of the whole volume"
            )
        judge = CrashJudge(requests, below, seen)
        found = judge.membership(promises)
        return CrashExplanation(
            promises=promises,
            membership=found,
            requests=len(requests.requests),
            broken=tuple(_broken(judge, found, promises)),
            withdrawn=_withdrawn(judge, promises) if not found.is_allowed else (),
        )


def _withdrawn(judge: CrashJudge, promises: Promises) -> tuple[str, ...] | None:
    """The fewest promises without which the content is allowed."""
    least = Promises()
    ways: list[tuple[str, Promises]] = []
    if promises.atomic_bytes != least.atomic_bytes:
        size = format_bytes(promises.atomic_bytes) if promises.atomic_bytes is not None else "whole"
        ways.append((f"atomic writes ({size})", replace(promises, atomic_bytes=least.atomic_bytes)))
    if promises.order != least.order:
        ways.append(("order", replace(promises, order=least.order)))
    if not promises.volatile_cache:
        ways.append(("no volatile cache", replace(promises, volatile_cache=True)))
    ways += [(_NAMES[name], one) for name in WITHDRAWN if (one := promises.without([name])) != promises]
    if not judge.membership(_combined(promises, [one for _, one in ways])).is_allowed:
        return None
    for count in range(1, len(ways) + 1):
        for chosen in itertools.combinations(ways, count):
            if judge.membership(_combined(promises, [one for _, one in chosen])).is_allowed:
                return tuple(name for name, _ in chosen)
    return None


def _combined(promises: Promises, weaker: list[Promises]) -> Promises:
    """Promises with all that differs in any of the weaker ones."""
    found = promises
    for one in weaker:
        changed = {name: value for name, value in vars(one).items() if value != getattr(promises, name)}
        found = replace(found, **changed)
    return found


def _broken(judge: CrashJudge, found: Membership, promises: Promises) -> Iterator[BrokenWrite]:
    """The writes that sectors should come from, with what these hold instead."""
    holder = _holders(judge, found)
    durable = durable_requests(judge.log, promises)
    torn = holder > found.expected
    culprit = np.where(torn, holder, found.expected)
    foreign = holder == _FOREIGN
    for number in np.unique(culprit)[::-1]:
        of = culprit == number
        for kind, chosen in (("torn", of & torn), ("lost", of & ~torn & ~foreign), ("foreign", of & foreign)):
            if chosen.any():
                yield _broken_write(judge, int(number), kind, found.wrong[chosen], durable)


def _broken_write(judge: CrashJudge, number: int, kind: str, sectors: Numbers, durable: dict[int, int]) -> BrokenWrite:
    names: dict[str, BrokenKind] = {"torn": "torn", "lost": "lost", "foreign": "foreign"}
    wrong = BrokenWrite(
        kind=names[kind],
        request=None,
        at_ns=0,
        offset_bytes=0,
        length_bytes=0,
        wrong_bytes=len(sectors) * SECTOR_BYTES,
        first_byte=int(sectors[0]) * SECTOR_BYTES,
    )
    if number == BASE:
        return wrong
    request = judge.log.requests[number]
    wrong = replace(
        wrong,
        request=number,
        at_ns=request.at_ns,
        offset_bytes=request.offset_bytes,
        length_bytes=request.length_bytes,
    )
    if number not in durable:
        return wrong
    by = durable[number]
    return replace(wrong, durable_by=by, durable_ns=judge.log.requests[by].at_ns)


def _holders(judge: CrashJudge, found: Membership) -> Numbers:
    """Of each wrong sector the latest request whose bytes it holds, or BASE."""
    holder = np.full(len(found.wrong), _FOREIGN, np.int64)
    order = np.argsort(found.wrong)
    places = found.wrong[order]
    for number in range(len(judge.log.requests) - 1, -1, -1):
        request = judge.log.requests[number]
        if not request.changes:
            continue
        first, after = np.searchsorted(places, (request.sectors.start, request.sectors.stop))
        here = order[first:after]
        here = here[holder[here] == _FOREIGN]
        if len(here):
            agrees = judge.agrees(number)[found.wrong[here] - request.sectors.start]
            holder[here[agrees]] = number
    left = np.flatnonzero(holder == _FOREIGN)
    if len(left):
        agrees_below: Flags = judge.agrees_with_base()[found.wrong[left]]
        holder[left[agrees_below]] = BASE
    return holder


def _time(at_ns: int, before: str, after: str = "") -> str:
    """A time of the log, if it has times."""
    return f"{before}{at_ns / 1e9:.3f} s{after}" if at_ns else ""
