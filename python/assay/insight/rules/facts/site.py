"""Facts that nothing can read: a file of the site, `site.toml`, and its template.

What it says of a thing that was read as well must agree; a difference is refused, since one of both is wrong.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.units import parse_bytes
from assay.insight.rules.rule import Subject

FILE_BYTES_MAX = 2**20


SiteValue = bool | int | float | str | list[str]
"""A value of a table."""
SiteTable = dict[str, SiteValue]
"""A table, its values as their keys read them."""


class Key(NamedTuple):
    """A key of a table: what it says, an example, and how its value is read."""

    name: str
    says: str
    example: str
    read: Callable[[object], SiteValue]


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("a whole number")
    return value


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError("a share from 0 to 1")
    return float(value)


def _amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise ValueError("a number")
    return float(value)


def _size(value: Any) -> int:
    return parse_bytes(value, what="a size")


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return value


def _one_of(*words: str) -> Callable[[Any], str]:
    """A reader of one of some words."""

    def read(value: Any) -> str:
        if value not in words:
            raise ValueError(", ".join(words))
        return str(value)

    return read


def _limit(value: Any) -> str:
    if value != "none" and (isinstance(value, bool) or not str(value).isdecimal()):
        raise ValueError('a whole number, or "none"')
    return str(value)


_RAID = _one_of("0", "1", "5", "6", "10", "50", "60", "dp", "none")


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError("a list of names")
    return value


TABLES: dict[str, tuple[str, str, tuple[Key, ...]]] = {
    "network": ("network", "The network between hosts and storage.", (
        Key("jumbo_on_all_hops", "ping -M do -s 8972 passes from every host to every port of the array", "true", _flag),
        Key("flow_control", "switches control flow on storage ports", "true", _flag),
        Key("spanning_tree_on_storage_ports", "storage ports are no edge ports", "false", _flag),
        Key("storage_network_apart", "storage has switches, or a VLAN with ports, of its own", "true", _flag),
        Key("switches", "switches that paths to storage are spread over", "2", _count),
        Key("inter_switch_gbit", "rate of all links between them together, Gbit/s", "40", _amount),
        Key("array_ports_gbit", "rate of all ports of arrays on one switch, Gbit/s", "20", _amount),
        Key("storage_interfaces", "interfaces of this host that lead to storage", '["eth1", "eth2"]', _names),
    )),
    "layout": ("layout", "Where data, log and backups lie, and what they are for.", (
        Key("workload", "what runs: transactions or analysis", '"transactions"', _one_of("transactions", "analysis")),
        Key("data_raid", "RAID policy of the data's volume", '"10"', _RAID),
        Key("log_raid", "RAID policy of the log's volume", '"10"', _RAID),
        Key("log_disk_rpm", "turns a minute of the log's disks; 0 of flash", "15000", _count),
        Key("other_workload", "what else runs on the same disks: transactions, analysis or none", '"none"',
            _one_of("transactions", "analysis", "none")),
        Key("data_devices", "devices of the data, where they cannot be read", '["sdb"]', _names),
        Key("log_devices", "devices of the log", '["sdc"]', _names),
        Key("backup_devices", "devices that backups are written to", '["sdz"]', _names),
        Key("allocation_unit_bytes", "allocation unit of the file system (NTFS, ReFS)", '"64KiB"', _size),
    )),
    "host": ("host", "This host.", (
        Key("balloon", "the hypervisor may take memory back", "false", _flag),
        Key("cpu_governor", "what firmware or hypervisor does for power", '"performance"', _text),
    )),
    "iscsi": ("iscsi", "The initiator.", (
        Key("data_digest", "None or CRC32C", '"None"', _one_of("None", "CRC32C")),
        Key("max_transfer_bytes", "its largest transfer", '"256KiB"', _size),
        Key("cpu_share", "share of the processors that it takes at the usual load", "0.05", _share),
    )),
    "multipath": ("multipath", "A multipath device (a table each: [[multipath]]).", (
        Key("name", "its name", '"dm-0"', _text),
        Key("policy", "round-robin, service-time, queue-depth, failover", '"service-time"',
            _one_of("round-robin", "queue-length", "service-time", "historical-service-time", "queue-depth",
                    "least-queue-depth", "numa", "failover")),
    )),
    "array": ("array", "An array (a table each: [[array]]).", (
        Key("name", "its name", '"san1"', _text),
        Key("raid", "RAID policy", '"50"', _RAID),
        Key("spares", "hot spares", "2", _count),
        Key("fill", "share of the capacity in use", "0.7", _share),
        Key("pool_bytes", "usable capacity of the pool", '"10TB"', _size),
        Key("free_bytes", "what is free of it", '"2TB"', _size),
        Key("members", "members of the pool", "1", _count),
        Key("disk_bytes", "size of a disk", '"4TB"', _size),
        Key("disk_rpm", "turns a minute; 0 of flash", "7200", _count),
        Key("state", "healthy, degraded, rebuilding", '"healthy"', _one_of("healthy", "degraded", "rebuilding")),
        Key("paths", "paths from a host", "2", _count),
        Key("path_policy", "round-robin, least-queue-depth or fixed", '"round-robin"',
            _one_of("round-robin", "least-queue-depth", "fixed")),
        Key("initiator_limit", "commands under way of a host's port, or none", '"none"', _limit),
        Key("write_back", "the write cache is on, and protected", "true", _flag),
        Key("max_transfer_bytes", "largest transfer", '"256KiB"', _size),
        Key("write_anywhere", "blocks are written where there is room (WAFL, ZFS)", "true", _flag),
        Key("read_realloc", "scattered blocks are rewritten after a sequential read", "true", _flag),
        Key("write_run", "most blocks written in a row on a disk", "256", _count),
    )),
    "hypervisor": ("hypervisor", "A hypervisor (a table each: [[hypervisor]]).", (
        Key("name", "its name", '"esx1"', _text),
        Key("thin_disks", "disks of databases are thin", "false", _flag),
        Key("device_latency_ms", "DAVG at the usual load", "4", _amount),
        Key("kernel_latency_ms", "KAVG at the usual load", "0.1", _amount),
        Key("adapters_per_guest", "virtual storage adapters of a database's guest", "4", _count),
        Key("power_policy", "its power policy", '"High Performance"', _text),
    )),
}  # fmt: skip

_LISTED = ("multipath", "array", "hypervisor")


def template() -> str:
    """A file with every key, all commented out."""
    lines = [
        "# What assay check cannot read: uncomment what you know. What stays commented is listed as not checked.",
        '# Sizes are texts: "64KiB", "2TB". Use it with: assay check ... --site site.toml',
    ]
    for name, (_, says, keys) in TABLES.items():
        head = f"[[{name}]]" if name in _LISTED else f"[{name}]"
        lines += ["", f"# {says}", f"# {head}"]
        lines += [f"# {key.name} = {key.example}  # {key.says}" for key in keys]
    return "\n".join(lines) + "\n"


def read_site(path: Path) -> dict[str, list[SiteTable]]:
    """Tables of a site's file, each as a list.

    Raises
    ------
    UsageError
        It cannot be read, or a key or value is wrong; the line names it.
    """
    shown = printable(path)
    try:
        data = path.read_bytes()
        if len(data) > FILE_BYTES_MAX:
            raise UsageError(f"{shown}: is larger than {FILE_BYTES_MAX >> 20} MiB; no site file is")
        made = tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise UsageError(f"{shown}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{shown}: is no TOML: {error}") from None
    found: dict[str, list[SiteTable]] = {}
    for name, value in made.items():
        if name not in TABLES:
            raise UsageError(f"{shown}: unknown table [{name}]{_near(name, TABLES)}")
        tables = value if isinstance(value, list) else [value]
        if not all(isinstance(one, dict) for one in tables):
            raise UsageError(f"{shown}: [{name}] is to be a table")
        if len(tables) > 1 and name not in _LISTED:
            raise UsageError(f"{shown}: there are {len(tables)} tables [{name}]; one is accepted")
        names = [one.get("name") for one in tables]
        if len(tables) > 1 and (None in names or len(set(map(str, names))) < len(names)):
            raise UsageError(f"{shown}: each of several tables [[{name}]] needs a name of its own")
        found[name] = [checked(shown, name, one) for one in tables]
    return found


def checked(shown: str, table: str, values: Mapping[str, object]) -> SiteTable:
    """Values of a table, each as its key reads it.

    Raises
    ------
    UsageError
        A key is unknown, or its value is wrong; the line names both.
    """
    keys = {key.name: key for key in TABLES[table][2]}
    made: SiteTable = {}
    for name, value in values.items():
        if name not in keys:
            raise UsageError(f"{shown}: [{table}] has no key {name!r}{_near(name, keys)}")
        try:
            made[name] = keys[name].read(value)
        except (ValueError, UsageError) as error:
            raise UsageError(f"{shown}: [{table}] {name} = {value!r}: accepted: {error}") from None
    return made


def _near(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"


def add_site(subjects: list[Subject], site: Mapping[str, Sequence[SiteTable]], path: Path) -> list[str]:
    """Add what a site says to what was read; gives what could not be used, a line each.

    Raises
    ------
    UsageError
        It contradicts what was read; the line names both.
    """
    origin = printable(path)
    notices = []
    for name, tables in site.items():
        kind = TABLES[name][0]
        for table in tables:
            own = _of_table(subjects, kind, table, origin)
            if not own:
                notices.append(f"{origin}: [{name}] is not used, since no {kind} is checked; add the target host")
            for subject in own:
                for key, value in table.items():
                    if key not in ("name", "storage_interfaces"):
                        _add(subject, key, value, f"[{name}]", origin)
    notices += _add_interfaces(subjects, site, origin)
    workload = next((one.get("workload") for one in subjects if one.kind == "layout" and one.get("workload")), None)
    for one in subjects:
        if one.kind in ("interface", "database", "array"):
            one.know("workload", workload, origin)
    return notices


def _of_table(subjects: list[Subject], kind: str, table: SiteTable, origin: str) -> list[Subject]:
    """What a table is about; what no host shows is added.

    Raises
    ------
    UsageError
        It names a multipath device that this host has not.
    """
    same = [one for one in subjects if one.kind == kind]
    own = [one for one in same if "name" not in table or one.name == table["name"]]
    if own or kind == "host":
        return own
    if kind == "multipath" and any(one.kind == "host" for one in subjects):
        there = ", ".join(one.name for one in same) or "none"
        raise UsageError(f"{origin}: [[multipath]] name = {table.get('name')!r}: this host has {there}")
    added = Subject(kind, str(table.get("name", origin)), anchor=origin)
    subjects.append(added)
    return [added]


def _add(subject: Subject, key: str, value: Any, table: str, origin: str) -> None:
    known = subject.facts.get(key)
    if known is not None and _alike(known.value) != _alike(value):
        raise UsageError(
            f"{origin}: {table} {key} = {value!r} contradicts {_as_read(known.value)}, which was read from"
            f" {known.origin} of {subject.name}; mend one of both"
        )
    if known is None:
        subject.know(key, value, origin)


def _as_read(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def _alike(value: Any) -> Any:
    """Lists are alike in any order, and shares where they round to the same percent."""
    if isinstance(value, list):
        return sorted(value)
    return round(value, 2) if isinstance(value, float) else value


def _add_interfaces(subjects: Sequence[Subject], site: Mapping[str, Sequence[SiteTable]], origin: str) -> list[str]:
    """Which interfaces lead to storage; what the site says stands before what connections show now."""
    listed = [table.get("storage_interfaces") for table in site.get("network", ())]
    named = {name for names in listed if isinstance(names, list) for name in names}
    cards = {one.name: one for one in subjects if one.kind == "interface"}
    if not named:
        return []
    if not any(one.kind == "host" for one in subjects):
        return [f"{origin}: [network] storage_interfaces is not used, since no host is checked; add the target host"]
    unknown = sorted(named - set(cards))
    if unknown:
        there = ", ".join(cards) or "none that is up"
        raise UsageError(
            f"{origin}: [network] storage_interfaces: there is no interface {unknown[0]!r}; there is {there}"
        )
    for card in cards.values():
        if card.get("is_storage") and card.name not in named:
            raise UsageError(
                f"{origin}: [network] storage_interfaces lacks {card.name!r}, which has connections to storage; mend it"
            )
        card.know("is_storage", card.name in named, origin)
    return []
