"""Volumes of a cloud: what providers state holds, what they do not offer is refused, and points show it."""

from __future__ import annotations

import json

import pytest

from assay import _core
from assay.base.errors import UsageError
from assay.run.simulate import simulate
from assay.targets.arrays.model.cloud import Cloud
from assay.targets.arrays.model.cloud_offer import machines
from assay.targets.arrays.model.configuration import configure
from assay.targets.arrays.model.model_file import catalogue_names, load_model
from assay.workloads.io.plan import load_plan

MIB = 1 << 20
CLOUDS = [name for name in catalogue_names() if load_model(name).model_class == "cloud"]


def volume(name: str, **options: str) -> Cloud:
    made = configure(name, options)
    assert isinstance(made, Cloud)
    return made


def limits(name: str, **options: str) -> tuple[int, int, int]:
    """IOPS, bytes a second, and seconds of the burst of I/Os."""
    found = volume(name, **options).limits[0]
    return found.iops.per_s, found.throughput.per_s, round(found.iops.burst_s())


@pytest.mark.parametrize("name", CLOUDS)
def test_every_offer_is_dated_and_its_plan_is_one_of_the_compiled_model(name: str) -> None:
    made = volume(name)
    assert made.offer.region
    assert made.offer.as_of >= "2026-08"
    assert all(parameter.source for parameter in made.parameters.values())
    _core.ModelledArray(json.dumps(made.plan()))


@pytest.mark.parametrize(
    ("gib", "iops", "seconds"),
    # The table of the EBS user guide, General Purpose SSD volumes.
    [
        ("33", 100, 1862),
        ("100", 300, 2000),
        ("334", 1002, 2703),
        ("750", 2250, 7200),
        ("1000", 3000, 0),
        ("5334", 16000, 0),
    ],
)
def test_gp2_has_the_baselines_and_bursts_of_its_providers_table(gib: str, iops: int, seconds: int) -> None:
    found = limits("aws-gp2", size=f"{gib}GiB")
    assert (found[0], found[2]) == (iops, seconds)
    assert found[1] == (128 if int(gib) <= 170 else 250) * MIB


@pytest.mark.parametrize(
    ("name", "options", "iops", "rate"),
    [
        ("aws-gp3", {"size": "500GB"}, 3000, 125 * MIB),
        ("aws-gp3", {"size": "500GB", "iops": "8000", "throughput": "2000MiB/s"}, 8000, 2000 * MIB),
        ("aws-io1", {"size": "1TiB", "iops": "20000"}, 20000, 500 * MIB),
        ("aws-io1", {"size": "2TiB", "iops": "64000"}, 64000, 1000 * MIB),
        ("aws-io2", {"size": "256GiB", "iops": "256000"}, 256000, 4000 * MIB),
        ("aws-st1", {"size": "5TiB"}, 500, 200 * MIB),
        ("aws-sc1", {"size": "16TiB"}, 250, 192 * MIB),
        ("azure-premium", {"size": "129GiB"}, 1100, 125_000_000),
        ("azure-premium", {"size": "1024GiB"}, 5000, 200_000_000),
        ("azure-premium-v2", {"size": "160GiB", "iops": "80000"}, 80000, 125_000_000),
        ("gcp-pd-ssd", {"size": "500GiB"}, 21000, 480 * MIB),
        ("gcp-hyperdisk-extreme", {"size": "1TiB", "iops": "10000"}, 10000, 2500 * MIB),
        ("gcp-hyperdisk-throughput", {"size": "10TiB", "throughput": "500MiB/s"}, 2000, 500 * MIB),
    ],
)
def test_limits_are_those_that_the_provider_states(name: str, options: dict[str, str], iops: int, rate: int) -> None:
    found = limits(name, **options)
    assert found[0] == iops
    assert found[1] == pytest.approx(rate, abs=2)


def test_credits_of_azure_last_30_minutes_at_the_burst_and_those_of_st1_one_scan() -> None:
    assert limits("azure-premium", size="512GiB")[2] == 1800
    assert limits("azure-standard-ssd", size="1TiB")[2] == 1800
    assert limits("azure-premium", size="1TiB")[2] == 0
    st1 = volume("aws-st1", size="1TiB").limits[0].throughput
    assert (st1.burst_per_s, st1.credits) == (250 * MIB, 1 << 40)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("aws-gp3", {"size": "65TiB"}, "outside 1 GiB to 64 TiB"),
        (
            "aws-gp3",
            {"size": "4GiB", "iops": "3001"},
            "3,001 is outside 3,000 to 3,000, which the provider offers for 4 GiB",
        ),
        ("aws-gp3", {"size": "1TiB", "iops": "80001"}, "80,001 is outside 3,000 to 80,000"),
        ("aws-gp3", {"throughput": "751MiB/s"}, "outside 125 to 750 MiB/s, which the provider offers with 3,000 IOPS"),
        ("aws-gp2", {"iops": "3000"}, "follow from the size of this volume and cannot be asked for"),
        ("aws-gp2", {"throughput": "200MiB/s"}, "comes with this volume and cannot be asked for"),
        ("gcp-hyperdisk-throughput", {"iops": "900"}, "come with the throughput of this volume"),
        ("gcp-hyperdisk-throughput", {"size": "4TiB", "throughput": "39MiB/s"}, "outside 40 to 360 MiB/s"),
        ("aws-gp3", {"instance": "m6i.xlrge"}, "did you mean 'm6i.xlarge'?"),
        ("azure-ultra", {"iops": "500", "instance": "m6i.xlarge"}, "known for azure-ultra: Standard_D2s_v5"),
        ("gcp-hyperdisk-balanced", {"instance": "n2-standard-8"}, "no machine is known for gcp-hyperdisk-balanced"),
        ("aws-gp3", {"instance_credits": "5%"}, "there is no instance"),
        ("aws-gp3", {"background": "200MiB/s"}, "there is no snapshot to load"),
        ("aws-gp3", {"from_snapshot": "yes", "background": "400MiB/s"}, "400MiB/s is not offered"),
        ("gcp-pd-ssd", {"from_snapshot": "yes"}, "how gcp-pd-ssd loads a snapshot is not known"),
        ("aws-gp3", {"raid": "5"}, "has no option 'raid'"),
        ("aws-gp3", {"size": "1GiB", "volume_size": "1GiB"}, "are the same; give one of them"),
        ("aws-gp3", {"disk.page": "8KiB"}, "is for solid-state only"),
    ],
)
def test_what_is_not_offered_is_refused_with_its_bound(name: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        volume(name, **options)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_assumed_and_how_long_bursts_last_is_said() -> None:
    notices = volume("aws-gp2", size="100GiB", credits="5%", instance="m6i.large").notices
    assert notices[0].startswith("latency.read of aws-gp2, 0.8 ms, is assumed: the provider says single-digit")
    assert notices[2] == (
        "each volume bursts to 3,000 IOPS for 100 s with 5 % of its credits, then has 300 IOPS; every point begins with"
        " these credits, and credits=0 shows what lasts"
    )
    # The machine's baseline of throughput is below the volume's.
    assert notices[3].startswith("m6i.large bursts to 1.25 GB/s for 1,800 s with full credits, then has 81.25 MB/s")
    assert not any("latency" in notice for notice in volume("gcp-hyperdisk-throughput").notices)


def test_machines_have_a_source_and_no_burst_below_their_baseline() -> None:
    assert len(machines()) > 50
    for machine in machines():
        assert machine.source
        assert machine.burst_iops >= machine.iops > 0
        assert machine.burst_throughput >= machine.throughput > 0


def _iops(target: str, depth: int, block: str = "8K") -> float:
    name, _, query = target.partition("?")
    options = dict(item.split("=", 1) for item in query.split("&") if item)
    plan = load_plan(
        {"timing": {"warmup_s": 1, "duration_s": 4},
         "activity": [{"block_bytes": block, "read_share": 0.7, "queue_depth": depth}]},
        source="test",
    )  # fmt: skip
    points, _ = simulate(volume(name, **options), plan)
    total = points[0]["total"]
    assert total is not None
    return total["iops"]


def test_a_point_has_what_was_provisioned_whichever_limit_ends_it() -> None:
    assert _iops("aws-gp3?size=500GB&iops=6000", 32) == pytest.approx(6000, rel=0.01)
    assert _iops("aws-gp2?size=100GiB", 32) == pytest.approx(3000, rel=0.01)
    assert _iops("aws-gp2?size=100GiB&credits=0", 32) == pytest.approx(300, rel=0.01)
    # The machine's throughput without credits: 81.25 MB/s of 64 KiB.
    machine = "aws-gp3?iops=10000&throughput=1000MiB/s&instance=m6i.large&instance_credits=0"
    assert _iops(machine, 32, "64K") == pytest.approx(81.25e6 / 65536, rel=0.01)
    # One I/O at a time: latency alone.
    assert _iops("aws-gp3", 1) == pytest.approx(1e3 / (0.7 * 0.8 + 0.3 * 0.9), rel=0.03)
