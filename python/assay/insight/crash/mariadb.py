"""A MariaDB that Assay initialises on the volume."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from assay.base.programs import require_program
from assay.insight.crash.controls import Control
from assay.insight.crash.own_server import OwnServer, Phase
from assay.insight.crash.stage import last_line
from assay.targets.databases.common.connection import Session

DATABASE = "assay"
INSTALLER = "mariadb-install-db"
DOUBLEWRITE_PAGES = 64, 191
"""Pages of the system's file that hold the doublewrite buffer, whose copies may be torn: two extents of 64 pages."""
_READY = "ready for connections"


class OwnMariadb(OwnServer):
    """MariaDB with the system's programs; pages of 16 KiB have checksums."""

    kept = ("innodb_doublewrite", "innodb_page_size", "innodb_checksum_algorithm")
    controls: ClassVar[Mapping[str, Control]] = {
        "innodb_flush_log_at_trx_commit=0": Control(reason="nothing is durable when it is acknowledged"),
        "innodb_doublewrite=0": Control(reason="a torn page cannot be recovered", page_bytes=16384),
    }
    severe = r"\[ERROR\]"

    def __init__(self, settings: Sequence[str], user: str, *, patience_s: float, work: Path) -> None:
        self._program = Path(require_program("crash", "mariadbd"))
        super().__init__(settings, self._program, user, usual="mysql", patience_s=patience_s, work=work)
        said = subprocess.run([self._program, "--version"], capture_output=True, text=True, check=False).stdout
        words = said.split()
        version = words[words.index("Ver") + 1].partition("-")[0] if "Ver" in words[:-1] else "of no version"
        self.title = " ".join((f"MariaDB {version}", *self.settings))

    def initialise(self, place: Path) -> None:
        """Run mariadb-install-db."""
        data = self.data(place)
        data.mkdir(mode=0o700)
        self.give(data)
        own = ["--auth-root-authentication-method=normal", "--innodb-log-file-size=4M", "--innodb-flush-method=nosync"]
        common = ["--no-defaults", f"--datadir={data}", "--skip-test-db", "--skip-name-resolve"]
        command = [INSTALLER, *common, *own, f"--tmpdir={self.sockets}"]
        self.run(command)
        # A folder in the data is a database.
        database = data / DATABASE
        database.mkdir(mode=0o700)
        self.give(database)

    def command(self, data: Path, phase: Phase, settings: Sequence[str]) -> list[str]:
        """The server; where a state is checked it syncs nothing, since the state is cut already."""
        common = [
            f"datadir={data}",
            f"socket={self.sockets}/server.sock",
            f"pid-file={self.sockets}/server.pid",
            f"tmpdir={self.sockets}",
            "skip-networking",
            "skip-grant-tables",
            "skip-log-bin",
            "performance-schema=OFF",
            "max-connections=20",
            "innodb-buffer-pool-size=16M",
            "innodb-log-file-size=4M",
            "innodb-log-buffer-size=2M",
            "innodb-temp-data-file-path=ibtmp1:5M:autoextend",
            "innodb-buffer-pool-load-at-startup=0",
            "innodb-buffer-pool-dump-at-shutdown=0",
            "innodb-adaptive-hash-index=0",
        ]
        own = {
            "prepare": ["innodb-flush-method=nosync"],
            "load": ["innodb-flush-log-at-trx-commit=1"],
            "recover": [],
            "check": ["innodb-flush-method=nosync"],
        }[phase]
        return [str(self._program), "--no-defaults", *(f"--{one}" for one in (*common, *own, *settings))]

    def is_ready(self, data: Path) -> bool:
        """Whether the server's messages say so."""
        del data
        return _READY in self.messages()

    def url(self) -> str:
        """By the server's socket; without a network and without rights, root needs no password."""
        return f"mariadb://root@localhost/{DATABASE}?socket={self.sockets}/server.sock&sslmode=disable"

    def why_ended(self) -> str:
        """The first message: later ones say what follows from it."""
        return (self.severe_messages() or [""])[0]

    def make_ready(self, session: Session) -> None:
        """Nothing: the database is made with the data."""

    def checkpoint(self, session: Session) -> None:
        """Let the page cleaner write all changed pages, once."""
        session.execute("SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0")
        session.execute("SET GLOBAL innodb_max_dirty_pages_pct = 0")
        session.execute("SET GLOBAL innodb_max_dirty_pages_pct = 90")

    def damage(self, session: Session, tables: Sequence[str]) -> str | None:
        """Check all pages and indexes of the tables: CHECK TABLE."""
        for table in tables:
            for _, _, kind, text in session.query(f"CHECK TABLE {table} EXTENDED"):
                if str(kind).lower() in ("error", "warning") or (str(kind).lower() == "status" and text != "OK"):
                    return f"{table}: {text}"
        return None

    def checks_files(self) -> bool:
        """Yes: innochecksum."""
        return True

    def damaged_file(self, place: Path) -> str | None:
        """Check the checksums of all pages of all tables' files and of the system's: innochecksum."""
        data = self.data(place)
        system = data / "ibdata1"
        ranges = [(system, ("--end-page", str(DOUBLEWRITE_PAGES[0] - 1)))]
        ranges.append((system, ("--start-page", str(DOUBLEWRITE_PAGES[1] + 1))))
        for file, pages in (*ranges, *((file, ()) for file in sorted((data / DATABASE).glob("*.ibd")))):
            command = ["innochecksum", *pages, str(file)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            if done.returncode:
                return f"{file.name}: {last_line(done.stderr)}"
        return None
