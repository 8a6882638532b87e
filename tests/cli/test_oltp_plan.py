"""`assay oltp tpcc` from the command line to its plan, without a server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.workloads.registry import workload_named
from assay.workloads.transactions.plan import default_users
from assay_command import Bench

TARGET = "postgresql://tester@db.invalid/shop"


def planned(bench: Bench, *arguments: str) -> dict[str, Any]:
    outcome = bench.assay("oltp", "tpcc", TARGET, *arguments, "--dry-run", "--json")
    assert (outcome.code, outcome.stderr) == (0, "")
    plan: dict[str, Any] = outcome.document["plan"]
    return plan


def complaint(bench: Bench, *arguments: str) -> str:
    outcome = bench.assay("oltp", "tpcc", *arguments, "--dry-run")
    assert (outcome.code, outcome.stdout) == (2, "")
    return outcome.complaint


def test_without_options_it_is_hammerdbs_preset_loaded_run_and_checked(bench: Bench) -> None:
    plan = planned(bench)
    assert plan == workload_named("tpcc").preset("hammerdb").model_dump(mode="json")
    assert (plan["actions"], plan["warehouses"], plan["users"]) == (["load", "run", "check"], None, default_users())


def test_every_option_is_a_key_of_the_plan(bench: Bench) -> None:
    plan = planned(
        bench, "run", "check", "--preset", "strict", "--warehouses", "30", "--users", "12", "--connections", "6",
        "--threads", "2", "--load-connections", "3", "--think-scale", "0.5", "--mix", "new_order=1,payment=1",
        "--draw", "independent", "--items", "uniform", "--all-warehouses", "--statements", "--no-pipeline",
        "--isolation", "serializable", "--retries", "3", "--reconnect", "5s", "--duration", "2m", "--warmup", "7s",
        "--seed", "9", "--no-restore", "--limit", "response.p99<1s",
    )  # fmt: skip
    assert plan == {
        **workload_named("tpcc").preset("strict").model_dump(mode="json"),
        "actions": ["run", "check"], "warehouses": 30, "users": 12, "connections": 6, "threads": 2,
        "load_connections": 3, "think_scale": 0.5, "draw": "independent", "items": "uniform", "home": "all",
        "mix": {"new_order": 1, "payment": 1, "order_status": 0, "delivery": 0, "stock_level": 0},
        "mode": "statements", "pipeline": False, "isolation": "serializable", "retries": 3, "reconnect_s": 5.0,
        "seed": 9, "restores": "never", "limits": ["response.p99<1s"], "user_limits": True,
        "timing": {"duration_s": 120.0, "warmup_s": 7.0, "rest_s": 0.0},
    }  # fmt: skip


def test_think_turns_the_times_on(bench: Bench) -> None:
    assert planned(bench, "--think")["think_scale"] == 1.0


def test_a_plan_printed_is_a_plan_accepted(bench: Bench) -> None:
    path = bench.folder / "plan.json"
    plan = planned(bench, "run", "--search", "rate", "--rate", "50", "--end", "900", "--repeats", "0")
    assert plan["search"] == {
        "axis": "rate", "start": 50.0, "end": 900.0, "repeats": 0, "resolution_share": 0.06, "plateau": True,
    }  # fmt: skip
    path.write_text(json.dumps(plan))
    assert planned(bench, "--plan", str(path)) == plan


def test_a_dry_run_asks_no_server_and_leaves_nothing_behind(bench: Bench) -> None:
    outcome = bench.assay("oltp", "tpcc", f"embedded:{bench.folder}/pg", "--dry-run", "-o", bench.results)
    assert outcome.code == 0
    assert "load, then run, then check" in outcome.stdout
    assert "time: 1 min" in outcome.stdout
    assert (bench.made(), (bench.folder / "pg").exists()) == ([], False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no target"),
        (["load", "run"], "no target"),
        (["load", TARGET], "'load' stands before a target"),
        (["/data/f"], "/data/f"),
        ([TARGET, TARGET], "twice"),
        ([TARGET, "--users", "0"], "--users"),
        ([TARGET, "--warehouses", "0"], "--warehouses"),
        ([TARGET, "--users", "4", "--connections", "5"], "--connections: 5 for 4 users"),
        ([TARGET, "--limit", "response.p90<2"], "no unit"),
        ([TARGET, "--mix", "payments=3"], "did you mean 'payment'"),
        ([TARGET, "--draw", "cards"], "--draw"),
        ([TARGET, "--home", "district", "--all-warehouses"], "exclude each other"),
        ([TARGET, "--rate", "5", "--think"], "exclude each other"),
        ([TARGET, "--search", "queue-depth"], "--search"),
        ([TARGET, "--end", "5"], "--search users"),
        ([TARGET, "--preset", "hamerdb"], "did you mean 'hammerdb'"),
        ([TARGET, "--preset", "strict", "--plan", "p.toml"], "exclude each other"),
        ([TARGET, "--plan", "missing.toml"], "cannot be read"),
        ([TARGET, "load", "load"], "load is given twice"),
        ([TARGET, "--export", "xml"], "unknown format"),
    ],
)
def test_what_is_not_understood_is_refused_in_one_line(bench: Bench, arguments: list[str], words: str) -> None:
    assert words in complaint(bench, *arguments)


def test_a_password_in_a_url_is_nowhere_to_be_seen(bench: Bench) -> None:
    url = "postgresql://tester:Hy6-geheim@127.0.0.1:9/shop"
    outcome = bench.assay("oltp", "tpcc", url, "run", "-o", bench.results)
    assert outcome.code == 3
    assert "Hy6" not in outcome.stdout + outcome.stderr
    assert bench.runs == []
    planned = bench.assay("oltp", "tpcc", url, "--dry-run", "--json")
    assert planned.document["databases"][0]["target"] == "postgresql://tester@127.0.0.1:9/shop"
    assert "Hy6" not in planned.stdout


def test_an_unreachable_host_is_one_line_with_its_exit_code(bench: Bench) -> None:
    outcome = bench.assay("oltp", "tpcc", "postgresql://tester@127.0.0.1:9/shop", "-o", bench.results)
    assert outcome.code == 3
    assert "127.0.0.1" in outcome.stderr.splitlines()[-1]
    assert bench.runs == []


@pytest.mark.parametrize("also", [(), ("--dry-run",)])
def test_a_database_without_connections_is_refused_before_anything_is_made(bench: Bench, also: tuple[str, ...]) -> None:
    outcome = bench.assay("oltp", "tpcc", f"duckdb:{bench.folder}/db", "load", *also, "-o", bench.results)
    assert (outcome.code, bench.runs) == (2, [])
    assert "this workload does not run on duckdb; accepted: embedded:DIR, postgresql://" in outcome.complaint
    assert not (bench.folder / "db").exists()


def test_resume_refuses_runs_of_other_verbs(bench: Bench) -> None:
    bench.measure("null:", "--queue-depth", "1")
    outcome = bench.assay("oltp", "tpcc", "--resume", bench.run)
    assert (outcome.code, "is a run of 'profile'" in outcome.stderr) == (2, True)
