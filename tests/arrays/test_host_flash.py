"""Arrays whose hosts have the flash: room, plans, labels, and what a point on one says."""

from __future__ import annotations

import json

import pytest

from assay import _core
from assay.base.errors import UsageError
from assay.run.simulate import simulate
from assay.targets.arrays.model.configuration import configure
from assay.targets.arrays.model.host_flash import LIVE_MOST, HostFlash
from assay.targets.arrays.model.model_file import load_model, model_from_table
from assay.workloads.io.plan import load_plan

GB = 1_000_000_000


def array(**options: str) -> HostFlash:
    made = configure("datrium-dvx", options)
    assert isinstance(made, HostFlash)
    return made


def test_room_is_that_of_all_disks_less_parity_times_the_reduction() -> None:
    one, two = array(), array(nodes="2")
    assert one.stored_bytes == pytest.approx(12 * 2e12 * 0.95 * 8 / 10)
    assert one.usable_bytes == pytest.approx(2.0 * one.stored_bytes)
    assert two.usable_bytes == 2 * one.usable_bytes
    assert array(compression="3.2").usable_bytes == pytest.approx(2 * one.usable_bytes)
    # Reclamation begins at 75 %, and wins nothing near the end.
    assert one.usable_bytes - one.kept_bytes == pytest.approx(one.usable_bytes * 0.75 * LIVE_MOST)


def test_every_host_has_a_volume_unless_told_otherwise() -> None:
    assert len(array().volumes) == 12
    assert len(array(hosts="40").volumes) == 40
    assert array(hosts="4").notices == []
    assert array(hosts="4", volumes="3").notices == ["3 volumes, so that 1 of 4 hosts do nothing"]


def test_the_faster_mode_has_twice_the_cores_and_the_published_ceiling() -> None:
    normal, fast, former = (array(mode=mode).plan()["host_flash"]["host"] for mode in ("normal", "Insane", "fast"))
    assert former == fast
    assert (normal["cores"], fast["cores"]) == (4, 8)
    assert fast["cores"] / fast["cpu_per_io_ns"] * 1e9 == pytest.approx(140_625, rel=1e-4)
    assert fast["read_bytes_per_s"] == 1.56e9


def test_a_plan_is_one_of_the_compiled_model_and_says_all_that_was_asked() -> None:
    asked = array(hosts="3", nodes="2", snapshots="5", reclamation="yes", flash="4TB", seed="9")
    plan = asked.plan()
    assert json.loads(json.dumps(plan, allow_nan=False)) == plan
    _core.ModelledArray(json.dumps(plan))
    plan = plan["host_flash"]
    assert (plan["host"]["count"], plan["node"]["count"], plan["seed"]) == (3, 2, 9)
    assert (plan["host"]["flash_bytes"], plan["log"]["snapshots"], plan["log"]["reclaims"]) == (4000 * GB, 5, True)
    assert asked.label == "Datrium DVX class, 3 hosts, 2 data nodes, reclamation, 5 snapshots"
    assert (asked.raid, asked.members) == ("8+2", 2)


def test_the_compiled_model_refuses_what_python_lets_pass() -> None:
    plan = array().plan()
    plan["host_flash"]["host"]["count"] = 129
    with pytest.raises(UsageError, match="hosts: 129 is outside 1 to 128"):
        _core.ModelledArray(json.dumps(plan))


def test_a_file_of_this_structure_has_its_own_sections_and_no_raid() -> None:
    model = load_model("datrium-dvx")
    assert (model.structure, model.policies, model.default_raid) == ("host-flash", (), "")
    assert not {name.partition(".")[0] for name in model.parameters} & {"raid", "cache", "controller", "links"}
    table = {"name": "a", "title": "b", "family": "c", "structure": "host-flash", "policies": ["10"]}
    with pytest.raises(UsageError, match="unknown section or key 'policies'"):
        model_from_table(table, origin="mine.toml")
    with pytest.raises(UsageError, match=r"structure is 'ring'; accepted: group, host-flash"):
        model_from_table(table | {"structure": "ring"}, origin="mine.toml")


def test_a_point_says_where_reads_were_found_and_what_reclamation_costs() -> None:
    activity = {"block_bytes": "8K", "read_share": 0.5, "queue_depth": 4}
    plan = load_plan(
        {"name": "short", "timing": {"warmup_s": 0, "duration_s": 1}, "activity": [activity]}, source="short"
    )
    # Each host has 20 GB, and flash for a half of what that takes; the pool is as full as where reclamation works.
    asked = array(
        hosts="2", volumes="4", volume_size="10GB", flash="5GB", memory="0", reclamation="yes", deduplication="1",
        compression="2", **{"disk.capacity": "5.5GB"},
    )  # fmt: skip
    (point,), _ = simulate(asked, plan)
    found = point["array"]
    assert found["flash_hit_share"] == pytest.approx(0.5, abs=0.06)
    shares = [found[f"{level}_read_share"] for level in ("memory", "flash", "remote", "node")]
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] == shares[2] == 0
    assert found["read_hit_share"] == pytest.approx(found["flash_hit_share"])
    assert found["live_share"] == pytest.approx(asked.used_bytes / asked.usable_bytes / 0.75, rel=0.01)
    assert found["write_amplification"] > 1.2
