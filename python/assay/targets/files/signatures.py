"""Recognising what others put on a device: file systems, partition tables, RAID, volume managers, encryption, ASM.

Offsets and magics follow the formats' own definitions: the UEFI specification (GPT), SNIA DDF 2.0, the kernel's
headers (`linux/magic.h`, `linux/raid/md_p.h`, `linux/btrfs_tree.h`, `linux/bcache`), the LUKS2 and ZFS on-disk format
specifications, and were checked against the probers of libblkid (util-linux). A magic is enough here, checksums are
not verified: a damaged superblock may still hold data of value, and a false alarm costs one more option.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

ReadAt = Callable[[int, int], bytes]
"""`read_at(offset_bytes, length_bytes)`; short, or empty, at and past the end."""

_KIB = 1024
_MIB = 1024**2
_GIB = 1024**3

_GPT, _MBR = "GPT partition table", "MBR partition table or boot sector"

_BOOT_SECTOR_FILE_SYSTEMS = frozenset({"NTFS", "exFAT", "FAT", "BitLocker"})
"""These end their first sector with the bytes of an MBR without being a partition table."""

_FROM_START: tuple[tuple[str, int, bytes], ...] = (
    ("ext2/ext3/ext4", 1024 + 56, b"\x53\xef"),
    ("XFS", 0, b"XFSB"),
    ("btrfs", 64 * _KIB + 64, b"_BHRfS_M"),
    ("btrfs", 64 * _MIB + 64, b"_BHRfS_M"),
    ("btrfs", 256 * _GIB + 64, b"_BHRfS_M"),
    ("F2FS", 1024, b"\x10\x20\xf5\xf2"),
    ("F2FS", 4096 + 1024, b"\x10\x20\xf5\xf2"),
    *(
        ("swap", page_bytes - 10, magic)
        for page_bytes in (4096, 8192, 16384, 32768, 65536)
        for magic in (b"SWAPSPACE2", b"SWAP-SPACE", b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001")
    ),
    ("LUKS1", 0, b"LUKS\xba\xbe\x00\x01"),
    ("LUKS2", 0, b"LUKS\xba\xbe\x00\x02"),
    *(("LUKS2 (secondary header)", 0x4000 << shift, b"SKUL\xba\xbe") for shift in range(9)),
    *(("LVM2 physical volume", sector * 512, b"LABELONE") for sector in range(4)),
    ("LVM1 physical volume", 0, b"HM\x01\x00"),
    ("LVM1 physical volume", 0, b"HM\x02\x00"),
    ("md RAID 1.1", 0, b"\xfc\x4e\x2b\xa9\x01\x00\x00\x00"),
    ("md RAID 1.2", 4096, b"\xfc\x4e\x2b\xa9\x01\x00\x00\x00"),
    ("NTFS", 3, b"NTFS    "),
    ("exFAT", 3, b"EXFAT   "),
    ("exFAT", 12 * 512 + 3, b"EXFAT   "),  # the backup boot region
    ("FAT", 0x52, b"FAT32   "),
    ("FAT", 0x52, b"MSWIN"),
    ("FAT", 0x36, b"FAT12   "),
    ("FAT", 0x36, b"FAT16   "),
    ("FAT", 0x36, b"FAT     "),
    ("FAT", 0x36, b"MSDOS"),
    ("BitLocker", 3, b"-FVE-FS-"),
    ("ReFS", 0, b"\x00\x00\x00ReFS\x00"),
    ("ISO 9660", 32 * _KIB + 1, b"CD001"),
    ("UDF", 32 * _KIB + 1, b"BEA01"),
    *(("UDF", 32 * _KIB + 1 + 2048 * block, b"NSR0") for block in range(1, 8)),
    ("Oracle ASM", 32, b"ORCLDISK"),
    # ASM repeats its header in the last block but one of allocation unit 1, whose size is 1 to 64 MiB.
    *(("Oracle ASM", (2 * _MIB << shift) - 2 * 4096 + 32, b"ORCLDISK") for shift in range(7)),
    ("bcache", 4096 + 24, bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")),
    ("bcachefs", 4096 + 24, bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")),
    ("Ceph BlueStore", 0, b"bluestore block device"),
    ("VMFS", _MIB, b"\x0d\xd0\x01\xc0"),
    ("VMFS", 2 * _MIB, b"\x5e\xf1\xab\x2f"),
    ("VMFS", 2 * _MIB, b"\x5f\xf1\xab\x2f"),
    ("SquashFS", 0, b"hsqs"),
    ("SquashFS", 0, b"sqsh"),
    ("JFS", 32 * _KIB, b"JFS1"),
    ("JFS", 60 * _KIB, b"JFS1"),  # the secondary superblock
    ("ReiserFS", 64 * _KIB + 52, b"ReIsEr2Fs"),
    ("ReiserFS", 64 * _KIB + 52, b"ReIsEr3Fs"),
    ("ReiserFS", 64 * _KIB + 52, b"ReIsErFs"),
    ("ReiserFS", 8 * _KIB + 52, b"ReIsErFs"),
    ("ReiserFS", 8 * _KIB + 20, b"ReIsErFs"),
    ("Reiser4", 64 * _KIB, b"ReIsEr4"),
    ("GFS2", 64 * _KIB, b"\x01\x16\x19\x70"),
    *(("OCFS2", _KIB << shift, b"OCFSV2") for shift in range(4)),
    ("OCFS", 8 * _KIB, b"OracleCFS"),
    ("NILFS2", 1024 + 6, b"\x34\x34"),
    ("HFS+", 1024, b"H+\x00\x04"),
    ("HFS+", 1024, b"HX\x00\x05"),
    ("APFS", 32, b"NXSB"),
    ("EROFS", 1024, b"\xe2\xe1\xf5\xe0"),
    ("VxFS", 1024, b"\xf5\xfc\x01\xa5"),
    ("Stratis", 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    ("Stratis", 9 * 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    ("VDO", 0, b"dmvdo001"),
    ("device-mapper snapshot", 0, b"SnAp"),
    ("dm-verity hash", 0, b"verity\x00\x00"),
)
"""Name, offset from the start in bytes, and the bytes that stand there."""

_DRBD_MAGIC = 0x83740267
_DRBD_MAGICS = frozenset(struct.pack(">I", _DRBD_MAGIC + version) for version in (3, 4, 5, 6))
"""Meta-data of DRBD 0.7, 8, 8.4 unclean, 9 (`drbd_meta_data.h`)."""

_ZFS_LABEL_BYTES = 256 * _KIB
_ZFS_UBERBLOCK_MAGICS = (struct.pack("<Q", 0x00BAB10C), struct.pack(">Q", 0x00BAB10C))
_ZFS_NVLIST_HEADS = (b"\x01\x01" + b"\x00" * 9 + b"\x01", b"\x01\x00" + b"\x00" * 9 + b"\x01")
"""XDR encoding, endianness of the writer, two reserved bytes, version 0, flag "unique names" (libnvpair)."""


def find_signatures(read_at: ReadAt, size_bytes: int) -> list[str]:
    """Names of everything recognised on a device or image, read at both ends.

    Parameters
    ----------
    read_at
        Reads bytes at an offset; gives fewer than asked at the end.
    size_bytes
        Size of the whole device.

    Returns
    -------
    list of str
        Each name once; empty if nothing is recognised, which does not mean that nothing is there.

    Examples
    --------
    >>> image = bytearray(1 << 20)
    >>> image[0:4] = b"XFSB"
    >>> find_signatures(lambda offset, length: bytes(image[offset:offset + length]), len(image))
    ['XFS']
    """

    def read(offset: int, length: int) -> bytes:
        return read_at(offset, length) if 0 <= offset < size_bytes else b""

    # Most magics lie in the first KiBs: one read serves them instead of some sixty.
    head = read(0, 128 * _KIB)

    def holds(offset: int, magic: bytes) -> bool:
        if offset + len(magic) <= len(head):
            return head.startswith(magic, offset)
        return read(offset, len(magic)) == magic

    found = [name for name, offset, magic in _FROM_START if holds(offset, magic)]
    found += [name for name, offset, magics in _from_end(size_bytes) if _starts_with_any(read, offset, magics)]
    if _has_zfs_label(read, size_bytes):
        found.append("ZFS pool member")
    found += _partition_tables(head, read, size_bytes, set(found))
    return list(dict.fromkeys(found))


def _starts_with_any(read: ReadAt, offset: int, magics: tuple[bytes, ...]) -> bool:
    return read(offset, max(map(len, magics))).startswith(magics)


def _from_end(size_bytes: int) -> Iterator[tuple[str, int, tuple[bytes, ...]]]:
    """Name, absolute offset and possible magics of what is anchored to the end of a device."""

    def aligned(unit_bytes: int) -> int:
        return size_bytes // unit_bytes * unit_bytes

    md_magics = b"\xfc\x4e\x2b\xa9", b"\xa9\x2b\x4e\xfc"  # 0xa92b4efc; 0.90 is in the byte order of its host
    yield "md RAID 0.90", aligned(64 * _KIB) - 64 * _KIB, md_magics
    yield "md RAID 1.0", aligned(4 * _KIB) - 8 * _KIB, (b"\xfc\x4e\x2b\xa9\x01\x00\x00\x00",)
    for sector_bytes in (512, 4096):
        last = aligned(sector_bytes) - sector_bytes
        for sectors_before in (0, 256):  # the anchor header and the secondary header
            yield "DDF RAID", last - sectors_before * sector_bytes, (b"\xde\x11\xde\x11", b"\x11\xde\x11\xde")
        yield "Intel IMSM RAID", last - sector_bytes, (b"Intel Raid ISM Cfg Sig. ",)
    last = aligned(512) - 512
    yield "LSI MegaRAID", last, (b"$XIDE$",)
    yield "NVIDIA RAID", last - 512, (b"NVIDIA",)
    yield "NTFS", last + 3, (b"NTFS    ",)  # the backup boot sector
    yield "NILFS2", last - 7 * 512 + 6, (b"\x34\x34",)
    drbd_magics = tuple(sorted(_DRBD_MAGICS))
    for reserved_bytes in (4 * _KIB, 128 * _MIB):  # DRBD 8 and later, DRBD 0.7
        yield "DRBD", aligned(4 * _KIB) - reserved_bytes + 60, drbd_magics


def _has_zfs_label(read: ReadAt, size_bytes: int) -> bool:
    """Look for any of the four labels: a list of the vdev at 16 KiB, then from 128 KiB a ring of uberblocks."""
    end = size_bytes // _ZFS_LABEL_BYTES * _ZFS_LABEL_BYTES
    for label in {0, _ZFS_LABEL_BYTES, end - 2 * _ZFS_LABEL_BYTES, end - _ZFS_LABEL_BYTES}:
        if _starts_with_any(read, label + 16 * _KIB, _ZFS_NVLIST_HEADS):
            return True
        ring = read(label + 128 * _KIB, 128 * _KIB)
        if any(ring.startswith(_ZFS_UBERBLOCK_MAGICS, slot) for slot in range(0, len(ring), _KIB)):
            return True
    return False


def _partition_tables(head: bytes, read: ReadAt, size_bytes: int, found: set[str]) -> list[str]:
    """GPT at either end, for either sector size, and an MBR that is not merely a file system's boot sector."""
    tables = []
    for sector_bytes in (512, 4096):
        last = size_bytes // sector_bytes * sector_bytes - sector_bytes
        if head.startswith(b"EFI PART", sector_bytes) or read(last, 8) == b"EFI PART":
            tables.append(_GPT)
    is_protective = len(head) > 450 and head[450] == 0xEE
    if head[510:512] == b"\x55\xaa" and not found & _BOOT_SECTOR_FILE_SYSTEMS and not (tables and is_protective):
        tables.append(_MBR)
    return tables
