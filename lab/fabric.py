"""An array that this host serves by iSCSI in a network of its own, and the kernel's initiator in a machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import TracebackType
from typing import Any

from lab.disks import DIES_WITH_US
from lab.folder import Folder
from lab.machine import ROOT, Done, Machine

GROUP = "10.9.9.1"
"""Where initiators discover the disks; it sends logins to the portals."""
PORTALS = ("10.9.9.2", "10.9.9.3", "10.9.9.4")
JOINING = "10.9.9.5"
"""The portal of a member that joins."""
START_TIMEOUT_S = 300.0

_NETWORK = "ip link set lo up; for address; do ip address add $address/32 dev lo; done; echo; exec cat"

NAME, SECRET = "dba", "correct-horse-1"
"""What initiators prove by CHAP."""
PREFIX = "iqn.2026-11.invalid.assay:"

MULTIPATH = """
defaults {
    user_friendly_names yes
    find_multipaths no
    path_checker tur
    polling_interval 1
    max_polling_interval 2
    no_path_retry queue
    path_grouping_policy multibus
    path_selector "SELECTOR"
    rr_min_io_rq 1
}
blacklist {
    devnode "^vd"
}
"""

WIRE = f"""
modprobe virtio_net
wire=$(basename $(ls -d /sys/class/net/e* | tail -1))
ip link set $wire up
ip address add 10.0.2.15/24 dev $wire
ip route add default via 10.0.2.2
cat >>/etc/iscsi/iscsid.conf <<'END'
discovery.sendtargets.auth.authmethod = CHAP
discovery.sendtargets.auth.username = {NAME}
discovery.sendtargets.auth.password = {SECRET}
node.session.auth.authmethod = CHAP
node.session.auth.username = {NAME}
node.session.auth.password = {SECRET}
END
"""
"""What reaches an array that this host serves, which asks for CHAP."""

INITIATOR = """
modprobe -a iscsi_tcp dm_multipath dm_round_robin dm_queue_length ext4 xfs
mkdir -p /run/lock/iscsi /etc/iscsi /etc/multipath /run/udev
echo InitiatorName=iqn.2026-11.lab:initiator >/etc/iscsi/initiatorname.iscsi
echo node.session.timeo.replacement_timeout = 3 >>/etc/iscsi/iscsid.conf
/lib/systemd/systemd-udevd --daemon
udevadm trigger --action=add
udevadm settle --timeout=1800
"""
"""There is no service of any kind in a machine: each is started here, or by `Initiator.start`."""

PATHS = """
for session in /sys/class/iscsi_session/*; do
    for disk in $session/device/target*/*/block/*; do
        [ -e $disk ] || continue
        number=${session##*session}
        map=$(cat /sys/block/${disk##*/}/holders/dm-*/dm/name 2>/dev/null || echo -)
        address=$(cat /sys/class/iscsi_connection/connection$number:0/address 2>/dev/null || echo -)
        echo $(cat $session/targetname) ${disk##*/} $map $address $(cat $session/state)
    done
done
"""


class Network:
    """A network namespace with the addresses of an array, and mounts of its own; it goes with this process."""

    def __init__(self) -> None:
        self._keeper = subprocess.Popen(
            [*DIES_WITH_US, "unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", _NETWORK, "network",
             GROUP, *PORTALS, JOINING],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._keeper.stdout is not None
        assert self._keeper.stdout.readline() == b"\n", "a network namespace takes root"

    @property
    def within(self) -> tuple[str, ...]:
        """What begins the command line of a program in it."""
        return ("nsenter", "--target", str(self._keeper.pid), "--net", "--mount")

    def close(self) -> None:
        """End it; what runs in it keeps it."""
        self._keeper.communicate()


class Array:
    """An array that is served in a network. As a context it leaves nothing behind."""

    def __init__(self, network: Network, model: str, *, size: str, options: Sequence[str] = ()) -> None:
        self._network, self._model, self._size, self._options = network, model, size, tuple(options)
        self._folder = Folder("assay-lab-array-")
        self.folder = self._folder.path / "array"
        self._log = self._folder.path / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "ASSAY_CHAP_SECRET": SECRET}

    def __enter__(self) -> Array:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(signal.SIGINT)
        self._folder.remove()

    def serve(self) -> Array:
        """Serve it, with what its store holds, until it is ended."""
        assert self._process is None, "the array is served"
        log = self._log.open("wb")
        with log:
            self._process = subprocess.Popen(
                [*DIES_WITH_US, *self._assay, "serve", self._model, "--at", str(self.folder), "--size", self._size,
                 "--iscsi", GROUP, "--portals", ",".join(PORTALS), "--chap", NAME, *self._options],
                stdin=subprocess.DEVNULL, stderr=log, stdout=log, env=self._environment, cwd=self._folder.path,
            )  # fmt: skip
        deadline = time.monotonic() + START_TIMEOUT_S
        while "served until" not in self.log:
            assert self._process.poll() is None, self.log
            assert time.monotonic() < deadline, f"the array has not started in {START_TIMEOUT_S} s: {self.log}"
            time.sleep(0.05)
        return self

    def end(self, by: signal.Signals = signal.SIGKILL) -> None:
        """End its server, which leaves nothing behind unless it is killed."""
        if self._process is None:
            return
        self._process.send_signal(by)
        self._process.wait()
        self._process = None
        if by == signal.SIGKILL:
            self._run("clean")

    def command(self, *words: str) -> str:
        """Do something to it, such as `pull member0/disk3`; gives what it says."""
        return self._run(*words)

    @property
    def within(self) -> tuple[str, ...]:
        """What begins the command line of a program that sees its volumes as files."""
        return self._network.within

    def target(self, volume: str) -> str:
        """The name of the disk that a volume is to initiators."""
        return f"{PREFIX}{self._model.partition('?')[0]}-{volume}"

    def volume(self, name: str) -> FilePath:
        """Return a volume's file: for use while no initiator uses the volume."""
        return self.folder / name

    @property
    def status(self) -> dict[str, Any]:
        """Its state."""
        found: dict[str, Any] = json.loads(self._run("status", "--json"))
        return found

    @property
    def log(self) -> str:
        """What the server said since it was started."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def _assay(self) -> list[str]:
        return [*self._network.within, sys.executable, "-m", "assay", "array"]

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._assay, *words, "--at", str(self.folder)],
            capture_output=True, text=True, env=self._environment, check=False, cwd=self._folder.path,
        )  # fmt: skip
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
        return done.stdout


@dataclass(frozen=True)
class Path:
    """A disk of the initiator, and the way to it: its volume's name, multipath device, portal and session's state."""

    volume: str
    disk: str
    map: str
    portal: str
    state: str

    @property
    def is_ready(self) -> bool:
        """Whether its session is there, and a multipath device has it."""
        return self.state == "LOGGED_IN" and self.map != "-"


class Initiator:
    """The kernel's initiator in a machine, and multipathd on top.

    Parameters
    ----------
    is_wired
        Whether it reaches an array of this host; without, the machine serves one itself.
    """

    def __init__(self, lab: Machine, *, is_wired: bool = True) -> None:
        self.lab = lab
        self._is_wired = is_wired

    def start(self, selector: str = "round-robin 0") -> Initiator:
        """Make the machine's network, udev, iscsid and multipathd ready."""
        self.lab.shell(f"( {INITIATOR} {WIRE if self._is_wired else ''} ) >&2")
        self.choose(selector)
        self.lab.start("iscsid", "--foreground")
        self.lab.start("env", "--unset=DM_DISABLE_UDEV", "multipathd", "-d")
        self.lab.wait_until(lambda: self.lab.run("multipathd", "show", "daemon").code == 0)
        return self

    def choose(self, selector: str) -> None:
        """Write how multipath devices choose a path; those that exist take it at `multipathd reconfigure`."""
        self.lab.shell(f"cat >/etc/multipath.conf <<'END'\n{MULTIPATH.replace('SELECTOR', selector)}END")

    def discover(self, paths: int) -> str:
        """Ask the group for its disks, through an interface for each path."""
        names = [f"path{number}" for number in range(paths)]
        made = "".join(f"iscsiadm --mode iface --interface {name} --op=new >/dev/null;" for name in names)
        through = " ".join(f"--interface {name}" for name in names)
        return self.lab.shell(f"{made} iscsiadm --mode discovery --type sendtargets --portal {GROUP} {through}")

    def name_portals(self, target: str) -> None:
        """Know a disk at each portal, without the group: a path that is lost stays lost."""
        self.lab.shell(
            "".join(
                f"iscsiadm --mode node --targetname {target} --portal {portal}:3260 --op=new >/dev/null;"
                for portal in PORTALS
            )
        )

    def log_in(self) -> Done:
        """Log in to all disks that are known."""
        return self.lab.run("iscsiadm", "--mode", "node", "--login")

    def log_out(self) -> None:
        """Let all disks go, and forget them."""
        self.lab.shell(
            "udevadm settle --timeout=1800; multipath -F || :;"
            " iscsiadm --mode node --logout || :; iscsiadm --mode node --op=delete || :"
        )

    def paths(self, volume: str = "") -> list[Path]:
        """Paths to all volumes, or to one."""
        lines = self.lab.shell(PATHS).splitlines()
        found = [Path(target.rpartition("-")[2], *others) for target, *others in map(str.split, lines)]
        return [path for path in found if volume in ("", path.volume)]

    def device(self, volume: str, paths: int) -> str:
        """Wait until a volume has so many paths, all ready; gives its multipath device."""
        self.lab.wait_until(lambda: self.is_whole(volume, paths), every_s=1.0)
        (name,) = {path.map for path in self.paths(volume)}
        return f"/dev/mapper/{name}"

    def is_whole(self, volume: str, paths: int) -> bool:
        """Whether a volume has so many paths, all ready."""
        found = self.paths(volume)
        return len(found) == paths and all(path.is_ready for path in found)

    def reads(self, volume: str) -> dict[str, int]:
        """Reads that each disk of a volume has completed."""
        return {path.disk: self.lab.reads(f"/dev/{path.disk}") for path in self.paths(volume)}
