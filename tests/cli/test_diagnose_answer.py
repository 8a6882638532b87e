"""What `assay diagnose` prints and its page: one answer for both, each sentence once, times in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.apps.cli.diagnose import diagnosis_blocks, next_steps
from assay.apps.cli.next_step import print_next
from assay.document.elements import Paragraph
from assay.document.terminal import show
from assay.insight.diagnosis.diagnose import Diagnosis, diagnose
from assay.insight.diagnosis.inputs import assumed_tiers, sources_of
from assay.report.diagnosis import diagnosis_document
from assay.report.sections.diagnosis import evidence_figure
from assay.telemetry.importers.importer import UNNAMED, Options

CASES = Path(__file__).parents[1] / "insight" / "cases"


def of_file(name: str) -> Diagnosis:
    return diagnose(sources_of([CASES / name], Options(host=UNNAMED, zone_s=0)).sources)


def printed(found: Diagnosis, capsys: pytest.CaptureFixture[str]) -> list[str]:
    show(diagnosis_blocks(found, found.record()))
    print_next(next_steps(found.observed))
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("name", ["few-ios-very-late.txt", "pgbench-stalls.txt"])
def test_terminal_and_page_give_one_answer_and_say_nothing_twice(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = of_file(name)
    lines = printed(found, capsys)
    page = diagnosis_document(found, found.record(), [name])
    texts = [block.text for section in page.sections for block in section.blocks if isinstance(block, Paragraph)]

    assert lines[:3] == found.answer
    assert texts[:3] == found.answer
    assert len(set(texts)) == len(texts)
    assert page.title != page.sections[1].title
    assert sum(found.verdict["do"] in line for line in lines) == 1
    assert sum(found.verdict["since"] in text for text in texts) == 1


def test_times_are_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(printed(of_file("device-stands-still.txt"), capsys))

    assert "(confidence 75 %), 8 s" in text
    assert "0.133 min" not in text


def test_settings_are_checked_on_the_host_that_the_files_are_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(of_file("few-ios-very-late.txt"), capsys)[-1].startswith("next: on db1: assay check host")
    assert not any("assay check host" in line for line in printed(of_file("pgbench-stalls.txt"), capsys))


def test_what_was_not_named_is_called_by_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    found = of_file("pgbench-stalls.txt")

    assert UNNAMED not in "\n".join(printed(found, capsys))
    assert diagnosis_document(found, found.record(), ["pgbench.txt"]).title == "Diagnosis of pgbench.txt"


def test_throughput_that_falls_is_drawn_falling() -> None:
    figure = evidence_figure(of_file("pgbench-stalls.txt"))

    assert figure is not None
    rows = [row for data in figure.chart.to_dict()["datasets"].values() for row in data if row.get("value") is not None]
    assert {row["panel"].endswith("(x, bad below 1)") for row in rows} == {True}
    assert min(row["value"] for row in rows) < 0.1


def test_an_application_is_not_called_a_client() -> None:
    assert assumed_tiers(of_file("pgbench-stalls.txt").observed) == []
    assert assumed_tiers(of_file("few-ios-very-late.txt").observed)[0].startswith("db1: is of tier client")


def test_the_figure_of_the_evidence_draws_how_late_it_is() -> None:
    figure = evidence_figure(of_file("few-ios-very-late.txt"))

    assert figure is not None
    values = [row["value"] for data in figure.chart.to_dict()["datasets"].values() for row in data if "value" in row]
    assert max(value for value in values if value is not None) == pytest.approx(7200 / 20)
