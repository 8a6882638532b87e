"""A part on databases from plan to run folder, with databases in memory and a core that reports what the test wrote."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oltp_stage import Stage
from scripted_oltp import MemoryDatabase, load_report, loaded, run_report

from assay.base.errors import ExitCode, OutOfSpace, RefusedTarget, UsageError
from assay.record.load import load
from assay.run.execute import Above
from assay.workloads.tpcc.application import TPCC

# Everything


def test_an_empty_database_is_loaded_run_and_checked(stage: Callable[..., Stage]) -> None:
    run = stage(warehouses=3, seed=7)

    assert run.run() is ExitCode.DONE

    (database,) = run.databases
    said = database.said
    assert said.index("CREATE TABLE item") < said.index("ALTER TABLE stock") < said.index("vacuum")
    assert ["INSERT INTO assay_schema (k, v) VALUES (%s, %s) warehouses 3" in said, database.there.seed] == [True, 7]
    assert (database.there.state, database.closed) == ("ran", 1)
    assert run.load.asked[0]["databases"][0] | {"connection": None} == {
        "name": "shop", "connection": None, "scale": 3, "done": [],
    }  # fmt: skip
    assert run.oltp["load"] == pytest.approx(
        {
            "rows": 5000, "bytes": 500_000, "rows_per_s": 2500.0, "resumed": False, "warehouses": 3,
            "seconds": run.oltp["load"]["seconds"],
        }
    )  # fmt: skip
    assert run.oltp["nopm"] == pytest.approx(2400)
    assert run.oltp["actions_done"] == {"tpcc": ["load", "run", "check"]}
    assert run.document["notices"][0] == TPCC.disclaimer


@pytest.mark.parametrize("before", [{}, loaded(3)])
def test_what_is_dropped_in_the_end_is_worked_on_before(stage: Callable[..., Stage], before: dict[str, Any]) -> None:
    run = stage(MemoryDatabase(**before), actions=("load", "run", "drop"), warehouses=3)

    assert run.run() is ExitCode.DONE

    assert run.target.scale == {"shop": 3}
    assert run.oltp["actions_done"] == {"tpcc": ["load", "run", "drop"]}


def test_a_point_has_the_keys_that_are_promised(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded(5)))
    run.run()

    (point,) = run.document["points"]
    assert (point["read"], point["write"], point["total"], point["flush"]) == (None, None, None, None)
    assert point["workload"]["kind"] == "tpcc"
    assert point["workload"] | {"warehouses": 5, "preset": "custom", "mode": "procedures"} == point["workload"]
    assert point["load"] == {"users": 4}
    assert (point["purpose"], point["ended_by"], point["clock"]) == ("grid", "time", "wall")
    assert point["measured_to_utc_ns"] - point["measured_from_utc_ns"] == 10**9
    assert point["warmup_s"] == pytest.approx(0.1)
    assert len(point["batches"]["total"]["nopm"]) == 20
    assert all(nopm == pytest.approx(2400) for nopm in point["batches"]["total"]["nopm"])
    assert point["oltp"]["point_id"] == point["id"] == run.oltp["point_id"] == "p0001"
    keys = {"nopm", "tpm_client", "tpm_server", "client_cpu_ns_per_transaction", "memory_bytes_per_user", "users",
            "warehouses", "point_id", "by_transaction", "errors", "gaps", "schedule", "databases", "storage",
            "statements", "tables", "background", "layout"}  # fmt: skip
    assert set(point["oltp"]) == keys
    assert set(run.oltp) == keys | {"load", "conditions", "actions_done"}
    assert point["oltp"]["databases"][0] | {"name": "shop", "version": "18.1"} == point["oltp"]["databases"][0]
    assert load(run.folder.path).points["id"].to_list() == ["p0001"]


def test_the_series_has_rows_of_each_transaction_and_tick(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded()), actions=["run"])
    run.run()

    rows = [row for row in run.folder.series().records() if row["source"] == "tpcc"]
    assert {row["entity"] for row in rows} == {"shop/new_order", "shop/payment"}
    assert {(row["tier"], row["clock"], row["interval_ns"]) for row in rows} == {("application", "wall", 50_000_000)}
    orders = [row for row in rows if row["entity"] == "shop/new_order"]
    assert {row["metric"] for row in orders} == {
        "committed_count", "rolled_back_count", "retried_count", "failed_count", "latency_mean_ns", "latency_p50_ns",
        "latency_p90_ns", "latency_p99_ns", "latency_max_ns",
    }  # fmt: skip
    # A latency of nothing is no row.
    assert not [row for row in rows if row["entity"] == "shop/payment" and row["kind"] == "gauge"]


def test_the_core_is_asked_for_the_plan(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded(8)), actions=["run"], users=20, connections=5, threads=2, seed=3, rate=100,
                arrivals="constant", draw="deck", items="nurand", home="all", mode="statements", pipeline=False,
                isolation="serializable", retries=4, reconnect_s=9)  # fmt: skip
    run.run()

    (asked,) = run.core.asked
    assert asked.pop("databases")[0] | {"connection": None} == {"name": "shop", "scale": 8, "connection": None}
    assert asked == {
        "workload": "tpcc",
        "users": 20, "connections": 5, "threads": 2, "load": {"kind": "open", "rate": 100.0, "poisson": False},
        "mix": [10, 13, 0, 0, 0], "deck": True, "nurand_items": True, "home": "all", "think_scale": 0.0,
        "procedures": False, "pipeline": False, "isolation": "serializable", "retries": 4, "reconnect_s": 9.0,
        "seed": 3, "interval_ns": 50_000_000,
    }  # fmt: skip
    # Windows before it are those of percentiles while it goes on.
    assert (run.core.measured_from, run.core.windows[-1]) == ([2], (2, 22))


def test_several_databases_are_one_system(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase("one"), MemoryDatabase("two"), warehouses=5)
    run.run()

    assert run.target.scale == {"one": 3, "two": 2}
    assert [one["scale"] for one in run.load.asked[0]["databases"]] == [3, 2]
    assert [one["nopm"] for one in run.oltp["databases"]] == pytest.approx([1200, 1200])
    assert (run.oltp["warehouses"], run.oltp["nopm"]) == (5, pytest.approx(2400))
    assert {condition["database"] for condition in run.oltp["conditions"]} == {"one", "two"}


# Loading


def test_what_is_loaded_is_not_loaded_again(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded(4)))

    assert run.run() is ExitCode.DONE
    assert run.load.asked == []
    assert run.oltp["load"] is None
    assert "had been loaded before" in run.notices


def test_a_load_that_was_cut_short_goes_on_with_the_missing_chunks_and_indexes(stage: Callable[..., Stage]) -> None:
    chunks = frozenset({("stock", 1, 3), ("item", 0, 1)})
    database = MemoryDatabase(kind="partial", scale=2, seed=1, state="loading", chunks=chunks)
    database.indexes = ["stock_pkey"]
    run = stage(database, actions=["load"])

    assert run.run() is ExitCode.DONE
    assert run.load.asked[0]["databases"][0]["done"] == [["item", 0, 1], ["stock", 1, 3]]
    assert "CREATE TABLE item" not in database.said
    assert "ALTER TABLE stock" not in database.said
    assert "CREATE INDEX orders_customer" in database.said
    assert run.oltp["load"]["resumed"] is True


def test_a_load_that_fails_says_that_it_goes_on(stage: Callable[..., Stage]) -> None:
    run = stage(warehouses=1)
    run.load.reports = [load_report(state="failed", error={"kind": "lost", "text": "shop: the server went away"})]

    assert run.run() is ExitCode.TARGET_FAILED
    assert run.document["error"].startswith("shop: the server went away")
    assert "goes on where it was" in run.document["error"]
    assert run.databases[0].there.kind == "partial"
    assert run.document["status"] == "failed"


def test_a_full_disk_ends_a_load_with_its_own_exit_code(stage: Callable[..., Stage]) -> None:
    run = stage(warehouses=1)
    run.load.reports = [load_report(state="failed", error={"kind": "space", "text": "shop: no space left on device"})]

    assert run.run() is ExitCode.TARGET_FAILED
    assert isinstance(run.execution.error, OutOfSpace)


def test_ctrl_c_while_loading_keeps_the_chunks(stage: Callable[..., Stage]) -> None:
    run = stage(warehouses=1)
    run.load.reports = [load_report(state="running"), load_report(state="stopped")]
    run.interrupt.set()
    run.plan = run.plan.model_copy(update={"actions": ("load",)})
    poll = run.load.poll

    def first_poll() -> str:
        run.interrupt.set()
        return poll()

    run.interrupt.clear()
    run.load.poll = first_poll  # type: ignore[method-assign]
    assert run.run() is ExitCode.INTERRUPTED
    assert run.load.is_stopped
    assert run.document["status"] == "interrupted"
    run.load.reports = [load_report()]
    run.load.poll = poll  # type: ignore[method-assign]
    assert run.again() is ExitCode.DONE


def test_progress_of_a_load_shows_share_rate_and_time_left(stage: Callable[..., Stage]) -> None:
    run = stage(warehouses=1, actions=["load"])
    run.load.reports = [load_report(state="running", chunks_done=10, chunks_total=40), load_report()]
    run.run()
    assert run.seen.lines[0].startswith("loading: 25%, 2,500 rows/s, ")
    assert "about 6 s left" in run.seen.lines[0]


# Refused before anything is written


@pytest.mark.parametrize(
    ("database", "plan", "error", "words"),
    [
        (MemoryDatabase(), {"actions": ["run"]}, UsageError, ["no warehouses to run", "load"]),
        (MemoryDatabase(), {"actions": ["check"]}, UsageError, ["no warehouses to check"]),
        (MemoryDatabase(kind="partial", scale=1, seed=1), {"actions": ["run"]}, UsageError, ["cut short", "load"]),
        (MemoryDatabase(kind="broken", scale=1), {}, UsageError, ["restor", "drop"]),
        (MemoryDatabase(kind="foreign", tables=("stock",)), {}, RefusedTarget, ["stock", "did not make"]),
        (MemoryDatabase(kind="foreign", tables=("stock",)), {"actions": ["drop"]}, RefusedTarget, ["did not make"]),
        (MemoryDatabase(**loaded(5)), {"warehouses": 6}, UsageError, ["holds 5", "not 6", "drop"]),
        (MemoryDatabase(**loaded(5, seed=2)), {}, UsageError, ["seed 2", "seed 1", "drop"]),
        (MemoryDatabase(**loaded()), {"actions": ["restore"]}, UsageError, ["no saved state", "save"]),
        (MemoryDatabase(**loaded()), {"users": 500}, UsageError,
         ["500 users", "95 are free", "max_connections is 100", "--connections 95"]),
        (MemoryDatabase(**loaded()), {"search": {"axis": "users", "end": 200}}, UsageError, ["--end 95"]),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_first(
    stage: Callable[..., Stage],
    database: MemoryDatabase,
    plan: dict[str, Any],
    error: type[Exception],
    words: list[str],
) -> None:
    database.said.clear()
    run = stage(database, **plan)
    with pytest.raises(error) as refused:
        run.run()
    assert "\n" not in str(refused.value)
    assert all(word in str(refused.value) for word in words), str(refused.value)
    assert (database.said, run.path.exists()) == ([], False)


def test_too_little_room_is_refused_with_what_would_fit(stage: Callable[..., Stage], tmp_path: Path) -> None:
    database = MemoryDatabase()
    database.paths = {"data": str(tmp_path)}
    with pytest.raises(OutOfSpace, match=r"--warehouses [0-9]+ or fewer"):
        stage(database, warehouses=90_000).run()


def test_more_databases_than_warehouses_are_refused(stage: Callable[..., Stage]) -> None:
    with pytest.raises(UsageError, match="2 databases need one each"):
        stage(MemoryDatabase("one"), MemoryDatabase("two"), warehouses=1).run()


def test_shared_connections_let_more_users_in(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded()), users=500, connections=90, actions=["run"])
    assert run.run() is ExitCode.DONE


def test_a_server_of_assays_own_is_started_for_so_many_connections(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded()), actions=["run"], search={"axis": "users", "end": 64, "repeats": 0})
    run.databases[0].is_own = True
    run.run()
    assert run.databases[0].asked_connections == 64


def test_after_a_drop_another_size_may_be_loaded(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded(5)), warehouses=2, actions=["drop", "load", "check"])
    run.databases[0].copy = run.databases[0].there

    assert run.run() is ExitCode.DONE
    assert (run.databases[0].there.scale, run.databases[0].copy) == (2, None)


# Checking


def test_the_eleventh_condition_is_asked_after_loading_only(stage: Callable[..., Stage]) -> None:
    run = stage(warehouses=1, actions=["load", "check"])
    run.run()
    assert [condition["id"] for condition in run.oltp["conditions"]] == list(range(1, 13))
    assert run.oltp["conditions"][0] == {
        "id": 1, "title": "rule 1", "database": "shop", "violations": 0, "checked": 10, "example": None, "met": True,
    }  # fmt: skip

    after = stage(MemoryDatabase(**loaded(state="ran")), actions=["check"])
    after.run()
    assert 11 not in [condition["id"] for condition in after.oltp["conditions"]]


def test_a_violated_condition_is_an_integrity_failure(stage: Callable[..., Stage]) -> None:
    database = MemoryDatabase(**loaded())
    database.violated = {3: 2}
    run = stage(database)

    assert run.run() is ExitCode.INTEGRITY_FAILED
    line = run.document["verdict"][-1]
    assert (line["question"], line["met"], line["value"]) == ("consistency violations", False, 2)
    assert "condition 3 (rule 3) 2 times in shop" in line["meaning"]
    assert next(one for one in run.oltp["conditions"] if one["id"] == 3)["example"] == "district 3"


# What a run says of itself


def test_limits_are_judged_by_transaction_and_change_the_exit_code_when_a_user_gave_them(
    stage: Callable[..., Stage],
) -> None:
    run = stage(MemoryDatabase(**loaded()), limits=["response.p90<3ms", "cpu<80%"], user_limits=True, actions=["run"])
    assert run.run() is ExitCode.LIMIT_MISSED
    (point,) = run.document["points"]
    assert [(one["scope"], one["met"]) for one in point["limits"]] == [
        ("new_order", False), ("payment", False), ("order_status", False), ("delivery", False), ("stock_level", False),
        ("server", None),
    ]  # fmt: skip
    headline = run.document["verdict"][0]
    assert headline["meaning"] == "2,400 NOPM (5,575 TPM) with 4 users; new orders p90 4.00 ms"
    assert (headline["unit"], headline["value"], headline["met"]) == ("nopm", pytest.approx(2400), None)


def test_a_ratio_that_is_not_that_of_the_mix_is_said(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded()), actions=["run"])
    run.core.nopm = lambda _: 12_000_000.0
    run.run()
    assert "by the mix" not in run.notices

    odd = stage(MemoryDatabase(**loaded()), actions=["run"])
    odd.core.nopm, odd.core.ratio = (lambda _: 12_000_000.0), 2.6
    odd.run()
    assert "TPM is 2.60 times NOPM, and 2.32 by the mix" in odd.notices


def test_acknowledged_new_orders_that_are_not_there_are_said(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded()), actions=["run"])
    run.run()
    assert "users saw" not in run.notices

    lost = stage(MemoryDatabase(**loaded()), actions=["run"])
    lost.core.loses = 1.0
    lost.run()
    assert "users saw" in lost.notices


def test_a_clock_that_is_set_during_a_point_is_said_with_the_step(
    stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stage(MemoryDatabase(**loaded()), actions=["run"])
    wall, began = time.time_ns, time.monotonic()
    poll = run.core.poll
    stepped: list[int] = []

    def set_back() -> str:
        stepped.append(1)
        return poll()

    monkeypatch.setattr(run.core, "poll", set_back)
    monkeypatch.setattr(time, "time_ns", lambda: wall() - (3600 * 10**9 if stepped else 0))
    run.run()
    assert "the clock of this host was set back by 1 h" in run.notices
    assert time.monotonic() >= began


def test_a_gap_is_in_the_point_and_in_the_notices(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded()), actions=["run"])
    gap = {"from_ns": 400_000_000, "to_ns": 700_000_000, "database": 0, "reason": "server closed the connection"}
    run.core.reports = {poll: {"gaps": [gap], "reconnecting": 4} for poll in range(10, 40)}
    finish = run.core.finish
    run.core.finish = lambda timeout_s: json.dumps(json.loads(finish(timeout_s)) | {"gaps": [gap]})  # type: ignore

    assert run.run() is ExitCode.DONE
    (found,) = run.oltp["gaps"]
    assert found["to_utc_ns"] - found["from_utc_ns"] == 300_000_000
    assert "shop was away for 0.3 s" in run.notices
    assert "server closed the connection" in run.notices
    assert any("4 users without a connection" in line for line in run.seen.lines)


def test_a_server_of_assays_own_is_started_again(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded()), actions=["run"])
    run.databases[0].is_down = True
    run.core.reports = {12: {"reconnecting": 4}}
    assert run.run() is ExitCode.DONE
    assert "the server of shop ended during the work, and was started again" in run.notices


def test_a_server_that_does_not_come_back_fails_the_run_and_keeps_the_point(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded()), actions=["run"])
    lost = run_report(state="failed", complete_ticks=12, error={"kind": "lost", "text": "shop: away for 60 s"})
    run.core.reports = {11: lost}

    assert run.run() is ExitCode.TARGET_FAILED
    (point,) = run.document["points"]
    assert (point["ended_by"], point["measured_s"]) == ("failed", pytest.approx(0.5))
    assert run.document["error"] == "shop: away for 60 s"


def test_a_server_that_is_gone_before_the_window_leaves_no_point(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded()), actions=["run"])
    run.core.reports = {0: run_report(state="failed", error={"kind": "open", "text": "shop: refused"})}
    assert run.run() is ExitCode.TARGET_FAILED
    assert run.document["points"] == []


def test_a_run_in_which_everything_failed_is_an_error(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded()), actions=["run"])
    run.core.nopm = lambda _: 0.0
    kinds = {"deadlock": 0, "serialization": 0, "connection": 0, "other": 50}
    run.core.figures = {"errors": {"count": 50, "kinds": kinds, "example": "could not extend file: no space"}}
    assert run.run() is ExitCode.TARGET_FAILED
    assert "every transaction failed: could not extend file" in run.document["error"]


def test_a_generator_that_stood_still_is_marked_and_said(stage: Callable[..., Stage]) -> None:
    stopped = stage(MemoryDatabase(**loaded()), actions=["run"])
    gaps = {"count": 1, "longest_ns": 8 * 10**9, "total_ns": 8 * 10**9, "ios": 4}
    stopped.core.figures = {"gaps": gaps}
    stopped.run()
    generator = stopped.document["points"][0]["generator"]
    assert (generator["saturated"], generator["reason"], generator["gaps"]) == (True, "stood still", gaps)
    (notice,) = [notice for notice in stopped.document["notices"] if "stood still" in notice]
    assert "for up to 8 s" in notice


def test_a_generator_at_its_end_is_marked(stage: Callable[..., Stage]) -> None:
    busy = stage(MemoryDatabase(**loaded()), actions=["run"])
    busy.core.figures = {"fullest_thread_share": 0.97}
    busy.run()
    assert busy.document["points"][0]["generator"]["saturated"] is True

    late = stage(MemoryDatabase(**loaded()), actions=["run"], rate=40)
    schedule = {"lag_p99_ns": 30_000_000, "kept_share": 0.5, "waits": 9}
    late.core.figures = {"schedule": schedule, "service_latency_ns": {"mean": 1e6}, "backlog": None}
    late.run()
    assert late.document["points"][0]["generator"]["saturated"] is True

    slow = stage(MemoryDatabase(**loaded()), actions=["run"], rate=40)
    slow.core.figures = {"schedule": schedule, "service_latency_ns": {"mean": 5e7}, "backlog": None}
    slow.run()
    assert slow.document["points"][0]["generator"]["saturated"] is False


def test_efficiency_is_said_with_thinking_times_at_their_scale(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded(10)), actions=["run"], think_scale=1, users=100, connections=10)
    run.core.nopm = lambda _: 60.0
    run.run()
    assert "46.7% of the 129 NOPM that keying and thinking times let through with 100 users" in run.notices

    scaled = stage(MemoryDatabase(**loaded(10)), actions=["run"], think_scale=0.5)
    scaled.run()
    assert "keying" not in scaled.notices


# Searching, saved states, going on


def searched(stage: Callable[..., Stage], database: MemoryDatabase, **plan: Any) -> Stage:
    search = {"axis": "users", "end": 32, "repeats": 0, "resolution_share": 0.3, **plan.pop("search", {})}
    run = stage(database, actions=["run"], limits=["response.p90<10ms"], search=search, **plan)
    run.core.nopm = lambda plan: 600.0 * plan["users"] ** 0.9
    return run


def test_a_search_on_users_answers_with_nopm(stage: Callable[..., Stage]) -> None:
    run = searched(stage, MemoryDatabase(**loaded()))

    assert run.run() is ExitCode.DONE
    (answer,) = run.document["answers"]
    assert (answer["axis"], answer["max"]["users"], answer["limited_by"]) == ("users", 8, "response.p90<10ms")
    assert answer["first_failing"]["users"] in (10, 11)
    assert set(answer["max"]) == {
        "users",
        "nopm",
        "tpm",
        "response_p90_ns",
        "interval_95",
        "limiting",
        "point_id",
        "repeats",
        "repeats_met",
    }
    assert answer["workload"]["kind"] == "tpcc"
    low, high = answer["interval_95"]
    assert low <= answer["max"]["nopm"] <= high
    assert run.oltp["users"] == 8
    assert run.oltp["nopm"] == pytest.approx(answer["max"]["nopm"])
    assert run.document["verdict"][0]["meaning"].startswith("holds ")
    assert "NOPM" in run.document["verdict"][0]["meaning"]
    assert "with 8 users" in run.document["verdict"][0]["meaning"]
    assert run.document["verdict"][0]["unit"] == "nopm"


def test_a_search_on_rate_answers_with_the_rate(stage: Callable[..., Stage]) -> None:
    run = searched(stage, MemoryDatabase(**loaded()), search={"axis": "rate", "start": 10, "end": 1000})
    run.core.nopm = lambda plan: plan["load"]["rate"] * 60 / 2.323
    run.core.latency_ns = lambda plan: 1e5 * plan["load"]["rate"]

    run.run()
    (answer,) = run.document["answers"]
    assert 70 < answer["max"]["rate"] < 100
    assert run.document["points"][0]["offered"]["sustained"] is True
    assert run.core.asked[0]["load"] == {"kind": "open", "rate": 10.0, "poisson": True}


def test_every_point_of_a_search_starts_from_the_saved_state(stage: Callable[..., Stage]) -> None:
    run = searched(stage, MemoryDatabase(**loaded()))
    run.run()
    said = run.databases[0].said
    points = len(run.document["points"])
    assert said.count("save") == 1
    assert said.count("restore") == points - 1
    assert said[0] == "save"


def test_levels_may_go_on_with_what_the_one_before_left(stage: Callable[..., Stage]) -> None:
    run = searched(stage, MemoryDatabase(**loaded(state="ran")), restores="never")
    run.run()
    assert not {"save", "restore"} & set(run.databases[0].said)
    assert "did not start from the state as loaded" in run.notices


def test_a_database_that_cannot_be_saved_is_said(stage: Callable[..., Stage]) -> None:
    database = MemoryDatabase(**loaded())
    database.can_save = False
    run = searched(stage, database)
    assert run.run() is ExitCode.DONE
    assert run.notices.count("points did not start from the same state: shop: cannot be copied here") == 1

    asked = searched(stage, MemoryDatabase(**loaded()), restores="always")
    asked.databases[0].can_save = False
    assert asked.run() is ExitCode.TARGET_FAILED


def test_where_restoring_is_not_possible_levels_go_on_all_the_same(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded()), actions=["run"], restores="possible")
    run.databases[0].can_save = False
    assert run.run() is ExitCode.DONE
    assert "points did not start from the same state" in run.notices


def test_a_search_ends_where_the_connections_do(stage: Callable[..., Stage]) -> None:
    database = MemoryDatabase(**loaded())
    database.connections_free = 8
    run = stage(database, actions=["run"], search={"axis": "users", "repeats": 0})
    run.run()
    assert max(asked["users"] for asked in run.core.asked) == 6
    assert "the search ends at 6 users" in run.notices


def test_an_interrupted_search_goes_on_with_the_points_it_has(stage: Callable[..., Stage]) -> None:
    run = searched(stage, MemoryDatabase(**loaded()))
    done = run.seen.point_done

    def third(point: dict[str, Any]) -> None:
        done(point)
        if len(run.seen.points) == 3:
            run.interrupt.set()

    run.seen.point_done = third  # type: ignore[method-assign]
    assert run.run() is ExitCode.INTERRUPTED
    before = (run.folder.path / "points.jsonl").read_bytes()
    assert before.count(b"\n") == 3

    run.seen.point_done = done  # type: ignore[method-assign]
    asked = len(run.core.asked)
    assert run.again() is ExitCode.DONE
    assert (run.folder.path / "points.jsonl").read_bytes().startswith(before)
    assert len(run.core.asked) - asked == len(run.document["points"]) - 3
    assert run.document["answers"][0]["max"]["users"] == 8


def test_ctrl_c_during_a_point_drops_it(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded()), actions=["run", "check"])
    poll = run.core.poll

    def interrupted() -> str:
        if run.core.polls == 12:
            run.interrupt.set()
        return poll()

    run.core.poll = interrupted  # type: ignore[method-assign]
    assert run.run() is ExitCode.INTERRUPTED
    assert (run.document["points"], run.core.finished) == ([], 1)
    run.core.poll = poll  # type: ignore[method-assign]
    assert run.again() is ExitCode.DONE
    assert len(run.document["points"]) == 1


def test_actions_that_were_done_are_not_done_again(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded(2)), warehouses=2, actions=["drop", "load", "run", "check"])
    run.core.reports = {0: run_report(state="failed", error={"kind": "open", "text": "away"})}
    assert run.run() is ExitCode.TARGET_FAILED
    assert run.oltp["actions_done"] == {"tpcc": ["drop", "load"]}

    run.core.reports = {}
    assert run.again() is ExitCode.DONE
    assert len(run.load.asked) == 1
    assert run.oltp["actions_done"] == {"tpcc": ["drop", "load", "run", "check"]}


def test_no_password_is_in_the_run_folder(stage: Callable[..., Stage]) -> None:
    run = stage(warehouses=1)
    run.run()
    for path in run.folder.path.rglob("*"):
        assert not path.is_file() or b"secret" not in path.read_bytes(), path


@pytest.mark.parametrize(("actions", "is_written"), [(["load"], False), (["load", "run"], True)])
def test_a_report_is_written_where_anything_was_measured(
    stage: Callable[..., Stage], actions: list[str], is_written: bool
) -> None:
    run = stage(warehouses=1, actions=actions)
    written: list[Path] = []
    run.above = Above(write_report=written.append)

    assert run.run() is ExitCode.DONE

    assert written == [run.folder.path] * is_written
