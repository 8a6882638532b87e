"""What is said of a trace: each figure against a plain count of the same, or against a load whose figure is known."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from assay.apps.cli.app import app
from assay.record.rows import TextColumn
from assay.report.sections.trace import sentences, trace_document
from assay.traces.character.places import HASH_END, Extents, zipf_shares
from assay.traces.character.rates import BurstCounts
from assay.traces.character.reuse import (
    BLOCK,
    HOUR_NS,
    SampledBlocks,
    _all_blocks,
    _rank,
    _sampled_blocks,
    previous,
    reuse_distances,
)
from assay.traces.character.streams import WINDOW, Streams
from assay.traces.character.whole import TraceCharacter, characterise
from assay.traces.file import TraceWriter, read_trace
from assay.traces.head import TraceHead
from assay.traces.ios import UNKNOWN_NS, IoFlag, Ios

R, W = int(IoFlag.READ), int(IoFlag.WRITE)


def ios_of(
    t_ns: Sequence[int],
    places: Sequence[int],
    *,
    size: int | Sequence[int] = 4096,
    flags: int | Sequence[int] = R,
    devices: Sequence[str] | None = None,
    device_ns: int | Sequence[int] = UNKNOWN_NS,
) -> Ios:
    count = len(places)
    return Ios(
        np.array(t_ns, np.int64), np.full(count, UNKNOWN_NS), np.broadcast_to(device_ns, count).astype(np.int64),
        np.array(places, np.int64), np.broadcast_to(size, count).astype(np.int64),
        np.broadcast_to(flags, count).astype(np.uint16), TextColumn.of(devices or ["vda"] * count),
        TextColumn.of(["postgres"] * count),
    )  # fmt: skip


def found_of(folder: Path, *parts: Ios, head: TraceHead | None = None) -> TraceCharacter:
    path = folder / "one.trace"
    with TraceWriter(path, head or TraceHead(source="test", times="whole")) as trace:
        for ios in parts:
            trace.write(ios)
            trace.flush()
    return characterise(read_trace(path))


@given(st.lists(st.integers(0, 12), max_size=60))
def test_reuse_distances_are_those_of_a_plain_count(blocks: list[int]) -> None:
    wanted = []
    for place, block in enumerate(blocks):
        earlier = [other for other in range(place) if blocks[other] == block]
        wanted.append(len(set(blocks[earlier[-1] + 1 : place])) if earlier else -1)
    assert reuse_distances(previous(np.array(blocks, np.uint64))).tolist() == wanted


def lru_hits(blocks: Sequence[int], size: int) -> float:
    cache: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for block in blocks:
        hits += block in cache
        cache[block] = None
        cache.move_to_end(block)
        if len(cache) > size:
            cache.popitem(last=False)
    return hits / len(blocks)


@pytest.mark.parametrize(("references", "tolerance"), [(2**19, 1e-9), (6000, 0.03)])
def test_the_hit_curve_is_that_of_a_cache(references: int, tolerance: float) -> None:
    rng = np.random.default_rng(5)
    blocks = (rng.zipf(1.2, 30_000) % 8000).tolist()
    sample = SampledBlocks(references)
    for begin in range(0, len(blocks), 5000):
        part = blocks[begin : begin + 5000]
        sample.add(np.zeros(len(part), np.int64), ios_of(range(begin, begin + len(part)), np.array(part) * BLOCK))
    reuse = sample.found()
    assert reuse is not None
    assert (reuse.rate < 1) == (references == 6000)
    for size, share in reuse.hits[::3]:
        assert share == pytest.approx(lru_hits(blocks, int(size / BLOCK)), abs=tolerance)
    assert reuse.touched_bytes == pytest.approx(len(set(blocks)) * BLOCK, rel=0.01 if tolerance < 0.01 else 0.15)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**40), st.integers(1, 5000)), min_size=1, max_size=20),
    st.integers(0, 14),
)
def test_long_ios_are_sampled_as_if_every_block_was_looked_at(parts: list[tuple[int, int, int]], halvings: int) -> None:
    device, first, blocks = (np.array(column) for column in zip(*parts, strict=True))
    keys, rows = device.astype(np.uint64) << np.uint64(52), np.arange(len(parts))
    row, every = _all_blocks(keys, first, blocks, rows)
    kept = _rank(every) < HASH_END >> halvings
    found = _sampled_blocks(keys, first, blocks, rows, halvings)
    assert (found[0].tolist(), found[1].tolist()) == (row[kept].tolist(), every[kept].tolist())


def test_overwrites_and_reads_of_what_was_written_have_their_times() -> None:
    sample = SampledBlocks()
    flags = [W, W, R, W, R]
    ios = ios_of([0, 10_000, 40_000, 50_000, 60_000], [0, 0, 0, 4096, 8192], flags=flags)
    sample.add(np.zeros(5, np.int64), ios)
    reuse = sample.found()
    assert reuse is not None
    assert reuse.overwritten is not None
    assert reuse.read_back is not None
    assert (reuse.overwritten.share, reuse.overwritten.after_ns) == (pytest.approx(1 / 3), (10_000, 10_000, 10_000))
    assert (reuse.read_back.share, reuse.read_back.after_ns) == (0.5, (30_000, 30_000, 30_000))
    assert (reuse.read_bytes, reuse.written_bytes, reuse.touched_bytes) == (8192, 8192, 12_288)


def test_the_footprint_has_a_row_for_each_hour_with_ios_however_far_apart_they_are() -> None:
    sample = SampledBlocks()
    late = 2_000_000
    times = [0, 1, 2, HOUR_NS, late * HOUR_NS, late * HOUR_NS + 1]
    ios = ios_of(times, [0, 0, 4096, 0, 8192, 12_288], flags=[R, R, R, W, R, W])
    sample.add(np.zeros(6, np.int64), ios)
    reuse = sample.found()
    assert reuse is not None
    assert reuse.by_hour == ((0, 8192, 0), (1, 0, 4096), (late, 4096, 4096))


def poisson(rng: np.random.Generator, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.cumsum(rng.exponential(1e6, count)).astype(np.int64)


def test_random_arrivals_have_dispersion_one_at_every_scale_and_bursts_more() -> None:
    rng = np.random.default_rng(3)
    times = poisson(rng, 200_000)
    bursts = BurstCounts(100)
    for begin in range(0, len(times), 7919):
        bursts.add(times[begin : begin + 7919])
    found = bursts.found(int(times[-1]))
    assert [one.scale_ns for one in found] == [10**7, 10**8, 10**9, 10**10]
    for one in found[:3]:
        assert one.dispersion == pytest.approx(1, abs=0.25)
    # Each second's I/Os come in its first tenth.
    bursts = BurstCounts(100)
    bursts.add(times // 10**9 * 10**9 + times % 10**9 // 10)
    assert bursts.found(int(times[-1]))[1].peak_to_mean == pytest.approx(11, rel=0.1)


@given(st.lists(st.integers(0, 2 * 10**9), min_size=1, max_size=80), st.integers(1, 80))
def test_counts_of_intervals_do_not_depend_on_how_a_trace_is_cut(times: list[int], cut: int) -> None:
    ordered = np.sort(np.array(times, np.int64))
    span = 2 * 10**9
    whole, parts = BurstCounts(100), BurstCounts(100)
    whole.add(ordered)
    for begin in range(0, len(ordered), cut):
        parts.add(ordered[begin : begin + cut])
    assert parts.found(span) == whole.found(span)


def test_streams_are_found_among_others_on_their_device_alone() -> None:
    # Two interleaved streams of ten I/Os, random ones between them, and one on another device that only seems to go on.
    rows: list[tuple[str, int]] = []
    for number in range(10):
        rows += [("a", number * 4096), ("a", 10**9 + number * 4096), ("a", 10**12 + number * 10**7)]
    rows.append(("b", 10 * 4096))
    devices = {"a": 0, "b": 1}
    for cut in (1, 5, 100):
        streams = Streams()
        for begin in range(0, len(rows), cut):
            part = rows[begin : begin + cut]
            numbers = np.array([devices[name] for name, _ in part])
            streams.add(numbers, ios_of(range(len(part)), [place for _, place in part], flags=R))
        assert streams.sequential == [18, 0]
        assert streams.run_ios == 10
        assert streams.interleaved == 3
    streams = Streams()
    far = [0, *(10**9 * number for number in range(1, WINDOW + 1)), 4096]
    streams.add(np.zeros(len(far), np.int64), ios_of(range(len(far)), far))
    assert streams.sequential == [0, 0]


@pytest.mark.parametrize("theta", [0.0, 0.8, 1.0, 1.3])
def test_the_exponent_of_a_zipf_load_is_found(theta: float) -> None:
    rng = np.random.default_rng(11)
    weights = np.arange(1, 3001, dtype=np.float64) ** -theta
    assert zipf_shares(np.array([10, 1500]), 3000, theta) == pytest.approx(
        [weights[:10].sum() / weights.sum(), weights[:1500].sum() / weights.sum()], rel=1e-3
    )
    places = rng.permutation(3000)[rng.choice(3000, 300_000, p=weights / weights.sum())] * 2**20
    extents = Extents()
    extents.add(np.zeros(len(places), np.int64), ios_of(range(len(places)), places))
    skew = extents.found()
    assert skew is not None
    assert 2900 < skew.extents <= 3000
    assert skew.zipf == pytest.approx(theta, abs=0.12)
    assert skew.zipf_error < 0.04
    assert skew.hot[2] == pytest.approx(weights[:300].sum() / weights.sum(), abs=0.03)


def test_extents_beyond_the_most_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.traces.character.places.EXTENTS_MAX", 1000)
    extents = Extents()
    for begin in range(0, 20_000, 1000):
        extents.add(np.zeros(1000, np.int64), ios_of(range(1000), np.arange(begin, begin + 1000) * 2**20))
    skew = extents.found()
    assert skew is not None
    assert skew.extents == pytest.approx(20_000, rel=0.1)
    assert skew.zipf == 0


def load(count: int = 4000) -> Ios:
    rng = np.random.default_rng(1)
    flags = rng.choice([R, W, W | int(IoFlag.FUA)], count, p=[0.7, 0.2, 0.1])
    times = np.cumsum(rng.exponential(3e6, count)).astype(np.int64)
    return ios_of(times, rng.integers(0, 500, count) * 8192, size=8192, flags=flags,
                  device_ns=rng.integers(1, 1000, count) * 1000)  # fmt: skip


def test_the_whole_adds_up(tmp_path: Path) -> None:
    ios = load()
    found = found_of(tmp_path, ios.where(slice(0, 1500)), ios.where(slice(1500, None)))
    reads = int(ios.has(IoFlag.READ).sum())
    assert found.counts["reads"] == reads
    assert found.counts["writes"] == len(ios) - reads
    assert found.counts["fua"] == int(ios.has(IoFlag.FUA).sum())
    assert found.sizes[0] == {8192: reads}
    assert found.over_time.columns["reads"].sum() == reads
    assert found.read_bytes == reads * 8192
    latencies = ios.device_ns[ios.has(IoFlag.READ)]
    assert found.waits["device"]["read"]["mean"] == pytest.approx(latencies.mean(), rel=0.002)
    assert found.waits["device"]["read"]["percentiles"]["p99"] == pytest.approx(np.percentile(latencies, 99), rel=0.005)
    assert found.outstanding_mean == pytest.approx(ios.device_ns.sum() / found.span_ns, rel=1e-6)
    assert found.processes["postgres"].ios == len(ios)


def test_rates_of_samples_are_of_the_time_that_was_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "sampled.trace"
    times = np.concatenate([np.arange(0, 10**9, 10**7), 10**11 + np.arange(0, 10**9, 10**7)])
    with TraceWriter(path, TraceHead(source="test")) as trace:
        trace.write(ios_of(times, np.arange(200) * 4096))
        trace.close(windows=[(0, 10**9), (10**11, 10**11 + 10**9)])
    found = characterise(read_trace(path))
    assert found.seconds == pytest.approx(2, abs=0.02)
    assert found.bursts == []
    assert sentences(found)[0].startswith("101 IOPS on average; 100 % of the I/Os read")


def test_a_trace_of_one_io_of_a_flush_and_of_one_moment_have_a_page(tmp_path: Path) -> None:
    cases: list[Callable[[], Ios]] = [
        lambda: ios_of([5], [0]),
        lambda: ios_of([5], [0], size=0, flags=int(IoFlag.FLUSH)),
        lambda: ios_of([5] * 20, range(0, 20 * 4096, 4096), flags=W),
    ]
    for number, case in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = found_of(folder, case())
        document = trace_document(read_trace(folder / "one.trace"), found, "0")
        assert document.sections[0].blocks
        for figure in document.figures:
            figure.chart.to_dict()


def test_sentences_say_what_a_dba_asks(tmp_path: Path) -> None:
    texts = sentences(found_of(tmp_path, load()))
    assert texts[0].startswith("326 IOPS on average, 359 in its busiest second; 70.5 % of the I/Os read")
    assert any("Arrivals are as even as random ones" in text for text in texts)
    assert any("Storage answered: reads" in text for text in texts)


def test_the_command_prints_the_page_and_writes_it(tmp_path: Path) -> None:
    found_of(tmp_path, load())
    page, text = tmp_path / "page.html", tmp_path / "page.md"
    done = CliRunner().invoke(app, ["trace", "show", str(tmp_path / "one.trace"), "-o", str(page), "-o", str(text)])
    assert done.exit_code == 0, done.output
    assert "IOPS on average" in done.output
    assert "Places and working set" in page.read_text()
    assert "page.figures/skew.svg" in text.read_text()
    assert (tmp_path / "page.figures" / "skew.svg").exists()
    done = CliRunner().invoke(app, ["trace", "show", str(tmp_path / "one.trace"), "--json"])
    assert '"sequential_share"' in done.output
