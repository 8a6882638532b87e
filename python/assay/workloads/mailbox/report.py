"""The tables that a submission of such a test has: result, configuration, profile, databases, servers, backup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, cast

from assay.base.units import format_bytes, format_duration, format_latency, format_throughput
from assay.document.elements import Block, Cell, Column, FactList, Heading, Paragraph, Section, Table, Tone
from assay.document.text import DASH, shorten
from assay.record.source import RunFacts
from assay.workloads.mailbox.shapes import (
    Backup,
    BadPage,
    DatabaseDone,
    Mailbox,
    Profile,
    Ratios,
    Recovery,
    ServerDone,
    StreamName,
)
from assay.workloads.mailbox.verdict import CRITERIA_ALONE, is_unchecked, overall

TESTS = {
    "performance": "Performance",
    "stress": "Stress",
    "backup": "Database Backup",
    "recovery": "Soft Recovery",
}
"""Types of test, as scripts look for them."""

RESULTS: dict[bool | None, tuple[str, Tone]] = {
    True: ("Pass", "good"), False: ("Fail", "bad"), None: ("Unknown", "warn")
}  # fmt: skip

STREAMS: dict[StreamName, str] = {
    "database_read": "Database reads",
    "database_write": "Database writes",
    "log_write": "Log writes",
    "maintenance_read": "Maintenance reads",
    "shipping_read": "Log reads for copies",
    "replay_read": "Replay reads",
    "replay_write": "Replay writes",
    "backup_read": "Backup reads",
    "recovery_read": "Recovery reads",
    "recovery_write": "Recovery writes",
}

RATIOS: dict[Literal["read_write", "database_log", "log_write_bytes"], tuple[str, Callable[[float], str]]] = {
    "read_write": ("Database reads to writes", lambda value: f"{value:.2f} : 1"),
    "database_log": ("Database I/Os to log writes", lambda value: f"{value:.1f} : 1"),
    "log_write_bytes": ("Mean log write", lambda value: format_bytes(round(value))),
}

DERIVED = "Derived from what Jetstress does; figures are not comparable with published ones."


def mailbox_section(facts: RunFacts) -> Section | None:
    """The section on mailboxes; None where the run holds none."""
    told = cast("Mailbox | None", facts.told("mailbox"))
    profile = told.get("profile") if told else None
    if not told or not profile:
        return None
        return None
    word, tone = RESULTS[overall(told)]
    if is_unchecked(told):
        word = f"Not decided, {CRITERIA_ALONE}"
    elif told.get("passed") is None and told.get("ended_early", True):
        word = "Not finished"
    blocks: list[Block] = [Paragraph(_headline(told, word), strong=True, tone=tone), Paragraph(DERIVED)]
    blocks.append(FactList("mailbox-result", _result(told, word)))
    blocks += [Heading("Configuration"), FactList("mailbox-configuration", _configuration(told, profile))]
    blocks += [Heading("Mailbox profile"), FactList("mailbox-profile", _profile(profile))]
    if ratios := told.get("ratios"):
        blocks.append(_ratio_table(ratios))
    databases = told.get("databases") or []
    if any(one.get(stream) for one in databases for stream in STREAMS):
        blocks += [Heading("Results per database"), _database_table(databases)]
    if servers := told.get("servers"):
        blocks += [Heading("Results per server"), _server_table(servers)]
    if backup := told.get("backup"):
        blocks += [Heading("Database backup"), FactList("mailbox-backup", _backup(backup))]
    if recovery := told.get("recovery"):
        blocks += [Heading("Soft recovery"), FactList("mailbox-recovery", _recovery(recovery))]
    if bad := told.get("bad"):
        blocks += [Heading("Pages that are not what was written"), _bad_table(bad)]
    return Section("mailbox", "Mailboxes", blocks, place="answer", wide=True)


def _headline(told: Mailbox, word: str) -> str:
    text = f"Overall Test Result: {word}."
    if told.get("achieved_iops") is not None and told.get("target_iops") is not None:
        text += (
            f" {told['mailboxes']:,} mailboxes ask for {told['target_iops']:,.1f} transactional I/Os per second, and"
            f" {told['achieved_iops']:,.1f} were achieved."
        )
    if told["bad_pages"]:
        text += f" {told['bad_pages']:,} pages are not what was written."
    return text


def _result(told: Mailbox, word: str) -> list[tuple[str, str]]:
    rows = [("Overall Test Result", word), ("Test Type", TESTS.get(str(told.get("test")), str(told.get("test"))))]
    if told.get("target_iops") is not None:
        rows.append(("Target Transactional I/O per Second", f"{told['target_iops']:,.1f}"))
        rows.append(("Achieved Transactional I/O per Second", _number(told.get("achieved_iops"), "{:,.1f}")))
    verified = told.get("pages_verified")
    if verified is None:
        checked = "a model holds no bytes"
    else:
        checked = f"{verified:,} pages verified, {told['bad_pages']:,} bad"
        checked += ", every page at the end among them" if told.get("verified") else "; not every page"
    return [*rows, ("Checksums", checked)]


def _configuration(told: Mailbox, profile: Profile) -> list[tuple[str, str]]:
    has_load = told.get("target_iops") is not None
    copies = f"{profile['copies']} of each database"
    return [
        ("Servers", f"{profile['servers']}"),
        ("Databases per server", f"{profile['databases']} active, {profile['passive']} passive copies"),
        ("Copies", copies),
        ("Layout", str(profile["layout"])),
        (
            "Database",
            f"{_said(profile['database_bytes'], format_bytes)}, pages of {_said(profile['page_bytes'], format_bytes)}",
        ),
        (
            "Log",
            f"{_said(profile['log_bytes'], format_bytes)}, files of {_said(profile['log_file_bytes'], format_bytes)}",
        ),
        ("Page cache", f"{_said(profile['cache_bytes'], format_bytes)} for all databases"),
        ("Checkpoint depth", _said(profile["checkpoint_depth_bytes"], format_bytes)),
        ("Background maintenance", f"{_said(profile['maintenance_bytes_per_s'], format_throughput)} of each database"),
        ("Backup streams meanwhile", f"{profile['backup_streams']}"),
        *([("Measured", _said(profile["measured_s"], format_duration))] if has_load else []),
    ]


def _profile(profile: Profile) -> list[tuple[str, str]]:
    return [
        ("Mailboxes", f"{profile['mailboxes']:,}"),
        ("I/Os per second of each", f"{profile['iops_per_mailbox']:g}"),
        ("Mailbox size", _said(profile["mailbox_size_bytes"], format_bytes)),
        ("Insert operations", f"{profile['insert_share']:.0%}"),
        ("Replace operations", f"{profile['replace_share']:.0%}"),
        ("Delete operations", f"{profile['delete_share']:.0%}"),
        ("Seek operations", f"{profile['seek_share']:.0%}"),
        ("Lazy commits", f"{profile['lazy_share']:.0%}"),
    ]


def _ratio_table(ratios: Ratios) -> Table:
    rows = []
    for name, (title, words) in RATIOS.items():
        found = ratios.get(name) or {}
        value, (low, high) = found.get("value"), found.get("expected") or (0.0, 0.0)
        is_within = value is not None and low <= value <= high
        text = DASH if value is None else words(value)
        tone: Tone = "plain" if is_within or value is None else "warn"
        rows.append([Cell(title), Cell(text, tone), Cell(f"{words(low)} to {words(high)}")])
    columns = [
        Column("Ratio", weight=2),
        Column("Of this run", number=True),
        Column("Expected", number=True, weight=1.5),
    ]
    caption = "Ratios that came of the run, beside the ranges at which tuning of such tests aims."
    return Table("mailbox-ratios", caption, columns, rows)


def _database_table(databases: Sequence[DatabaseDone]) -> Table:
    rows = []
    for one in databases:
        streams = [(title, stream) for name, title in STREAMS.items() if (stream := one.get(name))]
        for place, (title, stream) in enumerate(streams):
            name = [Cell(shorten(str(one["name"]), 40), rowspan=len(streams))] if place == 0 else []
            rows.append(
                [
                    *name,
                    Cell(title),
                    Cell(_number(stream.get("per_s"), "{:,.1f}")),
                    Cell(format_bytes(round(mean)) if (mean := stream.get("bytes_mean")) else DASH),
                    Cell(format_latency(stream.get("latency_mean_ns"))),
                    Cell(format_latency(stream.get("latency_peak_ns"))),
                ]
            )
    columns = [
        Column("Database", weight=1.3), Column("I/O", weight=1.6), Column("Per second", number=True),
        Column("Mean size", number=True), Column("Mean latency", number=True), Column("Highest latency", number=True),
    ]  # fmt: skip
    caption = (
        "I/O of each database. Latencies count from when an I/O was needed; the highest is that of the worst 15 s."
    )
    return Table("mailbox-databases", caption, columns, rows)


def _server_table(servers: Sequence[ServerDone]) -> Table:
    rows = []
    for one in servers:
        word, tone = RESULTS[one.get("passed")]
        rows.append(
            [
                Cell(str(one["name"])),
                Cell(_number(one.get("mailboxes"), "{:,}")),
                Cell(_number(one.get("target_iops"), "{:,.1f}")),
                Cell(_number(one.get("transactional_iops"), "{:,.1f}")),
                Cell(format_latency(one.get("database_read_latency_mean_ns"))),
                Cell(format_latency(one.get("database_write_latency_mean_ns"))),
                Cell(format_latency(one.get("log_write_latency_mean_ns"))),
                Cell(_number(one.get("total_iops"), "{:,.1f}")),
                Cell(format_throughput(one.get("bytes_per_s") or 0.0)),
                Cell(word, tone),
            ]
        )
    columns = [Column("Server", weight=1.2)]
    columns += [
        Column(title, number=True)
        for title in (
            "Mailboxes", "Target", "Achieved", "Database reads", "Database writes", "Log writes", "All I/Os per s",
            "All bytes",
        )
    ]  # fmt: skip
    caption = (
        "What the databases of each server did together: transactional I/Os per second, mean latencies, and all I/O."
    )
    return Table("mailbox-servers", caption, [*columns, Column("Result")], rows)


def _backup(backup: Backup) -> list[tuple[str, str]]:
    rows = [
        ("Read", f"{_said(backup['bytes'], format_bytes)} in {_said(backup['seconds'], format_duration)}"),
        ("Throughput", format_throughput(backup.get("bytes_per_s") or 0.0)),
    ]
    return rows if backup.get("complete") else [*rows, ("Left out", "the time was up before every page was read")]


def _recovery(recovery: Recovery) -> list[tuple[str, str]]:
    return [
        ("Log files replayed", f"{recovery['log_files']:,}"),
        ("Time", _said(recovery["seconds"], format_duration)),
        ("Log files per second", _number(recovery.get("log_files_per_s"), "{:,.2f}")),
        ("Seconds per log file", _number(recovery.get("seconds_per_log_file"), "{:,.3f}")),
    ]


def _bad_table(bad: Sequence[BadPage]) -> Table:
    rows = [
        [
            Cell(str(one.get("database"))),
            Cell(_number(one.get("page"), "{:,}") if one.get("page") is not None else "log"),
            Cell(shorten(str(one.get("volume")), 40)),
            Cell(_number(one.get("offset_bytes"), "{:,}")),
            Cell(str(one.get("activity"))),
            Cell(shorten(str(one.get("what")), 120)),
        ]
        for one in bad[:100]
    ]
    columns = [
        Column("Database"), Column("Page", number=True), Column("Volume"), Column("Offset, bytes", number=True),
        Column("Found by"), Column("What is wrong", weight=3),
    ]  # fmt: skip
    return Table("mailbox-bad-pages", "Pages whose checksum or place is wrong; the first 100.", columns, rows)


def _said(value: float | None, words: Callable[[float], str]) -> str:
    return DASH if value is None else words(value)


def _number(value: float | None, shape: str) -> str:
    return DASH if value is None else shape.format(value)
