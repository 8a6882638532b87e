"""A trace as a file: an Arrow IPC stream of batches, compressed with zstd, and what it says of its whole behind it.

The stream's metadata hold the head as JSON under `assay.trace`. Columns are those of `COLUMNS`; times are counts of 100
ns, which loses nothing that a replay could keep and saves a third of the file. Each batch stands for itself, so a file
whose writer was killed is read up to its last whole batch. Behind the stream's end, where readers of Arrow stop, the
end follows as JSON, its length in four bytes and `MAGIC` (docs/trace.md).
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from assay.base.errors import UsageError
from assay.base.paths import create_anew, open_regular, printable
from assay.record import durable
from assay.record.arrow_messages import NUMBERED, check_head, messages, read_batch
from assay.record.rows import Integers, TextColumn
from assay.traces.head import TracedDevice, TraceEnd, TraceHead, TraceSpan
from assay.traces.ios import UNKNOWN_NS, Ios, joined_ios

COLUMNS = {
    "gap_100ns": "<u8",
    "queue_100ns": "<u4",
    "device_100ns": "<u4",
    "place_bytes": "<u8",
    "size_bytes": "<u4",
    "flags": "<u2",
    "device": NUMBERED,
    "process": NUMBERED,
}
"""Columns of a batch. `gap_100ns` is the time since the I/O before; of a batch's first, since the trace's origin."""

KEY = "assay.trace"
MAGIC = b"ASSAYTRC"
UNIT_NS = 100
UNKNOWN = 2**32 - 1
"""A time in `queue_100ns` or `device_100ns` that is not known; longer ones than seven minutes are one unit less."""
BATCH_IOS = 2**16
END_BYTES_MAX = 64 * 2**20
_WHOSE = "a trace"
_STREAM_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


# Writing


class TraceWriter:
    """Writes a trace; each batch reaches the operating system before `write` returns.

    The file must not exist. Leaving the `with` block without an error closes the trace; with one, the file keeps all
    whole batches and no end.

    Raises
    ------
    OutOfSpace, IoFailed, UsageError
        The file exists, or cannot be written.
    """

    def __init__(self, path: Path, head: TraceHead) -> None:
        self._path = path
        try:
            self._descriptor = create_anew(path)
        except FileExistsError:
            raise UsageError(f"{printable(path)} exists; choose another name for the trace") from None
        except OSError as error:
            raise durable.failure(error, f"cannot write {printable(path)}") from error
        self._spans: list[TraceSpan] = []
        self._waiting: list[Ios] = []
        self._last_ns = 0
        self.bytes_written = 0
        self.ios = 0
        self._put(_message(head, None))

    def write(self, ios: Ios) -> None:
        """Append I/Os, which were asked for no earlier than those before.

        Raises
        ------
        ValueError
            A time goes back, or a number is outside of its column.
        OutOfSpace, IoFailed
            Writing failed; what was written stays readable.
        """
        if not len(ios):
            return
        if ios.t_ns[0] < self._last_ns or (np.diff(ios.t_ns) < 0).any():
            raise ValueError("times of a trace go back")
        if ios.place_bytes.min() < 0 or ios.size_bytes.min() < 0 or ios.size_bytes.max() >= 2**32:
            raise ValueError("a place or a size of a trace is outside of its bounds")
        self._last_ns = int(ios.t_ns[-1])
        self.ios += len(ios)
        self._waiting.append(ios)
        if sum(map(len, self._waiting)) >= BATCH_IOS:
            self.flush()

    def flush(self) -> None:
        """Bring the I/Os that wait for a whole batch into the file."""
        ios, self._waiting = joined_ios(self._waiting), []
        for begin in range(0, len(ios), BATCH_IOS):
            part = ios.where(slice(begin, begin + BATCH_IOS))
            span = TraceSpan(at_bytes=self.bytes_written, ios=len(part),
                             begin_ns=int(part.t_ns[0]), end_ns=int(part.t_ns[-1]))  # fmt: skip
            self._put(_message(None, part))
            self._spans.append(span)

    def close(
        self,
        *,
        lost_events: int | None = None,
        windows: Sequence[tuple[int, int]] = (),
        devices: Sequence[TracedDevice] = (),
        notes: Sequence[str] = (),
    ) -> None:
        """Write what waits and the end, and bring the file to stable storage; see `TraceEnd`."""
        self.flush()
        end = TraceEnd(ios=self.ios, lost_events=lost_events, windows=tuple(windows), spans=tuple(self._spans),
                       devices=tuple(devices), notes=tuple(notes))  # fmt: skip
        told = end.model_dump_json().encode()
        self._put(_STREAM_END + told + struct.pack("<I", len(told)) + MAGIC)
        try:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
        except OSError as error:
            raise durable.failure(error, f"cannot write {printable(self._path)}") from error
        self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if self._descriptor < 0:
            return
        if kind is None:
            self.close()
            return
        with suppress(Exception):
            self.flush()
        os.close(self._descriptor)
        self._descriptor = -1

    def _put(self, data: bytes) -> None:
        try:
            durable.write_whole(self._descriptor, data)
        except OSError as error:
            raise durable.failure(error, f"cannot write {printable(self._path)}") from error
        self.bytes_written += len(data)


def _message(head: TraceHead | None, ios: Ios | None) -> bytes:
    """The message of a stream that says its head, or holds I/Os."""
    from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
    from arro3.io import write_ipc_stream

    kinds = {"<u8": DataType.uint64(), "<u4": DataType.uint32(), "<u2": DataType.uint16(),
             NUMBERED: DataType.dictionary(DataType.uint16(), DataType.string())}  # fmt: skip
    metadata = {KEY: head.model_dump_json()} if head is not None else {}
    schema = Schema([Field(name, kinds[kind], nullable=False) for name, kind in COLUMNS.items()], metadata=metadata)
    batches = []
    if ios is not None:
        numbers = [
            np.diff(ios.t_ns // UNIT_NS, prepend=0).astype("<u8"), _units(ios.queue_ns), _units(ios.device_ns),
            ios.place_bytes.astype("<u8"), ios.size_bytes.astype("<u4"), ios.flags.astype("<u2"),
        ]  # fmt: skip
        texts = [Array(list(column.texts), type=DataType.string()).cast(kinds[NUMBERED])
                 .take(Array.from_numpy(np.ascontiguousarray(column.numbers, np.int32)))
                 for column in (ios.device, ios.process)]  # fmt: skip
        batches.append(RecordBatch.from_arrays([*map(Array.from_numpy, numbers), *texts], schema=schema))
    sink = io.BytesIO()
    write_ipc_stream(RecordBatchReader.from_batches(schema, batches), sink, compression="zstd")
    head_message, *rest = messages(io.BytesIO(sink.getvalue()))
    return head_message if ios is None else b"".join(rest)


def _units(times_ns: Integers) -> npt.NDArray[np.uint32]:
    units = np.minimum(np.maximum(times_ns, 0) // UNIT_NS, UNKNOWN - 1)
    return np.where(times_ns < 0, UNKNOWN, units).astype("<u4")


# Reading


class Trace:
    """A trace that is read: its head, its end if it has one, and its I/Os a batch at a time.

    Attributes
    ----------
    path
        The file.
    head
        Where it is from.
    end
        What it says of its whole; None where its writer did not close it.
    """

    def __init__(self, path: Path, head: TraceHead, end: TraceEnd | None) -> None:
        self.path, self.head, self.end = path, head, end
        self._spans = end.spans if end is not None else None

    @property
    def spans(self) -> Sequence[TraceSpan]:
        """The batches in the file, in order; they are looked for where the trace has no end.

        Raises
        ------
        UsageError
            The file is damaged.
        """
        if self._spans is None:
            self._spans = tuple(self._scanned())
        return self._spans

    def batches(self, begin_ns: int = 0, end_ns: int = 2**63 - 1) -> Iterator[Ios]:
        """Yield the I/Os that were asked for from a time on and before another one, a batch at a time.

        Raises
        ------
        UsageError
            The file is damaged; batches before the damage were yielded.
        """
        with _opened(self.path) as file:
            for span in self.spans:
                if span.end_ns < begin_ns or span.begin_ns >= end_ns or not span.ios:
                    continue
                file.seek(span.at_bytes)
                found = _batch_of(messages(file), self.path)
                if found is None:
                    raise _damaged(self.path, "a batch is missing")
                ios, _ = found
                first, last = np.searchsorted(ios.t_ns, (begin_ns, end_ns))
                yield ios if (first, last) == (0, len(ios)) else ios.where(slice(int(first), int(last)))

    def _scanned(self) -> Iterator[TraceSpan]:
        """Batches of a trace without an end, up to the last whole one."""
        with _opened(self.path) as file:
            found = messages(file)
            at = len(next(found, b""))
            last_ns = 0
            while True:
                try:
                    one = _batch_of(found, self.path)
                except _TornError:
                    return  # Its writer was killed within this batch.
                if one is None:
                    return
                ios, size = one
                if len(ios):
                    if ios.t_ns[0] < last_ns:
                        raise _damaged(self.path, "its times go back")
                    last_ns = int(ios.t_ns[-1])
                    yield TraceSpan(at_bytes=at, ios=len(ios), begin_ns=int(ios.t_ns[0]), end_ns=last_ns)
                at += size


def is_trace(path: Path) -> bool:
    """Whether a path is a file that names itself a trace at its beginning; damaged ones are, too."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            return KEY.encode() in file.read(2**16)
    except OSError:
        return False


def read_trace(path: Path) -> Trace:
    """Open a trace.

    Raises
    ------
    UsageError
        There is none, or it is damaged.
    """
    with _opened(path) as file:
        try:
            told = check_head(next(messages(file), b""), COLUMNS, _WHOSE)
            head = TraceHead.model_validate_json(told.get(KEY, ""))
        except ValueError as error:
            reason = "it does not say where it is from" if isinstance(error, ValidationError) else str(error)
            raise UsageError(f"{printable(path)} is no trace of Assay: {reason}; `assay trace import` "
                             "reads traces of other programs") from None  # fmt: skip
        end = _end_of(file)
        if end is not None:
            head = head.model_copy(update={"devices": head.devices or end.devices, "notes": head.notes + end.notes})
        return Trace(path, head, end)


def _end_of(file: BinaryIO) -> TraceEnd | None:
    size = file.seek(0, os.SEEK_END)
    tail_bytes = 4 + len(MAGIC)
    if size < tail_bytes:
        return None
    file.seek(size - tail_bytes)
    tail = file.read(tail_bytes)
    (length,) = struct.unpack_from("<I", tail)
    if tail[4:] != MAGIC or length > min(size - tail_bytes, END_BYTES_MAX):
        return None
    file.seek(size - tail_bytes - length)
    try:
        end = TraceEnd.model_validate_json(file.read(length))
    except (ValueError, RecursionError):
        return None
    return end if all(span.at_bytes < size for span in end.spans) else None


class _TornError(UsageError):
    """A batch that is not whole."""


def _batch_of(found: Iterator[bytes], path: Path) -> tuple[Ios, int] | None:
    """The next batch and its bytes, or None at the stream's end."""
    try:
        read = read_batch(found, COLUMNS, _WHOSE)
    except ValueError as error:
        raise _TornError(str(_damaged(path, str(error)))) from None
    return None if read is None else (_ios_of(read[0], path), read[1])


def _ios_of(found: Mapping[str, npt.NDArray[Any] | TextColumn], path: Path) -> Ios:
    numbers = {name: one for name, one in found.items() if not isinstance(one, TextColumn)}
    device, process = found["device"], found["process"]
    assert isinstance(device, TextColumn)
    assert isinstance(process, TextColumn)
    # In doubles too, since sums of 64 bits may wrap around.
    if numbers["gap_100ns"].sum(dtype=np.float64) >= 2**63 / UNIT_NS or (numbers["place_bytes"] >= 2**63).any():
        raise _damaged(path, "a time or a place lies outside of its bounds")
    queue_ns, device_ns = (np.where(units == UNKNOWN, UNKNOWN_NS, units.astype(np.int64) * UNIT_NS)
                           for units in (numbers["queue_100ns"], numbers["device_100ns"]))  # fmt: skip
    return Ios(np.cumsum(numbers["gap_100ns"]).astype(np.int64) * UNIT_NS, queue_ns, device_ns,
               numbers["place_bytes"].astype(np.int64), numbers["size_bytes"].astype(np.int64),
               numbers["flags"].astype(np.uint16), device, process)  # fmt: skip


def _opened(path: Path) -> BinaryIO:
    try:
        return os.fdopen(open_regular(path), "rb")
    except OSError as error:
        raise UsageError(f"{printable(path)}: cannot be read: {error.strerror or error}") from None


def _damaged(path: Path, reason: str) -> UsageError:
    return UsageError(f"{printable(path)} is a damaged trace: {reason}")
