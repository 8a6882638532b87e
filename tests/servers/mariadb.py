"""A MariaDB server for tests."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pymysql

from assay.targets.databases.embedded.programs import Programs, choose_programs
from servers.process import PASSWORD, USER, ServerProcess

SETTINGS = {
    "bind-address": "127.0.0.1",
    "innodb-buffer-pool-size": "64M",
    "innodb-log-file-size": "64M",
    "innodb-flush-log-at-trx-commit": "1",
    # Its files are on disk, because it counts no writes of a log in /dev/shm; nothing here waits for that disk.
    "innodb-flush-method": "nosync",
    "local-infile": "ON",
    "performance-schema": "ON",
    "max-connections": "80",
    "skip-name-resolve": "ON",
}


class MariadbServer(ServerProcess):
    """Has a superuser of the tests' own beside root, who has no password and may connect by the socket.

    `settings` are taken at the next start.
    """

    scheme = "mariadb"

    def __init__(self, folder: Path) -> None:
        program = self.program()
        assert program is not None
        # Who may run a PostgreSQL here may run a MariaDB.
        chosen = choose_programs("tests")
        identity = chosen.identity
        if chosen.copy is not None:
            chosen.copy.remove()
        super().__init__(folder, Programs(bin=program.parent, identity=identity))
        self.url = self.url_of("mysql")
        self.data = folder / "data"
        self.socket = folder / "mariadb.sock"
        self.settings: dict[str, str] = {}
        installer = shutil.which("mariadb-install-db")
        assert installer is not None
        command = Programs(bin=Path(installer).parent, identity=identity).command(
            "mariadb-install-db", "--no-defaults", f"--datadir={self.data}", "--skip-test-db", "--skip-name-resolve",
            "--auth-root-authentication-method=normal", f"--tmpdir={folder}",
        )  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, cwd="/")

    @staticmethod
    def program() -> Path | None:
        """The server, if it is installed."""
        found = shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin:/usr/libexec:/usr/bin")
        return Path(found) if found is not None and shutil.which("mariadb-install-db") is not None else None

    def execute(self, sql: str) -> None:
        connection = pymysql.connect(user="root", unix_socket=str(self.socket), autocommit=True)
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
        finally:
            connection.close()

    def start(self) -> None:
        super().start()
        self.execute(f"CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'")
        self.execute(f"GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION")

    def _command(self) -> list[str]:
        settings = {
            **SETTINGS,
            **self.settings,
            "datadir": str(self.data),
            "socket": str(self.socket),
            "port": str(self.port),
            "pid-file": str(self.folder / "mariadb.pid"),
            "tmpdir": str(self.folder),
        }
        arguments = ["--no-defaults", *(f"--{name}={value}" for name, value in settings.items())]
        return self.programs.command("mariadbd", *arguments, lifeline=True, stop_signal=signal.SIGTERM)

    def _answers(self) -> bool:
        # The driver leaves a socket open that nobody answers, so it is asked only once somebody does.
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0
