"""`--need`: the load that is searched, the sentence of the answer, the document and the exit code agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from assay_command import Bench

ARRAY = "model:ps6100xv?raid=10&volumes=4"
TIMES = ("--warmup", "0.5s", "--min-time", "2s", "--max-time", "2s", "--repeats", "0")


@pytest.mark.parametrize(("rate", "held", "code"), [(300, True, 0), (9000, False, 1)])
def test_a_need_is_searched_and_answered_first(bench: Bench, rate: int, *, held: bool, code: int) -> None:
    done = bench.profile(ARRAY, "--need", f"{rate} iops 8k 70/30 read.mean<12ms", *TIMES, "--json")
    assert done.code == code, done.stderr
    need = done.document["need"]
    assert (need["held"], need["limits"]) == (held, ["read.mean<12ms"])
    # The needed rate itself is measured, unless less misses a limit already.
    assert held <= (rate in [point["load"]["rate"] for point in done.document["points"]])
    (line,) = done.document["verdict"]
    assert (line["met"], line["meaning"]) == (held, need["sentence"])
    again = bench.assay("profile", "--resume", bench.run, "--quiet")
    assert again.code == code
    assert " ".join(again.stdout.split()).startswith(need["sentence"])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--need", "fast"), "'fast' is not understood"),
        (("--need", "5 iops 8k 70/30", "--need-from", "x"), "--need and --need-from exclude each other"),
        (("--need", "5 iops 8k 70/30", "--block", "8K"), "--block: the need says which I/O is asked for"),
        (("--need", "5 iops 8k 70/30", "--preset", "oltp"), "--preset: the need says which I/O is asked for"),
        (("--need-from", "none"), "there is no such file or folder"),
    ],
)
def test_a_need_that_cannot_be_is_one_line(bench: Bench, options: tuple[str, ...], why: str) -> None:
    done = bench.profile(ARRAY, *options)
    assert (done.code, why in done.complaint) == (2, True)


def test_an_examination_measures_its_need_first(bench: Bench) -> None:
    need = "500 iops 8k 70/30 read.p99<2ms"
    done = bench.assay("assess", bench.folder, "--quick", "--only", "log", "--need", need, "--dry-run", "--json")
    assert done.code == 0, done.stderr
    first, log = done.document["parts"]
    assert (first["name"], first["plan"]["limits"], first["plan"]["search"]["start"]) == (
        "need",
        ["read.p99<2ms"],
        125.0,
    )
    assert (log["name"], log["plan"]["user_limits"]) == ("log", False)
