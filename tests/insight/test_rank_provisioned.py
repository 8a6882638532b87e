"""A cloud volume beside what it was provisioned with."""

from __future__ import annotations

from typing import Any, cast

import pytest
from past_runs import direction, point

from assay.base.errors import UsageError
from assay.insight.ranking.provisioned import provisioned_of_run, provisioned_reference
from assay.insight.ranking.rank import class_words, standings
from assay.record.shapes.point import Point

GP3 = "model:aws-gp3?size=1TiB&iops=16000&throughput=500MiB/s"


def load(outstanding: int, *, block: int = 8192, iops: float = 15_900.0, random: float = 1.0) -> Point:
    made: dict[str, Any] = point(iops, depth=outstanding)
    workload = {**made["workload"], "block_bytes": block, "random_share": random}
    return cast("Point", {**made, "workload": workload, "total": direction(iops, 1e6)})


def reference(spec: str, *points: Point) -> dict[int, float]:
    found = provisioned_reference(spec, points)
    return {} if found is None else {one.outstanding: one.value for one in found.figure}


def test_the_limits_are_those_that_were_bought() -> None:
    assert reference(GP3, load(256)) == {256: 16_000.0}
    # 500 MiB/s are 8,000 I/Os of 64 KiB, of which 32 outstanding are enough.
    assert reference(GP3, load(32, block=1 << 16)) == {32: 8_000.0}
    # An I/O of 512 KiB counts as two of 256 KiB; the bytes are the closer limit.
    assert reference(GP3, load(256, block=1 << 19)) == {256: 1_000.0}
    assert reference(GP3.replace("aws-gp3", "aws-io2").replace("&throughput=500MiB/s", ""), load(256)) == {
        256: 16_000.0
    }
    assert reference("model:azure-premium-v2?size=1TiB&iops=20000&throughput=500MB/s", load(256)) == {256: 20_000.0}
    assert reference(f"{GP3}&volumes=2", load(512)) == {512: 32_000.0}


def test_a_load_that_need_not_reach_them_has_no_reference() -> None:
    # 16,000 I/Os a second of 4 x 0.8 ms are 51 outstanding.
    assert reference(GP3, load(51), load(52)) == {52: 16_000.0}
    assert reference(GP3, load(256, random=0.0)) == {}
    assert reference("model:aws-gp2?size=1TiB", load(256)) != {}


def test_a_volume_that_bursts_has_none() -> None:
    assert reference("model:aws-gp2?size=100GiB", load(256)) == {}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("16000", "accepted: a cloud's volume"),
        ("model:ps6100xv", "is no volume of a cloud"),
        ("model:aws-gp3?iops=900000", "iops"),
        ("model:nothing", "nothing"),
    ],
)
def test_what_is_no_such_volume_is_refused(spec: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        provisioned_reference(spec, [load(256)])
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("paths", "spec"),
    [
        ([GP3], GP3), (["model:ps6100xv"], None), (["/data/f"], None), ([], None), ([7], None), (None, None),
        (["model:/etc/passwd"], None), (["model:./aws-gp3.toml"], None), (["model:aws-gp3?iops=1"], None),
    ],
)  # fmt: skip
def test_a_run_on_a_model_says_what_was_provisioned(paths: Any, spec: str | None) -> None:
    assert provisioned_of_run({"request": {"paths": paths}}) == spec
    assert provisioned_of_run({}) is None


def test_the_rank_says_how_near_it_came() -> None:
    points = [load(256, iops=8_000.0)]
    found = provisioned_reference(GP3, points)
    assert found is not None
    (standing,) = [one for one in standings(points, [found], None, "x") if one.figure.name == "iops"]
    words = class_words(standing.figure, standing.classes[0])
    assert words.startswith("a volume as provisioned (AWS EBS gp3, 16,000 IOPS, 524.3 MB/s) does 2 times that")
