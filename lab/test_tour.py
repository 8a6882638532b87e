"""The commands of docs/tour.md for disks of iSCSI, in one machine that serves the array and logs in to it."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable

import pytest

from lab.disks import Disk
from lab.fabric import Initiator
from lab.machine import ROOT, Machine

PORTALS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
VOLUMES = ("data01", "log01")


def tour() -> list[str]:
    """Return the commands of the tour, from the one that serves the array on."""
    lines = (ROOT / "docs" / "tour.md").read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("# assay array serve "))
    block = lines[first : lines.index("```", first)]
    return [line.removeprefix("# ") for line in block if line.startswith("# ")]


@pytest.mark.lab(
    line="iSCSI: the commands of the tour: serve, log in, pull a cable",
    proves="they work as they stand in docs/tour.md on one Debian host, and a read goes on over the other paths",
    cannot="",
)
def test_the_tour_works_as_it_stands(machine: Callable[..., Machine], observed: Callable[[str], None]) -> None:
    lab = machine(Disk(name="OWN"), memory_mib=2048).boot()
    initiator = Initiator(lab, is_wired=False).start()
    serve, *commands, pull = tour()
    lab.shell("modprobe fuse")
    served = lab.start(*shlex.split(serve))
    lab.wait_until(lambda: lab.run("assay", "array", "status", "--at", "/tmp/group").code == 0, served, every_s=2.0)
    lab.shell("; ".join(commands))
    device = initiator.device("data01", len(PORTALS))
    at = {volume: sorted(path.portal for path in initiator.paths(volume)) for volume in VOLUMES}
    reading = lab.start("dd", f"if={device}", "of=/dev/null", "bs=64k", "count=400", "iflag=direct")
    before = lab.reads(device)
    lab.wait_until(lambda: lab.reads(device) > before, reading)
    said = lab.run(*shlex.split(pull)).checked().stdout.strip()
    done = reading.end()
    lab.kill(served, signal.SIGINT)
    observed(f"{len(commands) + 2} commands; {said}; the read ends with {done.code}")
    assert at == {volume: list(PORTALS) for volume in VOLUMES}
    assert said == f"portal {PORTALS[0]}:3260 is lost"
    assert done.code == 0, done.stderr
