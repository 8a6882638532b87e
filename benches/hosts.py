"""What one more host costs the coordinator: merging its point, and waiting for it to begin; up to 1,000 hosts.

Agents are simulated: each answers as a real one does, at once, from the thread that asks. So what is measured is the
coordinator's own work, not networks. The output is kept beside this file: benches/results/hosts.json.

    .venv/bin/python benches/hosts.py [--out FILE] [HOSTS ...]
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from assay._core import Histogram
from assay.fleet.meeting import Meeting
from assay.fleet.team import Team
from assay.fleet.wire import GREETING, Receiver, packed
from assay.record.merged import PERCENTILES, merged_point

HOSTS = (1, 10, 100, 300, 1000)
SAMPLES = 20_000
DIFFERENT = 5
ROUNDS = 3
HELLO = {"version": "", "hostname": "", "machine": None, "host": {}}
FIGURES = {"figures": {}, "error": None, "virtual_ns": 0}


class Answering:
    """A pipe with an agent at its other end that answers at once."""

    def __init__(self) -> None:
        self._out: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._in = b""
        self._out.put(GREETING)

    def write(self, data: bytes) -> None:
        """Take a message, and answer it."""
        pieces = [data, b""]
        received = Receiver(lambda _size: pieces.pop(0)).receive()
        assert received is not None
        message, _ = received
        if "ping" in message:
            self._out.put(packed({"pong": message["ping"], "utc_ns": time.time_ns()}))
        elif message.get("do") == "measure":
            self._number = message["number"]
            self._out.put(packed({"at": "begin"}))
        elif "together" in message:
            if "begin_utc_ns" in message["together"]:
                now = time.time_ns()
                self._out.put(packed({"at": "window", "window": [now, now + 1_000_000_000]}))
            else:
                self._out.put(packed({"re": self._number, "is": FIGURES}))
        elif "do" in message:
            self._out.put(packed({"re": message["number"], "is": HELLO if message["do"] == "hello" else None}))

    def read(self, size: int) -> bytes:
        """Give the next answer."""
        del size
        return self._out.get()

    def why_ended(self) -> str:
        """Nothing."""
        return ""

    def end(self, *, kill: bool = False) -> None:
        """End."""
        del kill
        self._out.put(b"")


def direction(seed: int) -> dict[str, Any]:
    """A direction of a point, with its histogram."""
    chance = random.Random(seed)
    histogram = Histogram()
    for _ in range(SAMPLES):
        histogram.record(round(chance.lognormvariate(13, 1)))
    return {
        "count": SAMPLES,
        "iops": float(SAMPLES),
        "bytes_per_s": 8192.0 * SAMPLES,
        "latency_ns": {
            **{name: histogram.percentile(percentile) for name, percentile in PERCENTILES.items()},
            "mean": histogram.mean,
            "max": histogram.max,
        },
        "histogram": histogram.to_base64(),
    }


def point(seed: int) -> dict[str, Any]:
    """A point as a host gives it."""
    sides: dict[str, Any] = {"read": direction(seed), "write": direction(seed + 1), "total": direction(seed + 2)}
    return {
        **sides,
        "measured_s": 1.0,
        "roles": {"data": sides},
        "volumes": [{"name": f"v{seed}", "role": "data", **sides}],
        "activities": [{"name": "io", "role": "data", **sides}],
        "errors": {"count": 0, "kinds": {}},
        "batches": {"seconds": 0.05, "total": {"iops": [1.0] * 20, "latency_mean_ns": [1.0] * 20}},
    }


def merging(hosts: int) -> dict[str, float]:
    """What merging the points of so many hosts takes."""
    made = [point(7 * number) for number in range(min(hosts, DIFFERENT))]
    # Each has a volume of its own, as hosts with targets of their own do.
    points = []
    for number in range(hosts):
        one = made[number % len(made)]
        points.append(one | {"volumes": [one["volumes"][0] | {"name": f"h{number}:v"}]})
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        merged_point(points)
        times.append(time.perf_counter() - began)
    return {
        "merge_s": statistics.median(times),
        "merge_ms_per_host": 1e3 * statistics.median(times) / hosts,
        "point_bytes_per_host": len(json.dumps(points[0])),
    }


def meeting(hosts: int) -> dict[str, float]:
    """What asking so many hosts, and their clocks, takes."""
    team = Team([(f"h{number}", Answering()) for number in range(hosts)])
    team.ask("hello")
    clocks, barriers = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        team.measure_clocks()
        clocks.append(time.perf_counter() - began)
        together = Meeting(members=team.members, send=lambda member, message: member.sender.send(message))
        began = time.perf_counter()
        team.ask("measure", told=lambda member, message, _, met=together: met.hear(member, message))
        barriers.append(time.perf_counter() - began)
    team.end()
    return {
        "clocks_s": statistics.median(clocks),
        "clocks_ms_per_host": 1e3 * statistics.median(clocks) / hosts,
        "barrier_s": statistics.median(barriers),
        "barrier_ms_per_host": 1e3 * statistics.median(barriers) / hosts,
    }


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hosts", nargs="*", type=int, default=list(HOSTS))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "hosts.json")
    given = parser.parse_args()
    rows = [{"hosts": hosts, **merging(hosts), **meeting(hosts)} for hosts in given.hosts or HOSTS]
    for row in rows:
        print("  ".join(f"{name} {value:.4g}" for name, value in row.items()), file=sys.stderr)
    facts = {"cpu_count": os.cpu_count(), "python": sys.version.split()[0], "samples_per_side": SAMPLES}
    given.out.write_text(json.dumps({"machine": facts, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
