"""Where a run stands among reference figures, and what is shared of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from past_runs import past_folder, point

from assay.base.errors import UsageError
from assay.insight.history.reading import read_runs, run_paths
from assay.insight.history.trends import history_of
from assay.insight.ranking.rank import class_words, own_words, standings
from assay.insight.ranking.references import ReferenceStorage, known_references, parse_references
from assay.insight.ranking.share import shared_text

FIGURE = {"metric": "iops", "block_bytes": 8192, "read_share": 1.0, "random_share": 1.0, "outstanding": 4}


def storage(*values: float, outstanding: int = 4, name: str = "a drive") -> ReferenceStorage:
    return ReferenceStorage.model_validate(
        {
            "of": name, "storage_class": "tlc-pcie4", "title": "PCIe 4 TLC drive", "basis": "model",
            "source": "the catalogue", "state": "steady",
            "figure": [{**FIGURE, "value": value, "outstanding": outstanding} for value in values],
        }
    )  # fmt: skip


def test_the_references_that_come_with_assay_are_valid_and_name_their_sources() -> None:
    known = known_references()
    assert {"tlc-pcie3", "tlc-pcie4", "tlc-pcie5", "qlc-pcie4"} <= {one.storage_class for one in known}
    assert {one.basis for one in known} >= {"model", "data sheet", "measured"}
    titles: dict[str, set[str]] = {}
    for one in known:
        titles.setdefault(one.storage_class, set()).add(one.title)
    assert all(len(names) == 1 for names in titles.values())


def test_a_run_stands_beside_a_class_at_the_same_load_alone() -> None:
    references = [storage(4000.0, name="one"), storage(6000.0, name="two"), storage(9e9, outstanding=512)]
    (found,) = [one for one in standings([point(1000.0)], references, None, "r") if one.figure.name == "iops"]
    (beside,) = found.classes
    assert (beside.low, beside.high, beside.storages) == (4.0, 6.0, ("one", "two"))
    assert class_words(found.figure, beside) == (
        "a PCIe 4 TLC drive does 4 to 6 times that at this load (2 drives; model; steady)"
    )
    assert standings([point(1000.0, depth=8)], references, None, "r") == []


def test_a_run_stands_among_the_users_own(tmp_path: Path) -> None:
    paths = [past_folder(tmp_path, day, [point(iops)]) for day, iops in enumerate((900.0, 1000.0, 1100.0))]
    history = history_of(read_runs(run_paths([tmp_path])))
    found = standings([point(1000.0)], [], history, paths[1].name)
    (iops,) = [one for one in found if one.figure.name == "iops"]
    assert own_words(iops) == "number 2 of 3 own runs, counted from the best; they range from 900 IOPS to 1,100 IOPS"


def test_what_is_shared_holds_no_text_of_the_run_and_passes_the_validator() -> None:
    secret = "db1.example.com"
    odd: Any = {
        **point(1000.0, state=secret),
        "workload": {**point(1000.0)["workload"], "name": secret, "role": secret},
    }
    text = shared_text([odd, point(2000.0, depth=8, state="steady")], 1_795_924_506_000_000_000, "tlc-pcie4")
    assert secret not in text
    shared = parse_references(text, "shared")
    assert shared.as_of == "2026-11"
    assert {one.state for one in shared.storage} == {"steady", "unknown"}
    assert len(text) < 2000


@pytest.mark.parametrize("name", ["", "A B", 'x"\n[evil]', "x" * 50])
def test_only_plain_names_of_classes_are_shared(name: str) -> None:
    with pytest.raises(UsageError):
        shared_text([point(1000.0)], 0, name)


def test_a_run_without_plain_figures_shares_nothing() -> None:
    with pytest.raises(UsageError, match="nothing is shared"):
        shared_text([{**point(1000.0), "load": {"rate": 5.0}}], 0)  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    "text",
    [
        "", "[", "schema_version = 2", 'schema_version = 1\nas_of = "2026-13"\nstorage = []',
        'schema_version = 1\nas_of = "2026-11"\nstorage = [{ of = "\\u001b[31m" }]',
    ],
)  # fmt: skip
def test_other_files_are_no_references(text: str) -> None:
    with pytest.raises(UsageError):
        parse_references(text, "file")


def test_volumes_of_clouds_and_arrays_are_called_what_they_are() -> None:
    known = known_references()
    kinds = {one.storage_class: one.kind for one in known}
    assert {kinds["tlc-pcie4"], kinds["cloud-general-ssd"], kinds["array-disk-15k"]} == {"drive", "volume", "array"}
    found = standings([point(3000.0, depth=64)], known, None, "r")
    words = [class_words(one.figure, known) for one in found for known in one.classes]
    assert any("cloud does" in text and "4 volumes; model" in text for text in words)
