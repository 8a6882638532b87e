"""Starting runs from the page: other sites, requests sent again, two tabs, and forms that ask for more.

What would be started is replaced by a record of it, but in the last test, whose run is real.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from asking_pages import HOST, Site
from assay.apps.cli.forms import start_settings
from assay.apps.ui import starts
from assay.apps.ui.start_form import StartSettings
from assay.apps.ui.starts import CONFIRM_S, StartRefused, Starts

FORM = {"form": "profile", "values": {"path": "null:", "block": "8K", "queue_depth": "1", "duration": "1s"}}
REHEARSE, CONFIRM = "/api/start/rehearse", "/api/start/confirm"


@pytest.fixture(scope="module")
def allowed() -> StartSettings:
    return start_settings([])


class Begun:
    """Processes that would have been started."""

    def __init__(self) -> None:
        self.commands: list[Sequence[str]] = []
        self.goes_on = True

    def child(self, words: Sequence[str]) -> Begun:
        self.commands.append(words)
        return self

    def shown(self) -> dict[str, Any]:
        return {"command": "", "process": 1, "goes_on": self.goes_on, "code": None, "words": "", "started_s": 0.0,
                "run": None}  # fmt: skip


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Begun:
    """No process is made: the dry run is thought of, and a start is written down."""
    found = Begun()

    async def dry_run(words: Sequence[str]) -> tuple[int, list[str], str]:
        return 0, [f"would run {words[0]}"], ""

    monkeypatch.setattr(starts, "_dry_run", dry_run)
    monkeypatch.setattr(starts, "_Child", found.child)
    return found


@pytest.fixture
def site(allowed: StartSettings, begun: Begun, tmp_path: Path) -> Site:
    del begun
    return Site(tmp_path, allowed=allowed).entered()


def rehearsed(site: Site) -> str:
    answered = site.post(REHEARSE, FORM)
    assert answered.status == 200
    number: str = answered.document["confirm"]
    return number


def test_the_page_itself_may(site: Site, begun: Begun) -> None:
    answered = site.post(CONFIRM, {"confirm": rehearsed(site)})
    assert answered.status == 200
    assert [words[0] for words in begun.commands] == ["profile"]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"}, {"origin": ""}, {"origin": "null"}, {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://localhost:8471"}, {"origin": "https://127.0.0.1:8471"}, {"origin": f"http://{HOST}.evil"},
        {"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-site"}, {"sec_fetch_site": "none"},
        {"x_assay_start": ""}, {"x_assay_start": "guess"}, {"cookie": "assay-8471=guess"}, {"cookie": "none=1"},
        {"cookie": "none=1", "authorization": f"Bearer {'t' * 43}"},
    ],
)  # fmt: skip
def test_another_site_or_program_starts_nothing(site: Site, begun: Begun, headers: dict[str, str]) -> None:
    number = rehearsed(site)
    for path, body in ((REHEARSE, FORM), (CONFIRM, {"confirm": number})):
        answered = site.post(path, body, **headers)
        assert answered.status == 403
    assert begun.commands == []
    # What was tried used nothing up.
    assert site.post(CONFIRM, {"confirm": number}).status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json; x=1", ""]
)
def test_a_form_of_html_is_not_taken(site: Site, begun: Begun, kind: str) -> None:
    assert site.post(CONFIRM, {"confirm": rehearsed(site)}, content_type=kind).status == 415
    assert begun.commands == []


def test_a_name_that_was_bound_anew_starts_nothing(site: Site, begun: Begun) -> None:
    number = rehearsed(site)
    evil = "evil.example:8471"
    assert site.post(CONFIRM, {"confirm": number}, host=evil, origin=f"http://{evil}").status == 421
    assert begun.commands == []


@pytest.mark.parametrize("length", ["", "-1", "1e3", "99999", "9" * 400, "+5", "0x5"])
def test_what_is_sent_is_bounded(site: Site, begun: Begun, length: str) -> None:
    assert site.post(REHEARSE, FORM, content_length=length).status == 413
    assert site.post(REHEARSE, FORM, transfer_encoding="chunked").status == 413
    assert begun.commands == []


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "GET"])
def test_no_other_method_starts_anything(site: Site, begun: Begun, method: str) -> None:
    assert site.ask(CONFIRM, method=method).status in (404, 405)
    assert begun.commands == []


@pytest.mark.parametrize(
    "path", ["/", "/api/runs", "/api/start", "/metrics", "/api/start/confirm/", "//api/start/confirm"]
)
def test_nothing_is_sent_anywhere_else(site: Site, path: str) -> None:
    assert site.post(path, FORM).status == 405


def test_a_token_in_the_address_starts_nothing(site: Site, begun: Begun) -> None:
    number = rehearsed(site)
    assert site.starts is not None
    shown = f"{CONFIRM}?x-assay-start={site.starts.token}"
    assert site.post(shown, {"confirm": number}, x_assay_start="").status == 403
    assert site.post(shown, {"confirm": number}).status == 422
    assert begun.commands == []


def test_a_start_that_is_sent_again_starts_nothing(site: Site, begun: Begun) -> None:
    number = rehearsed(site)
    assert site.post(CONFIRM, {"confirm": number}).status == 200
    begun.goes_on = False
    for _ in range(3):
        again = site.post(CONFIRM, {"confirm": number})
        assert again.status == 409
        assert "look at it again" in again.document["error"]
    assert len(begun.commands) == 1


@pytest.mark.parametrize("number", [None, 1, "", "guess", ["a"], {"a": 1}, True])
def test_a_start_that_was_not_rehearsed_is_none(site: Site, begun: Begun, number: object) -> None:
    rehearsed(site)
    assert site.post(CONFIRM, {"confirm": number}).status == 409
    assert site.post(CONFIRM, {"confirm": "x", "command": ["sh"]}).status == 409
    assert site.post(CONFIRM, b"{" * 4000).status == 409
    assert begun.commands == []


def test_two_tabs_start_one_run(site: Site, begun: Begun) -> None:
    first, second = rehearsed(site), rehearsed(site)
    assert first != second
    assert site.post(CONFIRM, {"confirm": first}).status == 200
    refused = site.post(CONFIRM, {"confirm": second})
    assert refused.status == 409
    assert "goes on" in refused.document["error"]
    assert len(begun.commands) == 1


def test_a_run_that_another_started_goes_first(allowed: StartSettings, begun: Begun, tmp_path: Path) -> None:
    page = Starts(allowed, [tmp_path], goes_on=lambda: True)
    number = asyncio.run(page.rehearse(FORM))["confirm"]
    with pytest.raises(StartRefused, match="measure each other"):
        page.confirm(number)
    assert begun.commands == []


def test_a_plan_waits_so_long_and_not_longer(allowed: StartSettings, begun: Begun, tmp_path: Path) -> None:
    now_s = 0.0
    page = Starts(allowed, [tmp_path], goes_on=lambda: False, clock=lambda: now_s)
    number = asyncio.run(page.rehearse(FORM))["confirm"]
    now_s = CONFIRM_S
    with pytest.raises(StartRefused, match="waited too long"):
        page.confirm(number)
    assert begun.commands == []


def test_many_plans_fill_nothing(allowed: StartSettings, begun: Begun, tmp_path: Path) -> None:
    page = Starts(allowed, [tmp_path], goes_on=lambda: False)

    async def many() -> list[str]:
        return [(await page.rehearse(FORM))["confirm"] for _ in range(100)]

    numbers = asyncio.run(many())
    with pytest.raises(StartRefused):
        page.confirm(numbers[0])
    assert page.confirm(numbers[-1])["goes_on"]
    assert len(begun.commands) == 1


def test_where_it_was_not_allowed_nothing_is_sent_or_shown(tmp_path: Path, begun: Begun) -> None:
    closed = Site(tmp_path).entered()
    assert closed.ask("/api/start").document == {"allowed": False}
    for path, body in ((REHEARSE, FORM), (CONFIRM, {"confirm": "x"})):
        assert closed.post(path, body, x_assay_start="x").status == 405
    assert begun.commands == []


def test_the_pages_number_is_told_to_this_origin_alone(site: Site) -> None:
    answered = site.ask("/api/start", origin="https://evil.example")
    assert not [name for name in answered.headers if name.startswith("access-control-")]
    assert answered.headers["cross-origin-resource-policy"] == "same-origin"
    assert site.ask("/api/start", sec_fetch_site="cross-site").status == 403
    assert site.ask("/api/start", cookie="none=1").status == 403


def test_a_real_run_is_rehearsed_without_a_trace_and_outlives_the_page(allowed: StartSettings, tmp_path: Path) -> None:
    results = tmp_path / "results"
    page = Starts(allowed, [results], goes_on=lambda: False)
    told = asyncio.run(page.rehearse(FORM))
    assert told["refusal"] == ""
    assert any(line.startswith("time: ") for line in told["lines"])
    assert not results.exists()
    wrong = {"form": "profile", "values": {"path": "null:", "block": "--debug"}}
    refused = asyncio.run(page.rehearse(wrong))
    assert "--block" in refused["refusal"]
    assert refused["confirm"] == ""
    shown = page.confirm(told["confirm"])
    child = page._child
    assert child is not None
    # A session of its own: no signal of the page's terminal reaches it.
    assert int(Path(f"/proc/{shown['process']}/stat").read_text().rpartition(")")[2].split()[3]) == shown["process"]
    assert child._process.wait(120) == 0
    (run,) = results.iterdir()
    assert json.loads((run / "run.json").read_text())["status"] == "done"
    assert Site(results).runs.of_process(shown["process"], shown["started_s"]) is not None
