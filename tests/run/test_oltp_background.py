"""Work beside the transactions: it goes on until it is stopped, and is counted."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from assay.base.errors import IoFailed, NotSupported
from assay.workloads.tpcc.tables import TABLES
from assay.workloads.transactions import background as oltp_background


class Sessions:
    """A database whose statements take as long as a test says."""

    dialect = "postgresql"
    table_set = TABLES
    spec = SimpleNamespace(display="embedded:/srv/pg")

    def __init__(self, fails: str = "") -> None:
        self.said: list[str] = []
        self.fails, self.cancelled = fails, 0

    def connection(self) -> Any:
        return SimpleNamespace(kind="postgresql", socket="/s", host=None, port=1)

    def new_session(self) -> Any:
        return SimpleNamespace(execute=self.execute, cancel=self.cancel, close=lambda: None)

    def execute(self, sql: str) -> None:
        self.said.append(sql)
        if self.fails:
            raise IoFailed(self.fails)

    def cancel(self) -> None:
        self.cancelled += 1


def test_work_goes_on_until_it_is_stopped_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oltp_background, "CHECKPOINT_EVERY_S", 0.001)
    database = Sessions()
    work = oltp_background.BackgroundWork([database], ["checkpoint", "vacuum"])  # type: ignore[list-item]
    began = time.monotonic()
    work.start()
    while database.said.count("CHECKPOINT") < 3 or database.said.count("VACUUM stock") < 3:
        time.sleep(0.001)
    work.stop()

    assert work.error is None
    done = {one["kind"]: one for one in work.report(began, time.monotonic())}
    assert done["checkpoint"]["count"] >= 2
    assert done["vacuum"]["count"] >= 2
    assert work.report(began - 2, began - 1) == [
        {"kind": "checkpoint", "count": 0, "seconds": 0}, {"kind": "vacuum", "count": 0, "seconds": 0},
    ]  # fmt: skip


def test_work_that_fails_says_so() -> None:
    work = oltp_background.BackgroundWork([Sessions("no rights")], ["vacuum"])  # type: ignore[list-item]
    work.start()
    while work.error is None:
        time.sleep(0.001)
    work.stop()
    assert str(work.error) == "vacuum beside the transactions failed: no rights"


@pytest.mark.parametrize(("dialect", "kind"), [("mariadb", "checkpoint"), ("mysql", "backup"), ("mssql", "vacuum")])
def test_work_that_a_server_does_not_have_is_refused(dialect: str, kind: str) -> None:
    database = Sessions()
    database.dialect = dialect
    with pytest.raises(NotSupported, match=f"background {kind}"):
        oltp_background.BackgroundWork([database], [kind])  # type: ignore[list-item]
