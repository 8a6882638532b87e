"""A password goes to agents over their pipes, and to a process anew in memory: no environment holds it for a moment."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.base import secrets
from assay.base.command_line import DESCRIPTOR, handed_over
from assay.base.secrets import Secret, secret_named, secrets_for_child, take_secrets
from assay_command import command

PASSWORD = "hunter2-of-all-hosts"


def with_descendants(process: int) -> Iterator[int]:
    """A process and all that came of it."""
    yield process
    for thread in Path(f"/proc/{process}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield from with_descendants(int(child))


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_no_process_of_a_run_over_hosts_has_it_in_its_environment(tmp_path: Path, typed: bool) -> None:
    """The coordinator had it there as long as it ran: what is taken out of an environment stays readable in /proc."""
    with socket.create_server(("127.0.0.1", 0)) as database:
        user = "me" if typed else f"me:{PASSWORD}"
        url = f"postgresql://{user}@127.0.0.1:{database.getsockname()[1]}/db_{{number}}"
        words = ("oltp", "tpcc", url, "load", "run", "--warehouses", "1", "--users", "2", "--hosts", "local,local")
        run = subprocess.Popen(
            command(*words, *(["--password-stdin"] if typed else []), "-o", tmp_path / "results"),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert run.stdin is not None
        run.stdin.write(f"{PASSWORD}\n".encode())
        run.stdin.close()
        # Both agents are at their databases: they have the password, and wait for an answer.
        connections = [database.accept()[0] for _ in range(2)]
        processes = list(with_descendants(run.pid))
        seen = {
            process: Path(f"/proc/{process}/environ").read_bytes() + Path(f"/proc/{process}/cmdline").read_bytes()
            for process in processes
        }
        for connection in connections:
            connection.close()
    assert run.stderr is not None
    said = run.stderr.read()
    run.stderr.close()
    assert run.wait(60) == 3
    assert len(processes) >= 3
    assert not [process for process, text in seen.items() if PASSWORD.encode() in text]
    assert PASSWORD.encode() not in said
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[str, Secret]:
    found: dict[str, Secret] = {}
    monkeypatch.setattr(secrets, "_kept", found)
    return found


def test_a_process_that_another_becomes_finds_it_in_memory_once(kept: dict[str, Secret]) -> None:
    kept["ASSAY_SECRET_1"] = Secret(f"{PASSWORD}=\udcff\n")
    environ = {"PATH": "/bin", **secrets_for_child()}
    assert PASSWORD not in str(environ)
    kept.clear()
    number = int(environ[DESCRIPTOR])
    assert os.get_inheritable(number)
    take_secrets(environ)
    assert environ == {"PATH": "/bin"}
    found = secret_named("ASSAY_SECRET_1", {})
    assert found is not None
    assert found.reveal() == f"{PASSWORD}=\udcff\n"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_nothing_is_handed_over_where_there_is_none() -> None:
    assert handed_over({}) == {}
    assert secrets_for_child() == {}


def test_a_long_one_fits() -> None:
    environ = handed_over({"ASSAY_SECRET_1": "x" * 1_000_000, "ASSAY_SECRET_2": "y"})
    take_secrets(environ)
    assert secret_named("ASSAY_SECRET_1", {}) == Secret("x" * 1_000_000)
    assert secret_named("ASSAY_SECRET_2", {}) == Secret("y")


def test_a_number_of_something_else_is_left_alone(kept: dict[str, Secret], tmp_path: Path) -> None:
    """The variable may come from anywhere: no other descriptor is read or closed for it."""
    path = tmp_path / "other"
    path.write_text("ASSAY_SECRET_1=planted")
    with path.open() as file:
        for text in (str(file.fileno()), "0", "-1", "99999", "x", "", "1e3", "../../etc/passwd"):
            take_secrets({DESCRIPTOR: text})
        assert file.read() == "ASSAY_SECRET_1=planted"
    assert kept == {}
