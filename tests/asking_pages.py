"""Asks the page's application without a socket: what a browser, or whoever attacks it, would send."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.apps.ui.app import pages
from assay.apps.ui.guard import Guard
from assay.apps.ui.start_form import StartSettings

TOKEN = "t" * 43
HOST = "127.0.0.1:8471"


@dataclass
class Answered:
    """What came back."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class Site:
    """The application over some folders, behind its guard."""

    def __init__(self, *roots: Path, allowed: StartSettings | None = None, metrics_token: str | None = None) -> None:
        app, self.runs, self.starts = pages(roots, lambda: False, allowed)
        start_token = self.starts.token if self.starts is not None else None
        self.guard = Guard(
            app, token=TOKEN, hosts=[HOST, "localhost:8471"], port=8471, start_token=start_token,
            metrics_token=metrics_token,
        )  # fmt: skip
        self.cookie = ""

    def entered(self) -> Site:
        """The same, with the cookie that the token is exchanged for."""
        self.cookie = self.ask(f"/?token={TOKEN}").headers["set-cookie"].split(";")[0]
        return self

    def post(self, path: str, body: object, **headers: str) -> Answered:
        """Send a form as the page does; a header that is given takes the place of the page's own."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        token = self.starts.token if self.starts is not None else ""
        own = {
            "origin": f"http://{HOST}", "sec_fetch_site": "same-origin", "content_type": "application/json",
            "content_length": str(len(content)), "x_assay_start": token,
        }  # fmt: skip
        shown = {name: value for name, value in {**own, **headers}.items() if value}
        return self.ask(path, method="POST", content=content, **shown)

    def ask(
        self, path: str, *, method: str = "GET", host: str | None = HOST, content: bytes = b"", **headers: str
    ) -> Answered:
        """Send one request; the path goes as it is, as an attacker's would."""
        bare, _, query = path.partition("?")
        raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        raw += [(b"host", host.encode())] if host is not None else []
        raw += [(b"cookie", self.cookie.encode())] if self.cookie and "cookie" not in headers else []
        scope = {
            "type": "http", "method": method, "path": bare, "raw_path": bare.encode(), "query_string": query.encode(),
            "headers": raw, "http_version": "1.1", "scheme": "http", "root_path": "", "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8471),
        }  # fmt: skip
        return asyncio.run(self._send(scope, content))

    async def _send(self, scope: dict[str, Any], content: bytes) -> Answered:
        answered = Answered()
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if asked:
                await asyncio.sleep(3600)
            asked = True
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answered.status = message["status"]
                answered.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
            else:
                answered.body += message.get("body", b"")

        await self.guard(scope, receive, send)
        return answered
