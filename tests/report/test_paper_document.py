"""The document of a paper: its sections, its words, and that every number in it is one of its runs' JSON."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from golden import check_golden, outline
from sample import Sample, write_run
from sample_oltp import search
from sample_paper import both_runs, made, measured_run, sized_run
from sample_study import study_run
from test_report_sizing import answered

from assay.base.errors import UsageError
from assay.base.units import format_bytes, format_duration, format_latency, format_throughput
from assay.document.elements import Block, Bullets, Document, FactList, FigureElement, Notices, Paragraph, Table
from assay.document.references import numbers_of, plain_text, see, spans_of
from assay.insight.studies.words import figure_text, percent_text
from assay.report.paper import measured
from assay.report.paper.assemble import drafts
from assay.report.paper.names import Names
from assay.report.paper.sources import read_sources
from assay.report.paper.texts import Texts, shipped
from assay.report.paper.words import Words

pytestmark = pytest.mark.usefixtures("unchecked_charts")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return both_runs(tmp_path_factory.mktemp("paper"))


@pytest.fixture(scope="module")
def document(runs: list[Path]) -> Document:
    return made(runs)


def texts_of(blocks: Iterable[Block]) -> Iterator[str]:
    """Every text that a reader reads, but commands and settings, which are quoted as they are."""
    for block in blocks:
        match block:
            case Paragraph():
                yield block.text
            case Bullets():
                yield from block.items
            case FactList():
                yield from (value for _, value in block.items)
            case Notices():
                yield from (notice.text for notice in block.items)
            case Table():
                yield block.caption
                yield from (cell.text for row in block.rows for cell in row)
            case FigureElement():
                yield block.caption
                yield block.alternative


def test_the_document_is_as_it_was_looked_at(document: Document) -> None:
    check_golden("paper.txt", outline(document))


def test_sections_come_in_the_order_of_white_papers(document: Document) -> None:
    numbers = numbers_of(document)
    assert [numbers.title(one.name, one.title) for one in document.sections] == [
        "1. Executive summary", "2. Objectives and audience", "3. Terms", "4. Test configuration",
        "5. Method and limits", "6. model of ps6100xv (volumes 12): RAID policy",
        "7. assay.data in /srv/db on db07: whole examination", "8. Best practices",
        "9. Sizing guideline", "10. Limitations", "Appendix A. Every setting", "Appendix B. How to repeat it",
        "Appendix C. Every point", "Appendix D. References",
    ]  # fmt: skip


def test_figures_and_tables_are_numbered_and_no_two_blocks_share_a_name(document: Document) -> None:
    blocks = [block for section in document.sections for block in section.blocks]
    names = [block.name for block in blocks if isinstance(block, FigureElement | Table | FactList)]
    assert len(names) == len(set(names))
    labels = list(numbers_of(document).labels.values())
    for kind in ("Figure", "Table"):
        own = [label for label in labels if label.startswith(kind)]
        assert own == [f"{kind} {number}" for number in range(1, len(own) + 1)] != []


def test_every_point_that_is_named_can_be_led_to(document: Document, runs: list[Path]) -> None:
    numbers = numbers_of(document)
    blocks = [block for section in document.sections for block in section.blocks]
    spans = [span for text in texts_of(blocks) for span in spans_of(text, numbers)]
    named = {span.text for span in spans if re.fullmatch(r"R\d+\.p\d+", span.text)} - {"R1.p0007"}
    assert named
    assert named <= numbers.anchors
    points = [json.loads(line)["id"] for line in (runs[0] / "points.jsonl").read_text().splitlines()]
    assert {f"R1.{point_id}" for point_id in points} | {"R1", "R2"} <= numbers.anchors


def test_every_figure_and_table_of_a_run_names_it(document: Document) -> None:
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, FigureElement | Table) and re.match(r"r\d+-", block.name):
                number = block.name.partition("-")[0].upper()
                assert re.search(rf"\b{number}\b", block.caption), block.caption


# Numbers

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
CONSTANTS = {"95", "90", "99", "100", "19", "20", "1", "7", "1,024", "1,048,576", "1,000,000"}
"""What whiskers, bands and percentiles are, an interval in words, units, and the example of a point's name."""
SAID = ("sentence", "sentences", "meaning", "why")
"""Keys of the JSON whose texts say what was found: they are held against the figures, and prove nothing."""


def numbers_in(text: str) -> set[str]:
    text = re.sub(r"R\d+(\.p\d+(-p\d+)?)?|(Figure|Table|section|appendix) \w+", "", text)
    return {number.rstrip(",") for number in NUMBER.findall(text)}


def forms(value: float) -> Iterator[str]:
    """A value as people read it, in every unit that it may have."""
    yield from (f"{value:,.0f}", f"{value:.3g}", f"{value:,.4g}", f"{value:,.6g}", f"{value:.10g}", f"{value:g}")
    yield from (f"{value * 100:{form}}" for form in (".2g", ".3g", ".0f", ".1f"))
    yield percent_text(value)
    yield from (format_latency(value), format_bytes(value), format_throughput(value), format_duration(value))
    yield from (figure_text(value, "bytes_per_s"), f"{value / 1e12:,.2f}", f"{value / 1e9:.4g}", f"{value:.2g}")


def numbers_of_json(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        if abs(value) < 1e19:
            for form in forms(abs(value)):
                yield from numbers_in(form)
    elif isinstance(value, str):
        yield from () if key in SAID else numbers_in(value)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from numbers_in(str(name))
            yield from numbers_of_json(item, str(name))
    else:
        yield str(len(value))
        for item in value:
            yield from numbers_of_json(item, key)


def known_numbers(runs: list[Path]) -> set[str]:
    """Numbers of the runs' JSON in words, and how many things there are in it."""
    everything: list[Any] = []
    for run in runs:
        everything += [json.loads((run / "run.json").read_text())]
        points = run / "points.jsonl"
        everything += [[json.loads(line) for line in points.read_text().splitlines()] if points.exists() else []]
    return {*CONSTANTS, *numbers_of_json(everything)}


def unknown_numbers(document: Document, runs: list[Path], *, prose: bool = False) -> dict[str, str]:
    """Numbers that are in no run, each with its text; `prose` leaves out what tables and facts compute further."""
    known = known_numbers(runs)
    found = {}
    for section in document.sections:
        blocks = [one for one in section.blocks if not prose or isinstance(one, Paragraph | Bullets | Notices)]
        captions = [one.caption for one in section.blocks if prose and isinstance(one, Table | FigureElement)]
        for text in (*texts_of(blocks), *captions):
            # Times of the clock are shown as dates.
            shown = re.sub(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d UTC)?", "", text)
            found |= dict.fromkeys(numbers_in(shown) - known, f"{section.name}: {text}")
    return found


def test_every_number_is_in_the_json_of_the_runs(document: Document, runs: list[Path]) -> None:
    assert unknown_numbers(document, runs) == {}


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_numbers_of_sentences_on_transactions_and_sizings_are_in_their_json(tmp_path: Path) -> None:
    sample, fields = search()
    sizing = answered({"size": "200GB", "iops": 500})
    for run in (write_run(tmp_path / "oltp", sample, series=False, **fields), sized_run(tmp_path, sizing)):
        assert unknown_numbers(made([run]), [run], prose=True) == {}


def test_a_number_that_a_template_invents_is_found(runs: list[Path], tmp_path: Path) -> None:
    for name, text in shipped().items():
        if name in ("summary.txt", "study.txt"):
            (tmp_path / name).write_text(f"{text}\n\nIt saves 4,711 EUR.\n")
    found = unknown_numbers(made(runs, texts=Texts(tmp_path)), runs)
    assert list(found) == ["4,711"]
    assert found["4,711"] == "raid-policy: It saves 4,711 EUR."


def test_a_number_that_a_finding_invents_is_found(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "follows_of", lambda _: ["Choose RAID 10 (4,711 IOPS)."])
    assert list(unknown_numbers(made(runs), runs)) == ["4,711"]


def test_a_sentence_of_a_study_that_its_figures_do_not_bear_out_is_found(tmp_path: Path) -> None:
    run = study_run(tmp_path, "raid-policy", bands=True)
    text = (run / "run.json").read_text()
    manifest = json.loads(text)
    said = manifest["study"]["sentences"]
    assert "2,667" in said[0]
    manifest["study"]["sentences"] = [sentence.replace("2,667", "2,668") for sentence in said]
    (run / "run.json").write_text(json.dumps(manifest))
    assert list(unknown_numbers(made([run]), [run])) == ["2,668"]


# What is missing


def test_a_study_that_is_asked_for_and_not_there_says_so(runs: list[Path]) -> None:
    document = made(runs, words=Words(studies=["degraded", "raid-policy"]))
    section = next(one for one in document.sections if one.name == "degraded")
    texts = list(texts_of(section.blocks))
    assert "None of the runs holds the study degraded" in texts[0]
    assert not any("assay study" in text for text in texts), (
        "no instruction of the command line is for a paper's reader"
    )


def test_a_study_that_does_not_exist_is_refused(runs: list[Path]) -> None:
    with pytest.raises(UsageError, match=r"studies: .*raid-polcy"):
        made(runs, words=Words(studies=["raid-polcy"]))


def test_sections_without_their_run_say_so(tmp_path: Path) -> None:
    document = made([measured_run(tmp_path, checked=False)])
    told = {section.name: " ".join(texts_of(section.blocks)) for section in document.sections}
    assert "None of the runs holds a sizing" in told["sizing"]
    assert "None of the runs holds a check of best practice" in told["best-practices"]


def test_a_run_without_points_is_a_paper(tmp_path: Path) -> None:
    document = made([write_run(tmp_path, Sample(4), series=False, cache_span=None, verdict=[], parts=[])])
    section = next(one for one in document.sections if one.name == "assess")
    assert "No point of run R1 was measured" in " ".join(texts_of(section.blocks))


def test_a_study_under_way_says_so(tmp_path: Path) -> None:
    run = study_run(tmp_path, "raid-policy")
    manifest = json.loads((run / "run.json").read_text())
    study = {
        key: value for key, value in manifest["study"].items() if key not in ("results", "sentences", "comparisons")
    }
    (run / "run.json").write_text(json.dumps(manifest | {"study": study, "status": "running"}))
    section = next(one for one in made([run]).sections if one.name == "raid-policy")
    assert any("nothing has been compared yet" in text for text in texts_of(section.blocks))


# What the user says


def test_the_user_has_title_authors_objectives_and_remarks(runs: list[Path]) -> None:
    words = Words(title="Orders", subtitle="An examination", authors=["A", "B"], customer="C", audience="Auditors.",
                  objectives="One.\n\nTwo.", remarks={"raid-policy": "First.\n\nSecond."})  # fmt: skip
    document = made(runs, words=words)
    assert (document.title, document.subtitle, document.authors) == ("Orders", "An examination", "A and B for C")
    told = {section.name: list(texts_of(section.blocks)) for section in document.sections}
    assert told["objectives"][:2] == ["One.", "Two."]
    assert "Auditors." in told["objectives"]
    assert told["raid-policy"][-2:] == ["First.", "Second."]


# References


def test_references_become_numbers_and_lead_to_what_they_name(document: Document) -> None:
    numbers = numbers_of(document)
    name = next(name for name, label in numbers.labels.items() if label == "Figure 1")
    assert plain_text(f"see {see(name)} in {see('points')}", numbers) == "see Figure 1 in appendix C"
    assert [span.target for span in spans_of(f"{see(name)} [R1, R2] R2.p0001", numbers) if span.target] == [
        name, "point-R1", "point-R2", "point-R2.p0001",
    ]  # fmt: skip
    # What is not there is text.
    assert [span.target for span in spans_of("[R9] R9.p0001 SQL Server 2008 R2 xR1.p0001", numbers)] == [None] * 5


# Documentation


def test_the_fields_of_templates_are_documented(runs: list[Path]) -> None:
    root = Path(__file__).parents[2]
    sources = read_sources(runs, names=Names(hidden=False), several_targets=False, short=False)
    made_of = {one.template: one for one in drafts(sources, Words(studies=["degraded"]), "assay report --paper")}
    text = (root / "docs" / "paper.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*?) ?\| (.*?) ?\|$", text, flags=re.MULTILINE)
    documented = {name: (fields, shown) for name, fields, shown in rows if f"{name}.txt" in shipped()}
    assert set(documented) == {name.removesuffix(".txt") for name in shipped() if name.endswith(".txt")}
    assert len(made_of) == len(documented) - 3  # neither recording nor reliability, and no study made again
    for name, draft in made_of.items():
        assert re.findall("`(.*?)`", documented[name][0]) == list(draft.fields), name
        if name != "configuration":
            assert re.findall("`(.*?)`", documented[name][1]) == list(draft.shown), name


def test_a_paper_of_models_alone_says_first_that_nothing_was_measured(runs: list[Path], tmp_path: Path) -> None:
    simulated = shutil.copytree(runs[0], tmp_path / runs[0].name)
    text = (simulated / "points.jsonl").read_text()
    points = [json.loads(line) | {"clock": "virtual"} for line in text.splitlines()]
    (simulated / "points.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    model = made([simulated])
    said = "A prediction: ext4 on vda was simulated; no array was measured"
    assert model.facts_line.startswith(f"{said} · ")
    assert next(texts_of(model.sections[0].blocks)).startswith(f"{said}. This paper examines ")
    both = made([simulated, runs[1]])
    assert both.facts_line.startswith("Predictions beside measurements: nothing was measured in [R1], ")
    assert "rediction" not in made([runs[1]]).facts_line


@pytest.mark.slow(reason="makes a sizing; tests/report/test_report_sizing.py has its sentences")
def test_the_table_of_limitations_names_sizings_among_the_models(runs: list[Path], tmp_path: Path) -> None:
    sized = made([runs[0], sized_run(tmp_path, answered({"size": "200GB", "iops": 500}))], several=True)
    (row,) = [
        [cell.text for cell in row]
        for block in next(one for one in sized.sections if one.name == "limitations").blocks
        if isinstance(block, Table)
        for row in block.rows
        if "figures are predictions" in row[1].text
    ]
    assert "R2" in row[2]


def test_a_run_whose_points_have_no_sentence_is_not_told_as_not_measured(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "findings_of", lambda _: ("", []))
    document = made([runs[1]])
    assert not any("nothing to say of it" in text for part in document.sections for text in texts_of(part.blocks))
