"""The flight recorder's file: roll-ups merge exactly, the budget holds, what was committed survives, gaps stay gaps."""

from __future__ import annotations

import contextlib
import math
import random
import shutil
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.base.errors import OutOfSpace, RefusedTarget, RunFolderError, UsageError
from assay.record.flight import MINUTE_NS, NAME, read_recording, spreads, told_of
from assay.record.rolled import (
    STEPS_PER_DOUBLING,
    Rolled,
    SeriesKey,
    bucket_of,
    merge,
    middle_of,
    pack_block,
    pack_rolled,
    quantile,
    roll,
    unpack_block,
    unpack_rolled,
)
from assay.telemetry.columns import Reading
from assay.telemetry.flight import level as leveling
from assay.telemetry.flight import writer as writing
from assay.telemetry.flight.metrics import Exposition, parse_address
from assay.telemetry.flight.unit import unit_text
from assay.telemetry.flight.writer import KEEP_MIN_BYTES, FlightWriter

FIRST = "recording-000001.sqlite"

SECOND = 10**9
GAUGE, DELTA = SeriesKey("cpu", "", "user_share", "gauge"), SeriesKey("sda", "", "read_ios_count", "delta")
BEGIN_NS = 1_800_000_000 * SECOND // (15 * MINUTE_NS) * (15 * MINUTE_NS)

amounts = st.floats(min_value=0, max_value=1e12)


@given(st.floats(min_value=1e-9, max_value=1e15))
def test_a_bucket_knows_its_value_to_a_step(value: float) -> None:
    assert abs(math.log2(middle_of(bucket_of(value)) / value)) <= 1.01 / STEPS_PER_DOUBLING


@given(st.lists(amounts, min_size=1, max_size=60), st.lists(amounts, min_size=1, max_size=60))
def test_minutes_merge_to_what_all_seconds_together_are(left: list[float], right: list[float]) -> None:
    for series in (GAUGE, DELTA):
        whole = rolled(series, [*left, *right])
        merged = merge([rolled(series, left), rolled(series, right)], is_delta=series.kind == "delta")
        assert merged is not None
        assert whole is not None
        assert merged.histogram == whole.histogram
        assert (merged.intervals, merged.covered_ns, merged.least, merged.most) == (
            whole.intervals, whole.covered_ns, whole.least, whole.most,
        )  # fmt: skip
        assert math.isclose(merged.value, whole.value, rel_tol=1e-9, abs_tol=1e-9)


def rolled(series: SeriesKey, values: list[float]) -> Rolled | None:
    times = [(place * SECOND, SECOND) for place in range(1, len(values) + 1)]
    return roll([series], times, [values])[0]


def test_mean_latencies_weigh_by_their_ios() -> None:
    latency = SeriesKey("sda", "", "read_latency_mean_ns", "gauge")
    times = [(SECOND, SECOND), (2 * SECOND, SECOND)]

    found = roll([DELTA, latency], times, [[900.0, 100.0], [1e6, 11e6]])[1]

    assert found is not None
    assert found.value == pytest.approx(2e6)
    assert (found.least, found.most) == (1e6, 11e6)


@given(st.lists(st.one_of(st.none(), st.lists(amounts, min_size=1, max_size=20)), max_size=10))
def test_rolled_values_are_read_as_they_were_written(columns: list[list[float] | None]) -> None:
    values = [None if column is None else rolled(GAUGE, column) for column in columns]
    assert unpack_rolled(pack_rolled(values)) == values


@given(st.lists(st.lists(st.floats(allow_nan=False), min_size=3, max_size=3), max_size=8))
def test_blocks_are_read_as_they_were_written(columns: list[list[float]]) -> None:
    times = [(1, 1), (2, 1), (3, 1)]
    found_times, found = unpack_block(pack_block(times, columns))
    assert (found_times, [list(column) for column in found]) == (times, columns)


def test_a_percentile_comes_from_all_intervals() -> None:
    histogram: dict[int, int] = {}
    for value in [10.0] * 900 + [1000.0] * 100:
        histogram[bucket_of(value)] = histogram.get(bucket_of(value), 0) + 1

    assert quantile(histogram, 0.5) == pytest.approx(10.0, rel=0.05)
    assert quantile(histogram, 0.95) == pytest.approx(1000.0, rel=0.05)
    assert quantile({}, 0.5) is None


def device(place: int) -> str:
    return f"sd{chr(97 + place)}" if place < 26 else f"sd{place}"


def feed(
    writer: FlightWriter, minutes: int, *, begin_ns: int = BEGIN_NS, series: int = 3, step_s: int = 1,
    noise: Callable[[], float] = lambda: 0.0,
) -> int:  # fmt: skip
    """Samples of so many minutes, as a recorder writes them; when they end."""
    for number in range(minutes * 60 // step_s):
        t_ns = begin_ns + (number + 1) * step_s * SECOND
        found = [
            Reading(
                device(place), "read_ios_count", "delta", float((number * 7 + place * place) % 100 * step_s) + noise()
            )
            for place in range(series)
        ]
        found.append(Reading("cpu", "user_share", "gauge", number % 10 / 10))
        writer.add(found, t_ns=t_ns, interval_ns=step_s * SECOND, tier="storage", source="block")
        if number % (60 // step_s) == 5:
            writer.commit()
    writer.commit()
    return begin_ns + minutes * 60 * SECOND


def test_seconds_are_read_as_they_were_recorded(tmp_path: Path) -> None:
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        feed(writer, 3)

    rows = read_recording(tmp_path).records()

    assert len(rows) == 180 * 4
    assert {row["interval_ns"] for row in rows} == {SECOND}
    assert [row["value"] for row in rows if row["entity"] == "sda"][:3] == [0.0, 7.0, 14.0]


SMALL_BYTES = 2 * 2**20


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget that fills within hours of samples; a real one would take weeks of them."""
    monkeypatch.setattr(writing, "KEEP_MIN_BYTES", SMALL_BYTES)
    monkeypatch.setattr(writing, "LOG_BYTES", (2**17, 2**17, 2**17))
    monkeypatch.setattr(leveling, "SEGMENTS", 4)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("recording*"))


@pytest.mark.usefixtures("small_budget")
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_the_budget_is_never_exceeded_and_the_past_grows_coarse(tmp_path: Path) -> None:
    sizes = []
    with FlightWriter(tmp_path, keep_bytes=SMALL_BYTES, host="db1") as writer:
        writer.begin({"host": "db1"})
        begin_ns = BEGIN_NS
        for _ in range(10):
            begin_ns = feed(writer, 30, begin_ns=begin_ns, series=20, noise=random.Random(7).random)
            sizes.append(size_of(tmp_path))
            assert writer.bytes_used <= SMALL_BYTES

    assert max(sizes) <= SMALL_BYTES
    assert not list(tmp_path.glob("*.damaged*"))
    rows = read_recording(tmp_path).of(entity="sda").records()
    lengths = {row["interval_ns"] // SECOND for row in rows}
    assert {1, 60, 900} <= lengths
    # Rows of all levels follow each other without gap or overlap.
    own = sorted((row["t_ns"], row["interval_ns"]) for row in rows)
    assert own[-1][0] == begin_ns
    assert all(before[0] == after[0] - after[1] for before, after in pairwise(own))


def test_spread_holds_every_interval(tmp_path: Path) -> None:
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        feed(writer, 40)

    found = spreads(tmp_path, ["read_ios_count"])["db1", "block", "sda", "read_ios_count"]

    assert sum(found.histogram.values()) == 40 * 60
    assert found.most == 99.0


def test_a_gap_stays_a_gap(tmp_path: Path) -> None:
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        end_ns = feed(writer, 2)
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        feed(writer, 2, begin_ns=end_ns + 600 * SECOND)

    times = sorted({row["t_ns"] for row in read_recording(tmp_path).records()})

    assert max(after - before for before, after in pairwise(times)) == 601 * SECOND
    with sqlite3.connect(tmp_path / FIRST) as connection:
        assert connection.execute("select count(*) from sessions").fetchone() == (2,)


def test_a_restart_of_the_host_and_a_clock_that_went_back_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        feed(writer, 1, begin_ns=time.time_ns() - 3600 * SECOND)
    monkeypatch.setattr("assay.telemetry.flight.writer._boot", lambda: "another")
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        assert writer.notices == ["the host was restarted since the last sample"]
        feed(writer, 1, begin_ns=time.time_ns() + 3600 * SECOND)
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        assert "went back" in writer.notices[0]


def test_a_second_recorder_is_refused(tmp_path: Path) -> None:
    with (
        FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1"),
        pytest.raises(RefusedTarget, match="another recorder writes there"),
    ):
        FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1")


KILLED = """
import os, signal, sys
from pathlib import Path
from assay.telemetry.columns import Reading
from assay.telemetry.flight.writer import FlightWriter
writer = FlightWriter(Path(sys.argv[1]), keep_bytes=64 << 20, host="db1")
writer.begin({"host": "db1"})
for number in range(1, 200):
    reading = Reading("cpu", "user_share", "gauge", 0.5)
    writer.add([reading], t_ns=number * 10**9, interval_ns=10**9, tier="client", source="host")
    if number % 10 == 0:
        writer.commit()
    if number == 155:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_committed_survives_kill_9(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)

    assert done.returncode == -9
    assert len(read_recording(tmp_path)) == 150
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        feed(writer, 1)
    assert len(read_recording(tmp_path)) == 150 + 240


def test_samples_wait_in_memory_while_a_reader_holds_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "LOG_BYTES", (64 << 10,) * 3)
    monkeypatch.setattr(leveling, "LOCKED_MAX_S", 0.01)
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        feed(writer, 1)
        reader = sqlite3.connect(tmp_path / FIRST, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM blocks").fetchone()
        with pytest.raises(OutOfSpace, match="a reader holds the log"):
            feed(writer, 30, begin_ns=BEGIN_NS + 60 * SECOND)
        log = (tmp_path / f"{FIRST}-wal").stat().st_size
        with pytest.raises(OutOfSpace):
            writer.commit()
        assert (tmp_path / f"{FIRST}-wal").stat().st_size == log
        before = len(read_recording(tmp_path))
        reader.close()
        writer.commit()
        assert writer.lost_count == 0
    assert len(read_recording(tmp_path)) > before


def test_what_waits_in_memory_is_bounded_and_what_is_lost_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "WAITING_MAX_BYTES", 100 * 8)
    monkeypatch.setattr(leveling, "LOCKED_MAX_S", 0.01)
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        writer.commit()
        other = sqlite3.connect(tmp_path / FIRST, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for number in range(1, 151):
            reading = Reading("cpu", "user_share", "gauge", 0.5)
            writer.add([reading], t_ns=number * SECOND, interval_ns=SECOND, tier="client", source="host")
        with pytest.raises(OutOfSpace, match="locked"):
            writer.commit()
        assert writer.lost_count == 50
        other.close()
        writer.commit()
    times = read_recording(tmp_path).t_ns.tolist()
    assert times == [number * SECOND for number in range(51, 151)]
    assert "50 samples are lost" in " ".join(told_of(tmp_path)["notices"])


def test_a_budget_that_is_too_small_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--keep"):
        FlightWriter(tmp_path, keep_bytes=KEEP_MIN_BYTES - 1, host="db1")


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_bytes(b"no database at all" * 100),
        lambda path: execute(path, "drop table blocks"),
        lambda path: execute(path, "drop table meta; create view meta as select 1"),
        lambda path: execute(path, "insert into blocks values (0, 1, 1, 1, x'00ff')"),
        lambda path: execute(path, "update layouts set series = '[[1]]'"),
        lambda path: bomb(path),
    ],
    ids=["no database", "no table", "a view", "no zlib", "no series", "a bomb"],
)
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_file_that_is_no_recording_is_one_line(tmp_path: Path, harm: object) -> None:
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        feed(writer, 2)
    (tmp_path / FIRST).rename(tmp_path / NAME)
    for path in tmp_path.glob("recording-*"):
        path.unlink()
    assert callable(harm)
    harm(tmp_path / NAME)

    try:
        told_of(tmp_path)
        said = read_recording(tmp_path).unread
    except RunFolderError as error:
        said = [str(error)]

    assert len(said) == 1
    assert NAME in said[0]
    assert "\n" not in said[0]


def execute(path: Path, script: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


def bomb(path: Path) -> None:
    connection = sqlite3.connect(path)
    packed = zlib.compress(b"\0" * (200 << 20))
    connection.execute("insert into blocks values (0, 1, 1, 1, ?)", (packed,))
    connection.commit()
    connection.close()


def test_metrics_have_the_names_of_node_exporter() -> None:
    exposition = Exposition()
    readings = [
        Reading("sda", "read_ios_count", "delta", 10.0), Reading("sda", "read_latency_mean_ns", "gauge", 2e6),
        Reading("sda", "busy_share", "gauge", 0.5),
    ]  # fmt: skip
    for _ in range(2):
        exposition.add(readings, interval_ns=SECOND, source="block")
    exposition.add([Reading('a"b', "commits_count", "delta", 3.0)], interval_ns=SECOND, source="postgresql")

    text = exposition.text()

    assert 'node_disk_reads_completed_total{device="sda"} 20.0' in text
    assert 'node_disk_read_time_seconds_total{device="sda"} 0.04' in text
    assert 'node_disk_io_time_seconds_total{device="sda"} 1.0' in text
    assert 'assay_postgresql_commits_total{entity="a\\"b"} 3.0' in text
    assert text.endswith("# EOF\n")


@pytest.mark.parametrize("text", ["0.0.0.0:9600", "9600", "here:1", "127.0.0.1:99999", "10.1.2.3:80"])
def test_metrics_listen_on_loopback_alone_unless_asked(text: str) -> None:
    with pytest.raises(UsageError, match="--metrics"):
        parse_address(text, anywhere=False)


def test_the_unit_drops_every_right_and_holds_no_password() -> None:
    text = unit_text(Path("/var/lib/assay/recording"), ["--keep", "2GB"], processes=False, databases=[])

    assert "CapabilityBoundingSet=\n" in text
    assert "InaccessiblePaths" not in text
    assert "ProtectProc=invisible" in text
    assert "NoNewPrivileges=yes" in text
    assert "IPAddressDeny=any" in text
    with pytest.raises(UsageError, match="password"):
        unit_text(
            Path("/var/lib/assay/recording"), [], processes=False, databases=["postgresql://u:ASSAY_SECRET_1@h/d"]
        )
    with pytest.raises(UsageError, match="lies outside"):
        unit_text(Path("/srv/x"), [], processes=False, databases=[])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("databases", [[], ["postgresql://u@db1/d"]])
def test_systemd_takes_the_unit_as_it_is(tmp_path: Path, databases: list[str]) -> None:
    unit = tmp_path / "assay-recorder.service"
    unit.write_text(unit_text(Path("/var/lib/assay/recording"), ["--keep", "2GB"], processes=True, databases=databases))

    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)

    assert (done.returncode, [line for line in done.stderr.splitlines() if unit.name in line]) == (0, [])


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=400))
def test_blocks_of_others_raise_nothing_else(data: bytes) -> None:
    for read in (unpack_block, unpack_rolled):
        with contextlib.suppress(ValueError, TypeError):
            assert read(zlib.compress(data)) == []
