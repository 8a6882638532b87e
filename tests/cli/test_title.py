"""`--title`: what a run is called in its manifest, in comparisons and in reports; without one the target says it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from assay_command import Bench

SHORT = ("--size", "8M", "--queue-depth", "1", "--warmup", "0s", "--duration", "0.3s")


def test_comparisons_name_runs_by_title_and_never_two_folders_alike(bench: Bench) -> None:
    other = bench.folder / "other"
    other.mkdir()
    targets = [bench.target, other / "f.dat"]
    for target in targets:
        assert bench.profile(target, *SHORT).code == 0

    compared = bench.assay("compare", *bench.runs).stdout

    for target in targets:
        assert f"f.dat in {target.parent}"[-20:] in compared.replace("\n", "")


def test_a_title_is_kept_and_a_bad_one_refused_before_anything_is_made(bench: Bench) -> None:
    refused = bench.profile(bench.target, *SHORT, "--title", "two\nlines")
    assert (refused.code, "--title" in refused.complaint, bench.made()) == (2, True, [])

    assert bench.profile(bench.target, *SHORT, "--title", "Old firmware").code == 0
    assert bench.manifest()["title"] == "Old firmware"
    compared = bench.assay("compare", bench.run, bench.run, "--html", bench.folder / "compared.html")
    assert "A = Old firmware, " in compared.stdout
    assert "<h1>Comparison: Old firmware" in (bench.folder / "compared.html").read_text()

    assert bench.assay("report", bench.run, "--no-pdf").code == 0
    assert "<title>Old firmware" in (bench.run / "report.html").read_text()
    again = bench.profile("--resume", bench.run, "--title", "New")
    assert (again.code, "leave out --title" in again.complaint) == (2, True)


@pytest.mark.slow(reason="runs five verbs; each keeps its request in the same way")
def test_verbs_that_measure_nothing_take_one_too(bench: Bench) -> None:
    assert bench.assay("record", "rec", "--for", "1s", "--no-processes", "--title", "Monday").code == 0
    assert json.loads((bench.folder / "rec" / "run.json").read_text())["title"] == "Monday"

    need = bench.folder / "need.toml"
    need.write_text(bench.assay("size", "--template").stdout)
    for into, words in (
        ("purchase", ("size", str(need), "--no-sensitivity")),
        ("array", ("model", "reliability", "fas2040", "--trials", "5000")),
    ):
        assert bench.assay(*words, "--no-report", "-o", into, "--title", "Tuesday").code == 0
        (run,) = (bench.folder / into).iterdir()
        assert json.loads((run / "run.json").read_text())["title"] == "Tuesday"
