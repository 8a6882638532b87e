"""`assay size` from end to end: the purchase, its document, its report, what-ifs, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from assay.record.shapes.point import Point
    from assay_command import Bench, Outcome

NEED = """
title = "Orders <b>&</b>"
years = 2
currency = "EUR"
[[database]]
name = "orders"
size = "200GB"
growth = "30%"
transactions = 500
[server]
cpu_per_transaction = "5ms"
cores = 4
hit_curve = [["8GiB", "90%"], ["32GiB", "95%"]]
hit = "95%"
[[candidate]]
array = "ps6100xv"
raid = ["10", "50"]
members = [1, 4]
cost = 30000
rack_units = 2
power = "600W"
"""

FEW = NEED.replace('raid = ["10", "50"]\nmembers = [1, 4]', 'raid = ["10"]\nmembers = [1, 2]')
"""The same with two sizes to choose from, which is quick."""


def written(bench: Bench, text: str = NEED) -> Path:
    path = bench.folder / "need.toml"
    path.write_text(text, encoding="utf-8")
    return path


def ask(bench: Bench, *arguments: str | Path) -> Outcome:
    return bench.assay("size", *arguments, "--no-report", "-o", bench.results)


def test_the_template_is_printed_and_accepted_after_a_change(bench: Bench) -> None:
    printed = bench.assay("size", "--template")
    assert printed.code == 0
    path = written(bench, printed.stdout)
    assert ask(bench, path, "--set", "orders.size=1", "--json").complaint.endswith("1 has no unit; write it as 600GB")


@pytest.mark.slow(reason="tests/insight/sizing searches candidates without a command")
def test_a_purchase_with_its_reasons(bench: Bench) -> None:
    done = ask(bench, written(bench), "--json")
    assert done.code == 0, done.stderr
    told = done.document
    assert (told["schema_version"], told["verb"], told["holds"]) == (1, "size", True)
    best = told["chosen"]["cheapest"]
    assert set(told["chosen"]) == {"cheapest", "smallest", "fastest"}
    assert best["label"] in {one["label"] for one in told["candidates"] if one["holds"]}
    assert best["cost"] == 30000 * best["members"]
    assert best["power_w"] == 600 * best["members"]
    assert best["holds_times"] >= 1.2
    assert 0.5 < best["probability"] <= 1
    assert 0 < best["loss_probability"] < 0.5
    # What is refused says why, with a kind that documents name.
    kinds = {reason["kind"] for one in told["candidates"] for reason in one["reasons"]}
    assert kinds <= {"capacity", "fill", "IOPS", "log latency", "port rate", "degraded", "rebuilding",
                     "rebuild window", "loss", "rule"}  # fmt: skip
    assert any("logs take RAID 10" in line for line in told["why"])
    # 500 transactions of 3.1 I/Os, 10 % of them log, that grow by 30 % twice; the rest is derated by 22 %.
    asked = 500 * 3.1 * 1.3**2
    assert told["demand"]["sized_for"]["iops"] == pytest.approx(asked * 0.9 / 0.78 + asked * 0.1)
    values = {one["assumption"]: (one["value"], one["from"]) for one in told["assumptions"]}
    assert values["orders: derating from raw profile"] == ("22 %", "published: EQL-OLTP and EQL-DSS studies, 2013")
    assert values["orders: growth a year"] == ("30 %", "stated")
    # 500 * 1.69 transactions of 5 ms keep 4.2 cores busy: more than 80 % of one server of four.
    assert told["servers"]["databases"]["servers"] == 2
    assert told["servers"]["databases"]["memory_bytes"] == pytest.approx(32 * 2**30 / 0.92)
    out = {one["resource"]: one["year"] for one in best["growth"]["runs_out"]}
    assert out["I/O within the limits"] > 2
    assert {one["assumption"] for one in told["sensitivity"]} >= {"growth a year", "demand", "head-room", "fill"}
    assert any(one["changes"] for one in told["sensitivity"])
    kept = json.loads((Path(told["run_folder"]) / "run.json").read_text())
    assert kept["sizing"]["chosen"]["cheapest"]["label"] == best["label"]


@pytest.mark.slow(reason="two purchases")
def test_what_if_prints_the_difference(bench: Bench) -> None:
    done = ask(bench, written(bench, FEW), "--set", "growth=80%", "--no-sensitivity", "--json")
    assert done.code == 0, done.stderr
    rows = {row["what"]: row for row in done.document["difference"]["rows"]}
    assert rows["demand"]["differs"]
    assert rows["cost"]["before"] != rows["cost"]["after"]
    assert (rows["servers"]["differs"], rows["memory of a server"]["after"]) == (True, "34.78 GiB")


def test_a_need_that_nothing_holds_says_what_comes_nearest(bench: Bench) -> None:
    done = ask(bench, written(bench, NEED.replace("200GB", "20TB")), "--quiet")
    assert done.code == 1
    first, *others = done.stdout.splitlines()
    assert first.startswith("No candidate holds the need; nearest comes ps6100xv, RAID 50, log on RAID 10, 4 members (")
    assert "capacity" in first or "fill" in first
    assert "--details" in others[-1]


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ('growth = "30%"', 'growth = "-5%"', "database 1.growth: -5% is negative"),
        ('size = "200GB"', "size = 200", "database 1.size: 200 has no unit; write it as 600GB"),
        ("transactions = 500", "transactions = 500\niops = 9", "iops and transactions contradict each other"),
        ('array = "ps6100xv"', 'array = "./none.toml"', "there is no such file"),
    ],
)
def test_a_wrong_need_is_one_line_and_exit_code_2(bench: Bench, was: str, becomes: str, said: str) -> None:
    done = ask(bench, written(bench, NEED.replace(was, becomes)), "--quiet")
    assert done.code == 2
    assert said in done.complaint
    assert not bench.results.exists()


def test_negative_growth_of_a_what_if_is_refused(bench: Bench) -> None:
    done = ask(bench, written(bench), "--set", "growth=-10%")
    assert (done.code, "-10% is negative" in done.complaint) == (2, True)


def test_nothing_to_size_is_refused(bench: Bench) -> None:
    done = ask(bench)
    assert (done.code, "`assay size --template` prints a need" in done.complaint) == (2, True)
    done = ask(bench, bench.folder / "none.toml")
    assert (done.code, "cannot be read" in done.complaint) == (2, True)


@pytest.mark.slow(reason="tests/insight/sizing reads runs without a command")
def test_a_saturated_run_is_no_need_and_asks_for_the_rate(bench: Bench) -> None:
    asked = ("model:ps6100xv?raid=10&volumes=4", "--block", "8K", "--read", "70", "--duration", "2s", "--warmup", "0s")
    need = written(bench, FEW.replace("transactions = 500", "iops = 1"))
    assert bench.profile(*asked, "--queue-depth", "8").code == 0
    done = ask(bench, need, "--from", bench.run)
    assert done.code == 2
    assert (
        "went as fast as its target let it (no rate, no think time), and a saturated benchmark is no need; give the"
        in (done.complaint)
    )
    done = ask(bench, need, "--from", bench.run, "--rate", "1500", "--no-sensitivity", "--json")
    assert done.code == 0, done.stderr
    measured = done.document["measured"]
    assert measured["roles"]["data"]["iops"] == pytest.approx(1500)
    assert measured["roles"]["data"]["read_share"] == pytest.approx(0.7, abs=0.05)
    assert any("the rate of 1,500 a second is stated" in text for text in done.document["notices"])


@pytest.mark.parametrize(
    ("load", "others", "is_need"),
    [
        ({"queue_depth": 8, "outstanding": 8}, {}, False),
        ({"rate": 500.0}, {}, True),
        ({"rate": 500.0}, {"offered": {"sustained": False}}, False),
        ({"rate": 500.0}, {"generator": {"saturated": True}}, False),
        ({"users": 8}, {"workload": {"kind": "tpcc", "think_scale": 1.0}}, True),
        ({"users": 8}, {"workload": {"kind": "tpcc", "think_scale": 0.0}}, False),
    ],
)
def test_a_need_is_a_load_that_was_asked_for_and_held(load: Point, others: Point, *, is_need: bool) -> None:
    from assay.insight.sizing.measured import is_paced

    assert is_paced({"load": load, "workload": {"kind": "io"}, **others}) is is_need  # type: ignore[typeddict-item]


@pytest.mark.slow(reason="tests/insight/sizing measures recordings without a command")
def test_a_recording_becomes_a_purchase_and_five_minutes_do_not(bench: Bench) -> None:
    from sizing_needs import recording

    short = recording(bench.folder / "short", seconds=300, every_s=10)
    done = ask(bench, "--from", short)
    assert (done.code, "covers 5 min and has no busiest hours" in done.complaint) == (2, True)

    long = recording(bench.folder / "long", seconds=3 * 3600, every_s=60)
    need = written(bench, '[[candidate]]\narray = "ps6100xv"\nraid = ["10"]\n[[database]]\nsize = "300GB"\n')
    done = ask(bench, need, "--from", long, "--no-sensitivity", "--json", "--percentile", "99", "--busiest", "2")
    assert done.code == 0, done.stderr
    measured = done.document["measured"]
    assert measured["roles"]["data"]["iops"] == pytest.approx(1000, rel=0.01)
    assert measured["roles"]["log"]["iops"] == pytest.approx(100, rel=0.01)
    assert "3 hours of the 168 of a week" in measured["coverage"]["text"]
    assert done.document["holds"]


@pytest.mark.slow(reason="tests/report has the sections")
def test_the_report_holds_the_answer(bench: Bench) -> None:
    done = bench.assay("size", written(bench, FEW), "--no-sensitivity", "--quiet", "-o", bench.results)
    assert done.code == 0, done.stderr
    (folder,) = bench.results.iterdir()
    answer = json.loads((folder / "run.json").read_text())["sizing"]
    assert "Candidates" in done.stdout
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "report.pdf").read_bytes().startswith(b"%PDF")
    assert "Orders &lt;b&gt;&amp;&lt;/b&gt;" in page
    assert "<b>&</b>" not in page
    best = answer["chosen"]["cheapest"]
    assert f"Buy {best['label']} for {best['cost']:,.0f} EUR: by a model that is calibrated to" in done.stdout
    assert f"Buy {best['label']} for {best['cost']:,.0f} EUR" in page
    assert answer["sentence"] in page
    for section in ("What to buy", "The need", "Candidates", "How long it lasts", "Rules and assumptions"):
        assert section in page
