"""Tables of sar, mpstat, pidstat and vmstat, and lines of sadf, become what sadf's JSON becomes.

The tables of devices are as public tickets have them (sysstat 9 to 12, English and Chinese); values are changed.
"""

from __future__ import annotations

import random
import re
from contextlib import suppress
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest

from assay.telemetry.importers.importer import Into, NotTaken, Options
from assay.telemetry.importers.registry import importer_of
from foreign_files import taken, values, written

SAR = """\
Linux 3.10.0-957.27.2.el7.x86_64 (db1)  01/15/2021  _x86_64_  (4 CPU)

11:58:20 PM     CPU     %user     %nice   %system   %iowait    %steal     %idle
11:59:20 PM     all      2.00     30.00      4.00      1.00      0.00     63.00
12:00:20 AM     all      2.00      0.00      4.00      1.00      0.00     93.00
Average:        all      2.00     15.00      4.00      1.00      0.00     78.00

11:58:20 PM       tps      rtps      wtps   bread/s   bwrtn/s
11:59:20 PM    863.00    863.00      0.00  47048.00      0.00

11:58:20 PM       DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util
11:59:20 PM       sda    863.00  47048.00      0.00     54.52      2.86      3.33      0.16     14.20
11:59:20 PM centos-swap      0.00      0.00      0.00      0.00      0.00      0.00      0.00      0.00
12:00:20 AM       sda    100.00   1000.00      0.00     10.00      0.50      5.00      0.16     14.20
12:00:20 AM centos-swap      0.00      0.00      0.00      0.00      0.00      0.00      0.00      0.00
"""

SADF = """\
# hostname;interval;timestamp;CPU;%user;%nice;%system;%iowait;%steal;%idle
db1;600;2022-02-13 06:10:15 UTC;-1;1.00;0.00;2.00;3.00;0.00;94.00
# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;areq-sz;aqu-sz;await;%util
db1;600;2022-02-13 06:10:15 UTC;sda;10.00;8.00;2.00;30.81;0.10;0.62;1.00
# hostname;interval;timestamp;runq-sz;plist-sz;ldavg-1;ldavg-5;ldavg-15;blocked
db1;600;2022-02-13 06:10:15 UTC;2;406;0.00;0.01;0.05;0
"""

LINES = (
    "db1\t600\t1644732615\tall\t%user\t1.00\ndb1\t600\t1644732615\tall\t%idle\t94.00\n"
    "db1\t600\t1644732615\tsda\ttps\t10.00\ndb1\t600\t1644732615\tsda\trkB/s\t8.00\n"
    "db1\t600\t1644732615\tsda\tawait\t0.62\ndb1\t600\t1644732615\t-\trunq-sz\t2\n"
)

VMSTAT = """\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 UTC
 2  0      0 400000   1000  20000    0    0     9     9    1    2  1  1 98  0  0 2021-03-02 10:00:00
 8  1      0 400000   1000  20000    0    4    10    20    1    2 50 10 30 10  0 2021-03-02 10:00:10
"""


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9


def test_tables_of_sar_are_put_together_by_time_over_midnight(tmp_path: Path) -> None:
    found, rows = taken(written(tmp_path, SAR), zone_s=0)
    assert (found.format, found.hosts) == ("sar", ["db1"])
    assert rows["db1", "cpu", "busy_share"] == [
        (at("2021-01-15 23:59:20"), pytest.approx(0.36)),
        (at("2021-01-16 00:00:20"), pytest.approx(0.06)),
    ]
    assert rows["db1", "sda", "read_bytes"] == [
        (at("2021-01-15 23:59:20"), 47048 * 512 * 60.0),
        (at("2021-01-16 00:00:20"), 1000 * 512 * 60.0),
    ]
    assert values(rows, "db1", "sda", "latency_mean_ns") == [3.33e6, 5e6]
    assert ("db1", "centos-swap", "latency_mean_ns") not in rows
    assert found.ignored["rtps"] == "no use is made of it"
    # Two rows of processors, one of transfers, four of devices, and the averages.
    assert (found.values_taken + found.values_left_out, found.values_unread) == (2 * 6 + 5 + 4 * 8 + 6, 0)


def test_times_of_chinese_are_read_and_a_restart_ends_the_table(tmp_path: Path) -> None:
    text = (
        "Linux 2.6.32-431.el6.x86_64 (localhost) \t2017年01月12日 \t_x86_64_\t(8 CPU)\n\n"
        "14时33分12秒       DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util\n"
        "14时33分13秒    dev8-0      4.00      0.00     32.00      8.00      0.04      8.75      8.75      3.50\n"
        "14时33分13秒       LINUX RESTART\n"
        "平均时间:    dev8-0      4.00      0.00     32.00      8.00      0.04      8.75      8.75      3.50\n"
    )
    _, rows = taken(written(tmp_path, text), zone_s=0)
    assert rows["localhost", "dev8-0", "write_bytes"] == [(at("2017-01-12 14:33:13"), 32 * 512.0)]


def test_processors_of_mpstat_and_processes_of_pidstat(tmp_path: Path) -> None:
    head = "Linux 5.15.0 (db1) \t2021-03-02 \t_x86_64_\t(2 CPU)\n\n"
    text = (
        f"{head}10:00:00     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n"
        "10:00:10     all   50.00    0.00    5.00    0.00    0.00    5.00    0.00    0.00    0.00   40.00\n"
        "10:00:10       0   99.00    0.00    1.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00\n"
    )
    _, rows = taken(written(tmp_path, text), zone_s=0)
    assert values(rows, "db1", "cpu", "busy_share") == pytest.approx([0.6])
    assert values(rows, "db1", "cpu/0", "busy_share") == [1.0]
    text = (
        f"{head}10:00:00      UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command\n"
        "10:00:10       26      1234   1000.00    500.00      0.00      17  postgres\n"
    )
    _, rows = taken(written(tmp_path, text), zone_s=0)
    assert values(rows, "db1", "postgres/1234", "write_bytes") == [500 * 1024 * 10.0]


@pytest.mark.parametrize("text", [SADF, LINES])
def test_lines_of_sadf_are_the_same(tmp_path: Path, text: str) -> None:
    found, rows = taken(written(tmp_path, text))
    when = at("2022-02-13 06:10:15")
    assert rows["db1", "cpu", "user_share"] == [(when, 0.01)]
    assert rows["db1", "sda", "read_bytes"] == [(when, 8 * 1024 * 600.0)]
    assert rows["db1", "sda", "latency_mean_ns"] == [(when, pytest.approx(0.62e6))]
    assert rows["db1", "cpu", "waiting_count"] == [(when, 2.0)]
    counted = 6 + 7 + 6 if text is SADF else 6
    assert found.values_taken + found.values_left_out + found.values_unread == counted


def test_reports_of_vmstat_with_and_without_times(tmp_path: Path) -> None:
    found, rows = taken(written(tmp_path, VMSTAT), zone_s=0, host="db1")
    assert rows["db1", "cpu", "busy_share"] == [(at("2021-03-02 10:00:10"), pytest.approx(0.6))]
    assert values(rows, "db1", "memory", "swap_out_bytes") == [4 * 1024 * 10.0]
    assert values(rows, "db1", "cpu", "waiting_count") == [8.0]
    assert found.values_taken + found.values_left_out == 2 * 17
    untimed = re.sub(r" 2021.*| -+timestamp-+| +UTC", "", VMSTAT)
    with pytest.raises(NotTaken, match=r"--interval 10s.*vmstat -t 10"):
        taken(written(tmp_path, untimed))
    _, rows = taken(written(tmp_path, untimed), interval_ns=10 * 10**9)
    assert rows["imported", "cpu", "busy_share"] == [(10 * 10**9, pytest.approx(0.6))]


def test_a_table_without_its_first_line_is_refused_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(NotTaken, match=r"lacks its first line, which says the date and the host.*sadf -j"):
        taken(written(tmp_path, SAR.split("\n", 1)[1]))


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_mutated_tables_are_read_or_refused() -> None:
    pieces = ("", "\n", "9" * 40, "-", ":", "AM", "x", "12:00:00 PM", ";", "\t", "all", "DEV", "%", ",")
    read = 0
    for seed in range(4000):
        dice = random.Random(seed)
        text = dice.choice((SAR, SADF, LINES, VMSTAT))
        for _ in range(dice.randint(1, 8)):
            place = dice.randrange(len(text))
            text = text[:place] + dice.choice(pieces) + text[place + dice.choice((0, 1, 1, 3, 40)) :]
        chosen = importer_of(text)
        if chosen is None:
            continue
        into = Into(chosen.name, Options(zone_s=0, interval_ns=10**10), lambda _: None)
        with suppress(NotTaken):
            chosen.read(StringIO(text, newline=""), into)
            into.flush()
            read += 1
            assert into.taken.values_taken >= 0
    assert read > 2000
