"""Who may ask: every request passes here first, and every answer gets its headers here.

A page of another site in the same browser is the danger of a server on loopback. It is kept out three times: by the
name it uses for this host (a name that was bound anew to 127.0.0.1 is not on the list), by a cookie that it neither has
nor may send, and by a policy under which nothing but files of this server runs.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = ("GET", "HEAD")
START_HEADER = b"x-assay-start"
"""Where a request that starts something shows the page's own number: a form of another site cannot send it."""
START_BYTES_MAX = 2**14
LENGTH_DIGITS_MAX = 6
START_PATHS = frozenset({"/api/start/rehearse", "/api/start/confirm"})
"""All that a browser may send something to, and only where starting runs was allowed."""
METRICS = "/metrics"
"""What a program may ask for with the token as a bearer, without a cookie."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Only scripts and styles that are files of this server."""

REPORT_POLICY = "; ".join(
    ("sandbox allow-popups", "default-src 'none'", "style-src 'unsafe-inline'", "img-src data:", "base-uri 'none'",
     "form-action 'none'", "frame-ancestors 'none'")
)  # fmt: skip
"""A report is a file from anywhere: no script of it runs, and it has no part in this origin."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>{head}</head>
<body><h1>{title}</h1><p>{text}</p></body></html>
"""


class Guard:
    """Lets through what may ask, and refuses everything else without a look at it.

    Parameters
    ----------
    app
        What is guarded.
    token
        Opens the page once, for a browser that then has the cookie.
    hosts
        Names, with their port, by which this server may be called.
    port
        Tells the cookies of several servers on one host apart.
    secure
        Whether it is asked over TLS.
    start_token
        What opens the paths that start something; None where nothing is started.
    metrics_token
        What opens the metrics beside the token, at every start of the page.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        hosts: Collection[str],
        port: int,
        secure: bool = False,
        start_token: str | None = None,
        metrics_token: str | None = None,
    ) -> None:
        self._app, self._token, self._secure = app, token.encode(), secure
        self._bearers = [one.encode() for one in (token, metrics_token) if one is not None]
        self._start_token = start_token.encode() if start_token is not None else None
        self._hosts = {host.lower() for host in hosts}
        self._cookie_name = f"assay-{port}"
        self._session = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        answer = self._refusal(scope, headers) or _no_room(scope)
        if answer is not None:
            await _send(send, *answer, head=scope["method"] == "HEAD")
            return
        await self._app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: list[tuple[bytes, bytes]]) -> tuple[int, dict[str, str], str] | None:
        """What is answered in place of the page; None where the request may go on."""
        hosts = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return _refused(scope, 421, "This server is not called so", "Open the address that `assay ui` printed.")
        if scope["method"] == "POST" and scope["path"] in START_PATHS and self._start_token is not None:
            return self._refusal_to_start(scope, headers, hosts[0])
        if scope["method"] not in METHODS:
            return _refused(scope, 405, "It only looks", "This server answers GET alone.", allow=", ".join(METHODS))
        if any(
            name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in headers
        ):
            return _refused(scope, 413, "It takes nothing", "A request to this server has no body.")
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token")
        if scope["path"] == "/" and given is not None:
            if not hmac.compare_digest(given[-1].encode(), self._token):
                return _refused(scope, 403, "The token is wrong", WHERE_IT_IS)
            return 200, {"set-cookie": self._set_cookie(), "content-type": HTML}, _ENTER
        if not self._has_cookie(headers) and not self._has_bearer(scope, headers):
            return _refused(scope, 403, "A token is missing", WHERE_IT_IS)
        sites = [value for name, value in headers if name == b"sec-fetch-site"]
        if any(site == b"cross-site" for site in sites):
            return _refused(scope, 403, "Another site asks", "Open the address that `assay ui` printed.")
        return None

    def _refusal_to_start(
        self, scope: Scope, headers: list[tuple[bytes, bytes]], host: str
    ) -> tuple[int, dict[str, str], str] | None:
        """What is answered to a request that would start something, and is not this page's own."""

        def given(name: bytes) -> list[bytes]:
            return [value for key, value in headers if key == name]

        if not self._has_cookie(headers):
            return _refused(scope, 403, "A token is missing", WHERE_IT_IS)
        origin = f"{'https' if self._secure else 'http'}://{host}".encode()
        own = [one.lower() for one in given(b"origin")] == [origin]
        if not own or given(b"sec-fetch-site") not in ([], [b"same-origin"]):
            return _refused(scope, 403, "Another site asks", "Open the address that `assay ui` printed.")
        shown = given(START_HEADER)
        if len(shown) != 1 or not hmac.compare_digest(shown[0], self._start_token or b""):
            return _refused(scope, 403, "The number of the page is missing or old", "Load the page again.")
        if given(b"content-type") != [b"application/json"]:
            return _refused(scope, 415, "It takes JSON alone", "Send application/json.")
        lengths = given(b"content-length")
        is_bounded = len(lengths) == 1 and lengths[0].isdigit() and int(lengths[0][:9]) <= START_BYTES_MAX
        if not is_bounded or given(b"transfer-encoding") or len(lengths[0]) > LENGTH_DIGITS_MAX:
            return _refused(scope, 413, "It takes less", f"A form has at most {START_BYTES_MAX} bytes.")
        return None

    def _has_cookie(self, headers: list[tuple[bytes, bytes]]) -> bool:
        wanted = self._cookie_name.encode() + b"="
        cookies = [part.strip() for name, value in headers if name == b"cookie" for part in value.split(b";")]
        return any(
            hmac.compare_digest(one.removeprefix(wanted), self._session.encode())
            for one in cookies
            if one.startswith(wanted)
        )

    def _has_bearer(self, scope: Scope, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether a program shows the token; it opens the metrics alone."""
        shown = [value for name, value in headers if name == b"authorization"]
        if scope["path"] != METRICS or len(shown) != 1:
            return False
        return any(hmac.compare_digest(shown[0], b"Bearer " + one) for one in self._bearers)

    def _set_cookie(self) -> str:
        secure = "; Secure" if self._secure else ""
        return f"{self._cookie_name}={self._session}; HttpOnly; SameSite=Strict; Path=/{secure}"


HTML = "text/html; charset=utf-8"
# Without one a browser would ask for /favicon.ico.
_ICON = '<link rel="icon" href="data:,">'
WHERE_IT_IS = "Open the whole address that `assay ui` printed, with its token; it is another one each time it starts."

# A redirect would count as the other site's where a link led here from one, and the cookie would not be sent with it.
_ENTER = _PAGE.format(
    title="Assay", head=f'{_ICON}<meta http-equiv="refresh" content="0; url=/">', text='<a href="/">The runs</a>'
)


def _no_room(scope: Scope) -> tuple[int, dict[str, str], str] | None:
    """What a client is told that may ask, while too many others do; its connection is known as one of such a client."""
    connection = scope.get("state", {}).get("connection")
    if connection is None or connection.enter():
        return None
    return _refused(scope, 503, "Too many pages are open", "Close some, or wait until they have their answers.")


def _refused(scope: Scope, status: int, title: str, text: str, **more: str) -> tuple[int, dict[str, str], str]:
    if scope["path"].startswith("/api/"):
        body = json.dumps({"error": f"{title}. {text}"})
        return status, {"content-type": "application/json", **more}, body
    shown = text.replace("`", "")
    return status, {"content-type": HTML, **more}, _PAGE.format(title=title, head=_ICON, text=shown)


async def _send(send: Send, status: int, headers: dict[str, str], body: str, *, head: bool) -> None:
    data = body.encode()
    # A client without the cookie keeps no connection.
    every = {**HEADERS, **headers, "content-length": str(len(data)), "connection": "close"}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in every.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": b"" if head else data})


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", []))
            known = {name.lower() for name, _ in own}
            own += [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in known]
            message = {**message, "headers": own}
        await send(message)

    return sending
