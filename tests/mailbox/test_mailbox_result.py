"""What is computed of the compiled core's figures: maxima, ratios, what passes."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.document.elements import Paragraph
from assay.record.judgement import counts_words, standing_counts
from assay.report.answer import answer_of
from assay.run.execute import exit_code_of
from assay.workloads.mailbox.result import peaks, ratios, server_figures, server_passed
from assay.workloads.mailbox.shapes import Mailbox
from assay.workloads.mailbox.verdict import mailbox_lines
from assay.workloads.mailbox.workload import MailboxWorkload

NOTHING = {"count": 0, "mean_ns": None}


def tick(number: int, count: int, mean_ns: float, stream: int = 0) -> dict[str, Any]:
    return {"tick": number, "volume": stream, "read": {"count": count, "mean_ns": mean_ns}, "write": NOTHING}


def test_a_maximum_is_the_highest_mean_of_fifteen_seconds() -> None:
    ticks = [tick(number, 10, 1e6) for number in range(60)]
    ticks[30] = tick(30, 10, 91e6)
    assert peaks(ticks, 0, 60, 1.0) == {(0, "read"): 7e6}
    assert peaks(ticks, 31, 60, 1.0) == {(0, "read"): 1e6}
    assert peaks(ticks, 28, 33, 1.0) == {(0, "read"): 19e6}, "a short window is judged as a whole"


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(1e3, 1e9)), min_size=1, max_size=80))
def test_a_maximum_is_that_of_every_window(counted: list[tuple[int, float]]) -> None:
    ticks = [tick(number, count, mean_ns) for number, (count, mean_ns) in enumerate(counted)]
    length = min(15, len(counted))
    means = []
    for start in range(len(counted) - length + 1):
        own = counted[start : start + length]
        if count := sum(one for one, _ in own):
            means.append(sum(one * mean for one, mean in own) / count)
    found = peaks(ticks, 0, len(counted), 1.0).get((0, "read"), 0.0)
    assert abs(found - max(means, default=0.0)) <= 1e-6 * max(means, default=1.0)


def database(**streams: tuple[float, float]) -> dict[str, Any]:
    told = {
        name: {"per_s": per_s, "bytes_mean": 8192.0, "latency_mean_ns": latency_ns, "latency_peak_ns": latency_ns}
        for name, (per_s, latency_ns) in streams.items()
    }
    iops = sum(told[name]["per_s"] for name in ("database_read", "database_write") if name in told)
    return {"name": "db1", "server": 1, "passive": False, "transactional_iops": iops, **told}


def test_ratios_are_of_active_databases_and_of_log_writes() -> None:
    active = database(database_read=(60, 1e6), database_write=(40, 1e6), log_write=(10, 1e6), shipping_read=(99, 1e6))
    passive = database(replay_read=(500, 1e6), log_write=(7, 1e6)) | {"passive": True}
    found = ratios([active, passive])
    assert found["read_write"] == {"value": 1.5, "expected": [1.5, 2.0]}
    assert found["database_log"]["value"] == 10
    assert found["log_write_bytes"]["value"] == 8192


def test_a_server_passes_by_its_rate_and_its_means() -> None:
    plan = MailboxWorkload().load_plan({"mailboxes": 1000}, source="plan")
    good = database(database_read=(60, 19e6), database_write=(40, 19e6), log_write=(10, 9e6))
    (server,) = server_figures(plan, [good], 100.0, 1000)
    assert (server["mailboxes"], server["transactional_iops"], server["total_iops"]) == (1000, 100, 110)
    assert server_passed(plan, server)
    for worse in (
        {"database_read_latency_mean_ns": 21e6},
        {"log_write_latency_mean_ns": 11e6},
        {"transactional_iops": 98.0},
    ):
        assert not server_passed(plan, server | worse), worse


def told(**fields: Any) -> Mailbox:
    """A run whose performance criteria are met."""
    base = {"passed": True, "bad_pages": 0, "mailboxes": 100, "target_iops": 100.0, "achieved_iops": 101.0,
            "verified": True, "pages_verified": 5, "ended_early": False}  # fmt: skip
    return cast("Mailbox", base | fields)


def test_the_overall_result_is_not_decided_where_no_page_could_be_verified() -> None:
    *_, unchecked = mailbox_lines(told(pages_verified=None, verified=None))
    assert (unchecked["met"], unchecked["meaning"]) == (None, "performance criteria met; checksums not checked")
    *_, checked = mailbox_lines(told())
    assert (checked["met"], checked["meaning"]) == (True, "passed")
    assert exit_code_of([unchecked]) == exit_code_of([checked]) == 0


def test_the_overall_result_is_no_check_of_its_own() -> None:
    counts = standing_counts(list(mailbox_lines(told(target_iops=None))))
    assert counts == {("check", "met"): 1}
    assert counts_words(counts) == "1 of 1 check passed"


def test_a_point_is_told_by_what_mailboxes_asked_for_and_not_by_all_its_ios() -> None:
    means = {side: {"latency_ns": {"mean": mean}} for side, mean in (("read", 8.8e6), ("write", 0.75e6))}
    point: Any = {
        "id": "p0001", "workload": {"kind": "mailbox"}, "total": {"iops": 162.6}, "roles": {"data": means},
        "mailbox": {"achieved_iops": 60.3, "target_iops": 60.0, "mailboxes": 500},
    }  # fmt: skip
    manifest: Any = {
        "verdict": [
            {"question": "achieved", "limit": "achieved>=59.4", "value": 60.3, "unit": "iops", "met": True,
             "meaning": "60 of 60", "point_id": "p0001"},
            {"question": "Mailboxes at 60 per s", "limit": None, "value": 60.3, "unit": "iops", "met": None,
             "meaning": "60 transactional I/Os per s", "point_id": "p0001"},
        ]
    }  # fmt: skip

    told = answer_of(manifest, [point])[0]

    assert isinstance(told, Paragraph)
    assert told.text == (
        "Mailboxes at 60 per s: 60 transactional I/Os per s of 60 asked by 500 mailboxes; 163 IOPS with logs,"
        " maintenance and copies; database read latency 8.80 ms; database write latency 750 us."
    )


@pytest.mark.parametrize(("per_s", "is_named"), [(19.0, True), (5.0, False)])
def test_maintenance_is_named_where_a_test_failed_beside_it(per_s: float, is_named: bool) -> None:
    told: Any = {
        "databases": [{"maintenance_read": {"per_s": per_s}}] * 5, "achieved_iops": 60.0, "passed": False,
        "bad_pages": 0, "verified": None, "ended_early": False,
    }  # fmt: skip

    overall = list(mailbox_lines(told))[-1]

    named = "failed; maintenance made 95 reads of 256 KiB a second beside 60 transactional I/Os"
    assert overall["met"] is False
    assert overall["meaning"].startswith(named) == is_named
