"""What the display shows of a point of transactions."""

from __future__ import annotations

from dataclasses import dataclass

from assay.progress import Gauge, Moment
from assay.units import format_duration, format_latency


@dataclass(frozen=True, kw_only=True)
class OltpProgress:
    """What the display shows of a point of transactions."""

    part: str
    phase: str
    first: str
    rate: str
    latency_p90_ns: float | None
    left_s: float
    failed_count: int
    waiting: str
    value: float
    rate_title: str
    rate_unit: str

    @property
    def moment(self) -> Moment:
        """The same as figures."""
        return Moment(
            part=self.part,
            what="transactions",
            phase=self.phase,
            left_s=max(self.left_s, 0),
            gauges=(
                Gauge(name="rate", title=self.rate_title, value=self.value, unit=self.rate_unit),
                Gauge(
                    name="p90", title=f"{self.first} p90", value=self.latency_p90_ns, unit="ns", limit="response.p90"
                ),
            ),
            errors=(self.failed_count, "failed"),
            waiting=self.waiting,
        )

    @property
    def line(self) -> str:
        """All of it in one line."""
        text = (
            f"[{self.part}] {self.phase}: {self.rate}, {self.first} p90"
            f" {format_latency(self.latency_p90_ns)}, {format_duration(max(self.left_s, 0))} left"
        )
        text += f", {self.failed_count:,} failed" if self.failed_count else ""
        return f"{text}, {self.waiting}" if self.waiting else text
