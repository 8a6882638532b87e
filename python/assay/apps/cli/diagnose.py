"""`assay diagnose`: the matrix of tiers and resources, and what causes what hurts."""

from __future__ import annotations

import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.importing import DateOrder, Interval, Start, options_of
from assay.apps.cli.taken import answer, taken_now
from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.units import format_duration, parse_duration
from assay.document.elements import Block, Cell, Paragraph, Table, Tone
from assay.document.text import joined, percent

if TYPE_CHECKING:
    from assay.document.terminal import Details
    from assay.insight.diagnosis.diagnose import CauseRecord, Diagnosis, DiagnosisRecord
    from assay.insight.diagnosis.observed import Observations
    from assay.telemetry.importers.importer import Options

EXAMPLES = """
Examples:

`assay diagnose assay-results/20261120-101500-assess-a1b2c3`

`assay diagnose perfmon.csv esx1.csv --volume data=D: --volume log=L:`

`assay diagnose web1 web2 sql1 --tier web=web1,web2 --tier database=sql1 --json`

`kubectl logs collector | assay diagnose -`

`assay diagnose --since 2h --html hurts.html`

`assay diagnose --live 60s --database postgresql://monitor@db1/shop`
"""

TONES: dict[str, Tone] = {
    "hot": "bad", "warm": "warn", "ok": "good", "too few samples": "quiet", "no data": "quiet",
}  # fmt: skip


@usual("--tier", "--volume", "--host", "--start", "--interval", "--since", "--live", "--database", "--html", "--json")
def diagnose(
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[INPUT]...",
            help="Run folders, recordings, files that assay import reads, or - for standard input; several share one"
            " clock. Without any: what this machine's recorder recorded.",
        ),
    ] = None,
    tier: Annotated[
        list[str] | None, typer.Option("--tier", help="Hosts of a tier: web=web1,web2; database=sql1.")
    ] = None,
    volume: Annotated[
        list[str] | None, typer.Option("--volume", help="Role of a device in imported files: data=D:,log=sdb.")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Host name for files that name none.")] = "imported",
    zone: Annotated[
        str | None,
        typer.Option("--zone", help="UTC offset to assume for files without a time zone: +02:00 (this machine's)."),
    ] = None,
    start: Start = None,
    interval: Interval = None,
    date_order: DateOrder = None,
    since: Annotated[str | None, typer.Option("--since", help="Examine only the end of the recording: 2h.")] = None,
    live: Annotated[
        str | None, typer.Option("--live", help="Record this machine for this time, then answer: 60s.")
    ] = None,
    database: Annotated[
        list[str] | None, typer.Option("--database", help="With --live: URL of a server whose waits are recorded.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write a page with the evidence on one time axis.")
    ] = None,
    json: opt.Json = False,
    details: opt.Details = False,
    debug: opt.Debug = False,
) -> None:
    """Say which tier and resource is the bottleneck, what causes it, and what would disprove that."""
    del debug
    from assay.insight.diagnosis.inputs import parse_tiers

    _refuse(inputs or [], since, live, database or [], html)
    tiers = parse_tiers(tier or [])
    options = options_of(host, zone, volume, start, interval, date_order)
    since_s = parse_duration(since, what="--since") / 1e9 if since is not None else None
    with tempfile.TemporaryDirectory(prefix="assay-live-") as folder:
        paths = inputs or []
        if live is not None:
            paths = [_recorded(Path(folder) / "live", live, database or [])]
        found, record = _found(paths, options, tiers, since_s, is_quiet=json or taken_now() is not None)
    names = [source.name for source in found.observed.sources]
    if html is not None:
        _write(found, record, names, html)
    answer(
        lambda: {"schema_version": 1, "verb": "diagnose", "inputs": names, **record},
        lambda: diagnosis_blocks(found, record),
        json=json,
        details=details,
        steps=next_steps(found.observed),
    )


def _write(found: Diagnosis, record: DiagnosisRecord, names: list[str], page: Path) -> None:
    from assay.report.diagnosis import write_diagnosis

    write_diagnosis(found, record, names, page)
    print(f"diagnosis: {page}", file=sys.stderr)


def _found(
    paths: list[Path], options: Options, tiers: dict[str, str], since_s: float | None, *, is_quiet: bool
) -> tuple[Diagnosis, DiagnosisRecord]:
    """The diagnosis of inputs, and its record with what was assumed of them."""
    from assay.apps.cli.console import say
    from assay.insight.diagnosis.diagnose import diagnose as find
    from assay.insight.diagnosis.inputs import assumed_tiers, default_recording, sources_of

    read = sources_of(
        paths or [default_recording()], options, tell=lambda line: None if is_quiet else say(line), since_s=since_s
    )
    found = find(read.sources, tiers)
    unknown = [name for name in tiers if name not in found.observed.hosts]
    if unknown:
        raise UsageError(f"--tier: no host {unknown[0]!r} was recorded; there is {', '.join(found.observed.hosts)}")
    record = found.record()
    record["notices"] = [*read.notices, *record["notices"]]
    record["assumed"] = [*read.assumed, *assumed_tiers(found.observed)]
    return found, record


def _refuse(
    inputs: list[Path], since: str | None, live: str | None, databases: list[str], html: Path | None
) -> None:  # fmt: skip
    """Refuse options that contradict each other, and a page that would replace a file of others.

    Raises
    ------
    UsageError
        They do.
    """
    if html is not None:
        from assay.report.files import refuse_foreign

        refuse_foreign(html, what=f"--html {printable(html)}")
    from assay.targets.databases import is_database

    if server := next((path for path in inputs if is_database(str(path)) and not path.exists()), None):
        kind = str(server).partition(":")[0]
        raise UsageError(
            f"{kind}:... is a server, which is recorded first: assay diagnose --live 60s --database {kind}://..., or"
            f" for longer: assay record --database {kind}://..., then assay diagnose"
        )
    if live is not None and (inputs or since is not None):
        raise UsageError("--live records this machine now; give it without inputs and --since")
    if databases and live is None:
        raise UsageError("--database: is recorded with --live; of a recording its database is in it already")


def _recorded(folder: Path, live: str, databases: list[str]) -> Path:
    """Record this machine, and servers if given, for a while."""
    from assay.apps.cli.record import record_for

    record_for(folder, live, databases)
    return folder


def diagnosis_blocks(found: Diagnosis, record: DiagnosisRecord) -> list[Block | Details]:
    """The answer in three lines, the matrix, the first cause with its evidence, and last what was not judged."""
    from assay.document.terminal import Details, notes
    from assay.record.answers import load_words

    verdict = record["verdict"]
    first, *said = found.answer
    blocks: list[Block | Details] = [Paragraph(first, strong=True), *map(Paragraph, said), _matrix(found, record)]
    one, *others = [_cause(place, cause) for place, cause in enumerate(record["causes"], 1)]
    # What stands for a cause says what the answer says, unless more than one thing is bad.
    is_said = not found.causes and (
        verdict["state"] != "bad, cause not found" or len(record["causes"][0]["evidence"]) < 2
    )
    blocks += [] if is_said else one
    if others:
        heads = "; ".join(f"{place}. {cause['cause']}" for place, cause in enumerate(record["causes"][1:], 2))
        evidence = [line for cause in others for line in cause]
        blocks.append(Details(f"other causes, with evidence by --details: {heads}", evidence))
    load = record["load"]
    rising = load["cells"][0] if load and load["cells"] else None
    if load and rising and rising["first_load"] is not None:
        blocks.append(
            Paragraph(
                f"As load rises, {rising['tier']} {rising['resource']} ({rising['what']}) leaves its threshold"
                f" first, {load_words(rising['first_load'], load['axis'])}."
            )
        )
    blocks += [Paragraph(f"assumed: {text}") for text in record["assumed"]]
    blocks.append(notes(record["notices"]))
    blocks += [Paragraph(f"not judged: {text}") for text in found.not_judged]
    if record["not_looked_for"]:
        names = ", ".join(one["cause"] for one in record["not_looked_for"])
        blocks.append(Paragraph(f"not looked for, nothing was recorded: {names}"))
    return blocks


def next_steps(observed: Observations) -> list[str]:
    """What to ask next: settings of the hosts that are known to run Linux, on each host itself."""
    from assay.telemetry.importers.importer import UNNAMED

    hosts = dict.fromkeys(track.host for track in observed.find("iowait_share", source="host"))
    if not hosts:
        return []
    step = "assay check host (whether the host keeps to best practice)"
    others = ["the host" if host == UNNAMED else host for host in hosts if host != socket.gethostname()]
    return [f"on {joined(others)}: {step}" if others else step]


def _cause(place: int, cause: CauseRecord) -> list[Block]:
    """A cause with its evidence, what would disprove it, and what to do."""
    recurs = cause.get("recurs")
    when = f", {recurs['words']}" if recurs and recurs["count"] > 1 else ""
    head = f"{place}. {cause['cause']}: {cause['title']}"
    if "from_utc_ns" in cause:
        sure = f" (confidence {percent(cause['confidence'])})" if cause["confidence"] else ""
        head += f"{sure}, {format_duration(cause['minutes'] * 60)}{when}"
    blocks: list[Block] = [Paragraph(head, strong=place == 1)]
    for one in cause["evidence"]:
        source = f" [{one['source']}]" if one.get("source") else ""
        blocks.append(Paragraph(f"   seen: {one['text']}{source}"))
    blocks += [Paragraph(f"   against it would be: {text}") for text in cause["against"]]
    if place > 1:
        # The answer says it of the first.
        if cause.get("confirm"):
            blocks.append(Paragraph(f"   it would be confirmed by: {cause['confirm']}"))
        blocks.append(Paragraph(f"   do: {cause['advice']}"))
    return blocks


def _matrix(found: Diagnosis, record: DiagnosisRecord) -> Table:
    from assay.document.terminal import table
    from assay.insight.diagnosis.matrix import RESOURCES

    rows = []
    for tier, host in dict.fromkeys((cell.tier, cell.host) for cell in found.cells):
        cells = {cell.resource: cell for cell in found.cells if (cell.tier, cell.host) == (tier, host)}
        row = [Cell(cells[RESOURCES[0]].place)]
        for resource in RESOURCES:
            cell = cells[resource]
            words = cell.state if cell.leading is None else f"{cell.state}: {cell.words}"
            words += f", {format_duration(cell.minutes * 60)}" if cell.minutes else ""
            if cell.is_bad:
                told = found.of_cell(cell)
                words += f" ({', '.join(told.causes) or 'cause not found'})"
            row.append(Cell(words, TONES[cell.state]))
        rows.append(row)
    return table(_title(record), ("tier", *RESOURCES), rows)


def _title(record: DiagnosisRecord) -> str:
    seconds = record["samples"] * record["step_s"]
    span = f"{seconds / 60:,.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
    return f"Tiers and resources, {span} in steps of {record['step_s']:g} s"
