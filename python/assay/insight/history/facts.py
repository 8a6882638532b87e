"""Facts of a run's manifest that figures may hang on: kernel, firmware, mount options, settings, Assay itself.

A manifest may come from anywhere: texts are printable and of bounded length, and so is their number.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.base.paths import printable
from assay.base.tables import Record
from assay.base.units import format_bytes
from assay.record.types import Manifest

FACTS_MAX = 500
"""Facts of a run that are looked at."""
LETTERS_MAX = 120
"""Letters of a fact's name, and of its value."""

SEED = "seed"
"""Name of the fact that the seed of a plan is."""
RARE_SHARE = 0.1
RARE_MIN = 3
"""Share of the runs in which a fact may change, and a number in which it may change in any case, to be worth naming."""

_HOST = {
    "kernel": "kernel", "distribution": "distribution", "cpu_model": "processor", "cpu_count": "processors",
    "memory_bytes": "memory", "virtualization": "virtualisation", "python": "Python",
}  # fmt: skip
_BUILD = {"version": "Assay's version", "commit": "Assay's commit", "profile": "Assay's build"}
_ENGINE = {"backend": "I/O engine", "features": "features of the I/O engine", "degraded": "I/O engine does without"}
_VOLUME = {
    "size_bytes": "size", "file_system": "file system", "mount_options": "mount options", "device": "device",
    "device_stack": "devices beneath", "model": "model of the drive",
}  # fmt: skip
_QUEUE = {
    "scheduler": "I/O scheduler", "nr_requests": "requests of the queue", "write_cache": "write cache",
    "read_ahead_bytes": "read-ahead", "max_io_bytes": "largest I/O", "logical_block_bytes": "logical block",
    "physical_block_bytes": "physical block", "rotational": "rotational",
}  # fmt: skip
_DRIVE = {
    "model": "model", "firmware": "firmware", "transport": "transport", "volatile_write_cache": "volatile write cache",
    "power_loss_protection": "power-loss protection",
}  # fmt: skip
_LINK = {"transfers_per_s": "transfers per s of the link", "lanes": "lanes"}
_DATABASE = {"version": "version"}
_ARRAY = {"title": "array", "raid": "RAID policy", "members": "members", "used_bytes": "used bytes"}


@dataclass(frozen=True)
class RunFact:
    """A fact of a run: its name, and its value in words."""

    name: str
    value: str


@dataclass(frozen=True)
class FactChange:
    """A fact that differs between a run and the one before it.

    Attributes
    ----------
    at
        Place of the run that has the new value, in the series.
    before, after
        In words; empty where the run does not say it.
    """

    name: str
    before: str
    after: str
    at: int


def facts_of(manifest: Manifest) -> tuple[RunFact, ...]:
    """The facts of a run, each name once, in a fixed order."""
    found: list[RunFact] = []
    names: set[str] = set()
    for name, value in _facts(manifest):
        fact = RunFact(_bounded(name), _words(name, value))
        if fact.value and fact.name not in names:
            names.add(fact.name)
            found.append(fact)
        if len(found) == FACTS_MAX:
            break
    return tuple(found)


def fact_changes(runs: Sequence[Sequence[RunFact]]) -> list[FactChange]:
    """What changed from each run to the next, in order.

    Examples
    --------
    >>> fact_changes([[RunFact("kernel", "6.1")], [RunFact("kernel", "6.1")], [RunFact("kernel", "6.12")]])
    [FactChange(name='kernel', before='6.1', after='6.12', at=2)]
    """
    found: list[FactChange] = []
    for at in range(1, len(runs)):
        if runs[at] == runs[at - 1]:
            continue
        before, after = ({fact.name: fact.value for fact in runs[place]} for place in (at - 1, at))
        found += [
            FactChange(name, before.get(name, ""), after.get(name, ""), at)
            for name in dict.fromkeys((*after, *before))
            if before.get(name) != after.get(name)
        ]
    return found


def rare_changes(changes: Sequence[FactChange], runs: int) -> list[FactChange]:
    """Changes of facts that mostly stay: one that differs in every run, as a seed may, explains no change of level."""
    times = Counter(change.name for change in changes)
    return [change for change in changes if times[change.name] <= max(RARE_MIN, RARE_SHARE * runs)]


def _facts(manifest: Manifest) -> Iterator[tuple[str, object]]:
    """Facts as the manifest has them; what changes figures most comes first."""
    target: Record = manifest.get("target") or {}
    for drive in _records(target.get("drives")):
        yield from _named(drive, _DRIVE, f"{drive.get('name')}: ")
        yield from _named(_record(drive.get("link")), _LINK, f"{drive.get('name')}: ")
    yield from _named(_record(manifest.get("host")), _HOST)
    yield "hosts", len(manifest.get("hosts") or []) or None
    yield from _of_volumes(_records(target.get("volumes")))
    for database in _records(target.get("databases")):
        yield from _named(database, _DATABASE, f"{database.get('name')}: ")
        for name, value in _record(database.get("settings")).items():
            yield f"{database.get('name')}: {name}", value
    yield from _of_array(_record(target.get("array")))
    for array in _records(target.get("served")):
        yield from _of_array(array)
    yield from _named(_record(manifest.get("build")), _BUILD)
    yield from _named(_record(manifest.get("engine")), _ENGINE)
    yield SEED, _record(manifest.get("plan")).get("seed")


def _of_volumes(volumes: Sequence[Record]) -> Iterator[tuple[str, object]]:
    """What all volumes share once, and what they do not share for each."""
    told = [[*_named(volume, _VOLUME), *_named(_record(volume.get("queue")), _QUEUE)] for volume in volumes[:FACTS_MAX]]
    if not told:
        return
    shared = [fact for fact in told[0] if all(fact in other for other in told)]
    yield from shared
    for volume, facts in zip(volumes, told, strict=False):
        yield from [(f"{volume.get('name')}: {name}", value) for name, value in facts if (name, value) not in shared]


def _of_array(array: Record) -> Iterator[tuple[str, object]]:
    yield from _named(array, _ARRAY)
    for name, value in _record(array.get("options")).items():
        yield f"option {name} of the array", value
    for name, parameter in _record(array.get("parameters")).items():
        if isinstance(parameter, Mapping) and parameter.get("value") is not None:
            yield f"{name} of the array", f"{parameter['value']} {parameter.get('unit') or ''}".strip()


def _named(record: Record, names: Mapping[str, str], before: str = "") -> Iterator[tuple[str, object]]:
    for key, name in names.items():
        if record.get(key) is not None:
            yield before + name, format_bytes(record[key]) if key.endswith("_bytes") else record[key]


def _record(value: object) -> Record:
    return value if isinstance(value, Mapping) else {}


def _records(values: object) -> list[Record]:
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def _words(name: str, value: object) -> str:
    if value is None:
        return ""
    if name.rpartition(": ")[2] == "mount options":
        # The order of options means nothing.
        value = ",".join(sorted(str(value).split(",")))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | Mapping):
        value = ", ".join(map(str, value)) if isinstance(value, list) else json.dumps(value)
        value = value or "none"
    return _bounded(f"{value:g}" if isinstance(value, float) else str(value))


def _bounded(text: str) -> str:
    shown = printable(text[: 2 * LETTERS_MAX])
    return shown if len(shown) <= LETTERS_MAX else f"{shown[: LETTERS_MAX - 3]}..."
