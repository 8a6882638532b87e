"""Plans and needs of a trace: what they ask for is what the trace asked for."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from assay.apps.cli.app import app
from assay.base.errors import UsageError
from assay.insight.sizing.measured_trace import need_of_trace
from assay.record.rows import TextColumn
from assay.traces.character.whole import TraceCharacter, characterise
from assay.traces.file import TraceWriter, is_trace, read_trace
from assay.traces.head import TraceHead
from assay.traces.ios import UNKNOWN_NS, IoFlag, Ios
from assay.workloads.io.from_trace import plan_of_trace
from assay.workloads.io.plan import load_plan

R, W = int(IoFlag.READ), int(IoFlag.WRITE)
IOS = 24_000


def load(*, peak: bool = False, fua: bool = False) -> Ios:
    """400 I/Os a second for a minute, 70 % reads of 8 KiB, writes of 4 or 64 KiB; 6 peaks of 2 s with half of all."""
    rng = np.random.default_rng(7)
    even = np.sort(rng.uniform(0, 60e9, IOS))
    times = np.sort(np.where(rng.random(IOS) < 0.5, even // 10e9 * 10e9 + even % 10e9 / 5, even)) if peak else even
    write = rng.random(IOS) < 0.3
    sizes = np.where(write, rng.choice([4096, 65536], IOS, p=[0.75, 0.25]), 8192)
    flags = np.where(write, W | (int(IoFlag.FUA) if fua else 0), R)
    nobody = TextColumn(np.zeros(IOS, np.int32), ["vda"])
    unknown = np.full(IOS, UNKNOWN_NS)
    return Ios(times.astype(np.int64), unknown, unknown, rng.integers(0, 2**18, IOS) * 4096, sizes,
               flags.astype(np.uint16), nobody, nobody)  # fmt: skip


def traced(folder: Path, ios: Ios) -> Path:
    path = folder / "orders.trace"
    with TraceWriter(path, TraceHead(source="test")) as trace:
        trace.write(ios)
    return path


def found_of(folder: Path, ios: Ios) -> TraceCharacter:
    return characterise(read_trace(traced(folder, ios)))


def test_a_plan_has_rates_sizes_and_mix_of_the_trace(tmp_path: Path) -> None:
    made = plan_of_trace(found_of(tmp_path, load()), "orders")
    reads, writes = made.plan().workloads()[0].activities
    assert reads.rate == pytest.approx(280, rel=0.03)
    assert writes.rate == pytest.approx(120, rel=0.05)
    assert reads.blocks == {8192: 1.0}
    assert writes.blocks == pytest.approx({4096: 75, 65536: 25}, rel=0.05)
    assert (reads.read_share, writes.read_share) == (1, 0)
    assert (reads.arrivals, reads.skew) == ("poisson", "uniform")
    assert reads.random_share > 0.98
    assert made.span_bytes == 1024 << 20


def test_its_toml_is_the_plan(tmp_path: Path) -> None:
    made = plan_of_trace(found_of(tmp_path, load(peak=True, fua=True)), 'say "hi"')
    assert load_plan(tomllib.loads(made.toml()), source="here") == made.plan()


def test_bursts_become_waves_and_durable_writes_are_durable(tmp_path: Path) -> None:
    reads, writes = plan_of_trace(found_of(tmp_path, load(peak=True, fua=True)), "x").plan().workloads()[0].activities
    assert reads.arrivals == "waves"
    assert reads.wave_period_s == pytest.approx(10, rel=0.05)
    assert reads.wave_share == pytest.approx(0.2, abs=0.02)
    # In two of ten seconds come half of the I/Os and a fifth of the others.
    assert reads.wave_peak == pytest.approx(3, abs=0.25)
    assert (reads.sync, writes.sync) == ("none", "dsync")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wave_peak": 6.0}, "above 1"),
        ({"wave_peak": None}, "go together"),
        ({"arrivals": "poisson"}, "go together"),
        ({"wave_share": 0}, "wave_share"),
    ],
)
def test_waves_that_cannot_be_are_refused(change: dict[str, object], message: str) -> None:
    waves = {"rate": 100, "arrivals": "waves", "wave_period_s": 10, "wave_share": 0.2, "wave_peak": 3.0}
    assert load_plan({"activity": [waves]}, source="here").workloads()[0].activities[0].wave_peak == 3
    activity = {key: value for key, value in (waves | change).items() if value is not None}
    with pytest.raises(UsageError, match=message):
        load_plan({"activity": [activity]}, source="here")


def test_the_command_prints_a_plan_and_says_how_near_it_comes(tmp_path: Path) -> None:
    path = traced(tmp_path, load())
    done = CliRunner().invoke(app, ["trace", "plan", str(path), "-o", str(tmp_path / "orders.toml")])
    assert done.exit_code == 0, done.output
    assert tomllib.loads((tmp_path / "orders.toml").read_text())["title"] == "orders"
    assert "read IOPS: 2" in done.output
    assert "latencies are not compared" in done.output or "read p99 us" in done.output
    done = CliRunner().invoke(app, ["trace", "plan", str(path), "--on", "/dev/null"])
    assert "is no model" in str(done.exception)


def test_a_trace_is_a_need(tmp_path: Path) -> None:
    path = traced(tmp_path, load(peak=True))
    assert is_trace(path)
    with pytest.raises(UsageError, match="covers 1 min and has no busiest hours"):
        need_of_trace(path, 0.95, 10)
    need = need_of_trace(path, 0.95, 10, short=True)
    data = need.roles["data"]
    assert data.iops == pytest.approx(1200, rel=0.15)
    assert data.read_share == pytest.approx(0.7, abs=0.01)
    assert need.coverage is not None
    assert need.coverage["hours_of_week"] == 1
    assert need.size_bytes == 2**30
    (tmp_path / "other").write_text("x")
    assert not is_trace(tmp_path / "other")
