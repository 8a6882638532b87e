"""A workload on volumes: who uses what, and what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.targets.files.spec import VolumeSpec, parse_targets
from assay.targets.files.volume import OpenVolume, null_options, takes_no_time
from assay.workloads.io.activities import IoActivity, IoWorkloadSpec
from assay.workloads.io.session import check_workload, deepest_queue, sharing_roles, volumes_for

MIB = 1 << 20


def volume(name: str, *roles: str, size_bytes: int = 16 * MIB, sector_bytes: int = 512) -> OpenVolume:
    spec = VolumeSpec(name=name, kind="file", path=Path("/none") / name)
    return OpenVolume(spec=spec, roles=roles or ("data",), size_bytes=size_bytes, sector_bytes=sector_bytes)


def workload(**keys: Any) -> IoWorkloadSpec:
    return IoWorkloadSpec(activities=(IoActivity.model_validate(keys),))


class TestVolumesOfAnActivity:
    VOLUMES = (volume("a"), volume("b"), volume("l", "log"))

    def test_all_of_its_role(self) -> None:
        assert volumes_for(IoActivity(role="data"), self.VOLUMES) == [0, 1]
        assert volumes_for(IoActivity(role="log"), self.VOLUMES) == [2]

    def test_those_for_data_when_its_role_has_none(self) -> None:
        assert volumes_for(IoActivity(role="tempdb"), self.VOLUMES) == [0, 1]

    def test_every_one_when_there_is_none_for_data_either(self) -> None:
        assert volumes_for(IoActivity(role="tempdb"), [volume("l", "log")]) == [0]

    def test_only_the_one_it_names(self) -> None:
        assert volumes_for(IoActivity(role="data", volume="b"), self.VOLUMES) == [1]

    def test_roles_that_share_are_told(self) -> None:
        mixed = IoWorkloadSpec(activities=(IoActivity(role="data"), IoActivity(role="log"), IoActivity(role="tempdb")))

        assert sharing_roles(mixed, [volume("f")]) == {"f": ["data", "log", "tempdb"]}
        assert sharing_roles(mixed, [volume("f", "data", "tempdb"), volume("l", "log")]) == {"f": ["data", "tempdb"]}
        assert sharing_roles(mixed, [volume("f"), volume("l", "log"), volume("t", "tempdb")]) == {}


class TestWhatDoesNotFit:
    @pytest.mark.parametrize(
        ("keys", "size_bytes", "sector_bytes", "said"),
        [
            ({"block_bytes": 1000}, 16 * MIB, 512, "--block: 1000 bytes is not a multiple of the sector of 512"),
            ({"block_bytes": 512}, 16 * MIB, 4096, "--block: 512 bytes .* 4096"),
            ({"block_bytes": {"4K": 1, "600": 1}}, 16 * MIB, 512, "--block: 600 bytes"),
            ({"align_bytes": 700}, 16 * MIB, 512, "--align: 700"),
            ({"block_bytes": "1M"}, 65536, 512, "64 KiB is smaller than a block of 1 MiB"),
            ({"region": [0.5, 0.5001]}, 16 * MIB, 512, "smaller than a block"),
            ({"block_bytes": "1M", "queue_depth": 4096}, 1 << 40, 512, "--queue-depth 4096 .* buffers"),
        ],
    )
    def test_is_refused(self, keys: dict[str, Any], size_bytes: int, sector_bytes: int, said: str) -> None:
        with pytest.raises(UsageError, match=said):
            check_workload(workload(**keys), [volume("f", size_bytes=size_bytes, sector_bytes=sector_bytes)])

    def test_the_smallest_volume_of_a_role_decides(self) -> None:
        volumes = [volume("large", size_bytes=1 << 40), volume("small", size_bytes=4096)]

        with pytest.raises(UsageError, match="4 KiB is smaller than a block"):
            check_workload(workload(block_bytes="8K"), volumes)

    @given(block=st.integers(1, 2048).map(lambda sectors: sectors * 512))
    def test_the_deepest_queue_fits_and_a_deeper_does_not(self, block: int) -> None:
        deepest = deepest_queue(IoActivity(block_bytes=block))

        check_workload(workload(block_bytes=block, queue_depth=deepest), [volume("f", size_bytes=1 << 40)])
        if deepest < 4096:
            with pytest.raises(UsageError, match="buffers"):
                check_workload(workload(block_bytes=block, queue_depth=deepest + 1), [volume("f", size_bytes=1 << 40)])


def test_options_of_the_null_device_become_base_units() -> None:
    (spec,) = parse_targets(["null:?latency=200us&stall_at=2s&stall=1s&stall_every=10s&servers=8"])

    assert null_options(spec.options) == {
        "latency_ns": 200_000,
        "stall_at_ns": 2_000_000_000,
        "stall_ns": 1_000_000_000,
        "stall_every_ns": 10_000_000_000,
        "servers": 8,
    }


@pytest.mark.parametrize(
    ("target", "at_once"), [("null:", True), ("null:?latency=1us", False), ("null:?stall=1s", False)]
)
def test_a_device_that_takes_no_time_measures_the_generator(target: str, at_once: bool) -> None:
    (spec,) = parse_targets([target])

    assert takes_no_time(OpenVolume(spec=spec, roles=("data",), size_bytes=1 << 40, sector_bytes=512)) is at_once
