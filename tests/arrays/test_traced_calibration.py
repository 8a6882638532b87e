"""A model calibrated to a trace: which stretches it is fitted to, what counts of their times, and what is refused."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from assay.base.errors import UsageError
from assay.insight.calibration.calibrate import calibrate
from assay.insight.calibration.calibrated_file import restarted
from assay.insight.calibration.observations import guess_black_box
from assay.insight.calibration.traced import TracedObservation, observations_of_trace
from assay.record.rows import TextColumn
from assay.targets.arrays.model.configuration import configure
from assay.traces.file import TraceWriter
from assay.traces.head import TracedDevice, TraceHead
from assay.traces.ios import IoFlag, Ios
from made_traces import poisson_trace

if TYPE_CHECKING:
    from pathlib import Path

SERVICE_NS, SERVERS = 4_000_000, 4


def queueing_trace(path: Path, rates: tuple[int, ...], *, queue_ns: int = 0) -> Path:
    """A thousand I/Os at each rate on an array of four servers that take 4 ms, and one time in the host's queue."""
    rng = np.random.default_rng(5)
    issued: list[int] = []
    for rate in rates:
        begin_ns = issued[-1] if issued else 0
        issued += (np.sort(rng.uniform(0, 1000 / rate, 1000)) * 1e9 + begin_ns).astype(np.int64).tolist()
    free, device = [0] * SERVERS, np.empty(len(issued), np.int64)
    for place, time_ns in enumerate(issued):
        end_ns = max(heapq.heappop(free), time_ns) + SERVICE_NS
        heapq.heappush(free, end_ns)
        device[place] = end_ns - time_ns
    count, size = len(issued), 8192
    flags = np.where(rng.random(count) < 0.6, int(IoFlag.READ), int(IoFlag.WRITE)).astype(np.uint16)
    nobody = TextColumn(np.zeros(count, np.int32), ["sda"])
    head = TraceHead(source="test", times="split", devices=(TracedDevice(name="sda", size_bytes=1 << 34),))
    with TraceWriter(path, head) as trace:
        trace.write(Ios(
            np.array(issued), np.full(count, queue_ns), device, rng.integers(0, 1 << 20, count) * size,
            np.full(count, size), flags, nobody, nobody,
        ))  # fmt: skip
    return path


def test_a_black_box_is_fitted_to_stretches_of_different_rates(tmp_path: Path) -> None:
    trace = queueing_trace(tmp_path / "q.trace", (100, 400, 700, 850))
    found = observations_of_trace(trace, configure("black-box", {}), tmp_path)

    rates = [each.figures["iops"] for each in found]
    assert len(found) >= 3
    assert min(rates) < 150
    assert max(rates) > 600
    started = restarted(found[0].configuration, guess_black_box(found))
    fit = calibrate([replace(each, configuration=started) for each in found])

    assert fit.error_share < 0.25
    light = next(each for each in found if each.figures["iops"] < 150)
    assert light.predicted(fit.values)["read_ns"] == pytest.approx(SERVICE_NS, rel=0.2)


def test_time_in_the_hosts_queue_is_no_time_of_the_array(tmp_path: Path) -> None:
    found = []
    for queue_ns in (0, 50_000_000):
        folder = tmp_path / f"{queue_ns}"
        folder.mkdir()
        trace = queueing_trace(folder / "q.trace", (300,), queue_ns=queue_ns)
        found.append(observations_of_trace(trace, configure("black-box", {}), folder))
    plain, waited = found

    assert waited[0].figures == plain[0].figures
    assert waited[0].predicted({}) == plain[0].predicted({})


def test_devices_are_volumes_and_the_whole_of_each_fits(tmp_path: Path) -> None:
    path = poisson_trace(tmp_path / "p.trace", seconds=4, devices=("sda", "sdb"), span_bytes=1 << 30)
    (first, *_) = observations_of_trace(path, configure("black-box", {}), tmp_path)
    assert isinstance(first, TracedObservation)
    assert [size for _, size in first.configuration.volumes] == [1 << 30, 1 << 30]
    assert first.conditions["read_share"] == pytest.approx(0.7, abs=0.05)


@pytest.mark.parametrize(
    ("changed", "words"),
    [({"tells_times": False}, "tells no latencies"), ({"seconds": 1}, "no 800 I/Os in a row")],
)
def test_traces_that_say_too_little_are_refused(tmp_path: Path, changed: dict[str, float], words: str) -> None:
    path = poisson_trace(tmp_path / "p.trace", **changed)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=words):
        observations_of_trace(path, configure("black-box", {}), tmp_path)
