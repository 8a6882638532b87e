"""From the volumes of a target to the files of the imitated database, and to what the compiled core takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import _core
from assay.base.errors import OutOfMemory, RefusedTarget, UsageError
from assay.run.request import TargetRequest
from assay.targets.files.target import StorageTarget
from assay.workloads.integrity import core_plan as integrity_plan
from assay.workloads.integrity.core_plan import check_memory, narrowed, verify_plan
from assay.workloads.integrity.files import PlacedFile, make_files, place_files, tidy_files
from assay.workloads.plan import Part
from assay.workloads.registry import workload_named
from own_files import leave_file

INTEGRITY_KIND = workload_named("integrity")

MIB, GIB = 1 << 20, 1 << 30


@pytest.fixture(autouse=True)
def little_memory_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "verify_memory", lambda _: MIB, raising=False)


def choose(
    *paths: str | Path, plan: dict[str, Any] | None = None, **asked: Any
) -> tuple[StorageTarget, list[PlacedFile]]:
    part = Part(name="integrity", title="T", plan=INTEGRITY_KIND.load_plan(plan or {}, source="plan"))
    target = TargetRequest(paths=[str(path) for path in paths], database=True, **asked).choose([part])
    return target, place_files(target, INTEGRITY_KIND.load_plan(plan or {}, source="plan"))


def shown(files: list[PlacedFile]) -> list[tuple[str, bool, int, int]]:
    return [(file.name, file.log, file.base_bytes // MIB, file.size_bytes // MIB) for file in files]


class TestPlaces:
    def test_a_folder_holds_a_data_and_a_log_file(self, tmp_path: Path) -> None:
        _, files = choose(tmp_path, size="512M")

        assert shown(files) == [("assay.dat", False, 0, 512), ("assay-log.dat", True, 0, 51)]
        assert [file.path for file in files] == [tmp_path / "assay.dat", tmp_path / "assay-log.dat"]

    def test_a_log_has_at_least_16_mib_and_its_own_size_where_given(self, tmp_path: Path) -> None:
        assert shown(choose(tmp_path, size="32M")[1])[1] == ("assay-log.dat", True, 0, 16)
        assert shown(choose(tmp_path, size="data=32M,log=4M")[1])[1] == ("assay-log.dat", True, 0, 4)

    @pytest.mark.parametrize(
        ("size", "log", "data"), [("1000M", 100, 900), ("64M", 8, 56), ("16M", 8, 8), ("10M", 5, 5), ("2M", 1, 1)]
    )
    def test_a_single_file_begins_with_the_log(self, tmp_path: Path, size: str, log: int, data: int) -> None:
        _, files = choose(tmp_path / "f", size=size)

        assert shown(files) == [("f", False, log, data), ("f-log", True, 0, log)]
        assert {file.path for file in files} == {tmp_path / "f"}

    def test_volumes_are_taken_by_role(self, tmp_path: Path) -> None:
        volumes = [f"data={tmp_path}/d,log={tmp_path}/l,tempdb={tmp_path}/t"]

        _, files = choose(volumes=volumes, size="data=8M,log=4M,tempdb=2M")

        assert shown(files) == [("d", False, 0, 8), ("l", True, 0, 4), ("t", False, 0, 2)]

    def test_two_roles_on_one_path_share_it(self, tmp_path: Path) -> None:
        _, files = choose(volumes=[f"data={tmp_path}/f,log={tmp_path}/f"], size="64M")

        assert shown(files) == [("f", False, 8, 56), ("f-log", True, 0, 8)]

    @given(size=st.integers(2 * MIB, 64 * GIB))
    def test_nothing_overlaps_or_reaches_beyond_the_volume(self, size: int) -> None:
        from assay.workloads.integrity.files import _shared_log_bytes

        log = _shared_log_bytes(size)

        assert log % MIB == 0
        assert MIB <= log <= min(size // 2, GIB)

    @pytest.mark.parametrize("size", ["1M", "1900K", "4K"])
    def test_a_volume_too_small_for_both_is_refused(self, tmp_path: Path, size: str) -> None:
        with pytest.raises(UsageError, match=r"needs at least 1 MiB; give a larger --size"):
            choose(tmp_path / "f", size=size)

    def test_a_log_too_small_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="leaves 512 KiB for the log"):
            choose(tmp_path, size="data=8M,log=512K")

    def test_a_log_alone_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no data volume"):
            choose(volumes=[f"log={tmp_path}/l"], size="8M")

    def test_null_is_refused(self) -> None:
        with pytest.raises(UsageError, match="null: keeps nothing that could be verified"):
            choose("null:")

    def test_page_numbers_bound_the_size(self, tmp_path: Path) -> None:
        files = [{"path": f"{tmp_path}/d", "size_bytes": (32 << 40) - 8192, "sparse": True},
                 {"path": f"{tmp_path}/l", "size_bytes": "8M", "log": True}]  # fmt: skip

        assert choose(plan={"files": files})[1][0].pages == (1 << 32) - 1
        with pytest.raises(UsageError, match="more than the 32 TiB that page numbers reach"):
            choose(tmp_path, size="data=33T,log=8M", plan={"sparse": True})


class TestGrowth:
    def test_files_of_assays_own_may_double_by_twentieths(self, tmp_path: Path) -> None:
        data, log = choose(tmp_path, size="100M")[1]

        assert (data.max_bytes, data.increment_bytes) == (200 * MIB, 5 * MIB)
        assert (log.max_bytes, log.increment_bytes) == (log.size_bytes, 0)

    def test_a_part_after_the_log_may_grow_too(self, tmp_path: Path) -> None:
        data = choose(tmp_path / "f", size="64M")[1][0]

        assert data.max_bytes == 2 * data.size_bytes

    def test_foreign_files_keep_their_size(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(bytes(16 * MIB))

        files = choose(tmp_path / "f", overwrite=[str(tmp_path / "f")])[1]

        assert not any(file.can_grow for file in files)

    @pytest.mark.parametrize("plan", [{"shrink": {"users": 0}}, {"shrinkable": False}])
    def test_a_plan_may_forbid_it(self, tmp_path: Path, plan: dict[str, Any]) -> None:
        assert not choose(tmp_path, size="64M", plan=plan)[1][0].can_grow

    def test_free_space_bounds_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from assay.workloads.integrity import files as integrity_files

        monkeypatch.setattr(integrity_files, "usable_bytes", lambda *_: 30 * MIB)
        assert choose(tmp_path, size="100M")[1][0].max_bytes == 130 * MIB
        monkeypatch.setattr(integrity_files, "usable_bytes", lambda *_: 4 * MIB)
        assert not choose(tmp_path, size="100M")[1][0].can_grow

    def test_without_files_that_may_change_nobody_shrinks(self, tmp_path: Path) -> None:
        plan = INTEGRITY_KIND.load_plan({"shrinkable": False}, source="plan")
        fixed = choose(tmp_path, size="64M", plan={"shrinkable": False})[1]

        assert verify_plan(plan, fixed, run_id=1)["shrink"]["users"] == 0
        assert verify_plan(plan, choose(tmp_path, size="64M")[1], run_id=1)["shrink"]["users"] == 1


class TestFilesOfAPlan:
    @staticmethod
    def files(folder: Path, **data: Any) -> dict[str, Any]:
        one = {"path": f"{folder}/a.mdx", "size_bytes": "8M", **data}
        return {"files": [one, {"path": f"{folder}/a.ldx", "size_bytes": "4M", "log": True}]}

    def test_they_are_the_target_where_none_is_named(self, tmp_path: Path) -> None:
        target, files = choose(plan=self.files(tmp_path))

        assert shown(files) == [("a.mdx", False, 0, 8), ("a.ldx", True, 0, 4)]
        assert not any(file.can_grow for file in files)
        assert target.layout_bytes == 0

    def test_they_grow_as_they_say(self, tmp_path: Path) -> None:
        growing = {"max_bytes": "24M", "increment_bytes": "2M", "shrinkable": True}

        data = choose(plan=self.files(tmp_path, **growing))[1][0]

        assert (data.max_bytes, data.increment_bytes) == (24 * MIB, 2 * MIB)

    def test_sparse_ones_take_no_space(self, tmp_path: Path) -> None:
        plan = self.files(tmp_path, sparse=True, size_bytes="1T")
        target, files = choose(plan=plan)

        make_files(target, files, INTEGRITY_KIND.load_plan(plan, source="plan"))

        status = (tmp_path / "a.mdx").stat()
        # A block at most, for the mark.
        assert (status.st_size, status.st_blocks * 512 <= 4096) == (1 << 40, True)
        assert (tmp_path / "a.ldx").stat().st_blocks * 512 >= 4 * MIB

    def test_the_rules_of_any_target_hold_for_them(self, tmp_path: Path) -> None:
        (tmp_path / "a.mdx").write_text("somebody's")

        with pytest.raises(RefusedTarget, match="that Assay did not write"):
            choose(plan=self.files(tmp_path))
        assert (tmp_path / "a.mdx").read_text() == "somebody's"

    @pytest.mark.parametrize("path", ["/etc/hostname", "/proc/cpuinfo", "/no-such-folder/a.mdx", "/dev/null"])
    def test_what_may_not_be_written_is_refused(self, tmp_path: Path, path: str) -> None:
        plan = self.files(tmp_path, path=path)

        with pytest.raises(RefusedTarget, match=path):
            choose(plan=plan)
        assert list(tmp_path.iterdir()) == []

    def test_links_to_one_file_are_found(self, tmp_path: Path) -> None:
        (tmp_path / "a.ldx").symlink_to(tmp_path / "a.mdx")

        with pytest.raises(UsageError, match="are the same; give each file once"):
            choose(plan=self.files(tmp_path))

    def test_a_size_beside_them_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="have sizes of their own"):
            choose(plan=self.files(tmp_path), size="1G")


class TestMaking:
    @pytest.mark.parametrize(("keys", "begins"), [({}, bytes(6)), ({"delete_at_startup": False}, b"before")])
    def test_what_an_earlier_run_left_is_emptied_unless_the_plan_keeps_it(
        self, tmp_path: Path, keys: dict[str, bool], begins: bytes
    ) -> None:
        leave_file(tmp_path / "f", b"before" + bytes(4 * MIB - 6))

        make_files(*choose(tmp_path / "f", size="4M"), INTEGRITY_KIND.load_plan(keys, source="plan"))

        assert (tmp_path / "f").read_bytes() == begins + bytes(4 * MIB - 6)

    def test_of_a_foreign_file_nothing_is_cut(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"x" * 8 * MIB)

        make_files(*choose(tmp_path / "f", size="4M", overwrite=[str(tmp_path / "f")]),
                   INTEGRITY_KIND.load_plan({}, source="plan"))  # fmt: skip

        assert (tmp_path / "f").read_bytes() == b"x" * 8 * MIB

    def test_nothing_is_left_of_files_that_cannot_be_made(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target, files = choose(tmp_path, size="4M")

        def refuse(*_: object) -> None:
            raise UsageError("no")

        monkeypatch.setattr(_core, "allocate", refuse)
        with pytest.raises(UsageError):
            make_files(target, files, INTEGRITY_KIND.load_plan({}, source="plan"))
        assert list(tmp_path.iterdir()) == []


class TestUsers:
    def test_numbers_left_open_are_chosen_by_the_cpus(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(integrity_plan.os, "sched_getaffinity", lambda _: set(range(3)))
        plan = INTEGRITY_KIND.load_plan({"audit": {"users": -1}}, source="plan")

        made = verify_plan(plan, choose(tmp_path, size="64M")[1], run_id=1)

        kinds = ("random", "bulk_update", "audit", "read_ahead")
        assert [made[kind]["users"] for kind in kinds] == [6, 3, 2, 2]
        assert made["max_outstanding"] == 256

    def test_what_does_not_fit_small_files_is_narrowed_and_said(self, tmp_path: Path) -> None:
        plan = INTEGRITY_KIND.load_plan({}, source="plan")
        files = choose(tmp_path, size="data=2M,log=1M")[1]

        made = verify_plan(plan, files, run_id=1)

        assert made["bulk_update"]["pages_max"] == made["random"]["chain_max"] == 64
        assert made["audit"]["pages"] == 64
        assert [line.split(" are ")[0] for line in narrowed(plan, files)] == [
            "chains of the random users", "bulk updates"
        ]  # fmt: skip

    def test_times_are_in_nanoseconds_and_the_pool_is_no_larger_than_the_data(self, tmp_path: Path) -> None:
        plan = INTEGRITY_KIND.load_plan({"timing": {"stress_s": "1.5s", "long_io_s": 3}}, source="plan")

        made = verify_plan(plan, choose(tmp_path, size="16M")[1], run_id=7)

        assert (made["stress_ns"], made["long_io_ns"], made["run_id"]) == (1_500_000_000, 3_000_000_000, 7)
        assert made["pool_bytes"] == 16 * MIB
        json.dumps(made)


class TestMemory:
    @pytest.fixture(autouse=True)
    def of_24_bytes_a_page(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def needed(text: str) -> int:
            return sum(file["max_bytes"] // 8192 * 24 for file in json.loads(text)["files"]) + 64 * 1024

        monkeypatch.setattr(_core, "verify_memory", needed, raising=False)

    def test_enough_is_enough(self, tmp_path: Path) -> None:
        files = choose(tmp_path, size="64M")[1]

        check_memory(INTEGRITY_KIND.load_plan({}, source="plan"), files)

    def test_too_little_names_what_is_needed_what_there_is_and_what_fits(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        files = choose(tmp_path, size="1G", plan={"shrinkable": False})[1]
        monkeypatch.setattr(integrity_plan, "free_memory_bytes", lambda: 2 * MIB)

        plan = INTEGRITY_KIND.load_plan({"shrinkable": False}, source="plan")
        with pytest.raises(
            OutOfMemory, match=r"need 3\.\d+ MiB of memory, 2 MiB may be had; give --size (\d+)M"
        ) as why:
            check_memory(plan, files)
        fits = int(str(why.value).split("--size ")[1].split("M")[0])
        assert 500 < fits < 660
        check_memory(plan, choose(tmp_path, size=f"{fits}M", plan={"shrinkable": False})[1])

    def test_where_nothing_fits_no_size_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        files = choose(tmp_path, size="64M")[1]
        monkeypatch.setattr(integrity_plan, "free_memory_bytes", lambda: 1024)

        with pytest.raises(OutOfMemory, match="free some memory"):
            check_memory(INTEGRITY_KIND.load_plan({}, source="plan"), files)

    def test_it_is_refused_before_anything_is_made(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(integrity_plan, "free_memory_bytes", lambda: 1024)

        with pytest.raises(OutOfMemory):
            choose(tmp_path, size="64M")
        assert list(tmp_path.iterdir()) == []


class TestOthersRefuse:
    def test_faulty_is_for_integrity_alone(self, tmp_path: Path) -> None:
        from assay.workloads.io.plan import load_plan

        part = Part(name="p", title="P", plan=load_plan({}, source="plan"))
        with pytest.raises(UsageError, match=r"faulty:\.\.\. injects faults, which only `assay verify` looks for"):
            TargetRequest(paths=[f"faulty:{tmp_path}/f?torn=0.1"], size="16M").choose([part])

    def test_faults_are_for_all_volumes_alike(self, tmp_path: Path) -> None:
        for log in (f"{tmp_path}/l", f"faulty:{tmp_path}/l?torn=0.2"):
            with pytest.raises(UsageError, match="give each the same options"):
                choose(volumes=[f"data=faulty:{tmp_path}/d?torn=0.1", f"log={log}"], size="16M")

    def test_faulty_has_the_rules_of_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_text("somebody's")

        with pytest.raises(RefusedTarget, match="that Assay did not write"):
            choose(f"faulty:{tmp_path}/f?torn=0.1", size="16M")


class TestJournals:
    def test_it_must_not_exist(self, tmp_path: Path) -> None:
        (tmp_path / "j").write_text("")

        with pytest.raises(RefusedTarget, match="exists; check it with --after-crash"):
            choose(tmp_path / "f", size="16M", crash_journal=str(tmp_path / "j"))

    def test_its_folder_must(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=f"there is no folder {tmp_path}/none"):
            choose(tmp_path / "f", size="16M", crash_journal=str(tmp_path / "none/j"))

    def test_it_is_not_the_target(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="is the target itself"):
            choose(tmp_path / "f", size="16M", crash_journal=str(tmp_path / "f"))

    def test_on_the_same_file_system_it_is_taken_with_a_notice(self, tmp_path: Path) -> None:
        target, _ = choose(tmp_path / "f", size="16M", crash_journal=str(tmp_path / "j"))

        assert target.journal == tmp_path / "j"
        assert any("what takes one may take both" in notice for notice in target.notices)

    @pytest.mark.parametrize(("content", "message"), [(None, "is no file"), (b"", "is empty")])
    def test_one_to_be_checked_must_hold_something(self, tmp_path: Path, content: bytes | None, message: str) -> None:
        (tmp_path / "f").write_bytes(bytes(4 * MIB))
        if content is not None:
            (tmp_path / "j").write_bytes(content)

        with pytest.raises(UsageError, match=message):
            choose(tmp_path / "f", after_crash=str(tmp_path / "j"))

    def test_after_a_crash_the_target_must_be_there(self, tmp_path: Path) -> None:
        (tmp_path / "j").write_bytes(b"journal")

        with pytest.raises(UsageError, match="does not exist; name the target of the run that crashed"):
            choose(tmp_path / "f", size="16M", after_crash=str(tmp_path / "j"))


def test_a_file_of_which_a_part_uses_the_beginning_keeps_its_size(tmp_path: Path) -> None:
    for plan in ({}, {"most_bytes": 16 * MIB}):
        target, files = choose(tmp_path / "f", size=None if plan else "64M", plan=plan)
        make_files(target, files, INTEGRITY_KIND.load_plan(plan, source="plan"))
        tidy_files(target, files, INTEGRITY_KIND.load_plan(plan, source="plan"), keep=False)
        target.settle()

    assert (tmp_path / "f").stat().st_size == 64 * MIB
