"""Settings of embedded servers: presets, and what disks read ahead while a database is open."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.base.errors import NotSupported, UsageError
from assay.targets.databases.common.read_ahead import ReadAhead
from assay.targets.databases.common.spec import parse_database, parse_databases
from assay.targets.databases.embedded.tuning import GIB, preset_settings, tuned_settings


def test_a_preset_gives_settings_and_those_that_are_given_win() -> None:
    spec = parse_database("embedded:/db?preset=scans&set.work_mem=8MB&set.shared_buffers=2GB", {})
    chosen = preset_settings(spec.preset, 18)[0] | spec.settings
    settings = tuned_settings(16 * GIB, 500 * GIB, chosen=chosen)

    assert (settings["io_combine_limit"], settings["work_mem"]) == ("1MB", "8MB")
    # Nothing that is scanned stays in the system's cache.
    assert settings["effective_cache_size"] == settings["shared_buffers"] == "2GB"


def test_databases_on_an_array_take_presets_too() -> None:
    (one, other) = parse_databases(
        ["embedded+array:ps6100xv?volumes=data:2,log:2&databases=2&preset=scans&read_ahead=4MiB"]
    )

    assert {one.preset, other.preset} == {"scans"}
    assert one.read_ahead_bytes == 4 << 20
    assert "preset=scans" in one.kept
    assert one.array is not None
    assert "preset" not in one.array.text


@pytest.mark.parametrize(
    ("option", "said"),
    [("preset=scan", "accepted: scans"), ("read_ahead=many", "'many' is not a quantity"), ("preset=", "needs a value")],
)
def test_what_no_server_has_is_refused(option: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_database(f"embedded:/db?{option}", {})


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    for name in ("sda", "sda/sda1", "dm-0"):
        (tmp_path / "devices" / name).mkdir(parents=True)
    for name in ("sda", "dm-0"):
        (tmp_path / "devices" / name / "queue").mkdir()
        (tmp_path / "devices" / name / "queue/read_ahead_kb").write_text("128\n")
    shown = tmp_path / "class"
    shown.mkdir()
    for name in ("sda", "sda/sda1", "dm-0"):
        (shown / Path(name).name).symlink_to(tmp_path / "devices" / name)
    return shown


def test_disks_read_ahead_as_asked_and_then_as_before(disks: Path) -> None:
    value = disks / "sda/queue/read_ahead_kb"
    ahead = ReadAhead(disks)

    told = ahead.set(["sda1"], 4 << 20, "embedded:/db")

    assert (value.read_text(), told) == (
        "4096", ["sda1 reads 4 MiB ahead while the run is on its database, not 128 KiB"],
    )  # fmt: skip
    # A server that starts again changes nothing, and is not told of twice.
    assert ahead.set(["sda1"], 4 << 20, "embedded:/db") == []
    ahead.restore()
    assert value.read_text() == "128"


@pytest.mark.parametrize(("devices", "said"), [([], "no disk is known"), (["nosuch"], "no read-ahead that can be set")])
def test_a_disk_without_read_ahead_is_named(disks: Path, devices: list[str], said: str) -> None:
    with pytest.raises(NotSupported, match=said):
        ReadAhead(disks).set(devices, 1 << 20, "embedded:/db")
