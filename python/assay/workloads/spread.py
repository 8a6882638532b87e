"""A load that is spread over hosts: what each of them gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from assay.base.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Share:
    """The place of one host among all that a plan is spread over.

    Attributes
    ----------
    place, hosts
        Its number from 0, and how many there are.
    shared
        Whether all hosts use the same volumes or databases; else each has its own.
    """

    place: int
    hosts: int
    shared: bool = False

    def whole(self, total: int, what: str) -> int:
        """The part of this host in a whole number, one or more.

        Raises
        ------
        UsageError
            There is less than one for each host.

        Examples
        --------
        >>> [Share(place=place, hosts=3).whole(8, "--users") for place in range(3)]
        [3, 3, 2]
        """
        if total < self.hosts:
            raise UsageError(
                f"{what} {total}: is less than one for each of {self.hosts} hosts; give {self.hosts} or more"
            )
        return split_whole(total, [1.0] * self.hosts)[self.place]

    def rate(self, total: float) -> float:
        """The part of this host in a rate."""
        return total / self.hosts

    def region(self, start: float, end: float) -> tuple[float, float]:
        """The part of this host in a region, apart from those of the others.

        Examples
        --------
        >>> Share(place=1, hosts=4, shared=True).region(0.0, 1.0)
        (0.25, 0.5)
        """
        length = (end - start) / self.hosts
        return start + length * self.place, start + length * (self.place + 1)


def split_whole(total: int, weights: Sequence[float]) -> list[int]:
    """A whole number in parts as near as may be to these weights; the parts add up to it.

    Examples
    --------
    >>> split_whole(10, [1, 1, 1]), split_whole(6, [1, 2])
    ([4, 3, 3], [2, 4])
    """
    exact = [total * weight / sum(weights) for weight in weights]
    parts = [int(part) for part in exact]
    by_rest = sorted(range(len(parts)), key=lambda place: (parts[place] - exact[place], place))
    for place in by_rest[: total - sum(parts)]:
        parts[place] += 1
    return parts


def split_load(load: float, starts: Sequence[float], *, whole: bool) -> list[float]:
    """A load of a search in parts for hosts, by the least that each of them takes."""
    if whole:
        return [float(part) for part in split_whole(round(load), starts)]
    return [load * start / sum(starts) for start in starts]


class LoadTogether(Protocol):
    """What a point that several hosts measure at once has in common."""

    def begin(self) -> None:
        """Wait for the moment at which all begin.

        Raises
        ------
        Interrupted
            The run ends.
        """
        ...

    def window(self, from_utc_ns: int, to_utc_ns: int) -> tuple[int, int]:
        """The part of this host's window in which all hosts ran, by this host's clock.

        Raises
        ------
        Interrupted, IoFailed
            The run ends, or there is no such time.
        """
        ...
