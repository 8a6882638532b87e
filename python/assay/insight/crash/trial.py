"""A recorded load, and its states under promises: planned, tried on several cores, and the smallest failing one."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

from assay import _core
from assay.insight.crash.process import CrashProcess
from assay.insight.crash.promises import Promises
from assay.insight.crash.requests import (
    CheckedState,
    LostWrite,
    Recorded,
    SubjectRequest,
    VolumeRequest,
    base_path,
    checked_of,
    log_path,
)
from assay.insight.crash.subject import CrashFinding, Kind

MINIMISING_MAX = 80
"""Checks that are spent on making a failing state smaller."""
BATCH = 64
"""States that a process takes at a time, in the order of the log: going back in it takes time."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The smallest failing state that was found, and the writes that it lacks."""

    name: str
    first: str
    finding: CrashFinding
    lost: tuple[LostWrite, ...]
    is_smallest: bool


@dataclass(frozen=True, kw_only=True)
class CrashOutcome:
    """All states that were tried under some promises.

    Attributes
    ----------
    coverage
        As of `assay._core.CrashStates.plan`.
    planned
        States that were to be tried.
    tried, failed
        States that were tried, and those with a finding.
    cpu_seconds
        Processor time of all states that were tried.
    kinds
        Failing states by what is wrong with them.
    """

    promises: Promises
    planned: int
    tried: int
    failed: int
    kinds: dict[Kind, int]
    coverage: dict[str, int]
    seconds: float
    failure: Failure | None
    cpu_seconds: float = 0.0


@dataclass(kw_only=True)
class Trial:
    """One program with its settings.

    Attributes
    ----------
    folder
        Where base, log and results lie.
    jobs
        Processes that show states.
    progress
        Told after each state: promises, states tried, states planned, failing ones.
    """

    folder: Path
    subject: SubjectRequest
    volume: VolumeRequest
    checks: bool = True
    seed: int = 1
    jobs: int = 1
    progress: Callable[[str, int, int, int], None] = lambda *_: None
    _results: dict[tuple[str, int], CheckedState] = field(default_factory=dict)
    _processes: list[CrashProcess] = field(default_factory=list)

    def _process(self) -> CrashProcess:
        return CrashProcess(self.folder, self.subject, self.volume, checks=self.checks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.close()
        self._processes.clear()

    def processes(self, count: int) -> Sequence[CrashProcess]:
        """Processes that show states; they live as long as the trial is entered."""
        while len(self._processes) < count:
            self._processes.append(self._process())
        return self._processes[:count]

    def record(self) -> Recorded:
        """Run the load and record it, unless that is done already."""
        kept = self.folder / "recorded.json"
        if log_path(self.folder).exists() and kept.exists():
            return Recorded(**json.loads(kept.read_text()))
        log_path(self.folder).unlink(missing_ok=True)
        base_path(self.folder).unlink(missing_ok=True)
        recorded = self._process_that_records()
        kept.write_text(json.dumps(asdict(recorded)) + "\n")
        return recorded

    def _process_that_records(self) -> Recorded:
        process = self._process()
        try:
            return process.record()
        finally:
            process.close()

    def passing(self, promises: Promises, among: int, most: int) -> list[str]:
        """Some of the states that were tried and passed, spread over those that were planned."""
        planned, _ = self.states(promises).plan(self.seed, among)
        self._read_results()
        passed = [
            name
            for name, number, marks in planned
            if (known := self._results.get((number, marks))) is not None and known.finding is None
        ]
        return passed[:: max(len(passed) // most, 1)][:most]

    def again(self, name: str, promises: Promises) -> Trial:
        """The recovery from a state as a trial of its own: a second crash may come while it writes."""
        folder = self.folder / f"again-{name.replace(':', '-').replace('<', 'first')}"
        found = replace(self, folder=folder, _results={}, _processes=[])
        kept = folder / "recorded.json"
        if not kept.exists():
            folder.mkdir(exist_ok=True)
            recorded = self.processes(1)[0].record_recovery(name, promises, folder.resolve())
            kept.write_text(json.dumps(asdict(recorded)) + "\n")
        return found

    def rate(self) -> float:
        """Commits a second while the load runs once more on the first state of the log, unrecorded."""
        process = self._process()
        try:
            found = process.rate(f"{self.seed}:0:none", Promises())
        finally:
            process.close()
        return found.told / found.load_s if found.load_s else 0.0

    def states(self, promises: Promises) -> _core.CrashStates:
        """The states that promises allow."""
        return _core.CrashStates(log_path(self.folder), base_path(self.folder), promises.to_json())

    def try_states(self, promises: Promises, most: int, *, enough: int | None = None) -> CrashOutcome:
        """Try up to `most` states; with `enough` no more once so many have failed, and none is made smaller."""
        began = time.monotonic()
        states = self.states(promises)
        planned, coverage = states.plan(self.seed, most)
        self._read_results()
        tried: list[tuple[str, CheckedState]] = []
        processes = self.processes(min(self.jobs, max(len(planned), 1)))
        self._spread(planned, promises, processes, tried, enough)
        failing = [(name, one) for name, one in tried if one.finding is not None]
        most_checks = MINIMISING_MAX if enough is None else 0
        failure = self._smallest(failing, states, promises, processes[0], most_checks) if failing else None
        kinds = Counter(one.finding.kind for _, one in tried if one.finding is not None)
        return CrashOutcome(
            promises=promises,
            planned=len(planned),
            tried=len(tried),
            failed=len(failing),
            kinds=dict(kinds.most_common()),
            coverage=coverage,
            seconds=time.monotonic() - began,
            cpu_seconds=sum(one.cpu_seconds for _, one in tried),
            failure=failure,
        )

    def _spread(
        self,
        planned: Sequence[tuple[str, str, int]],
        promises: Promises,
        processes: Sequence[CrashProcess],
        tried: list[tuple[str, CheckedState]],
        enough: int | None,
    ) -> None:
        """Let processes check states; the order within a batch is that of the log, unless a few failures are enough."""
        batches: queue.SimpleQueue[list[tuple[str, str, int]]] = queue.SimpleQueue()
        size = max(1, min(BATCH, len(planned) // (4 * len(processes))))
        for first in range(0, len(planned), size):
            batch = planned[first : first + size]
            batches.put(list(batch) if enough else sorted(batch, key=lambda one: int(one[0].split(":", 2)[1])))
        lock, failures = threading.Lock(), list[BaseException]()
        failed = 0

        def work(process: CrashProcess) -> None:
            nonlocal failed
            try:
                while True:
                    try:
                        batch = batches.get_nowait()
                    except queue.Empty:
                        return
                    for name, number, marks in batch:
                        if failures or (enough is not None and failed >= enough):
                            return
                        checked = self._results.get((number, marks)) or process.check(name, promises)
                        with lock:
                            self._keep(number, marks, checked)
                            tried.append((name, checked))
                            failed += checked.finding is not None
                            self.progress(promises.words, len(tried), len(planned), failed)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(process,)) for process in processes]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException as error:
            failures.append(error)
            for thread in threads:
                thread.join()
            raise
        if failures:
            raise failures[0]

    def _read_results(self) -> None:
        """Take what was tried before: equal contents have equal outcomes, whatever promise allowed them."""
        path = self.folder / "results.jsonl"
        if self._results or not path.exists():
            return
        for line in path.read_text(errors="replace").splitlines():
            try:
                found = json.loads(line)
                self._results[found["number"], found["marks"]] = checked_of(found)
            except (ValueError, KeyError, TypeError):
                continue  # The last line of a run that was broken off.

    def _keep(self, number: str, marks: int, checked: CheckedState) -> None:
        if (number, marks) in self._results:
            return
        self._results[number, marks] = checked
        with (self.folder / "results.jsonl").open("a") as file:
            file.write(json.dumps({"number": number, "marks": marks, **asdict(checked)}) + "\n")

    def _smallest(
        self,
        failing: Sequence[tuple[str, CheckedState]],
        states: _core.CrashStates,
        promises: Promises,
        process: CrashProcess,
        most_checks: int,
    ) -> Failure:
        """The failing state that lacks the fewest pieces, made smaller as long as it fails in the same way."""
        lacking = sorted((len(states.missing(name)), index) for index, (name, _) in enumerate(failing))
        name, checked = failing[lacking[0][1]]
        assert checked.finding is not None
        best, finding = name, checked.finding
        minimiser = _core.CrashMinimiser(states.missing(name))
        checks, is_smallest = 0, promises.order == "submitted"
        while not is_smallest and checks < most_checks:
            asked = minimiser.ask()
            if asked is None:
                is_smallest = True
                break
            smaller = states.lacking(name, asked)
            found = process.check(smaller, promises)
            fails = found.finding is not None and found.finding.kind == finding.kind
            minimiser.answer(fails)
            if fails and found.finding is not None:
                best, finding = smaller, found.finding
            checks += 1
        lost = tuple(process.lost(best, promises))
        return Failure(name=best, first=name, finding=finding, lost=lost, is_smallest=is_smallest)
