"""fio's normal text and its terse output: exact figures from whole numbers, and nothing that the text does not say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from assay.run.imports import read_results
from assay.telemetry.importers.importer import NotTaken, Options
from assay.workloads.imported import ImportedRun
from assay.workloads.io.importers.fio import FioText
from assay.workloads.io.importers.fio_text import scaled

SAMPLES = Path(__file__).parent / "imported"
OLD = (SAMPLES / "fio_text-2.txt").read_text()
NEW = (SAMPLES / "fio_text-3.txt").read_text()
CLIENTS = (SAMPLES / "fio_text-clients.txt").read_text()
TERSE = (SAMPLES / "fio_text-terse.txt").read_text().splitlines()


def read(text: str) -> tuple[ImportedRun, list[dict[str, Any]]]:
    assert FioText().recognises(text[:65536])
    run = read_results(text, FioText(), Options(zone_s=0))
    return run, [point.as_point() for point in run.points]


def side(direction: str, count: int, iops: str, rate: str, moved: str, ms: int = 60_000) -> str:
    """A report of one direction, in the words of fio 3."""
    place = [count if name == direction else 0 for name in ("read", "write", "trim")]
    return (
        f"  {direction}: IOPS={iops}, BW={rate}/s (1MB/s)({moved}/{ms}msec)\n"
        "     lat (usec): min=10, max=2000.5k, avg=950.25, stdev= 1.00\n"
        f"     issued rwts: total={place[0]},{place[1]},{place[2]},0 short=0,0,0,0 dropped=0,0,0,0\n"
    )


def asked(name: str = "j", rw: str = "randread", bs: str = "4096B-4096B", group: int = 0, **more: Any) -> str:
    engine, depth = more.get("ioengine", "libaio"), more.get("iodepth", 8)
    return (
        f"{name}: (g={group}): rw={rw}, bs=(R) {bs}, (W) {more.get('written', bs)}, (T) 4096B-4096B, ioengine={engine},"
        f" iodepth={depth}\n"
    )


def ran(name: str = "j", jobs: int = 1, group: int = 0, pid: int = 7, when: str = "Tue Mar  2 10:02:00 2021") -> str:
    return f"{name}: (groupid={group}, jobs={jobs}): err= 0: pid={pid}: {when}\n"


def test_rates_are_counts_over_time_not_what_is_rounded() -> None:
    _, (data, log) = read(NEW)
    assert (data["read"]["count"], data["write"]["count"]) == (1299329, 558663)
    assert data["read"]["iops"] == 1299329 / 1.004
    assert data["read"]["bytes_per_s"] == 1299329 * 8192 / 1.004
    assert data["read"]["latency_ns"]["max"] == 7879e3
    assert data["read"]["latency_ns"] | {} == {
        "mean": 834.39, "p50": 422.0, "p90": 510.0, "p95": 548.0, "p99": 628.0, "p99_9": 884.0, "p99_99": 67072.0,
        "max": 7879000.0,
    }  # fmt: skip
    assert data["load"] == {"queue_depth": 8, "workers": 2, "outstanding": 16}
    assert log["write"]["bytes_per_s"] == 1486620 * 65536 / 1.001
    # This engine's flushes are timed and not counted.
    assert log["flush"] is None


def test_what_the_text_does_not_say_is_null() -> None:
    run, (data, log) = read(NEW)
    workload = data["workload"]
    assert (workload["block_bytes"], workload["random_share"]) == (8192, 1.0)
    # The mix that was asked for is not in the text; the one that was done is.
    assert workload["read_share"] == 1299329 / (1299329 + 558663)
    for name in ("io_mode", "sync", "skew", "align_bytes", "region", "compressible_share"):
        assert workload[name] is None
        assert log["workload"][name] is None
    assert run.volumes == []
    assert run.taken.ignored["sync"] == "the text does not say how many there were"


def test_letters_of_fio_2_stand_for_binary_thousands() -> None:
    run, (both, scan) = read(OLD)
    data, log = both["activities"]
    assert data["read"]["bytes_per_s"] == 210010 * 8192 / 60.001
    assert data["read"]["latency_ns"]["max"] == 512.5e6
    assert data["read"]["latency_ns"]["p99"] == 48e6
    assert data["write"]["latency_ns"]["p50"] == 4512e3
    assert (scan["workload"]["block_bytes"], scan["read"]["iops"]) == (1 << 20, 201.0)
    # Blocks that vary: their mean, from what fio prints of the rate.
    assert both["workload"]["activities"][1]["block_bytes"] == 16384
    assert log["write"]["bytes_per_s"] == 1600 * 1024
    assert both["errors"] == {"count": 1, "kinds": {"ENOSPC": 1}}
    assert both["ended_by"] == "failed"
    assert "oltp: 3 short writes" in run.taken.notes


def figures(line: str) -> int:
    """Figures of a line of fio's text, counted by its punctuation."""
    shown = line.strip()
    if "): rw=" in shown:
        return 5
    if "): err=" in shown or "runt=" in shown or " BW=" in shown:
        return 4
    if shown.startswith("issued"):
        return len(re.findall(r"\d+", shown))
    return len(re.findall(r"(?<!>)=\s*\[?\s*\d", shown)) if not shown.startswith("Jobs:") else 0


@pytest.mark.parametrize("text", [OLD, NEW, CLIENTS], ids=["old", "new", "clients"])
def test_every_figure_is_taken_left_out_or_not_understood(text: str) -> None:
    run, _ = read(text)
    taken = run.taken
    lines = [line for line in text.splitlines() if not line.startswith(("#", "hostname="))]
    assert taken.values_taken + taken.values_left_out + taken.values_unread == sum(map(figures, lines))
    assert taken.unread == ({"strange figure": "strange figure : a=1, b=2"} if text is OLD else {})
    assert taken.values_unread == (2 if text is OLD else 0)


@pytest.mark.parametrize("line", TERSE[:2])
def test_every_field_of_terse_output_is_taken_or_left_out(line: str) -> None:
    taken = read(line)[0].taken
    # What a line begins with names the job, and names are no values.
    assert taken.values_taken + taken.values_left_out == line.count(";") + 1 - 5


def test_hosts_of_client_mode_are_workers_and_their_sum_is_left_out() -> None:
    run, (point,) = read(CLIENTS)
    assert (run.version, run.hostname) == ("3.33", None)
    assert point["load"] == {"queue_depth": 4, "workers": 2, "outstanding": 8}
    assert point["read"]["count"] == 8001
    assert run.taken.ignored["All clients"] == "the sum of all hosts, of which each is taken"
    assert any(note.endswith("db1, db2") for note in run.taken.notes)
    # The sum alone is taken as it is; of its jobs nothing was said.
    run, (alone,) = read(CLIENTS[CLIENTS.index("All clients:") :])
    assert (alone["read"]["count"], alone["load"]) == (8001, {"kind": "unknown"})
    assert alone["workload"]["random_share"] is None
    # On one host it is that host's.
    assert read(CLIENTS.replace("db2", "db1"))[0].hostname == "db1"


def test_sums_of_unlike_jobs_do_not_say_what_was_asked() -> None:
    text = asked("a") + asked("b", rw="randwrite") + "Starting 2 processes\n" + ran("a", jobs=2)
    run, (point,) = read(text + side("read", 600, "10", "40.0KiB", "2400KiB"))
    assert point["load"] == {"kind": "unknown"}
    assert any("sums up jobs that asked for different things" in note for note in run.taken.notes)
    # Jobs that report for themselves are no part of a sum.
    text += side("read", 600, "10", "40.0KiB", "2400KiB") + ran("b") + side("write", 60, "1", "4096B", "240KiB")
    _, (point,) = read(text)
    assert [one["load"]["workers"] for one in point["workload"]["activities"]] == [2, 1]


def test_an_excerpt_without_counts_has_what_is_printed() -> None:
    text = asked() + ran() + side("read", 0, "12.5k", "48.8MiB", "2930MiB")
    run, (point,) = read(text.replace("issued", "x"))
    assert (point["read"]["count"], point["read"]["iops"]) == (750_000, 12_500.0)
    assert point["read"]["bytes_per_s"] == 48.8 * 2**20
    assert any("from IOPS as printed" in note for note in run.taken.notes)
    # A count that does not agree with the rate is of something else, such as the ramp.
    run, (point,) = read(text.replace("total=0,", "total=900000,"))
    assert point["read"]["iops"] == 12_500.0


def test_runs_that_were_appended_are_points_of_their_own_and_reports_of_one_are_not() -> None:
    later = "Tue Mar  2 10:03:00 2021"
    first = asked() + ran() + side("read", 600_000, "10.0k", "39.1MiB", "2344MiB")
    again = first.replace("10:02", "11:02").replace("600000", "600001").replace("pid=7", "pid=9")
    for head in ("", "Run status group 0 (all jobs):\n"):
        run, points = read(first + head + again)
        assert [point["read"]["count"] for point in points] == [600_000, 600_001]
        assert points[1]["measured_to_utc_ns"] - points[0]["measured_to_utc_ns"] == 3600 * 10**9
    grown = ran(when=later) + side("read", 1_260_000, "10.5k", "41.0MiB", "4922MiB", ms=120_000)
    run, (point,) = read(first + "\n" + grown)
    assert (point["read"]["count"], point["measured_s"]) == (1_260_000, 120.0)
    assert any("--status-interval" in note for note in run.taken.notes)


def test_terse_lines_are_counted_by_the_block_that_fits() -> None:
    run, (rand, log) = read("\n".join(TERSE))
    kib, iops, ms = (int(TERSE[0].split(";")[place]) for place in (5, 7, 8))
    assert rand["read"]["count"] == kib * 1024 // 8192
    assert rand["read"]["count"] * 1000 // ms == iops
    assert rand["read"]["bytes_per_s"] == kib * 1024 * 1000 / ms
    assert (rand["workload"]["block_bytes"], log["workload"]["block_bytes"]) == (8192, 65536)
    assert rand["read"]["latency_ns"]["p99_99"] == 55e3
    # Less than a microsecond is printed as 0, which is no latency.
    assert "p50" not in rand["read"]["latency_ns"]
    assert any("no counts; reads were counted by blocks of 8,192 bytes" in note for note in run.taken.notes)
    assert any("fio says: fio: a message" in note for note in run.taken.notes)


def test_terse_lines_of_one_job_are_points_unless_they_grow() -> None:
    line = TERSE[0]
    run, points = read(f"{line}\n{line}\n")
    assert len(points) == 2
    assert any("one after the other or at once" in note for note in run.taken.notes)
    fields = line.split(";")
    for place in (5, 8, 46, 49):
        fields[place] = str(int(fields[place]) * 2)
    run, (point,) = read(f"{line}\n{';'.join(fields)}\n")
    assert point["measured_s"] == 2.002
    assert any("--status-interval" in note for note in run.taken.notes)
    # A sum of all clients says that the lines before it ran at once.
    total = ";".join([*line.split(";")[:2], "All clients", *line.split(";")[3:]])
    _, (point,) = read(f"{line}\n{line}\n{total}\n")
    assert point["read"]["count"] == 2 * int(line.split(";")[5]) * 1024 // 8192


def test_a_line_of_what_was_asked_before_terse_output_is_used() -> None:
    run, (point,) = read(asked("rand", "randrw", "8192B-8192B", iodepth=32) + "fio-3.33\n" + TERSE[0])
    assert point["load"]["queue_depth"] == 32
    assert point["workload"]["random_share"] == 1.0
    assert not any("does not say what was asked" in note for note in run.taken.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (asked() + "fio-3.33\nStarting 1 process\n", "holds no results: it ended before fio reported"),
        (asked(rw="trim") + ran() + side("trim", 600, "10", "40.0KiB", "2400KiB"), "trims are left out"),
        (ran() + "  read: IOPS=0, BW=0B/s (0B/s)(0B/1msec)\n", "no job that read or wrote anything"),
    ],
)
def test_texts_without_results_are_refused_in_a_line(text: str, message: str) -> None:
    with pytest.raises(NotTaken, match=message):
        read(text)


@pytest.mark.parametrize(
    ("digits", "letters", "binary", "value"),
    [("1.5", "Gi", False, 1.5 * 2**30), ("1.5", "G", False, 1.5e9), ("64", "K", True, 65536.0), ("7", "", False, 7.0)],
)
def test_letters_are_thousands(digits: str, letters: str, binary: bool, value: float) -> None:
    assert scaled(digits, letters, binary=binary).value == value


def test_fio_2_0_has_spaces_before_commas_and_no_date() -> None:
    text = (
        "files: (g=0): rw=randrw, bs=512-64K/512-64K, ioengine=libaio, iodepth=64\n2.0.8\nStarting 1 process\n\n"
        "files: (groupid=0, jobs=1): err= 0: pid=2619\n"
        "  read : io=320000KB, bw=2222.2KB/s, iops=750 , runt=144000msec\n"
        "    slat (usec): min=0 , max=12114 , avg=64.25, stdev=194.50\n"
        "    clat (usec): min=636 , max=2125.2K, avg=67824.50, stdev=94271.25\n"
        "     lat (usec): min=712 , max=2125.3K, avg=67896.75, stdev=94271.75\n"
        "     issued    : total=r=108000/w=0/d=0, short=r=0/w=0/d=0\n"
    )
    run, (point,) = read(text)
    assert run.version == "2.0.8"
    assert (point["read"]["count"], point["read"]["iops"]) == (108_000, 750.0)
    assert point["read"]["latency_ns"] == {"mean": 67896750.0, "max": 2125.3e6}
    assert point["measured_from_utc_ns"] is None


def test_quoted_text_of_a_mail_is_read() -> None:
    quoted = "".join(f"> {line}\n" for line in NEW.splitlines())
    assert read(quoted)[1] == read(NEW)[1]


def command(options: str) -> str:
    return (
        f"[root@db1 ~]# fio --name=j -rw randread --bs=4k --ioengine=libaio \\\n  --iodepth=8 {options} | tee out.txt\n"
    )


def test_the_command_before_a_text_says_every_option() -> None:
    text = asked() + ran() + side("read", 600_000, "10.0k", "39.1MiB", "2344MiB")
    run, (point,) = read(command("--direct=1 --filename=/dev/sdz --ramp_time=10s") + text)
    workload = point["workload"]
    assert (workload["io_mode"], workload["skew"], workload["random_share"]) == ("direct", "uniform", 1.0)
    assert point["warmup_s"] == 10.0
    assert [one["path"] for one in run.volumes] == ["/dev/sdz"]
    assert not any("no other option" in note for note in run.taken.notes)
    # A command that asked for something else is of another run, and one with a job file says nothing.
    for other in (command("").replace("4k", "8k"), command("--rate_iops=$RATE"), "$ fio job.fio\n", "$ fio -q 'x\n"):
        _, (point,) = read(other + text)
        assert point["workload"]["io_mode"] is None
    # It says so of one run alone.
    _, points = read(command("--direct=1") + text + text.replace("pid=7", "pid=8").replace("10:02", "11:02"))
    assert [point["workload"]["io_mode"] for point in points] == ["direct", None]
