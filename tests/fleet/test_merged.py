"""Merging points of hosts: percentiles are those of all samples together, and what does not add up is not added."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay._core import Histogram
from assay.record import merged as results_merged
from assay.record.merged import PERCENTILES, merged, merged_batches, merged_point, slimmed

SAMPLES = st.lists(st.integers(1, 10_000_000_000), max_size=60)


def direction(samples: list[int], seconds: float = 2.0) -> dict[str, Any] | None:
    """A direction of a point, as the core writes it for these latencies."""
    if not samples:
        return None
    histogram = Histogram()
    for sample in samples:
        histogram.record(sample)
    latency: dict[str, Any] = {
        key: min(histogram.percentile(percentile), max(samples)) for key, percentile in PERCENTILES.items()
    }
    latency |= {"mean": sum(samples) / len(samples), "max": max(samples)}
    return {
        "count": len(samples),
        "iops": len(samples) / seconds,
        "bytes_per_s": 8192 * len(samples) / seconds,
        "latency_ns": latency,
        "histogram": histogram.to_base64(),
    }


@given(st.lists(SAMPLES, min_size=2, max_size=5))
def test_percentiles_of_hosts_together_are_those_of_one_process_given_the_same_samples(
    hosts: list[list[int]],
) -> None:
    together = direction([sample for samples in hosts for sample in samples])
    found = merged_point([{"total": direction(samples), "measured_s": 2.0} for samples in hosts])["total"]
    if together is None:
        assert found is None
        return
    mean = found["latency_ns"].pop("mean")
    expected = together["latency_ns"].pop("mean")
    assert abs(mean - expected) <= 1e-9 * expected
    assert found["latency_ns"] == together["latency_ns"]
    assert (found["count"], found["iops"]) == (together["count"], together["iops"])
    assert Histogram.from_base64(found["histogram"]).bins() == Histogram.from_base64(together["histogram"]).bins()


def test_a_percentile_without_a_histogram_is_not_known() -> None:
    sides = [
        {"iops": 10.0, "latency_ns": {"mean": 4.0, "p99": 5.0}},
        {"iops": 30.0, "latency_ns": {"mean": 8.0, "p99": 9}},
    ]
    found = merged([{"read": side} for side in sides])["read"]
    assert found == {"iops": 40.0, "latency_ns": {"mean": 7.0, "p99": None}}


def test_numbers_add_up_only_where_their_name_says_so() -> None:
    points = [{"errors": {"count": 1, "kinds": {"EIO": 1}}, "ratio": 3.0, "own_per_h": 5.0},
              {"errors": {"count": 2, "kinds": {"EIO": 2}}, "ratio": 4.0, "own_per_h": 7.0}]  # fmt: skip
    assert merged_point(points, adds={"own_per_h"}) == {
        "errors": {"count": 3, "kinds": {"EIO": 3}},
        "ratio": None,
        "own_per_h": 12.0,
    }


def test_what_one_host_cannot_tell_is_not_summed_without_it() -> None:
    assert merged([{"iops": 5.0}, {"iops": None}]) == {"iops": None}


def test_a_flag_holds_where_it_holds_on_every_host() -> None:
    assert merged([{"sustained": True, "saturated": False}, {"sustained": False, "saturated": True}]) == {
        "sustained": False,
        "saturated": True,
    }
    assert merged([{"passed": True}, {"passed": None}]) == {"passed": None}
    assert merged([{"passed": False}, {"passed": None}]) == {"passed": False}


def test_batches_add_up_and_their_latencies_weigh() -> None:
    one = {"seconds": 1.0, "total": {"iops": [10.0, 20.0], "latency_mean_ns": [100.0, 100.0]}}
    other = {"seconds": 1.0, "total": {"iops": [30.0, 20.0, 9.0], "latency_mean_ns": [200.0, None, 1.0]}}
    assert merged_batches([one, other]) == {
        "seconds": 1.0,
        "total": {"iops": [40.0, 40.0], "latency_mean_ns": [175.0, 100.0]},
    }
    assert merged_batches([one, {"seconds": None}]) == {"seconds": None}


def test_points_of_a_thousand_hosts_fit_into_a_run_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_merged, "HOSTS_BYTES_MAX", 2 << 20)
    chance = random.Random(1)
    side = direction([round(chance.lognormvariate(13, 1)) for _ in range(5000)])
    hosts = [{"name": f"h{number}", "point": {"read": side, "volumes": [{"name": "v", "read": side}]}}
             for number in range(1000)]  # fmt: skip
    few, many = slimmed(hosts[:3]), slimmed(hosts)
    assert few[0]["point"]["read"] == side
    assert "histogram" not in few[0]["point"]["volumes"][0]["read"]
    assert "histogram" not in many[0]["point"]["read"]
    assert len(json.dumps(many)) < 2 << 20
    assert many[999]["point"]["read"]["latency_ns"] == side["latency_ns"]


def test_sides_of_one_name_become_one() -> None:
    hosts = [
        {"volumes": [{"name": "a", "total": direction([5])}]},
        {"volumes": [{"name": "a", "total": direction([7])}]},
    ]
    (volume,) = merged_point(hosts)["volumes"]
    assert volume["total"]["count"] == 2
