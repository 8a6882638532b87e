"""Disks of iSCSI: what is asked for, and what is refused before anything listens."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.base.errors import UsageError
from assay.targets.arrays.live.events import command_of
from assay.targets.arrays.live.iscsi import IscsiRequest, iscsi_request, serial_of
from assay.targets.arrays.live.request import ServeRequest

SECRET = "a secret of some length"


def asked(
    address: str = "127.0.0.1",
    portals: tuple[str, ...] = (),
    *,
    chap: str | None = None,
    initiators: tuple[str, ...] = (),
    open_to_all: bool = False,
    secret: str | None = None,
) -> IscsiRequest:
    environ = {"ASSAY_CHAP_SECRET": secret} if secret is not None else {}
    found = iscsi_request(
        address, portals, chap=chap, initiators=initiators, open_to_all=open_to_all, environ=environ
    )  # fmt: skip
    assert not environ, "child processes see the secret"
    return found


def test_an_address_alone_is_the_only_portal_and_with_portals_it_is_the_group() -> None:
    alone, group = asked(), asked("127.0.0.1:13260", ("127.0.0.2", "[::1]:3261"))
    one = alone.plan("ps6100xv", Path("/srv/store"), ["data01"])
    many = group.plan("ps6100xv", Path("/srv/store"), ["data01"])
    assert (one["portals"], one["group"]) == (["127.0.0.1:3260"], None)
    assert (many["portals"], many["group"]) == (["127.0.0.2:3260", "[::1]:3261"], "127.0.0.1:13260")


def test_addresses_beyond_loopback_need_a_proof_or_a_word() -> None:
    with pytest.raises(UsageError, match="--chap NAME, or --no-authentication"):
        asked("0.0.0.0")
    assert asked("0.0.0.0", open_to_all=True).chap is None
    found = asked("10.1.2.3", chap="dba", secret=SECRET).chap
    assert found is not None
    assert (found[0], found[1].reveal()) == ("dba", SECRET)


@pytest.mark.parametrize(
    ("address", "portals", "chap", "secret", "initiators", "said"),
    [
        ("localhost", (), None, None, (), "is no address"),
        ("127.0.0.1:99999", (), None, None, (), "ports are 1 to 65535"),
        ("127.0.0.1", ("127.0.0.1",), None, None, (), "stands once"),
        ("127.0.0.1", (), "dba", None, (), "give a secret of 12 characters"),
        ("127.0.0.1", (), "dba", "short", (), "give a secret of 12 characters"),
        ("127.0.0.1", (), None, SECRET, (), "a secret without a name"),
        ("127.0.0.1", (), None, None, ("root",), "no name of an initiator"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(
    address: str,
    portals: tuple[str, ...],
    chap: str | None,
    secret: str | None,
    initiators: tuple[str, ...],
    said: str,
) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        asked(address, portals, chap=chap, secret=secret, initiators=initiators)
    assert "\n" not in str(refused.value)
    assert SECRET not in str(refused.value)


def test_a_secret_is_in_the_plan_alone() -> None:
    request = ServeRequest("ps6100xv", Path("/srv/a"), Path("/srv/s"), iscsi=asked(chap="dba", secret=SECRET))
    assert SECRET not in repr(request)
    plan = request.plan()["iscsi"]
    assert plan is not None
    assert plan["chap"] == ("dba", SECRET)


def test_the_way_to_a_portal_is_a_real_one_and_not_modelled_besides() -> None:
    plain = ServeRequest("ps6100xv", Path("/srv/a"), Path("/srv/s")).plan()["array"]
    served = ServeRequest("ps6100xv", Path("/srv/a"), Path("/srv/s"), iscsi=asked()).plan()["array"]
    assert plain["links"]["latency_ns"] > 0
    assert served["links"]["latency_ns"] == 0
    assert served["links"]["port_bytes_per_s"] == plain["links"]["port_bytes_per_s"]


def test_a_volume_has_the_same_serial_number_each_time_and_no_other_has_it() -> None:
    store = Path("/srv/store")
    assert serial_of(store, "data01") == serial_of(store, "data01")
    assert len({serial_of(store, "data01"), serial_of(store, "data02"), serial_of(store / "x", "data01")}) == 3


def test_a_path_is_delayed_by_its_number() -> None:
    assert command_of("delay-path 1 5ms") == {"command": "delay-path", "portal": 1, "delay_ns": 5_000_000}
    with pytest.raises(UsageError, match="write delay-path PORTAL TIME"):
        command_of("delay-path first 5ms")


def test_a_volume_grows_to_a_size() -> None:
    assert command_of("grow data 8G") == {"command": "grow", "volume": "data", "bytes": 8 << 30}
    for wrong in ("grow data", "grow data 8X"):
        with pytest.raises(UsageError, match="grow"):
            command_of(wrong)


def test_a_member_may_bring_a_portal_and_a_portal_is_retired_by_its_number() -> None:
    assert command_of("add-member") == {"command": "add-member"}
    assert command_of("add-member 127.0.0.4") == {"command": "add-member", "address": "127.0.0.4:3260"}
    assert command_of("retire-path 1") == {"command": "retire-path", "portal": 1}
    with pytest.raises(UsageError, match="is no address, such as"):
        command_of("add-member somewhere")
