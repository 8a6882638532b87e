"""`assay import` of other programs' results: runs that are reported, compared, exported and diagnosed as any other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.record.run_folder import RunFolder
from assay.run import imports
from assay_command import Bench

RESULTS = Path(__file__).parents[1] / "workloads" / "imported"
TELEMETRY = Path(__file__).parents[1] / "telemetry" / "imported"


def imported(bench: Bench, *names: str) -> Path:
    outcome = bench.assay("import", *(RESULTS / name for name in names), "-o", bench.results, "--zone", "Z")
    assert outcome.code == 0, outcome.stderr
    assert "note: measured by" in outcome.stdout
    last = outcome.stdout.splitlines()[-1]
    assert last.startswith("run: ")
    return bench.folder / last.removeprefix("run: ")


def test_a_run_says_whose_measurement_it_is(bench: Bench) -> None:
    run = imported(bench, "fio-json-plus.json", "diskspd.xml", "iometer.csv")

    with RunFolder.open(run) as folder:
        told, points, manifest = folder.manifest["imported"], folder.whole_points(), folder.manifest
    assert told["programs"] == ["fio 3.33", "DiskSpd 2.2.0", "Iometer 1.1.0"]
    assert [one["point_ids"] for one in told["files"]] == [["p0001"], ["p0002", "p0003"], ["p0004", "p0005"]]
    assert [point["imported"]["program"] for point in points] == ["fio", "DiskSpd", "DiskSpd", "Iometer", "Iometer"]
    assert (manifest["status"], manifest["verb"]) == ("done", "import")
    assert manifest["notices"][0].startswith("measured by fio 3.33, DiskSpd 2.2.0 and Iometer 1.1.0, not by Assay")
    assert len(manifest["verdict"]) == 5
    # DiskSpd alone names a host, which need not be that of the others.
    assert "host" not in manifest


def test_its_report_is_a_report_of_a_run(bench: Bench) -> None:
    run = imported(
        bench, "fio-two-groups.json", "fio-at-once.json", "fio-unified.json", "fio-error.json", "diskspd.xml"
    )

    outcome = bench.assay("report", run)

    assert outcome.code == 0, outcome.stderr
    assert (run / "report.pdf").stat().st_size > 10_000
    page = (run / "report.html").read_text()
    assert "Whose measurement it is" in page
    assert "fio 3.33 and DiskSpd 2.2.0 measured all points of this run" in page
    assert "I/O errors in p0005: ENOSPC 1" in page
    # Nothing of this host is taken for the host that measured.
    assert "none detected" not in page
    assert "reached a steady state" not in page


def test_texts_of_load_generators_are_runs_that_are_reported(bench: Bench) -> None:
    """They say less than documents do: options that are not known, no volumes, and what was not understood."""
    run = imported(bench, "fio_text-2.txt", "fio_text-terse.txt", "diskspd_text-2.txt")

    outcome = bench.assay("report", run, "--no-pdf")

    assert outcome.code == 0, outcome.stderr
    page = (run / "report.html").read_text()
    assert "options not known" in page
    assert "Not understood: strange figure (" in page
    with RunFolder.open(run) as folder:
        (first, *_) = folder.manifest["imported"]["files"]
        assert first["not_understood"] == {"strange figure": "strange figure : a=1, b=2"}
        assert [one["path"] for one in folder.manifest["target"]["volumes"]] == [
            "D:\\data\\a.dat",
            "D:\\data\\b (copy).dat",
        ]


def test_runs_compare_with_themselves_and_say_who_measured(bench: Bench) -> None:
    run, again = (imported(bench, "fio-json-plus.json") for _ in range(2))

    outcome = bench.assay("compare", run, again)

    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout.count("(measured by fio 3.33)") == 2
    document = bench.assay("compare", run, again, "--json").document
    assert {one["metric"] for one in document["differences"]} >= {"iops", "read_latency_mean_ns", "read_latency_p99_ns"}
    assert {one["relative"] for one in document["differences"]} == {0.0}


def test_a_point_of_assay_matches_one_of_fio(bench: Bench) -> None:
    """What was asked is told in the same words, so that nobody has to match points by hand."""
    measured = bench.assay(
        "profile", "null:?latency=100us", "--block", "8K", "--read", "100", "--random", "100", "--queue-depth", "4",
        "--warmup", "0s", "--duration", "0.3s", "--no-report", "--json", "-o", bench.results,
    )  # fmt: skip
    run = imported(bench, "fio-json-plus.json")

    document = bench.assay("compare", measured.document["run_folder"], run, "--json").document

    assert document["unmatched"] == []
    assert {one["metric"] for one in document["differences"]} >= {"iops", "read_latency_mean_ns"}


def test_exports_hold_what_the_file_held(bench: Bench) -> None:
    run = imported(bench, "fio-json-plus.json")

    outcome = bench.assay("report", run, "--no-html", "--no-pdf", "--export", "csv,fio-json,openmetrics")

    assert outcome.code == 0, outcome.stderr
    ours = json.loads((run / "fio.json").read_text())["jobs"][0]
    theirs = json.loads((RESULTS / "fio-json-plus.json").read_text())["jobs"][0]
    assert ours["job options"]["iodepth"] == theirs["job options"]["iodepth"]
    assert ours["read"]["total_ios"] == theirs["read"]["total_ios"]
    # There and back, fio's own bins.
    assert ours["read"]["clat_ns"]["bins"] == theirs["read"]["lat_ns"]["bins"]


def test_results_and_telemetry_make_one_run_that_is_diagnosed(bench: Bench) -> None:
    files = [RESULTS / "fio-json-plus.json", TELEMETRY / "sar.json"]
    document = bench.assay("import", *files, "-o", bench.results, "--json").document
    assert (document["recording"]["rows"] > 0, document["imported"]["programs"]) == (True, ["fio 3.33"])

    outcome = bench.assay("diagnose", document["run_folder"], "--json")
    assert outcome.code == 0, outcome.stderr
    assert outcome.document["causes"]
    assert bench.assay("report", document["run_folder"], "--no-pdf").code == 0

    refused = bench.assay("diagnose", RESULTS / "fio-json-plus.json")
    assert refused.code == 2
    assert "holds results of a measurement and no telemetry" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cut.json", '{"fio version": "fio-3.33", "jobs": [{"jobname"', "cut.json: is damaged or cut off at line 1"),
        ("other.json", '{"jobs": []}', "other.json: is of no format that is known here: fio "),
        ("other.xml", "<html/>", "other.xml: is of no format that is known here"),
        ("bomb.xml", '<!DOCTYPE a [<!ENTITY b "c">]><Results><System>&b;</System></Results>', "bomb.xml: is of no"),
        ("none.json", '{"fio version": "fio-3.33", "jobs": []}', "none.json: has no jobs"),
        ("many.json", '{"fio version": "fio-3.33", "jobs": [' + "{}," * 10_001 + "{}]}", "more than 10,000 jobs"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_line_and_leaves_nothing(
    bench: Bench, name: str, content: str, message: str
) -> None:
    (bench.folder / name).write_text(content)
    outcome = bench.assay("import", RESULTS / "fio-json-plus.json", bench.folder / name, "--json", "-o", bench.results)
    assert outcome.code == 2
    assert message in outcome.complaint
    assert not bench.results.exists()


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "BYTES_MAX", 1 << 20)
    path = tmp_path / "large.json"
    path.write_text('{"fio version": "fio-3.33", "jobs": [' + " " * (1 << 20))
    with pytest.raises(imports.NotTaken, match=r"large\.json: is larger than 1 MiB, more than is read"):
        imports.import_files([path], into=tmp_path / "results", options=imports.Options(), command=[])


def test_what_was_exported_comes_back_as_it_was_measured(bench: Bench) -> None:
    """The importer keeps points apart that were measured one after the other, and adds none of them up."""
    asked = ("--block", "8K", "--read", "70", "--queue-depth", "1,4", "--warmup", "0s", "--duration", "0.5s")
    assert bench.profile("null:?latency=300us", *asked, "--export", "fio-json").code == 0
    (run,) = bench.results.iterdir()
    again = bench.folder / "again"
    assert bench.assay("import", run / "fio.json", "-o", again).code == 0
    (imported,) = again.iterdir()

    measured, read = (RunFolder.open(folder).whole_points() for folder in (run, imported))
    assert [point["load"] for point in read] == [point["load"] for point in measured]
    for own, back in zip(measured, read, strict=True):
        for side in ("read", "write", "total"):
            assert back[side]["count"] == own[side]["count"]
            assert back[side]["iops"] == pytest.approx(own[side]["iops"], rel=1e-3)
            assert back[side]["latency_ns"]["mean"] == pytest.approx(own[side]["latency_ns"]["mean"], rel=1e-3)
