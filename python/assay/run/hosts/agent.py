"""An agent: opens its share of the target, and does on command what one host does of a run.

It keeps no plan and decides nothing. It ends when its pipe does, whatever it is doing, and leaves everything as after
Ctrl-C.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import sys
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from assay import _core, errors
from assay.errors import AssayError
from assay.results.run_folder import RunFolder
from assay.run.hosts.identity import identities, machine
from assay.run.hosts.stand_ins import AgentDisplay, AgentFolder, Rendezvous, as_stream
from assay.run.hosts.wire import GREETING, Message, Receiver, Sender
from assay.run.part import part_from_report
from assay.run.request import Request
from assay.run.resumed import refuse_other_volumes
from assay.run.targets import PartTargets, choose_targets
from assay.targets.host import host_facts
from assay.targets.secrets import keep_secrets
from assay.telemetry.recorder import Recorder
from assay.workloads.opened import OpenWorkload, RunContext
from assay.workloads.registry import workload_of
from assay.workloads.spread import Share
from assay.workloads.steps import Ask, Keep, Measured, Search, Step

if TYPE_CHECKING:
    pass

SILENT_S = 60.0
"""An agent that hears nothing for so long was cut off."""
LEAVE_S = 60.0
"""How long an agent that was cut off may take to leave its target."""


class Agent:
    """One agent at work for one run."""

    def __init__(self, receiver: Receiver, sender: Sender) -> None:
        self._receiver, self.sender = receiver, sender
        self._commands: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self.interrupt = threading.Event()
        self.display = AgentDisplay(sender)
        self.together = Rendezvous(sender, self.interrupt)
        self._heard_s = time.monotonic()
        self._is_over = threading.Event()
        self._work: _Work | None = None

    def run(self) -> None:
        """Do what comes, until the pipe ends or says so."""
        for target in (self._listen, self._watch):
            threading.Thread(target=target, name="assay-agent", daemon=True).start()
        try:
            while (message := self._commands.get()) is not None:
                self._do(message)
                if message["do"] == "end":
                    break
        finally:
            self._is_over.set()
            if self._work is not None:
                self._work.end()

    # Listening

    def _listen(self) -> None:
        try:
            while (received := self._receiver.receive()) is not None:
                self._heard_s = time.monotonic()
                self._hear(received[0])
        except AssayError:
            pass
        finally:
            self.cut_off()

    def _hear(self, message: Message) -> None:
        if "ping" in message:
            with suppress(OSError):
                self.sender.send({"pong": message["ping"], "utc_ns": time.time_ns()})
        elif "interrupt" in message:
            self.interrupt.set()
        elif "together" in message:
            self.together.answers.put(message["together"])
        else:
            self._commands.put(message)

    def _watch(self) -> None:
        while not self._is_over.wait(1.0):
            if time.monotonic() - self._heard_s > SILENT_S:
                self.cut_off()
                return

    def cut_off(self) -> None:
        """End as after Ctrl-C; no agent outlives its run, whatever it waits for."""
        self.interrupt.set()
        self.together.answers.put(None)
        self._commands.put(None)
        if not self._is_over.wait(LEAVE_S):
            os._exit(int(errors.ExitCode.INTERRUPTED))

    # Doing

    def _do(self, message: Message) -> None:
        reply: Message = {"re": message["number"]}
        rows = b""
        try:
            reply["is"], rows = self._done(message)
        except AssayError as error:
            reply["error"] = [type(error).__name__, str(error)]
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            reply["error"] = ["IoFailed", f"a fault of Assay itself ({what[:500]})"]
            if "--debug" in sys.argv:
                raise
        with suppress(OSError):
            self.sender.send(reply, rows)

    def _done(self, message: Message) -> tuple[Any, bytes]:
        what = message["do"]
        if what == "hello":
            build = _core.build_info()
            return {
                "version": build["version"],
                "hostname": socket.gethostname(),
                "machine": machine(),
                "host": host_facts(),
            }, b""
        if what == "end":
            return None, b""
        if what == "secrets":
            keep_secrets(message["words"], message["typed"])
            return None, b""
        if what == "choose":
            self._work = _Work(self, message)
            return self._work.chosen(), b""
        assert self._work is not None, "a target is chosen first"
        return getattr(self._work, f"do_{what}")(message), self._work.take_rows()


class _Work:
    """The share of one host of a run."""

    def __init__(self, agent: Agent, message: Message) -> None:
        self._agent = agent
        share = Share(**message["share"])
        request = Request.from_dict(
            message["request"], overwrite=message["overwrite"], yes_destroy=message["yes_destroy"]
        )
        asked = [part_from_report(one, None, source=one["name"]) for one in message["parts"]]
        shared = [replace(part, plan=workload_of(part.plan).share(part.plan, share)) for part in asked]
        target, parts = choose_targets(request, shared, message["sizes"] or None)
        self.target, self.parts = target, {part.name: part for part in parts}
        self.request = request
        self.targets = PartTargets(shared=target, parts=parts, display=agent.display, interrupt=agent.interrupt)
        self.folder = AgentFolder(agent.sender)
        self._stack = ExitStack()
        self.opened: OpenWorkload | None = None
        self._asks: list[Ask] = []
        self._rows = b""

    def chosen(self) -> dict[str, Any]:
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

    def do_again(self, message: Message) -> None:
        """Refuse to go on where the target is not that of the run."""
        refuse_other_volumes(message["run"], message["volumes"], [self.target], self.request.overwrite)

    def do_begin_run(self, message: Message) -> None:
        """Take the id of the run."""
        self.target.begin_run(message["run"])

    def do_examine(self, message: Message) -> Any:
        """Open the target and refuse what cannot be done with it."""
        part = self.parts[message["part"]]
        manifest = message["manifest"]
        examined = workload_of(part.plan).examine(part, self.target, manifest, self._agent.display)
        self.parts[message["part"]] = examined
        return {"facts": self.target.facts()}

    def do_prepare(self, message: Message) -> Any:
        """Make the target ready."""
        part = self.parts[message["part"]]
        workload_of(part.plan).prepare(part, self.target, self._agent.display, self._agent.interrupt)
        return {"facts": self.target.facts()}

    def do_open(self, message: Message) -> None:
        """Begin a part."""
        part = self.parts[message["part"]]
        self.folder.manifest = message["manifest"]
        self._stack = ExitStack()
        self.recorder = self._stack.enter_context(Recorder(self.targets.collectors()))
        self.context = RunContext(
            folder=cast(RunFolder, self.folder),
            recorder=self.recorder,
            display=self._agent.display,
            interrupt=self._agent.interrupt,
            finished={point["key"]: point for point in message["finished"]},
            keeps_series=message["keeps_series"],
            for_study=message["for_study"],
            epoch_ns=message["epoch_ns"],
            together=None if self.target.is_virtual else self._agent.together,
        )
        self.opened = workload_of(part.plan).open(part, self.target, self.context)
        self._stack.enter_context(self.recorder.also(self.targets.own_collectors(part)))
        self._steps = self.opened.steps()
        self._step: Step | None = None
        self._asks = []

    def do_step(self, message: Message) -> dict[str, Any]:
        """Go on to the next thing to measure, with what came of the last one."""
        self.context.points += message["points"]
        try:
            self._step = step = self._steps.send(message["outcome"])
        except StopIteration:
            self._step = None
            return {"kind": "done", "rest_s": 0.0}
        assert self.opened is not None
        common = {"rest_s": self.opened.rest_s}
        if isinstance(step, Search):
            return common | {
                "kind": "search",
                "axis": vars(step.axis),
                "workload": dict(step.workload),
                "repeats": step.repeats,
            }
        if isinstance(step, Keep):
            held = step.measured is None
            return common | {"kind": "keep", **self._told_of(step.ask), "repeat": step.repeat, "judged": step.judged,
                             "held": held}  # fmt: skip
        return common | {"kind": "measure", **self._told_of(step.ask)}

    def do_ask(self, message: Message) -> dict[str, Any]:
        """What is to be measured at this host's part of a load."""
        assert isinstance(self._step, Search)
        return self._told_of(self._step.ask(message["load"]))

    def do_measure(self, message: Message) -> dict[str, Any]:
        """Measure a load with the others."""
        assert self.opened is not None
        self._agent.together.forget()
        measured = self.opened.measure(
            self._asks[message["ask"]], repeat=message["repeat"], point_id=message["point_id"]
        )
        return self._figures(measured)

    def do_keep(self, message: Message) -> dict[str, Any]:
        """Give the figures of a point that came by itself."""
        assert isinstance(self._step, Keep)
        assert self._step.measured is not None
        return self._figures(self._step.measured(message["point_id"]))

    def do_kept(self, message: Message) -> None:
        """Know of a point that was kept."""
        assert self.opened is not None
        self.context.finished[message["point"]["key"]] = message["point"]
        self.opened.kept(message["point"])
        self.context.points.append(message["point"])

    def do_close(self, message: Message) -> dict[str, Any]:
        """End a part, and say what there is to say of it."""
        del message
        return self._close()

    def do_leave(self, message: Message) -> dict[str, Any]:
        """Leave the target until another part needs it."""
        del message
        self._close()
        notices = self.target.leave(self._agent.display)
        return {"notices": notices, "facts": self.target.facts()}

    def do_settle(self, message: Message) -> dict[str, Any]:
        """Say in its marks that the run has ended."""
        self.target.settle()
        return {"permissions": self.target.permissions_again(message["yes_destroy"])}

    def do_permissions(self, message: Message) -> list[str]:
        """Options that the command to go on has to repeat."""
        return self.target.permissions_again(message["yes_destroy"])

    # Their parts

    def _told_of(self, ask: Ask) -> dict[str, Any]:
        self._asks.append(ask)
        return {
            "ask": len(self._asks) - 1,
            "key": dict(ask.key),
            "asked": {"workload": dict(ask.workload), "load": dict(ask.load)},
        }

    def _figures(self, measured: Measured) -> dict[str, Any]:
        self._rows = as_stream(self.folder.take_batches())
        error = measured.error
        return {
            "figures": measured.figures,
            "error": None if error is None else [type(error).__name__, str(error)],
            "virtual_ns": self.opened.virtual_ns if self.opened is not None else 0,
        }

    def _close(self) -> dict[str, Any]:
        if self.opened is None:
            return {"told": None, "notices": [], "files": {}}
        opened, self.opened = self.opened, None
        try:
            self._steps.close()
        finally:
            try:
                opened.close()
            finally:
                self._stack.close()
        notices = [*self.context.notices, *self.recorder.notices]
        return {
            "told": opened.told,
            "notices": notices,
            "facts": self.target.facts(),
            "files": self.folder.files(),
            "virtual_ns": opened.virtual_ns,
        }

    def end(self) -> None:
        """Leave everything as it should be, whatever happened."""
        for leave in (self._close, lambda: self.target.leave(self._agent.display), self.target.settle):
            with suppress(AssayError, OSError):
                leave()
        self.folder.remove()


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
