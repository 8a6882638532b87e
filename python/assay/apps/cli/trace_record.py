"""`assay trace record`: the block I/O beneath devices, folders and databases, as the kernel traces it, into a file."""

from __future__ import annotations

import shutil
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.console import leave, print_json, say
from assay.base.errors import ExitCode, UsageError
from assay.base.paths import printable
from assay.base.units import count_of, format_bytes, format_duration, format_iops, parse_bytes, parse_duration

if TYPE_CHECKING:
    from assay.traces.capture.record import CaptureReport, CaptureRequest

EXAMPLES = """
Examples:

`assay trace record /var/lib/postgresql --for 10m -o orders.trace`

`assay trace record /dev/nvme0n1 /dev/nvme1n1 --for 7d --sample 1m/10m --max-size 2GB -o week.trace`

`assay trace record postgresql://postgres@localhost/shop --anonymise -o shop.trace`
"""

SIZE_MIN_BYTES = 2**20
IO_BYTES = 10
"""Bytes of the file an I/O, about."""


@usual("--for", "-o", "--sample", "--max-size", "--anonymise", "--dry-run", "--json")
def record(
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PLACE]...",
            help="Devices, files or folders whose disks are captured, or URLs of databases on this host (all disks).",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The trace; a new file.")] = Path(
        "io.trace"
    ),
    length: Annotated[str | None, typer.Option("--for", help="Stop after this time: 10m (until stopped).")] = None,
    sample: Annotated[
        str | None, typer.Option("--sample", metavar="TIME/TIME", help="Capture 1m of each 10m: 1m/10m (all the time).")
    ] = None,
    max_size: Annotated[str | None, typer.Option("--max-size", help="Stop once the file is as large: 2GB.")] = None,
    anonymise: Annotated[
        bool, typer.Option("--anonymise", help="Move places by a random key that is not kept; number processes.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be captured, and whether it may be.")
    ] = False,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Capture the block I/O of disks: when each was asked for, issued and done, its place, size, kind and process."""
    del debug
    from assay.traces.capture.record import record_trace

    request = _request(places or [], output, length, sample, max_size, anonymise=anonymise)
    names = ", ".join(device.name for device in request.devices)
    if dry_run:
        _try(request, names, json=json)
        return
    ends = f"for {length}; Ctrl-C ends it earlier" if length else "until stopped; stop with Ctrl-C"
    if not json:
        say(f"capturing {names} into {printable(output)} {ends}")
    stopping = threading.Event()
    heard = _end_at_signals(stopping)
    report = record_trace(request, stopping, lambda line: None if json else say(line))
    _print(report, request, json=json)
    if heard == [signal.SIGINT]:
        leave(ExitCode.INTERRUPTED)


def _request(
    places: list[str], output: Path, length: str | None, sample: str | None, max_size: str | None, *, anonymise: bool
) -> CaptureRequest:
    """What is asked for, checked.

    Raises
    ------
    UsageError
        A value is wrong.
    """
    from assay.targets.drives.beneath import disks_of
    from assay.targets.host import device_of
    from assay.traces.capture.devices import captured_devices
    from assay.traces.capture.record import CaptureRequest

    duration_s = parse_duration(length, what="--for") / 1e9 if length else None
    if duration_s is not None and duration_s <= 0:
        raise UsageError(f"--for {length}: is too little; give a time such as 10m")
    window_s, every_s = _sample(sample) if sample else (None, None)
    bytes_max = parse_bytes(max_size, what="--max-size") if max_size else None
    if bytes_max is not None and bytes_max < SIZE_MIN_BYTES:
        raise UsageError(f"--max-size {max_size}: is too little; 1 MiB is the least")
    if output.exists():
        raise UsageError(f"{printable(output)} exists; choose another name for the trace")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{printable(output)}: its folder is not there")
    devices = captured_devices(_folders(places))
    own = device_of(output.absolute().parent)
    traced = {device.name for device in devices} & set(disks_of([own]) if own else [])
    notes = [f"The trace was written to {name}, so its own writes are in it." for name in sorted(traced)]
    if anonymise:
        notes.append("Places were moved within their devices, 64 MiB at a time, and processes numbered.")
    return CaptureRequest(
        devices=tuple(devices), path=output, duration_s=duration_s, window_s=window_s, every_s=every_s,
        bytes_max=bytes_max, anonymise=anonymise, notes=tuple(notes),
    )  # fmt: skip


def _sample(text: str) -> tuple[float, float]:
    """Seconds of a window, and between the begins of two.

    Raises
    ------
    UsageError
        It has another form.
    """
    window, mark, every = text.partition("/")
    if not mark:
        raise UsageError(f"--sample {text}: accepted: a time, a slash and a longer time: 1m/10m")
    window_s, every_s = (parse_duration(part, what="--sample") / 1e9 for part in (window, every))
    if not 1 <= window_s < every_s:
        raise UsageError(f"--sample {text}: accepted: at least 1s of a longer time: 1m/10m")
    return window_s, every_s


def _folders(places: list[str]) -> list[str]:
    """Places, with the folders of databases instead of their URLs.

    Raises
    ------
    UsageError
        A database is not on this host, or does not tell where its files are.
    """
    from assay.targets.databases import is_database, open_database, parse_databases
    from assay.targets.databases.common.table_set import NO_TABLES

    found = []
    for place in places:
        if not is_database(place):
            found.append(place)
            continue
        for spec in parse_databases([place]):
            database = open_database(spec, NO_TABLES)
            database.open()
            try:
                folders = list(dict.fromkeys(database.storage_paths().values()))
            finally:
                database.close()
            if not folders:
                raise UsageError(f"{spec.display} does not tell where on this host its files are; name their folder")
            found += folders
    return found


def _try(request: CaptureRequest, names: str, *, json: bool) -> None:
    """Say what would be captured, once the kernel has shown that it may be."""
    from assay.traces.capture.ftrace import TraceInstance

    with TraceInstance(request.devices):
        pass
    free_bytes = shutil.disk_usage(request.path.absolute().parent).free
    if json:
        devices = [{"name": one.name, "size_bytes": one.size_bytes} for one in request.devices]
        print(print_json({"schema_version": 1, "verb": "trace record", "dry_run": True, "devices": devices,
                    "free_bytes": free_bytes, "notes": list(request.notes)}))  # fmt: skip
        return
    print(f"would capture {names} into {printable(request.path)}: the kernel's tracing can be used here")
    print(f"an I/O takes about {IO_BYTES} bytes; {format_bytes(free_bytes)} are free there,"
          f" which is {count_of(free_bytes // IO_BYTES, 'I/O')}")  # fmt: skip
    for note in request.notes:
        print(f"note: {note}")


def _end_at_signals(stopping: threading.Event) -> list[int]:
    """Let Ctrl-C, SIGTERM and a terminal that hangs up end the recording; the signals that came."""
    heard: list[int] = []

    def stop(number: int, _: Any) -> None:
        heard.append(number)
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, stop)
    return heard


def _print(report: CaptureReport, request: CaptureRequest, *, json: bool) -> None:
    if json:
        told = {
            name: getattr(report, name) for name in ("ios", "bytes", "lost_events", "unfinished", "ended_by", "notices")
        }
        document = {"schema_version": 1, "verb": "trace record", "trace": str(request.path)}
        print(print_json({**document, "seconds": round(report.seconds, 3), **told}))
        return
    rate = format_iops(report.ios / report.seconds) if report.seconds else "0"
    size = f", {report.bytes / report.ios:.1f} bytes an I/O" if report.ios > 1000 else ""
    print(f"{count_of(report.ios, 'I/O')} in {format_duration(report.seconds)} ({rate} IOPS),"
          f" {format_bytes(report.bytes)}{size}")  # fmt: skip
    if report.unfinished:
        print(f"{count_of(report.unfinished, 'I/O')} had not ended when the capture did, or were out for over 30 s")
    if report.ended_by == "size":
        print("ended since the file is as large as it may be (--max-size)")
    for notice in (*report.notices, *request.notes):
        print(f"note: {notice}")
    print(f"trace: {printable(request.path)}")
