"""No value of a foreign file vanishes: each is taken, left out by name, or not understood, and is right where taken."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assay.run.imports import import_files
from assay.telemetry.importers.importer import Into, NotTaken, Options
from assay.telemetry.importers.registry import importer_of
from foreign_files import accounted, taken, values, written

SAMPLES = Path(__file__).parent / "imported"
FOREIGN = Path(__file__).parents[1] / "fixtures" / "foreign"

HEADER = "Linux 3.10.0 (db1) \t{} \t_x86_64_\t(8 CPU)\n\n"
CPU = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           {}\n\n"
COLUMNS = "Device:  r/s  w/s  rkB/s  wkB/s  avgqu-sz  r_await  w_await  %util\n"
ROW = "sda  100.00  0.00  800.00  0.00  1.00  10.00  0.00  50.00\n"


def iostat(*times: str, day: str = "03/02/2021", columns: str = COLUMNS, row: str = ROW, header: str = HEADER) -> str:
    """Reports of iostat -xt at some times."""
    reports = "".join(f"{at}\n{CPU.format('2.00 0.00 1.00 10.00 0.00 87.00')}{columns}{row}\n" for at in times)
    return header.format(day) + reports


def at(text: str) -> int:
    """UTC nanoseconds."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9


# What is in a file, counted without the importers


def in_iostat(text: str) -> int:
    count, skip = 0, None
    for line in text.splitlines():
        if line.startswith(("avg-cpu", "Device")):
            skip = 1 if line.startswith("Device") else 0
        elif not line.strip():
            skip = None if skip == 1 else skip
        elif skip is not None:
            count += len(line.split()) - skip
            skip = None if skip == 0 else skip
    return count


def leaves(value: Any, names: set[str]) -> int:
    if isinstance(value, dict):
        return sum(leaves(one, names) for key, one in value.items() if key not in names)
    if isinstance(value, list):
        return sum(leaves(one, names) for one in value)
    return 1


def in_sysstat(text: str) -> int:
    hosts = json.loads(text)["sysstat"]["hosts"]
    names = {"timestamp", "disk-device", "iface", "cpu", "disk_device"}
    return sum(leaves(sample, names) for host in hosts for sample in host["statistics"])


def in_pdh(text: str) -> int:
    return sum(max(len(row) - 1, 0) for row in list(csv.reader(io.StringIO(text)))[1:])


def in_lines(pattern: str, each: int = 1) -> Callable[[str], int]:
    return lambda text: each * sum(1 for _ in re.finditer(pattern, text, re.MULTILINE))


def in_prometheus(text: str) -> int:
    return sum(len(one["values"]) for one in json.loads(text)["data"]["result"])


def objects(text: str) -> Iterator[Any]:
    """The JSON documents of a text, one after the other."""
    at = 0
    while at < len(text.rstrip()):
        found, at = json.JSONDecoder().raw_decode(text, at)
        yield found
        at += 1


def in_cloudwatch(text: str) -> int:
    count = 0
    for answer in objects(text):
        count += sum(len(one["Values"]) for one in answer.get("MetricDataResults", []))
        count += sum(len(point) - 2 for point in answer.get("Datapoints", []))
    return count


def in_azure_monitor(text: str) -> int:
    series = [one for metric in json.loads(text)["value"] for one in metric["timeseries"]]
    return sum(len(point) - 1 for one in series for point in one["data"])


COUNTED: dict[str, Callable[[str], int]] = {
    "iostat.txt": in_iostat,
    "iostat-iso.txt": in_iostat,
    "iostat.json": in_sysstat,
    "sar.json": in_sysstat,
    "perfmon.csv": in_pdh,
    "esxtop.csv": in_pdh,
    "pgbench_log.1": in_lines(r"^.*\S.*$"),
    "pgbench_aggregated.1": in_lines(r"^.*\S.*$"),
    "prometheus.json": in_prometheus,
    "cloudwatch-statistics.json": in_cloudwatch,
    "cloudwatch-data.json": in_cloudwatch,
    "azure-monitor.json": in_azure_monitor,
    "hdbtcount.log": in_lines(r"^\d"),
    "hammerdb.log": in_lines("TEST RESULT :", 2),
    "hdbxtprofile.log": in_lines(r"[A-Z][A-Z0-9]*: \d"),
}


@pytest.mark.parametrize("name", COUNTED)
def test_what_becomes_of_a_files_values_adds_up_to_what_is_in_it(name: str) -> None:
    text = (SAMPLES / name).read_text()

    assert accounted(text) == COUNTED[name](text)


JUNK = ("x", "n/a", "-", "1e999", "12,5", "nan", "1.6Q", "--5", "9" * 400, "99%%", "0x1F", "1,234.5")
"""Texts in a value's place; JSON holds them as texts."""
TEXTS = ("prometheus.json",)
"""Files of JSON whose values are texts."""


@pytest.mark.parametrize("name", [name for name in COUNTED if name.endswith((".txt", ".json", ".csv"))])
def test_values_that_are_no_numbers_are_accounted_for(name: str) -> None:
    original = (SAMPLES / name).read_text()
    is_json, is_csv = name.endswith(".json"), name.endswith(".csv")
    is_text = name in TEXTS
    in_text, in_json = r'(?<=, ")\d+[.\d]*(?="\])', r'(?<=": )-?\d+\.\d+|(?<=  )\d+\.\d+(?=,?$)'
    in_csv, in_table = r'(?<=,")-?\d[\d.]*(?=")', r"(?<= )\d+\.\d\d(?= |$)"
    pattern = in_text if is_text else in_json if is_json else in_csv if is_csv else in_table
    spots = list(re.finditer(pattern, original, re.MULTILINE))
    read = 0
    for seed in range(60):
        dice = random.Random(seed)
        text = original
        for spot in sorted(dice.sample(spots, min(len(spots), 5)), key=lambda spot: -spot.start()):
            junk = dice.choice(JUNK)
            text = text[: spot.start()] + (json.dumps(junk) if is_json and not is_text else junk) + text[spot.end() :]
        found = accounted(text)
        if found is not None:
            read += 1
            assert found == COUNTED[name](text), seed
    assert read > 50


# iostat: which interval a report is of


def test_reports_without_devices_have_their_own_time(tmp_path: Path) -> None:
    """`-z` prints no device without I/O: the one after it is of its own ten seconds."""
    busy = iostat("03/02/2021 10:00:00 AM", "03/02/2021 10:00:10 AM")
    idle = iostat("03/02/2021 10:00:20 AM", "03/02/2021 10:00:30 AM", row="", header="")
    later = iostat("03/02/2021 10:00:40 AM", header="")
    _, rows = taken(written(tmp_path, busy + idle + later), zone_s=0)
    assert rows["db1", "sda", "read_ios_count"] == [
        (at("2021-03-02 10:00:10"), 1000.0),
        (at("2021-03-02 10:00:40"), 1000.0),
    ]
    assert len(rows["db1", "cpu", "user_share"]) == 4


def test_a_run_that_was_appended_begins_with_a_report_since_the_start(tmp_path: Path) -> None:
    first = iostat("03/02/2021 10:00:00 AM", "03/02/2021 10:00:10 AM")
    second = iostat("03/02/2021 10:10:00 AM", "03/02/2021 10:10:10 AM")
    _, rows = taken(written(tmp_path, first + second), zone_s=0)
    assert rows["db1", "sda", "read_ios_count"] == [
        (at("2021-03-02 10:00:10"), 1000.0),
        (at("2021-03-02 10:10:10"), 1000.0),
    ]
    # In any order, but not one inside the other.
    _, swapped = taken(written(tmp_path, second + first), zone_s=0)
    assert sorted(swapped["db1", "sda", "read_ios_count"]) == rows["db1", "sda", "read_ios_count"]
    with pytest.raises(NotTaken, match="its runs overlap"):
        taken(written(tmp_path, first + first), zone_s=0)


def test_reports_that_were_cut_out_leave_a_gap(tmp_path: Path) -> None:
    times = [f"03/02/2021 10:00:{second}0 AM" for second in range(5)] + ["03/02/2021 10:09:00 AM"]
    found, rows = taken(written(tmp_path, iostat(*times)), zone_s=0)
    assert values(rows, "db1", "sda", "read_ios_count") == [1000.0] * 5
    assert "500 s from 2021-03-02 10:00:40 UTC on hold no report" in found.notes[0]


def test_an_excerpt_without_its_first_line_is_taken(tmp_path: Path) -> None:
    text = iostat("03/02/2021 10:00:00 AM", "03/02/2021 10:00:10 AM", header="")
    found, rows = taken(written(tmp_path, text), zone_s=0, host="db7")
    assert found.hosts == ["db7"]
    assert values(rows, "db7", "sda", "read_ios_count") == [1000.0]


def test_reports_without_times_have_those_that_the_user_says(tmp_path: Path) -> None:
    text = HEADER.format("03/02/2021") + f"{CPU.format('2 0 1 10 0 87')}{COLUMNS}{ROW}\n" * 3
    path = written(tmp_path, text)
    _, rows = taken(path, interval_ns=10 * 10**9, start_ns=at("2021-03-02 10:00:00"))
    assert rows["db1", "sda", "read_ios_count"] == [
        (at("2021-03-02 10:00:10"), 1000.0),
        (at("2021-03-02 10:00:20"), 1000.0),
    ]
    found, rows = taken(path, interval_ns=10 * 10**9)
    assert [t_ns for t_ns, _ in rows["db1", "sda", "read_ios_count"]] == [10 * 10**9, 20 * 10**9]
    assert "since its beginning" in found.notes[0]


@pytest.mark.parametrize(
    "text",
    ["2021年03月02日 10时00分{}秒", "西元2021年03月02日 (週二) 10時00分{}秒", "2021년 03월 02일 10시 00분 {}초",
     "02.03.2021 10:00:{}", "2021-03-02T10:00:{}+0000", "02-03-21 10:00:{}", "Tuesday 02 March 2021 10:00:{} AM UTC",
     "03/02/2021 10:00:{} AM", "2021-03-02 10:00:{}", "mar. 02 mars 2021 10:00:{}", "13/02/2021 10:00:{}"],
)  # fmt: skip
def test_times_of_every_locale_are_read(tmp_path: Path, text: str) -> None:
    _, rows = taken(written(tmp_path, iostat(text.format("00"), text.format("10"))), zone_s=0)
    day = "2021-02-13" if text.startswith("13") else "2021-03-02"
    assert rows["db1", "sda", "read_ios_count"] == [(at(f"{day} 10:00:10"), 1000.0)]


def test_the_order_of_day_and_month_is_settled_or_asked_for(tmp_path: Path) -> None:
    short = written(tmp_path, iostat("02/03/21 10:00:00", "02/03/21 10:00:10", day="02/03/21"))
    with pytest.raises(NotTaken, match=r"says 02/03/2021, which is 2 March 2021 or 3 February 2021.*--date-order"):
        taken(short, zone_s=0)
    for order, day in (("day-first", "2021-03-02"), ("month-first", "2021-02-03")):
        _, rows = taken(short, zone_s=0, date_order=order)
        assert rows["db1", "sda", "read_ios_count"][0][0] == at(f"{day} 10:00:10")
    # Days that follow each other settle it, and so does a number above twelve anywhere in the file.
    over_night = iostat("02/03/21 23:59:55", "03/03/21 00:00:05", day="02/03/21")
    found, rows = taken(written(tmp_path, over_night), zone_s=0)
    assert rows["db1", "sda", "read_ios_count"][0][0] == at("2021-03-03 00:00:05")
    assert "02/03/2021 is read with the day first: its days follow each other" in found.notes
    with pytest.raises(NotTaken, match="of no one order"):
        taken(written(tmp_path, iostat("13/03/21 10:00:00", "03/13/21 10:00:10", day="13/03/21")), zone_s=0)
    with pytest.raises(NotTaken, match="--date-order month-first: "):
        taken(written(tmp_path, iostat("13/03/21 10:00:00", "13/03/21 10:00:10")), zone_s=0, date_order="month-first")


def test_a_time_that_is_not_understood_is_shown(tmp_path: Path) -> None:
    text = iostat("am zweiten 3. um 10:00:00 Uhr", "am zweiten 3. um 10:00:10 Uhr")
    with pytest.raises(NotTaken, match=r"'am zweiten 3\. um 10:00:00 Uhr', which is not understood.*S_TIME_FORMAT=ISO"):
        taken(written(tmp_path, text))


# iostat: every column of every version


def test_columns_of_old_and_new_versions_are_the_same_values(tmp_path: Path) -> None:
    old = "Device:  r/s  w/s  rsec/s  wsec/s  avgrq-sz  avgqu-sz  await  svctm  %util\n"
    row = "sda  200.00  150.00  3200.00  9600.00  36.00  28.00  80.50  2.80  99.60\n"
    times = ("03/02/2021 10:00:00 AM", "03/02/2021 10:00:10 AM")
    found, rows = taken(written(tmp_path, iostat(*times, columns=old, row=row)), zone_s=0)
    assert values(rows, "db1", "sda", "read_bytes") == [3200 * 512 * 10.0]
    assert values(rows, "db1", "sda", "write_bytes") == [9600 * 512 * 10.0]
    assert values(rows, "db1", "sda", "latency_mean_ns") == [80.5e6]
    assert values(rows, "db1", "sda", "size_mean_bytes") == [36 * 512.0]
    assert values(rows, "db1", "sda", "queue_mean_count") == [28.0]
    assert "took it away" in found.ignored["svctm"]


def test_human_numbers_have_their_units(tmp_path: Path) -> None:
    columns = "Device  r/s  rkB/s  rareq-sz  r_await  aqu-sz  %util\n"
    text = iostat(
        "03/02/2021 10:00:00 AM", "03/02/2021 10:00:05 AM", columns=columns,
        row="sda  200.00  1.6M  8.0k  70.00  28.00  99.6%\n",
    )  # fmt: skip
    _, rows = taken(written(tmp_path, text.replace("2.00 0.00 1.00", "3.0% 0.0% 1.0%")), zone_s=0)
    assert values(rows, "db1", "sda", "read_bytes") == [1.6 * 2**20 * 5]
    assert values(rows, "db1", "sda", "read_size_mean_bytes") == [8192.0]
    assert values(rows, "db1", "sda", "busy_share") == pytest.approx([0.996])
    assert values(rows, "db1", "cpu", "user_share") == pytest.approx([0.03])


def test_pretty_tables_with_the_device_last_are_one_report(tmp_path: Path) -> None:
    """`-h` splits the columns over several tables; older versions break lines after long names."""
    tables = (
        "     r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz Device\n"
        "  100.00    800.0k     0.00   0.0%   10.00     8.0k sda\n\n"
        "     f/s f_await  aqu-sz  %util Device\n    5.00   20.00    1.00  50.0% sda\n\n"
    )
    text = HEADER.format("03/02/2021") + "".join(
        f"03/02/2021 10:00:{second}0 AM\n{CPU.format('2.0% 0.0% 1.0% 10.0% 0.0% 87.0%')}{tables}" for second in range(2)
    )
    _, rows = taken(written(tmp_path, text), zone_s=0)
    assert values(rows, "db1", "sda", "read_bytes") == [800 * 1024 * 10.0]
    assert values(rows, "db1", "sda", "flush_latency_mean_ns") == [20e6]
    broken = iostat(
        "03/02/2021 10:00:00 AM",
        "03/02/2021 10:00:10 AM",
        row=f"VolGroup00-LogVol00\n         {ROW.partition('  ')[2]}",
    )
    _, rows = taken(written(tmp_path, broken), zone_s=0)
    assert values(rows, "db1", "VolGroup00-LogVol00", "read_ios_count") == [1000.0]


def test_the_short_and_the_plain_report_are_taken(tmp_path: Path) -> None:
    short = "Device             tps      kB/s    rqm/s   await  areq-sz  aqu-sz  %util\n"
    times = ("2021-03-02T10:00:00+0000", "2021-03-02T10:00:10+0000")
    _, rows = taken(written(tmp_path, iostat(*times, columns=short, row="sda 350.0 6400.0 1.0 80.5 18.3 28.0 99.6\n")))
    assert values(rows, "db1", "sda", "ios_count") == [3500.0]
    assert values(rows, "db1", "sda", "io_bytes") == [6400 * 1024 * 10.0]
    assert values(rows, "db1", "sda", "latency_mean_ns") == [80.5e6]
    plain = "Device:            tps   Blk_read/s   Blk_wrtn/s   Blk_read   Blk_wrtn\n"
    _, rows = taken(written(tmp_path, iostat(*times, columns=plain, row="sda 10.0 100.0 200.0 5 6\n")))
    assert values(rows, "db1", "sda", "write_bytes") == [200 * 512 * 10.0]


def test_processors_are_busy_with_all_that_is_not_idle(tmp_path: Path) -> None:
    text = iostat("2021-03-02T10:00:00+0000", "2021-03-02T10:00:10+0000")
    _, rows = taken(
        written(tmp_path, text.replace("2.00 0.00 1.00 10.00 0.00 87.00", "1.00 96.00 2.00 0.00 0.00 1.00"))
    )
    assert values(rows, "db1", "cpu", "nice_share") == [0.96]
    assert values(rows, "db1", "cpu", "busy_share") == pytest.approx([0.99])


# sadf


def sadf(stamp: dict[str, Any], **sections: Any) -> str:
    """A document of sadf -j with two samples a minute apart."""
    samples = [
        {"timestamp": {"date": "2021-03-02", "time": f"10:0{n}:00", "interval": 60, **stamp}, **sections}
        for n in (0, 1)
    ]
    return json.dumps({"sysstat": {"hosts": [{"nodename": "db1", "statistics": samples}]}})


def test_the_zone_of_a_sample_is_said_in_every_version(tmp_path: Path) -> None:
    load = [{"cpu": "all", "usr": 2, "nice": 30, "sys": 1, "irq": 3, "soft": 40, "iowait": 1, "steal": 0, "idle": 23}]
    for stamp in ({"utc": 1}, {"tz": "UTC"}, {"tz": "+00:00"}):
        found, rows = taken(written(tmp_path, sadf(stamp, **{"cpu-load-all": load})), zone_s=3600)
        assert rows["db1", "cpu", "busy_share"][0] == (at("2021-03-02 10:00:00"), pytest.approx(0.76))
        assert found.notes == []
    _, rows = taken(written(tmp_path, sadf({"utc": 0}, **{"cpu-load-all": load})), zone_s=3600)
    assert rows["db1", "cpu", "softirq_share"][0] == (at("2021-03-02 09:00:00"), 0.4)
    found, _ = taken(written(tmp_path, sadf({"tz": "CET"}, **{"cpu-load-all": load})))
    assert "names its time zone CET, which says no offset" in found.notes[0]


def test_fields_of_disks_of_old_versions_are_taken(tmp_path: Path) -> None:
    disk = [{"disk-device": "sda", "tps": 350, "rd_sec": 3200.0, "wr_sec": 9600.0, "avgrq-sz": 18.0, "avgqu-sz": 28.0,
             "await": 80.5, "svctm": 2.8, "util-percent": 99.6}]  # fmt: skip
    _, rows = taken(written(tmp_path, sadf({"utc": 1}, disk=disk)))
    assert values(rows, "db1", "sda", "read_bytes") == [98_304_000.0] * 2
    assert values(rows, "db1", "sda", "write_bytes") == [294_912_000.0] * 2
    assert values(rows, "db1", "sda", "queue_mean_count") == [28.0] * 2
    assert values(rows, "db1", "sda", "size_mean_bytes") == [18 * 512.0] * 2


# Two values for one


def test_two_values_of_one_time_are_an_error_wherever_they_stand(tmp_path: Path) -> None:
    times = ("2021-03-02T10:00:00+0000", "2021-03-02T10:00:10+0000")
    with pytest.raises(NotTaken, match="two values for read_ios_count of sda on db1 at 2021-03-02 10:00:10 UTC"):
        taken(written(tmp_path, iostat(*times, row=ROW + ROW)))
    one, other = (written(tmp_path, iostat(*times), name) for name in ("a.txt", "b.txt"))
    with pytest.raises(NotTaken, match=r"b\.txt: has user_share of cpu on db1 .* and so has .*a\.txt"):
        import_files([one, other], into=tmp_path / "results", options=Options(), command=[])
    # Another program's values of the same are left out by name.
    disk = [{"disk-device": "sda", "tps": 5.0, "rkB": 10.0}]
    sar = written(tmp_path, sadf({"utc": 1}, disk=disk), "sar.json")
    found = import_files([one, sar], into=tmp_path / "results", options=Options(), command=[])
    assert found.recording is not None
    assert "a.txt has it for the same time" in found.recording["files"][1]["ignored"]["block read_bytes"]


def test_two_virtual_disks_are_two_entities() -> None:
    _, rows = taken(FOREIGN / "esxtop-two-disks.csv")
    assert values(rows, "esx1", "db01:scsi0:0", "read_latency_mean_ns")[0] == 1e6
    assert values(rows, "esx1", "db01:scsi0:1", "read_latency_mean_ns")[0] == 60e6
    assert values(rows, "esx1", "db01:scsi0:1", "read_ios_count")[0] == 9000.0


def pdh(counters: dict[str, str]) -> str:
    """A counter log of two rows."""
    cells = ",".join(f'"\\\\S\\{name}"' for name in counters)
    rows = "".join(
        f'"03/02/2021 10:00:{second:02}.000",' + ",".join(f'"{one}"' for one in counters.values()) + "\n"
        for second in (0, 15)
    )
    return f'"(PDH-CSV 4.0) (UTC)(0)",{cells}\n{rows}'


def test_a_group_of_a_guest_is_judged_by_processor(tmp_path: Path) -> None:
    cpus = {f"Vcpu(12:db01:2{n}:vmx-vcpu-{n})\\% Used": "50" for n in range(4)}
    text = pdh({"Group Cpu(12:db01)\\% Used": "200", "Group Cpu(12:db01)\\% Ready": "8", **cpus})
    found, rows = taken(written(tmp_path, text))
    assert values(rows, "S", "db01", "used_share")[0] == 0.5
    assert values(rows, "S", "db01", "ready_share")[0] == pytest.approx(0.02)
    assert values(rows, "S", "db01:vmx-vcpu-3", "used_share")[0] == 0.5
    assert found.notes == []


def test_a_datastore_on_nfs_is_a_device(tmp_path: Path) -> None:
    name = "Physical Disk NFS Volume(ds1)"
    _, rows = taken(written(tmp_path, pdh({f"{name}\\Reads/sec": "800", f"{name}\\Average Guest MilliSec/Read": "48"})))
    assert values(rows, "S", "ds1", "read_ios_count") == [12_000.0]
    assert values(rows, "S", "ds1", "read_latency_mean_ns")[0] == 48e6


def sources(text: str, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Source, entity and metric of a counter log."""
    batches: list[Any] = []
    chosen = importer_of(text)
    assert chosen is not None
    into = Into(chosen.name, Options(zone_s=0), batches.extend)
    chosen.read(io.StringIO(text), into)
    into.flush()
    del folder
    for batch in batches:
        for row in batch.records():
            yield row["source"], row["entity"], row["metric"]


def test_sums_and_volumes_count_where_nothing_else_was_recorded(tmp_path: Path) -> None:
    read = "Avg. Disk sec/Read"
    assert ("block", "_Total", "read_latency_mean_ns") in sources(
        pdh({f"PhysicalDisk(_Total)\\{read}": "0.085"}), tmp_path
    )
    both = pdh({f"PhysicalDisk(_Total)\\{read}": "0.085", f"PhysicalDisk(2 L:)\\{read}": "0.09"})
    assert {entity for _, entity, _ in sources(both, tmp_path)} == {"2 L:"}
    assert set(sources(pdh({f"LogicalDisk(L:)\\{read}": "0.038"}), tmp_path)) == {
        ("block", "L:", "read_latency_mean_ns")
    }
    both = pdh({f"LogicalDisk(L:)\\{read}": "0.085", f"PhysicalDisk(2 L:)\\{read}": "0.09"})
    assert {(source, entity) for source, entity, _ in sources(both, tmp_path)} == {("volume", "L:"), ("block", "2 L:")}


def test_transfers_of_a_disk_are_reads_and_writes_together(tmp_path: Path) -> None:
    disk = "PhysicalDisk(0 C:)\\"
    counters = {
        f"{disk}Avg. Disk sec/Transfer": "0.085", f"{disk}Disk Transfers/sec": "500",
        f"{disk}Disk Bytes/sec": "4096000",
        f"{disk}Current Disk Queue Length": "40", f"{disk}% Disk Time": "4000",
    }  # fmt: skip
    found, rows = taken(written(tmp_path, pdh(counters)))
    assert values(rows, "S", "0 C:", "latency_mean_ns")[0] == pytest.approx(85e6)
    assert values(rows, "S", "0 C:", "ios_count") == [7500.0]
    assert values(rows, "S", "0 C:", "io_bytes") == [4096000 * 15.0]
    assert values(rows, "S", "0 C:", "queue_mean_count")[0] == 40.0
    assert "% Idle Time" in found.ignored["PhysicalDisk\\% Disk Time"]
    # Beside the mean of the queue its length at the end of the interval is another figure.
    _, rows = taken(written(tmp_path, pdh({**counters, f"{disk}Avg. Disk Queue Length": "38"})))
    assert values(rows, "S", "0 C:", "queue_mean_count")[0] == 38.0
    assert values(rows, "S", "0 C:", "queue_now_count")[0] == 40.0


def test_instances_of_a_server_and_groups_of_processors_stay_apart(tmp_path: Path) -> None:
    life = "Buffer Manager\\Page life expectancy"
    _, rows = taken(written(tmp_path, pdh({f"SQLServer:{life}": "300", f"MSSQL$TWO:{life}": "10"})))
    assert values(rows, "S", "MSSQLSERVER:server", "page_life_ns")[0] == 300e9
    assert values(rows, "S", "TWO:server", "page_life_ns")[0] == 10e9
    busy = "% Processor Time"
    counters = {
        f"Processor Information(_Total)\\{busy}": "50", f"Processor Information(0,0)\\{busy}": "100",
        f"Processor Information(0,_Total)\\{busy}": "50",
    }  # fmt: skip
    _, rows = taken(written(tmp_path, pdh(counters)))
    assert values(rows, "S", "cpu", "busy_share")[0] == 0.5
    assert values(rows, "S", "cpu/0,0", "busy_share")[0] == 1.0
    found, rows = taken(written(tmp_path, pdh({**counters, f"Processor(_Total)\\{busy}": "40"})))
    assert values(rows, "S", "cpu", "busy_share")[0] == 0.4
    assert found.ignored[f"Processor Information\\{busy}"] == "Processor says it as well"


# Logs of databases' loads


def test_threads_of_a_pgbench_run_are_one_run(tmp_path: Path) -> None:
    files = []
    for thread, name in enumerate(("pgbench_log.77", "pgbench_log.77.1")):
        lines = (f"{thread} {n} {900 + 200 * thread} 0 {1614679200 + n // 10} {n % 10}00000\n" for n in range(30))
        files.append(written(tmp_path, "".join(lines), name))
    found = import_files(files, into=tmp_path / "results", options=Options(), command=[])
    assert found.recording is not None
    assert [one["values"]["taken"] for one in found.recording["files"]] == [40]
    rows = series(found.path)
    assert rows["committed_count"] == [20.0, 20.0]
    assert rows["latency_mean_ns"] == [1e6, 1e6]
    assert rows["latency_max_ns"] == [1.1e6, 1.1e6]


def test_intervals_of_threads_are_added_up(tmp_path: Path) -> None:
    files = [
        written(tmp_path, "".join(f"{1614679200 + 10 * n} 100 {total} 1 5 {most}\n" for n in range(3)), name)
        for name, total, most in (("pgbench_log.8", 100_000, 4000), ("pgbench_log.8.1", 300_000, 9000))
    ]
    found = import_files(files, into=tmp_path / "results", options=Options(), command=[])
    rows = series(found.path)
    assert rows["committed_count"] == [200.0, 200.0]
    assert rows["latency_mean_ns"] == [2e6, 2e6]
    assert rows["latency_max_ns"] == [9e6, 9e6]


def series(path: Path) -> dict[str, list[float]]:
    """Values of a run folder's series by metric."""
    from assay.record.run_folder import RunFolder

    found: dict[str, list[float]] = {}
    with RunFolder.open(path) as folder:
        for row in folder.series().records():
            found.setdefault(row["metric"], []).append(row["value"])
    return found


def test_a_profile_whose_tabs_were_lost_is_read_whole(tmp_path: Path) -> None:
    _, rows = taken(FOREIGN / "hammerdb-profile-glued.log")
    assert values(rows, "imported", "neword", "calls_count") == [322_104.0]
    for metric, ms in (("mean", 9.836), ("p50", 9.787), ("p95", 12.899), ("p99", 14.997), ("max", 36.366)):
        assert values(rows, "imported", "neword", f"latency_{metric}_ns") == pytest.approx([ms * 1e6])
    text = (FOREIGN / "hammerdb-profile-glued.log").read_text().replace("AVG: 9.836ms", "AVG: 9,836.1ms")
    found, rows = taken(written(tmp_path, text))
    assert ("imported", "neword", "latency_mean_ns") not in rows
    assert "AVG: 9,836.1ms" in found.unread["fields of a procedure"]


def test_the_console_of_hammerdb_is_read_with_a_time_or_without(tmp_path: Path) -> None:
    found, rows = taken(FOREIGN / "hammerdb-console.txt")
    assert rows["imported", "test", "new_orders_count"] == [(420 * 10**9, 10504.0 * 5)]
    assert any("says no times" in note for note in found.notes)
    _, rows = taken(FOREIGN / "hammerdb-console.txt", start_ns=at("2021-03-02 10:00:00"))
    assert rows["imported", "test", "transactions_count"] == [(at("2021-03-02 10:07:00"), 24110.0 * 5)]
    # The virtual users may come after any number of settings.
    settings = "HammerDB CLI v4.5\n" + "Changed tpcc:x from 1 to 2 for PostgreSQL\n" * 5000
    _, rows = taken(written(tmp_path, settings + (FOREIGN / "hammerdb-console.txt").read_text()))
    assert values(rows, "imported", "test", "new_orders_count") == [52520.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("top - 10:00:00 up 3 days\n", r"looks like top, .* record it with: .*iostat -xt 10"),
        ("fio-3.28 is here\n", r"looks like fio, but it holds no results"),
        (
            "[global]\nbs=8k\n[a]\nrw=read\n",
            r"looks like a job file of fio, .* run it here: assay profile --plan job\.fio",
        ),
        ("Version 1.1.0 \n'TEST SETUP ====\n", r"configuration of Iometer, .* assay profile PATH --plan test\.icf"),
        ("Label,VolumeReadOps\n2026/11/23 19:00:00,300\n", "looks like CloudWatch, .* get-metric-data"),
        ("time,Data Disk Queue Depth (Avg)\n", "looks like Azure Monitor, .* az monitor metrics list"),
        ('# TYPE node_disk_io_now gauge\nnode_disk_io_now{device="sda"} 0\n', "Prometheus, but .*query_range"),
        ("sda 0 0 rkB/s\n", "looks like iostat -x, but its tables have no title lines"),
    ],
)
def test_an_unknown_text_ends_in_the_nearest_format(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(NotTaken, match=message):
        taken(written(tmp_path, text))
