"""Tiny database servers on the loopback that answer what no server answers."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Talk = Callable[[socket.socket], None]


@contextmanager
def serving(talk: Talk) -> Iterator[int]:
    """A server that talks so to each who connects; gives its port."""
    listening = socket.create_server(("127.0.0.1", 0))
    talking: list[socket.socket] = []

    def one(connection: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError), connection:
            talk(connection)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                talking.append(connection)
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield listening.getsockname()[1]
    finally:
        for held in (listening, *talking):
            with contextlib.suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)
        accepting.join()
        listening.close()


def received(connection: socket.socket, count_bytes: int) -> bytes:
    """Bytes of the client; EOFError where it has gone."""
    found = b""
    while len(found) < count_bytes:
        piece = connection.recv(count_bytes - len(found))
        if not piece:
            raise EOFError
        found += piece
    return found


def until_gone(connection: socket.socket) -> None:
    """Say nothing, for as long as the client waits."""
    while connection.recv(65536):
        pass


# PostgreSQL's protocol, version 3


def postgresql_message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def postgresql_rows(values: list[bytes | None], *, oid: int = 25, count: int = 1) -> bytes:
    """A description of columns and rows."""
    described = b"".join(
        b"c%d\0" % place + struct.pack("!IHIhiH", 0, 0, oid, -1, -1, 0) for place in range(len(values))
    )
    row = b"".join(
        struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value for value in values
    )
    head = struct.pack("!H", len(values))
    return postgresql_message(b"T", head + described) + postgresql_message(b"D", head + row) * count


def postgresql(answer: Callable[[socket.socket], bytes], version: bytes = b"18.1") -> Talk:
    """A PostgreSQL that lets all in; every question gets the answer, then the end of it."""

    def talk(connection: socket.socket) -> None:
        while True:
            (length,) = struct.unpack("!I", received(connection, 4))
            if received(connection, length - 4)[:4] != struct.pack("!I", 80877103):
                break
            # No TLS.
            connection.sendall(b"N")
        said = {b"server_version": version, b"client_encoding": b"UTF8", b"standard_conforming_strings": b"on"}
        ready = postgresql_message(b"Z", b"I")
        connection.sendall(
            postgresql_message(b"R", bytes(4))
            + b"".join(postgresql_message(b"S", name + b"\0" + value + b"\0") for name, value in said.items())
            + postgresql_message(b"K", bytes(8))
            + ready
        )
        while True:
            kind = received(connection, 1)
            (length,) = struct.unpack("!I", received(connection, 4))
            received(connection, length - 4)
            if kind == b"X":
                return
            if kind in (b"Q", b"S"):
                parsed = b"" if kind == b"Q" else postgresql_message(b"1", b"") + postgresql_message(b"2", b"")
                connection.sendall(parsed)
                connection.sendall(answer(connection) + postgresql_message(b"C", b"SELECT 1\0") + ready)

    return talk


# MariaDB's protocol


def mariadb_packet(number: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "little") + bytes([number]) + body


def mariadb_rows(values: list[bytes | None], *, kind: int = 253) -> tuple[bytes, bytes, int]:
    """Packets that describe columns, the body of a row, and the number of its first packet."""

    def text(value: bytes) -> bytes:
        return bytes([len(value)]) + value

    packets = mariadb_packet(1, bytes([len(values)]))
    for place in range(len(values)):
        column = text(b"def") + text(b"") * 3 + text(b"c%d" % place) + text(b"")
        column += b"\x0c" + struct.pack("<HIBHB", 45, 1024, kind, 0, 0) + b"\0\0"
        packets += mariadb_packet(2 + place, column)
    packets += mariadb_packet(2 + len(values), b"\xfe\0\0\x02\0")
    row = b"".join(b"\xfb" if value is None else text(value) for value in values)
    return packets, row, 3 + len(values)


def mariadb(answer: Callable[[socket.socket], bytes], version: bytes = b"11.4.2-MariaDB") -> Talk:
    """A MariaDB that lets all in; every question gets the answer."""

    def talk(connection: socket.socket) -> None:
        capabilities = 0x0008_0000 | 0xA20D
        greeting = b"\x0a" + version + b"\0" + struct.pack("<I", 7) + b"12345678\0"
        greeting += struct.pack("<HBHH", capabilities & 0xFFFF, 45, 2, capabilities >> 16) + b"\x15" + bytes(10)
        connection.sendall(mariadb_packet(0, greeting + b"123456789012\0mysql_native_password\0"))
        ok = mariadb_packet(2, b"\0\0\0\x02\0\0\0")
        asked = 0
        while True:
            length = int.from_bytes(received(connection, 4)[:3], "little")
            body = received(connection, length)
            if asked and body[:1] == b"\x01":
                return
            is_setting = asked and body[1:4].upper() == b"SET"
            # The first packet is who wants in; those that set something change nothing.
            connection.sendall(ok if not asked else mariadb_packet(1, ok[4:]) if is_setting else answer(connection))
            asked += 1

    return talk


# SQL Server's protocol (MS-TDS)


def mssql_packet(body: bytes, *, is_last: bool = True, kind: int = 4) -> bytes:
    return struct.pack("!BBHHBB", kind, is_last, len(body) + 8, 0, 1, 0) + body


def mssql_message(connection: socket.socket) -> tuple[int, bytes]:
    """The client's next message: its kind and contents."""
    body = b""
    while True:
        kind, status, length, _, _ = struct.unpack("!BBHHH", received(connection, 8))
        body += received(connection, length - 8)
        if status & 1:
            return kind, body


def mssql_done() -> bytes:
    return b"\xfd" + bytes(12)


def mssql_error(text: str, number: int = 50000) -> bytes:
    said = text.encode("utf-16-le")
    body = struct.pack("<IBBH", number, 1, 16, len(said) // 2) + said + bytes(6)
    return b"\xaa" + struct.pack("<H", len(body)) + body + b"\xfd\x02" + bytes(11)


def mssql(answer: Callable[[socket.socket], bytes]) -> Talk:
    """A SQL Server without TLS that lets all in; every call gets the answer, and what is set is done."""

    def talk(connection: socket.socket) -> None:
        mssql_message(connection)
        connection.sendall(mssql_packet(b"\x01\x00\x06\x00\x01\xff\x02"))
        mssql_message(connection)
        name = "Test".encode("utf-16-le")
        login = b"\x01\x74\x00\x00\x04\x04" + name + b"\x0f\0\0\0"
        connection.sendall(mssql_packet(b"\xad" + struct.pack("<H", len(login)) + login + mssql_done()))
        while True:
            kind, _ = mssql_message(connection)
            connection.sendall(mssql_packet(answer(connection) if kind == 3 else mssql_done()))

    return talk
