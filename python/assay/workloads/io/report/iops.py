"""IOPS within limits by block and mix: one bar and one row an answer."""

from __future__ import annotations

from assay.base.units import format_iops
from assay.document.elements import Block, Cell, Column, FigureElement, Section, Table
from assay.document.palette import chunks
from assay.document.text import DASH, id_range, joined, load_label, shorten, throughput_texts
from assay.record.judgement import UNDECIDED
from assay.record.shapes.access import Access
from assay.record.shapes.point import Answer
from assay.record.source import RunFacts
from assay.workloads.io.report.charts import IopsBar, iops_bars
from assay.workloads.io.report.labels import block_bytes_of, block_label, mix_label, order_label, workload_label
from assay.workloads.io.report.points import io_answers
from assay.workloads.io.report.remarks import stopped_text
from assay.workloads.io.shapes import asked_of, found_at


def iops_section(facts: RunFacts) -> Section | None:
    """Build the section on answers; None when the run searched for nothing."""
    answers = sorted(io_answers(facts), key=_place)
    if not answers:
        return None
    blocks: list[Block] = []
    rows = answer_rows(answers)
    mixes = list(dict.fromkeys(row["mix"] for row in rows))
    for number, group in enumerate(chunks(mixes), start=1):
        own = [row for row in rows if row["mix"] in group]
        chart = iops_bars(own)
        if chart is None:
            continue
        told = joined(f"{row['block']} {row['mix']} {format_iops(row['iops'])}" for row in own)
        caption = "I/Os per second within the limits, by block size and read/write mix; lines span the 95 % interval."
        caption += f" Points {id_range(row['point_id'] for row in own)}."
        blocks.append(
            FigureElement(f"iops-{number}", caption, f"Bars of I/Os per second within limits: {told}.", chart)
        )
    blocks.append(_answer_table(answers))
    return Section("iops", "I/Os per second within limits", blocks)


def _place(answer: Answer) -> tuple[str, float, float, float]:
    """Order of answers: part, block, random before sequential, most reads first."""
    workload = asked_of(answer)
    random_share, read_share = float(workload.get("random_share") or 0), float(workload.get("read_share") or 0)
    return str(answer.get("part") or ""), block_bytes_of(workload), -random_share, -read_share


def answer_rows(answers: list[Answer]) -> list[IopsBar]:
    """Rows of `charts.iops_bars`; answers without a load that passes have no bar, only a row in the table."""
    shown = [(answer, asked_of(answer), most) for answer in answers if (most := found_at(answer))]
    keys = [(block_label(asked), _mix(asked)) for _, asked, _ in shown]
    rows: list[IopsBar] = []
    for (answer, asked, most), key in zip(shown, keys, strict=True):
        block, mix = key
        interval = answer.get("interval_95") or (None, None)
        # Two answers of one block and mix differ in something the bars do not show, so their names tell them apart.
        label = mix if keys.count(key) == 1 else shorten(f"{mix}, {workload_label(asked)}", 40)
        rows.append(
            {"block": block, "mix": label, "iops": most["iops"] or 0.0, "low": interval[0], "high": interval[1],
             "point_id": most.get("point_id")}
        )  # fmt: skip
    # The legend follows the order of the mixes: most reads first.
    order = {label: place for place, label in enumerate(sorted({row["mix"] for row in rows}, key=_reads_first))}
    return sorted(rows, key=lambda row: order[row["mix"]]) if _one_block_order(rows) else rows


def _mix(workload: Access) -> str:
    order = order_label(workload)
    return mix_label(workload) if order in ("random", "") else f"{mix_label(workload)} {order}"


def _reads_first(label: str) -> tuple[float, str]:
    number = label.split("/")[0].split(" ")[0]
    share = float(number) if number.replace(".", "", 1).isdigit() else 0.0
    return (0.0 if "write" in label else -share), label


def _one_block_order(rows: list[IopsBar]) -> bool:
    """Whether sorting by mix keeps the blocks in order: only when the first mix has every block."""
    first = [row["block"] for row in rows if row["mix"] == min((row["mix"] for row in rows), key=_reads_first)]
    return first == list(dict.fromkeys(row["block"] for row in rows))


def _answer_table(answers: list[Answer]) -> Table:
    columns = [
        Column("Workload", weight=2.4), Column("Block", number=True, weight=0.9), Column("Mix", weight=1.3),
        Column("Load", weight=1.2), Column("IOPS", number=True, weight=1.0),
        Column("95 % interval", number=True, weight=1.5),
        Column("Knee", weight=1.4), Column("Edge", weight=1.2),
        Column("MiB/s", number=True, weight=0.95), Column("MB/s", number=True, weight=0.95),
        Column("What limited it", weight=2.6), Column("Curve", weight=1.6),
    ]  # fmt: skip
    rows = []
    for answer in answers:
        workload, most = asked_of(answer), found_at(answer)
        interval, is_open = answer.get("interval_95"), answer.get("limited_by") in UNDECIDED
        span = f"{format_iops(interval[0])} to {format_iops(interval[1])}" if interval else DASH
        note = "; the curve is not monotone" if answer.get("non_monotone") else ""
        note += "; repeats did not decide the limit at the edge" if answer.get("undecided") else ""
        binary, decimal = throughput_texts(most.get("bytes_per_s") if most else None)
        rows.append(
            [
                Cell(shorten(workload_label(workload), 60)),
                Cell(block_label(workload)),
                Cell(mix_label(workload)),
                Cell(load_label(most) if most else DASH),
                Cell(
                    format_iops(most["iops"] or 0.0) if most else "unknown" if is_open else "none",
                    "plain" if most else "warn" if is_open else "bad",
                    most.get("point_id") if most else None,
                ),
                Cell(span, "plain" if interval else "quiet"),
                *(Cell(load_label(end) if end else DASH) for end in (answer.get("knee"), answer.get("edge"))),
                Cell(binary),
                Cell(decimal),
                Cell(stopped_text(answer, by="") + note),
                Cell(id_range(answer.get("point_ids") or []), "quiet"),
            ]
        )
    caption = (
        "The most throughput within the limits of each workload, the smallest load with 95 % of it (knee), and the"
        " largest load within the limits (edge)."
    )
    return Table("answers", caption, columns, rows, dense=True)
