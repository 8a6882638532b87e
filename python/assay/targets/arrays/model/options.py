"""Options of a model as a target: `model:NAME?option=value&...`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from assay.base.errors import UsageError
from assay.base.reading import nearest
from assay.base.units import parse_bytes, parse_share
from assay.targets.arrays.model.kinds import RATE, RATIO, TIME
from assay.targets.arrays.model.parameters import PARAMETERS, PATH_POLICIES, POLICIES, known_of

VOLUMES_MAX = 1024
HOSTS_MAX = 1024
NODES_MAX = 10
SNAPSHOTS_MAX = 4096
PORTS_MAX = 64
WAIT_MAX_S = 600
SEED_MAX = (1 << 63) - 1
ROLES = ("data", "log", "tempdb")
"""What a volume can be for, as in targets/files/spec.py."""
ROLES_ALSO: Mapping[str, str] = {"temp": "tempdb"}
"""Other words for them."""
MODES = ("normal", "insane")
MODES_ALSO: Mapping[str, str] = {"fast": "insane"}
"""Former names."""
STATES = ("healthy", "degraded", "rebuilding")
FLASH_STATES = ("fresh", "written", "steady")
"""What was written to drives of flash before: nothing; all of them once in order; random writes without end."""


class DiskState(NamedTuple):
    """State of a member's disks, and what was written to drives of flash before; an empty `flash` states nothing."""

    disks: str = "healthy"
    flash: str = ""


OPTIONS = {
    "raid": "RAID policy, of those the array offers, or of each role's members: data:50,log:10",
    "volumes": "number of volumes, or of each role: data:8,log:2,tempdb:2",
    "volume_size": "size of each volume, such as 100GB, or of each role's: data:100GB,log:20GB",
    "fill": "share of the usable capacity, such as 0.85",
    "members": "equal members in one pool, or in a pool of each role: data:2,log:1",
    "disks": "disks of each member, all in one RAID set and without spares, such as 4",
    "drive": "drives of the catalogue in place of the model's own drives of flash, such as cm7-r-3840",
    "paths": "ports at both ends: of each host, and of each controller",
    "host_ports": "ports of each host, where they are not as many as those of a controller",
    "host_port_rate": "line rate of a host's port, such as 10Gbit/s",
    "controllers": "controllers of a member that serve at the same time",
    "controller_ports": "ports of each controller",
    "initiator_limit": "most commands under way of a host's port, or none",
    "path_policy": "round-robin or least-queue-depth",
    "hosts": "hosts with ports of their own",
    "protocol": "iscsi, fcoe, ... of those the array offers",
    "max_transfer": "largest I/O the initiator does not split, such as 256K, or none",
    "slow_path": "share of its rate that the first port of each host reaches, such as 0.1",
    "packet_loss": "share of packets that the first port of each host drops, such as 0.1%; iscsi only",
    "fault": "what is lost, and when: host-port@10s or controller@10s",
    "path_timeout": "how long commands without answer wait before they take another path, such as 15s",
    "failover": "from the loss of a controller until another has its ports, such as 10s",
    "mixed": "disks that are of another model or in another state of flash, such as 1:wd-dc-960 or 2:fresh; or none",
    "state": "healthy, degraded or rebuilding; of flash fresh, written or steady; both as steady+degraded",
    "cache": "controller cache per member, such as 4G",
    "write_back": "yes or no",
    "start": "warm or cold",
    "read_realloc": "yes or no, for write-anywhere layouts",
    "reclamation": "yes: all free space has been written before and has to be reclaimed; write-anywhere layouts",
    "snapshots": "snapshots of the chain, the oldest dropped as one is added; write-anywhere layouts",
    "snapshot_change": "share of the blocks that is written from one snapshot to the next, such as 2%",
    "seed": "seed of spindle phases and of where volumes begin",
}
"""Options beside `SECTION.KEY`, in the order targets are written in, and what they mean."""

HOST_FLASH_OPTIONS = {
    "hosts": "hosts with flash, 1 to 128",
    "nodes": "data nodes, 1 to 10",
    "mode": "normal or insane, the maker's name: how much of a host's processors the array's software takes",
    "volumes": "number of volumes, dealt out to the hosts, or of each role: data:8,log:2,tempdb:2",
    "volume_size": "size of each volume, such as 100GB, or of each role's: data:100GB,log:20GB",
    "fill": "share of the usable capacity, such as 0.5",
    "flash": "flash of a host, such as 2TB",
    "memory": "memory of a host that keeps blocks, such as 8G",
    "deduplication": "how many times smaller data are without duplicates, 1 or more",
    "compression": "how many times smaller blocks are compressed, 1 or more",
    "reclamation": "yes: the pool is as full as where reclamation works, or no",
    "snapshots": "snapshots of the chain, the oldest dropped as one is added",
    "snapshot_change": "share of the blocks that is written from one snapshot to the next, such as 2%",
    "start": "warm or cold",
    "seed": "seed of spindle phases and of where containers lie",
}
"""The same for arrays whose hosts have the flash."""

CLOUD_OPTIONS = {
    "size": "size of each volume, such as 500GB, or of each role's: data:500GB,log:100GB",
    "volume_size": "another word for size",
    "volumes": "number of volumes, or of each role: data:2,log:1",
    "iops": "IOPS that each volume is provisioned with, where they can be asked for, or by role: data:6000,log:300",
    "throughput": "the same of throughput, such as 250MiB/s or data:250MiB/s,log:125MiB/s",
    "instance": "machine that has the volumes, such as m6i.xlarge, whose limits hold for all together",
    "credits": "share of full credits at the beginning of each point, such as 5%",
    "instance_credits": "the same of the machine's",
    "from_snapshot": "yes: volumes were just made of a snapshot, and load what is touched first",
    "background": "with from_snapshot, rate at which the rest is loaded meanwhile, such as 200MiB/s",
    "seed": "seed of latencies",
}
"""The same for volumes of a cloud."""

HOST_FLASH_REPLACED_BY = {
    "flash": "host.flash",
    "memory": "host.memory",
    "deduplication": "log.deduplication",
    "compression": "log.compression",
    "snapshot_change": "log.snapshot_change",
}

REPLACED_BY = {
    "cache": "cache.size",
    "write_back": "cache.write_back",
    "read_realloc": "layout.read_realloc",
    "path_policy": "links.path_policy",
    "max_transfer": "links.max_transfer",
}
"""Options that are another way to write a parameter."""


def spelt_out(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Options as written, `disks` as the parameters that it stands for."""
    for key, text in options.items():
        if key == "disks":
            yield from {"disks.count": text, "disks.spares": "0", "raid.set_disks": "0"}.items()
        else:
            yield key, text


def parse_model_target(text: str) -> tuple[str, dict[str, str]]:
    """Name or path, and options as written, of `model:NAME?key=value&key=value`.

    Raises
    ------
    UsageError
        There is no name, or an option has no value or is given twice.

    Examples
    --------
    >>> parse_model_target("model:ps6100xv?raid=50&members=2")
    ('ps6100xv', {'raid': '50', 'members': '2'})
    """
    rest = text[len("model:") :] if text.lower().startswith("model:") else text
    name, _, query = rest.partition("?")
    if not name:
        raise UsageError("model: has no name; write model:ps6100xv, see `assay model list`")
    options: dict[str, str] = {}
    for item in filter(None, query.split("&")):
        key, separator, value = item.partition("=")
        if not separator or not value:
            raise UsageError(f"model: option {key!r} needs a value: {_meaning(key)}")
        if key in options:
            raise UsageError(f"model: option {key!r} is given twice; give it once")
        options[key] = value
    return name, options


def model_target_text(name: str, options: Mapping[str, str]) -> str:
    """The target that a name and options make, options in the order of the documentation."""
    order = {key: position for position, key in enumerate({**OPTIONS, **HOST_FLASH_OPTIONS, **CLOUD_OPTIONS})}
    keys = sorted(options, key=lambda key: (order.get(key, len(order)), key))
    query = "&".join(f"{key}={options[key]}" for key in keys)
    return f"model:{name}" + (f"?{query}" if query else "")


def _meaning(key: str) -> str:
    return {**CLOUD_OPTIONS, **HOST_FLASH_OPTIONS, **OPTIONS}.get(key, f"write {key}=VALUE")


def refuse_unknown_options(options: Mapping[str, str], known: Mapping[str, str] = OPTIONS) -> None:
    """Refuse a key that is neither an option nor a parameter, and name the nearest.

    Parameters
    ----------
    known
        Options of arrays of such a structure, with what they mean.

    Raises
    ------
    UsageError
        There is such a key.
    """
    for key in options:
        if key in known:
            continue
        if "." in key:
            try:
                known_of(key)
            except KeyError:
                close = nearest(key, PARAMETERS)
                hint = f"did you mean {close!r}?" if close else "`assay model show NAME` lists them"
                raise UsageError(f"model: unknown parameter {key!r}; {hint}") from None
            continue
        close = nearest(key, known)
        hint = f"did you mean {close!r}? " if close else ""
        raise UsageError(f"model: has no option {key!r}; {hint}accepted: {', '.join(known)}, or SECTION.KEY")


def read_whole(key: str, text: str, least: int, most: int) -> int:
    """A whole number within bounds.

    Raises
    ------
    UsageError
        It is none.
    """
    if not re.fullmatch(r"[0-9]{1,19}", text) or not least <= int(text) <= most:
        raise UsageError(f"model: option {key!r}: {text!r} is not a whole number from {least} to {most}")
    return int(text)


def _choice(key: str, text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise UsageError(f"model: option {key!r}: {text!r} is unknown; accepted: {', '.join(known)}")
    return text


def _policy(key: str, text: str) -> str:
    policy = text.lower()
    if policy not in POLICIES:
        raise UsageError(f"model: option {key!r}: unknown RAID policy {policy!r}; known: {', '.join(POLICIES)}")
    return policy


def _flag(key: str, text: str) -> bool:
    return _choice(key, text, ("yes", "no")) == "yes"


Read = TypeVar("Read")


def _by_role(read: Callable[[str, str], Read]) -> Callable[[str, str], dict[str, Read]]:
    """A reader of values by role; one for all volumes is under the empty name."""

    def read_all(key: str, text: str) -> dict[str, Read]:
        if ":" not in text:
            return {"": read(key, text)}
        found: dict[str, Read] = {}
        for item in text.split(","):
            role, _, value = item.partition(":")
            role = ROLES_ALSO.get(role, role)
            _choice(key, role, ROLES)
            if role in found:
                raise UsageError(f"model: option {key!r}: {role} is given twice; give it once")
            found[role] = read(key, value)
        return found

    return read_all


def _volume_size(key: str, text: str) -> int:
    size_bytes = parse_bytes(text, what=f"model: option {key!r}")
    if not 1 << 20 <= size_bytes < 1 << 60:
        raise UsageError(f"model: option {key!r}: {text} is outside 1 MiB to 1 EiB")
    return size_bytes // 512 * 512


def _fill(key: str, text: str) -> float:
    fill = parse_share(text, what=f"model: option {key!r}")
    if fill <= 0:
        raise UsageError(f"model: option {key!r}: {text} leaves nothing to read; accepted: above 0, up to 1")
    return fill


def _duration_ns(key: str, text: str) -> int:
    try:
        value, _, _ = TIME.from_text(text)
    except ValueError as error:
        raise UsageError(f"model: option {key!r}: {error}") from None
    if value > WAIT_MAX_S * 1e9:
        raise UsageError(f"model: option {key!r}: {text} is above {WAIT_MAX_S} s")
    return int(value)


def _fault(key: str, text: str) -> tuple[str, int]:
    lost, _, at = text.partition("@")
    return _choice(key, lost, ("host-port", "controller")), _duration_ns(key, at)


def _rate(key: str, text: str) -> float:
    try:
        return float(RATE.from_text(text)[0])
    except ValueError as error:
        raise UsageError(f"model: option {key!r}: {error}") from None


def _ratio(key: str, text: str) -> float:
    try:
        return float(RATIO.from_text(text)[0])
    except ValueError as error:
        raise UsageError(f"model: option {key!r}: {error}") from None


def _state(key: str, text: str) -> DiskState:
    words = [_choice(key, word, (*STATES, *FLASH_STATES)) for word in text.split("+")]
    disks = [word for word in words if word in STATES]
    flash = [word for word in words if word in FLASH_STATES]
    if len(disks) > 1 or len(flash) > 1:
        raise UsageError(f"model: option {key!r}: {text!r}: disks are in one state; write such as steady+degraded")
    return DiskState(disks=(disks or [DiskState().disks])[0], flash=(flash or [""])[0])


def _mixed(key: str, text: str) -> tuple[int, str] | None:
    if text == "none":
        return None
    count, separator, name = text.partition(":")
    if not separator or not name:
        raise UsageError(f"model: option {key!r}: {text!r} is no number of disks and what they are, such as 1:fresh")
    return read_whole(key, count, 1, 1024), name


def with_all_disks(options: Mapping[str, str]) -> dict[str, str]:
    """Options without the loss of a disk; what was written to drives of flash stays."""
    kept = {key: text for key, text in options.items() if key != "state"}
    state = _state("state", options.get("state", STATES[0]))
    return {**kept, "state": state.flash} if state.flash else kept


def _credits(key: str, text: str) -> float:
    return parse_share(text, what=f"model: option {key!r}")


_READERS: dict[str, Callable[[str, str], Any]] = {
    "iops": _by_role(lambda key, text: read_whole(key, text, 1, 1 << 30)),
    "throughput": _by_role(_rate),
    "credits": _credits,
    "instance_credits": _credits,
    "from_snapshot": _flag,
    "background": _rate,
    "nodes": lambda key, text: read_whole(key, text, 1, NODES_MAX),
    "mode": lambda key, text: _choice(key, MODES_ALSO.get(text.lower(), text.lower()), MODES),
    "flash": lambda key, text: parse_bytes(text, what=f"model: option {key!r}"),
    "memory": lambda key, text: parse_bytes(text, what=f"model: option {key!r}"),
    "deduplication": _ratio,
    "compression": _ratio,
    "reclamation": _flag,
    "snapshots": lambda key, text: read_whole(key, text, 0, SNAPSHOTS_MAX),
    "snapshot_change": lambda key, text: parse_share(text, what=f"model: option {key!r}"),
    "mixed": _mixed,
    "volumes": _by_role(lambda key, text: read_whole(key, text, 1, VOLUMES_MAX)),
    "volume_size": _by_role(_volume_size),
    "size": _by_role(_volume_size),
    "fill": _fill,
    "raid": _by_role(_policy),
    "members": _by_role(lambda key, text: read_whole(key, text, 1, 1 << 20)),
    "disks": lambda key, text: read_whole(key, text, 1, 1024),
    "paths": lambda key, text: read_whole(key, text, 1, 1 << 20),
    "hosts": lambda key, text: read_whole(key, text, 1, HOSTS_MAX),
    "host_ports": lambda key, text: read_whole(key, text, 1, PORTS_MAX),
    "host_port_rate": _rate,
    "controllers": lambda key, text: read_whole(key, text, 1, PORTS_MAX),
    "controller_ports": lambda key, text: read_whole(key, text, 1, PORTS_MAX),
    "initiator_limit": lambda key, text: 0 if text == "none" else read_whole(key, text, 1, 1 << 20),
    "slow_path": _fill,
    "packet_loss": lambda key, text: parse_share(text, what=f"model: option {key!r}"),
    "fault": _fault,
    "path_timeout": _duration_ns,
    "failover": _duration_ns,
    "state": _state,
    "start": lambda key, text: _choice(key, text, ("warm", "cold")),
    "seed": lambda key, text: read_whole(key, text, 0, SEED_MAX),
    "cache": lambda key, text: parse_bytes(text, what=f"model: option {key!r}"),
    "write_back": _flag,
    "read_realloc": _flag,
    "path_policy": lambda key, text: _choice(key, text, PATH_POLICIES),
    "max_transfer": lambda key, text: 0 if text == "none" else parse_bytes(text, what=f"model: option {key!r}"),
}


def read_option(key: str, text: str) -> Any:
    """Value of an option: numbers in base units, shares, truth values; a name as it is.

    Raises
    ------
    UsageError
        The value is not accepted.
    """
    reader = _READERS.get(key)
    return reader(key, text) if reader is not None else text
