"""What `assay ui` costs and how late it is: processor time and memory of 500 runs, the delay of live points.

    python benches/ui.py [--runs 500]

The runs are copies of one that is measured first. The delay of a finished point is from the end of its window to the
event at the browser's end of the connection, that of a figure from when it was taken. Memory is that of the process
that stays, without those it asks; processor time is that of both. Caches are empty at first. The table goes to
benches/results/ui.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benches" / "results" / "ui.md"
ASSAY = (sys.executable, "-m", "assay")


class Page:
    """A server that was started, and a browser's part in its connection."""

    def __init__(self, *folders: Path, cache: Path) -> None:
        self.began_s = time.monotonic()
        self.process = subprocess.Popen([*ASSAY, "ui", *map(str, folders), "--port", "0"], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True,
                                        env={**os.environ, "XDG_CACHE_HOME": str(cache)})  # fmt: skip
        assert self.process.stdout is not None
        address = self.process.stdout.readline().strip()
        self.base = address.split("/?")[0]
        with urllib.request.urlopen(address) as answer:
            self.cookie = answer.headers["Set-Cookie"].split(";")[0]

    def opened(self, path: str) -> HTTPResponse:
        """Ask for something with the cookie."""
        request = urllib.request.Request(self.base + path, headers={"Cookie": self.cookie})
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=120)
        return answer

    def get(self, path: str) -> bytes:
        """All of an answer."""
        with self.opened(path) as answer:
            return answer.read()

    def rss_mb(self) -> float:
        """Resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1000

    def cpu_s(self) -> float:
        """Processor time of the server and of the processes that answered for it."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.wait(10)


def measured(results: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """A profile that was begun."""
    command = [*ASSAY, "profile", *arguments, "--warmup", "0s", "--no-report", "-o", str(results)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def events(answer: HTTPResponse) -> Iterator[tuple[str, Any]]:
    """Names and contents of events."""
    name = ""
    for line in answer:
        text = line.decode().rstrip("\n")
        if text.startswith(": "):
            yield "here", None
        elif text.startswith("event: "):
            name = text.removeprefix("event: ")
        elif text.startswith("data: "):
            yield name, json.loads(text.removeprefix("data: "))


class FirstPage(NamedTuple):
    """Seconds from the command and from the request to the list, processor time of list and histories, memory."""

    command_s: float
    request_s: float
    list_cpu_s: float
    histories_cpu_s: float
    again_cpu_s: float
    rss_mb: float


def first_page(folder: Path, runs: int, cache: Path) -> FirstPage:
    """Ask for the list as a browser does, then for the histories, twice."""
    shutil.rmtree(cache, ignore_errors=True)
    page = Page(folder, cache=cache)
    try:
        asked_s, asked_cpu_s = time.monotonic(), page.cpu_s()
        for path in ("/", "/static/app.js", "/static/uplot/uPlot.iife.min.js", "/api/runs"):
            found = page.get(path)
        ended_s, listed_cpu_s = time.monotonic(), page.cpu_s()
        assert len(json.loads(found)["runs"]) == runs
        page.get("/api/histories")
        first_cpu_s = page.cpu_s()
        page.get("/api/histories")
        return FirstPage(
            ended_s - page.began_s, ended_s - asked_s, listed_cpu_s - asked_cpu_s, first_cpu_s - listed_cpu_s,
            page.cpu_s() - first_cpu_s, page.rss_mb(),
        )  # fmt: skip
    finally:
        page.end()


def all_pages(folder: Path, cache: Path) -> float:
    """Memory after every page of ten runs was asked for."""
    page = Page(folder, cache=cache)
    try:
        for row in json.loads(page.get("/api/runs"))["runs"][:10]:
            for name in ("view", "series", "matrix", "findings"):
                page.get(f"/api/runs/{row['id']}/{name}")
            page.get(f"/runs/{row['id']}/now.html")
        return page.rss_mb()
    finally:
        page.end()


def live_run(page: Page) -> str | None:
    """The run that goes on; None before the page sees it."""
    return next((row["id"] for row in json.loads(page.get("/api/runs"))["runs"] if row["live"]), None)


def live(folder: Path, cache: Path) -> tuple[list[float], list[float], float]:
    """Delays of finished points and of figures, and memory meanwhile."""
    running = measured(folder, "null:?latency=1ms&servers=4", "--queue-depth", "1,2,3,4,5,6,7,8", "--duration", "3s")
    folder.mkdir(exist_ok=True)
    page = Page(folder, cache=cache)
    points, figures, seen = [], [], set()
    try:
        while not (run := live_run(page)):
            assert running.poll() is None, "the run ended before the page saw it"
            time.sleep(0.2)
        last = 0
        with page.opened(f"/api/events?run={run}") as answer:
            for name, told in events(answer):
                now_ns = time.time_ns()
                if name == "over" or (name == "here" and running.poll() is not None):
                    break
                if name != "live":
                    continue
                ids = {row["id"] for row in told["points"]}
                if last:
                    # What had ended before this watched is not late.
                    points += [(now_ns - row["to_utc_ns"]) / 1e9 for row in told["points"] if row["id"] not in seen]
                seen |= ids
                if told["times_utc_ns"] and told["times_utc_ns"][-1] > last:
                    last = told["times_utc_ns"][-1]
                    figures.append((now_ns - last) / 1e9)
        return points, figures, page.rss_mb()
    finally:
        page.end()
        running.wait(60)


def spread(values: list[float]) -> str:
    """Delays in words."""
    return f"median {statistics.median(values):.2f} s, longest {max(values):.2f} s of {len(values)}"


def beside_words(load: float) -> str:
    """What the load average says of the figures."""
    busy = load > (os.cpu_count() or 1)
    return "other programs ran, and delays are longer for them." if busy else "nothing else ran."


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    count = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "many"
        measured(folder, "null:?latency=1ms&servers=4", "--queue-depth", "1,2,4,8", "--duration", "2s").wait()
        (original,) = folder.iterdir()
        for number in range(count - 1):
            shutil.copytree(original, folder / f"{original.name}-{number:03d}")
        cache = Path(made) / "cache"
        firsts = [first_page(folder, count, cache) for _ in range(5)]
        everything = all_pages(folder, cache)
        points, figures, beside = live(Path(made) / "live", cache)
        load = os.getloadavg()[1]

    def worst(name: str) -> float:
        return max(float(getattr(one, name)) for one in firsts)

    lines = [
        "# assay ui",
        "",
        f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()};"
        f" `python benches/ui.py --runs {count}`. Load average {load:.0f}: {beside_words(load)}",
        "",
        "| what | measured | aim |",
        "|---|---|---|",
        f"| processor time of the list of {count} runs, worst of 5 | {worst('list_cpu_s'):.2f} s | < 1 s |",
        f"| request to that list, worst of 5 | {worst('request_s'):.2f} s | |",
        f"| command to that list, worst of 5 | {worst('command_s'):.2f} s | |",
        f"| processor time of their histories at first, worst of 5 | {worst('histories_cpu_s'):.2f} s | < 1 s |",
        f"| processor time of the histories again, worst of 5 | {worst('again_cpu_s'):.2f} s | |",
        f"| resident memory after it | {worst('rss_mb'):.0f} MB | < 60 MB |",
        f"| resident memory after all pages of ten runs | {everything:.0f} MB | < 60 MB |",
        f"| resident memory after a run was watched | {beside:.0f} MB | < 60 MB |",
        f"| finished point to event | {spread(points)} | < 2 s |",
        f"| figure under way to event | {spread(figures)} | < 2 s |",
        "",
    ]
    print("\n".join(lines))
    RESULTS.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
