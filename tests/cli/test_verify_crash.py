"""`--crash-journal` and `--after-crash`: what was acknowledged before a process was killed is on the storage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from assay_command import Bench, Outcome

ARGUMENTS = ("--size", "16M", "--duration", "60s", "--seed", "3")


@pytest.fixture
def crashed(bench: Bench, tmp_path: Path) -> Bench:
    """A bench on which a run with a journal, `j`, was killed in its stress phase."""
    journal = tmp_path / "j"
    arguments = ("verify", bench.target.parent, *ARGUMENTS, "--no-report", "-o", bench.results)
    with bench.started(*arguments, "--crash-journal", journal) as running:
        running.wait_until(bench.point_lines)
        at_stress = journal.stat().st_size
        running.wait_until(lambda: journal.stat().st_size > at_stress)
        running.process.kill()
        running.end()
    return bench


def check(bench: Bench, *arguments: str) -> Outcome:
    return bench.verify(*(arguments or (bench.target.parent,)), "--after-crash", "j", "--json")


def test_what_was_acknowledged_is_there(crashed: Bench) -> None:
    outcome = check(crashed)

    integrity = outcome.document["integrity"]
    assert (outcome.code, integrity["passed"]) == (0, True)
    assert integrity["journal"]["acknowledged"] > 2048
    assert not integrity["journal"]["ended"]
    assert integrity["journal"]["page_bytes"] == 8192
    assert integrity["journal"]["write_bytes_max"] == 32 * 8192
    assert (integrity["journal"]["direct"], integrity["journal"]["write_through"]) == (True, True)
    # A file is no drive, of which a power cut would prove something.
    assert integrity["journal"]["drives"] == []
    assert integrity["journal"]["run"] != integrity["run_identity"]
    assert "acknowledged writes" in outcome.document["verdict"][0]["meaning"]


def test_the_check_writes_nothing_to_the_target(crashed: Bench) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in crashed.target.parent.iterdir()}

    check(crashed)

    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before


def test_a_write_that_was_lost_is_found(crashed: Bench) -> None:
    with (crashed.target.parent / "assay.dat").open("r+b") as file:
        file.seek(77 * 8192)
        file.write(bytes(8192))

    outcome = check(crashed)

    assert outcome.code == 4
    (detail,) = outcome.document["integrity"]["details"]
    assert (detail["file"], detail["page"], detail["persistent"]) == ("assay.dat", 77, True)
    manifest = json.loads((Path(outcome.document["run_folder"]) / "run.json").read_text())
    assert manifest["integrity"]["details"][0]["evidence"] == "evidence/F0001"


def test_a_journal_of_another_target_is_refused(crashed: Bench, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert crashed.verify(other, "--size", "16M", "--duration", "0s").code == 0

    outcome = check(crashed, str(other))

    assert outcome.code == 2
    assert "belongs to another target" in outcome.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("content", "said"), [(b"somebody's" * 1000, "not a journal"), (b"", "is empty"), (None, "truncated")]
)
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_what_is_no_journal_is_refused(crashed: Bench, tmp_path: Path, content: bytes | None, said: str) -> None:
    journal = tmp_path / "j"
    journal.write_bytes(journal.read_bytes()[:1000] if content is None else content)

    outcome = check(crashed)

    assert (outcome.code, said in outcome.stderr.splitlines()[-1]) == (2, True)


def test_files_keep_their_size_while_a_journal_is_written(bench: Bench, tmp_path: Path) -> None:
    asked = (bench.target.parent, *ARGUMENTS, "--dry-run", "--json")

    without = bench.verify(*asked).document["files"][0]
    with_journal = bench.verify(*asked, "--crash-journal", tmp_path / "j").document["files"][0]

    assert without["max_bytes"] > without["size_bytes"]
    assert with_journal["max_bytes"] == with_journal["size_bytes"]


def test_pages_may_be_those_of_innodb(bench: Bench) -> None:
    outcome = bench.verify(bench.target.parent, "--size", "16M", "--duration", "1s", "--page", "16K", "--json")
    assert outcome.code == 0
    assert outcome.document["integrity"]["pages"] == 16 * 64

    refused = bench.verify(bench.target.parent, "--size", "16M", "--page", "4K")
    assert (refused.code, "4 KiB is not accepted; accepted: 8 KiB, 16 KiB" in refused.stderr) == (2, True)
