"""Hosts of a run that are on one machine: what its kernel counts is counted once, however many agents saw it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

MACHINE_SOURCES = frozenset(
    {"block", "host", "multipath", "net", "nfs", "path", "process", "raid", "volume"}
)  # fmt: skip
"""Sources of the series that tell of a machine; all others tell of what one agent did, or of its target."""


def first_on_machine(hosts: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The first of the hosts on the same machine, for each host; a host of an unknown machine is alone on it.

    Examples
    --------
    >>> first_on_machine([{"name": "a", "machine": "m"}, {"name": "b", "machine": "m"}, {"name": "c"}])
    {'a': 'a', 'b': 'a', 'c': 'c'}
    """
    firsts: dict[str, str] = {}
    found: dict[str, str] = {}
    for host in hosts:
        name, machine = str(host.get("name")), host.get("machine")
        found[name] = firsts.setdefault(str(machine), name) if machine else name
    return found


def without_twins(frame: pl.DataFrame, hosts: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """The series without what a second agent recorded of the same machine.

    Of each thing that was recorded the first host's rows stay; those that know the thing's role come before others.
    """
    import polars as pl

    firsts = first_on_machine(hosts)
    if all(name == first for name, first in firsts.items()):
        return frame
    keys = ["host", "source", "entity"]
    text = [pl.col(name).cast(pl.String) for name in keys]
    place = {name: number for number, name in enumerate(firsts)}
    of_machine = pl.col("source").cast(pl.String).is_in(MACHINE_SOURCES) & pl.col("host").cast(pl.String).is_in(firsts)
    seen = frame.filter(of_machine).group_by(*text).agg(known=(pl.col("role").cast(pl.String) != "").any())
    kept = (
        seen.with_columns(
            machine=pl.col("host").replace_strict(firsts, return_dtype=pl.String),
            place=pl.col("host").replace_strict(place, return_dtype=pl.Int64),
        )
        .sort(pl.col("known").not_(), "place")
        .unique(["machine", "source", "entity"], keep="first", maintain_order=True)
        .select(*keys, twin=pl.lit(False))
    )
    marked = frame.with_columns(*text, _is_machine=of_machine).join(kept, on=keys, how="left", maintain_order="left")
    stays = pl.col("_is_machine").not_() | pl.col("twin").is_not_null()
    return marked.filter(stays).drop("_is_machine", "twin")
