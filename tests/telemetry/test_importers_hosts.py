"""What Linux hosts and hypervisors record of themselves: nmon and its like.

Samples have the shape of files that the real programs wrote, with values of their own; expected values are by hand.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay.insight.diagnosis.diagnose import diagnose
from assay.insight.diagnosis.inputs import sources_of
from assay.telemetry.importers.importer import NotTaken, Options
from foreign_files import said_of, taken, values, written

SAMPLES = Path(__file__).parent / "imported"


def at(text: str) -> int:
    """UTC nanoseconds."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9


# nmon


def nmon(*, busy: float, xfer: float, read_ms: float | None, of_one: str = "sdb") -> str:
    """Five minutes of a disk as nmon 16 writes them with `-g FILE -D`, or without groups."""
    lines = ["AAA,progname,nmon", "AAA,host,db1", "CPU_ALL,CPU Total db1,User%,Sys%,Wait%,Idle%,Steal%,Busy,CPUs"]
    rows = {"DISKBUSY": busy, "DISKREAD": xfer * 8, "DISKWRITE": 0.0, "DISKXFER": xfer, "DISKBSIZE": 8.0}
    if read_ms is not None:
        lines.append(f"BBBG,001,log,{of_one}")
        rows |= {"DGREADS": xfer, "DGREADSERV": xfer * read_ms, "DGBACKLOG": xfer * read_ms}
    lines += [f"{name},said db1,{'log' if name.startswith('DG') else 'sdb'}" for name in rows]
    for n in range(31):
        number = f"T{n + 1:04d}"
        lines.append(f"ZZZZ,{number},10:{n // 6:02d}:{n % 6}0,02-MAR-2021")
        lines.append(f"CPU_ALL,{number},10.0,2.0,8.0,80.0,0.0,,2")
        lines += [f"{name},{number},{value:.1f}" for name, value in rows.items()]
    return "\n".join(lines) + "\n"


def test_a_snapshot_of_nmon_has_the_units_of_its_sections() -> None:
    found, rows = taken(SAMPLES / "nmon.nmon", zone_s=0)
    assert (found.format, found.hosts) == ("nmon", ["db1"])
    assert rows["db1", "sdb", "read_bytes"][0] == (at("2021-03-02 10:00:20"), 3200 * 1024 * 10.0)
    assert values(rows, "db1", "sdb", "busy_share") == [0.98] * 3
    assert values(rows, "db1", "sda", "ios_count") == [1000.0] * 3
    assert values(rows, "db1", "sda", "size_mean_bytes") == [8192.0] * 3
    assert values(rows, "db1", "cpu", "busy_share") == pytest.approx([0.18] * 3)
    assert values(rows, "db1", "cpu/0", "user_share") == pytest.approx([0.22, 0.23, 0.24])
    assert values(rows, "db1", "memory", "free_bytes") == [(4000.25 + n) * 2**20 for n in (2, 3, 4)]
    assert values(rows, "db1", "eth0", "out_bytes") == [2000 * 1024 * 10.0] * 3
    assert "sda1" not in {entity for _, entity, _ in rows}
    # Counts of VM are those of the interval, whatever its length; all else are rates.
    assert values(rows, "db1", "memory", "paged_in_bytes") == [8000 * 1024.0 * n for n in (2, 3, 4)]
    assert values(rows, "db1", "paging", "pages_in_count") == [3.0] * 3


def test_a_group_of_one_disk_is_that_disk_and_sums_of_milliseconds_become_latencies() -> None:
    found, rows = taken(SAMPLES / "nmon.nmon", zone_s=0)
    assert values(rows, "db1", "sdb", "read_latency_mean_ns") == [25e6] * 3
    assert values(rows, "db1", "sdb", "write_latency_mean_ns") == [35e6] * 3
    assert values(rows, "db1", "sdb", "queue_mean_count") == [31.0] * 3
    assert values(rows, "db1", "all", "read_latency_mean_ns") == pytest.approx([20.4e6] * 3)
    assert ("db1", "all", "ios_count") not in rows
    assert found.ignored["DGXFER"] == "its disks say it"


def test_a_sorted_file_and_appended_runs_of_nmon_are_the_same_values(tmp_path: Path) -> None:
    text = (SAMPLES / "nmon.nmon").read_text()
    _, rows = taken(SAMPLES / "nmon.nmon", zone_s=0)
    _, sorted_rows = taken(written(tmp_path, "\n".join(sorted(text.splitlines()))), zone_s=0)
    assert sorted_rows == rows
    later = text.replace(",10:00:", ",11:00:")
    _, both = taken(written(tmp_path, text + later), zone_s=0)
    assert [t_ns for t_ns, _ in both["db1", "sdb", "busy_share"]] == [
        at(f"2021-03-02 {hour}:00:{second}") for hour in (10, 11) for second in (20, 30, 40)
    ]
    with pytest.raises(NotTaken, match="it holds several runs; give each by itself"):
        taken(written(tmp_path, "\n".join(sorted((text + later).splitlines()))), zone_s=0)


def test_snapshots_that_were_cut_out_leave_a_gap(tmp_path: Path) -> None:
    """Of rates the time without a snapshot stays without values: it is no long interval."""
    lines = nmon(busy=50.0, xfer=10.0, read_ms=None).splitlines(keepends=True)
    kept = [line for line in lines if not re.search(r"T00(1\d|20)\b", line)]
    found, rows = taken(written(tmp_path, "".join(kept)), zone_s=0)
    assert set(values(rows, "db1", "sdb", "ios_count")) == {100.0}
    assert any("hold no report" in note for note in found.notes)


def test_a_diagnosis_of_nmon_judges_latency_only_where_nmon_has_it(tmp_path: Path) -> None:
    state, causes, what = said_of(written(tmp_path, nmon(busy=98.0, xfer=300.0, read_ms=45.0), "slow.nmon"))
    assert (state, causes[0]) == ("cause found", "slow-disk"), what
    quiet, causes, _ = said_of(written(tmp_path, nmon(busy=9.0, xfer=30.0, read_ms=0.5), "fine.nmon"))
    assert (quiet, causes) != ("cause found", ["slow-disk"])
    # Without groups nmon says nothing of latency: the disk is not judged fine by what is left.
    state, _, what = said_of(written(tmp_path, nmon(busy=9.0, xfer=30.0, read_ms=None), "plain.nmon"))
    assert state != "judged fine", what


# Logs of scripts: /proc/diskstats, nfsiostat


def diskstats(*, read_ms: int, per_s: int = 200, step_s: int = 10, steps: int = 31) -> str:
    """Snapshots of a disk with a time before each, as `date; cat /proc/diskstats` writes them."""
    lines = []
    for n in range(steps):
        ios = per_s * step_s * n
        busy = min(ios * read_ms, 1000 * step_s * n)
        lines.append(f"2021-03-02T10:{n * step_s // 60:02d}:{n * step_s % 60:02d}+00:00")
        lines.append(f"   8      16 sdb {7 + ios} 0 {ios * 16} {ios * read_ms} 0 0 0 0 1 {busy} {ios * read_ms}")
    return "\n".join(lines) + "\n"


def test_differences_of_diskstats_have_the_units_of_the_kernel() -> None:
    found, rows = taken(SAMPLES / "diskstats.txt", host="db1")
    assert (found.format, found.hosts) == ("diskstats", ["db1"])
    assert rows["db1", "sdb", "read_ios_count"][0] == (at("2021-03-02 10:00:10"), 4000.0)
    assert values(rows, "db1", "sdb", "read_bytes") == [64000 * 512.0] * 3
    assert values(rows, "db1", "sdb", "read_latency_mean_ns") == [45e6] * 3
    assert values(rows, "db1", "sdb", "read_size_mean_bytes") == [8192.0] * 3
    # Milliseconds wrapped at 2**32.
    assert values(rows, "db1", "sdb", "write_latency_mean_ns") == [60e6] * 3
    assert values(rows, "db1", "sdb", "queue_mean_count") == [24.0] * 3
    assert values(rows, "db1", "sdb", "queue_now_count") == [5.0, 7.0, 9.0]
    assert values(rows, "db1", "sdb", "busy_share") == pytest.approx([0.99] * 3)
    assert values(rows, "db1", "sdb", "flush_latency_mean_ns") == [200e6] * 3
    assert {entity for _, entity, _ in rows} == {"sda", "sdb"}
    assert found.ignored["partitions"] == "their disk is taken as a whole"


def test_times_of_snapshots_stand_before_them_after_them_in_each_line_or_nowhere(tmp_path: Path) -> None:
    """Each as a script wrote it: `date; cat`, `cat; date +%s.%N`, lines behind a time, nothing."""
    devices = [f"   8       0 sda {n} 0 {n * 8} {n} 0 0 0 0 0 {n} {n}" for n in (5, 15, 35)]
    times = [at(f"2021-03-02 10:00:{second}") for second in ("00", "10", "20")]
    before = "".join(f"zzz ***Tue Mar  2 10:00:{n}0 UTC 2021\n{line}\n" for n, line in enumerate(devices))
    after = "".join(f"{line}\n{t // 10**9}.000000000\n" for t, line in zip(times, devices, strict=True))
    inside = "".join(f"2021-03-02T10:00:{n}0+00:00 {line}\n" for n, line in enumerate(devices))
    for text in (before, after, inside):
        _, rows = taken(written(tmp_path, text))
        assert rows["imported", "sda", "read_ios_count"] == [(times[1], 10.0), (times[2], 20.0)]
    nowhere = written(tmp_path, "\n".join(devices))
    with pytest.raises(NotTaken, match=r"--interval 10s.*date -Is; cat /proc/diskstats"):
        taken(nowhere)
    _, rows = taken(nowhere, interval_ns=10**10)
    assert rows["imported", "sda", "read_ios_count"] == [(10**10, 10.0), (2 * 10**10, 20.0)]


def test_counters_that_begin_anew_and_clocks_that_go_back_are_left_out(tmp_path: Path) -> None:
    text = diskstats(read_ms=5, steps=6)
    restarted = text + diskstats(read_ms=5, steps=6).replace("T10:", "T11:")
    found, rows = taken(written(tmp_path, restarted))
    assert "counters that began anew" in found.ignored
    assert [t_ns for t_ns, _ in rows["imported", "sdb", "read_ios_count"]] == [
        at(f"2021-03-02 {hour}:00:{second}0") for hour in (10, 11) for second in range(1, 6)
    ]
    found, rows = taken(written(tmp_path, text + text))
    assert len(rows["imported", "sdb", "read_ios_count"]) == 5
    assert "snapshots while the clock was behind" in found.ignored


def test_reports_of_nfsiostat_follow_the_time_that_a_script_wrote_once() -> None:
    found, rows = taken(SAMPLES / "nfsiostat.txt", host="db1", interval_ns=10**10)
    assert rows["db1", "/data", "read_ios_count"] == [
        (at(f"2021-03-02 10:00:{second}"), 20000.0) for second in (10, 20, 30)
    ]
    assert values(rows, "db1", "/data", "read_bytes") == [16250 * 1024 * 10.0] * 3
    assert values(rows, "db1", "/data", "read_latency_mean_ns") == [45.5e6] * 3
    assert values(rows, "db1", "/data", "read_rtt_mean_ns") == [45e6] * 3
    assert values(rows, "db1", "/data", "read_size_mean_bytes") == [8.125 * 1024] * 3
    assert values(rows, "db1", "/data", "write_errors_count") == [1.0] * 3
    assert values(rows, "db1", "/data", "retransmissions_count") == [2.0] * 3
    assert found.ignored["the first report"] == "it is of the time since the mount"
    with pytest.raises(NotTaken, match=r"--interval 10s"):
        taken(SAMPLES / "nfsiostat.txt")


def test_each_run_of_nfsiostat_begins_with_a_report_since_the_mount(tmp_path: Path) -> None:
    """A script starts it each minute for two reports, or for one, which says nothing of an interval."""
    text = (SAMPLES / "nfsiostat.txt").read_text()
    report = text[text.rindex("nas1:") :]
    twice = "".join(f"Tue Mar  2 10:0{n}:00 UTC 2021\n{report}{report}" for n in range(3))
    _, rows = taken(written(tmp_path, twice), interval_ns=10**9)
    assert rows["imported", "/data", "read_ios_count"] == [(at(f"2021-03-02 10:0{n}:01"), 2000.0) for n in range(3)]
    once = "".join(f"Tue Mar  2 10:0{n}:00 UTC 2021\n{report}" for n in range(3))
    with pytest.raises(NotTaken, match="since the mount alone: give nfsiostat an interval"):
        taken(written(tmp_path, once))


def test_reports_of_older_nfsiostat_have_fewer_columns(tmp_path: Path) -> None:
    report = (
        "\n1.2.3.4:/pg mounted on /db:\n\n   op/s         rpc bklog\n 196.86            0.00\n\n"
        "read:             ops/s            kB/s           kB/op         retrans         avg RTT (ms)    avg exe (ms)\n"
        "                  8.000         400.000          50.000        1 (0.5%)           1.351           1.420\n"
    )
    found, rows = taken(written(tmp_path, report * 2), interval_ns=10**10)
    assert rows["imported", "/db", "read_latency_mean_ns"] == [(10**10, pytest.approx(1.42e6))]
    assert values(rows, "imported", "/db", "retransmissions_count") == [1.0]
    assert found.values_taken + found.values_left_out + found.values_unread == 2 * 8


def test_a_diagnosis_names_the_slow_disk_of_a_log_and_calls_a_quick_one_fine(tmp_path: Path) -> None:
    state, causes, what = said_of(written(tmp_path, diskstats(read_ms=48), "slow.txt"))
    assert (state, causes[0]) == ("cause found", "slow-disk"), what
    state, causes, what = said_of(written(tmp_path, diskstats(read_ms=1, per_s=20), "quick.txt"))
    # The disk alone was recorded: that it is quick does not say that all is well.
    assert (state, causes) == ("not judged", []), what


def test_a_mount_that_answers_late_is_slow_storage(tmp_path: Path) -> None:
    text = (SAMPLES / "nfsiostat.txt").read_text()
    report = text[text.rindex("nas1:") :]
    state, causes, what = said_of(written(tmp_path, text + report * 27), interval_ns=10**10)
    assert (state, causes[0]) == ("cause found", "slow-disk"), what
    assert "/data: reads take" in what


# sadf -x


def test_archives_of_sar_in_xml_are_what_they_are_in_json(tmp_path: Path) -> None:
    found, rows = taken(SAMPLES / "sadf.xml")
    assert (found.format, found.hosts) == ("sar", ["db1"])
    assert rows["db1", "sda", "ios_count"][0] == (at("2021-03-02 10:01:00"), 900 * 60.0)
    assert values(rows, "db1", "sda", "latency_mean_ns") == [45e6] * 3
    assert values(rows, "db1", "sda", "read_bytes") == [6400 * 1024 * 60.0] * 3
    assert values(rows, "db1", "sda", "queue_mean_count") == [40.5] * 3
    assert ("db1", "sdb", "latency_mean_ns") not in rows
    assert values(rows, "db1", "cpu", "busy_share") == pytest.approx([0.26] * 3)
    assert values(rows, "db1", "memory", "available_bytes") == [17147228 * 1024.0] * 3
    assert values(rows, "db1", "cpu", "blocked_count") == [2.0] * 3
    assert values(rows, "db1", "eth0", "out_bytes") == [2000 * 1024 * 60.0] * 3
    assert values(rows, "db1", "tcp", "segments_retransmitted_count") == [150.0] * 3
    assert values(rows, "db1", "psi-io", "some_share") == [0.12] * 3
    text = (SAMPLES / "sadf.xml").read_text()
    first, last = text.index("<timestamp"), text.rindex("</timestamp>") + len("</timestamp>")
    sample = text[first : text.index("</timestamp>") + len("</timestamp>")]
    minutes = [sample.replace('"10:01:00"', f'"10:{minute:02d}:00"') for minute in range(1, 31)]
    longer = written(tmp_path, text[:first] + "".join(minutes) + text[last:], "sadf.xml")
    state, causes, what = said_of(longer)
    assert (state, causes[0]) == ("cause found", "slow-disk"), what


def test_a_document_with_entities_or_without_an_end_is_refused(tmp_path: Path) -> None:
    text = (SAMPLES / "sadf.xml").read_text()
    bomb = text.replace('"DTD v3.11 sysstat //EN"', '"a"', 1).replace(
        'sysstat-3.11.dtd">', 'sysstat-3.11.dtd" [<!ENTITY a "b">]>', 1
    )
    with pytest.raises(NotTaken, match="declares entities of its own"):
        taken(written(tmp_path, bomb))
    with pytest.raises(NotTaken, match="is no whole document of XML"):
        taken(written(tmp_path, text[: len(text) // 2]))
    with pytest.raises(NotTaken, match="more than 20 deep"):
        taken(written(tmp_path, "<sysstat>" + "<a>" * 30))


# atop


@pytest.mark.parametrize("name", ["atop.txt", "atop-lines.txt"])
def test_screens_and_lines_of_atop_are_the_same_values(name: str) -> None:
    found, rows = taken(SAMPLES / name, zone_s=0)
    assert (found.format, found.hosts) == ("atop", ["db1"])
    assert rows["db1", "sda", "read_ios_count"] == [
        (at(f"2021-03-02 10:00:{second}"), 4000.0) for second in (10, 20, 30)
    ]
    assert values(rows, "db1", "sda", "busy_share") == [0.98] * 3
    # While the disk was busy 25 I/Os were at it; busy 9.8 s for 5,000 I/Os: 49 ms each.
    assert values(rows, "db1", "sda", "queue_mean_count") == pytest.approx([24.5] * 3)
    assert values(rows, "db1", "sda", "latency_mean_ns") == pytest.approx([49e6] * 3)
    assert values(rows, "db1", "sda", "queue_now_count") == [19.0] * 3
    moved = 3.1 * 2**20 * 10 if name == "atop.txt" else 64000 * 512.0
    assert values(rows, "db1", "sda", "read_bytes") == pytest.approx([moved] * 3)
    # The sum over two processors, and the second one alone.
    assert values(rows, "db1", "cpu", "idle_share") == pytest.approx([0.5] * 3)
    assert values(rows, "db1", "cpu", "busy_share") == pytest.approx([0.31] * 3)
    assert values(rows, "db1", "cpu/1", "iowait_share") == pytest.approx([0.18] * 3)
    free = 8.0 * 2**30 if name == "atop.txt" else 2126702 * 4096.0
    assert values(rows, "db1", "memory", "free_bytes") == [free] * 3
    assert values(rows, "db1", "paging", "pages_out_count") == [7.0] * 3
    assert values(rows, "db1", "psi-io", "full_share") == pytest.approx([0.3] * 3)
    assert found.ignored["samples since the start"] == "it is of the time since the host's start"


def test_a_narrow_screen_of_atop_has_no_latency_and_says_so(tmp_path: Path) -> None:
    lines = (SAMPLES / "atop.txt").read_text().splitlines(keepends=True)
    narrow = "".join(re.sub(r"\|\s+avq +\S+ \|", "|", line) for line in lines)
    found, rows = taken(written(tmp_path, narrow), zone_s=0)
    assert ("db1", "sda", "latency_mean_ns") not in rows
    assert any("atop -L 250" in note for note in found.notes)
    state, causes, what = said_of(written(tmp_path, narrow))
    assert state == "not judged", (causes, what)


def test_a_diagnosis_of_atop_names_the_slow_disk(tmp_path: Path) -> None:
    text = (SAMPLES / "atop-lines.txt").read_text()
    last = text[text.rindex("CPU db1") :]
    longer = text + "".join(last.replace("1614679230", str(1614679230 + 10 * n)) for n in range(1, 30))
    state, causes, what = said_of(written(tmp_path, longer))
    assert (state, causes[0]) == ("cause found", "slow-disk"), what
    assert "sda: I/Os take: 49.0 ms" in what


# collectl


@pytest.mark.parametrize("name", ["collectl-plot.txt", "collectl.txt"])
def test_files_for_plots_and_screens_of_collectl_are_the_same_values(name: str) -> None:
    found, rows = taken(SAMPLES / name, zone_s=0)
    assert (found.format, found.hosts) == ("collectl", ["db1"])
    # The file for plots says its zone.
    nanos = 0 if name == "collectl-plot.txt" else 2_000_000
    assert [t_ns for t_ns, _ in rows["db1", "sda", "read_ios_count"]] == [
        at(f"2021-03-02 10:00:{second}") + nanos for second in (10, 20, 30)
    ]
    assert values(rows, "db1", "sda", "read_ios_count") == [3000.0] * 3
    assert values(rows, "db1", "sda", "write_bytes") == [1600 * 1024 * 10.0] * 3
    assert values(rows, "db1", "sda", "read_latency_mean_ns") == [45e6] * 3
    assert values(rows, "db1", "sda", "latency_mean_ns") == [42e6] * 3
    assert values(rows, "db1", "sda", "size_mean_bytes") == [10240.0] * 3
    # Its queue is that while the disk was busy.
    assert values(rows, "db1", "sda", "queue_mean_count") == pytest.approx([24.5] * 3)
    assert values(rows, "db1", "cpu", "busy_share") == pytest.approx([0.47] * 3)
    assert values(rows, "db1", "cpu", "blocked_count") == [2.0] * 3
    assert values(rows, "db1", "eth0", "out_bytes") == [2000 * 1024 * 10.0] * 3
    assert "no latency" in found.ignored["[DSK]SvcTim"]
    assert found.ignored["[DSK]ReadTot"] == "the sum of the disks or interfaces that are taken"
    if name == "collectl.txt":
        assert values(rows, "db1", "nvme0n1", "read_ios_count") == [120_000.0] * 3
        assert values(rows, "db1", "cpu/1", "iowait_share") == [0.4] * 3


def test_times_of_day_without_a_date_and_no_times_are_since_the_beginning(tmp_path: Path) -> None:
    titles = "#{}Name       KBytes Merged  IOs Size  KBytes Merged  IOs Size  RWSize  QLen  Wait SvcTim Util\n"
    row = "{}sda  80 0 10 8 0 0 0 0 8 1 5 0 5\n"
    text = titles.format("Time     ") + "".join(row.format(f"{time} ") for time in ("23:59:55", "00:00:05"))
    found, rows = taken(written(tmp_path, text))
    assert rows["imported", "sda", "read_ios_count"] == [(10**10, 100.0)]
    assert any("without a date" in note for note in found.notes)
    _, rows = taken(written(tmp_path, text), start_ns=at("2021-03-02 23:59:55"))
    assert rows["imported", "sda", "latency_mean_ns"] == [(at("2021-03-03 00:00:05"), 5e6)]
    text = titles.format("") + row.format("") * 3
    with pytest.raises(NotTaken, match="--interval 10s"):
        taken(written(tmp_path, text))
    _, rows = taken(written(tmp_path, text), interval_ns=10**10)
    assert rows["imported", "sda", "read_bytes"] == [(10**10, 80 * 1024 * 10.0), (2 * 10**10, 80 * 1024 * 10.0)]


def test_the_brief_lines_of_collectl_are_of_all_disks_together(tmp_path: Path) -> None:
    text = (
        "#                  <--------CPU--------><----------Disks----------->\n"
        "#Date    Time      cpu sys inter  ctxsw KBRead  Reads KBWrit Writes\n"
        "20210302 10:00:00   97  15  1098   2210      8      2    593     40\n"
        "20210302 10:00:10   98  19  1000    20K    212     53  11072    138\n"
    )
    found, rows = taken(written(tmp_path, text), zone_s=0)
    assert rows["imported", "all disks", "write_bytes"] == [(at("2021-03-02 10:00:10"), 11072 * 1024 * 10.0)]
    assert values(rows, "imported", "cpu", "busy_share") == [0.98]
    assert found.values_taken + found.values_left_out + found.values_unread == 16


def test_a_diagnosis_of_collectl_names_the_slow_disk(tmp_path: Path) -> None:
    text = (SAMPLES / "collectl-plot.txt").read_text()
    last = text.splitlines()[-1]
    longer = text + "".join(last.replace("11:00:30", f"11:{n // 6:02d}:{n % 6}0") + "\n" for n in range(4, 31))
    state, causes, what = said_of(written(tmp_path, longer))
    assert (state, causes[0]) == ("cause found", "slow-disk"), what


# PCP


@pytest.mark.parametrize("name", ["pmrep.csv", "pcp.json"])
def test_pmrep_and_pcp2json_are_the_same_values(name: str) -> None:
    found, rows = taken(SAMPLES / name)
    assert (found.format, found.hosts) == ("pcp", ["db1"])
    # Both say their zone, in CSV where it was asked for (-x).
    assert rows["db1", "sda", "read_ios_count"] == [
        (at(f"2021-03-02 10:00:{second}"), 3000.0) for second in (10, 20, 30)
    ]
    assert values(rows, "db1", "sda", "read_bytes") == [2400 * 1024 * 10.0] * 3
    # Milliseconds of all I/Os of a second, by their number.
    assert values(rows, "db1", "sda", "read_latency_mean_ns") == [45e6] * 3
    assert values(rows, "db1", "sda", "write_latency_mean_ns") == [35e6] * 3
    assert values(rows, "db1", "sda", "busy_share") == pytest.approx([0.98] * 3)
    assert values(rows, "db1", "sda", "queue_mean_count") == [17.0] * 3
    assert values(rows, "db1", "sda", "queue_now_count") == [19.0] * 3
    assert values(rows, "db1", "vg0-x", "read_ios_count") == [0.0] * 3
    # Two processors together, by hinv.ncpu or by the sum of their time, and one alone.
    assert values(rows, "db1", "cpu", "user_share") == pytest.approx([0.4] * 3)
    assert values(rows, "db1", "cpu", "busy_share") == pytest.approx([0.5] * 3)
    assert values(rows, "db1", "cpu/1", "busy_share") == pytest.approx([0.6] * 3)
    assert values(rows, "db1", "memory", "free_bytes") == [3599364 * 1024.0] * 3
    assert values(rows, "db1", "eth0", "in_bytes") == [1234560.0] * 3
    assert values(rows, "db1", "psi-io", "some_share") == pytest.approx([0.42] * 3)
    assert found.ignored["disk.all.read"] == "the sum of the disks that are taken"


def test_raw_counters_of_pmrep_become_rates_and_an_excerpt_of_rates_stays_rates(tmp_path: Path) -> None:
    head = "Time,disk.dev.read-sda,disk.dev.read_rawactive-sda,disk.dev.inflight-sda\n"
    raw = head + "".join(f"2021-03-02 10:00:{n}0,{1000 + n * 500},{n * 20000},4\n" for n in range(3))
    _, rows = taken(written(tmp_path, raw), zone_s=0)
    assert values(rows, "imported", "sda", "read_ios_count") == [500.0, 500.0]
    assert values(rows, "imported", "sda", "read_latency_mean_ns") == [40e6, 40e6]
    _, rows = taken(written(tmp_path, raw + raw.replace("10:00", "11:00")), zone_s=0)
    assert values(rows, "imported", "sda", "read_ios_count") == [500.0] * 4
    excerpt = head + "".join(f"2021-03-02 10:00:{n}0,50.000,2000.000,4\n" for n in range(3))
    _, rows = taken(written(tmp_path, excerpt), zone_s=0)
    assert values(rows, "imported", "sda", "read_ios_count") == [500.0, 500.0]


def test_a_diagnosis_of_pcp_names_the_slow_disk(tmp_path: Path) -> None:
    text = (SAMPLES / "pmrep.csv").read_text()
    last = text.splitlines()[-1]
    longer = text + "".join(last.replace("11:00:30", f"11:{n // 6:02d}:{n % 6}0") + "\n" for n in range(4, 31))
    state, causes, what = said_of(written(tmp_path, longer))
    assert (state, causes[0]) == ("cause found", "slow-disk"), what


# Binary files of the same programs


@pytest.mark.parametrize(
    ("name", "head", "said"),
    [
        (
            "atop_20210302",
            b"\xef\xbe\xed\xfe\x08\x82\0\0",
            "a raw file of atop; convert it: atop -P .* -r atop_20210302 >",
        ),
        ("sa23", b"\x96\xd5\x75\x21\x0c\x06\x01\0", "an archive of sar; convert it: sadf -j sa23 -- -A > sa23.json"),
        ("db1.meta", b"\0\0\0\x84\x50\x05\x26\x02", "an archive of PCP; convert it: pmrep -a db1 -o csv"),
        ("x.raw.gz", b"\x1f\x8b\x08\0", "packed by gzip; convert it: gunzip x.raw.gz"),
    ],
)
def test_binary_files_are_answered_with_the_command_that_makes_text_of_them(
    tmp_path: Path, name: str, head: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(head + b"\0" * 99)
    with pytest.raises(NotTaken, match=said):
        taken(tmp_path / name)


# Quiet hosts


QUIET = {
    "atop-lines.txt": (r"sda \d+ \d+ \d+ \d+ \d+ 0 0 19 25.00", "sda 90 150 2400 50 1600 0 0 0 1.00"),
    "collectl-plot.txt": (r"sda 300 5 2400 45 .* eth0", "sda 15 0 120 1 5 0 80 1 10 1 1 0 2 eth0"),
    "pmrep.csv": (r",300.000,0.000,100.000,0.000,2400.000,13500.000,3500.000,980.000,17000.000,19,300.000",
                  ",15.000,0.000,5.000,0.000,160.000,15.000,5.000,9.000,20.000,0,15.000"),
}  # fmt: skip
"""What makes a quick disk of the slow one of a sample."""
IDLE = (
    (" 40 1 5 20 0 1 0 33 ", " 40 1 5 0 0 1 0 53 "), (",500.000,500.000,", ",1000.000,0.000,"),
    (" 1000 300 10 ", " 1300 0 10 "), (" 600 120 ", " 720 0 "), (" 400 180 ", " 580 0 "),
)  # fmt: skip
"""Time of processors that wait for I/O in a sample, and the same time idle."""


@pytest.mark.parametrize("name", QUIET)
def test_a_quick_disk_is_no_cause_and_is_judged_by_its_latency(name: str, tmp_path: Path) -> None:
    text = re.sub(*QUIET[name], (SAMPLES / name).read_text())
    # Nor do processors and tasks wait for I/O.
    for waits, idle in IDLE:
        text = text.replace(waits, idle)
    text = re.sub(r"y 50.7 .*", "y" + " 0.0 0.0 0.0 0" * 5, text).replace("420000.000", "0.000")
    if name == "atop-lines.txt":
        last = text[text.rindex("CPU db1") :]
        more = [last.replace("1614679230", str(1614679230 + 10 * n)) for n in range(1, 30)]
    else:
        last = text.splitlines()[-1]
        more = [last.replace("11:00:30", f"11:{n // 6:02d}:{n % 6}0") + "\n" for n in range(4, 31)]
    found = diagnose(sources_of([written(tmp_path, text + "".join(more))], Options(zone_s=0)).sources)
    assert found.causes == [] or [cause.cause for cause in found.causes] == ["none"]
    disk = next(one for one in found.cells if (one.tier, one.resource) == ("storage", "disk"))
    assert disk.state == "ok"
    assert any("sda" in one.measure.text and one.measure.threshold.unit == "ns" for one in disk.judged)
