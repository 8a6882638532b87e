"""Logs of Perfmon in seven languages of Windows: its own (BLG), and those of relog and typeperf (CSV, TSV)."""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import ClassVar, NamedTuple, TextIO

from assay.telemetry.importers.importer import Importer, Into, NotTaken
from assay.telemetry.importers.pdh import HEADER, Columns, Path, PdhLog, begin
from assay.telemetry.importers.taken import NO_USE, Counter

TOTAL = "_Total"

_SECOND = {"Processor Information": "Processor"}
"""Objects whose counters another object has as well, where that was recorded."""

_QUEUE_IN_PERCENT = "it is the queue times 100; how busy a disk is, % Idle Time says"


@dataclass(frozen=True)
class _Object:
    name: str
    tier: str
    source: str
    entity: str | None
    counters: Mapping[str, Counter]
    instead: Mapping[str, str]
    """Metrics that a counter becomes where no other one is that metric."""


class Perfmon(Importer):
    """Performance Monitor of Windows."""

    name: ClassVar[str] = "perfmon"
    title: ClassVar[str] = "Perfmon log (BLG, CSV, TSV)"

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
        _columns(begin(file), into).hand_over()


class _Found(NamedTuple):
    """A column whose counter is known."""

    place: int
    path: Path
    known: _Object
    counter: Counter


def _columns(log: PdhLog, into: Into) -> Columns:
    """Columns whose counters are known."""
    known = _known()
    columns = Columns(log, into)
    strange = 0
    found: list[_Found] = []
    for place, path in log.paths.items():
        owner = known.get(folded(_common_object(path.object)))
        counter = owner.counters.get(folded(path.counter)) if owner is not None else None
        if owner is None or counter is None:
            strange += owner is None
            why = _QUEUE_IN_PERCENT if owner is not None and "Disk" in owner.name and "%" in path.counter else NO_USE
            columns.leave(place, path.name, why)
        else:
            found.append(_Found(place, path, owner, counter))
    layout = _Layout(found)
    # What stands in for another counter comes last: it is left out where the other one is there.
    for one in sorted(found, key=lambda one: (one.known.name in _SECOND, one.counter.metric in one.known.instead)):
        _take(one, layout, columns)
    if not columns:
        names = sorted({path.name for path in log.paths.values()})
        shown = "; ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        why = "they may be in a language that is not known here (docs/import.md lists them)" if strange else "no use"
        raise NotTaken(f"none of its counters is one that Assay takes: {shown}: {why}")
    return columns


def _take(one: _Found, layout: _Layout, columns: Columns) -> None:
    """Take a column, or leave it out where others say the same."""
    path, owner, counter = one.path, one.known, one.counter
    source = layout.source(one)
    entity = layout.entity(one)
    if entity is None:
        columns.leave(one.place, f"{path.object}({TOTAL})\\{path.counter}", "the sum of instances that are taken")
        return
    metric = owner.instead.get(counter.metric)
    if metric is not None and not layout.has(path, metric):
        counter = counter._replace(metric=metric)
    if owner.name in _SECOND and layout.has_first(path.host, counter.metric):
        columns.leave(one.place, path.name, f"{_SECOND[owner.name]} says it as well")
        return
    columns.take(one.place, path, entity, (owner.tier, source, counter))


class _Layout:
    """Which objects and instances a log has on each host, on which depends what their counters stand for."""

    def __init__(self, found: Sequence[_Found]) -> None:
        self._metrics: dict[tuple[str, str, str], set[str]] = {}
        self._disks: dict[str, set[str]] = {}
        self._with_instances: set[tuple[str, str, str]] = set()
        self._first: set[tuple[str, str]] = set()
        self._servers: dict[str, set[str]] = {}
        for one in found:
            path, name = one.path, one.known.name
            self._metrics.setdefault((path.host, path.object, path.instance), set()).add(one.counter.metric)
            if path.instance != TOTAL:
                self._with_instances.add((path.host, _family(name), one.counter.metric))
                if name == "PhysicalDisk":
                    self._disks.setdefault(path.host, set()).update(path.instance.split())
            if name == "Processor":
                self._first.add((path.host, one.counter.metric))
            if one.known.source == "mssql":
                self._servers.setdefault(path.host, set()).add(_server(path.object))

    def has(self, path: Path, metric: str) -> bool:
        """Whether the same instance has a counter of a metric."""
        return metric in self._metrics[path.host, path.object, path.instance]

    def has_first(self, host: str, metric: str) -> bool:
        """Whether `Processor` has a metric, which is then left out of `Processor Information`."""
        return (host, metric) in self._first

    def source(self, one: _Found) -> str:
        """The source of a column: a volume counts as a disk where no physical disk of it was recorded."""
        if one.known.name != "LogicalDisk" or one.counter.metric.startswith("free_"):
            return one.known.source
        disks = self._disks.get(one.path.host, set())
        is_letter = one.path.instance[1:2] == ":"
        return "volume" if one.path.instance in disks or (disks and not is_letter) else "block"

    def entity(self, one: _Found) -> str | None:
        """The entity of an instance; None for a sum of others that are there."""
        instance, known = one.path.instance, one.known
        if known.name in ("Processor", *_SECOND):
            if instance == TOTAL:
                return "cpu"
            return None if instance.endswith(f",{TOTAL}") else f"cpu/{instance}"
        server = _server(one.path.object) if len(self._servers.get(one.path.host, ())) > 1 else ""
        if instance == TOTAL and known.entity is None:
            if (one.path.host, _family(known.name), one.counter.metric) in self._with_instances:
                return None
            if known.name == "LogicalDisk" and (one.path.host, "PhysicalDisk", TOTAL) in self._metrics:
                return None
        entity = known.entity or instance or known.name
        return f"{server}:{entity}" if known.source == "mssql" and server else entity


def _family(name: str) -> str:
    """Objects whose instances have the same sums."""
    return "Disk" if name in ("PhysicalDisk", "LogicalDisk") else name


def _server(name: str) -> str:
    """The instance of SQL Server that an object belongs to; MSSQLSERVER is the default one's."""
    prefix, _, _ = name.partition(":")
    return prefix.partition("$")[2] or "MSSQLSERVER"


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
        counters, instead = {}, {}
        for counter in one["counter"]:
            made = Counter(
                metric=counter["metric"], kind=counter["kind"],
                factor=float(counter.get("factor", 1)), offset=float(counter.get("offset", 0)),
            )  # fmt: skip
            if "instead" in counter:
                instead[made.metric] = counter["instead"]
            for name in (counter["name"], *counter.get("names", ())):
                counters[folded(name)] = made
        made_object = _Object(one["name"], one["tier"], one["source"], one.get("entity"), counters, instead)
        for name in (one["name"], *one.get("names", ())):
            found[folded(name)] = made_object
    return found
