"""Azure Monitor: answers of `az monitor metrics list`, of virtual machines, disks and databases.

A time is that of an interval's beginning; the answer says how long intervals are.

Sources: Microsoft, "Metrics - List" (REST), "Disk performance metrics", "Supported metrics" of Microsoft.Compute/
virtualMachines and disks, Microsoft.DBforPostgreSQL/flexibleServers, Microsoft.Sql/servers/databases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import ClassVar, TextIO

from assay.telemetry.importers.importer import Into, NotTaken
from assay.telemetry.importers.json_documents import JsonAnswers, documents, leaves, record, records, texts
from assay.telemetry.importers.metric_series import Meaning, SeriesPlace, hand_over
from assay.telemetry.importers.period_statistics import SUM, PeriodStatistics, start_ns
from assay.telemetry.importers.taken import NO_USE

_ANSWER = re.compile(r'"timeseries"\s*:\s*\[')
_LIKE = re.compile(r'"timeStamp"|"metadatavalues"|"timespan"|"localizedValue"')
_RESOURCE = re.compile(r"/providers/(?P<type>[^/]+/[^/]+(?:/[^/]+)*?)/providers/microsoft\.insights/", re.IGNORECASE)
_INTERVAL = re.compile(r"P(?:(?P<days>\d{1,4})D)?(?:T(?:(?P<hours>\d{1,4})H)?(?:(?P<minutes>\d{1,5})M)?)?")
RESOURCE_LETTERS_MAX = 2000
"""Longest id of a resource."""

_LUN = ("lun", "diskid", "slotid")
_ASKING = "--aggregation Average Total"

_OF_DISK = {
    "read bytes/sec": Meaning("read_bytes", "rate"), "write bytes/sec": Meaning("write_bytes", "rate"),
    "read operations/sec": Meaning("read_ios_count", "rate"),
    "write operations/sec": Meaning("write_ios_count", "rate"),
    "queue depth": Meaning("queue_mean_count"), "latency": Meaning("latency_mean_ns", factor=1e6),
    "iops consumed percentage": Meaning("iops_consumed_share", factor=0.01),
    "bandwidth consumed percentage": Meaning("bandwidth_consumed_share", factor=0.01),
    "used burst io credits percentage": Meaning("burst_balance_share", "rest", 0.01),
    "used burst bps credits percentage": Meaning("bandwidth_balance_share", "rest", 0.01),
}  # fmt: skip
_DISKS = {
    "os disk": "os disk", "data disk": "data disk", "temp disk": "temp disk", "composite disk": "", "disk": "disks",
    "vm cached": "vm cached", "vm uncached": "vm uncached",
}  # fmt: skip
"""Entities by what names of metrics begin with."""

_BLOCK: dict[str, tuple[str, Meaning]] = {
    **{f"{disk} {name}": (entity, meaning) for disk, entity in _DISKS.items() for name, meaning in _OF_DISK.items()},
    "disk read bytes": ("disks", Meaning("read_bytes", "count")),
    "disk write bytes": ("disks", Meaning("write_bytes", "count")),
    "disk_iops_consumed_percentage": ("storage", Meaning("iops_consumed_share", factor=0.01)),
    "disk_bandwidth_consumed_percentage": ("storage", Meaning("bandwidth_consumed_share", factor=0.01)),
    "disk_queue_depth": ("storage", Meaning("queue_mean_count")),
    "read_iops": ("storage", Meaning("read_ios_count", "rate")),
    "write_iops": ("storage", Meaning("write_ios_count", "rate")),
    "read_throughput": ("storage", Meaning("read_bytes", "rate")),
    "write_throughput": ("storage", Meaning("write_bytes", "rate")),
    "physical_data_read_percent": ("data", Meaning("iops_consumed_share", factor=0.01)),
    "log_write_percent": ("log", Meaning("bandwidth_consumed_share", factor=0.01)),
}
_HOST = {
    "percentage cpu": ("cpu", Meaning("busy_share", factor=0.01)),
    "cpu_percent": ("cpu", Meaning("busy_share", factor=0.01)),
    "available memory bytes": ("memory", Meaning("available_bytes")),
}
_NET = {
    "network in total": ("network", Meaning("in_bytes", "count")),
    "network out total": ("network", Meaning("out_bytes", "count")),
}


class AzureMonitor(JsonAnswers):
    """Azure Monitor."""

    name: ClassVar[str] = "azure-monitor"
    title: ClassVar[str] = "Azure Monitor (az monitor metrics list)"

    def recognises(self, head: str) -> bool:
        """An answer with series of a metric."""
        return _ANSWER.search(head) is not None and _LIKE.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take disks, processors, memory and network of machines, disks and databases.

        Raises
        ------
        NotTaken
            None of its metrics is known.
        """
        found = PeriodStatistics(into, _ASKING)
        for answer in documents(texts(file)):
            period_ns = interval_ns(answer.get("interval"))
            for one in records(answer.get("value")) or ([answer] if "timeseries" in answer else []):
                _of_metric(one, period_ns, found, into)
        if not found:
            known = "it knows those of virtual machines, disks, PostgreSQL and SQL databases"
            raise NotTaken(f"holds no metric that is known: {', '.join(into.taken.ignored) or 'it is empty'}; {known}")
        hand_over(found.series(), into)


def interval_ns(text: object) -> int | None:
    """The length of an interval in ISO 8601; None for what is none.

    Examples
    --------
    >>> [interval_ns(text) for text in ("PT1M", "PT1H", "P1D", "P", "soon")]
    [60000000000, 3600000000000, 86400000000000, None, None]
    """
    match = _INTERVAL.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    days, hours, minutes = (int(match[name] or 0) for name in ("days", "hours", "minutes"))
    return (((days * 24 + hours) * 60) + minutes) * 60 * 10**9 or None


def _of_metric(one: Mapping[str, object], period_ns: int | None, found: PeriodStatistics, into: Into) -> None:
    """Series of one metric, each of a part of the resource."""
    told = record(one.get("name")).get("value")
    name = str(told or one.get("name") or "")
    of_resource = _resource(str(one.get("id") or ""))
    for series in records(one.get("timeseries")):
        points = series.get("data")
        known = _known_as(name, of_resource, series, into)
        for point in points if isinstance(points, list) else (points,):
            if not isinstance(point, Mapping):
                into.taken.not_understood(name, json.dumps(point), leaves(point))
                continue
            values = {key: value for key, value in point.items() if key != "timeStamp"}
            starts_ns = start_ns(point.get("timeStamp"))
            if known is None:
                into.taken.ignore(name, NO_USE, len(values))
            elif starts_ns is None:
                shown = json.dumps(point)
                into.taken.not_understood("points whose time is not understood", shown, len(values))
            else:
                for statistic, value in values.items():
                    told_as = SUM if statistic == "total" else statistic
                    found.add(name, *known, told_as, starts_ns, value, period_ns=period_ns)


def _resource(text: str) -> tuple[str, str]:
    """Kind and name of the resource of a metric's id: `virtualMachines`, `sql1`."""
    match = _RESOURCE.search(text[:RESOURCE_LETTERS_MAX])
    parts = match["type"].split("/") if match is not None else []
    return (parts[-2], parts[-1]) if len(parts) >= 3 else ("", "")


def _known_as(
    name: str, resource: tuple[str, str], series: Mapping[str, object], into: Into
) -> tuple[SeriesPlace, Meaning] | None:
    """What a series is of, and what it becomes; None for one that is not known."""
    folded = name.lower().removesuffix("(preview)").strip()
    kind, own = resource
    is_disk = kind.lower() == "disks"
    host = own if own and not is_disk else into.options.host
    for tier, source, metrics in (("storage", "block", _BLOCK), ("client", "host", _HOST), ("client", "net", _NET)):
        if folded in metrics:
            entity, meaning = metrics[folded]
            entity = own if is_disk and own else entity or "disk"
            return SeriesPlace(tier, host, source, f"{entity} {_part(series)}".strip()), meaning
    return None


def _part(series: Mapping[str, object]) -> str:
    """The part of a resource that a series is of, such as the number of a disk; empty where it is of all."""
    return " ".join(
        str(one.get("value"))
        for one in records(series.get("metadatavalues"))
        if str(record(one.get("name")).get("value")).lower() in _LUN
    )
