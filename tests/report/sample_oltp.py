"""Sample runs of transactions, made up: what a database with its storage could have shown; nothing is measured."""

from __future__ import annotations

import math
from typing import Any

from sample import START_NS, Sample, volume

MIX = {"new_order": 10, "payment": 10, "order_status": 1, "delivery": 1, "stock_level": 1}
SLOWNESS = {"new_order": 1.0, "payment": 0.55, "order_status": 0.3, "delivery": 3.2, "stock_level": 0.8}
TITLES = [
    "warehouse's sum is that of its districts", "districts' next order follows the last", "new orders have no holes",
    "orders' lines are counted", "carriers are missing where orders are new", "orders have as many lines as they say",
    "lines are undelivered where orders are", "warehouse's sum is that of its history",
    "district's sum is that of its history", "balances are what was delivered less what was paid",
    "orders less new orders are as loaded", "balances and payments are what was delivered",
]  # fmt: skip
NOTICE = "a TPC-C-like workload, derived and not compliant; figures are not comparable with published TPC results"
TABLES = (("stock", 390, 0.0, 301_422.0), ("customer", 211, 0.0, 41_870.0), ("order_line", 62, 301_100.0, 29_812.0),
          ("orders", 7, 30_104.0, 0.0))  # fmt: skip
TIERS = {"block": "storage", "host": "client", "postgresql": "database"}
LIMITS = ("read.mean<=20ms", "write.mean<=20ms", "log.write.mean<=5ms", "cpu<80%", "response.p90<2s")


def conditions(
    *, violated: int | None = None, left_out: int | None = 11, database: str = "tpcc"
) -> list[dict[str, Any]]:
    return [
        {"id": number, "title": title, "database": database, "checked": 100, "met": number != violated,
         "violations": 2 if number == violated else 0,
         "example": "w_id 3, d_id 7: 3,412 and 3,411" if number == violated else None}
        for number, title in enumerate(TITLES, start=1) if number != left_out
    ]  # fmt: skip


def latencies(mean_ns: float) -> dict[str, float]:
    tail = {"p50": 0.7, "p90": 1.9, "p95": 2.6, "p99": 6.0, "p99_9": 21.0, "p99_99": 60.0, "max": 95.0}
    return {"mean": mean_ns, **{name: mean_ns * factor for name, factor in tail.items()}}


def storage(users: float, nopm: float, *, is_shared: bool = True) -> dict[str, Any]:
    per_s = nopm * 2.32 / 60
    data = {"device": "vda", "roles": ["data", "log"] if is_shared else ["data"], "read_iops": per_s * 1.6,
            "write_iops": per_s * 1.1, "read_bytes_per_s": per_s * 13_100, "write_bytes_per_s": per_s * 14_800,
            "read_latency_mean_ns": 0.2e6 * (1 + users / 40), "write_latency_mean_ns": 0.4e6 * (1 + users / 60),
            "read_size_mean_bytes": 8192.0, "write_size_mean_bytes": 13_400.0, "read_share": 0.59}  # fmt: skip
    log = {**data, "device": "vdb", "roles": ["log"], "read_iops": 0.0, "read_bytes_per_s": 0.0, "read_share": 0.0,
           "read_latency_mean_ns": None, "read_size_mean_bytes": None}  # fmt: skip
    return {
        "seconds": 60.0, "devices": [data] if is_shared else [data, log], "bytes_from": "devices",
        "files": [{"file": f"tpcc/{table}", "write_bytes_per_s": rate}
                  for table, rate in (("stock", 3e6), ("order_line", 1e6))],
        "read_bytes_per_transaction": 13_100.0, "written_bytes_per_transaction": 14_800.0,
        "log_bytes_per_transaction": 4_870.0, "log_flush_latency_mean_ns": 0.39e6 * (1 + users / 80),
        "log_flushes_per_s": per_s * 0.6, "buffer_hit_share": 0.98734, "checkpoints_count": 2,
        "server_cpu_share": min(0.96, 0.04 * users ** 0.8),
        "database": {"read_iops": per_s * 1.6, "write_iops": per_s * 0.9, "read_bytes_per_s": per_s * 13_100,
                     "write_bytes_per_s": per_s * 9_000, "read_latency_mean_ns": 0.21e6, "write_latency_mean_ns": None,
                     "log_writes_per_s": per_s * 0.66, "log_bytes_per_s": per_s * 4_870,
                     "read_bytes_per_transaction": 13_100.0, "written_bytes_per_transaction": 9_000.0},
    }  # fmt: skip


def settings() -> dict[str, str]:
    return {"shared_buffers": "5632MB", "max_wal_size": "16GB", "fsync": "on", "synchronous_commit": "on",
            "full_page_writes": "on", "io_method": "worker", "wal_sync_method": "fdatasync"}  # fmt: skip


def figures(users: int, *, slow: float = 1.0, warehouses: int = 50, **fields: Any) -> dict[str, Any]:
    """A point's `oltp` at so many users: throughput saturates as of a queue with 30 places."""
    nopm = 31_000 * users / (users + 29) * 1.9 / slow
    total = sum(MIX.values())
    mean_ns = users / (nopm * total / 10 / 60) * 1e9 * 0.8
    per_s = {name: nopm * weight / 10 / 60 for name, weight in MIX.items()}
    by_transaction = {
        name: {"count": round(per_s[name] * 60), "per_s": per_s[name], "retried": 7 if name == "new_order" else 0,
               "rolled_back": round(per_s[name] * 0.6) if name == "new_order" else 0, "failed": 0,
               "latency_ns": latencies(mean_ns * SLOWNESS[name]), "histogram": None}
        for name in MIX
    }  # fmt: skip
    return {
        "nopm": nopm, "tpm_client": nopm * 2.323, "tpm_server": nopm * 2.331, "client_cpu_ns_per_transaction": 21_400.0,
        "memory_bytes_per_user": 64_300.0, "users": users, "warehouses": warehouses, "by_transaction": by_transaction,
        "errors": {"count": 0, "kinds": {"deadlock": 0, "serialization": 0, "connection": 0, "other": 0},
                   "example": None},
        "gaps": [], "schedule": None,
        "databases": [{"name": "tpcc", "nopm": nopm, "kind": "embedded", "version": "18.6", "settings": settings()}],
        "storage": storage(users, nopm),
        "statements": [
            {"database": "tpcc", "text": f"call {name}($1, $2, $3)", "calls_count": per_s[name] * 60, "share": share,
             "time_ns": mean_ns * SLOWNESS[name] * per_s[name] * 60, "mean_ns": mean_ns * SLOWNESS[name],
             "rows_count": per_s[name], "read_bytes": 9e7 * share, "page_requests_count": 9e5 * share,
             "page_reads_count": 1e4 * share, "log_bytes": 1e8 * share}
            for name, share in (("new_order", 0.61), ("payment", 0.24), ("delivery", 0.12), ("stock_level", 0.02))
        ],
        "tables": [
            {"database": "tpcc", "table": table, "read_bytes": read * 1e6, "page_requests_count": read * 9e3,
             "page_reads_count": read * 122, "inserted_count": inserted, "updated_count": updated, "deleted_count": 0.0}
            for table, read, inserted, updated in TABLES
        ],
        **fields,
    }  # fmt: skip


def add_point(sample: Sample, users: int, *, rate: float | None = None, **fields: Any) -> dict[str, Any]:
    """One point of transactions of a minute after a quarter of a minute."""
    found = figures(users, **fields)
    values = [("read.mean<=20ms", "data", found["storage"]["devices"][0]["read_latency_mean_ns"], 20e6, "ns"),
              ("log.write.mean<=5ms", "log", found["storage"]["log_flush_latency_mean_ns"], 5e6, "ns"),
              ("cpu<80%", "server", found["storage"]["server_cpu_share"], 0.8, "share")]  # fmt: skip
    values += [
        ("response.p90<2s", name, record["latency_ns"]["p90"], 2e9, "ns")
        for name, record in found["by_transaction"].items()
    ]
    judged = [
        {"limit": limit, "scope": scope, "value": value, "unit": unit, "met": value <= bound}
        for limit, scope, value, bound, unit in values
    ]
    started_ns = sample.now_ns
    point = sample.point(
        "tpcc", workload(), {"users": users} if rate is None else {"rate": rate, "arrivals": "poisson", "users": users},
        None, None, limits=judged, warmup_s=15.0, measured_s=60.0, ended_by="time", roles={}, volumes=[],
        measured_from_utc_ns=started_ns + 15 * 10**9, measured_to_utc_ns=started_ns + 75 * 10**9, oltp=found,
        steady={"reached": True, "window_s": 60.0, "slope_share": 0.004, "half_width_share": 0.011},
    )  # fmt: skip
    point["total"] = None
    found["point_id"] = point["id"]
    sample.now_ns = started_ns + 77 * 10**9
    return point


def workload() -> dict[str, Any]:
    return {"kind": "tpcc", "name": "hammerdb", "preset": "hammerdb", "warehouses": 50, "mix": MIX,
            "draw": "independent", "items": "uniform", "home": "warehouse",
            "mode": "procedures", "pipeline": True, "isolation": "default",
            "think_scale": 0.0}  # fmt: skip


def manifest(found: dict[str, Any] | None, **fields: Any) -> dict[str, Any]:
    places = [volume("tpcc-data", "/srv/pg/data") | {"kind": "database"},
              volume("tpcc-log", "/srv/pg/data/pg_wal") | {"kind": "database", "role": "log"}]  # fmt: skip
    target = {
        "databases": [{"name": "tpcc", "kind": "embedded", "version": "18.6", "settings": settings()}],
        "volumes": places,
        "cache_notice": "caches of the database and the host are part of what is measured",
    }
    load = {"rows": 24_950_312, "bytes": 5_300_000_000, "seconds": 131.0, "rows_per_s": 190_460.0, "resumed": False}
    oltp = {
        "actions_done": {"tpcc": ["load", "run", "check"]},
        "load": load,
        "conditions": conditions(),
        **(found or {}),
    }
    return {"verb": "oltp", "command": ["oltp", "tpcc", "embedded:/srv/pg", "--warehouses", "50"],
            "plan": {"kind": "tpcc"}, "parts": [],
            "target": target, "engine": None, "cache_span": None,
            "oltp": oltp, "notices": [NOTICE], **fields}  # fmt: skip


class OltpSample(Sample):
    """A sample whose series have transactions, devices and a server."""

    def series(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for point in self.points:
            for second in range(75):
                rows += self.second(point, second)
        return rows

    def second(self, point: dict[str, Any], second: int) -> list[dict[str, Any]]:
        found, t_ns = point["oltp"], point["started_utc_ns"] + (second + 1) * 10**9
        gaps = found["gaps"]
        is_away = any(gap["from_utc_ns"] < t_ns <= gap["to_utc_ns"] for gap in gaps)
        warm = 1 - 0.7 * math.exp(-second / 4)
        since = (second - 20) % 30  # a checkpoint writes for 18 of 30 seconds
        load = 1.0 - (0.25 if since < 18 else 0.0)
        speed = 0.0 if is_away else warm * load * self.random.uniform(0.95, 1.05)
        rows = self._transactions(found, t_ns, speed)
        per_s = found["nopm"] * 2.32 / 60 * speed
        writes, write_ns = per_s * (1.6 if since < 18 else 0.7), 0.4e6 * (2.2 if since < 18 else 1.0)
        values: list[tuple[str, str, str, str, float]] = [
            ("block", "vda", "delta", "read_ios_count", per_s * 1.6),
            ("block", "vda", "delta", "read_bytes", per_s * 1.6 * 8192),
            ("block", "vda", "delta", "write_ios_count", writes),
            ("block", "vda", "delta", "write_bytes", writes * 13_400),
            ("block", "vda", "gauge", "write_latency_mean_ns", write_ns * self.random.uniform(0.9, 1.1)),
            ("block", "vda", "gauge", "read_latency_mean_ns", 0.2e6 * (2 - load) * self.random.uniform(0.9, 1.1)),
            ("block", "vda", "gauge", "queue_mean_count", 3.0 * speed),
            ("host", "cpu", "gauge", "user_share", 0.5 * speed), ("host", "cpu", "gauge", "system_share", 0.2 * speed),
            ("host", "cpu", "gauge", "iowait_share", 0.1), ("host", "cpu", "gauge", "steal_share", 0.0),
        ]  # fmt: skip
        if not is_away:
            values += [
                ("postgresql", "tpcc", "delta", "log_bytes", per_s * 4_870),
                ("postgresql", "tpcc", "delta", "log_flushes_count", per_s * 0.6),
                ("postgresql", "tpcc", "delta", "log_flush_time_ns", per_s * 0.6 * write_ns),
                ("postgresql", "tpcc", "delta", "checkpoints_count", 1.0 if since == 0 else 0.0),
                *(("postgresql", "tpcc", "gauge", f"waits_{kind}_share", share)
                  for kind, share in (("none", 0.42), ("log", 0.3), ("io", 0.16), ("lock", 0.07), ("lwlock", 0.04),
                                      ("client", 0.01), ("other", 0.0))),
            ]  # fmt: skip
        role = {"block": "data+log"}
        return rows + [
            {"t_ns": t_ns, "clock": "wall", "interval_ns": 10**9, "tier": TIERS[source], "host": "db07.example",
             "source": source, "entity": entity, "role": role.get(source, ""), "metric": metric,
             "kind": kind, "value": value}
            for source, entity, kind, metric, value in values
        ]  # fmt: skip

    def _transactions(self, found: dict[str, Any], t_ns: int, speed: float) -> list[dict[str, Any]]:
        rows = []
        for name, record in found["by_transaction"].items():
            count = round(record["per_s"] * speed * self.random.uniform(0.97, 1.03))
            values = [("committed_count", "delta", count), ("rolled_back_count", "delta", count // 100),
                      ("retried_count", "delta", 1 if name == "new_order" and self.random.random() < 0.1 else 0),
                      ("failed_count", "delta", 0)]  # fmt: skip
            if count:
                noise = self.random.uniform(0.9, 1.1) / speed
                values += [(f"latency_{key}_ns", "gauge", record["latency_ns"][key] * noise)
                           for key in ("mean", "p50", "p90", "p99", "max")]  # fmt: skip
            rows += [
                {"t_ns": t_ns, "clock": "wall", "interval_ns": 10**9, "tier": "application", "host": "db07.example",
                 "source": "tpcc", "entity": f"tpcc/{name}", "role": "", "metric": metric, "kind": kind,
                 "value": float(value)}
                for metric, kind, value in values
            ]  # fmt: skip
        return rows


def run(*, gap: bool = True, **fields: Any) -> tuple[OltpSample, dict[str, Any]]:
    """One point with a server that was away for five seconds."""
    sample = OltpSample(5)
    away = [{"from_utc_ns": START_NS + 58 * 10**9, "to_utc_ns": START_NS + 63 * 10**9, "database": "tpcc",
             "reason": "the server closed the connection"}] if gap else []  # fmt: skip
    point = add_point(sample, 32, gaps=away)
    oltp = point["oltp"]
    sample.verdict.append(
        {"question": "hammerdb", "limit": None, "value": oltp["nopm"], "unit": "nopm", "met": None,
         "meaning": f"{oltp['nopm']:,.0f} NOPM with 32 users", "point_id": point["id"]}
    )  # fmt: skip
    sample.verdict += [
        {"question": "hammerdb", "limit": limit["limit"], "value": limit["value"], "unit": limit["unit"],
         "met": limit["met"], "meaning": f"{limit['scope']}", "point_id": point["id"]}
        for limit in point["limits"]
    ]  # fmt: skip
    return sample, manifest(oltp, **fields)


def search(axis: str = "users") -> tuple[OltpSample, dict[str, Any]]:
    """A search over users; the server's CPU ends it."""
    sample = OltpSample(6)
    points = [
        add_point(sample, users, rate=users * 25.0 if axis == "rate" else None) for users in (1, 2, 4, 8, 16, 32, 64)
    ]
    passing = [point for point in points if all(limit["met"] for limit in point["limits"])]
    best, worst = passing[-1], points[len(passing)]

    def end(point: dict[str, Any]) -> dict[str, Any]:
        size = {"rate": point["load"]["rate"]} if axis == "rate" else {"users": point["load"]["users"]}
        return {
            **size,
            "nopm": point["oltp"]["nopm"],
            "tpm": point["oltp"]["tpm_client"],
            "response_p90_ns": point["oltp"]["by_transaction"]["new_order"]["latency_ns"]["p90"],
            "point_id": point["id"],
        }

    sample.answers.append(
        {"workload": workload(), "part": "tpcc", "limits": list(LIMITS), "axis": axis,
         "point_ids": [point["id"] for point in points], "max": end(best), "knee": end(passing[-2]), "edge": end(best),
         "first_failing": end(worst),
         "limited_by": "cpu<80%", "interval_95": [best["oltp"]["nopm"] * 0.97, best["oltp"]["nopm"] * 1.02],
         "non_monotone": False}
    )  # fmt: skip
    sample.verdict.append(
        {"question": "hammerdb", "limit": "; ".join(LIMITS), "value": best["oltp"]["nopm"], "unit": "nopm",
         "met": True, "meaning": f"holds {best['oltp']['nopm']:,.0f} NOPM", "point_id": best["id"]}
    )  # fmt: skip
    return sample, manifest(best["oltp"])
