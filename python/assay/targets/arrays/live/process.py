"""An array that a run serves: a process of its own, which undoes everything once the run lets go of it.

The run's process must not serve what it uses itself: killed in the midst of an I/O it would wait for its own answer.
The server ends when its standard input does, so that it undoes everything too where the run is killed.

    python -m assay.targets.arrays.live.process     with the target's text and what is to be mounted on standard input
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypedDict

from assay.base.errors import AssayError, ExitCode, IoFailed, OutOfSpace, UsageError, error_named
from assay.base.log import event
from assay.base.paths import printable
from assay.record.shapes.manifest import ShownArray
from assay.targets.arrays.live.events import ArrayCommand
from assay.targets.arrays.live.folder import ask, clean, refuse_fuse
from assay.targets.arrays.live.place import ArrayPlace
from assay.targets.arrays.live.spec import ServedSpec, parse_served
from assay.targets.arrays.live.volumes import mount_again, mounted, refuse_mkfs, shut_down

LOOK_S = 1.0
"""How often the server looks whether the array still answers."""
END_S = 300.0
"""How long the end may take: what is in the page cache is written at the array's pace."""


class ServerWord(TypedDict, total=False):
    """What the server's process says once: that it is ready, or what failed and the name of its error."""

    ready: bool
    error: str
    kind: str


class ServedArray:
    """A served array of this run, from `start` to `stop`; both may be asked for again.

    Parameters
    ----------
    spec
        The array.
    mounted
        Whether its volumes carry file systems.
    """

    def __init__(self, spec: ServedSpec, *, mounted: bool) -> None:
        self.spec, self.mounted = spec, mounted
        self.folder = spec.folder
        self.held: list[Callable[[], None]] = []
        """What lets go of its files before it is taken away."""
        self._process: subprocess.Popen[bytes] | None = None

    # Life

    def refuse_host(self) -> None:
        """Raise `NotSupported` where this host cannot serve it; nothing is begun."""
        refuse_fuse()
        if self.mounted:
            refuse_mkfs()

    def start(self, show: Callable[[str], None] = lambda _text: None) -> None:
        """Serve it, unless it is served.

        Raises
        ------
        AssayError
            The array, the folder, the store or this machine refuses it.
        """
        if self._process is not None:
            return
        show(f"serving {self.spec.name} at {self.folder}")
        process = subprocess.Popen(
            (sys.executable, "-m", __name__),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C is for the run: the array outlives what uses it.
            start_new_session=True,
        )
        self._process = process
        event("child begun", program="array server", pid=process.pid, folder=self.folder)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"target": self.spec.text, "mounted": self.mounted}).encode() + b"\n")
            process.stdin.flush()
            answer: ServerWord = json.loads(process.stdout.readline() or b"{}")
        except BaseException:
            self.stop()
            raise
        if "error" in answer or not answer:
            self.stop()
            kind = error_named(answer.get("kind", ""))
            raise kind(answer.get("error", f"{self.folder}: the server of the array did not start"))

    def stop(self, show: Callable[[str], None] = lambda _text: None) -> None:
        """Take volumes, file systems and loop devices away; the store stays.

        Raises
        ------
        IoFailed
            The server does not end.
        """
        process, self._process = self._process, None
        if process is None:
            return
        show(f"taking {self.spec.name} away")
        for let_go in self.held:
            with contextlib.suppress(OSError, AssayError):
                let_go()
        self.held.clear()
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            raise IoFailed(
                f"{self.folder}: the server of the array does not end; see `assay array status --at {self.folder}`"
            ) from None
        finally:
            process.stdout.close()
            event("child ended", program="array server", pid=process.pid, code=process.returncode)
        if process.returncode < 0:
            # It was killed; where it had not written its note yet, nothing is to be undone.
            with contextlib.suppress(UsageError):
                clean(self.folder)

    @property
    def is_started(self) -> bool:
        """Whether it was started and not stopped; its server may have ended by itself."""
        return self._process is not None

    @property
    def is_gone(self) -> bool:
        """Whether its server ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def refuse_gone(self) -> None:
        """Raise where the server ended by itself.

        Raises
        ------
        IoFailed
            It did.
        """
        if self.is_gone:
            raise IoFailed(f"{self.folder}: the server of the array ended, and what was on it is out of reach")

    # Asked

    def ask(self, command: ArrayCommand) -> Any:
        """Have a command carried out; return its answer.

        Raises
        ------
        UsageError
            The array refuses it.
        IoFailed
            The server ended.
        """
        self.refuse_gone()
        return ask(self.folder, command)

    def lose_power(self) -> str:
        """The array loses power; gives what went with its cache.

        Raises
        ------
        AssayError
            It cannot be done.
        """
        return str(self.ask({"command": "cut-power"}))

    def shut_down(self) -> None:
        """The host of the file systems goes: nothing more of them reaches the array.

        Raises
        ------
        NotSupported
            The kernel cannot do it.
        """
        with ArrayPlace.open(self.folder) as place:
            for one in mounted(place):
                shut_down(place.mounts / one.volume)

    def regain_power(self) -> None:
        """The power is back, and file systems are mounted anew.

        Raises
        ------
        AssayError
            One cannot be mounted any more.
        """
        self.ask({"command": "restore"})
        with ArrayPlace.open(self.folder) as place:
            mount_again(place)

    def devices(self) -> dict[str, str]:
        """Block device under the file system of each volume.

        Raises
        ------
        IoFailed
            The file system of a volume is not mounted any more.
        """
        with ArrayPlace.open(self.folder) as place:
            found = {one.volume: f"loop{one.number}" for one in mounted(place)}
        lost = [name for name, _, _ in self.spec.volumes() if name not in found]
        if lost:
            places = ", ".join(printable(self.place_of(name)) for name in lost)
            raise IoFailed(
                f"volume {', '.join(lost)}: not mounted any more at {places}: what is read and written there is not on"
                " the array; leave its mounts alone while a run is at work, and measure again"
            )
        return found

    def lost_volume(self) -> IoFailed | None:
        """The error that names volumes whose file systems were taken away; None where all are there."""
        try:
            if self.mounted and self.is_started and not self.is_gone:
                self.devices()
        except IoFailed as error:
            return error
        return None

    def cause(self) -> str | None:
        """Why what used the array failed, as far as the array knows."""
        try:
            if not self.is_started or not self.ask({"command": "counters"})["writes_without_room"]:
                return None
        except AssayError:
            return None
        room = self.spec.own.get("room")
        full = f"room={room} is used up" if room else f"the file system of {self.spec.store} is full"
        return f"{self.folder}: the array refused writes, because {full}; give it more room"

    def facts(self) -> ShownArray:
        """What the manifest says of it, under `target.served`."""
        request = self.spec.request()
        array = request.configuration()
        return {
            **array.facts(),
            "target": f"array:{self.spec.text}",
            "served": {
                "folder": str(self.folder),
                "store": str(self.spec.store),
                "durability": request.durability,
                "realtime": request.realtime,
            },
        }

    def place_of(self, volume: str) -> Path:
        """Where the file system on a volume is mounted."""
        return self.spec.mounts / volume


_arrays: dict[Path, ServedArray] = {}


def served_array(spec: ServedSpec, *, mounted: bool) -> ServedArray:
    """The array of a spec: targets of a run that name the same one share it.

    Raises
    ------
    UsageError
        Another array is to be shown in the same folder.
    """
    known = _arrays.get(spec.folder)
    if known is None:
        known = _arrays[spec.folder] = ServedArray(spec, mounted=mounted)
    if (known.spec.text, known.mounted) != (spec.text, mounted):
        raise UsageError(f"array: two arrays are to be shown at {spec.folder}; give each an at=DIR of its own")
    return known


def explained(error: AssayError) -> AssayError:
    """The error of a run, with what an array beneath knows of its cause; the same error where no array does."""
    if error.exit_code is not ExitCode.TARGET_FAILED:
        return error
    lost = next((lost for array in _arrays.values() if (lost := array.lost_volume()) is not None), None)
    if lost is not None:
        return error if str(error).startswith(str(lost)) else IoFailed(f"{lost}. What failed: {error}")
    cause = next((cause for array in _arrays.values() if (cause := array.cause())), None)
    if cause is None or str(error).startswith(cause):
        return error
    return OutOfSpace(f"{cause}. What failed: {error}")


@contextlib.contextmanager
def arrays_of_run() -> Iterator[None]:
    """Whatever is served within is taken away at the end.

    Raises
    ------
    AssayError
        What was raised within, explained by the arrays.
    """
    try:
        yield
    except AssayError as error:
        if (told := explained(error)) is not error:
            raise told from error
        raise
    finally:
        stop_all()


def stop_all(show: Callable[[str], None] = lambda _text: None) -> None:
    """Stop all arrays of this process, whatever becomes of one.

    Raises
    ------
    AssayError
        One could not be taken away; all others were.
    """
    with contextlib.ExitStack() as stack:
        for array in _arrays.values():
            stack.callback(array.stop, show)
        _arrays.clear()


# The server's process


def main() -> int:
    """Serve what standard input asks for until it ends."""
    from assay.targets.arrays.live import service

    # Who asks says when it is over; whoever else ends it does so cleanly, too.
    told, tell = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(tell, b"."))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    asked = json.loads(line)
    try:
        request = parse_served(f"array:{asked['target']}").request()
        with service.serve(request, mkfs=asked["mounted"]) as served:
            _say({"ready": True})
            while served.is_running():
                ready, _, _ = select.select([0, told], [], [], LOOK_S)
                if ready:
                    break
        return 0
    except AssayError as error:
        _say({"error": str(error), "kind": type(error).__name__})
        return int(error.exit_code)


def _say(what: ServerWord) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
