"""Power cuts prove a drive's claim of atomic writes, or do not: how many, of which drive, with what outstanding."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.insight.crash.controls import Control
from assay.insight.crash.drive import DriveClaim
from assay.insight.crash.examination import CrashAnswer, Row, Tried
from assay.insight.crash.promises import Promises
from assay.insight.crash.proof import CUTS_MIN, atomic_proof, most_torn_share, read_cuts
from assay.insight.crash.requests import Recorded, VolumeRequest
from assay.insight.crash.trial import CrashOutcome
from assay.record.power_cut import DriveCut, DriveIdentity
from assay.report.sections.crash import answer_blocks

RUN = Path(__file__).parents[1] / "fixtures/runs/verify"
DRIVE = DriveIdentity(model="Model", firmware="1.0", serial="S1", wwn="eui.1")
CLAIM = DriveClaim(name="nvme0n1", claimed_bytes=16384, identity=DRIVE)
CUT = DriveCut(
    run="0",
    before=DRIVE,
    after=DRIVE,
    power_losses=1,
    is_cut=True,
    page_bytes=16384,
    write_bytes_max=16384,
    outstanding_pages=7,
    torn_pages=0,
    other_findings=0,
)


def cuts(count: int, **other: Any) -> list[DriveCut]:
    return [replace(CUT, run=str(number), **other) for number in range(count)]


def test_enough_cuts_prove_a_claim_and_say_how_strongly() -> None:
    proof = atomic_proof(CLAIM, cuts(100), 16384)
    assert (proof.verdict, proof.cuts) == ("proven", 100)
    assert proof.torn_share_max == pytest.approx(1 - 0.05**0.01)
    assert "7 pages of 16 KiB outstanding in each of 100 power cuts that the drive counted, none torn" in proof.words
    assert "at most 3.0 % of such cuts tear one, with 95 % confidence" in proof.words
    assert "each was a write of its own" in proof.words
    assert not proof.covers_parts
    assert atomic_proof(CLAIM, cuts(100, write_bytes_max=32 * 16384), 16384).covers_parts


def test_the_least_number_of_cuts_leaves_five_percent() -> None:
    assert most_torn_share(CUTS_MIN) < 0.05 < most_torn_share(CUTS_MIN - 1)
    # The rule of three.
    assert most_torn_share(300) == pytest.approx(3 / 300, rel=0.01)


@pytest.mark.parametrize(
    ("size", "verdict", "words"),
    [
        (8192, "proven", "pages of 16 KiB"),
        (16384, "proven", ""),
        (32768, "not claimed", "claims no atomic writes of 32"),
    ],
)
def test_pages_prove_their_own_size_and_smaller_ones(size: int, verdict: str, words: str) -> None:
    proof = atomic_proof(CLAIM, cuts(60), size)
    assert proof.verdict == verdict
    assert words in proof.words


@pytest.mark.parametrize(
    ("other", "verdict", "words"),
    [
        ({}, "not proven", "is not proven yet: 7 pages of 16 KiB outstanding in each of 12 power cuts"),
        ({"after": replace(DRIVE, serial="S2", wwn="eui.2")}, "not proven", "12 cuts left out, of another drive"),
        (
            {"after": replace(DRIVE, firmware="1.1")},
            "not proven",
            "12 cuts left out, of another drive, model or firmware",
        ),
        ({"power_losses": 0}, "not proven", "12 cuts left out, in which the drive counted no loss of power"),
        ({"power_losses": None}, "not proven", "of which the drive told no count of power losses"),
        ({"is_cut": False}, "not proven", "12 cuts left out, whose run had ended"),
        ({"outstanding_pages": 0}, "not proven", "12 cuts left out, with no page outstanding"),
        ({"page_bytes": 8192}, "not proven", "12 cuts left out, with pages of 8 KiB only"),
        ({"torn_pages": 1}, "broken", "tore a page of 16 KiB in 12 of 12 power cuts, 12 of them where each page was a"),
        (
            {"torn_pages": 1, "write_bytes_max": 524288},
            "broken",
            "of writes of up to 512 KiB, of whose parts a drive may promise nothing",
        ),
        ({"other_findings": 2}, "broken", "lost or changed 24 pages in 12 of 12 power cuts"),
    ],
)
def test_what_proves_nothing_says_why(other: dict[str, Any], verdict: str, words: str) -> None:
    proof = atomic_proof(CLAIM, cuts(12, **other), 16384)
    assert proof.verdict == verdict
    assert words in proof.words


def test_one_torn_page_refutes_any_number_of_whole_ones() -> None:
    proof = atomic_proof(CLAIM, [*cuts(500), replace(CUT, run="torn", torn_pages=1)], 16384)
    assert proof.verdict == "broken"
    assert "tore a page of 16 KiB in 1 of 501 power cuts" in proof.words


def test_a_larger_page_that_is_torn_says_nothing_of_its_parts() -> None:
    proof = atomic_proof(CLAIM, [*cuts(60), replace(CUT, run="torn", torn_pages=1)], 8192)
    assert proof.verdict == "proven"
    assert "1 cut left out, which tore a page of 16 KiB, maybe between two parts of this size" in proof.words


def test_without_a_claim_no_number_of_cuts_is_a_proof() -> None:
    proof = atomic_proof(replace(CLAIM, claimed_bytes=None), cuts(1000), 16384)
    assert proof.verdict == "not claimed"


def checked(folder: Path, run: str, *, losses: tuple[int, int] = (4, 5), **journal: object) -> Path:
    """A run folder as `assay verify /dev/nvme0n1 --after-crash` leaves it."""
    shutil.copytree(RUN, folder)
    manifest = json.loads((folder / "run.json").read_text())
    manifest["request"]["after_crash"] = "/other/journal"
    drive = {"name": "nvme0n1", "model": "Model", "firmware": "1.0"}
    manifest["target"]["volumes"][0] |= {
        "path": "/dev/nvme0n1",
        "kind": "device",
        "file_system": None,
        "device": "nvme0n1",
        "device_stack": ["nvme0n1"],
        "identity": {"device": "259:0", "serial": "S1", "wwn": "eui.1"},
    }
    manifest["target"]["drives"] = [drive | {"before": {"unsafe_shutdowns": losses[1]}}]
    before = drive | {"serial": "S1", "wwn": "eui.1", "unsafe_shutdowns": losses[0]}
    manifest["integrity"]["findings"] = {"torn": 0, "lost": 0}
    manifest["integrity"]["journal"] = {
        "acknowledged": 900,
        "promised_pages": 50,
        "complete": True,
        "ended": False,
        "cut_off": False,
        "run": run,
        "page_bytes": 16384,
        "write_bytes_max": 16384,
        "write_through": True,
        "direct": True,
        "max_outstanding": 256,
        "outstanding_pages": 7,
        "drives": [before],
        **journal,
    }
    (folder / "run.json").write_text(json.dumps(manifest))
    return folder


def test_runs_are_read_one_by_one_or_as_a_folder_and_a_crash_counts_once(tmp_path: Path) -> None:
    for number in range(3):
        checked(tmp_path / f"20261129-00000{number}-verify-aaaaa{number}", str(number))
    checked(tmp_path / "20261129-000003-verify-aaaaa3", "2")
    shutil.copytree(RUN, tmp_path / "20261129-000004-verify-aaaaa4")
    assert [replace(one, run="0") for one in read_cuts([tmp_path])] == [CUT] * 3
    assert read_cuts([tmp_path / "20261129-000003-verify-aaaaa3"]) == (replace(CUT, run="2"),)
    assert len(read_cuts([tmp_path, tmp_path / "20261129-000000-verify-aaaaa0"])) == 3


def test_a_run_on_a_file_or_of_an_older_journal_proves_nothing(tmp_path: Path) -> None:
    for name, journal in (("no-drives", {"drives": None}), ("other-drives", {"drives": [{"name": "nvme0n1"}]})):
        assert read_cuts([checked(tmp_path / name, "1", **journal)]) == ()
    folder = checked(tmp_path / "partition", "1")
    manifest = json.loads((folder / "run.json").read_text())
    manifest["target"]["volumes"][0]["device_stack"] = ["nvme0n1p1", "nvme0n1"]
    (folder / "run.json").write_text(json.dumps(manifest))
    assert read_cuts([folder]) == ()


def test_what_is_no_check_of_a_crash_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no check of a crash; name runs of assay verify --after-crash"):
        read_cuts([RUN])
    with pytest.raises(UsageError, match="holds no check of a crash"):
        read_cuts([tmp_path / "nowhere"])
    broken = checked(tmp_path / "broken", "1")
    (broken / "run.json").write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        read_cuts([broken])
    foreign = checked(tmp_path / "foreign", "1", outstanding_pages="many")
    with pytest.raises(UsageError, match="cannot be read"):
        read_cuts([foreign])


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            cuts(60, write_bytes_max=524288),
            "may stay here: the drive's atomic write of 16 KiB is proven, and all 9 states",
        ),
        (cuts(60), "may stay here where each page is a write of its own"),
        (cuts(12), "may stay here if the drive's atomic write of 16 KiB is real"),
        (cuts(12, torn_pages=1), "may not stay on this drive"),
    ],
)
def test_the_answer_says_what_the_proof_allows(found: list[DriveCut], words: str) -> None:
    outcome = CrashOutcome(
        promises=Promises(), planned=9, tried=9, failed=1, kinds={}, coverage={}, seconds=1.0, failure=None
    )
    passes = replace(outcome, failed=0, promises=Promises(atomic_bytes=16384))
    recorded = Recorded(title="Server", load_s=1.0, told=9)
    liar = Tried(what="liar", outcome=outcome, must_fail=True, keeps_promises=False)
    own = Row(settings=(), recorded=recorded, counts={}, tried=(Tried(what="", outcome=passes), liar))
    tried = (Tried(what="", outcome=outcome), Tried(what="16 KiB", outcome=passes), liar)
    bare = replace(
        own, settings=("full_page_writes=off",), tried=tried, control=Control(reason="torn", page_bytes=8192)
    )
    volume = VolumeRequest(size_bytes=1 << 28, mkfs=("-O", "bigalloc", "-C", "16384"))
    answer = CrashAnswer(rows=(own, bare), volume=volume, seed=1, jobs=1, drive=CLAIM, cuts=tuple(found))
    assert words in " ".join(str(block) for block in answer_blocks(answer))
