"""CloudWatch: answers of `aws cloudwatch get-metric-statistics` and `get-metric-data`, of EBS, EC2 and RDS.

A time is that of a period's beginning. Sum is what was counted in the period. Neither answer says how long the period
is, and `get-metric-data` says neither the statistic nor, without a label, the volume.

Sources: AWS, "Amazon CloudWatch metrics for Amazon EBS", "CloudWatch metrics for your instances" (EC2), "Amazon
CloudWatch metrics for Amazon RDS"; `GetMetricStatistics`, `GetMetricData`, "Using dynamic labels".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import ClassVar, NamedTuple, TextIO

from assay.telemetry.importers.importer import Into, NotTaken
from assay.telemetry.importers.json_documents import JsonAnswers, documents, leaves, record, records, texts
from assay.telemetry.importers.metric_series import Meaning, SeriesPlace, hand_over
from assay.telemetry.importers.period_statistics import UNKNOWN, PeriodStatistics, start_ns
from assay.telemetry.importers.taken import NO_USE

_ANSWER = re.compile(r'"Datapoints"\s*:\s*\[|"MetricDataResults"\s*:\s*\[')
_STATISTICS = {"Average", "Sum", "Minimum", "Maximum", "SampleCount"}
_NAMES = {"Timestamp", "Unit", "ExtendedStatistics"}
_LABEL = "\"Label\": \"${PROP('Dim.VolumeId')} ${PROP('MetricName')} ${PROP('Stat')}\""
_ASKING = f"--statistics Sum Average (get-metric-statistics), or {_LABEL} (get-metric-data)"
_NO_VOLUME = "does not say which volume or instance it is of; all of it counts as one"


class _Metric(NamedTuple):
    tier: str
    source: str
    entity: str
    meaning: Meaning


def _block(entity: str, **meanings: Meaning) -> dict[str, _Metric]:
    return {name: _Metric("storage", "block", entity, meaning) for name, meaning in meanings.items()}


def _counts(entity: str, prefix: str) -> dict[str, _Metric]:
    return _block(
        entity,
        **{
            f"{prefix}{name}": Meaning(metric, "count")
            for name, metric in (("ReadOps", "read_ios_count"), ("WriteOps", "write_ios_count"),
                                 ("ReadBytes", "read_bytes"), ("WriteBytes", "write_bytes"))
        },
    )  # fmt: skip


_KNOWN: dict[str, _Metric] = {
    **_counts("volume", "Volume"),
    **_block(
        "volume",
        VolumeTotalReadTime=Meaning("read_latency_mean_ns", "mean", 1e9, ("VolumeReadOps",)),
        VolumeTotalWriteTime=Meaning("write_latency_mean_ns", "mean", 1e9, ("VolumeWriteOps",)),
        VolumeAvgReadLatency=Meaning("read_latency_mean_ns", factor=1e6),
        VolumeAvgWriteLatency=Meaning("write_latency_mean_ns", factor=1e6),
        VolumeIdleTime=Meaning("busy_share", "idle"),
        VolumeQueueLength=Meaning("queue_mean_count"),
        BurstBalance=Meaning("burst_balance_share", factor=0.01),
        VolumeIOPSExceededCheck=Meaning("iops_exceeded_share"),
        VolumeThroughputExceededCheck=Meaning("bandwidth_exceeded_share"),
        ReadIOPS=Meaning("read_ios_count", "rate"), WriteIOPS=Meaning("write_ios_count", "rate"),
        ReadThroughput=Meaning("read_bytes", "rate"), WriteThroughput=Meaning("write_bytes", "rate"),
        ReadLatency=Meaning("read_latency_mean_ns", factor=1e9),
        WriteLatency=Meaning("write_latency_mean_ns", factor=1e9),
        DiskQueueDepth=Meaning("queue_mean_count"),
    ),
    **_counts("ebs", "EBS"),
    **_counts("instance store", "Disk"),
    **_block("ebs", InstanceEBSIOPSExceededCheck=Meaning("iops_exceeded_share"),
             InstanceEBSThroughputExceededCheck=Meaning("bandwidth_exceeded_share")),
    "EBSIOBalance%": _Metric("storage", "block", "ebs", Meaning("burst_balance_share", factor=0.01)),
    "EBSByteBalance%": _Metric("storage", "block", "ebs", Meaning("bandwidth_balance_share", factor=0.01)),
    "CPUUtilization": _Metric("client", "host", "cpu", Meaning("busy_share", factor=0.01)),
    "FreeableMemory": _Metric("client", "host", "memory", Meaning("available_bytes")),
    "SwapUsage": _Metric("client", "host", "memory", Meaning("swap_used_bytes")),
    "NetworkIn": _Metric("client", "net", "network", Meaning("in_bytes", "count")),
    "NetworkOut": _Metric("client", "net", "network", Meaning("out_bytes", "count")),
}  # fmt: skip


class CloudWatch(JsonAnswers):
    """CloudWatch."""

    name: ClassVar[str] = "cloudwatch"
    title: ClassVar[str] = "CloudWatch (get-metric-statistics, get-metric-data)"

    def recognises(self, head: str) -> bool:
        """An answer of either command."""
        return _ANSWER.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take volumes, instances and databases.

        Raises
        ------
        NotTaken
            None of its metrics is known.
        """
        found = PeriodStatistics(into, _ASKING)
        for answer in documents(texts(file)):
            if "Datapoints" in answer:
                _of_statistics(answer, found, into)
            for one in records(answer.get("MetricDataResults")):
                _of_data(one, found, into)
        if not found:
            known = "it knows those of EBS volumes, EC2 instances and RDS"
            raise NotTaken(f"holds no metric that is known: {', '.join(into.taken.ignored) or 'it is empty'}; {known}")
        hand_over(found.series(), into)


def _of_statistics(answer: Mapping[str, object], found: PeriodStatistics, into: Into) -> None:
    """One metric, with a value for each statistic of each period."""
    label, points = str(answer.get("Label") or ""), answer.get("Datapoints")
    for point in points if isinstance(points, list) else (points,):
        values = {name: value for name, value in record(point).items() if name not in _NAMES}
        starts_ns = start_ns(record(point).get("Timestamp"))
        if starts_ns is None:
            into.taken.not_understood("points whose time is not understood", json.dumps(point), max(len(values), 1))
            continue
        if extended := record(point).get("ExtendedStatistics"):
            into.taken.ignore(f"percentiles of {label}", NO_USE, leaves(extended))
        for statistic, value in values.items():
            _take(label, statistic, starts_ns, value, found, into)


def _of_data(one: Mapping[str, object], found: PeriodStatistics, into: Into) -> None:
    """One metric, its times and its values in two lists."""
    label, times, values = str(one.get("Label") or one.get("Id") or ""), one.get("Timestamps"), one.get("Values")
    if not isinstance(times, list) or not isinstance(values, list) or len(times) != len(values):
        into.taken.not_understood("results whose times are not as many as their values", label, leaves(values))
        return
    words = label.split()
    statistic = next((word for word in words if word in _STATISTICS), UNKNOWN)
    for at, value in zip(times, values, strict=True):
        starts_ns = start_ns(at)
        if starts_ns is None:
            into.taken.not_understood("points whose time is not understood", str(at))
        else:
            _take(label, statistic, starts_ns, value, found, into)


def _take(label: str, statistic: str, starts_ns: int, value: object, found: PeriodStatistics, into: Into) -> None:
    words = label.split()
    name = next((word for word in words if word in _KNOWN), None)
    if name is None or statistic not in (*_STATISTICS, UNKNOWN):
        into.taken.ignore(label or "a metric without a label", NO_USE, 1)
        return
    metric = _KNOWN[name]
    of = " ".join(word for word in words if word != name and word not in _STATISTICS)
    if not of:
        into.taken.note(_NO_VOLUME)
    is_volume = of.startswith("vol-")
    place = SeriesPlace(
        metric.tier, into.options.host if is_volume or not of else of, metric.source,
        of if is_volume else metric.entity,
    )  # fmt: skip
    found.add(name, place, metric.meaning, statistic.lower(), starts_ns, value)
