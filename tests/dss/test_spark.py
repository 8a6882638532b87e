"""Queries on Spark: its targets, its folder, what it refuses; and the queries themselves on a local Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from assay.base.errors import NotSupported, RefusedTarget, UsageError
from assay.targets.databases.common.spec import parse_database
from assay.targets.databases.spark.database import find_java
from assay.targets.databases.spark.folder import ChunkWriter, SparkFolder
from assay.workloads.tpch.parameters import VALIDATION
from assay.workloads.tpch.queries import query_text


def test_targets_are_read() -> None:
    local = parse_database("spark-local:/srv/t?spark.driver.memory=2g&java=/opt/java", {})
    assert (local.kind, local.host, local.directory, local.name) == ("spark", None, Path("/srv/t"), "t")
    assert local.settings == {"spark.driver.memory": "2g", "java": "/opt/java"}
    assert parse_database(local.recorded, {}).settings == local.settings
    cluster = parse_database("spark://head:7078/shared/t", {})
    assert (cluster.host, cluster.port, cluster.directory) == ("head", 7078, Path("/shared/t"))
    assert parse_database("spark://head/shared/t", {}).port == 7077
    for text, words in (
        ("spark://head", "is written spark://HOST:7077/DIR"),
        ("spark-local:", "needs a folder"),
        ("spark-local:/x?memory=2g", "no option 'memory'"),
    ):
        with pytest.raises(UsageError, match=words):
            parse_database(text, {})


@pytest.mark.parametrize("number", range(1, 23))
def test_every_query_has_a_text_in_its_dialect(number: int) -> None:
    import sqlglot

    text = query_text(number, VALIDATION[number], "spark")
    assert sqlglot.parse_one(text, dialect="spark") is not None
    assert "::" not in text


def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotSupported, match=r"there is no Java in JAVA_HOME or the path; .*, which brings Java 17 or"):
        find_java(parse_database(f"spark-local:{tmp_path}/t", {}))
    with pytest.raises(NotSupported, match=f"there is no Java in {tmp_path}/none"):
        find_java(parse_database(f"spark-local:{tmp_path}/t?java={tmp_path}/none", {}))


def test_a_java_that_is_too_old_is_refused(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    with pytest.raises(NotSupported, match="is Java 11, and Spark needs 17 or newer"):
        find_java(parse_database(f"spark-local:{tmp_path}/t?java={tmp_path}", {}))


def test_a_folder_with_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    with pytest.raises(RefusedTarget, match="holds other, which Assay did not make"):
        SparkFolder(tmp_path, "spark-local:x").take()
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    first, second = (SparkFolder(tmp_path / "t", "spark-local:t") for _ in range(2))
    first.take()
    with pytest.raises(RefusedTarget, match="another run is at work"):
        second.take()
    first.release()


def test_rows_are_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = SparkFolder(tmp_path / "t", "spark-local:t")
    folder.take()
    folder.book("CREATE TABLE assay_chunk (kind text, unit int, part int, row_count int)")
    folder.make("region")
    rows = pa.record_batch({"r_regionkey": [1, 2]})
    for commits in (False, True):
        writer = ChunkWriter(folder)
        writer.append("region", rows)
        writer.entries.append("INSERT INTO assay_chunk VALUES ('region', 1, 0, 2)")
        assert folder.files("region") == []
        (writer.commit if commits else writer.roll_back)()
    (file,) = folder.files("region")
    assert os.listdir(file.parent) == [file.name]
    assert folder.book("SELECT row_count FROM assay_chunk") == [(2,)]
    (file.parent / "mine.txt").write_text("mine")
    assert folder.strangers(["region"]) == ["file region/mine.txt"]
    folder.drop("region")
    assert os.listdir(file.parent) == ["mine.txt"]
    folder.release()


QUICK = "spark.sql.shuffle.partitions=2&spark.driver.memory=1g&spark.default.parallelism=2"


@pytest.mark.slow(reason="Spark takes minutes where DuckDB takes seconds; the queries are the same texts")
@pytest.mark.timeout(1500)
def test_a_local_spark_answers_as_duckdb_does(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    target = f"spark-local:{tmp_path}/t?{QUICK}"
    base = [sys.executable, "-m", "assay", "dss", "tpch"]
    words = ["--scale", "0.01", "--no-report", "--quiet", "--json", "-o", str(tmp_path / "results")]

    def run(*given: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*base, *given, *words], capture_output=True, text=True, timeout=700)

    refused = run(target, "load", "run")
    assert refused.returncode == 3
    assert "Parquet files take no changes; give --no-refresh" in refused.stderr
    done = run(target, f"duckdb:{tmp_path}/d.duckdb", "load", "check", "--no-refresh")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["dss"]
    assert len(told["answers"]) == 22
    assert all(answer["met"] for answer in told["answers"]), told["answers"]
    assert all(table["met"] for table in told["rows"])

    done = run(target, "run", "drop", "--no-refresh", "--test", "throughput", "--streams", "2", "--queries", "1,6,14")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (point,) = document["points"]
    assert [query["ended_by"] for query in point["dss"]["queries"]] == ["done"] * 6
    (database,) = document["target"]["databases"]
    assert database["settings"]["accelerator"] == "none"
    assert not (tmp_path / "t").exists() or not list((tmp_path / "t").rglob("*.parquet"))
