"""What storage promises at a crash, in words and for the core."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal

from assay.base.errors import UsageError
from assay.base.units import format_bytes

ATOMIC_BYTES = (512, 4096, 8192, 16384)
"""Sizes that drives write atomically: sectors of both kinds, and pages of databases."""
WITHDRAWN = ("flush", "fua", "discard")
"""Promises that may be withdrawn by name."""

Order = Literal["any", "submitted"]


@dataclass(frozen=True, kw_only=True)
class Promises:
    """What a drive guarantees.

    Attributes
    ----------
    volatile_cache
        Whether completed writes may be lost until a flush.
    order
        Which outstanding writes may survive: any, or those that were submitted first.
    atomic_bytes
        Aligned size that survives whole or not at all; None: a write survives as a whole.
    fua, flush
        Whether completed FUA writes and flushes do what they say.
    deterministic_discard
        Whether a discarded range reads as zeroes.
    """

    volatile_cache: bool = True
    order: Order = "any"
    atomic_bytes: int | None = 512
    fua: bool = True
    flush: bool = True
    deterministic_discard: bool = True

    def to_json(self) -> str:
        """For `assay._core.CrashStates`."""
        return json.dumps(asdict(self))

    @property
    def words(self) -> str:
        """In one line, the weakest promise first.

        Examples
        --------
        >>> Promises().words
        'volatile cache, any order, 512 B atomic'
        >>> Promises(flush=False, atomic_bytes=4096).words
        'flush ignored, volatile cache, any order, 4 KiB atomic'
        """
        parts = [
            *([] if self.flush else ["flush ignored"]),
            *([] if self.fua else ["FUA ignored"]),
            *([] if self.deterministic_discard else ["discarded ranges undefined"]),
            "volatile cache" if self.volatile_cache else "no volatile cache",
            "any order" if self.order == "any" else "in order",
            f"{format_bytes(self.atomic_bytes)} atomic" if self.atomic_bytes is not None else "whole writes",
        ]
        return ", ".join(parts)

    def without(self, names: Iterable[str]) -> Promises:
        """The same with some promises withdrawn.

        Raises
        ------
        UsageError
            One has no such name.
        """
        withdrawn = frozenset(names)
        for name in withdrawn:
            if name not in WITHDRAWN:
                raise UsageError(f"--withdraw: {name!r} is no promise; accepted: {', '.join(WITHDRAWN)}")
        return replace(
            self,
            flush=self.flush and "flush" not in withdrawn,
            fua=self.fua and "fua" not in withdrawn,
            deterministic_discard=self.deterministic_discard and "discard" not in withdrawn,
        )


LIAR = Promises(flush=False, fua=False)
"""The control that must fail: nothing is durable."""
