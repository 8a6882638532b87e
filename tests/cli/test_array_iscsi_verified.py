"""Every byte of disks of iSCSI, by `assay verify` over the initiator of libiscsi, whose disks QEMU shows."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving import serving
from test_array_iscsi import free_ports
from test_array_runs import wait_until

from mounting import needs_fuse

if TYPE_CHECKING:
    from assay_command import Bench

DAEMON = shutil.which("qemu-storage-daemon")
FAULTS = (
    ("2s", "pull member0/disk3"),
    ("3s", "fail-path"),
    ("5s", "mend-paths"),
    ("6s", "cut-power"),
    ("7s", "restore"),
    ("8s", "retire-path 1"),
    ("10s", "mend-paths"),
    ("11s", "delay-path 2 20ms"),
    ("12s", "fail-controller"),
    ("16s", "grow data01 48M"),
    ("17s", "retire-path 0"),
)
"""Events of the array, while the data are written and checked."""


def _knows_iscsi() -> bool:
    if DAEMON is None:
        return False
    # The driver is a module of its own, which the daemon names once it fails to open a disk.
    options = "driver=iscsi,transport=tcp,portal=127.0.0.1:1,target=iqn.2026-11.test:none,node-name=d"
    tried = subprocess.run([DAEMON, "--blockdev", options], capture_output=True, text=True, timeout=60, check=False)
    return "iSCSI" in tried.stderr and shutil.which("nbdfuse") is not None


pytestmark = [
    needs_fuse,
    pytest.mark.skipif(not _knows_iscsi(), reason="qemu-system-common, qemu-block-extra or nbdfuse is not installed"),
    pytest.mark.slow(reason="half a minute of faults; the tests of the front prove each by itself"),
]


@contextmanager
def shown_as_device(folder: Path, portal: str, volume: str) -> Iterator[Path]:
    """A disk as a loop device, whose I/Os libiscsi sends: QEMU gives them on as NBD, and nbdfuse shows that as a file.

    QEMU's own file of FUSE mixes up writes that are under way at the same time (7.2).
    """
    disk, server = folder / f"{volume}.disk", folder / f"{volume}.sock"
    disk.touch()
    target = f"iqn.2026-11.invalid.assay:ps6100xv-{volume}"
    options = (
        ("--nbd-server", f"addr.type=unix,addr.path={server}"),
        ("--blockdev", f"driver=iscsi,transport=tcp,portal={portal},target={target},lun=0,node-name=d,cache.direct=on"),
        ("--export", "type=nbd,id=e,node-name=d,name=d,writable=on"),
    )
    pid = folder / f"{volume}.pid"
    daemon = [str(DAEMON), "--daemonize", "--pidfile", str(pid), *(word for option in options for word in option)]
    subprocess.run(daemon, check=True, timeout=60)
    shown = subprocess.Popen(["nbdfuse", str(disk), f"nbd+unix:///d?socket={server}"])
    try:
        wait_until(lambda: disk.stat().st_size > 0)
        loop = ["losetup", "--find", "--show", "--direct-io=on", str(disk)]
        device = subprocess.run(loop, capture_output=True, text=True, check=True).stdout.strip()
        try:
            yield Path(device)
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)
        shown.kill()
        shown.wait()
        os.kill(int(pid.read_text()), signal.SIGKILL)


def test_every_byte_is_found_through_pulls_lost_paths_power_cuts_and_redirects(bench: Bench) -> None:
    group, *ports = free_ports(4)
    portals = ("--portals", ",".join(f"127.0.0.1:{port}" for port in ports))
    events = bench.folder / "events.toml"
    events.write_text("".join(f'[[event]]\nat = "{at}"\ndo = "{what}"\n' for at, what in FAULTS))
    array = "ps6100xv?raid=50&members=2&volumes=data:1,log:1"
    options = ("--iscsi", f"127.0.0.1:{group}", *portals, "--events", str(events))
    with serving(bench, *options, array=array, size="64M") as served, ExitStack() as shown:
        names = ("data01", "log01")
        data, log = (shown.enter_context(shown_as_device(bench.folder, f"127.0.0.1:{group}", name)) for name in names)
        words = ("--volume", f"data={data},log={log}", "--overwrite", f"{data}", "--overwrite", f"{log}")
        verified = bench.assay("verify", *words, "--duration", "20s", "--json", prefix=("env",), timeout_s=300)
        assert verified.code == 0, verified.stderr
        what = [event["what"] for event in served.status()["events"]]
        assert not [line for line in what if "refused" in line]
        happened = (
            "is lost",
            "power cut",
            "power restored",
            "paths are back",
            "asked to log in elsewhere",
            "grew from",
        )
        assert [words for words in happened if not any(words in line for line in what)] == []
