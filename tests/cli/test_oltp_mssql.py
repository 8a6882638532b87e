"""`assay oltp tpcc` on SQL Server, or another server that speaks TDS and T-SQL, where ASSAY_TEST_MSSQL names one."""

from __future__ import annotations

from typing import Any

import pytest

from assay_command import Bench
from servers.mssql import MssqlServer

SHORT = ("--users", "1", "--warmup", "0.5s", "--duration", "3s")
"""One user for the one warehouse: what locks do is for SQL Server itself to show."""


def oltp(bench: Bench, *arguments: str) -> dict[str, Any]:
    outcome = bench.assay("oltp", "tpcc", *arguments, "--no-report", "-o", bench.results, "--json", timeout_s=250)
    assert outcome.code == 0, outcome.stderr
    found: dict[str, Any] = outcome.document["oltp"]
    return found


def met(found: dict[str, Any]) -> dict[int, bool]:
    return {condition["id"]: condition["met"] for condition in found["conditions"]}


@pytest.mark.slow(reason="waits for a server elsewhere; the driver and the statements are tried without one")
@pytest.mark.parametrize("mode", ["--statements", "--procedures"])
def test_a_load_and_a_run_meet_the_conditions(bench: Bench, mssql: MssqlServer, mode: str) -> None:
    pytest.importorskip("pymssql")
    if mode == "--procedures" and "Babelfish" in mssql.version():
        pytest.skip("Babelfish has no UPDATE that sets a column and a variable")
    url = mssql.fresh_database()
    loaded = oltp(bench, url, "load", "check", "--warehouses", "1")
    assert loaded["load"]["rows"] > 500_000
    assert met(loaded) == dict.fromkeys(range(1, 13), True)

    ran = oltp(bench, url, "run", "check", mode, "--preset", "strict", *SHORT)
    assert met(ran) == {number: True for number in range(1, 13) if number != 11}
    assert ran["nopm"] > 0
    assert not any(ran["errors"]["kinds"].values()), ran["errors"]
