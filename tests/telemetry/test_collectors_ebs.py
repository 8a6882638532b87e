"""Counters of EBS volumes: the page as nvme-cli has it, shares of an interval, and reasons where there are none."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from assay.base.errors import NotSupported
from assay.telemetry.collectors.ebs import MAGIC, PAGE_BYTES, EbsCollector, EbsCounters, ebs_devices, parse_page

SECOND_NS = 1_000_000_000


def page(*, magic: int = MAGIC, **counters: int) -> bytes:
    """A log page: magic, version, eleven counters at their offsets, the rest as reserved bytes."""
    values = [counters.get(name, 0) for name in EbsCounters._fields]
    return struct.pack("<II11Q", magic, 1, *values).ljust(PAGE_BYTES, b"\xff")


def test_a_page_is_read_at_the_offsets_of_its_layout() -> None:
    made = bytearray(page())
    # struct amzn_latency_log_page_base: the exceeded counters are at 56 to 80, the queue at 88.
    for offset, value in ((8, 11), (16, 12), (56, 1), (64, 2), (72, 3), (80, 4), (88, 5)):
        made[offset : offset + 8] = value.to_bytes(8, "little")
    read = parse_page(bytes(made))
    assert read is not None
    assert (read.read_ops, read.write_ops) == (11, 12)
    assert read[6:] == (1, 2, 3, 4, 5)


def test_pages_of_others_and_cut_pages_are_none() -> None:
    assert parse_page(page(magic=0xEC2C0D7E)) is None
    assert parse_page(page()[:90]) is None
    assert parse_page(b"") is None


def test_shares_are_of_the_interval_and_those_of_the_instance_are_of_the_worst_volume() -> None:
    pages = {
        "nvme1n1": [page(), page(volume_iops_exceeded_us=400_000, instance_throughput_exceeded_us=100_000)],
        "nvme2n1": [page(), page(volume_throughput_exceeded_us=9_000_000, instance_throughput_exceeded_us=300_000)],
    }
    collector = EbsCollector(list(pages), read=lambda device: pages[device].pop(0))
    before, after = collector.sample(), collector.sample()
    found = {(one.entity, one.metric): one.value for one in collector.readings(before, after, SECOND_NS)}
    assert found["nvme1n1", "iops_exceeded_share"] == pytest.approx(0.4)
    assert found["nvme1n1", "bandwidth_exceeded_share"] == 0
    assert found["nvme2n1", "bandwidth_exceeded_share"] == 1.0
    assert found["ebs", "bandwidth_exceeded_share"] == pytest.approx(0.3)
    # A volume that was attached anew counts from nothing.
    fewer = {**after, "nvme1n1": after["nvme1n1"]._replace(read_ops=5)}
    assert {one.entity for one in collector.readings(fewer, after, SECOND_NS)} == {"nvme2n1", "ebs"}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (PermissionError(13, "Permission denied"), "nvme1n1: its statistics cannot be read: Permission denied"),
        (page(magic=1), "nvme1n1: answers with another page; EBS statistics need an instance with Nitro"),
    ],
)
def test_a_volume_that_cannot_be_asked_is_left_out_with_the_reason(answer: OSError | bytes, words: str) -> None:
    def read(_device: str) -> bytes:
        if isinstance(answer, OSError):
            raise answer
        return answer

    with pytest.raises(NotSupported, match=words):
        EbsCollector(["nvme1n1"], read=read).sample()


def test_devices_are_those_whose_model_is_ebs(tmp_path: Path) -> None:
    for name, model in (("nvme0n1", "Amazon Elastic Block Store      "), ("nvme1n1", "Samsung"), ("sda", "disk")):
        (tmp_path / name / "device").mkdir(parents=True)
        (tmp_path / name / "device/model").write_text(f"{model}\n")
    assert ebs_devices(["nvme0n1", "nvme1n1", "sda", "nvme9n1"], tmp_path) == ["nvme0n1"]
