"""A run folder that keeps nothing, for models that are asked without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.record.rows import Rows


class Nowhere:
    """Forgets points, and of series all but the latest rows.

    Attributes
    ----------
    manifest
        What a run that goes on had found before; read alone.
    rows
        The rows that were written last.
    """

    def __init__(self, manifest: Mapping[str, object] | None = None) -> None:
        self.manifest = manifest or {}
        self.rows: Sequence[Rows] = ()

    def append_point(self, point: dict[str, object]) -> None:
        """Forget a point."""

    def series_writer(self) -> Nowhere:
        """Give itself."""
        return self

    def write(self, parts: Sequence[Rows]) -> None:
        """Hold rows until others come."""
        self.rows = parts

    def close_segment(self, name: str) -> None:
        """Do nothing."""
