"""What stands on an agent for things of the coordinator: its run folder, its display, and the other hosts."""

from __future__ import annotations

import queue
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from assay.base.errors import Interrupted, IoFailed
from assay.base.progress import Shown, Status
from assay.fleet.from_coordinator import Begin, HostWindow, Refused, Stop
from assay.fleet.wire import Message, NotAMessage, Sender
from assay.run.nowhere import Nowhere

if TYPE_CHECKING:
    from assay.record.rows import Rows
    from assay.telemetry.recorder import Recorder

Answer = TypeVar("Answer", Begin, HostWindow)

SHOW_EVERY_S = 0.5
FILES_BYTES_MAX, FILES_MAX = 64 << 20, 10_000
"""Files of a part that the coordinator takes into the run folder."""
STARTS_WITHIN_S = 120.0
"""All begin no later than so long after this host is ready."""
ANSWERS_MAX = 4
"""Answers that wait to be taken: there are two for each point."""


class AgentFolder(Nowhere):
    """Stands for the run folder on an agent: what workloads keep there goes to the coordinator."""

    def __init__(self, sender: Sender) -> None:
        super().__init__()
        self._sender = sender
        self.manifest: dict[str, Any] = {}
        self._batches: list[Rows] = []
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def path(self) -> Path:
        """A folder for files of a part, which are taken over when it ends."""
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="assay-agent-")
        return Path(self._temporary.name)

    def update(self, **keys: Any) -> None:
        """Keep keys of the manifest, here and at the coordinator."""
        self.manifest |= keys
        with suppress(OSError):
            self._sender.send({"manifest": keys})

    def write(self, batches: Any) -> None:
        """Hold rows until they are taken."""
        self._batches += batches

    def take_batches(self) -> list[Rows]:
        """Rows since the last call."""
        batches, self._batches = self._batches, []
        return batches

    def send_files(self) -> None:
        """Send the files of the part by their names, which may lie in folders."""
        if self._temporary is None:
            return
        left_bytes, left = FILES_BYTES_MAX, FILES_MAX
        for path in sorted(self.path.rglob("*")):
            if left and path.is_file() and not path.is_symlink() and path.stat().st_size <= left_bytes:
                data = path.read_bytes()
                left_bytes, left = left_bytes - len(data), left - 1
                with suppress(OSError):
                    self._sender.send({"file": str(path.relative_to(self.path))}, data)

    def remove(self) -> None:
        """Take the folder away."""
        if self._temporary is not None:
            self._temporary.cleanup()


class AgentDisplay:
    """A display at the other end of the pipe."""

    def __init__(self, sender: Sender) -> None:
        self._sender, self._shown_s = sender, 0.0
        self._recorder: Recorder | None = None

    def watch(self, recorder: Recorder) -> None:
        """Show with each point what this recorder sees of the host from now on."""
        self._recorder = recorder

    def _send(self, how: str, text: str, *, always: bool = False, moment: Any = None) -> None:
        now = time.monotonic()
        if always or now - self._shown_s >= SHOW_EVERY_S:
            self._shown_s = now
            with suppress(OSError):
                self._sender.send({"shows": how, "text": text, "moment": moment, "host": self._host(moment)})

    def _host(self, moment: Any) -> Message | None:
        if self._recorder is None or moment is None:
            return None
        load = self._recorder.host_load("")
        return {"cpu_share": load.cpu_share, "devices": load.devices}

    def layout(self, name: str, done_bytes: float, total_bytes: float) -> None:
        """Show bytes being laid out."""
        self._send("progress", f"laying out {name}: {done_bytes / total_bytes if total_bytes else 1:.0%}")

    def point(self, progress: Shown) -> None:
        """Show the point that is being measured."""
        moment = progress.moment
        told = None if moment is None else {key: value for key, value in asdict(moment).items() if key != "hosts"}
        self._send("progress", progress.line, moment=told)

    def status(self, status: Status) -> None:
        """Nothing: the coordinator knows how the run stands."""

    def tell(self, text: str) -> None:
        """Show a line that must not be missed."""
        self._send("tell", text, always=True)

    def phase(self, text: str) -> None:
        """Show the phase that runs now."""
        self._send("progress", text, always=True)

    def point_done(self, point: Mapping[str, Any]) -> None:
        """Nothing: the coordinator shows points."""


class Rendezvous:
    """Waits for the others by asking the coordinator, which knows the clocks of all."""

    def __init__(self, sender: Sender, interrupt: threading.Event) -> None:
        self._sender, self._interrupt = sender, interrupt
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def take(self, answer: Begin | HostWindow | Refused | Stop) -> None:
        """Take an answer of the coordinator.

        Raises
        ------
        NotAMessage
            Others wait that nobody asked for.
        """
        if self._answers.qsize() >= ANSWERS_MAX:
            raise NotAMessage("answers that nobody asked for")
        self._answers.put(answer)

    def forget(self) -> None:
        """Forget what was meant for an earlier point."""
        with suppress(queue.Empty):
            while True:
                self._answers.get_nowait()

    def begin(self) -> None:
        """Wait for the moment at which all begin."""
        at_ns = self._answer({"at": "begin"}, Begin).begin_utc_ns
        if at_ns - time.time_ns() > STARTS_WITHIN_S * 1e9:
            raise NotAMessage("a beginning that lies too far ahead")
        while (left_ns := at_ns - time.time_ns()) > 0:
            if self._interrupt.wait(max(left_ns - 2_000_000, 0) / 1e9):
                raise Interrupted("interrupted")
            if left_ns <= 2_000_000:
                time.sleep(left_ns / 1e9)

    def window(self, from_utc_ns: int, to_utc_ns: int) -> tuple[int, int]:
        """The part of a window in which all ran."""
        first, last = self._answer({"at": "window", "window": [from_utc_ns, to_utc_ns]}, HostWindow).window
        return first, last

    def _answer(self, question: Message, kind: type[Answer]) -> Answer:
        self._sender.send(question)
        while True:
            if self._interrupt.is_set():
                raise Interrupted("interrupted; the point that was running is not kept")
            with suppress(queue.Empty):
                answer = self._answers.get(timeout=0.2)
                if isinstance(answer, Stop):
                    raise Interrupted("the point was ended, because another host did not go on")
                if isinstance(answer, Refused):
                    raise IoFailed(answer.refused)
                if not isinstance(answer, kind):
                    raise NotAMessage("an answer to another question")
                return answer
