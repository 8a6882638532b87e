# ruff: noqa: E501  A situation is a line.
"""Situations of one bad device, program or host, in texts that engineers attach, and quiet hours beside them."""

from __future__ import annotations

import random
from pathlib import Path

from situations.files import WINDOWS, around, perfmon
from situations.making import Situation
from situations.texts import FLASH, SYSTEM_DISK, Device, during, iostat, once, progress


def capped(top: float, unit: str) -> Device:
    """A device that serves what is asked for up to a top, above which its queue grows."""

    def asked(number: int) -> float:
        return top * (0.3 + 1.3 * ((number % 60) / 60))

    def served(number: int, drawn: random.Random) -> float:
        return min(asked(number), top) * (1 + drawn.uniform(-0.004, 0.004))

    def late(number: int, drawn: random.Random) -> float:
        return (1.0 if asked(number) < top else 1.0 + 60.0 * (asked(number) / top - 1)) * (1 + drawn.uniform(-0.1, 0.1))

    size_kb = 16 if unit == "ios" else 256
    scale = 1.0 if unit == "ios" else 1024.0 / size_kb

    def ios(number: int, drawn: random.Random) -> float:
        return served(number, drawn) * scale

    return {
        "r/s": ios,
        "rkB/s": lambda number, drawn: ios(number, drawn) * size_kb,
        "r_await": late,
        "aqu-sz": lambda number, drawn: ios(number, drawn) * late(number, drawn) / 1000,
        "%util": lambda number, _: 60 if asked(number) < top else 100,
    }


def one_core(share: float, core: int) -> dict[str, object]:
    """Counters of eight processors, of which one has all the work."""
    return {
        "Processor(_Total)\\% Processor Time": around(share * 100 / 8 + 4),
        **{
            f"Processor({number})\\% Processor Time": around(share * 100 if number == core else 4.0, 0.01)
            for number in range(8)
        },
    }


def hung(period: int, length: int, first: int = 30) -> Device:
    """A device that stands still for some samples, again and again."""
    return {
        "r/s": during(0, 300, every=period, length=length, first=first),
        "w/s": during(0, 200, every=period, length=length, first=first),
        "rkB/s": during(0, 2400, every=period, length=length, first=first),
        "wkB/s": during(0, 3200, every=period, length=length, first=first),
        "r_await": during(0, 0.8, every=period, length=length, first=first),
        "w_await": during(0, 1.1, every=period, length=length, first=first),
        "aqu-sz": during(24, 0.5, every=period, length=length, first=first),
        "%util": during(100, 18, every=period, length=length, first=first),
    }


def windows_core(folder: Path) -> list[str]:
    """SQL Server, of whose processors one serves all interrupts."""
    counters = {name: value for name, value in WINDOWS.items() if not name.startswith("Processor")}
    return perfmon(folder, counters | one_core(0.99, 3))  # type: ignore[operator]


DISK: Device = {"r/s": 90, "rkB/s": 720, "w/s": 60, "wkB/s": 480, "%util": 99}

BAD = (
    Situation("two writes a second of seven seconds", "file", "slow-disk",
              iostat({"sda": SYSTEM_DISK, "sdb": {"w/s": 2.2, "wkB/s": 20, "w_await": 7200, "aqu-sz": 16, "%util": 100}})),
    Situation("three reads a second of half a second (a disk that fails)", "file", "slow-disk",
              iostat({"sda": FLASH, "sdb": {"r/s": 2.6, "rkB/s": 150, "r_await": 485, "aqu-sz": 1.4, "%util": 98}})),
    Situation("one write in five seconds, three seconds each", "file", "slow-disk",
              iostat({"sdb": {"w/s": 0.2, "wkB/s": 2, "w_await": 3000, "aqu-sz": 0.6, "%util": 60}}, step_s=10)),
    Situation("a disk that is late without a queue that was recorded", "file", "slow-disk",
              iostat({"sdc": DISK | {"r_await": 70, "w_await": 75}})),
    Situation("128 I/Os outstanding, none completes", "file", "device-stands-still",
              iostat({"sdb": {"aqu-sz": 128, "%util": 100}, "sda": SYSTEM_DISK})),
    Situation("a device stands still for 10 s every 22 minutes", "file", "device-stands-still",
              iostat({"sdb": hung(1320, 10, first=200)}, samples=3600, step_s=1)),
    Situation("a device stands still once for 30 s", "file", "device-stands-still",
              iostat({"dm-0": hung(10**9, 6, first=300)}, samples=720, step_s=5)),
    Situation("flushes of 60 ms, writes of 1 ms", "file", "log-flush",
              iostat({"sdb": {"w/s": 200, "wkB/s": 1600, "w_await": 1, "f/s": 30, "f_await": 60, "aqu-sz": 2, "%util": 70}})),
    Situation("flushes of a consumer drive that is late with all", "file", "log-flush",
              iostat({"sda": {"r/s": 24, "rkB/s": 5600, "r_await": 12, "w/s": 42, "wkB/s": 504, "w_await": 16, "f/s": 12,
                              "f_await": 88, "aqu-sz": 2, "%util": 64}})),
    Situation("iowait, and the only recorded disk is idle", "file", "unrecorded-storage",
              iostat({"vda": SYSTEM_DISK}, {"%iowait": 70})),
    Situation("iowait of a quarter beside idle disks", "file", "unrecorded-storage",
              iostat({"vda": SYSTEM_DISK, "vdb": SYSTEM_DISK}, {"%iowait": 26}, step_s=10)),
    Situation("steal of a third", "file", "guest-cpu", iostat({"vda": FLASH}, {"%user": 40, "%steal": 34})),
    Situation("one of eight processors full", "file", "single-core", windows_core),
    Situation("limit of 125 MiB/s", "file", "throughput-limit", iostat({"nvme1n1": capped(125, "bytes")}, samples=240)),
    Situation("limit of 3,000 I/Os a second", "file", "throughput-limit", iostat({"nvme1n1": capped(3000, "ios")}, samples=240)),
    Situation("writes of 60 ms, reads of 3 ms", "file", "slow-writes",
              iostat({"sda": DISK | {"r_await": 3, "w_await": 60, "aqu-sz": 4}})),
    Situation("writes of 250 ms, reads of 15 ms", "file", "slow-writes",
              iostat({"sda": {"r/s": 45, "rkB/s": 2100, "r_await": 15, "w/s": 120, "wkB/s": 8300, "w_await": 250,
                              "aqu-sz": 31, "%util": 87}})),
    Situation("pgbench stalls for 15 s of each minute", "file", "cause-not-found",
              progress(during(12, 2450, every=60, length=15, first=44), during(1850, 3.2, every=60, length=15, first=44))),
    Situation("pgbench stalls for 20 s every 5 minutes", "file", "cause-not-found",
              progress(during(60, 900, every=300, length=20, first=100), during(400, 9, every=300, length=20, first=100),
                       samples=1800)),
    Situation("pgbench stands for 40 s once", "file", "cause-not-found",
              progress(once(0, 800, begin=250, length=40), once(0, 10, begin=250, length=40))),
    Situation("a disk that is late for 12 s of each minute", "file", "slow-disk",
              iostat({"sdb": DISK | {"r_await": during(90, 4, every=60, length=12), "w_await": 4,
                                     "aqu-sz": during(12, 0.6, every=60, length=12)}}, samples=900, step_s=1)),
    Situation("a disk that is late each night for an hour", "file", "slow-disk",
              iostat({"sdb": DISK | {"r_await": during(60, 4, every=144, length=6, first=96), "w_await": 4,
                                     "aqu-sz": during(9, 0.6, every=144, length=6, first=96)}}, samples=576, step_s=600)),
)  # fmt: skip
"""Each with the cause that must be among the first two."""


def quiet(number: int) -> Situation:
    """An hour in which nothing is wrong: six kinds of hosts, each with its own noise."""
    drawn = random.Random(number)
    load = drawn.uniform(0.3, 1.0)
    kind = number % 6

    def spiky(usual: float, spike: float, chance: float) -> object:
        return lambda _, own: spike * own.uniform(0.6, 1.0) if own.random() < chance else usual * own.uniform(0.6, 1.5)

    flash = {
        name: (value * load if name in ("r/s", "w/s", "rkB/s", "wkB/s") else value) for name, value in FLASH.items()
    }
    kinds = (
        ("flash", iostat({"nvme0n1": flash | {"w_await": spiky(0.6, 30, 0.01)}}, samples=360, step_s=10, seed=number)),  # type: ignore[dict-item]
        ("rotating disk at a third of its load",
         iostat({"sdb": {"r/s": 40 * load, "rkB/s": 640, "r_await": spiky(8, 24, 0.02), "w/s": 20, "wkB/s": 300,
                         "w_await": spiky(4, 24, 0.02), "aqu-sz": 0.4, "%util": 35}}, samples=360, step_s=10, seed=number)),  # type: ignore[dict-item]
        ("idle disk that writes now and then",
         iostat({"sda": {"w/s": during(3, 0, every=6, length=1), "wkB/s": 12, "w_await": spiky(9, 35, 0.05),
                         "aqu-sz": 0.02, "%util": 1.5}}, samples=360, step_s=10, seed=number)),  # type: ignore[dict-item]
        ("large reads", iostat({"sdc": {"r/s": 90 * load, "rkB/s": 92160 * load, "r_await": 12, "aqu-sz": 1.2, "%util": 70}},
                               {"%iowait": 8}, samples=360, step_s=10, seed=number)),
        ("SQL Server", lambda folder: perfmon(folder, WINDOWS, samples=240)),
        ("pgbench with slow seconds", progress(spiky(900 * load, 500 * load, 0.01), spiky(8, 20, 0.01), samples=3600,  # type: ignore[arg-type]
                                               seed=number)),
    )  # fmt: skip
    name, make = kinds[kind]
    return Situation(f"quiet hour {number}: {name}", "file", "none", make)


QUIET = tuple(quiet(number) for number in range(60))
