"""What load generators of databases print: intervals since the start of the run, placed by --start.

Lines are as public reports have them; values are changed.
"""

from __future__ import annotations

import random
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest

from assay.telemetry.importers.importer import Into, NotTaken, Options
from assay.telemetry.importers.registry import importer_of
from foreign_files import taken, values, written

SAMPLES = Path(__file__).parent / "imported"
SYSBENCH, OLDER, GO_TPC, BENCHBASE, SUMMARY = (
    (SAMPLES / name).read_text()
    for name in ("sysbench.txt", "sysbench-0.5.txt", "go-tpc.txt", "benchbase.csv", "pgbench-summary.txt")
)


def test_intervals_of_sysbench_of_both_ages(tmp_path: Path) -> None:
    found, rows = taken(written(tmp_path, SYSBENCH), start_ns=1614679200 * 10**9)
    assert rows["imported", "transactions", "committed_count"] == [
        (1614679210 * 10**9, 10_005.0),
        (1614679220 * 10**9, 5000.0),
    ]
    assert values(rows, "imported", "transactions", "latency_p95_ns") == pytest.approx([18.28e6, 40e6])
    assert values(rows, "imported", "transactions", "failed_count") == [5.0]
    assert (found.format, found.notes) == ("sysbench", [])
    found, rows = taken(written(tmp_path, OLDER))
    assert rows["imported", "transactions", "committed_count"] == [(10 * 10**9, 1000.0)]
    assert "since its start alone" in found.notes[0]
    with pytest.raises(NotTaken, match="holds several runs"):
        taken(written(tmp_path, SYSBENCH + SYSBENCH))


def test_intervals_of_go_tpc(tmp_path: Path) -> None:
    found, rows = taken(written(tmp_path, GO_TPC))
    assert rows["imported", "new_order", "committed_count"] == [(10 * 10**9, 400.0), (20 * 10**9, 200.0)]
    assert values(rows, "imported", "payment", "latency_mean_ns") == [6e6]
    assert values(rows, "imported", "new_order", "latency_p99_ns") == [32e6, 64e6]
    assert "[Summary]" in found.ignored
    assert found.values_taken + found.values_left_out == 4 * 7


def test_rows_of_benchbase(tmp_path: Path) -> None:
    found, rows = taken(written(tmp_path, BENCHBASE))
    assert rows["imported", "transactions", "committed_count"] == [(5 * 10**9, 2548.0), (10 * 10**9, 2701.0)]
    assert values(rows, "imported", "transactions", "latency_mean_ns") == pytest.approx([6.5e6, 6.213e6])
    assert found.values_taken + found.values_left_out == 3 * 4


def test_the_summary_of_pgbench_is_one_interval(tmp_path: Path) -> None:
    _, rows = taken(written(tmp_path, SUMMARY))
    assert rows["imported", "transactions", "committed_count"] == [(60 * 10**9, 12345.0)]
    assert values(rows, "imported", "transactions", "latency_mean_ns") == [48.6e6]
    counted = SUMMARY.replace("duration: 60 s\n", "")
    _, rows = taken(written(tmp_path, counted))
    assert rows["imported", "transactions", "committed_count"][0][0] == pytest.approx(60 * 10**9)


def test_mutated_logs_are_read_or_refused() -> None:
    pieces = ("", "\n", "9" * 40, "-", ":", "x", ",", "[", "0", "1e999", "\0", '"')
    read = 0
    for seed in range(3000):
        dice = random.Random(seed)
        text = dice.choice((SYSBENCH, OLDER, GO_TPC, BENCHBASE, SUMMARY))
        for _ in range(dice.randint(1, 6)):
            place = dice.randrange(len(text))
            text = text[:place] + dice.choice(pieces) + text[place + dice.choice((0, 1, 1, 3, 40)) :]
        chosen = importer_of(text)
        if chosen is None:
            continue
        into = Into(chosen.name, Options(zone_s=0), lambda _: None)
        with suppress(NotTaken):
            chosen.read(StringIO(text, newline=""), into)
            into.flush()
            read += 1
    assert read > 1000


def test_times_and_numbers_beyond_all_bounds_are_one_line(tmp_path: Path) -> None:
    head, *rows = (SAMPLES / "benchbase.csv").read_text().splitlines(keepends=True)
    strange = [
        row.replace(row.partition(",")[0], at, 1) for row, at in zip(rows, ("0", "-1e308", "1e308"), strict=False)
    ]
    with pytest.raises(NotTaken):
        taken(written(tmp_path, head + "".join(strange)))
    # A field of a million digits was looked at from each of them.
    text = (SAMPLES / "go-tpc.txt").read_text().replace("Count: ", f"Other: {'9' * 1_000_000}, Count: ", 1)
    found, _ = taken(written(tmp_path, text))
    assert found.rows
