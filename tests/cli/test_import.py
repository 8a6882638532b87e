"""`assay import`: recordings of real files, their report, and one line for what cannot be used."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from assay_command import Bench

SAMPLES = Path(__file__).parents[1] / "telemetry" / "imported"


def test_a_recording_has_a_report_of_its_own(bench: Bench) -> None:
    outcome = bench.assay(
        "import", SAMPLES / "perfmon.csv", SAMPLES / "esxtop.csv", "--volume", "data=D:", "-o", bench.results
    )

    assert outcome.code == 0, outcome.stderr
    assert "left out 1, no use is made of it: Web Service\\Get Requests/sec" in outcome.stdout
    (folder,) = bench.results.iterdir()
    assert f"recording: {folder}" in outcome.stdout
    assert bench.assay("report", folder).code == 0
    page = (folder / "report.html").read_text().replace("<wbr>", "")
    assert all(word in page for word in ("<title>SQL1 and 1 more: recording", "What it was made from", "perfmon.csv"))


def test_the_document_says_what_was_taken_and_what_was_not(bench: Bench) -> None:
    outcome = bench.assay("import", SAMPLES / "sar.json", "--json", "-o", bench.results)

    assert outcome.code == 0, outcome.stderr
    assert outcome.stderr == ""
    (file,) = outcome.document["recording"]["files"]
    assert (file["format"], file["hosts"]) == ("sar", ["db1"])
    assert file["ignored"]["hugepages"] == "no use is made of it"
    assert file["ignored"]["disk.rkB"] == "disk.rd_sec says it as well"
    assert (file["not_understood"], file["values"]["not_understood"]) == ({}, 0)
    assert Path(outcome.document["run_folder"]).parent == bench.results


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.csv"], "missing.csv: cannot be read: No such file or directory"),
        (["log.blg"], "relog log.blg -f csv -o log.csv -y"),
        (["empty.csv"], "empty.csv: is empty"),
        (["words.csv"], "words.csv: is of no format that is known here"),
        ([SAMPLES / "sar.json", "--zone", "CET"], "--zone 'CET': accepted: an offset"),
        ([SAMPLES / "sar.json", "--volume", "swap=sdb"], "--volume 'swap=sdb': accepted: ROLE=NAME"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_leaves_nothing(bench: Bench, arguments: list[str | Path], message: str) -> None:
    (bench.folder / "log.blg").write_bytes(b"\x01\x00\x00\x00")
    (bench.folder / "empty.csv").write_bytes(b"")
    (bench.folder / "words.csv").write_text("just words\n")
    files = [
        bench.folder / one if isinstance(one, str) and one.endswith((".csv", ".blg")) else one for one in arguments
    ]
    outcome = bench.assay("import", *files, "-o", bench.results)
    assert outcome.code == 2
    lines = [line for line in outcome.stderr.strip().splitlines() if not line.startswith("reading ")]
    assert len(lines) == 1
    assert message in lines[0]
    assert not bench.results.exists() or list(bench.results.iterdir()) == []


@pytest.mark.skipif(shutil.which("iostat") is None, reason="sysstat is not installed")
def test_what_iostat_prints_here_is_taken(bench: Bench) -> None:
    for name, options in (("io.txt", []), ("io.json", ["-o", "JSON"])):
        text = subprocess.run(["iostat", "-xt", *options, "1", "3"], capture_output=True, text=True, check=True).stdout
        (bench.folder / name).write_text(text)
        outcome = bench.assay("import", bench.folder / name, "--json", "-o", bench.results)
        assert outcome.code == 0, outcome.stderr
        assert outcome.document["recording"]["rows"] > 0
