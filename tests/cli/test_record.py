"""`assay record`: what a host did, into a folder that goes on; its report, its diagnosis, its refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from assay_command import Bench

LEAN = """
import sys
import assay.telemetry.flight.process as process
from assay.telemetry.collectors import host_collectors
process.collectors_of({"processes": True}, print)
heavy = {"arro3", "typer", "rich", "pydantic", "polars", "numpy", "jinja2"} & set(sys.modules)
print(",".join(sorted(heavy)))
"""


def record(bench: Bench, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The verb in a process of its own: it becomes another."""
    command = [sys.executable, "-m", "assay", "record", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=bench.folder, check=False)


def test_a_host_is_recorded_shown_reported_and_diagnosed(bench: Bench) -> None:
    folder = bench.folder / "rec"
    done = record(bench, folder, "--for", "7s", "--json", "--volume", f"data={bench.folder}")
    if "no single block device" in done.stderr:
        done = record(bench, folder, "--for", "7s", "--json")

    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["run_folder"] == str(folder)
    # Without root the I/O of others' programs may not be read, which is said.
    assert all("processes is not recorded" in notice for notice in document["notices"])
    shown = bench.assay("record", "show", folder)
    assert "processors, user" in shown.stdout
    assert bench.assay("report", folder, "--no-pdf").code == 0
    page = (folder / "report.html").read_text()
    assert "Where it hurts" in page
    found = bench.assay("diagnose", folder, "--json")
    assert {cell["resource"] for cell in found.document["matrix"]} == {"cpu", "memory", "network", "disk", "response"}
    last = bench.assay("diagnose", folder, "--since", "1s", "--json")
    assert last.document["begin_utc_ns"] > found.document["begin_utc_ns"]
    again = record(bench, folder, "--for", "2s")
    assert again.returncode == 0, again.stderr
    manifest = json.loads((folder / "run.json").read_text())
    assert manifest["verb"] == "record"


def test_live_records_this_machine_and_answers(bench: Bench) -> None:
    outcome = bench.assay("diagnose", "--live", "6s", "--json")

    assert outcome.code == 0, outcome.stderr
    assert "recording for 6s" in outcome.stderr
    assert outcome.document["verdict"]["what"]
    assert {path.name for path in bench.folder.iterdir()} <= {"target"}


def test_the_process_that_records_holds_nothing_large() -> None:
    done = subprocess.run([sys.executable, "-c", LEAN], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1:] in ([], [""]), done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rec", "--keep", "1MB"], "--keep 1MB: is too little"),
        (["rec", "--every", "5ms"], "--every 5ms: accepted"),
        (["rec", "--volume", "swap=/"], "--volume 'swap=/': accepted"),
        (["rec", "--volume", "data=/nowhere"], "/nowhere is not there"),
        (["rec", "--database", "sqlite:x"], "--database sqlite:x: accepted"),
        (["rec", "--metrics", "0.0.0.0:1"], "others could read it there"),
        (["other"], "other"),
        (["show", "nothing"], "nothing"),
        (["install", "/srv/rec"], "lies outside /var/lib"),
    ],
)
def test_bad_input_is_one_line(bench: Bench, arguments: list[str], message: str) -> None:
    (bench.folder / "other").mkdir()
    (bench.folder / "other" / "file").write_text("kept")

    done = record(bench, *arguments)

    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert (bench.folder / "other" / "file").read_text() == "kept"


def test_an_empty_recording_is_said_to_be_empty(bench: Bench) -> None:
    folder = bench.folder / "rec"
    assert record(bench, folder, "--for", "100ms", "--every", "60s").returncode == 0

    outcome = bench.assay("diagnose", folder)

    assert outcome.code in (0, 2)
    if outcome.code == 2:
        assert "nothing is recorded there" in outcome.stderr


def test_the_unit_is_printed_and_never_replaces_another(bench: Bench) -> None:
    unit = bench.folder / "assay-record.service"
    first = record(bench, "install", "--unit", unit)
    second = record(bench, "install", "--unit", unit)

    assert first.returncode == 0, first.stderr
    assert "ExecStart=" in unit.read_text()
    assert (second.returncode, "is there already" in second.stderr) == (2, True)
