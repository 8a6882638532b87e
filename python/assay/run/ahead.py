"""Parts on models are simulated on all cores, ahead of their turn.

A part's own loop runs in a thread, because the compiled model releases the interpreter; it keeps nothing. At the part's
turn the loop of the run asks the same questions again and is given what was measured. So a run folder holds the same
points in the same order on any number of cores.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

from assay.base.progress import Shown, Silent
from assay.record.run_folder import RunFolder
from assay.record.shapes.point import Answer
from assay.run.chains import chains_of
from assay.run.nowhere import Nowhere
from assay.run.points import PointLoop
from assay.run.targets import PartTargets
from assay.workloads.job import Job, PartContext, RunContext
from assay.workloads.plan import Part
from assay.workloads.registry import workload_of
from assay.workloads.steps import Ask, Measured, Steps

if TYPE_CHECKING:
    from assay.record.rows import Rows

LOOK_S = 0.1
"""How often progress is shown and an interrupt looked for while a simulation is waited for."""
CHAINS_PER_CORE = 2
"""Number of chains that begin before their turn: none waits for a long one, and all their figures fit into memory."""
TIMES = ("started_utc_ns", "measured_from_utc_ns", "measured_to_utc_ns")


class Ahead:
    """Simulates the parts of a run in their order, as many at once as there are cores.

    Parameters
    ----------
    ordered
        Parts in the order of their turns, all on models.
    targets
        Their targets.
    context
        What all parts have in common. Setting its `interrupt` ends the simulations once the part in turn sees it.
    """

    def __init__(self, ordered: Sequence[Part[Any]], targets: PartTargets, context: RunContext) -> None:
        cores = len(os.sched_getaffinity(0))
        self._targets, self._context = targets, replace(context, interrupt=threading.Event())
        self._chains = chains_of(ordered)
        self._begun = 0
        self._lead = CHAINS_PER_CORE * cores
        self._streams = {part.name: _Stream(self._context.interrupt) for part in ordered}
        self._chain_of = {part.name: place for place, chain in enumerate(self._chains) for part in chain}
        self._spent_ns = [0] * len(self._chains)
        self._pool = ThreadPoolExecutor(cores, thread_name_prefix="assay-model")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._context.interrupt.set()
        self._pool.shutdown(cancel_futures=True)

    def open(self, part: Part[Any], context: PartContext) -> Job:
        """The part in turn; chains behind it are begun."""
        place = self._chain_of[part.name]
        while self._begun < min(place + self._lead, len(self._chains)):
            self._pool.submit(self._simulate, self._begun)
            self._begun += 1
        return _InTurn(self._streams[part.name], context, context.epoch_ns + sum(self._spent_ns[:place]))

    def _simulate(self, place: int) -> None:
        before: Job | None = None
        chain = self._chains[place]
        for part, following in itertools.zip_longest(chain, chain[1:]):
            stream, workload = self._streams[part.name], workload_of(part.plan)
            try:
                context = PartContext.of(
                    self._context,
                    folder=cast(RunFolder, Nowhere(self._context.folder.manifest)),
                    display=stream,
                    finished=dict(self._context.finished),
                    before=before,
                    is_continued=following is not None,
                    epoch_ns=0,
                )
                opened = workload.open(part, self._targets.of(part), context)
                stream.items.put(opened)
                loop = PointLoop(
                    context=context,
                    workload=workload,
                    opened=_AheadOfTurn(opened, context, stream),
                    part=part,
                    numbers=itertools.count(1),
                )
                try:
                    loop.run()
                finally:
                    opened.close()
                self._spent_ns[place] = opened.virtual_ns
                stream.items.put(context.notices)
            except Exception as error:
                stream.items.put(error)
                return
            before = opened


@dataclass(frozen=True, kw_only=True)
class _Simulated:
    """A measured load, with times that count from the beginning of its chain."""

    measured: Measured
    series: Sequence[Rows]


class _Stream(Silent):
    """What the simulation of a part hands over, in order, and its latest progress; an error is the last thing."""

    def __init__(self, stop: threading.Event) -> None:
        self.items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._stop = stop
        self._shown: Shown | None = None

    def point(self, progress: Shown) -> None:
        """Take note of progress."""
        self._shown = progress

    def take(self, context: PartContext) -> Any:
        """Wait for the next thing."""
        while True:
            try:
                item = self.items.get(timeout=LOOK_S)
            except queue.Empty:
                if context.interrupt.is_set():
                    self._stop.set()
                if self._shown is not None:
                    context.display.point(self._shown)
                continue
            if isinstance(item, Exception):
                raise item
            return item

    @contextmanager
    def passing_on(self, interrupt: threading.Event) -> Iterator[None]:
        """Let an interrupt of the run end the simulation, also while a part's own steps wait for its end."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(LOOK_S):
                if interrupt.is_set():
                    self._stop.set()
                    return

        watcher = threading.Thread(target=watch, name="assay-interrupt", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()


class _AheadOfTurn(Job):
    """A part at work on a model before its turn: hands over all that takes time."""

    def __init__(self, opened: Job, context: PartContext, stream: _Stream) -> None:
        self._opened, self._context, self._stream = opened, context, stream

    def steps(self) -> Steps:
        return self._opened.steps()

    def measure(self, ask: Ask, *, repeat: int, point_id: str) -> Measured:
        measured = self._opened.measure(ask, repeat=repeat, point_id=point_id)
        series = cast(Nowhere, self._context.folder).rows
        self._stream.items.put(_Simulated(measured=measured, series=series))
        return measured

    def complete_point(self, point: dict[str, Any], ask: Ask) -> None:
        before = dict(point)
        self._opened.complete_point(point, ask)
        self._stream.items.put(_added(before, point))

    def complete_answer(self, answer: Answer) -> None:
        before = dict(answer)
        self._opened.complete_answer(answer)
        self._stream.items.put(_added(before, answer))


def _added(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in after.items() if key not in before or value is not before[key]}


class _InTurn(Job):
    """A part whose turn it is: gives what was simulated, at the times of the run."""

    def __init__(self, stream: _Stream, context: PartContext, epoch_ns: int) -> None:
        self._stream, self._context, self._epoch_ns = stream, context, epoch_ns

    def steps(self) -> Steps:
        opened: Job = self._stream.take(self._context)
        try:
            with self._stream.passing_on(self._context.interrupt):
                yield from opened.steps()
            for text in self._stream.take(self._context):
                self._context.note(text)
        finally:
            self.told = opened.told

    def measure(self, ask: Ask, *, repeat: int, point_id: str) -> Measured:
        del ask, repeat
        taken: _Simulated = self._stream.take(self._context)
        writer = self._context.folder.series_writer()
        writer.write([replace(rows, t_ns=rows.t_ns + self._epoch_ns) for rows in taken.series])
        writer.close_segment(point_id)
        figures = taken.measured.figures
        return replace(taken.measured, figures=figures | {key: figures[key] + self._epoch_ns for key in TIMES})

    def complete_point(self, point: dict[str, Any], ask: Ask) -> None:
        del ask
        point |= self._stream.take(self._context)

    def complete_answer(self, answer: Answer) -> None:
        answer |= self._stream.take(self._context)
