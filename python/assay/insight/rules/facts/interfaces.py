"""Facts of network interfaces: /sys/class/net, and what the driver says to ethtool's ioctl (linux/ethtool.h)."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from collections.abc import Iterable
from pathlib import Path

from assay.base.errors import NotSupported
from assay.insight.rules.rule import Subject
from assay.targets.kernel import Kernel, read_number, read_text
from assay.telemetry.collectors.interfaces import parse_interfaces

_SIOCETHTOOL = 0x8946
_GRINGPARAM, _GPAUSEPARAM, _GTSO, _GGRO = 0x10, 0x12, 0x1E, 0x2B


def interface_subjects(kernel: Kernel | None = None, *, is_guest: bool | None) -> list[Subject]:
    """Interfaces that are up, but for the loopback."""
    tables = kernel or Kernel()
    folder = tables.sys / "class/net"
    found = []
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
    try:
        counted = parse_interfaces(read_text(tables.proc / "net/dev") or "")
    except NotSupported:
        counted = {}
    for name in names:
        place = folder / name
        if name == "lo" or read_text(place / "operstate") not in ("up", "unknown"):
            continue
        if not (place / "device").exists() and not links_of(name, tables):
            # A bridge, a tunnel or one end of a pair: no cable is behind it.
            continue
        found.append(_interface(place, counted.get(name, {}), is_guest=is_guest))
    return found


def _interface(place: Path, counted: dict[str, int], *, is_guest: bool | None) -> Subject:
    card = Subject("interface", place.name, otherwise="the driver does not tell")
    is_virtual = not (place / "device").exists()
    driver = (place / "device/driver").resolve().name if (place / "device/driver").exists() else None
    card.know("mtu", read_number(place / "mtu"), str(place))
    speed = read_number(place / "speed")
    card.know("speed_bits_per_s", speed * 10**6 if speed is not None and speed > 0 else None, str(place))
    card.lack("speed_bits_per_s", "the driver names no speed")
    duplex = read_text(place / "duplex")
    card.know("duplex", duplex if duplex in ("full", "half") else None, str(place))
    card.lack("duplex", "the driver names no duplex")
    card.know("driver", driver, str(place))
    card.know("is_virtual", is_virtual or (driver or "").startswith(("virtio", "vmxnet", "hv_", "xen")), str(place))
    card.know("is_up", True, str(place))
    card.know("is_guest", is_guest if not is_virtual else False, "/sys/class/dmi/id")
    card.know("links", links_of(place.name, Kernel(sys=place.parents[2])), str(place))
    packets = sum(counted.get(name, 0) for name in ("in_packets_count", "out_packets_count"))
    if counted:
        card.know("packets", packets, "/proc/net/dev")
        for fact, metric in (("dropped_share", "dropped"), ("error_share", "errors")):
            count = counted[f"in_{metric}_count"] + counted[f"out_{metric}_count"]
            card.know(fact, count / packets if packets else 0.0, "/proc/net/dev")
    _from_driver(card)
    return card


def links_of(name: str, kernel: Kernel | None = None) -> list[str]:
    """Cards that an interface uses: itself, those of a bond, the one beneath a VLAN; none of a bridge or a tunnel."""
    place = (kernel or Kernel()).sys / "class/net" / name
    if (place / "device").exists():
        return [name]
    below = (read_text(place / "bonding/slaves") or "").split()
    below = below or sorted(path.name.removeprefix("lower_") for path in place.glob("lower_*"))
    if (place / "bridge").exists():
        return []
    return list(dict.fromkeys(link for one in below if one != name for link in links_of(one, kernel)))


def know_storage_links(subjects: Iterable[Subject]) -> None:
    """Tell the host which cards lead to storage, once the interfaces and the site have said which do."""
    found = list(subjects)
    cards = [one for one in found if one.kind == "interface"]
    for host in (one for one in found if one.kind == "host"):
        if any("is_storage" not in card.facts for card in cards):
            host.lack("storage_links", "which interfaces lead to storage is not known")
        elif cards:
            links = [link for card in cards if card.get("is_storage") for link in card.get("links") or [card.name]]
            origin = cards[0].facts["is_storage"].origin
            host.know("storage_links", list(dict.fromkeys(links)), origin)


def _from_driver(card: Subject) -> None:
    """Ring buffers, flow control and offloads; drivers without them say nothing."""
    origin = "ethtool's ioctl"
    rings = _asked(card.name, _GRINGPARAM, 8)
    if rings:
        card.know("ring_rx_max", rings[0], origin)
        card.know("ring_rx", rings[4], origin)
    pause = _asked(card.name, _GPAUSEPARAM, 3)
    if pause:
        card.know("pause_rx", bool(pause[1]), origin)
    for name, command in (("tso", _GTSO), ("gro_or_lro", _GGRO)):
        value = _asked(card.name, command, 1)
        if value:
            card.know(name, bool(value[0]), origin)
    for name in ("ring_rx", "pause_rx", "tso", "gro_or_lro"):
        card.lack(name, "the driver does not tell (ethtool)")


def _asked(name: str, command: int, words: int) -> tuple[int, ...] | None:
    """Numbers that a driver answers with; None where it does not."""
    buffer = array.array("I", [command, *([0] * words)])
    address, _ = buffer.buffer_info()
    request = struct.pack("16sP", name.encode()[:15], address)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plug:
            fcntl.ioctl(plug, _SIOCETHTOOL, request)
    except OSError:
        return None
    return tuple(buffer[1:])
