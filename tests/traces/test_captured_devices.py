"""The devices of a capture, on machines drawn as folders, and their places moved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from assay.base.errors import NotSupported, UsageError
from assay.record.rows import TextColumn
from assay.targets.kernel import Kernel
from assay.traces.capture.anonymise import EXTENT_BYTES, Anonymised
from assay.traces.capture.devices import CapturedDevice, bytes_counted, captured_devices
from assay.traces.ios import Ios


def disk(kernel: Kernel, name: str, number: str, *, sectors: int = 2048, takes_requests: bool = True) -> Path:
    folder = kernel.sys / "block" / name
    folder.mkdir(parents=True)
    (folder / "dev").write_text(number)
    (folder / "size").write_text(f"{sectors}\n")
    if takes_requests:
        (folder / "mq").mkdir()
    return folder


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(proc=tmp_path / "proc", sys=tmp_path / "sys")


def test_without_places_all_disks_are_captured_and_partitions_are_known(kernel: Kernel) -> None:
    folder = disk(kernel, "sda", "8:0")
    part = folder / "sda1"
    part.mkdir()
    (part / "dev").write_text("8:1")
    (part / "partition").write_text("1")
    disk(kernel, "nvme0n1", "259:3", sectors=16)
    disk(kernel, "empty", "11:0", sectors=0)
    disk(kernel, "pmem0", "252:0", takes_requests=False)
    found = captured_devices([], kernel)
    # The kernel's own number of a device is another one than that of programs.
    assert found == [
        CapturedDevice(name="nvme0n1", number=259 << 20 | 3, partitions=(), size_bytes=8192),
        CapturedDevice(name="sda", number=8 << 20, partitions=(8 << 20 | 1,), size_bytes=2**20),
    ]


def test_a_host_without_disks_and_a_place_without_one_are_told_apart(kernel: Kernel, tmp_path: Path) -> None:
    with pytest.raises(NotSupported, match="no disks"):
        captured_devices([], kernel)
    with pytest.raises(UsageError, match="is not there"):
        captured_devices([tmp_path / "nothing"])
    with pytest.raises(UsageError, match="no block device"):
        captured_devices(["/proc"])


def test_bytes_are_those_that_the_device_counts(kernel: Kernel) -> None:
    folder = disk(kernel, "sda", "8:0")
    assert bytes_counted("sda", kernel) is None
    (folder / "stat").write_text("9 9 1 9 9 9 20 9 9 9 9 9 9 300 9 9 9\n")
    assert bytes_counted("sda", kernel) == 321 * 512
    (folder / "stat").write_text("9 9 1 9 9 9 20 9 9 9 9\n")
    assert bytes_counted("sda", kernel) == 21 * 512


def anonymised(places: list[int], sizes: list[int], size_bytes: int, *, seed: int = 7) -> Ios:
    count = len(places)
    zeros = np.zeros(count, np.int64)
    names = TextColumn(np.arange(count, dtype=np.int32) % 2, ["", "ora_dbw0_SHOP"])
    device = CapturedDevice(name="sda", number=8 << 20, partitions=(), size_bytes=size_bytes)
    ios = Ios(zeros, zeros, zeros, np.array(places, np.int64), np.array(sizes, np.int64), zeros.astype(np.uint16),
              TextColumn(zeros, ["sda"]), names)  # fmt: skip
    return Anonymised([device], seed).of(ios)


def test_moved_places_keep_their_order_within_an_extent_and_stay_on_the_device() -> None:
    size_bytes = 1000 * EXTENT_BYTES + 4096
    places = [extent * EXTENT_BYTES + at for extent in range(1000) for at in (0, 8192)]
    found = anonymised([*places, size_bytes - 4096, 0], [8192] * 2000 + [4096, 0], size_bytes)
    moved = found.place_bytes[:2000]
    assert sorted(moved.tolist()) == places
    assert (moved[1::2] - moved[::2] == 8192).all()
    assert np.mean(moved == places) < 0.05
    # What lies at the end stays, and a flush has no place.
    assert found.place_bytes[2000:].tolist() == [size_bytes - 4096, 0]
    assert set(found.process.texts) == {"", "process 1"}
    again = anonymised([0, 5 * EXTENT_BYTES], [512, 512], size_bytes).place_bytes
    assert again.tolist() == [moved[0], moved[10]]


def test_a_device_of_unknown_or_small_size_is_left_as_it_is() -> None:
    assert anonymised([4096], [512], EXTENT_BYTES).place_bytes.tolist() == [4096]
