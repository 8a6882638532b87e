"""What smartctl says of a drive in JSON (smartmontools 7.0 and later), of NVMe, SATA and SAS.

Attributes of SATA are matched by the names of smartmontools' database: numbers mean different things at each vendor.
"""

from __future__ import annotations

from typing import cast

from assay.record.drives import Drive, DriveError, DriveFormat, DriveHealth, DriveLink
from assay.targets.drives import nvme_cli
from assay.targets.drives.numbers import (
    Document,
    bytes_of,
    celsius_of,
    count_of,
    object_at,
    objects_at,
    percent_of,
    words_of,
)

ATTRIBUTES_MAX = 128
_NVME = "nvme_smart_health_information_log"
_WEAR = (
    "Percent_Lifetime_Remain", "Media_Wearout_Indicator", "Wear_Leveling_Count", "SSD_Life_Left",
    "Remaining_Lifetime_Perc", "Percent_Life_Remaining",
)  # fmt: skip
"""Attributes whose normalised value begins at 100 and falls to 0 as the flash wears."""
_MEDIA_ERRORS = ("Reported_Uncorrect", "Uncorrectable_Error_Cnt", "Offline_Uncorrectable", "Current_Pending_Sector")
_UNSAFE = ("Unsafe_Shutdown_Count", "Unexpect_Power_Loss_Ct", "POR_Recovery_Count")
_LINK_ERRORS = ("UDMA_CRC_Error_Count", "CRC_Error_Count")
_HOST_WRITTEN = {
    "Total_LBAs_Written": 512,
    "Total_Host_Sector_Write": 512,
    "Host_Writes_32MiB": 32 << 20,
    "Host_Writes_GiB": 1 << 30,
}
_NAND_WRITTEN = {"NAND_Writes_32MiB": 32 << 20, "NAND_Writes_1GiB": 1 << 30, "NAND_Writes_GiB": 1 << 30}
_HOST_PAGES, _OWN_PAGES = "Host_Program_Page_Count", ("FTL_Program_Page_Count", "Bckgnd_Program_Page_Cnt")
"""Attributes 247 and 248 of Micron's drives: pages of flash programmed for the host, and for the drive itself."""
_HOST_READ = {"Total_LBAs_Read": 512, "Host_Reads_32MiB": 32 << 20, "Host_Reads_GiB": 1 << 30}


def health(told: Document) -> DriveHealth | None:
    """Health of a drive; None where smartctl could not read it."""
    own = told.get(_NVME)
    if isinstance(own, dict):
        return _of_nvme(cast(Document, own))
    attributes = _attributes(told)
    status = object_at(told, "smart_status").get("passed")
    temperature = celsius_of(object_at(told, "temperature").get("current"))
    if not attributes and not isinstance(status, bool) and temperature is None:
        return None
    written = _moved(attributes, _HOST_WRITTEN)
    reallocated = [_raw(attributes, "Reallocated_Sector_Ct"), count_of(told.get("scsi_grown_defect_list"))]
    failing = [f"{name} is at its threshold" for name, one in attributes.items() if one.get("when_failed") == "now"]
    found = DriveHealth(
        temperature_celsius=temperature,
        critical_warnings=["it says that it fails", *failing] if status is False else failing,
        wear_share=_wear(told, attributes),
        spare_share=percent_of(object_at(told, "spare_available").get("current_percent")),
        spare_threshold_share=percent_of(object_at(told, "spare_available").get("threshold_percent")),
        media_errors=_most([_raw(attributes, name) for name in _MEDIA_ERRORS] + _uncorrected(told)),
        reallocated_sectors=_most(reallocated),
        error_log_entries=_logged(told),
        link_errors=_most([_raw(attributes, name) for name in _LINK_ERRORS]),
        unsafe_shutdowns=_most([_raw(attributes, name) for name in _UNSAFE]),
        host_read_bytes=_moved(attributes, _HOST_READ),
        host_written_bytes=written,
        nand_written_bytes=_on_flash(attributes, written),
    )
    hours = count_of(object_at(told, "power_on_time").get("hours"))
    return {**found, "power_on_s": None if hours is None else hours * 3600.0}


def _of_nvme(log: Document) -> DriveHealth | None:
    """The log of NVMe, whose fields smartctl names as the specification does; temperatures are in Celsius."""
    names = {
        "percent_used": "percentage_used",
        "avail_spare": "available_spare",
        "spare_thresh": "available_spare_threshold",
    }
    found = nvme_cli.health({**log, **{name: log.get(own) for name, own in names.items()}})
    return None if found is None else {**found, "temperature_celsius": celsius_of(log.get("temperature"))}


def identity(told: Document) -> Drive:
    """Model, firmware, temperatures it bears, cache, formats and link."""
    limits = object_at(told, "nvme_composite_temperature_threshold")
    temperature = object_at(told, "temperature")
    cache = object_at(told, "write_cache").get("enabled")
    warning = limits.get("warning", temperature.get("op_limit_max"))
    critical = limits.get("critical", temperature.get("critical_limit_max", temperature.get("drive_trip")))
    return Drive(
        name="",
        model=words_of(told.get("model_name", told.get("scsi_model_name"))),
        firmware=words_of(told.get("firmware_version", told.get("scsi_revision"))),
        warning_celsius=celsius_of(warning),
        critical_celsius=celsius_of(critical),
        volatile_write_cache=cache if isinstance(cache, bool) else None,
        formats=_formats(told) or None,
        link=_link(told),
    )


def _formats(told: Document) -> list[DriveFormat]:
    found = []
    for space in objects_at(told, "nvme_namespaces", 1):
        for one in objects_at(space, "lba_formats", nvme_cli.FORMATS_MAX):
            block = count_of(one.get("data_bytes"))
            if block is not None:
                in_use = one.get("formatted") is True
                metadata = count_of(one.get("metadata_bytes"))
                found.append(DriveFormat(block_bytes=block, metadata_bytes=metadata, in_use=in_use))
    return found


def _link(told: Document) -> DriveLink | None:
    """Speed of a SATA link, whose bits a second are its transfers."""
    speeds = []
    for key in ("current", "max"):
        one = object_at(told, "interface_speed", key)
        units, bits = count_of(one.get("units_per_second")), count_of(one.get("bits_per_unit"))
        speeds.append(float(units * bits) if units and bits and units * bits <= 10**12 else None)
    return DriveLink(transfers_per_s=speeds[0], transfers_per_s_max=speeds[1]) if any(speeds) else None


def errors(told: Document) -> list[DriveError]:
    """Entries of the error log of NVMe, newest first."""
    found = []
    for one in objects_at(object_at(told, "nvme_error_information_log"), "table", nvme_cli.ERRORS_MAX):
        if number := count_of(one.get("error_count")):
            status = words_of(object_at(one, "status_field").get("string"))
            found.append(DriveError(number=number, status=status, lba=count_of(object_at(one, "lba").get("value"))))
    return found


def reason(told: Document) -> str | None:
    """Why smartctl could not read a drive, in its own words."""
    for one in objects_at(object_at(told, "smartctl"), "messages", 4):
        if words := words_of(one.get("string")):
            return words
    return None


def _attributes(told: Document) -> dict[str, Document]:
    listed = objects_at(object_at(told, "ata_smart_attributes"), "table", ATTRIBUTES_MAX)
    return {name: one for one in listed if (name := words_of(one.get("name"))) is not None}


def _raw(attributes: dict[str, Document], name: str) -> int | None:
    return count_of(object_at(attributes.get(name), "raw").get("value"))


def _most(values: list[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _wear(told: Document, attributes: dict[str, Document]) -> float | None:
    """Wear as the drive tells it itself, else from the first attribute that has it."""
    for value in (
        object_at(told, "endurance_used").get("current_percent"),
        told.get("scsi_percentage_used_endurance_indicator"),
    ):
        if (share := percent_of(value)) is not None:
            return share
    for name in _WEAR:
        left = count_of(object_at(attributes.get(name)).get("value"))
        if left is not None and left <= 100:
            return (100 - left) / 100
    return None


def _logged(told: Document) -> int | None:
    log = object_at(told, "ata_smart_error_log")
    return _most([count_of(object_at(log, kind).get("count")) for kind in ("summary", "extended")])


def _uncorrected(told: Document) -> list[int | None]:
    """Errors of SAS that were not corrected."""
    log = object_at(told, "scsi_error_counter_log")
    return [count_of(object_at(log, side).get("total_uncorrected_errors")) for side in ("read", "write")]


def _on_flash(attributes: dict[str, Document], written_bytes: int | None) -> int | None:
    """Bytes written to flash: those that the drive counts, or else those of the host and its own pages beside them.

    The second are the host's times 1 + own pages / host pages (Micron, TN-FD-23, Calculating Write Amplification
    Factor): a page of the host always holds as many of its bytes.
    """
    counted = _moved(attributes, _NAND_WRITTEN)
    host, own = _raw(attributes, _HOST_PAGES), _most([_raw(attributes, name) for name in _OWN_PAGES])
    if counted is not None or not host or own is None or written_bytes is None:
        return counted
    return written_bytes * (host + own) // host


def _moved(attributes: dict[str, Document], units: dict[str, int]) -> int | None:
    for name, unit in units.items():
        raw = object_at(attributes.get(name), "raw").get("value")
        if (found := bytes_of(raw, unit)) is not None:
            return found
    return None
