"""Folders of every kind of another's making: of sizings, decision support, mailboxes, checks, computations, imports.

The attack: a folder that a verb wrote, in which keys are missing, null, of another type, huge or nested. Reports,
papers, comparisons, exports and the page read it. Each ends well or in one line that names the place.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.apps.ui.answers import view
from assay.base.errors import AssayError, RunFolderError
from assay.insight.compare import compare_runs
from assay.insight.differences import ComparedRun
from assay.record.load import load
from assay.record.points import current_points
from assay.record.run_folder import RunFolder
from assay.report.assemble import assemble
from assay.report.exports import EXPORTS
from assay.report.facts import load_facts
from assay.report.paper.write import PaperOptions, write_paper
from fuzz import folders

SEEDS = 12
GONE = object()


def papers(run: Path) -> None:
    write_paper(
        PaperOptions(
            runs=[run], folder=run / "paper", formats=["md"], template=None, checks=[], anonymised=True,
            several_targets=False, short=True, units=None, command=["assay"],
        )
    )  # fmt: skip


def compares(run: Path) -> None:
    folder = RunFolder.open(run)
    compared = ComparedRun(folder.manifest, current_points(folder.whole_points()))
    compare_runs([compared, compared]).to_dict()


def exports(run: Path) -> None:
    folder = RunFolder.open(run)
    for export in EXPORTS.values():
        export(folder.manifest, current_points(folder.whole_points()))


def loads(run: Path) -> None:
    found = load(run)
    _ = found.points, found.answers, found.verdict


def goes_on(run: Path) -> None:
    RunFolder.open(run).check_goes_on()


def reports(run: Path) -> None:
    assemble(load_facts(run))


def views(run: Path) -> None:
    view({"path": str(run)})


READERS: tuple[Callable[[Path], None], ...] = (reports, papers, compares, exports, loads, goes_on, views)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, bytes]]:
    """Files of a folder of a kind, as its verb wrote them."""
    known: dict[str, dict[str, bytes]] = {}

    def of(kind: str) -> dict[str, bytes]:
        if kind not in known:
            known[kind] = folders.made(kind, tmp_path_factory.mktemp("made") / kind)
        return known[kind]

    return of


def written(run: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(content)
    return run


def edited(files: dict[str, bytes], file: str, place: str, value: object) -> dict[str, bytes]:
    """The files with a value at a place of a document, of `points.jsonl` of the first."""
    first, _, rest = files[file].partition(b"\n") if file == "points.jsonl" else (files[file], b"", b"")
    document = json.loads(first)
    *keys, last = [int(key) if key.isdecimal() else key for key in place.split(".")]
    found: Any = document
    for key in keys:
        found = found[key]
    if value is GONE:
        del found[last]
    else:
        found[last] = value
    return {**files, file: json.dumps(document).encode() + b"\n" + rest}


def one_line(error: AssayError) -> str:
    assert "\n" not in str(error)
    assert len(str(error)) < 1000
    return str(error)


@pytest.mark.parametrize(
    "kind",
    [
        "reliability",
        *(
            pytest.param(kind, marks=pytest.mark.slow(reason="one kind is tried always; make fuzz tries all"))
            for kind in ("size", "dss", "mailbox", "verify", "model", "import", "recording")
        ),
    ],
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_whatever_a_folder_holds_every_reader_ends_in_one_line(
    made: Callable[[str], dict[str, bytes]], kind: str, tmp_path: Path
) -> None:
    for seed in range(SEEDS):
        run = written(tmp_path / str(seed), folders.changed(random.Random(seed), made(kind)))
        for read in READERS:
            try:
                read(run)
            except AssayError as error:
                one_line(error)


SIZINGS: list[tuple[str, object]] = [
    ("sizing", []),
    ("sizing.years", "three"),
    ("sizing.chosen.cheapest", GONE),
    ("sizing.chosen.cheapest.growth.years.0.year", "2026"),
    ("sizing.chosen.cheapest.growth.years.0.used.ports", None),
    ("sizing.chosen.cheapest.growth.runs_out.0.year", {}),
    ("sizing.chosen.cheapest.probability", "sure"),
    ("sizing.candidates.0.holds", GONE),
    ("sizing.candidates.0.cost", GONE),
    ("sizing.candidates.0.fill", GONE),
    ("sizing.assumptions.0.assumption", GONE),
    ("sizing.demand.now", GONE),
    ("sizing.demand.sized_for.phases.0.0.iops", -1),
    ("sizing.rules.0", "fill"),
    ("sizing.servers.databases.cores", "4"),
    ("sizing.difference", GONE),
    ("sizing.notices", 5),
    ("sizing.simulations", True),
]


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_sizing_with_a_wrong_value_is_one_line_of_file_and_place(
    made: Callable[[str], dict[str, bytes]], tmp_path: Path
) -> None:
    """Candidates without `holds`, assumptions without their name, years as text: each was a fault of Assay itself."""
    for number, (place, value) in enumerate(SIZINGS):
        run = written(tmp_path / str(number), edited(made("size"), "run.json", place, value))
        for read in (reports, papers, views):
            with pytest.raises(RunFolderError) as caught:
                read(run)
            assert "run.json" in one_line(caught.value)
            assert place.rpartition(".")[2].removesuffix("0") in str(caught.value)


POINTS: list[tuple[str, str, object]] = [
    ("model", "workload.block_bytes", {}),
    ("model", "generator.gaps", [1]),
    ("model", "generator.gaps", {"total_ns": [1]}),
]


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_point_with_a_wrong_value_is_one_line_of_line_and_place(
    made: Callable[[str], dict[str, bytes]], tmp_path: Path
) -> None:
    for number, (kind, place, value) in enumerate(POINTS):
        run = written(tmp_path / str(number), edited(made(kind), "points.jsonl", place, value))
        for read in (compares, exports, loads, goes_on):
            with pytest.raises(RunFolderError, match=r"points\.jsonl line 1: ") as caught:
                read(run)
            one_line(caught.value)
