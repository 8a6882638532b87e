"""The identity of a file across mounts of its file system."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.targets.files.hold import FileIdentity, serial_of

THEN = FileIdentity(device="0:42", boot="b", inode=7)
NOW = replace(THEN, device="0:43")


def test_a_file_that_is_only_read_stays_itself_when_its_file_system_is_mounted_again() -> None:
    assert NOW.difference(THEN.to_dict(), permitted=True) is None


def test_a_file_of_which_only_the_inode_is_known_may_be_another() -> None:
    assert NOW.difference(THEN.to_dict()) == "device number 0:42 then, 0:43 now"


@pytest.mark.parametrize("known", [{"birth_ns": 5}, {"mark": "m"}])
def test_a_mark_or_time_of_birth_tells_that_it_is_the_same(known: dict[str, int | str]) -> None:
    then, now = (replace(identity, **known) for identity in (THEN, NOW))  # type: ignore[arg-type]

    assert now.difference(then.to_dict()) is None
    assert replace(now, **dict.fromkeys(known, 9)).difference(then.to_dict()) is not None  # type: ignore[arg-type]


def test_a_disk_has_one_number_until_the_next_boot() -> None:
    then = replace(THEN, device="8:1", birth_ns=5)
    now = replace(then, device="8:17")

    assert now.difference(then.to_dict(), permitted=True) == "device number 8:1 then, 8:17 now"
    assert replace(now, boot="c").difference(then.to_dict()) is None


@pytest.mark.parametrize(
    ("page", "serial"),
    [
        (b"\x00\x80\x00\x04SCSI", "SCSI"),
        # A length that is a letter itself, and blanks to fill the field.
        (b"\x00\x80\x00\x29" + b"WD-WX31".rjust(41), "WD-WX31"),
        (b"\x00\x80\x00\x00", None),
        (b"\x00\x80", None),
    ],
)
def test_the_serial_number_of_a_scsi_disk_is_read_without_the_head_of_its_page(
    tmp_path: Path, page: bytes, serial: str | None
) -> None:
    (tmp_path / "device").mkdir()
    (tmp_path / "device" / "vpd_pg80").write_bytes(page)

    assert serial_of(tmp_path) == serial


def test_a_serial_number_in_words_comes_first(tmp_path: Path) -> None:
    (tmp_path / "serial").write_text("VB0\n")

    assert serial_of(tmp_path) == "VB0"
