"""An agent: opens its share of the target, and does on command what one host does of a run.

It keeps no plan and decides nothing. It ends when its pipe does, whatever it is doing, and leaves everything as after
Ctrl-C.

The coordinator is foreign input: it gets of an agent what its user gets of `assay` there, and no more. Targets are
examined as those of a command line are; messages are typed (`from_coordinator.py`), come in an order, and are few at a
time. An agent to which anything else is sent ends with exit code 3.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any, TypeVar, cast

from assay import _core
from assay.base import errors
from assay.base.errors import AssayError
from assay.base.paths import plain
from assay.base.secrets import keep_secrets
from assay.fleet.agent_answers import AskAnswer, ClosedAnswer, FactsAnswer, FiguresAnswer, ShareAnswer, StepAnswer
from assay.fleet.choosing import refuse_alone
from assay.fleet.from_coordinator import (
    Again,
    AskAt,
    BeginRun,
    Choose,
    Close,
    Command,
    EndAgent,
    Examine,
    Interrupt,
    KeepPoint,
    Kept,
    Leave,
    MeasurePoint,
    Open,
    Permissions,
    Ping,
    Prepare,
    SayHello,
    Secrets,
    Settle,
    TakeStep,
    from_coordinator,
)
from assay.fleet.identity import identities, machine
from assay.fleet.rows import as_stream
from assay.fleet.stand_ins import AgentDisplay, AgentFolder, Rendezvous
from assay.fleet.wire import GREETING, Message, NotAMessage, Receiver, Sender
from assay.record.run_folder import RunFolder
from assay.record.shapes.drive import Drive
from assay.record.shapes.point import Point
from assay.run.drives import DriveWatch
from assay.run.part import part_from_report
from assay.run.request import TargetRequest
from assay.run.resumed import refuse_other_volumes
from assay.run.targets import PartTargets, choose_targets
from assay.targets.host import host_facts
from assay.telemetry.recorder import Recorder
from assay.workloads.capabilities import over_hosts
from assay.workloads.job import Job, PartContext
from assay.workloads.plan import Part
from assay.workloads.registry import workload_of
from assay.workloads.spread import Share
from assay.workloads.steps import Ask, Measured, Search, Step, Steps
from assay.workloads.steps import Keep as KeepStep

StepKind = TypeVar("StepKind", Search, KeepStep)

SILENT_S = 60.0
"""An agent that hears nothing for so long was cut off."""
LEAVE_S = 60.0
"""How long an agent that was cut off may take to leave its target."""
COMMANDS_MAX = 4
"""Commands that wait: one at a time is answered, and the last may come early."""


class Agent:
    """One agent at work for one run."""

    def __init__(self, receiver: Receiver, sender: Sender) -> None:
        self._receiver, self.sender = receiver, sender
        self._commands: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self.interrupt = threading.Event()
        self.display = AgentDisplay(sender)
        self.together = Rendezvous(sender, self.interrupt)
        self._heard_s = time.monotonic()
        self._is_over = threading.Event()
        self._number = -1
        self._fault: NotAMessage | None = None
        self._work: _Work | None = None

    def run(self) -> None:
        """Do what comes, until the pipe ends or says so.

        Raises
        ------
        NotAMessage
            Something came that no coordinator sends; everything was left as after Ctrl-C.
        """
        for target in (self._listen, self._watch):
            threading.Thread(target=target, name="assay-agent", daemon=True).start()
        try:
            while (command := self._commands.get()) is not None:
                self._do(command)
                if isinstance(command, EndAgent):
                    break
        except NotAMessage as error:
            self._fault = error
        finally:
            self._is_over.set()
            if self._work is not None:
                self._work.end()
        if self._fault is not None:
            raise NotAMessage(f"the coordinator sends what no Assay does: {self._fault}")

    # Listening

    def _listen(self) -> None:
        try:
            while (received := self._receiver.receive()) is not None:
                self._heard_s = time.monotonic()
                self._hear(received)
        except NotAMessage as error:
            self._fault = error
        finally:
            self.cut_off()

    def _hear(self, received: tuple[Message, bytes]) -> None:
        message = from_coordinator(*received)
        if isinstance(message, Ping):
            with suppress(OSError):
                self.sender.send({"pong": message.ping, "utc_ns": time.time_ns()})
        elif isinstance(message, Interrupt):
            self.interrupt.set()
        elif isinstance(message, Command):
            if message.number <= self._number:
                raise NotAMessage("a command out of its order")
            if self._commands.qsize() >= COMMANDS_MAX:
                raise NotAMessage("commands before others are answered")
            self._number = message.number
            self._commands.put(message)
        else:
            self.together.take(message.together)

    def _watch(self) -> None:
        while not self._is_over.wait(1.0):
            if time.monotonic() - self._heard_s > SILENT_S:
                self.cut_off()
                return

    def cut_off(self) -> None:
        """End as after Ctrl-C; no agent outlives its run, whatever it waits for."""
        self.interrupt.set()
        self._commands.put(None)
        if not self._is_over.wait(LEAVE_S):
            os._exit(int(errors.ExitCode.INTERRUPTED))

    # Doing

    def _do(self, command: Command) -> None:
        reply: Message = {"re": command.number}
        rows = b""
        try:
            reply["is"], rows = self._done(command)
        except NotAMessage:
            raise
        except AssayError as error:
            reply["error"] = [type(error).__name__, str(error)]
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            reply["error"] = ["IoFailed", f"a fault of Assay itself ({what[:500]})"]
            if "--debug" in sys.argv:
                raise
        with suppress(OSError):
            self.sender.send(reply, rows)

    def _done(self, command: Command) -> tuple[Any, bytes]:
        if isinstance(command, SayHello):
            build = _core.build_info()
            return {
                "version": build["version"],
                "hostname": socket.gethostname(),
                "machine": machine(),
                "host": host_facts(),
            }, b""
        if isinstance(command, EndAgent):
            return None, b""
        if isinstance(command, Secrets):
            keep_secrets(command.words, command.typed)
            return None, b""
        if isinstance(command, Choose):
            if self._work is not None:
                raise NotAMessage("a target is chosen twice")
            self._work = _Work(self, command)
            return self._work.chosen(), b""
        if self._work is None:
            raise NotAMessage("a command before a target is chosen")
        return self._work.do(command), self._work.take_rows()


class _Work:
    """The share of one host of a run."""

    def __init__(self, agent: Agent, command: Choose) -> None:
        self._agent = agent
        share = Share(**dict(command.share))
        request = TargetRequest.from_dict(
            dict(command.request), overwrite=command.overwrite, yes_destroy=command.yes_destroy
        )
        asked = [part_from_report(one.model_dump(), None, source=plain(one.name)) for one in command.parts]
        refuse_alone(request, asked, "--hosts")
        shared = [replace(part, plan=over_hosts(workload_of(part.plan)).share(part.plan, share)) for part in asked]
        target, parts = choose_targets(request, shared, command.sizes or None)
        self.target, self.parts = target, {part.name: part for part in parts}
        self.request = request
        self.targets = PartTargets(shared=target, parts=parts, display=agent.display, interrupt=agent.interrupt)
        self.folder = AgentFolder(agent.sender)
        self._stack = ExitStack()
        self.opened: Job | None = None
        self._steps: Steps | None = None
        self._step: Step | None = None
        self._asks: list[Ask] = []
        self._rows = b""
        self._windows: dict[str, Point] = {}
        """When points were measured here, by this host's clock."""
        self._drives: list[Drive] = []

    def chosen(self) -> ShareAnswer:
        """What the coordinator has to know of the target."""
        return {
            "facts": self.target.facts(),
            "identities": identities(self.target),
            "lines": self.target.lines(),
            "document": self.target.document(),
            "is_virtual": self.target.is_virtual,
            "layout_bytes": self.target.layout_bytes,
            "sizes": dict(getattr(self.target, "sizes", {})),
            "notices": list(self.target.notices),
            "is_databases": bool(self.target.databases),
            "parts": {
                name: {
                    "lines": workload_of(part.plan).lines(part, self.target),
                    "document": workload_of(part.plan).document(part, self.target),
                }
                for name, part in self.parts.items()
            },
        }

    def take_rows(self) -> bytes:
        """Rows of the series since the last reply."""
        rows, self._rows = self._rows, b""
        return rows

    # Commands

    def do(self, command: Command) -> Any:
        """Carry out a command on a chosen target; gives the answer.

        Raises
        ------
        NotAMessage
            It is not the time for it.
        """
        match command:
            case Again():
                return refuse_other_volumes(command.run, command.volumes, [self.target], self.request.overwrite)
            case BeginRun():
                return self.target.begin_run(command.run)
            case Examine():
                return self._examine(command)
            case Prepare():
                part = self._part(command.part)
                workload_of(part.plan).prepare(part, self.target, self._agent.display, self._agent.interrupt)
                return {"facts": self.target.facts()}
            case Open():
                return self._open(command)
            case TakeStep():
                return self._take_step(self._at_work(), command)
            case AskAt():
                return self._told_of(self._step_of(Search).ask(command.load))
            case MeasurePoint():
                return self._measure(self._at_work(), command)
            case KeepPoint():
                measured = self._step_of(KeepStep).measured
                if measured is None:
                    raise NotAMessage("a point to keep that is kept")
                return self._figures(measured(command.point_id))
            case Kept():
                return self._kept(self._at_work(), cast(Point, command.point))
            case Close():
                return self._close()
            case Leave():
                self._close()
                notices = self.target.leave(self._agent.display)
                return {"notices": notices, "facts": self._facts()}
            case Settle():
                return self.target.settle()
            case Permissions():
                return self.target.permissions_again(command.yes_destroy)
        raise NotAMessage("a command that is none")

    def _part(self, name: str) -> Part[Any]:
        if name not in self.parts:
            raise NotAMessage("a part that was not chosen")
        return self.parts[name]

    def _at_work(self) -> Job:
        if self.opened is None:
            raise NotAMessage("a command for a part, and none is open")
        return self.opened

    def _step_of(self, kind: type[StepKind]) -> StepKind:
        if not isinstance(self._step, kind):
            raise NotAMessage("a command for another step than was taken")
        return self._step

    def _examine(self, command: Examine) -> FactsAnswer:
        part = self._part(command.part)
        self.parts[part.name] = workload_of(part.plan).examine(part, self.target, command.manifest, self._agent.display)
        return {"facts": self.target.facts()}

    def _open(self, command: Open) -> None:
        part = self._part(command.part)
        if self.opened is not None:
            raise NotAMessage("a part to be opened, and another is open")
        self.folder.manifest = dict(command.manifest)
        self._stack = ExitStack()
        # The log of the kernel ends with the recorder of the part before.
        self.targets.drives = DriveWatch()
        self.recorder = self._stack.enter_context(Recorder(self.targets.collectors()))
        self._agent.display.watch(self.recorder)
        self.context = PartContext(
            folder=cast(RunFolder, self.folder),
            recorder=self.recorder,
            display=self._agent.display,
            interrupt=self._agent.interrupt,
            finished={point["key"]: cast(Point, point) for point in command.finished},
            keeps_series=command.keeps_series,
            for_study=command.for_study,
            epoch_ns=command.epoch_ns,
            together=None if self.target.is_virtual else self._agent.together,
        )
        self.opened = workload_of(part.plan).open(part, self.target, self.context)
        self._stack.enter_context(self.recorder.also(self.targets.own_collectors(part)))
        self._steps = self.opened.steps()
        self._step = None
        self._asks = []

    def _take_step(self, opened: Job, command: TakeStep) -> StepAnswer:
        """Go on to the next thing to measure, with what came of the last one."""
        if self._steps is None:
            raise NotAMessage("a step after the last one")
        self.context.points.extend(cast(Point, point) for point in command.points)
        try:
            self._step = step = self._steps.send(command.outcome)
        except StopIteration:
            self._step = self._steps = None
            return {"kind": "done", "rest_s": 0.0}
        if isinstance(step, Search):
            return {
                "rest_s": opened.rest_s,
                "kind": "search",
                "axis": vars(step.axis),
                "workload": dict(step.workload),
                "repeats": step.repeats,
            }
        told = self._told_of(step.ask)
        if isinstance(step, KeepStep):
            return {"rest_s": opened.rest_s, "kind": "keep", "ask": told["ask"], "key": told["key"],
                    "asked": told["asked"], "repeat": step.repeat, "judged": step.judged,
                    "held": step.measured is None}  # fmt: skip
        return {"rest_s": opened.rest_s, "kind": "measure", "ask": told["ask"], "key": told["key"],
                "asked": told["asked"]}  # fmt: skip

    def _measure(self, opened: Job, command: MeasurePoint) -> FiguresAnswer:
        """Measure a load with the others."""
        if command.ask >= len(self._asks):
            raise NotAMessage("a load that was not asked for")
        self._agent.together.forget()
        measured = opened.measure(self._asks[command.ask], repeat=command.repeat, point_id=command.point_id)
        self._windows[command.point_id] = cast(Point, {"id": command.point_id, **_window_of(measured.figures)})
        return self._figures(measured)

    def _kept(self, opened: Job, point: Point) -> None:
        """Know of a point that was kept."""
        self.context.finished[point["key"]] = point
        opened.kept(point)
        self.context.points.append(point)

    # Their parts

    def _told_of(self, ask: Ask) -> AskAnswer:
        self._asks.append(ask)
        return {
            "ask": len(self._asks) - 1,
            "key": dict(ask.key),
            "asked": {"workload": dict(ask.workload), "load": dict(ask.load)},
        }

    def _figures(self, measured: Measured) -> FiguresAnswer:
        self._rows = as_stream(self.folder.take_batches())
        error = measured.error
        return {
            "figures": measured.figures,
            "error": None if error is None else [type(error).__name__, str(error)],
            "virtual_ns": self.opened.virtual_ns if self.opened is not None else 0,
        }

    def _close(self) -> ClosedAnswer:
        if self.opened is None:
            return {"told": None, "notices": [], "facts": None, "virtual_ns": 0}
        opened, self.opened = self.opened, None
        try:
            if self._steps is not None:
                self._steps.close()
        finally:
            try:
                opened.close()
            finally:
                self._stack.close()
        watch = self.targets.drives
        notices = [*self.context.notices, *watch.notices, *self.recorder.notices]
        watch.facts(self._drives)
        watch.conclude([*self._windows.values()])
        self._drives = watch.facts(None)
        self.folder.send_files()
        return {
            "told": opened.told,
            "notices": notices,
            "facts": self._facts(),
            "virtual_ns": opened.virtual_ns,
        }

    def _facts(self) -> dict[str, object]:
        """What is known of the target and of the drives beneath it."""
        return {**self.target.facts(), **({"drives": self._drives} if self._drives else {})}

    def end(self) -> None:
        """Leave everything as it should be, whatever happened."""
        for leave in (self._close, lambda: self.target.leave(self._agent.display), self.target.settle):
            with suppress(AssayError, OSError):
                leave()
        self.folder.remove()


def _window_of(figures: Mapping[str, object]) -> dict[str, object]:
    return {key: figures.get(key) for key in ("measured_from_utc_ns", "measured_to_utc_ns")}


def serve() -> None:
    """Be an agent on standard input and output, which nothing else uses from now on."""
    outgoing, incoming = os.dup(1), os.dup(0)
    for descriptor in (outgoing, incoming):
        os.set_inheritable(descriptor, False)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def write(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(outgoing, view) :]

    agent = Agent(Receiver(lambda size: os.read(incoming, size)), Sender(write))

    def end(number: int, frame: object) -> None:
        del number, frame
        threading.Thread(target=agent.cut_off, name="assay-agent-end", daemon=True).start()

    signal.signal(signal.SIGTERM, end)
    write(GREETING)
    agent.run()
