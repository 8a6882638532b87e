"""A PostgreSQL server for tests, from any folder of programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg

from assay.targets.databases.embedded.programs import choose_programs
from servers.process import PASSWORD, USER, ServerProcess, load_warehouse

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "max_connections": "60",
    "fsync": "on",
    "track_wal_io_timing": "on",
    "track_io_timing": "on",
    "shared_preload_libraries": "pg_stat_statements",
    "wal_level": "logical",
}

TEMPLATE = "loaded"
"""Database with one warehouse, of which others are copies."""


class PostgresqlServer(ServerProcess):
    """Passwords are wanted everywhere, so that what a wrong one does can be tested on socket and loopback."""

    scheme = "postgresql"

    def __init__(self, folder: Path, programs: Path) -> None:
        super().__init__(folder, choose_programs("tests", programs=programs))
        self._has_template = False
        self.url = self.url_of("postgres")
        self.data = folder / "data"
        password = folder / "password"
        password.write_text(PASSWORD)
        command = self.programs.command(
            "initdb", f"--pgdata={self.data}", f"--username={USER}", f"--pwfile={password}",
            "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync",
        )  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, cwd="/")

    def loaded_database(self) -> str:
        """A copy of one that is loaded once."""
        if not self._has_template:
            self.execute(f"CREATE DATABASE {TEMPLATE}")
            load_warehouse(self.url_of(TEMPLATE))
            self._has_template = True
        return self.fresh_database(f"TEMPLATE {TEMPLATE}")

    def execute(self, sql: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.encode())

    def _command(self) -> list[str]:
        settings = {**SETTINGS, "port": str(self.port), "unix_socket_directories": str(self.folder)}
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        return self.programs.command("postgres", "-D", str(self.data), *arguments, lifeline=True)

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True
