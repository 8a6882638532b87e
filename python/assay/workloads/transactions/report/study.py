"""Figures of studies of databases: what their storage did at each level, beside the transactions."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.tables import Record
from assay.document.charts import with_others
from assay.document.elements import FigureElement
from assay.document.palette import latency_unit
from assay.document.text import id_range, joined
from assay.record.source import RunFacts
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.report.charts import (
    StackedRow,
    StorageRow,
    device_levels,
    stacked_levels,
    storage_levels,
)
from assay.workloads.transactions.report.transactions import oltp_points

SIDES = {("data", "read"): "data reads", ("data", "write"): "data writes", ("log", "write"): "log writes"}
"""Roles and directions of I/O, in the order they are stacked."""

LATENCY = "data read latency"


def study_figures(facts: RunFacts, application: Application) -> list[FigureElement]:
    """Storage beside transactions by level, and where was written; none without a study that compares levels."""
    study = facts.told("study") or {}
    levels = _levels(facts, study, application)
    if len(levels) < 2:
        return []
    by = ", ".join(str(factor["title"]) for factor in study["factors"] if len(factor["levels"]) > 1)
    found = [_storage_figure(levels, by)]
    found += [_written_figure(levels, written_rows(levels, what), by, what, WRITTEN[what][1]) for what in WRITTEN]
    found.append(_device_figure(levels, by))
    tables = partitioned_tables(levels)
    rows, what = partition_rows(levels, tables), f"partition of {joined(tables)}"
    found.append(_written_figure(levels, rows, by, what, "each a file of its own"))
    return [figure for figure in found if figure is not None]


def _levels(facts: RunFacts, study: Record, application: Application) -> list[tuple[str, Record]]:
    """The points of transactions a study compares, in the order of its levels, each with its level's title."""
    by_id = {point.get("id"): point for point in oltp_points(facts, application)}
    return [
        (str(result.get("title") or result.get("part")), by_id[point_id])
        for result in study.get("results") or []
        for point_id in result.get("point_ids") or []
        if point_id in by_id
    ]


def storage_rows(levels: list[tuple[str, Record]]) -> list[StorageRow]:
    """Rows of `charts.storage_levels`: means over the points of a level, in units of the panels.

    I/Os of a role are those of the point's `roles`: of its devices, or as the server counts them.
    """
    found: dict[tuple[str, str, str], list[float]] = {}
    for level, point in levels:
        roles = point.get("roles") or {}
        sides = {side: (roles.get(role) or {}).get(way) or {} for (role, way), side in SIDES.items()}
        values = {("transactions/s", "transactions"): (point["oltp"].get("tpm_client") or 0.0) / 60}
        values |= {("I/Os per second", side): own.get("iops") or 0.0 for side, own in sides.items()}
        latency_ns = (sides["data reads"].get("latency_ns") or {}).get("mean")
        if latency_ns is not None:
            values[LATENCY, "data reads"] = latency_ns
        for (panel, series), value in values.items():
            found.setdefault((panel, level, series), []).append(value)
    means = {key: sum(values) / len(values) for key, values in found.items()}
    ids = _first_ids(levels)
    factor, unit = latency_unit(value for (panel, _, _), value in means.items() if panel == LATENCY)
    return [
        {"panel": f"{LATENCY} ({unit})" if panel == LATENCY else panel, "level": level, "series": series,
         "value": value / factor if panel == LATENCY else value, "point_id": ids[level]}
        for (panel, level, series), value in means.items()
    ]  # fmt: skip


def written_rows(levels: list[tuple[str, Record]], what: str) -> list[StackedRow]:
    """Rows of `charts.stacked_levels`: mean MiB/s written to each device or file, over the points of a level.

    Parameters
    ----------
    levels
        Points, each with its level's title.
    what
        A key of `WRITTEN`. Where the devices are not known, data and log as the servers count them stand for them.
    """
    found: dict[tuple[str, str], list[float]] = {}
    ids = _first_ids(levels)
    counts: dict[str, int] = {}
    for level, point in levels:
        counts[level] = counts.get(level, 0) + 1
        for name, bytes_per_s in WRITTEN[what][0](point["oltp"]["storage"] or {}):
            found.setdefault((level, name), []).append((bytes_per_s or 0.0) / 2**20)
    rows: list[StackedRow] = [
        {"level": level, "series": name, "value": sum(values) / counts[level], "point_id": ids[level]}
        for (level, name), values in found.items()
    ]
    return with_others(rows)


QUEUE, WRITE_LATENCY = "I/Os outstanding", "write latency"


def device_rows(levels: list[tuple[str, Record]]) -> list[StorageRow]:
    """Rows of `charts.device_levels`: means over the points of a level, in units of the panels.

    I/Os outstanding are rates times latencies (Little's law: the mean number in a system is what arrives in a second
    times the time that each stays).
    """
    found: dict[tuple[str, str, str], list[float]] = {}
    for level, point in levels:
        for device in (point["oltp"]["storage"] or {}).get("devices") or ():
            name = f"{device.get('device')} ({joined(device.get('roles') or ())})"
            sides = [(device.get(f"{side}_iops"), device.get(f"{side}_latency_mean_ns")) for side in ("read", "write")]
            outstanding = sum((rate or 0.0) * (latency_ns or 0.0) / 1e9 for rate, latency_ns in sides)
            found.setdefault((QUEUE, level, name), []).append(outstanding)
            if sides[1][1] is not None:
                found.setdefault((WRITE_LATENCY, level, name), []).append(sides[1][1])
    means = {key: sum(values) / len(values) for key, values in sorted(found.items(), key=lambda one: one[0][0])}
    ids = _first_ids(levels)
    factor, unit = latency_unit(value for (panel, _, _), value in means.items() if panel == WRITE_LATENCY)
    return [
        {"panel": f"{panel} ({unit})" if panel == WRITE_LATENCY else panel, "level": level, "series": name,
         "value": value / factor if panel == WRITE_LATENCY else value, "point_id": ids[level]}
        for (panel, level, name), value in means.items()
    ]  # fmt: skip


def _to_devices(storage: Record) -> list[tuple[str, float | None]]:
    devices = [
        (f"{device.get('device')} ({joined(device.get('roles') or ())})", device.get("write_bytes_per_s"))
        for device in storage.get("devices") or ()
    ]
    database = storage.get("database") or {}
    counted = [("data (server)", "write_bytes_per_s"), ("log (server)", "log_bytes_per_s")]
    return devices or [(name, database.get(key)) for name, key in counted]


def _to_files(storage: Record) -> list[tuple[str, float | None]]:
    return [
        (str(file.get("file")).partition("/")[2], file.get("write_bytes_per_s")) for file in storage.get("files") or ()
    ]


WRITTEN = {
    "device": (_to_devices, "with its roles; what other programs wrote is among it"),
    "file": (_to_files, "as the server counts it"),
}
"""To what writing is shown: how a point tells of it, and what a caption says of it."""


def partitioned_tables(levels: list[tuple[str, Record]]) -> list[str]:
    """Tables that some level partitions."""
    layouts = [point["oltp"].get("layout") or {} for _, point in levels]
    cut = [database.get("partition") or {} for layout in layouts for database in layout.get("databases") or ()]
    return sorted({str(one["table"]) for one in cut if one.get("table")})


def partition_rows(levels: list[tuple[str, Record]], tables: Sequence[str]) -> list[StackedRow]:
    """Rows of `charts.stacked_levels`: mean MiB/s written to a file of these tables, over files and points of a level.

    Files are known by the names that InnoDB gives them: the table, and `#P#` and the partition where it has some.
    """
    found: dict[str, list[float]] = {}
    ids = _first_ids(levels)
    for level, point in levels:
        for name, bytes_per_s in _to_files(point["oltp"]["storage"] or {}):
            if name.partition("#")[0] in tables:
                found.setdefault(level, []).append((bytes_per_s or 0.0) / 2**20)
    return [
        {
            "level": level,
            "series": f"each file of {joined(tables)}",
            "value": sum(own) / len(own),
            "point_id": ids[level],
        }
        for level, own in found.items()
    ]


def _storage_figure(levels: list[tuple[str, Record]], by: str) -> FigureElement | None:
    rows = storage_rows(levels)
    if not any(row["value"] for row in rows if row["panel"] == "I/Os per second"):
        return None
    caption = (
        "Transactions a second, the I/Os beneath them (data reads, data writes and log writes upon each other), and the"
        f" mean latency of data reads, by level. Points {_ids(levels)}."
    )
    told = joined(f"{row['level']}: {row['series']} {row['value']:,.4g} ({row['panel']})" for row in rows)
    alternative = f"Transactions and the storage beneath them: {told}."
    return FigureElement("study-storage", caption, alternative, storage_levels(rows, by))


def _written_figure(
    levels: list[tuple[str, Record]], rows: list[StackedRow], by: str, what: str, said: str
) -> FigureElement | None:
    if not any(row["value"] for row in rows):
        return None
    told = joined(f"{row['level']}: {row['series']} {row['value']:,.1f} MiB/s" for row in rows)
    caption = f"Mean rate of writing to each {what} by {by}, {said}. Points {_ids(levels)}."
    chart = stacked_levels(rows, "written (MiB/s)", by)
    return FigureElement(f"study-written-{what.partition(' ')[0]}", caption, f"Written to each {what}: {told}.", chart)


def _device_figure(levels: list[tuple[str, Record]], by: str) -> FigureElement | None:
    rows = device_rows(levels)
    if len({row["series"] for row in rows}) < 2:
        return None
    caption = (
        f"I/Os outstanding at each device (rate times latency) and mean latency of its writes by {by}; what other"
        f" programs did is among it. Points {_ids(levels)}."
    )
    told = joined(f"{row['level']}: {row['series']} {row['value']:,.3g} ({row['panel']})" for row in rows)
    return FigureElement("study-devices", caption, f"Devices by {by}: {told}.", device_levels(rows, by))


def _first_ids(levels: list[tuple[str, Record]]) -> dict[str, str]:
    """The first point of each level, which a mean over its points leads to."""
    return {level: str(point.get("id")) for level, point in reversed(levels)}


def _ids(levels: list[tuple[str, Record]]) -> str:
    return id_range(str(point.get("id")) for _, point in levels)
