"""What was put under load and what put it under load, and how: the configuration and the method."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from assay.base.tables import Record
from assay.document.elements import Block, Cell, Column, FactList, FigureElement, Table
from assay.document.limits import limit_text
from assay.document.text import DASH, joined, percent, server_text, shorten
from assay.insight.studies.words import capital
from assay.record.source import records
from assay.report.figures_topology import topology_figure
from assay.report.paper.parts import Draft, own_names
from assay.report.paper.sources import PaperSource
from assay.report.paper.topology import topology_of
from assay.report.sections.array import array_blocks
from assay.report.sections.method import host_facts, queue_table, timing_of, volume_table

MEASURED = ("run", "study")
ENGINE = ("I/O engine", "Features in force", "Degraded")


def configuration(sources: Sequence[PaperSource], taken: set[str]) -> Draft:
    """Every target once with its picture, and the hosts that drove the load."""
    configurations: list[dict[str, str]] = []
    shown: dict[str, Sequence[Block]] = {}
    for group in _grouped([source for source in sources if source.kind in MEASURED], _target_key):
        first = group[0]
        name = f"target-{first.number.lower()}"
        runs = _runs(group)
        configurations.append({"title": _target_title(first), "name": name, "text": f"Under load in {runs}."})
        shown[name] = own_names(_target_blocks(first), first.number, taken)
    for group in _grouped([source for source in sources if source.manifest.get("host")], _host_key):
        first = group[0]
        name = f"host-{first.number.lower()}"
        recorded = all(one.kind == "recording" for one in group)
        text = f"{'Was recorded in' if recorded else 'Drove the load of'} {_runs(group)}."
        if all(_is_model(one) for one in group):
            text += " Its own storage has no part in what models say."
        configurations.append({"title": f"Host {_hostname(first)}", "name": name, "text": text})
        # What drove the load differs by run: it stands among the settings.
        facts = host_facts({**first.manifest, "engine": None}, first.made.remarks if first.kind in MEASURED else {})
        facts = [(name, value) for name, value in facts if name not in ENGINE]
        shown[name] = own_names([FactList("host", facts)], first.number, taken)
    return Draft(
        "configuration", "Test configuration", "configuration", {"configurations": configurations}, shown, listed=True
    )


def _grouped(sources: Sequence[PaperSource], key: Any) -> list[list[PaperSource]]:
    groups: dict[str, list[PaperSource]] = {}
    for source in sources:
        groups.setdefault(key(source), []).append(source)
    return list(groups.values())


def _runs(sources: Sequence[PaperSource]) -> str:
    numbers = ", ".join(source.number for source in sources)
    return f"{'run' if len(sources) == 1 else 'runs'} [{numbers}]"


def _is_model(source: PaperSource) -> bool:
    return bool((source.manifest.get("target") or {}).get("array"))


def _target_key(source: PaperSource) -> str:
    """Equal for runs whose targets are described alike."""
    target = source.manifest.get("target") or {}
    if array := target.get("array"):
        return f"array {array.get('name')}"
    volumes = [
        {key: volume.get(key) for key in ("name", "path", "role", "device_stack")}
        for volume in records(target.get("volumes"))
    ]
    return json.dumps([_hostname(source), volumes], sort_keys=True, default=str)


def _host_key(source: PaperSource) -> str:
    return json.dumps([source.manifest.get("host"), source.manifest.get("build")], sort_keys=True, default=str)


def _hostname(source: PaperSource) -> str:
    return shorten(str((source.manifest.get("host") or {}).get("hostname") or "without a name"), 40)


def _target_title(source: PaperSource) -> str:
    target = source.manifest.get("target") or {}
    if array := target.get("array"):
        return shorten(str(array.get("title") or array.get("name")), 80)
    databases = records(target.get("databases"))
    what = joined(dict.fromkeys(server_text(one) for one in databases)) if databases else "Storage"
    return capital(f"{what} of host {_hostname(source)}")


def _target_blocks(source: PaperSource) -> list[Block]:
    target = source.manifest.get("target") or {}
    blocks: list[Block] = []
    topology = topology_of(source.manifest)
    if topology is not None:
        what = "as modelled" if target.get("array") else "as the host sees them"
        changed = " The levels of studies change it." if source.study is not None else ""
        caption = f"{capital(joined(topology.kinds))} {what} in run {source.number}.{changed}"
        blocks.append(FigureElement("topology", caption, f"Topology. {topology.told}.", topology_figure(topology)))
    if target.get("array"):
        # Parameters stand in the appendix.
        blocks += array_blocks(target)
        return blocks
    databases = records(target.get("databases"))
    if databases:
        blocks.append(_database_table(databases))
    volumes = records(target.get("volumes"))
    if volumes:
        blocks.append(volume_table(volumes))
        if any(volume.get("queue") or volume.get("device") for volume in volumes):
            blocks.append(queue_table(volumes))
    return blocks


def _database_table(databases: Sequence[Record]) -> Table:
    columns = [Column("Database"), Column("Server", weight=1.4), Column("Where", weight=1.2),
               Column("Connections", number=True), Column("Runs as", weight=1.2)]  # fmt: skip
    rows = [
        [
            Cell(shorten(str(one.get("name") or DASH), 40)),
            Cell(server_text(one)),
            Cell("this host" if one.get("is_local") else "another host"),
            Cell(str(one.get("max_connections") or DASH)),
            Cell(str(one.get("runs_as") or DASH)),
        ]
        for one in databases
    ]
    return Table("databases", "Databases and their servers.", columns, rows)


def method(sources: Sequence[PaperSource], taken: set[str]) -> Draft:
    """How it was measured, and against which limits."""
    measured = [source for source in sources if source.kind in MEASURED]
    told: dict[str, list[str]] = {}
    for source in measured:
        for text in (text for one in source.made.remarks.values() for text in one.timing):
            told.setdefault(text, []).append(source.number)
    further = [text for source in measured for one in source.made.remarks.values() for text in one.method]
    table, timing = _limit_table(measured), _timing_table(measured)
    fields = {
        "limits": bool(table.rows),
        "timing": [f"{text.removesuffix('.')} [{', '.join(runs)}]." for text, runs in told.items()],
        "modelled": _modelled(measured),
        "further": list(dict.fromkeys(further)),
    }
    shown = {"limits": own_names([table], "", taken), "timing": own_names([timing], "", taken)}
    return Draft("method", "Method and limits", "method", fields, shown)


def _timing_table(sources: Sequence[PaperSource]) -> Table:
    columns = [Column("Run", weight=0.7), Column("Points", number=True, weight=0.8), Column("Warm-up", weight=1.3),
               Column("Measured", weight=1.4), Column("Steady", weight=1.2), Column("Window", weight=1.3),
               Column("Ended by", weight=2.2), Column("Load threads", weight=1.2)]  # fmt: skip
    rows = []
    for source in sources:
        timing = timing_of(source.made.facts)
        if timing is None:
            continue
        words = (timing.warm_up, timing.measured, timing.steady, timing.window, timing.ended, timing.threads)
        rows.append([Cell(f"[{source.number}]"), Cell(f"{timing.points:,}"), *(Cell(word or DASH) for word in words)])
    if not any(row[-1].text != DASH for row in rows):
        # Models have no threads.
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    caption = (
        "How long each point was warmed up, which no figure includes, and measured; how many were steady: throughput"
        " was level over the window; what ended them"
        + ("." if len(columns) < 8 else "; how much of a core a thread of the load used at most.")
    )
    return Table("timing", caption, columns, rows)


def _limit_table(sources: Sequence[PaperSource]) -> Table:
    runs: dict[str, dict[str, None]] = {}
    for source in sources:
        for part in records(source.manifest.get("parts")):
            for limit in (part.get("plan") or {}).get("limits") or []:
                runs.setdefault(str(limit), {})[source.number] = None
    columns = [Column("Limit", weight=1.4), Column("Judges", weight=2.4), Column("In runs", weight=1.2)]
    rows = [
        [Cell(limit_text(limit)), Cell(_judges(limit)), Cell(f"[{', '.join(numbers)}]")]
        for limit, numbers in runs.items()
    ]
    return Table("limits", "Limits that a load must meet to be an answer.", columns, rows)


_NAMES = {"cpu": "use of the processors", "tcp.retransmit": "TCP segments that were sent again"}


def _judges(text: str) -> str:
    """What a limit bounds, in words.

    Examples
    --------
    >>> _judges("log.write.p99<=5ms"), _judges("read.mean<=20ms")
    ('write latency, p99, of log volumes', 'read latency, mean, of each volume by itself')
    >>> _judges("cpu<80%"), _judges("response.p90<2s")
    ('use of the processors', 'response time, p90')
    """
    name = re.split(r"[<>]", text, maxsplit=1)[0].strip()
    match = re.fullmatch(r"(?:(\w+)\.)?(read|write)\.(mean|max|p[\d.]+)", name)
    if match:
        of = f"{match[1]} volumes" if match[1] else "each volume by itself"
        return f"{match[2]} latency, {match[3]}, of {of}"
    what, _, statistic = name.partition(".")
    if name in _NAMES or not statistic:
        return _NAMES.get(name, name.replace("_", " "))
    return f"{what.replace('_', ' ')}{' time' if what == 'response' else ''}, {statistic}"


def _modelled(sources: Sequence[PaperSource]) -> list[str]:
    texts: dict[str, list[str]] = {}
    for source in sources:
        array = (source.manifest.get("target") or {}).get("array")
        if not array:
            continue
        calibration = array.get("calibration")
        title = str(array.get("title") or array.get("name")).partition(",")[0]
        if calibration:
            share = percent(calibration.get("error_share") or 0.0)
            text = (
                f"{title} is a model. It was fitted to {calibration.get('points')} points of {calibration.get('from')};"
                f" leaving one out at a time, it is {share} off"
            )
        else:
            text = f"{title} is a model of data sheets and assumptions: nothing it says was compared with an array"
        texts.setdefault(text, []).append(source.number)
    return [f"{text} [{', '.join(numbers)}]." for text, numbers in texts.items()]
