"""TLS in the words of libpq's sslmode, on servers that have a certificate of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.base.errors import NotSupported
from assay.targets.databases import open_database, parse_database
from assay.workloads.tpcc.tables import TABLES
from servers.mariadb import MariadbServer
from servers.postgresql import PostgresqlServer


@pytest.fixture(scope="module")
def certificates() -> Iterator[Path]:
    """`server.pem` for the host `localhost`, which trusts itself, and `other.pem`, which nobody has."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = Path(tempfile.mkdtemp(prefix="assay-tls-"))
    folder.chmod(0o755)
    for name in ("server", "other"):
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                   "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                   "-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem")]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)
        (folder / f"{name}.key").chmod(0o600)
    yield folder
    shutil.rmtree(folder)


def check(url: str, certificates: Path, encrypted: str) -> None:
    """What each way to ask for TLS comes to, where the certificate names `localhost` only."""
    named = url.replace("127.0.0.1", "localhost")
    mine, other = certificates / "server.pem", certificates / "other.pem"
    for asked, expected in (
        (f"{url}?sslmode=disable", False),
        (url, True),
        (f"{url}?sslmode=require", True),
        (f"{url}?sslmode=verify-ca&sslrootcert={mine}", True),
        (f"{named}?sslmode=verify-full&sslrootcert={mine}", True),
    ):
        database = open_database(parse_database(asked, {}), TABLES)
        database.open()
        rows = database.query(encrypted)
        database.close()
        assert (bool(rows and rows[0][-1])) == expected, asked
    for asked in (
        f"{url}?sslmode=verify-full&sslrootcert={mine}",
        f"{named}?sslmode=verify-full&sslrootcert={other}",
        f"{named}?sslmode=verify-ca&sslrootcert={other}",
    ):
        with pytest.raises(NotSupported, match=r"TLS as asked \(sslmode=verify-.*\) is not to be had"):
            open_database(parse_database(asked, {}), TABLES).open()


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_postgresql(postgresql15: PostgresqlServer, certificates: Path) -> None:
    owner = postgresql15.programs.identity.owner
    for name in ("server.key", "server.pem"):
        shutil.copy(certificates / name, postgresql15.folder / name)
        os.chown(postgresql15.folder / name, *owner)
    (postgresql15.folder / "server.key").chmod(0o600)
    settings = {"ssl_cert_file": "server.pem", "ssl_key_file": "server.key"}
    for setting, name in settings.items():
        postgresql15.execute(f"ALTER SYSTEM SET {setting} = '{postgresql15.folder / name}'")
    try:
        postgresql15.execute("ALTER SYSTEM SET ssl = on")
        postgresql15.restart()
        check(postgresql15.url, certificates, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    finally:
        postgresql15.execute("ALTER SYSTEM SET ssl = off")
        postgresql15.restart()


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_mariadb(mariadb: MariadbServer, certificates: Path) -> None:
    owner = mariadb.programs.identity.owner
    for path in certificates.iterdir():
        os.chown(path, *owner)
    mariadb.stop()
    mariadb.settings = {"ssl-cert": str(certificates / "server.pem"), "ssl-key": str(certificates / "server.key")}
    try:
        mariadb.start()
        check(mariadb.url, certificates, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")
    finally:
        mariadb.settings = {}
        mariadb.restart()
