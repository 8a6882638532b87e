"""Runs and recordings below some folders: what a list says of each, and where it lies.

A folder of runs may come from anywhere. Its names never become paths: a run is asked for by a number made of its name,
and found by listing again.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict, cast

from assay.base.errors import AssayError
from assay.base.paths import printable
from assay.record import live
from assay.record.flight_segments import segment_names
from assay.record.folder import Folder
from assay.record.judgement import standing_counts, standing_word, verdict_of
from assay.record.kept_file import NOTHING, FileStamp, file_stamp
from assay.record.repeats import is_run, runs_in
from assay.record.run_folder import LOCK_NAME, MANIFEST_NAME, POINTS_NAME, RunFolder
from assay.record.titles import load_title, run_title, target_on_host, told_apart, whole_title

if TYPE_CHECKING:
    from assay.record.types import Manifest, VerdictLine

LISTED_BYTES_MAX = 4 * 2**20
"""A larger manifest is not read for the list; the run's own page reads it in another process."""
TEXT_MAX = 200
REPORTS = ("report.html", "report.pdf", "paper.html", "paper.pdf")
LOCK_BYTES_MAX = 300
START_SLACK_S = 2.0
"""Clocks of a run and of the page are read at different times."""


class RunPlace(NamedTuple):
    """Where a run lies: the folder that holds it, and its own name."""

    id: str
    path: Path


class Stamp(NamedTuple):
    """Which state of a run's files was read."""

    manifest: FileStamp
    points: FileStamp
    live: FileStamp
    recording: FileStamp


class RunHeadline(TypedDict):
    """What a manifest says in a list: times in seconds since 1970, and how many limits are met, missed and unknown.

    `target` and `load` are in words; `named` is the title that the run was given. Findings of `notices` are counted,
    those of the verdict are not among them.
    """

    verb: str
    kinds: list[str]
    title: str
    named: str
    target: str
    load: str
    status: str
    started_s: float | None
    ended_s: float | None
    met: int
    missed: int
    unknown: int
    notices: int
    headline: str
    error: str
    is_recording: bool


class RunListed(RunHeadline):
    """A run in a list; `run_id` is what its manifest calls it.

    `target_id` is the number of its target: of its words, or of the recording itself.
    """

    id: str
    run_id: str
    target_id: str
    name: str
    folder: str


class RunRow(RunListed):
    """A run in a list at this moment: whether it goes on, and the names of its reports."""

    live: bool
    reports: list[str]


class _Kept(NamedTuple):
    """A run as it was read, and its title with whole paths."""

    stamp: Stamp
    row: RunListed
    whole_title: str


class Runs:
    """Runs below some folders; what was read is kept until its files change.

    Parameters
    ----------
    roots
        Folders that hold runs, or are one.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = [Path(root) for root in roots]
        self._rows: dict[str, _Kept] = {}
        # The list is read by several threads.
        self._reading = threading.Lock()

    @property
    def folders(self) -> list[str]:
        """The folders that are looked at, printable."""
        return [printable(root)[-TEXT_MAX:] for root in self._roots]

    def places(self) -> list[RunPlace]:
        """Every run and recording there is at this moment."""
        found: dict[str, RunPlace] = {}
        for root in self._roots:
            for path in _runs_in(root):
                place = RunPlace(id_of(path), path)
                found.setdefault(place.id, place)
        return list(found.values())

    def measured(self) -> list[RunPlace]:
        """Every run that measured something and could be read; no recording."""
        return [
            place
            for place in self.places()
            if not (kept := self._kept(place).row)["is_recording"] and not kept["error"]
        ]

    def find(self, run_id: str) -> RunPlace | None:
        """A run by its number; None where it is not there, or there no more."""
        return next((place for place in self.places() if place.id == run_id), None)

    def rows(self) -> list[RunRow]:
        """What a list says of every run, the newest first; the titles of two files are never alike."""
        places = self.places()
        kept = [self._kept(place) for place in places]
        titles = told_apart([one.row["title"] for one in kept], [one.whole_title for one in kept])
        rows = [_shown(place, one, title) for place, one, title in zip(places, kept, titles, strict=True)]
        known = {place.id for place in places}
        with self._reading:
            self._rows = {key: kept for key, kept in self._rows.items() if key in known}
        return sorted(rows, key=lambda row: (row["started_s"] or 0.0, row["name"]), reverse=True)

    def measures(self) -> bool:
        """Whether a run goes on; recordings only look."""
        return any(row["live"] and not row["is_recording"] for row in self.rows())

    def of_process(self, process: int, since_s: float) -> str | None:
        """Number of the newest run that a process of this host began since then; None before its folder is there."""
        holder = f"process {process} on {socket.gethostname()}\n".encode()
        recent = {row["id"] for row in self.rows() if (row["started_s"] or since_s) >= since_s - START_SLACK_S}
        return next(
            (place.id for place in reversed(self.places()) if place.id in recent and _holder(place) == holder), None
        )

    def row(self, place: RunPlace) -> RunRow:
        """What a list says of one run."""
        return _shown(place, self._kept(place))

    def _kept(self, place: RunPlace) -> _Kept:
        stamp = stamp_of(place.path)
        with self._reading:
            kept = self._rows.get(place.id)
            if kept is None or kept.stamp.manifest != stamp.manifest or kept.stamp.recording != stamp.recording:
                kept = self._rows[place.id] = _Kept(stamp, *_row(place))
        return kept._replace(stamp=stamp)


def _holder(place: RunPlace) -> bytes:
    """The process that holds a run, or held it last, as its lock names it; empty where it names none."""
    try:
        folder = Folder.open(place.path)
        try:
            return folder.read(LOCK_NAME, LOCK_BYTES_MAX)
        finally:
            folder.close()
    except (OSError, ValueError):
        return b""


def id_of(path: Path) -> str:
    """Number of a run: of its path, so that two folders may hold runs of one name."""
    return hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:16]


def _runs_in(root: Path) -> list[Path]:
    """The folder itself where it is a run, and those in it, repeats too; links lead elsewhere and are left out."""
    return [*([root] if is_run(root) else []), *runs_in(root)]


def stamp_of(path: Path) -> Stamp:
    """State of a run's files."""
    files = [file_stamp(path / f"{name}{ending}") for name in segment_names(path) for ending in ("", "-wal")]
    known = [one for one in files if one != NOTHING]
    recording = (known[0][0], max(one[1] for one in known), sum(one[2] for one in known)) if known else NOTHING
    return Stamp(
        file_stamp(path / MANIFEST_NAME), file_stamp(path / POINTS_NAME), file_stamp(path / live.NAME), recording
    )


def is_live(stamp: Stamp, now_ns: int | None = None) -> bool:
    """Whether a run goes on: it says so itself, twice a second; a recording is written every five."""
    now_ns = time.time_ns() if now_ns is None else now_ns
    newest_ns = max(stamp.live[1], stamp.recording[1])
    return newest_ns > 0 and now_ns - newest_ns < live.STALE_S * 1e9


def live_of(path: Path) -> dict[str, object] | None:
    """What a run that goes on says of itself; None where it says nothing, or nothing that can be read."""
    try:
        folder = Folder.open(path)
        try:
            told = json.loads(folder.read(live.NAME, live.BYTES_MAX))
        finally:
            folder.close()
    except (OSError, ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def reports_of(path: Path) -> list[str]:
    """Reports that lie in a run."""
    return [name for name in REPORTS if file_stamp(path / name) != NOTHING]


def _shown(place: RunPlace, kept: _Kept, title: str = "") -> RunRow:
    row: RunListed = {**kept.row, "title": title or kept.row["title"]}
    return {**row, "live": is_live(kept.stamp), "reports": reports_of(place.path)}


def _row(place: RunPlace) -> tuple[RunListed, str]:
    row: RunListed = {
        "id": place.id,
        "run_id": "",
        "target_id": place.id,
        "name": printable(place.path.name or place.path)[:TEXT_MAX],
        "folder": printable(place.path.parent)[-TEXT_MAX:],
        "verb": "",
        "kinds": [],
        "title": "",
        "named": "",
        "target": "",
        "load": "",
        "status": "",
        "started_s": None,
        "ended_s": None,
        "met": 0,
        "missed": 0,
        "unknown": 0,
        "notices": 0,
        "headline": "",
        "error": "",
        "is_recording": False,
    }
    if file_stamp(place.path / MANIFEST_NAME)[2] > LISTED_BYTES_MAX:
        return {**row, "status": "not read", "error": "its run.json is too large for the list"}, ""
    try:
        with RunFolder.open(place.path) as folder:
            manifest = cast("Manifest", folder.manifest)
            told = _told(manifest)
            target_id = place.id if told["is_recording"] else _target_id(manifest, place)
            run_id = _text(manifest.get("run_id")) or row["name"]
            return {**row, **told, "run_id": run_id, "target_id": target_id}, whole_title(manifest)
    except (AssayError, OSError, ValueError) as error:
        return {**row, "status": "not readable", "error": " ".join(str(error).split())[:TEXT_MAX]}, ""


def _target_id(manifest: Manifest, place: RunPlace) -> str:
    """Number of a target: of its whole words, so that two folders of one end are two targets."""
    words = target_on_host(manifest, None)
    return hashlib.sha256(words.encode(errors="replace")).hexdigest()[:16] if words else place.id


def _told(manifest: Manifest) -> RunHeadline:
    """What a manifest says, as far as it is what it should be."""
    verdict = verdict_of(manifest)
    words, counts = [standing_word(line) for line in verdict], standing_counts(verdict)
    recording = manifest.get("recording")
    started, ended = manifest.get("started_utc_ns"), manifest.get("ended_utc_ns")
    if isinstance(recording, Mapping):
        started = recording.get("from_utc_ns") or started
        ended = recording.get("to_utc_ns") or ended
    parts = [part.get("plan") or {} for part in manifest.get("parts") or [] if isinstance(part, Mapping)]
    kinds = dict.fromkeys(plan.get("kind") for plan in parts if isinstance(plan, Mapping))
    worst = next((word for word in ("missed", "unknown") if word in words), None)
    return {
        "verb": _text(manifest.get("verb")),
        "kinds": [_text(kind) for kind in kinds if kind],
        "title": run_title(manifest),
        "named": _text(manifest.get("title")),
        "target": _text(target_on_host(manifest)),
        "load": _text(load_title(manifest)),
        "status": _text(manifest.get("status")),
        "started_s": _seconds(started),
        "ended_s": _seconds(ended),
        "met": counts["limit", "met"] + counts["check", "met"],
        "missed": counts["limit", "missed"] + counts["check", "missed"],
        "unknown": counts["limit", "unknown"] + counts["check", "unknown"],
        "notices": len(manifest.get("notices") or []),
        "headline": _text(_headline(verdict, worst)),
        "error": _text(manifest.get("error")),
        "is_recording": isinstance(recording, Mapping),
    }


def _headline(verdict: Sequence[VerdictLine], word: str | None) -> str:
    """The line that is furthest from its limit among those of this word, and its question where there are several."""
    own = [line for line in verdict if word is None or standing_word(line) == word]
    if not own:
        return ""
    limit = str(own[0].get("limit") or "")
    alike = [line for line in own if word == "missed" and line.get("limit") == limit] or own[:1]
    line = max(alike, key=lambda one: (1 if "<" in limit else -1) * float(one.get("value") or 0.0))
    meaning, question = str(line.get("meaning") or ""), str(line.get("question") or "")
    several = len({one.get("question") for one in verdict}) > 1
    return f"{question}: {meaning}" if several and question and meaning else meaning or question


def _text(value: object) -> str:
    text = printable(str(value or ""))
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def _seconds(utc_ns: object) -> float | None:
    return utc_ns / 1e9 if isinstance(utc_ns, int | float) and utc_ns > 0 else None
