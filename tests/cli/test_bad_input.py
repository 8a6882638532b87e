"""What the command line and plans refuse: exit code 2, one line that says what was meant, and nothing made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from assay_command import Bench

LOAD = ("--size", "16M", "--queue-depth", "1", "--warmup", "0s", "--duration", "0.3s")

BAD_OPTIONS: dict[str, tuple[list[str], list[str]]] = {
    "unit of a size": (["--size", "16Q"], ["--size", "'Q'", "KiB"]),
    "unit of a block": (["--block", "8X"], ["--block", "'X'", "8X"]),
    "unit of a duration": (["--duration", "5parsecs"], ["--duration", "'parsecs'", "ms"]),
    "preset": (["--preset", "olpt"], ["'olpt'", "did you mean 'oltp'?", "tempdb"]),
    "read share above 100": (["--read", "130"], ["--read", "130", "0 to 100 %"]),
    "read share below 0": (["--read", "-5"], ["--read", "-5", "0 to 100"]),
    "block of 0": (["--block", "0"], ["--block", "0", "accepted"]),
    "block that is no multiple of the sector": (["--block", "1000"], ["--block", "1000", "sector of"]),
    "weight of a mix": (["--block", "8K:0"], ["--block", "weight"]),
    "file smaller than a block": (["--size", "64K", "--block", "1M"], ["64 KiB", "1 MiB", "--size"]),
    "region smaller than a block": (["--region", "0.001%-0.002%"], ["smaller than a block"]),
    "region backwards": (["--region", "50-20"], ["--region", "0.5", "0.2"]),
    "alignment": (["--align", "1000"], ["--align", "1000", "sector"]),
    "queue depth of 0": (["--queue-depth", "0"], ["--queue-depth", "0"]),
    "queue depth beyond the ring": (["--queue-depth", "99999"], ["--queue-depth", "4096"]),
    "queue deeper than memory": (["--queue-depth", "4096", "--block", "1M"], ["--queue-depth", "buffers"]),
    "infinite rate": (["--rate", "inf"], ["--rate", "inf"]),
    "rate that is no number": (["--rate", "fast"], ["--rate", "'fast'"]),
    "skew": (["--skew", "zip:0.9"], ["--skew", "zip:0.9", "zipf:THETA"]),
    "skew out of range": (["--skew", "hot:0.8/2"], ["--skew", "hot:0.8/2"]),
    "sync": (["--sync", "sometimes"], ["--sync", "fdatasync", "sometimes"]),
    "backend": (["--backend", "aio"], ["--backend", "io-uring", "aio"]),
    "role": (["--role", "lgo"], ["--role", "log", "lgo"]),
    "search axis": (["--search", "queue-dept"], ["--search", "queue-depth"]),
    "empty list": (["--block", ","], ["--block", "empty"]),
    "seed": (["--seed", "-1"], ["--seed", "-1"]),
    "duration of 0": (["--duration", "0s"], ["--duration", "0"]),
    "duration and least time": (["--min-time", "10s"], ["--duration", "--min-time"]),
    "time-out of 0": (["--io-timeout", "0s"], ["--io-timeout", "0"]),
    "export": (["--export", "xls"], ["--export", "'xls'", "openmetrics"]),
    "unknown option": (["--queue-dept", "1"], ["--queue-dept", "--queue-depth"]),
    "unknown metric": (["--limit", "red.p99<=2ms"], ["red.p99", "did you mean 'read.p99'?"]),
    "limit without unit": (["--limit", "read.p99<=2"], ["read.p99<=2", "ms"]),
    "limits that contradict": (
        ["--limit", "read.p99<=2ms", "--limit", "read.p50>=3ms"],
        ["read.p99<=2ms", "read.p50>=3ms", "contradict"],
    ),
    "preset and plan": (["--preset", "oltp", "--plan", "x.toml"], ["--preset", "--plan", "exclude"]),
    "plan that is missing": (["--plan", "none.toml"], ["none.toml", "No such file"]),
    "role without path": (["--volume", "log="], ["--volume", "log"]),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_a_bad_option_is_refused_before_anything_is_made(bench: Bench, name: str) -> None:
    options, named = BAD_OPTIONS[name]

    outcome = bench.profile(bench.target, *LOAD, *options)

    assert outcome.code == 2
    assert outcome.stdout == ""
    for word in named:
        assert word in outcome.complaint
    assert bench.made() == []


BAD_PLANS: dict[str, tuple[str, list[str]]] = {
    "nothing": ("# later\n", ["holds no key", "leave --plan out"]),
    "key of the plan": ('limts = ["read.mean<=2ms"]', ["'limts'", "did you mean 'limits'?"]),
    "key of a table": ("[timing]\nwarmup = 3", ["timing", "'warmup'", "did you mean 'warmup_s'?"]),
    "key of an activity": ("[[activity]]\nblok_bytes = 3", ["activity 1", "did you mean 'block_bytes'?"]),
    "key of a case": ("[[case]]\nread_shar = 1", ["case 1", "did you mean 'read_share'?"]),
    "key of the search": ('[search]\naxes = "rate"', ["search", "did you mean 'axis'?"]),
    "table instead of a list of tables": ("[activity]\nread_share = 1", ["activity", "[[...]]"]),
    "number instead of a table": ("timing = 3", ["timing", "table"]),
    "text instead of a list": ('limits = "read.mean<=2ms"', ["limits", "list"]),
    "unit": ('[[activity]]\nblock_bytes = "8X"', ["activity 1", "block_bytes", "'X'"]),
    "unit of a time": ('[timing]\nduration_s = "3w"', ["timing.duration_s", "'w'"]),
    "share": ("[[activity]]\nread_share = 1.3", ["read_share", "1.3"]),
    "table instead of a share": ("[[activity]]\nread_share = {a = 1}", ["read_share"]),
    "truth value instead of a block": ("[[activity]]\nblock_bytes = true", ["block_bytes", "True"]),
    "empty mix": ("[[activity]]\nblock_bytes = {}", ["block_bytes", "mix"]),
    "no levels": ("[[activity]]\nblock_bytes = []", ["block_bytes", "empty list"]),
    "half a region": ("[[activity]]\nregion = [0.1]", ["region"]),
    "infinite rate": ("[[activity]]\nrate = inf", ["rate", "inf"]),
    "unknown metric": ('limits = ["read.p98<=2ms"]', ["'read.p98'", "did you mean 'read.p9"]),
    "limits that contradict": ('limits = ["read.mean<=2ms", "read.mean>=3ms"]', ["contradict"]),
    "no TOML": ("a = ", ["Invalid value"]),
    "search and levels": ('[search]\naxis = "rate"\n[[activity]]\nrate = [1, 2]', ["search on rate", "levels"]),
    "least time above most time": ("[timing]\nmin_s = 10\nmax_s = 5", ["min_s 10", "max_s 5"]),
    "search ends before it starts": ('[search]\naxis = "rate"\nend = 1\nstart = 2', ["start 2", "end 1"]),
}


@pytest.mark.parametrize("name", BAD_PLANS)
def test_a_bad_plan_is_refused_with_its_name_and_key(bench: Bench, tmp_path: Path, name: str) -> None:
    text, named = BAD_PLANS[name]
    (tmp_path / "plan.toml").write_text(text)

    outcome = bench.profile(bench.target, "--size", "16M", "--plan", "plan.toml")

    assert outcome.code == 2
    for word in ("--plan plan.toml", *named):
        assert word in outcome.complaint
    assert bench.made() == []


def test_a_plan_that_is_no_text_is_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_bytes(b"\xff\xfe")

    outcome = bench.profile(bench.target, "--plan", "plan.toml")

    assert (outcome.code, "not UTF-8 text" in outcome.complaint) == (2, True)


@pytest.mark.parametrize("arguments", [["profil"], ["report"], ["profile"], ["assess", "nowhere"], ["compare", "one"]])
def test_a_verb_misspelt_or_without_what_it_needs_is_refused(bench: Bench, arguments: list[str]) -> None:
    assert bench.assay(*arguments).code == 2
    assert bench.assay(*arguments).complaint


def test_the_traceback_is_there_for_who_asks(bench: Bench) -> None:
    outcome = bench.profile(bench.target, "--read", "130", "--debug")

    assert outcome.code != 0
    assert "Traceback" in outcome.stderr


def test_results_are_refused_where_they_cannot_be_kept(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")

    outcome = bench.assay("profile", bench.target, *LOAD, "--no-report", "-o", "taken")

    assert (outcome.code, "not a folder" in outcome.complaint) == (2, True)
    assert bench.made() == []
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("words", [("oltp", "tpcc"), ("oltp", "brokerage"), ("dss", "tpch")])
def test_what_is_no_database_is_answered_with_the_spelling_of_one(bench: Bench, words: tuple[str, str]) -> None:
    """A name alone, or a string of libpq, was a fault of Assay itself."""
    for text, told in (("bench", "postgresql://USER@HOST/bench"), ("host=db1 dbname=x", "postgresql://USER@db1/x")):
        outcome = bench.assay(*words, text, "load", "run")
        assert (outcome.code, outcome.stdout) == (2, "")
        assert told in outcome.complaint
    assert bench.made() == []
