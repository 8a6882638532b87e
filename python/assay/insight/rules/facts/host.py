"""Facts of this host: kernel settings, memory, processors, clock, TCP (proc(5), kernel documentation)."""

from __future__ import annotations

import os
import re
import resource
import socket
from pathlib import Path

from assay.base.errors import NotSupported
from assay.insight.rules.rule import Subject
from assay.targets.host import host_facts
from assay.targets.kernel import Kernel, read_number, read_text
from assay.telemetry.collectors.net import parse_snmp

_SYSCTLS = (
    "vm.swappiness", "vm.dirty_ratio", "vm.dirty_bytes", "vm.dirty_background_ratio", "vm.overcommit_memory",
    "vm.zone_reclaim_mode", "kernel.numa_balancing", "fs.aio-max-nr", "net.ipv4.tcp_sack",
)  # fmt: skip

_AGENTS = ("vmtoolsd", "qemu-ga")
_AIO_PROGRAMS = ("mariadbd", "mysqld", "oracle", "db2sysc")


def host_subject(kernel: Kernel | None = None) -> Subject:
    """Facts of this host."""
    tables = kernel or Kernel()
    told = host_facts(tables)
    host = Subject("host", socket.gethostname(), otherwise="this kernel does not show it")
    for name in _SYSCTLS:
        path = tables.proc / "sys" / name.replace(".", "/")
        host.know(name, read_number(path), str(path))
    _memory(host, tables)
    _processors(host, tables)
    _clock(host, tables)
    _network(host, tables)
    host.know("memory_bytes", told["memory_bytes"], "/proc/meminfo")
    host.know("cpu_count", told["cpu_count"], "/proc/cpuinfo")
    host.know("is_guest", told["virtualization"] is not None, "/sys/class/dmi/id")
    host.know("virtualization", told["virtualization"], "/sys/class/dmi/id")
    host.know("nofile_limit", resource.getrlimit(resource.RLIMIT_NOFILE)[1], "getrlimit(2)")
    programs = _programs(tables)
    host.know("guest_agent", bool(programs & set(_AGENTS)) if programs else None, "/proc")
    host.know("has_aio_database", bool(programs & set(_AIO_PROGRAMS)) if programs else None, "/proc")
    for name in ("guest_agent", "has_aio_database"):
        host.lack(name, "programs of others are not shown in /proc")
    host.lack("balloon", "the hypervisor alone knows")
    return host


def _memory(host: Subject, tables: Kernel) -> None:
    text = read_text(tables.proc / "meminfo") or ""
    found = {name: int(value) for name, value in re.findall(r"^(\w+):\s+(\d+)", text, re.MULTILINE)}
    if "SwapTotal" in found:
        host.know("swap_bytes", found["SwapTotal"] * 1024, "/proc/meminfo")
        host.know("swap_used_bytes", (found["SwapTotal"] - found.get("SwapFree", 0)) * 1024, "/proc/meminfo")
    host.know("hugepages_total", found.get("HugePages_Total"), "/proc/meminfo")
    host.know("hugepages_free", found.get("HugePages_Free"), "/proc/meminfo")
    path = tables.sys / "kernel/mm/transparent_hugepage/enabled"
    chosen = re.search(r"\[(\w+)\]", read_text(path) or "")
    host.know("transparent_hugepage", chosen[1] if chosen else None, str(path))


def _processors(host: Subject, tables: Kernel) -> None:
    nodes = list((tables.sys / "devices/system/node").glob("node[0-9]*"))
    host.know("numa_nodes", len(nodes) or None, "/sys/devices/system/node")
    folder = tables.sys / "devices/system/cpu/cpu0/cpufreq"
    host.know("cpu_governor", read_text(folder / "scaling_governor"), str(folder))
    host.know("cpu_driver", read_text(folder / "scaling_driver"), str(folder))
    host.know("energy_preference", read_text(folder / "energy_performance_preference"), str(folder))
    for name in ("cpu_governor", "energy_preference"):
        host.lack(name, "the kernel shows no frequency of the processors; in a guest that is the hypervisor's")
    share = _busiest_interrupts(read_text(tables.proc / "interrupts") or "")
    host.know("interrupt_share_busiest", share, "/proc/interrupts")
    host.lack("interrupt_share_busiest", "fewer than 100,000 interrupts of devices are counted")
    times = (read_text(tables.proc / "stat") or "").split("\n", 1)[0].split()[1:]
    if len(times) >= 8 and all(map(str.isdecimal, times[:8])):
        ticks = [int(one) for one in times[:8]]
        host.know("steal_share", ticks[7] / max(sum(ticks), 1), "/proc/stat")
    uptime = (read_text(tables.proc / "uptime") or "").split()
    host.know("uptime_s", float(uptime[0]) if uptime else None, "/proc/uptime")


def _busiest_interrupts(text: str) -> float | None:
    r"""Share of all interrupts of devices that the busiest processor took; None with too few to tell.

    Examples
    --------
    >>> _busiest_interrupts("     CPU0 CPU1\n 24:  900000 100000  PCI-MSI nvme0q1\nLOC: 5 5 Local timer\n")
    0.9
    """
    lines = text.splitlines()
    cpus = len(lines[0].split()) if lines else 0
    totals = [0] * cpus
    for line in lines[1:]:
        name, _, rest = line.partition(":")
        fields = rest.split()[:cpus]
        if name.strip().isdecimal() and len(fields) == cpus and all(map(str.isdecimal, fields)):
            totals = [total + int(field) for total, field in zip(totals, fields, strict=True)]
    return max(totals) / sum(totals) if cpus > 1 and sum(totals) >= 100_000 else None


def _clock(host: Subject, tables: Kernel) -> None:
    path = tables.sys / "devices/system/clocksource/clocksource0/current_clocksource"
    host.know("clock_source", read_text(path), str(path))
    host.know("clock_synchronised", _is_synchronised(), "adjtimex(2)")
    host.lack("clock_synchronised", "adjtimex(2) is not permitted here")


def _is_synchronised() -> bool | None:
    """Whether the kernel's clock follows a source; None where it may not be asked."""
    import ctypes

    # struct timex has 208 bytes on 64-bit Linux; status follows modes, offset, freq, maxerror and esterror.
    buffer = ctypes.create_string_buffer(256)
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    except (OSError, AttributeError):
        return None
    if state < 0:
        return None
    status = int.from_bytes(buffer.raw[40:44], "little")
    unsynchronised = 0x40
    return state != 5 and not status & unsynchronised


def _network(host: Subject, tables: Kernel) -> None:
    text = read_text(tables.proc / "net/snmp")
    if text:
        try:
            segments = parse_snmp(text)
        except NotSupported:
            segments = None
        if segments is not None and segments.out_count:
            host.know("tcp_segments", segments.out_count, "/proc/net/snmp")
            host.know("tcp_retransmit_share", segments.retransmitted_count / segments.out_count, "/proc/net/snmp")
    buffers = (read_text(tables.proc / "sys/net/ipv4/tcp_rmem") or "").split()
    host.know(
        "tcp_rmem_max",
        int(buffers[2]) if len(buffers) == 3 and buffers[2].isdecimal() else None,
        "/proc/sys/net/ipv4/tcp_rmem",
    )


def _programs(tables: Kernel) -> set[str]:
    names = set()
    try:
        numbers = [one for one in os.listdir(tables.proc) if one.isdecimal()]
    except OSError:
        return set()
    for number in numbers:
        names.add(read_text(Path(tables.proc) / number / "comm") or "")
    return names
