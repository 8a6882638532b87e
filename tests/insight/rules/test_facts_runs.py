"""What runs say: what they measured, their host, their volumes, and the settings of the servers that they used."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.insight.rules.facts.databases import settings_subject
from assay.insight.rules.facts.runs import MeasuredStorage, measured
from assay.insight.rules.gather import subjects_of
from assay.insight.rules.registry import RULES, rule_named
from assay.insight.rules.rule import Subject, check
from assay_command import Bench

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"

Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def altered(tmp_path: Path) -> Callable[[str, Change], Path]:
    """A copy of a run of before with another manifest."""

    def alter(name: str, change: Change) -> Path:
        copy = tmp_path / name
        shutil.copytree(RUNS / name, copy)
        manifest = json.loads((copy / "run.json").read_text())
        change(manifest)
        (copy / "run.json").write_text(json.dumps(manifest))
        return copy

    return alter


def found(subjects: list[Subject]) -> set[str]:
    return {one.rule.id for one in check(subjects, RULES).findings}


def one(subjects: list[Subject], kind: str) -> Subject:
    (chosen,) = (each for each in subjects if each.kind == kind)
    return chosen


def test_settings_that_a_run_keeps_are_judged(altered: Callable[[str, Change], Path]) -> None:
    def break_it(manifest: dict[str, Any]) -> None:
        manifest["target"]["databases"][0]["settings"] |= {
            "fsync": "off", "checkpoint_timeout": "30s", "shared_buffers": "16MB", "max_wal_size": "64MB",
            "archive_mode": "off",
        }  # fmt: skip

    subjects, notices = subjects_of([str(altered("oltp", break_it))])
    server = one(subjects, "database")

    assert server.get("shared_buffers_bytes") == 16 << 20
    assert server.get("checkpoint_timeout_s") == 30.0
    assert {"postgresql-fsync", "postgresql-checkpoint-timeout", "postgresql-shared-buffers-small"} <= found(subjects)
    assert "says what its host was when it ran" in notices[0]


def test_a_run_as_it_was_finds_only_what_it_was() -> None:
    subjects, _ = subjects_of([str(RUNS / "oltp")])

    assert found([one(subjects, "database")]) == {"postgresql-wal-compression"}
    assert one(subjects, "layout").get("data_devices") == ["vda"]
    assert one(subjects, "mount").get("file_system") == "ext4"


def test_what_a_run_did_not_keep_is_not_checked_and_says_where_to_look() -> None:
    subjects, _ = subjects_of([str(RUNS / "profile")])
    reasons = {gap.rule.id: gap.reason for gap in check(subjects, RULES).not_checked}

    assert reasons["host-swappiness"] == "the run did not keep it; assay check host reads it"
    assert reasons["mount-free"] == "the run did not keep it; name the folder"


def test_a_server_of_another_host_is_not_judged_by_the_memory_of_this_one() -> None:
    told = {"name": "pg", "kind": "postgresql", "is_local": False, "settings": {"shared_buffers": "128MB"}}

    server = settings_subject(told, 64 << 30, None, "run.json")

    assert "memory_bytes" not in server.facts


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        ("mariadb", {"innodb_flush_log_at_trx_commit": "0", "innodb_doublewrite": "OFF"},
         {"mariadb-flush-log", "mariadb-doublewrite"}),
        ("mssql", {"recovery_model": "SIMPLE", "page_verify": "NONE", "backup compression default": "0"},
         {"mssql-log-recovery", "mssql-page-verify", "mssql-backup-compression"}),
        ("duckdb", {"threads": "2"}, set()),
    ],
)  # fmt: skip
def test_each_kind_of_server_is_judged_by_what_a_run_keeps(
    kind: str, settings: dict[str, str], expected: set[str]
) -> None:
    told = {"name": "db", "kind": kind, "is_local": True, "settings": settings}

    assert found([settings_subject(told, 64 << 30, None, "run.json")]) == expected


def test_the_price_of_a_random_page_is_that_which_a_profile_measured(
    bench: Bench, altered: Callable[[str, Change], Path]
) -> None:
    # A model of turning disks: random pages cost many times what sequential ones do, and 1.1 is far from it.
    ran = bench.profile(
        "model:ps6100xv?raid=10&volumes=1", "--block", "8K", "--read", "100", "--random", "100,0", "--queue-depth", "1",
        "--search", "none", "--warmup", "0s", "--duration", "2s", "--json",
    )  # fmt: skip
    assert ran.code == 0, ran.stderr
    profile = Path(ran.document["run_folder"])
    cost = measured(profile).random_cost
    assert cost is not None

    def set_cost(value: float) -> Change:
        def change(manifest: dict[str, Any]) -> None:
            manifest["target"]["databases"][0]["settings"]["random_page_cost"] = str(value)

        return change

    rule = rule_named("postgresql-random-page-cost")
    run = altered("oltp", set_cost(cost * 4))
    (finding,) = check(subjects_of([str(run)], profile=profile)[0], [rule]).findings
    assert f"measured {cost:.2g}" in finding.found
    shutil.rmtree(run)

    # Named as a target, the profile serves as well.
    run = altered("oltp", set_cost(cost))
    told = check(subjects_of([str(run), str(profile)])[0], [rule])
    assert (told.findings, len(told.passed)) == ([], 1)


def test_a_mix_of_reads_and_writes_does_not_say_what_storage_writes() -> None:
    assert measured(RUNS / "profile").write_bytes_per_s is None
    assert measured(RUNS / "oltp") == MeasuredStorage(origin=str(RUNS / "oltp"))
