"""The run folder: what is written is read back exactly, and a crash costs at most the running point."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.base.errors import ExitCode, IoFailed, OutOfSpace, RunFolderError, UsageError
from assay.record import durable
from assay.record.run_folder import SCHEMA_VERSION, RunFolder

SOURCE = Path(__file__).parents[2] / "python"

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
documents = st.dictionaries(st.text(), values, max_size=5)

in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "profile", {"plan": {"block_bytes": 8192}})


def test_the_name_has_time_verb_and_six_hexadecimal_digits(folder: RunFolder) -> None:
    assert re.fullmatch(r"\d{8}-\d{6}-profile-[0-9a-f]{6}", folder.path.name)
    assert folder.manifest["run_id"] == folder.path.name


def test_a_new_run_is_running_and_keeps_what_it_was_given(folder: RunFolder) -> None:
    manifest = RunFolder.open(folder.path).manifest
    assert manifest == folder.manifest
    assert manifest["schema_version"] == SCHEMA_VERSION
    assert (manifest["verb"], manifest["status"], manifest["error"]) == ("profile", "running", None)
    assert manifest["plan"] == {"block_bytes": 8192}
    assert abs(manifest["started_utc_ns"] - time.time_ns()) < 3600 * 10**9
    assert manifest["ended_utc_ns"] is None


def test_the_parent_is_made_when_missing(tmp_path: Path) -> None:
    assert RunFolder.create(tmp_path / "a" / "b", "assess", {}).path.parent == tmp_path / "a" / "b"


def test_runs_begun_in_the_same_second_have_folders_of_their_own(tmp_path: Path) -> None:
    assert len({RunFolder.create(tmp_path, "profile", {}).path for _ in range(5)}) == 5


def test_a_parent_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(UsageError, match=r"cannot keep results in .*/f: it is not a folder.*--output") as caught:
        RunFolder.create(tmp_path / "f", "profile", {})
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs a folder that even root cannot write to")
def test_an_unwritable_parent_is_refused() -> None:
    with pytest.raises(UsageError, match=r"cannot keep results in /sys/kernel: .*--output"):
        RunFolder.create("/sys/kernel", "profile", {})


def test_a_failed_creation_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "write_whole", _no_space)
    with pytest.raises(OutOfSpace, match="No space"):
        RunFolder.create(tmp_path, "profile", {})
    assert list(tmp_path.iterdir()) == []


@given(fields=documents)
@in_one_folder
def test_manifest_fields_come_back_exactly(folder: RunFolder, fields: dict[str, object]) -> None:
    folder.update(plan=fields, status="done")
    for manifest in (folder.manifest, RunFolder.open(folder.path).manifest):
        assert repr(manifest["plan"]) == repr(fields)
        assert manifest["status"] == "done"


@given(points=st.lists(documents, max_size=4))
@in_one_folder
def test_points_come_back_exactly_and_in_order(tmp_path: Path, points: list[dict[str, object]]) -> None:
    points = [{"id": f"p{number}", "unknown": point} for number, point in enumerate(points)]
    with RunFolder.create(tmp_path, "profile", {}) as folder:
        for point in points:
            folder.append_point(point)
        assert repr(folder.points()) == repr(points)
        assert (folder.path / "points.jsonl").exists() == bool(points)


def test_a_file_name_that_is_not_unicode_comes_back(folder: RunFolder) -> None:
    name = os.fsdecode(b"/data/\xff\xfe")
    folder.append_point({"id": "p0001", "path": name})
    assert folder.points()[0]["path"] == name


def test_the_manifest_is_no_alias_of_what_was_passed(folder: RunFolder) -> None:
    parts = [{"name": "oltp"}]
    folder.update(parts=parts)
    parts.append({"name": "dss"})
    assert folder.manifest["parts"] == [{"name": "oltp"}]


def test_a_number_without_json_form_is_refused_and_nothing_changes(folder: RunFolder) -> None:
    with pytest.raises(ValueError, match="point p0001 cannot be written as JSON"):
        folder.append_point({"id": "p0001", "iops": float("nan")})
    with pytest.raises(ValueError, match=r"run.json cannot be written as JSON"):
        folder.update(answers=[float("inf")])
    assert folder.points() == []
    assert "answers" not in folder.manifest
    assert RunFolder.open(folder.path).manifest == folder.manifest


def test_a_point_cut_off_at_any_byte_is_ignored_and_then_replaced(folder: RunFolder) -> None:
    folder.append_point({"id": "p0001"})
    folder.close()
    file = folder.path / "points.jsonl"
    whole = file.read_bytes()
    last = b'{"id": "p0002", "total": {"iops": 5000.0}}\n'
    for length in range(len(last)):
        file.write_bytes(whole + last[:length])
        with RunFolder.open(folder.path) as again:
            assert again.points() == [{"id": "p0001"}]
            assert file.read_bytes() == whole + last[:length], "reading must not change the file"
            again.append_point({"id": "p0002"})
        assert file.read_bytes() == whole + b'{"id": "p0002"}\n'


def test_a_last_line_torn_by_a_power_cut_is_ignored_and_then_replaced(folder: RunFolder) -> None:
    folder.append_point({"id": "p0001"})
    folder.close()
    with (folder.path / "points.jsonl").open("ab") as file:
        file.write(b'{"id": "p0002", \0\0\0\0\0\0}\n')
    with RunFolder.open(folder.path) as again:
        assert [point["id"] for point in again.points()] == ["p0001"]
        again.append_point({"id": "p0003"})
        assert [point["id"] for point in again.points()] == ["p0001", "p0003"]


@pytest.mark.parametrize("damage", [b"{]\n", b"[1]\n", b"\n", b"\xff\n", b"[" * 100_000 + b"\n"])
def test_a_damaged_line_in_the_middle_is_an_error_with_its_number(folder: RunFolder, damage: bytes) -> None:
    (folder.path / "points.jsonl").write_bytes(b'{"id": "p0001"}\n' + damage + b'{"id": "p0003"}\n')
    with pytest.raises(RunFolderError, match=r"points\.jsonl line 2 is damaged"):
        folder.points()
    with pytest.raises(RunFolderError, match=r"points\.jsonl line 2 is damaged"):
        folder.append_point({"id": "p0004"})
    (folder.path / "points.jsonl").write_bytes(b'{"id": "p0001"}\n' + damage + b'{"id": "p0')
    with pytest.raises(RunFolderError, match=r"points\.jsonl line 2 is damaged"):
        folder.points()


def test_a_full_file_system_costs_only_the_point_that_met_it(tmp_path: Path) -> None:
    # A file-size limit makes the kernel write a part of the line and refuse the rest, as a full file system does.
    folder = RunFolder.create(tmp_path, "profile", {})
    folder.append_point({"id": "p0001"})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        with pytest.raises(IoFailed, match=r"cannot write .*points\.jsonl: File too large"):
            folder.append_point({"id": "p0002", "histogram": "x" * 10_000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert (folder.path / "points.jsonl").read_bytes() == b'{"id": "p0001"}\n'
    folder.append_point({"id": "p0003"})
    assert [point["id"] for point in folder.points()] == ["p0001", "p0003"]


def test_an_interrupt_in_the_middle_of_a_line_does_not_damage_the_next(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[:5])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(durable, "write_whole", interrupted)
        with pytest.raises(KeyboardInterrupt):
            folder.append_point({"id": "p0001"})
    folder.append_point({"id": "p0002"})
    assert folder.points() == [{"id": "p0002"}]


def test_a_line_that_could_not_be_taken_back_is_taken_back_by_the_next_append(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[:5])
        raise OSError(5, "Input/output error")

    def failing(_descriptor: int, _length: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(durable, "write_whole", cut_off)
        patch.setattr(os, "ftruncate", failing)
        with pytest.raises(IoFailed):
            folder.append_point({"id": "p0001"})
    assert folder.points() == []
    folder.append_point({"id": "p0002"})
    assert (folder.path / "points.jsonl").read_bytes() == b'{"id": "p0002"}\n'


def test_no_space_has_its_own_error() -> None:
    assert isinstance(durable.failure(OSError(28, "No space left on device"), "cannot write /f"), OutOfSpace)


def test_a_failed_update_keeps_the_old_manifest(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (folder.path / "run.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(durable, "write_whole", _no_space)
        with pytest.raises(OutOfSpace, match=r"run\.json: No space"):
            folder.update(status="done")
    assert folder.manifest["status"] == "running"
    assert (folder.path / "run.json").read_bytes() == before
    assert sorted(path.name for path in folder.path.iterdir()) == [".lock", "run.json"]


def _no_space(_descriptor: int, _data: bytes) -> None:
    raise OSError(28, "No space left on device")


def _refusal(path: Path) -> str:
    with pytest.raises(RunFolderError) as caught:
        RunFolder.open(path)
    assert caught.value.exit_code == ExitCode.USAGE
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_not_a_run_folder_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    assert "does not exist" in _refusal(tmp_path / "nowhere")
    assert "is not a folder" in _refusal(tmp_path / "file")
    assert "has no run.json" in _refusal(tmp_path / "empty")


def test_a_parent_of_runs_is_refused_with_a_run_to_name(folder: RunFolder) -> None:
    assert f"holds 1 run(s); name one of them, such as {folder.path}" in _refusal(folder.path.parent)


@pytest.mark.parametrize("content", ["", "{", '"text"', "[]", "{}", '{"schema_version": "1"}', "[" * 100_000])
def test_a_damaged_manifest_is_refused(folder: RunFolder, content: str) -> None:
    (folder.path / "run.json").write_text(content)
    assert re.search("is damaged|has no schema_version", _refusal(folder.path))


def test_a_run_of_a_newer_assay_is_refused_and_of_an_older_one_is_read(folder: RunFolder) -> None:
    manifest = json.loads((folder.path / "run.json").read_text())
    (folder.path / "run.json").write_text(json.dumps({**manifest, "schema_version": SCHEMA_VERSION + 1}))
    assert f"newer Assay: its schema is {SCHEMA_VERSION + 1}" in _refusal(folder.path)
    (folder.path / "run.json").write_text(json.dumps({**manifest, "schema_version": SCHEMA_VERSION - 1}))
    assert RunFolder.open(folder.path).manifest["schema_version"] == SCHEMA_VERSION - 1


def test_only_one_writes_to_a_run_and_anybody_reads_it(folder: RunFolder) -> None:
    folder.append_point({"id": "p0001"})
    other = RunFolder.open(folder.path)
    assert other.points() == folder.points()
    for write in (other.lock, lambda: other.update(status="done"), lambda: other.append_point({"id": "p0002"})):
        with pytest.raises(RunFolderError, match=rf"is in use by process {os.getpid()} on .*; wait"):
            write()
    folder.update(status="interrupted")
    folder.close()
    other.update(error="none")
    assert other.manifest["status"] == "interrupted", "what changed before the lock was taken must not be lost"


def test_the_lock_of_an_object_nobody_holds_is_gone(tmp_path: Path) -> None:
    path = RunFolder.create(tmp_path, "profile", {}).path
    RunFolder.open(path).update(status="done")


def test_another_process_is_kept_out(folder: RunFolder) -> None:
    code = "import sys; from assay.record.run_folder import RunFolder as R; R.open(sys.argv[1]).append_point({'id': 1})"
    done = _python(code, folder.path)
    _, message = done.communicate(timeout=60)
    assert done.returncode == 1
    assert f"is in use by process {os.getpid()}" in message
    assert folder.points() == []


APPENDING = """
import sys
from assay.record.run_folder import RunFolder
folder = RunFolder.open(sys.argv[1])
number = len(folder.points())
print("ready", flush=True)
while True:
    folder.append_point({"id": f"p{number}", "histogram": "x" * (number * 7919 % 200_000)})
    folder.update(notices=[f"{number} points"])
    print(number, flush=True)
    number += 1
"""


def test_killing_the_process_at_any_time_costs_at_most_the_running_point(folder: RunFolder) -> None:
    """Each of ten processes takes the run over from the one that was killed."""
    folder.close()
    seed = random.randrange(2**32)
    moments = random.Random(seed)
    for kill in range(10):
        process = _python(APPENDING, folder.path)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(moments.uniform(0, 0.06))
        process.kill()
        reported = [int(number) for number in process.communicate(timeout=60)[0].split()]
        again = RunFolder.open(folder.path)
        found = [int(point["id"][1:]) for point in again.points()]
        assert found == list(range(len(found))), f"kill {kill} of seed {seed}"
        assert len(found) >= max(reported, default=-1) + 1, f"kill {kill} of seed {seed} cost a finished point"
        for point in again.points():
            assert len(point["histogram"]) == int(point["id"][1:]) * 7919 % 200_000
    assert len(found) > 0, "no process lived long enough to append a point"


def _python(code: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, os.fspath(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.fspath(SOURCE)},
    )
