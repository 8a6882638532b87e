"""The report of `assay model reliability`: ratios with their inputs, losses by policy, what they hang on."""

from __future__ import annotations

from typing import Literal

from assay.base.tables import Record
from assay.base.units import format_when, format_years
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
from assay.document.palette import chunks
from assay.document.text import DASH, moment
from assay.record.shapes.manifest import Manifest
from assay.record.shapes.study import Input, Policy, Reliability
from assay.record.source import clean
from assay.report.figures_reliability import LossRow, RatioRow, loss_curves, ratio_ranges
from assay.report.head import headed
from assay.targets.arrays.model.reliability_text import (
    input_rows,
    inputs_sentence,
    policy_columns,
    policy_rows,
    ratio_sentence,
    show_input,
    show_probability,
    show_years,
    three_digits,
)

TOGETHER = "all inputs together"
METHOD = (
    "A group is a mirrored pair or a parity set. Disks fail at a constant rate, each by itself; the lost disks of a"
    " group are rebuilt in one pass, which begins again when another one fails; with no redundancy left, what cannot"
    " be read is lost. The closed forms are the first order of that, the Monte Carlo check plays it event by event"
    " with failures made likely and weighted back; they agree when the closed form lies in the 95 % interval widened"
    " by 1 %. Failures that come together (a shelf, a batch, a mistake), firmware and controllers are not in it:"
    " real losses are more frequent, and the ratios closer to 1."
)


def reliability_document(manifest: Manifest) -> Document:
    """The document of a run whose manifest has the key `reliability`."""
    manifest = clean(manifest)
    answer: Reliability = manifest["reliability"]
    started = moment(manifest.get("started_utc_ns"))
    sections = [_summary(answer), _policies(answer), _inputs(answer), _sensitivity(answer)]
    facts = ("assay model reliability", started, f"{format_years(answer['service_years'])} of service")
    return headed(facts, sections, manifest)


def _summary(answer: Reliability) -> Section:
    sentences = [Paragraph(ratio_sentence(ratio, answer), strong=True) for ratio in answer["ratios"]]
    facts = [("With", inputs_sentence(answer)), *((one["title"], _shares(one)) for one in answer["policies"])]
    notices = [Notice(text) for text in answer["notices"]]
    blocks: list[Block] = [*sentences, FactList("facts", facts)]
    if notices:
        blocks.append(Notices(notices))
    return Section("summary", "Which policy loses data how often", blocks)


def _shares(one: Policy) -> str:
    loss = show_probability(one["closed"]["loss_probability"])
    return f"{one['groups_text']}: {loss}, MTTDL {show_years(one['closed']['mttdl_h'])}"


def _policies(answer: Reliability) -> Section:
    titles = policy_columns(answer)
    columns = [Column(title, number=title in ("rebuild", "MTTDL"), weight=_weight(title)) for title in titles]
    rows = []
    for one, texts in zip(answer["policies"], policy_rows(answer), strict=True):
        cells = [Cell(text) for text in texts]
        agree = titles.index("agree")
        cells[agree] = Cell(texts[agree], tone="good" if one["simulated"]["agrees"] else "bad")
        rows.append(cells)
    caption = f"Every policy; {answer['trials']:,} cycles of simulation each, seed {answer['seed']}"
    blocks: list[Block] = [Table("policies", caption, columns, rows, dense=True), Paragraph(METHOD)]
    if answer["failure_shape"] is not None:
        blocks.append(
            Paragraph(
                "What if disks aged: lives and restores as Weibull distributions, lives of shape"
                f" {answer['failure_shape']:g} and the same mean, all disks new at the start."
            )
        )
    return Section("policies", "By policy", blocks)


def _weight(title: str) -> float:
    return 2.0 if "%" in title else 0.7 if title in ("agree", "rebuild") else 1.2


def _inputs(answer: Reliability) -> Section:
    columns = [Column("input"), Column("value", number=True), Column("from"), Column("source", weight=2),
               Column("plausible range", weight=1.4), Column("range from", weight=2.2)]  # fmt: skip
    rows = [[Cell(text) for text in row] for row in input_rows(answer)]
    return Section("inputs", "Inputs", [Table("inputs-table", "What the figures hang on", columns, rows, dense=True)])


def _sensitivity(answer: Reliability) -> Section:
    blocks: list[Block] = []
    rows = list(_range_rows(answer))
    chart = ratio_ranges(rows)
    if chart is not None:
        sentence = " ".join(ratio_sentence(ratio, answer) for ratio in answer["ratios"])
        caption = (
            "How often RAID 5 and RAID 10 lose data, RAID-DP = 1, while one input goes over its plausible range and"
            " the others stay as stated; the lines are the stated inputs, the last row is every combination."
        )
        blocks.append(FigureElement("sensitivity", caption, sentence, chart))
    blocks.append(_ratio_table(answer))
    blocks += _curve_figures(answer)
    return Section("sensitivity-section", "What the ratios and the losses hang on", blocks)


def _label(one: Input) -> str:
    return f"{one['title']} {show_input(one, one['low'])} to {show_input(one, one['high'])}"


_PANELS: tuple[tuple[Literal["five", "ten"], Literal["five_range", "ten_range"], str], ...] = (
    ("five", "five_range", "RAID 5 : RAID-DP"),
    ("ten", "ten_range", "RAID 10 : RAID-DP"),
)


def _range_rows(answer: Reliability) -> list[RatioRow]:
    """One row a ratio, input and basis."""
    labels = {one["key"]: _label(one) for one in answer["inputs"]}
    rows: list[RatioRow] = []
    for key, key_range, panel in _PANELS:
        for ratio in answer["ratios"]:
            spans = [(labels[one["input"]], one[key]) for one in ratio["by_input"]]
            rows += [
                {"panel": panel, "input": label, "basis": ratio["basis"], "low": span[0], "high": span[1],
                 "stated": ratio[key]}
                for label, span in (*spans, (TOGETHER, ratio[key_range]))
            ]  # fmt: skip
    return rows


def _ratio_table(answer: Reliability) -> Table:
    columns = [
        Column("compared on the"),
        Column("policy"),
        Column("disks", weight=1.2),
        Column("data disks", number=True),
        Column("losses, RAID-DP = 1", number=True),
        Column("over the plausible range", number=True, weight=1.4),
    ]
    rows = []
    for ratio in answer["ratios"]:
        spans = (None, ratio["ten_range"], ratio["five_range"])
        for number, (one, span) in enumerate(zip(ratio["layouts"], spans, strict=True)):
            times = (1.0, ratio["ten"], ratio["five"])[number]
            cells = [
                Cell(one["title"]),
                Cell(one["groups_text"]),
                Cell(f"{one['data_disks']}"),
                Cell(three_digits(times)),
                Cell(f"{three_digits(span[0])} to {three_digits(span[1])}" if span else DASH),
            ]
            rows.append([Cell(ratio["basis"], rowspan=3), *cells] if number == 0 else cells)
    return Table("ratios", f"Ratios of loss rates with {inputs_sentence(answer)}", columns, rows, dense=True)


def _curve_figures(answer: Reliability) -> list[FigureElement]:
    """Losses over each input, at most six curves in a figure; layouts that are one and the same share a curve."""
    count = len(answer["policies"])
    titles: dict[str, list[str]] = {}
    for one in answer["policies"]:
        titles.setdefault(_curve_key(one), []).append(one["title"])
    names = {key: f"{' and '.join(who)}, {key.partition('|')[0]}" for key, who in titles.items()}
    units = {one["key"]: f"{one['title']}, {one['unit']}" for one in answer["inputs"]}
    drawn: dict[tuple[str, float, str], LossRow] = {}
    for number, row in enumerate(answer["curves"]):
        name = names[_curve_key(answer["policies"][number % count])]
        drawn.setdefault((row["input"], row["value"], name), {**row, "input": units[row["input"]], "policy": name})
    figures = []
    for number, taken in enumerate(chunks(list(names.values())), 1):
        chart = loss_curves([row for row in drawn.values() if row["policy"] in taken], answer["service_years"])
        if chart is not None:
            caption = (
                f"Probability of losing data {format_when(answer['service_years'])} over the plausible range of each"
                " input, the others as stated (closed forms); markers are the stated inputs."
            )
            alternative = f"Loss probability by input: {', '.join(taken)}."
            figures.append(FigureElement(f"losses-{number}", caption, alternative, chart))
    return figures


def _curve_key(one: Record) -> str:
    return f"{one['groups_text']}|{one['rebuild_h']}"
