"""Disks of a lab machine: where their bytes are, what a power cut does to them, and how a guest sees them."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

START_TIMEOUT_S = 30.0

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

    def device(self, node: str) -> list[str]:
        """Options of QEMU that show the disk to the guest, once for each port."""
        blocks = f"logical_block_size={self.logical_block_bytes},physical_block_size={self.physical_block_bytes}"
        common = f"drive={node},serial={self.name},{blocks}"
        cached = f",write-cache={'on' if self.write_cache else 'off'}"
        if self.bus == "virtio-blk":
            return ["-device", f"virtio-blk-pci,{common}{cached}"]
        if self.bus == "nvme":
            return ["-device", f"nvme,{common}"]
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
        self._socket = folder / f"{disk.name}.sock"
        self._server: subprocess.Popen[bytes] | None = None
        with self.path.open("wb") as file:
            file.truncate(disk.size_mib << 20)

    def options(self, node: str) -> list[str]:
        """Options of QEMU for the disk."""
        if self.disk.cache == "none":
            # Two ports of one disk open it twice; the host's lock would refuse the second.
            block = f"driver=file,filename={self.path},node-name={node},locking=off,discard=unmap"
        else:
            block = f"driver=nbd,server.type=unix,server.path={self._socket},node-name={node}"
        if self.disk.fails:
            rule = f"inject-error.0.event=none,inject-error.0.iotype={self.disk.fails},inject-error.0.errno=5"
            below = ["-blockdev", block.replace(f"node-name={node}", f"node-name={node}-below")]
            return [
                *below,
                "-blockdev",
                f"driver=blkdebug,node-name={node},image={node}-below,{rule}",
                *self.disk.device(node),
            ]
        return ["-blockdev", block, *self.disk.device(node)]

    def power_on(self) -> None:
        """Start what the disk needs on the host."""
        if self.disk.cache == "none":
            return
        mode = "writeback" if self.disk.cache == "volatile" else "unsafe"
        self._socket.unlink(missing_ok=True)
        self._server = subprocess.Popen([
            *DIES_WITH_US, "nbdkit", "--foreground", "--unix", str(self._socket), "--filter=cache", "file",
            str(self.path), f"cache={mode}", "cache-min-block-size=4096",
        ])  # fmt: skip
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._socket.exists():
            assert self._server.poll() is None, f"nbdkit ended with {self._server.returncode}"
            assert time.monotonic() < deadline, f"nbdkit has not started in {START_TIMEOUT_S} s"
            time.sleep(0.01)

    def power_off(self) -> None:
        """Lose what lies in the disk's cache."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None
