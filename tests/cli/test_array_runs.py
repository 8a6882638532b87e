"""Targets that serve an array for a run: faults while it is measured, databases on it, and nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.record.run_folder import RunFolder
from mounting import needs_fuse, needs_loops

if TYPE_CHECKING:
    from assay_command import Bench, Outcome

pytestmark = needs_fuse

DATABASE = "raid=10&volumes=data:1,log:1&cache=64MiB&size=3G"
HOSTS_DATABASE = "hosts=2&volumes=data:1,log:1&log.container=256KiB&size=3G"


def events(bench: Bench, *what: tuple[str, str]) -> Path:
    path = bench.folder / "events.toml"
    path.write_text("".join(f'[[event]]\nat = "{at}"\ndo = "{do}"\n' for at, do in what))
    return path


def refuse_anything_left(bench: Bench) -> None:
    assert str(bench.folder) not in Path("/proc/self/mountinfo").read_text()
    backing = [path.read_text() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    assert not [text for text in backing if str(bench.folder) in text]
    assert not list(bench.folder.rglob(".*.assay-array"))


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def tpcc(bench: Bench, options: str, *arguments: Any) -> tuple[Any, ...]:
    target = f"embedded+array:ps6100xv?{options}&at={bench.folder}/group"
    return ("oltp", "tpcc", target, "load", "run", "check", "--warehouses", "1", "--users", "4", *map(str, arguments))


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_profile_serves_its_array_pulls_a_disk_meanwhile_and_takes_all_away(bench: Bench) -> None:
    target = f"array:ps6100xv?raid=10&volumes=data:1&size=16M&at={bench.folder}/group"
    plan = events(bench, ("1s", "pull member0/disk3 keep-spare"), ("1.2s", "slow path0 x2"))
    load = ("--block", "8K", "--read", "70", "--queue-depth", "4", "--warmup", "200ms", "--duration", "2s")

    outcome = bench.assay("profile", target, *load, "--events", plan, "--no-report", "--json")

    assert outcome.code == 0, outcome.stderr
    (point,) = outcome.document["points"]
    (served,) = point["served"]
    assert [event["what"] for event in served["events"]] == [
        "member0/disk3: pulled",
        "path0: 2 times slower",
    ]
    assert [phase["state"] for phase in served["phases"]] == ["healthy", "degraded"]
    assert served["lateness"]["ios"] > 0
    assert served["volumes"][0]["read_iops"] > 0
    assert outcome.document["target"]["served"][0]["served"]["folder"] == f"{bench.folder}/group"
    assert (bench.folder / "group.store").is_dir()
    assert not (bench.folder / "group").exists()
    refuse_anything_left(bench)


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_run_during_which_a_disk_is_pulled_is_diagnosed_with_it(bench: Bench) -> None:
    target = f"array:ps6100xv?raid=10&volumes=data:1&size=16M&at={bench.folder}/group"
    plan = events(bench, ("1s", "pull member0/disk3 keep-spare"))
    load = ("--block", "8K", "--queue-depth", "1", "--warmup", "200ms", "--duration", "9s", "--events", plan)
    ran = bench.profile(target, *load, "--quiet")
    assert ran.code == 0, ran.stderr
    (run,) = bench.results.iterdir()

    outcome = bench.assay("diagnose", run, "--json")

    assert outcome.code == 0, outcome.stderr
    (degraded,) = (cause for cause in outcome.document["causes"] if cause["cause"] == "degraded-raid")
    state, log, *_ = degraded["evidence"]
    assert (state["of"], state["entity"], state["value"]) == ("state", "member0", 1.0)
    assert "member0/disk3: pulled" in log["text"]
    assert degraded["advice"].startswith("Replace member0/disk3 ")


@pytest.mark.parametrize("is_made", [True, False], ids=["made by the run", "of the user"])
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_the_server_of_a_run_that_is_gone_removes_the_folder_it_made(bench: Bench, is_made: bool) -> None:
    if not is_made:
        (bench.folder / "group").mkdir()
    target = f"array:ps6100xv?volumes=data:1&size=16M&at={bench.folder}/group"
    with bench.started("profile", target, "--duration", "60s", "--no-report", forked=False) as running:
        running.wait_until(lambda: "measuring" in running.stderr)
        running.process.kill()
        running.process.wait()
    wait_until(lambda: not (bench.folder / ".group.assay-array").exists())
    refuse_anything_left(bench)
    assert (bench.folder / "group").exists() is not is_made


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("profile", "null:", "--events", "good.toml"), "nothing here is served by this run"),
        (("profile", "array:ps6100xv", "--events", "bad.toml"), "did you mean 'do'?"),
        (("profile", "array:ps6100xv", "--events", "odd.toml"), "did you mean 'pull'?"),
        (("profile", "array:ps6100xv?durabilty=lying"), "did you mean 'durability'?"),
        (("profile", "array:ps6100xv?durability=paper"), "accepted: battery, volatile, lying"),
        (("profile", "array:ps6100xv", "--size", "1G"), "array:NAME?size=20G"),
        (("profile", "array:ps6100xv", "--volume", "log=/tmp/x"), "give it alone"),
        (("profile", "array:nosuch"), "unknown"),
        (("oltp", "tpcc", "embedded+array:ps6100xv?volumes=data:2,temp:1&databases=2"), "1 for temporary files"),
        (("oltp", "tpcc", "embedded+array:ps6100xv?volumes=data:2,log:1&databases=2"), "as many volumes of each role"),
        (("oltp", "tpcc", "embedded+array:ps6100xv?databases=many"), "whole number"),
        (("oltp", "tpcc", "embedded+array:ps6100xv?set.fsycn=off"), "did you mean 'fsync'?"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_served(
    bench: Bench, arguments: tuple[str, ...], complaint: str
) -> None:
    (bench.folder / "good.toml").write_text('[[event]]\nat = "1s"\ndo = "pull member0/disk3"\n')
    (bench.folder / "bad.toml").write_text('[[event]]\nat = "1s"\ndoo = "pull member0/disk3"\n')
    (bench.folder / "odd.toml").write_text('[[event]]\nat = "1s"\ndo = "pul member0/disk3"\n')

    outcome = bench.assay(*arguments)

    assert outcome.code == 2
    assert complaint in outcome.complaint
    refuse_anything_left(bench)


def test_a_dry_run_serves_nothing(bench: Bench) -> None:
    outcome = bench.assay("profile", "array:ps6100xv?volumes=data:2,log:1&size=3G", "--dry-run")

    assert outcome.code == 0
    assert "volume log01" in outcome.stdout
    assert not (bench.folder / "assay-arrays").exists()


@needs_loops
@pytest.mark.slow(reason="the next test pulls a disk under a run, too")
def test_a_database_on_an_array_loses_a_disk_and_nothing_else(bench: Bench) -> None:
    plan = events(bench, ("1s", "pull member0/disk3"))

    outcome = bench.assay(
        *tpcc(bench, DATABASE, "--duration", "3s", "--warmup", "500ms", "--events", plan, "--no-report", "--json")
    )

    assert outcome.code == 0, outcome.stderr
    (point,) = outcome.document["points"]
    told = [event["what"] for event in point["served"][0]["events"]]
    assert told[:2] == ["member0/disk3: pulled", "member0/disk3: rebuild begins"]
    assert all(condition["met"] for condition in outcome.document["oltp"]["conditions"])
    assert {volume["name"] for volume in point["served"][0]["volumes"]} == {"data01", "log01"}
    refuse_anything_left(bench)


@needs_loops
@pytest.mark.slow(reason="a database for each kind of cache")
@pytest.mark.parametrize(("durability", "code"), [("battery", 0), ("volatile", 0), ("lying", 4)])
def test_a_power_cut_amid_transactions_takes_what_an_array_that_lies_acknowledged(
    bench: Bench, durability: str, code: int
) -> None:
    plan = events(bench, ("7s", "cut-power"), ("8s", "restore"))
    options = f"{DATABASE}&durability={durability}"

    outcome = bench.assay(
        *tpcc(bench, options, "--duration", "10s", "--warmup", "1s", "--events", plan, "--no-report", "--json")
    )

    (cut,) = outcome.document["points"][0]["oltp"]["power_cuts"]
    assert cut["acknowledged"] > 0
    if code == 0:
        assert outcome.code == 0, outcome.stderr
        assert (cut["missing"], cut["error"]) == (0, None)
        assert all(condition["met"] for condition in outcome.document["oltp"]["conditions"])
    else:
        # Where the database comes back at all, it lacks orders that users were told of.
        assert outcome.code in (3, 4)
        assert cut["missing"] or cut["error"]
    refuse_anything_left(bench)


@needs_loops
@pytest.mark.slow(reason="two databases are loaded")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_leaves_nothing_either(bench: Bench, number: int) -> None:
    with bench.started(*tpcc(bench, DATABASE, "--duration", "60s"), forked=False) as running:
        running.wait_until(lambda: "measuring" in running.stderr)
        running.process.send_signal(number)
        running.process.wait()
    # The server of the array learns of it from its standard input.
    wait_until(lambda: not list(bench.folder.glob(".*.assay-array")))
    refuse_anything_left(bench)


@needs_loops
@pytest.mark.slow(reason="a database is loaded")
def test_a_server_that_is_killed_under_a_database_ends_the_run_and_is_cleaned(bench: Bench) -> None:
    with bench.started(*tpcc(bench, DATABASE, "--duration", "60s"), forked=False) as running:
        running.wait_until(lambda: "measuring" in running.stderr)
        note = json.loads((bench.folder / ".group.assay-array").read_text())
        os.kill(note["pid"], signal.SIGKILL)
        outcome = running.end()
    assert outcome.code == 3
    assert "the server of the array ended" in outcome.stderr
    refuse_anything_left(bench)


@needs_loops
@pytest.mark.slow(reason="a database is loaded")
def test_a_volume_that_is_unmounted_while_a_point_is_measured_fails_the_point_with_its_name(bench: Bench) -> None:
    options = "raid=10&volumes=data:1,log:1,tempdb:1&cache=64MiB&size=3G"
    with bench.started(
        *tpcc(bench, options, "--duration", "6s", "--no-report", "-o", bench.results), forked=False
    ) as running:
        running.wait_until(lambda: "measuring" in running.stderr)
        (place,) = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()
                    if str(bench.folder) in line and "/tempdb01 " in line]  # fmt: skip
        subprocess.run(("umount", "--lazy", place), check=True)
        outcome = running.end()

    assert outcome.code == 3
    assert "volume tempdb01: not mounted any more at " in outcome.stderr
    points = [json.loads(line) for line in (bench.run / "points.jsonl").read_text().splitlines()]
    assert [point["ended_by"] for point in points] == ["failed"]
    devices = points[0]["oltp"]["storage"]["devices"]
    assert all(device["device"].startswith("loop") for device in devices)
    refuse_anything_left(bench)


def refuse_words_without_cause(bench: Bench, outcome: Outcome) -> None:
    assert outcome.code == 3, outcome.stderr
    assert "the array refused writes, because room=" in outcome.complaint
    assert "give it more room. What failed: " in outcome.complaint
    refuse_anything_left(bench)


@needs_loops
@pytest.mark.slow(reason="initdb fails after seconds, loading later")
@pytest.mark.parametrize(
    ("array", "room"),
    [
        ("ps6100xv?raid=10&cache=64MiB", "60M"),
        ("ps6100xv?raid=10&cache=64MiB", "400M"),
        ("datrium-dvx?hosts=2&log.container=256KiB", "40M"),
        ("datrium-dvx?hosts=2&log.container=256KiB", "150M"),
    ],
)
def test_a_database_that_finds_no_room_in_the_store_ends_the_run_in_a_line(bench: Bench, array: str, room: str) -> None:
    target = f"embedded+array:{array}&volumes=data:1,log:1&size=3G&room={room}&at={bench.folder}/array"

    outcome = bench.assay("oltp", "tpcc", target, "load", "--warehouses", "1", "--no-report", "--quiet")

    refuse_words_without_cause(bench, outcome)


@needs_loops
@pytest.mark.slow(reason="a database is loaded")
@pytest.mark.parametrize("array", [f"ps6100xv?{DATABASE}", f"datrium-dvx?{HOSTS_DATABASE}"], ids=["group", "hosts"])
def test_transactions_that_fill_the_store_end_the_run_in_a_line_and_go_on_with_more_room(
    bench: Bench, array: str
) -> None:
    target = f"embedded+array:{array}&at={bench.folder}/array"
    tpcc = ("oltp", "tpcc", target)
    load = ("--warehouses", "1", "--users", "4", "--warmup", "1s", "--no-report", "--quiet")
    assert bench.assay(*tpcc, "load", "--warehouses", "1", "--no-report").code == 0
    used = sum(path.stat().st_blocks for path in (bench.folder / "array.store").glob("*.img")) * 512

    outcome = bench.assay(*tpcc[:2], f"{target}&room={used + (32 << 20)}", "run", *load, "--duration", "5m")

    refuse_words_without_cause(bench, outcome)
    # The server recovers what it had acknowledged.
    again = bench.assay(*tpcc, "run", "check", *load, "--duration", "2s", "--json")
    assert again.code == 0, again.stderr
    assert all(condition["met"] for condition in again.document["oltp"]["conditions"])


@needs_loops
@pytest.mark.slow(reason="three of the fault scripts of benches/array_faults.py")
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize(("first", "seeds"), [(1, 2), (35, 1)], ids=["group", "hosts with flash"])
def test_under_random_faults_fio_verify_and_a_database_find_every_byte(tmp_path: Path, first: int, seeds: int) -> None:
    script = Path(__file__).parents[2] / "benches" / "array_faults.py"
    command = (sys.executable, str(script), "--first", str(first), "--seeds", str(seeds))

    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    assert done.returncode == 0, done.stdout


GP2 = "aws-gp2?volumes=data:1&volume_size=20GiB&iops.burst=300&iops.credits=4000&set.shared_buffers=16MB"
"""20 GiB of gp2 have 100 IOPS; a smaller burst and bucket than the provider's let the credits end within a test."""


@needs_loops
@pytest.mark.slow(reason="a database spends its credits for about twenty seconds")
def test_a_database_on_gp2_runs_out_of_credits_when_the_formula_says_and_is_told_why(bench: Bench) -> None:
    target = f"embedded+array:{GP2}&at={bench.folder}/ebs"
    load = ("--warehouses", "1", "--users", "8", "--warmup", "0s", "--duration", "45s")
    assert bench.assay("oltp", "tpcc", target, "load", "--warehouses", "1", "--no-report").code == 0

    ran = bench.assay("oltp", "tpcc", target, "run", *load, "-o", bench.results, "--json")

    assert ran.code == 0, ran.stderr
    run = Path(ran.document["run_folder"])
    (served,) = ran.document["points"][0]["served"]
    (told,) = [event for event in served["events"] if "credits of IOPS are used up" in event["what"]]
    assert told["what"] == "data01: burst credits of IOPS are used up: 100 IOPS from now on"
    with RunFolder.open(run) as folder:
        rows = [row for row in folder.series().records() if row["entity"] == "volume/data01"]
    balance = sorted((row["t_ns"], row["value"]) for row in rows if row["metric"] == "burst_balance_share")
    counted = [row["value"] for row in rows if row["metric"] == "counted_ios_count" and row["t_ns"] <= told["t_ns"]]
    # What is left in the third second, over what is spent a second from then on, less the baseline: a busy host may
    # ask for less than the burst.
    from_ns, left = balance[2]
    seconds = (told["t_ns"] - from_ns) / 1e9
    spent_per_s = sum(counted[3:]) / (len(counted) - 3)
    assert seconds == pytest.approx(left * 4000 / (spent_per_s - 100), rel=0.03)
    # The dip is in the point and in the report, and the diagnosis is certain of it.
    assert [phase["state"] for phase in served["phases"]] == ["healthy", "at baseline"]
    assert served["dip"]["depth_share"] > 0.3
    assert "burst credits of IOPS are used up" in (run / "report.html").read_text()
    causes = bench.assay("diagnose", run, "--json").document["causes"]
    (burst,) = [cause for cause in causes if cause["cause"] == "burst-decline"]
    assert burst["confidence"] == 1.0
    refuse_anything_left(bench)


HOT = (
    "980-pro-1tb?volumes=data:1&volume_size=4GiB&disk.heat=20MB&disk.cooling_rate=0.1MB/s&disk.throttled=0.05"
    "&disk.interface_rate=2GB/s&set.shared_buffers=16MB"
)
"""A drive that twenty megabytes heat up: it has a twentieth of its rate until half of that has cooled down."""


@needs_loops
@pytest.mark.slow(reason="a database heats a drive for about fifteen seconds")
def test_a_database_on_a_drive_that_gets_hot_sees_it_throttle_and_is_told_why(bench: Bench) -> None:
    target = f"embedded+array:{HOT}&at={bench.folder}/hot"
    load = ("--warehouses", "1", "--users", "4", "--warmup", "0s", "--duration", "15s")
    assert bench.assay("oltp", "tpcc", target, "load", "--warehouses", "1", "--no-report").code == 0

    ran = bench.assay("oltp", "tpcc", target, "run", *load, "-o", bench.results, "--json")

    assert ran.code == 0, ran.stderr
    run = Path(ran.document["run_folder"])
    (served,) = ran.document["points"][0]["served"]
    told = [event for event in served["events"] if "throttles to cool down" in event["what"]]
    assert told[0]["what"].startswith("member0/disk0: throttles to cool down; ")
    assert "throttled" in [phase["state"] for phase in served["phases"]]
    assert "throttles to cool down" in (run / "report.html").read_text()
    causes = bench.assay("diagnose", run, "--json").document["causes"]
    assert "drive-throttles" in [cause["cause"] for cause in causes]
    refuse_anything_left(bench)
