"""The shape of what a run keeps of its drives (docs/results.md, Drives)."""

from __future__ import annotations

from typing import Required

from typing_extensions import TypedDict

from assay.record.shapes.terms import Flag, MaybeAmount, MaybeCount, MaybeNumber, PointId, Text, Texts


class DriveHealth(TypedDict, total=False):
    """What a drive says of itself at one moment; what it does not say is missing.

    Attributes
    ----------
    throttled_s, throttles
        Time in which the drive held its power back to cool down, and how often it began to.
    hot_s
        Time above its warning temperature, counted by the drive in minutes.
    link_errors
        Errors of the SATA link (CRC): a cable, not the medium.
    """

    utc_ns: MaybeCount
    temperature_celsius: MaybeNumber
    critical_warnings: Texts
    wear_share: MaybeAmount
    spare_share: MaybeAmount
    spare_threshold_share: MaybeAmount
    media_errors: MaybeCount
    reallocated_sectors: MaybeCount
    error_log_entries: MaybeCount
    link_errors: MaybeCount
    unsafe_shutdowns: MaybeCount
    power_on_s: MaybeAmount
    host_read_bytes: MaybeCount
    host_written_bytes: MaybeCount
    nand_written_bytes: MaybeCount
    capacitor_share: MaybeAmount
    throttled_s: MaybeAmount
    throttles: MaybeCount
    hot_s: MaybeAmount


class DriveLink(TypedDict, total=False):
    """The link to a drive as it runs, and as fast and wide as the drive can; lanes are those of PCIe."""

    transfers_per_s: MaybeAmount
    transfers_per_s_max: MaybeAmount
    lanes: MaybeCount
    lanes_max: MaybeCount


class DriveAtomicWrites(TypedDict, total=False):
    """How much a drive writes wholly or not at all.

    Attributes
    ----------
    unit_min_bytes, unit_max_bytes, max_bytes, boundary_bytes
        What the kernel offers to programs (ABI/stable/sysfs-block, queue/atomic_write_*).
    power_fail_bytes
        What the drive keeps at a power cut (NVMe, AWUPF and NAWUPF).
    """

    unit_min_bytes: MaybeCount
    unit_max_bytes: MaybeCount
    max_bytes: MaybeCount
    boundary_bytes: MaybeCount
    power_fail_bytes: MaybeCount


class DriveFormat(TypedDict, total=False):
    """A format of a namespace: bytes of a block, and of the metadata beside each."""

    block_bytes: MaybeCount
    metadata_bytes: MaybeCount
    in_use: Flag


class DriveError(TypedDict, total=False):
    """An entry of a drive's error log: its number since the drive was made, and its status in words."""

    number: MaybeCount
    status: Text
    lba: MaybeCount


class Drive(TypedDict, total=False):
    """A drive beneath the target.

    Attributes
    ----------
    told_by
        Program that read its health; the kernel alone knows the temperature.
    unread
        Why its health is not known.
    resets, io_errors, kernel_lines
        Resets and time-outs, and I/Os that failed, in the kernel's log while the run went on; the first of its lines.
    points_watched, points_throttled, points_hot
        Points during which it was looked at; those of them in which it throttled, and in which it was above its warning
        temperature.
    """

    name: Required[str]
    transport: Text
    model: Text
    firmware: Text
    told_by: Text
    unread: Text
    volatile_write_cache: Flag
    power_loss_protection: Flag
    formats: list[DriveFormat] | None
    warning_celsius: MaybeNumber
    critical_celsius: MaybeNumber
    link: DriveLink | None
    atomic_writes: DriveAtomicWrites | None
    before: DriveHealth | None
    after: DriveHealth | None
    errors: list[DriveError] | None
    resets: MaybeCount
    io_errors: MaybeCount
    kernel_lines: Texts
    temperature_max_celsius: MaybeNumber
    points_watched: list[PointId] | None
    points_throttled: list[PointId] | None
    points_hot: list[PointId] | None
