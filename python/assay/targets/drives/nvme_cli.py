"""What nvme-cli says of a drive in JSON, of its versions 1.9 to 3.0.

Fields: NVM Express Base Specification, Identify and SMART / Health Information; nvme-cli's nvme-print-json.c; the
OCP Datacenter NVMe SSD Specification, SMART / Health Information Extended (log page C0h).
"""

from __future__ import annotations

from assay.record.drives import Drive, DriveError, DriveFormat, DriveHealth
from assay.targets.drives.numbers import (
    KELVIN,
    Document,
    bytes_of,
    celsius_of,
    count_of,
    object_at,
    objects_at,
    percent_of,
    words_of,
)

DATA_UNIT_BYTES = 512_000
"""A data unit of the SMART log is a thousand blocks of 512 bytes."""
WARNINGS = (
    "spare below its threshold",
    "temperature out of bounds",
    "reliability degraded",
    "read-only",
    "backup of its volatile memory failed",
    "persistent memory region unreliable",
)
"""Bits of the critical warning, from the lowest on."""
ERRORS_MAX = 16
FORMATS_MAX = 64
_NO_CAPACITOR = 0xFFFF
_STATUS = {
    0x001: "invalid opcode", 0x002: "invalid field", 0x004: "data transfer error", 0x005: "aborted at a power loss",
    0x006: "internal error", 0x007: "aborted as asked", 0x080: "block out of range", 0x109: "invalid log page",
    0x280: "write fault", 0x281: "unrecovered read error", 0x282: "guard check failed",
    0x283: "application tag check failed", 0x284: "reference tag check failed", 0x286: "access denied",
}  # fmt: skip
"""Status code types and codes, as the specification names them."""


def warnings_of(bits: object) -> list[str] | None:
    """Bits of the critical warning in words; nvme-cli puts them in an object where it is verbose."""
    value = count_of(object_at(bits).get("value") if isinstance(bits, dict) else bits)
    return None if value is None else [text for bit, text in enumerate(WARNINGS) if value >> bit & 1]


def health(told: Document) -> DriveHealth | None:
    """What `nvme smart-log` says; None where it is another document."""
    warnings = warnings_of(told.get("critical_warning"))
    if warnings is None:
        return None
    found = DriveHealth(
        temperature_celsius=celsius_of(told.get("temperature"), KELVIN),
        critical_warnings=warnings,
        wear_share=percent_of(told.get("percent_used")),
        spare_share=percent_of(told.get("avail_spare")),
        spare_threshold_share=percent_of(told.get("spare_thresh")),
        media_errors=count_of(told.get("media_errors")),
        error_log_entries=count_of(told.get("num_err_log_entries")),
        unsafe_shutdowns=count_of(told.get("unsafe_shutdowns")),
        power_on_s=_seconds([told.get("power_on_hours")], 3600),
        host_read_bytes=bytes_of(told.get("data_units_read"), DATA_UNIT_BYTES),
        host_written_bytes=bytes_of(told.get("data_units_written"), DATA_UNIT_BYTES),
        throttled_s=_seconds([told.get("thm_temp1_total_time"), told.get("thm_temp2_total_time")], 1),
        hot_s=_seconds([told.get("warning_temp_time"), told.get("critical_comp_time")], 60),
    )
    starts = [count_of(told.get(f"thm_temp{number}_trans_count")) for number in (1, 2)]
    known = [one for one in starts if one is not None]
    return {**found, "throttles": sum(known) if known else None}


def _seconds(values: list[object], unit_s: int) -> float | None:
    known = [count for value in values if (count := count_of(value)) is not None]
    return float(sum(known) * unit_s) if known else None


def identity(told: Document) -> Drive | None:
    """What `nvme id-ctrl` says, without a name; None where it is another document."""
    if count_of(told.get("vid")) is None:
        return None
    cache = count_of(told.get("vwc"))
    return Drive(
        name="",
        model=words_of(told.get("mn")),
        firmware=words_of(told.get("fr")),
        warning_celsius=celsius_of(told.get("wctemp"), KELVIN),
        critical_celsius=celsius_of(told.get("cctemp"), KELVIN),
        volatile_write_cache=None if cache is None else bool(cache & 1),
        # A drive without a volatile cache keeps what it acknowledged; one with it does not say whether it is protected.
        power_loss_protection=True if cache is not None and not cache & 1 else None,
    )


def lists_log_pages(told: Document) -> bool:
    """Whether a drive says which log pages it has (`nvme id-ctrl`, LPA bit 5)."""
    return bool((count_of(told.get("lpa")) or 0) & 0x20)


def has_ocp_log(told: Document) -> bool:
    """Whether `nvme supported-log-pages` lists the log page of OCP: to ask others for it logs an error there."""
    return any(key.strip() == "lid_0xc0" for one in objects_at(told, "supported_logs", 256) for key in one)


def formats(told: Document) -> list[DriveFormat]:
    """Formats of a namespace (`nvme id-ns`); blocks of 512 bytes to 64 KiB."""
    chosen = count_of(told.get("flbas")) or 0
    in_use = chosen & 0xF | (chosen >> 5 & 0x3) << 4
    found = []
    for number, one in enumerate(objects_at(told, "lbafs", FORMATS_MAX)):
        power = count_of(one.get("ds"))
        if power is not None and 9 <= power <= 16:
            metadata = count_of(one.get("ms"))
            found.append(DriveFormat(block_bytes=1 << power, metadata_bytes=metadata, in_use=number == in_use))
    return found


def power_fail_bytes(controller: Document, namespace: Document) -> int | None:
    """Bytes that are written wholly or not at all at a power cut: NAWUPF where the namespace has it, else AWUPF."""
    block = next((one.get("block_bytes") for one in formats(namespace) if one.get("in_use")), None)
    own = count_of(namespace.get("nawupf")) if (count_of(namespace.get("nsfeat")) or 0) & 0x2 else None
    blocks = own or count_of(controller.get("awupf"))
    # Both are counted from 0.
    return None if block is None or blocks is None or blocks > 0xFFFF else (blocks + 1) * block


def ocp_health(told: Document) -> DriveHealth | None:
    """What `nvme ocp smart-add-log` says, with the keys of nvme-cli 2 or 3; None where it is another document."""
    written = told.get("Physical media units written", told.get("physical_media_units_written"))
    if not isinstance(written, dict):
        return None
    low, high = count_of(written.get("lo")), count_of(written.get("hi"))
    capacitor = count_of(told.get("Capacitor health", told.get("capacitor_health")))
    return DriveHealth(
        nand_written_bytes=low if high == 0 else None,
        capacitor_share=None if capacitor is None or capacitor >= _NO_CAPACITOR else min(capacitor, 1000) / 100,
    )


def errors(told: Document) -> list[DriveError]:
    """Entries of `nvme error-log`, newest first."""
    found = []
    for one in objects_at(told, "errors", ERRORS_MAX):
        if number := count_of(one.get("error_count")):
            code = (count_of(one.get("status_field")) or 0) & 0x7FF
            lba = count_of(one.get("lba"))
            found.append(DriveError(number=number, status=_STATUS.get(code, f"status {code:#05x}"), lba=lba))
    return found
