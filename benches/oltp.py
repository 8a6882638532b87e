"""Transactions against pgbench: the same procedures, mix and database, in turn; and what else the client must hold.

    python benches/oltp.py --folder /data --warehouses 4 --pairs 5

Every row gives medians, the ratio Assay / pgbench pair by pair, and beside it the spread of pgbench against itself
(each run over the one before). CPU is that of the whole client process, user and system, over transactions that ended;
pgbench gets ten lines in every order, Assay five to fifteen. Then: statements pipelined against statements one by one,
how many users with thinking times one core holds on schedule, and the load against COPY of ready files in binary form.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay import _core
from assay.targets.databases import Database, open_database, parse_database
from assay.workloads.tpcc.tables import TABLES

MIXES = {"the mix": (10, 10, 1, 1, 1), "order-status alone": (0, 0, 1, 0, 0)}
"""Weights of new-order, payment, order-status, delivery and stock-level. Order-status writes nothing."""

ITEMS = 100_000
LINES = 10


LINES_SAID: list[str] = []


def say(text: str) -> None:
    """Print a line and keep it for the results."""
    print(text, flush=True)
    LINES_SAID.append(text)


@dataclass(frozen=True)
class Result:
    """Transactions per second, and CPU of the client per transaction."""

    per_s: float
    cpu_ns: float


def cpu_ns(who: int) -> float:
    """User and system time so far."""
    usage = resource.getrusage(who)
    return (usage.ru_utime + usage.ru_stime) * 1e9


def scripts(folder: Path, warehouses: int) -> list[tuple[Path, int, int]]:
    """The calls as pgbench scripts, each with its transaction and its share of that in a hundred.

    Customers are drawn by NURand and 60 % of those of payment and order-status by name, as Assay draws them. Items
    ascend, so that stock is locked in one order, as Assay's do.
    """
    each = ITEMS // LINES
    items = "\n".join(f"\\set i{n} random({n * each + 1}, {(n + 1) * each})" for n in range(LINES))
    quantities = "\n".join(f"\\set q{n} random(1, 10)" for n in range(LINES))
    place = f"\\set w random(1, {warehouses})\n\\set d random(1, 10)\n"
    customer = "\\set c ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1\n"
    number = "\\set n ((random(0, 255) | random(0, 999)) + 123) % 1000\n"
    digits = "\\set n1 :n / 100 + 1\n\\set n2 :n / 10 % 10 + 1\n\\set n3 :n % 10 + 1\n"
    # pgbench has no variables of text: the server puts the name together.
    syllables = "'{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[]"
    name = " || ".join(f"({syllables})[:n{place}]" for place in (1, 2, 3))
    amount = "\\set a random(1, 5000)\n"

    def array(letter: str) -> str:
        return "ARRAY[" + ",".join(f":{letter}{n}" if letter != "w" else ":w" for n in range(LINES)) + "]::int[]"

    lines = f"{array('i')}, {array('w')}, {array('q')}"
    texts = [
        (f"{place}{customer}{items}\n{quantities}\nSELECT * FROM assay_new_order(:w, :d, :c, {lines});", 0, 100),
        (f"{place}{customer}{amount}SELECT * FROM assay_payment(:w, :d, :w, :d, :c, '', :a);", 1, 40),
        (f"{place}{number}{digits}{amount}SELECT * FROM assay_payment(:w, :d, :w, :d, 0, {name}, :a);", 1, 60),
        (f"{place}{customer}SELECT * FROM assay_order_status(:w, :d, :c, '');", 2, 40),
        (f"{place}{number}{digits}SELECT * FROM assay_order_status(:w, :d, 0, {name});", 2, 60),
        (f"{place}\\set k random(1, 10)\nSELECT assay_delivery(:w, :k);", 3, 100),
        (f"{place}\\set t random(10, 20)\nSELECT assay_stock_level(:w, :d, :t);", 4, 100),
    ]
    made = []
    for index, (text, transaction, share) in enumerate(texts):
        path = folder / f"{index}.sql"
        path.write_text(text + "\n")
        made.append((path, transaction, share))
    return made


def run_pgbench(
    database: Database,
    files: Sequence[tuple[Path, int, int]],
    mix: Sequence[int],
    users: int,
    threads: int,
    seconds: float,
) -> Result:
    """One run of pgbench with prepared statements."""
    connection = database.connection()
    environment = os.environ | {"PGPASSWORD": connection.password.reveal() if connection.password else ""}
    host = str(Path(connection.socket).parent) if connection.socket else connection.host or ""
    command = ["pgbench", "-n", "-M", "prepared", "-c", str(users), "-j", str(threads), "-T", f"{seconds:.0f}"]
    command += ["-h", host, "-p", str(connection.port), "-U", connection.user]
    for file, transaction, share in files:
        command += ["-f", f"{file}@{mix[transaction] * share}"] if mix[transaction] else []
    before = cpu_ns(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*command, connection.database], capture_output=True, text=True, check=True, env=environment)
    spent = cpu_ns(resource.RUSAGE_CHILDREN) - before
    count = int(re.search(r"transactions actually processed: (\d+)", done.stdout)[1])  # type: ignore[index]
    per_s = float(re.search(r"tps = ([\d.]+) \(without", done.stdout)[1])  # type: ignore[index]
    return Result(per_s, spent / count)


def plan(database: Database, warehouses: int, **given: Any) -> dict[str, Any]:
    """A run of the core."""
    return {
        "databases": [
            {"name": "bench", "connection": database.connection().core_plan(), "warehouses": warehouses},
        ],
        "users": 8,
        "load": {"kind": "closed"},
        "mix": MIXES["the mix"],
        "deck": False,
        "nurand_items": False,
        "home": "all",
        "think_scale": 0.0,
        "procedures": True,
        "pipeline": True,
        "isolation": "default",
        "retries": 10,
        "reconnect_s": 10.0,
        "seed": time.time_ns() % (1 << 40),
        "interval_ns": 1_000_000_000,
    } | given


def run_core(given: dict[str, Any], seconds: float, warmup_s: int = 0) -> tuple[Result, dict[str, Any]]:
    """One run of Assay's users: figures of its window, CPU of this whole process over the same time."""
    run = _core.OltpRun(json.dumps(given))
    last = warmup_s + round(seconds)
    before = None
    while True:
        report = json.loads(run.poll())
        if report["error"]:
            raise SystemExit(report["error"]["text"])
        if before is None and report["complete_ticks"] >= warmup_s and report["state"] == "running":
            before, first = cpu_ns(resource.RUSAGE_SELF), report["complete_ticks"]
        if report["complete_ticks"] >= last:
            break
        time.sleep(0.02)
    spent = cpu_ns(resource.RUSAGE_SELF) - (before or 0.0)
    point = json.loads(run.point(first, last))
    run.finish(20.0)
    return Result(point["total"]["per_s"], spent / max(point["total"]["count"], 1)), point


def spread(values: Sequence[float]) -> str:
    """How far the values of one thing are from the ones before them."""
    steps = [after / before for before, after in itertools.pairwise(values)]
    return f"{min(steps):.2f} to {max(steps):.2f}" if steps else "-"


def compare(name: str, pairs: int, ours: Callable[[], Result], theirs: Callable[[], Result]) -> dict[str, Any]:
    """Both in turn, and the ratios of the pairs."""
    mine, others = [], []
    for _ in range(pairs):
        others.append(theirs())
        mine.append(ours())
    rates = [one.per_s / other.per_s for one, other in zip(mine, others, strict=True)]
    costs = [one.cpu_ns / other.cpu_ns for one, other in zip(mine, others, strict=True)]
    row = {
        "name": name,
        "per_s": statistics.median(result.per_s for result in mine),
        "peer_per_s": statistics.median(result.per_s for result in others),
        "rate_ratio": statistics.median(rates),
        "rate_ratios": rates,
        "peer_spread": spread([result.per_s for result in others]),
        "cpu_us": statistics.median(result.cpu_ns for result in mine) / 1e3,
        "peer_cpu_us": statistics.median(result.cpu_ns for result in others) / 1e3,
        "cpu_ratio": statistics.median(costs),
        "peer_cpu_spread": spread([result.cpu_ns for result in others]),
    }
    say(
        f"| {name} | {row['per_s']:,.0f} | {row['peer_per_s']:,.0f} | {row['rate_ratio']:.2f}"
        f" ({min(rates):.2f} to {max(rates):.2f}) | {row['peer_spread']} | {row['cpu_us']:.1f}"
        f" | {row['peer_cpu_us']:.1f} | {row['cpu_ratio']:.2f} | {row['peer_cpu_spread']} |",
    )
    return row


def pipelining(database: Database, warehouses: int, pairs: int, seconds: float) -> dict[str, Any]:
    """Transactions as statements, all of a batch on their way at once, against one after the other."""
    one_user = {"procedures": False, "users": 1, "threads": 1}
    ratios, rates, others = [], [], []
    for _ in range(pairs):
        slow = run_core(plan(database, warehouses, **one_user, pipeline=False), seconds)[0]
        fast = run_core(plan(database, warehouses, **one_user), seconds)[0]
        rates.append(fast.per_s)
        others.append(slow.per_s)
        ratios.append(fast.per_s / slow.per_s)
    row = {
        "per_s": statistics.median(rates),
        "unpipelined_per_s": statistics.median(others),
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "spread": spread(others),
    }
    say(
        f"statements, one user: pipelined {row['per_s']:,.0f}/s, one by one {row['unpipelined_per_s']:,.0f}/s:"
        f" {row['ratio']:.2f} ({min(ratios):.2f} to {max(ratios):.2f}; one by one against itself {row['spread']})",
    )
    return row


def thinking(database: Database, warehouses: int, seconds: float, users_most: int) -> list[dict[str, Any]]:
    """Users that key and think, on one thread and a few connections, until fewer than 99 % of the waits end in time."""
    rows = []
    users = 1000
    while users <= users_most:
        # A tenth of the times of the specification: cycles of a second, so that a short run sees many.
        given = {"users": users, "connections": 8, "threads": 1, "think_scale": 0.1, "mix": (0, 0, 1, 0, 0)}
        resident = resident_bytes()
        result, point = run_core(plan(database, warehouses, **given), seconds, warmup_s=3)
        schedule = point["schedule"]
        rows.append(
            {
                "users": users,
                "kept_share": schedule["kept_share"],
                "lag_p99_ms": schedule["lag_p99_ns"] / 1e6,
                "per_s": result.per_s,
                "thread_share": point["fullest_thread_share"],
                "bytes_per_user": (resident_bytes() - resident) / users,
            }
        )
        row = rows[-1]
        say(
            f"{users:,} users thinking a tenth of the usual times on one thread and 8 connections:"
            f" {row['kept_share']:.2%} of the waits in time, lag p99 {row['lag_p99_ms']:.1f} ms,"
            f" {row['per_s']:,.0f}/s, thread {row['thread_share']:.0%}",
        )
        if schedule["kept_share"] < 0.99:
            break
        users *= 2
    return rows


def resident_bytes() -> int:
    """Memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def load_against_copy(database: Database, folder: Path, warehouses: int, pairs: int) -> dict[str, Any]:
    """Rows generated and loaded in bulk, against COPY of the same rows from ready files, on as many connections."""
    files = folder / "ready"
    files.mkdir()
    for table in TABLES.names:
        with open(files / table, "wb") as out:
            done = subprocess.Popen(
                psql(database, f"COPY {table} TO STDOUT (FORMAT binary)"), stdout=out, env=environment(database)
            )
            if done.wait():
                raise SystemExit(f"COPY {table} TO failed")
    rows = sum(int(database.query(f"SELECT count(*) FROM {table}")[0][0]) for table in TABLES.names)
    ours, theirs = [], []
    for _ in range(pairs):
        empty(database)
        began = time.monotonic()
        with contextlib.ExitStack() as opened:
            waiting = [
                subprocess.Popen(
                    psql(database, f"COPY {table} FROM STDIN (FORMAT binary)"),
                    stdin=opened.enter_context(open(files / table, "rb")),
                    env=environment(database),
                )
                for table in TABLES.names
            ]
        codes = [process.wait() for process in waiting]
        if any(codes):
            raise SystemExit("COPY FROM failed")
        theirs.append(rows / (time.monotonic() - began))
        empty(database)
        report = fill(database, warehouses)
        ours.append(report["rows"] / (report["elapsed_ns"] / 1e9))
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    row = {
        "rows_per_s": statistics.median(ours),
        "copy_rows_per_s": statistics.median(theirs),
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "spread": spread(theirs),
    }
    say(
        f"load: {row['rows_per_s']:,.0f} rows/s generated and loaded on 4 connections, {row['copy_rows_per_s']:,.0f}"
        f" rows/s by COPY of ready binary files, all tables at once: {row['ratio']:.2f} ({min(ratios):.2f} to"
        f" {max(ratios):.2f}; COPY against itself {row['spread']})",
    )
    return row


def environment(database: Database) -> dict[str, str]:
    """The environment of PostgreSQL's own programs."""
    password = database.connection().password
    return os.environ | {"PGPASSWORD": password.reveal() if password else ""}


def psql(database: Database, sql: str) -> list[str]:
    """One statement by psql."""
    connection = database.connection()
    host = str(Path(connection.socket).parent) if connection.socket else connection.host or ""
    place = ["-h", host, "-p", str(connection.port), "-U", connection.user, "-d", connection.database]
    return ["psql", *place, "-q", "-v", "ON_ERROR_STOP=1", "-c", sql]


def make(database: Database, *files: str) -> None:
    """Run files of the workload's SQL."""
    for file in files:
        for _, text in _core.oltp_sql("tpcc", "postgresql", file):
            database.execute(text)


def empty(database: Database) -> None:
    """Tables without rows and indexes."""
    make(database, "drop", "schema")


def fill(database: Database, warehouses: int) -> dict[str, Any]:
    """Load rows into empty tables; returns the core's last report."""
    given = {
        "databases": [{"name": "bench", "connection": database.connection().core_plan(), "warehouses": warehouses}],
        "connections": 4,
        "seed": 1,
        "reconnect_s": 10.0,
    }
    loading = _core.RowsLoad(json.dumps(given))
    while (report := json.loads(loading.poll()))["state"] == "running":
        time.sleep(0.01)
    if report["state"] != "done":
        raise SystemExit(report["error"]["text"])
    return dict(report)


def load(database: Database, warehouses: int) -> None:
    """A database ready to run."""
    empty(database)
    fill(database, warehouses)
    make(database, "indexes", "procedures")
    database.vacuum_analyze()


def machine() -> str:
    """Processor and kernel, for the head of the result."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.partition(":")[2].strip() for line in lines if "model name" in line), platform.machine())
    return f"{cpu}, {os.cpu_count()} CPUs, Linux {platform.release()}"


def main() -> None:
    """Run all and keep what they gave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=None, help="where the database goes (a temporary folder)")
    parser.add_argument("--warehouses", type=int, default=4)
    parser.add_argument("--users", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--users-most", type=int, default=32_000)
    given = parser.parse_args()
    if shutil.which("pgbench") is None or shutil.which("psql") is None:
        raise SystemExit("pgbench is missing: apt-get install postgresql-contrib postgresql-client")
    results = Path(__file__).parent / "results"
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        # Commits do not wait for the disk, so that clients are compared and not flushes of a log.
        database = open_database(parse_database(f"embedded:{folder}/database?set.synchronous_commit=off"), TABLES)
        database.open(connections=4 * given.users + 40)
        try:
            load(database, given.warehouses)
            files = scripts(Path(folder), given.warehouses)
            found: dict[str, Any] = {"machine": machine(), "options": {k: str(v) for k, v in vars(given).items()}}
            columns = ("procedures", "Assay/s", "pgbench/s", "ratio", "pgbench/itself", "CPU us", "pgbench CPU us")
            say(f"| {' | '.join(columns)} | ratio | pgbench/itself |")
            say("|---|---|---|---|---|---|---|---|---|")
            found["procedures"] = [
                compare(
                    f"{name}, {given.users} users, {threads} thread{'s' if threads > 1 else ''}",
                    given.pairs,
                    lambda mix=mix, threads=threads: run_core(
                        plan(database, given.warehouses, users=given.users, threads=threads, mix=mix), given.seconds
                    )[0],
                    lambda mix=mix, threads=threads: run_pgbench(
                        database, files, mix, given.users, threads, given.seconds
                    ),
                )
                for threads in sorted({1, os.cpu_count() or 1})
                for name, mix in MIXES.items()
            ]
            found["pipelining"] = pipelining(database, given.warehouses, given.pairs, given.seconds / 2)
            found["thinking"] = thinking(database, given.warehouses, given.seconds, given.users_most)
            load(database, given.warehouses)
            found["load"] = load_against_copy(database, Path(folder), given.warehouses, max(given.pairs // 2, 1))
        finally:
            database.close()
    (results / "oltp.json").write_text(json.dumps(found, indent=1) + "\n")
    head = f"# Transactions against pgbench\n\n{found['machine']}; commits do not wait for the disk\n\n"
    (results / "oltp.md").write_text(head + "\n".join(LINES_SAID) + "\n")


if __name__ == "__main__":
    main()
