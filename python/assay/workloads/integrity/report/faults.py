"""Words for what an integrity run finds: names of faults, worst first, their meaning, and the verdict in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypedDict, cast

from assay.base.units import count_of, format_bytes, format_duration
from assay.document.elements import Tone
from assay.document.text import joined
from assay.record.source import RunFacts
from assay.workloads.integrity.report.told import KIND, integrity_of
from assay.workloads.integrity.shapes import Integrity


@dataclass(frozen=True)
class Fault:
    """A name of the decision table in words."""

    one: str
    many: str
    meaning: str

    @property
    def title(self) -> str:
        """The fault at the beginning of a line."""
        return self.one[:1].upper() + self.one[1:]

    def counted(self, count: int) -> str:
        """The fault with its count."""
        return f"{count:,} {self.one if count == 1 else self.many}"


WRONG_DATA = {
    "misdirected_write": Fault(
        "misdirected write", "misdirected writes", "a write was stored in the place of another page"
    ),
    "lost": Fault(
        "lost write",
        "lost writes",
        "a page holds an older write than was acknowledged (if transient: a stale read)",
    ),
    "log_break": Fault(
        "break in the log", "breaks in the log", "a log block holds an older record: recovery would end there"
    ),
    "torn": Fault("torn write", "torn writes", "one part of a page is as written, the other is older"),
    "corrupt": Fault("corrupt page", "corrupt pages", "a page holds bytes that no write put there"),
    "misdirected_read": Fault("misdirected read", "misdirected reads", "a read returned what belongs in another place"),
    "short_read": Fault("short read", "short reads", "a read left part of its buffer as it was"),
}
"""Faults of pages, worst first: those that a page's own checksum does not show come before those that it does."""

FAILED_IO = {
    "io_error": Fault("I/O error", "I/O errors", "the system returned an error instead of doing the I/O"),
    "long_io": Fault("long I/O", "long I/Os", "an I/O was outstanding longer than allowed (15 s unless set)"),
}
FAULTS = {**WRONG_DATA, **FAILED_IO}
WORST_FIRST = tuple(FAULTS)

FOR_DATABASES = {
    "misdirected_write": "one page is destroyed and another stays old, and checksums may be right on both; take the"
    " volume out of use, and look at controller, multipath and volume manager",
    "lost": "the database goes on with an older page whose checksum is right: committed rows are gone without an error;"
    " look at write caches without battery or flush, and at firmware",
    "log_break": "recovery after a crash ends at the break, and what was committed behind it is gone; look at the cache"
    " under the log and whether flushes reach the medium",
    "torn": "the page fails its checksum, and only a database that logs or writes pages twice (full_page_writes,"
    " doublewrite) repairs it after a crash; keep that on, and look at the atomic write size of the volume",
    "corrupt": "queries stop at the page with a checksum error, and read wrong rows where checksums are off; switch"
    " them on, restore the page from a backup, and look at memory, cables and controller",
    "misdirected_read": "a query gets rows of another place though the medium holds the right ones; look at driver,"
    " multipath and firmware",
    "short_read": "a query gets what its buffer held before; look at driver and firmware",
    "io_error": "the database ends the session, or itself; read the kernel's log (dmesg) and the device's (smartctl)",
    "long_io": "sessions hang that long, and clusters fail over; look at what else the storage did then",
}
"""What each fault means for a database, and what to look at next."""

USERS: dict[Literal["random", "audit", "read_ahead", "bulk_update", "shrink"], str] = {
         "random": "random", "audit": "audit", "read_ahead": "read-ahead", "bulk_update": "bulk update",
         "shrink": "grow/shrink"}  # fmt: skip


def fault_of(kind: object) -> Fault:
    """Words for a name; a name that is not in the table stands for itself."""
    word = str(kind or "unnamed").replace("_", " ")
    return FAULTS.get(str(kind), Fault(word, word, "a name this report does not know"))


def for_database(kind: str) -> str:
    """What a fault means for a database, and what to look at next."""
    return f"{fault_of(kind).one}: {FOR_DATABASES.get(kind, fault_of(kind).meaning)}"


def severity(kind: object) -> int:
    """Place in the order of faults, 0 for the worst."""
    return WORST_FIRST.index(str(kind)) if kind in FAULTS else len(WORST_FIRST)


def counted(counts: Mapping[str, int], names: Mapping[str, Fault]) -> str:
    """Faults with their counts in the order of `names`; those that did not occur are left out.

    Examples
    --------
    >>> counted({"torn": 2, "lost": 1, "corrupt": 0}, FAULTS)
    '1 lost write and 2 torn writes'
    """
    return joined(fault.counted(counts[name]) for name, fault in names.items() if counts.get(name))


def headline(found: Integrity, caveat: str = "") -> tuple[str, Tone]:
    """Verdict in one sentence; `caveat` is a clause on what right pages do not prove."""
    if (tested := self_test(found)) is not None:
        text, is_equal = tested
        return f"{text[:1].upper()}{text[1:]}.", "good" if is_equal else "bad"
    counts = found["findings"]
    wrong, failed = counted(counts, WRONG_DATA), counted(counts, FAILED_IO)
    if wrong:
        rest = f"; besides {failed}" if failed else ""
        return f"Data came back wrong: {wrong}{rest}.", "bad"
    if not found.get("pages_verified"):
        rest = f", and there were {failed}" if failed else ""
        return f"No page was read back{rest}: this run says nothing about the data.", "bad" if failed else "warn"
    if found.get("passed") is None:
        return "No page came back wrong so far; the run has no verdict yet.", "warn"
    if not found["passed"]:
        why = failed or ("no fault was counted" if found.get("audited") else "not every page was read at the end")
        return f"No page came back wrong, but the check failed: {why}.", "bad"
    rest = f", but there were {failed}" if failed else ""
    if found.get("audited") and found.get("pages"):
        log_blocks = f" and {blocks:,} log blocks" if (blocks := found.get("log_blocks")) else ""
        reads = count_of(found["pages_verified"] or 0, "read")
        text = f"All {found['pages']:,} pages{log_blocks} came back right in {reads}{rest}{caveat}."
        return text, "warn" if failed else "good"
    return f"Every page that was read came back right, but not every page was read at the end{rest}{caveat}.", "warn"


def gravest_text(found: Integrity) -> str | None:
    """The gravest finding in plain words, and how many findings lasted; None when nothing was found.

    What lasted is graver than what did not.
    """
    counts, persistent = found["findings"], found["persistent"] or {}
    names = [name for name, count in counts.items() if count]
    if not names:
        return None
    worst = min(names, key=lambda name: (not persistent.get(name), severity(name)))
    text = f"The gravest: {fault_of(worst).counted(counts[worst])}; {fault_of(worst).meaning}."
    total, lasted = (sum(kind.get(name, 0) for name in WRONG_DATA) for kind in (counts, persistent))
    stayed = f" Of {total:,} wrong pages {lasted:,} stayed wrong however often they were read again." if total else ""
    return text + stayed


def self_test(found: Integrity) -> tuple[str, bool] | None:
    """Whether all faults were found that the target itself injected, as a clause; None for any other target."""
    observable, findings = found.get("observable"), found["findings"]
    if observable is None:
        return None
    off = [
        f"{fault_of(name).one} ({findings.get(name, 0):,} found, {observable.get(name, 0):,} observable)"
        for name in sorted({**observable, **findings}, key=severity)
        if findings.get(name, 0) != observable.get(name, 0)
    ]
    seen, hidden = sum(observable.values()), sum((found.get("masked") or {}).values())
    told = f"a test of Assay itself: the target injected {count_of(seen + hidden, 'fault')}"
    if off:
        return f"{told}, and what was found is not what was observable: {joined(off)}", False
    masked = f", {hidden:,} of them masked, their bytes never read" if hidden else ""
    return f"{told}{masked}; all {seen:,}{' others' if hidden else ''} were found and named rightly", True


def verified_text(found: Integrity) -> str:
    """How much was verified, how often and for how long."""
    verified = found.get("pages_verified") or 0
    pages = (found.get("pages") or 0) + (found.get("log_blocks") or 0)
    seconds = sum(float(phase.get("seconds") or 0) for phase in found.get("phases") or [])
    took = f" in {format_duration(seconds)}" if seconds else ""
    often = (
        f": each of the {pages:,} pages and log blocks was read {verified / pages:.3g} times on average"
        if pages
        else ""
    )
    done = _done(verified, "read", found.get("bytes_verified"))
    return f"{done} verified byte for byte{took}{often}."


def extent(facts: RunFacts) -> str:
    """How much was verified and written, with which users, and whether every page was read at the end."""
    found: Integrity = integrity_of(facts) or {"findings": {}}
    texts = [verified_text(found)]
    written = found.get("pages_written")
    if written is not None:
        texts.append(f"There {_done(written, 'write', found.get('bytes_written'), before=True)}.")
    journal = found.get("journal")
    names = users(integrity_plan(facts)) if journal is None else []
    texts += [f"Users at work: {joined(names)}."] if names else []
    if journal is not None:
        texts.append(
            f"They were held against a journal of {journal['acknowledged']:,} acknowledged writes, which promise"
            f" {journal['promised_pages']:,} pages and log blocks."
        )
    elif found.get("audited"):
        is_wrong = any(found["findings"].get(name) for name in WRONG_DATA)
        right = ": what was wrong is among the findings" if is_wrong else " and was right"
        texts.append(f"At the end every page was read once more{right}.")
    elif found.get("audited") is False:
        texts.append("It was not shown that every page was right at the end.")
    return " ".join(texts)


def _done(count: int, noun: str, size: float | None, *, before: bool = False) -> str:
    """So many reads or writes and their verb, which comes before them or after."""
    done, verb = f"{count_of(count, noun)}{f' ({format_bytes(size)})' if size else ''}", "was" if count == 1 else "were"
    return f"{verb} {done}" if before else f"{done} {verb}"


CACHES = "Caches between host and disk may have answered reads: a page that came back right need not be on the medium."


def caveat(facts: RunFacts) -> str:
    """What right pages do not prove, as a clause of the sentence that they were right."""
    return "; caches may have answered" + (", and power was not cut" if uncut_power(facts) else "")


def uncut_power(facts: RunFacts) -> list[str]:
    """A sentence on the loss of power, unless the run came after one."""
    words = [str(word).split("=")[0] for word in facts.manifest.get("command") or []]
    text = "Power was not cut: whether the storage keeps what it acknowledged when that happens is not shown."
    return [] if "--after-crash" in words else [text]


class UsersAsked(TypedDict, total=False):
    """How many users of a kind; -1 leaves it to the number of processors."""

    users: int | None


class UsersPlan(TypedDict, total=False):
    """What a plan says of its users."""

    random: UsersAsked | None
    audit: UsersAsked | None
    read_ahead: UsersAsked | None
    bulk_update: UsersAsked | None
    shrink: UsersAsked | None


def integrity_plan(facts: RunFacts) -> UsersPlan:
    """Plan of the integrity run: the run's own, or that of a part; empty when neither is one."""
    plans = [facts.manifest.get("plan"), *(part.get("plan") for part in facts.manifest.get("parts") or [])]
    found = [plan for plan in plans if isinstance(plan, Mapping) and plan.get("kind") == KIND]
    return cast("UsersPlan", found[0]) if found else {}


def users(plan: UsersPlan) -> list[str]:
    """Users of a plan, with their number where the plan gives it and does not leave it to the number of processors.

    Examples
    --------
    >>> users({"random": {"users": -1}, "audit": {"users": 2}, "shrink": {"users": 0}})
    ['random', '2 audit', 'checkpoint']
    """
    numbers = {name: asked.get("users") if (asked := plan.get(key)) else None for key, name in USERS.items()}
    named = [f"{number} {name}" if number > 0 else name for name, number in numbers.items() if number]
    return [*named, "checkpoint"] if named else []
