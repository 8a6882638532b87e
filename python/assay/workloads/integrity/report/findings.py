"""Single findings of an integrity run: the gravest in a block each, the others in a table."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Sequence

from assay.base.units import count_of, format_duration
from assay.document.elements import Block, Cell, Column, FactList, FigureElement, Heading, Paragraph, Table
from assay.document.text import DASH, joined, moment, shorten
from assay.workloads.integrity.report.charts import STATES, UNIT_BYTES, UnitCell, unit_strip
from assay.workloads.integrity.report.faults import fault_of, severity
from assay.workloads.integrity.shapes import Expected, Finding, Integrity, Unit

MAX_BLOCKS = 10
MAX_RANGES = 6
PERSISTENT = "persistent"


def finding_blocks(found: Integrity, started_ns: int | None) -> list[Block]:
    """Blocks on findings; none when there are no findings.

    Parameters
    ----------
    found : Integrity
        The run's `integrity`.
    started_ns : int or None
        Start of the run, UTC nanoseconds, from which times are counted.
    """
    details = found["details"] or []
    if not details:
        return []
    chosen, rest = gravest(details)
    blocks: list[Block] = [Heading("Findings one by one"), Paragraph(_intro(len(details), len(chosen), found))]
    for number, finding in enumerate(chosen, start=1):
        blocks += _block(finding, number, started_ns)
    if rest:
        blocks += [Heading("Other findings"), _rest_table(rest, started_ns)]
    return blocks


def gravest(findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Findings for a block each, and the others, which keep their order.

    The kinds take turns, so that a hundred of one kind do not hide one of another; within a turn, what lasted comes
    first, then the gravest.
    """
    turns: Counter[object] = Counter()
    placed = []
    for lasts, place in sorted((lasting(finding) != PERSISTENT, place) for place, finding in enumerate(findings)):
        kind = findings[place].get("kind")
        placed.append((turns[kind], lasts, severity(kind), place))
        turns[kind] += 1
    order = [entry[-1] for entry in sorted(placed)][:MAX_BLOCKS]
    chosen = set(order)
    return [findings[place] for place in order], [one for place, one in enumerate(findings) if place not in chosen]


def _intro(described: int, shown: int, found: Integrity) -> str:
    left = found.get("details_left_out") or 0
    some = f"{shown} of {described:,} findings, so chosen that every kind is among them; the others follow in a table."
    sentences = [
        some if described > shown else "",
        "The gravest come first.",
        f"{left:,} more were counted, but not described." if left else "",
        f"A page is cut into units of {UNIT_BYTES} bytes, each of which says whose it is.",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _block(finding: Finding, number: int, started_ns: int | None) -> list[Block]:
    name = f"finding-{number}"
    words = (fault_of(finding.get("kind")).title, lasting(finding))
    title = f"{', '.join(text for text in words if text)}: {_place(finding)}"
    blocks: list[Block] = [Heading(f"{number}. {title}")]
    if finding.get("explanation"):
        blocks.append(Paragraph(str(finding["explanation"])))
    blocks.append(FactList(f"{name}-facts", _facts(finding, started_ns)))
    figure = _strip(finding, name)
    return [*blocks, figure] if figure else blocks


def lasting(finding: Finding) -> str:
    """Whether a finding stayed when it was read again; empty where that was not tried or has no meaning."""
    if finding.get("persistent") is None or finding.get("kind") == "long_io":
        return ""
    return PERSISTENT if finding["persistent"] else "transient"


def _place(finding: Finding) -> str:
    page = finding.get("page")
    return f"page {page:,} of {word(finding.get('file'))}" if page is not None else word(finding.get("file"))


def _facts(finding: Finding, started_ns: int | None) -> list[tuple[str, str]]:
    items = [
        ("Finding", word(finding.get("id"))),
        ("Place", _extent(finding)),
        ("Expected", _expected(finding, started_ns)),
        ("Received", joined(unit_text(unit) for unit in finding["units"] or ())),
        ("Differs", _differences(finding)),
        ("Found", _found(finding, started_ns)),
        ("Read again", _reread(finding)),
        ("I/O", operation_text(finding)),
        ("Copy elsewhere", _elsewhere(finding)),
        ("Could also be", joined((word(fault_of(name).one) for name in finding["also"] or ()), last="or")),
        ("Evidence", _evidence(finding)),
    ]
    return [(name, value) for name, value in items if value]


def _extent(finding: Finding) -> str:
    file = word(finding.get("file"))
    offset, length = finding.get("offset_bytes"), finding.get("length_bytes")
    if offset is None or length is None:
        return file
    return f"{file}, {length:,} bytes at byte {offset:,} of the file"


def _expected(finding: Finding, started_ns: int | None) -> str:
    expected: Expected = finding["expected"] or {}
    checksum, written_ns = expected.get("checksum"), expected.get("written_utc_ns")
    words = [
        f"generation {expected['generation']:,}" if expected.get("generation") is not None else "",
        f"written by {_writer(expected['writer'])}" if expected.get("writer") is not None else "",
        f"at {_time(written_ns, started_ns)}" if written_ns else "",
        f"log sequence number {expected['lsn']:,}" if expected.get("lsn") is not None else "",
        f"checksum {checksum:08x}" if isinstance(checksum, int) else f"checksum {checksum}" if checksum else "",
    ]
    return ", ".join(text for text in words if text)


def _writer(writer: int | str | None) -> str:
    return f"user {writer}" if isinstance(writer, int) else word(writer)


def _time(utc_ns: int, started_ns: int | None) -> str:
    after = f" ({(utc_ns - started_ns) / 1e9:,.3f} s after the start)" if started_ns else ""
    return moment(utc_ns) + after


def unit_text(unit: Unit) -> str:
    """One run of units in words.

    Examples
    --------
    >>> unit_text({"first": 8, "last": 15, "state": "older", "generation": 3})
    'units 8-15 older (generation 3)'
    """
    first, last = unit["first"], unit["last"]
    which = f"unit {first}" if first == last else f"units {first}-{last}"
    state = state_of(unit)
    words = []
    if state == "foreign":
        page, file = unit.get("page"), unit.get("file")
        words.append("of another run" if page is None else f"page {page:,}{f' of {word(file)}' if file else ''}")
    if state != "expected" and unit.get("generation") is not None:
        words.append(f"generation {unit['generation']:,}" if unit["generation"] else "from before the run")
    more = f" ({', '.join(words)})" if words else ""
    return f"{which} {state}{more}"


def state_of(unit: Unit) -> str:
    """State of a unit in the words of the decision table."""
    return str(unit.get("state") or "of unknown state").replace("_", " ")


def word(name: object, length: int = 80) -> str:
    """A name from the run, its middle left out when it is long; a dash when there is none."""
    return shorten(str(name), length) if name not in (None, "") else DASH


def _differences(finding: Finding) -> str:
    count, ranges = finding.get("differing_bytes"), finding["ranges"] or []
    if not count:
        return ""
    listed = [f"{first:,}" if after - first == 1 else f"{first:,} to {after - 1:,}" for first, after in ranges]
    more = f" and {len(listed) - MAX_RANGES:,} more ranges" if len(listed) > MAX_RANGES else ""
    where = f": {', '.join(listed[:MAX_RANGES])}{more}" if listed else ""
    return f"{count_of(count, 'byte')} of the page{where}"


def _found(finding: Finding, started_ns: int | None) -> str:
    phase, cycle, found_ns = finding.get("phase"), finding.get("cycle"), finding.get("found_utc_ns")
    words = [
        f"in {word(phase)}" if phase else "",
        f"cycle {cycle}" if cycle is not None else "",
        f"by {_writer(finding['by'])}" if finding.get("by") is not None else "",
        _time(found_ns, started_ns) if found_ns else "",
    ]
    return ", ".join(text for text in words if text)


def _reread(finding: Finding) -> str:
    times = finding.get("rereads")
    if not times:
        return ""
    many = count_of(times, "time")
    if finding.get("persistent"):
        return f"{many}, wrong every time"
    return f"{many}, then right" if finding.get("persistent") is False else many


def operation_text(finding: Finding) -> str:
    """The I/O that failed and the error it gave, as far as the finding knows them."""
    code = finding.get("errno")
    name = errno.errorcode.get(code, f"error {code}") if isinstance(code, int) else str(code or "")
    return shorten(" ".join(text for text in (str(finding.get("operation") or ""), name) if text), 80)


def _elsewhere(finding: Finding) -> str:
    place: Expected = finding.get("elsewhere") or {}
    if place.get("page") is None:
        return ""
    return f"page {place['page']:,} of {word(place.get('file') or 'the same file')} holds it"


def _evidence(finding: Finding) -> str:
    path = word(finding["evidence"], 160) if finding.get("evidence") else ""
    held = "what was expected and received, the differing bytes, and the last operations nearby"
    return f"{path} in the run's folder: {held}" if path else ""


def _strip(finding: Finding, name: str) -> FigureElement | None:
    rows: list[UnitCell] = [
        {"number": number, "state": state_of(unit)}
        for unit in finding["units"] or ()
        for number in range(unit["first"] or 0, (unit["last"] or 0) + 1)
    ]
    ranges = finding["ranges"] or []
    last = max((row["number"] for row in rows), default=0)
    length = max(finding.get("length_bytes") or 0, (last + 1) * UNIT_BYTES)
    chart = unit_strip(rows, ranges, length)
    if chart is None:
        return None
    counts = Counter(row["state"] for row in rows)
    told = joined(f"{counts[state]} {state}" for state in STATES if counts[state])
    beneath = "; the bar beneath them marks the bytes that differ" if ranges else ""
    caption = f"Units of {_place(finding)}: {told}{beneath}."
    return FigureElement(f"{name}-units", caption, caption, chart)


def _rest_table(findings: Sequence[Finding], started_ns: int | None) -> Table:
    columns = [
        Column("Finding", weight=1.2), Column("Name", weight=1.6), Column("Lasting", weight=1.3),
        Column("File", weight=1.8), Column("Page", number=True, weight=1.1), Column("Phase", weight=1.2),
        Column("Found after", number=True, weight=1.2), Column("By", weight=1.3), Column("Evidence", weight=2.0),
    ]  # fmt: skip
    rows = [[_cell(text) for text in _rest_row(finding, started_ns)] for finding in findings]
    return Table("other-findings", "Findings in the order they were made.", columns, rows, dense=True)


def _rest_row(finding: Finding, started_ns: int | None) -> list[str]:
    when, page, cycle = finding.get("found_utc_ns"), finding.get("page"), finding.get("cycle")
    phase = word(finding.get("phase"), 30)
    return [
        word(finding.get("id"), 30),
        fault_of(finding.get("kind")).one,
        lasting(finding) or DASH,
        word(finding.get("file"), 60),
        DASH if page is None else f"{page:,}",
        f"{phase} {cycle}" if cycle is not None else phase,
        format_duration((when - started_ns) / 1e9) if when and started_ns else DASH,
        DASH if finding.get("by") is None else _writer(finding["by"]),
        word(finding.get("evidence")),
    ]


def _cell(text: str) -> Cell:
    return Cell(text, "quiet" if text == DASH else "plain")
