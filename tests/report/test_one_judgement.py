"""One judgement of limits: every surface says the same word of the same point, and the exit code follows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from sample import Sample, ends, io, write_run

import assay
from assay.apps.ui import answers as page_answers
from assay.apps.ui.runs import Runs
from assay.base.errors import ExitCode
from assay.document.point_cells import limits_cell
from assay.record.judgement import WORDS, judge, met
from assay.record.limits import parse_limits
from assay.record.load import load
from assay.report.answer import answer_of
from assay.report.assemble import examined
from assay.report.exports.csv import csv_files
from assay.report.facts import load_facts
from assay.report.sections.summary import summary_section
from assay.report.sections.verdict import verdict_section
from assay.report.standings import standings
from assay.run.execute import exit_code_of
from assay.run.rows import point_row
from assay.run.verdict import verdict_lines
from assay.workloads.registry import figures_of

LIMIT = "read.mean<=20ms"
CODES = {"met": ExitCode.DONE, "missed": ExitCode.LIMIT_MISSED, "unknown": ExitCode.LIMIT_UNKNOWN}
FIRST = {"met": "1 of 1 limit met.", "missed": "0 of 1 limit met; missed", "unknown": "1 limit unknown"}


def measured(read_ms: float | None = 5.0, count: int = 5000, **change: Any) -> Callable[[Sample], dict[str, Any]]:
    """A point whose reads take so long, of so many samples."""

    def make(sample: Sample) -> dict[str, Any]:
        side = sample.direction(1000.0, 8192, (read_ms or 1.0) * 1e6)
        assert side is not None
        # The histogram is of other samples: too few of them decide by their count alone.
        side |= {"count": count, "histogram": None}
        workload = io(8192, 0.0 if read_ms is None else 1.0, "8 KiB random")
        load = {"queue_depth": 4, "workers": 1, "outstanding": 4}
        sides = (None, side) if read_ms is None else (side, None)
        return sample.point("oltp", workload, load, *sides, purpose="grid", **change)

    return make


def noisy(point: dict[str, Any]) -> dict[str, Any]:
    return point | {"batches": {"seconds": 0.5, "total": None, "write": None, "read": {
        "iops": [900.0, 900.0, 1100.0, 1100.0] * 5, "latency_mean_ns": [5e6] * 20}}}  # fmt: skip


SATURATED = {"generator": {"saturated": True, "reason": None}}
POINTS: Mapping[str, tuple[Callable[[Sample], dict[str, Any]], str, str]] = {
    "met": (measured(5), LIMIT, "met"),
    "missed": (measured(30), LIMIT, "missed"),
    "met, but the generator was the bottleneck": (measured(5, **SATURATED), LIMIT, "unknown"),
    "missed, but the generator was the bottleneck": (measured(30, **SATURATED), LIMIT, "unknown"),
    "the generator stood still": (
        measured(5, generator={"saturated": True, "reason": "stood still"}), LIMIT, "unknown"),
    "hosts measured apart": (measured(5, generator={"saturated": True, "reason": "hosts apart"}), LIMIT, "unknown"),
    "no reads in the load": (measured(None), LIMIT, "unknown"),
    "no reads, and the generator was the bottleneck": (measured(None, **SATURATED), LIMIT, "unknown"),
    "too few samples of a percentile": (measured(5, count=20), "read.p99<=100ms", "unknown"),
    "enough samples of a percentile": (measured(5, count=299), "read.p99<=100ms", "met"),
    "not recorded": (measured(5), "tcp.retransmit<1%", "unknown"),
    "processors beyond their limit, whoever made them busy": (
        measured(5, telemetry={"cpu_share": 0.99}, **SATURATED), "cpu<80%", "missed"),
    "a rate within its interval": (lambda sample: noisy(measured(5)(sample)), "read.iops>=1005", "unknown"),
    "a rate beyond its interval": (lambda sample: noisy(measured(5)(sample)), "read.iops>=2000", "missed"),
}  # fmt: skip


def of_point(name: str) -> tuple[Sample, str, str]:
    """A run of one point with a limit of the user's."""
    make, limit, word = POINTS[name]
    sample = Sample(3)
    point = make(sample)
    point["limits"] = judge(parse_limits([limit], figures_of(point)), point, figures_of(point))
    point["met"] = met(point["limits"])
    sample.points[:] = [point]
    sample.verdict[:] = verdict_lines([point], [], {"oltp": [limit]})
    return sample, limit, word


SEARCHES = {"generator": "unknown", "hosts apart": "unknown", LIMIT: "missed", "": "met"}


def of_search(limited_by: str) -> tuple[Sample, str, str]:
    """A run of a search that was ended by this before any load was an answer, or that found one."""
    word = SEARCHES[limited_by]
    sample = Sample(3)
    change = {"generator": {"saturated": True, "reason": "hosts apart" if limited_by == "hosts apart" else None}}
    point = measured(5 if word == "met" else 30, **(change if word == "unknown" else {}))(sample)
    point["purpose"] = "search"
    point["limits"] = judge(parse_limits([LIMIT]), point)
    point["met"] = met(point["limits"])
    found = {
        "workload": point["workload"], "part": "oltp", "limits": [LIMIT], "axis": "outstanding",
        "point_ids": [point["id"]], "max": None, "knee": None, "edge": None, "first_failing": None,
        "limited_by": limited_by or "axis end", "interval_95": None,
    }  # fmt: skip
    if word == "met":
        found |= dict.fromkeys(("max", "knee", "edge"), ends(point))
    sample.answers[:] = [found]
    sample.verdict[:] = verdict_lines(sample.points, sample.answers)
    return sample, LIMIT, word


def in_terminal(text: str) -> str:
    """The word that an answer in the terminal has for its limit."""
    if "unknown" in text:
        return "unknown"
    return "missed" if re.search(r"missed|no load that was tried", text) else "met"


@pytest.mark.parametrize(
    ("make", "name"), [*((of_point, name) for name in POINTS), *((of_search, name) for name in SEARCHES)]
)
def test_every_surface_says_the_same_word(
    tmp_path: Path, make: Callable[[str], tuple[Sample, str, str]], name: str
) -> None:
    sample, limit, word = make(name)
    path = write_run(tmp_path, sample, verb="profile", series=False)
    facts = load_facts(path)
    remarks = examined(facts).remarks
    (line,) = [one for one in facts.manifest["verdict"] or [] if one["limit"]]
    (point,) = facts.points

    assert exit_code_of(facts.manifest["verdict"] or []) is CODES[word]
    assert (WORDS[line["met"]], line["limit"]) == (word, limit)
    said = " ".join(block.text for block in answer_of(facts.manifest, facts.points) if hasattr(block, "text"))
    assert in_terminal(said) == word, said
    (standing,) = standings(facts, remarks)
    assert WORDS[standing.met] == word
    first = summary_section(facts, remarks).blocks[0]
    assert first.text.startswith(FIRST[word]), first.text
    judged = verdict_section(facts)
    assert judged is not None
    assert [row[3].text.split()[-1] for row in judged.blocks[0].rows if row[1].text != "-"] == [word]
    # The page: its list and the run's own.
    (row,) = Runs([tmp_path]).rows()
    assert {one: row[one] for one in ("met", "missed", "unknown")} == {"met": 0, "missed": 0, "unknown": 0} | {word: 1}
    view = page_answers.view({"path": str(path)})
    assert [one["standing"] for one in view["verdict"] if one["limit"]] == [word]
    if word == "unknown":
        assert line["meaning"].count(";") == 1, "a reason, and what to do"
        assert "missed" not in said
    if make is of_search:
        return
    # What is said of the point alone: a limit that does not concern it is no word of its own.
    is_asked = point["limits"][0]["reason"] not in ("no such I/O", "not recorded")
    own = word if is_asked else ""
    assert point_row(point)["standing"] == own
    assert limits_cell(point).text.split(":")[0] == (own or "-")
    flag = {"met": True, "missed": False}.get(word)
    assert load(path).points["met"].to_list() == [flag]
    header, cells = csv_files(facts.manifest, facts.points)["points.csv"].splitlines()
    shown = dict(zip(header.split(","), cells.split(","), strict=False))["met"]
    assert shown == {True: "true", False: "false", None: ""}[flag]


def test_the_page_knows_the_words_of_the_server_and_no_others() -> None:
    folder = Path(assay.__file__).parent / "apps" / "ui" / "static"
    words = re.search(r"STANDINGS = \{(.*?)\};", (folder / "words.js").read_text(), re.DOTALL)
    assert words is not None
    assert set(re.findall(r"(\w+): \[", words[1])) == {*WORDS.values()}
    for script in folder.glob("*.js"):
        assert not re.search(r"\"[✓✗] ", script.read_text()), f"{script.name} has a word of its own for a limit"
