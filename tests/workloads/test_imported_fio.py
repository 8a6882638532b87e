"""fio's documents: what was asked, what was done, and when; runs, groups, hosts and trims in one file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.record.points import describe_load, load_text
from assay.run.imports import read_results
from assay.telemetry.importers.importer import NotTaken, Options
from assay.workloads.imported import ImportedRun
from assay.workloads.io.importers.fio import Fio

START_MS = 1614679320000
"""2021-03-02 10:02:00 UTC."""


def side(count: int = 0, runtime_ms: int = 60_000, block: int = 4096) -> dict[str, Any]:
    """Reads, writes or trims."""
    seconds = runtime_ms / 1e3
    return {
        "total_ios": count, "runtime": runtime_ms if count else 0, "iops": count / seconds,
        "bw_bytes": count * block / seconds, "lat_ns": {"mean": 1e6, "max": 2e6, "N": count},
    }  # fmt: skip


def job(name: str = "j", *, group: int = 0, asked: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A job of a document."""
    return {
        "jobname": name, "groupid": group, "error": 0,
        "job options": {"rw": "randread", "bs": "4k"} if asked is None else asked,
        "read": side(), "write": side(), "trim": side(), **more,
    }  # fmt: skip


def document(*jobs: dict[str, Any], written_ms: int = START_MS, **more: Any) -> str:
    return json.dumps({"fio version": "fio-3.42", "timestamp_ms": written_ms, "jobs": jobs, **more}) + "\n"


def read(text: str) -> tuple[ImportedRun, list[dict[str, Any]]]:
    run = read_results(text, Fio(), Options(zone_s=0))
    return run, [point.as_point() for point in run.points]


def test_what_a_document_does_not_say_was_asked_is_null() -> None:
    """fio 2 writes no options: its block comes from bytes over count, its mix from the counts."""
    one = job("w", write=side(600_000, block=16384))
    del one["job options"]
    run, (point,) = read(document(one))
    workload = point["workload"]
    assert (workload["block_bytes"], workload["read_share"]) == (16384, 0.0)
    for name in ("random_share", "io_mode", "sync", "skew", "align_bytes"):
        assert workload[name] is None
    assert workload["name"] == "w, options not known"
    assert point["load"] == {"kind": "unknown"}
    assert (load_text(point["load"]), describe_load(point["load"])) == ("unknown", "unknown")
    assert any("does not say what was asked" in note for note in run.taken.notes)
    mixed = job("m", read=side(300), write=side(100))
    del mixed["job options"]
    _, (point,) = read(document(mixed))
    assert point["workload"]["read_share"] == 0.75


@pytest.mark.parametrize(
    ("ramp", "seconds"), [("120", 120.0), ("120s", 120.0), ("2m", 120.0), ("500ms", 0.5), ("0", 0.0)]
)
def test_the_window_begins_where_the_ramp_ended(ramp: str, seconds: float) -> None:
    """fio sets `job_start` anew then."""
    asked = {"rw": "randwrite", "bs": "8k", "ramp_time": ramp}
    _, (point,) = read(
        document(job(asked=asked, write=side(10, 120_000), job_start=START_MS), written_ms=START_MS + 120_100)
    )
    assert point["warmup_s"] == seconds
    assert point["measured_from_utc_ns"] == START_MS * 10**6
    assert point["measured_to_utc_ns"] == (START_MS + 120_000) * 10**6


def test_runs_that_were_appended_are_points_of_their_own() -> None:
    first = document(job(read=side(1000)), written_ms=START_MS)
    for count in (500, 2000):
        run, points = read(first + document(job(read=side(count)), written_ms=START_MS + 3_600_000))
        assert [point["read"]["count"] for point in points] == [1000, count]
        assert [point["measured_s"] for point in points] == [60.0, 60.0]
        assert points[1]["measured_to_utc_ns"] - points[0]["measured_to_utc_ns"] == 3600 * 10**9
        assert "holds 2 runs, one after the other" in run.taken.notes
    # By --status-interval both count from one start.
    later = document(job(read=side(2000, 120_000)), written_ms=START_MS + 60_000)
    run, (point,) = read(first + later)
    assert point["read"]["count"] == 2000
    assert any("--status-interval" in note for note in run.taken.notes)


def test_trims_are_left_out_by_name_and_reads_beside_them_stay() -> None:
    trims = job("t", group=1, asked={"rw": "trim", "bs": "1m"}, trim=side(50))
    run, (point,) = read(document(job("r", read=side(6_000_000)), trims))
    assert point["total"]["iops"] == 100_000.0
    assert run.taken.ignored["t (group 1)"] == "points have no trims"
    with pytest.raises(NotTaken, match="trims are left out"):
        read(document(trims))


def test_jobs_that_waited_for_others_are_points_of_their_own() -> None:
    fill = job("fill", write=side(60_000), job_start=START_MS, asked={"rw": "write", "bs": "4k"})
    reads = job("rr", read=side(6_000_000), job_start=START_MS + 61_000, asked={"rw": "randread", "wait_for": "fill"})
    for jobs in ((fill, reads), (reads, fill)):
        run, points = read(document(*jobs))
        assert [point["total"]["iops"] for point in points] == [1000.0, 100_000.0]
        assert points[1]["measured_from_utc_ns"] - points[0]["measured_from_utc_ns"] == 61 * 10**9
        assert any("waited for others" in note for note in run.taken.notes)
    # Without times the option says it.
    for one in (fill, reads):
        del one["job_start"]
    _, points = read(document(fill, reads))
    assert [point["total"]["iops"] for point in points] == [1000.0, 100_000.0]
    # Jobs that began almost together ran together.
    both = [job(name, read=side(600), job_start=START_MS + late) for name, late in (("a", 0), ("b", 1500))]
    assert len(read(document(*both))[1]) == 1


def test_hosts_of_client_and_server_mode_are_one_point() -> None:
    hosts = [job("j", read=side(600_000), hostname=name, port=8765) for name in ("h1", "h2")]
    clients = [*hosts, job("All clients", read=side(1_200_000), hostname="", port=0)]
    text = json.dumps({"fio version": "fio-3.35", "timestamp_ms": START_MS, "client_stats": clients})
    run, (point,) = read(text)
    assert point["total"]["iops"] == 20_000.0
    assert point["load"]["workers"] == 2
    assert run.hostname is None
    assert any("several hosts" in note and "h1, h2" in note for note in run.taken.notes)
