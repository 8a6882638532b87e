"""Agents over a real ssh: its own server on this machine's loopback, with keys and configuration of the test alone."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_threads import Assay

from .conftest import until

SLOW = pytest.mark.slow(reason="needs a server of ssh; a program in its place runs by default (test_hosts.py)")
MODEL = ("model:sata-jbod", "--search", "none", "--block", "8K", "--read", "70", "--warmup", "1s", "--duration", "4s")
SEPARATION = Path("/run/sshd")
"""Where a server of root's has its unprivileged part."""

SERVER = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/host-may.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
"""
CLIENT = """
Host db1 db2 stranger
  HostName 127.0.0.1
  Port {port}
Host away
  HostName 127.0.0.1
  Port {closed}
Host stranger
  IdentityFile {folder}/may-not
Host * !stranger
  IdentityFile {folder}/host-may
Host *
  User {user}
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
  StrictHostKeyChecking accept-new
  LogLevel ERROR
"""
AGENT = """#!/bin/sh
echo "Welcome to this host"
PYTHONPATH={path} exec {python} -m assay "$@"
"""
OLDER = """#!{python}
import sys
sys.path[:0] = {path!r}.split(":")
from assay import _core
built = _core.build_info()
_core.build_info = lambda: built | {{"version": "0.0.1"}}
from assay.fleet.agent import serve
serve()
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as taken:
            return taken.recv(4) == b"SSH-"
    except OSError:
        return False


def children(process: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ssh")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server of ssh that lets one key in."""
    program = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    if program is None or shutil.which("ssh") is None:
        pytest.skip("there is no sshd or ssh here: apt install openssh-server")
    user = pwd.getpwuid(os.getuid())
    if user.pw_shell.endswith(("nologin", "false")):
        pytest.skip(f"{user.pw_name} may not log in here")
    made = not SEPARATION.exists() and os.getuid() == 0
    if made:
        SEPARATION.mkdir(mode=0o755)
    for name in ("host", "host-may", "may-not"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(key, check=True, capture_output=True)
    port = free_port()
    (folder / "sshd_config").write_text(SERVER.format(port=port, folder=folder))
    (folder / "ssh_config").write_text(CLIENT.format(port=port, closed=free_port(), folder=folder, user=user.pw_name))
    path = os.pathsep.join(filter(None, sys.path))
    for name, text in (("assay", AGENT), ("older", OLDER)):
        (folder / name).write_text(text.format(path=path, python=sys.executable))
        (folder / name).chmod(0o755)
    (folder / "bin").mkdir()
    wrapper = folder / "bin" / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n')
    wrapper.chmod(0o755)
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen([program, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log)
    try:
        until(lambda: running.poll() is not None or answers(port), seconds=20)
        if running.poll() is not None:
            pytest.skip(f"sshd does not start here: {(folder / 'log').read_text()[:300]}")
        yield running
    finally:
        running.terminate()
        running.wait()
        if made:
            SEPARATION.rmdir()


@pytest.fixture
def ssh(server: subprocess.Popen[bytes], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The ssh in the path knows the server; gives the folder with programs for its hosts."""
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
    yield folder
    # No agent outlives its run: nothing of the server's is left that an agent could be in.
    until(lambda: not children(server.pid), seconds=90)


@SLOW
def test_two_hosts_over_ssh_give_the_answer_of_one_process(assay: Assay, ssh: Path) -> None:
    (alone,) = assay("profile", *MODEL, "--outstanding", "12")["points"]
    found = assay("profile", *MODEL, "--outstanding", "24", "--hosts", f"db1:{ssh}/assay,db2:{ssh}/assay")
    assert found["exit_code"] == 0, found
    (over,) = found["points"]
    assert [host["name"] for host in over["hosts"]] == ["db1", "db2"]
    assert over["total"]["iops"] == pytest.approx(2 * alone["total"]["iops"])
    assert over["total"]["latency_ns"] == pytest.approx(alone["total"]["latency_ns"])
    assert len({host["machine"] for host in found["hosts"]}) == 1


@SLOW
@pytest.mark.parametrize(
    ("host", "code", "words"),
    [
        ("away", 3, "host away: cannot be reached (exit code 255: ssh: connect to host 127.0.0.1 port"),
        ("stranger", 3, "Permission denied"),
        ("db1:/none/assay", 2, "host db1: has no Assay (exit code 127"),
        ("db1:/bin/true", 3, "host db1: no agent of Assay begins there (exit code 0)"),
        ("db1:{ssh}/older", 2, "host db1: has Assay 0.0.1, and this is"),
    ],
)
def test_a_host_that_is_no_use_is_told(assay: Assay, ssh: Path, host: str, code: int, words: str) -> None:
    found = assay("profile", "null:", "--hosts", f"db2:{ssh}/assay,{host.format(ssh=ssh)}")
    assert (found["exit_code"], words in found["complaint"]) == (code, True), found


@SLOW
def test_no_rights_there(assay: Assay, ssh: Path) -> None:
    found = assay("profile", "/proc/assay-{host}", "--size", "4M", "--hosts", f"db1:{ssh}/assay")
    assert found["exit_code"] in (2, 3)
    assert found["complaint"].startswith("host db1: /proc/assay-db1: ")


@SLOW
def test_a_connection_that_is_cut_ends_the_point_with_the_host_and_the_run_goes_on(
    assay: Assay, ssh: Path, server: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    words = ("--search", "none", "--block", "8K", "--read", "50", "--size", "4M", "--warmup", "0s")
    hosts = ("--hosts", f"db1:{ssh}/assay,db2:{ssh}/assay")
    command = [sys.executable, "-m", "assay", "profile", str(tmp_path / "f-{host}.dat"), *words, "--duration", "8s"]
    run = subprocess.Popen(
        [*command, *hosts, "--no-report", "-o", str(tmp_path / "results")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stderr is not None
    lines = []
    for line in run.stderr:
        lines.append(line)
        if "measuring" in line:
            break
    sessions = children(server.pid)
    assert len(sessions) == 2
    os.kill(sessions[1], 9)
    lines += run.stderr.readlines()
    assert run.wait(120) == 3, lines
    run.stderr.close()
    assert any("its agent ended (exit code 255" in line for line in lines), lines
    until(lambda: not children(server.pid), seconds=90)

    (folder,) = (tmp_path / "results").iterdir()
    again: dict[str, Any] = assay("profile", "--resume", folder)
    assert again["exit_code"] == 0, again
    assert again["points"][-1]["total"]["count"] > 0
