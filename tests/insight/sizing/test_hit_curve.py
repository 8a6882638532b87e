"""Hit curves: from a study of a database's cache, scaled to the need's data."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.base.errors import UsageError
from assay.insight.sizing.hit_curve import cache_study, with_hit_curve
from assay.insight.sizing.need import NeedAsWritten, need_of
from assay.insight.sizing.servers import servers_of
from assay.record.run_folder import RunFolder
from assay.telemetry.columns import Reading
from assay.telemetry.flight.writer import FlightWriter
from sizing_needs import START_NS, recording

GB = 10**9
TABLE = {
    "years": 1,
    "database": [{"size": "100GB", "growth": "100%", "transactions": 100}],
    "server": {"cpu_per_transaction": "1ms", "cores": 4, "hit": "90%"},
}


def asked(**changes: object) -> NeedAsWritten:
    table = {**TABLE, **changes}
    return NeedAsWritten(table, "need.toml", need_of(table, "need.toml"))


def studied(path: Path, hits: dict[int, list[float]], *, data_bytes: int = 2 * GB) -> Path:
    """A run whose points each had a cache and its share of hits, recorded beside them."""
    series, points = [], []
    for cache, shares in hits.items():
        for share in shares:
            start = START_NS + len(points) * 60 * 10**9
            series.append((start + 30 * 10**9, cache))
            storage = {
                "devices": [], "seconds": 60.0, "buffer_hit_share": share, "read_bytes_per_transaction": 1.0,
                "written_bytes_per_transaction": 1.0, "log_bytes_per_transaction": 1.0, "server_cpu_share": 0.1,
                "log_flush_latency_mean_ns": None, "bytes_from": "databases", "read_write": None,
                "database": {"read_iops": 10.0, "write_iops": 10.0, "read_bytes_per_s": 81920.0,
                             "write_bytes_per_s": 81920.0, "log_writes_per_s": 1.0, "log_bytes_per_s": 8192.0},
            }  # fmt: skip
            points.append({
                "id": f"p{len(points) + 1:04d}", "part": f"cache-{cache}", "purpose": "point",
                "workload": {"kind": "tpcc"}, "load": {"kind": "users", "users": 1}, "limits": [],
                "generator": {"saturated": False}, "measured_from_utc_ns": start,
                "measured_to_utc_ns": start + 60 * 10**9,
                "oltp": {"tpm_client": 60.0, "users": 1, "storage": storage},
            })  # fmt: skip
    manifest = {"parts": [], "answers": [], "verdict": [], "notices": []}
    with (
        RunFolder.create_at(path, "study", manifest) as folder,
        FlightWriter(path, keep_bytes=64 << 20, host="db1") as writer,
    ):
        writer.begin({"host": "db1"})
        for t_ns, cache in series:
            readings = [Reading("", "cache_bytes", "gauge", float(cache)),
                        Reading("orders", "size_bytes", "gauge", float(data_bytes))]  # fmt: skip
            writer.add(readings, t_ns=t_ns, interval_ns=10**10, tier="database", source="postgresql")
        writer.commit()
        for point in points:
            folder.append_point(point)
        folder.update(status="done")
    return path


def test_a_study_of_the_cache_gives_the_curve_and_so_the_memory(tmp_path: Path) -> None:
    # 2 GB of data were studied, 200 GB are needed after a year: a hundred times the cache for the same hits.
    path = studied(tmp_path / "run", {GB // 10: [0.79, 0.81], GB // 5: [0.90], GB // 2: [0.99]})
    made = with_hit_curve(asked(), cache_study(path))
    assert made.need.server is not None
    assert made.need.server.hit_curve == (
        (10 * GB, pytest.approx(0.80)), (20 * GB, pytest.approx(0.90)), (50 * GB, pytest.approx(0.99)),
    )  # fmt: skip
    assert "95.37 MiB to 476.8 MiB for 1.863 GiB of data" in made.origins["server", "hit_curve"]
    found = servers_of(made.need)
    assert found is not None
    assert found.memory_bytes == pytest.approx(20 * GB / 0.92, rel=1e-6)


def test_noise_never_makes_a_curve_fall(tmp_path: Path) -> None:
    path = studied(tmp_path / "run", {GB // 10: [0.80], GB // 5: [0.92], GB // 2: [0.90]})
    made = with_hit_curve(asked(), cache_study(path))
    assert made.need.server is not None
    assert [share for _, share in made.need.server.hit_curve] == pytest.approx([0.80, 0.91, 0.91])


@pytest.mark.parametrize("hits", [{}, {GB: [0.9, 0.91]}])
def test_a_run_of_one_cache_is_no_curve(tmp_path: Path, hits: dict[int, list[float]]) -> None:
    path = studied(tmp_path / "run", hits)
    with pytest.raises(UsageError, match="a curve takes two; give a run of `assay study run cache-size"):
        with_hit_curve(asked(), cache_study(path))


def test_a_recording_and_a_need_without_servers_are_refused(tmp_path: Path) -> None:
    path = recording(tmp_path / "rec", seconds=60, every_s=10)
    with pytest.raises(UsageError, match="0 sizes of a database's cache"):
        with_hit_curve(asked(), cache_study(path))
    study = cache_study(studied(tmp_path / "run", {GB // 10: [0.8], GB // 5: [0.9]}))
    with pytest.raises(UsageError, match="says nothing of servers"):
        with_hit_curve(asked(server=None), study)


def test_hits_without_a_curve_are_refused() -> None:
    with pytest.raises(UsageError, match="hit_curve of two sizes of memory or more"):
        servers_of(asked().need)
