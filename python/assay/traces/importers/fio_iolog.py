"""fio's I/O logs, versions 2 and 3 (HOWTO, "Trace file format v2", "v3")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from assay.traces.importers.form import READ, WRITE, TraceForm, ios_of
from assay.traces.importers.sources import Source
from assay.traces.ios import IoFlag, Ios

_ACTIONS = {"read": READ, "write": WRITE, "trim": int(IoFlag.DISCARD), "sync": int(IoFlag.FLUSH),
            "datasync": int(IoFlag.FLUSH)}  # fmt: skip
_FILES = ("add", "open", "close")
_BEGIN = b"fio version "
_NS_PER_US = 1000
SIZE_MOST = 2**32 - 4096
"""A discard may be longer than a trace tells; it is cut into parts."""

Row = tuple[int, str, int, int, int]


class FioIolog(TraceForm):
    """fio's I/O log."""

    name, title = "fio", "fio iolog"
    layer: Literal["queued", "issued"] = "queued"

    def recognises(self, head: bytes) -> bool:
        """The first line."""
        return head.startswith((_BEGIN + b"2 iolog", _BEGIN + b"3 iolog"))

    def rows(self, source: Source) -> Iterator[Ios]:
        """Yield I/Os and flushes; files that are opened and closed are no I/O."""
        is_timed = source.head.startswith(_BEGIN + b"3")
        waited_us, is_first = 0, True
        for lines in source.text_blocks():
            found: list[Row] = []
            for line in lines[1:] if is_first else lines:
                fields = line.split()
                try:
                    if is_timed:
                        waited_us = int(fields.pop(0))
                    name, action = fields[:2]
                    if action == "wait":
                        # Each wait begins where the one before it ended.
                        waited_us += int(fields[2])
                    elif action not in _FILES:
                        found += _parts(waited_us * _NS_PER_US, name, action, fields[2:])
                except (ValueError, IndexError, KeyError):
                    source.bad(line)
            is_first = False
            if found:
                yield _ios(found)
        if not is_timed:
            source.note("version 2 of fio's I/O log keeps no times but waits, of which fio leaves out short ones")


def _parts(t_ns: int, name: str, action: str, where: list[str]) -> Iterator[Row]:
    flags = _ACTIONS[action]
    place, size = (int(where[0]), int(where[1])) if flags != IoFlag.FLUSH or len(where) >= 2 else (0, 0)
    if not (0 <= t_ns < 2**62 and 0 <= place < 2**62 and 0 <= size <= 2**44):
        raise ValueError(action)
    if flags == IoFlag.FLUSH or size < SIZE_MOST:
        yield t_ns, name, flags, place, 0 if flags == IoFlag.FLUSH else size
        return
    for at in range(0, size, SIZE_MOST):
        yield t_ns, name, flags, place + at, min(SIZE_MOST, size - at)


def _ios(rows: list[Row]) -> Ios:
    import numpy as np

    times, names, flags, places, sizes = zip(*rows, strict=True)
    t_ns, place_bytes, size_bytes = (np.array(one, np.int64) for one in (times, places, sizes))
    return ios_of(t_ns=t_ns, place_bytes=place_bytes, size_bytes=size_bytes,
                  flags=np.array(flags, np.uint16), device=names)  # fmt: skip
