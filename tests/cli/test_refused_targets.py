"""Targets that must not be written to, and file systems without room: nothing is lost and nothing half-made stays."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from assay.base.extras import are_installed

if TYPE_CHECKING:
    from assay_command import Bench

MIB = 1 << 20
SHORT = ("--queue-depth", "1", "--warmup", "0s", "--duration", "0.3s")


class TestFolders:
    def test_a_missing_folder_is_named(self, bench: Bench) -> None:
        outcome = bench.profile(bench.target.parent / "none" / "f", "--size", "16M", *SHORT)

        assert outcome.code == 2
        assert f"{bench.target.parent / 'none'} does not exist" in outcome.complaint
        assert bench.made() == []

    def test_a_missing_folder_to_assess_is_named(self, bench: Bench) -> None:
        outcome = bench.assay("assess", "none", "--quick", "-o", bench.results)

        assert (outcome.code, "none: is not a folder" in outcome.complaint) == (2, True)
        assert bench.made() == []

    def test_a_read_only_file_system_is_refused(self, bench: Bench, mounted: Callable[..., Path]) -> None:
        point = mounted("-t", "tmpfs", "-o", "ro,size=32m", "none")

        outcome = bench.profile(point / "f.dat", "--size", "16M", *SHORT)

        assert (outcome.code, "mounted read-only" in outcome.complaint) == (2, True)
        assert bench.made() == []

    def test_a_folder_one_may_not_write_to_is_refused(self, public_bench: Bench, as_nobody: list[str]) -> None:
        public_bench.target.parent.chmod(0o555)

        outcome = public_bench.profile(public_bench.target, "--size", "16M", *SHORT, prefix=as_nobody)

        assert (outcome.code, "no permission to create files" in outcome.complaint) == (2, True)
        assert public_bench.made() == []

    @pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
    def test_an_unprivileged_user_measures_in_a_folder_of_his_own(
        self, public_bench: Bench, as_nobody: list[str]
    ) -> None:
        outcome = public_bench.profile(public_bench.target, "--size", "16M", *SHORT, prefix=as_nobody)

        assert outcome.code == 0
        assert public_bench.target.stat().st_size == 16 * MIB


class TestExistingFiles:
    def test_a_file_assay_did_not_make_is_refused_and_keeps_its_content(self, bench: Bench) -> None:
        content = os.urandom(MIB)
        bench.target.write_bytes(content)

        outcome = bench.profile(bench.target, *SHORT)

        assert outcome.code == 2
        assert "that Assay did not write" in outcome.complaint
        assert f"--overwrite {bench.target}" in outcome.complaint
        assert bench.target.read_bytes() == content
        assert bench.made() == ["target/f.dat"]

    def test_another_file_named_by_overwrite_permits_nothing(self, bench: Bench) -> None:
        bench.target.write_bytes(b"x" * MIB)
        other = bench.target.with_name("other")

        assert bench.profile(bench.target, *SHORT, "--overwrite", other).code == 2
        assert bench.target.read_bytes() == b"x" * MIB

    def test_overwrite_writes_to_it_and_keeps_its_size(self, bench: Bench) -> None:
        content = os.urandom(MIB + 512)
        bench.target.write_bytes(content)

        assert bench.profile(bench.target, *SHORT, "--read", "0", "--overwrite", bench.target).code == 0

        assert bench.target.stat().st_size == len(content)
        assert bench.target.read_bytes() != content

    def test_reading_alone_needs_no_permission_and_changes_nothing(self, bench: Bench) -> None:
        content = os.urandom(MIB)
        bench.target.write_bytes(content)

        assert bench.profile(bench.target, *SHORT, "--read", "100").code == 0
        assert bench.target.read_bytes() == content

    def test_reading_alone_fills_no_holes(self, bench: Bench) -> None:
        with bench.target.open("wb") as file:
            file.write(b"precious")
            file.truncate(16 * MIB)

        outcome = bench.measure(bench.target, "--queue-depth", "1", "--read", "100")

        assert outcome.code == 0
        assert bench.target.read_bytes() == b"precious" + bytes(16 * MIB - 8)
        assert bench.target.stat().st_blocks * 512 < MIB
        assert any("files with holes are read as they are" in notice for notice in outcome.document["notices"])

    def test_reading_alone_does_not_grow_a_file_of_others(self, bench: Bench) -> None:
        content = os.urandom(MIB)
        bench.target.write_bytes(content)

        outcome = bench.profile(bench.target, *SHORT, "--read", "100", "--size", "16M")

        assert outcome.code == 2
        assert f"--overwrite {bench.target}" in outcome.complaint
        assert bench.target.read_bytes() == content
        assert bench.made() == ["target/f.dat"]

    def test_a_file_smaller_than_a_sector_is_refused(self, bench: Bench) -> None:
        bench.target.write_bytes(b"precious")

        outcome = bench.profile(bench.target, *SHORT, "--read", "100")

        assert (outcome.code, "8 bytes are smaller than a sector" in outcome.complaint) == (2, True)

    def test_its_own_file_is_used_again_without_laying_it_out(self, bench: Bench) -> None:
        first = bench.measure(bench.target, "--size", "16M", "--queue-depth", "1").document
        second = bench.measure(bench.target, "--queue-depth", "1").document

        states = [run["target"]["volumes"][0] for run in (first, second)]
        assert [(state["state"], state["bytes_laid_out"]) for state in states] == [
            ("fresh", 16 * MIB),
            ("written", 0),
        ]


class TestDevices:
    def test_a_mounted_device_is_refused_whatever_is_allowed(
        self,
        bench: Bench,
        loop_device: Callable[[int], Path],
        mounted: Callable[..., Path],
        run_tool: Callable[..., str],
    ) -> None:
        device = loop_device(16 * MIB)
        run_tool("mkfs.ext4", "-q", device)
        point = mounted(device)
        (point / "precious").write_text("mine")

        outcome = bench.profile(device, *SHORT, "--overwrite", device, "--yes-destroy", device)

        assert (outcome.code, "mounted" in outcome.complaint) == (2, True)
        assert (point / "precious").read_text() == "mine"
        assert bench.made() == []

    def test_a_device_with_a_file_system_needs_both_permissions(
        self, bench: Bench, loop_device: Callable[[int], Path], run_tool: Callable[..., str], tmp_path: Path
    ) -> None:
        device = loop_device(16 * MIB)
        run_tool("mkfs.ext4", "-q", device)
        before = (tmp_path / "image0").read_bytes()

        for permissions in ((), ("--overwrite", device), ("--yes-destroy", device)):
            outcome = bench.profile(device, *SHORT, *permissions)
            assert outcome.code == 2
            for word in ("ext4", f"--overwrite {device}", f"--yes-destroy {device}"):
                assert word in outcome.complaint
        assert (tmp_path / "image0").read_bytes() == before
        assert bench.made() == []

        assert bench.profile(device, *SHORT, "--overwrite", device, "--yes-destroy", device).code == 0


class TestFullFileSystem:
    def test_space_is_checked_before_anything_is_written(self, bench: Bench, mounted: Callable[..., Path]) -> None:
        point = mounted("-t", "tmpfs", "-o", "size=32m", "none")

        outcome = bench.profile(point / "f.dat", "--size", "64M", *SHORT)

        assert outcome.code == 3
        for word in ("64 MiB", "32 MiB", "--size"):
            assert word in outcome.complaint
        assert (list(point.iterdir()), bench.made()) == ([], [])

    def test_two_volumes_of_one_file_system_need_room_for_both(
        self, bench: Bench, mounted: Callable[..., Path]
    ) -> None:
        point = mounted("-t", "tmpfs", "-o", "size=32m", "none")

        outcome = bench.profile(point / "a.dat", point / "b.dat", "--size", "20M", *SHORT)

        assert (outcome.code, "40 MiB" in outcome.complaint) == (3, True)
        assert list(point.iterdir()) == []

    @pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
    def test_one_that_becomes_full_during_layout_is_left_as_it_was(
        self,
        bench: Bench,
        loop_device: Callable[[int], Path],
        mounted: Callable[..., Path],
        run_tool: Callable[..., str],
    ) -> None:
        # ext2 cannot reserve space, so that only writing shows that there is none.
        device = loop_device(512 * MIB)
        run_tool("mkfs.ext2", "-q", "-m", "0", device)
        point = mounted(device)
        target, filler = point / "f.dat", point / "filler"
        arguments = ("profile", target, "--size", "400M", *SHORT, "--no-report", "-o", bench.results, "--json")
        with bench.started(*arguments) as running:
            running.wait_until(lambda: target.exists() and target.stat().st_size == 400 * MIB, every_s=0.001)
            running.process.send_signal(signal.SIGSTOP)
            if target.stat().st_blocks * 512 >= 390 * MIB:
                pytest.skip("the layout was over before the file system could be filled")
            fill(filler)
            running.process.send_signal(signal.SIGCONT)
            outcome = running.end()

        assert outcome.code == 3
        (line,) = [line for line in outcome.stderr.splitlines() if line.startswith("assay: ")]
        assert "became full while laying out" in line
        assert not target.exists()
        assert [path.name for path in point.iterdir() if path.name != "lost+found"] == ["filler"]
        assert (outcome.document["status"], outcome.document["points"]) == ("failed", [])

    def test_a_file_that_was_there_gets_its_size_back(self, bench: Bench, mounted: Callable[..., Path]) -> None:
        point = mounted("-t", "tmpfs", "-o", "size=64m", "none")
        (point / "f.dat").touch()
        (point / "g.dat").touch()

        arguments = ("profile", point / "f.dat", point / "g.dat", "--size", "28M", "--backend", "threads", *SHORT)
        with bench.started(*arguments, "--no-report", "-o", bench.results) as running:
            running.wait_until(lambda: (point / "f.dat").stat().st_size > 0, every_s=0.001)
            running.process.send_signal(signal.SIGINT)
            outcome = running.end()

        assert outcome.code == 130
        if "laying out" not in outcome.stderr.splitlines()[-2]:
            pytest.skip("the layout was over before it could be interrupted")
        assert [(point / name).stat().st_size for name in ("f.dat", "g.dat")] == [0, 0]


def fill(path: Path) -> None:
    """Write until the file system is full."""
    block = bytes(MIB)
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(block)
        except OSError:
            while True:
                try:
                    file.write(block[:1024])
                except OSError:
                    break
        os.fsync(file.fileno())


class TestNewFiles:
    @pytest.mark.parametrize("verb", ["profile", "verify", "mailbox"])
    def test_a_name_that_does_not_exist_is_no_file_unless_it_is_named_as_one(self, bench: Bench, verb: str) -> None:
        outcome = bench.assay(verb, "nodir", "--size" if verb != "mailbox" else "--mailbox-size", "8M", "--dry-run")

        assert outcome.code == 2
        assert "make the folder (mkdir -p" in outcome.complaint
        assert "--create" in outcome.complaint
        assert bench.made() == []

    @pytest.mark.parametrize("asked", [["nodir", "--create"], ["new.dat"]])
    def test_a_suffix_or_an_option_asks_for_a_file(self, bench: Bench, asked: list[str]) -> None:
        assert bench.profile(*asked, "--size", "8M", *SHORT).code == 0
        assert (bench.folder / asked[0]).stat().st_size == 8 * MIB
        assert bench.profile(asked[0], "--size", "8M", *SHORT).code == 0, "what Assay made it takes again"

    def test_a_device_without_its_folder_is_asked_back(self, bench: Bench) -> None:
        device = next(iter(sorted(os.listdir("/sys/class/block"))), None)
        if device is None:
            pytest.skip("this machine shows no block device")
        outcome = bench.profile(device, "--size", "8M", *SHORT)

        assert outcome.code == 2
        assert f"for the device give /dev/{device}" in outcome.complaint

    @pytest.mark.parametrize("folder", ["/etc", "/", "/usr/bin", "/boot/../etc"])
    def test_folders_of_the_system_hold_no_file_of_ours(self, bench: Bench, folder: str) -> None:
        outcome = bench.profile(folder, "--size", "8M", "--create", "--dry-run")

        assert outcome.code == 2
        assert "is a folder of the system" in outcome.complaint or "no permission" in outcome.complaint

    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            (
                ["verify", "v.dat", "--size", "16M", "--duration", "1s"],
                "preparing writes 16 MiB to {}/v.dat; results in",
            ),
            (
                ["dss", "tpch", "duckdb:t.duckdb", "load", "--scale", "0.01"],
                "loading writes up to about 20.03 MiB to duckdb:t.duckdb; results in",
            ),
            (
                ["study", "run", "block-and-mix", "model:ps6100xv"],
                "of the model's time, which passes some hundred times faster; results in",
            ),
            (["record", "rec", "--for", "1s", "--no-processes"], "recording every 1s, at most 2GB, into rec for 1s"),
        ],
        ids=lambda value: value[0] if isinstance(value, list) else "",
    )
    def test_every_verb_says_what_it_will_write_and_where(self, bench: Bench, asked: list[str], said: str) -> None:
        options = [] if asked[0] == "record" else ["--no-report", "-o", str(bench.results)]

        with bench.started(*asked, *options) as run:
            run.wait_until(lambda: said.format(bench.folder) in run.stderr)

    def test_a_run_says_first_what_it_is_about_to_do(self, bench: Bench) -> None:
        outcome = bench.assay("profile", bench.target, "--size", "8M", *SHORT, "--no-report", "-o", bench.results)

        first = outcome.stderr.splitlines()[0]
        assert first.startswith("at least 1 point; 0.3 s, layout and report apart; layout writes 8 MiB to ")
        assert str(bench.results) in first
        again = bench.profile(bench.target, "--size", "8M", *SHORT, "--quiet")
        assert "at least" not in again.stderr


class TestMistypedNames:
    """A name that stands for nothing is refused in one line, and nothing gets it."""

    @pytest.mark.parametrize(
        "asked",
        [
            ["oltp", "tpcc", "embedded:./typo", "run"],
            ["oltp", "tpcc", "embedded:./typo", "drop"],
            ["oltp", "tpcc", "embedded+array:ps6100xv", "restore"],
            ["oltp", "brokerage", "embedded:./typo", "run", "check"],
            ["dss", "tpch", "embedded:./typo", "run"],
            ["dss", "tpch", "duckdb:typo.duckdb", "check"],
            pytest.param(
                ["dss", "tpch", "spark-local:./typo", "run"],
                marks=pytest.mark.skipif(not are_installed("pyspark"), reason="what is missing is said first"),
            ),
        ],
        ids=" ".join,
    )
    def test_databases_are_made_by_loading_alone(self, bench: Bench, asked: list[str]) -> None:
        outcome = bench.assay(*asked)

        assert (outcome.code, "no such database" in outcome.complaint) == (2, True)
        assert asked[2] in outcome.complaint
        assert [path.name for path in bench.folder.iterdir()] == ["target"]

    def test_an_empty_folder_is_no_database(self, bench: Bench) -> None:
        (bench.folder / "pg").mkdir()

        outcome = bench.assay("oltp", "tpcc", "embedded:./pg", "run")

        assert (outcome.code, "no such database" in outcome.complaint) == (2, True)
        assert list((bench.folder / "pg").iterdir()) == []

    def test_sqlio_makes_files_with_a_suffix(self, bench: Bench) -> None:
        outcome = bench.assay("sqlio", "-kR", "-s1", "-frandom", "./nodir")

        assert (outcome.code, "does not exist" in outcome.complaint) == (2, True)
        assert [path.name for path in bench.folder.iterdir()] == ["target"]

    def test_files_that_cannot_be_imported_leave_no_folder_of_results(self, bench: Bench) -> None:
        outcome = bench.assay("import", "nofile", "-o", bench.results)

        assert (outcome.code, bench.results.exists()) == (2, False)
