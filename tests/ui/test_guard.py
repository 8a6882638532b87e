"""Who may ask: names bound anew, foreign sites, tokens, methods, and what every answer carries."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from asking_pages import HOST, TOKEN, Site


@pytest.fixture
def closed(results: Path) -> Site:
    """The page for who has no cookie yet."""
    return Site(results)


@pytest.mark.parametrize(
    "host",
    ["attacker.example:8471", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.nip.io:8471", "localhost:8471.evil.example", "",
     None],
)  # fmt: skip
def test_a_name_that_was_bound_anew_to_this_address_gets_nothing(site: Site, host: str | None) -> None:
    answered = site.ask("/api/runs", host=host)
    assert answered.status == 421
    assert b"profile" not in answered.body


def test_two_names_at_once_get_nothing(site: Site) -> None:
    assert site.ask("/api/runs", host="evil.example", Host=HOST).status == 421


def test_the_token_is_refused_under_a_foreign_name_too(closed: Site) -> None:
    answered = closed.ask(f"/?token={TOKEN}", host="evil.example:8471")
    assert answered.status == 421
    assert "set-cookie" not in answered.headers


def test_names_have_no_case(site: Site) -> None:
    assert site.ask("/api/runs", host="LocalHost:8471").status == 200


@pytest.mark.parametrize("path", ["/", "/api/runs", "/static/app.js", "/api/events", "/runs/x/report.html", "/nowhere"])
def test_without_a_token_nothing_is_told_but_where_it_is(closed: Site, path: str) -> None:
    answered = closed.ask(path)
    assert answered.status == 403
    assert "token is missing" in answered.text
    assert "assay ui" in answered.text


@pytest.mark.parametrize("given", ["", "x", TOKEN[:-1], TOKEN + "t", "%00", "é"])
def test_a_wrong_token_is_refused_in_words(closed: Site, given: str) -> None:
    answered = closed.ask(f"/?token={given}")
    assert answered.status == 403
    assert "token" in answered.text
    assert "set-cookie" not in answered.headers


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_has(closed: Site) -> None:
    answered = closed.ask(f"/?token={TOKEN}")
    assert answered.status == 200
    cookie = answered.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert TOKEN not in cookie
    # A link on another site leads here as well: the page is entered by this site itself.
    assert 'content="0; url=/"' in answered.text
    assert closed.ask("/api/runs", cookie=cookie.split(";")[0]).status == 200


@pytest.mark.parametrize("cookie", ["assay-8471=x", "assay-8471=", "other=1; assay-8471=guess", f"assay-8471={TOKEN}"])
def test_a_cookie_that_was_guessed_is_refused(closed: Site, cookie: str) -> None:
    assert closed.ask("/api/runs", cookie=cookie).status == 403


def test_a_token_opens_the_first_page_alone(closed: Site) -> None:
    assert closed.ask(f"/api/runs?token={TOKEN}").status == 403


def test_the_cookie_of_another_start_is_refused(site: Site, results: Path) -> None:
    assert Site(results).ask("/api/runs", cookie=site.cookie).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_it_looks_and_does_not_touch(site: Site, method: str) -> None:
    answered = site.ask("/api/runs", method=method)
    assert answered.status == 405
    assert answered.headers["allow"] == "GET, HEAD"


def test_a_request_that_another_site_caused_is_refused(site: Site) -> None:
    assert site.ask("/api/runs", sec_fetch_site="cross-site").status == 403
    assert site.ask("/api/runs", sec_fetch_site="same-origin").status == 200


def test_no_other_origin_may_read(site: Site) -> None:
    answered = site.ask("/api/runs", origin="https://evil.example")
    assert not [name for name in answered.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("path", ["/", "/api/runs", "/static/app.css", "/nowhere", "/api/runs/none/view"])
@pytest.mark.parametrize("entered", [True, False])
def test_every_answer_lets_only_files_of_the_server_run(site: Site, path: str, entered: bool) -> None:
    answered = site.ask(path, **({} if entered else {"cookie": "none=1"}))
    policy = dict(part.split(" ", 1) for part in answered.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "unsafe" not in answered.headers["content-security-policy"]
    assert answered.headers["x-content-type-options"] == "nosniff"
    assert answered.headers["referrer-policy"] == "no-referrer"
    assert answered.headers["cache-control"] == "no-store"


def test_there_is_nothing_but_http(site: Site) -> None:
    sent: list[object] = []

    async def send(message: object) -> None:
        sent.append(message)

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    asyncio.run(site.guard({"type": "websocket", "headers": [], "path": "/"}, receive, send))
    assert sent == []
