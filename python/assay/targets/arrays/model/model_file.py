"""Model files: TOML in which every parameter says its unit and where it comes from; the catalogue is made of them."""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from assay.base.errors import UsageError
from assay.base.reading import nearest
from assay.base.tables import TableValue
from assay.record.shapes.manifest import Calibration, Parameter
from assay.targets.arrays.model.calibration_form import checked_calibration
from assay.targets.arrays.model.cloud_offer import CloudOffer, offer_of
from assay.targets.arrays.model.kinds import FLAG, WORD
from assay.targets.arrays.model.parameters import (
    CLASSES,
    KINDS_OF_DISK,
    KINDS_OF_LAYOUT,
    ORIGINS,
    PARAMETERS,
    POLICIES,
    POLICY_PARAMETERS,
    PROTOCOL_PARAMETERS,
    PROTOCOLS,
    SECTIONS,
    STRUCTURE,
    STRUCTURES,
    Known,
    applies,
    whole_name,
)

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PLAIN = ("name", "title", "family", "structure", "class")
_OF_CLOUDS = ("region", "as_of", "tiers")
_RAID = ("policies", "default_raid")
LOG_STRUCTURED = "log-structured"
"""Layout of arrays that have no other."""
_LARGEST_BYTES = 1 << 20
"""A model file is some kilobytes; what is larger is something else."""


@dataclass(frozen=True, kw_only=True)
class ModelParameter:
    """A value with its provenance.

    Attributes
    ----------
    value
        In base units (nanoseconds, bytes, bytes per second, share, count), or a name or truth value.
    written, unit
        The number as it was written and its unit; unit is None for names and truth values.
    from_
        `data sheet`, `published`, `fitted`, `assumed`; `option` or `set` where it was changed after reading.
    plus_minus
        How far the true value may be, one standard deviation as a share of it; None for names and truth values.
    """

    value: Any
    written: Any
    unit: str | None
    from_: str
    source: str
    plus_minus: float | None

    def facts(self) -> Parameter:
        """The parameter as documents carry it."""
        return {
            "value": self.written,
            "unit": self.unit,
            "from": self.from_,
            "source": self.source,
            "plus_minus": self.plus_minus,
        }


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """What a file says of an array.

    Attributes
    ----------
    structure
        `group` of members, `host-flash` or `cloud`.
    model_class
        One of `CLASSES`.
    policies, default_raid
        RAID policies that members offer, and the usual one; empty for other structures, whose layout is their own.
    parameters
        By dotted name; those of a policy as `raid.policy.50.set_disks`, of a protocol as `links.under.fcoe.payload`.
    calibration
        The table that `assay model calibrate` wrote, or None.
    origin
        What names the file in a target: the catalogue's name or the path as given.
    text
        The file as it was read.
    offer
        Where and since when a cloud's volume is offered so, and its tiers; None of others.
    """

    name: str
    title: str
    family: str
    structure: str
    model_class: str
    policies: tuple[str, ...]
    default_raid: str
    disk_kind: str
    layout_kind: str
    parameters: dict[str, ModelParameter]
    calibration: Calibration | None
    origin: str
    text: str
    offer: CloudOffer | None = None


_OTHERS = {
    "host-flash": "flash in its hosts and erasure-coded containers",
    "cloud": "volumes of a cloud with the provider's limits",
}


def refuse_other_structures(model: ModelFile, what: str) -> None:
    """Refuse an array that is no group of members, for what asks of RAID or of members.

    Raises
    ------
    UsageError
        It is none; the message begins with `what`.
    """
    if model.structure != "group":
        raise UsageError(
            f"{what}: {model.name} has {_OTHERS[model.structure]}, not members with RAID; name an array of members, see"
            " `assay model list`"
        )


def catalogue_names() -> list[str]:
    """Names of the arrays that come with Assay."""
    entries = (resources.files(__package__) / "catalogue").iterdir()
    return sorted(entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml"))


def load_model(name_or_path: str) -> ModelFile:
    """An array of the catalogue, or of a file: what has a `/` or ends in `.toml` is a path.

    Raises
    ------
    UsageError
        There is no such array or file, or it is not a model file.
    """
    if not is_path(name_or_path):
        return _from_catalogue(name_or_path)
    return read_model_file(name_or_path)


def read_model_file(path: str) -> ModelFile:
    """The model of a file.

    Raises
    ------
    UsageError
        There is no such file, it cannot be read, or it is not a model file.
    """
    try:
        with open(Path(path).expanduser(), "rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(f"model {path}: there is no such file; `assay model list` shows the catalogue") from None
    except OSError as error:
        raise UsageError(f"model {path}: cannot be read: {error.strerror}") from None
    except (ValueError, RuntimeError) as error:
        # A name with a null character; a user without a folder.
        raise UsageError(f"model {path!r}: is no path: {error}") from None
    return read_model(data, origin=path)


def is_path(name_or_path: str) -> bool:
    """Whether a model is named by a path."""
    return "/" in name_or_path or name_or_path.endswith(".toml")


@functools.cache
def _from_catalogue(name: str) -> ModelFile:
    known = catalogue_names()
    if name not in known:
        close = nearest(name, known)
        hint = f"did you mean {close!r}? " if close else ""
        raise UsageError(f"model: unknown array {name!r}; {hint}known: {', '.join(known)}, or the path of a .toml file")
    data = (resources.files(__package__) / "catalogue" / f"{name}.toml").read_bytes()
    return read_model(data, origin=name)


def read_model(data: bytes, *, origin: str) -> ModelFile:
    """A model from the bytes of a TOML file.

    Raises
    ------
    UsageError
        It is not a model file; the message names the key.
    """
    if len(data) > _LARGEST_BYTES:
        raise UsageError(f"model {origin}: is larger than 1 MiB, which no model file is")
    try:
        text = data.decode("utf-8")
        table = tomllib.loads(text)
    except UnicodeDecodeError:
        raise UsageError(f"model {origin}: is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"model {origin}: {' '.join(str(error).split())}") from None
    except ValueError as error:
        # Numbers of thousands of digits.
        raise UsageError(f"model {origin}: {error}") from None
    return model_from_table(table, origin=origin, text=text)


def model_from_table(table: Mapping[str, TableValue], *, origin: str, text: str = "") -> ModelFile:
    """A model from the table of a TOML file.

    Raises
    ------
    UsageError
        As `read_model`.
    """
    return _Reader(table, origin).read(text)


class _Reader:
    """Reads one table; every refusal names the key it is about."""

    def __init__(self, table: Mapping[str, TableValue], origin: str) -> None:
        self.table = table
        self.origin = origin
        self.parameters: dict[str, ModelParameter] = {}

    def refusal(self, key: str, message: str) -> UsageError:
        return UsageError(f"model {self.origin}: {key} {' '.join(message.split())}")

    def read(self, text: str) -> ModelFile:
        structure = self.table.get("structure", "group")
        if not isinstance(structure, str) or structure not in STRUCTURES:
            raise self.refusal("structure", f"is {_short(structure)}; accepted: {', '.join(STRUCTURES)}")
        sections = SECTIONS[structure]
        has_raid, is_cloud = "raid" in sections, structure == "cloud"
        own = (*(_RAID if has_raid else ()), *(_OF_CLOUDS if is_cloud else ()))
        self._refuse_unknown(self.table, (*_PLAIN, *own, *sections, "calibration"), "")
        name = self._text("name")
        if not _NAME.fullmatch(name):
            raise self.refusal("name", f"is {_short(name)}; accepted: small letters, digits, - and _")
        policies = self._policies() if has_raid else ()
        default = self._text("default_raid") if has_raid else ""
        if has_raid and default not in policies:
            raise self.refusal("default_raid", f"{_short(default)} is not among policies: {', '.join(policies)}")
        disk_kind = self._plain_kind("disk", KINDS_OF_DISK) if "disk" in sections else ""
        layout_kind = self._plain_kind("layout", KINDS_OF_LAYOUT) if "layout" in sections else LOG_STRUCTURED
        for section in sections:
            self._read_section(section, structure, disk_kind, layout_kind)
        if has_raid:
            self._read_replacements("raid", "policy", policies, POLICY_PARAMETERS)
            self._read_protocols()
        return ModelFile(
            name=name,
            title=self._text("title"),
            family=self._text("family"),
            structure=structure,
            model_class=self._class(structure),
            policies=policies,
            default_raid=default,
            disk_kind=disk_kind,
            layout_kind=layout_kind,
            parameters=self.parameters,
            calibration=self._calibration(),
            origin=self.origin,
            text=text,
            offer=offer_of(self.table, self.refusal) if is_cloud else None,
        )

    def _class(self, structure: str) -> str:
        given = self.table.get("class", "cloud" if structure == "cloud" else "array")
        if not isinstance(given, str) or given not in CLASSES:
            raise self.refusal("class", f"is {_short(given)}; accepted: {', '.join(CLASSES)}")
        return given

    def _read_protocols(self) -> None:
        self._read_replacements("links", "under", PROTOCOLS, PROTOCOL_PARAMETERS)
        under = self._section("links").get("under")
        for protocol in under if isinstance(under, Mapping) else ():
            if f"links.under.{protocol}.payload" not in self.parameters:
                raise self.refusal(
                    f"links.under.{protocol}.payload", f"is missing: {PARAMETERS['links.payload'].meaning}"
                )

    def _text(self, key: str) -> str:
        value = self.table.get(key)
        if not isinstance(value, str) or not value.strip() or len(value) > 500 or "\n" in value:
            raise self.refusal(key, "is missing or not one line of text")
        return value

    def _policies(self) -> tuple[str, ...]:
        given = self.table.get("policies")
        if not isinstance(given, list) or not given:
            raise self.refusal("policies", f"is not a list of RAID policies; known: {', '.join(POLICIES)}")
        for policy in given:
            if policy not in POLICIES:
                raise self.refusal("policies", f"has {_short(policy)}, which is none; known: {', '.join(POLICIES)}")
        return tuple(dict.fromkeys(given))

    def _calibration(self) -> Calibration | None:
        given = self.table.get("calibration")
        if given is not None and not isinstance(given, dict):
            raise self.refusal("calibration", "is not a table")
        try:
            json.dumps(given, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise self.refusal("calibration", "holds more than text, numbers, lists and tables") from None
        return None if given is None else checked_calibration(given, f"model {self.origin}")

    def _section(self, section: str) -> Mapping[str, TableValue]:
        table = self.table.get(section)
        if not isinstance(table, dict):
            raise self.refusal(f"[{section}]", "is missing or not a table")
        return table

    def _plain_kind(self, section: str, known: tuple[str, ...]) -> str:
        kind = self._section(section).get("kind")
        if kind not in known:
            raise self.refusal(f"{section}.kind", f"is {_short(kind)}; accepted: {', '.join(known)}")
        return str(kind)

    def _read_section(self, section: str, structure: str, disk_kind: str, layout_kind: str) -> None:
        table = self._section(section)
        mine = {dotted: known for dotted, known in PARAMETERS.items() if dotted.startswith(f"{section}.")}
        extra = {"disk": ("kind",), "layout": ("kind",), "raid": ("policy",), "links": ("under",)}.get(section, ())
        keys = [dotted.partition(".")[2] for dotted in mine]
        self._refuse_unknown(table, (*keys, *extra), f"{section}.")
        for dotted, known in mine.items():
            key = dotted.partition(".")[2]
            if applies(dotted, structure, disk_kind, layout_kind):
                if key in table:
                    self.parameters[dotted] = self._parameter(dotted, known, table[key])
                elif not known.optional:
                    raise self.refusal(dotted, f"is missing: {known.meaning}")
            elif key in table:
                has = disk_kind if section == "disk" else layout_kind
                raise self.refusal(dotted, f"is for {' or '.join(known.only)} only, and {section}.kind is {has}")

    def _read_replacements(self, section: str, word: str, names: tuple[str, ...], keys: Mapping[str, str]) -> None:
        tables = self._section(section).get(word, {})
        if not isinstance(tables, dict):
            raise self.refusal(f"{section}.{word}", "is not a table")
        self._refuse_unknown(tables, names, f"{section}.{word}.")
        for name, table in tables.items():
            dotted = f"{section}.{word}.{name}"
            if not isinstance(table, dict):
                raise self.refusal(dotted, "is not a table")
            self._refuse_unknown(table, tuple(keys), f"{dotted}.")
            for key, value in table.items():
                self.parameters[f"{dotted}.{key}"] = self._parameter(f"{dotted}.{key}", PARAMETERS[keys[key]], value)

    def _parameter(self, dotted: str, known: Known, given: TableValue) -> ModelParameter:
        if not isinstance(given, dict):
            raise self.refusal(dotted, 'is not a table { value = ..., unit = "...", from = "...", source = "..." }')
        self._refuse_unknown(given, ("value", "unit", "from", "source", "plus_minus"), f"{dotted}.")
        if "value" not in given:
            raise self.refusal(dotted, "has no value")
        value = self._value(dotted, known, given)
        origin, source = given.get("from"), given.get("source")
        if origin is None or source is None:
            missing = "from" if origin is None else "source"
            raise self.refusal(
                dotted, f'has no provenance: give `{missing}`, as in from = "data sheet", source = "..."'
            )
        if not isinstance(origin, str) or origin not in ORIGINS:
            raise self.refusal(f"{dotted}.from", f"is {_short(origin)}; accepted: {', '.join(ORIGINS)}")
        if not isinstance(source, str) or not source.strip() or "\n" in source:
            raise self.refusal(f"{dotted}.source", "says nothing; name the document, the fit or the reason in one line")
        return ModelParameter(
            value=value,
            written=given["value"],
            unit=given.get("unit"),
            from_=origin,
            source=source,
            plus_minus=self._plus_minus(dotted, known, given, origin),
        )

    def _value(self, dotted: str, known: Known, given: Mapping[str, TableValue]) -> float | bool | str:
        value, unit = given["value"], given.get("unit")
        if known.kind in (WORD, FLAG):
            if unit is not None:
                raise self.refusal(dotted, f"is a {known.kind.name} and has no unit")
            if known.kind is FLAG:
                if not isinstance(value, bool):
                    raise self.refusal(dotted, f"is {_short(value)}; accepted: true, false")
                return value
            if not isinstance(value, str) or value not in known.choices:
                raise self.refusal(dotted, f"is {_short(value)}; accepted: {', '.join(known.choices)}")
            return value
        if not isinstance(unit, str):
            raise self.refusal(dotted, f"has no unit; it is a {known.kind.name}, accepted: {known.kind.accepted}")
        try:
            base = known.kind.from_number(value, unit)
            known.check(base)
        except ValueError as error:
            raise self.refusal(dotted, str(error)) from None
        return base

    def _plus_minus(self, dotted: str, known: Known, given: Mapping[str, TableValue], origin: str) -> float | None:
        stated = given.get("plus_minus")
        if known.kind in (WORD, FLAG):
            if stated is not None:
                raise self.refusal(f"{dotted}.plus_minus", f"has no meaning for a {known.kind.name}")
            return None
        if stated is None:
            return 0.0 if whole_name(dotted) in STRUCTURE else ORIGINS[origin]
        if isinstance(stated, bool) or not isinstance(stated, (int, float)) or not 0 <= stated <= 10:
            raise self.refusal(
                f"{dotted}.plus_minus", f"is {_short(stated)}; accepted: a share of the value from 0 to 10"
            )
        return float(stated)

    def _refuse_unknown(self, table: Mapping[str, TableValue], known: tuple[str, ...], before: str) -> None:
        for key in table:
            if key not in known:
                close = nearest(key, known)
                hint = f"did you mean {close!r}?" if close else f"known: {', '.join(known)}"
                what = "parameter" if before else "section or key"
                raise UsageError(f"model {self.origin}: unknown {what} {_short(before + key)}; {hint}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
