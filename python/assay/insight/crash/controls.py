"""Settings under which a program must fail: where one passes, the check finds nothing."""

from __future__ import annotations

from dataclasses import dataclass

from assay.insight.crash.promises import Promises


@dataclass(frozen=True, kw_only=True)
class Control:
    """A setting that takes away what a server needs.

    Attributes
    ----------
    reason
        What goes wrong, in words that follow "must fail:".
    page_bytes
        The setting lets pages of this size be written in place, so that one that is torn is lost; 0: acknowledged
        transactions are lost, whatever the storage promises.
    """

    reason: str
    page_bytes: int = 0

    def must_fail(self, promises: Promises) -> bool:
        """Whether the promises allow what the setting does not survive."""
        if not self.page_bytes:
            return True
        size = promises.atomic_bytes
        return promises.volatile_cache and size is not None and size < self.page_bytes
