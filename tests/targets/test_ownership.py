"""How Assay knows its own files again, with extended attributes and without."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import OpenFailed, OutOfSpace, RefusedTarget
from assay.targets import ownership
from assay.targets.ownership import claim, create, is_ours, release, sidecar_path


@pytest.fixture(params=["attribute", "sidecar"])
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path to make a file at, where extended attributes work and where they do not."""
    path = tmp_path / "assay.dat"
    if request.param == "sidecar":
        withhold_attributes(monkeypatch)
        return path
    path.touch()
    try:
        os.setxattr(path, "user.assay.test", b"x")
    except OSError:
        pytest.skip("the temporary folder's file system has no extended attributes")
    path.unlink()
    return path


def withhold_attributes(monkeypatch: pytest.MonkeyPatch, code: int = errno.ENOTSUP) -> None:
    def refuse(*_: object) -> bytes:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "setxattr", refuse)
    monkeypatch.setattr(os, "getxattr", refuse)


def grow(path: Path, size_bytes: int) -> None:
    os.truncate(path, size_bytes)
    claim(path)


def test_a_file_assay_made_is_ours_also_after_it_grew(file: Path) -> None:
    create(file)
    grow(file, 8192)

    assert is_ours(file)
    assert file.stat().st_size == 8192


def test_a_foreign_file_is_not_ours(file: Path) -> None:
    file.write_bytes(b"precious")

    assert not is_ours(file)
    assert not is_ours(file.with_name("missing"))
    assert not is_ours(file.parent)


def test_an_empty_file_can_be_claimed_but_one_with_content_cannot(file: Path) -> None:
    file.touch()
    claim(file)
    assert is_ours(file)

    foreign = file.with_name("foreign")
    foreign.write_bytes(b"precious")
    with pytest.raises(RefusedTarget, match="content Assay did not write"):
        claim(foreign)
    assert not is_ours(foreign)


def test_create_never_takes_over_an_existing_file(file: Path) -> None:
    file.write_bytes(b"precious")

    with pytest.raises(OpenFailed, match="cannot be created: File exists; check"):
        create(file)
    assert file.read_bytes() == b"precious"


def test_ours_is_known_through_a_symbolic_link(file: Path) -> None:
    create(file)
    (file.parent / "sub").mkdir()
    link = file.parent / "sub" / "link"
    link.symlink_to(file)

    assert is_ours(link)


def test_release_deletes_a_half_made_file_and_leaves_nothing(file: Path) -> None:
    create(file)
    os.truncate(file, 4096)

    assert release(file)
    assert list(file.parent.iterdir()) == []


def test_release_leaves_a_foreign_file_alone(file: Path) -> None:
    file.write_bytes(b"precious")

    assert not release(file)
    assert not release(file.with_name("missing"))
    assert file.read_bytes() == b"precious"


def test_the_id_is_random_and_stays(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        create(path)
    try:
        ids = [os.getxattr(path, ownership.ATTRIBUTE) for path in paths]
    except OSError:
        pytest.skip("the temporary folder's file system has no extended attributes")
    grow(paths[0], 4096)

    assert ids[0] != ids[1]
    assert os.getxattr(paths[0], ownership.ATTRIBUTE) == ids[0]


class TestSidecar:
    @pytest.fixture(autouse=True)
    def _no_attributes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        withhold_attributes(monkeypatch)

    def test_it_names_inode_and_size(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        create(path)
        grow(path, 4096)

        content = json.loads((tmp_path / ".f.assay").read_text())
        assert (content["inode"], content["size_bytes"]) == (path.stat().st_ino, 4096)

    def test_it_is_void_for_another_inode(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        create(path)
        other = tmp_path / "other"
        other.touch()
        os.replace(other, path)

        assert not is_ours(path)
        assert not release(path)

    def test_it_is_void_for_another_size_because_inodes_are_given_again(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        create(path)
        path.write_bytes(b"precious")

        assert not is_ours(path)

    def test_it_does_not_follow_a_copy(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        create(path)
        grow(path, 4096)
        shutil.copy(path, tmp_path / "g")
        shutil.copy(sidecar_path(path), sidecar_path(tmp_path / "g"))

        assert not is_ours(tmp_path / "g")

    def test_a_stale_one_is_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        create(path)
        sidecar = json.loads(sidecar_path(path).read_text())
        sidecar_path(path).write_text(json.dumps(sidecar | {"inode": 1}))
        claim(path)

        assert is_ours(path)

    def test_a_foreign_file_of_its_name_is_kept(self, tmp_path: Path) -> None:
        (tmp_path / ".f.assay").write_text("a letter")

        with pytest.raises(RefusedTarget, match="stands where Assay's mark"):
            create(tmp_path / "f")
        assert [path.name for path in tmp_path.iterdir()] == [".f.assay"]

    @given(st.binary(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
    def test_no_content_of_a_sidecar_upsets_it(self, content: bytes | str) -> None:
        path = Path(os.environ.get("TMPDIR", "/tmp")) / f"assay-test-fuzz-{os.getpid()}"
        path.write_bytes(b"precious")
        sidecar_path(path).write_bytes(content if isinstance(content, bytes) else content.encode())
        try:
            assert not is_ours(path)
        finally:
            path.unlink()
            sidecar_path(path).unlink()

    @pytest.mark.parametrize("field", ["id", "inode", "size_bytes", "format"])
    def test_a_field_that_is_missing_or_wrong_makes_it_void(self, tmp_path: Path, field: str) -> None:
        path = tmp_path / "f"
        create(path)
        content = json.loads(sidecar_path(path).read_text())
        for damaged in ({key: value for key, value in content.items() if key != field}, content | {field: True}):
            sidecar_path(path).write_text(json.dumps(damaged))
            assert not is_ours(path)


def test_a_full_file_system_is_out_of_space_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    withhold_attributes(monkeypatch, errno.ENOSPC)

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(OutOfSpace, match="No space left on device; free some space"):
        create(tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


def test_a_file_made_is_readable_by_others_as_the_umask_says(tmp_path: Path) -> None:
    create(tmp_path / "f")

    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) & ~0o644 == 0
