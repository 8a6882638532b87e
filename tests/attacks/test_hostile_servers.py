"""Servers whose answers are foreign input: one line, exit code 3, bounded memory, no hang, no fault of Assay.

The attacks: garbage and floods in place of a protocol, versions and messages with control characters or of 100 MB, rows
without end, columns and rows too few or too many, other types, bytes that are no text, silence, a server that closes
in the middle of an answer.
"""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from assay.base.errors import AssayError, ExitCode
from assay.targets.databases import Database, open_database, parse_database
from assay.targets.databases.common import answers
from assay.targets.databases.mariadb import database as mariadb_module
from assay.targets.databases.mssql import database as mssql_module
from assay.targets.databases.postgresql import database as postgresql_module
from assay.targets.databases.postgresql.session import CONNECT_TIMEOUT_S
from assay.workloads.tpcc.tables import TABLES
from hostile_server import (
    Talk,
    mariadb,
    mariadb_packet,
    mariadb_rows,
    postgresql,
    postgresql_message,
    postgresql_rows,
    received,
    serving,
    until_gone,
)

MEMORY_BYTES_MAX = 3 << 29
"""What refusing a server may cost: libpq holds a message of 100 MB some times over."""


def ask(scheme: str, talk: Talk) -> str:
    """Open a database of a hostile server as a run does; gives the line that refuses it."""
    with serving(talk) as port:
        database = open_database(parse_database(f"{scheme}://u:t0p-s3cret@127.0.0.1:{port}/db", {}), TABLES)
        try:
            with pytest.raises(AssayError) as refused:
                opened(database)
        finally:
            database.close()
    assert refused.value.exit_code == ExitCode.TARGET_FAILED, refused.value
    line = str(refused.value)
    assert line.startswith(f"{scheme}://u@127.0.0.1:{port}/db: ")
    assert "t0p-s3cret" not in line
    assert len(line) < 5000
    return line


def opened(database: Database) -> None:
    database.hold()
    database.open()
    database.facts()
    database.schema()


@contextmanager
def bounded_memory() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MEMORY_BYTES_MAX


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time and rows run out early; what happens then is the same."""
    assert answers.FIRST_ANSWER_S == CONNECT_TIMEOUT_S
    for module in (postgresql_module, mssql_module):
        monkeypatch.setattr(module, "FIRST_ANSWER_S", 2.0)
    for module in (postgresql_module, mariadb_module, mssql_module):
        monkeypatch.setattr(module, "CONNECT_TIMEOUT_S", 2)
    monkeypatch.setattr(answers, "ROWS_MAX", 50_000)


# What is no protocol at all


def flood(piece: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        while True:
            connection.sendall(piece * 65536)

    return talk


def after_hearing(answer: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        received(connection, 1)
        connection.sendall(answer)
        until_gone(connection)

    return talk


def slow(connection: socket.socket) -> None:
    connection.settimeout(0.3)
    while True:
        connection.sendall(b"\x04")
        try:
            if not connection.recv(4096):
                return
        except TimeoutError:
            continue


def echo(connection: socket.socket) -> None:
    while piece := connection.recv(65536):
        connection.sendall(piece)


RAW: dict[str, Talk] = {
    "closes": lambda _: None,
    "says nothing": until_gone,
    "zeros": flood(b"\0"),
    "ones": flood(b"\xff"),
    "a web server": after_hearing(b"HTTP/1.1 400 Bad\x1b[31m\r\n\r\n" + b"E" * 5000),
    "bytes one by one": slow,
    "an echo": echo,
}


@pytest.mark.parametrize("talk", RAW)
@pytest.mark.parametrize("scheme", ["postgresql", "mariadb", "mssql"])
def test_what_is_no_server_is_said_to_be_none(scheme: str, talk: str) -> None:
    if scheme == "mssql":
        pytest.importorskip("pymssql")
    with bounded_memory():
        ask(scheme, RAW[talk])


# PostgreSQL


def endless(piece: bytes, begin: bytes = b"") -> Callable[[socket.socket], bytes]:
    def answer(connection: socket.socket) -> bytes:
        connection.sendall(begin)
        while True:
            connection.sendall(piece)

    return answer


def says(answer: bytes) -> Callable[[socket.socket], bytes]:
    return lambda _: answer


def error(text: bytes) -> Callable[[socket.socket], bytes]:
    return says(postgresql_message(b"E", b"SERROR\0VERROR\0CXX000\0M" + text + b"\0\0"))


def breaks_off(connection: socket.socket) -> bytes:
    connection.sendall(postgresql_rows([b"x" * 1000])[:20])
    connection.shutdown(socket.SHUT_RDWR)
    raise EOFError


TABLE = postgresql_rows([b"x" * 1000] * 3, count=0)
ROWS = postgresql_rows([b"x" * 1000] * 3, count=1000)[len(TABLE) :]

POSTGRESQL: dict[str, tuple[Callable[[socket.socket], bytes], str]] = {
    "text for numbers": (says(postgresql_rows([b"abc"] * 8)), "cannot be understood"),
    "no rows": (says(TABLE), "cannot be understood"),
    "no columns": (says(postgresql_rows([])), "cannot be understood"),
    "numbers that are none": (says(postgresql_rows([b"x1"] * 8, oid=23)), "cannot be understood"),
    "text that is none": (says(postgresql_rows([b"\xff\xfe"] * 8)), "cannot be understood"),
    "JSON that is deep": (says(postgresql_rows([b"[" * 100_000] * 8, oid=114)), "cannot be understood"),
    "a time that is none": (says(postgresql_rows([b"99999-99-99"] * 8, oid=1184)), "too large"),
    "control characters": (error(b"bad\x1b[2J\x07\nline two\r"), "bad"),
    "a message of 100 MB": (error(b"A" * (100 << 20)), "AAAA|no answer within"),
    "rows without end": (endless(ROWS, TABLE), "more than 60,000 rows|no answer within"),
    "notices without end": (
        endless(postgresql_message(b"N", b"SNOTICE\0M" + b"n" * 1000 + b"\0\0")),
        "no answer within",
    ),
    "a message of 2 GiB": (endless(b"\0" * 65536, TABLE + b"D\x7f\xff\xff\xff"), "refused|lost|no answer within"),
    "a half answer": (breaks_off, "connection was lost"),
    "silence": (lambda connection: until_gone(connection) or b"", "no answer within"),
}


@pytest.mark.parametrize("answer", POSTGRESQL)
def test_answers_of_a_hostile_postgresql(answer: str) -> None:
    function, words = POSTGRESQL[answer]
    with bounded_memory():
        line = ask("postgresql", postgresql(function))
        if "connection timeout expired" in line:
            # The thread that serves got no processor for so long: not what is asked here.
            line = ask("postgresql", postgresql(function))
    assert any(word in line or word.replace("\\", "") in line for word in words.split("|")), line


@pytest.mark.parametrize("version", [b"none", b"9" * 20_000, b"18\x1b[2J\x07", b""])
def test_versions_of_a_hostile_postgresql(version: bytes) -> None:
    ask("postgresql", postgresql(says(postgresql_rows([b"abc"] * 8)), version))


# MariaDB


def mariadb_answer(values: list[bytes | None], *, count: int = 1, kind: int = 253) -> Callable[[socket.socket], bytes]:
    def answer(_: socket.socket) -> bytes:
        packets, row, number = mariadb_rows(values, kind=kind)
        for place in range(count):
            packets += mariadb_packet((number + place) % 256, row)
        return packets + mariadb_packet((number + count) % 256, b"\xfe\0\0\x02\0")

    return answer


def mariadb_endless(connection: socket.socket) -> bytes:
    packets, row, number = mariadb_rows([b"x" * 200] * 8)
    connection.sendall(packets)
    while True:
        # The numbers of 256 packets.
        connection.sendall(b"".join(mariadb_packet((number + place) % 256, row) for place in range(256)))


def mariadb_error(text: bytes) -> Callable[[socket.socket], bytes]:
    return says(mariadb_packet(1, b"\xff" + (1105).to_bytes(2, "little") + b"#HY000" + text))


MARIADB: dict[str, tuple[Callable[[socket.socket], bytes], str]] = {
    "text for numbers": (mariadb_answer([b"mariadb"] * 4), "cannot be understood|is MariaDB"),
    "nothing for texts": (mariadb_answer([None] * 4), "cannot be understood|is MySQL"),
    "no rows": (mariadb_answer([b"x"], count=0), "cannot be understood"),
    "numbers that are none": (mariadb_answer([b"x1"] * 4, kind=3), "cannot be understood"),
    "text that is none": (mariadb_answer([b"\xff\xfe"] * 4), "cannot be understood"),
    "a column that is none": (
        says(mariadb_packet(1, b"\x01") + mariadb_packet(2, b"\xfc\xff")),
        "cannot be understood|lost",
    ),
    "rows without end": (mariadb_endless, "more than"),
    "control characters": (mariadb_error(b"bad\x1b[2J\x07\nline two\r"), "bad"),
    "a long message": (mariadb_error(b"A" * 1_000_000), "AAAA"),
    "an error of no number": (says(mariadb_packet(1, b"\xff")), "cannot be understood|refused"),
    "an empty packet": (says(mariadb_packet(1, b"")), "cannot be understood|refused|lost"),
    "a wrong number": (says(mariadb_packet(9, b"\0")), "refused|lost"),
}


@pytest.mark.parametrize("answer", MARIADB)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_answers_of_a_hostile_mariadb(answer: str) -> None:
    function, words = MARIADB[answer]
    with bounded_memory():
        line = ask("mariadb", mariadb(function))
    assert any(word in line for word in words.split("|")), line
