"""Work for one client: it is left off where the client goes, whatever it waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class WhileThere(Response):
    """An answer whose work begins when it is sent, and ends with its client.

    All that the work holds is taken and given back in its one coroutine. No part of it waits to be asked for the next
    piece, so that none is left behind that never was.
    """

    def __init__(self) -> None:
        # Status and headers are known when the work has something to send.
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await _while_there(receive, self.answer(scope, receive, send))

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Do the work, and send what comes of it."""
        raise NotImplementedError


async def _while_there(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
    if not working.cancelled():
        working.result()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
