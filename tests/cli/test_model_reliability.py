"""`assay model reliability` from end to end: figures, output, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from assay.apps.cli.model_reliability import parse_hours
from assay.base.errors import UsageError

if TYPE_CHECKING:
    from assay_command import Bench, Outcome


def ask(bench: Bench, *arguments: str) -> Outcome:
    return bench.assay("model", "reliability", *arguments, "-o", bench.results)


def test_the_known_figures_come_out(bench: Bench) -> None:
    known = ("--mtbf", "461386h", "--rebuild", "18h", "--latent-rate", "1.08e-4", "--scrub", "168h")
    done = ask(bench, "sata-jbod", *known, "--policy", "dp,10,5", "--no-report", "--json")
    assert done.code == 0, done.stderr
    found = done.document["reliability"]
    assert all(one["simulated"]["agrees"] for one in found["policies"])
    for one in found["policies"]:
        low, high = one["simulated"]["loss_interval_95"]
        assert low * 0.99 <= one["closed"]["loss_probability"] <= high * 1.01
    # A RAID 5 set of 7+1 loses data with 4.6 % in five years; a set of n disks n (n - 1) / 56 times as often, about.
    five = next(one for one in found["policies"] if one["policy"] == "5")
    disks = five["group_disks"]
    assert five["closed"]["loss_probability"] == pytest.approx(0.046 * disks * (disks - 1) / 56, rel=0.06)


def test_the_geometry_of_a_published_ratio_can_be_stated(bench: Bench) -> None:
    known = ("--mtbf", "461386h", "--rebuild", "18h", "--latent-rate", "1.08e-4", "--scrub", "168h")
    done = ask(bench, "sata-jbod", *known, "--layout", "7+1,1+1,6+2", "--trials", "5000", "--no-report", "--json")
    assert done.code == 0, done.stderr
    found = done.document["reliability"]
    assert [one["groups_text"] for one in found["policies"]] == ["1 set of 7+1", "1 mirrored pair", "1 set of 6+2"]
    (ratio,) = found["ratios"]
    assert (round(ratio["five"]), round(ratio["ten"])) == (4253, 156)
    assert found["policies"][0]["closed"]["loss_probability"] == pytest.approx(0.046, rel=0.01)


@pytest.mark.parametrize("layout", ["7+3", "0+1", "7", "9000+1", "6+2,"])
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_what_is_no_layout_is_refused(bench: Bench, layout: str) -> None:
    done = ask(bench, "sata-jbod", "--layout", layout)
    assert (done.code, "--layout" in done.stderr) == (2, True)


def test_a_run_folder_keeps_answer_and_report(bench: Bench) -> None:
    done = ask(bench, "ps6100xv", "--trials", "20000")
    assert done.code == 0, done.stderr
    assert {"run.json", "report.html", "report.pdf"} <= {path.name for path in bench.run.iterdir()}
    manifest = bench.manifest()
    assert (manifest["verb"], manifest["status"]) == ("model-reliability", "done")
    assert {one["key"] for one in manifest["reliability"]["inputs"]} == {"mtbf", "rebuild", "ber"}
    page = (bench.run / "report.html").read_text()
    for text in (done.stdout, page):
        flat = re.sub(r"\s+", " ", text)
        assert "on the same disks = 1 :" in flat
        assert "on the same data = 1 :" in flat
        assert "with MTBF 1,600,000 h" in flat
        assert "over the plausible ranges" in flat


@pytest.mark.slow(reason="reports of other kinds are written again by default")
def test_its_report_can_be_written_again(bench: Bench) -> None:
    ask(bench, "fas2040", "--trials", "5000")
    page = bench.run / "report.html"
    before = page.read_text()
    page.unlink()
    (bench.run / "report.pdf").unlink()

    again = bench.assay("report", bench.run)

    assert again.code == 0, again.stderr
    assert again.stdout.splitlines() == [str(page), str(bench.run / "report.pdf")]
    assert page.read_text() == before
    assert "<title>Reliability of " in before
    assert (bench.run / "report.pdf").read_bytes().startswith(b"%PDF")


def test_the_same_seed_gives_the_same_digits(bench: Bench) -> None:
    runs = [ask(bench, "fas2040", "--trials", "5000", "--seed", seed, "--no-report", "--json") for seed in "112"]
    first, second, other = (done.document["reliability"]["policies"] for done in runs)
    assert first == second
    assert first != other
    assert [one["closed"] for one in first] == [one["closed"] for one in other]


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_it_can_be_interrupted_at_once(bench: Bench) -> None:
    # Some minutes of simulation.
    asked = ("ps6100xv", "--rebuild", "5h", "--trials", "100000000", "--no-report", "-o", bench.results)
    with bench.started("model", "reliability", *asked) as running:
        running.wait_until(lambda: cpu_s(running.process.pid) > 4)
        began = time.monotonic()
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(20) == 130
    assert time.monotonic() - began < 5
    assert not bench.runs


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_ageing_is_a_column_of_its_own(bench: Bench) -> None:
    plain = ask(bench, "fas2040", "--trials", "5000", "--no-report", "--json").document["reliability"]
    aged = ask(bench, "fas2040", "--trials", "5000", "--failure-shape", "0.7", "--no-report", "--json")
    assert all(one["aged"] is None for one in plain["policies"])
    for one in aged.document["reliability"]["policies"]:
        assert one["aged"]["loss_probability"] > one["closed"]["loss_probability"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["black-box", "--rebuild", "5h"], ["black-box", "black box", "--structure"]),
        (["none-such"], ["none-such", "assay model list|known"]),
        (["ps6100xv", "--policy", "7"], ["--policy", "'7'", "10"]),
        (["nvme-mirror", "--policy", "6"], ["RAID 6 of 2 disks", "at least 4"]),
        (["ps6100xv?disks.count=3&disks.spares=0", "--policy", "6"], ["RAID", "3"]),
        (["ps6100xv", "--ber", "1e-15", "--latent-rate", "1e-4"], ["--ber", "--latent-rate"]),
        (["ps6100xv", "--mtbf", "1e6h", "--afr", "1%"], ["--mtbf", "--afr"]),
        (["ps6100xv", "--mtbf", "0"], ["--mtbf", "above 0"]),
        (["ps6100xv", "--mtbf", "-5h"], ["--mtbf", "-5h"]),
        (["ps6100xv", "--afr", "0%"], ["--afr", "0%"]),
        (["ps6100xv", "--ber", "0"], ["--ber", "0"]),
        (["ps6100xv", "--ber", "-1e-15"], ["--ber", "-1e-15"]),
        (["ps6100xv", "--ber", "nan"], ["--ber", "nan"]),
        (["ps6100xv", "--latent-rate", "x"], ["--latent-rate", "'x'"]),
        (["ps6100xv", "--scrub", "7d"], ["--scrub", "--latent-rate"]),
        (["ps6100xv", "--latent-rate", "1e-4", "--scrub", "0d"], ["--scrub", "above 0"]),
        (["ps6100xv", "--rebuild", "3 parsecs"], ["--rebuild", "parsecs", "min, h, d"]),
        (["ps6100xv", "--rebuild", "1e6h"], ["--rebuild", "MTBF"]),
        (["ps6100xv", "--years", "0"], ["--years", "0"]),
        (["ps6100xv", "--trials", "5"], ["--trials", "5"]),
        (["ps6100xv", "--failure-shape", "0"], ["--failure-shape", "0"]),
    ],
)
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_bad_input_is_refused_in_one_line(bench: Bench, arguments: list[str], parts: list[str]) -> None:
    done = ask(bench, *arguments)
    assert done.code == 2
    for part in parts:
        assert re.search(part if "|" in part else re.escape(part), done.complaint)
    assert not done.stdout
    assert not bench.runs


def test_the_document_is_the_only_output(bench: Bench) -> None:
    done = ask(bench, "fas2040", "--trials", "5000", "--no-report", "--json")
    document = json.loads(done.stdout)
    assert (document["schema_version"], document["verb"]) == (1, "model reliability")
    assert document["run_folder"] == str(bench.run)


@pytest.mark.parametrize(
    ("text", "hours"), [("1.2e6h", 1.2e6), ("90min", 1.5), ("7d", 168.0), ("140y", 140 * 8760.0), ("18", 18.0)]
)
def test_hours_are_read(text: str, hours: float) -> None:
    assert parse_hours(text, what="--mtbf") == pytest.approx(hours)


@pytest.mark.parametrize("text", ["", "h", "1e400h", "-1", "nan", "inf", "5 weeks", "0", "1e999"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--mtbf"):
        parse_hours(text, what="--mtbf")
