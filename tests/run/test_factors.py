"""Studies: presets, files of one's own, and what is wrong with them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.insight.studies.choice import choose_target
from assay.insight.studies.files import read_study, study_names, study_variants
from assay.insight.studies.parts import draw_order
from assay.insight.studies.plan_settings import with_settings
from assay.insight.studies.study import StudyPlan, combination_plan, combinations, load_study
from assay.workloads.tpcc.plan import TpccPlan

MINE = """
question = "What does a slower device hold?"
title = "Latency"
targets = ["file"]
target = "null:?servers=4"
plan = { limits = ["read.mean<=10ms"], search = { axis = "queue-depth" }, activity = [{ read_share = 1 }] }
factor = [
    { name = "latency", title = "latency", levels = ["1ms", { value = "2ms", label = "slow" }] },
    { name = "block", title = "block", of = "activity", key = "block_bytes", levels = ["8K", "64K"] },
]
comparison = { by = "latency", baseline = "1ms" }
"""


def mine(**changes: Any) -> dict[str, Any]:
    return {"name": "mine"} | tomllib.loads(MINE) | changes


def test_the_presets_are_those_of_the_contract() -> None:
    assert study_names() == [
        "block-and-mix", "block-mix-fill", "cache-size", "columnstore", "consolidation", "cross-stimulus", "degraded",
        "demand-intensity", "dss-profile-vs-database", "dss-scaling", "fill", "flash-state", "hosts",
        "idle-recovery", "interference", "iops-matrix", "latency", "mailbox-layout", "memory", "mixed-drives",
        "oltp-degraded", "oltp-layout", "oltp-on-raid", "oltp-partition", "oltp-scaling",
        "over-provisioning", "partitions", "path-policy", "paths", "published", "queue-depth", "raid-policy",
        "raw-scaling", "raw-vs-database", "read-realloc", "read-settings", "rebuild", "san-scaling", "scale-together",
        "server-parameters", "steady-state", "steady-state-array", "streams", "tail", "wire-speed", "working-set",
        "write-allocation", "write-saturation",
    ]  # fmt: skip


def test_a_study_has_a_variant_for_each_kind_of_target() -> None:
    assert [study.targets for study in study_variants("cache-size")] == [("model",), ("database",)]
    assert read_study("cache-size").title == read_study("cache-size", "model:ps6100xv").title == "Controller cache"
    assert read_study("cache-size", "embedded:/srv/pg").title == "Buffer cache"
    assert read_study("raid-policy", "model:nvme-raid").title == "RAID policy on flash"
    assert read_study("raid-policy", "model:ps6100xv").title == read_study("raid-policy").title == "RAID policy"
    # One that has none for the target says so itself.
    assert read_study("fill", "embedded:/srv/pg").targets == ("model",)


TPCC = """
title = "Users"
question = "How many?"
targets = ["database"]
plan = { kind = "tpcc", warehouses = 4, timing = { duration_s = 5 }, layout = { partition_table = "hottest" } }
factor = [
    { name = "users", title = "users", of = "plan", levels = [4, 8] },
    { name = "ways", title = "partitions", of = "layout", key = "partition_ways", levels = [1, 4] },
]
"""


def on_database(**changes: Any) -> StudyPlan:
    return load_study({"name": "mine"} | tomllib.loads(TPCC) | changes, source="mine")


def plans_of(study: StudyPlan) -> list[TpccPlan]:
    plans = [combination_plan(study, one, repeat=0, source="mine") for one in combinations(study, {}, "mine")]
    return [plan for plan in plans if isinstance(plan, TpccPlan)]


def test_levels_change_the_plan_of_transactions_and_its_layout() -> None:
    plans = plans_of(on_database())

    assert [(plan.users, plan.layout.partition_ways) for plan in plans] == [(4, 1), (4, 4), (8, 1), (8, 4)]
    # All levels run on the same rows, whatever the seed of the order.
    assert {plan.seed for plan in plans_of(on_database(seed=7))} == {1}


def test_settings_change_the_plan_at_all_levels_or_are_left_for_the_target() -> None:
    given = {"warehouses": "8", "duration": "3s", "directories": "/a,/b", "mix": "new_order=1", "set.fsync": "off"}

    study, left = with_settings(on_database(), given)

    plan = plans_of(study)[0]
    assert (plan.warehouses, plan.timing.duration_s, plan.layout.directories) == (8, 3.0, ("/a", "/b"))
    assert plan.mix.weights == [1, 0, 0, 0, 0]
    assert left == {"set.fsync": "off"}
    assert with_settings(load_study(mine(), source="mine"), {"raid": "10"})[1] == {"raid": "10"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"warehouse": "8"}, "did you mean 'warehouses'?"),
        ({"users": "8"}, "--levels users="),
        ({"partition_ways": "8"}, "--levels ways="),
        ({"warehouses": "many"}, "warehouses"),
        ({"directories": "here"}, "no full path"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        with_settings(on_database(), given)


def test_databases_are_asked_for_by_studies_on_databases_alone() -> None:
    assert choose_target(on_database(), "embedded:/srv/pg", {}) == "embedded:/srv/pg"
    with pytest.raises(UsageError, match=r"no sense on '/data'.*a database"):
        choose_target(on_database(), "/data", {})
    with pytest.raises(UsageError, match=r"no sense on 'postgresql:\.\.\.'") as refused:
        choose_target(load_study(mine(), source="mine"), "postgresql://u:secret@db/t", {})
    assert "secret" not in str(refused.value)
    with pytest.raises(UsageError, match=r"has none; give embedded:DIR"):
        choose_target(read_study("cache-size", "embedded:/a"), "postgresql://db/t", {})


@pytest.mark.parametrize("name", study_names())
def test_a_preset_asks_a_question_and_is_read_back_from_its_json(name: str) -> None:
    study = read_study(name)

    assert study.question.endswith("?")
    again = load_study(study.model_dump(mode="json", exclude_defaults=True) | {"name": name}, source="again")
    assert again.model_dump() == study.model_dump()


def test_every_combination_of_levels_is_measured() -> None:
    found = combinations(load_study(mine(), source="mine"), {}, "mine")

    assert [one.name for one in found] == [
        "latency=1ms, block=8K", "latency=1ms, block=64K", "latency=2ms, block=8K", "latency=2ms, block=64K",
    ]  # fmt: skip
    assert found[2].title == "slow, 8K"


def test_levels_are_chosen_by_value_or_label() -> None:
    study = load_study(mine(), source="mine")

    for text in ("2ms", "slow"):
        assert {one.levels["latency"].key for one in combinations(study, {"latency": [text]}, "mine")} == {"2ms"}


def test_listed_cases_take_the_place_of_all_combinations() -> None:
    cases = [{"levels": {"latency": "slow", "block": "8K"}}, {"label": "alone", "levels": {"block": "64K"}}]

    found = combinations(load_study(mine(case=cases), source="mine"), {}, "mine")

    assert [one.name for one in found] == ["latency=2ms, block=8K", "alone, block=64K"]


def level(**keys: Any) -> dict[str, Any]:
    return {"factor": [{"name": "latency", "title": "latency", "levels": ["1ms", keys]}]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"factr": []}, "did you mean 'factor'?"),
        ({"factor": []}, "a study varies something"),
        (level(label="x"), "a value or a table"),
        (level(label="x", value=1, set={"a": 1}), "a value or a table"),
        (level(set={"a": 1}), "needs a label"),
        (level(value="1ms"), "two levels '1ms'"),
        ({"factor": tomllib.loads(MINE)["factor"][:1] * 2}, "'latency' is given twice"),
        ({"comparison": {"by": "latncy", "baseline": "1ms"}}, "did you mean 'latency'?"),
        ({"comparison": {"by": "latency", "baseline": "3ms"}}, "no level '3ms'"),
        ({"comparison": {"by": "latency", "baseline": "1ms", "figure": "joy"}}, "comparison.figure"),
        ({"targets": ["tape"]}, "targets"),
        ({"repeats": 0}, "repeats"),
        ({"plan": {"activity": [{"blok_bytes": 1}]}}, "did you mean 'block_bytes'?"),
        ({"plan": {"limits": ["joy<=1"]}}, "joy"),
        ({"case": [{"levels": {"latency": "9ms"}}]}, "no level '9ms'"),
        ({"case": [{"levels": {"speed": "1ms"}}]}, "no factor 'speed'"),
        ({"case": [{"levels": {"latency": "1ms"}}, {"levels": {"latency": "1ms"}}]}, "give them labels"),
        ({"case": [{"levels": {"latency": "1ms"}, "continues": True}]}, "cannot search"),
        (
            {"case": [{"levels": {"latency": "1ms"}, "continues": True, "search": {"axis": "none"}}]},
            "no case before it",
        ),
        ({"plan": {"activity": [3]}}, "plan.activity: a list"),
        ({"plan": {"activity": {"a": 3}}}, "plan.activity: a list"),
        ({"plan": {"timing": 3}}, "plan.timing: a table"),
        ({"plan": {"search": [1]}}, "plan.search: a table"),
        ({"published": True}, "leave out factor and case"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_study(mine(**changes), source="study mine")

    assert str(caught.value).startswith("study mine")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    changes=st.dictionaries(st.sampled_from(sorted(mine())), JSON, min_size=1, max_size=1)
    | st.dictionaries(st.sampled_from(["activity", "search", "timing"]), JSON, min_size=1, max_size=1).map(
        lambda plan: {"plan": plan}
    )
)
def test_any_value_of_a_key_or_of_its_plan_gives_a_study_or_one_line(changes: dict[str, Any]) -> None:
    complaint = ""
    try:
        load_study(mine(**changes), source="mine")
    except UsageError as error:
        complaint = str(error)
    assert "\n" not in complaint


def test_an_unknown_study_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'raid-policy'"):
        read_study("raid-polcy")


@pytest.mark.parametrize(("content", "words"), [(b"\xff\xfe", "study"), (b"[", "study"), (None, "cannot be read")])
def test_a_file_that_is_no_study(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(UsageError, match=words):
        read_study(str(path))


@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}")])
def test_a_file_that_is_nested_too_deep(tmp_path: Path, opens: str, closes: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"plan": {"activity": ' + opens * 100_000 + "1" + closes * 100_000 + "}}")

    with pytest.raises(UsageError, match="nested too deep"):
        read_study(str(path))


def test_a_file_of_ones_own_has_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "slow.toml"
    path.write_text(MINE)

    assert read_study(str(path)).name == "slow"


class TestTarget:
    def test_a_study_of_models_refuses_a_file(self) -> None:
        with pytest.raises(UsageError, match=r"makes no sense on '/data/f': it asks about a model"):
            choose_target(read_study("raid-policy"), "/data/f", {})

    def test_a_study_of_both_takes_a_file(self) -> None:
        assert choose_target(read_study("queue-depth"), "/data/f", {}) == "/data/f"

    def test_options_of_a_file_are_refused(self) -> None:
        with pytest.raises(UsageError, match="--set changes options of the target"):
            choose_target(read_study("queue-depth"), "/data/f", {"raid": "10"})

    def test_a_factor_of_the_target_needs_one_with_options(self) -> None:
        with pytest.raises(UsageError, match="study mine changes options of the target"):
            choose_target(load_study(mine(), source="mine"), "/data/f", {})

    def test_what_the_levels_set_cannot_be_set_for_all(self) -> None:
        with pytest.raises(UsageError, match="--levels raid="):
            choose_target(read_study("raid-policy"), None, {"raid": "6"})

    @pytest.mark.parametrize(
        ("study", "target", "words"),
        [
            ("raid-policy", "model:ps6100xv?volumes=12&volumes=6", "'volumes' of the target is given twice"),
            ("raid-policy", "model:ps6100xv?raid=10", "--levels raid="),
            ("san-scaling", "model:ps6100xv?volumes=6", "--levels data="),
            ("queue-depth", "null:?servers=1&servers=2", "'servers' of the target is given twice"),
        ],
    )
    def test_options_of_a_target_count_once(self, study: str, target: str, words: str) -> None:
        with pytest.raises(UsageError, match=words):
            choose_target(read_study(study), target, {})

    def test_options_of_cases_cannot_be_set_for_all(self) -> None:
        cases = [{"levels": {"block": one}, "target": {"servers": number}} for number, one in enumerate(("8K", "64K"))]

        with pytest.raises(UsageError, match="--set servers: cases of study mine set it"):
            choose_target(load_study(mine(case=cases), source="mine"), None, {"servers": "2"})

    def test_options_join_those_of_the_target(self) -> None:
        chosen = choose_target(read_study("raid-policy"), None, {"members": "2"})

        assert chosen == "model:ps6100xv?volumes=12&members=2"

    def test_without_a_target_of_its_own_one_must_be_given(self) -> None:
        study = load_study(mine(target=None), source="mine")

        with pytest.raises(UsageError, match="give a target: a file, folder or device"):
            choose_target(study, None, {})


@given(seed=st.integers(0, 1000), sizes=st.lists(st.integers(1, 4), min_size=1, max_size=8))
def test_any_order_keeps_chains_whole(seed: int, sizes: list[int]) -> None:
    groups = [[f"{number}.{place}" for place in range(size)] for number, size in enumerate(sizes)]

    order = draw_order(groups, seed)

    assert sorted(order) == sorted(name for group in groups for name in group)
    for group in groups:
        at = order.index(group[0])
        assert order[at : at + len(group)] == group
    assert order == draw_order(groups, seed)


def test_settings_are_held_against_the_levels_that_run() -> None:
    study = read_study("oltp-partition", "embedded:/data")
    with pytest.raises(UsageError, match="ways=8: 8 partitions need 8 warehouses"):
        with_settings(study, {"warehouses": "4"})
    changed, left = with_settings(study, {"warehouses": "4"}, {"ways": ["1", "4"]})
    assert (changed.plan["warehouses"], left) == (4, {})
