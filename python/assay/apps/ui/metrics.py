"""What Prometheus reads at `/metrics`: how runs stand, what goes on, and the levels of histories.

The text format is version 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/). Names and units follow
its advice: base units, the unit last; times are seconds since 1970.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from assay.apps.ui.lines import PageQuestion
from assay.apps.ui.runs import RunRow

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LABEL_MAX = 200

METRICS: Mapping[str, str] = {
    "assay_runs": "Runs and recordings that are shown.",
    "assay_runs_live": "Runs and recordings that go on.",
    "assay_newest_run_limits": "Limits and checks of a target's newest run, by how they stand.",
    "assay_newest_run_started_timestamp_seconds": "When a target's newest run began.",
    "assay_newest_run_notices": "Notices of a target's newest run.",
    "assay_live_value": "A figure of a run that goes on, in the unit of its label.",
    "assay_live_host_cpu_share": "Used share of the processors of a host that makes the load of a run that goes on.",
    "assay_live_device_busy_share": "Busy share of a device of the target, as a host that makes the load sees it.",
    "assay_live_points": "Points that a run that goes on has finished.",
    "assay_live_errors": "Errors of a run that goes on.",
    "assay_history_worked_out_timestamp_seconds": "When the levels were worked out, which runs since are not in.",
    "assay_history_level": "The level of a figure in its newest runs, in the unit of its label.",
    "assay_history_level_low": "Lower end of the 95 % interval of the level.",
    "assay_history_level_high": "Upper end of the 95 % interval of the level.",
    "assay_history_runs": "Comparable runs that a figure has.",
    "assay_history_changes": "Changes of level of a figure.",
    "assay_history_last_change_ratio": "The last change of level: after / before - 1.",
    "assay_history_last_change_timestamp_seconds": "When the first run after the last change of level began.",
}
"""Every metric that is exported, and what it is; all are gauges."""


class MetricSample(NamedTuple):
    """One value of a metric, with its labels."""

    metric: str
    labels: Mapping[str, str]
    value: float


def exposed(samples: Iterable[MetricSample]) -> str:
    r"""Samples as text, those of a metric together, each metric with its words.

    Examples
    --------
    >>> print(exposed([MetricSample("assay_runs", {}, 3), MetricSample("assay_live_points", {"run": 'a"'}, 1)]), end="")
    # HELP assay_runs Runs and recordings that are shown.
    # TYPE assay_runs gauge
    assay_runs 3
    # HELP assay_live_points Points that a run that goes on has finished.
    # TYPE assay_live_points gauge
    assay_live_points{run="a\""} 1
    """
    by_metric: dict[str, list[MetricSample]] = {}
    for sample in samples:
        if math.isfinite(sample.value):
            by_metric.setdefault(sample.metric, []).append(sample)
    lines: list[str] = []
    for metric, words in METRICS.items():
        # Of several values with the same labels, as of two folders of one name, the first counts.
        own = {_series(sample): sample.value for sample in reversed(by_metric.get(metric, []))}
        if own:
            lines += [f"# HELP {metric} {words}", f"# TYPE {metric} gauge"]
            lines += [f"{series} {value:.15g}" for series, value in reversed(own.items())]
    return "".join(f"{line}\n" for line in lines)


def _series(sample: MetricSample) -> str:
    told = ",".join(f'{name}="{_label(text)}"' for name, text in sample.labels.items())
    return f"{sample.metric}{f'{{{told}}}' if told else ''}"


def _label(text: str) -> str:
    return text[:LABEL_MAX].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def run_samples(rows: Sequence[RunRow]) -> Iterator[MetricSample]:
    """How many runs there are, and how the newest of each target stands; `rows` has the newest first."""
    yield MetricSample("assay_runs", {}, len(rows))
    yield MetricSample("assay_runs_live", {}, sum(row["live"] for row in rows))
    newest: dict[str, RunRow] = {}
    for row in rows:
        newest.setdefault(row["target_id"], row)
    for row in newest.values():
        labels = {"target": row["target"] or row["name"], "target_id": row["target_id"]}
        for standing, count in (("met", row["met"]), ("missed", row["missed"]), ("unknown", row["unknown"])):
            yield MetricSample("assay_newest_run_limits", {**labels, "standing": standing}, count)
        yield MetricSample("assay_newest_run_notices", labels, row["notices"])
        if row["started_s"] is not None:
            yield MetricSample("assay_newest_run_started_timestamp_seconds", labels, row["started_s"])


def live_samples(row: RunRow, told: object) -> Iterator[MetricSample]:
    """What a run that goes on says of itself; it may say anything."""
    if not isinstance(told, Mapping):
        return
    labels = {"run": row["name"], "target": row["target"] or row["name"], "load": row["load"]}
    gauges = told.get("gauges")
    for gauge in gauges if isinstance(gauges, list) else ():
        value = gauge.get("value") if isinstance(gauge, Mapping) else None
        if isinstance(value, int | float):
            names = {"figure": str(gauge.get("name") or ""), "unit": str(gauge.get("unit") or "")}
            yield MetricSample("assay_live_value", {**labels, **names}, value)
    others = told.get("hosts")
    hosts = [("", told.get("host")), *((_name(one), one) for one in (others if isinstance(others, list) else ()))]
    for name, host in hosts:
        yield from _host_samples(labels | {"host": name}, host)
    errors = told.get("errors")
    counts = {
        "assay_live_points": told.get("done"),
        "assay_live_errors": errors.get("count") if isinstance(errors, Mapping) else None,
    }
    for metric, count in counts.items():
        if isinstance(count, int | float):
            yield MetricSample(metric, labels, count)


def _name(told: object) -> str:
    return str(told.get("name") or "") if isinstance(told, Mapping) else ""


def _host_samples(labels: Mapping[str, str], host: object) -> Iterator[MetricSample]:
    """What a host does; the label `host` is empty for the one that leads the run."""
    if not isinstance(host, Mapping):
        return
    if isinstance(share := host.get("cpu_share"), int | float):
        yield MetricSample("assay_live_host_cpu_share", labels, share)
    devices = host.get("devices")
    for device in devices if isinstance(devices, list) else ():
        share = device.get("busy_share") if isinstance(device, Mapping) else None
        if isinstance(share, int | float):
            yield MetricSample("assay_live_device_busy_share", {**labels, "device": _name(device)}, share)


def history_metrics(asked: PageQuestion) -> str:
    """The levels of all targets' figures as text; asked for in a process of its own."""
    from assay.apps.ui.histories import histories

    def samples() -> Iterator[MetricSample]:
        yield MetricSample("assay_history_worked_out_timestamp_seconds", {}, round(time.time()))
        seen: dict[str, int] = {}
        for target in histories(asked)["targets"]:
            history = target["history"]
            # Two hosts may have a target of one name; a series has one value at a time.
            number = seen[history["title"]] = seen.get(history["title"], 0) + 1
            title = history["title"] if number == 1 else f"{history['title']} ({number})"
            for load in history["loads"]:
                for trend in load["trends"]:
                    labels = {
                        "target": title, "load": f"{load['workload']}, {load['load']}",
                        "state": load["state"], "figure": trend["title"], "unit": trend["unit"],
                    }  # fmt: skip
                    now = trend["levels"][-1]
                    yield MetricSample("assay_history_level", labels, now["value"])
                    for metric, end in zip(("low", "high"), now["interval_95"] or (), strict=False):
                        yield MetricSample(f"assay_history_level_{metric}", labels, end)
                    yield MetricSample("assay_history_runs", labels, len(trend["values"]))
                    yield MetricSample("assay_history_changes", labels, len(trend["changes"]))
                    for change in trend["changes"][-1:]:
                        at_s = change["started_utc_ns"] / 1e9
                        yield MetricSample("assay_history_last_change_ratio", labels, change["share"])
                        yield MetricSample("assay_history_last_change_timestamp_seconds", labels, at_s)

    return exposed(samples())
