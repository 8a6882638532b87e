"""What is recognised on a device, at both its ends, and that nothing in its bytes can upset the recognition."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.targets.files.signatures import ReadAt, find_signatures

MIB = 1024**2
SIZE = 16 * MIB
MD_MAGIC = 0xA92B4EFC


class Image:
    """A device of zeros with bytes put on it; negative offsets count from the end."""

    def __init__(self, size_bytes: int = SIZE) -> None:
        self.size_bytes = size_bytes
        self.pieces: list[tuple[int, bytes]] = []

    def put(self, offset: int, content: bytes) -> Image:
        self.pieces.append((offset if offset >= 0 else self.size_bytes + offset, content))
        return self

    def read_at(self, offset: int, length: int) -> bytes:
        assert offset >= 0
        out = bytearray(max(0, min(length, self.size_bytes - offset)))
        for start, content in self.pieces:
            for index, value in enumerate(content):
                if 0 <= start + index - offset < len(out):
                    out[start + index - offset] = value
        return bytes(out)

    def found(self) -> list[str]:
        return find_signatures(self.read_at, self.size_bytes)


def uberblock(order: str) -> bytes:
    return struct.pack(f"{order}QQ", 0x00BAB10C, 5000)


BOOT = b"\x55\xaa"

CASES: list[tuple[str, list[tuple[int, bytes]]]] = [
    ("GPT partition table", [(512, b"EFI PART")]),
    ("GPT partition table", [(4096, b"EFI PART")]),
    ("GPT partition table", [(-512, b"EFI PART")]),
    ("GPT partition table", [(-4096, b"EFI PART")]),
    ("MBR partition table or boot sector", [(510, BOOT)]),
    ("ext2/ext3/ext4", [(1080, struct.pack("<H", 0xEF53))]),
    ("XFS", [(0, b"XFSB")]),
    ("btrfs", [(0x10040, b"_BHRfS_M")]),
    ("F2FS", [(1024, struct.pack("<I", 0xF2F52010))]),
    ("F2FS", [(5120, struct.pack("<I", 0xF2F52010))]),
    ("swap", [(4096 - 10, b"SWAPSPACE2")]),
    ("swap", [(65536 - 10, b"SWAPSPACE2")]),
    ("LUKS1", [(0, b"LUKS\xba\xbe\x00\x01")]),
    ("LUKS2", [(0, b"LUKS\xba\xbe\x00\x02")]),
    ("LUKS2 (secondary header)", [(0x4000, b"SKUL\xba\xbe\x00\x02")]),
    ("LUKS2 (secondary header)", [(0x400000, b"SKUL\xba\xbe\x00\x02")]),
    ("LVM2 physical volume", [(512, b"LABELONE")]),
    ("LVM2 physical volume", [(3 * 512, b"LABELONE")]),
    ("md RAID 0.90", [(-65536, struct.pack("<II", MD_MAGIC, 0))]),
    ("md RAID 0.90", [(-65536, struct.pack(">II", MD_MAGIC, 0))]),
    ("md RAID 1.0", [(-8192, struct.pack("<II", MD_MAGIC, 1))]),
    ("md RAID 1.1", [(0, struct.pack("<II", MD_MAGIC, 1))]),
    ("md RAID 1.2", [(4096, struct.pack("<II", MD_MAGIC, 1))]),
    ("DDF RAID", [(-512, struct.pack(">I", 0xDE11DE11))]),
    ("DDF RAID", [(-257 * 512, struct.pack("<I", 0xDE11DE11))]),
    ("Intel IMSM RAID", [(-1024, b"Intel Raid ISM Cfg Sig. 1.3.00")]),
    ("Intel IMSM RAID", [(-8192, b"Intel Raid ISM Cfg Sig. 1.3.00")]),
    ("LSI MegaRAID", [(-512, b"$XIDE$")]),
    ("ZFS pool member", [(128 * 1024, uberblock("<"))]),
    ("ZFS pool member", [(256 * 1024 + 132 * 1024, uberblock(">"))]),
    ("ZFS pool member", [(-512 * 1024 + 128 * 1024 + 127 * 1024, uberblock("<"))]),
    ("ZFS pool member", [(-256 * 1024 + 160 * 1024, uberblock(">"))]),
    ("ZFS pool member", [(-256 * 1024 + 16 * 1024, struct.pack(">BBHII", 1, 1, 0, 0, 1))]),
    ("ZFS pool member", [(16 * 1024, struct.pack(">BBHII", 1, 0, 0, 0, 1))]),
    ("NTFS", [(3, b"NTFS    "), (510, BOOT)]),
    ("NTFS", [(-512 + 3, b"NTFS    ")]),
    ("FAT", [(0x52, b"FAT32   "), (510, BOOT)]),
    ("FAT", [(0x36, b"FAT16   "), (510, BOOT)]),
    ("exFAT", [(3, b"EXFAT   "), (510, BOOT)]),
    ("exFAT", [(12 * 512 + 3, b"EXFAT   ")]),
    ("ISO 9660", [(32769, b"CD001")]),
    ("Oracle ASM", [(32, b"ORCLDISKDATA01")]),
    ("Oracle ASM", [(MIB + 254 * 4096 + 32, b"ORCLDISKDATA01")]),
    ("bcache", [(4096 + 24, bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"))]),
    ("Ceph BlueStore", [(0, b"bluestore block device\n")]),
    ("DRBD", [(-4096 + 60, struct.pack(">I", 0x83740267 + 4))]),
    ("DRBD", [(-4096 + 60, struct.pack(">I", 0x83740267 + 6))]),
    ("VMFS", [(MIB, struct.pack("<I", 0xC001D00D))]),
    ("VMFS", [(2 * MIB, struct.pack("<I", 0x2FABF15E))]),
    ("SquashFS", [(0, b"hsqs")]),
    ("ReFS", [(0, b"\0\0\0ReFS\0")]),
    ("JFS", [(32768, b"JFS1")]),
    ("ReiserFS", [(65536 + 52, b"ReIsEr2Fs")]),
    ("GFS2", [(65536, struct.pack(">II", 0x01161970, 1))]),
    ("OCFS2", [(8192, b"OCFSV2")]),
]


@pytest.mark.parametrize(("name", "pieces"), CASES)
def test_a_magic_at_its_place_is_recognised_and_nothing_else_is(name: str, pieces: list[tuple[int, bytes]]) -> None:
    image = Image()
    for offset, content in pieces:
        image.put(offset, content)

    assert image.found() == [name]


@pytest.mark.parametrize("moved_bytes", [1, 512, 3 * 512])
def test_what_is_anchored_to_the_end_is_found_on_devices_of_odd_sizes(moved_bytes: int) -> None:
    size = SIZE + 8 * 1024 + moved_bytes
    end_of_4k = size // 4096 * 4096

    assert Image(size).put(size // 65536 * 65536 - 65536, struct.pack("<I", MD_MAGIC)).found() == ["md RAID 0.90"]
    assert Image(size).put(end_of_4k - 8192, struct.pack("<II", MD_MAGIC, 1)).found() == ["md RAID 1.0"]
    assert Image(size).put(end_of_4k - 4096 + 60, struct.pack(">I", 0x8374026B)).found() == ["DRBD"]
    assert Image(size).put(size // 512 * 512 - 512, b"EFI PART").found() == ["GPT partition table"]
    assert Image(size).put(size // 262144 * 262144 - 131072, uberblock("<")).found() == ["ZFS pool member"]


def test_a_protective_mbr_is_part_of_its_gpt_but_alone_it_is_reported() -> None:
    protective = Image().put(450, b"\xee").put(510, BOOT)

    assert protective.found() == ["MBR partition table or boot sector"]
    assert protective.put(-512, b"EFI PART").found() == ["GPT partition table"]


def test_several_layers_are_all_named_once() -> None:
    image = Image().put(510, BOOT).put(0, b"XFSB").put(512, b"LABELONE").put(1024, b"LABELONE")

    assert image.found() == ["XFS", "LVM2 physical volume", "MBR partition table or boot sector"]


def test_btrfs_is_found_by_its_copies_when_the_start_is_wiped() -> None:
    assert Image(65 * MIB).put(64 * MIB + 64, b"_BHRfS_M").found() == ["btrfs"]
    assert Image(257 * 1024 * MIB).put(256 * 1024 * MIB + 64, b"_BHRfS_M").found() == ["btrfs"]


def test_zeros_carry_nothing() -> None:
    assert Image().found() == []


@given(st.integers(0, 200_000), st.binary(max_size=4096), st.integers(0, 200_000))
def test_no_bytes_and_no_size_upset_it(size_bytes: int, content: bytes, offset: int) -> None:
    data = bytearray(size_bytes)
    data[offset : offset + len(content)] = content[: max(0, size_bytes - offset)]

    names = find_signatures(lambda at, length: bytes(data[at : at + length]), size_bytes)

    assert len(names) == len(set(names))


@given(st.sampled_from([head for _, pieces in CASES for _, head in pieces]), st.integers(0, 64), st.integers(0, 70_000))
def test_magics_anywhere_on_short_devices_do_not_upset_it(magic: bytes, offset: int, size_bytes: int) -> None:
    data = (b"\0" * offset + magic * 400)[:size_bytes]

    assert isinstance(find_signatures(lambda at, length: data[at : at + length], size_bytes), list)


def reader(path: Path) -> tuple[ReadAt, int]:
    content = path.read_bytes()
    return (lambda at, length: content[at : at + length]), len(content)


REAL = [
    ("mkfs.ext4", ["-q", "-F"], 4, "ext2/ext3/ext4"),
    ("mkfs.ext2", ["-q", "-F"], 4, "ext2/ext3/ext4"),
    ("mkswap", ["-q"], 4, "swap"),
    ("mkfs.xfs", ["-q", "-f"], 320, "XFS"),
    ("mkfs.btrfs", ["-q", "-f"], 128, "btrfs"),
    ("mkfs.vfat", [], 4, "FAT"),
    ("mkfs.exfat", [], 8, "exFAT"),
    ("mkfs.ntfs", ["-q", "-F"], 8, "NTFS"),
    ("mkfs.f2fs", ["-q", "-f"], 64, "F2FS"),
    ("mkfs.jfs", ["-q"], 16, "JFS"),
]


@pytest.mark.parametrize(("program", "options", "size_mib", "name"), REAL)
def test_what_real_tools_write_is_recognised(
    program: str,
    options: list[str],
    size_mib: int,
    name: str,
    tmp_path: Path,
    tool: Callable[[str], str],
    run: Callable[..., str],
) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(size_mib * MIB)
    run(tool(program), *options, image)

    assert name in find_signatures(*reader(image))


def test_a_partition_table_by_sfdisk_is_recognised_at_either_end(
    tmp_path: Path, tool: Callable[[str], str], run: Callable[..., str]
) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(SIZE)
    script = tmp_path / "script"
    script.write_text("label: gpt\n,8M\n")
    run("sh", "-c", f"{tool('sfdisk')} -q {image} < {script}")
    read_at, size_bytes = reader(image)

    def without_start(offset: int, length: int) -> bytes:
        return bytes(min(length, MIB - offset)) if offset < MIB else read_at(offset, length)

    assert find_signatures(read_at, size_bytes) == ["GPT partition table"]
    assert find_signatures(without_start, size_bytes) == ["GPT partition table"]


PROBED_BYTES = 80 * MIB


def gpt() -> list[tuple[int, bytes]]:
    last = PROBED_BYTES // 512 - 1
    entries_crc = zlib.crc32(bytes(128 * 128))
    places = struct.pack("<QQQQ16s", 1, last, 34, last - 33, b"assay-test-guid!")
    head = struct.pack("<8sIIII", b"EFI PART", 0x10000, 92, 0, 0) + places
    head += struct.pack("<QIII", 2, 128, 128, entries_crc)
    head = head[:16] + struct.pack("<I", zlib.crc32(head)) + head[20:]
    protective = bytes([0, 0, 2, 0, 0xEE, 0xFF, 0xFF, 0xFF]) + struct.pack("<II", 1, last)
    return [(446, protective), (510, BOOT), (512, head)]


def lvm() -> list[tuple[int, bytes]]:
    # LVM's CRC-32 starts from a value of its own and is not inverted at the end (lib/misc/crc.c).
    checked = (struct.pack("<I8s", 32, b"LVM2 001") + b"a" * 32).ljust(512 - 20, b"\0")
    crc = zlib.crc32(checked, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    return [(512, struct.pack("<8sQI", b"LABELONE", 1, crc) + checked)]


def md(offset: int) -> list[tuple[int, bytes]]:
    return [(offset, struct.pack("<II136xQ", MD_MAGIC, 1, offset // 512))]


PROBED = [
    ("GPT partition table", gpt(), "gpt"),
    ("MBR partition table or boot sector", [(510, BOOT)], "dos"),
    ("ext2/ext3/ext4", [(1080, b"\x53\xef")], "ext2"),
    ("btrfs", [(0x10040, b"_BHRfS_M")], "btrfs"),
    ("F2FS", [(1024, b"\x10\x20\xf5\xf2")], "f2fs"),
    ("swap", [(1024, struct.pack("<II", 1, 100)), (4096 - 10, b"SWAPSPACE2")], "swap"),
    ("swap", [(1024, struct.pack("<II", 1, 100)), (65536 - 10, b"SWAPSPACE2")], "swap"),
    ("LUKS1", [(0, b"LUKS\xba\xbe\x00\x01")], "crypto_LUKS"),
    ("LUKS2", [(0, b"LUKS\xba\xbe\x00\x02")], "crypto_LUKS"),
    ("LUKS2 (secondary header)", [(0x400000, b"SKUL\xba\xbe\x00\x02")], "crypto_LUKS"),
    ("LVM2 physical volume", lvm(), "LVM2_member"),
    ("md RAID 0.90", [(PROBED_BYTES - 65536, struct.pack("<II", MD_MAGIC, 0))], "linux_raid_member"),
    ("md RAID 1.0", md(PROBED_BYTES - 8192), "linux_raid_member"),
    ("md RAID 1.1", md(0), "linux_raid_member"),
    ("md RAID 1.2", md(4096), "linux_raid_member"),
    ("DDF RAID", [(PROBED_BYTES - 512, b"\xde\x11\xde\x11")], "ddf_raid_member"),
    ("DDF RAID", [(PROBED_BYTES - 257 * 512, b"\xde\x11\xde\x11")], "ddf_raid_member"),
    ("Intel IMSM RAID", [(PROBED_BYTES - 1024, b"Intel Raid ISM Cfg Sig. 1.3.00")], "isw_raid_member"),
    ("LSI MegaRAID", [(PROBED_BYTES - 512, b"$XIDE$")], "lsi_mega_raid_member"),
    ("ZFS pool member", [((132 + slot) * 1024, uberblock("<")) for slot in range(4)], "zfs_member"),
    ("ZFS pool member", [(PROBED_BYTES - (90 + slot) * 1024, uberblock(">")) for slot in range(4)], "zfs_member"),
    ("exFAT", [(3, b"EXFAT   "), (510, BOOT)], "exfat"),
    ("ISO 9660", [(32768, b"\x01CD001\x01")], "iso9660"),
    ("Oracle ASM", [(32, b"ORCLDISKDATA01")], "oracleasm"),
    ("Ceph BlueStore", [(0, b"bluestore block device\n")], "ceph_bluestore"),
    ("DRBD", [(PROBED_BYTES - 4096 + 60, struct.pack(">I", 0x8374026B))], "drbd"),
    ("VMFS", [(MIB, struct.pack("<I", 0xC001D00D))], "VMFS_volume_member"),
    ("VMFS", [(2 * MIB, struct.pack("<I", 0x2FABF15E))], "VMFS"),
    ("SquashFS", [(0, b"hsqs".ljust(28, b"\0") + struct.pack("<HH", 4, 0))], "squashfs"),
    ("ReFS", [(0, b"\0\0\0ReFS\0")], "ReFS"),
    ("JFS", [(32768, struct.pack("<4s12xIHHIH", b"JFS1", 4096, 12, 3, 512, 9))], "jfs"),
    ("ReiserFS", [(65536, struct.pack("<12xI28xH6x10s", 18, 4096, b"ReIsEr2Fs"))], "reiserfs"),
    ("GFS2", [(65536, struct.pack(">II16xII", 0x01161970, 1, 1801, 1900))], "gfs2"),
    ("OCFS2", [(8192, b"OCFSV2")], "ocfs2"),
]
"""Images complete enough for libblkid, which also wants sizes and checksums, and the type it then names."""


@pytest.mark.parametrize(("name", "pieces", "libblkid_type"), PROBED)
def test_libblkid_sees_the_same_on_the_same_image(
    name: str,
    pieces: list[tuple[int, bytes]],
    libblkid_type: str,
    tmp_path: Path,
    tool: Callable[[str], str],
    run: Callable[..., str],
) -> None:
    path = tmp_path / "image"
    image = Image(PROBED_BYTES)
    with path.open("wb") as file:
        file.truncate(PROBED_BYTES)
        for offset, content in pieces:
            image.put(offset, content)
            file.seek(offset)
            file.write(content)

    assert image.found() == [name]
    probed = run(tool("wipefs"), "--no-act", "--parsable", path)
    assert libblkid_type in {line.split(",")[3] for line in probed.splitlines() if not line.startswith("#")}
