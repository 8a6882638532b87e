"""Disks of iSCSI over a network that loses packets, or is slow: a namespace of its own, in which loopback does so."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving import pattern, serving
from test_array_iscsi import TARGET, Initiator, free_ports

from mounting import needs_fuse

if TYPE_CHECKING:
    from assay_command import Bench

_CLONE_NEWNET = 0x40000000
"""Linux: unshare(2)."""
IO_BYTES = 8 << 10
IOS = 150

pytestmark = [
    needs_fuse,
    pytest.mark.slow(reason="packets that are lost are sent again after 0.2 s; faults of sessions have quicker tests"),
]


@pytest.fixture
def _own_network() -> Iterator[None]:
    """A network of this thread, and of the processes that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open() as before:
        if libc.unshare(_CLONE_NEWNET):
            pytest.skip("no network namespaces here")
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            assert libc.setns(before.fileno(), _CLONE_NEWNET) == 0


def _ruled(*words: str) -> str:
    return subprocess.run(["iptables", *words], capture_output=True, text=True, check=True).stdout


@contextmanager
def _lost(port: int, share: float) -> Iterator[None]:
    """Packets to and from a port are lost at random."""
    if shutil.which("iptables") is None:
        pytest.skip("iptables is not installed")
    for side in ("--dport", "--sport"):
        match = ("-p", "tcp", side, str(port), "-m", "statistic", "--mode", "random", "--probability", str(share))
        try:
            _ruled("-A", "INPUT", *match, "-j", "DROP")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no packets can be dropped here: {error.stderr}")
    yield
    _ruled("-F", "INPUT")


@contextmanager
def _slow(rate: str) -> Iterator[None]:
    """All packets together pass at a rate."""
    limit = ["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", rate, "burst", "64kb", "latency", "100ms"]
    if shutil.which("tc") is None or subprocess.run(limit, check=False).returncode:
        pytest.skip("no rate can be set here")
    yield
    subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], check=True)


def _written_and_read(one: Initiator, seed: int) -> float:
    """Milliseconds of an I/O, in the mean."""
    begun = time.monotonic()
    content = [pattern(IO_BYTES, seed + number) for number in range(IOS)]
    for number, bytes_ in enumerate(content):
        assert one.write(number * IO_BYTES, bytes_) == 0
    for number, bytes_ in enumerate(content):
        assert one.read(number * IO_BYTES, IO_BYTES) == bytes_
    return (time.monotonic() - begun) / IOS / 2 * 1e3


@pytest.mark.usefixtures("_own_network")
def test_no_byte_is_lost_with_packets_or_on_a_slow_path(bench: Bench) -> None:
    (port,) = free_ports(1)
    with (
        serving(bench, "--iscsi", f"127.0.0.1:{port}", array="nvme-mirror?volumes=data:1"),
        Initiator(port, target=TARGET.replace("ps6100xv", "nvme-mirror")) as one,
    ):
        print("all packets arrive:", _written_and_read(one, 1), "ms")
        for share in (0.01, 0.03):
            with _lost(port, share):
                print(f"{share:.1%} of packets are lost:", _written_and_read(one, 2), "ms")
                dropped = [int(count) for count in re.findall(r"^ *(\d+) .*DROP", _ruled("-L", "INPUT", "-vn"), re.M)]
                assert sum(dropped) > 0
        with _slow("50mbit"):
            print("50 Mbit/s:", _written_and_read(one, 3), "ms")
