"""`assay mailbox` on modelled arrays, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from assay_command import Bench

FAS = "model:fas2040?volumes=5&volume_size=400GB"
ASKED = (
    "--mailbox-size",
    "100M",
    "--iops-per-mailbox",
    "0.12",
    "--duration",
    "60s",
    "--json",
    "--no-report",
    "--quiet",
)


def told(bench: Bench, target: str, *arguments: str) -> dict[str, Any]:
    outcome = bench.assay("mailbox", target, *ASKED, *arguments, "-o", bench.results)
    assert outcome.code == {True: 0, False: 1, None: 5}[outcome.document["mailbox"]["passed"]], outcome.stderr
    return outcome.document


def test_a_rate_that_chance_may_have_decided_is_unknown_and_says_how_long_to_measure(bench: Bench) -> None:
    document = told(bench, FAS, "--mailboxes", "500", "--duration", "5s")
    line = document["verdict"][0]
    assert (document["mailbox"]["passed"], line["met"], line["limit"]) == (None, None, "achieved>=59.4")
    assert "unknown: its 95 % interval, " in line["meaning"]
    assert "; measure for 4 min 46 s or longer" in line["meaning"]
    (result,) = [one for one in document["verdict"] if one["question"] == "overall test result"]
    assert (result["asked"], result["meaning"]) == (True, "unknown: what is unknown above may fail it")


@pytest.mark.slow(reason="tests/run/test_ahead.py repeats models")
def test_a_model_gives_the_same_figures_twice(bench: Bench) -> None:
    first, second = (told(bench, FAS, "--mailboxes", "500", "--duration", "1h")["mailbox"] for _ in range(2))
    assert first == second
    assert first["achieved_iops"] == pytest.approx(60, rel=0.03)
    assert first["passed"] is True
    assert (first["pages_verified"], first["verified"]) == (None, None)


def test_more_mailboxes_wait_longer(bench: Bench) -> None:
    few, many = (told(bench, FAS, "--mailboxes", count)["mailbox"] for count in ("500", "6000"))
    read = [one["servers"][0]["database_read_latency_mean_ns"] for one in (few, many)]
    assert read[0] < read[1]


@pytest.mark.slow(reason="a search")
def test_the_most_mailboxes_within_the_limits_are_found(bench: Bench) -> None:
    document = told(bench, FAS, "--mailboxes", "500", "--search", "rate", "--repeats", "0")
    (answer,) = document["answers"]
    best = answer["max"]
    assert best["mailboxes"] == pytest.approx(best["rate"] / 0.12, rel=0.02)
    assert 500 < best["mailboxes"] < 50_000
    assert answer["limited_by"] != "axis end"
    found = document["mailbox"]
    assert found["target_iops"] == best["rate"]
    assert found["passed"] is True
    assert "array" in document["points"][0]
    # The load goes on from point to point, each of which begins where the one before ended.
    points = document["points"]
    began = [point["started_utc_ns"] for point in points]
    assert began == sorted(set(began))
    for point in points:
        assert point["measured_from_utc_ns"] - point["started_utc_ns"] == pytest.approx(point["warmup_s"] * 1e9)
        (server,) = point["mailbox"]["servers"]
        assert server["mailboxes"] == point["mailbox"]["mailboxes"]
