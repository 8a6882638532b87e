"""A virtual machine in software emulation on this host's files: boots, runs commands, loses power, boots again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from types import TracebackType
from typing import Any

from lab.disks import DIES_WITH_US, Disk, Store
from lab.folder import Folder

ROOT = Path(__file__).resolve().parent.parent
MADE = ROOT / "target" / "lab"
"""What `make set-up-lab` makes: `kernel/` and `initrd`."""

SHARE = Path("/run/lab")
"""The machine's shared folder, as the guest sees it."""

RECORDS = ("sh", "-c", "ls /tmp/recording/recording-*.sqlite")
"""Whether a recorder has begun to write into /tmp/recording: SQLite's log needs memory that the share has not."""

SYSTEM_OF = {"virtio-blk": "vd", "virtio-scsi": "sd", "sata": "sd", "nvme": "nvme"}
"""Which disks the guest numbers together."""

BOOT_TIMEOUT_S = 900.0
RUN_TIMEOUT_S = 1800.0
"""Generous: several guests may share two cores with other work. A time is never asserted, only that things end."""


def missing() -> str:
    """Return why the lab cannot run here, empty if it can."""
    for program in ("qemu-system-x86_64", "nbdkit", "setpriv"):
        if shutil.which(program) is None:
            return f"{program} is not installed: make set-up-lab"
    if not (MADE / "initrd").exists() or not list(MADE.glob("kernel/boot/vmlinuz-*")):
        return f"{MADE.relative_to(ROOT)} has no kernel and initrd: make set-up-lab"
    return ""


class PowerLost(Exception):
    """The machine ended before the command did."""


@dataclass(frozen=True)
class Done:
    """A command that ended in the guest."""

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on standard output."""
        document: dict[str, Any] = json.loads(self.stdout)
        return document

    def checked(self) -> Done:
        """Return itself; fails if the command did."""
        assert self.code == 0, (
            f"{' '.join(self.argv)} ended with {self.code}: {self.stderr[-2000:]}{self.stdout[-500:]}"
        )
        return self


class Running:
    """A command under way in the guest."""

    def __init__(self, argv: tuple[str, ...], share: Path, number: int) -> None:
        self._argv = argv
        self.number = number
        self.runs_before = len(list(share.glob("runs/*")))
        self._stdout, self._stderr = share / f"{number}.out", share / f"{number}.err"
        self._ended = threading.Event()
        self._code: int | None = None

    def answered(self, code: int | None) -> None:
        """The guest said that the command ended; None: it cannot say so any more."""
        self._code = code
        self._ended.set()

    @property
    def ended(self) -> bool:
        """Whether the command, or the machine, has ended."""
        return self._ended.is_set()

    def end(self, timeout_s: float = RUN_TIMEOUT_S) -> Done:
        """Wait for the end.

        Raises
        ------
        PowerLost
            The machine ended before.
        """
        assert self._ended.wait(timeout_s), (
            f"{' '.join(self._argv)} has not ended in {timeout_s} s: {self.stderr[-2000:]}"
        )
        if self._code is None:
            raise PowerLost(" ".join(self._argv))
        return Done(self._argv, self._code, _text(self._stdout), self.stderr)

    @property
    def stderr(self) -> str:
        """What the command said until now."""
        return _text(self._stderr)


class Machine:
    """A machine with its disks. As a context it leaves neither processes nor files behind.

    Parameters
    ----------
    disks
        In the order in which the guest sees them.
    networks
        How many network cards it has; all are on one wire, which leads nowhere else.
    within
        Begins the command line of QEMU, such as one that enters a network namespace. With it the machine has one more
        network card, on which it reaches the addresses of that namespace: 10.0.2.15 through 10.0.2.2.
    append
        More of the kernel's command line.
    """

    def __init__(
        self, disks: Sequence[Disk] = (), *, networks: int = 0, within: Sequence[str] = (), append: str = "",
        memory_mib: int = 1536,
    ) -> None:  # fmt: skip
        self._folder = Folder("assay-lab-")
        self.folder = self._folder.path
        self.share = self.folder / "share"
        self.share.mkdir()
        self.stores = {disk.name: Store(disk, self.folder) for disk in disks}
        self.boots = 0
        self.boot_s = 0.0
        self._networks = networks
        self._within = tuple(within)
        self._append = append
        self._memory_mib = memory_mib
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._reader: threading.Thread | None = None
        self._running: dict[int, Running] = {}
        self._numbers = 0

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        self._folder.remove()

    def boot(self) -> Machine:
        """Switch the power on and wait until commands can run."""
        assert self._process is None, "the machine is on"
        began = time.monotonic()
        for store in self.stores.values():
            store.power_on()
        line_path = self.folder / "line"
        line_path.unlink(missing_ok=True)
        ready = self._expect(0, ("boot",))
        with (self.folder / "qemu").open("wb") as log:
            self._process = subprocess.Popen(self._command(line_path), stdin=subprocess.DEVNULL, stderr=log)
        self._line = self._connected(line_path)
        self._reader = threading.Thread(target=self._read, args=(self._line,), daemon=True)
        self._reader.start()
        try:
            ready.end(BOOT_TIMEOUT_S)
        except PowerLost:
            raise AssertionError(f"the machine did not boot:\n{self.console[-3000:]}") from None
        self.boots += 1
        self.boot_s = time.monotonic() - began
        return self

    def cut(self) -> None:
        """Cut the power: disks first, so that nothing reaches them any more. What runs in the guest is gone."""
        for store in self.stores.values():
            store.power_off()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._reader is not None:
            self._reader.join()
            self._reader = None
        if self._line is not None:
            self._line.close()
            self._line = None

    def cut_disk(self, name: str) -> None:
        """Cut the power of one disk, which loses its cache; every I/O on it fails from now on."""
        self.stores[name].power_off()

    def plug_again(self, name: str) -> str:
        """Switch a disk's power on again and plug it in anew, beside its dead self; return its path in the guest."""
        store, again = self.stores[name], f"{name}-again"
        store.power_on()
        self._qmp("blockdev-add", {"driver": "nbd", "node-name": again, "server": store.server})
        self._qmp("device_add", {"driver": "virtio-blk-pci", "drive": again, "id": again, "serial": again})
        found = self.shell(
            f"until grep -lx {again} /sys/block/vd*/serial 2>/dev/null; do sleep 0.1; done | cut -d/ -f4"
        ).strip()
        return f"/dev/{found}"

    def set_property(self, device: str, name: str, value: int) -> None:
        """Set a property of a device while it runs."""
        self._qmp("qom-set", {"path": f"/machine/peripheral/{device}", "property": name, "value": value})

    def _qmp(self, command: str, arguments: dict[str, Any]) -> None:
        """Have QEMU do something."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(BOOT_TIMEOUT_S)
            line.connect(os.fspath(self.folder / "qmp"))
            with line.makefile("rwb") as talk:
                talk.readline()  # its greeting
                for name, words in (("qmp_capabilities", {}), (command, arguments)):
                    talk.write(json.dumps({"execute": name, "arguments": words}).encode() + b"\n")
                    talk.flush()
                    while "return" not in (answer := json.loads(talk.readline())):
                        assert "error" not in answer, answer

    def start(self, *argv: str | Path) -> Running:
        """Start a command in the guest, in the share if it is `assay`."""
        assert self._line is not None, "the machine is off"
        self._numbers += 1
        words = tuple(map(str, argv))
        running = self._expect(self._numbers, words)
        self._line.sendall(json.dumps({"id": self._numbers, "argv": words}).encode() + b"\n")
        return running

    def kill(self, running: Running, by: signal.Signals = signal.SIGKILL) -> Done:
        """Send a command in the guest a signal and wait for its end."""
        assert self._line is not None, "the machine is off"
        self._line.sendall(json.dumps({"kill": running.number, "signal": by}).encode() + b"\n")
        return running.end()

    def run(self, *argv: str | Path, timeout_s: float = RUN_TIMEOUT_S) -> Done:
        """Run a command in the guest to its end."""
        return self.start(*argv).end(timeout_s)

    def assay(self, *arguments: str | Path, timeout_s: float = RUN_TIMEOUT_S) -> Done:
        """Run Assay in the guest to its end."""
        return self.run("assay", *arguments, timeout_s=timeout_s)

    def shell(self, script: str) -> str:
        """Run lines of shell that must succeed, and return what they print."""
        return self.run("sh", "-ec", script).checked().stdout

    def device(self, name: str) -> str:
        """Return the path of a disk in the guest, of its first port if it has several."""
        bus = self.stores[name].disk.bus
        place = 0
        for store in self.stores.values():
            if store.disk.name == name:
                break
            if SYSTEM_OF[store.disk.bus] == SYSTEM_OF[bus]:
                place += store.disk.ports
        return f"/dev/nvme{place}n1" if bus == "nvme" else f"/dev/{SYSTEM_OF[bus]}{_letters(place)}"

    def in_sys(self, path: str) -> str:
        """Return the name of a device's folder in /sys/block; without udev a mapped device is no link to it."""
        return self.shell(f"lsblk --noheadings --nodeps --output KNAME {path}").strip()

    def counters(self, path: str) -> list[int]:
        """Return what the kernel has counted of a device (Documentation/block/stat), in one command: each is slow."""
        return [int(word) for word in self.shell(f"cat /sys/dev/block/$(stat -Lc %Hr:%Lr {path})/stat").split()]

    def writes(self, path: str) -> int:
        """Return how many writes a device has completed."""
        return self.counters(path)[4]

    def reads(self, path: str) -> int:
        """Return how many reads a device has completed."""
        return self.counters(path)[0]

    def ios(self, path: str) -> int:
        """Return how many reads and writes a device has completed."""
        counters = self.counters(path)
        return counters[0] + counters[4]

    def wait_until(
        self,
        happened: Callable[[], object],
        *beside: Running,
        every_s: float = 0.5,
        timeout_s: float = RUN_TIMEOUT_S,
    ) -> None:
        """Wait for something that commands under way do; fails if one of them ends or it takes too long.

        To look more often takes the guest's only core from what is waited for, if it is the guest that looks.
        """
        deadline = time.monotonic() + timeout_s
        while not happened():
            for running in beside:
                assert not running.ended or happened(), f"it ended before: {running.end()}"
            said = "".join(running.stderr[-1000:] for running in beside)
            assert time.monotonic() < deadline, f"it did not happen in {timeout_s} s: {said}"
            time.sleep(every_s)

    def wait_for_run(self, running: Running) -> None:
        """Wait until a command of Assay has made its run folder, in `runs` of the share, without asking the guest."""
        before = running.runs_before
        self.wait_until(lambda: self._runs() > before, running)

    def _runs(self) -> int:
        return len(list(self.share.glob("runs/*")))

    @property
    def console(self) -> str:
        """What QEMU and the kernel said since the last boot."""
        return _text(self.folder / "qemu") + _text(self.folder / "console")

    def _expect(self, number: int, argv: tuple[str, ...]) -> Running:
        running = self._running[number] = Running(argv, self.share, number)
        return running

    def _command(self, line_path: Path) -> list[str]:
        (kernel,) = MADE.glob("kernel/boot/vmlinuz-*")
        # The kernel measures its processor's counter at boot, wrongly where the host is busy: its clock would run fast.
        # Nor does it find its timer there, and would not boot: it is told not to look.
        words = (
            "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on clocksource=hpet no_timer_check"
            f" lab.kernel={MADE / 'kernel'} lab.python={sys.executable} lab.agent={ROOT / 'lab' / 'agent.py'}"
        )
        options = [
            "-accel", "tcg,thread=multi", "-cpu", "max", "-m", str(self._memory_mib), "-smp", "1", "-display", "none",
            "-monitor", "none",
            "-qmp", f"unix:{self.folder / 'qmp'},server=on,wait=off",
            "-nodefaults", "-no-user-config", "-no-reboot",
            "-serial", f"file:{self.folder / 'console'}", "-serial", f"unix:{line_path},server=on,wait=on",
            "-kernel", str(kernel), "-initrd", str(MADE / "initrd"), "-append", f"{words} {self._append}".strip(),
            "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
            "-virtfs", f"local,path={self.share},mount_tag=lab,security_model=none",
        ]  # fmt: skip
        numbers: Counter[str] = Counter()
        for number, store in enumerate(self.stores.values()):
            options += store.options(f"d{number}", numbers[store.disk.bus])
            numbers[store.disk.bus] += 1
        for number in range(self._networks):
            options += ["-netdev", f"hubport,id=n{number},hubid=0", "-device", f"virtio-net-pci,netdev=n{number}"]
        if self._within:
            options += ["-netdev", "user,id=within", "-device", "virtio-net-pci,netdev=within"]
        return [*DIES_WITH_US, *self._within, "qemu-system-x86_64", *options]

    def _connected(self, path: Path) -> socket.socket:
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        assert self._process is not None
        while True:
            line = socket.socket(socket.AF_UNIX)
            try:
                line.connect(os.fspath(path))
                return line
            except OSError:
                line.close()
                assert self._process.poll() is None, f"QEMU ended: {_text(self.folder / 'qemu')}"
                assert time.monotonic() < deadline, f"QEMU has not started in {BOOT_TIMEOUT_S} s"
                time.sleep(0.02)

    def _read(self, line: socket.socket) -> None:
        """Hand the guest's answers to who waits for them; at the end of the machine tell all others."""
        try:
            with line.makefile("rb") as answers:
                for text in answers:
                    answer = json.loads(text)
                    self._running.pop(answer["id"]).answered(answer["code"])
        except (OSError, ValueError):
            pass  # a line that the cut tore, or the cut itself
        while self._running:
            self._running.popitem()[1].answered(None)


def _letters(place: int) -> str:
    """Return what a disk's name ends with: a to z, aa to az, and so on."""
    first, last = divmod(place, len(ascii_lowercase))
    return (ascii_lowercase[first - 1] if first else "") + ascii_lowercase[last]


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
