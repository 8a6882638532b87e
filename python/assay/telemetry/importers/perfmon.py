"""Logs of Perfmon as relog, typeperf and Performance Monitor export them (CSV, TSV), in seven languages of Windows."""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import ClassVar, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import Importer, Into, NotTaken, number
from assay.telemetry.importers.pdh import HEADER, Path, begin, times

TOTAL = "_Total"
NO_USE = "no use is made of it"


@dataclass(frozen=True)
class _Counter:
    metric: str
    kind: str
    factor: float
    offset: float


@dataclass(frozen=True)
class _Object:
    name: str
    tier: str
    source: str
    entity: str | None
    counters: Mapping[str, _Counter]


@dataclass(frozen=True)
class _Column:
    place: int
    entity: str
    counter: _Counter


class Perfmon(Importer):
    """Performance Monitor of Windows."""

    name: ClassVar[str] = "perfmon"
    title: ClassVar[str] = "Perfmon log (CSV, TSV)"

    def recognises(self, head: str) -> bool:
        """Its first cell names the format."""
        return HEADER.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take the counters that Assay knows, in any language that it knows.

        Raises
        ------
        NotTaken
            None of them is there.
        """
        log = begin(file)
        groups = _groups(log.paths, into)
        for t_ns, row in times(log, into):
            for host, columns in groups.items():
                interval_ns = into.interval_ns(host, t_ns)
                if into.is_late(host, t_ns):
                    continue
                for (tier, source), own in columns.items():
                    into.add(
                        _readings(own, row, interval_ns),
                        host=host,
                        t_ns=t_ns,
                        interval_ns=interval_ns or 0,
                        tier=tier,
                        source=source,
                    )


def _readings(columns: Sequence[_Column], row: Sequence[str], interval_ns: int | None) -> list[Reading]:
    """The values of a row; a rate is of the time since the row before, so the first row has none."""
    found = []
    for column in columns:
        if column.place >= len(row):
            continue
        value = number(row[column.place])
        if value is None:
            continue
        counter = column.counter
        value = value * counter.factor + counter.offset
        if counter.kind == "delta":
            if interval_ns is None or value < 0:
                continue
            value *= interval_ns / 1e9
        elif counter.metric == "busy_share":
            value = min(max(value, 0.0), 1.0)
        found.append(Reading(column.entity, counter.metric, counter.kind, value))
    return found


def _groups(paths: Mapping[int, Path], into: Into) -> dict[str, dict[tuple[str, str], list[_Column]]]:
    """Columns that are taken, by host, and within it by what the rows have in common."""
    known = _known()
    groups: dict[str, dict[tuple[str, str], list[_Column]]] = {}
    strange = 0
    for place, path in paths.items():
        found = known.get(folded(_common_object(path.object)))
        counter = found.counters.get(folded(path.counter)) if found is not None else None
        if found is None or counter is None:
            strange += found is None
            into.taken.ignore(path.name, NO_USE)
            continue
        entity = _entity(found, path.instance)
        if entity is None:
            into.taken.ignore(f"{path.object}({TOTAL})\\{path.counter}", "the sum of instances that are taken")
            continue
        column = _Column(place, entity, counter)
        groups.setdefault(path.host, {}).setdefault((found.tier, found.source), []).append(column)
        into.taken.counters[path.name] = f"{found.source} {counter.metric}"
    if not groups:
        names = sorted({path.name for path in paths.values()})
        shown = "; ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        why = "they may be in a language that is not known here (docs/import.md lists them)" if strange else "no use"
        raise NotTaken(f"none of its counters is one that Assay takes: {shown}: {why}")
    return groups


def _entity(found: _Object, instance: str) -> str | None:
    """The entity of an instance; None for a sum of others."""
    if found.name == "Processor":
        return "cpu" if instance == TOTAL else f"cpu/{instance}"
    if found.entity is not None:
        return found.entity
    return None if instance == TOTAL else instance or found.name


def _common_object(name: str) -> str:
    """An object of a named instance of SQL Server as that of the default one."""
    prefix, colon, rest = name.partition(":")
    return f"SQLServer:{rest}" if colon and prefix.upper().startswith("MSSQL$") else name


def folded(text: str) -> str:
    """A name without case and accents, which exports lose.

    Examples
    --------
    >>> folded("Physikalischer Datenträger") == folded("PHYSIKALISCHER DATENTRAGER")
    True
    """
    plain = unicodedata.normalize("NFKD", text.replace("\u2019", "'"))
    return "".join(letter for letter in plain if not unicodedata.combining(letter)).casefold().strip()


@cache
def _known() -> Mapping[str, _Object]:
    """Objects by every name they have, folded."""
    text = resources.files("assay.telemetry.importers").joinpath("perfmon.toml").read_text(encoding="utf-8")
    found: dict[str, _Object] = {}
    for one in tomllib.loads(text)["object"]:
        counters = {}
        for counter in one["counter"]:
            made = _Counter(
                counter["metric"], counter["kind"], float(counter.get("factor", 1)), float(counter.get("offset", 0))
            )
            for name in (counter["name"], *counter.get("names", ())):
                counters[folded(name)] = made
        made_object = _Object(one["name"], one["tier"], one["source"], one.get("entity"), counters)
        for name in (one["name"], *one.get("names", ())):
            found[folded(name)] = made_object
    return found
