"""What monitoring systems export, diagnosed: a disk that is late, a volume at its limit, and quiet ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from assay.insight.diagnosis.diagnose import Diagnosis, diagnose
from assay.insight.diagnosis.inputs import sources_of
from assay.insight.diagnosis.verdict import FINE, FOUND, UNJUDGED
from assay.telemetry.importers.importer import Options

BEGIN = datetime(2026, 11, 23, 19, tzinfo=UTC)
STEPS = 40


def of_text(folder: Path, *documents: dict[str, Any]) -> Diagnosis:
    path = folder / "export.json"
    path.write_text("\n".join(json.dumps(one) for one in documents))
    return diagnose(sources_of([path], Options()).sources)


def at(step: int, seconds: int) -> str:
    return (BEGIN + timedelta(seconds=step * seconds)).isoformat()


# Prometheus


def counted(name: str, per_step: float, **labels: str) -> dict[str, Any]:
    points = [[BEGIN.timestamp() + 15 * step, str(1000 + per_step * step)] for step in range(STEPS)]
    return {"metric": {"__name__": name, "instance": "db1:9100", **labels}, "values": points}


def node(read_s: float, busy: float, idle: float) -> dict[str, Any]:
    """An answer of Prometheus about a host with two processors and a disk of 300 reads a second."""
    disk, cpu = "node_disk_", "node_cpu_seconds_total"
    reads = 300 * 15
    series = [
        counted(f"{disk}reads_completed_total", reads, device="sda"),
        counted(f"{disk}read_time_seconds_total", reads * read_s, device="sda"),
        counted(f"{disk}io_time_seconds_total", busy * 15, device="sda"),
        counted(f"{disk}io_time_weighted_seconds_total", reads * read_s, device="sda"),
        *(counted(cpu, share * 15, cpu=str(n), mode=mode) for n in (0, 1)
          for mode, share in (("idle", idle), ("iowait", 0.9 - idle), ("user", 0.1))),
    ]  # fmt: skip
    return {"status": "success", "data": {"resultType": "matrix", "result": series}}


def test_a_late_disk_in_prometheus_is_a_slow_disk(tmp_path: Path) -> None:
    found = of_text(tmp_path, node(read_s=0.085, busy=1.0, idle=0.5))
    assert (found.verdict["state"], found.first) == (FOUND, "slow-disk")
    # The iowait is explained by the disk.
    assert "unrecorded-storage" not in [one.cause for one in found.causes]


def test_a_quiet_host_in_prometheus_is_fine(tmp_path: Path) -> None:
    found = of_text(tmp_path, node(read_s=0.0005, busy=0.15, idle=0.9))
    assert found.verdict["state"] == FINE
    assert any("sda reads" in one for one in found.verdict["judged"])
    assert any(one.startswith("the database") for one in found.verdict["not_judged"])


# CloudWatch


def statistics(label: str, statistic: str, values: Sequence[float]) -> dict[str, Any]:
    points = [{"Timestamp": at(step, 300), statistic: value, "Unit": "None"} for step, value in enumerate(values)]
    return {"Label": label, "Datapoints": points}


def volume(read_s: float, queue: float, balance: Sequence[float], reads: float = 30000.0) -> list[dict[str, Any]]:
    return [
        statistics("VolumeReadOps", "Sum", [reads] * STEPS),
        statistics("VolumeTotalReadTime", "Sum", [reads * read_s] * STEPS),
        statistics("VolumeQueueLength", "Average", [queue] * STEPS),
        statistics("BurstBalance", "Average", balance),
    ]


def test_a_volume_without_credit_is_at_its_limit(tmp_path: Path) -> None:
    empty = [max(0.0, 60.0 - 10 * step) for step in range(STEPS)]
    found = of_text(tmp_path, *volume(read_s=0.09, queue=9.0, balance=empty))
    assert (found.verdict["state"], found.first) == (FOUND, "throughput-limit")
    kinds = {signal.of for signal in found.causes[0].signals}
    assert kinds == {"limit", "latency", "queue"}


def test_the_credit_alone_makes_a_limit_likely(tmp_path: Path) -> None:
    found = of_text(tmp_path, statistics("BurstBalance", "Minimum", [0.0] * STEPS))
    assert found.first == "throughput-limit"
    assert "latency and queue" in found.causes[0].confirm


def test_a_quiet_volume_is_not_called_fine_without_processors(tmp_path: Path) -> None:
    found = of_text(tmp_path, *volume(read_s=0.0008, queue=0.1, balance=[100.0] * STEPS))
    assert found.verdict["state"] == UNJUDGED
    assert any("volume reads" in one for one in found.verdict["judged"])
    with_processors = of_text(
        tmp_path, *volume(read_s=0.0008, queue=0.1, balance=[100.0] * STEPS),
        statistics("CPUUtilization", "Average", [12.0] * STEPS),
    )  # fmt: skip
    assert with_processors.verdict["state"] == FINE


# Azure Monitor


def azure(**metrics: float) -> dict[str, Any]:
    machine = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/sql1"
    value = [
        {
            "id": f"{machine}/providers/Microsoft.Insights/metrics/x", "name": {"value": name.replace("_", " ")},
            "timeseries": [{
                "metadatavalues": [{"name": {"value": "LUN"}, "value": "0"}],
                "data": [{"timeStamp": at(step, 60), "average": amount} for step in range(STEPS)],
            }],
        }
        for name, amount in metrics.items()
    ]  # fmt: skip
    return {"interval": "PT1M", "value": value}


def test_a_disk_that_uses_all_that_it_may_is_at_its_limit(tmp_path: Path) -> None:
    capped = azure(Data_Disk_IOPS_Consumed_Percentage=100.0, Data_Disk_Queue_Depth=24.0, Percentage_CPU=12.0)
    found = of_text(tmp_path, capped)
    assert found.first == "throughput-limit"
    assert {signal.of for signal in found.causes[0].signals} == {"limit", "queue"}


def test_a_quiet_disk_is_fine_where_its_latency_is_known(tmp_path: Path) -> None:
    metrics = {"Data_Disk_IOPS_Consumed_Percentage": 10.0, "Data_Disk_Queue_Depth": 0.3, "Percentage_CPU": 12.0}
    assert of_text(tmp_path, azure(**metrics)).verdict["state"] == UNJUDGED
    assert of_text(tmp_path, azure(**metrics, Data_Disk_Latency=1.5)).verdict["state"] == FINE
