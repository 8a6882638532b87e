"""`assay report --paper` from end to end: its files, what is kept between runs, and what it refuses in one line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sample import Sample, io, write_run
from sample_oltp import search
from sample_paper import CHECK, both_runs, made, measured_run

from assay.base.errors import UsageError
from assay.document.elements import Paragraph
from assay.record.run_folder import RunFolder
from assay.report.paper.findings import read_findings
from assay.report.paper.texts import Texts
from assay.report.paper.write import PaperOptions, write_paper
from sizing_needs import recording

if TYPE_CHECKING:
    from assay_command import Bench


def other_target(folder: Path) -> Path:
    """A run on a modelled array."""
    sample = Sample(3)
    sample.random_point("custom", io(8192, 0.7, "mix"), 8, 20)
    target = {
        "volumes": [{"name": "v01", "kind": "model", "role": "data"}],
        "array": {"name": "ps6100xv", "title": "A"},
    }
    return write_run(
        folder, sample, series=False, cache_span=None, target=target, command=["profile", "model:ps6100xv"]
    )


@pytest.mark.usefixtures("unchecked_charts")
def test_a_paper_is_three_files_and_words_that_stay(tmp_path: Path) -> None:
    folder = tmp_path / "paper"
    asked = PaperOptions(runs=[measured_run(tmp_path)], folder=folder, formats=["html", "md"])
    assert [path.name for path in write_paper(asked).files] == ["paper.toml", "paper.html", "paper.md"]
    assert {path.suffix for path in (folder / "paper-figures").iterdir()} == {".svg"}

    words = folder / "paper.toml"
    said = words.read_text().replace('title = ""', 'title = "Orders <b>"')
    said = said.replace("studies = []", 'studies = ["degraded"]')
    words.write_text(said + 'sizing = "We buy nothing."\nfil = "x"\n')
    kept = words.read_text()
    again = write_paper(asked)
    assert [path.name for path in again.files] == ["paper.html", "paper.md"]
    assert "paper.toml: remarks.fil: this paper has no such section" in again.notices[0]
    assert words.read_text() == kept
    page = (folder / "paper.html").read_text()
    assert "<h1>Orders &lt;b&gt;</h1>" in page
    assert "We buy nothing." in page
    assert "None of the runs holds the study degraded" in page


@pytest.mark.slow(reason="pages and PDF are tested without a command")
def test_of_one_run_it_stands_in_its_folder(bench: Bench) -> None:
    run = measured_run(bench.folder)
    done = bench.assay("report", "--paper", run)
    assert done.code == 0, done.stderr
    assert (run / "paper.pdf").read_bytes().startswith(b"%PDF")
    assert {path.name for path in run.iterdir()} >= {"paper.html", "paper.pdf", "paper.md", "paper.toml"}


def test_runs_of_different_targets_are_refused(bench: Bench) -> None:
    runs = [measured_run(bench.folder / "a"), other_target(bench.folder / "b")]
    done = bench.assay("report", "--paper", *runs, "-o", bench.folder / "paper")
    assert done.code == 2
    assert "R1 of host db07.example, device vda; R2 of model:ps6100xv; give --several-targets" in done.complaint
    assert not (bench.folder / "paper").exists()


@pytest.mark.usefixtures("unchecked_charts")
def test_runs_of_different_targets_are_kept_apart_where_that_is_said(tmp_path: Path) -> None:
    document = made([measured_run(tmp_path / "a"), other_target(tmp_path / "b")], several=True)
    configuration = next(section for section in document.sections if section.name == "configuration")
    headings = [block.text for block in configuration.blocks if block.kind == "heading"]
    assert headings == ["Storage of host db07.example", "A", "Host db07.example"]


def test_a_recording_of_five_minutes_is_refused(bench: Bench) -> None:
    run = recording(bench.folder / "rec", seconds=300, every_s=10)
    done = bench.assay("report", "--paper", run, "-o", bench.folder / "paper")
    assert done.code == 2
    assert "the recording covers 5 min, which no paper can rest on" in done.complaint


@pytest.mark.usefixtures("unchecked_charts")
def test_a_recording_of_five_minutes_says_so_where_it_is_accepted(tmp_path: Path) -> None:
    document = made([recording(tmp_path / "rec", seconds=300, every_s=10)], short=True)
    section = next(one for one in document.sections if one.name == "record")
    texts = [block.text for block in section.blocks if block.kind == "paragraph"]
    assert "The recording covers 5 min of the 168 hours of a week [R1]" in texts[1]


def test_templates_of_the_user_take_the_place_of_shipped_ones(bench: Bench) -> None:
    folder, run = bench.folder / "own", measured_run(bench.folder)
    assert bench.assay("report", "--new-template", folder).code == 0
    (folder / "objectives.txt").write_text("Objectives of {{ customer }}: <b> #eval(1).")
    document = made([run], texts=Texts(folder))
    objectives = next(section for section in document.sections if section.name == "objectives")
    assert objectives.blocks == [Paragraph("Objectives of : <b> #eval(1).")]

    (folder / "objectives.txt").write_text("\n{{ custumer }}")
    done = bench.assay("report", "--paper", run, "-o", bench.folder / "paper", "--template", folder)
    assert done.code == 2
    assert "objectives.txt line 2: unknown field 'custumer'; did you mean 'customer'?" in done.complaint
    assert not (bench.folder / "paper").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--paper", "RUN", "RUN"], "is given twice"),
        (["RUN", "RUN"], "takes one run; of several runs --paper makes a paper"),
        (["RUN", "--anonymise"], "--anonymise: is an option of --paper"),
        (["--paper", "RUN", "--check", "nothing"], "--check nothing: cannot be read: No such file"),
        (["RUN", "--check", "x"], "--check: is an option of --paper"),
        (["RUN", "-o", "x"], "--output: is an option of --paper"),
        (["--paper", "RUN", "--units", "miles"], "--units: 'miles' is unknown; accepted: both, binary, decimal"),
        (["--paper", "RUN", "--export", "csv"], "--export and --paper exclude each other"),
        (["--paper", "RUN", "--template", "nothing"], "--template nothing: is no folder"),
        (["--paper", "nothing"], "nothing does not exist; name a run folder"),
        (["--paper"], "give the folder of a run"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_exit_code_2(bench: Bench, arguments: list[str], said: str) -> None:
    run = measured_run(bench.folder) if "RUN" in arguments else None
    done = bench.assay("report", *(str(run) if word == "RUN" else word for word in arguments))
    assert (done.code, said in done.complaint) == (2, True), done.stderr


def test_wrong_words_are_refused(bench: Bench) -> None:
    run = measured_run(bench.folder)
    (run / "paper.toml").write_text('titel = "x"')
    done = bench.assay("report", "--paper", run)
    assert (done.code, "unknown key 'titel'; did you mean 'title'?" in done.complaint) == (2, True)


def test_a_page_of_others_is_not_replaced(bench: Bench) -> None:
    run = measured_run(bench.folder)
    for name in ("paper.html", "paper.md", "paper.pdf"):
        (run / name).write_text("mine")
        done = bench.assay("report", "--paper", run)
        assert (done.code, "was not written by Assay" in done.complaint) == (2, True)
        assert (run / name).read_text() == "mine"
        (run / name).unlink()


@pytest.mark.usefixtures("unchecked_charts")
def test_a_check_of_its_own_is_a_source_of_the_paper(tmp_path: Path) -> None:
    file = tmp_path / "check.json"
    file.write_text(json.dumps({**CHECK, "targets": ["host"]}))
    run = measured_run(tmp_path, checked=False)
    folder = tmp_path / "paper"
    write_paper(PaperOptions(runs=[run], checks=[file], folder=folder, formats=["md"], anonymised=True))
    text = (folder / "paper.md").read_text()
    assert "1 rule of best practice broken, 1 kept, 1 not checked" in text
    assert "Start a time service." in text
    assert "| assay check host |" in text
    assert "None of the runs holds a check" not in text
    assert "db07" not in text


@pytest.mark.usefixtures("unchecked_charts")
def test_a_host_whose_name_is_a_word_of_reports_is_renamed_in_a_check_too(tmp_path: Path) -> None:
    file = tmp_path / "check.json"
    file.write_text(json.dumps({**CHECK, "targets": ["host"]}).replace("db07", "vm"))
    folder = tmp_path / "paper"
    run = measured_run(tmp_path, checked=False)
    write_paper(PaperOptions(runs=[run], checks=[file], folder=folder, formats=["md"], anonymised=True))
    text = (folder / "paper.md").read_text()
    assert "Start a time service." in text
    assert "| vm |" not in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file"),
        ("{", "holds no findings; `assay check --format json -o FILE` writes them"),
        ('{"verb": "size"}', "holds no findings"),
        ('{"verb": "check", "findings": 3}', "holds no findings"),
        (json.dumps({**CHECK, "targets": ["host"], "passed": ["x"]}), "holds no findings"),
    ],
)
def test_a_file_without_findings_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    file = tmp_path / "check.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError, match=f"--check .*check.json: {re.escape(said)}"):
        read_findings(file)


@pytest.mark.usefixtures("unchecked_charts")
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_marks_of_drawings_lead_to_their_points_on_the_page_alone(tmp_path: Path) -> None:
    folder = tmp_path / "paper"
    write_paper(PaperOptions(runs=both_runs(tmp_path), folder=folder, formats=["html", "md"]))
    page = (folder / "paper.html").read_text()
    figures = dict(re.findall(r'<figure id="([^"]+)">(.*?)<figcaption>', page, re.DOTALL))
    led = {name: set(re.findall(r'<a href="#([^"]+)"', drawing)) for name, drawing in figures.items()}
    assert led["r1-topology"] == {"point-R1"}
    assert {"point-R1.p0003", "point-R1.p0006", "point-R1.p0009"} <= led["r1-study-iops-1"]
    assert {"point-R2.p0001", "point-R2.p0007"} <= led["r2-curve-1-mean"]
    assert all(f'id="{target}"' in page for targets in led.values() for target in targets)
    assert "vega.github.io" not in page
    assert all("<a " not in path.read_text() for path in (folder / "paper-figures").iterdir())


@pytest.mark.usefixtures("unchecked_charts")
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_marks_of_transactions_lead_to_their_points(tmp_path: Path) -> None:
    sample, fields = search()
    run = write_run(tmp_path, sample, **fields)
    folder = tmp_path / "paper"
    write_paper(PaperOptions(runs=[run], folder=folder, formats=["html"]))
    page = (folder / "paper.html").read_text()
    figures = dict(re.findall(r'<figure id="([^"]+)">(.*?)<figcaption>', page, re.DOTALL))
    led = {name: set(re.findall(r'<a href="#([^"]+)"', drawing)) for name, drawing in figures.items()}
    held = fields["oltp"]["point_id"]
    # Lines of a figure of one point lead there, as do its bars and dots.
    assert led["r1-responses"] == led["r1-oltp-timeline"] == {f"point-R1.{held}"}
    assert led["r1-oltp-search-1"] == {f"point-R1.{point['id']}" for point in sample.points}


@pytest.mark.slow(reason="tests/report/test_report_sizing.py has the sections")
def test_a_sizing_becomes_the_guideline(bench: Bench) -> None:
    need = bench.folder / "need.toml"
    need.write_text(
        '[[database]]\nname = "o"\nsize = "200GB"\niops = 500\n[[candidate]]\narray = "nvme-mirror"\nraid = ["1"]\n'
    )
    done = bench.assay("size", need, "--no-sensitivity", "--no-report", "-o", bench.results)
    assert done.code == 0, done.stderr
    (sized,) = bench.results.iterdir()
    done = bench.assay(
        "report", "--paper", measured_run(bench.folder / "r"), sized, "-o", bench.folder / "paper", "--no-pdf"
    )
    assert done.code == 0, done.stderr
    page = (bench.folder / "paper" / "paper.html").read_text()
    answer = RunFolder.open(sized).manifest["sizing"]
    assert answer["chosen"]["fewest_disks"]["label"] in page
    assert "None of the runs holds a sizing" not in page
