"""What databases need to know of tables that files of the user's made: that they are there, and of which files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.targets.databases.common.table_set import LoadedSize, TableSet

KIND = "sql"

TABLES = TableSet(
    rows="",
    names=(),
    scale="scale",
    size=LoadedSize(
        words=lambda scale: f"scale {scale:,}", option="scale", things="tables", is_seeded=False, bytes_each=0,
        log_bytes_each=0,
    ),
    keys={},
    statements=lambda _dialect, _file: (),
)  # fmt: skip


def tables_named(names: Sequence[str]) -> TableSet:
    """The same with the tables that the files made, by name."""
    made = tuple(sorted(names))
    return replace(
        TABLES,
        names=made,
        statements=lambda _dialect, file: [(name, "") for name in (*made, "assay_schema")] if file == "schema" else [],
    )
