"""The load generator, compiled from the Rust crates. Plans go in and figures come out as JSON text."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import final

__all__ = [
    "BlockCapture",
    "ChunkRows",
    "ColumnBuffer",
    "CrashCheck",
    "CrashMinimiser",
    "CrashStates",
    "CrashVolume",
    "Histogram",
    "MailboxRun",
    "ModelSession",
    "ModelledArray",
    "OltpRun",
    "RowsLoad",
    "ServedArray",
    "Session",
    "StatementLog",
    "StatementReplay",
    "TraceFeeds",
    "Verification",
    "WarmCaches",
    "allocate",
    "array_usable_bytes",
    "build_info",
    "check_scripts",
    "chunks_of",
    "examine_journal",
    "file_identity",
    "first_foreign",
    "oltp_serial",
    "oltp_sql",
    "reliability",
    "row_counts",
    "sql_statements",
    "tpch_answer",
    "tpch_refresh_keys",
    "uring_refusal",
    "verify_memory",
]

@final
class BlockCapture:
    """Reads the kernel's trace of block I/O."""

    def __new__(cls, rings: Sequence[int], layout_json: str, *, origin_ns: int, keeps_ios: bool) -> BlockCapture:
        """A capture of open `trace_pipe_raw` files, by the layout of pages and events as JSON text.

        Times are counted from `origin_ns` on CLOCK_MONOTONIC. With `keeps_ios` it keeps the I/Os, without it counts
        their times. Raises UsageError and NotSupported for a layout that has no sense.
        """
    def run(self, duration_ns: int) -> None:
        """Read for a time, or until there are enough I/Os for a batch; other threads run meanwhile."""
    def finish(self) -> None:
        """Read the rest once the kernel has stopped tracing."""
    def close(self) -> None:
        """Close the rings."""
    def columns(self) -> tuple[list[ColumnBuffer], list[ColumnBuffer]]:
        """Columns of the I/Os since the last call.

        Times as asked, in the queue, in the device, places and sizes of 64 bits; flags, devices and processes of 32.
        """
    def processes(self) -> list[str]:
        """Names of processes by their numbers; the first is an unknown one."""
    def latencies(self) -> list[tuple[int, str, list[list[int]], list[int], list[int]]]:
        """Times of the I/Os that completed since the last call, by device and direction.

        Counts by bucket of times in the queue and in the device, then sums and longest of both.
        """
    def counts(self) -> dict[str, int]:
        """Counts of events, and of I/Os that could not be joined."""

@final
class Histogram:
    """Latencies, 1 ns to 1 h within 0.1 %."""

    def __new__(cls) -> Histogram: ...
    def record(self, value_ns: int, count: int = 1) -> None:
        """Count a latency."""
    def merge(self, other: Histogram) -> None:
        """Add everything another histogram counted."""
    @property
    def count(self) -> int:
        """How many latencies were recorded."""
    @property
    def min(self) -> int:
        """Smallest latency, ns."""
    @property
    def max(self) -> int:
        """Largest latency, ns."""
    @property
    def mean(self) -> float:
        """Mean latency, ns; not a number when empty."""
    def percentile(self, percentile: float) -> int:
        """Latency in ns at or below which this percentage (0..100) lies."""
    def bins(self) -> list[tuple[int, int]]:
        """Every bin that holds something: middle value in ns and count."""
    def to_base64(self) -> str:
        """HDR V2, deflated, as base64."""
    @staticmethod
    def from_base64(text: str) -> Histogram:
        """Read what `to_base64` wrote. Raises UsageError for anything else."""

@final
class Session:
    """Workers at work on real volumes."""

    def __new__(cls, plan_json: str, traces: Sequence[TraceFeeds] = ...) -> Session: ...
    def poll(self) -> str:
        """How the session stands, and the ticks completed since the last poll."""
    def measure_from(self, tick: int) -> None:
        """Forget the ticks before this one."""
    def point(self, from_tick: int, to_tick: int, fullest_worker: float) -> str:
        """Figures of the complete ticks `from_tick..to_tick`."""
    def stop(self) -> None:
        """Stop issuing."""
    def finish(self, timeout_s: float) -> str:
        """Stop, wait for what is outstanding, and report as `poll` does."""
    def drained(self) -> str:
        """What ended after the stop."""
    def engine(self) -> str:
        """Backend and features in force."""
    def clock_cost_ns(self) -> float:
        """Cost of one reading of the clock."""

@final
class TraceFeeds:
    """I/Os of one trace on their way to the workers that replay it."""

    def __new__(cls, end_bytes: Sequence[int], longest_bytes: int) -> TraceFeeds:
        """Feeds of a worker for each end, which is that of its volume."""
    def push(self, rows: Sequence[bytes], fed_until_ns: int) -> bool:
        """Add the next I/Os of each worker and wait until more are wanted; whether any still are."""
    def close(self) -> None:
        """End the feeding."""

@final
class WarmCaches:
    """Caches warmed once, for the points of a search and for arrays that differ in what leaves caches alone."""

    def __new__(cls) -> WarmCaches: ...

@final
class ModelledArray:
    """A modelled array, built from an ArrayPlan (crates/array-model/src/plan.rs)."""

    def __new__(cls, plan_json: str, warm: WarmCaches | None = None) -> ModelledArray:
        """Build the array; its warm caches are those in `warm` where they are what it would have."""
    def session(self, plan_json: str, goes_on: bool = False, traces: Sequence[TraceFeeds] = ...) -> ModelSession:
        """Start activities on a fresh array, or on the one the last session that went on left."""
    def bytes_per_s(self, plan_json: str, warmup_ticks: int, settling_ticks: int, ticks: int) -> float:
        """Bytes per second of a load on a fresh array, once its caches rest."""
    def set_read_realloc(self, on: bool) -> None:
        """Whether blocks found scattered are written again in one piece, from now on."""

@final
class ModelSession:
    """Workers at work on a modelled array; time passes in `poll` and `finish`."""

    def poll(self, ticks: int = 1) -> str:
        """Let ticks pass; how the session stands, and ticks and telemetry since the last poll."""
    def measure_from(self, tick: int) -> None:
        """Forget the ticks before this one."""
    def point(self, from_tick: int, to_tick: int, fullest_worker: float) -> str:
        """Figures of the complete ticks `from_tick..to_tick`."""
    def stop(self) -> None:
        """Stop issuing."""
    def finish(self, timeout_s: float) -> str:
        """Stop, let what is outstanding end, and report as `poll` does."""
    def drained(self) -> str:
        """What ended after the stop."""
    def engine(self) -> str:
        """What stands in for backend and features."""
    def clock_cost_ns(self) -> float | None:
        """None: a virtual clock costs nothing."""

@final
class MailboxRun:
    """Databases of a mail server at work on real volumes or on a modelled array (crates/mailbox/src/plan.rs)."""

    def __new__(cls, plan_json: str, array: ModelledArray | None = None, warm: bool = False) -> MailboxRun: ...
    def poll(self) -> str:
        """Let a tick pass on a model; how the run stands, and what is new since the last poll."""
    def measure_from(self, tick: int) -> None:
        """Forget the ticks before this one."""
    def point(self, from_tick: int, to_tick: int, fullest_worker: float) -> str:
        """Figures of the complete ticks `from_tick..to_tick`."""
    def set_rate(self, rate: float) -> None:
        """Set the I/Os per second of all databases together; what was late before is forgotten."""
    def stop(self) -> None:
        """End the load; what the databases hold is written then, and verified."""
    def abort(self) -> None:
        """End the run as soon as what is under way has ended."""
    def wait(self, timeout_s: float) -> None:
        """Wait for the end."""
    def engine(self) -> str:
        """Backend and features in force."""

@final
class ServedArray:
    """A modelled array that is served as files, from its making until it is stopped or dropped."""

    def __new__(cls, plan_json: str) -> ServedArray: ...
    def ask(self, command_json: str) -> str:
        """Carry out a command; both it and the answer are JSON."""
    def is_running(self) -> bool:
        """Whether it is served still."""
    def stop(self) -> None:
        """Take the volumes away and close the store."""

@final
class Verification:
    """An imitated database at work on real volumes, which verifies every page it reads."""

    def __new__(cls, plan_json: str) -> Verification: ...
    def poll(self) -> str:
        """How the run stands, and what is new since the last poll."""
    def stop(self) -> None:
        """End after what is outstanding, without the final checkpoint and audit."""
    def finish(self, timeout_s: float) -> str:
        """Stop, wait, and report as `poll` does."""
    def point(self, phase: int) -> str:
        """Figures of a finished phase."""
    def engine(self) -> str:
        """Backend and features in force."""

@final
class CrashCheck:
    """A target being held against the journal of the run that wrote it."""

    def __new__(cls, plan_json: str) -> CrashCheck: ...
    def poll(self) -> str:
        """How the check stands, in the form of `Verification.poll`; what was found comes once, with the end."""
    def stop(self) -> None:
        """End early."""
    def finish(self, timeout_s: float) -> str:
        """Stop, wait, and report as `poll` does."""
    def point(self, phase: int) -> str:
        """Figures of a finished phase; a check has none."""
    def engine(self) -> str:
        """No engine is measured."""

@final
class CrashVolume:
    """A volume served as a file by FUSE: set up, recorded, and shown in states after a crash."""

    def __new__(cls, folder: PathLike[str], base: PathLike[str], *, volume_bytes: int) -> CrashVolume:
        """Serve the file `base` as the file `volume` in an empty folder; the file is made if it is not there."""
    @property
    def path(self) -> Path:
        """Path of the file."""
    def record(self, log: PathLike[str]) -> None:
        """Record further requests into a new log, and leave the base unchanged."""
    def mark(self, text: str) -> None:
        """Mark in the log that a client was told something."""
    def finish(self) -> int:
        """End the log; its length in bytes."""
    def show(self, states: CrashStates, name: str) -> None:
        """Show the volume in a state; what was written since another was shown is forgotten."""
    def close(self) -> None:
        """Take the file away."""

@final
class CrashStates:
    """States of a log that promises of storage, as JSON text, allow."""

    def __new__(cls, log: PathLike[str], base: PathLike[str], promises_json: str) -> CrashStates: ...
    def plan(self, seed: int, most: int) -> tuple[list[tuple[str, str, int]], dict[str, int]]:
        """Choose up to `most` states, and say what they cover.

        Of each its name, the number of its contents, and the number of acknowledgements before it.
        """
    def counts(self) -> dict[str, int]:
        """Counts of requests in the log, by kind."""
    def marks(self, name: str) -> list[str]:
        """Acknowledgements before a state, in order."""
    def missing(self, name: str) -> list[int]:
        """Pieces of outstanding writes that a state lacks, counted from 0."""
    def lacking(self, name: str, pieces: list[int]) -> str:
        """Name of the state at the same crash point that lacks these pieces alone."""
    def lost(self, name: str) -> list[tuple[int, int, int, int, int]]:
        """Writes that a state lacks, whole or in part.

        Of each the number of its request, time, offset and length, and the bytes that the state lacks.
        """

@final
class CrashMinimiser:
    """Search for the smallest set with which something still fails."""

    def __new__(cls, failing: list[int]) -> CrashMinimiser: ...
    def ask(self) -> list[int] | None:
        """The next set to be tried; None when the set is as small as it can be made."""
    def answer(self, fails: bool) -> None:
        """Say whether the set that was asked for fails."""
    def failing(self) -> list[int]:
        """The smallest set known to fail."""

@final
class RowsLoad:
    """Rows of a data set being loaded into the tables of databases (crates/loading/src/plan.rs)."""

    def __new__(cls, plan_json: str) -> RowsLoad: ...
    def poll(self) -> str:
        """How the load stands."""
    def stop(self) -> None:
        """End after the chunks that are under way."""
    def finish(self, timeout_s: float) -> str:
        """Stop, wait, and report as `poll` does."""

@final
class ChunkRows:
    """The rows of a chunk as columns in Arrow's layout, for column stores in this process."""

    def __new__(cls, kind: str, scale: int, seed: int, chunk: tuple[str, int, int]) -> ChunkRows:
        """Open a chunk of `chunks_of`, or a set of refresh function 1, `("rf1", set, 1)`.

        Raises UsageError where there is no such kind, scale or chunk.
        """
    def next_batch(
        self, rows_max: int
    ) -> tuple[str, int, list[tuple[str, str, int, ColumnBuffer, ColumnBuffer | None, ColumnBuffer | None]]] | None:
        """Table, number of rows and columns of the next rows, all of one table; None at the end.

        A column is its name; its type (int64, decimal64, string, date32, or timestamp in microseconds); digits after
        the point; values; of strings their offsets; and the bits of the rows that are not null, unless none is. There
        are `rows_max` rows, fewer at the end of a table, or some more where the last key has several. Other threads run
        meanwhile. Raises UsageError for other numbers of rows than 1 to 1,000,000.
        """

@final
class ColumnBuffer:
    """Memory of a column, readable through the buffer protocol, of which types know only from Python 3.12 on."""

@final
class OltpRun:
    """Users at work on databases."""

    def __new__(cls, plan_json: str) -> OltpRun: ...
    def poll(self) -> str:
        """How the run stands, and the ticks completed since the last poll."""
    def measure_from(self, tick: int) -> None:
        """Forget the ticks before this one."""
    def point(self, from_tick: int, to_tick: int) -> str:
        """Figures of the complete ticks `from_tick..to_tick`."""
    def acknowledged(self) -> str:
        """What was acknowledged lately, where the workload keeps it."""
    def stop(self) -> None:
        """End after the transactions that are under way."""
    def finish(self, timeout_s: float) -> str:
        """Stop, wait for what is under way, and report as `poll` does."""

@final
class StatementLog:
    """Logs of statements, read one after the other and sorted by sessions."""

    def __new__(cls, options_json: str) -> StatementLog: ...
    def open(self, path: str | PathLike[str]) -> str:
        """Open the next log; gives its format. Raises UsageError where it cannot be read or is none."""
    def read_some(self, bytes: int) -> bool:
        """Read about as many bytes of the log that was opened last; false at its end."""
    def finish(self) -> str:
        """Sort what was read; gives what it holds as JSON text. Raises UsageError where there is nothing to replay."""

@final
class StatementReplay:
    """The sessions of a log at work on a database."""

    def __new__(cls, log: StatementLog, plan_json: str) -> StatementReplay: ...
    def poll(self) -> str:
        """How the replay stands, and the ticks completed since the last poll."""
    def measure_from(self, tick: int) -> None:
        """Forget the ticks before this one."""
    def point(self, from_tick: int, to_tick: int) -> str:
        """Figures of the complete ticks `from_tick..to_tick`."""
    def acknowledged(self) -> str:
        """None: a replay keeps no acknowledged transactions."""
    def told(self) -> str:
        """What became of the statements, as JSON text."""
    def stop(self) -> None:
        """End after the statements that are under way."""
    def finish(self, timeout_s: float) -> str:
        """Stop, wait for what is under way, and report as `poll` does."""

def allocate(descriptor: int, path: str | PathLike[str], size_bytes: int) -> None:
    """Give an open file its size and reserve the space; errors name the path."""

def array_usable_bytes(raid_json: str, active_disks: int, disk_bytes: int) -> int:
    """Data bytes that RAID sets hold on disks of so many usable bytes. Raises UsageError for impossible sets."""

def build_info() -> dict[str, str]:
    """How the module was built."""

def file_identity(descriptor: int) -> tuple[int | None, int | None, int | None]:
    """Time of birth in ns, generation and disk sequence of an open file or device, as far as they are known."""

def first_foreign(descriptor: int, offsets: Sequence[int]) -> int | None:
    """First of some places in an open file, of 8 KiB each, whose bytes Assay did not write."""

def chunks_of(kind: str, scale: int, shape: str = "{}") -> list[tuple[str, int, int]]:
    """Kind, unit and part of the chunks of a data set of a scale, in the order in which they are loaded.

    Raises UsageError where there is no such kind or scale.
    """

def examine_journal(plan_json: str) -> None:
    """Refuse a crash journal that cannot be read or is of another target."""

def oltp_serial(plan_json: str, steps: int, step_ns: int) -> dict[str, tuple[int, int]]:
    """Run one user for so many steps on a clock of numbers, a transaction a step and what follows from it.

    Gives by transaction how many were committed, and how many the user rolled back. The same plan runs the same
    transactions with the same times on every database.
    """

def oltp_sql(kind: str, dialect: str, file: str) -> list[tuple[str, str]]:
    """The named statements of a file of a transactional workload's SQL in a dialect, in order.

    Raises UsageError where there is no such kind or file.
    """

def check_scripts(plan_json: str) -> None:
    """Refuse scripts in pgbench's language that cannot run: `scripts`, `defines` and `protocol` of a plan, as JSON.

    Raises UsageError with the script and its line.
    """

def sql_statements(name: str, text: str) -> list[str]:
    """The statements of a file of SQL, in order. Raises UsageError where a line begins with a backslash."""

def reliability(request_json: str) -> str:
    """How likely an array loses data (docs/reliability.md). Raises UsageError for impossible inputs."""

def row_counts(kind: str, scale: int, shape: str = "{}") -> dict[str, int]:
    """Rows of each table of a data set of a scale; of tables whose rows are drawn the expected number.

    The scale of `tpcc` counts warehouses, that of `tpch` thousandths, that of `brokerage` customers; its shape is an
    object with `days` and `news_bytes`. Raises UsageError where there is no such kind or
    scale.
    """

def tpch_answer(query: int) -> str:
    """The published validation answer to a query, 1 to 22, at scale 1.

    A line of column names, then rows, with `|` between cells. Raises UsageError for other numbers.
    """

def tpch_refresh_keys(scale: int, set: int, function: int = 2) -> tuple[int, int, int]:
    """Sequence, first and last key of the orders that a refresh function inserts (1) or deletes (2) in a set.

    The orders are those from the first to the last key of which `key // 8 % 4` is the sequence: keys of other sequences
    lie between. Sets count from 1; after set 4000 the orders are those of the load. The scale counts thousandths.
    Raises UsageError for what is none.
    """

def verify_memory(plan_json: str) -> int:
    """Bytes the expected state and the buffers of a plan need."""

def uring_refusal() -> str | None:
    """Why io_uring cannot be used here, or None."""
