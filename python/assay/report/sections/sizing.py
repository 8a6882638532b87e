"""The report of `assay size`: the purchase, its reasons, how long it lasts, and what it hangs on."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.units import count_of, format_iops, format_latency, format_share, format_when
from assay.document.elements import (
    Block,
    Cell,
    Column,
    Document,
    FactList,
    FigureElement,
    Notice,
    Notices,
    Paragraph,
    Section,
    Table,
)
from assay.document.text import DASH, moment, shorten
from assay.insight.sizing import text as words
from assay.insight.sizing.answer import purchase_of, times_text
from assay.insight.studies.words import capital
from assay.record.shapes.manifest import Manifest
from assay.record.shapes.sizing import Chosen, Market, Sizing
from assay.record.source import clean
from assay.report.figures_sizing import FrontierRow, GrowthRow, frontier, frontier_chart, growth_chart
from assay.report.head import headed
from assay.report.sections.array import model_words
from assay.targets.arrays.model.configuration import size_text


def sizing_document(manifest: Manifest) -> Document:
    """The document of a run whose manifest has the key `sizing`."""
    manifest = clean(manifest)
    answer: Sizing = manifest["sizing"]
    started = moment(manifest.get("started_utc_ns"))
    facts = ("assay size", started, shorten(str(answer["source"]), 60))
    return headed(facts, sizing_sections(answer), manifest)


def sizing_sections(answer: Sizing) -> list[Section]:
    """Every section of an answer, in the order in which a reader decides."""
    sections = [_summary(answer), _need(answer), _candidates(answer)]
    if (best := purchase_of(answer["chosen"])) is not None:
        sections += [_growth(answer, best), _what_if(answer)]
    return [*sections, _rules(answer), *_refused(answer)]


def _summary(answer: Sizing) -> Section:
    blocks: list[Block] = [Paragraph(words.headline(answer), strong=True, tone=words.headline_tone(answer))]
    best = purchase_of(answer["chosen"])
    if best is not None:
        blocks.append(
            Paragraph(
                f"Within the limits it holds {format_iops(best['iops_held'])} IOPS,"
                f" {times_text(best['holds_times'])} what is needed {format_when(answer['years'])}. It is"
                f" {format_share(best['fill'])} full then. {words.first_out_sentence(best)}"
            )
        )
        blocks.append(_table("chosen", f"What to buy; the first is chosen by {answer['cheapest_by']}, the smallest by"
                             f" {answer['smallest_by']}", *words.shown_choices(answer)))  # fmt: skip
        blocks += [Paragraph(text) for text in words.side_sentences(answer)]
        if answer["sensitivity"] is not None:
            blocks.append(Paragraph(words.sensitivity_sentence(answer)))
        blocks += [Paragraph(text) for text in words.loss_sentences(answer)]
        blocks.append(FactList("chosen-facts", _facts(answer, best)))
        if market := answer.get("market"):
            blocks += _prices(market)
    if answer["difference"] is not None:
        rows = [[one["what"], one["before"], one["after"]] for one in answer["difference"]["rows"]]
        asked = ", ".join(answer["difference"]["changes"])
        blocks.append(_table("difference", f"What if {asked}", ("", "before", "after"), rows))
    blocks += [Paragraph(sentence) for sentence in words.server_sentences(answer)]
    if answer["notices"]:
        blocks.append(Notices([Notice(str(text)) for text in answer["notices"]]))
    return Section("summary", "What to buy", blocks)


def _prices(market: Market) -> list[Block]:
    """List prices with date and source."""
    if not market["prices"]:
        return []
    columns = ("price", "region", "currency", "of", "age", "read in")
    rows = [
        [one["name"], one["region"], one["currency"], one["dated"], one["age"], one["source"]]
        for one in market["prices"]
    ]
    caption = "List prices that the costs rest on; machines, servers, traffic and discounts are not among them"
    return [_table("prices", caption, columns, rows)]


def _product(best: Chosen) -> tuple[str, str]:
    if best.get("side") == "cloud":
        return "Volumes", best["title"]
    return "Array", f"{best['title']}, {best['members']} of them, RAID {str(best['raid']).upper()}"


def _facts(answer: Sizing, best: Chosen) -> list[tuple[str, str]]:
    wear = best.get("endurance")
    items = [
        _product(best),
        ("Model", "; ".join(model_words(best["title"], one) for one in best["targets"])),
        ("Cost", words.spending_text(answer, best)),
        ("For each unit of currency a month", words.worth_text(best)),
        ("Rack units", f"{best['rack_units']:g}" if best["rack_units"] is not None else DASH),
        ("Power", f"{best['power_w']:,.0f} W" if best["power_w"] is not None else DASH),
        ("Space", f"{size_text(best['usable_bytes'])} usable, {size_text(best['free_bytes'])} of it stay free"),
        ("Latency at the need", format_latency(best["latency_ns"])),
        ("Rebuild of a disk", f"{best['rebuild_h']:.1f} h" if best["rebuild_h"] is not None else DASH),
        ("Loss of data", f"{words.loss_text(best['loss_probability'])} {format_when(answer['service_years'])}"
         if best["loss_probability"] is not None else DASH),
        ("Write amplification", f"{wear['write_amplification']:.1f} bytes programmed for each byte written, copies and"
                                " parity included" if wear else DASH),
        ("Certainty", f"one standard deviation {format_share(best['model_share'])}: {best['model_basis']}; demand"
                      f" {format_share(answer['demand']['spread'])}"),
    ]  # fmt: skip
    return [(name, value) for name, value in items if value != DASH]


def _need(answer: Sizing) -> Section:
    blocks: list[Block] = []
    measured = answer["measured"]
    if measured is not None:
        told = measured["coverage"]
        at = f"{measured['percentile'] * 100:g}th percentile of the busiest hours"
        blocks.append(Paragraph(f"The load is measured: {measured['source']}" + (f" {told['text']}." if told else ".")))
        caption = f"What was measured, {at}" if told else "What was measured at the busiest point"
        blocks.append(_table("measured", caption, words.VOLUME_COLUMNS, words.volume_rows(answer)))
    sized, now = answer["demand"]["sized_for"], answer["demand"]["now"]
    held = [one["data_bytes"] + one["log_bytes"] for one in (now, sized)]
    later = (
        f"; {format_when(answer['years'])} {format_iops(sized['iops'])} IOPS and {size_text(held[1])}"
        if answer["years"]
        else ""
    )
    blocks.append(
        Paragraph(
            f"Now it is {format_iops(now['iops'])} IOPS and {size_text(held[0])}{later}. A healthy array must hold"
            f" {format_share(answer['demand']['head_room'])} more I/O than that. Databases are derated: a raw"
            " profile must reach more than they will."
        )
    )
    caption = f"What storage must hold {format_when(answer['years'])}; streams of one peak coincide"
    blocks.append(_table("demand", caption, words.DEMAND_COLUMNS, words.demand_rows(answer)))
    return Section("need", "The need", blocks)


def _candidates(answer: Sizing) -> Section:
    held, refused = _candidate_rows(answer, holds=True), _candidate_rows(answer, holds=False)
    sizes = count_of(len(held) + len(refused), "size")
    looked = f"{sizes} of arrays and volumes were looked at with {answer['simulations']} simulations"
    if not held:
        return Section(
            "candidates", "Candidates", [Paragraph(f"{looked}; none holds the need."), refused_table(answer)]
        )
    text = f"{looked}. {len(held)} of them {'holds' if len(held) == 1 else 'hold'} the need"
    text += f"; the report of the sizing lists the other {len(refused)} at its end, with reasons." if refused else "."
    blocks: list[Block] = [Paragraph(text)]
    blocks += [found for found in [_frontier(answer)] if found is not None]
    columns = [name for name in words.CANDIDATE_COLUMNS if name not in ("holds", "why not")]
    blocks.append(
        _table("candidates", "Sizes that hold the need", columns, [[row[name] for name in columns] for row in held])
    )
    return Section("candidates", "Candidates", blocks)


def _candidate_rows(answer: Sizing, *, holds: bool) -> list[dict[str, str]]:
    return [
        dict(zip(words.CANDIDATE_COLUMNS, texts, strict=True))
        for one, texts in zip(answer["candidates"], words.candidate_rows(answer), strict=True)
        if bool(one["holds"]) is holds
    ]


def refused_table(answer: Sizing) -> Table:
    """The sizes that do not hold the need, each with its reason."""
    columns = [name for name in words.CANDIDATE_COLUMNS if name != "holds"]
    rows = [[row[name] for name in columns] for row in _candidate_rows(answer, holds=False)]
    return _table("refused", "Sizes that do not hold the need, and why", columns, rows)


REFUSED = "refused"
"""The section of the sizes that do not hold the need."""


def _refused(answer: Sizing) -> list[Section]:
    """The refused sizes at the end; none where they are the answer."""
    if all(one["holds"] for one in answer["candidates"]) or not any(one["holds"] for one in answer["candidates"]):
        return []
    return [Section(REFUSED, "Sizes that do not hold the need", [refused_table(answer)])]


def _frontier_rows(answer: Sizing) -> list[FrontierRow]:
    by_cost = answer["cheapest_by"] == "cost"
    return [
        {"label": one["label"], "cost": cost, "latency_ms": latency_ns / 1e6}
        for one in answer["candidates"]
        if one["holds"] and (latency_ns := one.get("latency_ns"))
        for cost in [one.get("cost") if by_cost else one.get("disks")]
        if cost is not None
    ]


def _frontier(answer: Sizing) -> FigureElement | None:
    rows = _frontier_rows(answer)
    by_cost = answer["cheapest_by"] == "cost"
    title = f"cost, {answer['currency']}".rstrip(", ") if by_cost else "disks (no costs are stated)"
    chart = frontier_chart(rows, title)
    if chart is None:
        return None
    taken = "what it costs" if by_cost else "how many disks it takes"
    caption = f"The smallest size of each array that holds the need: {taken}, and how soon it answers."
    if len(frontier(rows)) > 1:
        caption += " The line joins those that no other beats in both."
    alternative = "; ".join(f"{row['label']}: {row['cost']:g}, {row['latency_ms']:.1f} ms" for row in rows)
    return FigureElement("frontier", caption, alternative, chart)


def _growth(answer: Sizing, best: Chosen) -> Section:
    rows: list[GrowthRow] = [
        {"year": one["year"], "resource": name, "used": used}
        for one in best["growth"]["years"]
        for name, used in one["used"].items()
    ]
    blocks: list[Block] = []
    chart = growth_chart(rows, answer["years"])
    if chart is not None:
        caption = (
            f"{best['label']}: what is used of each resource over the years. At the dashed line it runs out; the"
            " upright line is the end of the time that is sized for."
        )
        alternative = "; ".join(": ".join(row) for row in words.growth_rows(best))
        blocks.append(FigureElement("growth", caption, alternative, chart))
    blocks.append(_table("runs-out", "The year in which each resource runs out", words.GROWTH_COLUMNS,
                         words.growth_rows(best)))  # fmt: skip
    return Section("growth", "How long it lasts", blocks)


def _what_if(answer: Sizing) -> Section:
    blocks: list[Block] = [Paragraph(words.sensitivity_sentence(answer))]
    rows = words.sensitivity_rows(answer)
    if rows:
        place = words.SENSITIVITY_COLUMNS.index("changes")
        cells = [
            [
                Cell(text, tone="warn" if number == place and text == "yes" else "plain")
                for number, text in enumerate(row)
            ]
            for row in rows
        ]
        columns = [
            Column(capital(name), weight=2.2 if "purchase" in name else 1.3) for name in words.SENSITIVITY_COLUMNS
        ]
        caption = "What would be bought if one assumption were another, of the arrays that cost least."
        blocks.append(Table("what-if", caption, columns, cells, dense=True))
    return Section("what-if", "What would change the purchase", blocks)


def _rules(answer: Sizing) -> Section:
    blocks: list[Block] = [
        _table("rules", "The method's rules and what they did", words.RULE_COLUMNS, words.rule_rows(answer)),
        _table("assumptions", "What the answer rests on", words.ASSUMPTION_COLUMNS, words.assumption_rows(answer)),
    ]
    return Section("rules", "Rules and assumptions", blocks)


_NUMBERS = {
    "disks",
    "cost",
    "full",
    "IOPS",
    "IOPS it holds",
    "latency",
    "block",
    "reads",
    "mean I/O",
    "runs out in year",
}
_WIDE = {
    "candidate": 2.4,
    "read in": 4.0,
    "why not": 4.0,
    "disks": 0.6,
    "full": 0.6,
    "rule": 1.6,
    "effect here": 2.2,
    "source": 1.6,
    "assumption": 2.0,
    "from": 1.6,
    "what": 1.6,
}


def _table(name: str, caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    # What is known of no row, such as costs that are not stated, is no column.
    known = [place for place, _ in enumerate(columns) if not rows or any(row[place] != DASH for row in rows)]
    columns, rows = [columns[place] for place in known], [[row[place] for place in known] for row in rows]
    heads = [Column(capital(title), number=title in _NUMBERS, weight=_WIDE.get(title, 1.0)) for title in columns]
    return Table(name, f"{caption}.", heads, [[Cell(text) for text in row] for row in rows], dense=True)
