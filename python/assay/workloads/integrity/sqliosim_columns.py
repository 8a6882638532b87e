"""SQLIOSim's configuration as papers print it, in columns: made into the lines that the file had.

Two ways of printing are read. Rows of section, key and value; and the file's own lines, broken into columns that
stand side by side, each going on where the one before ends.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Sequence

_GAP = re.compile(r"\s*\t\s*|\s*\|\s*|\s{2,}")
_LINE = re.compile(r"\[[^\]]+\]|\w+\s*=.*")
_ROW = 3
"""Cells of a row of section, key and value."""


def lines_of(text: str, sections: Container[str]) -> tuple[str, str]:
    r"""The text as lines of a configuration, and how it was printed; unchanged and empty where it was not in columns.

    Parameters
    ----------
    text
        The file.
    sections
        Names of sections, in small letters.

    Examples
    --------
    >>> lines_of("CONFIG\tCPUCount\t8\n\tTestCycles\t1\n", {"config"})
    ('[CONFIG]\nCPUCount=8\nTestCycles=1\n', 'rows of section, key and value')
    >>> lines_of("[CONFIG]    [AuditUser]\nCPUCount=8  UserCount=2\n", {"config"})
    ('[CONFIG]\nCPUCount=8\n[AuditUser]\nUserCount=2\n', '2 columns side by side')
    """
    rows = [line.strip("\r\n") for line in text.splitlines() if line.strip() and not line.lstrip().startswith(";")]
    return _of_table(rows, sections) or _of_columns(rows) or (text, "")


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in _GAP.split(row.strip(" ").strip("|"))]


def _of_table(rows: Sequence[str], sections: Container[str]) -> tuple[str, str] | None:
    """Rows of section, key and value; a section may stand in its first row alone."""
    lines: list[str] = []
    section = ""
    for row in rows:
        cells = _cells(row)
        if "=" in row.partition("\\")[0]:
            return None
        name, *others = cells if len(cells) == _ROW else ["", *cells]
        known = name.strip("[]").lower()
        is_section = known in sections or re.fullmatch(r"file\d+", known) is not None
        if not section and not is_section:
            # The heading of the table.
            continue
        if (name and not is_section) or len(others) != _ROW - 1:
            return None
        if is_section and known != section:
            section = known
            lines.append(f"[{name.strip('[]')}]")
        lines.append("=".join(others))
    return ("\n".join(lines) + "\n", "rows of section, key and value") if lines else None


def _of_columns(rows: Sequence[str]) -> tuple[str, str] | None:
    """Lines of a configuration side by side; where a column begins, the row with the most cells says."""
    placed = [[(found.start(), found[0].strip()) for found in re.finditer(r"\S(?:(?!\t|\s{2,}).)*", row.expandtabs())]
              for row in rows]  # fmt: skip
    widest = max(placed, key=len, default=[])
    cells = [cell for row in placed for _, cell in row]
    if len(widest) < 2 or not all(_LINE.fullmatch(cell) for cell in cells):
        return None
    starts = [start for start, _ in widest]
    columns: list[list[str]] = [[] for _ in starts]
    for row in placed:
        for start, cell in row:
            columns[max(bisect_right(starts, start + 1) - 1, 0)].append(cell)
    return "\n".join(cell for column in columns for cell in column) + "\n", f"{len(starts)} columns side by side"
