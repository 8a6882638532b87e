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

from assay import _core
from assay.base.errors import OpenFailed, OutOfSpace, RefusedTarget
from assay.targets.files import ownership
from assay.targets.files.ownership import create, is_ours, make, mark, sidecar_path, standing, unmade
from own_files import leave_file


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


def stands(path: Path, *, exact_times: bool = True) -> str:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return standing(descriptor, path, exact_times=exact_times)
    finally:
        os.close(descriptor)


def written_by_load(size_bytes: int) -> bytes:
    """Bytes as load writes them: the mark of `crates/load/src/content.rs` in every sector."""
    sector = bytearray(os.urandom(512))
    sector[16:24] = bytes.fromhex("a55a79e10dc493b6")
    return bytes(sector) * (size_bytes // 512)


def write_into(file: Path, content: bytes, *, at: int = 0) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(content)


class TestAtRest:
    """A run has ended: size and time of the last write are those of the mark."""

    def test_a_file_assay_made_is_ours(self, file: Path) -> None:
        leave_file(file, b"anything")

        assert stands(file) == "ours"
        assert is_ours(file)

    def test_a_foreign_file_is_not(self, file: Path) -> None:
        file.write_bytes(b"precious")

        assert stands(file) == "foreign"
        assert not is_ours(file.with_name("missing"))
        assert not is_ours(file.parent)

    @pytest.mark.parametrize("content", [b"precious", b"anythinG"])
    def test_a_copy_into_it_is_noticed(self, file: Path, content: bytes) -> None:
        leave_file(file, b"anything")
        file.with_name("user.mdf").write_bytes(content)
        shutil.copyfile(file.with_name("user.mdf"), file)

        assert stands(file) == "changed"

    def test_so_is_a_write_into_it(self, file: Path) -> None:
        leave_file(file, bytes(8192))
        write_into(file, b"precious", at=4096)

        assert stands(file) == "changed"

    def test_one_with_a_second_name_is_used_for_something_else(self, file: Path) -> None:
        leave_file(file)
        os.link(file, file.with_name("other"))

        assert stands(file) == "changed"

    def test_where_times_settle_late_the_content_decides(self, file: Path) -> None:
        leave_file(file, written_by_load(8192))
        os.utime(file, ns=(1, 1))

        assert (stands(file), stands(file, exact_times=False)) == ("changed", "ours")
        file.write_bytes(os.urandom(8192))
        assert stands(file, exact_times=False) == "changed"


class TestInUse:
    """A run was killed: what it was writing to may be written to again, and nothing that came into its place."""

    def test_what_load_writes_is_known_again(self, file: Path) -> None:
        leave_file(file, written_by_load(64 * 8192), in_use=True)

        assert stands(file) == "ours"

    def test_holes_and_zeros_are_nobodys(self, file: Path) -> None:
        leave_file(file, in_use=True)
        os.truncate(file, 1 << 40)

        assert stands(file) == "ours"

    @pytest.mark.parametrize("place", [0, 8192, 1 << 20, (2 << 20) - 512])
    def test_foreign_bytes_among_zeros_are_found_where_data_are(self, file: Path, place: int) -> None:
        leave_file(file, in_use=True)
        os.truncate(file, 2 << 20)
        write_into(file, b"precious" * 64, at=place)

        assert stands(file) == "changed"

    def test_a_copy_into_it_is_noticed(self, file: Path) -> None:
        leave_file(file, written_by_load(64 * 8192), in_use=True)
        file.write_bytes(os.urandom(64 * 8192))

        assert stands(file) == "changed"

    def test_a_part_of_it_overwritten_from_the_start_is_noticed(self, file: Path) -> None:
        leave_file(file, written_by_load(64 * 8192), in_use=True)
        write_into(file, b"MZ" * 256)

        assert stands(file) == "changed"


def test_the_mark_of_an_earlier_version_is_not_enough(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    try:
        os.setxattr(path, ownership.ATTRIBUTE, b"0" * 32)
    except OSError:
        pytest.skip("the temporary folder's file system has no extended attributes")

    assert stands(path) == "changed"


def test_attributes_that_were_copied_name_another_file(tmp_path: Path) -> None:
    leave_file(tmp_path / "f", b"x")
    other = tmp_path / "other"
    other.write_bytes(b"x")
    try:
        for name in (ownership.ATTRIBUTE, ownership.MARK_ATTRIBUTE):
            os.setxattr(other, name, os.getxattr(tmp_path / "f", name))
    except OSError:
        pytest.skip("the temporary folder's file system has no extended attributes")

    assert stands(other) == "changed"


def test_making_never_takes_over_an_existing_file(file: Path) -> None:
    file.write_bytes(b"precious")

    with pytest.raises(OpenFailed, match="cannot be created: File exists; check"):
        make(file)
    assert file.read_bytes() == b"precious"


def test_making_follows_no_link(file: Path) -> None:
    (file.parent / "real").mkdir()
    (file.parent / "folder").symlink_to("real")
    file.symlink_to("elsewhere")

    for path in (file, file.parent / "folder" / "f"):
        with pytest.raises(OpenFailed, match="cannot be created"):
            make(path)
    assert list((file.parent / "real").iterdir()) == []
    assert not (file.parent / "elsewhere").exists()


def test_what_was_made_is_unmade_with_its_mark(file: Path) -> None:
    descriptor = make(file)
    os.ftruncate(descriptor, 4096)

    assert unmade(file, descriptor)
    os.close(descriptor)
    assert list(file.parent.iterdir()) == []


def test_what_took_its_place_is_not(file: Path) -> None:
    descriptor = make(file)
    file.with_name("precious").write_bytes(b"precious")
    os.replace(file.with_name("precious"), file)

    assert not unmade(file, descriptor)
    file.rename(file.with_name("moved"))
    assert not unmade(file, descriptor)
    os.close(descriptor)
    assert file.with_name("moved").read_bytes() == b"precious"


def test_ours_is_known_through_a_symbolic_link(file: Path) -> None:
    create(file)
    (file.parent / "sub").mkdir()
    link = file.parent / "sub" / "link"
    link.symlink_to(file)

    assert is_ours(link)


def test_the_id_is_random_and_stays(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        leave_file(path, in_use=True)
    try:
        ids = [os.getxattr(path, ownership.ATTRIBUTE) for path in paths]
    except OSError:
        pytest.skip("the temporary folder's file system has no extended attributes")
    descriptor = os.open(paths[0], os.O_RDWR)
    mark(descriptor, paths[0], "at rest")
    os.close(descriptor)

    assert ids[0] != ids[1]
    assert os.getxattr(paths[0], ownership.ATTRIBUTE) == ids[0]


class TestSidecar:
    @pytest.fixture(autouse=True)
    def _no_attributes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        withhold_attributes(monkeypatch)

    def test_it_names_inode_and_size(self, tmp_path: Path) -> None:
        path = leave_file(tmp_path / "f", bytes(4096))

        content = json.loads((tmp_path / ".f.assay").read_text())
        assert (content["inode"], content["size_bytes"]) == (path.stat().st_ino, 4096)

    def test_it_is_void_for_another_inode(self, tmp_path: Path) -> None:
        path = leave_file(tmp_path / "f")
        other = tmp_path / "other"
        other.touch()
        os.replace(other, path)

        assert not is_ours(path)

    def test_it_does_not_follow_a_copy(self, tmp_path: Path) -> None:
        path = leave_file(tmp_path / "f", bytes(4096))
        shutil.copy(path, tmp_path / "g")
        shutil.copy(sidecar_path(path), sidecar_path(tmp_path / "g"))

        assert not is_ours(tmp_path / "g")

    def test_one_planted_beside_a_hard_link_counts_for_nothing(self, tmp_path: Path) -> None:
        precious = tmp_path / "precious.db"
        precious.write_bytes(b"precious")
        os.link(precious, tmp_path / "assay.dat")
        plant(tmp_path / "assay.dat")

        assert not is_ours(tmp_path / "assay.dat")

    def test_one_of_another_owner_counts_for_nothing(self, tmp_path: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("needs root to give a file to another user")
        (tmp_path / "f").write_bytes(b"precious")
        plant(tmp_path / "f")
        assert is_ours(tmp_path / "f")

        os.chown(sidecar_path(tmp_path / "f"), 65533, 65533)
        assert not is_ours(tmp_path / "f")

    @pytest.mark.parametrize("kind", ["link", "pipe", "hard link"])
    def test_one_that_is_no_plain_file_counts_for_nothing(self, tmp_path: Path, kind: str) -> None:
        (tmp_path / "f").write_bytes(b"precious")
        plant(tmp_path / "f")
        sidecar = sidecar_path(tmp_path / "f")
        if kind == "hard link":
            os.link(sidecar, tmp_path / "second")
        else:
            sidecar.rename(tmp_path / "real")
            os.mkfifo(sidecar) if kind == "pipe" else sidecar.symlink_to("real")

        assert not is_ours(tmp_path / "f")

    def test_a_stale_one_is_replaced(self, tmp_path: Path) -> None:
        path = leave_file(tmp_path / "f")
        sidecar = json.loads(sidecar_path(path).read_text())
        sidecar_path(path).write_text(json.dumps(sidecar | {"inode": 1}))
        descriptor = os.open(path, os.O_RDWR)
        mark(descriptor, path, "at rest")
        os.close(descriptor)

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

    @pytest.mark.parametrize("field", ["id", "inode", "size_bytes", "format", "state", "mtime_ns", "birth_ns", "run"])
    def test_a_field_that_is_missing_or_wrong_makes_it_void(self, tmp_path: Path, field: str) -> None:
        path = leave_file(tmp_path / "f")
        content = json.loads(sidecar_path(path).read_text())
        for damaged in ({key: value for key, value in content.items() if key != field}, content | {field: True}):
            sidecar_path(path).write_text(json.dumps(damaged))
            assert not is_ours(path)


def plant(path: Path) -> None:
    """Put a sidecar beside a file that says all that is true of it."""
    status = path.stat()
    descriptor = os.open(path, os.O_RDONLY)
    birth_ns = _core.file_identity(descriptor)[0]
    os.close(descriptor)
    facts = {"inode": status.st_ino, "birth_ns": birth_ns, "size_bytes": status.st_size, "mtime_ns": status.st_mtime_ns}
    text = json.dumps({"format": "assay-mark-2", "id": "0" * 32, "state": "at rest", "run": None} | facts)
    sidecar_path(path).write_text(text)


def test_a_full_file_system_is_out_of_space_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    withhold_attributes(monkeypatch, errno.ENOSPC)

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ownership, "create_anew", refuse)
    with pytest.raises(OutOfSpace, match="No space left on device; free some space"):
        create(tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


def test_a_file_made_is_its_users_alone(tmp_path: Path) -> None:
    create(tmp_path / "f")

    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600
