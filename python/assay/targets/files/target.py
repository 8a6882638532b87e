"""Making volumes ready: sizes, space, files created and laid out with real data before anything is read from them."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from assay import _core
from assay.base.errors import AssayError, IoFailed, NotAnswering, NothingKept, OutOfSpace
from assay.base.progress import Display
from assay.base.units import format_bytes
from assay.targets.answering import answer_within
from assay.targets.arrays.live.process import ServedArray
from assay.targets.arrays.model.configuration import Configuration
from assay.targets.files.hold import Hold
from assay.targets.files.ownership import make
from assay.targets.files.safety import ExaminedVolume
from assay.targets.files.session import AnySession, drain
from assay.targets.files.volume import OpenVolume, begin_io, volume_plan
from assay.targets.host import volume_facts

STORED_IN_FILES = ("file", "faulty")
"""Kinds of volumes whose bytes are those of a file."""

MODEL_NOTICE = "a model: figures are predictions in virtual time, nothing was measured; its cache is part of the model"

LAYOUT_BLOCK_BYTES = 1 << 20
RESERVED_MIN_BYTES_PER_S = 20e6
"""A file system that reserves space slower than this is taken for one that does not answer."""
LAYOUT_DEPTH = 8

Progress = Callable[[str, float, float], None]
"""Called with the name of the file that is laid out, bytes done and bytes in all."""


@dataclass(kw_only=True)
class StorageTarget:
    """Examined volumes with the sizes they shall have."""

    examined: list[ExaminedVolume]
    sizes: dict[str, int]
    roles: dict[str, tuple[str, ...]]
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What of several of a role is to lie on a volume, by its name; empty where that is left open."""
    cache_bytes: int | None = None
    foreign: frozenset[str] = frozenset()
    """Names of files whose content is not Assay's and may only be read: never laid out, never grown."""
    database: bool = False
    """The volumes are for an imitated database, which writes all of them itself: they are not laid out."""
    sparse: frozenset[str] = frozenset()
    """Names of files that keep their holes: no space is reserved."""
    journal: Path | None = None
    """Where acknowledged writes are recorded, or were before a crash."""
    after_crash: bool = False
    array: Configuration | None = None
    """The modelled array that all volumes are on."""
    served: Sequence[ServedArray] = ()
    """The array that the run serves, which all volumes are on."""
    run: str | None = None
    """Id of the run, for the marks of files that it writes to."""
    holds: dict[str, Hold] = field(default_factory=dict)
    """Open, locked files and devices by the name of their volume; new files join once they are made."""
    may_format: frozenset[str] = frozenset()
    """Volumes that the command line allows to format as a whole."""
    created: list[ExaminedVolume] = field(default_factory=list)
    laid_out_bytes: dict[str, int] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    io_timeout_s: float = 0.0
    """Longest time that an I/O of a part may take; settling takes as long at most."""
    databases: tuple[()] = ()
    is_here: bool = True
    runs_on: Literal["storage", "databases"] = "storage"
    devices: dict[str, list[str]] = field(default_factory=dict)
    """None of databases: its own are recorded throughout."""
    _is_ready: bool = False

    @property
    def volumes(self) -> list[OpenVolume]:
        """The volumes, ready for load once laid out."""
        return [
            OpenVolume(
                spec=volume.spec,
                roles=self.roles[volume.spec.name],
                places=self.places.get(volume.spec.name, ()),
                size_bytes=self.sizes[volume.spec.name],
                sector_bytes=volume.logical_block_bytes or 512,
                hold=self.holds.get(volume.spec.name),
            )
            for volume in self.examined
        ]

    @property
    def unwritten(self) -> list[ExaminedVolume]:
        """Files that reads would not find real data in, and that may be written to."""
        return [
            volume
            for volume in self.examined
            if volume.spec.name not in self.foreign and _is_unwritten(volume, self.sizes[volume.spec.name])
        ]

    @property
    def to_lay_out(self) -> list[ExaminedVolume]:
        """Files to be filled before the work begins."""
        return [] if self.database else self.unwritten

    @property
    def layout_bytes(self) -> int:
        """How much laying out writes."""
        return sum(self.sizes[volume.spec.name] for volume in self.to_lay_out)

    @property
    def is_virtual(self) -> bool:
        """Whether it is a modelled array."""
        return self.array is not None

    @property
    def device_names(self) -> list[str]:
        """Block devices under it by kernel name; none under models."""
        if self.array is not None:
            return []
        return sorted({volume["device"] for volume in self.facts()["volumes"] if volume["device"]})

    def begin_run(self, run: str) -> None:
        """Take the id of the run, for the marks of files."""
        self.run = run

    def leave(self, display: Display) -> list[str]:
        """Nothing: it is held until the run ends."""
        return []

    def make_ready(self, io_timeout_s: float, display: Display, interrupt: threading.Event) -> None:
        """Lay out, once, the files that will be read and hold no data yet.

        Raises
        ------
        OutOfSpace, IoFailed, NotAnswering, Interrupted
            As `lay_out` raises them.
        """
        self.io_timeout_s = max(self.io_timeout_s, io_timeout_s)
        if self._is_ready or not self.to_lay_out:
            return
        self._is_ready = True
        display.phase("laying out")
        lay_out(self, io_timeout_s=io_timeout_s, interrupt=interrupt, progress=display.layout)

    def settle(self) -> None:
        """Say in the marks of files that the run has ended; where that fails, the file is examined closer next time."""
        for volume in self.examined:
            hold = self.holds.get(volume.spec.name)
            if hold is not None:
                with suppress(OSError, AssayError):
                    longest_s = reserving_most_s(self.sizes[volume.spec.name], self.io_timeout_s)
                    answer_within(longest_s, hold.settle, what=str(hold.path))

    def permissions_again(self, yes_destroy: Collection[str]) -> list[str]:
        """Options that the command to go on with a run needs, since no run folder keeps them."""
        options = []
        for volume in self.examined:
            hold, path = self.holds.get(volume.spec.name), volume.spec.path
            if path is None or volume.spec.name in self.foreign:
                continue
            if hold is None or not hold.is_ours:
                options += ["--overwrite", str(path)]
            if str(volume.path) in map(os.path.realpath, yes_destroy):
                options += ["--yes-destroy", str(path)]
            if volume.spec.name in self.may_format:
                options += ["--yes-format", str(path)]
        return options

    def lines(self) -> list[str]:
        """Its volumes in words."""
        new = {volume.spec.name for volume in self.to_lay_out}
        lines = []
        for volume in self.volumes:
            facts = [str(volume.spec.path or "no medium"), format_bytes(volume.size_bytes), "+".join(volume.roles)]
            facts += ["to be laid out"] if volume.spec.name in new else []
            lines.append(f"volume {volume.spec.name}: {', '.join(facts)}")
        return lines

    def document(self) -> dict[str, Any]:
        """Its volumes, for `--dry-run --json`."""
        volumes = [
            {
                "name": volume.name,
                "path": str(volume.spec.path),
                "roles": list(volume.roles),
                "size_bytes": volume.size_bytes,
            }
            for volume in self.volumes
        ]
        return {"volumes": volumes}

    def facts(self) -> dict[str, Any]:
        """The manifest's `target`."""
        volumes = []
        for volume in self.examined:
            name = volume.spec.name
            laid_out = self.laid_out_bytes.get(name, 0)
            facts = volume_facts(volume) | {
                "size_bytes": self.sizes[name],
                "role": "+".join(self.roles[name]),
                "bytes_laid_out": laid_out,
                "state": _state(volume, laid_out),
                "created_by_assay": volume.created_by_assay or not volume.exists,
                "identity": self.holds[name].identity().to_dict() if name in self.holds else None,
            }
            volumes.append(facts)
        if self.array is not None:
            return {"volumes": volumes, "cache_notice": MODEL_NOTICE, "array": self.array.facts()}
        served = {"served": [array.facts() for array in self.served]} if self.served else {}
        return {"volumes": volumes, "cache_notice": "caches between host and disk are not excluded", **served}


def _state(volume: ExaminedVolume, laid_out_bytes: int) -> str:
    if volume.spec.kind == "null":
        return "unknown"
    if volume.spec.kind == "model":
        return "fresh"
    if laid_out_bytes:
        return "fresh"
    return "written" if volume.created_by_assay and volume.fully_allocated else "unknown"


def _is_unwritten(volume: ExaminedVolume, size_bytes: int) -> bool:
    if volume.spec.kind not in STORED_IN_FILES:
        return False
    return not (volume.exists and volume.fully_allocated and (volume.size_bytes or 0) >= size_bytes)


def lay_out(target: StorageTarget, *, io_timeout_s: float, interrupt: threading.Event, progress: Progress) -> None:
    """Create missing files and fill all that need it with random data.

    Raises
    ------
    OutOfSpace, IoFailed, NotAnswering, Interrupted
        Files that were made for this run are removed first; a file that was there stays.
    """
    try:
        for volume in target.to_lay_out:
            _lay_out_one(volume, target, io_timeout_s, interrupt, progress)
    except BaseException as error:
        # A file on a device that does not answer cannot be removed without waiting for it, too.
        if not isinstance(error, NotAnswering):
            discard_created(target)
            restore_sizes(target)
        raise


def discard_created(target: StorageTarget) -> None:
    """Remove files this run made, unless another program has written to them since."""
    for volume in target.created:
        hold = target.holds.pop(volume.spec.name, None)
        if hold is not None:
            with suppress(OSError, AssayError):
                hold.check()
                hold.remove()
            hold.close()
    target.created.clear()


def restore_sizes(target: StorageTarget) -> None:
    """Cut files that were there before back to the size they had, if what lies beyond was written by this run alone."""
    for volume in target.unwritten:
        hold, size_bytes = volume.hold, volume.size_bytes
        if hold is not None and size_bytes is not None:
            with suppress(OSError, AssayError):
                hold.check()
                if os.fstat(hold.descriptor).st_size > size_bytes:
                    os.ftruncate(hold.descriptor, size_bytes)


def make_file(
    volume: ExaminedVolume, size_bytes: int, target: StorageTarget, *, emptied: bool = False, sparse: bool = False
) -> None:
    """Create a file where it is missing, mark it as Assay's, and reserve its space; what it holds beyond stays.

    Parameters
    ----------
    volume, size_bytes
        The file and the size it shall have at least.
    target
        Holds the file from then on; files that were missing are added to what it created.
    emptied
        What Assay made is emptied first, so that nothing of an earlier run is left.
    sparse
        No space is reserved.
    """
    path, hold = volume.path, target.holds.get(volume.spec.name)
    assert path is not None
    if hold is None:
        hold = Hold.adopt(make(path, target.run), path, file_system=volume.file_system)
        target.holds[volume.spec.name] = hold
        target.created.append(volume)
    hold.check()
    hold.is_ours = volume.created_by_assay or not volume.exists or volume.is_empty
    hold.run = target.run
    hold.begin_writing()
    if emptied and hold.is_ours:
        os.ftruncate(hold.descriptor, 0)
    size_bytes = max(size_bytes, os.fstat(hold.descriptor).st_size)
    if sparse:
        os.ftruncate(hold.descriptor, size_bytes)
    else:
        _core.allocate(hold.descriptor, path, size_bytes)


def reserving_most_s(size_bytes: int, io_timeout_s: float) -> float:
    """How long making a file may take: some file systems write zeros to reserve space."""
    return io_timeout_s + size_bytes / RESERVED_MIN_BYTES_PER_S


def _lay_out_one(
    volume: ExaminedVolume, target: StorageTarget, io_timeout_s: float, interrupt: threading.Event, progress: Progress
) -> None:
    path, size_bytes = volume.path, target.sizes[volume.spec.name]
    assert path is not None
    assert volume.spec.name not in target.foreign, "only what may be written to is laid out"
    longest_s = reserving_most_s(size_bytes, io_timeout_s)
    answer_within(longest_s, lambda: make_file(volume, size_bytes, target), what=str(path))
    spec = replace(volume.spec, path=path)
    hold = target.holds[spec.name]
    written = OpenVolume(
        spec=spec,
        roles=target.roles[spec.name],
        size_bytes=size_bytes,
        sector_bytes=volume.logical_block_bytes or 512,
        hold=hold,
    )
    block_bytes = next(
        size for size in (LAYOUT_BLOCK_BYTES, 65536, 4096, 512) if size_bytes % size == 0 and size <= size_bytes
    )
    begin_io([hold], writes=True)
    session = _core.Session(json.dumps(_writing_plan(written, block_bytes, io_timeout_s)))
    _watch(session, spec.name, size_bytes, io_timeout_s, interrupt, progress)
    hold.end_writing()
    target.laid_out_bytes[spec.name] = size_bytes


def _writing_plan(volume: OpenVolume, block_bytes: int, io_timeout_s: float) -> dict[str, Any]:
    """A plan of the compiled core that writes all of a volume once, from its begin to its end."""
    access = {
        "blocks": [{"bytes": block_bytes, "weight": 1.0}],
        "read_share": 0.0,
        "random_share": 0.0,
        "skew": {"kind": "uniform"},
        "region": {"start_bytes": 0, "end_bytes": volume.size_bytes},
        "align_bytes": block_bytes,
        "streams": 1,
        "stride_bytes": None,
        "duplicate_share": 0.0,
    }
    assert volume.hold is not None
    activity = {
        "name": "layout",
        "role": "data",
        "volumes": [0],
        "workers": 1,
        "direct": _takes_direct(volume.hold),
        "sync": "fsync",
        "sync_every": 1 << 30,
        "compressible_share": 0.0,
        "limit_bytes": volume.size_bytes,
        "load": {"kind": "closed", "queue_depth": LAYOUT_DEPTH},
        "access": access,
    }
    return {
        "volumes": [volume_plan(volume)],
        "activities": [activity],
        "backend": "auto",
        "seed": time.time_ns() & 0xFFFF_FFFF,
        "interval_ns": 100_000_000,
        "io_timeout_ns": round(io_timeout_s * 1e9),
    }


def _watch(
    session: AnySession,
    name: str,
    size_bytes: int,
    io_timeout_s: float,
    interrupt: threading.Event,
    progress: Progress,
) -> None:
    done_bytes = errors = 0
    while True:
        report = json.loads(session.poll())
        done_bytes += sum(tick["write"]["bytes"] for tick in report["ticks"])
        errors += sum(tick["error_count"] for tick in report["ticks"])
        progress(name, done_bytes, size_bytes)
        if interrupt.is_set():
            deque(drain(session, io_timeout_s), maxlen=0)
            raise NothingKept(f"interrupted while laying out {name}; what was made for this run is removed")
        if report["state"] == "not-answering":
            raise NotAnswering(f"{name}: stopped answering while being laid out: {report['detail']}")
        if report["state"] == "failed":
            raise IoFailed(f"{name}: laying out failed: {report['detail']}")
        if errors or report["state"] == "ended":
            break
        time.sleep(0.05)
    drained = json.loads(session.drained())["errors"]
    if errors or drained["count"]:
        session.finish(io_timeout_s)
        kinds = json.loads(session.drained())["errors"]["kinds"]
        if kinds["ENOSPC"]:
            raise OutOfSpace(f"{name}: the file system became full while laying out {format_bytes(size_bytes)}")
        raise IoFailed(
            f"{name}: writes failed while laying out ({errors or drained['count']} errors); see the kernel log"
        )
    progress(name, size_bytes, size_bytes)


def _takes_direct(hold: Hold) -> bool:
    try:
        os.close(os.open(f"/proc/self/fd/{hold.descriptor}", os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC))
    except OSError:
        return False
    return True
