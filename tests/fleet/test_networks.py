"""Agents behind a network that delays and loses; and how load grows with hosts."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_threads import Assay

from .conftest import is_running, until

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
host = sys.argv[sys.argv.index("--") + 1]
taken = socket.create_connection((host, 4711))
slow, chance = float(open({delay!r}).read()), random.Random(host)
def late():
    if slow:
        time.sleep(slow + (0.2 if chance.random() < 0.01 else 0.0))
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


RELAY = """#!{python}
import os, random, subprocess, sys, threading, time
host = sys.argv[sys.argv.index("--") + 1]
chance = random.Random(host)
agent = subprocess.Popen([{python!r}, "-m", "assay", "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
open({folder!r} + "/agent-" + host, "w").write(str(agent.pid))
def carry(read, write):
    while data := read(65536):
        time.sleep(0.005 + 0.02 * chance.random() + (0.25 if chance.random() < 0.02 else 0.0))
        while os.path.exists({folder!r} + "/silent-" + host):
            time.sleep(0.05)
        write(data)
def back():
    carry(lambda size: os.read(agent.stdout.fileno(), size), lambda data: os.write(1, data))
    os._exit(0)
threading.Thread(target=back, daemon=True).start()
carry(lambda size: os.read(0, size), lambda data: os.write(agent.stdin.fileno(), data))
agent.stdin.close()
agent.wait()
"""
"""An ssh that holds up each piece for 5 to 25 ms, some as long as a lost packet would, and all while it is silent."""


def _listens(address: str) -> bool:
    try:
        # An agent that is asked for nothing ends with its connection.
        socket.create_connection((address, 4711), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def relayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Agents behind a relay that is slow and loses; gives the folder in which a host is told to fall silent."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(RELAY.format(python=sys.executable, folder=str(tmp_path)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path


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
        until(lambda: all(_listens(address) for address in addresses))
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


@pytest.mark.slow(reason="delays take their time; the agents are those that other tests run as processes")
def test_a_slow_relay_changes_no_answer(relayed: Path, assay: Assay) -> None:
    del relayed
    model = ("model:sata-jbod", "--search", "none", "--block", "8K", "--warmup", "1s", "--duration", "4s")
    (alone,) = assay("profile", *model, "--outstanding", "12")["points"]
    found = assay("profile", *model, "--outstanding", "24", "--hosts", "far,farther")
    assert found["exit_code"] == 0, found
    (over,) = found["points"]
    assert over["total"]["iops"] == pytest.approx(2 * alone["total"]["iops"])
    assert over["total"]["latency_ns"] == pytest.approx(alone["total"]["latency_ns"])


@pytest.mark.slow(reason="a host is given up after 20 s; a pipe with nothing at its end is given up by default")
def test_a_host_that_falls_silent_is_given_up_and_the_run_goes_on(relayed: Path, assay: Assay) -> None:
    words = (str(relayed / "f-{host}.dat"), "--search", "none", "--block", "8K", "--size", "4M", "--warmup", "0s")
    command = [sys.executable, "-m", "assay", "profile", *words, "--duration", "6s", "--hosts", "far,farther"]
    run = subprocess.Popen(
        [*command, "--no-report", "-o", str(relayed / "results")],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert run.stderr is not None
    lines = []
    for line in run.stderr:
        lines.append(line)
        if "measuring" in line:
            break
    (relayed / "silent-farther").touch()
    lines += run.stderr.readlines()
    assert run.wait(180) == 3, lines
    run.stderr.close()
    assert any("host farther: its agent has not answered for 20 s" in line for line in lines), lines
    (relayed / "silent-farther").unlink()
    agents = [int((relayed / f"agent-{host}").read_text()) for host in ("far", "farther")]
    until(lambda: not any(is_running(agent) for agent in agents), seconds=90)

    (folder,) = (relayed / "results").iterdir()
    again = assay("profile", "--resume", folder)
    assert again["exit_code"] == 0, again
    assert again["points"][-1]["total"]["count"] > 0


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
