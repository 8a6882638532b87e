"""Golden files: compared as they are, rewritten when ASSAY_UPDATE_GOLDEN=1."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.document.elements import (
    Block,
    Bullets,
    Cell,
    Document,
    FactList,
    FigureElement,
    Heading,
    Notices,
    Paragraph,
    Section,
    Table,
)

FOLDER = Path(__file__).parent / "golden"


def check_golden(name: str, text: str) -> None:
    path = FOLDER / name
    if os.environ.get("ASSAY_UPDATE_GOLDEN") == "1":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"no golden file {name}; set ASSAY_UPDATE_GOLDEN=1 to write it"
    assert text == path.read_text(), f"{name} changed; look at the report, then set ASSAY_UPDATE_GOLDEN=1"


def without_run_id(text: str) -> str:
    return re.sub(r"\d{8}-\d{6}-[a-z]+-[0-9a-f]{6}", "RUN-ID", text)


def stable_html(page: str) -> str:
    """Page without its style, drawings and run id, one element a line."""
    page = re.sub(r"<style>.*?</style>", "<style/>", page, flags=re.S)
    page = re.sub(r"<svg .*?</svg>", "<svg/>", page, flags=re.S)
    return "\n".join(line.strip() for line in without_run_id(page).splitlines() if line.strip()) + "\n"


def outline(document: Document) -> str:
    """A document as text: every section, text, table and figure, and what each chart draws."""
    lines = [f"# {document.title}", document.facts_line, document.footer]
    for section in document.sections:
        lines += ["", *_section(section)]
    return without_run_id("\n".join(lines)) + "\n"


def _section(section: Section) -> Iterator[str]:
    marks = [section.name, *(["wide"] if section.wide else []), *(["lettered"] if section.lettered else [])]
    yield f"## {section.title} [{', '.join(marks)}]"
    for block in section.blocks:
        yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"### {block.text}"
        case Paragraph():
            yield f"{block.text}{' [strong]' if block.strong else ''}{_tone(block.tone)}"
        case Bullets():
            yield from (f"- {item}" for item in block.items)
        case FactList():
            yield f"facts {block.name}"
            yield from (f"  {name}: {value}" for name, value in block.items)
        case Notices():
            yield "notices"
            yield from (f"  {notice.text}{_tone(notice.tone)}" for notice in block.items)
        case Table():
            yield f"table {block.name}{', dense' if block.dense else ''}: {block.caption}"
            yield "  " + " | ".join(f"{column.title}{' >' if column.number else ''}" for column in block.columns)
            yield from ("  " + " | ".join(map(_cell, row)) for row in block.rows)
        case FigureElement():
            yield f"figure {block.name}: {block.caption}"
            yield f"  told: {block.alternative}"
            chart = block.chart.to_dict()
            yield from ("  " + line for line in _chart(chart, chart.get("datasets", {})))


def _tone(tone: str) -> str:
    return "" if tone == "plain" else f" [{tone}]"


def _cell(cell: Cell) -> str:
    marks = [
        *([cell.tone] if cell.tone != "plain" else []),
        *([f"-> {cell.point_id}"] if cell.point_id else []),
        *([f"#{cell.anchor}"] if cell.anchor else []),
        *([f"{cell.rowspan} rows"] if cell.rowspan > 1 else []),
    ]
    return f"{cell.text} [{', '.join(marks)}]" if marks else cell.text


def _chart(chart: dict[str, Any], datasets: dict[str, Any]) -> Iterator[str]:
    """Layers and panels: mark, channels, series, and the data by their columns, number and ends."""
    for kind in ("layer", "hconcat", "vconcat"):
        for part in chart.get(kind, ()):
            yield from (f"{'  ' if kind != 'layer' else ''}{line}" for line in _chart(part, datasets))
        if kind in chart and kind != "layer":
            yield kind
    if "mark" in chart:
        mark = chart["mark"]["type"] if isinstance(chart["mark"], dict) else chart["mark"]
        channels = [f"{name}={_channel(channel)}" for name, channel in chart.get("encoding", {}).items()]
        yield f"{mark} {' '.join(channels)}{_data(chart.get('data') or {}, datasets)}"


def _channel(channel: dict[str, Any]) -> str:
    title, scale = channel.get("title"), channel.get("scale") or {}
    shown = [str(channel.get("field", channel.get("value", "")))]
    shown += [f'"{title}"'] if title else []
    shown += [str(scale["type"])] if "type" in scale else []
    shown += [",".join(map(_number, scale["domain"]))] if "domain" in scale else []
    return ":".join(shown)


def _data(data: dict[str, Any], datasets: dict[str, Any]) -> str:
    rows = datasets.get(str(data.get("name")), data.get("values")) or []
    if not rows:
        return ""
    ends = [" ".join(f"{name}={_number(value)}" for name, value in row.items()) for row in (rows[0], rows[-1])]
    return f" of {len(rows)}: {ends[0]}" + (f" ... {ends[1]}" if len(rows) > 1 else "")


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
