"""A run folder that keeps nothing, for models that are asked without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class Nowhere:
    """Forgets points, and of series all but the latest rows.

    Attributes
    ----------
    batches
        The rows that were written last.
    """

    def __init__(self) -> None:
        self.batches: Sequence[pa.RecordBatch] = ()

    def append_point(self, point: dict[str, object]) -> None:
        """Forget a point."""

    def series_writer(self) -> Nowhere:
        """Give itself."""
        return self

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Hold rows until others come."""
        self.batches = batches

    def close_segment(self, name: str) -> None:
        """Do nothing."""
