"""The last thing a verb says before the path: the commands that go on from what it found."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.apps.cli.next_step import next_steps
from assay.workloads.integrity.report.faults import FAULTS, FOR_DATABASES

if TYPE_CHECKING:
    from assay_command import Bench

SHORT = ("--size", "8M", "--queue-depth", "1", "--warmup", "0s", "--duration", "0.3s")


def run_of(kind: str, **fields: Any) -> dict[str, Any]:
    return {"verb": "profile", "status": "done", "parts": [{"name": "a", "plan": {"kind": kind}}], **fields}


def verified(**findings: int) -> dict[str, Any]:
    return run_of("integrity", integrity={"findings": findings, "journal": None}, request={"paths": ["/srv/a b"]})


@pytest.mark.parametrize(
    ("manifest", "verbs"),
    [
        (run_of("io"), ["compare", "size"]),
        (run_of("tpcc"), ["diagnose", "compare"]),
        (run_of("tpch"), ["diagnose", "compare"]),
        (run_of("mailbox"), ["diagnose", "compare"]),
        (verified(torn=0), ["verify"]),
        (run_of("integrity", integrity={"findings": {}, "journal": {}}), ["profile"]),
        (run_of("io", verb="assess"), ["diagnose", "compare"]),
        (run_of("io", study={"name": "x"}), ["report"]),
        ({"recording": {}}, ["diagnose", "size"]),
        ({"recording": None, "imported": {}}, ["compare"]),
        ({"sizing": {"holds": True}}, ["report"]),
        ({"sizing": {"holds": False}}, ["size"]),
        ({"reliability": {}}, ["report"]),
        ({"repeats": 3}, ["compare"]),
        (run_of("io", status="interrupted"), []),
        (run_of("of a newer Assay"), []),
    ],
)
def test_each_run_names_verbs_that_exist(manifest: dict[str, Any], verbs: list[str]) -> None:
    steps = [shlex.split(step.partition(" (")[0]) for step in next_steps(manifest, Path("runs/1"))]

    assert [words[:2] for words in steps] == [["assay", verb] for verb in verbs]
    assert all("runs/1" in words or "NEED" in words or words[1] in ("verify", "profile") for words in steps)


def test_a_fault_says_what_it_means_for_a_database_and_what_to_check() -> None:
    meaning, check = next_steps(verified(torn=3, lost=1, io_error=2), Path("my run"))

    assert meaning.startswith("lost write: the database goes on with an older page")
    assert "look at" in meaning
    assert check.startswith("assay check 'my run'")
    assert FOR_DATABASES.keys() == FAULTS.keys()


def test_steps_stand_before_the_path_and_not_in_what_programs_read(bench: Bench) -> None:
    shown = bench.profile(bench.target, *SHORT)
    *_, compare, size, path = shown.stdout.splitlines()

    assert compare.startswith(f"next: assay compare {bench.run} AFTER")
    assert size.startswith(f"next: assay size --from {bench.run} --rate N")
    assert path == f"run folder: {bench.run}"
    assert "next:" not in bench.profile(bench.target, *SHORT, "--quiet").stdout
    assert "next" not in json.loads(bench.profile(bench.target, *SHORT, "--json").stdout)


def test_a_recording_and_what_is_imported_say_how_to_go_on(bench: Bench) -> None:
    recorded = bench.assay("record", "rec", "--for", "1s", "--no-processes")
    assert "next: assay diagnose rec (" in recorded.stderr

    assert bench.assay("check", "host").stdout.splitlines()[-1].startswith("next: assay assess DIR")
