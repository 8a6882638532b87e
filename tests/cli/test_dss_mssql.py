"""`assay dss tpch` on SQL Server, or another server that speaks TDS and T-SQL, where ASSAY_TEST_MSSQL names one."""

from __future__ import annotations

import pytest

from assay_command import Bench
from servers.mssql import MssqlServer


@pytest.mark.slow(reason="waits for a server elsewhere; the driver and the statements are tried without one")
def test_the_answers_are_those_of_another_engine(bench: Bench, mssql: MssqlServer) -> None:
    pytest.importorskip("pymssql")
    targets = [mssql.fresh_database(), f"duckdb:{bench.folder}/d.duckdb"]

    outcome = bench.assay(
        "dss", "tpch", *targets, "load", "check", "--scale", "0.01", "--no-report", "-o", bench.results, "--json",
        timeout_s=250,
    )  # fmt: skip

    assert outcome.code == 0, outcome.stderr
    answers = outcome.document["dss"]["answers"]
    assert {one["query"] for one in answers} == set(range(1, 23))
    assert [one for one in answers if not one["met"]] == []
