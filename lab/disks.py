"""Disks of a lab machine: where their bytes are, what a power cut does to them, and how a guest sees them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FIRST_SLOT = 16
START_TIMEOUT_S = 300.0
LOG_BYTES_MAX = 4 << 30
"""Size of the sparse file of a write log."""

RECONNECT_S = 600
"""As long a disk's requests wait where a drive has lost its power, and may be switched on again."""

DRIVE_SERVER = Path(__file__).resolve().parent / "cut_disk.py"

DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""Begins the command line of each process of the lab: a killed test leaves no machine behind."""


@dataclass(frozen=True, kw_only=True)
class Disk:
    """A disk as a test asks for it.

    Attributes
    ----------
    name
        Name of its file on the host, and its serial number in the guest.
    bus
        What the guest sees: virtio-blk disks are vda, vdb and so on, virtio-scsi and SATA ones sda, sdb, NVMe ones
        nvme0n1, nvme1n1, in their order in the machine.
    cache
        What a power cut does to writes that were acknowledged and not flushed. `none`: nothing, they are on the host.
        `volatile`: they are lost. `lying`: they are lost even if they were flushed, because flushes do nothing.
    fails
        Kind of request that ends with EIO: `flush`, or none.
    logged
        Writes and flushes are kept in a log on the host (`lab/write_log.py`).
    drive
        Name of a kind of `tests/cut_drive.py` that serves the disk instead, with a log of its own, or none.
    seed
        Of all that such a drive does by chance.
    """

    name: str
    size_mib: int = 64
    bus: Literal["virtio-blk", "virtio-scsi", "sata", "nvme"] = "virtio-blk"
    cache: Literal["none", "volatile", "lying"] = "none"
    logical_block_bytes: int = 512
    physical_block_bytes: int = 512
    wwn: int | None = None
    rotations_per_minute: int | None = None
    ports: int = 1
    write_cache: bool = True
    fails: Literal["", "flush"] = ""
    logged: bool = False
    drive: str = ""
    seed: int = 0

    def device(self, node: str, number: int) -> list[str]:
        """Options of QEMU that show the disk to the guest, once for each port; `number` is its place among its kind."""
        blocks = f"logical_block_size={self.logical_block_bytes},physical_block_size={self.physical_block_bytes}"
        common = f"drive={node},serial={self.name},{blocks}"
        cached = f",write-cache={'on' if self.write_cache else 'off'}"
        if self.bus == "virtio-blk":
            # Eight share a slot, because the machine has 32 slots; what places itself takes the first ones.
            place = f"addr={FIRST_SLOT + number // 8:#x}.{number % 8},multifunction=on"
            return ["-device", f"virtio-blk-pci,{common}{cached},{place}"]
        if self.bus == "nvme":
            return ["-device", f"nvme,id=nvme-{node},{common}"]
        if self.bus == "sata":
            return ["-device", f"ahci,id=ahci-{node}", "-device", f"ide-hd,bus=ahci-{node}.0,{common}{cached}"]
        facts = common + cached
        facts += f",wwn={self.wwn:#x}" if self.wwn is not None else ""
        facts += f",rotation_rate={self.rotations_per_minute}" if self.rotations_per_minute is not None else ""
        facts += ",share-rw=on" if self.ports > 1 else ""
        options = []
        for port in range(self.ports):
            controller = f"scsi-{node}-{port}"
            options += ["-device", f"virtio-scsi-pci,id={controller}", "-device", f"scsi-hd,bus={controller}.0,{facts}"]
        return options


class Store:
    """The bytes of a disk in the machine's folder, and the server that imitates its cache while the power is on."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self.disk = disk
        self.path = folder / f"{disk.name}.img"
        self.log_path = folder / f"{disk.name}.log"
        self.base_path = folder / f"{disk.name}.base"
        """Of a drive with a log of its own: what it had when it was switched on."""
        self._socket = folder / f"{disk.name}.sock"
        self._server: subprocess.Popen[bytes] | None = None
        self._times = 0
        self.requests: tuple[int, int] | None = None
        """After at least and at most so many of them the power of a drive fails by itself; none: never."""
        with self.path.open("wb") as file:
            file.truncate(disk.size_mib << 20)
        if disk.logged:
            with self.log_path.open("wb") as file:
                file.truncate(LOG_BYTES_MAX)

    @property
    def server(self) -> dict[str, str]:
        """Where QEMU finds the server that imitates its cache."""
        return {"type": "unix", "path": str(self._socket)}

    def options(self, node: str, number: int) -> list[str]:
        """Options of QEMU for the disk, which is the `number`th of its kind."""
        if self.disk.cache == "none" and not self.disk.drive:
            # Two ports of one disk open it twice; the host's lock would refuse the second.
            block = f"driver=file,filename={self.path},node-name={node},locking=off,discard=unmap"
        else:
            block = f"driver=nbd,server.type=unix,server.path={self._socket},node-name={node}"
            block += f",reconnect-delay={RECONNECT_S}" if self.disk.drive else ""
        if self.disk.fails:
            rule = f"inject-error.0.event=none,inject-error.0.iotype={self.disk.fails},inject-error.0.errno=5"
            below = ["-blockdev", block.replace(f"node-name={node}", f"node-name={node}-below")]
            return [
                *below,
                "-blockdev",
                f"driver=blkdebug,node-name={node},image={node}-below,{rule}",
                *self.disk.device(node, number),
            ]
        if self.disk.logged:
            below = ["-blockdev", block.replace(f"node-name={node}", f"node-name={node}-below")]
            log = ["-blockdev", f"driver=file,filename={self.log_path},node-name={node}-log"]
            both = f"driver=blklogwrites,node-name={node},file={node}-below,log={node}-log,log-sector-size=512"
            return [*below, *log, "-blockdev", both, *self.disk.device(node, number)]
        return ["-blockdev", block, *self.disk.device(node, number)]

    def power_on(self) -> None:
        """Start what the disk needs on the host."""
        if not (command := self._serving()):
            return
        self._socket.unlink(missing_ok=True)
        self._server = subprocess.Popen([*DIES_WITH_US, *command])
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._socket.exists():
            assert self._server.poll() is None, f"{command[0]} ended with {self._server.returncode}"
            assert time.monotonic() < deadline, f"{command[0]} has not started in {START_TIMEOUT_S} s"
            time.sleep(0.01)

    def _serving(self) -> list[str]:
        """The command that serves the disk, if it needs one."""
        if self.disk.drive:
            subprocess.run(["cp", "--sparse=always", self.path, self.base_path], check=True)
            self._times += 1
            seed = self.disk.seed * 100 + self._times
            files = [str(self._socket), str(self.path), str(self.log_path)]
            return [
                sys.executable, "-S", "-E", str(DRIVE_SERVER), *files, self.disk.drive, str(seed),
                *map(str, self.requests or ()),
            ]  # fmt: skip
        if self.disk.cache == "none":
            return []
        mode = "writeback" if self.disk.cache == "volatile" else "unsafe"
        return [
            "nbdkit", "--foreground", "--unix", str(self._socket), "--filter=cache", "file",
            str(self.path), f"cache={mode}", "cache-min-block-size=4096",
        ]  # fmt: skip

    @property
    def has_lost_power(self) -> bool:
        """Whether the disk's server has ended, by itself or because it was told to."""
        return self._server is None or self._server.poll() is not None

    def power_off(self) -> None:
        """Lose what lies in the disk's cache."""
        if self._server is not None:
            # A drive ends between two of its writes, where a killed one might tear what it promises to keep whole.
            self._server.send_signal(signal.SIGTERM if self.disk.drive else signal.SIGKILL)
            self._server.wait()
            self._server = None
