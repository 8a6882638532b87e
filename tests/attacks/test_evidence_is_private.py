"""Evidence holds bytes of the target: only their owner may read it, whatever the umask and whatever stood there."""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import IoFailed
from assay.workloads.integrity.evidence import write_evidence
from assay_command import Bench

SECRET = b"the bytes of a file that only root may read"
RAW = {"expected_image": base64.b64encode(SECRET).decode(), "received_image": base64.b64encode(SECRET[::-1]).decode()}


def finding(number: str = "F0001") -> dict[str, Any]:
    return {"id": number, "kind": "corrupt", "persistent": True, "file": "f", "page": 3, "offset_bytes": 24576}


def rights(path: Path) -> dict[str, int]:
    """Mode of a folder and all that is in it."""
    return {str(found): stat.S_IMODE(found.lstat().st_mode) for found in (path, *path.rglob("*"))}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_folders_and_files_are_the_owner_s_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_evidence(tmp_path, finding(), RAW)
        write_evidence(tmp_path, finding(), RAW)
    finally:
        os.umask(before)
    found = rights(tmp_path / "evidence")
    assert len(found) == 6
    assert {path: mode for path, mode in found.items() if mode & 0o077} == {}


def test_a_folder_that_is_open_to_others_is_closed_first(tmp_path: Path) -> None:
    for folder in ("evidence", "evidence/F0001"):
        (tmp_path / folder).mkdir(mode=0o777)
        (tmp_path / folder).chmod(0o777)
    write_evidence(tmp_path, finding(), RAW)
    assert {mode & 0o077 for mode in rights(tmp_path / "evidence").values()} == {0}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a folder to another user")
@pytest.mark.parametrize("name", ["evidence", "evidence/F0001"])
def test_a_folder_of_another_user_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(parents=True)
    os.chown(tmp_path / name, 12345, 12345)
    with pytest.raises(IoFailed, match="belongs to another user"):
        write_evidence(tmp_path, finding(), RAW)
    assert not list(tmp_path.rglob("*.bin"))


@pytest.mark.parametrize("name", ["evidence", "evidence/F0001"])
def test_a_link_is_not_followed(tmp_path: Path, name: str) -> None:
    outside, run = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    (run / name).parent.mkdir(parents=True)
    (run / name).symlink_to(outside)
    with pytest.raises(IoFailed, match="a link or file is in its place"):
        write_evidence(run, finding(), RAW)
    assert list(outside.iterdir()) == []


def test_a_file_s_second_name_is_not_written_to(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / "evidence" / "F0001").mkdir(parents=True)
    os.link(victim, tmp_path / "evidence" / "F0001" / "expected.bin")
    write_evidence(tmp_path, finding(), RAW)
    assert victim.read_text() == "kept"


@pytest.mark.parametrize("number", ["../F1", "F1/../../x", "", "F"])
def test_names_come_from_counters(tmp_path: Path, number: str) -> None:
    with pytest.raises(ValueError, match="is not the id of a finding"):
        write_evidence(tmp_path, finding(number), RAW)
    assert list(tmp_path.iterdir()) == []


def test_a_run_of_verify_leaves_no_byte_of_the_target_to_others(bench: Bench) -> None:
    before = os.umask(0o000)
    try:
        found = bench.verify(f"faulty:{bench.target}?corrupt=0.01&seed=3", "--size", "8M", "--duration", "1s")
    finally:
        os.umask(before)
    assert found.code == 4
    evidence = rights(bench.run / "evidence")
    assert any(path.endswith(".bin") for path in evidence)
    assert {path: mode for path, mode in evidence.items() if mode & 0o077} == {}
