"""Formatting a namespace: a controller that answers as NVM Express says, in the place of the kernel's."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

import pytest

from assay.base.errors import NotSupported, RefusedTarget
from assay.targets.files.formatting import format_namespace, refuse_format
from assay.targets.files.hold import Hold
from assay.targets.kernel import Kernel, device_number
from assay.targets.nvme import ADMIN, NAMESPACE_ID


class Controller:
    """A controller with namespaces; it answers Identify and remembers formats."""

    def __init__(self, *, oacs: int = 0b10, fna: int = 0, flbas: int = 0, dps: int = 0, active: tuple[int, ...] = (1,)):
        self.pages = {
            1: bytearray(4096),
            0: bytearray(4096),
            2: bytearray(struct.pack(f"<{len(active)}I", *active).ljust(4096, b"\0")),
        }
        struct.pack_into("<H", self.pages[1], 256, oacs)
        self.pages[1][524] = fna
        self.pages[0][26], self.pages[0][29] = flbas, dps
        self.formats: list[tuple[int, int]] = []
        self.status = 0

    def __call__(self, descriptor: int, request: int, command: bytearray | None = None) -> int:
        os.fstat(descriptor)
        if request == NAMESPACE_ID:
            return 1
        assert request == ADMIN
        assert command is not None
        assert len(command) == 72
        opcode, (namespace,) = command[0], struct.unpack_from("<I", command, 4)
        (address,), (size, word) = struct.unpack_from("<Q", command, 24), struct.unpack_from("<II", command, 36)
        if opcode == 0x06:
            ctypes.memmove(address, bytes(self.pages[word]), size)
            return 0
        assert opcode == 0x80
        if not self.status:
            self.formats.append((namespace, word))
        return self.status


@pytest.fixture
def hold(tmp_path: Path) -> Hold:
    path = tmp_path / "device"
    path.write_bytes(bytes(4096))
    return Hold.take(path, writes=True)


def test_the_namespace_is_erased_and_keeps_its_format(hold: Hold) -> None:
    plain = Controller()
    format_namespace(hold, ioctl=plain)
    assert plain.formats == [(1, 1 << 9)]

    # Format 18 with metadata at the end of each block, and protection information of type 2 in its first bytes.
    rich = Controller(flbas=0b0011_0010, dps=0b1010)
    format_namespace(hold, ioctl=rich)
    ((_, word),) = rich.formats
    assert (word & 0xF, word >> 12 & 3, word >> 4 & 1) == (2, 1, 1)
    assert (word >> 5 & 7, word >> 8 & 1, word >> 9 & 7) == (2, 1, 1)


def test_a_controller_that_cannot_or_does_not_format_is_named(hold: Hold) -> None:
    with pytest.raises(NotSupported, match=r"the controller of .*device cannot format"):
        format_namespace(hold, ioctl=Controller(oacs=0))
    refuses = Controller()
    refuses.status = 0x4286
    with pytest.raises(NotSupported, match="refuses to be formatted: NVMe status 0x4286"):
        format_namespace(hold, ioctl=refuses)


@pytest.mark.parametrize("fna", [0b01, 0b10])
def test_no_other_namespace_is_erased(hold: Hold, fna: int) -> None:
    several = Controller(fna=fna, active=(1, 2, 5))
    with pytest.raises(RefusedTarget, match="one of 3 namespaces that its controller formats together"):
        format_namespace(hold, ioctl=several)
    assert several.formats == []
    alone = Controller(fna=fna)
    format_namespace(hold, ioctl=alone)
    assert len(alone.formats) == 1


class TestWholeNamespaces:
    def kernel(self, tmp_path: Path, hold: Hold, name: str) -> Kernel:
        """Tables in which the held file is a device of this name."""
        hold.is_device = True
        major, minor = device_number(os.fstat(hold.descriptor).st_rdev)
        folder = tmp_path / "sys/devices" / name
        folder.mkdir(parents=True)
        links = tmp_path / "sys/dev/block"
        links.mkdir(parents=True)
        (links / f"{major}:{minor}").symlink_to(folder)
        return Kernel(sys=tmp_path / "sys")

    def test_a_whole_namespace_can_be_formatted(self, tmp_path: Path, hold: Hold) -> None:
        refuse_format(hold, "it", kernel=self.kernel(tmp_path, hold, "nvme0n1"), ioctl=Controller())

    @pytest.mark.parametrize("name", ["nvme0n1p1", "sda", "dm-0"])
    def test_partitions_and_other_devices_cannot(self, tmp_path: Path, hold: Hold, name: str) -> None:
        with pytest.raises(NotSupported, match="is no whole NVMe namespace"):
            refuse_format(hold, "it", kernel=self.kernel(tmp_path, hold, name), ioctl=Controller())

    def test_files_cannot(self, hold: Hold) -> None:
        with pytest.raises(NotSupported, match="is no whole NVMe namespace"):
            refuse_format(hold, "it")
