"""Sample runs, simulated: a closed queueing network of equal disks, so that the curves bend as real ones do.

Balanced network of c disks with service time s, by mean value analysis: throughput X(N) = N / ((N + c - 1) s), response
time R(N) = (N + c - 1) s. Everything follows from a seed; nothing is measured.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from assay.record.run_folder import RunFolder
from series_rows import batches_of

START_NS = 1_795_255_200 * 10**9
KIB = 1024
HDR = "HISTFAAAADx4nAExAM7/HISTEwAAAAkAAAAAAAAAAwAAAAAAAAABAAADRjC4oAA/8AAAAAAAAPt1ArUCAu8EAooGB3Q="
PARTS = {"oltp": "Random I/O of transactions", "dss": "Scans", "log": "Log writes", "database": "Database mix"}
TAIL = {"p50": 0.8, "p90": 2.1, "p95": 2.8, "p99": 4.8, "p99_9": 9.5, "p99_99": 17.0, "max": 28.0}


class Sample:
    """One simulated storage and the points measured on it."""

    def __init__(self, seed: int = 1, *, disks: int = 22, seconds: float = 5.0) -> None:
        self.random = random.Random(seed)
        self.disks, self.seconds = disks, seconds
        self.now_ns = START_NS
        self.points: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        self.verdict: list[dict[str, Any]] = []

    def direction(self, iops: float, block: float, mean_ns: float) -> dict[str, Any] | None:
        if iops <= 0:
            return None
        noisy = mean_ns * self.random.uniform(0.98, 1.02)
        tail = {name: noisy * factor * self.random.uniform(0.94, 1.06) for name, factor in TAIL.items()}
        return {"count": round(iops * self.seconds), "iops": iops, "bytes_per_s": iops * block,
                "latency_ns": {"mean": noisy, **tail}, "histogram": HDR}  # fmt: skip

    def point(
        self, part: str, workload: dict[str, Any], load: dict[str, Any], read: Any, write: Any, **fields: Any
    ) -> dict[str, Any]:
        both = [side for side in (read, write) if side]
        iops, moved = (sum(side[key] for side in both) for key in ("iops", "bytes_per_s"))
        mean = sum(side["latency_ns"]["mean"] * side["iops"] for side in both) / iops if iops else 0.0
        total = self.direction(iops, moved / iops if iops else 1, mean)
        point = {
            "id": f"p{len(self.points) + 1:04d}", "key": f"{len(self.points):064x}", "part": part, "repeat": 0,
            "purpose": "search", "started_utc_ns": self.now_ns, "warmup_s": 1.0, "measured_s": self.seconds,
            "ended_by": "steady", "workload": workload, "load": load, "read": read, "write": write, "total": total,
            "flush": None, "roles": {"data": {"read": read, "write": write, "total": total}},
            "volumes": [{"name": "f", "role": "data", "read": read, "write": write, "total": total}],
            "activities": [], "bursts": None, "service_latency_ns": None, "offered": None,
            "errors": {"count": 0, "kinds": {}},
            "steady": {"reached": True, "window_s": 4.0, "slope_share": 0.01, "half_width_share": 0.02},
            "generator": {"cpu_share": 0.21, "schedule_lag_p99_ns": None, "clock_ns": 11, "saturated": False},
            "telemetry": {"cpu_share": 0.2, "iowait_share": 0.3, "steal_share": 0.0},
            "limits": [], **fields,
        }  # fmt: skip
        self.now_ns += round((self.seconds + 1.4) * 1e9)
        self.points.append(point)
        return point

    def random_point(self, part: str, workload: dict[str, Any], outstanding: int, limit_ms: float) -> dict[str, Any]:
        block, share = workload["block_bytes"], workload["read_share"]
        service_ns = 4.2e6 + block / 65e6 * 1e9 + (1 - share) * 2.4e6
        response = (outstanding + self.disks - 1) * service_ns / self.disks
        iops = outstanding / response * 1e9 * self.random.uniform(0.985, 1.0)
        factor = 0.35 if outstanding < 48 else 0.9  # a write-back cache hides writes until it is full
        read = self.direction(iops * share, block, response)
        write = self.direction(iops * (1 - share), block, response * factor)
        limits = [
            {"limit": f"{name}.mean<={limit_ms:g}ms", "scope": "data/f", "unit": "ns",
             "value": side["latency_ns"]["mean"] if side else None,
             "met": side["latency_ns"]["mean"] <= limit_ms * 1e6 if side else None}
            for name, side in (("read", read), ("write", write))
        ]  # fmt: skip
        load = {"queue_depth": outstanding, "workers": 1, "outstanding": outstanding}
        return self.point(part, workload, load, read, write, limits=limits)

    def search(self, part: str, workload: dict[str, Any], limit_ms: float = 20) -> dict[str, Any]:
        curve = []
        for outstanding in (1, 2, 4, 8, 16, 32, 64, 128, 256):
            curve.append(self.random_point(part, workload, outstanding, limit_ms))
            if any(limit["met"] is False for limit in curve[-1]["limits"]):
                break
        passing = [point for point in curve if all(limit["met"] is not False for limit in point["limits"])]
        failing = [point for point in curve if point not in passing]
        best = ends(passing[-1]) if passing else None
        missed = [limit["limit"] for point in failing for limit in point["limits"] if limit["met"] is False]
        answer = {
            "workload": workload, "part": part, "axis": "outstanding", "point_ids": [point["id"] for point in curve],
            "max": best, "knee": _knee(passing), "edge": best, "first_failing": ends(failing[0]) if failing else None,
            "limited_by": missed[0] if missed else "axis end",
            "interval_95": [best["iops"] * 0.965, best["iops"] * 1.031] if best else None, "crossing": None,
            "step_share": 0.05 if failing else None, "resolution_share": 0.06, "undecided": False,
            "non_monotone": False,
        }  # fmt: skip
        self.answers.append(answer)
        held = best["iops"] if best else None
        self.verdict.append(
            {"question": workload["name"], "limit": "read.mean<=20ms", "value": held, "unit": "iops", "met": bool(best),
             "meaning": f"holds {held:,.0f} IOPS within 20 ms" if held else "no load holds the limit",
             "point_id": best["point_id"] if best else None}
        )  # fmt: skip
        return answer

    def oltp(self, blocks: tuple[int, ...] = (8, 16, 32, 64), shares: tuple[float, ...] = (1.0, 0.8, 0.7, 0.6)) -> None:
        for block in blocks:
            for share in shares:
                self.search(
                    "oltp", io(block * KIB, share, f"{block} KiB random {share * 100:.0f}/{100 - share * 100:.0f}")
                )

    def dss(self) -> None:
        for kind, share, order, rate in (("sequential read", 1.0, 0.0, 1042e6), ("sequential write", 0.0, 0.0, 690e6),
                                         ("random read", 1.0, 1.0, 420e6)):  # fmt: skip
            for block in (64, 128, 256, 512, 1024):
                moved = rate * block / (block + 40)
                side = self.direction(moved / (block * KIB), block * KIB, 128 * block * KIB / moved * 1e9)
                workload = io(block * KIB, share, f"{block} KiB {kind}") | {"random_share": order, "streams": 4}
                load = {"queue_depth": 128, "workers": 1, "outstanding": 128}
                self.point("dss", workload, load, *((side, None) if share else (None, side)), purpose="grid")
        best = max(self.points[-15:-10], key=lambda point: point["read"]["bytes_per_s"])
        moved = best["read"]["bytes_per_s"]
        self.verdict.append({"question": "sequential scan", "limit": None, "value": moved, "unit": "bytes_per_s",
                             "met": None, "meaning": f"scans {moved / 1e6:,.0f} MB/s"})  # fmt: skip

    def log(self) -> None:
        for sync, appenders, base in (("dsync", 1, 0.31e6), ("dsync", 4, 0.42e6), ("fdatasync", 1, 0.62e6),
                                      ("fsync", 1, 0.71e6)):  # fmt: skip
            for block in (512, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 60 * KIB):
                mean = base + block / 160e6 * 1e9
                side = self.direction(appenders / mean * 1e9, block, mean)
                workload = io(block, 0.0, f"log {block} B {sync}") | {"random_share": 0.0, "sync": sync, "role": "log"}
                load = {"queue_depth": 1, "workers": appenders, "outstanding": appenders}
                limits = [
                    {"limit": "write.mean<=5ms", "scope": "log/f", "value": mean, "unit": "ns", "met": mean <= 5e6}
                ]
                self.point("log", workload, load, None, side, purpose="grid", limits=limits)
        self.verdict.append(
            {
                "question": "log writes with fsync",
                "limit": "log.write.p99<=2ms",
                "value": 3.45e6,
                "unit": "ns",
                "met": False,
                "meaning": "one commit in a hundred waits longer than 2 ms",
            }
        )
        self.verdict.append(
            {
                "question": "tcp retransmits", "limit": "tcp.retransmit<0.5%", "value": None, "unit": "share",
                "met": None, "meaning": "the storage is local",
            }
        )  # fmt: skip
        self.verdict.append({"question": "log writes", "limit": "log.write.mean<=5ms", "value": 0.4e6, "unit": "ns",
                             "met": True, "meaning": "a commit waits 0.4 ms for its log write"})  # fmt: skip

    def database(self) -> None:
        activities = []
        for name, role, reads, writes, block, latency in (
            ("foreground reads", "data", 1400.0, 0.0, 8 * KIB, 8.3e6),
            ("checkpoint", "data", 0.0, 620.0, 8 * KIB, 14e6),
            ("log stream", "log", 0.0, 900.0, 16 * KIB, 0.7e6),
            ("tempdb", "tempdb", 180.0, 180.0, 64 * KIB, 11e6),
        ):  # fmt: skip
            read, write = self.direction(reads, block, latency), self.direction(writes, block, latency * 0.8)
            activities.append({"name": name, "role": role, "read": read, "write": write, "total": read or write})
        bursts = {"share_of_time": 0.41, "count": 3, "read_during": self.direction(1100, 8 * KIB, 14.8e6),
                  "read_between": self.direction(1650, 8 * KIB, 5.1e6)}  # fmt: skip
        workload = io(8 * KIB, 0.6, "database mix") | {"activities": [{"name": one["name"]} for one in activities]}
        read, write = self.direction(1580, 8 * KIB, 8.8e6), self.direction(1700, 12 * KIB, 5.9e6)
        self.point(
            "database", workload, {"kind": "mixed"}, read, write, activities=activities, bursts=bursts, purpose="grid"
        )

    def manifest(self, **fields: Any) -> dict[str, Any]:
        return {
            "status": "done", "error": None, "started_utc_ns": START_NS, "ended_utc_ns": self.now_ns,
            "command": ["assess", "/srv/db"], "plan": {}, "parts": [
                {"name": name, "title": title, "planned_s": 60.0, "spent_s": 58.2, "plan": {}}
                for name, title in PARTS.items()
            ],
            "target": {"volumes": [volume("f", "/srv/db/assay.data")],
                       "cache_notice": "caches between host and disk are not excluded"},
            "host": {"hostname": "db07.example", "kernel": "6.12.48", "distribution": "Debian GNU/Linux 13",
                     "cpu_model": "AMD EPYC 9124 16-Core Processor", "cpu_count": 16, "memory_bytes": 128 * 2**30,
                     "virtualization": None, "python": "3.13.5"},
            "build": {"version": "0.1.0", "profile": "release", "rustc": "1.91.0", "target": "x86_64-unknown-linux-gnu",
                      "commit": "0123abc"},
            "engine": {"backend": "io_uring", "features": ["single_issuer", "defer_taskrun", "registered_buffers"],
                       "degraded": ["no_iowait: kernel too old"]},
            "cache_span": cache_span(), "answers": self.answers, "verdict": self.verdict, "notices": [], **fields,
        }  # fmt: skip

    def series(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for point in self.points:
            for second in range(int(point["warmup_s"] + point["measured_s"])):
                end_ns = point["started_utc_ns"] + (second + 1) * 10**9
                rows += self._second(point, end_ns)
        return rows

    def _second(self, point: dict[str, Any], t_ns: int) -> list[dict[str, Any]]:
        wobble = self.random.uniform(0.93, 1.07)
        values: list[tuple[str, str, str, float]] = []
        for side in ("read", "write"):
            measured = point[side]
            iops = measured["iops"] * wobble if measured else 0.0
            moved = measured["bytes_per_s"] * wobble if measured else 0.0
            for source, entity in (("assay", "f"), ("block", "vda")):
                values += [(source, entity, f"{side}_ios_count", iops), (source, entity, f"{side}_bytes", moved)]
            if measured:
                for name in ("mean", "p50", "p99", "max"):
                    values.append(("assay", "f", f"{side}_latency_{name}_ns", measured["latency_ns"][name] / wobble))
        busy = min(1.0, (point["load"].get("outstanding") or 8) / 64)
        values += [("block", "vda", "queue_mean_count", (point["load"].get("outstanding") or 8) * wobble)]
        for name, share in (("user", 0.04), ("system", 0.09), ("iowait", 0.2 + 0.4 * busy), ("steal", 0.002)):
            values.append(("host", "cpu", f"{name}_share", share * wobble))
        for kind, share in (("some", 0.7), ("full", 0.5)):
            values.append(("host", "psi-io", f"{kind}_share", share * busy * wobble))
        values += [("host", "psi-cpu", "some_share", 0.02 * wobble), ("host", "psi-memory", "some_share", 0.0)]
        return [row(t_ns, *value) for value in values]


def io(block: int, share: float, name: str) -> dict[str, Any]:
    return {"kind": "io", "name": name, "role": "data", "block_bytes": block, "read_share": share, "random_share": 1.0,
            "skew": "uniform", "streams": 1, "align_bytes": block, "region": [0.0, 1.0], "compressible_share": 0.0,
            "duplicate_share": 0.0, "io_mode": "direct", "sync": "none", "sync_every": 1}  # fmt: skip


def _knee(passing: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The smallest load with 95 % of the most."""
    most = max((point["total"]["iops"] for point in passing), default=0.0)
    return next((ends(point) for point in passing if point["total"]["iops"] >= 0.95 * most), None)


def ends(point: dict[str, Any]) -> dict[str, Any]:
    return {"outstanding": point["load"]["outstanding"], "iops": point["total"]["iops"],
            "bytes_per_s": point["total"]["bytes_per_s"], "point_id": point["id"],
            **{f"{side}_latency_mean_ns": point[side]["latency_ns"]["mean"] if point[side] else None
               for side in ("read", "write")}}  # fmt: skip


def volume(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "path": path, "kind": "file", "role": "data", "size_bytes": 64 * 2**30, "state": "fresh",
            "bytes_laid_out": 64 * 2**30, "created_by_assay": True, "file_system": "ext4",
            "mount_options": "rw,relatime", "device": "vda", "device_stack": ["vda"], "model": None, "queue": {
                "scheduler": "none", "nr_requests": 256, "rotational": True, "write_cache": "write back",
                "logical_block_bytes": 512, "physical_block_bytes": 4096, "max_io_bytes": 4194304,
                "read_ahead_bytes": 131072}}  # fmt: skip


def cache_span() -> dict[str, Any]:
    spans = [2**power * 2**20 for power in range(6, 17)]
    means = [0.11e6 + 5.6e6 * max(0.0, 1 - 2**32 / span) for span in spans]
    steps = [{"span_bytes": span, "latency_mean_ns": mean, "latency_p50_ns": mean * 0.85, "iops": 8e9 / mean}
             for span, mean in zip(spans, means, strict=True)]  # fmt: skip
    return {"steps": steps, "ends_at_bytes": 2**32, "note": "measured with eight outstanding reads of 8 KiB"}


def row(t_ns: int, source: str, entity: str, metric: str, value: float) -> dict[str, Any]:
    kind = "delta" if metric.endswith(("_ios_count", "_bytes")) else "gauge"
    return {"t_ns": t_ns, "clock": "wall", "interval_ns": 10**9, "tier": "storage" if source == "block" else "client",
            "host": "db07.example", "source": source, "entity": entity, "role": "", "metric": metric, "kind": kind,
            "value": value}  # fmt: skip


def write_run(parent: Path, sample: Sample, *, verb: str = "assess", series: bool = True, **fields: Any) -> Path:
    """Run folder of a sample, written the way a run writes it."""
    with RunFolder.create(parent, verb, sample.manifest(**fields)) as folder:
        for point in sample.points:
            folder.append_point(point)
        if series:
            writer = folder.series_writer()
            writer.write(batches_of(sample.series()))
            writer.close_segment("all")
            writer.compact()
        return folder.path


def whole(seed: int = 1) -> Sample:
    """Build the whole examination: oltp 4 x 4, dss, log, database."""
    sample = Sample(seed)
    sample.oltp()
    sample.dss()
    sample.log()
    sample.database()
    return sample


def small(seed: int = 7) -> Sample:
    """A run with every part and few points."""
    sample = Sample(seed)
    sample.oltp((8, 16), (1.0, 0.7))
    sample.dss()
    sample.log()
    sample.database()
    return sample
