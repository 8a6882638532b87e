"""Parts on different targets in one run: each is made ready for its part, recorded meanwhile, and left after it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from oltp_stage import SHORT, Seen, Stage
from scripted_oltp import MemoryDatabase, loaded

from assay.base.errors import ExitCode, NotSupported, OpenFailed
from assay.record.run_folder import RunFolder
from assay.run.execute import Execution, new_folder, run_document
from assay.run.part import part_from_report, part_report
from assay.run.request import TargetRequest
from assay.run.targets import choose_targets
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.io.plan import load_plan
from assay.workloads.plan import Part
from assay.workloads.registry import workload_named

TPCC_KIND = workload_named("tpcc")

READS = load_plan({"timing": {"warmup_s": 0, "duration_s": 0.2}, "activity": [{"queue_depth": 1}]}, source="plan")
TRANSACTIONS = {"users": 4, "timing": SHORT, "mix": {"new_order": 10, "payment": 13}}


class Mixed:
    """Runs on a null device and on databases in memory."""

    def __init__(self, folder: Path, parts: Sequence[Part]) -> None:
        self.seen, self.parts = Seen(), list(parts)
        self.request = TargetRequest(paths=["null:"])
        self.folder = new_folder(folder / "runs", "assess", ["assess"], self.request.to_dict(), self.parts)

    def run(self) -> ExitCode:
        shared = self.request.choose([part for part in self.parts if part.target is None])
        self.execution = Execution(folder=self.folder, target=shared, parts=self.parts,
                                   display=self.seen, interrupt=threading.Event())  # fmt: skip
        return self.execution.run()

    def again(self) -> ExitCode:
        self.folder.close()
        self.folder = RunFolder.open(self.folder.path)
        return self.run()

    @property
    def document(self) -> dict[str, Any]:
        return run_document(self.folder)


def reads(name: str) -> Part:
    return Part(name=name, title=name, plan=READS)


def transactions(name: str, target: DatabaseTarget, **fields: Any) -> Part:
    plan = TPCC_KIND.load_plan(TRANSACTIONS, source="plan")
    return Part(name=name, title="Transactions", plan=plan, target_text="embedded:/d", target=target, **fields)


def on(*databases: MemoryDatabase) -> DatabaseTarget:
    return DatabaseTarget(databases=databases)  # type: ignore[arg-type]


@pytest.fixture
def database(stage: Callable[..., Stage], tmp_path: Path) -> MemoryDatabase:
    found = MemoryDatabase(**loaded(4))
    found.paths = {"data": str(tmp_path)}
    stage(found)
    return found


def test_databases_are_opened_for_their_part_alone(database: MemoryDatabase, tmp_path: Path) -> None:
    target = on(database)
    run = Mixed(tmp_path, [reads("before"), transactions("transactions", target), reads("after")])
    opened: list[bool] = []
    run.seen.point_done = lambda _: opened.append(target.is_open)  # type: ignore[method-assign]

    assert run.run() is ExitCode.DONE

    assert opened == [False, True, False]
    assert database.closed == 1
    document = run.document
    assert [point["part"] for point in document["points"]] == ["before", "transactions", "after"]
    assert [(volume["name"], volume["kind"]) for volume in document["target"]["volumes"]] == [
        ("null", "null"), ("shop-data", "database"),
    ]  # fmt: skip
    assert [one["name"] for one in document["target"]["databases"]] == ["shop"]
    assert {condition["met"] for condition in document["oltp"]["conditions"]} == {True}


def test_parts_on_the_same_databases_leave_them_open(database: MemoryDatabase, tmp_path: Path) -> None:
    target, other = on(database), on(MemoryDatabase("other", **loaded(2)))
    parts = [transactions("one", target), transactions("two", target), transactions("three", other)]
    run = Mixed(tmp_path, [*parts, reads("reads")])
    closed: list[int] = []
    run.seen.point_done = lambda _: closed.append(database.closed)  # type: ignore[method-assign]

    assert run.run() is ExitCode.DONE

    assert closed == [0, 0, 1, 1]
    assert set(run.document["oltp"]["actions_done"]) == {"one", "two", "three"}
    assert [one["name"] for one in run.document["target"]["databases"]] == ["shop", "other"]


def test_a_run_goes_on_with_the_parts_and_databases_it_had(database: MemoryDatabase, tmp_path: Path) -> None:
    run = Mixed(tmp_path, [transactions("transactions", on(database)), reads("reads")])
    run.run()
    before = run.document
    run.folder.update(status="interrupted")
    said = len(database.said)

    assert run.again() is ExitCode.DONE

    after = run.document
    assert [point["id"] for point in after["points"]] == [point["id"] for point in before["points"]]
    assert (after["target"], after["oltp"]) == (before["target"], before["oltp"])
    assert len(database.said) == said, "nothing was done again"


def test_collectors_of_databases_record_during_their_part(
    database: MemoryDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counting:
        name, tier, source = "counting", "database", "postgresql"
        closed = 0

        def sample(self) -> int:
            return 1

        def readings(self, *_: int) -> list[Any]:
            return []

        def close(self) -> None:
            Counting.closed += 1

    made: list[int] = []

    def collectors(_: Sequence[Any]) -> list[Counting]:
        made.append(database.closed)
        return [Counting()]

    monkeypatch.setattr("assay.telemetry.collectors.database_collectors", collectors)
    run = Mixed(tmp_path, [reads("before"), transactions("transactions", on(database))])
    run.run()

    assert (made, Counting.closed) == ([0], 1)


class Broken(MemoryDatabase):
    def open(self, *, connections: int = 0) -> None:
        super().open(connections=connections)
        raise OpenFailed("embedded:/d: the server does not start; read server.log")


def test_a_part_that_may_be_left_out_is_said_and_changes_nothing(stage: Callable[..., Stage], tmp_path: Path) -> None:
    broken = Broken()
    stage(broken)
    run = Mixed(tmp_path, [transactions("transactions", on(broken), optional=True), reads("reads")])

    assert run.run() is ExitCode.DONE

    document = run.document
    assert "Transactions: left out: embedded:/d: the server does not start; read server.log" in document["notices"]
    assert [point["part"] for point in document["points"]] == ["reads"]
    assert (document["status"], document["error"], document.get("oltp")) == ("done", None, None)
    assert "databases" not in document["target"]


class Elsewhere(MemoryDatabase):
    def refuse_host(self) -> None:
        raise NotSupported("embedded:/d: no server can run here")


def test_what_this_host_cannot_run_is_said_before_anything_is_measured(
    stage: Callable[..., Stage], tmp_path: Path
) -> None:
    elsewhere = Elsewhere()
    stage(elsewhere)
    run = Mixed(tmp_path, [reads("reads"), transactions("transactions", on(elsewhere), optional=True)])
    told_before: list[list[str]] = []
    run.seen.point_done = lambda _: told_before.append([*run.seen.told])  # type: ignore[method-assign]

    assert run.run() is ExitCode.DONE

    (told,) = told_before
    assert told == ["Transactions: left out: embedded:/d: no server can run here"]
    assert told[0] in run.document["notices"]
    assert run.seen.told.count(told[0]) == 1


def test_what_this_host_cannot_run_ends_a_run_that_needs_it_before_anything_is_measured(
    stage: Callable[..., Stage], tmp_path: Path
) -> None:
    elsewhere = Elsewhere()
    stage(elsewhere)
    run = Mixed(tmp_path, [reads("reads"), transactions("transactions", on(elsewhere))])

    assert run.run() is ExitCode.TARGET_FAILED

    assert run.document["points"] == []


def test_a_part_that_may_not_be_left_out_ends_the_run(stage: Callable[..., Stage], tmp_path: Path) -> None:
    broken = Broken()
    stage(broken)
    run = Mixed(tmp_path, [transactions("transactions", on(broken)), reads("reads")])

    assert run.run() is ExitCode.TARGET_FAILED
    assert run.document["error"].startswith("embedded:/d: the server does not start")
    assert broken.closed == 1


def test_io_follows_what_transactions_did_and_says_where_nothing_was_counted(
    database: MemoryDatabase, tmp_path: Path
) -> None:
    following = replace(reads("raw"), follows="transactions")
    run = Mixed(tmp_path, [transactions("transactions", on(database)), following])

    assert run.run() is ExitCode.TARGET_FAILED
    assert run.document["error"].startswith("point p0001: no I/O was counted under it")


def test_what_follows_and_what_may_be_left_out_come_back_from_the_manifest() -> None:
    part = replace(reads("raw"), follows="transactions", optional=True)

    assert part_from_report(part_report(part), None, source="folder") == part


def test_a_password_stays_out_of_requests_and_parts() -> None:
    url = "postgresql://tester:hidden@db.example/tpcc"
    part = Part(name="one", title="One", plan=TPCC_KIND.load_plan(TRANSACTIONS, source="plan"), target_text=url)
    request = TargetRequest(paths=[url])

    shared, (own, other) = choose_targets(request, [part, replace(part, name="two", target_text=None)])

    assert isinstance(shared, DatabaseTarget)
    assert own.target_text == "postgresql://tester@db.example/tpcc"
    assert (other.target_text, request.paths) == (None, ["postgresql://tester@db.example/tpcc"])


# What is loaded


@pytest.mark.parametrize(
    ("there", "warehouses", "is_loaded"),
    [
        (loaded(4), 4, False),
        (loaded(9, seed=7), 9, False),
        (loaded(2), 4, True),
        ({"kind": "partial", "scale": 2, "seed": 1, "chunks": frozenset({("item", 0, 1)})}, 4, True),
        ({"kind": "broken", "scale": 4, "seed": 1}, 4, True),
    ],
)  # fmt: skip
def test_warehouses_are_loaded_anew_where_there_are_too_few(
    stage: Callable[..., Stage], there: dict[str, Any], warehouses: int, is_loaded: bool
) -> None:
    run = stage(MemoryDatabase(**there), warehouses=4, reloads=True)

    assert run.run() is ExitCode.DONE

    assert run.oltp["warehouses"] == warehouses
    assert [one["databases"][0]["done"] for one in run.load.asked] == [[]] * is_loaded


def test_a_load_that_was_cut_short_goes_on_where_it_is_the_same(stage: Callable[..., Stage]) -> None:
    there = {"kind": "partial", "scale": 4, "seed": 1, "chunks": frozenset({("item", 0, 1)})}
    run = stage(MemoryDatabase(**there), warehouses=4, reloads=True)
    run.run()

    assert [one["databases"][0]["done"] for one in run.load.asked] == [[["item", 0, 1]]]
