"""Layouts on databases in memory: from the saved state, the hottest table found once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from oltp_stage import Stage
from scripted_oltp import MemoryDatabase, loaded

from assay.base.errors import ExitCode, IoFailed, UsageError
from assay.telemetry.collectors import ServerActivity
from assay.workloads.brokerage.application import BROKERAGE
from assay.workloads.tpcc.application import TPCC
from assay.workloads.transactions import counted as servers_counted
from assay.workloads.transactions import layout as oltp_layout


def traced(*heats: tuple[str, float]) -> ServerActivity:
    tables = {("shop", name): {"page_requests_count": heat, "updated_count": 1.0} for name, heat in heats}
    return ServerActivity(tables=tables)


def test_the_hottest_table_is_traced_once_and_partitioned_after_a_restore(
    stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = iter(
        [traced(("stock", 0.0), ("item", 0.0)), traced(("stock", 30.0), ("item", 10.0))] + [ServerActivity()] * 9
    )
    laid_out: list[Any] = []

    def lay_out(database: Any, layout: Any, **more: Any) -> dict[str, Any]:
        laid_out.append((layout.table, layout.ways, database.there.state, list(database.said), more["scale"]))
        return {"places": [], "partition": None}

    monkeypatch.setattr(oltp_layout, "lay_out", lay_out)
    run = stage(
        MemoryDatabase(**loaded(4)), actions=["run"], restores="always",
        layout={"partition_table": "hottest", "partition_ways": 4, "trace_s": 0.2},
    )  # fmt: skip
    monkeypatch.setattr(servers_counted, "activity", lambda _: next(seen))

    assert run.run() is ExitCode.DONE

    ((table, ways, state, said, warehouses),) = laid_out
    # What is laid out is never taken for the loaded state, should it end here.
    assert (table, ways, state, warehouses) == ("stock", 4, "laid out", 4)
    assert [word for word in said if word in ("save", "restore")] == ["save", "restore"]
    assert run.oltp["hottest"]["sentence"] == (
        "the hottest table is stock: 75 % of the page requests in a trace of 0.2 s, before item with 25 %;"
        " statements that name tables are not counted there."
    )
    assert len(run.document["points"]) == 1
    assert run.document["points"][0]["oltp"]["layout"]["hottest"]["table"] == "stock"
    # Another part, or a run that goes on, does not trace again.
    run.folder.update(oltp=run.oltp | {"actions_done": {}})
    (run.folder.path / "points.jsonl").write_text("")
    assert run.again() is ExitCode.DONE
    assert [one[0] for one in laid_out] == ["stock", "stock"]
    assert len(run.core.asked) == 3


def test_a_layout_is_not_made_where_the_plain_one_cannot_be_brought_back(stage: Callable[..., Stage]) -> None:
    run = stage(MemoryDatabase(**loaded()), actions=["run"], restores="possible", layout={"tablespaces": 3})
    run.databases[0].can_save = False
    assert run.run() is ExitCode.TARGET_FAILED
    assert "cannot be copied here" in run.document["error"]


def test_more_ways_than_warehouses_are_refused_before_anything_is_loaded(stage: Callable[..., Stage]) -> None:
    run = stage(warehouses=3, layout={"partition_table": "stock", "partition_ways": 4})
    with pytest.raises(UsageError, match="more ways than there are warehouses, 3"):
        run.run()
    assert run.databases[0].there.kind == "absent"


def test_without_figures_of_tables_the_user_is_told_to_name_one() -> None:
    with pytest.raises(IoFailed, match="--set partition_table=stock"):
        oltp_layout.find_hottest(TPCC.tables, [], [], 10)


@pytest.fixture
def done_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oltp_layout, "lay_out", lambda *_, **__: {"places": [], "partition": None})


@pytest.mark.usefixtures("done_layout")
def test_tables_laid_out_in_another_way_are_never_taken_for_the_plain_ones(stage: Callable[..., Stage]) -> None:
    database = MemoryDatabase(**loaded())
    assert stage(database, actions=["run"], layout={"tablespaces": 3}).run() is ExitCode.DONE
    assert database.there.state == "laid out"

    refused = stage(database, actions=["save"])
    assert refused.run() is ExitCode.USAGE
    assert "laid its tables out in another way" in refused.notices
    kept = stage(database, actions=["run"], restores="never")
    assert kept.run() is ExitCode.USAGE

    plain = stage(database, actions=["run"])
    assert plain.run() is ExitCode.DONE
    assert plain.document["points"][0]["oltp"]["layout"] is None
    assert (database.said.count("restore"), database.there.state) == (1, "ran")


@pytest.mark.usefixtures("done_layout")
def test_a_layout_cannot_do_without_the_plain_tables(stage: Callable[..., Stage]) -> None:
    with pytest.raises(UsageError, match="a layout needs the plain tables to begin with"):
        stage(MemoryDatabase(**loaded()), actions=["run"], restores="never", layout={"tablespaces": 3})


def statement(text: str, requests: float) -> dict[str, Any]:
    return {"text": text, "page_requests_count": requests, "time_ns": 1.0}


def counted(**requests: float) -> list[dict[str, Any]]:
    return [{"table": table, "page_requests_count": count} for table, count in requests.items()]


def test_statements_share_what_they_asked_among_the_tables_they_name() -> None:
    found = oltp_layout.heat_of_statements(
        TPCC.tables,
        [
            statement("SELECT s_quantity FROM stock WHERE s_i_id = $1", 60),
            statement("SELECT i_price FROM item, stock WHERE i_id = s_i_id", 40),
            statement("COMMIT", 7),
        ],
    )
    assert found is not None
    assert {one["table"]: (one["value"], one["share"]) for one in found["tables"]} == {
        "stock": (80.0, 0.8), "item": (20.0, 0.2),
    }  # fmt: skip
    assert oltp_layout.heat_of_statements(TPCC.tables, [statement("CALL assay_new_order($1)", 60)]) is None


def test_the_hottest_table_is_told_by_counters_and_by_statements() -> None:
    statements = [statement("SELECT s_quantity FROM stock", 90), statement("UPDATE district SET d_ytd = 0", 10)]
    agreed = oltp_layout.find_hottest(TPCC.tables, counted(stock=3, item=1), statements, 10)
    assert agreed["sentence"].endswith(
        "; so do statements say, with 90 % of the page requests of the heaviest statements."
    )
    other = oltp_layout.find_hottest(TPCC.tables, counted(stock=1, item=3), statements, 10)
    assert other["table"] == "item"
    assert "; statements say stock, with 90 %" in other["sentence"]


def test_the_hottest_table_that_has_no_ranges_is_named_but_not_partitioned() -> None:
    found = oltp_layout.find_hottest(BROKERAGE.tables, counted(last_trade=60, trade=30, holding=10), [], 10)
    assert found["table"] == "trade"
    assert found["sentence"].startswith(
        "the hottest table that can be partitioned is trade: 30 % of the page requests in a trace of 10 s;"
        " last_trade has 60 %, and is not partitioned"
    )
