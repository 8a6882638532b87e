"""Making volumes ready: which size, what is laid out, what is given back when it fails."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import AssayError, Interrupted, OutOfSpace, RefusedTarget, UsageError
from assay.targets.files import choosing
from assay.targets.files import target as layout
from assay.targets.files.choosing import NULL_BYTES, choose_target
from assay.targets.files.ownership import create, is_ours
from assay.targets.files.spec import parse_targets
from assay.targets.files.target import StorageTarget, lay_out

MIB = 1 << 20
TIMEOUT_S = 30.0


def choose(*paths: Path | str, size: str | None = None, writes: bool = True, **more: Any) -> StorageTarget:
    specs = parse_targets([str(path) for path in paths], sizes=size)
    return choose_target(specs, **({"overwrite": [], "yes_destroy": [], "writes": writes} | more))


def lay_out_all(target: StorageTarget, interrupt: threading.Event | None = None) -> list[tuple[str, float, float]]:
    shown: list[tuple[str, float, float]] = []
    lay_out(
        target,
        io_timeout_s=TIMEOUT_S,
        interrupt=interrupt or threading.Event(),
        progress=lambda *progress: shown.append(progress),
    )
    return shown


class TestSize:
    def test_as_asked_in_whole_pages(self, tmp_path: Path) -> None:
        assert choose(tmp_path / "f", size="10M").sizes == {"f": 10 * MIB}
        assert choose(tmp_path / "f", size="10000").sizes == {"f": 8192}

    def test_of_a_new_file_is_a_share_of_the_free_space_within_bounds(self, tmp_path: Path) -> None:
        size_bytes = choose(tmp_path / "f", size_most_bytes=20 * MIB).sizes["f"]

        assert 16 * MIB <= size_bytes <= 20 * MIB
        assert size_bytes % MIB == 0

    def test_new_files_share_the_most_there_may_be(self, tmp_path: Path) -> None:
        sizes = choose(tmp_path / "f", tmp_path / "g", size_most_bytes=64 * MIB).sizes

        assert max(sizes.values()) <= 32 * MIB

    def test_of_an_existing_file_is_its_own_to_the_sector(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(os.urandom(MIB + 700))

        assert choose(tmp_path / "f", overwrite=[str(tmp_path / "f")]).sizes == {"f": MIB + 512}

    def test_twice_a_stated_cache(self, tmp_path: Path) -> None:
        assert choose(tmp_path / "f", size="2x-cache", cache_bytes=8 * MIB).sizes == {"f": 16 * MIB}

    def test_twice_the_memory_when_no_cache_is_stated_and_said(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(choosing, "memory_bytes", lambda: 8 * MIB)
        target = choose(tmp_path / "f", tmp_path / "g", size="2x-cache")

        assert set(target.sizes.values()) == {16 * MIB}
        (notice,) = target.notices
        assert "--cache-size" in notice

    def test_smaller_than_a_sector_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="smaller than a sector"):
            choose(tmp_path / "f", size="100")

    def test_of_a_device_that_is_none(self) -> None:
        assert choose("null:").sizes == {"null": NULL_BYTES}

    def test_more_than_there_is_room_for_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(OutOfSpace, match="--size"):
            choose(tmp_path / "f", size="900P")
        assert list(tmp_path.iterdir()) == []


class TestWhatIsLaidOut:
    def test_a_new_file_with_real_data_that_is_marked(self, tmp_path: Path) -> None:
        target = choose(tmp_path / "f", size="4M")
        assert (target.layout_bytes, (tmp_path / "f").exists()) == (4 * MIB, False)

        shown = lay_out_all(target)

        content = (tmp_path / "f").read_bytes()
        assert len(content) == 4 * MIB
        # Random bytes: none of the blocks is empty, and no two are alike.
        assert len({content[at : at + 4096] for at in range(0, len(content), 4096)} - {bytes(4096)}) == 1024
        assert is_ours(tmp_path / "f")
        assert shown[-1] == ("f", 4 * MIB, 4 * MIB)
        (facts,) = target.facts()["volumes"]
        assert (facts["state"], facts["bytes_laid_out"], facts["created_by_assay"]) == ("fresh", 4 * MIB, True)

    def test_its_own_full_file_not_again(self, tmp_path: Path) -> None:
        lay_out_all(choose(tmp_path / "f", size="4M"))
        before = (tmp_path / "f").read_bytes()
        target = choose(tmp_path / "f")

        assert target.to_lay_out == []
        assert lay_out_all(target) == []
        assert (tmp_path / "f").read_bytes() == before
        assert target.facts()["volumes"][0]["state"] == "written"

    def test_its_own_file_again_when_it_must_grow(self, tmp_path: Path) -> None:
        lay_out_all(choose(tmp_path / "f", size="1M"))
        lay_out_all(choose(tmp_path / "f", size="3M"))

        assert (tmp_path / "f").stat().st_size == 3 * MIB
        assert choose(tmp_path / "f").to_lay_out == []

    def test_a_smaller_part_of_a_full_file_needs_none(self, tmp_path: Path) -> None:
        lay_out_all(choose(tmp_path / "f", size="4M"))
        target = choose(tmp_path / "f", size="1M")

        assert (target.to_lay_out, target.sizes) == ([], {"f": MIB})
        assert (tmp_path / "f").stat().st_size == 4 * MIB

    def test_an_empty_file(self, tmp_path: Path) -> None:
        (tmp_path / "f").touch()
        lay_out_all(choose(tmp_path / "f", size="1M"))

        assert (tmp_path / "f").stat().st_size == MIB
        assert is_ours(tmp_path / "f")

    def test_a_permitted_file_that_stays_somebody_elses(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"x")
        os.truncate(tmp_path / "f", MIB)
        lay_out_all(choose(tmp_path / "f", overwrite=[str(tmp_path / "f")]))

        assert (tmp_path / "f").stat().st_size == MIB
        assert bytes(4096) not in (tmp_path / "f").read_bytes()
        assert not is_ours(tmp_path / "f")


class TestReadingAlone:
    """Work that only reads may use a file of others, which must not change by a byte."""

    def test_leaves_holes_and_says_so(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"precious")
        os.truncate(tmp_path / "f", MIB)
        target = choose(tmp_path / "f", writes=False)

        assert target.to_lay_out == []
        assert any("holes" in notice for notice in target.notices)
        lay_out_all(target)
        assert (tmp_path / "f").read_bytes() == b"precious" + bytes(MIB - 8)

    def test_does_not_grow_it(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(bytes(MIB))

        with pytest.raises(RefusedTarget, match="--overwrite"):
            choose(tmp_path / "f", size="2M", writes=False)

    def test_may_use_a_part_of_it(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(os.urandom(MIB))

        assert choose(tmp_path / "f", size="512K", writes=False).sizes == {"f": MIB // 2}

    def test_lays_out_what_is_new_empty_its_own_or_permitted(self, tmp_path: Path) -> None:
        (tmp_path / "empty").touch()
        (tmp_path / "permitted").write_bytes(b"x")
        create(tmp_path / "own")
        target = choose(
            *(tmp_path / name for name in ("new", "empty", "own", "permitted")),
            size="1M",
            writes=False,
            overwrite=[str(tmp_path / "permitted")],
        )

        assert [volume.spec.name for volume in target.to_lay_out] == ["new", "empty", "own", "permitted"]


class TestFailure:
    """Nothing half-made stays, and nothing that was there goes."""

    def files(self, tmp_path: Path) -> StorageTarget:
        (tmp_path / "empty").touch()
        create(tmp_path / "own")
        return choose(*(tmp_path / name for name in ("empty", "own", "new")), size="1M")

    def expect_as_before(self, tmp_path: Path) -> None:
        sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir() if not path.name.startswith(".")}
        assert sizes == {"empty": 0, "own": 0}
        assert is_ours(tmp_path / "own")

    def test_when_interrupted(self, tmp_path: Path) -> None:
        interrupt = threading.Event()
        interrupt.set()

        with pytest.raises(Interrupted, match="is removed"):
            lay_out_all(self.files(tmp_path), interrupt)
        self.expect_as_before(tmp_path)

    @pytest.mark.parametrize("error", [OutOfSpace("full"), KeyboardInterrupt(), RuntimeError("unforeseen")])
    def test_whatever_went_wrong(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
        done: list[str] = []

        def fail_at_the_last(_session: object, name: str, *_: object) -> None:
            done.append(name)
            if name == "new":
                raise error

        monkeypatch.setattr(layout, "_watch", fail_at_the_last)
        with pytest.raises(type(error)):
            lay_out_all(self.files(tmp_path))
        assert done == ["empty", "own", "new"]
        self.expect_as_before(tmp_path)

    def test_a_file_somebody_made_meanwhile_is_left_alone(self, tmp_path: Path) -> None:
        target = choose(tmp_path / "f", size="1M")
        (tmp_path / "f").write_bytes(b"precious")

        with pytest.raises(AssayError, match="exists"):
            lay_out_all(target)
        assert (tmp_path / "f").read_bytes() == b"precious"


class TestRoles:
    def test_one_file_named_for_several_roles_is_one_volume(self, tmp_path: Path) -> None:
        specs = parse_targets([], volumes=[f"data={tmp_path / 'f'},log={tmp_path / 'f'},tempdb={tmp_path / 't'}"])
        target = choose_target(specs, overwrite=[], yes_destroy=[], writes=True, size_most_bytes=64 * MIB)

        assert {volume.name: volume.roles for volume in target.volumes} == {"f": ("data", "log"), "t": ("tempdb",)}
        assert [volume["role"] for volume in target.facts()["volumes"]] == ["data+log", "tempdb"]

    def test_null_devices_are_volumes_of_their_own(self) -> None:
        assert [volume.name for volume in choose("null:", "null:").volumes] == ["null", "null-2"]
