"""From a study to parts: plans, targets of their own, order, repeats, published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.insight.calibration.published import read_published
from assay.insight.calibration.published_papers import full_names
from assay.insight.studies.files import read_study
from assay.insight.studies.parts import study_parts
from assay.insight.studies.study import load_study
from assay.record.points import current_points
from assay.run.chains import chains_of, forget_unfinished, in_order
from assay.run.part import part_from_report, part_report
from assay.run.request import TargetRequest
from assay.run.targets import choose_targets
from assay.workloads.io.plan import IoPlan
from assay.workloads.plan import Part


def parts_of(name: str, **changes: Any) -> tuple[list[Part], dict[str, Any]]:
    study = read_study(name).model_copy(update=changes)
    return study_parts(study, target=study.target or "")


def options_of(part: Part) -> dict[str, str]:
    assert part.target_text is not None
    return dict(item.partition("=")[::2] for item in part.target_text.partition("?")[2].split("&"))


def plan_of(part: Part) -> IoPlan:
    assert isinstance(part.plan, IoPlan)
    return part.plan


def test_fill_is_six_nine_and_twelve_volumes() -> None:
    parts, _ = parts_of("fill")

    assert [(options_of(part)["volumes"], options_of(part)["fill"]) for part in parts] == [
        ("6", "0.4"), ("9", "0.62"), ("12", "0.85"),
    ]  # fmt: skip
    assert {part.plan.limits for part in parts} == {("read.mean<=20ms", "write.mean<=20ms")}


def test_scaling_grows_the_volumes_with_the_members_or_keeps_them() -> None:
    parts, facts = parts_of("san-scaling")

    found = {(facts["levels"][p.name]["data"], options_of(p)["members"]): options_of(p)["volumes"] for p in parts}
    assert found == {
        **{("same data", str(members)): "12" for members in (1, 2, 3)},
        **{("growing data", str(members)): str(12 * members) for members in (1, 2, 3)},
    }


def test_paths_are_asked_with_the_loads_of_the_published_study() -> None:
    parts, _ = parts_of("paths")

    asked = {
        (activity.random_share, activity.read_share, activity.block_bytes, activity.depth)
        for part in parts
        for workload in plan_of(part).workloads()
        for activity in workload.activities
    }
    sequential = {(0.0, reads, kib * 1024, 8) for reads in (0.0, 1.0) for kib in (64, 128, 256)}
    assert asked == sequential | {(1.0, reads, 8192, depth) for reads in (0.0, 1.0) for depth in (4, 8, 16, 32)}


def test_reallocation_ages_first_and_goes_on_from_scan_to_scan() -> None:
    parts, facts = parts_of("read-realloc")

    assert [part.continues for part in parts] == [False, True, True, True] * 2
    chains = [[part.name for part in parts[first : first + 4]] for first in (0, 4)]
    assert facts["order"] in (chains[0] + chains[1], chains[1] + chains[0])
    assert [options_of(part)["read_realloc"] for part in parts] == ["no", "no", "yes", "yes"] * 2
    assert [plan_of(part).timing.duration_s for part in parts] == [1200, 600, 600, 600] * 2
    activities = [plan_of(part).workloads()[0].activities[0] for part in parts]
    # The published tool keeps one I/O outstanding for each worker unless told otherwise.
    assert [activity.depth for activity in activities] == [1] * 5 + [8] * 3
    # Both chains scan the same ageing: what eight outstanding overwrite is no gain of reallocation.
    for ageing in (activities[0], activities[4]):
        assert (ageing.block_bytes, ageing.read_share, ageing.random_share) == (32768, 0.5, 0.3)


def test_write_allocation_scans_what_was_written_in_short_and_in_long_runs() -> None:
    parts, _ = parts_of("write-allocation")

    assert [options_of(part)["layout.write_run"] for part in parts] == ["64"] * 3 + ["256"] * 3
    assert [part.continues for part in parts] == [False, True, True] * 2
    # First what the option is recommended for: many large sequential reads at once.
    assert [part.levels.get("scans") for part in parts] == [None, "sixteen scans", "one scan"] * 2


def test_queue_depth_keeps_the_target_that_is_given() -> None:
    parts, _ = parts_of("queue-depth")

    assert {part.target_text for part in parts} == {None}
    assert [plan_of(part).workloads()[0].activities[0].depth for part in parts] == [1, 2, 4, 8, 16, 32, 64]


def test_repeats_run_in_blocks_with_other_seeds_and_other_arrays() -> None:
    parts, facts = parts_of("raid-policy", repeats=2)

    assert [part.name for part in parts[3:]] == [f"{part.name} #2" for part in parts[:3]]
    assert {name.endswith("#2") for name in facts["order"][:3]} == {False}
    assert [options_of(part).get("seed") for part in parts] == [None] * 3 + ["2"] * 3
    assert {plan_of(part).seed for part in parts} == {1, 101}


def test_the_order_follows_from_the_seed() -> None:
    orders = {tuple(parts_of("raid-policy", seed=seed)[1]["order"]) for seed in range(20)}

    assert len(orders) == 6
    assert parts_of("fill")[1]["order"] == parts_of("fill")[1]["order"]


def test_published_points_have_targets_and_loads_of_their_own() -> None:
    parts, facts = parts_of("published")

    by_id = {part.name: part for part in parts}
    points = read_published().point
    assert set(by_id) == {point.id for point in points if point.of is None}
    also = [(part.name, one["id"]) for part in parts for one in (part.published or {}).get("also", [])]
    assert sorted(also) == sorted((point.of, point.id) for point in points if point.of is not None)
    assert by_id["fas-realloc-second"].continues
    assert by_id["fas-500-mailboxes"].plan.kind == "mailbox"
    assert plan_of(by_id["oltp-raid10-85-8k"]).search.steps[:6] == (1, 2, 3, 4, 6, 8)
    assert facts["capacities"].keys() == {"dvx-capacity"}
    scan = by_id["dss-raid50-read-128k"]
    activity = plan_of(scan).workloads()[0].activities[0]
    assert (activity.block_bytes, activity.depth, plan_of(scan).search.axis) == (131072, 128, "none")
    assert scan.target_text == "model:ps6110x?raid=50&volumes=10&volume_size=300GB"
    assert {order["id"] for order in facts["orders"]} == {"oltp-fill-8k", "oltp-fill-64k"}


def test_everything_that_is_published_of_arrays_is_there_with_why_the_model_differs() -> None:
    points = {point.id: point for point in read_published().point}

    asked = {key: point.within or point.value for key, point in points.items() if point.value is not None}
    assert asked == {
        "oltp-raid10-40-8k": 5037, "oltp-raid10-40-64k": 2118, "oltp-raid10-85-8k": 4175, "oltp-raid10-85-64k": 1858,
        "oltp-raid10-over-raid50": 1.41, "oltp-raid10-over-raid6": 1.48, "oltp-raid50-over-raid6": 1.05,
        "dss-raid50-read-128k": 1042e6, "iscsi-seq-1-path": (1700, 1900), "iscsi-seq-3-paths": (3600, 3800),
        "iscsi-read-32": 13699, "iscsi-write-32": 8551, "fas-fcoe": 3231e6, "fas-iscsi": 3006e6,
        "fas-realloc-off": 159e6, "fas-realloc-first": 161e6, "fas-realloc-second": 170e6, "fas-realloc-gain": 1.07,
        "fas-500-mailboxes": 79.2, "dvx-host-reads": 140625, "dvx-read": (0.8e6, 0.9e6), "dvx-write": 2e6,
        "dvx-steady-over-peak": 0.9, "dvx-capacity": 1.7e15,
    }  # fmt: skip
    assert {point.source for point in points.values()} <= full_names().keys()


def test_published_points_fitted_to_are_the_four_calibration_points() -> None:
    fitted = {point.id: point.value for point in read_published().point if point.fit and point.array == "ps6100xv"}

    assert fitted == {
        "oltp-raid10-40-8k": 5037, "oltp-raid10-40-64k": 2118, "oltp-raid10-85-8k": 4175, "oltp-raid10-85-64k": 1858,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("point = []", "point"),
        ("[[point]]\nid = 'a'", "missing"),
        ("[[point]]\nid='a'\ntitle='a'\nsource='s'\narray='x'\nactivity={}\nfit=true", "figure of its own"),
        ("[[point]]\nid='a'\ntitle='a'\nsource='s'\narray='x'\nactivity={}\nratio_of='b'", "no point 'b'"),
        ("not toml", "published"),
    ],
)
def test_a_wrong_file_of_published_points_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "published.toml"
    path.write_text(text)

    with pytest.raises(UsageError, match=words):
        read_published(path)


def test_parts_come_back_from_the_manifest() -> None:
    for name in ("published", "read-realloc", "queue-depth"):
        parts, facts = parts_of(name)

        assert [part_from_report(part_report(part), facts, source="run.json") for part in parts] == parts


def test_targets_of_parts_are_examined_once_for_each_text() -> None:
    study = load_study(
        {
            "name": "mine", "title": "Latency", "question": "?", "targets": ["file"],
            "factor": [
                {"name": "latency", "title": "latency", "levels": ["1ms", "2ms"]},
                {"name": "read_share", "title": "reads", "of": "activity", "levels": [0.5, 1]},
            ],
        },
        source="mine",
    )  # fmt: skip
    parts, _ = study_parts(study, target="null:?servers=2")

    target, chosen = choose_targets(TargetRequest(paths=["null:?servers=2"]), parts)

    texts = ["null:?servers=2&latency=1ms"] * 2 + ["null:?servers=2&latency=2ms"] * 2
    assert [part.target_text for part in chosen] == texts
    assert len({id(part.target) for part in chosen}) == 2
    assert target is chosen[0].target


def test_of_an_unfinished_chain_nothing_is_kept() -> None:
    parts, facts = parts_of("read-realloc")
    parts = parts[:4]
    ordered = in_order(parts, facts | {"order": [part.name for part in parts]})
    whole = {part.name: {"part": part.name} for part in parts}
    cut = {name: point for name, point in whole.items() if name != parts[-1].name}
    others = {"other": {"part": "another part"}}

    for finished, kept in ((dict(whole), whole), (cut | others, others)):
        forget_unfinished(ordered, finished, is_virtual=lambda _part: True)
        assert finished == kept
    assert chains_of(ordered) == [parts]


def test_of_points_measured_again_the_last_count() -> None:
    ended = [("p1", "a", "time"), ("p2", "b", "interrupted"), ("p3", "b", "time"), ("p4", "a", "time")]
    points: list[dict[str, Any]] = [{"id": name, "key": key, "ended_by": by} for name, key, by in ended]

    assert [point["id"] for point in current_points(points)] == ["p2", "p3", "p4"]
    assert current_points([{"id": "p1"}, {"id": "p2"}]) == [{"id": "p1"}, {"id": "p2"}]


def test_levels_are_not_compared_without_the_baseline() -> None:
    study = read_study("raid-policy")

    with pytest.raises(UsageError, match=r"raid=10,6 are compared with 50, .* raid=50,10,6"):
        study_parts(study, target=study.target or "", levels={"raid": ["10", "6"]})
    for levels in (["10"], ["50"], ["50", "6"]):
        assert len(study_parts(study, target=study.target or "", levels={"raid": levels})[0]) == len(levels)


def test_a_raw_profile_may_follow_on_the_model_of_the_array_under_the_databases() -> None:
    study = read_study("raw-scaling").model_copy(update={"repeats": 1})
    assert study.target is not None
    parts, _ = study_parts(study, target=study.target)

    assert [(part.name, part.follows) for part in parts] == [
        ("one database, 1 member", None), ("raw, 1 member", "one database, 1 member"),
        ("two databases, 2 members", None), ("raw, 2 members", "two databases, 2 members"),
    ]  # fmt: skip
    texts = [str(part.target_text) for part in parts]
    assert texts[1] == "model:ps6100xv?raid=10&volumes=data:1,log:1&volume_size=8GiB&members=1&cache=128MiB"
    assert "members=2" in texts[2]
    assert texts[3].startswith("model:ps6100xv?raid=10&volumes=data:2,log:2")
    data = study.model_dump(mode="json", exclude_unset=True)
    data["case"][1] |= {"follows": None}
    with pytest.raises(UsageError, match="'raw, 1 member' is on the model of an array: say which case it follows"):
        load_study(data, source="mine")
