"""The saved state of the embedded PostgreSQL: bit by bit, and whole or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from embedded_database import Embedded, fill, rows_of

from assay.base.errors import NotSupported, OutOfSpace, UsageError
from assay.targets.databases.embedded.database import EmbeddedPostgresql


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def database(database_folder: Path, embedded: Embedded) -> EmbeddedPostgresql:
    """One that is filled, and saved."""
    made = embedded(database_folder / "db")
    made.open()
    fill(made)
    made.save()
    return made


def test_what_is_saved_comes_back_bit_by_bit(database_folder: Path, embedded: Embedded) -> None:
    database = embedded(database_folder / "db")
    database.open()
    fill(database)
    with pytest.raises(UsageError, match="nothing is saved"):
        database.restore()
    assert database.saved() is None
    database.save()
    (saved,) = (database_folder / "db").glob("saved-*")
    before = files_of(saved)
    for _ in range(2):
        database.execute("DROP TABLE filled")
        database.restore()
        assert rows_of(database) == 1000
    database.close()
    assert files_of(saved) == before
    # What a restored server starts from: stopped at once it has changed nothing but what says that it ran.
    fresh = embedded(database_folder / "db")
    fresh._cluster.take()
    fresh._cluster.change(data=None)
    fresh._cluster.tidy()
    fresh._programs = fresh._choose_programs()
    fresh._copy_back()
    assert fresh._cluster.data is not None
    assert files_of(fresh._cluster.data) == before
    again = embedded(database_folder / "other")
    again.open()
    assert again.saved() is None


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_saving_again_replaces_and_dropping_leaves_nothing(database_folder: Path, database: EmbeddedPostgresql) -> None:
    database.execute("DELETE FROM filled")
    database.save()
    assert len(list((database_folder / "db").glob("saved-*"))) == 1
    database.restore()
    assert rows_of(database) == 0
    saved = database.saved()
    assert saved is not None
    assert saved["warehouses"] is None
    database.drop_saved()
    assert database.saved() is None
    assert list((database_folder / "db").glob("saved-*")) == []


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_a_restore_that_is_cut_short_is_finished_by_the_next_start(
    database_folder: Path, database: EmbeddedPostgresql, embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute("DELETE FROM filled")

    def cut_short(_: Path, copy: Path, **__: object) -> int:
        (copy / "PG_VERSION").write_text("18")
        raise OSError(28, "No space left on device", str(copy / "base"))

    with monkeypatch.context() as patched:
        patched.setattr("assay.targets.databases.embedded.database.copy_tree", cut_short)
        with pytest.raises(OutOfSpace, match="no room is left for"):
            database.restore()
        database.close()
    again = embedded(database_folder / "db")
    again.open()
    assert rows_of(again) == 1000
    assert len(list((database_folder / "db").glob("data-*"))) == 1


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_a_save_that_is_cut_short_leaves_the_one_before_and_the_server(
    database_folder: Path, database: EmbeddedPostgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute("DELETE FROM filled")

    def cut_short(source: Path, copy: Path, **_: object) -> int:
        shutil.copytree(source, copy, dirs_exist_ok=True)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("assay.targets.databases.embedded.database.copy_tree", cut_short)
        with pytest.raises(KeyboardInterrupt):
            database.save()
    assert rows_of(database) == 0
    database.restore()
    assert rows_of(database) == 1000
    assert len(list((database_folder / "db").glob("saved-*"))) == 1


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_tablespaces_are_not_saved_and_are_cleared_by_a_restore(
    database_folder: Path, database: EmbeddedPostgresql
) -> None:
    for _ in range(2):
        # Below pytest's folders, which are closed to the server's user.
        space = Path(database.make_place(database_folder / "spaces" / "one"))
        assert space == database_folder / "spaces" / "one"
        (space / "not-ours").unlink(missing_ok=True)
        database.execute(f"CREATE TABLESPACE elsewhere LOCATION '{space}'")
        (space / "not-ours").write_text("kept")
        database.execute("ALTER TABLE filled SET TABLESPACE elsewhere")
        assert database.storage_paths()["data:elsewhere"] == str(space)
        with pytest.raises(NotSupported, match="has tablespaces"):
            database.save()
        database.restore()
        assert rows_of(database) == 1000
        assert [path.name for path in space.iterdir()] == ["not-ours"]
