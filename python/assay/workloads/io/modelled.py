"""A modelled array under a runner: its compiled form, its virtual clock, and the telemetry it gives by itself."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay import _core
from assay.targets.arrays.configuration import Configuration


@dataclass(kw_only=True)
class ModelRun:
    """A modelled array and the virtual time that a run has spent on it.

    Attributes
    ----------
    goes_on
        Sessions follow each other on the same array instead of each beginning with a fresh one.
    epoch_ns
        UTC time at which the run began, from which virtual time counts.
    elapsed_ns
        Virtual time of the run so far; points follow each other without a gap.
    """

    configuration: Configuration
    epoch_ns: int
    goes_on: bool = False
    elapsed_ns: int = 0
    modelled: _core.ModelledArray = field(init=False)

    def __post_init__(self) -> None:
        """Build the compiled model.

        Raises
        ------
        UsageError
            The array is impossible.
        """
        self.modelled = _core.ModelledArray(json.dumps(self.configuration.plan()))

    def goes_on_with(self, configuration: Configuration) -> None:
        """Keep the array's state and take over what may change while it runs: `read_realloc`."""
        self.configuration = configuration
        self.modelled.set_read_realloc(bool(configuration.plan()["member"]["layout"].get("read_realloc", False)))

    @property
    def key(self) -> str:
        """All that decides the model's figures, for the keys of points."""
        return json.dumps(self.configuration.plan(), sort_keys=True)


def telemetry_rows(report: Mapping[str, Any], started_ns: int) -> list[dict[str, Any]]:
    """Rows of the series schema for what the members did."""
    host = socket.gethostname()
    return [
        {
            "t_ns": started_ns + reading["at_ns"],
            "clock": "virtual",
            "interval_ns": reading["interval_ns"],
            "tier": "storage",
            "host": host,
            "source": "model",
            "entity": entity,
            "role": "",
            "metric": metric,
            "kind": kind,
            "value": float(value),
        }
        for reading in report.get("telemetry", ())
        for entity, metric, kind, value in reading["rows"]
    ]


def summarise_model(rows: Iterable[Mapping[str, Any]], from_ns: int, to_ns: int) -> dict[str, Any]:
    """What a point says of the array: means over its window, and the fullest disk and port."""
    sums: dict[str, list[float]] = {}
    by_entity: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["source"] == "model" and from_ns < row["t_ns"] <= to_ns:
            level = "member" if "/" not in row["entity"] else row["entity"].rpartition("/")[2].rstrip("0123456789")
            sums.setdefault(f"{level} {row['metric']}", []).append(row["value"])
            by_entity.setdefault((f"{level} {row['metric']}", row["entity"]), []).append(row["value"])

    def mean(metric: str) -> float | None:
        values = sums.get(metric)
        return sum(values) / len(values) if values else None

    def fullest(metric: str) -> float | None:
        means = [sum(values) / len(values) for (of, _), values in by_entity.items() if of == metric]
        return max(means, default=None)

    return {
        "disk_busy_share": mean("disk busy_share"),
        "fullest_disk_busy_share": fullest("disk busy_share"),
        "disk_queue_mean_count": mean("disk queue_mean_count"),
        "fullest_port_busy_share": fullest("port busy_share"),
        "cpu_busy_share": mean("member cpu_busy_share"),
        "read_hit_share": mean("member read_hit_share"),
        "dirty_bytes": mean("member dirty_bytes"),
        "rebuilt_bytes": sum(sums["member rebuilt_bytes"]) if "member rebuilt_bytes" in sums else None,
    }
