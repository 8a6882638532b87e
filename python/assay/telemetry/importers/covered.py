"""What a file holds, so that no two values are of one metric of one entity at one time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from assay.telemetry.columns import Reading


class Holder(NamedTuple):
    """A file that holds a metric over a time."""

    name: str
    format: str
    from_ns: int
    to_ns: int


class Covered:
    """Names and times of what was read."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], set[tuple[str, str]]] = {}
        self._span_ns: dict[tuple[str, str], tuple[int, int]] = {}
        self._at: dict[tuple[str, str], tuple[int, set[tuple[str, str]]]] = {}
        self._holders: dict[tuple[str, str, str, str], list[Holder]] = {}

    def __bool__(self) -> bool:
        return bool(self._holders)

    def declare(self, host: str, source: str, entity: str, metric: str) -> bool:
        """Say that a column holds a metric; False where another column does already."""
        names = self._names.setdefault((host, source), set())
        is_new = (entity, metric) not in names
        names.add((entity, metric))
        return is_new

    def twice(self, host: str, source: str, t_ns: int, found: Iterable[Reading]) -> Reading | None:
        """The first reading that there is at this time already; None where all are new."""
        key = (host, source)
        at_ns, seen = self._at.get(key, (-1, set()))
        if at_ns != t_ns:
            self._names.setdefault(key, set()).update(seen)
            at_ns, seen = self._at[key] = t_ns, set()
        for one in found:
            name = (one.entity, one.metric)
            if name in seen:
                return one
            seen.add(name)
        return None

    def extend(self, host: str, source: str, from_ns: int, to_ns: int) -> None:
        """Extend the time span that a source covers."""
        span = self._span_ns.get((host, source))
        if span is not None:
            from_ns, to_ns = min(span[0], from_ns), max(span[1], to_ns)
        self._span_ns[host, source] = from_ns, to_ns

    def holder(self, host: str, source: str, entity: str, metric: str, from_ns: int, to_ns: int) -> Holder | None:
        """The file that holds a metric over some of a time."""
        held = self.holders(host, source, entity, metric)
        return next((one for one in held if one.from_ns < to_ns and from_ns < one.to_ns), None)

    def holders(self, host: str, source: str, entity: str, metric: str) -> Sequence[Holder]:
        """The files that hold a metric."""
        return self._holders.get((host, source, entity, metric), ())

    def close(self, name: str, form: str, file: Covered) -> None:
        """Add what a file held after it was read."""
        for key, (_, seen) in file._at.items():
            file._names.setdefault(key, set()).update(seen)
        for (host, source), names in file._names.items():
            span = file._span_ns.get((host, source))
            for entity, metric in names if span is not None else ():
                self._holders.setdefault((host, source, entity, metric), []).append(Holder(name, form, *span))  # type: ignore[misc]
