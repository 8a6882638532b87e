"""How hosts, ports, paths, members and volumes hang together: boxes in columns and lines between them, from facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.base.tables import Record
from assay.base.units import count_of, format_bytes
from assay.document.text import server_text, shorten
from assay.record.source import records

PROTOCOLS = {"iscsi": "iSCSI", "fc": "FC", "nvme": "NVMe", "sas": "SAS"}
BENEATH = "beneath them"
"""Title of columns of devices that others rest on."""
DRAWN_MAX = 6
"""Equal things of which each is drawn; of more the picture says how many."""


@dataclass(frozen=True)
class Box:
    """A thing, with what is said of it under its name."""

    name: str
    lines: tuple[str, ...] = ()
    is_port: bool = False


@dataclass
class Topology:
    """Columns of boxes from left to right, and which box leads to which: column and place of both."""

    columns: list[tuple[str, list[Box]]] = field(default_factory=list)
    lines: list[tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=list)

    def join(self, left: int, right: int) -> None:
        """Lead every box of a column to every one of another."""
        self.lines += [
            ((left, one), (right, other))
            for one in range(len(self.columns[left][1]))
            for other in range(len(self.columns[right][1]))
        ]

    @property
    def kinds(self) -> list[str]:
        """What its columns show, in a word each."""
        return [title.partition(" ")[0] for title, _ in self.columns if title != BENEATH]

    @property
    def told(self) -> str:
        """The picture in words."""
        return "; ".join(
            f"{title}: {', '.join(' '.join((box.name, *box.lines)) for box in boxes)}" for title, boxes in self.columns
        )


def topology_of(manifest: Record) -> Topology | None:
    """The topology of a run; None where nothing is known of its target."""
    target = manifest.get("target") or {}
    if target.get("array"):
        return _of_array(target["array"], records(target.get("volumes")))
    if records(target.get("volumes")):
        return _of_host(manifest, target)
    return None


# Arrays


def _of_array(array: Record, volumes: Sequence[Record]) -> Topology:
    known = array.get("parameters") or {}
    options = array.get("options") or {}
    members = int(array.get("members") or 1)
    hosts = int(str(options.get("hosts", 1))) if str(options.get("hosts", 1)).isdecimal() else 1
    ports = int(_value(known, "links.ports") or 0)
    paths = int(_value(known, "links.paths") or 0)
    made = Topology()
    path_words = (count_of(paths, "path"), str(_value(known, "links.path_policy") or "").replace("-", " "))
    made.columns.append(("hosts", _several("host", hosts, tuple(word for word in path_words if word and paths))))
    rate = _shown(known, "links.port_rate")
    protocol = str(_value(known, "links.protocol") or "").replace("-", " ")
    protocol = PROTOCOLS.get(protocol, protocol)
    if ports:
        boxes = []
        drawn = members if members * ports <= DRAWN_MAX * 2 else 1
        for member in range(drawn):
            of = f"member {member + 1} " if members > 1 and drawn > 1 else ""
            boxes += [Box(f"{of}port {port + 1}", (), is_port=True) for port in range(min(ports, DRAWN_MAX))]
        words = (f"ports of each member: {ports}", rate, protocol)
        made.columns.append((", ".join(word for word in words if word), boxes))
    made.columns.append(("members", _members(array, known, members)))
    made.columns.append(("volumes", _volumes(volumes)))
    if ports:
        made.join(0, 1)
        _ports_to_members(made)
        made.join(2, 3)
    else:
        made.join(0, 1)
        made.join(1, 2)
    return made


def _ports_to_members(made: Topology) -> None:
    ports, members = made.columns[1][1], made.columns[2][1]
    each = max(len(ports) // len(members), 1)
    made.lines += [((1, port), (2, min(port // each, len(members) - 1))) for port in range(len(ports))]


def _members(array: Record, known: Record, members: int) -> list[Box]:
    disks, spares = (_value(known, key) for key in ("disks.count", "disks.spares"))
    size, cache = (_shown(known, key) for key in ("disk.capacity", "cache.size"))
    about = []
    if disks:
        about.append(f"{int(disks)} disks" + (f" of {size}" if size else ""))
        about += [f"{count_of(int(spares), 'spare')} among them"] if spares else []
    if cache:
        about.append(f"cache {cache}")
    pools = records(array.get("pools"))
    if len(pools) > 1:
        return [
            Box(f"{count_of(int(pool.get('members') or 1), 'member')} of {pool.get('role') or 'all'}",
                (f"RAID {str(pool.get('raid') or '').upper()}", *about))
            for pool in pools
        ]  # fmt: skip
    # Nobody can see the disks of a cloud's volumes.
    policy = (f"RAID {str(array['raid']).upper()}",) if array.get("raid") else ()
    return _several("member", members, (*policy, *about))


def _several(noun: str, count: int, about: tuple[str, ...]) -> list[Box]:
    """A box for each, or one that says how many."""
    if count > DRAWN_MAX:
        return [Box(count_of(count, noun), about)]
    return [Box(noun if count == 1 else f"{noun} {number + 1}", about) for number in range(count)]


def _volumes(volumes: Sequence[Record]) -> list[Box]:
    """Volumes by role and size."""
    groups: dict[tuple[str, float], int] = {}
    for volume in volumes:
        key = str(volume.get("role") or "data"), float(volume.get("size_bytes") or 0)
        groups[key] = groups.get(key, 0) + 1
    return [
        Box(count_of(number, "volume"), (role, *([_decimal(size) + (" each" if number > 1 else "")] if size else [])))
        for (role, size), number in groups.items()
    ]


def _decimal(size: Any) -> str:
    """A size as makers of disks give it."""
    return f"{size / 1e12:.4g} TB" if size >= 1e12 else f"{size / 1e9:.4g} GB" if size >= 1e9 else format_bytes(size)


def _value(known: Record, name: str) -> Any:
    return (known.get(name) or {}).get("value")


def _shown(known: Record, name: str) -> str:
    """A parameter with its unit, as the model file has it; empty where it is none."""
    value, unit = _value(known, name), str((known.get(name) or {}).get("unit") or "")
    return f"{value:g} {unit}".strip() if isinstance(value, int | float) and value else ""


# Hosts


def _of_host(manifest: Record, target: Record) -> Topology:
    host = manifest.get("host") or {}
    about = [count_of(int(host["cpu_count"]), "processor") if host.get("cpu_count") else "",
             format_bytes(host["memory_bytes"]) if host.get("memory_bytes") else ""]  # fmt: skip
    made = Topology()
    own = Box(shorten(str(host.get("hostname") or "host"), 24), tuple(word for word in about if word))
    made.columns.append(("host", [own]))
    databases = records(target.get("databases"))
    if databases:
        boxes = [Box(shorten(str(one.get("name") or "database"), 24), (shorten(server_text(one), 28),))
                 for one in databases[:DRAWN_MAX]]  # fmt: skip
        made.columns.append(("databases", boxes))
        made.join(0, 1)
    _storage(made, records(target.get("volumes")), [str(one.get("name")) for one in databases])
    return made


def _storage(made: Topology, volumes: Sequence[Record], databases: Sequence[str]) -> None:
    """Volumes with their roles, and the devices beneath them."""
    distinct = {(volume.get("name"), volume.get("role")): volume for volume in volumes}
    shown = list(distinct.values())[: DRAWN_MAX * 2]
    before = len(made.columns) - 1
    boxes = [Box(shorten(str(volume.get("name") or "volume"), 24), (_about(volume),)) for volume in shown]
    made.columns.append(("volumes and roles", boxes))
    for place, volume in enumerate(shown):
        name = str(volume.get("name") or "")
        owners = [number for number, one in enumerate(databases[:DRAWN_MAX]) if name.startswith(f"{one}-")]
        owner = max(owners, key=lambda number: len(databases[number]), default=None)
        # What no database owns is the host's own.
        made.lines.append(((before, owner) if owner is not None and before else (0, 0), (before + 1, place)))
    chains = [[str(name) for name in volume.get("device_stack") or [volume.get("device")] if name] for volume in shown]
    depth = max((len(chain) for chain in chains), default=0)
    places: list[dict[str, int]] = [{} for _ in range(depth)]
    for level in range(depth):
        devices: list[Box] = []
        for volume, chain in zip(shown, chains, strict=True):
            if level < len(chain) and chain[level] not in places[level]:
                places[level][chain[level]] = len(devices)
                last = level == len(chain) - 1
                devices.append(Box(shorten(chain[level], 24), _device(volume) if last else ()))
        made.columns.append(("devices" if level == 0 else BENEATH, devices))
    for place, chain in enumerate(chains):
        at = before + 1, place
        for level, name in enumerate(chain):
            to = before + 2 + level, places[level][name]
            if (at, to) not in made.lines:
                made.lines.append((at, to))
            at = to


def _about(volume: Record) -> str:
    size = volume.get("size_bytes")
    words = [str(volume.get("role") or ""), format_bytes(size) if size else "", str(volume.get("file_system") or "")]
    return ", ".join(word for word in words if word)


def _device(volume: Record) -> tuple[str, ...]:
    queue = volume.get("queue") or {}
    words = [shorten(str(volume.get("model") or ""), 24), str(queue.get("write_cache") or "")]
    return tuple(word for word in words if word)
