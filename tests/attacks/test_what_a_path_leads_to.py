"""A target is what was examined and not its name: a path that leads elsewhere later does not lead Assay there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from assay.targets.files.ownership import sidecar_path
from own_files import leave_file

if TYPE_CHECKING:
    from assay_command import Bench, Outcome, Started

MIB = 1 << 20
PRECIOUS = b"precious" * (MIB // 8)
POINTS = ("--warmup", "0s", "--duration", "0.2s", "--queue-depth", "1,2,3", "--read", "0", "--no-report")
SLOW = (*POINTS, "--rest", "1s")
LONG = ("--warmup", "0s", "--duration", "60s", "--queue-depth", "1", "--no-report")
"""A run that goes on until it is interrupted."""


def killed_after_a_point(bench: Bench, running: Started) -> None:
    running.wait_until(bench.point_lines)
    running.process.send_signal(signal.SIGKILL)
    running.process.wait()


def resume(bench: Bench, *more: str | Path, verb: str = "profile") -> Outcome:
    return bench.assay(verb, "--resume", bench.run, "--no-report", *more)


class TestGoingOnFromAnotherFolder:
    """`data.dat` named from one folder is not the `data.dat` of another."""

    def killed(self, bench: Bench) -> Path:
        own, others = bench.folder / "own", bench.folder / "others"
        for folder in (own, others):
            folder.mkdir()
            (folder / "data.dat").write_bytes(PRECIOUS)
        bench.folder = own
        with bench.started("profile", "data.dat", "--overwrite", "data.dat", *SLOW, "-o", bench.results) as running:
            killed_after_a_point(bench, running)
        bench.folder = others
        return others / "data.dat"

    def test_the_permission_is_given_again_for_the_file_where_it_began(self, bench: Bench) -> None:
        others = self.killed(bench)

        without, for_another = resume(bench), resume(bench, "--overwrite", "data.dat")
        assert (without.code, for_another.code, len(bench.point_lines())) == (2, 2, 1)
        assert "--overwrite" in without.complaint
        assert resume(bench, "--overwrite", others.parent.parent / "own" / "data.dat").code == 0
        assert len(bench.point_lines()) == 3
        assert others.read_bytes() == PRECIOUS

    def test_a_file_that_took_the_place_is_not_it(self, bench: Bench) -> None:
        self.killed(bench)
        own = bench.folder.parent / "own" / "data.dat"
        own.rename(own.with_name("moved"))
        own.write_bytes(PRECIOUS)

        outcome = resume(bench, "--overwrite", own)

        assert (outcome.code, own.read_bytes() == PRECIOUS) == (2, True)
        assert "is not what the run began with" in outcome.complaint

    def test_an_empty_file_that_took_the_place_is_not_it(self, bench: Bench) -> None:
        self.killed(bench)
        own = bench.folder.parent / "own" / "data.dat"
        own.rename(own.with_name("moved"))
        own.touch()

        assert (resume(bench).code, own.stat().st_size) == (2, 0)


class TestEditedRunFolder:
    """What a run folder says does not decide alone where anything is written."""

    def killed(self, bench: Bench) -> None:
        with bench.started("profile", bench.target, "--size", "4M", *SLOW, "-o", bench.results) as running:
            killed_after_a_point(bench, running)

    def test_other_paths_in_it_are_not_written_to_and_its_permissions_count_for_nothing(self, bench: Bench) -> None:
        self.killed(bench)
        victim, file = bench.folder / "victim", bench.run / "run.json"
        manifest = json.loads(file.read_text().replace(str(bench.target), str(victim)))
        permitted = manifest["request"] | {"overwrite": [str(victim)], "yes_destroy": [str(victim)]}
        for there in (None, b"", PRECIOUS):
            if there is not None:
                victim.write_bytes(there)
            for request in (manifest["request"], permitted) if there else (manifest["request"],):
                file.write_text(json.dumps(manifest | {"request": request}))

                outcome = resume(bench)

                assert outcome.code == 2, outcome.stderr
                assert (victim.read_bytes() if victim.exists() else None) == there

    def test_neither_a_copy_of_it_nor_one_that_all_may_write_to_is_gone_on_with(self, bench: Bench) -> None:
        self.killed(bench)
        copy = bench.folder / bench.run.name
        shutil.copytree(bench.run, copy)
        copied = bench.assay("profile", "--resume", copy)
        bench.run.chmod(0o777)
        open_to_all = resume(bench)

        assert (copied.code, "was not made here" in copied.complaint) == (2, True)
        assert (open_to_all.code, "other users may write to it" in open_to_all.complaint) == (2, True)

    def test_no_umask_makes_such_a_one(self, bench: Bench) -> None:
        before = os.umask(0)
        try:
            self.killed(bench)
        finally:
            os.umask(before)

        # And otherwise untouched, it is gone on with.
        assert (resume(bench).code, len(bench.point_lines())) == (0, 3)

    def test_nor_another_users(self, bench: Bench) -> None:
        if os.geteuid() != 0:
            pytest.skip("needs root to give a folder to another user")
        self.killed(bench)
        os.chown(bench.run, 65533, 65533)

        assert resume(bench).code == 2


class TestBetweenPoints:
    """The path is moved, linked or written to while a run rests."""

    def during_a_rest(self, bench: Bench, attack: Callable[[], None]) -> Outcome:
        with bench.started("profile", bench.target, "--size", "4M", *SLOW, "-o", bench.results) as running:
            running.wait_until(bench.point_lines)
            attack()
            return running.end()

    @pytest.mark.parametrize("way", ["rename", "link", "hard link", "rename of the folder"])
    def test_what_takes_its_place_is_not_touched(self, bench: Bench, way: str) -> None:
        precious = bench.folder / "important.db"
        precious.write_bytes(PRECIOUS)

        def attack() -> None:
            if way == "rename":
                os.rename(precious, bench.target)
            elif way == "rename of the folder":
                bench.target.parent.rename(bench.folder / "aside")
                bench.target.parent.mkdir()
                os.rename(precious, bench.target)
            else:
                bench.target.unlink()
                (os.symlink if way == "link" else os.link)(precious, bench.target)

        outcome = self.during_a_rest(bench, attack)

        assert bench.target.read_bytes() == PRECIOUS
        assert outcome.code == 3
        assert "something else has taken its place" in outcome.stderr
        assert bench.point_lines()

    def test_a_file_that_is_gone_ends_the_run(self, bench: Bench) -> None:
        outcome = self.during_a_rest(bench, bench.target.unlink)

        assert (outcome.code, bench.target.exists()) == (3, False)
        assert "is gone since the run began" in outcome.stderr

    def test_what_is_copied_into_it_stays(self, bench: Bench) -> None:
        (bench.folder / "user.mdf").write_bytes(PRECIOUS)

        outcome = self.during_a_rest(bench, lambda: shutil.copyfile(bench.folder / "user.mdf", bench.target) and None)

        assert bench.target.read_bytes() == PRECIOUS
        assert outcome.code == 3
        assert "another program has written to it" in outcome.stderr


class TestBeforeTheFirstWrite:
    """What was examined and is not written to yet is another program's as soon as that writes to it."""

    def while_another_is_laid_out(self, bench: Bench, there: str, signal_number: int) -> tuple[Path, Outcome]:
        first, second = bench.folder / "first.dat", bench.folder / "second.dat"
        if there == "empty":
            second.touch()
        else:
            leave_file(second, bytes(8 * MIB))
        volumes = ("--volume", f"data={first},data={second}", "--size", "192M")
        with bench.started("profile", *volumes, *POINTS, "-o", bench.results) as running:
            running.wait_until(first.exists, every_s=0.001)
            # Stopped, so that the copy ends before the layout does.
            running.process.send_signal(signal.SIGSTOP)
            with second.open("r+b") as file:
                file.write(PRECIOUS)
            if signal_number != signal.SIGCONT:
                running.process.send_signal(signal_number)
            running.process.send_signal(signal.SIGCONT)
            return second, running.end()

    @pytest.mark.parametrize("there", ["empty", "ours"])
    def test_what_is_copied_into_the_second_volume_stays(self, bench: Bench, there: str) -> None:
        second, outcome = self.while_another_is_laid_out(bench, there, signal.SIGCONT)

        assert second.read_bytes()[: len(PRECIOUS)] == PRECIOUS
        assert outcome.code == 3
        assert "another program has written to it" in outcome.stderr

    def test_nor_does_giving_back_sizes_cut_it(self, bench: Bench) -> None:
        second, outcome = self.while_another_is_laid_out(bench, "empty", signal.SIGINT)

        assert (outcome.code, second.read_bytes() == PRECIOUS) == (130, True)


def test_a_link_to_a_volume_is_the_same_volume(bench: Bench) -> None:
    bench.target.touch()
    link = bench.folder / "log"
    link.symlink_to(bench.target)

    outcome = bench.verify("--volume", f"data={bench.target},log={link}", "--size", "data=16M,log=16M", "--duration",
                           "0.5s")  # fmt: skip

    # As two files they would overwrite each other, which looks like misdirected writes of the storage.
    assert outcome.code == 0, outcome.stderr
    assert [volume["role"] for volume in bench.manifest()["target"]["volumes"]] == ["data+log"]


class TestCopiedIntoOurFile:
    """`cp user.mdf d/assay.dat` keeps the inode and all attributes."""

    def profile(self, bench: Bench, *more: str) -> Outcome:
        return bench.profile(bench.target, "--size", "4M", "--queue-depth", "1", "--warmup", "0s", "--duration",
                             "0.2s", "--read", "0", *more)  # fmt: skip

    def test_after_a_run(self, bench: Bench) -> None:
        assert self.profile(bench).code == self.profile(bench).code == 0
        (bench.folder / "user.mdf").write_bytes(PRECIOUS)
        shutil.copyfile(bench.folder / "user.mdf", bench.target)

        outcome = self.profile(bench)

        assert (outcome.code, bench.target.read_bytes() == PRECIOUS) == (2, True)
        assert "not as Assay left them" in outcome.complaint

    def test_with_size_and_time_kept(self, bench: Bench) -> None:
        leave_file(bench.target, os.urandom(MIB))
        (bench.folder / "user.mdf").write_bytes(PRECIOUS)
        subprocess.run(["cp", "-p", bench.folder / "user.mdf", bench.target], check=True)

        assert (self.profile(bench).code, bench.target.read_bytes() == PRECIOUS) == (2, True)

    def test_within_a_second_where_times_are_seconds(
        self, bench: Bench, mounted: Callable[..., Path], run_tool: Callable[..., str]
    ) -> None:
        image = bench.folder / "image"
        with image.open("wb") as file:
            file.truncate(16 * MIB)
        # Inodes of 128 bytes keep times in whole seconds.
        run_tool("mke2fs", "-q", "-F", "-t", "ext4", "-I", "128", image)
        bench.target = mounted("-o", "loop", image) / "f.dat"
        assert self.profile(bench).code == self.profile(bench).code == 0
        status = bench.target.stat()
        assert status.st_mtime_ns % 10**9 == 0
        with bench.target.open("r+b") as file:
            file.write(PRECIOUS * (status.st_size // len(PRECIOUS)))
        # As if it had been within the second in which the run ended.
        os.utime(bench.target, ns=(status.st_atime_ns, status.st_mtime_ns))
        before = bench.target.read_bytes()

        outcome = self.profile(bench)

        assert (outcome.code, bench.target.read_bytes() == before) == (2, True)

    def test_after_a_run_that_was_killed(self, bench: Bench) -> None:
        with bench.started("profile", bench.target, "--size", "4M", *SLOW, "-o", bench.results) as running:
            killed_after_a_point(bench, running)
        (bench.folder / "user.mdf").write_bytes(PRECIOUS)
        shutil.copyfile(bench.folder / "user.mdf", bench.target)

        assert (resume(bench).code, bench.target.read_bytes() == PRECIOUS) == (2, True)
        assert (self.profile(bench).code, bench.target.read_bytes() == PRECIOUS) == (2, True)

    def test_before_verify(self, bench: Bench) -> None:
        leave_file(bench.target, bytes(MIB))
        bench.target.write_bytes(PRECIOUS)

        outcome = bench.verify(bench.target, "--size", "16M", "--duration", "1s")

        assert (outcome.code, bench.target.read_bytes() == PRECIOUS) == (2, True)


def test_a_hard_link_with_a_planted_sidecar_is_not_ours(bench: Bench) -> None:
    precious = bench.folder / "important.db"
    precious.write_bytes(PRECIOUS)
    os.link(precious, bench.target)
    status = precious.stat()
    facts = {"inode": status.st_ino, "birth_ns": None, "size_bytes": MIB, "mtime_ns": status.st_mtime_ns, "run": None}
    sidecar_path(bench.target).write_text(
        json.dumps({"format": "assay-mark-2", "id": "0" * 32, "state": "at rest"} | facts)
    )
    (bench.target.parent / "g").touch()
    os.link(bench.target.parent / "g", bench.folder / "empty.lock")

    assert (bench.profile(bench.target, *POINTS).code, precious.read_bytes()) == (2, PRECIOUS)
    assert bench.profile(bench.target.parent / "g", "--size", "1M", *POINTS).code == 2
    assert (bench.folder / "empty.lock").stat().st_size == 0


class TestTwoRuns:
    """The second run on one target is refused; it would accuse the storage of what the first one writes."""

    @contextmanager
    def first(self, bench: Bench, *options: str | Path) -> Iterator[int]:
        with bench.started("profile", bench.target, *options, *LONG, "-o", bench.results, forked=False) as running:
            running.wait_until(lambda: bench.runs)
            yield running.process.pid
            running.process.send_signal(signal.SIGINT)
            assert running.end().code == 130

    @pytest.mark.parametrize("second", ["profile", "verify"])
    @pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
    def test_the_second_is_refused_with_the_holder(self, bench: Bench, second: str) -> None:
        leave_file(bench.target, bytes(4 * MIB))
        with self.first(bench) as pid:
            outcome = bench.assay(second, bench.target, "--no-report", "-o", bench.results)

        assert outcome.code == 2
        assert f"is in use by process {pid} (assay profile)" in outcome.complaint

    @pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
    def test_through_another_name(self, bench: Bench) -> None:
        leave_file(bench.target, bytes(4 * MIB))
        (bench.folder / "link").symlink_to(bench.target)
        with self.first(bench):
            outcome = bench.profile(bench.folder / "link", *POINTS)

        assert (outcome.code, "is in use by" in outcome.complaint) == (2, True)

    def test_a_mounted_image_is_mounted_under_every_loop_device(
        self, bench: Bench, mounted: Callable[..., Path], run_tool: Callable[..., str]
    ) -> None:
        image = bench.folder / "image"
        with image.open("wb") as file:
            file.truncate(16 * MIB)
        run_tool("mke2fs", "-q", "-F", image)
        mounted("-o", "loop", image)
        device = run_tool("losetup", "--find", "--show", image)
        try:
            outcome = bench.assay("profile", device, "--overwrite", device, "--yes-destroy", device, *POINTS)
        finally:
            run_tool("losetup", "--detach", device)

        assert (outcome.code, "is mounted on" in outcome.complaint) == (2, True)

    @pytest.mark.parametrize("first", ["the file", "another loop device"])
    def test_through_a_loop_device_on_it(self, bench: Bench, run_tool: Callable[..., str], first: str) -> None:
        if os.geteuid() != 0:
            pytest.skip("needs root for loop devices")
        leave_file(bench.target, bytes(16 * MIB))
        devices = [run_tool("losetup", "--find", "--show", bench.target)] if first != "the file" else []
        held = devices[0] if devices else bench.target
        try:
            with bench.started("profile", held, "--overwrite", held, *LONG, "-o", bench.results) as running:
                running.wait_until(lambda: bench.runs)
                devices.append(run_tool("losetup", "--find", "--show", bench.target))
                outcome = bench.assay("verify", devices[-1], "--overwrite", devices[-1], "--duration", "0.5s")
        finally:
            for device in devices:
                run_tool("losetup", "--detach", device)

        # Otherwise it would take the other run's writes for misdirected ones of the storage.
        assert (outcome.code, "is in use by process" in outcome.complaint) == (2, True)

    @pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
    def test_readers_share_and_keep_writers_out(self, bench: Bench) -> None:
        bench.target.write_bytes(os.urandom(MIB))
        with self.first(bench, "--read", "100"):
            reader = bench.assay("profile", bench.target, "--read", "100", "--duration", "0.1s", "--queue-depth", "1",
                                 "--warmup", "0s", "--no-report", "-o", bench.folder / "second")  # fmt: skip
            writer = bench.profile(bench.target, "--overwrite", bench.target, *POINTS)

        assert (reader.code, writer.code) == (0, 2)


class TestDevices:
    """A device that is formatted and filled between two runs, or while one rests, is not overwritten."""

    def started(self, bench: Bench, device: Path) -> Started:
        return bench.started("profile", device, "--overwrite", device, *SLOW, "-o", bench.results)

    def test_formatted_before_the_run_goes_on(
        self, bench: Bench, loop_device: Callable[[int], Path], run_tool: Callable[..., str]
    ) -> None:
        device = loop_device(16 * MIB)
        with self.started(bench, device) as running:
            killed_after_a_point(bench, running)
        run_tool("mkfs.ext4", "-q", "-F", device)
        before = device.read_bytes()

        for permission in ([], ["--overwrite", device]):
            outcome = resume(bench, *permission)
            assert (outcome.code, device.read_bytes() == before) == (2, True), outcome.stderr
        assert "--yes-destroy" in outcome.complaint

    def test_permissions_given_again(self, bench: Bench, loop_device: Callable[[int], Path]) -> None:
        device = loop_device(16 * MIB)
        with self.started(bench, device) as running:
            killed_after_a_point(bench, running)

        assert resume(bench).code == 2
        assert resume(bench, "--overwrite", device).code == 0

    def test_another_disk_of_the_same_name(
        self, bench: Bench, loop_device: Callable[[int], Path], run_tool: Callable[..., str]
    ) -> None:
        device = loop_device(16 * MIB)
        with self.started(bench, device) as running:
            killed_after_a_point(bench, running)
        other = bench.folder / "other"
        other.write_bytes(os.urandom(16 * MIB))
        before = other.read_bytes()
        run_tool("losetup", "--detach", device)
        run_tool("losetup", device, other)

        outcome = resume(bench, "--overwrite", device)

        assert (outcome.code, other.read_bytes() == before) == (2, True)
        assert "is not what the run began with" in outcome.complaint

    def test_it_cannot_be_formatted_or_mounted_during_a_rest(
        self, bench: Bench, loop_device: Callable[[int], Path], run_tool: Callable[..., str]
    ) -> None:
        device = loop_device(16 * MIB)
        run_tool("mkfs.ext4", "-V")
        with self.started(bench, device) as running:
            running.wait_until(bench.point_lines)
            formatting = subprocess.run(["mkfs.ext4", "-q", device], capture_output=True, check=False)
            second = bench.profile(device, "--overwrite", device, *POINTS)
            outcome = running.end()

        assert formatting.returncode != 0
        assert (second.code, outcome.code) == (2, 0)
