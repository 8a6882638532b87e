"""The page of a trace: what the load asks of storage, in the words of its owner."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.units import count_of, format_bytes, format_duration, format_iops, format_latency, format_throughput
from assay.document.charts import figure_or_words
from assay.document.elements import (
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    FigureElement,
    Notice,
    Notices,
    Paragraph,
    Section,
    Table,
)
from assay.document.text import DASH, moment, shorten
from assay.document.text import percent as exact_percent
from assay.report import figures_trace as figures
from assay.traces.character.places import HOT_SHARES
from assay.traces.character.reuse import UsedAgain
from assay.traces.character.waiting import PERCENTILES
from assay.traces.character.whole import AskedIos, TraceCharacter
from assay.traces.file import UNIT_NS, Trace

NAMES_SHOWN = 10
RANDOM_DISPERSION = 2.0
"""Counts whose variance is up to twice their mean are called as even as random arrivals are."""
BURST_PEAK = 1.5
"""Peaks below so many times the mean are no bursts that storage would have to be sized for."""


def percent(share: float | None) -> str:
    """A share as a percentage; digits of one below a thousandth say nothing of a load."""
    return "< 0.1 %" if share is not None and 0 < share < 0.001 else exact_percent(share)


def trace_document(trace: Trace, found: TraceCharacter, version: str) -> Document:
    """Build the page of a trace."""
    head = trace.head
    facts = (
        f"{found.ios:,} I/Os",
        count_of(len(found.devices), "device"),
        format_duration(found.span_ns / 1e9),
        moment(head.origin_utc_ns) if head.origin_utc_ns else "",
        f"from {head.source}",
    )
    sections = [_summary(trace, found), _time(found), _mix(found), _places(found), _waits(trace, found), _asked(found)]
    return Document(
        title=f"The load of {shorten(trace.path.name, 60)}",
        facts_line=" · ".join(word for word in facts if word),
        sections=[one for one in sections if one is not None],
        footer=f"Assay {version} · trace {shorten(trace.path.name, 60)}",
        version=version,
        started=moment(head.origin_utc_ns) if head.origin_utc_ns else "",
    )


def _summary(trace: Trace, found: TraceCharacter) -> Section:
    blocks: list[Block] = [Paragraph(text, strong=number == 0) for number, text in enumerate(sentences(found))]
    notes = list(trace.head.notes)
    if found.windows > 1:
        covered = format_duration(found.seconds)
        notes.append(
            f"it was captured in {found.windows:,} windows of {covered} in all, which rates are of; bursts are not"
            " judged, and the course over time is empty between the windows"
        )
    if trace.end is None:
        notes.append("the trace was not closed: its writer was killed, and what it had written is shown")
    elif trace.end.lost_events:
        notes.append(f"{trace.end.lost_events:,} events were lost while it was captured: rates are too low")
    if notes:
        blocks.append(Notices([Notice(f"{note[:1].upper()}{note[1:].rstrip('.')}.") for note in notes]))
    return Section("summary", "What this load asks for", blocks, place="answer")


def sentences(found: TraceCharacter) -> list[str]:
    """The character of a load in sentences, the most important first."""
    seconds = found.seconds
    reads, writes = found.counts["reads"], found.counts["writes"]
    moved = max(reads + writes, 1)
    peak = next((one for one in found.bursts if one.scale_ns == 10**9), None)
    busiest = f", {format_iops(peak.peak_iops)} in its busiest second" if peak is not None else ""
    texts = [
        f"{format_iops(found.ios / seconds)} IOPS on average{busiest}; {percent(reads / moved)} of the I/Os read; "
        f"{format_throughput((found.read_bytes + found.write_bytes) / seconds)}."
    ]
    sizes = [
        text for text in (_sizes_sentence("Reads", found.sizes[0]), _sizes_sentence("Writes", found.sizes[1])) if text
    ]
    texts.append(" ".join(sizes))
    shares = [
        f"{percent(share)} of the {name}"
        for name, share in zip(("reads", "writes"), found.sequential, strict=True)
        if share is not None
    ]
    if shares:
        texts.append(f"{' and '.join(shares)} go on where one of the last I/Os on the device ended (sequential).")
    if found.skew is not None:
        texts.append(
            f"The hottest {HOT_SHARES[2]:.0%} of the {found.skew.extents:,} extents of 1 MiB that were touched get "
            f"{percent(found.skew.hot[2])} of the I/Os."
        )
    texts += [text for text in (_cache_sentence(found), _burst_sentence(found), _waits_sentence(found)) if text]
    return [text for text in texts if text]


def _sizes_sentence(name: str, sizes: dict[int, int]) -> str:
    total = sum(sizes.values())
    if not total:
        return ""
    size, count = max(sizes.items(), key=lambda one: one[1])
    mean = sum(size * count for size, count in sizes.items()) / total
    return f"{name} have {format_bytes(mean)} on average; {percent(count / total)} have {format_bytes(size)}."


def _cache_sentence(found: TraceCharacter) -> str:
    reuse = found.reuse
    if reuse is None or not reuse.hits:
        return ""
    most = reuse.hits[-1][1]
    needed = next(((size, share) for size, share in reuse.hits if share >= 0.9 * most), None)
    touched = f"{format_bytes(reuse.touched_bytes)} were touched"
    if most < 0.01 or needed is None:
        return f"{touched}; hardly a block is read again, so that a cache does not help reads."
    return (
        f"{touched}; a cache of {format_bytes(needed[0])} would serve {percent(needed[1])} of the blocks read, and none"
        f" more than {percent(most)}: the others are read for the first time."
    )


def _burst_sentence(found: TraceCharacter) -> str:
    told = [one for one in found.bursts if one.scale_ns in (10**9, 6 * 10**10)]
    if not told:
        return ""
    if max(one.dispersion for one in told) <= RANDOM_DISPERSION:
        return "Arrivals are as even as random ones."
    if max(one.peak_to_mean for one in told) < BURST_PEAK:
        return "Arrivals are nearly even."
    parts = [f"{one.peak_to_mean:,.3g} times the mean over {format_duration(one.scale_ns / 1e9)}" for one in told]
    return f"The load comes in bursts: its peak is {' and '.join(parts)}. Size storage for the peak, not for the mean."


def _waits_sentence(found: TraceCharacter) -> str:
    device = found.waits.get("device", {})
    parts = [
        f"{side}s {format_latency(one['mean'])} on average, {format_latency(one['percentiles']['p99'])} at p99"
        for side, one in device.items()
        if side != "flush"
    ]
    if not parts:
        return "The trace tells no response times."
    depth = "" if found.outstanding_mean is None else f"; {found.outstanding_mean:,.3g} I/Os were under way on average"
    return f"Storage answered: {', '.join(parts)}{depth}."


# Sections


def _time(found: TraceCharacter) -> Section:
    step = format_duration(found.over_time.step_ns / 1e9)
    words = f"Rates, throughput and response times of reads and writes, means of {step} each."
    blocks: list[Block] = [figure_or_words("course", words, words if found.span_ns else "The trace is of one moment.",
                                           figures.course(found.over_time, found.span_ns))]  # fmt: skip
    if found.bursts:
        columns = [
            Column("over"),
            Column("busiest IOPS", number=True),
            Column("times the mean", number=True),
            Column("dispersion", number=True),
        ]
        rows = [
            [
                Cell(format_duration_ns(one.scale_ns)),
                Cell(format_iops(one.peak_iops)),
                Cell(_figure(one.peak_to_mean)),
                Cell(_figure(one.dispersion)),
            ]
            for one in found.bursts
        ]
        caption = (
            "Bursts: I/Os of intervals of each length; dispersion is their variance over their mean, 1 where random"
        )
        blocks.append(Table("bursts", caption, columns, rows, dense=True))
    return Section("time", "Over time", blocks)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _mix(found: TraceCharacter) -> Section:
    seconds = found.seconds
    columns = [
        Column("kind"),
        *(Column(title, number=True) for title in ("I/Os", "IOPS", "share", "MiB/s", "mean size", "sequential")),
    ]
    rows = []
    for name, number, moved in (("reads", 0, found.read_bytes), ("writes", 1, found.write_bytes)):
        count = found.counts[name]
        rows.append(
            [
                Cell(name),
                Cell(f"{count:,}"),
                Cell(_rate(count / seconds)),
                Cell(percent(count / max(found.ios, 1))),
                Cell(f"{moved / seconds / 2**20:,.3g}"),
                Cell(format_bytes(moved / count) if count else DASH),
                Cell(percent(found.sequential[number])),
            ]
        )
    others = (
        ("flushes", "flushes"),
        ("writes that flush first", "preflushes"),
        ("writes with FUA", "fua"),
        ("discards", "discards"),
        ("failed", "failed"),
    )
    for title, name in others:
        if count := found.counts[name]:
            rows.append(
                [
                    Cell(title),
                    Cell(f"{count:,}"),
                    Cell(_rate(count / seconds)),
                    Cell(percent(count / max(found.ios, 1))),
                    *[Cell(DASH)] * 3,
                ]
            )
    streams = ""
    if any(found.sequential):
        streams = (
            f" A stream has {found.run_ios:,.3g} I/Os on average, and about {max(found.interleaved, 1):,.2g} streams "
            "of a device are interleaved."
        )
    blocks: list[Block] = [
        Table("mix", "What is asked for", columns, rows, dense=True).known(DASH),
        Paragraph(f"An I/O is sequential if it begins where one of the last 32 on its device ended.{streams}"),
    ]
    shown = _size_rows(found)
    chart = figures.sizes(shown)
    if chart is not None:
        told = "; ".join(f"{row['size']} {row['series']} {row['share']:.3g} %" for row in shown if row["share"] >= 5)
        blocks.append(FigureElement("sizes", "Sizes of I/Os.", f"Sizes: {told or 'none has 5 %'}.", chart))
    return Section("mix", "Mix and sizes", blocks)


def _rate(rate: float) -> str:
    return format_iops(rate) if rate >= 10 else f"{rate:.2g}"


def _size_rows(found: TraceCharacter) -> list[figures.SizeRow]:
    """The most frequent sizes, and the others by the power of two up to which they reach."""
    total = sum(sum(one.values()) for one in found.sizes)
    both = {size: found.sizes[0].get(size, 0) + found.sizes[1].get(size, 0) for one in found.sizes for size in one}
    shown = sorted(sorted(both, key=lambda size: both[size], reverse=True)[: figures.SIZES_SHOWN])
    rows: list[figures.SizeRow] = []
    for series, sizes in zip(("reads", "writes"), found.sizes, strict=True):
        rows += [
            {"size": format_bytes(size), "series": series, "share": 100 * sizes.get(size, 0) / total} for size in shown
        ]
        others = sum(count for size, count in sizes.items() if size not in shown)
        if len(both) > len(shown):
            rows.append({"size": "others", "series": series, "share": 100 * others / total})
    return rows


def _places(found: TraceCharacter) -> Section | None:
    skew, reuse = found.skew, found.reuse
    blocks: list[Block] = []
    if skew is not None:
        shares = [
            f"the hottest {share:.0%} get {percent(ios)}" for share, ios in zip(HOT_SHARES, skew.hot, strict=True)
        ]
        fit = (
            f"A Zipf distribution with exponent {skew.zipf:.2f} is nearest; it is off by up to "
            f"{percent(skew.zipf_error)} of the I/Os."
        )
        blocks.append(
            Paragraph(f"Of {skew.extents:,} extents of 1 MiB that were touched, {', '.join(shares)} of the I/Os. {fit}")
        )
        words = f"Skew: {'; '.join(shares)} of the I/Os."
        caption = "The share of the I/Os that the hottest extents get; dashed: no skew."
        blocks.append(figure_or_words("skew", caption, words, figures.skew(skew)))
    if reuse is not None:
        blocks += _reuse_blocks(found)
    return Section("places", "Places and working set", blocks) if blocks else None


def _reuse_blocks(found: TraceCharacter) -> list[Block]:
    reuse = found.reuse
    assert reuse is not None
    facts = [
        f"Distinct bytes: {format_bytes(reuse.read_bytes)} read, {format_bytes(reuse.written_bytes)} written, "
        f"{format_bytes(reuse.touched_bytes)} in all."
    ]
    if reuse.overwritten is not None:
        facts.append(_again_text("written blocks", "overwrite what was written last", reuse.overwritten))
    if reuse.read_back is not None:
        facts.append(_again_text("read blocks", "read what was written last", reuse.read_back))
    if reuse.rate < 1:
        facts.append(
            f"These figures and the curve are of a sample: {percent(reuse.rate)} of the blocks, chosen by hash."
        )
    blocks: list[Block] = [Bullets(facts)]
    if reuse.hits and reuse.first_reads is not None:
        chosen = reuse.hits[:: max(len(reuse.hits) // 5, 1)]
        told = "; ".join(f"{format_bytes(size)} serves {percent(share)}" for size, share in chosen)
        words = f"A cache of {told} of the blocks read."
        facts.insert(1, words)
        caption = "The share of blocks read that a cache of each size serves (LRU, empty at the begin of the trace)."
        blocks.append(figure_or_words("hits", caption, words, figures.hits(reuse.hits, reuse.first_reads)))
    if len(reuse.by_hour) > 1:
        columns = [Column("hour"), Column("read", number=True), Column("written", number=True)]
        step = -(-len(reuse.by_hour) // 24)
        rows = [
            [Cell(str(hour)), Cell(format_bytes(read)), Cell(format_bytes(written))]
            for hour, read, written in reuse.by_hour[::step]
        ]
        every = "" if step == 1 else f"; one of {step} is shown"
        blocks.append(Table("hours", f"Distinct bytes of each hour that has any{every}", columns, rows, dense=True))
    return blocks


def _again_text(of: str, what: str, again: UsedAgain) -> str:
    if not again.after_ns:
        return f"None of the {of} {what}."
    low, middle, high = (format_duration_ns(one) for one in again.after_ns)
    when = f"half of them within {middle} (10 % within {low}, 90 % within {high})"
    return f"{percent(again.share)} of the {of} {what}: {when}."


def format_duration_ns(time_ns: float) -> str:
    """A time of any size."""
    if time_ns >= 1e9:
        return format_duration(time_ns / 1e9) if time_ns >= 6e10 else f"{time_ns / 1e9:.3g} s"
    return format_latency(time_ns)


def _waits(trace: Trace, found: TraceCharacter) -> Section | None:
    if not found.waits:
        return None
    names = {"p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p99_9": "p99.9", "p99_99": "p99.99"}
    parts = {"queue": "queue", "device": "device"} if trace.head.times == "split" else {"device": "response"}
    columns = [
        Column("time"),
        Column("of"),
        *(Column(title, number=True) for title in ("I/Os", "mean", *names.values(), "max")),
    ]
    rows = []
    for part, title in parts.items():
        for side in ("read", "write", "flush"):
            one = found.waits.get(part, {}).get(side)
            if one is not None:
                rows.append(
                    [
                        Cell(title),
                        Cell(f"{side}s" if side != "flush" else "flushes"),
                        Cell(f"{one['count']:,}"),
                        Cell(_time_text(one["mean"], trace)),
                        *(Cell(_time_text(one["percentiles"][name], trace)) for name in PERCENTILES),
                        Cell(_time_text(one["max"], trace)),
                    ]
                )
    words = (
        "Queue is the time from the request to its issue to the device, device the time from there to its completion: "
        "only the second can be blamed on the storage."
    )
    whole = "The trace tells a response time as a whole."
    blocks: list[Block] = [
        Table("waits", "Latencies", columns, rows, dense=True),
        Paragraph(words if trace.head.times == "split" else whole),
    ]
    return Section("waits", "How long I/Os took", blocks)


def _time_text(time_ns: float, trace: Trace) -> str:
    """A time; one that is below what the trace can tell is told so."""
    least_ns = max(trace.head.resolution_ns, UNIT_NS)
    return f"< {format_latency(least_ns)}" if time_ns < least_ns else format_latency(time_ns)


def _asked(found: TraceCharacter) -> Section | None:
    blocks: list[Block] = []
    if len(found.devices) > 1:
        blocks.append(_names("devices", "Devices", "device", found.devices, found))
    known = {name: one for name, one in found.processes.items() if name}
    if known:
        blocks.append(
            _names(
                "processes",
                "Who asked",
                "process",
                {name or "unknown": one for name, one in found.processes.items()},
                found,
            )
        )
        blocks.append(
            Paragraph(
                "The system writes buffered data later, in its own name: processes are right for reads and "
                "direct writes alone.",
                tone="quiet",
            )
        )
    return Section("asked", "Devices and processes", blocks) if blocks else None


def _names(name: str, caption: str, title: str, asked: dict[str, AskedIos], found: TraceCharacter) -> Table:
    columns = [
        Column(title),
        *(Column(one, number=True) for one in ("I/Os", "share", "reads", "MiB read", "MiB written")),
    ]
    ranked: Sequence[tuple[str, AskedIos]] = sorted(asked.items(), key=lambda one: -one[1].ios)
    rows = [
        [
            Cell(shorten(own, 40)),
            Cell(f"{one.ios:,}"),
            Cell(percent(one.ios / found.ios)),
            Cell(percent(one.reads / max(one.ios, 1))),
            Cell(f"{one.read_bytes / 2**20:,.4g}"),
            Cell(f"{one.write_bytes / 2**20:,.4g}"),
        ]
        for own, one in ranked[:NAMES_SHOWN]
    ]
    more = f"; the busiest {NAMES_SHOWN} of {len(ranked):,}" if len(ranked) > NAMES_SHOWN else ""
    return Table(name, f"{caption}{more}", columns, rows, dense=True)
