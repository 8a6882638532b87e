"""Needs: units, contradictions, changes by --set, and what they ask of storage in a year."""

from __future__ import annotations

import tomllib

import pytest

from assay.base.errors import UsageError
from assay.insight.sizing.demand import LOG, demand_of, mail_servers, mailbox_bytes
from assay.insight.sizing.need import Need, NeedAsWritten, need_of, stated, template
from sizing_needs import need


def refused(table: dict[str, object]) -> str:
    with pytest.raises(UsageError) as raised:
        need_of(table, "need.toml")
    return str(raised.value)


def test_the_template_is_a_need_and_so_are_the_lines_it_comments_out() -> None:
    plain = need_of(tomllib.loads(template()), "template")
    uncommented = "\n".join(
        line[1:] if line.startswith("#") and not line.startswith("# ") else line for line in template().splitlines()
    )
    # A need states iops or transactions, so that one of the two has to go.
    table = tomllib.loads(uncommented.replace("\ntransactions =", "\n#transactions ="))
    whole = need_of(table, "template")
    assert whole.mail[0].mailboxes == 16000
    assert whole.server is not None
    # What the comments show as the value in force is the value in force.
    assert (whole.limits.read, whole.rules, whole.head_room) == (plain.limits.read, plain.rules, plain.head_room)
    first, shown = plain.database[0], whole.database[0]
    assert (shown.block, shown.read, shown.log, shown.log_bytes) == (
        first.block, first.read, first.log, first.log_bytes
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"size": 600}, "database 1.size: 600 has no unit"),
        ({"size": "600"}, "has no unit; write it as 600GB"),
        ({"growth": 30}, "30 has no unit; write it as 30%"),
        ({"growth": "-30%"}, "-30% is negative"),
        ({"read": "130%"}, "above 100%"),
        ({"transactions": 500}, "iops and transactions contradict each other"),
        ({"scan": "100MB"}, "100MB is no rate; write it as 200MB/s"),
        ({"hours": "8"}, "write them as 8-18"),
        ({"groth": "3%"}, "did you mean 'growth'?"),
        ({"block": "1GiB"}, "1,073,741,824 bytes are no size of an I/O; accepted: 512B to 4MiB"),
        ({"scan_block": "100MiB"}, "accepted: 512B to 4MiB"),
        ({"log_block": "1B"}, "accepted: 512B to 4MiB"),
    ],
)
def test_a_mistake_is_named_with_its_key(change: dict[str, object], said: str) -> None:
    assert said in refused({"database": [{"size": "1TB", "iops": 100, **change}]})


def test_a_need_that_asks_for_nothing_is_refused() -> None:
    assert "asks for nothing" in refused({})
    assert "asks for nothing" in refused({"database": [{"size": "1TB"}]})


def test_limits_need_units_and_rules_an_order() -> None:
    database = [{"size": "1TB", "iops": 100}]
    assert "limits.read: 20 has no unit; write it as 20ms" in refused({"limits": {"read": 20}, "database": database})
    assert "modelled_fill of 60% is above fill of 50%" in refused({"rules": {"fill": "50%"}, "database": database})


def changed(*changes: str) -> Need:
    table = tomllib.loads(template())
    return NeedAsWritten(table, "template", need_of(table, "template")).with_changes(changes).need


def test_set_changes_every_database_a_named_one_and_tables() -> None:
    assert {one.growth for one in changed("growth=40%").database} == {0.4}
    assert [one.size for one in changed("orders.size=1TB").database] == [10**12, 400 * 10**9]
    assert changed("limits.read=10ms", "years=5").limits.read == 0.010
    assert changed("years=5").years == 5


@pytest.mark.parametrize(
    ("change", "said"),
    [("growth=-10%", "negative"), ("growth", "accepted: KEY=VALUE"), ("grown=3%", "nothing of the need has 'grown'")],
)
def test_set_refuses_what_it_does_not_know(change: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        changed(change)


def test_stated_keys_are_told_from_defaults() -> None:
    said = stated({"years": 3, "database": [{"size": "1TB"}, {"growth": "3%"}], "limits": {"read": "1ms"}})
    assert said == {("years",), ("database", "size"), ("database", "growth"), ("limits", "read")}


def test_demand_is_derated_grows_and_keeps_the_log_apart() -> None:
    asked = need({"growth": "10%", "size": "1TB", "iops": 1000, "log": "20%"})
    (phase,) = demand_of(asked, 2).phases
    data, log = phase
    assert data.rate == pytest.approx(800 * 1.21 / (1 - 0.22))
    assert (log.rate, log.role, log.write_limit_s) == (pytest.approx(200 * 1.21), LOG, 0.005)
    demand = demand_of(asked, 2)
    assert (demand.data_bytes, demand.log_bytes) == (round(1.21e12), round(1.21e11))
    assert demand_of(need({"log": "0%"}), 0).phases[0][0].role == "data"


def test_loads_of_other_hours_are_not_added() -> None:
    def iops(hours: str) -> float:
        table = {
            "database": [
                {"name": "day", "size": "1GB", "iops": 780, "log": "0%", "hours": "8-18"},
                {"name": "other", "size": "1GB", "iops": 780, "log": "0%", "hours": hours},
            ]
        }
        return demand_of(need_of(table, "test"), 0).iops

    assert iops("20-6") == pytest.approx(1000)
    assert iops("17-20") == pytest.approx(2000)


def test_mailboxes_have_white_space_deleted_items_and_servers() -> None:
    made = need_of({"mail": [{"mailboxes": 16000, "size": "2GiB", "iops_per_mailbox": 0.1}]}, "test")
    (mail,) = made.mail
    day = 100 * 75 * 1024
    assert mailbox_bytes(mail) == pytest.approx((2 * 2**30 + 15 * day) * 1.2)
    assert mail_servers(mail, 0) == 2
    boxes, maintenance = demand_of(made, 0).phases[0]
    # Mail is tested by a raw tool: it is not derated. Each of 2 servers has 10 databases, with 30 reads a second each.
    assert (boxes.rate, boxes.block_bytes, maintenance.rate) == (pytest.approx(1600), 32768, 600)
    assert "less than or equal to 10000" in refused(
        {"mail": [{"mailboxes": 1, "size": "1GB", "iops_per_mailbox": 1, "mailboxes_per_server": 10001}]}
    )
