"""The last hour of a recording in the terminal: a line of blocks for each figure."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.units import format_duration

if TYPE_CHECKING:
    from assay.record.rows import Rows

_BLOCKS = " ▁▂▃▄▅▆▇█"
WIDTH = 60
ENTITIES_MAX = 8


def draw(directory: Path, last_ns: int) -> None:
    """Draw what was recorded of late.

    Raises
    ------
    UsageError
        Nothing is recorded there yet.
    """
    from assay.document.elements import Cell, Column, Table
    from assay.document.terminal import notes
    from assay.document.terminal import show as show_blocks
    from assay.document.text import moment
    from assay.insight.recording import gaps_told
    from assay.record.flight import has_recording, read_recording
    from assay.record.run_folder import RunFolder

    folder = RunFolder.open(directory)
    if not has_recording(directory):
        raise UsageError(f"{printable(directory)}: nothing is recorded there yet")
    told = folder.manifest["recording"]
    end_ns = int(told.get("to_utc_ns") or time.time_ns())
    recorded = read_recording(directory, since_ns=end_ns - last_ns)
    if not len(recorded):
        raise UsageError(f"{printable(directory)}: nothing was recorded in that time; give a longer --last")
    begin_ns = int(recorded.t_ns.min())
    columns = [Column("what"), Column("now", number=True), Column("most", number=True)]
    columns.append(Column(f"over {format_duration((end_ns - begin_ns) / 1e9)}"))
    rows = []
    for what, values, show in _figures(recorded, begin_ns, end_ns):
        known = [value for value in values if value is not None]
        if known:
            rows.append([Cell(text) for text in (what, show(known[-1]), show(max(known)), spark(values))])
    notices = notes([*gaps_told(told), *(told.get("notices") or ()), *recorded.unread])
    title = f"{moment(begin_ns)} to {moment(end_ns)}"
    show_blocks([Table("recorded", title, columns, rows, dense=True), notices])


def spark(values: list[float | None]) -> str:
    """Values as a line of blocks from zero to the largest; blanks where nothing was recorded.

    Examples
    --------
    >>> spark([0.0, 4.0, 8.0, None])
    '▁▅█ '
    """
    most = max((value for value in values if value is not None), default=0.0)
    drawn = []
    for value in values:
        if value is None:
            drawn.append(" ")
        else:
            drawn.append(_BLOCKS[1 + round(7 * value / most)] if most > 0 else _BLOCKS[1])
    return "".join(drawn)


def _figures(recorded: Rows, begin_ns: int, end_ns: int) -> list[tuple[str, list[float | None], Any]]:
    """Name, values over time and how they are shown, of each figure."""
    from assay.base.units import format_bytes, format_iops, format_latency

    def percent(value: float) -> str:
        return f"{value * 100:.0f} %"

    def rate(value: float) -> str:
        return f"{format_bytes(int(value))}/s"

    def size(value: float) -> str:
        return format_bytes(int(value))

    def number(value: float) -> str:
        return f"{value:.3g}"

    wanted = [
        ("host", "user_share", "processors, user", percent), ("host", "system_share", "processors, system", percent),
        ("host", "steal_share", "processors, stolen", percent), ("host", "available_bytes", "memory available", size),
        ("host", "some_share", "pressure", percent), ("block", "read_ios_count", "reads/s", format_iops),
        ("block", "write_ios_count", "writes/s", format_iops), ("block", "read_bytes", "read", rate),
        ("block", "write_bytes", "written", rate), ("block", "read_latency_mean_ns", "read latency", format_latency),
        ("block", "write_latency_mean_ns", "write latency", format_latency),
        ("block", "queue_mean_count", "queue", number), ("net", "in_bytes", "in", rate),
        ("net", "out_bytes", "out", rate), ("net", "retransmit_share", "sent again", percent),
    ]  # fmt: skip
    found = []
    for source, metric, words, show in wanted:
        found += _lines(recorded, source, metric, words, show, begin_ns, end_ns)
    databases = [
        ("commits_count", "commits/s", format_iops), ("sessions_active_count", "sessions at work", number),
        ("log_flush_latency_mean_ns", "log flush", format_latency), ("waits_lock_share", "wait for locks", percent),
        ("waits_io_share", "wait for I/O", percent),
    ]  # fmt: skip
    for source in ("postgresql", "mariadb", "mysql", "mssql"):
        for metric, words, show in databases:
            found += _lines(recorded, source, metric, words, show, begin_ns, end_ns)
    return found


def _lines(
    rows: Rows, source: str, metric: str, words: str, show: Any, begin_ns: int, end_ns: int
) -> list[tuple[str, list[float | None], Any]]:
    import numpy as np

    from assay.record.rows import grouped

    own = rows.of(source=source, metric=metric)
    if not len(own):
        return []
    length = max((end_ns - begin_ns) / WIDTH, 1.0)
    is_delta = own.at("kind", 0) == "delta"
    found: list[tuple[str, dict[int, float]]] = []
    for (entity,), part in own.apart("entity"):
        steps = np.clip((part.t_ns - 1 - begin_ns) / length, 0, WIDTH - 1).astype(np.int64)
        each = grouped(steps)
        covered = each.sums(part.interval_ns)
        means = (
            each.sums(part.value) / (covered / 1e9) if is_delta else each.sums(part.value * part.interval_ns) / covered
        )
        found.append((entity, dict(zip(steps[each.first].tolist(), means.tolist(), strict=True))))
    found.sort(key=lambda one: (-max(one[1].values()), one[0]))
    seen = [one for one in found if max(one[1].values()) > 0] or found[:1]
    lines = []
    for entity, by_step in seen[:ENTITIES_MAX]:
        name = words if entity in ("cpu", "memory", "tcp") else f"{entity}: {words}"
        lines.append((name, [by_step.get(step) for step in range(WIDTH)], show))
    return lines
