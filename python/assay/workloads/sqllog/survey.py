"""Logs of statements, read through and sorted by sessions before they are replayed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypedDict, cast

from assay import _core
from assay.base.errors import UsageError
from assay.base.paths import printable

PIECE_BYTES = 16 << 20
"""Bytes that are read at once; a signal is seen between two pieces."""

SPAN_MAX_S = 90 * 86_400.0
"""No log of statements that is replayed lasts longer: its clock was wrong."""


class LogSurvey(TypedDict):
    """What logs hold, as the core tells it."""

    formats: list[str]
    dialect: str
    read_bytes: int
    databases: dict[str, int]
    database: str
    sessions: int
    sessions_most: int
    statements: int
    by_kind: dict[str, int]
    with_parameters: int
    failed: int
    untimed: int
    fingerprints: int
    begin_ns: int
    end_ns: int
    by_second: bool
    clock_back: int
    recorded_mean_ns: float | None
    recorded_p50_ns: float | None
    recorded_p95_ns: float | None
    recorded_p99_ns: float | None
    left_out: dict[str, int]
    not_understood: int
    example: str | None


Fingerprint = tuple[tuple[int, int], ...]
"""Size and time of change of each file."""


@dataclass(frozen=True, eq=False)
class StatementLog:
    """Logs, ready to be replayed."""

    core: _core.StatementLog
    survey: LogSurvey
    fingerprint: Fingerprint

    @property
    def span_s(self) -> float:
        """Time from the first statement's beginning to the last one's end."""
        return max((self.survey["end_ns"] - self.survey["begin_ns"]) / 1e9, 1e-3)


def read_log(
    paths: Sequence[str],
    *,
    writes: bool,
    prefix: str | None,
    database: str | None,
) -> StatementLog:
    """Read logs through; those that were read before are not read again.

    Raises
    ------
    UsageError
        A log cannot be read, is none, or holds nothing to replay.
    """
    try:
        fingerprint = tuple((found.st_size, found.st_mtime_ns) for found in map(os.stat, paths))
    except OSError as error:
        raise UsageError(f"cannot read {printable(error.filename)}: {error.strerror or error}") from None
    return _read(tuple(paths), fingerprint, writes, prefix, database)


@lru_cache(maxsize=2)
def _read(
    paths: tuple[str, ...],
    fingerprint: Fingerprint,
    writes: bool,
    prefix: str | None,
    database: str | None,
) -> StatementLog:
    options = {"writes": writes, "prefix": prefix, "database": database, "folder": tempfile.gettempdir()}
    core = _core.StatementLog(json.dumps(options))
    for path in paths:
        core.open(path)
        while core.read_some(PIECE_BYTES):
            pass
    survey = cast(LogSurvey, json.loads(core.finish()))
    log = StatementLog(core=core, survey=survey, fingerprint=fingerprint)
    if log.span_s > SPAN_MAX_S:
        raise UsageError(
            f"{printable(paths[0])}: its statements span {log.span_s / 86_400:,.0f} days; cut out the part to replay"
        )
    return log
