"""What the page is told: the list, one run, files and names from anywhere, and runs that are there no more."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from asking_pages import Site
from assay.apps.ui.app import STATIC
from assay.apps.ui.runs import LISTED_BYTES_MAX, RunPlace, Runs, id_of
from assay.apps.ui.watch import HERE, LIST, LIST_EVERY, LOOK_S, RunFollower, RunsWatch, event
from assay.record.flight import NAME
from assay.record.run_folder import RunFolder


def listed(site: Site) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in site.ask("/api/runs").document["runs"]}


class TestList:
    def test_each_run_says_what_it_is_and_how_it_stands(self, site: Site) -> None:
        rows = listed(site)
        assert set(rows) == {"profile", "oltp", "verify"}
        assert (rows["oltp"]["verb"], rows["oltp"]["met"], rows["oltp"]["missed"]) == ("oltp", 5, 1)
        assert rows["oltp"]["headline"].startswith("TPC-C-like, hammerdb: cpu of the server")
        assert rows["profile"]["title"].startswith("assay.dat in ")
        assert rows["profile"]["target"].startswith("assay.dat in ")
        assert rows["profile"]["load"] == "8 KiB random 70/30"
        assert len({row["target_id"] for row in rows.values()}) == 3
        assert not rows["profile"]["live"]

    def test_two_files_never_look_alike(self, site: Site, results: Path) -> None:
        deep = "a-folder-with-a-long-name/" * 4
        path = results / "profile" / "run.json"
        manifest = json.loads(path.read_text())
        for name in ("one", "two", "two-again"):
            shutil.copytree(results / "profile", results / name)
            volumes = [one | {"path": f"/{name[:3]}/{deep}assay.dat"} for one in manifest["target"]["volumes"][:1]]
            told = manifest | {"target": {**manifest["target"], "volumes": volumes}}
            (results / name / "run.json").write_text(json.dumps(told))
        rows = listed(site)
        assert f"assay.dat in /one/{deep}"[:-1] in rows["one"]["title"]
        assert f"assay.dat in /two/{deep}"[:-1] in rows["two"]["title"]
        # A column says when each of one file was made.
        assert rows["two"]["title"] == rows["two-again"]["title"]

    def test_the_newest_comes_first(self, site: Site) -> None:
        started = [row["started_s"] for row in site.ask("/api/runs").document["runs"]]
        assert started == sorted(started, reverse=True)

    def test_a_run_that_cannot_be_read_is_listed_with_the_reason(self, site: Site, results: Path) -> None:
        (results / "profile" / "run.json").write_text("{")
        assert "damaged" in listed(site)["profile"]["error"]

    def test_a_manifest_that_is_too_large_is_not_read_for_the_list(self, site: Site, results: Path) -> None:
        with (results / "profile" / "run.json").open("a") as file:
            file.write(" " * LISTED_BYTES_MAX)
        assert listed(site)["profile"]["status"] == "not read"

    def test_a_folder_that_is_a_run_is_shown_by_itself(self, results: Path) -> None:
        assert [place.path for place in Runs([results / "oltp"]).places()] == [results / "oltp"]

    def test_what_was_read_is_not_read_again_until_it_changes(
        self, results: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs = Runs([results])
        first = runs.rows()
        opened: list[Path] = []
        plainly = RunFolder.open
        monkeypatch.setattr(RunFolder, "open", lambda path: opened.append(path) or plainly(path))
        assert runs.rows() == first
        assert opened == []
        manifest = json.loads((results / "oltp" / "run.json").read_text())
        (results / "oltp" / "run.json").write_text(json.dumps(manifest | {"status": "failed"}))
        assert {row["name"]: row["status"] for row in runs.rows()}["oltp"] == "failed"
        assert opened == [results / "oltp"]


class TestPaths:
    @pytest.mark.parametrize(
        "path",
        [
            "/static/../app.py", "/static/%2e%2e/app.py", "/../../etc/passwd", "/static//etc/passwd",
            "/static/uplot/../../guard.py", "/runs/{id}/run.json", "/runs/{id}/points.jsonl",
            "/runs/{id}/../oltp/run.json", "/runs/{id}/%2e%2e%2frun.json", "/runs/..%2f..%2f/report.html",
            "/runs/{id}/evidence/F0001/expected.bin", "/api/runs/../../view", "/static/uplot/LICENSE",
        ],
    )  # fmt: skip
    def test_no_path_leads_out_of_what_is_shown(self, site: Site, results: Path, path: str) -> None:
        answered = site.ask(path.replace("{id}", id_of(results / "verify")))
        assert answered.status == 404
        assert b"root:" not in answered.body
        assert b"schema_version" not in answered.body

    def test_a_folder_that_is_a_link_is_not_shown(self, site: Site, results: Path, tmp_path: Path) -> None:
        shutil.move(results / "oltp", tmp_path / "elsewhere")
        (results / "oltp").symlink_to(tmp_path / "elsewhere")
        assert set(listed(site)) == {"profile", "verify"}

    def test_a_report_that_is_a_link_is_not_followed(self, site: Site, results: Path, tmp_path: Path) -> None:
        secret = tmp_path / "secret.html"
        secret.write_text("secret")
        (results / "profile" / "report.html").symlink_to(secret)
        assert listed(site)["profile"]["reports"] == []
        assert site.ask(f"/runs/{id_of(results / 'profile')}/report.html").status == 404

    def test_a_report_that_is_a_pipe_is_not_waited_for(self, site: Site, results: Path) -> None:
        os.mkfifo(results / "profile" / "report.html")
        assert site.ask(f"/runs/{id_of(results / 'profile')}/report.html").status == 404

    def test_a_report_from_anywhere_runs_nothing(self, site: Site, results: Path) -> None:
        (results / "profile" / "report.html").write_text("<script>steal()</script>")
        answered = site.ask(f"/runs/{id_of(results / 'profile')}/report.html")
        policy = answered.headers["content-security-policy"]
        assert answered.body == b"<script>steal()</script>"
        assert policy.startswith("sandbox")
        assert "allow-scripts" not in policy
        assert "allow-same-origin" not in policy
        assert "script-src" not in policy
        assert "default-src 'none'" in policy

    def test_a_report_on_paper_is_handed_over_as_a_file(self, site: Site, results: Path) -> None:
        (results / "profile" / "report.pdf").write_bytes(b"%PDF-1.7")
        answered = site.ask(f"/runs/{id_of(results / 'profile')}/report.pdf")
        assert answered.headers["content-disposition"] == 'attachment; filename="report.pdf"'
        assert answered.headers["content-type"] == "application/pdf"

    def test_names_of_any_bytes_are_shown(self, site: Site, results: Path) -> None:
        hostile = os.fsdecode(b"<img src=x onerror=alert(1)> \xff\n")
        shutil.move(results / "oltp", results / hostile)
        assert "<img src=x onerror=alert(1)> \\xff\\n" in listed(site)

    def test_the_page_has_no_script_and_no_style_in_itself(self) -> None:
        page = (STATIC / "index.html").read_text()
        assert not re.search(r"<script(?![^>]* src=)", page)
        assert "style=" not in page
        assert "<style" not in page
        for path in (STATIC / "index.html", *STATIC.glob("*.js"), *STATIC.glob("*.css")):
            text = path.read_text()
            assert "innerHTML" not in text
            assert not re.search(r"https?://(?!www\.w3\.org)", text), f"{path.name} names another server"


class TestOneRun:
    def test_a_run_that_is_gone_is_said_to_be(self, site: Site, results: Path) -> None:
        run = id_of(results / "oltp")
        shutil.rmtree(results / "oltp")
        for name in ("live", "view", "series", "matrix", "findings"):
            answered = site.ask(f"/api/runs/{run}/{name}")
            assert (answered.status, answered.document["error"]) == (404, "This run is not there, or there no more.")

    def test_the_view_comes_from_a_process_of_its_own(self, site: Site, results: Path) -> None:
        found = site.ask(f"/api/runs/{id_of(results / 'profile')}/view").document
        assert found["points"][0]["id"] == "p0001"
        assert found["figures"]["io"][0] == {"name": "iops", "title": "IOPS", "unit": "iops"}

    def test_what_that_process_says_is_wrong_is_told(self, site: Site, results: Path) -> None:
        (results / "profile" / "run.json").write_text('{"schema_version": 99}')
        answered = site.ask(f"/api/runs/{id_of(results / 'profile')}/view")
        assert answered.status == 422
        assert "newer Assay" in answered.document["error"]

    @pytest.mark.parametrize(
        "question",
        ["", "{", "[]", "{}", "{}}", '{"queries":5}', '{"path":"/etc"}', "x" * 20_000, "[" * 200_000, "%00", "null",
         '{"from_s":0,"to_s":1,"steps":-5,"queries":[]}', '{"from_s":0,"to_s":1,"queries":[]}&q={}', "{}&path=/etc"],
    )  # fmt: skip
    @pytest.mark.parametrize("is_recording", [False, True])
    def test_a_question_of_another_form_is_refused_before_a_process_is_made(
        self, site: Site, results: Path, monkeypatch: pytest.MonkeyPatch, question: str, is_recording: bool
    ) -> None:
        async def none(*_: object, **__: object) -> None:
            pytest.fail("a process was made")

        monkeypatch.setattr("asyncio.create_subprocess_exec", none)
        monkeypatch.setattr("assay.apps.ui.app.has_recording", lambda _: is_recording)
        answered = site.ask(f"/api/runs/{id_of(results / 'profile')}/series?q={question}")
        assert answered.status == 422
        assert len(answered.document["error"]) <= 300
        assert answered.document["error"].isprintable()

    @pytest.mark.parametrize("path", ["/api/runs?x=1", "/api/events?run=a&run=b", "/api/runs/{id}/view?path=/etc",
                                      "/api/compare?a={id}&b={id}&c={id}",
                                      "/runs/{id}/points.csv?at=/etc"])  # fmt: skip
    def test_a_parameter_that_is_not_read_is_refused(self, site: Site, results: Path, path: str) -> None:
        answered = site.ask(path.replace("{id}", id_of(results / "profile")))
        assert answered.status == 422
        assert ": accepted: " in answered.text or ": nothing is asked for here" in answered.text

    def test_a_damaged_recording_is_said_to_be(self, site: Site, results: Path) -> None:
        (results / "profile" / NAME).write_bytes(b"no database at all" * 100)
        answered = site.ask(f"/api/runs/{id_of(results / 'profile')}/series")
        assert answered.status == 422
        assert "cannot be read" in answered.document["error"]

    def test_a_recording_that_is_none_is_said_to_be(self, site: Site, results: Path) -> None:
        sqlite3.connect(results / "profile" / NAME).execute("CREATE TABLE other (x)")
        assert "is no recording" in site.ask(f"/api/runs/{id_of(results / 'profile')}/series").document["error"]

    @pytest.mark.parametrize("content", ['{"left_s": NaN}', '{"phase": "\\ud800", "\\udfff": 1}', '{"n": 1e999}'])
    def test_what_a_run_says_of_itself_breaks_no_page(self, site: Site, results: Path, content: str) -> None:
        """No number, and half a letter: both are read from JSON, and neither may be written."""
        (results / "profile" / "live.json").write_text(content)
        assert site.ask(f"/api/runs/{id_of(results / 'profile')}/live").status == 200


class TestEvents:
    def follower(self, results: Path) -> RunFollower:
        path = results / "profile"
        return RunFollower(RunPlace(id_of(path), path))

    def names(self, follower: RunFollower) -> list[str]:
        return [one.decode().split("\n")[0].removeprefix("event: ") for one in follower.news()]

    def test_what_a_run_says_of_itself_is_passed_on_once(self, results: Path) -> None:
        (results / "profile" / "live.json").write_text(json.dumps({"phase": "measuring", "gauges": []}))
        follower = self.follower(results)
        assert list(follower.news()) == [event("live", {"phase": "measuring", "gauges": []})]
        assert self.names(follower) == []

    def test_a_run_that_appears_before_the_first_look_is_told(self, results: Path) -> None:
        """A page read the list before it listened: what came in between never appeared."""

        async def listen() -> list[bytes | None]:
            watch = RunsWatch(Runs([results]), lambda: False)
            with watch.stream(None) as stream:
                shutil.copytree(results / "profile", results / "another")
                for _ in range(LIST_EVERY):
                    watch.look()
                return [stream.get_nowait() for _ in range(stream.qsize())]

        assert asyncio.run(listen()) == [HERE + LIST, LIST]

    @pytest.mark.parametrize("looks_before", range(LIST_EVERY))
    def test_a_change_is_told_within_half_of_two_seconds(self, results: Path, looks_before: int) -> None:
        """The rest of the two seconds after which a page shows it is for reading it."""

        async def looks_until_told() -> int:
            watch = RunsWatch(Runs([results]), lambda: False)
            with watch.stream(None) as stream:
                for _ in range(LIST_EVERY + looks_before):
                    watch.look()
                while not stream.empty():
                    stream.get_nowait()
                shutil.copytree(results / "profile", results / "another")
                looks = 0
                while stream.empty():
                    watch.look()
                    looks += 1
                return looks

        assert asyncio.run(looks_until_told()) * LOOK_S <= 1.0

    def test_a_run_that_ends_says_so(self, results: Path) -> None:
        (results / "profile" / "live.json").write_text("{}")
        follower = self.follower(results)
        assert self.names(follower) == ["live"]
        (results / "profile" / "live.json").unlink()
        assert self.names(follower) == ["over"]

    def test_files_that_change_are_told(self, results: Path) -> None:
        follower = self.follower(results)
        self.names(follower)
        with (results / "profile" / "points.jsonl").open("a") as file:
            file.write("\n")
        assert self.names(follower) == ["run"]

    def test_a_folder_that_disappears_is_told_once(self, results: Path) -> None:
        follower = self.follower(results)
        self.names(follower)
        shutil.rmtree(results / "profile")
        assert self.names(follower) == ["gone"]
        assert self.names(follower) == []

    def test_a_file_of_a_run_that_was_killed_is_not_taken_for_life(self, results: Path) -> None:
        path = results / "profile" / "live.json"
        path.write_text("{}")
        os.utime(path, (1, 1))
        assert self.names(self.follower(results)) == []

    @pytest.mark.parametrize("content", [b"", b"[1]", b"\xff", b"[" * 100_000, b"1" * (2**20 + 1)])
    def test_a_file_that_says_nothing_is_passed_over(self, results: Path, content: bytes) -> None:
        (results / "profile" / "live.json").write_bytes(content)
        assert self.names(self.follower(results)) == []

    def test_a_value_that_is_no_number_does_not_break_the_page(self, results: Path) -> None:
        (results / "profile" / "live.json").write_text('{"left_s": NaN, "phase": "' + "x" * 5000 + '"}')
        (told,) = self.follower(results).news()
        document = json.loads(told.decode().split("data: ")[1])
        assert document["left_s"] is None
        assert len(document["phase"]) == 2000
