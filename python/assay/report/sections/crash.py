"""The page of a crash examination: which promises a program needs of its storage."""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay.base.units import count_of, format_bytes, format_duration
from assay.document.elements import (
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    FactList,
    Notice,
    Notices,
    Paragraph,
    Section,
    Table,
    Tone,
)
from assay.document.text import shorten
from assay.insight.crash.examination import CrashAnswer, Row, Tried
from assay.insight.crash.proof import atomic_proof
from assay.insight.crash.requests import LostWrite, VolumeRequest
from assay.insight.crash.servers import page_control
from assay.insight.crash.subject import KIND_WORDS
from assay.insight.crash.trial import CrashOutcome

WRITES_SHOWN = 12


def crash_document(answer: CrashAnswer, version: str) -> Document:
    """Build the page."""
    first = answer.rows[0]
    facts = (
        _volume_words(answer.volume),
        f"{first.recorded.told:,} acknowledgements",
        f"{sum(one.outcome.tried for row in answer.rows for one in row.tried):,} states",
        f"seed {answer.seed}",
    )
    sections = [
        Section(name="crash-answer", title="Answer", blocks=list(answer_blocks(answer)), place="answer"),
        Section(name="crash-matrix", title="Settings and promises", blocks=[_matrix(answer)]),
        *_examples(answer),
        Section(name="crash-covered", title="What was tried", blocks=list(_covered(answer))),
    ]
    return Document(
        title=f"{shorten(first.recorded.title, 80)} after a crash",
        facts_line=" · ".join(facts),
        sections=sections,
        footer=f"Assay {version}",
        version=version,
        started="",
    )


def _volume_words(volume: VolumeRequest) -> str:
    if volume.file_system == "none":
        return "one file"
    more = [" ".join(volume.mkfs), f"mounted {volume.options}" if volume.options else ""]
    words = "".join(f", {one}" for one in more if one)
    return f"{volume.file_system} on {format_bytes(volume.size_bytes)}{words}"


def answer_blocks(answer: CrashAnswer) -> Iterator[Block]:
    """The sentences that answer, worst first; the terminal shows them, too."""
    passing = answer.passing_controls
    if passing:
        text = "no answer: a control that must fail passed (" + "; ".join(passing) + "), so that passes mean nothing"
        yield Notices([Notice(text, "bad")])
        return
    for number, row in enumerate(answer.rows):
        if row.must_fail:
            continue
        asked = row.tried[0].outcome
        yield Paragraph(_sentence(row, asked), strong=number == 0, tone="bad" if asked.failed else "good")
        needs = [_needed(one) for one in row.tried[1:] if not one.must_fail]
        if needs:
            yield Bullets(needs)
    yield Paragraph(_gain(answer)) if len(answer.rows) > 1 else Paragraph(_control_words(answer))
    if len(answer.rows) > 1:
        yield from (Paragraph(words) for words in _page_writes(answer))
        yield Paragraph(_control_words(answer))


def _sentence(row: Row, asked: CrashOutcome) -> str:
    title, words = row.recorded.title, asked.promises.words
    if not asked.failed:
        return (
            f"{title}: with {words}, all {asked.tried:,} states that were tried are consistent and complete."
            " Others are possible; see what was tried."
        )
    kinds = "; ".join(f"{KIND_WORDS[kind]} in {count:,}" for kind, count in asked.kinds.items())
    return f"{title}: with {words}, {asked.failed:,} of {asked.tried:,} states fail: {kinds}."


def _needed(tried: Tried) -> str:
    outcome = tried.outcome
    if outcome.failed:
        kinds = "; ".join(f"{KIND_WORDS[kind]} in {count:,}" for kind, count in outcome.kinds.items())
        example = f", the smallest {outcome.failure.name}" if outcome.failure else ""
        return f"{tried.what}: {outcome.failed:,} of {outcome.tried:,} states fail ({kinds}{example})."
    return f"{tried.what}: all {outcome.tried:,} states pass."


def _gain(answer: CrashAnswer) -> str:
    first, *others = answer.rows
    gains = "; ".join(f"{_varied(row, first)}: {_gain_words(row, first)}" for row in others)
    return (
        f"Transactions a second, of {len(first.rates)} rounds of all rows in random order, on a volume in memory that"
        f" Assay serves; a drive's own flushes cost more: {gains}."
    )


def _varied(row: Row, first: Row) -> str:
    return " ".join(row.settings[len(first.settings) :])


def _gain_words(row: Row, first: Row) -> str:
    """The gain and its interval; undecided where the interval holds 0."""
    gain = row.gain_over(first)
    if gain is None:
        return "not compared"
    interval = f"{gain.low:+.0%} to {gain.high:+.0%}"
    if not gain.is_decided:
        return f"undecided, {interval} with 95 % confidence"
    return f"{gain.share:+.0%}, {interval} with 95 % confidence"


def _page_writes(answer: CrashAnswer) -> Iterator[str]:
    """Of each setting that lets pages be torn: with which atomic size it may stay, and what it brings."""
    first = answer.rows[0]
    for row in answer.rows[1:]:
        control = page_control(row.settings)
        passing = [one for one in row.tried if one.outcome.promises.atomic_bytes != 512 and not one.must_fail]
        sizes = {
            one.outcome.promises.atomic_bytes: one
            for one in passing
            if not one.outcome.failed and one.outcome.promises.order == "any"
        }
        if control is None:
            continue
        least = min((size for size in sizes if size is not None and size >= control.page_bytes), default=None)
        name = _varied(row, first)
        if least is None:
            yield f"{name} is safe with no atomic size that was tried here: leave pages protected."
            continue
        tried = sizes[least].outcome.tried
        if not _aligns(answer.volume, control.page_bytes):
            yield (
                f"{name} passes in {tried:,} states with an atomic write of {format_bytes(least)}, and may not stay all"
                " the same: this file system puts pages at any multiple of 4 KiB, so that one may lie across two atomic"
                " parts. Try --mkfs '-O bigalloc -C 16384'."
            )
            continue
        yield f"{name} {_stays(answer, least, tried)} What it brings on a volume in memory: {_gain_words(row, first)}."


def _stays(answer: CrashAnswer, size: int, tried: int) -> str:
    """Whether pages may stay unprotected with an atomic size, by what is known of the drive."""
    words, passes = format_bytes(size), f"all {tried:,} states pass with it"
    if answer.drive is None:
        return f"may stay here if the drive's atomic write of {words} is real: {passes}. See --drive and --proof."
    proof = atomic_proof(answer.drive, answer.cuts, size)
    if proof.verdict == "proven" and not proof.covers_parts:
        return (
            f"may stay here where each page is a write of its own: {passes} ({proof.words}). A file system may put"
            " neighbouring pages into one write: cut the power under runs with pages_per_io above 1, too."
        )
    if proof.verdict == "proven":
        return f"may stay here: the drive's atomic write of {words} is proven, and {passes} ({proof.words})."
    if proof.verdict == "broken":
        return f"may not stay on this drive: {passes}, but {proof.words}."
    how = " Power cuts alone prove it: assay verify --crash-journal, then --after-crash, then --proof."
    return f"may stay here if the drive's atomic write of {words} is real: {passes} ({proof.words}).{how}"


def _aligns(volume: VolumeRequest, page_bytes: int) -> bool:
    """Whether the file system allocates whole pages, by the size of its clusters."""
    words = " ".join(volume.mkfs)
    found = re.search(r"(?:^| )-C ?(\d+)(?: |$)", words)
    return found is not None and int(found[1]) >= page_bytes


def _control_words(answer: CrashAnswer) -> str:
    controls = [one for row in answer.rows for one in row.tried if one.must_fail]
    seen = ", ".join(f"{one.outcome.failed} of {one.outcome.tried}" for one in controls)
    words = [
        f"A drive that ignores flushes fails, as it must: in {seen} states; the control ends at its first failure."
    ]
    for row in answer.rows:
        if row.control is not None:
            outcome = row.asked.outcome
            words.append(
                f"{row.recorded.title} fails, as it must, in {outcome.failed:,} of {outcome.tried:,} states:"
                f" {row.control.reason}."
            )
    return " ".join(words)


def _matrix(answer: CrashAnswer) -> Table:
    titles = [one.what for one in answer.rows[0].tried]
    columns = [
        Column("settings", weight=2.0),
        *(Column(title) for title in titles),
        Column("transactions/s" if len(answer.rows) > 1 else "told/s", number=True),
    ]
    rows = [
        [
            Cell(row.recorded.title + (" (control)" if row.must_fail else "")),
            *(_cell(row, title) for title in titles),
            Cell(f"{row.told_per_s:,.0f}"),
        ]
        for row in answer.rows
    ]
    return Table(name="crash-matrix", caption="States that fail of those that were tried", columns=columns, rows=rows)


def _cell(row: Row, title: str) -> Cell:
    tried = next((one for one in row.tried if one.what == title), None)
    if tried is None:
        return Cell("not tried")
    outcome = tried.outcome
    tone: Tone = "good"
    if tried.must_fail or (row.must_fail and tried is row.asked):
        tone = "good" if outcome.failed else "bad"
    elif outcome.failed:
        tone = "bad" if tried.keeps_promises and not row.must_fail else "warn"
    return Cell(f"{outcome.failed:,} of {outcome.tried:,}", tone)


def _examples(answer: CrashAnswer) -> Iterator[Section]:
    blocks: list[Block] = []
    for row in answer.rows:
        for one in row.tried:
            failure = one.outcome.failure
            loses_all = row.control is not None and not row.control.page_bytes
            if failure is None or one.must_fail or loses_all:
                # A control fails in almost any state: its example explains nothing.
                continue
            smallest = "the smallest that fails" if failure.is_smallest else "the smallest found in the checks allowed"
            blocks.append(Paragraph(f"{row.recorded.title}, {one.what}: state {failure.name}", strong=True))
            blocks.append(Paragraph(f"{KIND_WORDS[failure.finding.kind]}: {failure.finding.message} ({smallest})."))
            shown = [_lost_words(lost) for lost in failure.lost[:WRITES_SHOWN]]
            more = len(failure.lost) - len(shown)
            blocks.append(
                Bullets(
                    [*shown, *([f"and {count_of(more, 'other write')}"] if more else [])]
                    or ["no write is missing: the lost data never reached the volume"]
                )
            )
    if blocks:
        yield Section(name="crash-examples", title="Failing states", blocks=blocks)


def _lost_words(lost: LostWrite) -> str:
    what = "lost" if lost.lost_bytes == lost.length_bytes else f"torn, {format_bytes(lost.lost_bytes)} lost"
    place = f" of {lost.place}" if lost.place else ""
    return (
        f"write {lost.request} at {lost.at_ns / 1e9:.3f} s: {format_bytes(lost.length_bytes)}{place}"
        f" at byte {lost.offset_bytes:,} of the volume: {what}"
    )


def _covered(answer: CrashAnswer) -> Iterator[Block]:
    row = answer.rows[0]
    counts = row.counts
    asked = row.tried[0].outcome
    coverage = asked.coverage
    yield FactList("crash-log", _facts(counts, coverage, asked, answer.jobs))
    notes = ["Bit rot and writes to a wrong place are not among the states: assay verify looks for those."]
    if not counts["fua"]:
        why = ": a loop device turns each into a write and a flush" if answer.volume.file_system != "none" else ""
        notes.append(f"No FUA write reached the volume{why}, so that the promise about FUA was not tried.")
    if not counts["discards"]:
        notes.append("Nothing was discarded, so that the promise about discards was not tried.")
    yield Bullets(notes)


def _facts(counts: dict[str, int], coverage: dict[str, int], asked: CrashOutcome, jobs: int) -> list[tuple[str, str]]:
    rate = asked.tried / asked.seconds * 3600 / jobs if asked.seconds else 0
    log = (
        f"{counts['writes']:,} writes of {format_bytes(counts['written_bytes'])}, {counts['flushes']:,} flushes,"
        f" {counts['fua']:,} FUA, {counts['discards']:,} discards, {counts['marks']:,} acknowledgements"
    )
    points = (
        f"{coverage['points_tried']:,} of {coverage['points']:,} have a state that was tried;"
        f" every possible state was considered at {coverage['points_exhausted']:,}"
    )
    pieces = coverage["pieces_max"]
    most = f"at most {count_of(pieces, 'piece')} of writes at a crash point, which allow 2^{pieces} states there"
    states = f"{coverage['considered']:,} considered, {coverage['equivalent']:,} of them equal to others in contents"
    cpu = asked.cpu_seconds / asked.tried if asked.tried else 0.0
    speed = f"{format_duration(asked.seconds)}, {rate:,.0f} states an hour and process, {cpu:.3f} s of processor each"
    return [("log", log), ("crash points", points), ("outstanding", most), ("states", states), ("speed", speed)]
