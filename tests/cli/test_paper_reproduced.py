"""`assay paper`: published studies made again, each experiment a command that anyone can type."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.base.errors import UsageError
from assay.insight.calibration.published_papers import Experiment, paper_names, published_paper, sentence_named
from assay_command import Bench

EXPERIMENTS = [
    pytest.param(one, id=f"{name}-{one.name}") for name in paper_names() for one in published_paper(name).experiment
]


def test_papers_are_listed_and_shown(bench: Bench) -> None:
    listed = bench.assay("paper", "list").stdout
    for name in paper_names():
        assert name in listed
        shown, paper = bench.assay("paper", "show", name).stdout, published_paper(name)
        assert all(paper.sentence_of(one) in shown and "PLACE" not in shown for one in paper.experiment)


@pytest.mark.parametrize("one", EXPERIMENTS)
def test_the_command_of_each_experiment_is_one(bench: Bench, one: Experiment) -> None:
    tried = bench.assay(*one.words(bench.folder), "--dry-run")
    assert tried.code == 0, tried.stderr


def test_a_paper_is_made_and_goes_on_where_it_was(bench: Bench) -> None:
    words = ("paper", "reproduce", "eql-dss", "--only", "figures,partitions", "--no-pdf", "-o", bench.folder / "paper")
    first = bench.assay(*words)
    assert first.code == 0, first.stderr
    assert "1,042" in first.stdout
    assert "--at DIR" in first.stdout
    page = (bench.folder / "paper" / "paper.html").read_text()
    assert "the wire carries 1,280 MB/s" in page
    assert "What was not made again" in page
    runs = sorted((bench.folder / "paper" / "runs").glob("*/*"))
    assert len(runs) == 1
    again = bench.assay(*words)
    assert "made before" in again.stderr
    assert sorted((bench.folder / "paper" / "runs").glob("*/*")) == runs


def test_the_dry_run_prints_commands_alone(bench: Bench) -> None:
    tried = bench.assay("paper", "reproduce", "iscsi", "--dry-run", "--at", bench.folder)
    lines = tried.stdout.splitlines()
    assert len(lines) == len(published_paper("iscsi").experiment)
    assert all(line.startswith("assay ") for line in lines)
    assert not list(bench.folder.glob("assay-paper-*"))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nosuch"], "known: dvx, eql-dss"),
        (["eql-otlp"], "did you mean 'eql-oltp'?"),
        (["fas", "--only", "layout"], "has no such experiment; it has figures"),
        (["eql-oltp", "--only", "layout"], "--at DIR"),
    ],
)
def test_what_there_is_not_is_refused(bench: Bench, words: list[str], complaint: str) -> None:
    refused = bench.assay("paper", "reproduce", *words)
    assert refused.code == 2
    assert complaint in refused.complaint


def test_published_figures_are_chosen_by_their_study(bench: Bench) -> None:
    shown = bench.assay("study", "run", "published", "--levels", "source=EQL-DSS", "--dry-run").stdout
    assert "dss-raid50-read-128k" in shown
    assert "oltp-raid10" not in shown
    refused = bench.assay("study", "run", "published", "--levels", "source=NONE")
    assert refused.code == 2
    assert "known: EQL-OLTP" in refused.complaint


def test_a_study_cites_a_sentence_that_a_paper_has() -> None:
    assert sentence_named("DVX/hosts") == ("DVX", "Up to 128 hosts and 10 data nodes.")
    with pytest.raises(ValueError, match="known: DVX/figures"):
        sentence_named("DVX/nosuch")


def test_a_paper_without_an_experiment_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="known:"):
        published_paper(str(tmp_path))
