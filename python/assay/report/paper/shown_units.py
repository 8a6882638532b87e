"""Units of throughput in a paper: MiB/s with MB/s beside it, or one of them, decided in this one place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TypedDict, cast

from assay.document.elements import Block, Cell, Document, FigureElement, Specification, Table
from assay.report.paper.rewritten import Redrawn, rewritten
from assay.report.paper.words import Units

_BOTH = re.compile(r"([\d,.]+ MiB/s) \(([\d,.]+ MB/s)\)")
_ONE = re.compile(r"(?<![\w.,])([\d,]+(?:\.\d+)?)( to ([\d,]+(?:\.\d+)?))? (MiB/s|MB/s)")
_MEBI = 2**20
_NAMES = {"binary": "MiB/s", "decimal": "MB/s"}


def in_units(document: Document, units: Units) -> Document:
    """A document with throughput in the units that are wanted: in texts, tables and axes."""
    if units == "both":
        return document
    sections = [
        replace(section, blocks=[_block(block, units) for block in section.blocks]) for section in document.sections
    ]
    return replace(document, sections=sections)


def in_one(text: str, units: Units) -> str:
    """A text with throughput in one unit.

    Examples
    --------
    >>> in_one("100 MiB/s (105 MB/s)", "decimal"), in_one("100 MB/s", "binary"), in_one("1 to 2 MiB/s", "decimal")
    ('105 MB/s', '95.4 MiB/s', '1.05 to 2.10 MB/s')
    """
    wanted = _NAMES[units]
    text = _BOTH.sub(lambda match: match[1] if units == "binary" else match[2], text)

    def one(match: re.Match[str]) -> str:
        if match[4] == wanted:
            return match[0]
        edges = [_converted(number, units) for number in (match[1], match[3]) if number]
        return f"{' to '.join(edges)} {wanted}"

    return _ONE.sub(one, text)


def _converted(number: str, units: Units) -> str:
    value = float(number.replace(",", "")) * (1e6 / _MEBI if units == "binary" else _MEBI / 1e6)
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def _block(block: Block, units: Units) -> Block:
    made = rewritten(block, lambda text: in_one(text, units))
    if isinstance(made, Table):
        return _table(made, units)
    if isinstance(made, FigureElement):
        other, wanted = _NAMES["decimal" if units == "binary" else "binary"], _NAMES[units]
        told = made.alternative.replace(f"({other})", f"({wanted})")
        return replace(made, alternative=told, chart=Redrawn(made.chart, lambda value: _chart(value, units)))
    return made


def _table(table: Table, units: Units) -> Table:
    """A table without the columns of the other unit; where that is the only one, its figures are converted."""
    wanted, other = _NAMES[units], _NAMES["decimal" if units == "binary" else "binary"]
    titles = [column.title for column in table.columns]
    pairs = {at for at, title in enumerate(titles) if other in title and title.replace(other, wanted) in titles}
    alone = {at for at, title in enumerate(titles) if other in title and at not in pairs}
    if not pairs and not alone:
        return table
    rows = []
    for row in table.placed():
        kept: list[Cell] = []
        for cell, at in row:
            if at in pairs:
                continue
            kept.append(replace(cell, text=_number(cell.text, units)) if at in alone else cell)
        rows.append(kept)
    columns = [replace(column, title=column.title.replace(other, wanted) if at in alone else column.title)
               for at, column in enumerate(table.columns) if at not in pairs]  # fmt: skip
    return replace(table, columns=columns, rows=rows)


def _number(text: str, units: Units) -> str:
    return _converted(text, units) if re.fullmatch(r"[\d,]+(\.\d+)?", text) else text


class VegaScale(TypedDict, total=False):
    """What of a scale counts: its ends, or its names."""

    domain: list[float | str]


class VegaChannel(TypedDict, total=False):
    """What a channel shows, and of which field."""

    title: str | None
    field: str
    type: str
    scale: VegaScale | None


VegaRow = dict[str, float | str | None]
"""A row of data, by the names of its fields."""


class VegaData(TypedDict, total=False):
    """Data of a view: the name of a data set, or rows."""

    name: str
    values: list[VegaRow]


class VegaView(TypedDict, total=False):
    """A view of a chart in Vega-Lite, as far as it is changed here."""

    data: VegaData
    datasets: dict[str, list[VegaRow]]
    encoding: dict[str, VegaChannel]
    layer: list[VegaView]
    hconcat: list[VegaView]
    vconcat: list[VegaView]
    concat: list[VegaView]


def _chart(specification: Specification, units: Units) -> Specification:
    """A chart whose axes in the other unit are in the wanted one, with the data that lie along them."""
    value = cast(VegaView, specification)
    other = _NAMES["decimal" if units == "binary" else "binary"]
    factor = 1e6 / _MEBI if units == "binary" else _MEBI / 1e6
    datasets = value.get("datasets") or {}
    scaled: set[tuple[int, str]] = set()
    for group in _groups(value, {}):
        for axis in ("x", "y"):
            titles = [str((layer.get("encoding", {}).get(axis) or {}).get("title") or "") for layer, _ in group]
            if not any(other in title for title in titles):
                continue
            for layer, data in group:
                rows = datasets.get(str(data.get("name"))) or data.get("values") or []
                _scale(layer, axis, factor, rows, scaled, other, _NAMES[units])
    return specification


Layer = tuple[VegaView, VegaData]
"""A layer and its data, its own or those of what it is in."""


def _groups(value: VegaView, data: VegaData) -> Iterator[list[Layer]]:
    """Layers that share axes."""
    own = value.get("data") or data
    if "layer" in value:
        yield [(layer, layer.get("data") or own) for layer in value["layer"]]
    elif "encoding" in value:
        yield [(value, own)]
    for parts in (value.get("hconcat"), value.get("vconcat"), value.get("concat")):
        for part in parts or []:
            yield from _groups(part, own)


def _scale(
    layer: VegaView, axis: str, factor: float, rows: list[VegaRow], scaled: set[tuple[int, str]],
    other: str, wanted: str,
) -> None:  # fmt: skip
    encoding = layer.get("encoding", {})
    for channel in (axis, f"{axis}2", *(["text"] if axis == "y" else [])):
        shown = encoding.get(channel) or {}
        if isinstance(title := shown.get("title"), str):
            shown["title"] = title.replace(other, wanted)
        scale = shown.get("scale") or {}
        domain = scale.get("domain")
        if isinstance(domain, list):
            ends = [one for one in domain if isinstance(one, int | float)]
            if len(ends) == len(domain):
                scale["domain"] = [one * factor for one in ends]
        name = shown.get("field")
        if name and (id(rows), name) not in scaled and shown.get("type", "quantitative") == "quantitative":
            scaled.add((id(rows), name))
            for row in rows:
                if isinstance(number := row.get(name), int | float):
                    row[name] = number * factor
