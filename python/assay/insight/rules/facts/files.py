"""Facts of settings in files: configurations of servers and hosts, and what their tools print.

A rule works on a file as on the server or host itself; what a file does not set is not known, and never passes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from assay.base.errors import UsageError
from assay.base.paths import open_regular, printable
from assay.insight.rules.facts import mariadb, mssql, postgresql
from assay.insight.rules.facts.devices import know_transport
from assay.insight.rules.facts.mounts import know_mount
from assay.insight.rules.facts.numbers import Setting, number
from assay.insight.rules.rule import Subject

BYTES_MAX = 4 * 2**20
"""Size of a file of settings: sysctl -a prints a hundred thousand bytes."""

_ENTRY = re.compile(r"^\s*(?P<name>[A-Za-z_][\w.-]*)\s*(?:=|\s)\s*(?P<value>'(?:[^']|'')*'|[^#]*?)\s*(?:#.*)?$")
_POSTGRESQL = re.compile(
    r"^\s*(shared_buffers|max_connections|listen_addresses|wal_level|fsync|full_page_writes|synchronous_commit|max_wal_size"
    r"|checkpoint_timeout|checkpoint_completion_target|effective_cache_size|(maintenance_)?work_mem|data_directory"
    r"|random_page_cost|effective_io_concurrency|wal_buffers|wal_compression|log_destination|autovacuum)\b",
    re.MULTILINE | re.IGNORECASE,
)
_SECTION = re.compile(r"^\s*\[(?P<name>[\w. -]+)\]\s*$", re.MULTILINE)
_SERVERS = ("mysqld", "server", "mariadb", "mariadbd", "galera")
_SIZE = re.compile(r"(\d+)\s*([KMGT])B?", re.IGNORECASE)
_SYSCTL = re.compile(
    r"^(?P<name>(?:vm|kernel|fs|net|dev|abi|debug|user)[./][\w./-]+)\s*=\s*(?P<value>.*?)\s*$", re.MULTILINE
)
_MOUNT = re.compile(r"^(?P<device>\S+) on (?P<point>.+?) type (?P<kind>\S+) \((?P<options>[^)]*)\)", re.MULTILINE)
_FSTAB = re.compile(
    r"^(?P<device>(?:/|UUID=|LABEL=|PARTUUID=|[\w.-]+:/|tmpfs|proc)\S*)\s+(?P<point>/\S*|none|swap)\s+(?P<kind>[\w.]+)"
    r"\s+(?P<options>[\w.,=:/@%+-]+)(?:\s+\d+){0,2}\s*$",
    re.MULTILINE,
)
_CONFIGURED = re.compile(
    r"^(?P<name>[a-zA-Z][\w ()/.,-]{3,60}?)\s+-?\d+\s+-?\d+\s+(?P<set>-?\d+)\s+(?P<run>-?\d+)\s*$", re.MULTILINE
)
_ETHTOOL = re.compile(r"^(?:Settings|Ring parameters|Pause parameters|Features) for (?P<name>\S+?):", re.MULTILINE)
_ELSEWHERE = "the file does not say it; run assay check there"
_SELECTOR = re.compile(r"^\s*path_selector\s+\"?(?P<policy>[\w-]+)", re.MULTILINE)
_NO_STORAGE = re.compile(
    r"proc|sysfs|(dev)?tmpfs|devpts|cgroup2?|securityfs|debugfs|tracefs|swap|pstore|bpf|mqueue|hugetlbfs|configfs|fusectl"
    r"|autofs|overlay|none|efivarfs|binfmt_misc|nsfs|squashfs|ramfs|rpc_pipefs|selinuxfs"
)


class _Format(NamedTuple):
    """A kind of file.

    Attributes
    ----------
    read
        Subjects of a text; none where it is not of the kind.
    """

    title: str
    read: Callable[[str, str], list[Subject]]


def file_subjects(path: str) -> list[Subject] | None:
    """What a file of settings tells of; None where it is no text, as a file of data.

    Raises
    ------
    UsageError
        It is a text of another kind.
    """
    with os.fdopen(open_regular(os.path.realpath(path)), "rb") as file:
        head = file.read(BYTES_MAX + 1)
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if not text.strip() or "\0" in text or len(head) > BYTES_MAX:
        return None
    for form in _FORMATS:
        found = form.read(text, path)
        if found:
            return found
    titles = ", ".join(form.title for form in _FORMATS)
    raise UsageError(
        f"{printable(path)}: is a text, and no place of storage; as settings are read: {titles}. To check the storage"
        " that it lies on, name its folder"
    )


def _of_server(engine: str, path: str) -> Subject:
    server = Subject("database", printable(path), engine=engine, anchor=path)
    server.otherwise = "the file does not say it; name the server's URL"
    return server


def _entries(text: str) -> dict[str, Setting]:
    """Settings by name; the last of a name counts."""
    found: dict[str, Setting] = {}
    for line in text.splitlines():
        match = _ENTRY.match(line)
        if match is not None and match["value"]:
            value = match["value"]
            found[match["name"].lower()] = value[1:-1].replace("''", "'") if value[:1] == "'" else value
    return found


def _postgresql(text: str, path: str) -> list[Subject]:
    if _SECTION.search(text) or not _POSTGRESQL.search(text):
        return []
    found = _entries(text)
    server = _of_server("postgresql", path)
    for name, value in found.items():
        # A file may say yes, true or 1 where the server says on.
        plain = str(value).strip().lower()
        if plain in ("yes", "true") or (plain in ("no", "false")):
            found[name] = "on" if plain in ("yes", "true") else "off"
    postgresql.from_settings(found, server, path)
    return [server]


def _mariadb(text: str, path: str) -> list[Subject]:
    found: dict[str, Setting] = {}
    section, is_server, is_mariadb = "", False, False
    for line in text.splitlines():
        if (match := _SECTION.match(line)) is not None:
            section = match["name"].strip().lower()
            is_server = is_server or section.startswith(_SERVERS)
            is_mariadb = is_mariadb or section.startswith("mariadb")
        elif section.startswith(_SERVERS) and line.strip()[:1] not in ("#", ";", "!", ""):
            name, mark, value = line.partition("=")
            value = value.partition(" #")[0].strip().strip("\"'")
            size = _SIZE.fullmatch(value)
            key = name.strip().lower().replace("-", "_").removeprefix("loose_")
            found[key] = int(size[1]) * 1024 ** (1 + "KMGT".index(size[2].upper())) if size else value if mark else "ON"
    if not is_server:
        return []
    server = _of_server("mariadb" if is_mariadb else "mysql", path)
    mariadb.from_settings(found, server, path)
    return [server]


def _mssql(text: str, path: str) -> list[Subject]:
    found: dict[str, Setting] = {match["name"].strip().lower(): match["run"] for match in _CONFIGURED.finditer(text)}
    if not found.keys() & {"max server memory (mb)", "max degree of parallelism", "cost threshold for parallelism"}:
        return []
    server = _of_server("mssql", path)
    found["max server memory (MB)"] = found.get("max server memory (mb)")
    mssql.from_settings(found, server, path)
    return [server]


def _host(text: str, path: str) -> list[Subject]:
    found = {match["name"].replace("/", "."): match["value"] for match in _SYSCTL.finditer(text)}
    if not found:
        return []
    host = Subject("host", printable(path), anchor=path, otherwise=_ELSEWHERE)
    for name, value in found.items():
        host.know(name, number(value), path)
    buffers = found.get("net.ipv4.tcp_rmem", "").split()
    if len(buffers) == 3 and buffers[2].isdecimal():
        host.know("tcp_rmem_max", int(buffers[2]), path)
    return [host]


def _mounts(text: str, path: str) -> list[Subject]:
    found = []
    for match in (*_MOUNT.finditer(text), *_FSTAB.finditer(text)):
        if _NO_STORAGE.fullmatch(match["kind"]):
            continue
        mount = Subject("mount", match["point"], anchor=path, otherwise=_ELSEWHERE)
        know_mount(mount, {"file_system": match["kind"], "mount_options": match["options"]}, path)
        mount.lack("is_data", "no folder was named as one of data")
        found.append(mount)
    return found


def _devices(text: str, path: str) -> list[Subject]:
    told = _json(text)
    listed = told.get("blockdevices")
    found = []
    for one in _flat(listed):
        if one.get("type") in ("part", "loop", "rom", "lvm"):
            continue
        device = Subject("device", str(one.get("name") or ""), anchor=path)
        device.otherwise = "lsblk did not print it: lsblk -J -O prints all"
        device.know("scheduler", one.get("sched"), path)
        device.know("nr_requests", _whole(one.get("rq-size")), path)
        ahead = _whole(one.get("ra"))
        device.know("read_ahead_bytes", ahead * 1024 if ahead is not None else None, path)
        rotates = one.get("rota")
        if rotates is not None:
            device.know("rotational", str(rotates).lower() not in ("0", "false"), path)
        know_transport(device, None, path)
        found.append(device)
    for one in _flat(told.get("Devices")):
        if "DevicePath" in one:
            device = Subject("device", Path(str(one["DevicePath"])).name, anchor=path)
            device.otherwise = "nvme list does not say it; run assay check there"
            device.know("transport", "nvme", path)
            device.know("is_flash", True, path)
            found.append(device)
    return found


def _flat(listed: object) -> Iterator[Mapping[str, object]]:
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, Mapping):
            yield one


def _json(text: str) -> Mapping[str, object]:
    if not text.lstrip().startswith("{"):
        return {}
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, Mapping) else {}


def _whole(value: object) -> int | None:
    return int(str(value)) if str(value).isdecimal() and len(str(value)) < 16 else None


def _interface(text: str, path: str) -> list[Subject]:
    match = _ETHTOOL.search(text)
    if match is None:
        return []
    card = Subject("interface", match["name"], anchor=path, otherwise="the text does not say it: ethtool, -g, -a, -k")
    speed = re.search(r"^\s*Speed: (\d+)Mb/s", text, re.MULTILINE)
    card.know("speed_bits_per_s", int(speed[1]) * 10**6 if speed else None, path)
    duplex = re.search(r"^\s*Duplex: (Full|Half)", text, re.MULTILINE)
    card.know("duplex", duplex[1].lower() if duplex else None, path)
    rings = re.findall(r"^RX:\s+(\d+)", text, re.MULTILINE)
    if "Ring parameters" in text and len(rings) >= 2:
        card.know("ring_rx_max", int(rings[0]), path)
        card.know("ring_rx", int(rings[1]), path)
    pause = re.search(r"^RX:\s+(on|off)", text, re.MULTILINE)
    card.know("pause_rx", pause[1] == "on" if pause else None, path)
    offload = re.search(r"^tcp-segmentation-offload: (on|off)", text, re.MULTILINE)
    card.know("tso", offload[1] == "on" if offload else None, path)
    return [card]


def _multipath(text: str, path: str) -> list[Subject]:
    if re.search(r"^\s*(defaults|devices|multipaths|blacklist)\s*\{", text, re.MULTILINE) is None:
        return []
    found = Subject("multipath", printable(path), anchor=path, otherwise=_ELSEWHERE)
    policies = {match["policy"] for match in _SELECTOR.finditer(text)}
    if re.search(r"^\s*path_grouping_policy\s+\"?failover", text, re.MULTILINE):
        policies = {"failover"}
    found.know("policy", policies.pop() if len(policies) == 1 else None, path)
    return [found]


_FORMATS = (
    _Format("multipath.conf", _multipath),
    _Format("my.cnf", _mariadb),
    _Format("sysctl -a", _host),
    _Format("mount and fstab", _mounts),
    _Format("lsblk -J and nvme list -o json", _devices),
    _Format("ethtool", _interface),
    _Format("sp_configure of SQL Server", _mssql),
    _Format("postgresql.conf", _postgresql),
)
