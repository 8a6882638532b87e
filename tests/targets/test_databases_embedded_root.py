"""The embedded PostgreSQL started by root, as whom PostgreSQL refuses to run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_database import Embedded, fill, rows_of

from assay.targets.databases import server
from assay.targets.databases.server import Identity


@pytest.fixture
def closed_home() -> Iterator[Path]:
    """A home that only root may enter."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    home = Path(tempfile.mkdtemp(prefix="assay-home-"))
    home.chmod(0o700)
    yield home
    shutil.rmtree(home)


@pytest.fixture
def closed_programs(closed_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PostgreSQL's programs below that home."""
    package = server.shipped_programs().parents[1]
    copy = closed_home / "venv"
    for source in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(source, copy / source.name, ignore=shutil.ignore_patterns("*.a", "include", "pgxs"))
    programs = copy / package.name / "pginstall/bin"
    monkeypatch.setattr(server, "shipped_programs", lambda: programs)
    monkeypatch.setattr("assay.targets.databases.embedded.shipped_programs", lambda: programs)
    return copy


@pytest.mark.usefixtures("closed_programs")
def test_root_runs_it_in_a_namespace_below_a_closed_home(closed_home: Path, embedded: Embedded) -> None:
    database = embedded(closed_home / "db")
    database.open()
    if database.facts()["runs_as"] != "namespace":
        pytest.skip("user namespaces are refused here")
    fill(database)
    database.save()
    database.restore()
    assert rows_of(database) == 1000
    assert (closed_home / "db").stat().st_uid == 0


@pytest.mark.usefixtures("closed_programs")
@pytest.mark.parametrize("is_open", [False, True])
def test_root_runs_it_as_nobody_where_namespaces_are_refused(
    closed_home: Path, embedded: Embedded, monkeypatch: pytest.MonkeyPatch, is_open: bool
) -> None:
    def nothing() -> Identity | None:
        return None

    monkeypatch.setattr(server, "_namespace_identity", nothing)
    folder = Path(tempfile.mkdtemp(prefix="assay-open-")) if is_open else closed_home / "all"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    try:
        database = embedded(folder / "db")
        database.open()
        assert database.facts()["runs_as"] == "user"
        pid = database.server_pid()
        status = Path(f"/proc/{pid}/status").read_text()
        assert "Uid:\t65534\t65534\t65534\t65534" in status
        # Where everybody may enter, the server keeps none of root's rights.
        assert (f"CapEff:\t{0:016x}" in status) == is_open
        fill(database)
        database.save()
        database.restore()
        assert rows_of(database) == 1000
        database.close()
        monkeypatch.undo()
        # The same folder under another user of the server.
        again = embedded(folder / "db")
        again.open()
        assert rows_of(again) == 1000
        again.close()
    finally:
        if is_open:
            shutil.rmtree(folder)
