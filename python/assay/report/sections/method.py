"""How it was measured: what the figures stand on, and what they leave out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.base.units import count_of, format_bytes, format_duration
from assay.document.elements import Block, Cell, Column, FactList, Heading, Paragraph, Section, Table
from assay.document.remarks import Remarks
from assay.document.text import DASH, joined, moment, percent, shorten
from assay.record.judgement import standing_word, verdict_of
from assay.record.shapes.manifest import Manifest, Part, Volume
from assay.record.source import RunFacts
from assay.record.steady import judged_steady
from assay.report.facts import measured_points, workload_of_run
from assay.report.sections.array import array_blocks, served_blocks
from assay.report.sections.drives import drive_blocks
from assay.report.sections.hosts import hosts_blocks
from assay.workloads.capabilities import OnDatabases, Verifying
from assay.workloads.workload import Workload


def method_section(facts: RunFacts, remarks: Mapping[Workload[Any], Remarks]) -> Section:
    """Build the section on host, target, engine and timing; `remarks` are those of each workload of the run."""
    run = facts.manifest
    blocks: list[Block] = [FactList("run", _run_facts(run)), Heading("Target")]
    target = run.get("target") or {}
    volumes = target.get("volumes") or []
    if target.get("array"):
        blocks += [*_own_targets(run), *array_blocks(target)]
    elif volumes:
        for array in target.get("served") or []:
            blocks += [*served_blocks(array)]
        blocks.append(volume_table(volumes))
        if any(volume.get("queue") or volume.get("device") for volume in volumes):
            blocks.append(queue_table(volumes))
    else:
        blocks.append(Paragraph("The run does not describe its target."))
    blocks += drive_blocks(target.get("drives") or [])
    blocks += [Heading("Host and engine"), FactList("host", host_facts(run, remarks))]
    blocks += [*hosts_blocks(run, facts.points), Heading("Timing")]
    blocks.append(Paragraph(timing_text(facts, [text for found in remarks.values() for text in found.timing])))
    blocks += [Paragraph(text) for found in remarks.values() for text in found.method]
    if (parts := run.get("parts")) and run.get("imported") is None:
        blocks.append(_parts_table(parts))
    blocks.append(Heading("Not measured"))
    blocks += [Paragraph(text) for text in gap_texts(facts, remarks)]
    return Section("method", "How it was measured", blocks)


def _run_facts(run: Manifest) -> list[tuple[str, str]]:
    command = " ".join(str(word) for word in run.get("command") or [])
    return [
        ("Run", str(run.get("run_id") or DASH)),
        ("Command", f"assay {command}" if command else DASH),
        *_moments(run),
        ("Status", str(run.get("status") or "unknown")),
    ]


def _moments(run: Manifest) -> list[tuple[str, str]]:
    """When it began and ended; of what another program measured, when it was read."""
    if run.get("imported") is not None:
        return [("Imported", moment(run.get("started_utc_ns")))]
    return [("Started", moment(run.get("started_utc_ns"))), ("Ended", moment(run.get("ended_utc_ns")))]


def _own_targets(run: Manifest) -> list[Block]:
    """Targets of parts that have their own, and whose array it is that follows."""
    parts = run.get("parts") or []
    own = [part for part in parts if part.get("target")]
    if not own:
        return []
    # The run's target is that of the first part, unless parts share one.
    shared = [part for part in parts if not part.get("target")]
    names = joined(shorten(_word(part.get("name")), 60) for part in (shared or own[:1]))
    rows = [[Cell(_word(part.get("name"))), Cell(_word(part.get("target")))] for part in own]
    return [
        Paragraph(
            f"{'Some parts have targets of their' if shared else 'Each part has a target of its'} own, which the"
            f" table names. The array below and its parameters at the end are those of {shorten(names, 200)} only; in"
            " the others they differ by what their targets say."
        ),
        Table("part-targets", "Targets of parts.", [Column("Part"), Column("Target", weight=3.0)], rows),
    ]


def volume_table(volumes: Sequence[Volume]) -> Table:
    """Volumes under load."""
    columns = [
        Column("Volume", weight=1.8), Column("Path", weight=3.0), Column("Kind", weight=0.9),
        Column("Role", weight=0.9),
        Column("Size", number=True, weight=1.1), Column("Laid out", number=True, weight=1.1),
        Column("State", weight=1.4), Column("File system", weight=2.0),
    ]  # fmt: skip
    rows = []
    for volume in volumes:
        mount = f" ({volume['mount_options']})" if volume.get("mount_options") else ""
        rows.append(
            [
                Cell(shorten(_word(volume.get("name")), 40)),
                Cell(_word(volume.get("path"))),
                Cell(_word(volume.get("kind"))),
                Cell(_word(volume.get("role"))),
                *_contents(volume),
                Cell(_word(volume.get("file_system")) + shorten(mount, 60)),
            ]
        )
    return Table("volumes", "Volumes under load.", columns, rows)


def _contents(volume: Volume) -> list[Cell]:
    """Size, bytes laid out, and state of a volume; of a database's folders only the data has a size."""
    if volume.get("kind") == "database":
        return [Cell(_size(volume.get("size_bytes") or None)), Cell(DASH), Cell("the server's")]
    state = _word(volume.get("state")) + (", made by Assay" if volume.get("created_by_assay") else "")
    return [Cell(_size(volume.get("size_bytes"))), Cell(_size(volume.get("bytes_laid_out"))), Cell(state)]


def queue_table(volumes: Sequence[Volume]) -> Table:
    """Devices beneath the volumes, each stack once."""
    columns = [
        Column("Device", weight=1.6), Column("Model", weight=1.6), Column("Scheduler"),
        Column("Requests", number=True), Column("Rotational", weight=1.1), Column("Write cache", weight=1.3),
        Column("Sector", number=True, weight=1.4), Column("Largest I/O", number=True, weight=1.3),
        Column("Read-ahead", number=True, weight=1.2),
    ]  # fmt: skip
    rows = {}
    for volume in volumes:
        queue = volume.get("queue") or {}
        stack = " on ".join(str(name) for name in volume.get("device_stack") or []) or _word(volume.get("device"))
        sectors = [_size(queue.get("logical_block_bytes")), _size(queue.get("physical_block_bytes"))]
        spinning = queue.get("rotational")
        rows[stack] = [
            Cell(stack),
            Cell(_word(volume.get("model"))),
            Cell(_word(queue.get("scheduler"))),
            Cell(_word(queue.get("nr_requests"))),
            Cell(DASH if spinning is None else "yes" if spinning else "no"),
            Cell(_word(queue.get("write_cache"))),
            Cell(sectors[0] if sectors[0] == sectors[1] else " / ".join(sectors)),
            Cell(_size(queue.get("max_io_bytes"))),
            Cell(_size(queue.get("read_ahead_bytes"))),
        ]
    return Table(
        "queues",
        "Devices and the settings of their queues; sectors as logical / physical.",
        columns,
        list(rows.values()),
    )


def host_facts(run: Manifest, workloads: Iterable[Workload[Any]]) -> list[tuple[str, str]]:
    """The host, and what drove the load."""
    host, build, engine = run.get("host") or {}, run.get("build") or {}, run.get("engine") or {}
    processor = " x ".join(str(word) for word in (host.get("cpu_count"), host.get("cpu_model")) if word)
    built = [
        build.get("version"), build.get("profile"), build.get("rustc"), build.get("target"),
        f"commit {build['commit']}" if build.get("commit") else None,
    ]  # fmt: skip
    if run.get("imported") is not None:
        return _imported_facts(run)
    features = [str(feature) for feature in engine.get("features") or []]
    degraded = [str(reason) for reason in engine.get("degraded") or []]
    items = [
        ("Host", _word(host.get("hostname"))),
        ("System", ", ".join(str(word) for word in (host.get("distribution"), host.get("kernel")) if word) or DASH),
        ("Processors", processor or DASH),
        ("Memory", _size(host.get("memory_bytes"))),
        ("Virtualization", _word(host.get("virtualization"), "none detected")),
        ("I/O engine", _word(engine.get("backend"))),
        ("Features in force", ", ".join(features) or "none recorded"),
        ("Degraded", "; ".join(degraded) or "nothing"),
        ("Assay", ", ".join(str(word) for word in built if word) or DASH),
    ]
    # What runs on databases goes through their own engine.
    databases = any(isinstance(workload, OnDatabases) for workload in workloads)
    of_engine = ("I/O engine", "Features in force", "Degraded") if databases and not engine else ()
    return [(name, value) for name, value in items if name not in of_engine]


def _imported_facts(run: Manifest) -> list[tuple[str, str]]:
    """What is known of a run that another program measured."""
    host, version = run.get("host") or {}, (run.get("build") or {}).get("version")
    return [
        ("Measured by", joined(str(name) for name in run["imported"].get("programs") or []) or DASH),
        ("Host", _word(host.get("hostname"), "not told")),
        ("Read by", f"Assay {version}" if version else "Assay"),
    ]


@dataclass(frozen=True, kw_only=True)
class TimingWords:
    """How long the points of a run were warmed up and measured, and how they ended, in words.

    Attributes
    ----------
    steady
        How many points were, of how many; empty where that is not known.
    unjudged
        How many points were too short, or were cut off, to be judged steady or not.
    window
        Over which throughput was level.
    threads
        How busy the load's threads were at most; empty where that is not known.
    """

    points: int
    warm_up: str
    measured: str
    steady: str
    unjudged: int
    window: str
    ended: str
    threads: str


def timing_of(facts: RunFacts) -> TimingWords | None:
    """Timing of a run; None where no point has ended."""
    points = measured_points(facts)
    if not points:
        return None
    told = [point.get("steady") or {} for point in points]
    warm = [float(point.get("warmup_s") or 0) for point in points]
    held = [float(point.get("measured_s") or 0) for point in points]
    windows = sorted({float(window_s) for one in told if (window_s := one.get("window_s"))})
    ends = Counter(str(point.get("ended_by") or "unknown") for point in points).most_common()
    lags = [value for point in points if (value := (point.get("generator") or {}).get("cpu_share")) is not None]
    # The same points as in the notice: those too short to judge are neither.
    standing = [judged_steady(point)[0] for point in points]
    reached, judged = standing.count(True), len(standing) - standing.count(None)
    return TimingWords(
        points=len(points),
        warm_up=_span(warm),
        measured=_span(held),
        steady=f"{reached} of {judged}" if judged else "",
        unjudged=len(points) - judged,
        window=_span(windows) if windows else "",
        ended=joined(f"{name} ({count})" for name, count in ends),
        threads=percent(max(lags)) if lags else "",
    )


def timing_text(facts: RunFacts, told: Sequence[str]) -> str:
    """Timing of a run in sentences; `told` are those of its workloads."""
    timing = timing_of(facts)
    if timing is None:
        return " ".join(told) or "No point has ended, so there is no timing to give."
    steady = f"{timing.steady} points reached a steady state" if timing.steady else ""
    sentences = [
        f"Each point warmed up for {timing.warm_up}, which no figure includes, and was then measured for"
        f" {timing.measured}.",
        (steady or "Whether points were steady is not known")
        + (f" (throughput level over a window of {timing.window})" if timing.window else "")
        + (f"; {count_of(timing.unjudged, 'other')} could not be judged" if steady and timing.unjudged else "")
        + f"; what ended them: {timing.ended}.",
        f"The load threads used at most {timing.threads} of a core each." if timing.threads else "",
        "Percentiles are read from merged histograms, never averaged."
        if facts.manifest.get("imported") is None
        else "Percentiles are read from the files, or from their histograms.",
        *told,
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _span(seconds: list[float]) -> str:
    low, high = format_duration(min(seconds)), format_duration(max(seconds))
    return low if low == high else f"{low} to {high}"


def _parts_table(parts: Sequence[Part]) -> Table:
    columns = [
        Column("Part"),
        Column("Title", weight=3.0),
        Column("Planned", number=True),
        Column("Spent", number=True),
    ]
    rows = [
        [
            Cell(_word(part.get("name"))),
            Cell(_word(part.get("title"))),
            *(
                Cell(DASH if seconds is None else format_duration(seconds))
                for seconds in (part.get("planned_s"), part.get("spent_s"))
            ),
        ]
        for part in parts
    ]
    return Table("part-times", "Time planned and spent.", columns, rows)


def gap_texts(facts: RunFacts, remarks: Mapping[Workload[Any], Remarks]) -> list[str]:
    """Sentences on what a reader could think was measured and was not."""
    texts = []
    lines = verdict_of(facts.manifest)
    unanswered = dict.fromkeys(str(line.get("question")) for line in lines if standing_word(line) == "unknown")
    if unanswered:
        texts.append(
            f"Asked, but without a value that could be judged: {joined(shorten(name, 60) for name in unanswered)}."
        )
    texts += [text for found in remarks.values() for text in found.gaps]
    if facts.series is None:
        texts.append("No series over time was recorded.")
    verifies = any(isinstance(workload, Verifying) for workload in remarks)
    outside = joined(_outside(facts, verifies=verifies))
    texts.append(f"{outside[0].upper()}{outside[1:]} are outside this run.")
    if isinstance(workload_of_run(facts), Verifying):
        texts.append("How fast the storage is was not asked: rates here are those of checking, not limits.")
    return texts


def _outside(facts: RunFacts, *, verifies: bool) -> list[str]:
    """What storage has to bear and this run did not ask for."""
    served = [one for point in facts.points for one in point.get("served") or []]
    states = {event.get("state") for one in served for event in one.get("events") or []}
    return [
        *([] if verifies else ["integrity (whether what was acknowledged is kept)"]),
        *([] if "no power" in states else ["the loss of power"]),
        *([] if "rebuilding" in states else ["a rebuild after a failed disk"]),
        "other hosts on the same storage",
    ]


def _word(value: object, absent: str = DASH) -> str:
    return absent if value is None or value == "" else str(value)


def _size(value: float | None) -> str:
    return DASH if value is None else format_bytes(value)
