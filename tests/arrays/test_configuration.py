"""From a target to the plan of an array: options, volumes, capacity, and what does not go together."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import _core
from assay.base.errors import UsageError
from assay.targets.arrays.model.capacity import usable_bytes
from assay.targets.arrays.model.cloud import Cloud
from assay.targets.arrays.model.configuration import Configuration, configure
from assay.targets.arrays.model.model_file import catalogue_names, load_model
from assay.targets.arrays.model.options import (
    CLOUD_OPTIONS,
    HOST_FLASH_OPTIONS,
    OPTIONS,
    model_target_text,
    parse_model_target,
)
from assay.targets.arrays.model.parameters import PARAMETERS, POLICIES

GB = 10**9


def array(**options: str) -> Configuration:
    return configure("ps6100xv", options)


def complaint(name: str, **options: str) -> str:
    with pytest.raises(UsageError) as error:
        configure(name, options)
    assert "\n" not in str(error.value)
    return str(error.value)


class TestTarget:
    def test_name_and_options(self) -> None:
        assert parse_model_target("model:./a/mine.toml?raid=50&members=2") == (
            "./a/mine.toml",
            {"raid": "50", "members": "2"},
        )
        assert parse_model_target("MODEL:ps6100xv") == ("ps6100xv", {})

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("model:", "has no name"),
            ("model:?raid=10", "has no name"),
            ("model:x?raid", "option 'raid' needs a value"),
            ("model:x?raid=", "option 'raid' needs a value"),
            ("model:x?raid=10&raid=50", "option 'raid' is given twice"),
        ],
    )
    def test_what_is_no_target(self, text: str, words: str) -> None:
        with pytest.raises(UsageError, match=words):
            parse_model_target(text)

    def test_written_in_one_order(self) -> None:
        first = configure("ps6100xv", {"disk.command_overhead": "0.5ms", "members": "2", "raid": "50"})
        second = configure("ps6100xv", {"raid": "50", "members": "2", "disk.command_overhead": "0.5ms"})

        assert first.target_text == second.target_text
        assert first.target_text == "model:ps6100xv?raid=50&members=2&disk.command_overhead=0.5ms"
        assert configure(*parse_model_target(first.target_text)).plan() == first.plan()

    def test_set_values_are_part_of_it(self) -> None:
        moved = array(raid="50").with_values({"disk.command_overhead": 612_345.4, "disk.reorder_weight": 0.75})
        again = configure(*parse_model_target(moved.target_text))

        assert again.plan() == moved.plan()
        assert moved.plan()["pools"][0]["member"]["disk"]["command_overhead_ns"] == 612_345
        assert moved.parameters["disk.command_overhead"].from_ == "set"


class TestVolumes:
    @pytest.mark.parametrize(("count", "label"), [(6, 0.40), (9, 0.62), (12, 0.85)])
    def test_those_of_the_study_are_about_the_fill_it_names(self, count: int, label: float) -> None:
        asked = array(volumes=str(count), fill=str(label))

        assert asked.volumes == [(f"v{number:02d}", 100 * GB) for number in range(1, count + 1)]
        assert asked.fill == pytest.approx(label, abs=0.03)
        assert asked.notices == []

    def test_a_label_that_is_far_off_is_said_and_the_volumes_decide(self) -> None:
        asked = array(volumes="6", fill="0.85")

        assert len(asked.volumes) == 6
        (notice,) = asked.notices
        assert notice.startswith("fill=0.85 is a label only: 6 volumes of 100 GB are 42% of the 1.429 TB")

    def test_the_same_volumes_fill_less_under_parity(self) -> None:
        assert array(volumes="12", raid="50").fill == pytest.approx(array(volumes="12").fill * 11 / 20, rel=1e-3)

    def test_fill_alone_fixes_the_bytes(self) -> None:
        asked = array(fill="0.5")

        assert asked.fill == pytest.approx(0.5, abs=1e-6)
        assert len(asked.volumes) == 7
        assert array(fill="0.5", volume_size="50GB").volumes == [(f"v{n:02d}", 50 * GB) for n in range(1, 15)]

    def test_without_both_twelve_or_what_fits(self) -> None:
        assert len(array().volumes) == 12
        assert [size for _, size in configure("ps3800xv").volumes] == [100 * GB] * 7
        (single,) = configure("ps3800xv", {"disk.capacity": "10GB", "members": "1"}).volumes
        assert single[1] == pytest.approx(0.85 * 7 * 10 * GB * 0.89, rel=1e-3)

    def test_members_add_room(self) -> None:
        assert array(members="3").usable_bytes == 3 * array().usable_bytes
        assert len(array(members="2", volumes="24").volumes) == 24

    def test_free_space_is_kept_five_percent_or_100_gb_of_a_member(self) -> None:
        assert array().kept_bytes == int(array().usable_bytes * 0.05)
        assert configure("ps6110x", {"members": "2"}).kept_bytes == 200 * GB

    def test_names_sort_as_they_are_counted(self) -> None:
        names = [name for name, _ in configure("sata-jbod", {"volumes": "120"}).volumes]

        assert names == sorted(names)
        assert names[0] == "v001"


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"raid": "7"}, "unknown RAID policy '7'; known: 0, 1, 10, 5, 50, 6, 60, dp"),
            ({"raid": "dp"}, "ps6100xv does not offer RAID dp; it has 10, 50, 6, 5"),
            ({"raid": "6", "disks.count": "5"}, "RAID 6 of 3 disks: needs at least 4"),
            ({"raid": "50", "disks.count": "25"}, "23 active disks are no multiple of sets of 11"),
            ({"raid": "10", "disks.count": "25"}, "mirrors pairs of disks, and 23 is not pairs"),
            ({"disks.spares": "24"}, "disks.spares of 24 leave none of the 24 disks"),
            ({"members": "17"}, "members=17 are more than the 16 a group of ps6100xv has"),
            ({"members": "0"}, "'members': '0' is not a whole number from 1"),
            ({"volumes": "14"}, "14 volumes of 100 GB are 1.4 TB"),
            ({"volumes": "2000"}, "'volumes': '2000' is not a whole number from 1 to 1024"),
            ({"volumes": "1.5"}, "is not a whole number"),
            ({"volume_size": "1.4TB", "volumes": "1"}, "1 volumes of 1.4 TB"),
            ({"volume_size": "12"}, "outside 1 MiB"),
            ({"fill": "0.99"}, "may hold 1.358 TB (71.47 GB of 1.429 TB stay free)"),
            ({"fill": "1.2"}, "'fill': 1.2 is outside 0 to 1"),
            ({"fill": "0"}, "leaves nothing"),
            ({"fill": "0.9", "volume_size": "2MB"}, "there may be 1,024"),
            ({"paths": "5"}, "paths=5 are more than the 4 ports"),
            ({"controllers": "9", "paths": "8"}, "are more than the 4 ports"),
            ({"controllers": "17", "paths": "4"}, "68 ports of a member; there may be 64"),
            ({"fault": "cable@1s"}, "accepted: host-port, controller"),
            ({"fault": "host-port"}, "'fault'"),
            ({"fault": "host-port@1s", "host_ports": "1"}, "a host has one port here"),
            ({"failover": "5s"}, "failover: nothing fails"),
            ({"fault": "host-port@1s", "path_timeout": "2h"}, "'path_timeout': 2h is above 600 s"),
            ({"host_port_rate": "10 apples"}, "'host_port_rate'"),
            ({"slow_path": "0"}, "leaves nothing"),
            ({"path_policy": "random"}, "accepted: round-robin, least-queue-depth"),
            ({"protocol": "fcoe"}, "does not offer 'fcoe'; it has iscsi"),
            ({"state": "broken"}, "accepted: healthy, degraded, rebuilding"),
            ({"write_back": "maybe"}, "accepted: yes, no"),
            ({"read_realloc": "yes"}, "option 'read_realloc' is for write-anywhere only, which ps6100xv is not"),
            ({"start": "hot"}, "accepted: warm, cold"),
            ({"seed": "-1"}, "'seed'"),
            ({"hosts": "0"}, "'hosts'"),
            ({"cache": "0"}, "outside 1 MiB to 4 TiB"),
            ({"max_transfer": "2G"}, "outside 0 B to 1 GiB"),
            ({"riad": "10"}, "has no option 'riad'; did you mean 'raid'?"),
            ({"disk.seek_avg": "3ms"}, "unknown parameter 'disk.seek_avg'; did you mean 'disk.seek_average'?"),
            ({"raid.policy.50.chnk": "64KiB"}, "unknown parameter 'raid.policy.50.chnk'"),
            ({"raid.policy.99.chunk": "64KiB"}, "unknown parameter 'raid.policy.99.chunk'"),
            ({"disk.seek_average": "3MB"}, "is a time, and 'MB' is no unit of it"),
            ({"disk.seek_average": "3"}, "'3' has no unit"),
            ({"disk.seek_average": "6ms"}, "disk.seek_average of 6 ms is above disk.seek_full of 5.8 ms"),
            ({"cache.dirty_low": "0.6"}, "cache.dirty_low of 0.6 is above cache.dirty_high of 0.52"),
            ({"raid.chunk": "48KiB"}, "no power of two"),
            ({"raid.misalignment": "3KiB"}, "divides raid.chunk"),
            ({"disk.dies": "4"}, "parameter 'disk.dies' is for solid-state only"),
            ({"state": "steady"}, "state=steady is for drives of flash"),
            ({"state": "degraded+rebuilding"}, "disks are in one state; write such as steady+degraded"),
            ({"cache.write_back": "maybe"}, "accepted: true, false"),
            ({"raid.partial_write": "both"}, "accepted: read-modify"),
        ],
    )  # fmt: skip
    def test_each_in_one_line(self, options: dict[str, str], words: str) -> None:
        assert words in complaint("ps6100xv", **options)

    def test_a_lost_disk_of_raid_0(self) -> None:
        assert "RAID 0 does not outlive" in complaint("sata-jbod", state="degraded")

    def test_too_many_disks(self) -> None:
        options = {"group.members": "200", "members": "200"}
        assert "200 members have 4,400 active disks" in complaint("ps6100xv", **options)

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({"disk.command_overhead": -1.0}, "outside"),
            ({"disk.command_overhead": float("nan")}, "no number"),
            ({"disk.command_overhead": float("inf")}, "no number"),
            ({"disk.reorder_weight": 1.5}, "outside 0 to 1"),
            ({"cache.write_back": 1.0}, "is a truth value, not a number"),
            ({"disk.nothing": 1.0}, "unknown parameter 'disk.nothing'"),
            ({"disk.seek_average": 7e6}, "above disk.seek_full"),
        ],
    )
    def test_values_that_cannot_be_set(self, values: dict[str, float], words: str) -> None:
        with pytest.raises(UsageError, match=words):
            array().with_values(values)


SHARES = (
    "dirty_", "reorder", "age_", "over_prov", "first_", "deduplication", "compression", "snapshot_change", "metadata_",
    "trimmed_", "throttled_",
)  # fmt: skip
"""Beginnings of keys whose values are no whole numbers."""


class TestPlan:
    def test_of_the_array_that_was_published(self) -> None:
        plan = array(volumes="12").plan()

        assert (plan["pools"][0]["member"]["disks"], plan["pools"][0]["member"]["spares"]) == (24, 2)
        assert plan["pools"][0]["member"]["disk"] == {
            "kind": "mechanical",
            "capacity_bytes": 146 * GB,
            "revolution_ns": 4_000_000,
            "seek_track_ns": 600_000,
            "seek_average_ns": 2_900_000,
            "seek_full_ns": 5_800_000,
            "write_settle_ns": 400_000,
            "rate_outer_bytes_per_s": 160e6,
            "rate_inner_bytes_per_s": pytest.approx(0.76 * 160e6),
            "command_overhead_ns": 567_723,
            "queue_depth": 32,
            "reorder_weight": 0.9,
            "age_credit": 0.05,
            "read_ahead_bytes": 256 << 10,
            "interface_bytes_per_s": 600e6,
        }
        assert plan["pools"][0]["member"]["raid"] == {
            "policy": "10",
            "set_disks": 22,
            "chunk_bytes": 65536,
            "partial_write": "read-modify",
            "misalign_bytes": 4096,
        }
        assert plan["links"]["port_bytes_per_s"] == pytest.approx(117e6)
        assert plan["links"]["max_transfer_bytes"] == 262_144
        assert plan["pools"][0]["member"]["state"] == {"kind": "healthy"}
        assert plan["pools"][0]["volumes"][11] == {"name": "v12", "bytes": 100 * GB}

    @pytest.mark.parametrize("name", catalogue_names())
    def test_every_array_has_one_under_every_policy_and_state(self, name: str) -> None:
        for policy in load_model(name).policies:
            for state in ("healthy", "degraded", "rebuilding") if policy != "0" else ("healthy",):
                plan = configure(name, {"raid": policy, "state": state}).plan()
                assert json.loads(json.dumps(plan, allow_nan=False)) == plan

    def test_flash_begins_steady_and_a_state_of_drives_goes_with_one_of_disks(self) -> None:
        for text, disks, flash in [
            ("healthy", "healthy", "steady"),
            ("fresh", "healthy", "fresh"),
            ("written+degraded", "degraded", "written"),
        ]:
            member = configure("nvme-mirror", {"state": text}).plan()["pools"][0]["member"]
            assert (member["state"]["kind"], member["disk"]["age"]) == (disks, flash)

    def test_pools_lose_one_disk_and_have_flash_of_one_age(self) -> None:
        asked = {"raid": "data:1,log:0", "volumes": "data:2,log:1", "state": "fresh+degraded"}
        pools = configure("nvme-mirror", {**asked, "group.members": "2"}).plan()["pools"]
        assert [(pool["member"]["state"]["kind"], pool["member"]["disk"]["age"]) for pool in pools] == [
            ("degraded", "fresh"),
            ("healthy", "fresh"),
        ]

    def test_times_bytes_and_counts_are_whole_and_rates_and_shares_are_not(self) -> None:
        def check(value: Any, key: str = "") -> None:
            if isinstance(value, dict):
                for inner_key, inner in value.items():
                    check(inner, inner_key)
            elif key.endswith("_per_s") or key.startswith(SHARES):
                assert isinstance(value, float), key
            elif value is not None and not isinstance(value, (str, bool, list)):
                assert isinstance(value, int), key

        for name in catalogue_names():
            check(configure(name).plan())

    def test_policies_replace_what_the_file_says_under_them(self) -> None:
        assert array(raid="50").plan()["pools"][0]["member"]["raid"]["set_disks"] == 11
        assert array(raid="5").plan()["pools"][0]["member"]["spares"] == 1

    def test_disks_says_how_many_make_the_one_set_of_a_member(self) -> None:
        member = configure("fas2040", {"disks": "4"}).plan()["pools"][0]["member"]

        assert (member["disks"], member["spares"], member["raid"]["set_disks"]) == (4, 0, 4)
        assert (
            array(raid="5").plan()["pools"][0]["member"]["raid"] | {"policy": "5", "set_disks": 23}
            == (array(raid="5").plan()["pools"][0]["member"]["raid"])
        )

    def test_several_sets_under_raid_6_are_laid_out_as_raid_60(self) -> None:
        two_sets, one_set = array(raid="6"), array(raid="6", **{"raid.set_disks": "22"})

        assert (two_sets.plan()["pools"][0]["member"]["raid"]["policy"], two_sets.raid) == ("60", "6")
        assert one_set.plan()["pools"][0]["member"]["raid"]["policy"] == "6"
        assert one_set.usable_bytes / two_sets.usable_bytes == pytest.approx(20 / 18, rel=1e-4)

    def test_an_option_wins_over_the_policy(self) -> None:
        asked = array(raid="50", **{"raid.chunk": "128KiB", "disks.count": "14", "raid.set_disks": "6"})

        assert asked.plan()["pools"][0]["member"]["raid"]["chunk_bytes"] == 131_072
        assert asked.plan()["pools"][0]["member"]["raid"]["set_disks"] == 6

    def test_protocols_take_their_share_of_the_ports(self) -> None:
        iscsi, fcoe = (configure("fas3070", {"protocol": name}).plan()["links"] for name in ("iscsi", "fcoe"))

        assert 0.9 < iscsi["port_bytes_per_s"] / fcoe["port_bytes_per_s"] < 1
        assert fcoe["overhead_bytes"] != iscsi["overhead_bytes"]

    def test_hosts_members_and_controllers_have_ports_of_their_own(self) -> None:
        two = configure("ps6110x", {"host_ports": "2", "members": "2", "controller_ports": "1"}).plan()
        assert (two["links"]["hosts"]["ports"], two["pools"][0]["member"]["controller"]["ports"]) == (2, 1)
        asked = {"protocol": "fcoe", "host_ports": "3", "controllers": "8", "controller_ports": "1"}
        three = configure("fas3070", asked | {"host_port_rate": "1Gbit/s", "initiator_limit": "64"}).plan()
        hosts, controller = three["links"]["hosts"], three["pools"][0]["member"]["controller"]
        assert (hosts["ports"], controller["count"], controller["ports"], hosts["commands_most"]) == (3, 8, 1, 64)
        assert three["links"]["port_bytes_per_s"] == pytest.approx(10 * hosts["port_bytes_per_s"])
        lost = {"fault": "controller@10s", "path_timeout": "20s", "failover": "4s"}
        assert array(**lost).plan()["links"]["fault"] == {
            "lost": "controller", "at_ns": 10_000_000_000, "failover_ns": 4_000_000_000
        }  # fmt: skip
        with pytest.raises(UsageError, match="fcoe does not send packets again"):
            configure("fas3070", {"protocol": "fcoe", "packet_loss": "0.1%"})

    def test_roles_have_members_and_a_policy_of_their_own(self) -> None:
        asked = {"volumes": "data:6,log:2", "volume_size": "data:100GB,log:20GB", "raid": "data:50,log:10"}
        pooled = configure("ps6100xv", asked | {"members": "data:2,log:1", "state": "degraded"})
        data = configure("ps6100xv", {"raid": "50", "members": "2", "volumes": "data:6"})
        log = configure("ps6100xv", {"raid": "10", "volumes": "log:2", "volume_size": "20GB"})

        plan = pooled.plan()
        assert [pool["members"] for pool in plan["pools"]] == [2, 1]
        assert [pool["member"]["raid"] for pool in plan["pools"]] == [data.member_plan["raid"], log.member_plan["raid"]]
        assert [pool["volumes"] for pool in plan["pools"]] == [
            data.plan()["pools"][0]["volumes"], log.plan()["pools"][0]["volumes"]
        ]  # fmt: skip
        # One disk of the whole group is lost.
        assert [pool["member"]["state"]["kind"] for pool in plan["pools"]] == ["degraded", "healthy"]
        assert pooled.roles == ["data"] * 6 + ["log"] * 2
        assert (pooled.raid, pooled.members, pooled.used_bytes) == ("50+10", 3, 640 * GB)
        for what in ("usable_bytes", "raw_bytes", "kept_bytes"):
            assert getattr(pooled, what) == getattr(data, what) + getattr(log, what)
        assert "data on RAID 50, log on RAID 10, 3 members" in pooled.label
        assert configure(*parse_model_target(pooled.target_text)).plan() == plan
        assert [(pool["role"], pool["raid"]) for pool in pooled.facts()["pools"]] == [("data", "50"), ("log", "10")]
        assert _core.ModelledArray(json.dumps(plan)) is not None

    def test_members_of_roles_may_have_one_policy(self) -> None:
        pooled = array(volumes="data:4,log:2", members="data:2,log:1", raid="10")
        assert [pool["member"]["raid"]["policy"] for pool in pooled.plan()["pools"]] == ["10", "10"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"raid": "data:50,log:10"}, "volumes=data:1,log:1 must name the same roles"),
            ({"raid": "data:50,log:10", "volumes": "8"}, "must name the same roles"),
            ({"raid": "data:50", "volumes": "data:8,log:2"}, "must name the same roles"),
            ({"raid": "data:50,log:7", "volumes": "data:8,log:2"}, "unknown RAID policy '7'"),
            ({"raid": "data:50,log:dp", "volumes": "data:8,log:2"}, "does not offer RAID dp"),
            ({"raid": "data:50,log:10", "volumes": "data:8,log:2", "members": "3"}, "members=data:1,log:1"),
            ({"raid": "data:50,log:10", "volumes": "data:8,log:2", "members": "data:1,log:0"}, "not a whole number"),
            ({"raid": "data:50,log:10", "volumes": "data:8,log:2", "members": "data:20,log:1"}, "are more than the"),
            ({"raid": "data:50,log:10", "volumes": "data:8,log:2", "fill": "0.5"}, "fill: roles have members"),
            ({"raid": "data:50,log:10", "volumes": "data:8,log:900"}, "900 log volumes of 100 GB"),
            ({"raid": "data:50,log:10", "volumes": "data:8,log:2", "volume_size": "tempdb:1GB"}, "no volumes of role"),
        ],
    )
    def test_pools_that_cannot_be_are_refused(self, options: dict[str, str], message: str) -> None:
        with pytest.raises(UsageError, match=re.escape(message)):
            array(**options)

    def test_options_reach_it(self) -> None:
        plan = configure(
            "fas3070",
            {"cache": "4G", "write_back": "no", "start": "cold", "state": "rebuilding", "seed": "7", "hosts": "3",
             "paths": "2", "path_policy": "least-queue-depth", "max_transfer": "none", "read_realloc": "yes"},
        ).plan()  # fmt: skip

        assert (
            plan["pools"][0]["member"]["cache"] | {"bytes": 4 << 30, "write_back": False, "starts_warm": False}
            == (plan["pools"][0]["member"]["cache"])
        )
        assert plan["pools"][0]["member"]["state"] == {"kind": "rebuilding", "depth": 8}
        assert plan["pools"][0]["member"]["layout"] == {
            "kind": "write-anywhere", "block_bytes": 4096, "run_blocks": 64, "read_realloc": True
        }  # fmt: skip
        links = {"policy": "least-queue-depth", "max_transfer_bytes": 0}
        assert plan["links"] | links == plan["links"]
        hosts = {"count": 3, "ports": 2}
        assert plan["links"]["hosts"] | hosts == plan["links"]["hosts"]
        assert plan["seed"] == 7

    def test_facts_trace_every_figure(self) -> None:
        facts = array(raid="50", cache="4G").facts()

        assert json.loads(json.dumps(facts, allow_nan=False)) == facts
        assert facts["parameters"]["cache.size"]["from"] == "option"
        assert facts["parameters"]["cache.size"]["source"] == "cache=4G"
        assert facts["parameters"]["raid.set_disks"]["value"] == 11
        assert facts["parameters"]["disk.seek_average"] == {
            "value": 2.9, "unit": "ms", "from": "data sheet", "source": "Savvio 15K.2: average read seek",
            "plus_minus": 0.02,
        }  # fmt: skip
        assert facts["fill"] == facts["used_bytes"] / facts["usable_bytes"]

    def test_changing_options_keeps_the_rest(self) -> None:
        base = array(raid="50", volumes="12").with_values({"disk.command_overhead": 5e5})
        other = base.with_options({"members": "2", "raid": None})

        assert (other.raid, other.members, len(other.volumes)) == ("10", 2, 12)
        assert other.value("disk.command_overhead") == 500_000
        assert base.options == {"raid": "50", "volumes": "12"}


@pytest.mark.parametrize(
    ("policy", "disks", "set_disks", "data_disks"),
    [("0", 5, 0, 5), ("1", 2, 0, 1), ("10", 8, 0, 4), ("5", 5, 0, 4), ("50", 12, 6, 10), ("6", 8, 0, 6),
     ("60", 12, 6, 8), ("dp", 16, 16, 14), ("dp", 32, 16, 28)],
)  # fmt: skip
def test_capacity_is_that_of_the_data_disks(policy: str, disks: int, set_disks: int, data_disks: int) -> None:
    member = {
        "disks": disks + 1,
        "spares": 1,
        "disk": {"capacity_bytes": 1000 * 65536 + 17},
        "raid": {"policy": policy, "set_disks": set_disks, "chunk_bytes": 65536, "partial_write": "cheapest",
                 "misalign_bytes": 0},
    }  # fmt: skip

    assert usable_bytes(member) == 1000 * 65536 * data_disks


TEXTS = st.text(max_size=12) | st.sampled_from(
    ["1", "2", "12", "0.85", "85%", "100GB", "0.5ms", "yes", "no", "none", "64KiB", "degraded", "iscsi", *POLICIES]
)


@given(
    name=st.sampled_from(catalogue_names()),
    options=st.dictionaries(
        st.sampled_from(
            [*OPTIONS, *HOST_FLASH_OPTIONS, *CLOUD_OPTIONS, *PARAMETERS, "raid.policy.50.chunk",
             "links.under.fcoe.payload"]
        )
        | st.text(max_size=8),
        TEXTS,
        max_size=3,
    ),
)  # fmt: skip
def test_any_options_make_an_array_or_are_refused(name: str, options: dict[str, str]) -> None:
    try:
        asked = configure(name, options)
    except UsageError:
        return
    plan = asked.plan()
    volumes = plan.get("host_flash") or plan.get("cloud") or plan["pools"]
    volumes = volumes["volumes"] if isinstance(volumes, dict) else volumes[0]["volumes"]
    assert sum(volume["bytes"] for volume in volumes) <= asked.usable_bytes - asked.kept_bytes
    assert 0 < asked.fill <= 1
    json.dumps(asked.facts(), allow_nan=False)


@given(st.text(max_size=40))
def test_any_text_after_the_scheme_is_a_target_or_refused(text: str) -> None:
    try:
        name, options = parse_model_target(f"model:{text}")
    except UsageError:
        return
    assert parse_model_target(model_target_text(name, options)) == (name, options)


def test_drives_of_the_catalogue_take_the_place_of_a_models_own() -> None:
    array = configure("nvme-md", {"drive": "cm7-r-3840", "disks": "4"})
    drive, own = configure("cm7-r-3840"), configure("nvme-md")
    for dotted in ("disk.capacity", "disk.program_time", "disk.over_provisioning", "disk.endurance"):
        assert array.parameters[dotted] == drive.parameters[dotted] != own.parameters[dotted]
    # What md keeps for itself, and a value that is given, stay.
    assert array.parameters["disk.usable"] == own.parameters["disk.usable"]
    assert configure("nvme-md", {"drive": "cm7-r-3840", "disk.read_time": "40us"}).value("disk.read_time") == 40_000
    assert array.label == "nvme-md of cm7-r-3840, RAID 10, 1 member"
    assert configure(array.model.origin, array.options).target_text == "model:nvme-md?disks=4&drive=cm7-r-3840"


@pytest.mark.parametrize(("name", "drive"), [("ps6100xv", "cm7-r-3840"), ("nvme-md", "ps6100xv"), ("nvme-md", "nix")])
def test_only_drives_of_flash_take_the_place_of_drives_of_flash(name: str, drive: str) -> None:
    with pytest.raises(UsageError, match=r"has no drives of flash|unknown array"):
        configure(name, {"drive": drive})


def test_cloud_volumes_of_a_role_have_iops_and_throughput_of_their_own() -> None:
    asked = {"volumes": "data:2,log:1", "size": "data:500GB,log:100GB", "iops": "data:6000,log:3000",
             "throughput": "250MiB/s"}  # fmt: skip
    array = configure("aws-gp3", asked)
    assert isinstance(array, Cloud)
    assert [one.iops.per_s for one in array.limits] == [6000, 6000, 3000]
    assert {one.throughput.per_s for one in array.limits} == {250 * 2**20}
    with pytest.raises(UsageError, match="iops: there are no volumes of role log"):
        configure("aws-gp3", {"iops": "log:3000"})
