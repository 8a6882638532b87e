"""Exports of NBD: what is asked for, and what is refused before anything listens."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.base.errors import UsageError
from assay.targets.arrays.live.nbd import NbdRequest, nbd_request
from assay.targets.arrays.live.request import ServeRequest


@pytest.mark.parametrize(
    ("address", "where"),
    [("127.0.0.1", "127.0.0.1:10809"), ("127.0.0.1:20809", "127.0.0.1:20809"), ("::1", "[::1]:10809")],
)
def test_an_address_may_leave_its_port_out(address: str, where: str) -> None:
    assert nbd_request(address, open_to_all=False).plan()["address"] == where


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("localhost", r"--nbd: 'localhost' is no address, such as 127\.0\.0\.1 or 127\.0\.0\.1:10809"),
        ("127.0.0.1:0", "ports are 1 to 65535"),
        ("0.0.0.0", "other hosts reach this address, and NBD knows no secrets; give --no-authentication"),
    ],
)
def test_what_is_no_address_or_open_to_other_hosts_is_refused(address: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        nbd_request(address, open_to_all=False)


def test_other_hosts_are_let_in_when_they_are_asked_for() -> None:
    assert nbd_request("192.0.2.1", open_to_all=True).address == "192.0.2.1:10809"


def test_the_model_keeps_its_own_network_for_exports(tmp_path: Path) -> None:
    def links(nbd: NbdRequest | None) -> object:
        plan = ServeRequest("ps6100xv", tmp_path / "shown", tmp_path / "store", nbd=nbd).plan()
        return plan["array"]["links"]

    assert links(NbdRequest("127.0.0.1:10809")) == links(None)
