"""Situations in files, as other tools write them: causes that cannot be made on this machine."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path


def perfmon(folder: Path, counters: dict[str, Callable[[int, random.Random], float]], samples: int = 60) -> list[str]:
    """A log as Perfmon writes it: a sample each fifteen seconds."""
    drawn = random.Random(15)
    lines = ['"(PDH-CSV 4.0) (UTC)(0)",' + ",".join(f'"\\\\SQL1\\{name}"' for name in counters)]
    for number in range(samples):
        seconds = number * 15
        stamp = f"11/23/2026 {9 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.000"
        lines.append(f'"{stamp}",' + ",".join(f'"{value(number, drawn):.6f}"' for value in counters.values()))
    path = folder / "perfmon.csv"
    path.write_text("\r\n".join(lines) + "\r\n")
    return [str(path)]


def around(value: float, spread: float = 0.1) -> Callable[[int, random.Random], float]:
    """Values around one."""
    return lambda _, drawn: value * (1 + spread * (2 * drawn.random() - 1))


WINDOWS: dict[str, Callable[[int, random.Random], float]] = {
    "Processor(_Total)\\% Processor Time": around(25),
    "Memory\\Available MBytes": around(9000),
    "PhysicalDisk(0 D:)\\Disk Reads/sec": around(400),
    "PhysicalDisk(0 D:)\\Disk Writes/sec": around(200),
    "PhysicalDisk(0 D:)\\Avg. Disk sec/Read": around(0.003),
    "PhysicalDisk(0 D:)\\Avg. Disk sec/Write": around(0.001),
    "PhysicalDisk(0 D:)\\Avg. Disk Queue Length": around(1.4),
    "PhysicalDisk(0 D:)\\Disk Read Bytes/sec": around(400 * 8192),
    "PhysicalDisk(0 D:)\\Disk Write Bytes/sec": around(200 * 8192),
    "SQLServer:Buffer Manager\\Page life expectancy": around(4000),
    "SQLServer:Buffer Manager\\Buffer cache hit ratio": around(99.4, 0.001),
    "SQLServer:SQL Statistics\\Batch Requests/sec": around(900),
    "SQLServer:Latches\\Average Latch Wait Time (ms)": around(0.4),
    "SQLServer:Latches\\Latch Waits/sec": around(20),
}
"""A SQL Server that is well."""


def latches(folder: Path) -> list[str]:
    """SQL Server, whose sessions wait for latches."""
    return perfmon(
        folder,
        WINDOWS
        | {
            "SQLServer:Latches\\Average Latch Wait Time (ms)": around(38),
            "SQLServer:Latches\\Latch Waits/sec": around(2200),
        },
    )


def log_grows(folder: Path) -> list[str]:
    """SQL Server, whose log grows in small steps."""
    return perfmon(
        folder,
        WINDOWS
        | {
            "SQLServer:Databases(shop)\\Log Growths": lambda number, _: float(10 + number),
            "SQLServer:Databases(shop)\\Percent Log Used": around(96, 0.02),
            "SQLServer:Databases(shop)\\Log Flushes/sec": around(60),
        },
    )


def short_memory_windows(folder: Path) -> list[str]:
    """SQL Server that has too little memory."""
    return perfmon(
        folder,
        WINDOWS
        | {
            "SQLServer:Buffer Manager\\Page life expectancy": around(60),
            "SQLServer:Buffer Manager\\Lazy writes/sec": around(160),
            "SQLServer:Buffer Manager\\Free list stalls/sec": around(9),
            "SQLServer:Memory Manager\\Memory Grants Pending": around(3, 0.3),
        },
    )


def healthy_windows(folder: Path) -> list[str]:
    """SQL Server that is well."""
    return perfmon(folder, WINDOWS)


def esxtop(folder: Path, values: dict[str, Callable[[int, random.Random], float]]) -> list[str]:
    """A file as esxtop writes it in batch mode."""
    [path] = perfmon(folder, values)
    made = Path(path).rename(folder / "esxtop.csv")
    made.write_text(made.read_text().replace("SQL1", "esx1"))
    return [str(made)]


ESX: dict[str, Callable[[int, random.Random], float]] = {
    "Physical Cpu(_Total)\\% Util Time": around(50),
    "Group Cpu(12345:db1)\\% Used": around(180),
    "Group Cpu(12345:db1)\\% Ready": around(2),
    "Group Cpu(12345:db1)\\% CoStop": around(0.2),
    "Vcpu(12345:db1:22000:vmx-vcpu-0)\\% Ready": around(1),
    "Vcpu(12345:db1:22001:vmx-vcpu-1)\\% Ready": around(1),
    "Physical Disk SCSI Device(naa.6000)\\Reads/sec": around(800),
    "Physical Disk SCSI Device(naa.6000)\\Writes/sec": around(400),
    "Physical Disk SCSI Device(naa.6000)\\Average Device MilliSec/Command": around(3),
    "Physical Disk SCSI Device(naa.6000)\\Average Kernel MilliSec/Command": around(0.05),
    "Physical Disk SCSI Device(naa.6000)\\Average Guest MilliSec/Command": around(3.05),
    "Physical Disk SCSI Device(naa.6000)\\Queued Commands": around(0),
}
"""A host of VMware that is well, and its guest."""


def starved_guest(folder: Path) -> list[str]:
    """A guest whose processors the hypervisor gives to others."""
    return esxtop(
        folder,
        ESX
        | {
            "Group Cpu(12345:db1)\\% Ready": around(68),
            "Group Cpu(12345:db1)\\% CoStop": around(16),
            "Vcpu(12345:db1:22000:vmx-vcpu-0)\\% Ready": around(34),
            "Vcpu(12345:db1:22001:vmx-vcpu-1)\\% Ready": around(34),
            "Physical Cpu(_Total)\\% Util Time": around(96, 0.02),
        },
    )


def full_adapter(folder: Path) -> list[str]:
    """A device whose queue in the hypervisor is too short."""
    return esxtop(
        folder,
        ESX
        | {
            "Physical Disk SCSI Device(naa.6000)\\Average Kernel MilliSec/Command": around(24),
            "Physical Disk SCSI Device(naa.6000)\\Average Guest MilliSec/Command": around(27),
            "Physical Disk SCSI Device(naa.6000)\\Queued Commands": around(30),
        },
    )


def healthy_hypervisor(folder: Path) -> list[str]:
    """A host of VMware that is well."""
    return esxtop(folder, ESX)


DISKS = "Virtual Disk(db1:scsi0:{})\\{}"


def guest_disks(folder: Path, late_ms: float = 2.0) -> list[str]:
    """Two virtual disks of a guest, of which the second answers late, above devices that are well."""
    return esxtop(
        folder,
        ESX
        | {DISKS.format(n, "Reads/sec"): around(300) for n in (0, 1)}
        | {
            DISKS.format(0, "Average MilliSec/Read"): around(2),
            DISKS.format(1, "Average MilliSec/Read"): around(late_ms),
        },
    )


def late_guest_disk(folder: Path) -> list[str]:
    """A virtual disk that answers late, as one with a limit of its own."""
    return guest_disks(folder, late_ms=60)


def mount(folder: Path, late_ms: float = 1.5) -> list[str]:
    """Ten minutes of nfsiostat, with a line of the time before each report."""
    drawn = random.Random(15)
    titles = "{}: ops/s kB/s kB/op retrans avg RTT (ms) avg exe (ms) avg queue (ms) errors"
    text = ""
    for n in range(61):
        text += (
            f"2026-11-23T09:{n // 6:02d}:{n % 6}0+00:00\n\nnas1:/db mounted on /db:\n\n ops/s rpc bklog\n 500.0 0.0\n\n"
        )
        for side in ("read", "write"):
            ms = late_ms * drawn.uniform(0.9, 1.1)
            values = f"250.000 2000.000 8.000 0 (0.0%) {ms:.3f} {ms + 0.2:.3f} 0.100 0 (0.0%)"
            text += f"{titles.format(side)}\n        {values}\n"
    path = folder / "nfsiostat.txt"
    path.write_text(text)
    return [str(path)]


def late_mount(folder: Path) -> list[str]:
    """An NFS mount that answers late."""
    return mount(folder, late_ms=45)
