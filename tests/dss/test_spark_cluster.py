"""Queries on a cluster of Spark's own: a master and two workers that the test starts on the loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.targets.databases.common.spec import parse_database
from assay.targets.databases.spark.database import find_java

SLOW = "Spark takes minutes where DuckDB takes seconds; the queries are the same texts"
SETTINGS = "spark.sql.shuffle.partitions=2&spark.executor.memory=512m&spark.driver.memory=1g&spark.executor.cores=1"


def until(happened: Callable[[], object], what: Callable[[], str], *, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`HOST:PORT` of a master with two workers of a core each."""
    pyspark = pytest.importorskip("pyspark")
    folder = tmp_path_factory.mktemp("spark")
    java = find_java(parse_database(f"spark-local:{folder}/t", {}))
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environ = {**os.environ, "JAVA_HOME": str(java.parent.parent), "SPARK_LOCAL_IP": "127.0.0.1"}
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    started: list[subprocess.Popen[bytes]] = []
    logs: list[Path] = []

    def start(name: str, *words: str) -> Path:
        log = folder / f"{name}.log"
        with log.open("wb") as out:
            command = [str(program), *words]
            started.append(
                subprocess.Popen(command, stdout=out, stderr=out, env=environ, cwd=folder, start_new_session=True)
            )
        logs.append(log)
        return log

    def told() -> str:
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in logs)

    try:
        deploy = "org.apache.spark.deploy"
        said = start(
            "master", f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"
        )
        until(lambda: "New state: ALIVE" in said.read_text(errors="replace"), told)
        for number in (1, 2):
            worker = start(
                f"worker{number}", f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g",
                "--webui-port", "0", "--work-dir", str(folder / f"work{number}"), f"spark://127.0.0.1:{port}",
            )  # fmt: skip
            until(
                lambda worker=worker: "Successfully registered with master" in worker.read_text(errors="replace"), told
            )
        yield f"127.0.0.1:{port}"
    finally:
        for process in reversed(started):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.slow(reason=SLOW)
@pytest.mark.timeout(900)
def test_executors_answer_as_duckdb_does(master: str, tmp_path: Path) -> None:
    def run(*given: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "assay", "dss", "tpch", *given, "--scale", "0.01", "--no-refresh"]
        options = ["--no-report", "--quiet", "--json", "-o", str(tmp_path / "results")]
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    target = f"spark://{master}{tmp_path}/t?{SETTINGS}"
    told = run(target, f"duckdb:{tmp_path}/d.duckdb", "load", "check")["dss"]
    assert len(told["answers"]) == 22
    assert all(answer["met"] for answer in told["answers"]), told["answers"]

    document = run(target, "run", "drop", "--test", "throughput", "--streams", "2", "--queries", "1,6,14")
    (point,) = document["points"]
    assert [query["ended_by"] for query in point["dss"]["queries"]] == ["done"] * 6
    (database,) = document["target"]["databases"]
    assert database["settings"]["spark.master"] == f"spark://{master}"
    assert database["settings"]["accelerator"] == "none"
    assert re.search(r"Spark 4\.\S+ on Java \d+", database["version_text"])


@pytest.mark.slow(reason=SLOW)
@pytest.mark.timeout(300)
def test_a_master_that_is_away_is_told(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = [sys.executable, "-m", "assay", "dss", "tpch", f"spark://127.0.0.1:{port}{tmp_path}/t?{SETTINGS}", "load"]
    options = ["--scale", "0.01", "--no-refresh", "--no-report", "--quiet", "-o", str(tmp_path / "results")]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=280)
    assert done.returncode == 3, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("assay: ")]
    assert "Spark does not start" in line
