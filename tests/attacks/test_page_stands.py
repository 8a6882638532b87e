"""The page stands: clients that go, that never finish asking, that take nothing, and that come in hundreds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvicorn

from asking_pages import HOST, TOKEN, Site
from assay.apps.ui import asking, connections, watch
from assay.apps.ui.connections import (
    ENTERED_MAX,
    REQUEST_S,
    TAKE_S,
    UNPROVED_MAX,
    UNPROVED_OF_PEER_MAX,
    Book,
    ConnectionServer,
    PageConnection,
)
from assay.apps.ui.runs import Runs, id_of
from assay.apps.ui.watch import WAITING_MAX, RunsWatch

FIXTURES = Path(__file__).parents[1] / "fixtures" / "runs"


async def turns(count: int = 20) -> None:
    """Let everything that can go on do so."""
    for _ in range(count):
        await asyncio.sleep(0)


class Client:
    """One request to the page's application, whose client goes when the test says so."""

    def __init__(self, site: Site, path: str) -> None:
        bare, _, query = path.partition("?")
        headers = [(b"host", HOST.encode()), (b"cookie", site.cookie.encode())]
        scope = {"type": "http", "method": "GET", "path": bare, "raw_path": bare.encode(), "headers": headers,
                 "query_string": query.encode(), "http_version": "1.1", "scheme": "http", "root_path": ""}  # fmt: skip
        self.has_gone, self.takes, self.status, self.body = asyncio.Event(), asyncio.Event(), 0, b""
        self.takes.set()
        self.task = asyncio.ensure_future(site.guard(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await self.has_gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        await self.takes.wait()
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")


@pytest.fixture
def site() -> Site:
    return Site(FIXTURES).entered()


@pytest.fixture
def path() -> str:
    return f"/api/runs/{id_of(FIXTURES / 'profile')}/findings"


class Processes:
    """Stands for processes that answer: how many are at work, and a gate that they all wait at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at_work, self.most, self.begun, self.gate = 0, 0, 0, asyncio.Event()
        monkeypatch.setattr(asking, "_ask", self._ask)

    async def _ask(self, _kind: str, _asked: Any, answer: int) -> None:
        self.at_work, self.begun = self.at_work + 1, self.begun + 1
        self.most = max(self.most, self.at_work)
        try:
            await self.gate.wait()
            os.pwrite(answer, b'{"an": "answer"}', 0)
        finally:
            self.at_work -= 1


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 8, 30])
def test_tabs_that_close_give_their_places_back(
    site: Site, path: str, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Two findings were opened and closed at once, and no diagnosis came any more until the server started again."""

    async def attack() -> None:
        processes = Processes(monkeypatch)
        for _ in range(10):
            client = Client(site, path)
            await turns(steps)
            client.has_gone.set()
            await client.task
        assert processes.at_work == 0
        processes.gate.set()
        honest = Client(site, path)
        await honest.task
        assert (honest.status, honest.body) == (200, b'{"an": "answer"}')

    asyncio.run(attack())


def test_one_that_waits_for_its_turn_is_dropped_with_its_client(
    site: Site, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def attack() -> None:
        processes = Processes(monkeypatch)
        first = [Client(site, path) for _ in range(asking.AT_ONCE)]
        waiting = [Client(site, path) for _ in range(50)]
        await turns()
        for client in waiting:
            client.has_gone.set()
        await asyncio.gather(*(client.task for client in waiting))
        assert (processes.begun, processes.most) == (asking.AT_ONCE, asking.AT_ONCE)
        processes.gate.set()
        await asyncio.gather(*(client.task for client in first))
        assert [client.status for client in first] == [200] * asking.AT_ONCE

    asyncio.run(attack())


def test_a_client_that_takes_nothing_keeps_no_place(site: Site, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers were passed on as they came: who read none of them held a place, and a process, as long as it liked."""

    async def attack() -> None:
        processes = Processes(monkeypatch)
        processes.gate.set()
        monkeypatch.setattr(asking, "KEPT_BYTES_MAX", 0)
        slow = [Client(site, path) for _ in range(20)]
        for client in slow:
            client.takes.clear()
        await turns(200)
        honest = Client(site, path)
        await honest.task
        assert (honest.status, processes.at_work) == (200, 0)
        for client in slow:
            client.has_gone.set()
            await client.task

    before = len(os.listdir("/proc/self/fd"))
    asyncio.run(attack())
    # What earlier tests left to the collector of garbage may go meanwhile.
    assert len(os.listdir("/proc/self/fd")) <= before


def test_the_process_ends_with_its_client(
    site: Site, path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program, noted = tmp_path / "program", tmp_path / "process"
    program.write_text(f"#!/bin/sh\necho $$ > {noted}.new; mv {noted}.new {noted}; exec sleep 600\n")
    program.chmod(0o755)

    async def attack() -> None:
        monkeypatch.setattr(asking, "sys", SimpleNamespace(executable=str(program)))
        client = Client(site, path)
        while not noted.exists():
            await asyncio.sleep(0.01)
        client.has_gone.set()
        await client.task

    asyncio.run(attack())
    assert not Path(f"/proc/{int(noted.read_text())}").exists()


def test_what_a_process_says_at_length_stops_nothing(
    site: Site, path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A process that wrote more words than a pipe holds waited for a reader, until the time for answers was over."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nhead -c 1000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo why >&2; exit 3\n")
    program.chmod(0o755)

    async def attack() -> Client:
        monkeypatch.setattr(asking, "sys", SimpleNamespace(executable=str(program)))
        client = Client(site, path)
        await client.task
        return client

    client = asyncio.run(attack())
    assert (client.status, client.body) == (422, b'{"error":"why"}')


# Connections


class Task:
    """An answer under way that never comes."""

    def add_done_callback(self, done: object) -> None:
        """Nothing is done."""


class Loop:
    """The virtual clock of timers: they run when the test says so."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Callable[[], object], SimpleNamespace]] = []

    def call_later(self, seconds: float, call: Callable[[], object]) -> SimpleNamespace:
        handle = SimpleNamespace(is_cancelled=False)
        handle.cancel = lambda: setattr(handle, "is_cancelled", True)
        self.timers.append((seconds, call, handle))
        return handle

    def create_task(self, work: Coroutine[Any, Any, None], **_: object) -> Task:
        work.close()
        return Task()

    def pass_time(self, seconds: float) -> None:
        for after, call, handle in list(self.timers):
            if after <= seconds and not handle.is_cancelled:
                handle.is_cancelled = True
                call()


class Transport:
    """A connection's other side."""

    def __init__(self) -> None:
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True

    def is_closing(self) -> bool:
        return self.is_aborted

    def get_extra_info(self, name: str) -> object:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else None

    def write(self, data: bytes) -> None:
        del data

    close = resume_reading = pause_reading = abort


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def connection(loop: Loop) -> PageConnection:
    async def app(scope: object, receive: object, send: object) -> None:
        """Nothing is answered here."""

    config = uvicorn.Config(app, log_config=None, lifespan="off", http="h11", ws="none")
    state = uvicorn.server.ServerState()
    made = PageConnection(Book(), lambda: None, config=config, server_state=state, _loop=cast(Any, loop))
    made.connection_made(cast(Any, Transport()))
    return made


REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nhost: x\r\nx: ",
                                  b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n1234"])  # fmt: skip
def test_a_request_that_does_not_come_to_its_end_is_not_waited_for(
    connection: PageConnection, loop: Loop, sent: bytes
) -> None:
    """Headers had no time-out: two hundred half requests without a token, and everybody was told 503."""
    for byte in sent:
        connection.data_received(bytes([byte]))
    loop.pass_time(REQUEST_S - 0.1)
    assert not connection.transport.is_closing()
    loop.pass_time(REQUEST_S)
    assert connection.transport.is_closing()


def test_a_request_that_has_come_may_take_its_time(connection: PageConnection, loop: Loop) -> None:
    connection.data_received(REQUEST)
    loop.pass_time(3600)
    assert not connection.transport.is_closing()


def test_a_second_request_before_the_answer_ends_the_connection(connection: PageConnection) -> None:
    """Nothing is read while it waits, so that nobody would see the client go."""
    connection.data_received(REQUEST + REQUEST)
    assert connection.transport.is_closing()


def test_a_client_that_takes_nothing_is_gone_after_a_while(connection: PageConnection, loop: Loop) -> None:
    connection.data_received(REQUEST)
    connection.pause_writing()
    connection.resume_writing()
    loop.pass_time(TAKE_S)
    assert not connection.transport.is_closing()
    connection.pause_writing()
    loop.pass_time(TAKE_S)
    assert connection.transport.is_closing()


class Known:
    """A connection as the book knows it."""

    def __init__(self) -> None:
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def added(book: Book, peer: str, count: int) -> list[Known]:
    found = [Known() for _ in range(count)]
    for one in found:
        book.add(cast(Any, one), peer)
    return found


def test_the_oldest_without_a_cookie_makes_room() -> None:
    book = Book()
    half = added(book, "127.0.0.1", 10 * UNPROVED_OF_PEER_MAX)
    assert [one.is_aborted for one in half] == [True] * 9 * UNPROVED_OF_PEER_MAX + [False] * UNPROVED_OF_PEER_MAX
    (user,) = added(book, "127.0.0.1", 1)
    assert book.enter(cast(Any, user))
    assert not any(one.is_aborted for one in [*added(book, "127.0.0.1", 1000)[-UNPROVED_OF_PEER_MAX:], user])


def test_the_peer_with_most_makes_room_for_all() -> None:
    book = Book()
    (quiet,) = added(book, "10.0.0.9", 1)
    half = [one for peer in range(20) for one in added(book, f"10.0.1.{peer}", 20)]
    assert sum(not one.is_aborted for one in half) == UNPROVED_MAX - 1
    assert not quiet.is_aborted


def test_those_that_may_ask_are_bounded_too() -> None:
    book = Book()
    entered = added(book, "127.0.0.1", UNPROVED_OF_PEER_MAX)
    while len(entered) < ENTERED_MAX:
        assert all(book.enter(cast(Any, one)) for one in entered)
        entered += added(book, "127.0.0.1", min(UNPROVED_OF_PEER_MAX, ENTERED_MAX - len(entered)))
    assert all(book.enter(cast(Any, one)) for one in entered)
    (late,) = added(book, "127.0.0.1", 1)
    assert not book.enter(cast(Any, late))
    book.forget(cast(Any, entered[0]))
    assert book.enter(cast(Any, late))


@contextlib.asynccontextmanager
async def served(site: Site) -> AsyncIterator[int]:
    """A server of the page on a port of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = int(listening.getsockname()[1])
        site.guard._hosts = {f"127.0.0.1:{port}"}
        config = uvicorn.Config(site.guard, log_config=None, lifespan="off", http="h11", ws="none", loop="asyncio",
                                timeout_graceful_shutdown=1)  # fmt: skip
        config.load()
        server = ConnectionServer(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup([listening])
        yield port
        await server.shutdown([listening])


async def asked(port: int, text: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.encode())
    found = await reader.read()
    writer.close()
    return found


@pytest.mark.parametrize("begun", ["", "GET / HTTP/1.1\r\nHost: x\r\nX-A: ", "\x16\x03\x01\x02\x00\x01"])
def test_hundreds_of_half_requests_are_in_nobodys_way(site: Site, begun: str) -> None:
    """They come from the user's own address, as everything on loopback does, and have no token."""

    async def attack() -> None:
        async with served(site) as port:
            half = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
            for _, writer in half:
                writer.write(begun.encode())
            wanted = f"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {site.cookie}\r\nConnection: close"
            for _ in range(5):
                assert (await asked(port, f"{wanted}\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            for _, writer in half:
                writer.transport.abort()
            await turns()

    asyncio.run(attack())


@pytest.mark.parametrize("headers", ["Content-Length: 1000000000", "Transfer-Encoding: chunked"])
def test_a_body_is_not_taken(site: Site, headers: str) -> None:
    async def attack() -> None:
        async with served(site) as port:
            host = f"Host: 127.0.0.1:{port}\r\nCookie: {site.cookie}"
            found = await asked(port, f"GET /api/runs HTTP/1.1\r\n{host}\r\n{headers}\r\n\r\n")
            assert found.startswith(b"HTTP/1.1 413 ")
            assert b"connection: close" in found

    asyncio.run(attack())


def test_a_client_without_the_cookie_keeps_no_connection(site: Site) -> None:
    async def attack() -> None:
        async with served(site) as port:
            for query in ("", "?token=wrong", f"?token={TOKEN}"):
                # It would be waited for here, were the connection kept.
                found = await asked(port, f"GET /{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")
                assert b"connection: close" in found

    asyncio.run(attack())


def test_a_system_without_descriptors_is_waited_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def attack() -> None:
        monkeypatch.setattr(connections, "ACCEPT_AGAIN_S", 0)
        loop = asyncio.get_running_loop()
        accept, refusals = loop.sock_accept, iter([OSError(24, "Too many open files")] * 3)

        async def accepted(listening: socket.socket) -> Any:
            for error in refusals:
                raise error
            return await accept(listening)

        monkeypatch.setattr(loop, "sock_accept", accepted)
        async with served(site) as port:
            assert b" 421 " in await asked(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")

    asyncio.run(attack())


# Events


def test_one_look_is_for_all_streams_and_so_are_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stream looked at all runs for itself: a hundred and fifty took a third of a processor."""

    async def attack() -> None:
        found = RunsWatch(Runs([FIXTURES]), lambda: False)
        run = id_of(FIXTURES / "profile")
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(found.stream(run)) for _ in range(150)]
            looked: list[Path] = []
            plainly = watch.stamp_of
            monkeypatch.setattr(watch, "stamp_of", lambda path: looked.append(path) or plainly(path))
            monkeypatch.setattr(watch.RunFollower, "news", lambda _: [watch.event("live", {"n": 1})])
            for stream in streams:
                stream.get_nowait()
            found.look()
            assert looked == []
            assert len({id(stream.get_nowait()) for stream in streams}) == 1
            # The list has three runs, and is looked at once every so many looks.
            for _ in range(watch.LIST_EVERY):
                found.look()
            assert len(looked) == 3

    asyncio.run(attack())


def test_a_stream_that_is_not_taken_is_let_go_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def attack() -> None:
        found = RunsWatch(Runs([FIXTURES]), lambda: False)
        monkeypatch.setattr(watch.RunFollower, "news", lambda _: [b"news"])
        run = id_of(FIXTURES / "profile")
        with found.stream(run) as slow, found.stream(run) as quick:
            for _ in range(2 * WAITING_MAX):
                found.look()
                while not quick.empty():
                    assert quick.get_nowait() is not None
            assert (slow.get_nowait(), slow.empty()) == (None, True)

    asyncio.run(attack())


def test_streams_end_where_nobody_looks_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def attack() -> None:
        found = RunsWatch(Runs([FIXTURES]), lambda: False)
        monkeypatch.setattr(watch, "LOOK_S", 0)
        monkeypatch.setattr(RunsWatch, "look", lambda _: 1 // 0)
        with found.stream(None) as stream:
            looking = found._looking
            assert looking is not None
            assert await stream.get() == watch.HERE + watch.LIST
            assert await stream.get() is None
            assert isinstance(looking.exception(), ZeroDivisionError)
        # The next client is looked for again.
        with found.stream(None):
            assert found._looking not in (None, looking)
            cast(Any, found._looking).cancel()

    asyncio.run(attack())


def test_nothing_is_looked_at_once_all_have_gone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def attack() -> None:
        monkeypatch.setattr(watch, "LOOK_S", 0)
        clients = [Client(site, f"/api/events?run={id_of(FIXTURES / 'profile')}") for _ in range(20)]
        await turns()
        assert {client.status for client in clients} == {200}
        for client in clients:
            client.has_gone.set()
        await asyncio.gather(*(client.task for client in clients))
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    asyncio.run(attack())
