"""The process that records a load and shows states: `python -m assay.insight.crash.worker`.

It runs in a mount namespace and a PID namespace of its own, where it is root: when it ends, however it ends, the
kernel ends all that it started and takes away all that it mounted. It ends with its standard input.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO

from assay import _core
from assay.base.errors import AssayError
from assay.insight.crash.command import OwnCommand
from assay.insight.crash.ledger import Ledger
from assay.insight.crash.own_user import OwnUser, named_user
from assay.insight.crash.places import places_of
from assay.insight.crash.requests import (
    CheckedState,
    LostWrite,
    Recorded,
    StageRequest,
    SubjectRequest,
    base_path,
    log_path,
    stage_of,
)
from assay.insight.crash.served_database import DatabaseLoad, ServedDatabase
from assay.insight.crash.servers import own_server
from assay.insight.crash.stage import NotMounted, Stage
from assay.insight.crash.subject import CrashFinding, CrashSubject

COPIED_BYTES = 1 << 18


class Worker:
    """A stage, and the program that is tried on it."""

    def __init__(self, stage: StageRequest, subject: SubjectRequest) -> None:
        self._request = stage
        work = Path(stage.work)
        served, mounted = work / "served", work / "fs"
        for folder in (served, mounted):
            folder.mkdir()
        self._volume = _core.CrashVolume(served, Path(stage.base), volume_bytes=stage.volume.size_bytes)
        self._is_shown = False
        self._subject = _subject(subject, work)
        self._states: dict[str, _core.CrashStates] = {}
        self._stage: Stage | None = None
        self._mounted = mounted

    @property
    def stage(self) -> Stage:
        """The stage; it is set up when it is first needed."""
        if self._stage is None:
            asked = self._request.volume
            self._stage = Stage(self._volume, self._mounted, file_system=asked.file_system, options=asked.options)
        return self._stage

    def record(self) -> Recorded:
        """Prepare the volume, run the load, and record what it writes."""
        stage, log = self.stage, Path(self._request.log)
        stage.make_file_system(self._request.volume.mkfs)
        stage.mount()
        self._subject.prepare(stage.place)
        stage.unmount()
        stage.forget_cached()
        partial = log.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        stage.mount()
        stage.settle()
        self._volume.record(partial)
        told: list[str] = []

        def tell(text: str) -> None:
            self._volume.mark(text)
            told.append(text)

        began = time.monotonic()
        self._subject.load(stage.place, tell)
        took_s = time.monotonic() - began
        self._volume.finish()
        stage.unmount()
        partial.rename(log)
        return Recorded(title=self._subject.title, load_s=took_s, told=len(told))

    def check(self, name: str, promises: str) -> CheckedState:
        """Show a state and look for what is wrong with it."""
        began, cpu = time.monotonic(), _cpu_seconds()
        finding = self._finding(name, promises)
        return CheckedState(name=name, finding=finding, seconds=_since(began), cpu_seconds=_cpu_seconds() - cpu)

    def _finding(self, name: str, promises: str) -> CrashFinding | None:
        states = self._show(name, promises)
        try:
            self.stage.mount()
        except NotMounted as error:
            return CrashFinding(kind="mount", message=str(error))
        finding = self._subject.check(self.stage.place, states.marks(name))
        self.stage.unmount()
        if finding is None and self._request.checks_file_system:
            complaint = self.stage.complaint()
            finding = CrashFinding(kind="file system", message=complaint) if complaint else None
        return finding

    def rate(self, name: str, promises: str) -> Recorded:
        """Run the load once more, on a state, unrecorded: commits after the first acknowledgement, and their time.

        The start and the end of a server do not count.
        """
        self._show(name, promises)
        self.stage.mount()
        told, moments = list[str](), list[float]()

        def tell(text: str) -> None:
            told.append(text)
            moments.append(time.monotonic())

        self._subject.load(self.stage.place, tell)
        self.stage.unmount()
        commits = self._subject.commits(told) - self._subject.commits(told[:1])
        took_s = moments[-1] - moments[0] if moments else 0.0
        return Recorded(title=self._subject.title, load_s=took_s, told=commits)

    def record_recovery(self, name: str, promises: str, folder: Path) -> Recorded:
        """Record the recovery from a state, with the state as the volume at the beginning."""
        states = self._show(name, promises)
        _copy_sparse(Path(self._volume.path), base_path(folder))
        partial = log_path(folder).with_suffix(".partial")
        partial.unlink(missing_ok=True)
        self._volume.record(partial)
        told = states.marks(name)
        for text in told:
            self._volume.mark(text)
        began = time.monotonic()
        with contextlib.suppress(NotMounted):
            self.stage.mount()
            self._subject.recover(self.stage.place, told)
        took_s = _since(began)
        self._volume.finish()
        self.stage.unmount()
        partial.rename(log_path(folder))
        return Recorded(title=self._subject.title, load_s=took_s, told=len(told))

    def show(self, name: str, promises: str) -> Path:
        """Show a state and mount it; where it is."""
        self._show(name, promises)
        self.stage.mount()
        return self.stage.place

    def lost(self, name: str, promises: str) -> list[LostWrite]:
        """The writes that a state lacks, with the files that they belong to."""
        states = self._opened(promises)
        writes = [
            LostWrite(request=request, at_ns=at_ns, offset_bytes=offset, length_bytes=length, lost_bytes=lost)
            for request, at_ns, offset, length, lost in states.lost(name)
        ]
        seed, point, _ = name.split(":", 2)
        self._show(f"{seed}:{point}:all", promises)
        return places_of(writes, self.stage)

    def _opened(self, promises: str) -> _core.CrashStates:
        if promises not in self._states:
            request = self._request
            self._states[promises] = _core.CrashStates(Path(request.log), Path(request.base), promises)
        return self._states[promises]

    def _show(self, name: str, promises: str) -> _core.CrashStates:
        states = self._opened(promises)
        if not self._is_shown:
            # Nothing is written to the base: what is shown first takes the place of setting up.
            self._volume.show(states, name)
            self._is_shown = True
        self.stage.forget_cached()
        self._volume.show(states, name)
        return states

    def close(self) -> None:
        """End all."""
        self._subject.close()
        if self._stage is not None:
            self._stage.close()
        self._volume.close()


def _copy_sparse(source: Path, to: Path) -> None:
    """Copy a file, without its zeroes."""
    zeroes = bytes(COPIED_BYTES)
    with source.open("rb", buffering=0) as reader, to.open("wb") as writer:
        while piece := reader.read(COPIED_BYTES):
            if piece == zeroes[: len(piece)]:
                writer.seek(len(piece), os.SEEK_CUR)
            else:
                writer.write(piece)
        writer.truncate()


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _since(began: float) -> float:
    return time.monotonic() - began


def _subject(request: SubjectRequest, work: Path) -> CrashSubject:
    if request.kind != "command":
        server = own_server(request, work)
        load: DatabaseLoad = Ledger(transactions=request.transactions, clients=request.clients)
        if request.plan:
            from assay.insight.crash.transactions import WorkloadLoad

            size = {"transactions": request.transactions, "clients": request.clients}
            load = WorkloadLoad(request.plan, request.conditions, request.count, **size)
        return ServedDatabase(server, load, checks_pages=request.checks_pages)
    return OwnCommand(
        request.load,
        request.check,
        prepare=request.prepare or None,
        patience_s=request.patience_s,
        work=work,
        cwd=Path(request.cwd),
        user=named_user(request.user) if request.user else OwnUser(),
    )


def _answer(worker: Worker, asked: Sequence[str]) -> object:
    match asked:
        case ["record"]:
            return asdict(worker.record())
        case ["check", name, promises]:
            return asdict(worker.check(name, promises))
        case ["rate", name, promises]:
            return asdict(worker.rate(name, promises))
        case ["record again", name, promises, folder]:
            return asdict(worker.record_recovery(name, promises, Path(folder)))
        case ["lost", name, promises]:
            return [asdict(one) for one in worker.lost(name, promises)]
        case ["show", name, promises]:
            return str(worker.show(name, promises))
    raise AssertionError(f"{asked}: no question of a worker")


def serve(lines: IO[str], answers: IO[str]) -> None:
    """Answer each line until there are no more."""
    worker: Worker | None = None
    try:
        for line in lines:
            try:
                if worker is None:
                    worker = Worker(*stage_of(line))
                    answer: object = "ready"
                else:
                    answer = _answer(worker, json.loads(line))
                said: dict[str, object] = {"answer": answer}
            except AssayError as error:
                said = {"error": type(error).__name__, "message": str(error)}
            answers.write(json.dumps(said) + "\n")
            answers.flush()
    finally:
        if worker is not None:
            worker.close()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.stdin, sys.stdout)
