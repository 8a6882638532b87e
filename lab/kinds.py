"""What kinds of devices have in common: the shell that makes one in a machine and takes it down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lab.machine import Machine


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of device.

    Attributes
    ----------
    device
        Its path.
    make, unmake
        Shell that puts it together and takes it down.
    """

    device: str
    make: str = "true"
    unmake: str = "true"

    @contextmanager
    def made(self, lab: Machine) -> Iterator[None]:
        """Have it in a machine."""
        lab.shell(f"( {self.make} ) >&2")
        yield
        lab.shell(f"( {self.unmake} ) >&2")


def two_paths(name: str, first: str, second: str) -> str:
    """Return shell that makes a multipath device of the two ports of a disk, without multipathd."""
    return (
        f"modprobe -a dm_multipath dm_round_robin; blocks=$(cat /sys/block/{first}/size);"
        f' dmsetup create {name} -u mpath-lab --table "0 $blocks multipath 1 queue_if_no_path 0 1 1 round-robin 0 2 1'
        f' $(cat /sys/block/{first}/dev) 1 $(cat /sys/block/{second}/dev) 1"'
    )
