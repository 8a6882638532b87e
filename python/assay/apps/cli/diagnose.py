"""`assay diagnose`: the matrix of tiers and resources, and what causes what hurts."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.importing import DateOrder, Interval, Start, options_of
from assay.base.errors import UsageError
from assay.document.elements import Block, Cell, Paragraph, Table, Tone

if TYPE_CHECKING:
    from assay.insight.diagnosis.diagnose import Diagnosis, DiagnosisRecord

EXAMPLES = """
Examples:

`assay diagnose assay-results/20261120-101500-assess-a1b2c3`

`assay diagnose perfmon.csv esx1.csv --volume data=D: --volume log=L:`

`assay diagnose web1 web2 sql1 --tier web=web1,web2 --tier database=sql1 --json`
"""

TONES: dict[str, Tone] = {
    "hot": "bad", "warm": "warn", "ok": "good", "too few samples": "quiet", "no data": "quiet",
}  # fmt: skip


def diagnose(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="INPUT...",
            help="Run folders, recordings, and files that assay import reads; several share one clock.",
        ),
    ],
    tier: Annotated[
        list[str] | None, typer.Option("--tier", help="What hosts are for: web=web1,web2; database=sql1.")
    ] = None,
    volume: Annotated[
        list[str] | None, typer.Option("--volume", help="Of files: what a device is for: data=D:, log=sdb.")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Of files that name no host: its name.")] = "imported",
    zone: Annotated[
        str | None, typer.Option("--zone", help="Of files that say none: offset of local time, +02:00.")
    ] = None,
    start: Start = None,
    interval: Interval = None,
    date_order: DateOrder = None,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Say which tier and resource is the bottleneck, what causes it, and what would disprove that."""
    del debug
    from assay.apps.cli.console import say
    from assay.insight.diagnosis.diagnose import diagnose as find
    from assay.insight.diagnosis.inputs import parse_tiers, sources_of

    tiers = parse_tiers(tier or [])
    options = options_of(host, zone, volume, start, interval, date_order)
    sources, notices = sources_of(inputs, options, tell=lambda line: None if json else say(line))
    found = find(sources, tiers)
    unknown = [name for name in tiers if name not in found.observed.hosts]
    if unknown:
        raise UsageError(f"--tier: no host {unknown[0]!r} was recorded; there is {', '.join(found.observed.hosts)}")
    record = found.record()
    record["notices"] = [*notices, *record["notices"]]
    if json:
        document = {"schema_version": 1, "verb": "diagnose", "inputs": [source.name for source in sources], **record}
        print(json_module.dumps(document, allow_nan=False, indent=1))
        return
    print_diagnosis(found, record)


def print_diagnosis(found: Diagnosis, record: DiagnosisRecord) -> None:
    """The causes, the matrix and the notices on the terminal."""
    from assay.document.terminal import notes, show

    blocks: list[Block] = []
    for place, cause in enumerate(record["causes"], 1):
        head = f"{place}. {cause['cause']}: {cause['title']}"
        if cause["cause"] != "none":
            head += f" (confidence {cause['confidence']:.0%}, {cause['minutes']:.3g} min)"
        blocks.append(Paragraph(head, strong=place == 1))
        for one in cause["evidence"]:
            source = f" [{one['source']}]" if one.get("source") else ""
            blocks.append(Paragraph(f"   seen: {one['text']}{source}"))
        against = "against it would be: " if cause["cause"] != "none" else ""
        blocks += [Paragraph(f"   {against}{text}") for text in cause["against"]]
        blocks.append(Paragraph(f"   do: {cause['advice']}"))
    load = record["load"]
    if load and load["cells"] and load["cells"][0]["first_load"] is not None:
        first = load["cells"][0]
        blocks.append(
            Paragraph(
                f"As load rises, {first['tier']} {first['resource']} ({first['what']}) leaves its threshold"
                f" first, at {first['first_load']:g}."
            )
        )
    blocks.append(_matrix(found, record))
    if record["not_looked_for"]:
        names = ", ".join(one["cause"] for one in record["not_looked_for"])
        blocks.append(Paragraph(f"not looked for, nothing was recorded: {names}"))
    show([*blocks, notes(record["notices"])])


def _matrix(found: Diagnosis, record: DiagnosisRecord) -> Table:
    from assay.document.terminal import table
    from assay.insight.diagnosis.matrix import RESOURCES

    rows = []
    for tier, host in dict.fromkeys((cell.tier, cell.host) for cell in found.cells):
        cells = {cell.resource: cell for cell in found.cells if (cell.tier, cell.host) == (tier, host)}
        row = [Cell(f"{tier} {host}".strip())]
        for resource in RESOURCES:
            cell = cells[resource]
            words = cell.state if cell.leading is None else f"{cell.state}: {cell.words}"
            words += f", {cell.minutes:.3g} min" if cell.minutes else ""
            row.append(Cell(words, TONES[cell.state]))
        rows.append(row)
    return table(_title(record), ("tier", *RESOURCES), rows)


def _title(record: DiagnosisRecord) -> str:
    seconds = record["samples"] * record["step_s"]
    span = f"{seconds / 60:,.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
    return f"Tiers and resources, {span} in steps of {record['step_s']:g} s"
