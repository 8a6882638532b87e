"""How an agent is reached: as a process here, or over ssh; each is one pipe to the same program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from assay.command_line import PREFIX
from assay.errors import NotSupported, OpenFailed, UsageError

LOCAL = "local"
"""The name of a host that stands for a process here."""

CONNECT_S = 10
"""How long ssh tries to connect."""
END_S = 5.0
"""How long a process that was asked to end is waited for before it is killed."""
STDERR_LINES = 20

SSH_OPTIONS = (
    *("-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}"),
    *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"),
)
"""ssh asks for nothing: its own keys and configuration let it in or do not."""


class Link(Protocol):
    """A pipe to an agent."""

    def write(self, data: bytes) -> None:
        """Send bytes to it."""
        ...

    def read(self, size: int) -> bytes:
        """Wait for bytes from it; none once it has ended."""
        ...

    def why_ended(self) -> str:
        """What is known of its end, in words."""
        ...

    def end(self, *, kill: bool = False) -> None:
        """Take the pipe away, at which it ends by itself, and make sure that it did; `kill` at once."""
        ...


class ProcessLink:
    """An agent that is a process here, or that ssh has started."""

    def __init__(self, command: Sequence[str]) -> None:
        # What others may read of this process's environment holds no password: they go over the pipe.
        environ = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        try:
            self.process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environ,
                # Ctrl-C is for the coordinator, which tells its agents.
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise OpenFailed(f"{command[0]}: cannot be started: {error.strerror}") from error
        self._said: deque[str] = deque(maxlen=STDERR_LINES)
        self._listener = threading.Thread(target=self._listen, name="assay-agent-stderr", daemon=True)
        self._listener.start()
        self._ending = threading.Lock()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        with suppress(OSError, ValueError):
            for line in self.process.stderr:
                self._said.append(line.decode(errors="replace").strip())
        self.process.stderr.close()

    def write(self, data: bytes) -> None:
        """Send bytes to it."""
        assert self.process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[self.process.stdin.write(view) or 0 :]

    def read(self, size: int) -> bytes:
        """Wait for bytes from it."""
        assert self.process.stdout is not None
        data = self.process.stdout.read(size) or b""
        if not data:
            self.process.stdout.close()
        return data

    def why_ended(self) -> str:
        """Signal or exit code, and its last line on standard error."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        self._listener.join(1.0)
        code = self.process.returncode
        ended = "is cut off" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
        last = next((line for line in reversed(self._said) if line), "")
        return f"{ended}: {last}" if last else ended

    @property
    def exit_code(self) -> int | None:
        """Of the process, once it has ended."""
        return self.process.poll()

    def end(self, *, kill: bool = False) -> None:
        """Close its standard input, at which an agent ends; then make sure."""
        with self._ending:
            if self.process.stdin is not None:
                with suppress(OSError):
                    self.process.stdin.close()
            if not kill:
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(END_S)
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self._listener.join(END_S)


def agent_command() -> list[str]:
    """The agent as a process of this installation."""
    return [sys.executable, "-m", "assay", "agent"]


def ssh_command(host: str) -> list[str]:
    """The agent on another host.

    Raises
    ------
    NotSupported
        There is no ssh here.
    """
    ssh = shutil.which("ssh")
    if ssh is None:
        raise NotSupported("--hosts: there is no ssh on this host; install it, or give the host: local")
    name, program = host_and_program(host)
    return [ssh, *SSH_OPTIONS, "--", name, program, "agent"]


def host_and_program(host: str) -> tuple[str, str]:
    """Name of a host, and the program there.

    Examples
    --------
    >>> host_and_program("db2"), host_and_program("me@db2:/opt/assay/bin/assay")
    (('db2', 'assay'), ('me@db2', '/opt/assay/bin/assay'))
    """
    name, separator, program = host.partition(":")
    return name, program if separator else "assay"


def named_hosts(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Names for hosts as they were given, each once, beside what was given.

    Raises
    ------
    UsageError
        A name is none.

    Examples
    --------
    >>> named_hosts(["local,local", "db2"])
    [('local-1', 'local'), ('local-2', 'local'), ('db2', 'db2')]
    """
    hosts = [host.strip() for text in texts for host in text.split(",")]
    for host in hosts:
        name, program = host_and_program(host)
        wrong = not name or name.startswith("-") or any(letter.isspace() or not letter.isprintable() for letter in host)
        if wrong or (":" in host and not program.startswith("/")):
            raise UsageError(f"--hosts {host!r}: is no host; accepted: NAME, USER@NAME, NAME:/PATH/TO/assay or local")
    bare = [host_and_program(host)[0].rpartition("@")[2] for host in hosts]
    named = []
    for place, (host, name) in enumerate(zip(hosts, bare, strict=True)):
        number = bare[: place + 1].count(name)
        several = bare.count(name) > 1
        named.append((f"{name}-{number}" if several else name, host))
    return named
