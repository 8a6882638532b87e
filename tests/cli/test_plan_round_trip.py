"""`--dry-run --json` prints a plan in the form `--plan` accepts, and writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from assay.base.reading import read_table
from assay.workloads.registry import workload_named

IO_KIND = workload_named("io")

if TYPE_CHECKING:
    from assay_command import Bench

OPTIONS = {
    "nothing": (),
    "one load": ("--block", "8K", "--read", "70", "--queue-depth", "4"),
    "levels": ("--block", "4K,64K", "--read", "100,0", "--queue-depth", "1,4,16"),
    "mix of blocks": ("--block", "8K:80+64K:20", "--queue-depth", "1"),
    "open loop": ("--rate", "100,200", "--arrivals", "poisson"),
    "search on queue depth": ("--search", "queue-depth", "--block", "8K", "--limit", "read.p99<=2ms"),
    "search from a depth": ("--search", "queue-depth", "--queue-depth", "8"),
    "search on rate": ("--search", "rate", "--rate", "500", "--limit", "read.p99.9<=1.5ms"),
    "times": ("--queue-depth", "1", "--warmup", "1s", "--min-time", "3s", "--max-time", "1m", "--rest", "500ms"),
    "duration": ("--queue-depth", "1", "--duration", "90s", "--io-timeout", "5s"),
    "access": ("--skew", "zipf:0.99", "--region", "10-50", "--align", "4K", "--streams", "3", "--random", "50"),
    "content": ("--compressible", "30", "--duplicate", "5", "--read", "0"),
    "durability": ("--role", "log", "--sync", "fsync,fdatasync", "--sync-every", "8", "--buffered"),
    "quick": ("--quick",),
    "size, seed and backend": ("--size", "1G", "--seed", "7", "--backend", "threads", "--queue-depth", "1"),
    "cache span": ("--cache-span", "--size", "1G", "--queue-depth", "1"),
    **{name: ("--preset", name) for name in IO_KIND.presets()},
    "preset changed": ("--preset", "oltp", "--block", "8K", "--repeats", "3", "--limit", "write.mean<=1ms"),
    "preset without its search": ("--preset", "oltp", "--queue-depth", "4"),
    "quick preset of set duration": ("--preset", "database", "--quick"),
    "preset with a time of its own instead of a duration": ("--preset", "database", "--max-time", "1m"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_what_is_printed_is_understood_as_the_same_plan(bench: Bench, tmp_path: Path, name: str) -> None:
    first = bench.profile(bench.target, *OPTIONS[name], "--dry-run", "--json")
    (tmp_path / "plan.json").write_text(first.stdout)
    cache_span = ("--cache-span",) if "--cache-span" in OPTIONS[name] else ()
    second = bench.profile(bench.target, "--plan", "plan.json", *cache_span, "--dry-run", "--json")

    assert (first.code, first.stderr) == (second.code, second.stderr) == (0, "")
    for key in ("plan", "parts"):
        assert second.document.get(key) == first.document.get(key)
    assert (
        IO_KIND.load_plan(read_table(tmp_path / "plan.json", option="--plan"), source="--plan").model_dump(mode="json")
        == first.document["plan"]
    )
    assert bench.made() == []


def test_a_plan_without_activity_reads_as_plans_do_that_leave_a_key_out(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("[timing]\nduration_s = 9\n")
    outcome = bench.profile("null:", "--plan", "plan.toml", "--read", "70", "--dry-run", "--json")
    assert outcome.code == 0, outcome.stderr
    assert outcome.document["plan"]["activity"] == [{"read_share": 0.7}]


def test_plans_of_queries_are_read_back(bench: Bench, tmp_path: Path) -> None:
    server = "postgresql://me@127.0.0.1:1/db"
    options = ("--scale", "0.1", "--partition", "lineitem:l_shipdate:4", "--queries", "1,6", "--query-timeout", "9s")
    first = bench.assay("dss", "tpch", server, *options, "--dry-run", "--json")
    (tmp_path / "plan.json").write_text(first.stdout)
    second = bench.assay("dss", "tpch", server, "--plan", "plan.json", "--dry-run", "--json")

    assert (first.code, second.code) == (0, 0), first.stderr + second.stderr
    assert second.document["plan"] == first.document["plan"]
    assert first.document["plan"]["kind"] == "tpch"


def test_it_tells_the_bytes_it_will_write_and_the_time(bench: Bench) -> None:
    outcome = bench.profile(
        bench.target, "--size", "1G", "--queue-depth", "1,2", "--duration", "10s", "--dry-run", "--json"
    )

    assert outcome.document["estimate"] == {"shortest_s": 24.0, "longest_s": 24.0, "layout_bytes": 1 << 30}
    assert outcome.document["volumes"] == [
        {"name": "f.dat", "path": str(bench.target), "roles": ["data"], "size_bytes": 1 << 30}
    ]


def test_it_tells_people_the_same(bench: Bench) -> None:
    outcome = bench.profile(bench.target, "--size", "1G", "--preset", "log", "--dry-run")

    assert outcome.code == 0
    for word in ("1 GiB", "to be laid out", "write.mean<=5ms", "512 B sequential write dsync", "4 workers"):
        assert word in outcome.stdout
    assert bench.made() == []


def test_assess_shows_every_part_without_writing(bench: Bench) -> None:
    outcome = bench.assay("assess", bench.target.parent, "--quick", "--dry-run", "--json", "-o", bench.results)

    assert outcome.code == 0
    parts = [part["name"] for part in json.loads(outcome.stdout)["parts"]]
    assert parts == [
        "cache-span",
        "oltp",
        "dss",
        "log",
        "database",
        "integrity",
        "transactions",
        "queries",
        "queries-rows",
    ]
    assert bench.made() == []
