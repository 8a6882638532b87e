"""Drives of a run: what is kept of each, in which points it throttled, and the sentences and tables that say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from pydantic import TypeAdapter

from assay.base.errors import NotAnswering, NotSupported
from assay.document.elements import Table
from assay.record.drive_health import notes_of, write_amplification
from assay.record.shapes.drive import Drive, DriveError, DriveHealth
from assay.record.shapes.point import Point
from assay.report.sections.drives import drive_blocks
from assay.run import drives
from assay.run.drives import DriveWatch
from assay.run.notices import notices_of
from assay.telemetry.collectors import drives as collecting
from assay.telemetry.collectors.drives import DrivesCollector

S = 10**9
Looks = list[DriveHealth | Exception]


def health(at_s: int, **told: Any) -> DriveHealth:
    return cast(
        DriveHealth, {"utc_ns": at_s * S, "temperature_celsius": 60.0, "throttles": 0, "throttled_s": 0.0} | told
    )


def point(number: int, from_s: float, to_s: float) -> Point:
    told = {"id": f"p{number:04}", "measured_from_utc_ns": round(from_s * S), "measured_to_utc_ns": round(to_s * S)}
    return cast(Point, told)


def watched(monkeypatch: pytest.MonkeyPatch, looks: Looks, drive: Drive | None = None) -> DriveWatch:
    """The watch of one drive that was looked at so often."""
    found = {"name": "nvme0n1", "model": "M", "warning_celsius": 80.0, "before": health(0), **(drive or {})}

    def looking(_: Drive, __: bool) -> DriveHealth:
        one = looks.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    def no_log(_: object) -> Any:
        raise NotSupported("/dev/kmsg cannot be read (Operation not permitted)")

    def beneath(devices: Sequence[str]) -> list[str]:
        return ["nvme0n1"] if [*devices] else []

    monkeypatch.setattr(drives, "drives_beneath", beneath)
    monkeypatch.setattr(collecting, "examine", lambda _, **__: found)
    monkeypatch.setattr(drives, "error_log", lambda _: [DriveError(number=3, status="unrecovered read error", lba=9)])
    watch = DriveWatch()
    watch.collector = DrivesCollector(every_s=0.0, log=no_log, looking=looking, starting=lambda work: work())
    watch.watch(["dm-0"])
    for _ in range(len(looks) - 1):
        watch.collector.sample()
    return watch


def concluded(watch: DriveWatch, *points: Point, earlier: Sequence[Drive] = ()) -> Drive:
    watch.facts(earlier)
    watch.conclude(points)
    (drive,) = watch.facts(earlier)
    TypeAdapter(Drive).validate_python(drive, strict=True)
    return drive


def test_a_drive_that_throttles_is_told_with_the_points_in_which_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: Looks = [
        health(10), health(20, temperature_celsius=81.0, throttles=1, throttled_s=2.0),
        health(30, throttles=1, throttled_s=2.0), health(40, throttles=1, throttled_s=2.0),
    ]  # fmt: skip
    drive = concluded(watched(monkeypatch, looks), point(1, 1, 9), point(2, 11, 19), point(3, 21, 39), point(4, 50, 60))
    assert drive["points_watched"] == ["p0001", "p0002", "p0003"]
    assert drive["points_throttled"] == drive["points_hot"] == ["p0002"]
    (note,) = notes_of([drive])
    assert note.text.startswith("nvme0n1 (M) was at up to 81 degrees and throttled in 1 of 3 points (p0002)")
    assert note in [(one.text, one.tone) for one in notices_of([], {"drives": [drive]})]


def test_a_drive_that_does_not_count_throttling_may_have_throttled_where_it_was_hot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hot: Looks = [DriveHealth(utc_ns=at * S, temperature_celsius=celsius) for at, celsius in ((10, 86.0), (20, 70.0))]
    watch = watched(monkeypatch, hot, {"name": "nvme0n1", "before": DriveHealth(utc_ns=0, temperature_celsius=40.0)})
    drive = concluded(watch, point(1, 1, 9), point(2, 11, 19))
    assert drive["points_throttled"] == []
    (note,) = notes_of([drive])
    assert "above its warning temperature of 80 in 1 of 2 points (p0001): it may have throttled" in note.text


def test_errors_that_came_during_the_run_are_told_and_those_before_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {"name": "nvme0n1", "before": health(0, media_errors=5, error_log_entries=2)}
    quiet = concluded(watched(monkeypatch, [health(9, media_errors=5, error_log_entries=2)], cast(Drive, before)))
    assert notes_of([quiet]) == []
    after = health(9, media_errors=6, error_log_entries=3, critical_warnings=["read-only"])
    noted = notes_of([concluded(watched(monkeypatch, [after], cast(Drive, before)))])
    assert [note.tone for note in noted] == ["bad", "warn", "bad"]
    assert "1 media error while it was measured" in noted[0].text
    assert "its error log grew by 1 while it was measured: unrecovered read error" in noted[1].text
    assert noted[2].text == "nvme0n1 (M) warns: read-only"


def test_what_cannot_be_seen_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = watched(monkeypatch, [NotAnswering("nvme has not answered within 5 s")])
    assert watch.notices == [
        "resets and failed I/Os of nvme0n1 are not seen: /dev/kmsg cannot be read (Operation not permitted)"
    ]
    watch.watch(["dm-0"])
    assert len(watch.notices) == 1
    assert not concluded(watch, point(1, 1, 9)).get("after")
    why = "smartctl is missing (apt-get install smartmontools)"
    unread: list[Drive] = [{"name": name, "unread": why} for name in ("sda", "sdb")]
    assert [note.text for note in notes_of(unread)] == [f"health of sda, sdb: not known, since {why}"]


def test_a_run_that_goes_on_keeps_what_its_drives_were_when_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    first = concluded(watched(monkeypatch, [health(10, throttles=1)]), point(1, 1, 9))
    again = {"name": "nvme0n1", "before": health(100, throttles=1)}
    second = watched(monkeypatch, [health(110, throttles=3)], cast(Drive, again))
    drive = concluded(second, point(1, 1, 9), point(2, 101, 109), earlier=[first])
    assert drive["before"] == health(0)
    assert drive["points_throttled"] == ["p0001", "p0002"]
    another = watched(monkeypatch, [health(110)], {"name": "nvme0n1", "model": "another"})
    assert concluded(another, point(2, 101, 109), earlier=[first])["points_throttled"] == []


@pytest.mark.parametrize(
    ("host", "flash", "said"),
    [((0, 100), (0, 250), (2.5, True)), ((400, 401), (800, 803), (803 / 401, False)), ((1, 2), (4, 8), None)],
)
def test_write_amplification_is_that_of_the_run_if_it_wrote_enough(
    host: tuple[int, int], flash: tuple[int, int], said: object
) -> None:
    told = [
        DriveHealth(host_written_bytes=host[at] * S, nand_written_bytes=flash[at] * S)  # type: ignore[misc]
        for at in (0, 1)
    ]
    assert write_amplification({"name": "a", "before": told[0], "after": told[1]}) == said


def test_tables_show_health_and_what_a_drive_is(monkeypatch: pytest.MonkeyPatch) -> None:
    del monkeypatch
    drive: Drive = {
        "name": "nvme0n1", "model": "M", "told_by": "nvme-cli", "volatile_write_cache": True,
        "link": {"transfers_per_s": 8e9, "transfers_per_s_max": 16e9, "lanes": 4, "lanes_max": 4},
        "before": health(0), "after": health(9, wear_share=0.83, critical_warnings=["read-only"]),
        "points_watched": ["p0001"], "points_throttled": ["p0001"], "temperature_max_celsius": 81.0,
        "formats": [{"block_bytes": 512, "in_use": True}, {"block_bytes": 4096, "in_use": False}],
        "atomic_writes": {"unit_max_bytes": 16384, "power_fail_bytes": 32768},
    }  # fmt: skip
    shown = {}
    for block in drive_blocks([drive, {"name": "sda"}]):
        assert isinstance(block, Table)
        assert [cell.text for cell in block.rows[1]] == ["sda", *["-"] * (len(block.columns) - 1)]
        shown |= {column.title: cell.text for column, cell in zip(block.columns, block.rows[0], strict=True)}
    assert shown["Temperature"] == "60 to 81 C"
    assert shown["Throttled in"] == "1 of 1 points"
    assert (shown["Wear"], shown["Warnings"], shown["Write cache"]) == ("83 %", "read-only", "volatile")
    assert shown["Link"] == "8 GT/s x4 of 16 GT/s x4"
    assert (shown["Block"], shown["Atomic"]) == ("512 B (of 2 formats)", "16 KiB / 32 KiB")
    assert drive_blocks([]) == []
