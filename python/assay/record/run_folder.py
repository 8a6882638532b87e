"""The run folder: one execution's manifest and points, kept so that a crash costs at most the running point.

`run.json` is replaced atomically; `points.jsonl` grows by one synced line a point. So the only bytes a crash can damage
are those of the last line, which readers ignore and the next append cuts away. One process at a time writes to a run:
the first write takes a lock that the kernel drops when the process ends, however it ends. Readers take no lock.

A run folder may come from anywhere, so it is foreign input: files are regular and of bounded size, JSON has the types
that readers count on (`assay.record.shapes`), and nothing is written through a link (`assay.record.folder`).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import socket
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from assay.base.errors import AssayError, IoFailed, RunFolderError, UsageError
from assay.base.log import LOG
from assay.base.paths import let_go, printable
from assay.record import durable
from assay.record.documents import parsed
from assay.record.flight import has_recording, told_of
from assay.record.folder import Folder

if TYPE_CHECKING:
    from assay.record.rows import Rows
    from assay.record.series import SeriesWriter
    from assay.record.shapes.point import Point

SCHEMA_VERSION = 1
"""Version of the manifest and points this Assay writes; it reads this one and all older ones."""

MANIFEST_NAME = "run.json"
RUN_EXAMPLE = "assay-results/20261120-101500-profile-a1b2c3"
POINTS_NAME = "points.jsonl"
LOCK_NAME = ".lock"
LOG_NAME = "log.jsonl"

MANIFEST_BYTES_MAX = 64 * 2**20
POINTS_BYTES_MAX = 4 * 2**30
POINT_BYTES_MAX = 16 * 2**20
"""A study of a thousand parts has a manifest of a megabyte, a point some 50 KB; what is larger is refused unread."""

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)
"""Some network file systems have no locks; a run there goes on without the guard rather than not at all."""


class RunFolder:
    """One run on disk, opened with `RunFolder.create` or `RunFolder.open`.

    Use it as a context manager, or call `close`, to let another process write to the run.
    """

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self._path = path
        self._manifest = manifest
        self._held: Folder | None = None
        self._read: _Read | None = None
        self._descriptors: dict[str, int] = {}
        self._close = weakref.finalize(self, _close_all, self._descriptors)

    @classmethod
    def create(cls, parent: str | os.PathLike[str], verb: str, manifest: Mapping[str, object]) -> RunFolder:
        """Make a new run folder and lock it for this process.

        Parameters
        ----------
        parent
            Where runs are kept; made if missing.
        verb
            The verb of the command line; part of the folder's name `<YYYYmmdd-HHMMSS>-<verb>-<6 hex>` (UTC).
        manifest
            Content of `run.json`; `schema_version`, `run_id` and `verb` are set here, and `status`, `error`,
            `started_utc_ns` and `ended_utc_ns` unless given.

        Raises
        ------
        UsageError
            The parent cannot be made or written to.
        OutOfSpace, IoFailed
            The file system failed; nothing is left behind.
        """
        started_ns = time.time_ns()
        return cls._begun(durable.made_folder(Path(parent), verb, started_ns), verb, manifest, started_ns)

    @classmethod
    def create_at(cls, path: str | os.PathLike[str], verb: str, manifest: Mapping[str, object]) -> RunFolder:
        """Make a run folder of this very path, which is not there yet or is empty, and lock it for this process.

        Raises
        ------
        UsageError
            It cannot be made or written to, or holds something.
        OutOfSpace, IoFailed
            The file system failed; nothing is left behind.
        """
        folder = Path(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise UsageError(f"{printable(folder)}: holds something that is no recording; give another folder")
        except OSError as error:
            raise UsageError(f"{printable(folder)}: cannot be made: {_reason(error)}") from error
        return cls._begun(folder, verb, manifest, time.time_ns())

    @classmethod
    def _begun(cls, path: Path, verb: str, manifest: Mapping[str, object], started_ns: int) -> RunFolder:
        own = {"schema_version": SCHEMA_VERSION, "run_id": path.name, "verb": verb}
        state = {"status": "running", "error": None, "started_utc_ns": started_ns, "ended_utc_ns": None}
        folder = cls(path, {})
        try:
            folder.lock()
            folder._replace_manifest({**own, **state, **manifest, **own})
            durable.sync_directory(path.parent)
        except BaseException:
            folder.close()
            shutil.rmtree(path, ignore_errors=True)
            raise
        return folder

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunFolder:
        """Open an existing run, to read it or to go on with it.

        Raises
        ------
        RunFolderError
            It is not a run folder, its manifest is damaged or holds what no run has, or a newer Assay wrote it; the
            message says which.
        """
        opened = cls(Path(path), {})
        opened._manifest = _read_manifest(opened._path, opened._folder())
        if has_recording(opened._path) and opened._manifest.get("recording") is not None:
            # What a flight recorder says of itself changes while it records.
            opened._manifest = {
                **opened._manifest,
                "recording": {**opened._manifest["recording"], **told_of(opened._path)},
            }
        return opened

    @property
    def path(self) -> Path:
        """Path of the folder."""
        return self._path

    @property
    def manifest(self) -> dict[str, Any]:
        """Content of `run.json` as last written by this object or read on opening; change it with `update`."""
        return self._manifest

    def lock(self) -> None:
        """Make sure that no other process writes to this run until `close`; every write does this by itself.

        Raises
        ------
        RunFolderError
            Another process is using the run, or something that is no lock file stands in its place.
        IoFailed
            The lock file cannot be made.
        """
        if "lock" in self._descriptors:
            return
        path = self._path / LOCK_NAME
        try:
            descriptor = self._folder().open_single(LOCK_NAME, os.O_RDWR)
        except OSError as error:
            raise _unwritable(error, path) from error
        try:
            _take_lock(descriptor, self._path)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptors["lock"] = descriptor
        if self._manifest:
            # Another process may have changed the manifest between `open` and this moment.
            self._manifest = _read_manifest(self._path, self._folder())

    def begin_log(self) -> None:
        """Have events written to `log.jsonl` of the run, until `LOG.end`; a log is no reason to fail."""
        with contextlib.suppress(OSError, AssayError):
            descriptor = self._folder().open_single(LOG_NAME, os.O_WRONLY | os.O_APPEND, 0o600)
            LOG.write_to(descriptor, written_bytes=os.fstat(descriptor).st_size)

    def update(self, **fields: Any) -> None:
        """Set top-level fields of the manifest and replace `run.json` atomically and durably.

        Raises
        ------
        RunFolderError
            Another process is using the run.
        OutOfSpace, IoFailed
            Writing failed; the manifest is unchanged, in memory and on disk.
        ValueError
            A value has no JSON form; a number that is not finite has none.
        """
        self.lock()
        self._replace_manifest({**self._manifest, **fields})

    def append_point(self, point: Mapping[str, object]) -> None:
        """Append one point to `points.jsonl`; when this returns, the point is on stable storage.

        Raises
        ------
        RunFolderError
            Another process is using the run, or a line of the file is damaged.
        OutOfSpace, IoFailed
            Writing failed; the points before this one are intact.
        ValueError
            A value has no JSON form; a number that is not finite has none.
        """
        line = _json_bytes(point, f"point {point.get('id', '')}".rstrip())
        self.lock()
        descriptor = self._points_descriptor()
        start = os.fstat(descriptor).st_size
        read = self._read if self._read is not None and self._read.end_bytes == start else None
        self._read = None
        try:
            durable.write_whole(descriptor, line)
            os.fsync(descriptor)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, start)
            # An interrupt may fall into the truncation, too: the next append looks at the whole file again.
            os.close(self._descriptors.pop("points"))
            if isinstance(error, OSError):
                raise durable.failure(error, f"cannot write {self._path / POINTS_NAME}") from error
            raise
        if read is not None:
            # Parsed back, so that no caller can change what a reader of the file gets.
            read.points.append(json.loads(line))
            self._read = replace(read, end_bytes=start + len(line), state=_state(self._folder()))

    def points(self, *, lean: bool = False) -> list[Point]:
        """All finished points, in the order they ended.

        The last line may have been cut off or torn by a crash before its `append_point` returned; it is left out.

        Parameters
        ----------
        lean
            Without histograms and the figures of each volume, which are most of a point's bytes.

        Raises
        ------
        RunFolderError
            A line before the last is damaged, or a line holds what no point has; the message has its number.
        """
        if lean:
            return _read_points(self._path / POINTS_NAME, self._folder(), _without_bulk).points
        return list(self._read_once().points)

    def _read_once(self) -> _Read:
        """All of the file, read again only where it is not the one that was read, or not as long."""
        if self._read is None or self._read.state != _state(self._folder()):
            self._read = _read_points(self._path / POINTS_NAME, self._folder())
        return self._read

    def whole_points(self) -> list[Point]:
        """All finished points, each with what comparing, exporting and going on count on; see `points`.

        Raises
        ------
        RunFolderError
            As `points`, and where a point lacks something.
        """
        from assay.record.shapes import check_whole

        found = self.points()
        check_whole(found, printable(self._path / POINTS_NAME))
        return found

    def check_goes_on(self) -> None:
        """Check that manifest and points have what going on with the run counts on.

        Raises
        ------
        RunFolderError
            Something is missing.
        """
        from assay.record.shapes import check_goes_on

        check_goes_on(self._manifest, printable(self._path / MANIFEST_NAME))
        for point in self.whole_points():
            if "engine" not in point:
                raise RunFolderError(f"{printable(self._path / POINTS_NAME)}: point {point['id']} lacks 'engine'")

    def series_writer(self) -> SeriesWriter:
        """Writer of this run's series; locks the run."""
        from assay.record.series import SeriesWriter

        self.lock()
        return SeriesWriter(self._path)

    def series(self) -> Rows:
        """All rows of this run's series so far, by time; see `assay.record.series.read_series`."""
        from assay.record.series import read_series

        return read_series(self._path)

    def close(self) -> None:
        """Release the lock and the folder; the object can still be read from and locks again when written to."""
        _close_all(self._descriptors)
        if self._held is not None:
            self._held.close()
            self._held = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _folder(self) -> Folder:
        """The folder, held from its first use to `close`: one that is put in its place meanwhile is not written to."""
        if self._held is None:
            self._held = _hold(self._path)
        return self._held

    def _replace_manifest(self, manifest: dict[str, Any]) -> None:
        data = _json_bytes(manifest, MANIFEST_NAME, indent=1)
        try:
            self._folder().replace(MANIFEST_NAME, data)
        except OSError as error:
            raise durable.failure(error, f"cannot write {printable(self._path / MANIFEST_NAME)}") from error
        # Parsed back, so that what is in memory is what a reader of the file gets, and no caller can change it.
        self._manifest = json.loads(data)

    def _points_descriptor(self) -> int:
        """Descriptor of `points.jsonl` for appending; what a crash cut off is truncated when it is opened."""
        if "points" in self._descriptors:
            return self._descriptors["points"]
        path = self._path / POINTS_NAME
        end_bytes = self._read_once().end_bytes
        try:
            descriptor = self._folder().open_single(POINTS_NAME, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise _unwritable(error, path) from error
        try:
            self._descriptors["points"] = descriptor
            if os.fstat(descriptor).st_size != end_bytes:
                os.ftruncate(descriptor, end_bytes)
                os.fsync(descriptor)
            self._folder().sync()
        except OSError as error:
            raise durable.failure(error, f"cannot write {path}") from error
        return descriptor


def _close_all(descriptors: dict[str, int]) -> None:
    while descriptors:
        let_go(descriptors.popitem()[1])


def _take_lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 300, 0).decode(errors="replace").strip() or "another process"
        raise RunFolderError(f"{path} is in use by {holder}; wait for it to end, or end it") from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise durable.failure(error, f"cannot lock {path / LOCK_NAME}") from error
    with contextlib.suppress(OSError):
        # The holder's name only makes a refusal clearer; a full file system is reported by what follows.
        os.ftruncate(descriptor, 0)
        durable.write_whole(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())


def _json_bytes(value: Mapping[str, object], what: str, indent: int | None = None) -> bytes:
    """One JSON document and a newline; ASCII, so that file names that are not Unicode come back as they were."""
    try:
        text = json.dumps(value, allow_nan=False, indent=indent)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} cannot be written as JSON: {error}") from error
    return text.encode("ascii") + b"\n"


def _hold(path: Path) -> Folder:
    try:
        return Folder.open(path)
    except OSError as error:
        shown = printable(path)
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            fault = "is not a folder" if path.exists() else "does not exist"
            raise RunFolderError(f"{shown} {fault}; name a run folder such as {RUN_EXAMPLE}") from None
        raise RunFolderError(f"{shown} cannot be read: {error.strerror}") from error


def _unwritable(error: OSError, path: Path) -> Exception:
    """What to raise where a file of a run cannot be written: a run that is no run, or a file system that failed."""
    if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EPERM):
        return RunFolderError(f"{printable(path)} cannot be written: {error.strerror}")
    return durable.failure(error, f"cannot write {printable(path)}")


def _read_manifest(path: Path, folder: Folder) -> dict[str, Any]:
    file = printable(path / MANIFEST_NAME)
    try:
        text = folder.read(MANIFEST_NAME, MANIFEST_BYTES_MAX)
    except FileNotFoundError:
        raise RunFolderError(_not_a_run(path)) from None
    except OSError as error:
        raise RunFolderError(f"{file} cannot be read: {_reason(error)}") from error
    try:
        manifest = parsed(text)
    except ValueError as error:
        raise RunFolderError(f"{file} is damaged, it is not JSON: {error}") from error
    version = manifest.get("schema_version") if isinstance(manifest, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise RunFolderError(f"{file} has no schema_version, so {printable(path)} is not a run folder of Assay")
    if version > SCHEMA_VERSION:
        raise RunFolderError(
            f"{printable(path)} was written by a newer Assay: its schema is {str(version)[:20]}, this one reads up to"
            f" {SCHEMA_VERSION}; update Assay"
        )
    from assay.record.shapes import check_manifest

    check_manifest(manifest, file)
    return dict(manifest)


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it is a link"
    return error.strerror or str(error)


def _not_a_run(path: Path) -> str:
    shown = printable(path)
    runs = sorted(found.parent for found in path.glob(f"*/{MANIFEST_NAME}"))
    if runs:
        such = printable(runs[-1])
        return f"{shown} has no {MANIFEST_NAME} but holds {len(runs)} run(s); name one of them, such as {such}"
    return f"{shown} has no {MANIFEST_NAME}, so it is not a run folder; name one, such as {RUN_EXAMPLE}"


def _without_bulk(point: dict[str, Any]) -> None:
    """Take out of a point what reports do not read: a run of thousands of points would not fit into memory."""
    point["volumes"] = []
    kept = [*(point.get("roles") or {}).values(), *(point.get("activities") or ())]
    for sides in (point, *kept):
        for side in ("read", "write", "total", "flush"):
            if sides.get(side):
                sides[side].pop("histogram", None)


@dataclass(frozen=True)
class _Read:
    """What was read of `points.jsonl`: its points, the bytes that hold them, and the state the file was in."""

    points: list[Point]
    end_bytes: int
    state: tuple[int, ...] | None


def _state(folder: Folder) -> tuple[int, ...] | None:
    """What changes with the content of `points.jsonl`; None where there is none."""
    try:
        found = os.stat(POINTS_NAME, dir_fd=folder.descriptor, follow_symlinks=False)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _read_points(path: Path, folder: Folder, reduce: Callable[[dict[str, Any]], None] | None = None) -> _Read:
    """Read the points of the file.

    Parameters
    ----------
    reduce
        Takes out of each point, once it is checked, what is not kept.
    """
    from assay.record.shapes import check_point

    shown = printable(path)
    try:
        file = os.fdopen(folder.open_regular(POINTS_NAME), "rb")
    except FileNotFoundError:
        return _Read([], 0, None)
    except OSError as error:
        raise RunFolderError(f"{shown} cannot be read: {_reason(error)}") from error
    state = _state(folder)
    points: list[Point] = []
    end_bytes = 0
    with file:
        if os.fstat(file.fileno()).st_size > POINTS_BYTES_MAX:
            raise RunFolderError(f"{shown} is larger than {POINTS_BYTES_MAX:,} bytes, which no run is")
        try:
            line = file.readline(POINT_BYTES_MAX)
            while line.endswith(b"\n"):
                # One line more is read first: only the last may be damaged.
                after = file.readline(POINT_BYTES_MAX)
                where = f"{shown} line {len(points) + 1}"
                try:
                    point = parsed(line)
                    if not isinstance(point, dict):
                        raise ValueError("it is not a JSON object")
                except ValueError as error:
                    if not after:
                        # A power cut may keep the end of a long line and lose the pages before it.
                        break
                    raise RunFolderError(f"{where} is damaged: {error}; remove the line to go on") from error
                check_point(point, where)
                if reduce is not None:
                    reduce(point)
                points.append(cast("Point", point))
                end_bytes += len(line)
                line = after
        except OSError as error:
            raise IoFailed(f"{shown} cannot be read: {error.strerror}") from error
    if len(line) == POINT_BYTES_MAX and not line.endswith(b"\n"):
        raise RunFolderError(
            f"{shown} line {len(points) + 1} is damaged: it is longer than {POINT_BYTES_MAX:,} bytes; remove the line"
            " to go on"
        )
    return _Read(points, end_bytes, state)
