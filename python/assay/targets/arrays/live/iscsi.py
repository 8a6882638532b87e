"""Volumes of a served array as disks of iSCSI: where they are, for whom, and what they are called."""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypedDict

from assay.base.errors import UsageError
from assay.base.secrets import Secret
from assay.targets.arrays.live.addresses import event_loops, is_loopback, portal_address

AUTHORITY = "iqn.2026-11.invalid.assay"
"""Begin of the targets' names. Nobody owns a name below `invalid` (RFC 2606), so that none of a maker's is used."""
SECRET_VARIABLE = "ASSAY_CHAP_SECRET"
SECRET_LEAST = 12
"""Shorter secrets are guessed; Windows refuses them (RFC 7143, 9.2.1: at least 96 bits unless IPsec is used)."""
PRODUCT_MAX = 16


class IscsiPlan(TypedDict):
    """The plan for the compiled server (crates/array-live/src/plan.rs); `chap` and `mutual` are a name and a secret."""

    portals: list[str]
    group: str | None
    prefix: str
    product: str
    serials: list[str]
    chap: tuple[str, str] | None
    mutual: tuple[str, str] | None
    initiators: list[str]
    is_open_to_all: bool
    threads: int


@dataclass(frozen=True)
class IscsiRequest:
    """Where volumes are disks of iSCSI.

    Attributes
    ----------
    address
        Where initiators find the disks; with `portals` it sends their logins there.
    portals
        Addresses of the paths; empty: `address` is the only one.
    chap
        Name and secret that initiators prove.
    initiators
        Names of the initiators that may log in; empty for any.
    open_to_all
        Whether hosts beyond this one may log in without a proof.
    """

    address: str
    portals: tuple[str, ...] = ()
    chap: tuple[str, Secret] | None = None
    initiators: tuple[str, ...] = ()
    open_to_all: bool = False

    def plan(self, array: str, store: Path, volumes: Sequence[str]) -> IscsiPlan:
        """The plan for the compiled server: the secret is revealed in it."""
        chap = None if self.chap is None else (self.chap[0], self.chap[1].reveal())
        return {
            "portals": list(self.portals or (self.address,)),
            "group": self.address if self.portals else None,
            "prefix": f"{AUTHORITY}:{_letters(array)}-",
            "product": array.upper()[:PRODUCT_MAX],
            "serials": [serial_of(store, volume) for volume in volumes],
            "chap": chap,
            "mutual": None,
            "initiators": list(self.initiators),
            "is_open_to_all": self.open_to_all,
            "threads": event_loops(),
        }


def iscsi_request(
    address: str,
    portals: Sequence[str],
    *,
    chap: str | None,
    initiators: Sequence[str],
    open_to_all: bool,
    environ: MutableMapping[str, str],
) -> IscsiRequest:
    """What `--iscsi` and its fellows ask for.

    Raises
    ------
    UsageError
        An address is none, a secret is missing, or disks would be open to the network without one.
    """
    where = portal_address(address, "--iscsi")
    paths = tuple(portal_address(portal, "--portals") for portal in portals)
    if len({where, *paths}) < 1 + len(paths):
        raise UsageError("--portals: each address stands once, and none is that of --iscsi")
    secret = environ.pop(SECRET_VARIABLE, "")
    if chap is not None and len(secret) < SECRET_LEAST:
        raise UsageError(f"--chap: give a secret of {SECRET_LEAST} characters or more in {SECRET_VARIABLE}")
    if chap is None and secret:
        raise UsageError(f"{SECRET_VARIABLE}: is a secret without a name; give --chap NAME")
    beyond = [one for one in (where, *paths) if not is_loopback(one)]
    if beyond and chap is None and not open_to_all:
        raise UsageError(
            f"{beyond[0]}: other hosts reach this address; give --chap NAME, or --no-authentication to let in everybody"
        )
    for name in initiators:
        if not re.fullmatch(r"(iqn|eui|naa)\.[A-Za-z0-9.:-]{1,219}", name):
            raise UsageError(
                f"--initiators: {name!r} is no name of an initiator, such as iqn.1993-08.org.debian:01:5f1c"
            )
    named = None if chap is None else (chap, Secret(secret))
    return IscsiRequest(where, paths, named, tuple(initiators), open_to_all)


def serial_of(store: Path, volume: str) -> str:
    """A volume's serial number: the same whenever this host serves it from this store, on every path."""
    host = Path("/etc/machine-id")
    identity = host.read_text().strip() if host.is_file() else ""
    return sha256(f"{identity}\0{store.absolute()}\0{volume}".encode()).hexdigest()[:24]


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9.-]+", "-", text.lower())
