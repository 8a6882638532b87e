"""Appendices: every setting, every point, the commands to repeat it, and what is cited."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.document.elements import Block, Cell, Column, FactList, Heading, Paragraph, Table
from assay.document.text import DASH, joined, moment, shorten
from assay.insight.calibration.published_papers import full_names
from assay.record.shapes.manifest import Parameter
from assay.record.source import records
from assay.report.paper.parts import Draft, own_names
from assay.report.paper.sources import PaperSource
from assay.report.sections.array import parameter_table
from assay.report.sections.points import points_section

VALUE_LETTERS = 240


def _differing(parameters: Mapping[str, Parameter], number: str) -> Block:
    made = parameter_table(parameters)
    caption = f"Parameters of the model that differ from those of run {number}."
    return replace(made, caption=caption) if isinstance(made, Table) else made


def settings(sources: Sequence[PaperSource], taken: set[str]) -> Draft:
    """Every setting of every run: of its plans, of the servers, of the model."""
    blocks: list[Block] = []
    arrays: dict[str, tuple[str, Mapping[str, Parameter]]] = {}
    for source in sources:
        own: list[Block] = [*_plan_tables(source), *_server_tables(source)]
        array = (source.manifest.get("target") or {}).get("array") or {}
        held = array.get("parameters") or {}
        number, shown_before = arrays.setdefault(str(array.get("name")), (source.number, held))
        differing = {name: value for name, value in held.items() if value != shown_before.get(name)}
        if held is shown_before and held:
            own.append(parameter_table(held))
        elif differing:
            own.append(_differing(differing, number))
        if own:
            blocks += [
                Heading(f"Run {source.number}: {source.title}"),
                *own_names(own, source.number, taken),
            ]
    shown = blocks or [Paragraph("The runs hold no settings.")]
    return Draft("settings", "Every setting", "settings", {}, {"settings": shown}, lettered=True)


def _plan_tables(source: PaperSource) -> list[Block]:
    """Settings that all parts share, and those in which they differ."""
    plans = {
        str(part.get("name")): dict(_flat(part.get("plan") or {})) for part in records(source.manifest.get("parts"))
    }
    plans = {name: plan for name, plan in plans.items() if plan}
    if not plans:
        return []
    keys = list(dict.fromkeys(key for plan in plans.values() for key in plan))
    shared = [
        key
        for key in keys
        if len({plan.get(key) for plan in plans.values()}) == 1 and key in next(iter(plans.values()))
    ]
    first = next(iter(plans.values()))
    caption = f"Plan of run {source.number}" + (", the settings that all its parts share." if len(plans) > 1 else ".")
    held = [*_engine(source), *((key, first[key]) for key in shared)]
    blocks: list[Block] = [_pairs("plan", caption, held)] if held else []
    differing = [key for key in keys if key not in shared and key not in ("title", "name")]
    told = {name: [f"{key} = {plan[key]}" for key in differing if key in plan] for name, plan in plans.items()}
    rows = [[Cell(shorten(name, 60)), Cell("; ".join(words))] for name, words in told.items() if words]
    if rows:
        wide = [Column("Part"), Column("Settings", weight=2.6)]
        blocks.append(
            Table("plan-parts", f"Settings in which the parts of run {source.number} differ.", wide, rows, dense=True)
        )
    return blocks


def _engine(source: PaperSource) -> list[tuple[str, str]]:
    """What drove the load of a run."""
    engine = source.manifest.get("engine") or {}
    return [(f"engine.{key}", shorten(_words(value), VALUE_LETTERS)) for key, value in engine.items() if value]


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """A plan as dotted keys and values in words."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value, 1):
            yield from _flat(item, f"{name}.{number}" if len(value) > 1 else name)
    elif value is not None:
        yield name, shorten(_words(value), VALUE_LETTERS)


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_words(item) for item in value) or "none"
    return f"{value:,.6g}" if isinstance(value, float) else str(value) or "none"


def _server_tables(source: PaperSource) -> list[Block]:
    blocks: list[Block] = []
    for database in records((source.manifest.get("target") or {}).get("databases")):
        held = database.get("settings")
        if isinstance(held, Mapping) and held:
            caption = f"Settings of the server of {shorten(str(database.get('name')), 40)}, run {source.number}."
            pairs = [(str(name), shorten(_words(value), VALUE_LETTERS) or DASH) for name, value in held.items()]
            blocks.append(_pairs("server", caption, pairs))
    return blocks


def _pairs(name: str, caption: str, held: Sequence[tuple[str, str]]) -> Table:
    """Settings and their values, two in a row."""
    half = -(-len(held) // 2)
    columns = [Column("Setting", weight=1.3), Column("Value", weight=1.4)] * (2 if len(held) > 1 else 1)
    rows = []
    for at in range(half):
        both = [
            held[at],
            *([held[at + half]] if at + half < len(held) else [("", "")] if half > 1 or len(held) > 1 else []),
        ]
        rows.append([Cell(text) for pair in both for text in pair])
    return Table(name, caption, columns, rows, dense=True)


def points(sources: Sequence[PaperSource], taken: set[str]) -> Draft:
    """Every point of every run."""
    blocks: list[Block] = []
    for source in sources:
        if not source.facts.points:
            continue
        made = points_section(source.made.facts, list(source.made.remarks.values()))
        # Words stand in the section of terms.
        own = [block for block in made.blocks if not isinstance(block, Heading | FactList)]
        blocks += [Heading(f"Run {source.number}: {source.title}"), *own_names(own, source.number, taken)]
    shown = blocks or [Paragraph("The runs hold no points.")]
    return Draft("points", "Every point", "points", {}, {"points": shown}, wide=bool(blocks), lettered=True)


def commands(sources: Sequence[PaperSource], command: str, taken: set[str]) -> Draft:
    """The commands that made the runs, with what they were made by."""
    columns = [Column("Run", weight=0.5), Column("What", weight=1.6), Column("Command", weight=3.6),
               Column("Made", weight=1.4), Column("Assay", weight=1.1)]  # fmt: skip
    rows = []
    for source in sources:
        manifest = source.manifest
        words = [str(word) for word in manifest.get("command") or []]
        build = manifest.get("build") or {}
        rows.append(
            [
                Cell(source.number, anchor=source.number),
                Cell(f"{source.title}, {manifest.get('run_id') or DASH}"),
                Cell(f"assay {shlex.join(words)}" if words else DASH),
                Cell(moment(manifest.get("started_utc_ns"))),
                Cell(" ".join(str(word) for word in (build.get("version"), build.get("commit")) if word) or DASH),
            ]
        )
    table = Table("runs", "Runs of this paper, and the commands that made them.", columns, rows)
    return Draft("commands", "How to repeat it", "commands", {"command": command},
                 {"commands": own_names([table], "", taken)}, lettered=True)  # fmt: skip


def references(sources: Sequence[PaperSource], taken: set[str]) -> Draft:
    """Documents that the paper rests on, each with what it is cited for."""
    cited: dict[str, dict[str, None]] = {}

    def cite(source: Any, what: str) -> None:
        name = str(source or "").strip()
        if name:
            cited.setdefault(name, {})[what] = None

    for source in sources:
        for row in records((source.study or {}).get("published")):
            name = str(row.get("source") or "")
            full = f"{name}: {full_names()[name]}" if name in full_names() else name
            cite(full, f"published figures [{source.number}]")
        for one in records((source.facts.told("check") or {}).get("findings")):
            cite(one.get("source"), "best practice")
        array = (source.manifest.get("target") or {}).get("array")
        if array:
            title = str(array.get("title") or array.get("name")).partition(",")[0]
            cite("Assay, docs/models.md", "what models do and do not")
            cite(f"Assay, model file {array.get('name')} ({title})", "parameters of the model, each with its source")
        if source.study is not None:
            cite("Assay, docs/studies.md", "how levels are compared, and where intervals come from")
        if source.kind == "sizing":
            cite("Assay, docs/size.md", f"rules of sizing [{source.number}]")
            for name in ("EQL-OLTP", "EQL-DSS"):
                cite(f"{name}: {full_names()[name]}", f"limits and derating of sizing [{source.number}]")
    cite("Assay, docs/results.md", "what figures mean")
    rows = [[Cell(str(number)), Cell(shorten(name, 300)), Cell(joined(what))]
            for number, (name, what) in enumerate(cited.items(), 1)]  # fmt: skip
    columns = [Column("No.", number=True, weight=0.3), Column("Source", weight=2.6), Column("Cited for", weight=1.8)]
    table = Table("references", "Documents that this paper rests on.", columns, rows)
    return Draft(
        "references", "References", "references", {}, {"references": own_names([table], "", taken)}, lettered=True
    )
