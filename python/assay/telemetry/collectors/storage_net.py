"""TCP segments to storage on the network, by interface, from the kernel's own account of each connection.

The kernel counts segments that were sent again for the host as a whole and for each connection, not for an interface
(RFC 4898; `tcp_info` in linux/tcp.h). Connections to the ports of storage, added up by the interface that has their
local address, say of which path segments were lost. Those of the kernel itself (NFS, iSCSI, NVMe/TCP) are among them,
unless this process has a network of its own, as in most containers.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from assay.base.errors import NotSupported
from assay.telemetry.columns import Reading

STORAGE_PORTS = frozenset({445, 2049, 3260, 4420})
"""Ports of SMB, NFS, iSCSI and NVMe/TCP (IANA, Service Name and Transport Protocol Port Number Registry)."""

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST_DUMP = 0x301
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_INET_DIAG_INFO = 2
_ESTABLISHED = 1 << 1
_WAIT_S = 1.0

_HEADER = struct.Struct("=IHHII")
"""Length, type, flags, sequence number, port of a netlink message."""
_REQUEST = struct.Struct("=BBBxI48x")
"""Family, protocol, what to tell beside the addresses, states; any addresses."""
_MESSAGE = struct.Struct("!4xHH16s16s4x8s20x")
"""Local and remote port, local and remote address, cookie."""
_ATTRIBUTE = struct.Struct("=HH")
_RETRANSMITTED_AT, _OUT_AT = 100, 136
"""Offsets of tcpi_total_retrans and tcpi_segs_out; the latter came with kernel 4.2."""


class StorageConnection(NamedTuple):
    """A connection to storage: the local address, and its segments; those sent out include those sent again."""

    address: str
    out_count: int
    retransmitted_count: int


class StorageNetCollector:
    """Segments to storage on the network by interface, and the share of those sent again; nothing without such storage.

    Parameters
    ----------
    ports
        Remote ports that are storage's.
    """

    name = "tcp to storage"
    tier = "client"
    source = "net"

    def __init__(self, ports: Collection[int] = STORAGE_PORTS) -> None:
        self._ports = frozenset(ports)
        self._interfaces: dict[str, str] = {}

    def sample(self) -> dict[bytes, StorageConnection]:
        """Ask the kernel for all connections to the ports, by what names each while it lasts.

        Raises
        ------
        NotSupported
            The kernel does not tell.
        """
        found: dict[bytes, StorageConnection] = {}
        try:
            for family in (socket.AF_INET, socket.AF_INET6):
                for message in _dump(family):
                    found |= connection_of(message, self._ports)
        except OSError as error:
            raise NotSupported(f"the kernel does not tell of its TCP connections: {error}") from None
        return found

    def readings(
        self, before: Mapping[bytes, StorageConnection], after: Mapping[bytes, StorageConnection], interval_ns: int
    ) -> Iterator[Reading]:
        """Segments between two samples of each interface; no share if none was sent."""
        del interval_ns  # Counts and their ratio need no time.
        totals: dict[str, list[int]] = {}
        for cookie, now in after.items():
            # One that was not there before has counted from zero since.
            then = before.get(cookie, StorageConnection(now.address, 0, 0))
            total = totals.setdefault(self._interface(now.address), [0, 0])
            total[0] += now.out_count - then.out_count
            total[1] += now.retransmitted_count - then.retransmitted_count
        for interface, (out, again) in totals.items():
            yield Reading(interface, "storage_segments_out_count", "delta", float(out))
            yield Reading(interface, "storage_segments_retransmitted_count", "delta", float(again))
            if out > 0:
                yield Reading(interface, "storage_retransmit_share", "gauge", min(1.0, again / out))

    def interfaces(self) -> set[str]:
        """Names of the interfaces that have connections to storage now.

        Raises
        ------
        NotSupported
            The kernel does not tell.
        """
        return {self._interface(one.address) for one in self.sample().values()}

    def close(self) -> None:
        """Nothing is held between samples."""

    def _interface(self, address: str) -> str:
        """Name of the interface that has an address; the address itself where none has it any more."""
        if address not in self._interfaces:
            import psutil

            own = {one.address.partition("%")[0]: name for name, all_ in psutil.net_if_addrs().items() for one in all_}
            self._interfaces[address] = own.get(address, address)
        return self._interfaces[address]


def _dump(family: int) -> Iterator[bytes]:
    """What the kernel says of each established TCP connection of a family: `inet_diag_msg` with its attributes."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as asking:
        asking.settimeout(_WAIT_S)
        request = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), _ESTABLISHED)
        asking.send(_HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 0, 0) + request)
        while True:
            answer = asking.recv(2**18)
            place = 0
            while place < len(answer):
                length, kind, *_ = _HEADER.unpack_from(answer, place)
                if kind == _NLMSG_DONE:
                    return
                if kind == _NLMSG_ERROR:
                    (number,) = struct.unpack_from("=i", answer, place + _HEADER.size)
                    raise OSError(-number, "sock_diag")
                yield answer[place + _HEADER.size : place + length]
                place += -(-length // 4) * 4


def connection_of(message: bytes, ports: Collection[int]) -> dict[bytes, StorageConnection]:
    """The connection an `inet_diag_msg` tells of, by its cookie; none where it leads to another port."""
    _, port, local, _, cookie = _MESSAGE.unpack_from(message)
    if port not in ports:
        return {}
    place = _MESSAGE.size
    while place + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, place)
        info = message[place + _ATTRIBUTE.size : place + length]
        if kind == _INET_DIAG_INFO and len(info) >= _OUT_AT + 4:
            again, out = (struct.unpack_from("=I", info, at)[0] for at in (_RETRANSMITTED_AT, _OUT_AT))
            return {cookie: StorageConnection(_address(message[0], local), out, again)}
        place += max(-(-length // 4) * 4, _ATTRIBUTE.size)
    return {}


def _address(family: int, packed: bytes) -> str:
    """An address as interfaces list it: one of version 4 may be carried in one of version 6."""
    address = ip_address(packed[:4] if family == socket.AF_INET else packed)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
