"""The process of the flight recorder: nothing is loaded in it but the collectors, SQLite and a driver.

`assay record` checks what is asked for and becomes this process (`python -m assay.telemetry.flight.process`). Its
settings come on a descriptor; passwords in the environment under the words that stand for them in URLs, and leave it at
once (`assay.base.secrets`).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from assay.base.errors import AssayError, ExitCode, OutOfSpace
from assay.base.units import format_duration
from assay.telemetry.flight.writer import FlightWriter
from assay.telemetry.recorder import Collector, Recorder

if TYPE_CHECKING:
    from assay.telemetry.flight.metrics import Exposition

COMMIT_S = 5.0
"""Between writes: what a crash may lose."""

RETRY_S = 60.0
STATUS_S = 60.0

DRIVES_S = 60.0
"""Between two looks at drives, each a program that is started."""

COST_SHARE = 0.01
"""Of a processor that one collector may take."""


class Flight:
    """One recorder at work.

    Parameters
    ----------
    settings
        `folder`, `keep_bytes`, `interval_s`, `for_s`, `roles`, `databases`, `metrics`, `processes`,
        `latencies`, `told`.
    tell
        Called with lines for people.
    """

    def __init__(self, settings: Mapping[str, Any], tell: Callable[[str], None]) -> None:
        self._settings, self._tell = settings, tell
        self._stopping = threading.Event()
        self._signal = 0
        self._full = False
        self._told_s = 0.0
        self._away: dict[str, tuple[float, float]] = {}

    def stop(self, number: int = 0, _: FrameType | None = None) -> None:
        """End at the next moment."""
        self._signal = number
        self._stopping.set()

    def run(self) -> int:
        """Record until stopped; the exit code."""
        settings = self._settings
        host = socket.gethostname()
        with FlightWriter(Path(settings["folder"]), keep_bytes=settings["keep_bytes"], host=host) as writer:
            exposition = self._exposition()
            collectors = collectors_of(settings, writer.notice)
            writer.begin(
                {
                    "host": host,
                    "interval_s": str(settings["interval_s"]),
                    "told": json.dumps(settings.get("told") or {}),
                }
            )
            recorder = Recorder(collectors, interval_s=settings["interval_s"], retry_s=RETRY_S, cost_share=COST_SHARE)
            recorder.start()
            began_s = time.monotonic()
            ends_s = began_s + settings["for_s"] if settings.get("for_s") else None
            while not self._stopping.wait(self._wait_s(ends_s)):
                self._write(recorder, writer, exposition)
                self._status(writer, began_s)
                if ends_s is not None and time.monotonic() >= ends_s:
                    break
            recorder.stop()
            self._write(recorder, writer, exposition)
            used = writer.bytes_used
            if self._full:
                self._tell("assay: the last samples could not be written, and are lost")
        if settings.get("json"):
            told = {"run_folder": settings["folder"], "seconds": round(time.monotonic() - began_s, 3), "bytes": used}
            with contextlib.suppress(OSError):
                document = {"schema_version": 1, "verb": "record", **told, "notices": writer.notices}
                print(json.dumps(document), flush=True)
        else:
            self._tell(f"recorded for {format_duration(time.monotonic() - began_s)}, {used / 2**20:,.1f} MiB used")
        for step in settings.get("next") or ():
            self._tell(f"next: {step}")
        if self._full:
            return int(ExitCode.TARGET_FAILED)
        return int(ExitCode.INTERRUPTED) if self._signal == signal.SIGINT else int(ExitCode.DONE)

    def _wait_s(self, ends_s: float | None) -> float:
        return COMMIT_S if ends_s is None else max(min(COMMIT_S, ends_s - time.monotonic()), 0.0)

    def _exposition(self) -> Exposition | None:
        address = self._settings.get("metrics")
        if not address:
            return None
        from assay.telemetry.flight.metrics import Exposition, serve

        exposition = Exposition()
        server = serve(exposition, (address[0], address[1]))
        self._tell(f"metrics: http://{server.server_address[0]!s}:{server.server_address[1]}/metrics")
        return exposition

    def _write(self, recorder: Recorder, writer: FlightWriter, exposition: Exposition | None) -> None:
        recorder.drain(_Sink([writer.add, *([exposition.add] if exposition is not None else [])]))  # type: ignore[arg-type]
        try:
            for notice in recorder.notices:
                if notice not in writer.notices:
                    writer.notice(notice)
                    self._tell(f"note: {notice}")
            self._note_absences(recorder, writer)
            writer.commit()
        except OutOfSpace as error:
            self._is_full(writer, error)
        else:
            if self._full:
                self._full = False
                self._tell("note: samples are written again")
        for text in writer.said():
            self._tell(f"note: {text}")

    def _note_absences(self, recorder: Recorder, writer: FlightWriter) -> None:
        """Note servers that stop answering, and how long that was when they answer again: the others go on."""
        for collector in recorder.collectors():
            reason = getattr(collector, "away", "")
            since = self._away.get(collector.name)
            if reason and since is None:
                self._away[collector.name] = (time.time(), time.monotonic())
                self._tell(f"note: {collector.name} does not answer: {reason}")
            elif not reason and since is not None:
                del self._away[collector.name]
                began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(since[0]))
                # The clock of the day may have been set meanwhile.
                text = f"{collector.name} did not answer for {time.monotonic() - since[1]:,.0f} s from {began} UTC on"
                writer.notice(text)
                self._tell(f"note: {text}")

    def _is_full(self, writer: FlightWriter, error: Exception) -> None:
        if not self._full:
            self._full = True
            self._tell(f"note: {error}")
            writer.notice(str(error))

    def _status(self, writer: FlightWriter, began_s: float) -> None:
        now_s = time.monotonic()
        if now_s - max(self._told_s, began_s) >= STATUS_S:
            self._told_s = now_s
            used, keep = writer.bytes_used / 2**20, self._settings["keep_bytes"] / 2**20
            went = format_duration(now_s - began_s)
            self._tell(f"recording for {went}, {used:,.1f} of {keep:,.0f} MiB used")


class _Sink:
    """Hands what the recorder drains to several."""

    def __init__(self, takers: Sequence[Callable[..., None]]) -> None:
        self._takers = takers

    def add(self, readings: Any, **told: Any) -> None:
        for take in self._takers:
            take(readings, **told)


def collectors_of(settings: Mapping[str, Any], notice: Callable[[str], None]) -> list[Collector[Any]]:
    """Everything that this host can tell, and the databases that were named."""
    from assay.record.drive_health import notes_of
    from assay.targets.drives.health import drives_beneath
    from assay.telemetry.collectors import block_collectors, host_collectors
    from assay.telemetry.collectors.block import busiest, whole_devices
    from assay.telemetry.collectors.drives import DrivesCollector
    from assay.telemetry.collectors.interfaces import InterfacesCollector
    from assay.telemetry.collectors.multipath import MultipathCollector, PathsCollector, first_paths, multipath_maps
    from assay.telemetry.collectors.nfs import NfsCollector, has_nfs
    from assay.telemetry.collectors.processes import ProcessesCollector
    from assay.telemetry.collectors.raid import RaidCollector
    from assay.telemetry.collectors.volumes import VolumesCollector

    roles = dict(settings.get("roles") or {})
    devices = busiest({*whole_devices(), *roles}, roles, notice)
    found: list[Collector[Any]] = [*host_collectors(), InterfacesCollector(), VolumesCollector()]
    found += block_collectors(devices, roles=roles, totals=True)
    if drives := drives_beneath(devices):
        watch = DrivesCollector(every_s=DRIVES_S)
        for note in notes_of(watch.watch(drives, notice)):
            notice(note.text)
        found.append(watch)
    maps = first_paths(multipath_maps(), notice)
    if maps:
        found += [MultipathCollector(), PathsCollector(maps)]
    if any(device.startswith("md") for device in devices):
        found.append(RaidCollector())
    if has_nfs():
        found.append(NfsCollector())
    if settings.get("latencies"):
        from assay.telemetry.collectors.latencies import LatenciesCollector

        found.append(LatenciesCollector(roles=roles))
    if settings.get("processes", True):
        found.append(ProcessesCollector())
    for text in settings.get("databases") or ():
        try:
            found += _of_database(text)
        except AssayError as error:
            notice(f"database: {error}")
    return found


def _of_database(text: str) -> list[Collector[Any]]:
    from assay.targets.databases import open_database, parse_database
    from assay.targets.databases.common.table_set import NO_TABLES
    from assay.telemetry.collectors import database_collectors

    return database_collectors([open_database(parse_database(text), NO_TABLES)], beside=False)


def main() -> int:
    """Record with the settings of the descriptor that is named in the command line."""
    from assay.base.secrets import take_secrets

    with open(int(sys.argv[1]), encoding="utf-8") as file:
        settings = json.load(file)
    take_secrets(os.environ)
    # What a recording holds is for its owner alone.
    os.umask(0o077)
    flight = Flight(settings, _say)
    end_at_signals(flight)
    try:
        return flight.run()
    except AssayError as error:
        _say(f"assay: {error}")
        return int(error.exit_code)
    except (OSError, MemoryError) as error:
        # Such as no descriptors: what was committed is whole.
        _say(f"assay: cannot go on recording: {error}")
        return int(ExitCode.TARGET_FAILED)


def end_at_signals(flight: Flight) -> None:
    """Let Ctrl-C, SIGTERM and a terminal that hangs up end a recorder at its next moment.

    A hangup that is ignored stays so (nohup). A service has no terminal, and what sends it SIGHUP wants it to read its
    settings anew, of which it has none: it goes on.
    """
    signal.signal(signal.SIGINT, flight.stop)
    signal.signal(signal.SIGTERM, flight.stop)
    # systemd.exec(5): the process that systemd itself started, and no child of it.
    is_service = os.environ.get("SYSTEMD_EXEC_PID") == str(os.getpid())
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_IGN if is_service else flight.stop)


def _say(line: str) -> None:
    """A line for people; a terminal or a pipe that is gone ends no recording."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        # What is left of the line would fail once more at the end, and be the exit code.
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            os.dup2(nowhere, sys.stderr.fileno())
            os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
