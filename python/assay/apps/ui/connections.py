"""Connections to the page: how long a request may take to come, and how many connections there may be.

A connection is unproved until a request on it has shown the cookie. Unproved ones are few and short-lived, and the
oldest makes room for the next: a client with the cookie sends its request at once and is never in the way, however many
half requests others have under way, from its own address too (on loopback all have the same).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 5.0
"""A request comes within this time: from the connection on, TLS included, or from its first byte on."""
TAKE_S = 60.0
"""A client that takes nothing of its answer for so long is gone."""
UNPROVED_MAX = 128
UNPROVED_OF_PEER_MAX = 32
ENTERED_MAX = 250
ACCEPT_AGAIN_S = 1.0
"""After the system gave no connection, as where there are no descriptors left."""


class Book:
    """All connections there are, by what their clients have shown."""

    def __init__(self) -> None:
        self._unproved: dict[PageConnection, str] = {}
        self._entered: set[PageConnection] = set()

    def add(self, connection: PageConnection, peer: str) -> None:
        """Know of a new connection; an older one that has shown nothing makes room for it."""
        self._unproved[connection] = peer
        counts = Counter(self._unproved.values())
        if counts[peer] > UNPROVED_OF_PEER_MAX:
            self._make_room(peer)
        elif len(self._unproved) > UNPROVED_MAX:
            self._make_room(max(counts, key=counts.__getitem__))

    def _make_room(self, peer: str) -> None:
        oldest = next(one for one, of in self._unproved.items() if of == peer)
        del self._unproved[oldest]
        oldest.abort()

    def enter(self, connection: PageConnection) -> bool:
        """Whether the client of a connection, which has shown the cookie, may stay."""
        if connection in self._entered:
            return True
        if len(self._entered) >= ENTERED_MAX:
            return False
        self._unproved.pop(connection, None)
        self._entered.add(connection)
        return True

    def forget(self, connection: PageConnection) -> None:
        """Know no more of a connection that is gone."""
        self._unproved.pop(connection, None)
        self._entered.discard(connection)


class PageConnection(H11Protocol):
    """One connection, from before its TLS handshake on."""

    def __init__(self, book: Book, abort: Callable[[], object], **of_uvicorn: Any) -> None:
        # What answers a request finds the connection in the request's state.
        super().__init__(**of_uvicorn, app_state={"connection": self})
        self._book, self._abort = book, abort
        self._coming: asyncio.TimerHandle | None = self.loop.call_later(REQUEST_S, self.abort)
        self._taking: asyncio.TimerHandle | None = None

    def enter(self) -> bool:
        """Whether the client, which has shown the cookie, may stay."""
        return self._book.enter(self)

    def abort(self) -> None:
        """Let go of the client at once."""
        if self.transport is not None:
            self.transport.abort()
        else:
            self._abort()

    def data_received(self, data: bytes) -> None:
        """Take what the client sends, the rest of a request only for so long."""
        super().data_received(data)
        if self.conn.their_state is h11.DONE and self.conn.trailing_data[0]:
            # What follows would not be read until the answer is out, nor that the client goes. No browser does so.
            self.abort()
            return
        is_whole = self.conn.their_state not in (h11.IDLE, h11.SEND_BODY)
        if is_whole and self._coming is not None:
            self._coming.cancel()
            self._coming = None
        elif not is_whole and self._coming is None:
            self._coming = self.loop.call_later(REQUEST_S, self.abort)

    def pause_writing(self) -> None:
        """Wait for the client to take what was sent, not for ever."""
        super().pause_writing()
        if self._taking is None:
            self._taking = self.loop.call_later(TAKE_S, self.abort)

    def resume_writing(self) -> None:
        """Go on, as the client does."""
        super().resume_writing()
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave nothing of the connection."""
        self.ended()
        super().connection_lost(exc)

    def ended(self) -> None:
        """Leave nothing of it in the book, nor of its timers."""
        self._book.forget(self)
        for timer in (self._coming, self._taking):
            if timer is not None:
                timer.cancel()


class ConnectionServer(uvicorn.Server):
    """Takes connections itself, to bound them before anything is read from them."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.book = Book()
        self._accepting: list[asyncio.Task[None]] = []
        self._connecting: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections."""
        await self.lifespan.startup()
        self.servers = []
        for listening in sockets or []:
            listening.setblocking(False)
            self._accepting.append(asyncio.ensure_future(self._accept(listening)))
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take none any more, and end those there are."""
        for task in (*self._accepting, *self._connecting):
            task.cancel()
        await asyncio.gather(*self._accepting, *self._connecting, return_exceptions=True)
        await super().shutdown(sockets)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except OSError:
                await asyncio.sleep(ACCEPT_AGAIN_S)
                continue
            task = asyncio.ensure_future(self._connect(accepted, str(address[0])))
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)
            # However many come at once, what has come is read in between.
            await asyncio.sleep(0)

    async def _connect(self, accepted: socket.socket, peer: str) -> None:
        loop, own = asyncio.get_running_loop(), asyncio.current_task()
        assert own is not None
        connection = PageConnection(self.book, own.cancel, config=self.config, server_state=self.server_state)
        self.book.add(connection, peer)
        tls = self.config.ssl
        with contextlib.suppress(OSError, ssl.SSLError, asyncio.CancelledError):
            limit = {"ssl_handshake_timeout": REQUEST_S} if tls is not None else {}
            await loop.connect_accepted_socket(lambda: connection, accepted, ssl=tls, **limit)
            return
        connection.ended()
        accepted.close()
