"""A needed load: its text, a need in TOML, a recording; and whether it is held, decided from the search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.insight.sizing.load import load_of_path, load_of_text
from assay.run.needed import judged_need, need_words
from assay.workloads.io.needed import needed_plan_data
from assay.workloads.io.plan import load_plan
from sizing_needs import recording


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5000 iops 8k 70/30 read.p99<2ms", "5,000 IOPS of 8 KiB, 70/30 random within read.p99<2ms"),
        ("5kIOPS 8KiB 70/30 read.p99<2ms write.mean<=5ms",
         "5,000 IOPS of 8 KiB, 70/30 random within read.p99<2ms, write.mean<=5ms"),
        ("1,500 iops 0/100 16K sequential write.p99<1ms", "1,500 IOPS of 16 KiB, writes in order within write.p99<1ms"),
        ("256MiB/s 256K 100/0 sequential", "1,024 IOPS of 256 KiB, reads in order within data.read.mean<=20ms"),
    ],
)  # fmt: skip
def test_a_text_says_rate_size_mix_and_limits(text: str, words: str) -> None:
    assert need_words(load_of_text(text)) == words


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "says no rate"),
        ("5000 iops 8k", "says no mix"),
        ("5000 iops 70/30", "says no block"),
        ("8k 70/30 read.p99<2ms", "says no rate"),
        ("5000 iops 8k 8k 70/30", "says the block twice"),
        ("5000 iops 8k 70/40", "'70/40' is not understood"),
        ("5000 iops 8k 70/30 fast", "'fast' is not understood"),
        ("5000 iops 100G 70/30", "'100G' is not understood"),
        ("0 iops 8k 70/30", "a rate of 0 a second cannot be asked for"),
        ("5000000000 iops 8k 70/30", "a rate of 5e+09 a second cannot be asked for"),
        ("500 iops 200MB/s 8k 70/30", "says both a rate and a throughput"),
        ("500 iops 8k 100/0 write.p99<2ms", "write.p99<2ms bounds I/O that the need does not ask for"),
        ("500 iops 8k 70/30 log.write.p99<2ms", "log.write.p99<2ms bounds I/O that the need does not ask for"),
        ("500 iops 8k 70/30 read.p98<2ms", "unknown metric 'read.p98'"),
        ("500 iops 8k 70/30 read.p99<2", "has no unit"),
    ],
)
def test_what_a_text_does_not_say_is_one_line(text: str, why: str) -> None:
    with pytest.raises(UsageError) as told:
        load_of_text(text)
    assert why in str(told.value)
    assert "\n" not in str(told.value)


def test_a_recording_is_a_need_of_its_roles(tmp_path: Path) -> None:
    need = load_of_path(recording(tmp_path / "rec", seconds=600, every_s=10))
    data, log = need["streams"]
    assert (data["rate"], data["read_share"], data["random_share"]) == (
        pytest.approx(1000), pytest.approx(0.7), 1.0)  # fmt: skip
    assert (log["role"], log["rate"], log["block_bytes"], log["random_share"]) == (
        "log", pytest.approx(100), 16384, 0.0)  # fmt: skip
    assert need["limits"] == ["data.read.mean<=20ms", "data.write.mean<=20ms", "log.write.mean<=5ms"]
    # Both rates rise together: a need twice as large is twice as much of each.
    (workload,) = load_plan(needed_plan_data(need), source="need").workloads()
    assert [one.rate for one in workload.with_load("rate", 2000.0, 1).activities] == [
        2000.0, pytest.approx(200)]  # fmt: skip


def test_a_need_in_toml_is_its_busiest_peak_as_of_now(tmp_path: Path) -> None:
    path = tmp_path / "need.toml"
    path.write_text(
        'years = 3\n[limits]\nread = "4ms"\n[rules]\nderating_transactions = "50%"\n[[database]]\nsize = "100GB"\n'
        'growth = "50%"\niops = 1000\nlog = "10%"\nhours = "8-18"\n'
        '[[database]]\nname = "b"\nsize = "1GB"\niops = 10\nhours = "20-22"\n'
    )
    need = load_of_path(path)
    assert [(one["role"], one["rate"]) for one in need["streams"]] == [
        ("data", pytest.approx(1800)), ("log", pytest.approx(100))]  # fmt: skip
    assert need["limits"][0] == "data.read.mean<=4ms"
    assert need["source"].endswith("as of now, the busiest of 2 peaks, databases derated")


def test_what_is_no_need_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file or folder"):
        load_of_path(tmp_path / "none")
    trace = tmp_path / "io.trace"
    trace.write_bytes(b"0 r 4096 8192")
    with pytest.raises(UsageError, match="Needs are not taken from traces"):
        load_of_path(trace)


def end(rate: float) -> dict[str, Any]:
    limiting = {"limit": "data.read.p99<2ms", "scope": "data/v04", "share": 7.15}
    return {"rate": rate, "iops": rate, "point_id": "p0001", "limiting": limiting}


@pytest.mark.parametrize(
    ("edge", "failing", "reason", "others", "held", "says"),
    [
        (1500, 1600, "read.p99<2ms", {}, True, "held with 50 % to spare, up to 1,500 IOPS, 150 % of it; with more it"),
        (4000, None, "axis end", {}, True, "it is held, and so is 4,000 IOPS, 400 % of it, the most that was tried"),
        (2000, 2200, "generator", {}, True, "and so is 2,000 IOPS, 200 % of it, the most that was tried"),
        (800, 900, "read.p99<2ms", {}, False, "holds 800 IOPS, 80 % of it; with more it misses read.p99<2ms"),
        (None, 250, "read.p99<2ms", {"undecided": True}, False,
         ": at 250 IOPS, 25 % of it, data read p99 is 14.3 ms (limit 2.00 ms); lower rates were not tried."),
        (None, 250, "rate not sustained", {}, False, "of it, requests arrive faster than they are served; lower rates"),
        (None, None, "generator", {}, None, "the load generator was the bottleneck at every rate that was tried"),
        (800, 900, "rate not sustained", {}, False, "80 % of it; with more requests arrive faster than they are"),
        (500, 1000, "generator", {}, None, "the load generator was the bottleneck at 1,000 IOPS, 100 % of it"),
        (1000, 1060, "read.p99<2ms", {"undecided": True, "crossing": {"rate": 1030, "interval_95": [940, 1100]}}, None,
         "the limits are crossed between 94 % and 110 % of it, too near to tell"),
        (1000, 1060, "read.p99<2ms", {"crossing": {"rate": 1030, "interval_95": [1010, 1050]}}, True,
         "nothing to spare"),
    ],
)  # fmt: skip
def test_a_need_is_held_or_not_or_that_is_not_known(
    edge: float | None, failing: float | None, reason: str, others: dict[str, Any], *, held: bool | None, says: str
) -> None:
    need = load_of_text("1000 iops 8k 70/30 read.p99<2ms")
    answer: Any = {
        "workload": {}, "axis": "rate", "part": "need", "max": None, "limited_by": reason,
        "edge": edge and end(edge), "first_failing": failing and end(failing), **others,
    }  # fmt: skip
    judged = judged_need(need, [answer])
    assert judged["held"] is held
    assert says in str(judged["sentence"])
    assert (judged["next_step"] is not None) == (held is None)


def test_what_was_not_measured_to_its_end_is_not_known() -> None:
    judged = judged_need(load_of_text("1000 iops 8k 70/30"), [])
    assert (judged["held"], "not measured to its end" in str(judged["sentence"])) == (None, True)
