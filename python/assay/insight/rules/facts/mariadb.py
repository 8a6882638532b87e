"""Facts of MariaDB and MySQL: global variables, and what the server counts since its start."""

from __future__ import annotations

from collections.abc import Mapping

from assay.insight.rules.facts.numbers import Setting, number
from assay.insight.rules.rule import Subject
from assay.targets.databases.common.database import Database

_VARIABLES = "its global variables"
_STATUS = "its global status"
_TEXTS = ("innodb_flush_method", "innodb_doublewrite", "innodb_checksum_algorithm")
"""Variables that are words even where they look like numbers."""


def read(database: Database, server: Subject) -> None:
    """Read all facts."""
    server.otherwise = "this version of the server has no such variable"
    from_settings({str(name): value for name, value in database.query("show global variables")}, server, _VARIABLES)
    status = {str(name): value for name, value in database.query("show global status")}

    def count(name: str) -> float | None:
        value = number(status.get(name))
        return float(value) if isinstance(value, (int, float)) else None

    server.know("log_waits", count("Innodb_log_waits"), _STATUS)
    server.know("log_writes", count("Innodb_log_writes"), _STATUS)
    requests, reads = (count(f"Innodb_buffer_pool_{one}") for one in ("read_requests", "reads"))
    server.know("read_requests", requests, _STATUS)
    if requests and reads is not None:
        server.know("read_efficiency", 1.0 - reads / requests, _STATUS)
    opened, uptime = count("Opened_tables"), count("Uptime")
    if opened is not None and uptime:
        server.know("opened_tables_per_s", opened / uptime, _STATUS)
    for name in ("read_efficiency", "opened_tables_per_s"):
        server.lack(name, "the server has counted nothing yet")


def from_settings(settings: Mapping[str, Setting], server: Subject, origin: str) -> None:
    """Global variables by name."""
    for name, value in settings.items():
        server.know(name, str(value) if name in _TEXTS else number(value), origin)
    redo = server.get("innodb_redo_log_capacity") or (
        (server.get("innodb_log_file_size") or 0) * (server.get("innodb_log_files_in_group") or 1) or None
    )
    server.know("redo_bytes", redo, origin)
