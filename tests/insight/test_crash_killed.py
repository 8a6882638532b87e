"""A process that serves a volume and mounts it can be killed at any moment: it ends, and with it what it mounted."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from assay.base.own_files import OwnFilesThread
from mounting import needs_fuse, needs_loops

STAGE = """
import os, sys
from pathlib import Path
from assay import _core
from assay.insight.crash.stage import Stage

work = Path(sys.argv[1])
served, mounted = work / "served", work / "fs"
served.mkdir()
mounted.mkdir()
volume = _core.CrashVolume(served, work / "base.img", volume_bytes=16 << 20)
stage = Stage(volume, mounted, file_system="ext4", options="")
stage.make_file_system()
print(os.minor(os.stat(served).st_dev), flush=True)
while True:
    stage.mount()
    stage.unmount()
    print("mounted", flush=True)
"""
ENDS_WITHIN_S = 60.0


def abort(connection: int) -> None:
    """Have the kernel fail all requests of a FUSE connection, so that what waits for it ends."""
    place = "/sys/fs/fuse/connections"
    script = f"mount -t fusectl none {place} && echo 1 > {place}/{connection}/abort"
    subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script], check=True)


@needs_fuse
@needs_loops
@pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="needs mkfs.ext4")
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_process_that_is_killed_while_it_mounts_ends(tmp_path: Path, turns: int) -> None:
    process = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", STAGE, str(tmp_path)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        connection = int(process.stdout.readline())
        for _ in range(turns):
            assert process.stdout.readline() == "mounted\n"
        process.kill()
        try:
            assert process.wait(ENDS_WITHIN_S) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            abort(connection)
            raise


def test_a_thread_of_its_own_files_lacks_what_is_served_and_answers_as_a_call_does(tmp_path: Path) -> None:
    path = tmp_path / "served"
    with path.open("w") as served:
        apart = OwnFilesThread(str(path))

        def held() -> bool:
            return any(one.is_symlink() and one.readlink() == path for one in Path("/proc/thread-self/fd").iterdir())

        assert (held(), apart.run(held), apart.run(lambda: apart.run(held))) == (True, False, False)
        assert not served.closed
        with pytest.raises(ZeroDivisionError):
            apart.run(lambda: 1 // 0)
        apart.close()
