"""Plans and presets of `assay oltp tpcc`: what is accepted, what the options mean, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.base.reading import read_table
from assay.record.limits import parse_limits
from assay.workloads.databases.plan import ACTIONS, split_actions
from assay.workloads.registry import load_plan_of_any_kind, workload_named
from assay.workloads.tpcc.application import TPCC
from assay.workloads.tpcc.plan import (
    TpccPlan,
    shares_of,
)
from assay.workloads.transactions.plan import parse_mix

TPCC_KIND = workload_named("tpcc")


def plan(**data: Any) -> TpccPlan:
    return TPCC_KIND.load_plan(data, source="plan")


def test_the_default_preset_is_what_hammerdb_draws() -> None:
    preset = TPCC_KIND.preset("hammerdb")
    assert preset.mix.weights == [10, 10, 1, 1, 1]
    assert (preset.draw, preset.items, preset.home) == ("independent", "uniform", "warehouse")
    assert (preset.think_scale, preset.mode, preset.rate) == (0.0, "procedures", None)


def test_the_strict_preset_is_the_mix_of_the_specification() -> None:
    preset = TPCC_KIND.preset("strict")
    assert preset.mix.weights == [45, 43, 4, 4, 4]
    assert (preset.draw, preset.items, preset.home) == ("deck", "nurand", "district")


@pytest.mark.parametrize("name", TPCC_KIND.presets())
def test_presets_judge_the_limits_of_the_method_without_changing_the_exit_code(name: str) -> None:
    preset = TPCC_KIND.preset(name)
    assert [limit.text for limit in parse_limits(preset.limits)] == [
        "read.mean<=20ms", "write.mean<=20ms", "log.write.mean<=5ms", "cpu<80%", "tcp.retransmit<0.5%",
        "response.p90<2s",
    ]  # fmt: skip
    assert not preset.user_limits


def test_what_dry_run_prints_is_accepted_again(tmp_path: Path) -> None:
    for name in TPCC_KIND.presets():
        path = tmp_path / "plan.json"
        path.write_text(json.dumps({"plan": TPCC_KIND.preset(name).model_dump(mode="json")}))
        assert TPCC_KIND.load_plan(read_table(path, option="--plan"), source="--plan") == workload_named("tpcc").preset(
            name
        )
        assert load_plan_of_any_kind(TPCC_KIND.preset(name).model_dump(mode="json"), source="p") == TPCC_KIND.preset(
            name
        )


@pytest.mark.parametrize(
    ("duration_s", "warmup_s", "length_s"), [(60, None, 15), (600, None, 60), (8, None, 2), (60, 0, 0), (10, 30, 30)]
)
def test_the_warm_up_is_a_quarter_of_the_duration_at_most_a_minute(
    duration_s: float, warmup_s: float | None, length_s: float
) -> None:
    made = plan(timing={"duration_s": duration_s, "warmup_s": warmup_s})
    assert made.timing.warmup_length_s == length_s
    assert made.timing.point_s == duration_s + length_s


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"mx": {}}, "did you mean 'mix'"),
        ({"mix": {"new_orders": 1}}, "did you mean 'new_order'"),
        ({"mix": {"payment": 0}}, "every weight is 0"),
        ({"mix": {"payment": -1}}, "mix.payment"),
        ({"users": 0}, "users"),
        ({"users": 4, "connections": 5}, "connections: 5 for 4 users"),
        ({"actions": []}, "none given"),
        ({"actions": ["load", "load"]}, "load is given twice"),
        ({"actions": ["reload"]}, "actions"),
        ({"rate": 5, "think_scale": 1}, "exclude each other"),
        ({"rate": 5, "search": {"axis": "users"}}, "exclude each other"),
        ({"think_scale": 1, "search": {"axis": "rate"}}, "exclude each other"),
        ({"search": {"axis": "queue-depth"}}, "search.axis"),
        ({"search": {"axis": "users", "start": 9, "end": 2}}, "start 9 is above end 2"),
        ({"search": {"axis": "users", "start": 1.5}}, "whole numbers"),
        ({"limits": ["response.p90<2"]}, "no unit"),
        ({"limits": ["respons.p90<2s"]}, "did you mean 'response.p90'"),
        ({"limits": ["log.response.p90<2s"]}, "unknown metric"),
        ({"isolation": "snapshot"}, "isolation"),
        ({"warehouses": 0}, "warehouses"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_key(data: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=r"^plan: ") as refused:
        plan(**data)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_search_takes_its_loads_from_the_axis() -> None:
    assert (plan(search={"axis": "users"}).search.first_load, plan(search={"axis": "rate"}).search.first_load) == (
        1,
        10,
    )
    made = plan(users=8, connections=4)
    assert made.with_load("users", 2).model_dump(include={"users", "connections"}) == {"users": 2, "connections": 2}
    assert made.with_load("rate", 77.5).load_facts() == {"rate": 77.5, "arrivals": "poisson", "users": 8}


@given(total=st.integers(1, 10_000), count=st.integers(1, 50))
def test_shares_add_up_and_differ_by_one_at_most(total: int, count: int) -> None:
    shares = shares_of(total, count)
    assert sum(shares) == total
    assert max(shares) - min(shares) <= 1


def test_a_mix_names_its_transactions() -> None:
    names = [*TPCC.transactions]
    assert list(parse_mix("delivery=2, payment=43", names)) == names
    assert parse_mix("delivery=2, payment=43", names)["payment"] == 43


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("paymnt=3", "did you mean 'payment'"),
        ("xyz=3", "known: new_order"),
        ("payment", "NAME=WEIGHT"),
        ("payment=1.5", "whole number"),
        ("payment=-1", "whole number"),
        ("payment=1,payment=2", "twice"),
        ("", "known"),
    ],
)
def test_a_mix_that_is_not_understood_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match="plan: mix: ") as refused:
        TPCC_KIND.load_plan({"mix": text}, source="plan")
    assert words in str(refused.value)


def test_actions_follow_the_targets() -> None:
    assert split_actions(["embedded:a", "mariadb://u@h/d", "run", "check"]) == (
        ["embedded:a", "mariadb://u@h/d"],
        ["run", "check"],
    )
    assert split_actions(["load"]) == ([], ["load"])
    assert split_actions(list(ACTIONS)) == ([], list(ACTIONS))
    with pytest.raises(UsageError, match="'load' stands before a target"):
        split_actions(["load", "embedded:a", "run"])
