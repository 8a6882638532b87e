"""The storage under the transactions: what each of them cost, device by device, and where the server spent its time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import cast

from assay.base.tables import Record
from assay.base.units import format_bytes, format_latency
from assay.document.elements import Block, Cell, Column, FactList, Heading, Paragraph, Section, Table
from assay.document.text import DASH, joined, percent, server_text, shorten
from assay.record.source import RunFacts
from assay.workloads.databases.shapes import Storage
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.cost import cost_words, costs_of
from assay.workloads.transactions.report.section import one_name
from assay.workloads.transactions.report.transactions import oltp_of

STATEMENT_LENGTH = 160
FILES_SHOWN = 12
SETTINGS_LENGTH = 60


def oltp_storage_section(facts: RunFacts, application: Application) -> Section | None:
    """Build the section on storage, statements, tables and settings; None when there is nothing of them."""
    found = oltp_of(facts, application)
    blocks: list[Block] = []
    storage = found.get("storage")
    if storage:
        blocks += _storage_blocks(storage, application.work)
    if found.get("statements"):
        blocks += [Heading("Statements that took the most time"), _statement_table(found["statements"])]
    if found.get("tables"):
        blocks += [Heading("Hottest tables"), _hot_table(found["tables"])]
    databases = found.get("databases") or (facts.manifest.get("target") or {}).get("databases") or []
    if any(database.get("settings") for database in databases):
        blocks += [Heading("Servers and their settings"), _settings_table(databases, application)]
    if not blocks:
        return None
    return Section("oltp-storage", f"Storage under the {application.work}s", blocks, place="answer")


def _storage_blocks(storage: Record, work: str) -> list[Block]:
    blocks: list[Block] = []
    sentence = _cost_sentence(storage, work)
    if sentence:
        blocks.append(Paragraph(sentence, strong=True))
    devices = storage["devices"]
    blocks.append(Paragraph(_source_text(storage, work)))
    items = [
        ("Read", _cost_each(storage, "read", work)),
        ("Written", _cost_each(storage, "written", work)),
        ("Log written", _cost_each(storage, "log", work)),
        ("Log flush", _flush_text(storage)),
        ("Buffer hits", _hits_text(storage)),
        ("Checkpoints begun", _number(storage.get("checkpoints_count"))),
        (
            "CPU of the server",
            _share(storage.get("server_cpu_share"), " of this host, without the load's share, other programs included"),
        ),
        ("Reads to writes", _ratio_text(storage.get("read_write"))),
        ("Asked of storage", _asked_text(storage.get("database") or {})),
    ]
    blocks.append(FactList("oltp-storage-facts", [(name, value) for name, value in items if value]))
    if devices:
        blocks.append(_device_table(devices))
    if storage.get("files"):
        blocks.append(_file_table(storage["files"]))
    return blocks


def _cost_sentence(storage: Record, work: str) -> str:
    words = cost_words(cast(Storage, storage))
    if not words:
        return ""
    latency = storage.get("log_flush_latency_mean_ns")
    flush = f"; a flush of the log took {format_latency(latency)} on average" if latency is not None else ""
    return f"A {work} {words}{flush}."


def _source_text(storage: Record, work: str) -> str:
    devices = storage["devices"]
    if not devices:
        return (
            "The devices under the servers are not known here, so that these are what the servers asked of storage; a "
            "page cache beneath them may have answered part of it."
        )
    shared = [device for device in devices if "log" in (device.get("roles") or []) and len(device["roles"]) > 1]
    text = f"Bytes at the devices are those of the window of the {work}s, other programs' among them."
    if shared and storage.get("log_flush_latency_mean_ns") is not None:
        names = joined(str(device.get("device")) for device in shared)
        text += f" On {names} log and data share a device: the latency of the log is what the server itself timed."
    elif shared:
        text += (
            " Log and data share a device, and the server does not time flushes of its log: their latency is not known."
            " A device of its own for the log would tell."
        )
    return text


def _cost_each(storage: Record, what: str, work: str) -> str:
    value = storage.get(f"{what}_bytes_per_transaction")
    if value is None:
        return ""
    cost = costs_of(cast(Storage, storage)).get(what)
    if cost is None or cost.own is None or not cost.is_counted:
        return f"{format_bytes(value)} a {work}"
    return f"{format_bytes(cost.own)} a {work}, as the server counts; {format_bytes(value)} at the devices"


def _flush_text(storage: Record) -> str:
    latency, rate = storage.get("log_flush_latency_mean_ns"), storage.get("log_flushes_per_s")
    words = [
        f"{format_latency(latency)} on average" if latency is not None else "",
        f"{rate:,.0f} a second" if rate is not None else "",
    ]
    return ", ".join(word for word in words if word)


def _ratio_text(ratio: Record | None) -> str:
    words = [
        f"{ratio[key]:.2g} : 1 in {key}" for key in ("operations", "bytes") if ratio and ratio.get(key) is not None
    ]
    return ", ".join(words)


def _hits_text(storage: Record) -> str:
    share = storage.get("buffer_hit_share")
    return "" if share is None else f"{share * 100:.2f} % of page requests were answered from the server's memory"


def _asked_text(database: Record) -> str:
    words = []
    for side, name in (("read", "reads"), ("write", "writes")):
        rate, moved, latency = (database.get(f"{side}_{what}") for what in ("iops", "bytes_per_s", "latency_mean_ns"))
        if rate is not None and moved is not None:
            timed = f", {format_latency(latency)} each" if latency is not None else ""
            words.append(f"{rate:,.0f} {name}/s ({moved / 2**20:,.1f} MiB/s{timed})")
    log_rate, log_moved = database.get("log_writes_per_s"), database.get("log_bytes_per_s")
    if log_rate is not None and log_moved is not None:
        words.append(f"{log_rate:,.0f} log writes/s ({log_moved / 2**20:,.1f} MiB/s of log)")
    return f"{joined(words)}, as the server counts them" if words else ""


def _number(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def _share(share: float | None, what: str) -> str:
    return "" if share is None else percent(share) + what


def _device_table(devices: Sequence[Record]) -> Table:
    columns = [
        Column("Device", weight=1.1), Column("Roles", weight=1.2),
        *(Column(title, number=True, weight=weight) for title, weight in
          (("Reads/s", 1.0), ("Writes/s", 1.0), ("MiB/s read", 0.9), ("MiB/s written", 1.1), ("Read latency", 1.0),
           ("Write latency", 1.0), ("Read size", 1.1), ("Write size", 1.1), ("Share of reads", 1.0))),
    ]  # fmt: skip
    rows = []
    for device in devices:
        cells = [
            Cell(str(device.get("device") or DASH)),
            Cell(", ".join(str(role) for role in device.get("roles") or [])),
        ]
        cells += [Cell(_rate(device.get(f"{side}_iops"))) for side in ("read", "write")]
        cells += [Cell(_mebibytes(device.get(f"{side}_bytes_per_s"))) for side in ("read", "write")]
        cells += [Cell(_latency(device.get(f"{side}_latency_mean_ns"))) for side in ("read", "write")]
        cells += [Cell(_size(device.get(f"{side}_size_mean_bytes"))) for side in ("read", "write")]
        rows.append([*cells, Cell(percent(device.get("read_share")))])
    caption = "What the devices did in the window; latencies and sizes are means."
    return Table("oltp-devices", caption, columns, rows, dense=True)


def _file_table(files: Sequence[Record]) -> Table:
    columns = [Column("File", weight=3.0), Column("MiB/s written", number=True), Column("Share", number=True)]
    total = sum(file.get("write_bytes_per_s") or 0.0 for file in files)
    rows = [
        [Cell(str(file.get("file") or DASH)), Cell(_mebibytes(rate)), Cell(percent(rate / total if total else None))]
        for file in files[:FILES_SHOWN]
        if (rate := file.get("write_bytes_per_s")) is not None
    ]
    caption = (
        "Files of the databases that were written most, as the server counts it; share of what was written to all."
    )
    return Table("oltp-files", caption, columns, rows, dense=True)


def _rate(rate: float | None) -> str:
    return DASH if rate is None else f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def _mebibytes(bytes_per_s: float | None) -> str:
    return DASH if bytes_per_s is None else f"{bytes_per_s / 2**20:,.1f}"


def _latency(latency_ns: float | None) -> str:
    return DASH if latency_ns is None else format_latency(latency_ns)


def _size(size: float | None) -> str:
    return DASH if size is None else format_bytes(size)


def _statement_table(statements: Sequence[Record]) -> Table:
    shown: list[tuple[str, str, Callable[[float], str]]] = [
        ("Read", "read_bytes", format_bytes),
        ("Pages", "page_requests_count", "{:,.1f}".format),
        ("Log", "log_bytes", format_bytes),
    ]
    known = [entry for entry in shown if any(statement.get(entry[1]) is not None for statement in statements)]
    columns = [
        Column("Statement", weight=5.0), Column("Calls", number=True, weight=1.1), Column("Mean", number=True),
        Column("Share", number=True, weight=0.9), *(Column(title, number=True) for title, _, _ in known),
    ]  # fmt: skip
    rows = []
    for statement in statements:
        calls = statement.get("calls_count") or 0
        cells = [
            Cell(shorten(" ".join(str(statement.get("text") or DASH).split()), STATEMENT_LENGTH)),
            Cell(f"{calls:,.0f}"),
            Cell(_latency(statement.get("mean_ns"))),
            Cell(percent(statement.get("share"))),
        ]
        for _, key, text in known:
            value = statement.get(key)
            cells.append(Cell(DASH if value is None or not calls else text(value / calls)))
        rows.append(cells)
    caption = (
        "By the server's own statistics of the window: share of the time of all statements, and what a call read from "
        "outside the server's memory, looked at, and wrote to the log. A call of a procedure includes what it does."
    )
    return Table("statements", caption, columns, rows, dense=True)


def _hot_table(tables: Sequence[Record]) -> Table:
    shown: list[tuple[str, str, Callable[[float], str]]] = [
        ("Read", "read_bytes", format_bytes),
        ("Pages asked for", "page_requests_count", "{:,.0f}".format),
        ("Rows fetched", "fetched_count", "{:,.0f}".format),
        ("Inserted", "inserted_count", "{:,.0f}".format),
        ("Updated", "updated_count", "{:,.0f}".format),
        ("Deleted", "deleted_count", "{:,.0f}".format),
    ]
    known = [entry for entry in shown if any(table.get(entry[1]) is not None for table in tables)]
    has_hits = any(table.get("page_requests_count") and table.get("page_reads_count") is not None for table in tables)
    several = len({table.get("database") for table in tables}) > 1
    columns = [Column("Database", weight=1.2)] if several else []
    columns += [Column("Table", weight=1.6), *(Column(title, number=True) for title, _, _ in known)]
    columns += [Column("Hits", number=True)] if has_hits else []
    rows = []
    for table in tables:
        cells = [Cell(one_name(table))] if several else []
        cells.append(Cell(shorten(str(table.get("table") or DASH), 40)))
        cells += [Cell(DASH if table.get(key) is None else text(table[key])) for _, key, text in known]
        if has_hits:
            asked, missed = table.get("page_requests_count"), table.get("page_reads_count")
            cells.append(Cell(f"{(1 - missed / asked) * 100:.2f} %" if asked and missed is not None else DASH))
        rows.append(cells)
    caption = "Tables with their indexes by what was read of them, then by rows changed; hits: pages found in memory."
    return Table("hot-tables", caption, columns, rows, dense=True)


def _settings_table(databases: Sequence[Record], application: Application) -> Table:
    names = list(dict.fromkeys(name for database in databases for name in database.get("settings") or {}))
    rows = [["server", *(server_text(database) for database in databases)]]
    if len(databases) > 1:
        rate = application.rate
        rows.append([rate.title, *(rate.number(database.get(rate.key) or 0.0) for database in databases)])
    for name in names:
        values = [(database.get("settings") or {}).get(name) for database in databases]
        rows.append(
            [name, *(DASH if value in (None, "") else shorten(str(value), SETTINGS_LENGTH) for value in values)]
        )
    columns = [Column("Setting", weight=1.6)]
    columns += [Column(one_name({"database": database.get("name")}), weight=2.0) for database in databases]
    if len(databases) == 1:
        # One server's settings stand in two columns, which halves the length of the table.
        half = (len(rows) + 1) // 2
        rows = [[*left, *right] for left, right in zip_longest(rows[:half], rows[half:], fillvalue=["", ""])]
        columns *= 2
    cells = [[Cell(shorten(str(text), 60)) for text in row] for row in rows]
    return Table("server-settings", "Settings of the servers that matter to storage.", columns, cells, dense=True)
