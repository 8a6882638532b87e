"""Facts of SQL Server from answers written by hand: proofs, rows of every database, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from assay.base.errors import RefusedTarget
from assay.insight.rules.facts import mssql
from assay.insight.rules.registry import FAMILIES
from assay.insight.rules.rule import Subject, check
from assay.targets.databases.common.database import Database

QUERIES = mssql.queries()

VALUES: dict[str, list[tuple[Any, ...]]] = {
    "tempdb_bytes": [(64 << 20,)], "tempdb_files": [(8,)], "tempdb_sizes": [(8 << 20,), (8 << 20,)],
    "tempdb_growths": [("tempdev", 8 << 20, 64 << 20)], "user_bytes": [(1 << 30,)], "tempdb_recovery": [("SIMPLE",)],
    "vlf_counts": [("master", 4), ("shop", 5000)], "max_server_memory_bytes": [(80 << 30,)],
    "backup_compression": [(1,)], "memory_bytes": [(100 << 30,)], "memory_model": [("LOCK_PAGES",)],
    "host_platform": [("Windows",)], "columnstore_indexes": [(2,)], "suspect_pages": [(0,)],
    "instant_file_initialization": [("Y",)], "startup_parameters": [("-dC:\\master.mdf",)], "cpu_count": [(16,)],
}  # fmt: skip
"""What a healthy server answers; the facts that are not here are lists, and empty."""

DATABASES = [("master", 1), ("msdb", 1), ("shop", 1)]


class Server:
    """Answers queries as it was told; a value that is an error is raised."""

    def __init__(self, answers: Mapping[str, Any], *, names: list[tuple[str, int]] | None = None) -> None:
        self._answers = {
            QUERIES["facts"][fact]["sql"]: value for fact, value in answers.items() if fact in QUERIES["facts"]
        }
        self._answers |= {
            QUERIES["proofs"][one]["sql"]: value for one, value in answers.items() if one in QUERIES["proofs"]
        }
        self._names = names if names is not None else DATABASES
        self.visited: list[str] = []
        self.spec = type("Spec", (), {"user": "monitor"})

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        if "has_dbaccess" in sql:
            return list(self._names)
        value = self._answers.get(sql, [])
        if isinstance(value, Exception):
            raise value
        return list(value)

    def new_session(self, name: str) -> Server:
        self.visited.append(name)
        return self

    def close(self) -> None:
        """Nothing is held."""


def asked(answers: Mapping[str, Any], **others: Any) -> tuple[Subject, Server]:
    proofs = {name: [(1,)] for name in QUERIES["proofs"]}
    server = Server({**proofs, **VALUES, **answers}, **others)
    subject = Subject("database", "sql", engine="mssql", otherwise="the server does not tell")
    mssql.read(cast(Database, server), subject)
    return subject, server


def test_every_fact_that_a_rule_reads_has_a_query() -> None:
    read = {name for rule in FAMILIES["mssql"] for name in (*rule.reads, *(one.fact for one in rule.applies))}

    assert read - {"workload"} == set(QUERIES["facts"])


def test_every_proof_is_asked_for_and_known() -> None:
    needed = {one for query in QUERIES["facts"].values() for one in query.get("needs", ())}

    assert needed == set(QUERIES["proofs"])


def test_a_healthy_server_gives_only_what_was_made_wrong() -> None:
    subject, _ = asked({})
    subject.know("workload", "transactions", "a test")

    told = check([subject], FAMILIES["mssql"])

    assert {one.rule.id: one.found for one in told.findings} == {"mssql-vlfs": "shop: 5,000"}
    assert told.not_checked == []


def test_catalogues_of_all_databases_are_put_together() -> None:
    subject, server = asked({"full_files": [("shop/shop",)]})

    assert server.visited == ["master", "msdb", "shop"]
    assert subject.get("columnstore_indexes") == 6
    assert subject.get("full_files") == ["shop/shop"] * 3


def test_a_database_that_may_not_be_used_leaves_a_gap_but_hides_no_finding() -> None:
    subject, _ = asked({"full_files": [("shop/shop",)]}, names=[("shop", 1), ("secret", 0)])

    assert subject.get("full_files") == ["shop/shop"]
    assert subject.get("uneven_filegroups") is None
    assert subject.missing["uneven_filegroups"] == "user 'monitor' may not use database secret"


@pytest.mark.parametrize("proof", QUERIES["proofs"])
def test_without_a_proof_nothing_that_needs_it_passes(proof: str) -> None:
    subject, _ = asked({proof: [(0,)]})

    needing = {name for name, query in QUERIES["facts"].items() if proof in query.get("needs", ())}
    assert needing
    assert not needing & set(subject.facts)
    assert {subject.missing[name] for name in needing} == {QUERIES["proofs"][proof]["lacks"]}


def test_a_query_that_is_refused_is_a_gap_with_what_to_grant() -> None:
    subject, _ = asked({"suspect_pages": RefusedTarget("may not"), "full_files": RefusedTarget("no")})

    assert subject.missing["suspect_pages"].endswith("GRANT VIEW SERVER STATE, VIEW ANY DEFINITION")
    assert subject.missing["full_files"].startswith("in database shop: it may not be read")


@pytest.mark.parametrize("fact", [name for name, query in QUERIES["facts"].items() if query.get("never_empty")])
def test_what_is_never_empty_is_a_gap_where_it_is(fact: str) -> None:
    subject, _ = asked({fact: []})

    assert fact not in subject.facts
    assert "shows nothing of it" in subject.missing[fact]


def test_a_run_tells_of_its_own_database_alone() -> None:
    subject = Subject("database", "shop", engine="mssql")

    mssql.from_settings(
        {
            "max server memory (MB)": "2147483647", "backup compression default": "0", "recovery_model": "FULL",
            "target_recovery_time_s": "0", "page_verify": "NONE",
        },
        subject,
        "run.json",
    )  # fmt: skip

    assert subject.get("max_server_memory_bytes") == 2147483647 << 20
    assert subject.get("automatic_checkpoints") == ["shop"]
    assert subject.get("unverified_databases") == ["shop"]
    assert "simple_databases" not in subject.facts
    assert "alone" in subject.missing["simple_databases"]
