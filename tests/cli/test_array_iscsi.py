"""Volumes of served arrays as disks of iSCSI, by initiators that are not the kernel's."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest
from serving import VOLUME_BYTES, direct, pattern, read, serving

from assay.base.units import format_bytes
from mounting import needs_fuse

if TYPE_CHECKING:
    from types import TracebackType

    from assay_command import Bench

pytestmark = needs_fuse

CHECK_CONDITION = 2
TARGET = "iqn.2026-11.invalid.assay:ps6100xv-data01"
CONFORMANCE = Path(__file__).parents[1] / "fixtures" / "iscsi-conformance.txt"
"""Each test of `iscsi-test-cu` (libiscsi 1.19), and how it ends here."""


class Initiator:
    """An initiator that asks for one thing at a time (RFC 7143)."""

    def __init__(self, port: int, name: str = "one", target: str = TARGET) -> None:
        self.target = target
        self.number = 1
        self.name = name
        self.port = port
        status, data = self._asks_to_log_in()
        if status == b"\x01\x01":
            # The group sends the login to a portal.
            self.socket.close()
            self.port = int(data.removesuffix(b",1\0").rpartition(b":")[2])
            status, data = self._asks_to_log_in()
        assert status == b"\0\0"
        self.command(bytes(6))  # A new session is told that it is new.

    def _asks_to_log_in(self) -> tuple[bytes, bytes]:
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        keys = f"InitiatorName=iqn.2026-11.test:{self.name}\0TargetName={self.target}\0"
        self._send(bytes([0x43, 0x87]), keys.encode(), {24: self.number}, session=True)
        header, data = self._take()
        return header[36:38], data

    def obeys(self, group: int) -> Initiator:
        """Log out as the target asks, and log in again through the group."""
        header, _ = self._take()
        assert (header[0], header[36]) == (0x32, 1), "the target asks for a logout"
        self._send(bytes([0x46, 0x80]), b"", {24: self.number})
        assert self._take()[0][0] == 0x26
        self.socket.close()
        return Initiator(group, self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.socket.close()

    def command(self, cdb: bytes, data: bytes = b"", reads: int = 0) -> tuple[int, bytes]:
        """Status of a command, and what it read, or the sense after its length."""
        flags = 0x80 | (0x40 if reads else 0) | (0x20 if data else 0)
        self._send(bytes([0x01, flags]), data, {16: self.number, 20: reads or len(data), 24: self.number}, cdb=cdb)
        self.number += 1
        found = b""
        while True:
            header, part = self._take()
            if header[0] == 0x21:
                return header[3], found + part
            found += part
            if header[1] & 1:
                return header[3], found

    def write(self, at: int, data: bytes) -> int:
        return self.command(struct.pack(">BBIBHB", 0x2A, 0, at // 512, 0, len(data) // 512, 0), data)[0]

    def read(self, at: int, count: int) -> bytes:
        return self.command(struct.pack(">BBIBHB", 0x28, 0, at // 512, 0, count // 512, 0), reads=count)[1]

    def _send(
        self, begin: bytes, data: bytes, numbers: dict[int, int], *, cdb: bytes = b"", session: bool = False
    ) -> None:
        header = bytearray(48)
        header[:2] = begin
        header[5:8] = len(data).to_bytes(3, "big")
        if session:
            header[8:14] = b"\x80\0\0\0\0\x01"
        for place, number in numbers.items():
            header[place : place + 4] = number.to_bytes(4, "big")
        header[32 : 32 + len(cdb)] = cdb
        self.socket.sendall(bytes(header) + data + bytes(-len(data) % 4))

    def _take(self) -> tuple[bytes, bytes]:
        header = self._exactly(48)
        length = int.from_bytes(header[5:8], "big")
        return header, self._exactly(length + -length % 4)[:length]

    def _exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = self.socket.recv(count - len(found))
            if not part:
                raise ConnectionResetError("the target has ended the session")
            found += part
        return found


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def test_an_initiator_finds_the_bytes_of_a_volume_through_a_pull_and_a_lost_path(bench: Bench) -> None:
    group, first, second = free_ports(3)
    portals = f"127.0.0.1:{first},127.0.0.1:{second}"
    with serving(bench, "--iscsi", f"127.0.0.1:{group}", "--portals", portals) as served:
        content = pattern(64 << 10)
        with Initiator(first) as one:
            capacity = one.command(bytes([0x25]) + bytes(9), reads=8)[1]
            assert struct.unpack(">II", capacity) == (VOLUME_BYTES // 512 - 1, 512)
            assert one.write(12 << 10, content[: 32 << 10]) == 0
            assert one.write(44 << 10, content[32 << 10 :]) == 0
            assert served.command("pull", "member0/disk3", "--no-spare").code == 0
            assert one.read(12 << 10, len(content)) == content
            assert f"portal 127.0.0.1:{first} is lost" in served.command("fail-path").stdout
            with pytest.raises(OSError, match=r"ended|reset|closed|pipe"):
                one.read(0, 512)
        with Initiator(second) as other:
            assert other.read(12 << 10, len(content)) == content
        assert served.command("mend-paths").stdout == "paths are back\n"
        Initiator(first).socket.close()
        with direct(served.data) as file:
            assert read(file, len(content), 12 << 10) == content


def test_sessions_move_to_the_portal_of_a_member_that_joins_and_away_from_one_that_is_retired(bench: Bench) -> None:
    group, first, second = free_ports(3)
    alone = "ps6100xv?raid=5&members=1&volumes=data:1,log:1"
    portals = ("--iscsi", f"127.0.0.1:{group}", "--portals", f"127.0.0.1:{first}")
    with serving(bench, *portals, array=alone) as served:
        content = pattern(32 << 10)
        with Initiator(group, "stays") as stays, Initiator(group, "moves") as asked:
            assert (stays.port, asked.port) == (first, first)
            assert stays.write(0, content) == 0
            joined = served.command("add-member", f"127.0.0.1:{second}")
            assert joined.stdout.startswith("member1: joins the group")
            what = [event["what"] for event in served.status()["events"]]
            assert f"portal 127.0.0.1:{second} is the new member's; 1 sessions were asked to move there" in what
            with asked.obeys(group) as moved:
                assert moved.port == second
                assert moved.read(0, len(content)) == content
                assert "1 were asked to log in elsewhere" in served.command("retire-path", "0").stdout
                with stays.obeys(group) as last:
                    assert last.port == second
                    assert last.read(0, len(content)) == content
        assert "no other one" in served.command("retire-path", "1").stderr
        # The new member's paths are not those of the first one, whose controller is lost.
        assert served.command("fail-controller").code == 0
        with Initiator(second) as other:
            assert other.read(0, len(content)) == content


def test_a_volume_grows_while_it_is_in_use_and_initiators_are_told(bench: Bench) -> None:
    (port,) = free_ports(1)
    options = ("--iscsi", f"127.0.0.1:{port}")
    content, larger = pattern(64 << 10), VOLUME_BYTES + (5 << 20)
    with serving(bench, *options) as served, Initiator(port) as one:
        assert one.write(VOLUME_BYTES - len(content), content) == 0
        assert one.write(VOLUME_BYTES, content) == CHECK_CONDITION
        assert served.command("grow", "data01", str(larger)).stdout.endswith(
            f"grew from {format_bytes(VOLUME_BYTES)} to {format_bytes(larger)}\n"
        )
        # SPC-4: a unit attention, capacity data has changed.
        status, sense = one.command(bytes(6))
        assert (status, sense[2 + 2] & 0xF, sense[2 + 12 : 2 + 14]) == (CHECK_CONDITION, 6, b"\x2a\x09")
        assert _blocks(one) == larger // 512
        assert one.write(larger - len(content), content) == 0
        assert served.data.stat().st_size == larger
        with direct(served.data) as file:
            assert read(file, len(content), larger - len(content)) == content
            assert read(file, len(content), VOLUME_BYTES) == bytes(len(content))
        small = served.command("grow", "data01", "1M")
        assert (small.code, "volumes only grow" in small.stderr) == (2, True)
        none = served.command("grow", "other", "1G")
        assert (none.code, "there are data01, log01" in none.stderr) == (2, True)
        huge = served.command("grow", "data01", "1P")
        assert (huge.code, "of a member that holds" in huge.stderr) == (2, True)
    with serving(bench, *options) as served, Initiator(port) as one:
        assert _blocks(one) == larger // 512
        assert one.read(VOLUME_BYTES - len(content), len(content)) == content
        assert one.read(larger - len(content), len(content)) == content
        assert served.command("pull", "member0/disk1", "--no-spare").code == 0
        assert one.read(larger - len(content), len(content)) == content


@pytest.mark.skipif(shutil.which("iscsi-readcapacity16") is None, reason="libiscsi-bin is not installed")
def test_libiscsi_sees_the_size_of_a_volume_that_has_grown(bench: Bench) -> None:
    (port,) = free_ports(1)
    with serving(bench, "--iscsi", f"127.0.0.1:{port}") as served:
        assert served.command("grow", "data01", "64M").code == 0
        url = f"iscsi://127.0.0.1:{port}/{TARGET}/0"
        shown = subprocess.run(
            ["iscsi-readcapacity16", "-s", url], capture_output=True, text=True, timeout=60, check=True
        )
        assert int(shown.stdout) == 64 << 20


def _blocks(one: Initiator) -> int:
    return int.from_bytes(one.command(bytes([0x9E, 0x10]) + bytes(11) + b"\x20" + bytes(2), reads=32)[1][:8], "big") + 1


def test_an_array_whose_volumes_keep_their_size_says_so(bench: Bench) -> None:
    with serving(bench, array="fas2040?volumes=data:1", size="64M") as served:
        refused = served.command("grow", "data01", "1G")
        assert (refused.code, "writes anywhere" in refused.stderr) == (2, True)


def test_a_portal_of_a_member_is_refused_where_no_group_sends_logins_to_it(bench: Bench) -> None:
    (one,) = free_ports(1)
    alone = "ps6100xv?raid=5&members=1&volumes=data:1,log:1"
    with serving(bench, array=alone) as served:
        refused = served.command("add-member", f"127.0.0.1:{one}")
        assert (refused.code, "a portal is for disks of iSCSI" in refused.stderr) == (2, True)
    with serving(bench, "--iscsi", f"127.0.0.1:{one}", array=alone) as served:
        refused = served.command("add-member", "127.0.0.9:3260")
        assert (refused.code, "no group could send logins to the portal" in refused.stderr) == (2, True)
        assert len(served.status()["members"]) == 1


def test_what_is_of_iscsi_alone_is_refused_without_it(bench: Bench) -> None:
    refused = bench.assay("array", "serve", "ps6100xv", "--at", bench.folder / "array", "--chap", "dba")
    assert (refused.code, "--chap: is for disks of iSCSI; give --iscsi ADDRESS too" in refused.stderr) == (2, True)


@pytest.mark.slow(reason="230 tests, each by itself, take minutes")
@pytest.mark.skipif(shutil.which("iscsi-test-cu") is None, reason="libiscsi-bin is not installed")
def test_conformance_is_as_the_committed_table_says(bench: Bench) -> None:
    wanted = dict(line.split() for line in CONFORMANCE.read_text().splitlines())
    group, *ports = free_ports(3)
    portals = ("--iscsi", f"127.0.0.1:{group}", "--portals", ",".join(f"127.0.0.1:{port}" for port in ports))
    with serving(bench, *portals, array="nvme-mirror?volumes=data:1", size="256M"):
        name = TARGET.replace("ps6100xv", "nvme-mirror")
        urls = [f"iscsi://127.0.0.1:{port}/{name}/0" for port in ports]
        # That of compare-and-write over several paths takes block 256 to be zero, which it does not write itself.
        in_order = sorted(wanted, key=lambda test: "Multipath" not in test)
        found = {test: _ends(urls if "Multipath" in test else urls[:1], test) for test in in_order}
    assert found == wanted


def _ends(urls: list[str], test: str) -> str:
    arguments = ["iscsi-test-cu", "-d", "-V", "-t", f"ALL.{test}", *urls]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode:
        return "fails"
    return "skips" if "[SKIPPED]" in done.stdout else "passes"
