"""Runs of sample papers: a study of a model, and a run on the storage of its host with a check of best practice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sample import Sample, io, write_run
from sample_study import study_run

from assay.document.elements import Document
from assay.record.run_folder import RunFolder
from assay.report.paper.assemble import paper
from assay.report.paper.names import Names
from assay.report.paper.sources import read_sources
from assay.report.paper.texts import Texts
from assay.report.paper.words import Words

CHECK: dict[str, Any] = {
    "schema_version": 1,
    "verb": "check",
    "findings": [
        {"rule": "host-clock-synchronised", "family": "host", "title": "The clock is not synchronised",
         "severity": "warning", "subject": "db07", "found": "clock_synchronised = no", "wanted": "a time source",
         "why": "Logs of several hosts cannot be laid side by side.", "fix": "Start a time service.",
         "source": "Practice", "origin": "host"},
    ],
    "passed": [{"rule": "host-dirty-ratio", "subject": "db07"}],
    "not_checked": [{"rule": "layout-log-apart", "subject": None, "reason": "not known; say it in site.toml"}],
    "not_applicable": [],
    "notices": [],
}  # fmt: skip


def measured_run(folder: Path, *, seed: int = 3, checked: bool = True, **fields: Any) -> Path:
    """A run of one search on a file."""
    sample = Sample(seed)
    sample.search("oltp", io(8192, 0.7, "8 KiB random 70/30"))
    own = {"check": CHECK} if checked else {}
    return write_run(folder, sample, series=False, **({"cache_span": None} | own | fields))


def sized_run(folder: Path, answer: dict[str, Any]) -> Path:
    """A run of `assay size`."""
    with RunFolder.create(folder, "size", {"sizing": answer, "command": ["size", "need.toml"]}) as run:
        return run.path


def both_runs(folder: Path) -> list[Path]:
    """A study and a run, of one target."""
    return [study_run(folder / "studies", "raid-policy", bands=True), measured_run(folder / "runs")]


def made(
    runs: list[Path], *, words: Words | None = None, hidden: bool = False, texts: Texts | None = None, **asked: bool
) -> Document:
    """The document of a paper."""
    sources = read_sources(
        runs, names=Names(hidden=hidden), several_targets=asked.get("several", False), short=asked.get("short", False)
    )
    return paper(sources, words or Words(), texts or Texts(), "assay report --paper RUN")
