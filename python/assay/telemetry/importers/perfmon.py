"""Logs of Perfmon as relog, typeperf and Performance Monitor export them (CSV, TSV), in seven languages of Windows."""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import ClassVar, TextIO

from assay.telemetry.importers.importer import NO_USE, Importer, Into, NotTaken
from assay.telemetry.importers.pdh import HEADER, Columns, Counter, Path, begin

TOTAL = "_Total"


@dataclass(frozen=True)
class _Object:
    name: str
    entity: str | None
    counters: Mapping[str, Counter]


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
        _columns(log.paths, into).hand_over(log, into)


def _columns(paths: Mapping[int, Path], into: Into) -> Columns:
    """Columns whose counters are known."""
    known = _known()
    columns = Columns()
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
        columns.take(place, path, entity, counter, into)
    if not columns:
        names = sorted({path.name for path in paths.values()})
        shown = "; ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        why = "they may be in a language that is not known here (docs/import.md lists them)" if strange else "no use"
        raise NotTaken(f"none of its counters is one that Assay takes: {shown}: {why}")
    return columns


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
            made = Counter(
                tier=one["tier"], source=one["source"], metric=counter["metric"], kind=counter["kind"],
                factor=float(counter.get("factor", 1)), offset=float(counter.get("offset", 0)),
            )  # fmt: skip
            for name in (counter["name"], *counter.get("names", ())):
                counters[folded(name)] = made
        made_object = _Object(one["name"], one.get("entity"), counters)
        for name in (one["name"], *one.get("names", ())):
            found[folded(name)] = made_object
    return found
