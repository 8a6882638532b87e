"""`assay support` packs a run, replaces its names, and reports what is missing."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import pytest
from test_paper_names import SECRETS, remote_run

from assay.base.errors import RunFolderError, UsageError
from assay.report.support import pack_support

LOG = [
    {"t_ns": 1, "level": "info", "event": "command", "argv": ["assay", "oltp", "-o", "acme", "/srv/db/ledger-7"]},
    {
        "t_ns": 2,
        "level": "warning",
        "event": "server away",
        "reason": "postgresql://jdoe@finance.internal/payroll9: gone",
    },
]


def unpacked(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
        assert all(member.isfile() and member.name.startswith("a-support/") for member in members)
        files = {member.name.removeprefix("a-support/"): tar.extractfile(member) for member in members}
        return {name: file.read().decode() for name, file in files.items() if file is not None}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = remote_run(tmp_path / "run")
    (made / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LOG))
    manifest = json.loads((made / "run.json").read_text())
    manifest["target"]["volumes"][0]["identity"] = {"serial": "S5GXNF0R1", "wwn": "eui.0025", "boot": None}
    (made / "run.json").write_text(json.dumps(manifest))
    return made


def test_nothing_in_it_tells_whose_it_is(run: Path, tmp_path: Path) -> None:
    packed = pack_support(run, tmp_path / "a-support.tar.gz")
    files = unpacked(packed.path)
    assert list(files) == ["README.txt", "run.json", "points.jsonl", "log.jsonl"]
    assert [name for name in (*SECRETS, "S5GXNF0R1", "eui.0025") if name in "".join(files.values())] == []
    assert packed.left_out == []
    assert (packed.path.stat().st_mode & 0o777) == 0o600

    points = (run / "points.jsonl").read_text().splitlines()
    for told, own in zip(files["points.jsonl"].splitlines(), points, strict=True):
        assert json.loads(told)["total"] == json.loads(own)["total"], "what was measured is as it was"
    identity = json.loads(files["run.json"])["target"]["volumes"][0]["identity"]
    assert identity == {"serial": "serial-1", "wwn": "wwn-1", "boot": None}


def test_with_names_all_is_as_it_was(run: Path, tmp_path: Path) -> None:
    files = unpacked(pack_support(run, tmp_path / "a-support.tar.gz", anonymised=False).path)
    assert json.loads(files["run.json"]) == json.loads((run / "run.json").read_text())
    assert [json.loads(line) for line in files["log.jsonl"].splitlines()] == LOG


def test_damaged_lines_are_left_out_and_told(run: Path, tmp_path: Path) -> None:
    with (run / "log.jsonl").open("a") as log:
        log.write('{"event": "postgresql://jdoe@finan\n[]\n')
    (run / "points.jsonl").unlink()
    packed = pack_support(run, tmp_path / "a-support.tar.gz")
    assert packed.left_out == ["points.jsonl is not there", "log.jsonl: 2 damaged lines are left out"]
    assert len(unpacked(packed.path)["log.jsonl"].splitlines()) == len(LOG)


def test_a_link_in_place_of_a_file_is_not_followed(run: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text('{"password": "hunter2"}\n')
    (run / "log.jsonl").unlink()
    (run / "log.jsonl").symlink_to(secret)
    packed = pack_support(run, tmp_path / "a-support.tar.gz")
    assert "hunter2" not in "".join(unpacked(packed.path).values())
    (why,) = packed.left_out
    assert why.startswith("log.jsonl cannot be read")


def test_what_has_the_name_stays(run: Path, tmp_path: Path) -> None:
    archive = tmp_path / "a-support.tar.gz"
    archive.write_bytes(b"own")
    with pytest.raises(UsageError, match="is there already"):
        pack_support(run, archive)
    assert archive.read_bytes() == b"own"


def test_what_is_no_run_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError):
        pack_support(tmp_path, tmp_path / "a-support.tar.gz")
    assert not list(tmp_path.iterdir())


def test_every_event_is_in_the_documents() -> None:
    root = Path(__file__).parents[2]
    sources = [path.read_text() for path in (root / "python" / "assay").rglob("*.py") if path.name != "watch.py"]
    raised = {name for text in sources for name in re.findall(r"(?<![.\w])event\(\s*\"([a-z ]+)\"", text)}
    documented = re.findall(
        r"^\| `([a-z ]+)` \| (?:info|warning|error)", (root / "docs" / "results.md").read_text(), re.M
    )
    assert raised | {"log full"} == set(documented)
