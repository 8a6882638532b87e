"""Machines drawn as folders: /proc and /sys with the layouts that the kernel documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from assay.targets.kernel import Kernel

PROC = {
    "meminfo": "MemTotal: 67108864 kB\nMemFree: 1024 kB\nMemAvailable: 33554432 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"
    "HugePages_Total: 9000\nHugePages_Free: 100\n",
    "cpuinfo": "processor : 0\nmodel name : A processor\nflags : fpu\n",
    "uptime": "900000.00 100.00\n",
    "stat": "cpu  100000 0 50000 800000 1000 0 0 0 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\n",
    "interrupts": "      CPU0   CPU1   CPU2   CPU3\n 24: 100000 100000 100000 100000 PCI-MSI nvme0q1\n"
    " 25: 100000 100000 100000 100000 PCI-MSI eth1-rx\nLOC: 9 9 9 9 Local timer interrupts\n",
    "net/snmp": "Tcp: RtoAlgorithm InSegs OutSegs RetransSegs\nTcp: 1 100000000 100000000 100\n",
    "net/dev": "Inter-|   Receive |  Transmit\n face |bytes packets errs drop\n"
    "    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
    "  eth1: 9000000 500000 0 0 0 0 0 0 9000000 500000 0 0 0 0 0 0\n"
    "  eth2: 9000000 500000 0 0 0 0 0 0 9000000 500000 0 0 0 0 0 0\n",
    "diskstats": " 259 0 nvme0n1 100 0 800 10 200 0 1600 20 0 30 30\n",
    "1/comm": "systemd\n",
    "200/comm": "mariadbd\n",
    "sys/vm/swappiness": "1\n",
    "sys/vm/dirty_ratio": "20\n",
    "sys/vm/dirty_bytes": "0\n",
    "sys/vm/dirty_background_ratio": "5\n",
    "sys/vm/overcommit_memory": "2\n",
    "sys/vm/zone_reclaim_mode": "0\n",
    "sys/kernel/numa_balancing": "0\n",
    "sys/fs/aio-max-nr": "1048576\n",
    "sys/net/ipv4/tcp_sack": "1\n",
    "sys/net/ipv4/tcp_rmem": "4096 131072 6291456\n",
}

SYS = {
    "kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "devices/system/node/node0/cpulist": "0-1\n",
    "devices/system/node/node1/cpulist": "2-3\n",
    "devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "devices/system/cpu/cpu0/cpufreq/energy_performance_preference": "performance\n",
    "devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "class/dmi/id/sys_vendor": "A maker\n",
}

QUEUE = {
    "scheduler": "[none] mq-deadline\n",
    "nr_requests": "1023\n",
    "rotational": "0\n",
    "write_cache": "write through\n",
    "max_sectors_kb": "1280\n",
    "max_hw_sectors_kb": "2048\n",
    "read_ahead_kb": "128\n",
    "add_random": "0\n",
    "wbt_lat_usec": "0\n",
    "logical_block_size": "512\n",
    "physical_block_size": "4096\n",
}


class Machine:
    """A machine whose kernel's tables lie in a folder; what is not written is not there."""

    def __init__(self, folder: Path) -> None:
        self.kernel = Kernel(proc=folder / "proc", sys=folder / "sys")
        for place in (self.kernel.proc, self.kernel.sys / "block", self.kernel.sys / "class/net"):
            place.mkdir(parents=True)

    def proc(self, files: Mapping[str, str]) -> Machine:
        """Write files below /proc."""
        return self._write(self.kernel.proc, files)

    def sys(self, files: Mapping[str, str]) -> Machine:
        """Write files below /sys."""
        return self._write(self.kernel.sys, files)

    def _write(self, root: Path, files: Mapping[str, str]) -> Machine:
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self

    def link(self, name: str, target: str) -> Machine:
        """A link below /sys to another place there, which is made."""
        path, place = self.kernel.sys / name, self.kernel.sys / target
        place.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(place)
        return self

    def disk(
        self,
        name: str,
        *,
        driver: str | None = None,
        queue: Mapping[str, str] | None = None,
        device: Mapping[str, str] | None = None,
        partitions: Mapping[str, int] | None = None,
        slaves: tuple[str, ...] = (),
        size: int = 1 << 30,
    ) -> Machine:
        """A block device with its queue; `partitions` begin at sectors, `slaves` are what it is built on."""
        place = f"block/{name}"
        self.sys({f"{place}/size": f"{size}\n", f"{place}/dev": "8:0\n"})
        self.sys({f"{place}/queue/{key}": text for key, text in {**QUEUE, **(queue or {})}.items()})
        if driver is not None or device is not None:
            self.sys({f"{place}/device/{key}": text for key, text in (device or {"vendor": "A"}).items()})
        if driver is not None:
            self.link(f"{place}/device/driver", f"bus/drivers/{driver}")
        for number, (part, start) in enumerate((partitions or {}).items(), 1):
            self.sys({f"{place}/{part}/partition": f"{number}\n", f"{place}/{part}/start": f"{start}\n"})
        for slave in slaves:
            self.link(f"{place}/slaves/{slave}", f"block/{slave}")
        return self

    def card(self, name: str, *, driver: str = "ice", **files: str) -> Machine:
        """A network card that is up."""
        told = {"operstate": "up\n", "mtu": "9000\n", "speed": "25000\n", "duplex": "full\n"} | files
        self.sys({f"class/net/{name}/{key}": text for key, text in told.items()})
        return self.link(f"class/net/{name}/device/driver", f"bus/drivers/{driver}")


def healthy(folder: Path) -> Machine:
    """A bare-metal host with two NVMe disks and two cards, as advice has them."""
    machine = Machine(folder).proc(PROC).sys(SYS)
    machine.disk("nvme0n1", driver="nvme", partitions={"nvme0n1p1": 2048})
    machine.disk("nvme1n1", driver="nvme")
    machine.card("eth1")
    return machine.card("eth2")
