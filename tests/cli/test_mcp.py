"""What a language model may ask of runs and recordings: lists, answers, comparisons, diagnoses, and nothing else."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from assay.apps.cli.asked import AskedRuns
from assay.apps.cli.mcp import server_of
from assay.apps.ui.runs import id_of
from assay.base.errors import NotSupported, UsageError

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with two runs of before."""
    folder = tmp_path / "results"
    for name in ("profile", "oltp"):
        shutil.copytree(RUNS / name, folder / name)
    return folder


def state(folder: Path) -> Mapping[str, str]:
    """Every file below a folder, with the sum of what it holds."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_answers_change_nothing_and_are_markdown(results: Path) -> None:
    before = state(results)
    asked = AskedRuns([results])
    profile, oltp = id_of(results / "profile"), id_of(results / "oltp")

    listed = asked.listed()
    assert profile in listed
    assert oltp in listed
    shown = asked.shown(profile)
    assert "**Points**" in shown
    assert "| p0001 |" in shown
    assert "**" in asked.compared([profile, profile])
    assert state(results) == before


@pytest.mark.parametrize("run", ["", "..", "profile", "/etc", "0" * 16])
def test_what_is_asked_for_is_a_number_of_the_list_and_no_path(results: Path, run: str) -> None:
    with pytest.raises(UsageError, match="is no run of the list"):
        AskedRuns([results]).shown(run)


def test_a_link_in_the_folder_leads_nowhere(results: Path, tmp_path: Path) -> None:
    shutil.copytree(RUNS / "verify", tmp_path / "elsewhere")
    (results / "link").symlink_to(tmp_path / "elsewhere")
    asked = AskedRuns([results])
    assert "link" not in asked.listed()
    with pytest.raises(UsageError):
        asked.shown(id_of(results / "link"))


def test_an_empty_folder_is_no_error(tmp_path: Path) -> None:
    assert AskedRuns([tmp_path]).listed() == "There is no run and no recording."


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("assay.base.extras.find_spec", lambda _: None)
    with pytest.raises(NotSupported, match=r"pip install 'assay-storage\[mcp\]'"):
        server_of([tmp_path])


class TestWithTheLibrary:
    """The official client, in memory and as a program."""

    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        pytest.importorskip("mcp", reason="the extra mcp is not installed")

    def test_tools_say_that_they_only_read(self, results: Path) -> None:
        from mcp import Client

        async def ask() -> None:
            async with Client(server_of([results])) as client:
                tools = (await client.list_tools()).tools
                assert {tool.name for tool in tools} == {"list_runs", "show_run", "compare_runs", "diagnose"}
                assert all(tool.annotations.read_only_hint for tool in tools)
                answer = await client.call_tool("show_run", {"run": id_of(results / "profile")})
                assert "| p0001 |" in answer.content[0].text
                refused = await client.call_tool("show_run", {"run": "../secret"})
                assert refused.is_error
                assert "is no run of the list" in refused.content[0].text

        asyncio.run(ask())

    @pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
    def test_over_standard_input_and_output(self, results: Path) -> None:
        from mcp import Client, StdioServerParameters
        from mcp.client.stdio import stdio_client

        command = StdioServerParameters(
            command=sys.executable, args=["-m", "assay", "mcp", str(results)], env={**os.environ}
        )

        async def ask() -> None:
            async with Client(stdio_client(command)) as client:
                answer = await client.call_tool("list_runs", {})
                assert id_of(results / "profile") in answer.content[0].text

        asyncio.run(ask())
