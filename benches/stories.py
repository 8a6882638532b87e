# ruff: noqa: E501  A story is a few long lines.
"""Twenty public problem stories: their data made again, what people found, and what `assay diagnose` says.

    python benches/stories.py

Each story is a page that anybody can read. Its figures are taken from the page; what the page does not say (noise,
other devices) is made. A story is right where the cause that people found is among the first two, or, where nothing
but the stall itself was recorded, where the verdict is "bad, cause not found". The table goes to
benches/results/stories.md.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from situations.files import WINDOWS, around, perfmon  # noqa: E402
from situations.signs import capped, hung, one_core  # noqa: E402
from situations.texts import FLASH, SYSTEM_DISK, during, iostat, once, progress  # noqa: E402

from assay.insight.diagnosis.diagnose import diagnose  # noqa: E402
from assay.insight.diagnosis.inputs import sources_of  # noqa: E402
from assay.telemetry.importers.importer import Options  # noqa: E402

RESULTS = ROOT / "benches" / "results" / "stories.md"


@dataclass(frozen=True)
class Story:
    """A story: its page, what was recorded, what people found, and the names of causes that say so."""

    url: str
    recorded: str
    found: str
    right: tuple[str, ...]
    make: Callable[[Path], list[str]]


def windows(**counters: object) -> Callable[[Path], list[str]]:
    """A Perfmon log of SQL Server with other values of its disk D: or its processors."""
    named = {f"PhysicalDisk(0 D:)\\{name.replace(chr(95), chr(32))}": value for name, value in counters.items()}
    return lambda folder: perfmon(folder, WINDOWS | named, samples=80)  # type: ignore[operator]


def full_core(folder: Path) -> list[str]:
    """One of eight processors full, under Windows."""
    counters = {name: value for name, value in WINDOWS.items() if not name.startswith("Processor")}
    return perfmon(folder, counters | one_core(1.0, 0), samples=80)  # type: ignore[operator]


def fallen(before: float, after: float, late_before: float, late_after: float) -> Callable[[Path], list[str]]:
    """A volume whose I/Os fall to a plateau, with a queue that stays."""
    writes = once(after, before, begin=180, length=10**6)
    late = once(late_after, late_before, begin=180, length=10**6)

    def flat(number: int, drawn: random.Random) -> float:
        return writes(number, drawn) if number < 180 else after * (1 + drawn.uniform(-0.005, 0.005))

    return iostat(
        {"nvme1n1": {"w/s": flat, "wkB/s": lambda n, d: flat(n, d) * 16, "w_await": late,
                     "aqu-sz": lambda _, d: 30 * (1 + d.uniform(-0.05, 0.05)), "%util": 99}},
        samples=480, step_s=10,
    )  # fmt: skip


STORIES = (
    Story("https://www.opskarma.com/problems/linux-failing-disk-high-await",
          "iostat: sdb %util 98.6, aqu-sz 1.4, 152 rkB/s, r_await 485 ms; sda is well",
          "the disk is dying: few I/Os, each very slow", ("slow-disk",),
          iostat({"sda": FLASH, "sdb": {"r/s": 2.9, "rkB/s": 152, "r_await": 485, "aqu-sz": 1.4, "%util": 98.6}}, {"%iowait": 60})),
    Story("https://www.besthub.dev/articles/root-cause-analysis-of-mysql-insert-latency-using-blktrace-and-disk-i-o-monitoring-bb11239af82d",
          "iostat: every 22 minutes a time of 100 % use and I/O near zero; page cleaner takes 10 s",
          "firmware of the RAID controller: the device stands still", ("device-stands-still",),
          iostat({"sdb": hung(1320, 10, first=300)}, samples=5400, step_s=1)),
    Story("https://github.com/rook/rook/issues/11005",
          "iostat: consumer SSD, r_await 35 to 99, w_await 41 to 58, f_await 48 to 88 ms, %util 64",
          "the SSDs got slow after two weeks: reads, writes and flushes", ("slow-disk", "log-flush"),
          iostat({"sda": {"r/s": 24, "rkB/s": 5632, "r_await": 90, "w/s": 42, "wkB/s": 504, "w_await": 55, "f/s": 12, "f_await": 85,
                          "aqu-sz": 5.9, "%util": 64}}, {"%user": 40, "%iowait": 5})),
    Story("http://yo61.com/dell-drac-bbu-auto-learn-tests-kill-disk-performance.html",
          "graphs: from 14:21 on CPU wait rises and MySQL's throughput falls for half an hour; reads are as before",
          "battery learn cycle: the controller writes through", ("slow-writes",),
          iostat({"sda": {"r/s": 60, "rkB/s": 960, "r_await": 6, "w/s": once(90, 420, begin=300, length=204),
                          "wkB/s": 3300, "w_await": once(85, 0.6, begin=300, length=204),
                          "aqu-sz": once(8, 0.6, begin=300, length=204), "%util": once(99, 30, begin=300, length=204)}},
                 {"%iowait": once(30, 2, begin=300, length=204)}, samples=900, step_s=10)),
    Story("https://topic.alibabacloud.com/a/mysql-disk-ioutil-high-raid-card-bbu-learn-font-colorredcyclefont-period_1_41_30024130.html",
          "iostat: high use at hardly any load on a MySQL replica",
          "battery learn cycle: the policy went from write-back to write-through", ("slow-writes", "slow-disk"),
          iostat({"sda": {"r/s": 3, "rkB/s": 48, "r_await": 5, "w/s": 120, "wkB/s": 1500, "w_await": 34, "aqu-sz": 4.1, "%util": 98}})),
    Story("https://github.com/scylladb/seastar/issues/593",
          "iostat: 2,147 r/s of 512 KiB, 1,074 MB/s flat, queue 131, await 61 ms, %util 100",
          "the disks are at their bandwidth, more I/Os only wait", ("throughput-limit", "slow-disk"),
          iostat({"sdb": {"r/s": 2147, "rkB/s": 1099520, "r_await": 61, "aqu-sz": 131, "%util": 100}}, {"%iowait": 30})),
    Story("https://thwack.solarwinds.com/product-forums/database-performance-monitor-dpm/b/news/posts/rds-gotchas-how-to-identify-possible-throttling-on-rds-leveraging-cloudwatch-metrics-through-database-performance-monitor-dpm",
          "CloudWatch: write IOPS vary, then stay at 100; latency triples, disk queue grows, CPU falls",
          "burst balance of gp2 used up", ("burst-decline", "throughput-limit"), fallen(320, 100, 90, 290)),
    Story("https://jake-webber.com/2019-01-22-rds-burst-balance.html",
          "RDS: write latency of 200 to 300 ms from 17:00 on, IOPS at 300 after 3,000",
          "burst credits used up: 100 GB of gp2 have 300 IOPS", ("burst-decline", "throughput-limit"), fallen(2800, 300, 8, 250)),
    Story("https://github.com/scylladb/seastar/issues/1030",
          "iotune and fio on EBS: bandwidth never above 128 MB/s, whatever is asked for",
          "limit of the volume's bandwidth", ("throughput-limit",),
          iostat({"nvme1n1": capped(122, "bytes")}, samples=240)),
    Story("https://www.percona.com/blog/2011/09/18/disaster-mysql-5-5-flushing/",
          "sysbench: throughput of each 10 s; stands for 4 minutes again and again",
          "InnoDB's synchronous flushing; found in the server's status alone", ("cause-not-found",),
          progress(during(2, 5000, every=600, length=240, first=360), during(9000, 12, every=600, length=240, first=360), samples=3600)),
    Story("https://www.percona.com/blog/2020/07/28/evaluating-checkpointing-in-postgresql/",
          "sysbench-tpcc: saw-teeth from 8,000 to 3,000 transactions a second",
          "full pages after each checkpoint; to be seen in the server alone", ("cause-not-found",),
          progress(during(3000, 8000, every=600, length=120, first=200), during(19, 7, every=600, length=120, first=200), samples=3600)),
    Story("https://loke.dev/blog/softirq-single-core-trap",
          "top: all processors together 4 %, one at 100 % of soft interrupts",
          "interrupts of the adapter on one processor", ("single-core",), full_core),
    Story("https://docs.microsoft.com/en-us/archive/blogs/mikelag/processor-0-increased-cpu-utilization",
          "task manager: processor 0 at 100 %, all others low",
          "receive side scaling is off: one processor serves the network", ("single-core",), full_core),
    Story("https://para.ngpcloud.org/cpu-steal-time",
          "top: steal above 10 % for 20 minutes",
          "the host is oversold: move the guest", ("guest-cpu",),
          iostat({"vda": FLASH}, {"%user": 45, "%system": 8, "%steal": 22}, samples=240)),
    Story("https://infrarunbook.com/article/linux-high-io-wait-troubleshooting",
          "top: 83.7 % iowait; a disk that fails retries, each I/O takes ten times as long",
          "a slow or failing disk", ("slow-disk",),
          iostat({"sda": {"r/s": 70, "rkB/s": 1120, "r_await": 140, "w/s": 20, "wkB/s": 320, "w_await": 180, "aqu-sz": 13, "%util": 100}},
                 {"%user": 2, "%iowait": 83})),
    Story("https://www.systemary.io/blog/linux-disk-io-monitoring-beyond-iostat",
          "iostat: 45 r/s at 15 ms, 120 w/s at 250 ms, %util 87",
          "writes are slow; which of a queue, a backup or the disk iostat does not say", ("slow-writes", "slow-disk"),
          iostat({"sda": {"r/s": 45, "rkB/s": 2150, "r_await": 15, "w/s": 120, "wkB/s": 8500, "w_await": 250, "%util": 87, "aqu-sz": 31}})),
    Story("https://github.com/etcd-io/etcd/issues/9427",
          "histogram of fsync: many far above the 10 ms that etcd asks for",
          "the disk is too slow for fsync", ("log-flush", "slow-disk"),
          iostat({"sda": {"w/s": 60, "wkB/s": 700, "w_await": 9, "f/s": 28, "f_await": 45, "aqu-sz": 1.6, "%util": 88}}, {"%iowait": 12})),
    Story("https://github.com/NetApp/trident/issues/677",
          "iowait of the node rises while its local disks have nothing to do; paths of removed LUNs are left",
          "faulty multipath devices that hang, beside what is looked at", ("unrecorded-storage", "device-stands-still"),
          iostat({"sda": SYSTEM_DISK, "sdb": SYSTEM_DISK}, {"%iowait": 48})),
    Story("https://blog.peterman.ca/sql-performance-troubleshooting-mini-series-disk-performance/amp",
          "Perfmon: seconds per read and write above the 15 to 25 ms of the article, the queue grows",
          "the disk of the database files is late", ("slow-disk",),
          windows(**{"Avg._Disk sec/Read": around(0.048), "Avg._Disk sec/Write": around(0.031), "Avg._Disk Queue Length": around(17)})),
    Story("https://learn.microsoft.com/en-US/troubleshoot/sql/performance/troubleshoot-sql-io-performance",
          "Perfmon and the error log: I/Os that take one to fifteen seconds",
          "storage that hardly answers", ("slow-disk", "device-stands-still"),
          windows(**{"Disk Reads/sec": around(2), "Disk Writes/sec": around(1), "Avg._Disk sec/Read": around(4.2),
                     "Avg._Disk sec/Write": around(6.0), "Avg._Disk Queue Length": around(14),
                     "Disk Read Bytes/sec": around(16384), "Disk Write Bytes/sec": around(8192)})),
)  # fmt: skip


def told(story: Story) -> tuple[bool, bool, str]:
    """Whether a story is right, whether a bad thing was called fine, and what was said."""
    with tempfile.TemporaryDirectory(prefix="assay-story-") as folder:
        made = story.make(Path(folder))
        found = diagnose(sources_of([Path(one) for one in made], Options(zone_s=0)).sources)
    record = found.record()
    names = [cause["cause"] for cause in record["causes"]][:2]
    verdict = record["verdict"]
    said = f"{verdict['state']}: {', '.join(names)}: {verdict['what']}; {verdict['since']}"
    return bool(set(names) & set(story.right)), verdict["state"] == "judged fine", said


def main() -> int:
    """Judge the stories and write the table; 1 if fewer than 16 are right, or one is called fine."""
    lines, right, fine = [], 0, 0
    for number, story in enumerate(STORIES, 1):
        is_right, is_fine, said = told(story)
        right, fine = right + is_right, fine + is_fine
        print(f"{'right' if is_right else 'WRONG'} {story.url[:70]:70} {said[:150]}", flush=True)
        lines.append(
            f"| {number} | {story.url} | {story.recorded} | {story.found} | {said} | {'yes' if is_right else 'no'} |"
        )
    head = [
        "# Public problem stories, and what `assay diagnose` says of them",
        "",
        f"{right} of {len(STORIES)} right, {fine} called fine. Made by `python benches/stories.py`; figures are those of the pages,",
        "what these do not say is made. Right: the cause that people found is among the first two; where only the stall itself was",
        "recorded, the verdict is that it is bad and that the cause is not found.",
        "",
        "| | page | what was recorded | what people found | what Assay says | right |",
        "|---|---|---|---|---|---|",
    ]
    RESULTS.write_text("\n".join([*head, *lines]) + "\n")
    print(f"{right} of {len(STORIES)} right, {fine} called fine")
    return int(right < 16 or fine > 0)


if __name__ == "__main__":
    sys.exit(main())
