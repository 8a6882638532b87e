"""The log of a run: lines of JSON, bounded, without passwords, and never the reason for which a run ends."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from assay.base import log
from assay.base.log import Log
from assay_command import Bench


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def appending(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def test_what_happens_before_there_is_a_file_is_written_first(tmp_path: Path) -> None:
    made = Log()
    made.event("begun", argv=["profile", Path("f")])
    made.write_to(appending(tmp_path / "log"))
    made.event("ended", code=0)
    made.end()

    assert [line["event"] for line in lines(tmp_path / "log")] == ["begun", "ended"]
    assert lines(tmp_path / "log")[0]["argv"] == ["profile", "f"]


def test_passwords_are_written_nowhere(tmp_path: Path) -> None:
    made = Log()
    made.hide("hunter2")
    made.write_to(appending(tmp_path / "log"))
    made.event("retry", error="auth failed for hunter2", more={"deep": ["x hunter2 y"]})
    made.end()

    assert b"hunter2" not in (tmp_path / "log").read_bytes()
    assert lines(tmp_path / "log")[0]["more"] == {"deep": ["x *** y"]}


def test_a_log_ends_at_its_size_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "BYTES_MAX", 500)
    made = Log()
    made.write_to(appending(tmp_path / "log"))
    for number in range(100):
        made.event("wait", number=number)
    made.end()

    assert (tmp_path / "log").stat().st_size < 600
    assert [line["event"] for line in lines(tmp_path / "log")].count("log full") == 1


def test_levels_leave_out_what_is_below_them() -> None:
    made = Log()
    made.set_level("warning")
    made.event("point", level="info")
    made.event("retry", level="warning")

    assert [line["event"] for line in made.kept()] == ["retry"]


def test_a_file_that_takes_nothing_ends_no_run(tmp_path: Path) -> None:
    made = Log()
    (tmp_path / "log").touch()
    made.write_to(os.open(tmp_path / "log", os.O_RDONLY))
    made.event("point")
    made.end()


def test_what_is_shown_cannot_write_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    made = Log()
    made.shows = True
    made.event("opened", path="\x1b[31mred\n")

    assert capsys.readouterr().err == "info    event=opened  path=\\x1b[31mred\\n\n"


def test_a_run_says_what_it_did(bench: Bench) -> None:
    asked = ("--queue-depth", "1,2", "--warmup", "0s", "--duration", "0.3s", "--no-report", "-o", bench.results)
    assert bench.assay("profile", "null:?latency=1ms", *asked).code == 0
    (run,) = bench.results.iterdir()

    events = lines(run / "log.jsonl")

    assert [event["event"] for event in events] == [
        "command", "run begun", "target ready", *("point begun", "point ended") * 2, "target left", "run ended",
    ]  # fmt: skip
    assert [event["point"] for event in events if "point" in event] == ["p0001", "p0001", "p0002", "p0002"]
    assert events[-1]["code"] == 0
    assert bench.assay("--log-level", "loud", "model", "list").code == 2
