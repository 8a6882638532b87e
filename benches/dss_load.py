"""Loading the TPC-H-like data set against what users have: ready files into PostgreSQL and into DuckDB, in turn.

    python benches/dss_load.py --folder /data --scale 1 --pairs 3

Assay generates the rows while it loads them, through the loader that `assay dss tpch TARGET load` uses. PostgreSQL
beside it reads ready text files with COPY on the server, as many files of each table as there are connections; DuckDB
reads ready Parquet files with INSERT ... SELECT. Both fill the same empty tables without indexes, and a checkpoint
ends the time. Every row gives medians, the ratio Assay / ready files pair by pair, and the spread of the ready files
against themselves. First comes how many rows one core generates.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb

from assay import _core
from assay.targets.databases import Database, open_database, parse_database
from assay.targets.databases.common.columns import record_batch
from assay.workloads.databases.loading import load_chunks
from assay.workloads.tpch.plan import TpchPlan
from assay.workloads.tpch.tables import TABLES

KIND = "tpch"
SEED = 1
BATCH_ROWS = 122_880
"""Rows of a row group of DuckDB."""

CONNECTIONS = 4
"""That load into PostgreSQL, on both sides."""

Chunk = tuple[str, int, int]

LINES_SAID: list[str] = []


def say(text: str) -> None:
    """Print a line and keep it for the results."""
    print(text, flush=True)
    LINES_SAID.append(text)


def batches(scale: int, chunk: Chunk, rows_max: int = BATCH_ROWS) -> Iterator[tuple[str, Any]]:
    """Batches of a chunk, each with its table."""
    rows_of = _core.ChunkRows(KIND, scale, SEED, chunk)
    while batch := rows_of.next_batch(rows_max):
        table, rows, columns = batch
        yield table, record_batch(rows, columns)


def generate(scale: int) -> float:
    """Rows per second that one core makes into columns."""
    chunks = _core.chunks_of(KIND, scale)[-20:]
    count, began = 0, time.thread_time()
    for chunk in chunks:
        count += sum(batch.num_rows for _, batch in batches(scale, chunk))
    return count / (time.thread_time() - began)


def in_turn(pairs: int, ours: Callable[[], float], theirs: Callable[[], float]) -> dict[str, Any]:
    """Seconds of both, alternating."""
    seconds: dict[str, list[float]] = {"assay": [], "files": []}
    for pair in range(pairs):
        turns = [("assay", ours), ("files", theirs)]
        for name, run in turns if pair % 2 == 0 else reversed(turns):
            seconds[name].append(run())
    ratios = [theirs / ours for ours, theirs in zip(seconds["assay"], seconds["files"], strict=True)]
    against_itself = [after / before for before, after in itertools.pairwise(seconds["files"])]
    return seconds | {"ratios": ratios, "ratio": statistics.median(ratios), "files_against_itself": against_itself}


def report(name: str, found: dict[str, Any], rows: int) -> None:
    """One row of the results."""
    rates = {key: rows / statistics.median(found[key]) for key in ("assay", "files")}
    spread = [f"{ratio:.2f}" for ratio in found["files_against_itself"]]
    say(
        f"| {name} | {rates['assay']:,.0f} | {rates['files']:,.0f} | {found['ratio']:.2f} ({min(found['ratios']):.2f}"
        f" to {max(found['ratios']):.2f}) | {', '.join(spread) or '-'} |"
    )


def make_files(folder: Path, scale: int, parts: int) -> dict[str, int]:
    """Ready files of each table: Parquet in one, text in parts; returns how many rows each has."""
    with duckdb.connect() as connection:
        for name, statement in TABLES.statements("duckdb", "schema"):
            if name in TABLES.names:
                connection.execute(statement)
        for chunk in _core.chunks_of(KIND, scale):
            for table, _batch in batches(scale, chunk):
                connection.execute(f"INSERT INTO {table} SELECT * FROM _batch")
        counts = {}
        for table in TABLES.names:
            (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0]
            connection.execute(f"COPY {table} TO '{folder}/{table}.parquet'")
            each = -(-count // parts)
            for part in range(parts):
                rows = f"SELECT * FROM {table} LIMIT {each} OFFSET {part * each}"
                connection.execute(f"COPY ({rows}) TO '{folder}/{table}.{part}.csv' (DELIMITER '|', HEADER false)")
            counts[table] = int(count)
    for path in folder.glob("*.csv"):
        path.chmod(0o644)
    folder.chmod(0o755)
    return counts


def opened(target: str) -> Database:
    """A database of the benchmark's own."""
    database = open_database(parse_database(target), TABLES)
    database.open(connections=40)
    return database


def filled(database: Database, name: str, fill: Callable[[], object], counts: dict[str, int]) -> float:
    """Seconds that filling empty tables took, the checkpoint at its end included."""
    for file in ("drop", "schema"):
        for _, statement in TABLES.statements(database.dialect, file):
            database.execute(statement)
    database.checkpoint()
    began = time.monotonic()
    with database.loading():
        fill()
    database.checkpoint()
    seconds = time.monotonic() - began
    for table, count in counts.items():
        assert int(database.query(f"SELECT count(*) FROM {table}")[0][0]) == count, table
    say(f"  {database.dialect}: {name} {seconds:.1f} s")
    return seconds


def postgresql(folder: Path, scale: int, counts: dict[str, int], pairs: int) -> dict[str, Any]:
    """Against COPY of text files on the server."""
    # Commits do not wait for the disk, so that ways to load are compared and not flushes of a log.
    database = opened(f"embedded:{folder}/database?set.synchronous_commit=off&set.max_wal_size=4GB")
    plan, chunks = TpchPlan(load_connections=CONNECTIONS), _core.chunks_of(KIND, scale)
    files = [
        f"COPY {table} FROM '{folder}/{table}.{part}.csv' (FORMAT csv, DELIMITER '|')"
        for table in reversed(TABLES.names)
        for part in range(CONNECTIONS)
    ]
    try:
        return in_turn(
            pairs,
            lambda: filled(database, "Assay", lambda: load_chunks(database, plan, chunks, scale=scale), counts),
            lambda: filled(database, "COPY", lambda: database.execute_many_parallel(files, CONNECTIONS), counts),
        )
    finally:
        database.close()


def column_store(folder: Path, scale: int, counts: dict[str, int], pairs: int) -> dict[str, Any]:
    """Against INSERT ... SELECT of Parquet files, into a file of the same settings."""
    plan, chunks = TpchPlan(), _core.chunks_of(KIND, scale)

    def ours() -> float:
        (folder / "ours.duckdb").unlink(missing_ok=True)
        database = opened(f"duckdb:{folder}/ours.duckdb")
        try:
            return filled(database, "Assay", lambda: load_chunks(database, plan, chunks, scale=scale), counts)
        finally:
            database.close()

    def theirs() -> float:
        (folder / "files.duckdb").unlink(missing_ok=True)
        # Assay's own connections may not read files.
        with duckdb.connect(str(folder / "files.duckdb")) as connection:
            connection.execute("SET preserve_insertion_order = false; SET checkpoint_threshold = '1TB'")
            for _, statement in TABLES.statements("duckdb", "schema"):
                connection.execute(statement)
            connection.execute("CHECKPOINT")
            began = time.monotonic()
            for table in TABLES.names:
                connection.execute(f"INSERT INTO {table} SELECT * FROM read_parquet('{folder}/{table}.parquet')")
            connection.execute("CHECKPOINT")
            seconds = time.monotonic() - began
            for table, count in counts.items():
                assert connection.execute(f"SELECT count(*) FROM {table}").fetchall() == [(count,)], table
        say(f"  duckdb: Parquet {seconds:.1f} s")
        return seconds

    return in_turn(pairs, ours, theirs)


def main() -> None:
    """Run all and keep what they gave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=None, help="where files and databases go (a temporary folder)")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--only", choices=("postgresql", "duckdb"), default=None)
    given = parser.parse_args()
    scale = round(given.scale * 1000)
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.partition(":")[2].strip() for line in lines if "model name" in line), platform.machine())
    found: dict[str, Any] = {"machine": f"{cpu}, {os.cpu_count()} CPUs, Linux {platform.release()}"}
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        began = time.monotonic()
        next(batches(scale, ("fixed", 0, 1)))
        say(f"text that comments are cut from: {time.monotonic() - began:.1f} s, once in a process")
        found["generated_rows_per_s"] = generate(scale)
        say(f"orders and lines as columns: {found['generated_rows_per_s']:,.0f} rows per second of one core")
        counts = make_files(folder, scale, CONNECTIONS)
        rows = sum(counts.values())
        say(f"scale {given.scale:g}: {rows:,} rows, {counts['lineitem']:,} of them lines")
        say("| into | Assay rows/s | ready files rows/s | ratio | ready files/itself |")
        say("|---|---|---|---|---|")
        if given.only != "duckdb":
            found["postgresql"] = postgresql(folder, scale, counts, given.pairs)
            report("PostgreSQL", found["postgresql"], rows)
        if given.only != "postgresql":
            found["duckdb"] = column_store(folder, scale, counts, given.pairs)
            report("DuckDB", found["duckdb"], rows)
    if given.only is None:
        results = Path(__file__).parent / "results"
        (results / "dss_load.json").write_text(json.dumps(found, indent=1) + "\n")
        table = [line for line in LINES_SAID if not line.startswith("  ")]
        (results / "dss_load.md").write_text(
            f"# Loading against ready files\n\n{found['machine']}\n\n" + "\n".join(table) + "\n"
        )


if __name__ == "__main__":
    main()
