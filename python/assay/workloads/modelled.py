"""A modelled array under a runner: its compiled form, its virtual clock, and the telemetry it gives by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay import _core
from assay.targets.arrays.model.configuration import Configuration
from assay.telemetry.columns import Reading, SeriesColumns

if TYPE_CHECKING:
    from assay.record.rows import Rows


HOST_SHARES = ("flash_hit_share", "memory_read_share", "flash_read_share", "remote_read_share", "node_read_share")
"""Where hosts with caches of their own found what they read, as telemetry and points name it."""


@dataclass(kw_only=True)
class ModelRun:
    """A modelled array and the virtual time that a run has spent on it.

    Attributes
    ----------
    goes_on
        Sessions follow each other on the same array instead of each beginning with a fresh one.
    epoch_ns
        UTC time from which virtual time counts.
    elapsed_ns
        Virtual time so far; points follow each other without a gap.
    warm
        Warm caches that other arrays share; this array's own where there are none.
    """

    configuration: Configuration
    epoch_ns: int
    goes_on: bool = False
    elapsed_ns: int = 0
    warm: _core.WarmCaches | None = None
    modelled: _core.ModelledArray = field(init=False)

    def __post_init__(self) -> None:
        """Build the compiled model.

        Raises
        ------
        UsageError
            The array is impossible.
        """
        self.modelled = _core.ModelledArray(json.dumps(self.configuration.plan()), self.warm)

    def goes_on_with(self, configuration: Configuration) -> None:
        """Keep the array's state and take over what may change while it runs: `read_realloc`."""
        self.configuration = configuration
        self.modelled.set_read_realloc(configuration.read_realloc)

    @property
    def key(self) -> str:
        """All that decides the model's figures, for the keys of points."""
        return json.dumps(self.configuration.plan(), sort_keys=True)


def add_telemetry(columns: SeriesColumns, report: Mapping[str, Any], started_ns: int) -> None:
    """Add what the members did to the rows of a series."""
    for reading in report.get("telemetry", ()):
        columns.add(
            (Reading(entity, metric, kind, float(value)) for entity, metric, kind, value in reading["rows"]),
            t_ns=started_ns + reading["at_ns"],
            interval_ns=reading["interval_ns"],
            tier="storage",
            source="model",
            clock="virtual",
        )


def summarise_model(parts: Sequence[Rows], from_ns: int, to_ns: int, configuration: Configuration) -> dict[str, Any]:
    """What a point says of the array: means over its window, and the fullest disk and port."""
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    means: dict[str, list[float]] = {}
    for entity, metric, total, count in _of_model(parts, from_ns, to_ns):
        level = entity.rpartition("/")[2].rstrip("0123456789")
        of_level = f"{level} {metric}"
        sums[of_level] = sums.get(of_level, 0.0) + total
        counts[of_level] = counts.get(of_level, 0) + count
        means.setdefault(of_level, []).append(total / count)

    def mean(metric: str) -> float | None:
        return sums[metric] / counts[metric] if metric in sums else None

    def fullest(metric: str) -> float | None:
        return max(means.get(metric, ()), default=None)

    rebuilt_bytes, disk = sums.get("member rebuilt_bytes"), configuration.parameters.get("disk.capacity")
    disk_bytes = 0.0 if disk is None else float(disk.value)
    return {
        "disk_busy_share": mean("disk busy_share"),
        "fullest_disk_busy_share": fullest("disk busy_share"),
        "disk_queue_mean_count": mean("disk queue_mean_count"),
        "fullest_port_busy_share": fullest("port busy_share"),
        "cpu_busy_share": mean("member cpu_busy_share"),
        "read_hit_share": mean("host read_hit_share" if "host read_hit_share" in sums else "member read_hit_share"),
        "dirty_bytes": mean("member dirty_bytes"),
        "ahead_piece_bytes": mean("member ahead_piece_bytes"),
        "rebuilt_bytes": rebuilt_bytes,
        "rebuild_s": (to_ns - from_ns) / 1e9 * disk_bytes / rebuilt_bytes if rebuilt_bytes and disk_bytes else None,
        **{name: mean(f"host {name}") for name in HOST_SHARES},
        "host_cpu_busy_share": mean("host cpu_busy_share"),
        "write_amplification": mean("log write_amplification")
        or mean("member write_amplification")
        or _programmed_share(sums),
        "live_share": mean("log live_share") or mean("member live_share"),
        "drive_written_bytes": sums.get("disk write_bytes") if "disk programmed_bytes" in sums else None,
        "programmed_bytes": sums.get("disk programmed_bytes"),
        "throttled_share": mean("disk throttled_share"),
    }


def _programmed_share(sums: Mapping[str, float]) -> float | None:
    """Bytes that drives of flash programmed for each byte that hosts wrote, parity and copies included."""
    programmed, written = sums.get("disk programmed_bytes"), sums.get("member written_bytes")
    return programmed / written if programmed and written else None


def _of_model(parts: Sequence[Rows], from_ns: int, to_ns: int) -> list[tuple[str, str, float, int]]:
    """Entity, metric, sum and count of the values of the array whose intervals end in the window."""
    if not parts:
        return []
    from assay.record.rows import joined_rows

    rows = joined_rows([part.of(source="model") for part in parts])
    rows = rows.where((rows.t_ns > from_ns) & (rows.t_ns <= to_ns))
    return [
        (entity, metric, float(own.value.sum()), len(own)) for (entity, metric), own in rows.apart("entity", "metric")
    ]
