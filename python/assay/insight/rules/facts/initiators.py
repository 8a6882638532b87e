"""Facts of paths to storage: multipath devices, NVMe with several paths, iSCSI, Fibre Channel (class folders of /sys).

The table of a multipath device is read with dmsetup(8), which root may; its form is that of drivers/md/dm-mpath.c:
features, handlers, the count of groups and the next one, then of each group its selector, its paths and their numbers.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from assay.base.programs import PROGRAMS, find_program, install_command
from assay.insight.rules.rule import Subject
from assay.targets.kernel import Kernel, read_number, read_text
from assay.telemetry.collectors.block import parse_diskstats
from assay.telemetry.collectors.multipath import multipath_maps

_ASK_S = 5.0
_FABRICS = ("tcp", "rdma", "fc", "loop")
_UNSUPPORTED = 2**64 - 1
"""What a Fibre Channel driver shows of a counter that it has not."""


def dm_tables() -> str | None:
    """Tables of all multipath devices; None where they may not be read."""
    program = find_program("dmsetup")
    if program is None or os.geteuid() != 0:
        return None
    try:
        told = subprocess.run(
            [program, "table", "--target", "multipath"], capture_output=True, text=True, timeout=_ASK_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout


def _why_no_table() -> str:
    if find_program("dmsetup") is None:
        command = install_command([PROGRAMS["dmsetup"]])
        return f"dmsetup, which reads the table of a multipath device, is missing: {command}"
    return "the table of a multipath device is read by root (dmsetup)"


def path_policy(table: str) -> str | None:
    """How the paths of a multipath device are chosen, from the line of its table.

    `failover` where each path is a group of its own, so that one carries all.

    Examples
    --------
    >>> path_policy("0 2097152 multipath 1 queue_if_no_path 0 1 1 service-time 0 2 2 8:16 1 1 8:32 1 1")
    'service-time'
    >>> path_policy("0 2097152 multipath 0 0 2 1 service-time 0 1 1 8:16 1 service-time 0 1 1 8:32 1")
    'failover'
    """
    words = table.split()
    if len(words) < 4 or words[2] != "multipath":
        return None
    place = 3
    try:
        for _ in ("features", "handlers"):
            place += 1 + int(words[place])
        groups = int(words[place])
        place += 2
        selectors, sizes = set(), []
        for _ in range(groups):
            selectors.add(words[place])
            place += 2 + int(words[place + 1])
            paths, arguments = int(words[place]), int(words[place + 1])
            place += 2 + paths * (1 + arguments)
            sizes.append(paths)
    except (ValueError, IndexError):
        return None
    if len(sizes) > 1 and max(sizes) == 1:
        return "failover"
    return selectors.pop() if len(selectors) == 1 else None


def multipath_subjects(
    kernel: Kernel | None = None, *, tables_of: Callable[[], str | None] = dm_tables
) -> list[Subject]:
    """Multipath devices and what each of their paths did."""
    tables = kernel or Kernel()
    maps = multipath_maps(tables.sys / "block")
    found = []
    text = read_text(tables.proc / "diskstats") or ""
    told = dict(line.split(": ", 1) for line in (tables_of() or "").splitlines() if ": " in line) if maps else {}
    for name, paths in maps.items():
        one = Subject("multipath", name)
        states = [read_text(tables.sys / "block" / path / "device/state") or "running" for path in paths]
        running = sum(state in ("running", "live") for state in states)
        one.know("paths_running", running, "/sys/block")
        one.know("paths_failed", len(paths) - running, "/sys/block")
        counted = parse_diskstats(text, paths)
        ios = {path: counters.read_ios + counters.write_ios for path, counters in counted.items()}
        one.know("ios_by_path", ios or None, "/proc/diskstats")
        label = read_text(tables.sys / "block" / name / "dm/name") or name
        one.know("policy", path_policy(told.get(label, "")), "dmsetup table")
        one.lack("policy", _why_no_table())
        found.append(one)
    return [*found, *_nvme_subjects(tables)]


def _nvme_subjects(tables: Kernel) -> list[Subject]:
    """NVMe subsystems that are reached over several controllers, or over a network."""
    found = []
    for folder in sorted((tables.sys / "class/nvme-subsystem").glob("nvme-subsys*")):
        controllers = [path for path in sorted(folder.glob("nvme[0-9]*")) if (path / "state").exists()]
        transports = {read_text(path / "transport") for path in controllers}
        if len(controllers) < 2 and not transports & set(_FABRICS):
            continue
        one = Subject("multipath", folder.name)
        states = [read_text(path / "state") for path in controllers]
        one.know("paths_running", sum(state == "live" for state in states), str(folder))
        one.know("paths_failed", sum(state != "live" for state in states), str(folder))
        one.know("policy", read_text(folder / "iopolicy"), str(folder / "iopolicy"))
        one.lack("policy", "this kernel has no multipath of NVMe")
        one.lack("ios_by_path", "the kernel counts no I/Os of each path of NVMe")
        found.append(one)
    return found


def iscsi_subjects(kernel: Kernel | None = None, *, has_multipath: bool) -> list[Subject]:
    """The iSCSI initiator, where it has a session; of values that differ between sessions the worst."""
    tables = kernel or Kernel()
    sessions = sorted((tables.sys / "class/iscsi_session").glob("session*"))
    if not sessions:
        return []
    one = Subject("iscsi", "open-iscsi", otherwise="/sys/class/iscsi_session does not show it")
    origin = "/sys/class/iscsi_session"
    targets: dict[str, int] = {}
    for session in sessions:
        target = read_text(session / "targetname") or session.name
        targets[target] = targets.get(target, 0) + 1
    one.know("sessions_per_target", targets, origin)
    states = {session.name: read_text(session / "state") for session in sessions}
    if None not in states.values():
        failed = [f"{name}: {state}" for name, state in states.items() if state != "LOGGED_IN"]
        one.know("failed_sessions", failed, origin)
    one.know("has_multipath", has_multipath, "/sys/block")
    waits = _numbers(session / "recovery_tmo" for session in sessions)
    one.know("recovery_timeout_s", (max(waits) if has_multipath else min(waits)) if waits else None, origin)
    hosts = sorted((tables.sys / "class/iscsi_host").glob("host*"))
    queues = _numbers(tables.sys / "class/scsi_host" / host.name / "can_queue" for host in hosts)
    one.know("can_queue", min(queues, default=None), "/sys/class/scsi_host")
    bursts = _numbers(session / "max_burst_len" for session in sessions)
    one.know("max_transfer_bytes", min(bursts, default=None), origin)
    connections = sorted((tables.sys / "class/iscsi_connection").glob("connection*"))
    digests = _numbers(connection / "data_digest" for connection in connections)
    if digests:
        one.know("data_digest", "CRC32C" if any(digests) else "None", "/sys/class/iscsi_connection")
    one.lack("cpu_share", "the kernel does not count the processor time of the initiator apart")
    return [one]


def _numbers(paths: Iterable[Path]) -> list[int]:
    return [value for path in paths if (value := read_number(path)) is not None]


def fc_subjects(kernel: Kernel | None = None) -> list[Subject]:
    """Ports of Fibre Channel adapters."""
    tables = kernel or Kernel()
    return [_port(folder) for folder in sorted((tables.sys / "class/fc_host").glob("host*"))]


def _port(folder: Path) -> Subject:
    port = Subject("fc", folder.name, otherwise=f"{folder} does not show it")
    port.know("port_state", read_text(folder / "port_state"), str(folder))
    for name in ("invalid_crc_count", "rx_frames"):
        text = read_text(folder / "statistics" / name) or ""
        count = int(text, 16) if text.startswith("0x") else _UNSUPPORTED
        port.know(name, count if count != _UNSUPPORTED else None, str(folder / "statistics"))
    return port
