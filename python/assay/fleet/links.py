"""How an agent is reached: as a process here, or over ssh; each is one pipe to the same program."""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from assay.base.command_line import DESCRIPTOR, PREFIX
from assay.base.errors import OpenFailed, UsageError
from assay.base.log import event
from assay.base.paths import plain
from assay.base.programs import require_program

LOCAL = "local"
"""The name of a host that stands for a process here."""

CONNECT_S = 10
"""How long ssh tries to connect."""
END_S = 5.0
"""How long a process that was asked to end is waited for before it is killed."""
SAID_BYTES_MAX, SHOWN_MAX = 4096, 300
TAKES_S = 20.0
"""An agent that takes nothing of a message for so long is given up."""
HOSTS_MAX = 1000
USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
"""Names of users and hosts as ssh gets them: no option, nothing that a shell or a configuration of ssh takes apart."""
PROGRAM = re.compile(r"/[^/\x00-\x20\x7f][^\x00-\x20\x7f]{0,1023}")

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
        environ = {name: value for name, value in os.environ.items() if not name.startswith((PREFIX, DESCRIPTOR))}
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
        event("child begun", program="agent", pid=self.process.pid)
        assert self.process.stdin is not None
        os.set_blocking(self.process.stdin.fileno(), False)
        self._takes_nothing = False
        self._said = b""
        self._listener = threading.Thread(target=self._listen, name="assay-agent-stderr", daemon=True)
        self._listener.start()
        self._ending = threading.Lock()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        with suppress(OSError, ValueError):
            # Of a flood, or of a line without end, the last is kept.
            while said := os.read(self.process.stderr.fileno(), 1 << 16):
                self._said = (self._said + said)[-SAID_BYTES_MAX:]
        self.process.stderr.close()

    def write(self, data: bytes) -> None:
        """Send bytes to it; one that does not take them is ended.

        Raises
        ------
        OSError
            It has ended, or was.
        """
        assert self.process.stdin is not None
        view = memoryview(data)
        ready = select.poll()
        ready.register(self.process.stdin.fileno(), select.POLLOUT)
        while view:
            if not ready.poll(TAKES_S * 1e3):
                self._takes_nothing = True
                self.process.kill()
                raise TimeoutError("it takes nothing")
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
        if self._takes_nothing:
            return f"it took nothing for {TAKES_S:.0f} s"
        code = self.process.returncode
        ended = "is cut off" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
        lines = self._said.decode(errors="replace").strip().splitlines()
        return f"{ended}: {plain(lines[-1].strip())[:SHOWN_MAX]}" if lines else ended

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
            event("child ended", program="agent", pid=self.process.pid, code=self.process.returncode)


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
    ssh = require_program("--hosts", "ssh", otherwise="or give the host: local")
    name, program = host_and_program(host)
    # What follows the name is read by a shell there.
    return [ssh, *SSH_OPTIONS, "--", name, shlex.quote(program), "agent"]


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
    if len(hosts) > HOSTS_MAX:
        raise UsageError(f"--hosts: at most {HOSTS_MAX:,} hosts are accepted, and {len(hosts):,} are given")
    for host in hosts:
        if not _is_host(host):
            raise UsageError(
                f"--hosts {plain(repr(host))[:SHOWN_MAX]}: is no host; accepted: NAME, USER@NAME, NAME:/PATH/TO/assay"
                " or local; what has another name, such as an address of IPv6, gets one in ssh's own configuration"
            )
    bare = [host_and_program(host)[0].rpartition("@")[2] for host in hosts]
    counts, numbers = Counter(bare), Counter[str]()
    named = []
    for host, name in zip(hosts, bare, strict=True):
        numbers[name] += 1
        named.append((f"{name}-{numbers[name]}" if counts[name] > 1 else name, host))
    twice = next((name for name, count in Counter(name for name, _ in named).items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"--hosts: two hosts would be called {twice}; give one of them another name")
    return named


def _is_host(host: str) -> bool:
    """Whether a host may be given to ssh, and its name to a folder."""
    name, program = host_and_program(host)
    user, separator, bare = name.rpartition("@")
    has_program = ":" in host
    return (
        NAME.fullmatch(bare) is not None
        and (not separator or USER.fullmatch(user) is not None)
        and (not has_program or PROGRAM.fullmatch(program) is not None)
    )
