"""What a stranger tried on the recorder, its files, its metrics and the importers."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.record.flight import read_recording, spreads, told_of
from assay.telemetry.columns import Reading
from assay.telemetry.flight import level as leveling
from assay.telemetry.flight import metrics
from assay.telemetry.flight import writer as writing
from assay.telemetry.flight.metrics import Exposition, serve
from assay.telemetry.flight.writer import KEEP_MIN_BYTES, FlightWriter
from assay.telemetry.importers import opening
from assay.telemetry.importers.importer import NotTaken, Options
from assay.telemetry.importers.reading import import_file
from assay_command import Bench

SECOND = 10**9
MINUTE = 60 * SECOND
BEGIN_NS = 1_800_000_000 * SECOND // (15 * MINUTE) * (15 * MINUTE)
IMPORTED = Path(__file__).parents[1] / "telemetry" / "imported"


class Crash(BaseException):
    """The process ends here."""


def add(writer: FlightWriter, number: int, *, step_s: int = 20) -> None:
    reading = Reading("sda", "ios_count", "delta", 1.0)
    t_ns = BEGIN_NS + number * step_s * SECOND
    writer.add([reading], t_ns=t_ns, interval_ns=step_s * SECOND, tier="storage", source="block")


def of_level(folder: Path, level: int) -> Counter[int]:
    """How often each time is rolled up at a level, over all files."""
    found: Counter[int] = Counter()
    for path in folder.glob("recording-*.sqlite"):
        connection = sqlite3.connect(path)
        rows = connection.execute("SELECT t_ns FROM rolled WHERE level = ?", (level,))
        found.update(t_ns for (t_ns,) in rows)
        connection.close()
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_recorder_that_ends_at_any_write_tells_each_sample_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A process ends between any two transactions, again and again: each sample that was written is told, and once."""
    chance = random.Random(seed)
    left = [0]
    real = leveling.LevelWriter.writing

    @contextlib.contextmanager
    def dying(self: leveling.LevelWriter) -> Iterator[leveling.LevelWriter]:
        left[0] -= 1
        if left[0] == 0:
            raise Crash
        with real(self) as found:
            yield found
        if left[0] == -1:
            raise Crash

    monkeypatch.setattr(leveling, "SPANS_NS", (10 * MINUTE, 40 * MINUTE, 10**18))
    monkeypatch.setattr(leveling.LevelWriter, "writing", dying)
    written, number = 0, 0
    while number < 3 * 90:
        left[0] = chance.randrange(1, 40) if chance.random() < 0.9 else 10**6
        writer = None
        try:
            writer = FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1")
            writer.begin({"host": "db1"})
            while number < 3 * 90:
                number += 1
                add(writer, number)
                writer.commit()
                written += 1
        except Crash:
            pass
        finally:
            if writer is not None:
                writer.close()

    assert not list(tmp_path.glob("*.damaged*"))
    rows = read_recording(tmp_path)
    times = Counter(rows.t_ns.tolist())
    assert set(times.values()) == {1}
    assert len(times) >= written
    for level in (1, 2):
        assert set(of_level(tmp_path, level).values()) <= {1}
    histogram = spreads(tmp_path, ["ios_count"])["db1", "block", "sda", "ios_count"].histogram
    assert sum(histogram.values()) == len(times)


def test_many_starts_go_on_in_one_file(tmp_path: Path) -> None:
    """A service that is started again each half a minute: no file for each start."""
    for number in range(1, 40):
        with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
            writer.begin({"host": "db1"})
            add(writer, number)
            writer.commit()
    assert len(list(tmp_path.glob("recording*.sqlite"))) == 3
    assert len(read_recording(tmp_path)) == 39


@pytest.mark.slow(reason="tests/telemetry/test_flight.py holds a budget")
def test_a_budget_that_is_made_smaller_holds(tmp_path: Path) -> None:
    """`--keep` is less than what is there: the oldest goes, and recording goes on."""
    chance = random.Random(3)

    def fill(writer: FlightWriter, begin: int, count: int) -> None:
        for number in range(begin, begin + count):
            found = [Reading(f"sd{one}", "ios_count", "delta", chance.random()) for one in range(1000)]
            t_ns = BEGIN_NS + number * 5 * SECOND
            writer.add(found, t_ns=t_ns, interval_ns=5 * SECOND, tier="storage", source="block")
            if number % 12 == 0:
                writer.commit()
        writer.commit()

    with FlightWriter(tmp_path, keep_bytes=512 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        fill(writer, 1, 1500)
    assert sum(path.stat().st_size for path in tmp_path.glob("recording*")) > 10 << 20
    with FlightWriter(tmp_path, keep_bytes=KEEP_MIN_BYTES, host="db1") as writer:
        writer.begin({"host": "db1"})
        fill(writer, 1501, 300)
        assert writer.bytes_used <= KEEP_MIN_BYTES
    assert max(read_recording(tmp_path).t_ns.tolist()) == BEGIN_NS + 1800 * 5 * SECOND
    assert not list(tmp_path.glob("*.damaged*"))


def test_a_folder_that_is_moved_is_recorded_into_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is renamed, and another takes its name: what is held is written to."""
    monkeypatch.setattr(leveling, "SPANS_NS", (MINUTE, 10**18, 10**18))
    folder, moved = tmp_path / "rec", tmp_path / "moved"
    folder.mkdir()
    with FlightWriter(folder, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        for number in range(1, 30):
            if number == 10:
                folder.rename(moved)
                folder.mkdir()
            add(writer, number)
            writer.commit()
    assert list(folder.iterdir()) == []
    assert len(read_recording(moved)) == 29


def test_a_folder_that_is_removed_is_said_and_ends_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "rec"
    folder.mkdir()
    writer = FlightWriter(folder, keep_bytes=64 << 20, host="db1")
    writer.begin({"host": "db1"})
    add(writer, 1)
    writer.commit()
    shutil.rmtree(folder)
    for number in range(2, 5):
        add(writer, number)
        with pytest.raises(writing.OutOfSpace, match="wait in memory"):
            writer.commit()
    writer.close()


@pytest.mark.parametrize("begin_s", [1, 4_000_000_000, 9_000_000_000])
def test_a_clock_far_off_is_recorded(tmp_path: Path, begin_s: int) -> None:
    """A host whose clock was never set, or is centuries ahead."""
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        for number in range(1, 200):
            reading = Reading("sda", "ios_count", "delta", 1.0)
            t_ns = (begin_s + number) * SECOND
            writer.add([reading], t_ns=t_ns, interval_ns=SECOND, tier="storage", source="block")
            writer.commit()
    told_of(tmp_path)
    # What no clock of the next century shows is left out.
    assert len(read_recording(tmp_path)) == (199 if begin_s < 2**32 else 0)


def test_values_that_no_counter_has_are_left_out(tmp_path: Path) -> None:
    """A driver that tells infinity or no number: minutes of it could not be made, and the recorder ended."""
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        for number in range(1, 300):
            found = [
                Reading("a", "x", "gauge", float("inf")), Reading("a", "y", "gauge", float("nan")),
                Reading("a", "z", "gauge", -1e300), Reading("a", "w", "gauge", 5e-324), Reading("a", "v", "delta", 1.0),
            ]  # fmt: skip
            t_ns = BEGIN_NS + number * SECOND
            writer.add(found, t_ns=t_ns, interval_ns=SECOND, tier="storage", source="block")
        writer.commit()
    assert {row["metric"] for row in read_recording(tmp_path).records()} == {"w", "v"}
    assert sum(spreads(tmp_path, ["w"])["db1", "block", "a", "w"].histogram.values()) == 299


def test_names_that_reorder_and_escape_are_told_as_they_are(tmp_path: Path) -> None:
    """Names of programs and mounts come from users: nothing of them is a command of the terminal."""
    name = "a\u202eb\x1b[31m\n; DROP TABLE meta; --\ud800'"
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        for number in range(1, 100):
            reading = Reading(name, "ios_count", "delta", 1.0)
            t_ns = BEGIN_NS + number * SECOND
            writer.add([reading], t_ns=t_ns, interval_ns=SECOND, tier="storage", source="block")
        writer.commit()
    assert len(read_recording(tmp_path)) == 99


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
def test_a_unit_is_never_written_through_a_link(bench: Bench, options: list[str]) -> None:
    """A link that leads nowhere has the unit's name: root made the file that it names."""
    victim, unit = bench.folder / "victim", bench.folder / "assay-record.service"
    unit.symlink_to(victim)

    outcome = bench.assay("record", "install", "--unit", unit, *options)

    assert outcome.code == (0 if options else 2)
    assert not victim.exists()
    assert unit.is_symlink() == (not options)


@pytest.mark.slow(reason="waits until half a question is given up")
def test_half_questions_hold_up_neither_metrics_nor_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 connections that ask nothing: each was a thread, of which a service has 32."""
    monkeypatch.setattr(metrics, "ANSWER_MAX_S", 0.5)
    server = serve(Exposition(), ("127.0.0.1", 0))
    address = ("127.0.0.1", int(server.server_address[1]))
    held = []
    try:
        before = threading.active_count()
        for _ in range(200):
            one = socket.create_connection(address, timeout=10)
            one.sendall(b"GET /met")
            held.append(one)
        assert threading.active_count() <= before + metrics.SCRAPERS_MAX + 1
        # The places of those that ask nothing are given back.
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(address, timeout=10) as asking:
                asking.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                if b"# EOF" in asking.recv(65536) + asking.recv(65536):
                    break
            threading.Event().wait(0.05)
        else:
            pytest.fail("no question is answered any more")
    finally:
        for one in held:
            one.close()
        server.shutdown()
        server.server_close()


def test_metrics_of_names_that_come_and_go_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of a new name each minute, for months."""
    monkeypatch.setattr(metrics, "METRICS_MAX", 50)
    exposition = Exposition()
    for number in range(1000):
        found = [
            Reading(f"p{number}", "read_bytes", "delta", 1.0),
            Reading(f"p{number}", "busy_share", "gauge", 1.0),
        ]
        exposition.add(found, interval_ns=SECOND, source="process")
    assert len(exposition.text().splitlines()) <= 110


@pytest.mark.parametrize("name", sorted(os.listdir(IMPORTED)))
def test_a_line_without_end_is_refused_before_memory_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A file of gigabytes that is one line: it was taken into memory twice before anything of it was looked at."""
    monkeypatch.setattr(opening, "LINE_LETTERS_MAX", 20_000)
    path = tmp_path / name
    path.write_bytes((IMPORTED / name).read_bytes() + b"1 " * 200_000)
    longest: list[int] = []
    real = opening._Lines.readline

    def readline(self: Any, size: int = -1, /) -> str:
        line: str = real(self, size)
        longest.append(len(line))
        return line

    monkeypatch.setattr(opening._Lines, "readline", readline)

    with contextlib.suppress(NotTaken):
        import_file(path, Options(zone_s=0), lambda _: None)

    assert max(longest, default=0) <= 20_000
