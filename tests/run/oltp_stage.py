"""A stage on which a part on databases runs: databases in memory, a core that reports what a test wrote."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_oltp import MemoryDatabase, ScriptedLoad, ScriptedRun, oltp_sql

from assay import _core
from assay.base.errors import ExitCode
from assay.record.run_folder import RunFolder
from assay.run.execute import Above, Execution, new_folder, run_document
from assay.targets.databases.common.target import DatabaseTarget
from assay.telemetry import collectors
from assay.telemetry.collectors import ServerActivity
from assay.workloads.plan import Part
from assay.workloads.registry import workload_named
from assay.workloads.transactions import counted
from assay.workloads.transactions import point as oltp_point
from assay.workloads.transactions.opening import prepare

SHORT = {"warmup_s": 0.1, "duration_s": 1.0}


class Seen:
    """A display that remembers."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.lines: list[str] = []
        self.phases: list[str] = []
        self.points: list[str] = []

    def layout(self, name: str, done_bytes: float, total_bytes: float) -> None: ...

    def phase(self, text: str) -> None:
        self.phases.append(text)

    def point(self, progress: Any) -> None:
        self.lines.append(progress.line)

    def status(self, status: Any) -> None: ...

    def tell(self, text: str) -> None:
        self.told.append(text)

    def point_done(self, point: dict[str, Any]) -> None:
        self.points.append(point["id"])


class Stage:
    """An execution of `oltp` on databases in memory."""

    def __init__(self, folder: Path, databases: list[MemoryDatabase], plan: dict[str, Any]) -> None:
        self.databases, self.seen, self.interrupt = databases, Seen(), threading.Event()
        self.load, self.core = ScriptedLoad(), ScriptedRun(databases=databases)
        data = {"users": 4, "timing": SHORT, "mix": {"new_order": 10, "payment": 13}, **plan}
        self.plan = workload_named("tpcc").load_plan(data, source="plan")
        self.path = folder / "runs"
        self.above = Above()
        self.target = DatabaseTarget(databases=databases)  # type: ignore[arg-type]

    def run(self) -> ExitCode:
        self.part = Part(name="tpcc", title="T", plan=prepare(self.target, self.plan, self.seen.phase))
        self.folder = new_folder(self.path, "oltp", ["oltp"], {"targets": []}, [self.part])
        return self._run()

    def again(self) -> ExitCode:
        """Go on with the folder, as `--resume` does."""
        self.folder.close()
        self.folder = RunFolder.open(self.folder.path)
        self.interrupt.clear()
        return self._run()

    def _run(self) -> ExitCode:
        self.execution = Execution(folder=self.folder, target=self.target, parts=[self.part],
                                   display=self.seen, interrupt=self.interrupt, above=self.above)  # fmt: skip
        return self.execution.run()

    @property
    def document(self) -> dict[str, Any]:
        return run_document(self.folder)

    @property
    def oltp(self) -> dict[str, Any]:
        found: dict[str, Any] = self.document["oltp"]
        return found

    @property
    def notices(self) -> str:
        return "\n".join(self.document["notices"])


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Stage]:
    def make(*databases: MemoryDatabase, **plan: Any) -> Stage:
        made = Stage(tmp_path, list(databases) or [MemoryDatabase()], plan)
        monkeypatch.setattr(_core, "oltp_sql", oltp_sql, raising=False)
        monkeypatch.setattr(_core, "RowsLoad", made.load, raising=False)
        monkeypatch.setattr(_core, "OltpRun", made.core, raising=False)
        monkeypatch.setattr(collectors, "database_collectors", lambda _: [])
        monkeypatch.setattr(counted, "activity", lambda _: ServerActivity())
        monkeypatch.setattr(oltp_point, "LOOK_S", 0.0)
        return made

    return make
