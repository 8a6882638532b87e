"""What is needed: databases, mailboxes, servers, limits, the method's rules, and what may be bought, from TOML."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from assay.base.errors import UsageError
from assay.base.fields import Strict
from assay.base.reading import nearest, read_table, validated
from assay.base.tables import TableValue
from assay.insight.sizing.quantities import Block, Hours, Latency, Part, Percent, Power, Size, Throughput
from assay.targets.arrays.model.cloud_offer import machines

DAY = tuple(range(24))


class Limits(Strict):
    """What the storage must meet: mean latencies of each activity, the time of a rebuild, the loss of data."""

    read: Latency = 0.020
    write: Latency = 0.020
    log: Latency = 0.005
    rebuild: Latency = 86400.0
    loss: Part | None = None


class Rules(Strict):
    """The method's rules; each may be changed, and is then told as stated."""

    fill: Annotated[Part, Field(gt=0)] = 0.70
    modelled_fill: Part = 0.60
    add_array: Annotated[Part, Field(gt=0)] = 0.85
    derating_transactions: Annotated[Part, Field(lt=0.95)] = 0.22
    derating_scans: Annotated[Part, Field(lt=0.95)] = 0.14
    degraded: bool = True
    rebuilding: bool = True
    log_apart: bool = True
    raid_by_role: bool = True
    raid6_large: bool = True

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.modelled_fill > self.fill:
            raise ValueError(
                f"modelled_fill of {self.modelled_fill:.0%} is above fill of {self.fill:.0%}; give a lower one"
            )
        return self


class NeededDatabase(Strict):
    """One database; its load is given as transactions, as I/Os, as a scan rate, or as I/Os and a scan rate."""

    name: str = "database"
    size: Size
    growth: Percent = 0.0
    load_growth: Percent | None = None
    iops: Annotated[float, Field(gt=0, lt=1e9)] | None = None
    transactions: Annotated[float, Field(gt=0, lt=1e9)] | None = None
    ios_per_transaction: Annotated[float, Field(gt=0, lt=1e6)] = 3.1
    block: Block = 8192
    read: Part = 0.7
    log: Part = 0.1
    log_block: Block = 16384
    log_size: Size | None = None
    scan: Throughput | None = None
    scan_block: Block = 131072
    tempdb: Percent | None = None
    hours: Hours = DAY

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.iops is not None and self.transactions is not None:
            raise ValueError("iops and transactions contradict each other; give one of them")
        if self.iops is None and self.transactions is None and self.scan is None:
            raise ValueError("asks for nothing; give iops, transactions or scan")
        return self

    @property
    def ios(self) -> float:
        """I/Os a second, log among them, without scans."""
        if self.transactions is not None:
            return self.transactions * self.ios_per_transaction
        return self.iops or 0.0

    @property
    def log_bytes(self) -> int:
        """Space of its log, where it writes one; a tenth of the database unless it is stated."""
        if not self.ios or not self.log:
            return 0
        return self.log_size if self.log_size is not None else self.size // 10

    @property
    def tempdb_bytes(self) -> int:
        """Space of tempdb: a tenth of databases that are scanned, unless it is stated."""
        share = self.tempdb if self.tempdb is not None else 0.1 if self.scan is not None else 0.0
        return round(self.size * share)


class Mail(Strict):
    """Mailboxes of one profile."""

    name: str = "mail"
    mailboxes: Annotated[int, Field(gt=0, lt=1 << 40)]
    size: Size
    iops_per_mailbox: Annotated[float, Field(gt=0, lt=1000)]
    read: Part = 0.6
    growth: Percent = 0.0
    messages_per_day: Annotated[float, Field(ge=0, lt=1e6)] = 100.0
    message_size: Size = 75 * 1024
    deleted_days: Annotated[float, Field(ge=0, le=3650)] = 14.0
    overhead: Percent = 0.2
    copies: Annotated[int, Field(ge=1, le=16)] = 1
    mailboxes_per_server: Annotated[int, Field(gt=0, le=10_000)] = 10_000
    databases_per_server: Annotated[int, Field(gt=0, le=1000)] = 10
    maintenance_reads: Annotated[float, Field(ge=0, le=10_000)] = 30.0
    hours: Hours = DAY


class NeededServer(Strict):
    """A server for the databases: what a transaction costs it, and how the hits of its cache grow with memory."""

    cpu_per_transaction: Latency
    cores: Annotated[int, Field(gt=0, le=4096)]
    cpu_limit: Annotated[Part, Field(gt=0)] = 0.8
    hit: Annotated[Part, Field(gt=0, lt=1)] | None = None
    hit_curve: tuple[tuple[Size, Part], ...] = ()
    memory_share: Annotated[Part, Field(gt=0)] = 0.92

    @model_validator(mode="after")
    def _rising(self) -> Self:
        ordered = sorted(self.hit_curve)
        if any(later[1] < sooner[1] for sooner, later in itertools.pairwise(ordered)):
            raise ValueError("hit_curve falls: more memory cannot hit less; give it as [MEMORY, HIT SHARE] pairs")
        return self


class Offer(Strict):
    """What may be bought: a model file, the choices it leaves, and what a member costs.

    Attributes
    ----------
    drive
        Drives of the catalogue in place of the model's own, such as `nvme-md` takes them.
    volumes
        Data volumes; of a cloud's volume those that the data are striped over.
    """

    array: str
    drive: str | None = None
    raid: tuple[str, ...] = ()
    members: tuple[Annotated[int, Field(ge=1, le=1024)], Annotated[int, Field(ge=1, le=1024)]] | None = None
    disks: tuple[Annotated[int, Field(ge=2, le=1024)], ...] = ()
    paths: tuple[Annotated[int, Field(ge=1, le=64)], ...] = ()
    volumes: tuple[Annotated[int, Field(ge=1, le=512)], ...] = ()
    cost: Annotated[float, Field(ge=0, lt=1e15)] | None = None
    disk_cost: Annotated[float, Field(ge=0, lt=1e12)] = 0.0
    rack_units: Annotated[float, Field(gt=0, lt=1e6)] | None = None
    power: Annotated[Power, Field(lt=1e9)] | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.members is not None and self.members[0] > self.members[1]:
            raise ValueError(f"members from {self.members[0]} to {self.members[1]}: give the smaller number first")
        return self


CandidateClass = Literal["drive", "array", "cloud", "study"]
"""Classes of the catalogue that are asked where a need states no candidates (`assay model list --class`)."""


class Need(Strict):
    """All of a need.

    Attributes
    ----------
    region, instance
        Of cloud volumes: whose prices count, and the machine that has them.
    burst
        How long a peak lasts, for which credits of cloud volumes may pay; None: it does not end.
    classes
        Of the catalogue, where there are no candidates.
    """

    title: str = "Need"
    years: Annotated[float, Field(ge=0, le=20)] = 3.0
    service_years: Annotated[float, Field(gt=0, le=50)] = 5.0
    head_room: Percent = 0.2
    spread: Percent = 0.1
    currency: str = ""
    region: str | None = None
    instance: str | None = None
    burst: Latency | None = None
    classes: Annotated[tuple[CandidateClass, ...], Field(min_length=1)] = ("drive", "array", "cloud")
    limits: Limits = Limits()
    rules: Rules = Rules()
    database: tuple[NeededDatabase, ...] = ()
    mail: tuple[Mail, ...] = ()
    server: NeededServer | None = None
    candidate: tuple[Offer, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not self.database and not self.mail:
            raise ValueError("asks for nothing; give a [[database]] or [[mail]]")
        if self.instance is not None and self.instance.lower() not in (one.name.lower() for one in machines()):
            close = nearest(self.instance, sorted({one.name for one in machines()}))
            hint = f"; did you mean {close!r}?" if close else "; `assay model list --class cloud` shows the volumes"
            raise ValueError(f"instance: no machine {self.instance!r} is known{hint}")
        names = [*(one.name for one in self.database), *(one.name for one in self.mail)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"the name {twice!r} is given twice; give each database and mail its own")
        return self


@dataclass(frozen=True)
class NeedAsWritten:
    """A need as it was given.

    Attributes
    ----------
    table
        As it was written, or measured.
    origins
        Where values come from that were not written by hand, by their keys.
    """

    table: Mapping[str, TableValue]
    source: str
    need: Need
    origins: Mapping[tuple[str, ...], str] = field(default_factory=dict)

    def with_changes(self, changes: Sequence[str]) -> NeedAsWritten:
        """The need with `KEY=VALUE` changed.

        Raises
        ------
        UsageError
            A change names no key, or its value is not accepted.
        """
        table = _copied_table(self.table)
        for text in changes:
            _change(table, text)
        source = f"--set {', '.join(changes)}"
        return NeedAsWritten(table, source, need_of(table, source), self.origins)

    def with_value(self, keys: tuple[str, str], value: TableValue, origin: str) -> NeedAsWritten:
        """The need with a value of a table that was measured.

        Raises
        ------
        UsageError
            The value is not accepted.
        """
        table = _copied_table(self.table)
        inner = table.setdefault(keys[0], {})
        if isinstance(inner, dict):
            inner[keys[1]] = value
        return NeedAsWritten(table, self.source, need_of(table, origin), {**self.origins, keys: origin})


def template() -> str:
    """A commented need to fill in."""
    return (resources.files(__package__) / "template.toml").read_text(encoding="utf-8")


def read_need(path: Path) -> NeedAsWritten:
    """A need from a TOML file.

    Raises
    ------
    UsageError
        The file cannot be read, or is no need.
    """
    table = read_table(path, option="need")
    return NeedAsWritten(table, str(path), need_of(table, str(path)))


def need_of(table: Mapping[str, TableValue], source: str) -> Need:
    """A need from its table.

    Raises
    ------
    UsageError
        A key is unknown, a quantity has no unit, or two contradict each other; the message names the key.
    """
    return validated(Need, table, source)


def stated(table: Mapping[str, TableValue]) -> set[tuple[str, ...]]:
    """Keys that a need's table states, with the position of databases and mail left out."""

    def walk(value: TableValue, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                yield from walk(inner, (*at, str(key)))
        elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
            for inner in value:
                yield from walk(inner, at)
        else:
            yield at

    return set(walk(table, ()))


EVERYWHERE = ("database", "mail")
"""Tables whose keys `--set KEY=VALUE` may name without them."""


def _change(table: dict[str, TableValue], text: str) -> None:
    key, mark, written = text.partition("=")
    keys = key.strip().split(".")
    if not mark or not all(keys) or not written.strip():
        raise UsageError(f"--set {text!r}: accepted: KEY=VALUE, such as growth=40%, limits.read=10ms")
    value = _value(written.strip())
    inner = [one for name in EVERYWHERE for one in _tables(table, name)]
    if len(keys) == 1 and keys[0] not in Need.model_fields:
        owners = [one for one, kind in _owners(table) if keys[0] in kind.model_fields]
        if not owners:
            known = {name for kind in (NeededDatabase, Mail, Need) for name in kind.model_fields}
            raise UsageError(f"--set {text!r}: nothing of the need has {keys[0]!r}; known: {', '.join(sorted(known))}")
        for one in owners:
            one[keys[0]] = value
        return
    if len(keys) == 2:
        named = [one for one in inner if one.get("name") == keys[0]]
        if named:
            named[0][keys[1]] = value
            return
    at = table
    for part in keys[:-1]:
        inner_table = at.setdefault(part, {})
        if not isinstance(inner_table, dict):
            raise UsageError(f"--set {text!r}: {part} is no table; name a database or mail by its name")
        at = inner_table
    at[keys[-1]] = value


def _owners(table: Mapping[str, TableValue]) -> Iterator[tuple[dict[str, TableValue], type[Strict]]]:
    for name, kind in (("database", NeededDatabase), ("mail", Mail)):
        for one in _tables(table, name):
            yield one, kind


def _tables(table: Mapping[str, TableValue], name: str) -> list[dict[str, TableValue]]:
    found = table.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _value(text: str) -> TableValue:
    try:
        value: TableValue = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text
    return value


def _copied_table(table: Mapping[str, TableValue]) -> dict[str, TableValue]:
    return {key: _copied(inner) for key, inner in table.items()}


def _copied(value: TableValue) -> TableValue:
    if isinstance(value, Mapping):
        return _copied_table(value)
    return [_copied(inner) for inner in value] if isinstance(value, list | tuple) else value
