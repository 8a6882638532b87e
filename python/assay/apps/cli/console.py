"""What a person sees while Assay works and when it is done; errors in one line; signals."""

from __future__ import annotations

import codecs
import io
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, cast

from typer.exceptions import TyperException

from assay.apps.cli.live_frame import Piece, frame, screen_of
from assay.apps.cli.other_tools import called_here, verb_of
from assay.apps.cli.settings import blamed
from assay.apps.cli.taken import taken_now
from assay.base.audience import Audience, problem, reads_a_program
from assay.base.command_line import end_at_signals
from assay.base.errors import AssayError, ExitCode, Interrupted
from assay.base.log import LOG, chain, event
from assay.base.paths import printable
from assay.base.units import format_bytes
from assay.record.points import describe_load
from assay.record.standstill import generator_words
from assay.record.steady import unsteady_words
from assay.workloads.registry import workload_named

if TYPE_CHECKING:
    from assay.base.progress import Shown, Status
    from assay.record.shapes.point import Point

PLAIN_EVERY_S = 5.0
"""Without a terminal a line of progress appears this often."""


UNWRITABLE = "assay.escaped"
"""Error handler of codecs: what cannot be written is written as Python writes it in a literal, bytes as bytes."""

MESSAGE_MAX = 1000
"""Letters of one line of a message; of a longer one the middle is left out. JSON is whole."""


def run_guarded(app: Callable[..., object], argv: Sequence[str]) -> NoReturn:
    """Run the command line and exit; errors become one line on standard error and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names may be any bytes, and a terminal may lack any letter: what cannot be written is written escaped.
            stream.reconfigure(errors=UNWRITABLE)
    # Until a verb looks after signals itself, they break off what it does.
    heard: list[int] = []

    def break_off(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        event("signal", signal=signal.Signals(number).name)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, break_off)
    signal.signal(signal.SIGTERM, break_off)
    sys.unraisablehook = _without_interrupts
    LOG.shows = "--debug" in argv
    Audience.is_program = reads_a_program(argv[1:], os.environ, on_terminal=sys.stdout.isatty())
    event("command", argv=argv)
    try:
        try:
            code = app(standalone_mode=False, prog_name="assay")
            outcome = ExitCode(code) if isinstance(code, int) else ExitCode.DONE, ""
            if heard:
                # Python loses what is raised while it frees an object; then the verb has gone on to its end.
                outcome = ExitCode.INTERRUPTED, ""
        except KeyboardInterrupt:
            outcome = ExitCode.INTERRUPTED, ""
        except Exception as error:
            if "--debug" in argv:
                traceback.print_exc()
            outcome = _outcome(error)
            event("failed", level="error", code=int(outcome[0]), errors=chain(error))
        except SystemExit as error:
            if not isinstance(error.__context__, BrokenPipeError):
                end_at_signals()
                raise
            _forget_stdout()
            outcome = ExitCode.DONE, ""
        if outcome == (ExitCode.INTERRUPTED, ""):
            outcome = ExitCode.INTERRUPTED, "interrupted"
    except KeyboardInterrupt:
        outcome = ExitCode.INTERRUPTED, "interrupted"
    end_at_signals()
    leave(*outcome)


def _without_interrupts(unraisable: Any) -> None:
    """Say nothing of an interrupt that Python could not raise: the exit code says it."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)


def _outcome(error: Exception) -> tuple[ExitCode, str]:
    """Exit code and message of an error that no verb has handled."""
    if isinstance(error, AssayError):
        return error.exit_code, blamed(str(error))
    if isinstance(error, TyperException):
        return ExitCode.USAGE, blamed(_usage(error))
    if _comes_of_interrupt(error):
        return ExitCode.INTERRUPTED, "interrupted"
    if isinstance(error, BrokenPipeError):
        # The reader of standard output has gone, so that nothing more is printed.
        _forget_stdout()
        return ExitCode.DONE, ""
    if isinstance(error, MemoryError):
        return ExitCode.TARGET_FAILED, "out of memory; give a smaller --size, --queue-depth or --block"
    if isinstance(error, OSError):
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
        return ExitCode.TARGET_FAILED, f"{where}{error.strerror or error}"
    what = " ".join(f"{type(error).__name__}: {error}".split())
    advice = "run it again with --debug and report what it says"
    return ExitCode.TARGET_FAILED, f"a fault of Assay itself ({one_line(what, MESSAGE_MAX // 2)}); {advice}"


def _comes_of_interrupt(error: BaseException | None) -> bool:
    """Whether what was interrupted put the interrupt into an error of its own."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _usage(error: TyperException) -> str:
    """What the option parser says, in one line; a verb without arguments shows its help."""
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError" and not Audience.is_program:
        print(message, file=sys.stderr)
        return ""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "assay"
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        return f"{command}: name a command; accepted: {', '.join(context.command.commands)}"
    if option := getattr(error, "option_name", ""):
        params = context.command.params if context is not None else []
        if known := called_here(option, {name for one in params for name in one.opts}):
            return f"{known} (No such option: {option}); see {command} --help"
    inner = context.command.commands if context is not None and hasattr(context.command, "commands") else {}
    if context is not None and inner and "command" in message:
        if context.parent is not None:
            return f"{message.rstrip('.')}; accepted: {', '.join(inner)}; see {command} --help"
        word = message.partition("'")[2].partition("'")[0]
        if meant := context.command.typed.get(word.lower()):
            return f"there is no command {word}; write {meant}; see {meant.removesuffix(' --version')} --help"
        if known := verb_of(word):
            return f"{known}; see {command} --help"
    return f"{message.rstrip('.')}; see {command} --help"


def _forget_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def leave(code: ExitCode, message: str | None = None) -> NoReturn:
    """Say why on standard error and exit."""
    if message:
        complain(code, message)
    # An interrupt within code that was a text, such as a library's data class, would make `python -m assay` end as
    # killed by a signal, whatever the exit code: CPython forgets it where it next runs a text.
    exec("")
    sys.exit(int(code))


def complain(code: ExitCode, message: str) -> None:
    """Say on standard error what ends the command; a program gets one line of JSON."""
    if Audience.is_program:
        print(json.dumps(problem(code, one_line(message))), file=sys.stderr, flush=True)
    else:
        say(f"assay: {message}")


def say(text: str) -> None:
    """Print one line on standard error."""
    print(one_line(text), file=sys.stderr, flush=True)


def print_json(document: Mapping[str, object], *, indent: int | None = 1) -> str:
    """One JSON document, numbers that are not finite refused; on one line where nothing is indented."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent)
    # Names of bytes that are no text are halves of surrogate pairs: JSON may hold these escaped, UTF-8 never.
    return text if _is_text(text) else json.dumps(document, allow_nan=False, indent=indent)


def print_event(event: str, **what: object) -> None:
    """Print a line of `--json-stream`."""
    print(print_json({"event": event, **what}, indent=None), flush=True)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def one_line(text: str, most: int = MESSAGE_MAX) -> str:
    r"""Return text as one line that is safe to show: no letter that is not printable, and not too long.

    Names of files and what servers say are others' words: on a terminal they must neither begin a line nor move the
    cursor, so they are escaped. A text that is too long loses its middle.

    Examples
    --------
    >>> one_line("two\nlines, \x1b[31mred, caf\udce9")
    'two\\nlines, \\x1b[31mred, caf\\xe9'
    >>> one_line("0123456789" * 30, 100)
    '012345678901234567890123456789 [... 240 letters left out ...] 012345678901234567890123456789'
    """
    cut = _cut(text, most) if len(text) > most else text
    escaped = "".join(letter if letter.isprintable() else _escaped(letter) for letter in cut)
    return _cut(escaped, most) if len(escaped) > most else escaped


def _cut(text: str, most: int) -> str:
    kept = max(most - len(" [... 999,999,999 letters left out ...] "), 2)
    note = f" [... {len(text) - kept:,} letters left out ...] "
    return text[: kept // 2] + note + text[len(text) - (kept - kept // 2) :]


def _unwritable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_escaped, error.object[error.start : error.end])), error.end


codecs.register_error(UNWRITABLE, _unwritable)


def _escaped(letter: str) -> str:
    # A byte that is no text is one that Python keeps as half a surrogate pair.
    if "\udc80" <= letter <= "\udcff":
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode("ascii")


def leave_at_once(code: ExitCode) -> NoReturn:
    """Exit without waiting for threads that are stuck in the kernel; what was printed is flushed first."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code))


class EndSignals:
    """Ctrl-C and SIGTERM ask for a clean end once; a second time ends at once.

    While `raising` is set the signal raises `Interrupted` where the main thread is, for work that does not look at the
    event. Unless `heard`, signals stay those of the program that calls.
    """

    def __init__(self, *, heard: bool = True) -> None:
        self.interrupt = threading.Event()
        self.raising = False
        if heard:
            signal.signal(signal.SIGINT, self._handle)
            signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        event("signal", signal=signal.Signals(number).name)
        if self.interrupt.is_set():
            leave_at_once(ExitCode.INTERRUPTED)
        self.interrupt.set()
        if self.raising:
            raise Interrupted("interrupted while writing the report; `assay report RUN` writes it")


class Console:
    """Progress on standard error: live on a terminal, a plain line every few seconds otherwise.

    With `stream`, points are printed on standard output as they end.
    """

    def __init__(self, *, quiet: bool = False, stream: bool = False) -> None:
        self.quiet = quiet = quiet or Audience.is_program
        self._stream = stream
        self._screen = None if quiet else screen_of(sys.stderr, os.environ)
        self._shown_at = 0.0

    def __enter__(self) -> Console:
        return self

    def __exit__(self, *_: object) -> None:
        if self._screen is not None:
            self._screen.close()

    def phase(self, text: str) -> None:
        """Show the phase that runs now."""
        self._say(text, always=True)

    def layout(self, name: str, done_bytes: float, total_bytes: float) -> None:
        """Show bytes being laid out."""
        share = done_bytes / total_bytes if total_bytes else 1.0
        self._say(f"laying out {name}: {format_bytes(done_bytes)} of {format_bytes(total_bytes)} ({share:.0%})")

    def point(self, progress: Shown) -> None:
        """Show the point that is being measured or verified; a terminal waits for the status."""
        if self._screen is None:
            self._say(progress.line)

    def status(self, status: Status) -> None:
        """Show how the run stands, on a terminal."""
        if self._screen is not None and self._screen.is_due and status.moment.gauges:
            self._screen.draw(frame(status, self._screen.width, bars=self._screen.bars))

    def tell(self, text: str) -> None:
        """Print a line that must not be missed, progress or not; a caller in Python finds it in the run."""
        if taken_now() is None:
            self._print(text)

    def point_done(self, point: Mapping[str, Any]) -> None:
        """Show a finished point."""
        if self._stream:
            print_event("point", point=point)
        if not self.quiet:
            self._print(point_line(point))

    def _say(self, text: str, *, always: bool = False) -> None:
        if self.quiet:
            return
        now = time.monotonic()
        if self._screen is not None:
            if always or self._screen.is_due:
                self._screen.draw([[Piece(one_line(text)[: self._screen.width])]])
        elif always or now - self._shown_at >= PLAIN_EVERY_S:
            self._shown_at = now
            say(text)

    def _print(self, text: str) -> None:
        if self._screen is not None:
            self._screen.above(one_line(text))
        else:
            say(text)


def point_line(point: Mapping[str, Any]) -> str:
    """One finished point in one line."""
    from assay.workloads.capabilities import Verifying

    workload = workload_named(point["workload"]["kind"])
    load = f", {describe_load(point['load'])}" if not isinstance(workload, Verifying) else ""
    parts = [
        f"{point['id']} [{point['part']}] {point['workload']['name']}{load}:",
        *workload.point_words(cast("Point", point)),
    ]
    if len(parts) == 1:
        return f"{parts[0]} {workload.figures[0].nothing}"
    if point["errors"]["count"]:
        parts.append(f"{point['errors']['count']:,} ERRORS;")
    if words := generator_words(point):
        parts.append(f"{words};")
    if point["ended_by"] not in ("steady", "time"):
        parts.append(f"ended by {point['ended_by']}")
    elif not isinstance(workload, Verifying):
        parts.append("steady" if point["steady"]["reached"] else unsteady_words(point))
    return " ".join(filter(None, parts))


def print_end(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Print what to do next, and as the last line the path of the report, or of the run folder where it holds none."""
    from assay.apps.cli.next_step import next_steps, print_next

    print_next(next_steps(manifest, folder))
    paper, report = folder / "paper.html", folder / "report.html"
    if paper.exists():
        print(f"paper: {printable(paper)}")
    told = f"report: {printable(report)}" if report.exists() else f"run folder: {printable(folder)}"
    print(told, flush=True)
