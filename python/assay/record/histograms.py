"""Histograms of a run folder, decoded where they are needed."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assay.base.errors import AssayError, RunFolderError

if TYPE_CHECKING:
    from assay._core import Histogram

COUNTS_BYTES_MAX = 2**22
"""Counts of a histogram before they are compressed; Assay's have some hundred kilobytes at most."""
_COOKIE_BYTES, _HEADER_BYTES = 8, 40


def histogram_of(direction: Mapping[str, Any] | None) -> Histogram | None:
    """Histogram of a direction (docs/results.md), None where it has none or nothing is in it.

    Raises
    ------
    RunFolderError
        It is damaged.
    """
    from assay._core import Histogram

    text = (direction or {}).get("histogram")
    if not text:
        return None
    try:
        _check_counts(text)
        histogram = Histogram.from_base64(text)
    except (AssayError, ValueError, struct.error, zlib.error) as error:
        reason = str(error).removeprefix("histogram: ")[:160]
        raise RunFolderError(f"points.jsonl: a histogram is damaged: {reason}; the folder was changed") from error
    return histogram if histogram.count else None


def _check_counts(text: str) -> None:
    """Refuse a histogram that claims more counts than any has, before they are made room for (HDR V2, compressed)."""
    packed = base64.b64decode(text, validate=True)[_COOKIE_BYTES:]
    header = zlib.decompressobj().decompress(packed, _HEADER_BYTES)
    (counts_bytes,) = struct.unpack_from(">I", header, 4)
    if counts_bytes > COUNTS_BYTES_MAX:
        raise ValueError(f"it claims {counts_bytes:,} bytes of counts")
