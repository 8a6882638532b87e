"""Servers that attack the drivers of a load: it ends in one line, in bounded time and memory, and gives no file away.

The attacks: rows and settings without end, errors of megabytes with escapes of terminals, a proof of the password that
would be computed for an hour, a request for a local file, silence, and bytes in place of a protocol.
"""

from __future__ import annotations

import itertools
import resource
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine import run_plan, running

from hostile_server import (
    Talk,
    mariadb,
    mariadb_packet,
    mssql,
    mssql_error,
    mssql_packet,
    postgresql,
    postgresql_message,
    postgresql_rows,
    received,
    serving,
    until_gone,
)

MEMORY_KB_MAX = 400 << 10
"""What a server may cost: 64 MiB of rows, and a message of as many bytes some times over."""

USERS = 2

ESCAPES = b"\x1b]0;owned\x07\x1b[2J\n\r\xe2\x80\xae"


class Reached:
    """Stands for a database in plans: the port of a hostile server."""

    warehouses = 1

    def __init__(self, kind: str, port: int) -> None:
        self._kind, self._port = kind, port

    def connection(self) -> dict[str, Any]:
        return {
            "kind": self._kind, "host": "127.0.0.1", "port": self._port, "user": "u", "password": "t0p-s3cret",
            "database": "db", "tls": "disable",
        }  # fmt: skip


def ended(kind: str, talk: Talk) -> str:
    """Run transactions on a hostile server until they fail; gives why, and why connections were lost."""
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with serving(talk) as port:
        plan = run_plan(Reached(kind, port), users=USERS, connect_s=2.0, reconnect_s=0.5, procedures=False)  # type: ignore[arg-type]
        with running(plan) as run:
            run.until(lambda _: False)
            status = run.end()
    assert status["state"] == "failed", status
    text = str(status["error"]["text"])
    reasons = {str(gap["reason"]) for gap in status["gaps"]}
    assert f"127.0.0.1:{port}" in text
    assert "t0p-s3cret" not in text
    for line in (text, *reasons):
        assert line.isprintable()
        assert len(line) < 2000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < MEMORY_KB_MAX
    return " ".join((text, *reasons))


def after_prepared(answer: Callable[[socket.socket], bytes]) -> Callable[[socket.socket], bytes]:
    """Answer as asked while statements are prepared, which is once for each connection, and like this from then on."""
    prepared: set[int] = set()

    def say(connection: socket.socket) -> bytes:
        if connection.fileno() in prepared:
            return answer(connection)
        prepared.add(connection.fileno())
        return b""

    return say


def rows_without_end(connection: socket.socket) -> bytes:
    rows = postgresql_rows([b"x" * 8000], count=8)
    while True:
        connection.sendall(rows)


def settings_without_end(connection: socket.socket) -> None:
    received(connection, 8)
    while True:
        connection.sendall(postgresql_message(b"S", b"application_name\0assay\0") * 100)


def endless_proof(connection: socket.socket) -> None:
    """Ask for SCRAM with as many iterations as the number holds."""
    (length,) = struct.unpack("!I", received(connection, 4))
    received(connection, length - 4)
    connection.sendall(postgresql_message(b"R", struct.pack("!I", 10) + b"SCRAM-SHA-256\0\0"))
    received(connection, 1)
    (length,) = struct.unpack("!I", received(connection, 4))
    first = received(connection, length - 4)
    nonce = first.rpartition(b"r=")[2]
    challenge = b"r=" + nonce + b"server,s=QSXCR+Q6sek8bf92,i=4294967295"
    connection.sendall(postgresql_message(b"R", struct.pack("!I", 11) + challenge))
    until_gone(connection)


def silent(connection: socket.socket) -> None:
    until_gone(connection)


def noise(connection: socket.socket) -> None:
    for number in itertools.count():
        connection.sendall(bytes([number % 251]) * 4096)


def error_of(count_bytes: int) -> bytes:
    fields = b"SERROR\0C42601\0M" + ESCAPES + b"a" * count_bytes + b"\0\0"
    return postgresql_message(b"E", fields)


POSTGRESQL: dict[str, tuple[Talk, str]] = {
    "rows without end": (postgresql(after_prepared(rows_without_end)), "did not come back"),
    "settings without end": (settings_without_end, "does not answer"),
    "an endless proof": (endless_proof, "a proof that takes too long"),
    "a long error": (postgresql(after_prepared(lambda _: error_of(4 << 20))), "aaaa"),
    "a message of 2 GiB": (postgresql(after_prepared(lambda _: b"D" + b"\x7f\xff\xff\xff")), "no PostgreSQL server"),
    "silence": (silent, "does not answer"),
    "noise": (noise, "invalid message length"),
}


@pytest.mark.parametrize("attack", POSTGRESQL)
@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_a_load_on_a_hostile_postgresql_ends_in_one_line(attack: str) -> None:
    talk, said = POSTGRESQL[attack]
    assert said in ended("postgresql", talk)


def mariadb_error(count_bytes: int) -> bytes:
    return mariadb_packet(1, b"\xff" + struct.pack("<H", 1064) + b"#42000" + ESCAPES + b"a" * count_bytes)


def mariadb_answer_without_end(connection: socket.socket) -> bytes:
    piece = bytes(0xFFFFFF)
    for number in itertools.count(1):
        connection.sendall(b"\xff\xff\xff" + bytes([number % 256]) + piece)


MARIADB: dict[str, tuple[Talk, str]] = {
    "a long error": (mariadb(lambda _: mariadb_error(8 << 20)), "aaaa"),
    "silence": (silent, "does not answer"),
    "noise": (noise, "the server closed the connection"),
    "an answer cut off": (mariadb(lambda _: b"\xff\xff\xff\x01\0"), "does not answer"),
    "an answer without end": (mariadb(mariadb_answer_without_end), "larger than max_allowed_packet"),
}


@pytest.mark.parametrize("attack", MARIADB)
def test_a_load_on_a_hostile_mariadb_ends_in_one_line(attack: str) -> None:
    talk, said = MARIADB[attack]
    assert said in ended("mariadb", talk)


# A column of text without a bound.
MSSQL_TEXT = b"\x81\x01\0" + bytes(4) + b"\x09\0\xe7\xff\xff" + bytes(5) + b"\x01c\0"


def mssql_rows_without_end(connection: socket.socket) -> bytes:
    row = b"\xd1" + struct.pack("<QI", 1000, 1000) + b"x\0" * 500 + bytes(4)
    connection.sendall(mssql_packet(MSSQL_TEXT, is_last=False))
    rows = mssql_packet(row * 8, is_last=False) * 16
    while True:
        connection.sendall(rows)


def mssql_text_without_end(connection: socket.socket) -> bytes:
    """A value that says it has 2^60 bytes, and goes on."""
    connection.sendall(mssql_packet(MSSQL_TEXT + b"\xd1" + struct.pack("<Q", 1 << 60), is_last=False))
    piece = mssql_packet(struct.pack("<I", 30_000) + b"x\0" * 15_000, is_last=False) * 16
    while True:
        connection.sendall(piece)


def mssql_greeting_without_end(connection: socket.socket) -> None:
    received(connection, 8)
    while True:
        connection.sendall(mssql_packet(bytes(60_000), is_last=False))


def once(answer: Callable[[socket.socket], bytes]) -> Talk:
    """A SQL Server that answers so to the first connections, one for each user, and says nothing to others."""
    let_in = itertools.count()

    def talk(connection: socket.socket) -> None:
        (mssql(answer) if next(let_in) < USERS else silent)(connection)

    return talk


MSSQL: dict[str, tuple[Talk, str]] = {
    "rows without end": (once(mssql_rows_without_end), "rows"),
    "a text without end": (once(mssql_text_without_end), "more than was asked for"),
    "a greeting without end": (mssql_greeting_without_end, "not SQL Server"),
    "a long error": (once(lambda _: mssql_error(ESCAPES.decode() + "a" * 20_000)), "aaaa"),
    "a token that is none": (once(lambda _: b"\x04"), "invalid token type 4"),
    "a packet of no length": (lambda connection: connection.sendall(b"\x04\x01" + bytes(6)), "shorter than its header"),
    "another protocol's answer": (lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "SQL"),
    "silence": (silent, "does not answer"),
    "noise": (noise, "SQL Server"),
}


@pytest.mark.parametrize("attack", MSSQL)
@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_a_load_on_a_hostile_sql_server_ends_in_one_line(attack: str) -> None:
    talk, said = MSSQL[attack]
    assert said in ended("mssql", talk)


def test_no_server_is_given_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"what nobody may read")
    sent = bytearray()
    done = threading.Event()

    def asks_for_a_file(connection: socket.socket) -> bytes:
        connection.sendall(mariadb_packet(1, b"\xfb" + bytes(secret)))
        connection.settimeout(5)
        try:
            while piece := connection.recv(65536):
                sent.extend(piece)
        except TimeoutError:
            pass
        finally:
            done.set()
        return b""

    ended("mariadb", mariadb(asks_for_a_file))
    assert done.is_set(), "the server asked"
    assert b"nobody may read" not in sent
