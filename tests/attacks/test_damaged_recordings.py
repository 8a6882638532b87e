"""Recordings that are damaged, planted or of others: what is whole of them is read, and the recorder goes on."""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
import stat
import struct
import time
import zlib
from array import array
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from unittest import mock

import pytest

from assay.base.errors import OutOfSpace, RefusedTarget, RunFolderError, UsageError
from assay.record import flight_segments
from assay.record.flight import NAME, read_recording, spreads, told_of
from assay.record.flight_window import catalogue, span, window
from assay.telemetry.columns import Reading
from assay.telemetry.flight import level as leveling
from assay.telemetry.flight.writer import FlightWriter
from assay_command import Bench
from slow_marks import mostly_slow

SECOND = 10**9
MINUTE = 60 * SECOND
BEGIN_NS = 1_800_000_000 * SECOND // (15 * MINUTE) * (15 * MINUTE)
KEEP = 64 << 20
FIRST = "recording-000001.sqlite"
MINUTES = "recording-minutes-000001.sqlite"
QUARTERS = "recording-quarters-000001.sqlite"
PAGE = 4096


def writer_of(folder: Path, now_ns: int = BEGIN_NS) -> FlightWriter:
    """A recorder that begins at a time."""
    writer = FlightWriter(folder, keep_bytes=KEEP, host="db1")
    with mock.patch.object(time, "time_ns", return_value=now_ns):
        writer.begin({"host": "db1"})
    return writer


def feed(writer: FlightWriter, seconds: int, begin_ns: int = BEGIN_NS, *, step_s: int = 1) -> int:
    """Samples of a device; when they end."""
    for number in range(1, seconds // step_s + 1):
        t_ns = begin_ns + number * step_s * SECOND
        readings = [
            Reading("sda", "ios_count", "delta", 7.0 * step_s), Reading("sda", "bytes", "delta", 8192.0 * number),
            Reading("sda", "busy_share", "gauge", number % 10 / 10),
        ]  # fmt: skip
        writer.add(readings, t_ns=t_ns, interval_ns=step_s * SECOND, tier="storage", source="block")
        if number % 5 == 0:
            writer.commit()
    writer.commit()
    return begin_ns + seconds * SECOND


def times_of(folder: Path) -> list[int]:
    return sorted(set(read_recording(folder).t_ns.tolist()))


def manifest(folder: Path) -> None:
    """Make a folder one that `assay report` and the others take."""
    told = {"schema_version": 1, "run_id": folder.name, "verb": "record", "status": "done", "error": None,
            "started_utc_ns": BEGIN_NS, "ended_utc_ns": None, "command": [], "target": {}, "parts": [],
            "recording": {"files": [], "hosts": ["db1"], "notices": []}}  # fmt: skip
    (folder / "run.json").write_text(json.dumps(told))


def noise(path: Path) -> None:
    """Pages of a file overwritten with what is none of them; its first, which holds the tables' names, stays."""
    with path.open("r+b") as file:
        for offset in range(PAGE, path.stat().st_size, PAGE):
            file.seek(offset)
            file.write(bytes((offset // PAGE * 31 + place * 17) % 251 for place in range(PAGE)))


def zeros(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(PAGE)
        file.write(b"\0" * (path.stat().st_size - PAGE))


def head(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\0" * 512)


def short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // PAGE * PAGE)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def other_tables(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.executescript("DROP TABLE fresh; CREATE TABLE fresh (t_ns, interval_ns, layout, data);")
    connection.close()


HARMS: list[Callable[[Path], None]] = [noise, zeros, head, short, other_tables]


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_a_recorder_sets_a_damaged_segment_aside_and_goes_on(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """The file was damaged between two recordings: the recorder ended in a traceback, and nothing could be read."""
    with writer_of(tmp_path) as writer:
        end_ns = feed(writer, 20 * 60)
    harm(tmp_path / FIRST)

    with writer_of(tmp_path, end_ns + 600 * SECOND) as writer:
        feed(writer, 180, end_ns + 600 * SECOND)
        notices = list(writer.notices)

    assert (tmp_path / f"{FIRST}.damaged").exists()
    assert any(FIRST in notice and "is damaged" in notice for notice in notices)
    told = told_of(tmp_path)
    assert any("is damaged" in notice for notice in told["notices"])
    assert told["gaps_utc_ns"]
    # What the samples told is told by the minute.
    times = times_of(tmp_path)
    assert times[0] <= BEGIN_NS + MINUTE
    assert times[-1] == end_ns + 780 * SECOND
    assert len(read_recording(tmp_path)) > 180 * 3


@pytest.mark.parametrize("harm", [noise, zeros, head, short], ids=lambda harm: harm.__name__)
def test_a_segment_that_is_damaged_while_it_is_written_to_costs_no_sample_after_it(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """Pages were overwritten under the recorder at work: it ended, with what it had in memory."""
    with writer_of(tmp_path) as writer:
        end_ns = feed(writer, 150)
        # What is in the log hides what is beneath it.
        writer._seconds.ask("PRAGMA wal_checkpoint(TRUNCATE)")
        harm(tmp_path / FIRST)
        writer._seconds.ask("PRAGMA shrink_memory")
        feed(writer, 300, end_ns)
        aside = sorted(path.name for path in tmp_path.glob("*.damaged"))

    if aside:
        assert aside == [f"{FIRST}.damaged"]
    times = times_of(tmp_path)
    assert [t_ns for t_ns in times if t_ns > end_ns] == [end_ns + number * SECOND for number in range(1, 301)]


@pytest.mark.parametrize("name", [MINUTES, QUARTERS])
def test_minutes_and_quarter_hours_are_set_aside_alike(tmp_path: Path, name: str) -> None:
    """A damaged file of a coarser level: samples go on, and what is rolled up next is rolled up once."""
    with writer_of(tmp_path) as writer:
        end_ns = feed(writer, 32 * 60, step_s=5)
    noise(tmp_path / name)

    with writer_of(tmp_path) as writer:
        end_ns = feed(writer, 32 * 60, end_ns, step_s=5)

    assert (tmp_path / f"{name}.damaged").exists()
    times = times_of(tmp_path)
    assert len(times) == 64 * 12
    assert all(after - before == 5 * SECOND for before, after in pairwise(times))
    found = spreads(tmp_path, ["ios_count"])["db1", "block", "sda", "ios_count"]
    assert sum(found.histogram.values()) == 64 * 12


def test_what_was_set_aside_is_never_removed_or_written_over(tmp_path: Path) -> None:
    """One damage after the other: each is kept under a name of its own."""
    for round_ in range(4):
        with writer_of(tmp_path) as writer:
            feed(writer, 10, BEGIN_NS + round_ * MINUTE)
            name = writer._seconds.name
        (tmp_path / name).write_bytes(b"no database" * 1000 + bytes([round_]))
        (tmp_path / f"{name}.damaged").write_bytes(b"of another")

    with writer_of(tmp_path) as writer:
        feed(writer, 10, BEGIN_NS + 10 * MINUTE)

    kept = [path.read_bytes() for path in tmp_path.glob("*.damaged-2")]
    assert sorted(content[-1] for content in kept) == [0, 1, 2, 3]
    assert all(path.read_bytes() == b"of another" for path in tmp_path.glob("*.damaged"))


@pytest.mark.parametrize("place", ["gone", "link", "folder", "pipe", "second name", "another file"])
def test_what_takes_the_place_of_a_segment_at_work_is_never_written_to(tmp_path: Path, place: str) -> None:
    """The file was removed, or exchanged under the recorder: samples went into a file that nothing leads to."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"of another" * 500)
    folder = tmp_path / "rec"
    folder.mkdir()
    with writer_of(folder) as writer:
        end_ns = feed(writer, 60)
        path = folder / FIRST
        path.unlink()
        if place == "link":
            path.symlink_to(victim)
        elif place == "folder":
            path.mkdir()
        elif place == "pipe":
            os.mkfifo(path)
        elif place == "second name":
            path.hardlink_to(victim)
        elif place == "another file":
            path.write_bytes(victim.read_bytes())
        feed(writer, 60, end_ns)

    assert victim.read_bytes() == b"of another" * 500
    assert [t_ns for t_ns in times_of(folder) if t_ns > end_ns] == [end_ns + n * SECOND for n in range(1, 61)]
    assert any("is damaged" in notice for notice in told_of(folder)["notices"])


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "of another", "second name"])
def test_a_planted_segment_is_neither_opened_nor_followed(tmp_path: Path, kind: str) -> None:
    """A name of a segment that leads elsewhere, before the recorder and before a reader."""
    victim = tmp_path / "victim.sqlite"
    folder = tmp_path / "rec"
    folder.mkdir()
    with writer_of(folder) as writer:
        feed(writer, 60)
    shutil.copy(folder / FIRST, victim)
    before = victim.read_bytes()
    planted = folder / "recording-000002.sqlite"
    if kind == "link":
        planted.symlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(planted)
    elif kind == "folder":
        planted.mkdir()
    elif kind == "second name":
        planted.hardlink_to(victim)
    else:
        shutil.copy(victim, planted)
        if os.geteuid():
            pytest.skip("files of another user take root")
        os.chown(planted, 12345, 12345)

    rows = read_recording(folder)
    if kind in ("link", "pipe", "folder"):
        assert any("recording-000002.sqlite" in text for text in rows.unread)
    with writer_of(folder) as writer:
        feed(writer, 60, BEGIN_NS + 10 * MINUTE)

    assert victim.read_bytes() == before
    assert times_of(folder)[-1] == BEGIN_NS + 11 * MINUTE


@pytest.fixture
def three_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording of three segments of samples, one of minutes and one of quarter hours."""
    monkeypatch.setattr(leveling, "SPANS_NS", (20 * MINUTE, 10**18, 10**18))
    with writer_of(tmp_path) as writer:
        feed(writer, 60 * 60, step_s=5)
    assert sorted(path.name for path in tmp_path.glob("recording-0*")) == [
        "recording-000001.sqlite", "recording-000002.sqlite", "recording-000003.sqlite",
    ]  # fmt: skip
    manifest(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "harm", mostly_slow(HARMS, HARMS[:2], reason="two harms are tried"), ids=lambda harm: harm.__name__
)
def test_readers_read_the_rest_and_say_what_they_could_not(three_days: Path, harm: Callable[[Path], None]) -> None:
    """A segment in the middle was damaged after it was written: every reader refused the whole recording."""
    whole = read_recording(three_days)
    harm(three_days / "recording-000002.sqlite")

    rows = read_recording(three_days)

    assert any("recording-000002.sqlite" in text and "\n" not in text for text in rows.unread)
    # Minutes take the place of what is lost: no time is told twice, and none is missing.
    own = sorted((row["t_ns"], row["interval_ns"]) for row in rows.records() if row["metric"] == "ios_count")
    assert all(before[0] == after[0] - after[1] for before, after in pairwise(own))
    assert (own[0][0] - own[0][1], own[-1][0]) == (BEGIN_NS, BEGIN_NS + 60 * MINUTE)
    assert {length for _, length in own} <= {5 * SECOND, MINUTE}
    assert MINUTE in {length for _, length in own}
    total = sum(row["value"] for row in rows.records() if row["metric"] == "ios_count")
    assert total == sum(row["value"] for row in whole.records() if row["metric"] == "ios_count")
    assert span(three_days)[1] == BEGIN_NS + 60 * MINUTE
    assert [one.source for one in catalogue(three_days)] == ["block"]
    _, lines = window(three_days, BEGIN_NS, BEGIN_NS + 60 * MINUTE, 60, lambda _, one: one.metric == "ios_count")
    assert [value for line in lines for value in line.values] == pytest.approx([7.0] * 60)


def test_without_minutes_quarter_hours_and_samples_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The minutes and a segment of samples are damaged: quarter hours take their place, and no time is told twice."""
    monkeypatch.setattr(leveling, "SPANS_NS", (40 * MINUTE, 10**18, 10**18))
    with writer_of(tmp_path) as writer:
        feed(writer, 120 * 60, step_s=10)
    noise(tmp_path / "recording-000002.sqlite")
    head(tmp_path / MINUTES)

    rows = [row for row in read_recording(tmp_path).records() if row["metric"] == "ios_count"]

    own = sorted((row["t_ns"], row["interval_ns"]) for row in rows)
    assert all(before[0] <= after[0] - after[1] for before, after in pairwise(own))
    assert {10 * SECOND, 15 * MINUTE} <= {length for _, length in own}


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_show_diagnosis_and_report_tell_the_damage(three_days: Path, bench: Bench) -> None:
    """All of them ended with "cannot be read"."""
    noise(three_days / "recording-000002.sqlite")

    shown = bench.assay("record", "show", three_days, "--last", "2h")
    found = bench.assay("diagnose", three_days, "--json")
    report = bench.assay("report", three_days, "--no-pdf")

    assert (shown.code, found.code, report.code) == (0, 0, 0)
    assert "recording-000002.sqlite" in shown.stdout.replace("\n", "")
    assert any("recording-000002.sqlite" in text for text in found.document["notices"])
    assert "recording-000002.sqlite" in (three_days / "report.html").read_text().replace("<wbr>", "")


def test_a_recording_of_which_no_file_is_whole_is_one_line(three_days: Path, bench: Bench) -> None:
    for path in three_days.glob("recording*.sqlite"):
        head(path)

    outcome = bench.assay("record", "show", three_days)

    assert outcome.code == 2
    assert len(outcome.stderr.strip().splitlines()) == 1
    assert "fault of Assay" not in outcome.stderr


def execute(path: Path, script: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    if values:
        connection.execute(script, values)
        connection.commit()
    else:
        connection.executescript(script)
    connection.close()


def block(times: list[tuple[int, int]], columns: list[list[float]]) -> bytes:
    parts = [struct.pack("<II", len(times), len(columns)), *(struct.pack("<qq", *one) for one in times)]
    return zlib.compress(b"".join([*parts, *(array("d", column).tobytes() for column in columns)]))


def rolled(text: str) -> bytes:
    return zlib.compress(text.encode())


BAD = "INSERT INTO blocks VALUES (1, 2, 1, 1, ?)"
HOSTILE: dict[str, tuple[str, str, tuple[object, ...]]] = {
    "a view": (FIRST, "CREATE VIEW v AS SELECT * FROM meta", ()),
    "a trigger": (FIRST, "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM blocks; END", ()),
    "a computed column": (FIRST, "ALTER TABLE meta ADD COLUMN more AS (zeroblob(1000000000))", ()),
    "text for times": (FIRST, "UPDATE sessions SET ended_ns = 'yesterday'", ()),
    "text for blocks": (FIRST, "UPDATE blocks SET end_ns = 'late', data = 'text'", ()),
    "times beyond": (FIRST, "UPDATE sessions SET ended_ns = 9223372036854775807", ()),
    "times before": (FIRST, "UPDATE sessions SET ended_ns = -9223372036854775808", ()),
    "nested notices": (FIRST, "INSERT OR REPLACE INTO meta VALUES ('notices', ?)", ("[" * 200_000,)),
    "notices of another kind": (FIRST, "INSERT OR REPLACE INTO meta VALUES ('notices', '{}')", ()),
    "a number of lost samples that is none": (FIRST, "INSERT OR REPLACE INTO meta VALUES ('lost', 'many')", ()),
    "nested layouts": (FIRST, "UPDATE layouts SET series = ?", ("[" * 200_000 + "]" * 200_000,)),
    "a layout of numbers": (FIRST, "UPDATE layouts SET series = '[1, 2]'", ()),
    "no layout": (FIRST, "DELETE FROM layouts", ()),
    "a bomb": (FIRST, BAD, (zlib.compress(b"\0" * (100 << 20)),)),
    "a block of a thousand million": (FIRST, BAD, (zlib.compress(struct.pack("<II", 10**9, 4000)),)),
    "not a number": (FIRST, BAD, (block([(BEGIN_NS + SECOND, SECOND)], [[math.nan], [math.inf], [-math.inf]]),)),
    "values beyond": (FIRST, BAD, (block([(BEGIN_NS + SECOND, SECOND)], [[1e308], [1e308], [-1e308]]),)),
    "intervals below": (FIRST, BAD, (block([(BEGIN_NS + SECOND, -(2**63))], [[1.0], [1.0], [1.0]]),)),
    "times that overflow": (FIRST, BAD, (block([(2**63 - 1, 2**63 - 1)], [[1.0], [1.0], [1.0]]),)),
    "a nested minute": (MINUTES, "UPDATE rolled SET data = ?", (rolled("[" * 100_000 + "]" * 100_000),)),
    "buckets beyond": (MINUTES, "UPDATE rolled SET data = ?",
                       (rolled("[[1,60000000000,0.0,1.0,1.0,1.0,[1000000000,1]],null,null]"),)),
    "infinite minutes": (MINUTES, "UPDATE rolled SET data = ?", (rolled("[[1,1,1,Infinity,1,1,[]]]"),)),
    "covered beyond": (MINUTES, "UPDATE rolled SET data = ?",
                       (rolled("[[1,99999999999999999999999999,0.0,1.0,1.0,1.0,[]],null,null]"),)),
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    mostly_slow(HOSTILE, {"text for times", "a bomb", "buckets beyond"}, reason="the same readers read the quick ones"),
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_hostile_recording_is_told_in_lines_and_never_a_fault(tmp_path: Path, bench: Bench, name: str) -> None:
    """Files of another form, from elsewhere: views, triggers, text for numbers, bombs, times that no clock shows."""
    file, script, values = HOSTILE[name]
    folder = tmp_path / "rec"
    folder.mkdir()
    with writer_of(folder) as writer:
        feed(writer, 20 * 60, step_s=5)
    manifest(folder)
    execute(folder / file, script, *values)

    for arguments in (["record", "show"], ["diagnose"], ["report", "--no-pdf"]):
        outcome = bench.assay(*arguments, folder)
        assert outcome.code in (0, 2), outcome.stderr
        assert "fault of Assay" not in outcome.stderr
        assert "Traceback" not in outcome.stderr
    rows = read_recording(folder).records()
    assert all(math.isfinite(row["value"]) and abs(row["value"]) < 1e24 for row in rows)
    # And a recorder goes on with it.
    with writer_of(folder) as writer:
        feed(writer, 60, BEGIN_NS + 40 * MINUTE)
    assert times_of(folder)[-1] == BEGIN_NS + 41 * MINUTE


def test_a_table_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows are announced than could be read: a file may take so many steps of SQLite's and no more."""
    with writer_of(tmp_path) as writer:
        feed(writer, 120)
    monkeypatch.setattr(flight_segments, "STEPS_MAX", 3)
    execute(
        tmp_path / FIRST,
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100000)"
        " INSERT INTO blocks SELECT x, x, 1, 1, x'00' FROM n;",
    )

    rows = read_recording(tmp_path)

    assert any("interrupted" in text for text in rows.unread)


def test_a_log_of_another_beside_a_file_is_not_read(tmp_path: Path) -> None:
    """SQLite reads the log beside a file: one that is a link, or endless, is refused before."""
    with writer_of(tmp_path) as writer:
        feed(writer, 60)
    (tmp_path / f"{FIRST}-wal").symlink_to("/etc/passwd")

    assert "is no log of a recording" in read_recording(tmp_path).unread[0]


def test_recordings_are_private_whatever_the_umask(tmp_path: Path) -> None:
    """Files of a recording were 0644 and its folder 0755: other users read what runs on the host."""
    folder = tmp_path / "rec"
    folder.mkdir(0o755)
    before = os.umask(0)
    try:
        with writer_of(folder) as writer:
            feed(writer, 120)
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    finally:
        os.umask(before)

    assert {f"{FIRST}-wal", f"{FIRST}-shm", "recorder.lock", MINUTES, QUARTERS} <= set(modes)
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_others_may_write_to_becomes_private_or_is_refused(tmp_path: Path) -> None:
    """A folder in a place that another user can exchange: what is opened as root could be anything."""
    if os.geteuid():
        pytest.skip("folders of other users take root")
    others = tmp_path / "others"
    others.mkdir(0o777)
    os.chmod(others, 0o777)
    (others / "rec").mkdir()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)

    for folder in (others / "rec", theirs, others):
        with pytest.raises(RefusedTarget):
            FlightWriter(folder, keep_bytes=KEEP, host="db1")


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "second name"])
def test_a_planted_lock_is_one_line(tmp_path: Path, kind: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    folder = tmp_path / "rec"
    folder.mkdir()
    lock = folder / "recorder.lock"
    {"link": lambda: lock.symlink_to(victim), "pipe": lambda: os.mkfifo(lock), "folder": lock.mkdir,
     "second name": lambda: lock.hardlink_to(victim)}[kind]()  # fmt: skip

    with pytest.raises(UsageError, match=r"recorder\.lock"):
        FlightWriter(folder, keep_bytes=KEEP, host="db1")

    assert victim.read_text() == "kept"


def old_recording(folder: Path) -> None:
    """A recording as earlier versions wrote it: all levels in one file."""
    with writer_of(folder) as writer:
        feed(writer, 40 * 60, step_s=5)
    connection = sqlite3.connect(folder / FIRST)
    for name in (MINUTES, QUARTERS):
        connection.execute("ATTACH ? AS other", (str(folder / name),))
        connection.execute("INSERT INTO rolled SELECT * FROM other.rolled")
        connection.commit()
        connection.execute("DETACH other")
    connection.close()
    (folder / FIRST).rename(folder / NAME)
    for path in folder.glob("recording-*"):
        path.unlink()


def test_a_recording_of_an_earlier_version_is_read_and_gone_on_with(tmp_path: Path) -> None:
    old_recording(tmp_path)
    before = times_of(tmp_path)

    with writer_of(tmp_path) as writer:
        feed(writer, 60, BEGIN_NS + 60 * MINUTE)

    assert before == [BEGIN_NS + number * 5 * SECOND for number in range(1, 481)]
    assert times_of(tmp_path) == [*before, *(BEGIN_NS + (3600 + number) * SECOND for number in range(1, 61))]
    assert (tmp_path / NAME).exists()


def test_an_earlier_recording_that_is_damaged_is_told_by_what_is_whole(tmp_path: Path) -> None:
    """Its samples are damaged, its minutes are not."""
    old_recording(tmp_path)
    execute(tmp_path / NAME, "UPDATE blocks SET data = x'00'")

    rows = read_recording(tmp_path)

    assert {row["interval_ns"] for row in rows.records()} <= {MINUTE, 5 * SECOND}
    assert NAME in rows.unread[0]


def test_a_full_disk_while_a_segment_is_set_aside_loses_nothing_that_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage, and no room for what takes its place: samples wait, and are written when there is room."""
    with writer_of(tmp_path) as writer:
        end_ns = feed(writer, 60)
        (tmp_path / FIRST).unlink()
        made = leveling.LevelWriter._made

        def full(_: leveling.LevelWriter) -> object:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(leveling.LevelWriter, "_made", full)
        with pytest.raises(OutOfSpace, match="No space left"):
            feed(writer, 5, end_ns)
        with pytest.raises(OutOfSpace):
            writer.commit()
        monkeypatch.setattr(leveling.LevelWriter, "_made", made)
        feed(writer, 55, end_ns + 5 * SECOND)

    assert [t_ns for t_ns in times_of(tmp_path) if t_ns > end_ns] == [end_ns + n * SECOND for n in range(1, 61)]


def test_readers_while_segments_follow_each_other_see_each_time_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment begins, and others are removed, between a reader's listing and its reading."""
    monkeypatch.setattr(leveling, "SPANS_NS", (MINUTE, 10**18, 10**18))
    listed = flight_segments.segments_in

    with writer_of(tmp_path) as writer:
        ends = [feed(writer, 300)]

        def late(folder: object) -> object:
            found = listed(folder)  # type: ignore[arg-type]
            if len(ends) == 1:
                ends.append(feed(writer, 300, ends[0]))
                (tmp_path / FIRST).unlink()
            return found

        monkeypatch.setattr(flight_segments, "segments_in", late)
        rows = read_recording(tmp_path).records()

    own = sorted((row["t_ns"], row["interval_ns"]) for row in rows if row["metric"] == "ios_count")
    assert all(before[0] <= after[0] - after[1] for before, after in pairwise(own))
    assert own[0][0] - own[0][1] == BEGIN_NS


def test_a_reader_that_holds_a_segment_does_not_keep_the_next_from_being_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leveling, "SPANS_NS", (MINUTE, 10**18, 10**18))
    with writer_of(tmp_path) as writer:
        end_ns = feed(writer, 30)
        reader = sqlite3.connect(tmp_path / FIRST, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM fresh").fetchone()
        feed(writer, 270, end_ns)
        assert writer._seconds.name > FIRST
        reader.close()

    assert len(times_of(tmp_path)) == 300


def test_a_newer_recording_is_refused(tmp_path: Path) -> None:
    with writer_of(tmp_path) as writer:
        feed(writer, 10)
    execute(tmp_path / FIRST, "INSERT OR REPLACE INTO meta VALUES ('version', '99')")

    with pytest.raises(UsageError, match="newer Assay"):
        FlightWriter(tmp_path, keep_bytes=KEEP, host="db1")


def test_no_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="cannot be read"):
        read_recording(tmp_path / "nothing")
