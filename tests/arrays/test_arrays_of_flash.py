"""Arrays of flash: RAID in software, drives that differ, data reduction, controllers and links."""

from __future__ import annotations

import pytest

from assay.base.errors import UsageError
from assay.record.shapes.point import Point
from assay.run.simulate import simulate
from assay.targets.arrays.model.configuration import Configuration, configure
from assay.workloads.io.plan import load_plan


def of(target: str) -> Configuration:
    name, _, query = target.partition("?")
    return configure(name, dict(item.split("=", 1) for item in query.split("&") if item))


def run(target: str, **activity: object) -> Point:
    plan = {
        "name": "flash",
        "timing": {"warmup_s": 1, "duration_s": 2},
        "activity": [{"block_bytes": "8K", "read_share": 0.5, "queue_depth": 16, **activity}],
    }
    points, _ = simulate(of(target), load_plan(plan, source="test"))
    return points[0]


def test_software_raid_has_what_the_file_and_options_state() -> None:
    assert of("nvme-md").member_plan["software"] == {
        "bitmap_bytes": 64 << 20, "bitmap_clear_ns": 10_000_000_000, "log": "none", "stripes": 0,
    }  # fmt: skip
    parity = of("nvme-md-parity?raid.journal=write-back&raid.bitmap=0B").member_plan
    assert parity["software"]["log"] == "journal-write-back"
    assert parity["cache"]["write_back"]
    # RAID 0 has no bitmap, and arrays behind controllers none of it.
    assert "software" not in of("nvme-md?raid=0").member_plan
    assert "software" not in of("ps6100xv").member_plan
    assert "raid.bitmap" not in of("ps6100xv").parameters


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nvme-md-parity?raid.journal=ppl", "takes the place of the bitmap"),
        ("nvme-md-parity?raid.journal=ppl&raid.bitmap=0B&raid=6", "is for RAID 5"),
        ("nvme-md?raid.journal=write-through&raid.bitmap=0B", "has no parity"),
        ("nvme-raid?raid.bitmap=64MiB", "cache.write_back"),
        ("nvme-md?mixed=4:fresh", "leaves none"),
        ("nvme-md?mixed=fresh", "no number of disks"),
        ("nvme-md?mixed=1:wd-dc-96", "did you mean 'wd-dc-960'"),
        ("nvme-md?mixed=1:aws-gp3", "not members with RAID"),
        ("ps6100xv?mixed=1:fresh", "is for drives of flash"),
        ("nvme-raid?layout.reduction=2", "write-anywhere"),
    ],
)
def test_what_does_not_go_together_is_refused(target: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        _ = of(target).plan()


def test_volumes_fill_what_the_smallest_drive_has_room_for() -> None:
    alike, mixed = of("nvme-md"), of("nvme-md?mixed=1:wd-dc-960")
    assert mixed.usable_bytes == pytest.approx(alike.usable_bytes / 2, rel=0.01)
    assert of("nvme-md?mixed=1:fresh").usable_bytes == alike.usable_bytes == of("nvme-md?mixed=none").usable_bytes


def test_reduced_data_are_as_much_more_as_the_ratio_says() -> None:
    whole, reduced = of("afa-active?layout.reduction=1"), of("afa-active")
    assert reduced.usable_bytes == pytest.approx(4 * whole.usable_bytes, rel=0.001)
    assert reduced.raw_bytes == whole.raw_bytes == 24 * 3_840_000_000_000
    assert "reduction" not in whole.member_plan["layout"]


def test_controllers_are_those_of_the_file_unless_the_target_says_so() -> None:
    assert of("afa-active").controllers == (2, 4)
    assert of("afa-standby").controllers == of("afa-active?controllers=1").controllers == (1, 4)
    assert of("ps6100xv").controllers[0] == 1
    fault = of("afa-active?fault=controller@1s").plan()["links"]["fault"]
    assert fault == {"lost": "controller", "at_ns": 1_000_000_000, "failover_ns": 5_000_000_000}


def test_links_have_their_own_rates_and_latencies() -> None:
    rates = {name: of(f"afa-active?protocol={name}").plan()["links"] for name in ("fc", "iscsi", "nvme-tcp")}
    # 32GFC carries 3.2 GB/s, 25 GbE somewhat less than 3.125.
    assert rates["fc"]["port_bytes_per_s"] == pytest.approx(3.2e9, rel=0.01)
    assert rates["nvme-tcp"]["port_bytes_per_s"] == pytest.approx(0.95 * 3.125e9)
    assert rates["nvme-tcp"]["hosts"]["port_bytes_per_s"] == rates["nvme-tcp"]["port_bytes_per_s"]
    assert rates["nvme-tcp"]["latency_ns"] < rates["fc"]["latency_ns"] < rates["iscsi"]["latency_ns"]
    waits = {
        name: run(f"afa-active?protocol={name}&volumes=1&cache=64M", queue_depth=1)["read"]["latency_ns"]["mean"]
        for name in rates
    }
    assert waits["nvme-tcp"] < waits["fc"] < waits["iscsi"]


def test_drives_of_an_array_write_less_where_data_are_reduced() -> None:
    written = [run(f"afa-active?state=written&volumes=1&layout.reduction={n}", rate=20000)["array"] for n in (1, 4)]
    whole, reduced = (one["write_amplification"] for one in written)
    assert whole / reduced == pytest.approx(4, rel=0.15)


def test_a_lost_controller_leaves_half_of_the_processors_or_as_many_as_before() -> None:
    def left(target: str) -> float:
        before, after = (
            run(f"{target}?volumes=4&cache=64M&controller.cores=1{fault}", read_share=1.0)["total"]["iops"]
            for fault in ("", "&fault=controller@0s&failover=0s")
        )
        return after / before

    assert left("afa-standby") == pytest.approx(1, abs=0.02)
    assert left("afa-active") == pytest.approx(0.5, abs=0.02)


def test_a_slower_drive_slows_the_array() -> None:
    iops = {name: run(f"nvme-md?mixed={name}", read_share=0.0)["total"]["iops"] for name in ("none", "1:wd-dc-960")}
    assert iops["1:wd-dc-960"] < 0.6 * iops["none"]


def test_a_point_says_how_long_a_rebuild_takes() -> None:
    point = run("nvme-raid?raid=5&disk.capacity=15.36TB&state=rebuilding&rebuild.rate=200MB/s", rate=1000)
    assert point["array"]["rebuild_s"] == pytest.approx(15.36e12 / 200e6, rel=0.03)
    assert run("nvme-raid?raid=5", rate=1000)["array"]["rebuild_s"] is None
