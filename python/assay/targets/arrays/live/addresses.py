"""Addresses at which volumes are served over a network, and the threads that serve them."""

from __future__ import annotations

import ipaddress
import os

from assay.base.errors import UsageError

PORT = 3260
"""Port of iSCSI targets (IANA; RFC 7143, 10.3)."""
NBD_PORT = 10809
"""Port of NBD servers (IANA)."""


def portal_address(text: str, option: str, port: int = PORT) -> str:
    """An address with its port, from one that may leave the port out; it is `port` then.

    Raises
    ------
    UsageError
        It is no address of IP, or its port is none.

    Examples
    --------
    >>> portal_address("127.0.0.1", "--iscsi"), portal_address("[::1]:3261", "--iscsi")
    ('127.0.0.1:3260', '[::1]:3261')
    """
    host, colon, given = text.rpartition(":") if text.count(":") == 1 or text.startswith("[") else (text, "", "")
    try:
        ip = ipaddress.ip_address((host or text).strip("[]"))
        number = int(given) if colon else port
    except ValueError:
        raise UsageError(f"{option}: {text!r} is no address, such as 127.0.0.1 or 127.0.0.1:{port}") from None
    if not 1 <= number < 2**16:
        raise UsageError(f"{option}: {text!r}: ports are 1 to 65535")
    return f"[{ip}]:{number}" if ip.version == 6 else f"{ip}:{number}"


def is_loopback(address: str) -> bool:
    """Whether no other host reaches an address that `portal_address` gave."""
    return ipaddress.ip_address(address.rpartition(":")[0].strip("[]")).is_loopback


def event_loops() -> int:
    """Number of event loops that serve connections, each with a thread: the array's own thread takes one processor."""
    return max(len(os.sched_getaffinity(0)) - 1, 1)
