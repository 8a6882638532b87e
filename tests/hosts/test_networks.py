"""Agents behind a network that delays and loses; and how load grows with hosts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Assay

LISTENER = """
import socket, subprocess, sys
server = socket.create_server((sys.argv[1], 4711))
while True:
    taken, _ = server.accept()
    subprocess.Popen([sys.executable, "-m", "assay", "agent"], stdin=taken, stdout=taken)
    taken.close()
"""

SSH = """#!{python}
import os, random, socket, sys, threading, time
taken = socket.create_connection((sys.argv[sys.argv.index("--") + 1], 4711))
slow = float(open({delay!r}).read())
def late():
    if slow:
        time.sleep(slow + (0.2 if random.random() < 0.01 else 0.0))
def out():
    while data := taken.recv(65536):
        late()
        os.write(1, data)
    os._exit(0)
threading.Thread(target=out, daemon=True).start()
while data := os.read(0, 65536):
    late()
    taken.sendall(data)
taken.shutdown(socket.SHUT_WR)
threading.Event().wait(30)
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Three network namespaces with an agent's listener each, 5 to 25 ms away, which lose one packet of a hundred."""
    if os.geteuid() or shutil.which("ip") is None or shutil.which("tc") is None:
        pytest.skip("network namespaces need root, ip and tc")
    number, made, processes, addresses = os.getpid() % 60_000, [], [], []
    listener = tmp_path / "listener.py"
    listener.write_text(LISTENER)
    try:
        for place in range(3):
            name, outer, inner = f"assay{number}-{place}", f"ao{number}-{place}", f"ai{number}-{place}"
            subnet = f"10.{180 + place}.{number % 250}"
            try:
                ip("netns", "add", name)
                made.append(name)
                ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name)
                ip("addr", "add", f"{subnet}.1/24", "dev", outer)
                ip("link", "set", outer, "up")
                ip("-n", name, "addr", "add", f"{subnet}.2/24", "dev", inner)
                ip("-n", name, "link", "set", inner, "up")
                ip("-n", name, "link", "set", "lo", "up")
                netem = [
                    "tc",
                    "qdisc",
                    "add",
                    "dev",
                    outer,
                    "root",
                    "netem",
                    "delay",
                    f"{5 + 10 * place}ms",
                    "loss",
                    "1%",
                ]
                with_netem = subprocess.run(netem, check=False, capture_output=True).returncode == 0
            except subprocess.CalledProcessError as error:
                pytest.skip(f"network namespaces may not be made here: {error.stderr.decode()[:200]}")
            command = ["ip", "netns", "exec", name, sys.executable, str(listener), f"{subnet}.2"]
            processes.append(subprocess.Popen(command))
            addresses.append(f"{subnet}.2")
        program = tmp_path / "bin" / "ssh"
        program.parent.mkdir()
        program.write_text(SSH.format(python=sys.executable, delay=str(tmp_path / "delay")))
        program.chmod(0o755)
        # A kernel without netem: what relays the bytes holds them up, and stalls as a lost packet makes it.
        (tmp_path / "delay").write_text("0" if with_netem else "0.005")
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        time.sleep(1)
        yield addresses
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.mark.slow(reason="namespaces need root; the agents are those that other tests run as processes")
def test_delay_and_loss_change_no_answer(namespaces: list[str], assay: Assay) -> None:
    words = (
        "--search",
        "none",
        "--block",
        "8K",
        "--read",
        "70",
        "--rate",
        "3000",
        "--warmup",
        "1s",
        "--duration",
        "5s",
    )
    found = assay("profile", "null:", *words, "--hosts", ",".join(namespaces))
    assert found["exit_code"] == 0, found
    (point,) = found["points"]
    assert point["total"]["iops"] == pytest.approx(3000, rel=0.02)
    # One machine, one clock: what is taken for an offset is what the network made of it.
    for host in point["hosts"]:
        assert abs(host["clock_offset_ns"]) <= host["clock_error_ns"] < 40_000_000
    assert point["together"]["start_skew_ns"] < 60_000_000


@pytest.mark.slow(reason="measures how time passes")
@pytest.mark.timing
def test_null_targets_scale_up_to_the_cores_there_are(assay: Assay) -> None:
    cores = min(len(os.sched_getaffinity(0)), 4)
    if cores < 2:
        pytest.skip("one core scales to nothing")
    words = ("--search", "none", "--block", "8K", "--read", "100", "--warmup", "0.5s", "--duration", "2s")

    def iops(hosts: int) -> float:
        found: Any = assay("profile", "null:", *words, "--hosts", ",".join(["local"] * hosts))
        return float(found["points"][0]["total"]["iops"])

    best = max(iops(cores) / iops(1) for _ in range(3))
    assert best > 0.75 * cores
