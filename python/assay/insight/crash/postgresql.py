"""A PostgreSQL that Assay initialises on the volume."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from assay.insight.crash.controls import Control
from assay.insight.crash.own_server import OwnServer, Phase
from assay.targets.databases.common.connection import Session
from assay.targets.databases.embedded.programs import choose_programs

SERVER_BYTES = 16
"""Megabytes of shared buffers: the data fits, and a start is quick."""


class OwnPostgres(OwnServer):
    """PostgreSQL with its programs of the wheel; each page has a checksum."""

    kept = ("full_page_writes",)
    controls: ClassVar[Mapping[str, Control]] = {
        "fsync=off": Control(reason="nothing is durable when it is acknowledged"),
        "full_page_writes=off": Control(reason="a torn page cannot be recovered", page_bytes=8192),
    }
    kill_signal = signal.SIGQUIT
    severe = r"\b(PANIC|FATAL|ERROR):"

    def __init__(self, settings: Sequence[str], user: str, *, patience_s: float, work: Path) -> None:
        self._programs = choose_programs("crash")
        program = self._programs.bin / "postgres"
        super().__init__(settings, program, user, usual="postgres", patience_s=patience_s, work=work)
        self.title = " ".join((f"PostgreSQL {self._programs.version}", *self.settings))

    def initialise(self, place: Path) -> None:
        """Run initdb: checksums, segments of the log of 1 MiB."""
        data = self.data(place)
        data.mkdir(mode=0o700)
        self.give(data)
        arguments = ["-D", str(data), "-U", "assay", "--auth=trust", "--no-sync", "--wal-segsize=1", "--locale=C", "-k"]
        self.run([str(self._programs.bin / "initdb"), *arguments, "--encoding=UTF8"])

    def command(self, data: Path, phase: Phase, settings: Sequence[str]) -> list[str]:
        """The server; where a state is checked it syncs nothing, since the state is cut already."""
        if phase in ("recover", "check"):
            (data / "postmaster.pid").unlink(missing_ok=True)
        own = {
            "prepare": ["fsync=off"],
            "load": [],
            "recover": ["autovacuum=off"],
            "check": ["fsync=off", "autovacuum=off"],
        }[phase]
        common = [
            f"unix_socket_directories={self.sockets}",
            "listen_addresses=",
            f"shared_buffers={SERVER_BYTES}MB",
            "max_connections=20",
            "checkpoint_timeout=1h",
            "max_wal_size=64MB",
            "min_wal_size=2MB",
            "max_logical_replication_workers=0",
            "timezone=UTC",
            "log_timezone=UTC",
            *(["io_method=sync"] if int(self._programs.version.split(".")[0]) >= 18 else []),
        ]
        arguments = [word for setting in (*common, *own, *settings) for word in ("-c", setting)]
        return [str(self._programs.bin / "postgres"), "-D", str(data), *arguments]

    def is_ready(self, data: Path) -> bool:
        """Whether the file of the server's process says so: line 8 is its state (src/include/utils/pidfile.h)."""
        with contextlib.suppress(OSError):
            lines = (data / "postmaster.pid").read_text(errors="replace").splitlines()
            return len(lines) >= 8 and lines[7].strip() == "ready"
        return False

    def url(self) -> str:
        """By the server's socket."""
        return f"postgresql://assay@/postgres?host={self.sockets}"

    def make_ready(self, session: Session) -> None:
        """Install amcheck."""
        session.execute("CREATE EXTENSION IF NOT EXISTS amcheck")

    def checkpoint(self, session: Session) -> None:
        """A checkpoint."""
        session.execute("CHECKPOINT")

    def damage(self, session: Session, tables: Sequence[str]) -> str | None:
        """Check all indexes with all heap tuples, and all pages of the heap: amcheck."""
        named = ", ".join(f"'{table}'" for table in tables)
        indexes = session.query(
            "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
            f" JOIN pg_am ON pg_am.oid = relam WHERE amname = 'btree' AND indrelid::regclass::text IN ({named})"
        )
        for (index,) in indexes:
            session.query("SELECT bt_index_check(%s::regclass, true)", (index,))
        for table in tables:
            damaged = session.query("SELECT msg FROM verify_heapam(%s::regclass) LIMIT 1", (table,))
            if damaged:
                return f"{table}: {damaged[0][0]}"
        return None

    def why_ended(self) -> str:
        """The last message, or the last panic."""
        found = self.severe_messages()
        return ([one for one in found if one.startswith("PANIC")] or found or [""])[-1]

    def close(self) -> None:
        """Remove the copy of the programs, if there is one."""
        if self._programs.copy is not None:
            self._programs.copy.remove()
