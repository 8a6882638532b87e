"""What a person sees while Assay works and when it is done; errors in one line; signals."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from typer.exceptions import TyperException

from assay.errors import AssayError, ExitCode, Interrupted
from assay.study.runner import describe_load
from assay.units import format_bytes, format_iops, format_latency, format_throughput

if TYPE_CHECKING:
    from assay.study.display import Shown

PLAIN_EVERY_S = 5.0
"""Without a terminal a line of progress appears this often."""


def run_guarded(app: Callable[..., object], argv: Sequence[str]) -> None:
    """Run the command line; errors become one line on standard error and an exit code."""
    debug = "--debug" in argv
    # Until a verb looks after signals itself, SIGTERM ends it as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = app(standalone_mode=False)
    except TyperException as error:
        _leave_for_usage(error)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):
            # Whoever read standard output has gone; there is nobody left to tell.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(ExitCode.DONE)
        raise
    except Exception as error:
        if debug:
            raise
        leave(*_outcome(error))
    else:
        if code == ExitCode.INTERRUPTED:
            leave(ExitCode.INTERRUPTED, "interrupted")
        sys.exit(code if isinstance(code, int) else ExitCode.DONE)


def _outcome(error: Exception) -> tuple[ExitCode, str]:
    """Exit code and message of an error that no verb has handled."""
    if isinstance(error, AssayError):
        return error.exit_code, str(error)
    if isinstance(error, MemoryError):
        return ExitCode.TARGET_FAILED, "out of memory; give a smaller --size, --queue-depth or --block"
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return ExitCode.TARGET_FAILED, f"{where}{error.strerror or error}"
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        ExitCode.TARGET_FAILED,
        f"a fault of Assay itself ({what}); run it again with --debug and report what it says",
    )


def _leave_for_usage(error: TyperException) -> NoReturn:
    """What the option parser says, in one line; a verb without arguments shows its help."""
    message = error.format_message()
    if "\n" in message:
        print(message, file=sys.stderr)
        sys.exit(ExitCode.USAGE)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "assay"
    leave(ExitCode.USAGE, f"{message.rstrip('.')}; see {command} --help")


def leave(code: ExitCode, message: str | None = None) -> NoReturn:
    """Say why on standard error and exit."""
    if message:
        print(f"assay: {message}", file=sys.stderr)
    sys.exit(int(code))


def leave_at_once(code: ExitCode) -> NoReturn:
    """Exit without waiting for threads that are stuck in the kernel; what was printed is flushed first."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code))


class Signals:
    """Ctrl-C and SIGTERM ask for a clean end once; a second time ends at once.

    While `raising` is set the signal raises `Interrupted` where the main thread is, for work that does not look at the
    event.
    """

    def __init__(self) -> None:
        self.interrupt = threading.Event()
        self.raising = False
        signal.signal(signal.SIGINT, self._handle)
        signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.interrupt.is_set():
            leave_at_once(ExitCode.INTERRUPTED)
        self.interrupt.set()
        if self.raising:
            raise Interrupted("interrupted while writing the report; `assay report RUN` writes it")


class Console:
    """Progress on standard error: live on a terminal, a plain line every few seconds otherwise."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._live = sys.stderr.isatty() and not quiet
        self._shown_at = 0.0
        self._status: Any = None
        self._done = 0

    def __enter__(self) -> Console:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_live()

    def phase(self, text: str) -> None:
        """Show what is being done now."""
        self._say(text, always=True)

    def layout(self, name: str, done_bytes: float, total_bytes: float) -> None:
        """Show bytes being laid out."""
        share = done_bytes / total_bytes if total_bytes else 1.0
        self._say(f"laying out {name}: {format_bytes(done_bytes)} of {format_bytes(total_bytes)} ({share:.0%})")

    def point(self, progress: Shown) -> None:
        """Show what is being measured or verified."""
        self._say(progress.line)

    def tell(self, text: str) -> None:
        """Print a line that must not be missed, progress or not."""
        self._print(text)

    def point_done(self, point: Mapping[str, Any]) -> None:
        """Show a finished point."""
        self._done += 1
        if not self.quiet:
            self._print(point_line(point))

    def _say(self, text: str, *, always: bool = False) -> None:
        if self.quiet:
            return
        now = time.monotonic()
        if self._live:
            from rich.console import Console as RichConsole

            if self._status is None:
                self._status = RichConsole(stderr=True, highlight=False).status("")
                self._status.start()
            from rich.text import Text

            self._status.update(Text(text))
        elif always or now - self._shown_at >= PLAIN_EVERY_S:
            self._shown_at = now
            print(text, file=sys.stderr, flush=True)

    def _print(self, text: str) -> None:
        if self._status is not None:
            self._status.console.print(text, markup=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def _end_live(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


def point_line(point: Mapping[str, Any]) -> str:
    """One finished point in one line."""
    is_phase = point["workload"]["kind"] == "integrity"
    load = "" if is_phase else f", {describe_load(point['load'])}"
    parts = [f"{point['id']} [{point['part']}] {point['workload']['name']}{load}:"]
    if point["workload"]["kind"] == "tpcc":
        return " ".join([*parts, *_transaction_words(point)])
    total = point["total"]
    if not total:
        return parts[0] + " no I/O ended"
    parts.append(f"{format_iops(total['iops'])} IOPS, {format_throughput(total['bytes_per_s'])},")
    for direction in ("read", "write"):
        if point[direction]:
            latency = point[direction]["latency_ns"]
            parts.append(f"{direction} {format_latency(latency['mean'])} p99 {format_latency(latency['p99'])};")
    if point["errors"]["count"]:
        parts.append(f"{point['errors']['count']:,} ERRORS;")
    if point["generator"]["saturated"]:
        parts.append("generator saturated;")
    if not is_phase or point["ended_by"] != "time":
        parts.append("steady" if point["steady"]["reached"] else f"ended by {point['ended_by']}")
    return " ".join(parts)


def _transaction_words(point: Mapping[str, Any]) -> Iterator[str]:
    """What a point of transactions came to."""
    oltp = point["oltp"]
    yield f"{oltp['nopm']:,.0f} NOPM, {oltp['tpm_client']:,.0f} TPM;"
    for name, figures in oltp["by_transaction"].items():
        if figures["latency_ns"] is not None:
            yield f"{name.replace('_', '-')} p90 {format_latency(figures['latency_ns']['p90'])};"
    if point["errors"]["count"]:
        yield f"{point['errors']['count']:,} ERRORS;"
    if point["generator"]["saturated"]:
        yield "generator saturated;"
    yield "steady" if point["steady"]["reached"] else f"ended by {point['ended_by']}"


def print_verdict(lines: Sequence[Mapping[str, Any]], notices: Sequence[str]) -> None:
    """The verdict table and the notices, on standard output."""
    from rich.console import Console as RichConsole
    from rich.table import Table
    from rich.text import Text

    console = RichConsole(highlight=False, width=None if sys.stdout.isatty() else 160)
    if not lines:
        console.print("no verdict: nothing was measured to its end")
    table = Table(title="Verdict", title_justify="left", show_lines=False)
    for column in ("asked", "limit", "value", "met", "meaning"):
        table.add_column(column, overflow="fold")
    for line in lines:
        met = {True: "met", False: "MISSED", None: "-"}[line["met"]]
        value = show_verdict_value(line["value"], line["unit"])
        table.add_row(*(Text(cell) for cell in (line["question"], line["limit"] or "-", value, met, line["meaning"])))
    if lines:
        console.print(table)
    for notice in notices:
        console.print(Text(f"note: {notice}"))


def show_verdict_value(value: float | None, unit: str) -> str:
    """A verdict's value with its unit."""
    from assay.analysis.limits import show_value

    if value is None:
        return "-"
    return show_value(value, unit) + (" IOPS" if unit == "iops" else "")
