"""Volumes of a served array as exports of NBD: where they are, and for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from assay.base.errors import UsageError
from assay.targets.arrays.live.addresses import NBD_PORT, event_loops, is_loopback, portal_address


class NbdPlan(TypedDict):
    """The plan for the compiled server (crates/array-live/src/plan.rs)."""

    address: str
    threads: int


@dataclass(frozen=True)
class NbdRequest:
    """Where volumes are exports of NBD, each under its name.

    Attributes
    ----------
    address
        Where clients connect, with the port.
    """

    address: str

    def plan(self) -> NbdPlan:
        """The plan for the compiled server."""
        return {"address": self.address, "threads": event_loops()}


def nbd_request(address: str, *, open_to_all: bool) -> NbdRequest:
    """What `--nbd` asks for.

    Raises
    ------
    UsageError
        The address is none, or volumes would be open to the network although nobody said so.
    """
    where = portal_address(address, "--nbd", NBD_PORT)
    if not is_loopback(where) and not open_to_all:
        raise UsageError(
            f"{where}: other hosts reach this address, and NBD knows no secrets; give --no-authentication to let in"
            " everybody"
        )
    return NbdRequest(where)
