"""Rows of a series on their way from an agent: Arrow messages, bounded and checked before they are used."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.fleet.wire import NotAMessage

if TYPE_CHECKING:
    from assay.record.rows import Rows

ROWS_MAX = 20_000_000
"""Of one point."""


def as_stream(parts: Sequence[Rows]) -> bytes:
    """Rows as they go over a pipe; nothing for none."""
    if not parts:
        return b""
    from assay.record.rows import joined_rows
    from assay.record.series_arrow import END, stream_head, stream_messages

    return b"".join((stream_head(), *stream_messages(joined_rows(parts)), END))


def from_stream(data: bytes) -> list[Rows]:
    """Rows as `as_stream` sent them.

    Raises
    ------
    NotAMessage
        They are no rows of a series, or too many.
    """
    if not data:
        return []
    from assay.record.series_reading import stream_rows

    parts: list[Rows] = []
    try:
        for _, rows in stream_rows(io.BytesIO(data)):
            parts.append(rows)
            if sum(map(len, parts)) > ROWS_MAX:
                raise ValueError(f"more than {ROWS_MAX:,} rows")
    except (OSError, ValueError, LookupError, TypeError, MemoryError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise NotAMessage(f"no rows of a series ({reason})") from None
    return parts


def of_host(rows: Rows, name: str, hostname: str, offset_ns: int) -> Rows:
    """Rows as those of a host, its wall clock set to this host's."""
    shifted = rows.t_ns - offset_ns * rows.are("clock", "wall")
    return replace(rows.renamed("host", lambda host: name if host == hostname else host), t_ns=shifted)
