"""Benches, mounts, loop devices and users for the tests of the command; `conftest.py` offers them to all tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assay_command import Bench, command

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
"""mkfs and losetup live in sbin, which is not in every user's PATH."""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def run_tool() -> Callable[..., str]:
    """Run a system tool that must succeed, or skip the test where it is not installed."""

    def run(name: str, *arguments: str | Path) -> str:
        if shutil.which(name, path=PATH) is None:
            pytest.skip(f"{name} is not installed")
        environment = os.environ | {"PATH": PATH}
        done = subprocess.run(
            [name, *map(str, arguments)], capture_output=True, text=True, env=environment, check=False
        )
        if done.returncode:
            pytest.skip(f"{name} is not allowed here: {done.stderr.strip()}")
        return done.stdout.strip()

    return run


@pytest.fixture
def mounted(tmp_path: Path, run_tool: Callable[..., str]) -> Iterator[Callable[..., Path]]:
    """Mount something on a new folder: `mounted("-t", "tmpfs", "-o", "size=4m", "none")`."""
    _need_root()
    points: list[Path] = []

    def mount(*arguments: str | Path) -> Path:
        point = tmp_path / f"mount{len(points)}"
        point.mkdir()
        run_tool("mount", *arguments, point)
        points.append(point)
        return point

    yield mount
    for point in reversed(points):
        # io_uring lets go of its files a little after the process has ended.
        run_tool("umount", "--lazy", point)


@pytest.fixture
def loop_device(tmp_path: Path, run_tool: Callable[..., str]) -> Iterator[Callable[[int], Path]]:
    """Attach a loop device of a size in bytes."""
    _need_root()
    devices: list[str] = []

    def attach(size_bytes: int) -> Path:
        image = tmp_path / f"image{len(devices)}"
        with image.open("wb") as file:
            file.truncate(size_bytes)
        devices.append(run_tool("losetup", "--find", "--show", image))
        return Path(devices[-1])

    yield attach
    for device in devices:
        run_tool("losetup", "--detach", device)


@pytest.fixture
def public_bench() -> Iterator[Bench]:
    """A bench every user may write to, which pytest's own folders are not."""
    folder = Path(tempfile.mkdtemp(prefix="assay-test-"))
    folder.chmod(0o777)
    bench = Bench(folder)
    bench.target.parent.chmod(0o777)
    yield bench
    shutil.rmtree(folder)


@pytest.fixture
def as_nobody() -> list[str]:
    """Command prefix that gives up root's rights; nothing for who has none."""
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    if subprocess.run([*prefix, *command("--version")], capture_output=True, cwd="/", check=False).returncode:
        pytest.skip("an unprivileged user may not run this environment's Python")
    return prefix


def _need_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root for loop devices and mounts")
