"""What Assay refuses to write to, what it accepts, and what it says."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from assay.base.errors import ExitCode, OutOfSpace, RefusedTarget
from assay.targets.files.room import check_space
from assay.targets.files.safety import ExaminedVolume, examine
from assay.targets.files.spec import VolumeSpec, parse_targets
from assay.targets.kernel import Kernel
from own_files import leave_file

MIB = 1024**2


def spec_of(path: Path | str, role: str = "data") -> VolumeSpec:
    return parse_targets([], volumes=[f"{role}={path}"])[0]


def look(path: Path, *, writes: bool = True, overwrite: list[Path] | None = None, **more: object) -> ExaminedVolume:
    return examine(spec_of(path), overwrite=[str(p) for p in overwrite or []], writes=writes, **more)  # type: ignore[arg-type]


class TestFiles:
    def test_a_new_file_is_accepted_with_the_room_there_is(self, tmp_path: Path) -> None:
        seen = look(tmp_path / "f")

        assert (seen.exists, seen.size_bytes, seen.is_empty, seen.created_by_assay) == (False, None, True, False)
        room = os.statvfs(tmp_path)
        assert seen.file_system_bytes == room.f_blocks * room.f_frsize
        assert seen.free_bytes is not None
        assert 0 <= seen.free_bytes <= seen.file_system_bytes

    def test_nothing_is_made_by_looking(self, tmp_path: Path) -> None:
        look(tmp_path / "f")

        assert list(tmp_path.iterdir()) == []

    def test_a_foreign_file_with_content_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"precious" * 1024)

        with pytest.raises(RefusedTarget, match=r"holds 8 KiB that Assay did not write; .*--overwrite") as error:
            look(tmp_path / "f")
        assert error.value.exit_code is ExitCode.USAGE

    def test_a_foreign_file_may_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"precious")

        assert look(tmp_path / "f", writes=False).size_bytes == 8

    def test_an_empty_file_is_accepted(self, tmp_path: Path) -> None:
        (tmp_path / "f").touch()

        assert look(tmp_path / "f").is_empty

    def test_a_file_assay_made_is_accepted(self, tmp_path: Path) -> None:
        leave_file(tmp_path / "f", b"x" * 4096)

        assert look(tmp_path / "f").created_by_assay

    def test_overwrite_names_the_file_by_its_resolved_path(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"old")
        (tmp_path / "link").symlink_to("f")

        for named in (tmp_path / "f", tmp_path / "link", tmp_path / "." / "f"):
            assert look(tmp_path / "f", overwrite=[named]).size_bytes == 3
            assert look(tmp_path / "link", overwrite=[named]).path == tmp_path / "f"

    def test_overwrite_of_another_file_permits_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"old")

        with pytest.raises(RefusedTarget):
            look(tmp_path / "f", overwrite=[tmp_path / "g", tmp_path])

    def test_a_link_is_shown_with_what_it_leads_to(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"precious")
        (tmp_path / "link").symlink_to("f")

        with pytest.raises(RefusedTarget, match=rf"^{tmp_path}/link \(which is {tmp_path}/f\): holds"):
            look(tmp_path / "link")

    def test_a_missing_folder_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(RefusedTarget, match=rf"the folder {tmp_path}/a does not exist; create it \(mkdir -p"):
            look(tmp_path / "a" / "b" / "f")

    def test_a_file_in_the_place_of_a_folder_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "f").touch()

        with pytest.raises(RefusedTarget, match="a part of the path is a file"):
            look(tmp_path / "f" / "g")

    def test_a_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(RefusedTarget, match="is a folder; give a file in it"):
            examine(VolumeSpec(name="x", kind="file", path=tmp_path), writes=True)

    def test_pipes_sockets_and_character_devices_are_refused(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "socket"))
            for name in ("fifo", "socket"):
                with pytest.raises(RefusedTarget, match="is a pipe or socket"):
                    look(tmp_path / name)
        with pytest.raises(RefusedTarget, match=r"is a character device.*or null:"):
            look(Path("/dev/null"), writes=False)

    @pytest.mark.parametrize("path", ["/proc/self/oom_score_adj", "/proc/new", "/sys/new", "/dev/shm/../new"])
    def test_files_of_the_kernel_are_refused_although_they_look_empty(self, path: str) -> None:
        with pytest.raises(RefusedTarget, match=r"the kernel's and no storage|no such device"):
            examine(VolumeSpec(name="x", kind="file", path=Path(path)), writes=True)

    def test_a_folder_without_permission_is_refused(
        self, folder: Path, unprivileged: Callable[[], AbstractContextManager[None]]
    ) -> None:
        folder.chmod(0o555)

        with unprivileged(), pytest.raises(RefusedTarget, match=f"no permission to create files in {folder}; change"):
            look(folder / "f")

    def test_a_file_without_permission_is_refused(
        self, folder: Path, unprivileged: Callable[[], AbstractContextManager[None]]
    ) -> None:
        (folder / "f").touch()
        (folder / "f").chmod(0o444)

        with unprivileged(), pytest.raises(RefusedTarget, match="no permission to read and write it"):
            look(folder / "f")
        with unprivileged():
            assert look(folder / "f", writes=False).is_empty

    def test_a_read_only_file_system_is_refused(self, mounted: Callable[..., Path]) -> None:
        point = mounted("-t", "tmpfs", "-o", "ro,size=1m", "none")

        with pytest.raises(RefusedTarget, match="file system is mounted read-only; remount it"):
            look(point / "f")

    def test_a_file_behind_a_loop_device_is_refused(self, folder: Path, loop_device: Callable[[int], Path]) -> None:
        device = loop_device(MIB)

        with pytest.raises(RefusedTarget, match=rf"is the file behind {device}; detach it first"):
            look(folder / "image0", overwrite=[folder / "image0"])

    def test_a_swap_file_is_refused(self, tmp_path: Path) -> None:
        swap = tmp_path / "swap file"
        swap.touch()
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc" / "swaps").write_text(
            f"Filename Type Size Used Priority\n{str(swap).replace(' ', chr(92) + '040')} file 1048572 0 -2\n"
        )

        with pytest.raises(RefusedTarget, match="is active swap space"):
            look(swap, kernel=Kernel(proc=tmp_path / "proc"))

    def test_written_files_are_told_from_holes(self, tmp_path: Path) -> None:
        (tmp_path / "whole").write_bytes(os.urandom(MIB))
        (tmp_path / "sparse").write_bytes(os.urandom(4096))
        os.truncate(tmp_path / "sparse", MIB)
        descriptor = os.open(tmp_path / "whole", os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

        assert look(tmp_path / "whole", writes=False).fully_allocated
        assert not look(tmp_path / "sparse", writes=False).fully_allocated
        assert not look(tmp_path / "new").fully_allocated


class TestNull:
    def test_it_is_always_accepted(self) -> None:
        (spec,) = parse_targets(["null:?latency=1ms"], sizes="1G")
        seen = examine(spec, writes=True)

        assert (seen.path, seen.exists, seen.size_bytes, seen.free_bytes) == (None, True, 2**30, None)


class TestDevices:
    def test_a_device_that_does_not_exist_is_not_made(self) -> None:
        with pytest.raises(RefusedTarget, match="there is no such device; lsblk lists"):
            look(Path("/dev/no-such-disk"))

    def test_a_device_without_signature_needs_overwrite(self, loop_device: Callable[[int], Path]) -> None:
        device = loop_device(4 * MIB)

        with pytest.raises(RefusedTarget, match=rf"device of 4 MiB, .* give --overwrite {device}$"):
            look(device)
        seen = look(device, overwrite=[device])
        assert (seen.size_bytes, seen.created_by_assay, seen.is_empty) == (4 * MIB, False, False)
        assert seen.logical_block_bytes >= 512

    def test_a_device_with_a_file_system_needs_both_options(
        self, loop_device: Callable[[int], Path], tool: Callable[[str], str], run: Callable[..., str]
    ) -> None:
        device = loop_device(8 * MIB)
        run(tool("mkfs.ext4"), "-q", device)
        named = str(device)

        for overwrite, yes_destroy in (([], []), ([named], []), ([], [named]), ([named], ["/dev/other"])):
            with pytest.raises(
                RefusedTarget, match=rf"carries ext2/ext3/ext4; .*--overwrite {named} --yes-destroy {named}$"
            ):
                examine(spec_of(device), overwrite=overwrite, yes_destroy=yes_destroy, writes=True)
        assert examine(spec_of(device), overwrite=[named], yes_destroy=[named], writes=True).size_bytes == 8 * MIB

    def test_a_device_may_be_read_without_options(
        self, loop_device: Callable[[int], Path], tool: Callable[[str], str], run: Callable[..., str]
    ) -> None:
        device = loop_device(8 * MIB)
        run(tool("mkfs.ext4"), "-q", device)

        assert look(device, writes=False).size_bytes == 8 * MIB

    def test_a_mounted_device_is_refused_whatever_the_options(
        self,
        loop_device: Callable[[int], Path],
        mounted: Callable[..., Path],
        tool: Callable[[str], str],
        run: Callable[..., str],
    ) -> None:
        device = loop_device(8 * MIB)
        run(tool("mkfs.ext4"), "-q", device)
        point = mounted(device)

        for writes in (True, False):
            with pytest.raises(RefusedTarget, match=rf"is mounted on {point} \(ext4\); give a file on it"):
                examine(spec_of(device), overwrite=[str(device)], yes_destroy=[str(device)], writes=writes)

    def test_a_device_claimed_where_no_table_shows_it_is_refused(
        self, loop_device: Callable[[int], Path], tmp_path: Path
    ) -> None:
        device = loop_device(MIB)
        claimed = os.open(device, os.O_RDONLY | os.O_EXCL)
        try:
            with pytest.raises(RefusedTarget, match="another program, run, mount or container has claimed it"):
                look(device, overwrite=[device], kernel=Kernel(proc=tmp_path, sys=tmp_path))
        finally:
            os.close(claimed)

    def test_a_device_is_named_through_links(self, loop_device: Callable[[int], Path], tmp_path: Path) -> None:
        device = loop_device(MIB)
        (tmp_path / "by-id").symlink_to(device)

        assert look(tmp_path / "by-id", overwrite=[device]).path == device
        with pytest.raises(RefusedTarget, match=rf"by-id \(which is {device}\)"):
            look(tmp_path / "by-id")

    def test_a_read_only_device_is_refused_for_writing(
        self, loop_device: Callable[[int], Path], tool: Callable[[str], str], run: Callable[..., str]
    ) -> None:
        device = loop_device(MIB)
        run(tool("blockdev"), "--setro", device)
        try:
            with pytest.raises(RefusedTarget, match="is read-only; make it writable"):
                look(device, overwrite=[device])
            assert look(device, writes=False).size_bytes == MIB
        finally:
            # The flag would outlive the detached loop device.
            run(tool("blockdev"), "--setrw", device)

    def test_without_permission_it_is_refused(
        self, loop_device: Callable[[int], Path], unprivileged: Callable[[], AbstractContextManager[None]]
    ) -> None:
        device = loop_device(MIB)

        with unprivileged(), pytest.raises(RefusedTarget, match="no permission to read and write the device; run as"):
            look(device, overwrite=[device])


class TestSpace:
    def new_file(
        self, tmp_path: Path, name: str, free_bytes: int, total_bytes: int, role: str = "data"
    ) -> ExaminedVolume:
        seen = look(tmp_path / name)
        spec = replace(seen.spec, name=f"{name}-{role}", role=role)
        return replace(seen, spec=spec, free_bytes=free_bytes, file_system_bytes=total_bytes)

    def test_what_fits_with_the_reserve_is_accepted_and_no_byte_more(self, tmp_path: Path) -> None:
        volume = self.new_file(tmp_path, "f", free_bytes=100 * MIB, total_bytes=200 * MIB)

        check_space([volume], {"f-data": 90 * MIB})
        with pytest.raises(OutOfSpace, match=r"more needed, .* 100 MiB free only 90 MiB .*10 MiB stay free") as error:
            check_space([volume], {"f-data": 90 * MIB + 1})
        assert error.value.exit_code is ExitCode.TARGET_FAILED

    def test_the_reserve_is_at_most_one_gib(self, tmp_path: Path) -> None:
        gib = 1024 * MIB
        volume = self.new_file(tmp_path, "f", free_bytes=500 * gib, total_bytes=1000 * gib)

        check_space([volume], {"f-data": 499 * gib})
        with pytest.raises(OutOfSpace):
            check_space([volume], {"f-data": 499 * gib + 1})

    def test_volumes_of_one_file_system_are_taken_together(self, tmp_path: Path) -> None:
        volumes = [self.new_file(tmp_path, name, 100 * MIB, 100 * MIB) for name in "ab"]

        check_space(volumes, {"a-data": 40 * MIB, "b-data": 40 * MIB})
        with pytest.raises(OutOfSpace, match=f"{tmp_path}/a, {tmp_path}/b: 100 MiB more needed"):
            check_space(volumes, {"a-data": 50 * MIB, "b-data": 50 * MIB})

    def test_roles_that_share_a_file_need_its_room_once(self, tmp_path: Path) -> None:
        volumes = [self.new_file(tmp_path, "f", 100 * MIB, 100 * MIB, role) for role in ("data", "log")]

        check_space(volumes, {"f-data": 80 * MIB, "f-log": 80 * MIB})

    def test_what_a_file_occupies_is_not_needed_again(self, tmp_path: Path) -> None:
        volume = self.new_file(tmp_path, "f", free_bytes=10 * MIB, total_bytes=100 * MIB)

        check_space([replace(volume, allocated_bytes=80 * MIB)], {"f-data": 85 * MIB})
        check_space([replace(volume, allocated_bytes=80 * MIB, free_bytes=0)], {"f-data": 80 * MIB})

    def test_a_file_system_that_does_not_say_its_size_is_not_judged(self, tmp_path: Path) -> None:
        check_space([self.new_file(tmp_path, "f", free_bytes=0, total_bytes=0)], {"f-data": MIB})

    def test_a_real_small_file_system_is_judged(self, mounted: Callable[..., Path]) -> None:
        point = mounted("-t", "tmpfs", "-o", "size=4m", "none")
        volume = look(point / "f")

        check_space([volume], {"f": 3 * MIB})
        with pytest.raises(OutOfSpace, match=rf"^{point}/f: 4 MiB more needed"):
            check_space([volume], {"f": 4 * MIB})

    def test_a_device_has_the_size_it_has(self, loop_device: Callable[[int], Path]) -> None:
        device = loop_device(MIB)
        volume = look(device, overwrite=[device])

        check_space([volume], {device.name: MIB})
        with pytest.raises(OutOfSpace, match="2 MiB asked, the device has 1 MiB; give a smaller --size"):
            check_space([volume], {device.name: 2 * MIB})
