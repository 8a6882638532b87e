"""I/O workloads: what their keys accept, how they are named, and what a point says of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from assay.document.text import load_label
from assay.workloads.io.activities import IoActivity, IoWorkloadSpec, load_facts, parse_skew


def activity(**keys: Any) -> IoActivity:
    return IoActivity.model_validate(keys)


class TestBlocks:
    @pytest.mark.parametrize(
        ("written", "blocks"),
        [
            (8192, {8192: 1.0}),
            ("8K", {8192: 1.0}),
            ({"8K": 80, "64K": 20}, {8192: 80.0, 65536: 20.0}),
            ("8K:80+64K:20", {8192: 80.0, 65536: 20.0}),
        ],
    )
    def test_one_or_a_mix(self, written: Any, blocks: dict[int, float]) -> None:
        assert activity(block_bytes=written).blocks == blocks

    @pytest.mark.parametrize("written", [0, -512, "0", "8X", True, None, [], {}, {"8K": 0}, {"8K": -1}, {"8K": "x"},
                                         {"8K": float("inf")}, "8K:", "8K:1+", 8192.5, 1 << 30, "2G"])  # fmt: skip
    def test_what_is_none_is_refused(self, written: Any) -> None:
        with pytest.raises(ValidationError, match="block_bytes"):
            activity(block_bytes=written)

    def test_the_largest_of_a_mix(self) -> None:
        assert activity(block_bytes={"512": 1, "60K": 1, "8K": 1}).largest_block_bytes == 61440

    def test_blocks_a_sector_forbids_can_be_left_out(self) -> None:
        workload = IoWorkloadSpec(activities=(activity(block_bytes={"512": 20, "4K": 40, "8K": 40}, align_bytes=512),))
        fitted = workload.fitted(4096)

        assert fitted is not None
        assert fitted.activities[0].blocks == {4096: 40, 8192: 40}
        assert fitted.activities[0].align_bytes == 4096
        assert workload.fitted(512) == workload
        assert IoWorkloadSpec(activities=(activity(block_bytes=512),)).fitted(4096) is None


class TestSkew:
    @pytest.mark.parametrize(
        ("text", "form"),
        [
            ("uniform", {"kind": "uniform"}),
            ("zipf:0.99", {"kind": "zipf", "theta": 0.99}),
            ("zipf:2", {"kind": "zipf", "theta": 2.0}),
            ("hot:0.8/0.2", {"kind": "hot", "access_share": 0.8, "space_share": 0.2}),
            ("hot:1/.5", {"kind": "hot", "access_share": 1.0, "space_share": 0.5}),
        ],
    )
    def test_forms(self, text: str, form: dict[str, Any]) -> None:
        assert parse_skew(text) == form
        assert activity(skew=text).skew == text

    @pytest.mark.parametrize("text", ["", "zip:1", "zipf:", "zipf:0", "zipf:5..3", "zipf:-1", "zipf:1e9", "hot:0.8",
                                      "hot:0.8/0", "hot:0.8/2", "hot:2/0.5", "hot:80%/20%"])  # fmt: skip
    def test_others_are_refused_with_the_forms(self, text: str) -> None:
        with pytest.raises(ValidationError, match="accepted: uniform, zipf:THETA"):
            activity(skew=text)


@pytest.mark.parametrize(
    "keys",
    [
        {"read_share": 1.1},
        {"read_share": "130%"},
        {"read_share": {"a": 1}},
        {"region": [0.5, 0.5]},
        {"region": [0.6, 0.5]},
        {"region": [0.1]},
        {"queue_depth": 0},
        {"queue_depth": 4097},
        {"workers": 0},
        {"rate": 0},
        {"rate": float("inf")},
        {"rate": float("nan")},
        {"streams": 0},
        {"align_bytes": 0},
        {"burst_bytes": "1M"},
        {"burst_interval_s": 1},
        {"burst_interval_s": float("inf"), "burst_bytes": "1M"},
        {"rate": 1, "burst_bytes": "1M", "burst_interval_s": 1},
        {"sync": "often"},
        {"role": "logs"},
        {"unknown": 1},
    ],
)
def test_what_cannot_be_asked_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        activity(**keys)


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({}, "8 KiB random read"),
        ({"read_share": 0.7}, "8 KiB random 70/30"),
        ({"read_share": 0, "random_share": 0, "block_bytes": "64K"}, "64 KiB sequential write"),
        ({"random_share": 0.5}, "8 KiB 50 % random read"),
        ({"block_bytes": {"4K": 1, "64K": 1}}, "4 KiB + 64 KiB random read"),
        ({"block_bytes": {"512": 1, "4K": 1, "8K": 1, "60K": 1}}, "512 B - 60 KiB random read"),
        ({"sync": "fsync", "sync_every": 8, "read_share": 0}, "8 KiB random write fsync every 8"),
        ({"workers": 4}, "8 KiB random read, 4 workers"),
        ({"io_mode": "buffered"}, "8 KiB random read, buffered"),
    ],
)
def test_a_workload_is_named_after_what_it_does(keys: dict[str, Any], name: str) -> None:
    assert IoWorkloadSpec(activities=(activity(**keys),)).title == name


def test_a_given_name_wins() -> None:
    assert IoWorkloadSpec(activities=(activity(), activity(role="log")), name="Database mix").title == "Database mix"


@given(share=st.floats(0, 1))
def test_whether_it_writes(share: float) -> None:
    assert IoWorkloadSpec(activities=(activity(), activity(read_share=share))).writes is (share < 1)


class TestLoad:
    def test_closed(self) -> None:
        assert load_facts(activity(queue_depth=8, workers=2), 3) == {"queue_depth": 8, "workers": 6, "outstanding": 48}

    def test_one_outstanding_unless_said(self) -> None:
        assert load_facts(activity(), 1)["outstanding"] == 1

    def test_open(self) -> None:
        facts = load_facts(activity(rate=500, arrivals="poisson"), 2)

        assert facts == {"rate": 500.0, "arrivals": "poisson", "workers": 2}
        assert (activity(rate=500).is_open, activity(rate=500).depth) == (True, 256)

    def test_bursts(self) -> None:
        facts = load_facts(activity(burst_interval_s="20s", burst_bytes="64M", read_share=0), 1)

        assert facts == {"burst_interval_s": 20.0, "burst_bytes": 64 << 20, "burst_spread": 0.5, "workers": 1}

    def test_a_search_changes_the_first_activity_alone(self) -> None:
        workload = IoWorkloadSpec(activities=(activity(queue_depth=1), activity(queue_depth=2, role="log")))

        assert [a.depth for a in workload.with_load("outstanding", 27.0, 3).activities] == [9, 2]
        assert workload.with_load("rate", 250.0, 3).activities[0].rate == 250.0

    def test_a_load_is_finer_than_one_more_for_every_worker(self) -> None:
        """With twelve volumes a step was twelve I/Os."""
        loaded = IoWorkloadSpec(activities=(activity(queue_depth=1),)).with_load("outstanding", 13.0, 12).activities[0]

        assert (loaded.queue_depth, loaded.outstanding, loaded.depth_on(12)) == (None, 13, 2)
        assert load_facts(loaded, 12) == {"queue_depth": 1, "workers": 12, "outstanding": 13}
        assert load_label(load_facts(loaded, 12)) == "13 out (1-2 x 12)"

    def test_a_total_excludes_other_loads(self) -> None:
        with pytest.raises(ValueError, match="outstanding excludes"):
            activity(outstanding=5, queue_depth=2)


class TestFacts:
    def test_of_one_activity_are_the_points_own(self) -> None:
        facts = IoWorkloadSpec(activities=(activity(block_bytes="8K", queue_depth=4),)).facts()

        assert (facts["kind"], facts["block_bytes"], facts["align_bytes"]) == ("io", 8192, 8192)
        assert not {"queue_depth", "rate", "workers", "activities"} & facts.keys()

    def test_of_several_are_listed_with_their_loads(self) -> None:
        workload = IoWorkloadSpec(activities=(activity(name="reads", queue_depth=8), activity(name="log", role="log")))

        assert [(a["name"], a["role"], a["load"]["outstanding"]) for a in workload.facts()["activities"]] == [
            ("reads", "data", 8),
            ("log", "log", 1),
        ]
