"""A device that stops answering: everything measured is written and printed before the process tries to leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hanging_fuse import unmount_lazily

if TYPE_CHECKING:
    from assay_command import Bench

MIB = 1 << 20


@dataclass(frozen=True)
class HangingFile:
    """A file on a file system that can be made to hang, once."""

    path: Path
    flag: Path
    release: Callable[[], None]
    come_back: Callable[[], None]

    def hang(self) -> None:
        self.flag.touch()


@pytest.fixture
def hanging_file(tmp_path: Path) -> Iterator[HangingFile]:
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a FUSE file system")
    if not Path("/dev/fuse").exists():
        pytest.skip("the kernel has no FUSE")
    backing, point, flag = tmp_path / "backing", tmp_path / "fuse", tmp_path / "flag"
    backing.write_bytes(os.urandom(16 * MIB))
    point.mkdir()
    program = Path(__file__).with_name("hanging_fuse.py")
    servers: list[subprocess.Popen[str]] = []

    def serve() -> None:
        flag.unlink(missing_ok=True)
        server = subprocess.Popen([sys.executable, program, backing, point, flag], stderr=subprocess.PIPE, text=True)
        servers.append(server)
        assert server.stderr is not None
        while not os.path.ismount(point):
            if server.poll() is not None:
                pytest.skip(f"mounting is not allowed here: {server.stderr.read().splitlines()[-1]}")

    def release() -> None:
        """End every request with an error, so that whatever waits for one can end."""
        connection = os.minor(os.lstat(point).st_dev)
        unmount_lazily(point)
        with suppress(OSError):
            Path(f"/sys/fs/fuse/connections/{connection}/abort").write_text("1")
        # The connection ends with its server, should the kernel's switch not be there.
        servers[-1].kill()

    serve()
    yield HangingFile(point / "f", flag, release, serve)
    release()
    for server in servers:
        server.wait()
        assert server.stderr is not None
        server.stderr.close()


@pytest.mark.parametrize("backend", ["io-uring", "threads"])
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_point_on_it_ends_the_run_with_all_there_is(bench: Bench, hanging_file: HangingFile, backend: str) -> None:
    arguments = ("profile", hanging_file.path, "--overwrite", hanging_file.path, "--backend", backend)
    load = ("--queue-depth", "1,4,8", "--warmup", "0s", "--duration", "0.5s", "--io-timeout", "2s")
    with bench.started(*arguments, *load, "--no-report", "--json", "-o", bench.results) as running:
        running.wait_until(bench.point_lines)
        hanging_file.hang()
        # The process itself may wait in the kernel until the file system is given up.
        running.wait_until(lambda: "stopped answering" in running.stderr)
        document = json.loads(running.stdout)
        manifest, points = bench.manifest(), [json.loads(line) for line in bench.point_lines()]
        hanging_file.release()
        outcome = running.end()

    assert outcome.code == 3
    (line,) = [line for line in outcome.stderr.splitlines() if line.startswith("assay: ")]
    assert line.startswith("assay: f: stopped answering:")
    assert document == json.loads(outcome.stdout)
    assert document["status"] == manifest["status"] == "failed"
    assert document["error"] == manifest["error"] == line.removeprefix("assay: ")
    assert document["points"] == points
    assert (points[0]["ended_by"], points[-1]["ended_by"]) == ("time", "not-answering")
    assert points[0]["total"]["count"] > 0


def test_it_can_be_gone_on_with_when_the_device_is_back(bench: Bench, hanging_file: HangingFile) -> None:
    load = ("--read", "100", "--queue-depth", "1,2", "--warmup", "0s", "--duration", "0.5s", "--io-timeout", "2s")
    with bench.started("profile", hanging_file.path, *load, "--no-report", "--json", "-o", bench.results) as running:
        running.wait_until(bench.point_lines)
        hanging_file.hang()
        running.wait_until(lambda: "stopped answering" in running.stderr)
        hanging_file.release()
        running.end()
    kept = bench.point_lines()
    hanging_file.come_back()

    outcome = bench.assay("profile", "--resume", bench.run, "--no-report", "--json")

    assert outcome.code == 0
    assert bench.point_lines()[: len(kept)] == kept
    assert [point["ended_by"] for point in outcome.document["points"]] == ["time", "not-answering", "time"]


def test_one_that_hangs_from_the_start_is_said_so(bench: Bench, hanging_file: HangingFile) -> None:
    hanging_file.hang()
    arguments = ("profile", hanging_file.path, "--read", "100", "--queue-depth", "1", "--io-timeout", "1s")
    with bench.started(*arguments, "--duration", "10s", "--no-report", "-o", bench.results) as running:
        running.wait_until(lambda: "stopped answering" in running.stderr)
        hanging_file.release()
        outcome = running.end()

    assert outcome.code == 3
    assert "Traceback" not in outcome.stderr
    assert bench.manifest()["status"] == "failed"


@pytest.mark.parametrize("backend", ["io-uring", "threads"])
def test_one_being_verified_ends_the_run_with_all_there_is(
    bench: Bench, hanging_file: HangingFile, backend: str
) -> None:
    arguments = ("verify", hanging_file.path, "--overwrite", hanging_file.path, "--duration", "60s")
    options = (
        "--backend", backend, "--long-io", "0.5s", "--io-timeout", "2s", "--no-report", "--json", "-o", bench.results,
    )  # fmt: skip
    with bench.started(*arguments, *options) as running:
        running.wait_until(bench.point_lines)
        hanging_file.hang()
        running.wait_until(lambda: "stopped answering" in running.stderr)
        document = json.loads(running.stdout)
        hanging_file.release()
        outcome = running.end()

    assert document["status"] == "failed"
    # An I/O outstanding for longer than --long-io is a finding, and findings weigh most; but where handing an I/O to
    # the kernel hangs already, nobody can tell which it is.
    if "OUTSTANDING" in outcome.stderr:
        assert outcome.code == 4
        assert document["integrity"]["findings"]["long_io"] > 0
    else:
        assert outcome.code == 3
    assert not document["integrity"]["passed"]
