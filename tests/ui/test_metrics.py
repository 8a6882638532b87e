"""What Prometheus reads, who may read it, and whether the dashboard asks for what is exported."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from asking_pages import TOKEN, Site
from assay.apps.ui import levels
from assay.apps.ui.asking import Asking
from assay.apps.ui.metrics import METRICS, MetricSample, exposed
from assay.apps.ui.runs import id_of

DASHBOARD = Path(__file__).parents[2] / "packaging" / "grafana" / "assay.json"
SAMPLE = re.compile(r'(?P<name>[a-z_]+)(?P<labels>\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+\})? (?P<value>\S+)')


@pytest.fixture
def exported(results: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The metrics of a run that goes on, and of a load that was measured twice."""
    monkeypatch.setattr(levels, "WAIT_S", 300.0)
    manifest = json.loads((results / "profile" / "run.json").read_text())
    shutil.copytree(results / "profile", results / "later")
    told = manifest | {"run_id": "later", "started_utc_ns": manifest["started_utc_ns"] + 10**9}
    (results / "later" / "run.json").write_text(json.dumps(told))
    live = {"done": 3, "errors": {"count": 1},
            "gauges": [{"name": "iops", "unit": "iops", "value": 42.5}, {"name": 'a"\\', "value": 1}, 7],
            "host": {"cpu_share": 0.5, "devices": [{"name": "vda", "busy_share": 0.75}, 7]},
            "hosts": [{"name": "db1", "cpu_share": 0.25, "devices": None}, 7]}  # fmt: skip
    (results / "oltp" / "live.json").write_text(json.dumps(live))
    answered = Site(results).ask("/metrics", authorization=f"Bearer {TOKEN}")
    assert answered.status == 200
    assert answered.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return answered.text


def test_every_line_is_of_the_format_and_tells_runs_live_figures_and_levels(exported: str) -> None:
    samples = [line for line in exported.splitlines() if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in samples)
    assert len({*samples}) == len(samples)
    assert "assay_runs 4\n" in exported
    assert "assay_runs_live 1\n" in exported
    assert re.search(r'assay_live_value\{run="oltp",.*figure="iops",unit="iops"\} 42\.5', exported)
    assert re.search(r'assay_live_host_cpu_share\{run="oltp",.*host=""\} 0\.5', exported)
    assert re.search(r'assay_live_host_cpu_share\{run="oltp",.*host="db1"\} 0\.25', exported)
    assert re.search(r'assay_live_device_busy_share\{run="oltp",.*host="",device="vda"\} 0\.75', exported)
    assert re.search(r'assay_newest_run_limits\{target="pg on testhost",.*standing="missed"\} 1', exported)
    assert re.search(r"assay_history_runs\{.*\} 2", exported)


def test_the_dashboard_asks_for_metrics_and_labels_that_are_exported(exported: str) -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [one["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    names = {name for text in asked for name in re.findall(r"assay_[a-z_]+", text)}
    assert names == {*METRICS}
    # No level has changed in these runs.
    assert {name for name in names if f"\n{name}" not in f"\n{exported}"} == {
        "assay_history_last_change_ratio", "assay_history_last_change_timestamp_seconds",
    }  # fmt: skip
    for expression in asked:
        for name, labels in re.findall(r"(assay_[a-z_]+)\{(.*?)\}", expression):
            line = next((line for line in exported.splitlines() if line.startswith(f"{name}{{")), None)
            for label in re.findall(r"([a-z_]+)(?:=~|!=|=)", labels):
                assert line is None or f'{label}="' in line
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_the_bearer_opens_the_metrics_alone(results: Path) -> None:
    site = Site(results)
    for path in ("/api/runs", "/", f"/api/runs/{id_of(results / 'oltp')}/view", "/metrics/../api/runs"):
        assert site.ask(path, authorization=f"Bearer {TOKEN}").status == 403
    for shown in (f"Bearer {TOKEN}x", TOKEN, f"bearer {TOKEN}", "Bearer ", f"Basic {TOKEN}"):
        assert site.ask("/metrics", authorization=shown).status == 403
    assert site.ask("/metrics").status == 403
    assert site.ask("/metrics", authorization=f"Bearer {TOKEN}", sec_fetch_site="cross-site").status == 403
    assert site.ask("/metrics", authorization=f"Bearer {TOKEN}", method="POST").status == 405
    assert site.ask("/metrics", authorization=f"Bearer {TOKEN}", host="evil.example").status == 421


def test_the_token_of_a_file_opens_the_metrics_and_nothing_else(results: Path) -> None:
    site = Site(results, metrics_token="m" * 40)
    assert site.ask("/metrics", authorization=f"Bearer {'m' * 40}").status == 200
    assert site.ask("/metrics", authorization=f"Bearer {TOKEN}").status == 200
    assert site.ask("/metrics", authorization=f"Bearer {'m' * 39}").status == 403
    assert site.ask("/api/runs", authorization=f"Bearer {'m' * 40}").status == 403
    assert site.ask(f"/?token={'m' * 40}").status == 403


def test_levels_of_before_are_told_while_newer_ones_are_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "WAIT_S", 0.0)
    asked_for: list[str] = []

    class Held:
        """Works out levels when the test says so."""

        def __init__(self) -> None:
            self.may = asyncio.Event()

        @contextlib.asynccontextmanager
        async def answered(self, kind: str, asked: object, state: str) -> AsyncIterator[int]:
            del kind, asked
            asked_for.append(state)
            await self.may.wait()
            descriptor = os.memfd_create("levels")
            os.write(descriptor, f"levels of {state}\n".encode())
            yield descriptor
            os.close(descriptor)

    async def scrapes() -> list[str]:
        held = Held()
        kept = levels.HistoryLevels(cast("Asking", held))
        told = [await kept.text({}, "first"), await kept.text({}, "first")]
        held.may.set()
        while kept._working is not None and not kept._working.done():
            await asyncio.sleep(0)
        told.append(await kept.text({}, "first"))
        held.may.clear()
        told.append(await kept.text({}, "second"))
        held.may.set()
        while not kept._working or not kept._working.done():
            await asyncio.sleep(0)
        return [*told, await kept.text({}, "second")]

    working = "# histories are being worked out\n"
    assert asyncio.run(scrapes()) == [working, working, *["levels of first\n"] * 2, "levels of second\n"]
    assert asked_for == ["first", "second"]


def test_a_series_has_one_value() -> None:
    samples = [MetricSample("assay_live_points", {"run": run}, value) for run, value in (("a", 1), ("b", 2), ("a", 3))]
    assert exposed(samples).splitlines()[2:] == ['assay_live_points{run="b"} 2', 'assay_live_points{run="a"} 1']


def test_a_value_that_is_no_number_is_left_out() -> None:
    assert exposed([MetricSample("assay_runs", {}, float("nan"))]) == ""
