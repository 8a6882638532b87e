"""Files of other tools become rows as Assay records them; what cannot be used is refused in one line."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.record.run_folder import RunFolder
from assay.record.series import ROWS_MAX
from assay.run.imports import import_files
from assay.telemetry.importers import importer
from assay.telemetry.importers.importer import Into, NotTaken, Options
from assay.telemetry.importers.reading import import_file
from assay.telemetry.importers.registry import IMPORTERS, importer_of
from foreign_files import taken, values, written
from fuzz import mutation

SAMPLES = Path(__file__).parent / "imported"


HEADER = '"(PDH-CSV 4.0) (W. Europe Standard Time)(-60)"'


def perfmon(*counters: str, rows: Sequence[str], header: str = HEADER) -> str:
    return "\r\n".join([",".join([header, *(f'"{one}"' for one in counters)]), *rows]) + "\r\n"


class TestPerfmon:
    def test_a_sample_of_each_kind_of_counter_becomes_base_units_in_utc(self) -> None:
        found, rows = taken(SAMPLES / "perfmon.csv", roles={"D:": "data"})

        assert (found.format, found.hosts) == ("perfmon", ["SQL1"])
        # 20:00:15 an hour east of Greenwich.
        assert [t_ns for t_ns, _ in rows["SQL1", "1 D:", "read_ios_count"]] == [1795460415 * 10**9, 1795460430 * 10**9]
        assert values(rows, "SQL1", "1 D:", "read_ios_count") == [1500.0, 3007.5]
        assert values(rows, "SQL1", "1 D:", "read_latency_mean_ns") == pytest.approx([12.5e6, 15e6])
        assert values(rows, "SQL1", "0 C:", "busy_share") == pytest.approx([0.25, 0.75])
        # A comma for a point, as exports in other languages have.
        assert values(rows, "SQL1", "cpu", "busy_share") == pytest.approx([0.425, 0.555])
        assert values(rows, "SQL1", "memory", "available_bytes") == [1024 * 2**20, 1000 * 2**20, 900 * 2**20]
        # Of a named instance of SQL Server.
        assert values(rows, "SQL1", "server", "page_life_ns")[0] == 300e9
        assert found.ignored["PhysicalDisk(_Total)\\Disk Reads/sec"] == "the sum of instances that are taken"
        assert found.ignored["Web Service\\Get Requests/sec"] == "no use is made of it"

    @pytest.mark.parametrize(
        ("disk", "latency", "reads"),
        [
            ("Physikalischer Datenträger", "Mittlere Sek./Lesevorgänge", "Lesevorgänge/s"),
            ("Physikalischer Datentrager", "Mittlere Sek./Lesevorgange", "Lesevorgange/s"),
            ("Disque physique", "Moyenne disque s/lecture", "Lectures disque/s"),
            ("Disco físico", "Promedio de segundos de disco/lectura", "Lecturas de disco/s"),
            ("Disco fisico", "Media letture disco/sec", "Letture disco/sec"),
            ("Fysieke schijf", "Gemiddelde leestijd schijf", "Schijf lezen per seconde"),
        ],
    )
    def test_counters_of_other_languages_are_the_same(
        self, tmp_path: Path, disk: str, latency: str, reads: str
    ) -> None:
        text = perfmon(
            f"\\\\S\\{disk}(0 C:)\\{latency}",
            f"\\\\S\\{disk}(0 C:)\\{reads}",
            rows=['"11/23/2026 20:00:00","0.001"," "', '"11/23/2026 20:00:10","0.002","7"'],
        )
        _, rows = taken(written(tmp_path, text, encoding="cp1252"))
        assert values(rows, "S", "0 C:", "read_ios_count") == [70.0]
        assert values(rows, "S", "0 C:", "read_latency_mean_ns") == [1e6, 2e6]

    def test_an_unknown_language_is_said_with_the_names_found(self, tmp_path: Path) -> None:
        text = perfmon("\\\\S\\物理ディスク(0 C:)\\読み取り", rows=['"11/23/2026 20:00:00","1"'])
        with pytest.raises(NotTaken, match=r"物理ディスク\\読み取り: they may be in a language that is not known"):
            taken(written(tmp_path, text))

    def test_typeperf_says_no_zone_and_has_other_lines(self, tmp_path: Path) -> None:
        text = (
            '\r\n"(PDH-CSV 4.0)","\\\\S\\Memory\\Available MBytes"\r\n"11/23/2026 20:00:00.000","5"\r\n'
            "Exiting, please wait...\r\nThe command completed successfully.\r\n"
        )
        path = written(tmp_path, text, encoding="utf-16")
        found, rows = taken(path, zone_s=2 * 3600)
        assert rows["S", "memory", "available_bytes"] == [(1795456800 * 10**9, 5 * 2.0**20)]
        assert found.notes == []
        found, _ = taken(path)
        assert "no time zone; that of this machine is assumed" in found.notes[0]

    def test_a_log_is_told_by_what_it_holds_not_by_its_name(self, tmp_path: Path) -> None:
        text = perfmon("\\\\S\\Memory\\Available MBytes", rows=['"11/23/2026 20:00:00","5"'])
        _, rows = taken(written(tmp_path, text, name="log.blg"))
        assert values(rows, "S", "memory", "available_bytes") == [5 * 2.0**20]

    def test_tabs_separate_as_well(self, tmp_path: Path) -> None:
        text = perfmon(
            "\\\\S\\Memory\\Available MBytes", rows=['"11/23/2026 20:00:00","5"'], header='"(PDH-TSV 4.0) (UTC)(0)"'
        )
        _, rows = taken(written(tmp_path, text.replace(",", "\t")))
        assert rows["S", "memory", "available_bytes"] == [(1795464000 * 10**9, 5 * 2.0**20)]

    def test_rows_while_the_clock_is_behind_are_left_out_and_said(self, tmp_path: Path) -> None:
        times = ("20:00:00", "20:00:10", "19:00:05", "19:00:15", "20:00:20")
        text = perfmon(
            "\\\\S\\PhysicalDisk(0 C:)\\Disk Reads/sec",
            rows=[f'"11/23/2026 {one}","{n}"' for n, one in enumerate(times)],
        )
        found, rows = taken(written(tmp_path, text))
        assert values(rows, "S", "0 C:", "read_ios_count") == [10.0, 40.0]
        assert found.notes == [
            "the clock of S went back by 3,605 s at 2026-11-23 19:00:10 UTC; rows until it had caught up are left out",
            "2 rows in all were left out for it",
        ]

    def test_short_rows_and_thousands_of_columns_are_read(self, tmp_path: Path) -> None:
        counters = [f"\\\\S\\PhysicalDisk({n} X{n}:)\\Disk Reads/sec" for n in range(3000)]
        rows = [f'"11/23/2026 20:00:0{n}",' + ",".join(['"2"'] * 1500) for n in range(3)]
        found, taken_rows = taken(written(tmp_path, perfmon(*counters, rows=rows)))
        assert found.rows == 3000
        assert len(taken_rows) == 1500

    def test_a_file_with_more_values_than_are_kept_is_thinned(self, tmp_path: Path) -> None:
        assert importer.VALUES_MAX <= ROWS_MAX
        rows = [f'"11/23/2026 {20 + n // 3600}:{n // 60 % 60:02}:{n % 60:02}","2","{n % 10}"' for n in range(4000)]
        text = perfmon(
            r"\\S\PhysicalDisk(0 C:)\Disk Reads/sec", r"\\S\PhysicalDisk(0 C:)\Avg. Disk Queue Length", rows=rows
        )
        found, kept = taken(written(tmp_path, text), values_max=2000)
        reads, queues = (values(kept, "S", "0 C:", metric) for metric in ("read_ios_count", "queue_mean_count"))
        assert 1000 < found.rows == len(reads) + len(queues) <= 2000
        assert "samples are one, their mean" in found.notes[0]
        # No read is lost, and what is left of the queue is means of some samples.
        assert sum(reads) == 2 * 3999
        assert max(queues[-20:-1]) - min(queues[-20:-1]) < 9

    def test_devices_guests_and_processors_are_taken(self) -> None:
        found, rows = taken(SAMPLES / "esxtop.csv")
        assert (found.format, found.hosts) == ("esxtop", ["esx1"])
        device = "vmhba1:C0:T0:L1"
        assert values(rows, "esx1", device, "kernel_latency_mean_ns") == pytest.approx([3.5e6, 4.5e6])
        assert values(rows, "esx1", device, "guest_latency_mean_ns") == pytest.approx([8.5e6, 9.5e6])
        assert values(rows, "esx1", device, "read_bytes") == [5 * 10 * 2.0**20]
        # The sum over processors whose number the file does not say.
        assert values(rows, "esx1", "db01", "ready_total_share") == pytest.approx([0.125, 0.25])
        assert "how many those are" in found.notes[0]
        assert values(rows, "esx1", "cpu", "busy_share") == pytest.approx([0.6, 0.7])


class TestSysstat:
    def test_sar_tells_of_disks_network_and_memory(self) -> None:
        found, rows = taken(SAMPLES / "sar.json")
        assert (found.format, found.hosts) == ("sar", ["db1"])
        assert values(rows, "db1", "vda", "ios_count") == [100.0, 174.0]
        assert found.counters["disk.tps"] == "block ios_count"
        assert found.counters["net-etcp.retrans"] == "net segments_retransmitted_count"
        assert values(rows, "db1", "vda", "read_bytes") == [3.96 * 1024, 12 * 2 * 1024]
        assert values(rows, "db1", "cpu", "iowait_share") == pytest.approx([0.005, 0.0])
        assert values(rows, "db1", "memory", "available_bytes")[0] == 16645944 * 1024
        assert values(rows, "db1", "tcp", "segments_retransmitted_count") == [0.0, 3.0]
        # Pressure over the interval, under the name that Assay records it by.
        assert values(rows, "db1", "psi-memory", "some_share") == pytest.approx([0.025, 0.05])
        assert values(rows, "db1", "psi-memory", "full_share") == pytest.approx([0.005, 0.005])
        assert rows["db1", "vda", "latency_mean_ns"][0][0] == 1795460585 * 10**9

    @pytest.mark.parametrize("name", ["iostat.txt", "iostat.json", "iostat-iso.txt"])
    def test_iostat_leaves_out_the_report_since_the_start(self, name: str) -> None:
        found, rows = taken(SAMPLES / name, zone_s=0)
        assert (found.format, found.hosts) == ("iostat", ["db1"])
        assert found.ignored["the first report"] == "it is of the time since the host's start"
        assert values(rows, "db1", "vda", "read_ios_count") == [185.0, 2 * 200.0]
        assert values(rows, "db1", "vda", "read_latency_mean_ns") == pytest.approx([1.2e6, 1.5e6])
        # Where nothing was written, a latency of 0 says nothing.
        assert ("db1", "vda", "write_latency_mean_ns") not in rows
        assert values(rows, "db1", "cpu", "user_share") == pytest.approx([0.915, 0.5])

    def test_iostat_without_times_or_with_one_report_is_refused(self, tmp_path: Path) -> None:
        text = (SAMPLES / "iostat.txt").read_text()
        untimed = "\n".join(line for line in text.splitlines() if not line.startswith("11/23/26 "))
        with pytest.raises(NotTaken, match=r"says no times: say how far apart .*--interval 10s.* iostat -xt"):
            taken(written(tmp_path, untimed))
        first = text[: text.index("11/23/26 19:02:51")]
        with pytest.raises(NotTaken, match=r"one report alone, of the time since the host's start"):
            taken(written(tmp_path, first), zone_s=0)

    def test_a_document_that_is_cut_off_is_said(self, tmp_path: Path) -> None:
        text = (SAMPLES / "sar.json").read_text()
        with pytest.raises(NotTaken, match="cut off"):
            taken(written(tmp_path, text[: len(text) * 2 // 3]))

    @pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
    def test_samples_are_read_one_by_one(self, tmp_path: Path) -> None:
        """A document of 1,000 samples takes no more memory than its largest one."""
        import tracemalloc

        document = json.loads((SAMPLES / "sar.json").read_text())
        first = document["sysstat"]["hosts"][0]["statistics"][0]
        with (tmp_path / "long.json").open("w") as file:
            file.write('{"sysstat": {"hosts": [{"nodename": "db1", "timezone": "UTC", "statistics": [\n')
            for number in range(1_000):
                at = datetime(2026, 1, 1) + timedelta(seconds=number)
                first["timestamp"] |= {"date": f"{at:%Y-%m-%d}", "time": f"{at:%H:%M:%S}"}
                file.write((",\n" if number else "") + json.dumps(first))
            file.write("]}]}}")
        tracemalloc.start()
        found = import_file(tmp_path / "long.json", Options(), lambda _: None)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found.rows > 15_000
        assert most < 8e6


class TestPgbench:
    def test_transactions_become_seconds(self) -> None:
        found, rows = taken(SAMPLES / "pgbench_log.1", host="app")
        assert found.format == "pgbench"
        assert rows["app", "transactions", "committed_count"] == [(1795460401 * 10**9, 3.0), (1795460402 * 10**9, 1.0)]
        assert values(rows, "app", "transactions", "latency_max_ns") == [3000e3, 9000e3]
        assert values(rows, "app", "transactions", "latency_p50_ns") == [2000e3, 9000e3]
        assert values(rows, "app", "transactions", "failed_count") == [1.0]

    def test_intervals_are_taken_but_the_last(self) -> None:
        _, rows = taken(SAMPLES / "pgbench_aggregated.1")
        assert rows["imported", "transactions", "committed_count"] == [(1795460410 * 10**9, 5815.0)]
        assert values(rows, "imported", "transactions", "latency_mean_ns") == pytest.approx([27552565 / 5815 * 1e3])

    def test_progress_has_times_since_1970_or_since_its_start(self, tmp_path: Path) -> None:
        lines = "progress: {0}.0 s, 1000.0 tps, lat 2.000 ms stddev 0.3, 0 failed\n"
        epoch = "".join(lines.format(1795460400 + n) for n in range(3))
        _, rows = taken(written(tmp_path, "pgbench (18.0)\nstarting vacuum...end.\n" + epoch))
        assert values(rows, "imported", "transactions", "committed_count") == [1000.0, 1000.0]
        relative = written(tmp_path, "".join(lines.format(n) for n in range(1, 3)))
        found, rows = taken(relative)
        assert rows["imported", "transactions", "committed_count"] == [(10**9, 1000.0), (2 * 10**9, 1000.0)]
        assert "says times since its start alone" in found.notes[0]
        _, rows = taken(relative, start_ns=1795460400 * 10**9)
        assert rows["imported", "transactions", "committed_count"][0][0] == 1795460401 * 10**9


class TestHammerDb:
    def test_the_counter_becomes_transactions_of_each_interval(self) -> None:
        found, rows = taken(SAMPLES / "hdbtcount.log", host="db1")
        assert found.format == "hammerdb"
        # 600,000 a minute over ten seconds; the last interval has eleven.
        assert values(rows, "db1", "transactions", "transactions_count") == [100_000.0, 110_000.0, 115_500.0]
        assert rows["db1", "transactions", "transactions_count"][0][0] == 1795465124 * 10**9
        assert "of the whole server" in found.notes[0]

    def test_the_result_of_a_test_is_one_interval_of_its_length(self) -> None:
        found, rows = taken(SAMPLES / "hammerdb.log")
        assert values(rows, "imported", "test", "new_orders_count") == [264796.0 * 5]
        assert values(rows, "imported", "test", "transactions_count") == [616230.0 * 5]
        assert found.to_ns is not None
        assert found.from_ns == found.to_ns - 300 * 10**9

    def test_the_time_profile_gives_latencies_of_each_procedure(self) -> None:
        found, rows = taken(SAMPLES / "hdbxtprofile.log")
        # Of the summary, not of the first virtual user.
        assert values(rows, "imported", "neword", "calls_count") == [600_000.0]
        assert values(rows, "imported", "neword", "latency_p99_ns") == pytest.approx([542_000.0])
        assert values(rows, "imported", "payment", "latency_mean_ns") == pytest.approx([168_000.0])
        assert found.ignored["VIRTUAL USER"] == "the summary of all is taken"

    def test_logs_without_times_are_of_the_time_since_their_start(self, tmp_path: Path) -> None:
        log = (SAMPLES / "hammerdb.log").read_text()
        untimed = "\n".join(line for line in log.splitlines() if not line.startswith("Timestamp"))
        found, rows = taken(written(tmp_path, untimed))
        assert values(rows, "imported", "test", "new_orders_count") == [264796.0 * 5]
        assert any("vuset timestamps 1" in note for note in found.notes)
        with pytest.raises(NotTaken, match="holds no result"):
            taken(written(tmp_path, log.replace("TEST RESULT", "RESULT")))
        counter = "\n".join(line.partition(" @ ")[0] for line in (SAMPLES / "hdbtcount.log").read_text().splitlines())
        path = written(tmp_path, counter.replace("Counter Log", "Counter Log @ x"))
        with pytest.raises(NotTaken, match="tc_log_timestamps"):
            taken(path)
        _, rows = taken(path, interval_ns=10 * 10**9)
        assert values(rows, "imported", "transactions", "transactions_count")[0] == 100_000.0

    def test_a_zone_without_an_offset_is_asked_for(self, tmp_path: Path) -> None:
        path = written(tmp_path, (SAMPLES / "hdbtcount.log").read_text().replace("UTC", "BST"))
        found, rows = taken(path, zone_s=3600)
        assert rows["imported", "transactions", "transactions_count"][0][0] == (1795465124 - 3600) * 10**9
        found, _ = taken(path)
        assert any("names its time zone BST, which says no offset" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "is empty"),
        ("blank.csv", b" \r\n", "is empty"),
        ("log.blg", b"\x00\x01Perf", r"relog log.blg -f csv -o log.csv -y"),
        ("other.csv", b"a,b,c\n1,2,3\n", "is of no format that is known here: "),
        ("words.log", b"Performance of disks\n1\n", "is of no format that is known here: "),
        ("other.bin", b"\x7fELF\0\0\0", "is no text"),
        ("no.csv", b'"(PDH-CSV 4.0) (UTC)(0)","a","b"\n', "without counters"),
        ("rate.csv", b'"(PDH-CSV 4.0)(0)","\\\\S\\PhysicalDisk(0 C:)\\Disk Reads/sec"\n"11/23/2026 20:00:00","1"\n',
         "a rate needs two samples"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_the_file(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message) as error:
        taken(tmp_path / name)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_a_recording_holds_what_all_files_told_on_one_clock(tmp_path: Path) -> None:
    files = [SAMPLES / "perfmon.csv", SAMPLES / "sar.json"]
    found = import_files(files, into=tmp_path / "results", options=Options(roles={"D:": "data"}), command=["import"])

    recording = found.recording
    assert recording is not None
    with RunFolder.open(found.path) as folder:
        table = folder.series()
        manifest = folder.manifest
    assert manifest["status"] == "done"
    assert manifest["recording"] == recording
    assert len(table) == recording["rows"] == sum(one["rows"] for one in recording["files"])
    assert recording["hosts"] == ["SQL1", "db1"]
    assert {row["role"] for row in table.records() if row["entity"] == "1 D:"} == {"data"}
    assert any("share no time" in notice for notice in recording["notices"])
    assert any("left out 1, no use is made of it: Web Service" in line for line in found.lines())


def test_a_file_that_cannot_be_used_leaves_no_recording(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("x")
    with pytest.raises(UsageError, match=r"bad\.csv"):
        import_files(
            [SAMPLES / "perfmon.csv", tmp_path / "bad.csv"], into=tmp_path / "results", options=Options(), command=[]
        )
    assert not (tmp_path / "results").exists()
    with pytest.raises(UsageError, match="is given twice"):
        import_files([SAMPLES / "sar.json"] * 2, into=tmp_path / "results", options=Options(), command=[])


ALL = sorted(path for path in SAMPLES.iterdir() if path.is_file())


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_each_sample_is_of_one_format(path: Path) -> None:
    head = path.read_text(errors="replace")[:65536]
    chosen = importer_of(head)
    assert chosen is not None
    same = [one.name for one in IMPORTERS if one.recognises(head)]
    assert set(same) <= {chosen.name, "perfmon"}


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_mutated_files_are_read_or_refused(data: st.DataObject) -> None:
    """Bytes changed, taken out and put in anywhere: rows with finite numbers, or one line."""
    path = data.draw(st.sampled_from(ALL))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, max(len(content) - 1, 0)))
        what = data.draw(st.sampled_from(["change", "cut", "put", "swap", "twice"]))
        if what == "change" and content:
            content[at] = data.draw(st.integers(0, 255))
        elif what == "cut":
            del content[at : at + data.draw(st.integers(1, 200))]
        elif what == "put":
            content[at:at] = data.draw(
                st.sampled_from([b'"', b",", b"\n", b"[", b"{", b"9" * 400, b"\\\\", b"-", b"1e999"])
            )
        elif what == "twice":
            content[at:at] = content[at : at + 500]
        else:
            content[at : at + 2] = content[at : at + 2][::-1]
    text = bytes(content).decode("utf-8", errors="replace")
    chosen = importer_of(text[:65536])
    if chosen is None:
        return
    into = Into(chosen.name, Options(zone_s=0), check, file_name=path.name)
    with suppress(NotTaken):
        chosen.read(io.StringIO(text, newline=""), into)
        into.flush()


@pytest.mark.slow(reason="tests/fuzz/formats.py reads more")
def test_ten_million_bytes_of_mutated_files_are_read_or_refused() -> None:
    tried, read, seed = 0, 0, 0
    originals = [(path.name, path.read_bytes()) for path in ALL]
    while tried < 10_000_000:
        dice = random.Random(seed)
        seed += 1
        name, original = dice.choice(originals)
        content = mutation.foreign(dice, original)
        tried += len(content)
        text = content.decode("utf-8", errors="replace")
        chosen = importer_of(text[:65536])
        if chosen is None:
            continue
        into = Into(chosen.name, Options(zone_s=0), check, file_name=name)
        try:
            chosen.read(io.StringIO(text, newline=""), into)
            into.flush()
            read += into.taken.rows > 0
        except NotTaken:
            continue
        except BaseException:
            print(f"seed {seed - 1}: {chosen.name}")
            raise
    # Most of them are still files of their format.
    assert read > seed / 3


def check(batches: Sequence[Any]) -> None:
    for batch in batches:
        assert all(abs(value) <= 1e24 for value in batch.value.tolist())
        assert all(0 <= interval < 2**63 for interval in batch.interval_ns.tolist())


def test_a_time_that_no_clock_has_is_left_out() -> None:
    into = Into("perfmon", Options(zone_s=0), check)

    assert into.advance("h", 2**63) is None
    assert into.advance("h", -1) is None
    assert into.advance("h", 10**18) == 0
    assert into.taken.notes == ["rows with a time before 1970 or after 2262 are left out"]


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_numbers_that_no_counter_has_are_left_out_or_refused(tmp_path: Path) -> None:
    """Numbers of every sample become others: all that is handed over stays within what a recording holds."""
    read = 0
    for seed in range(1500):
        dice = random.Random(seed)
        sample = dice.choice(ALL)
        path = tmp_path / sample.name
        path.write_bytes(mutation.amounts(dice, sample.read_bytes()))
        try:
            found = import_file(path, Options(zone_s=0), check)
        except NotTaken as error:
            if "\n" in str(error):
                pytest.fail(f"seed {seed}: more than a line: {error}")
            continue
        except BaseException:
            print(f"seed {seed}")
            raise
        read += 1
        assert found.from_ns is not None, seed
        assert found.from_ns >= 0, seed
    assert read > 500
