"""Figures: what each kind registers, what answers say, and how repeats are pooled."""

from __future__ import annotations

from typing import Any

import pytest

from assay.record.common_figures import COMMON_FIGURES
from assay.record.figures import PERCENTILES, end_figures, pooled
from assay.record.judgement import judge
from assay.record.limits import parse_limits
from assay.workloads.registry import figures_of, workload_named, workloads

core = pytest.importorskip("assay._core", reason="the compiled module is not built")


def side(iops: float, mean_ns: float = 1e6, latencies: tuple[int, ...] = ()) -> dict[str, Any]:
    histogram = core.Histogram()
    for latency_ns in latencies:
        histogram.record(latency_ns)
    return {
        "count": int(iops), "iops": iops, "bytes_per_s": iops * 8192, "latency_ns": {"mean": mean_ns, "p90": 2e6},
        "histogram": histogram.to_base64(),
    }  # fmt: skip


def transactions(nopm: float, p90_ns: float = 5e6, cpu_share: float | None = 0.5) -> dict[str, Any]:
    by_transaction = {name: {"latency_ns": {"p90": p90_ns}} for name in ("new_order", "payment")}
    storage = {"server_cpu_share": cpu_share}
    return {
        "workload": {"kind": "tpcc", "name": "hammerdb"}, "telemetry": {"cpu_share": 0.99},
        "oltp": {"nopm": nopm, "tpm_client": 2.3 * nopm, "by_transaction": by_transaction, "storage": storage},
    }  # fmt: skip


@pytest.mark.parametrize("workload", workloads(), ids=lambda workload: workload.kind)
class TestOfEveryKind:
    def test_names_are_unique(self, workload: Any) -> None:
        for of in ("name", "study", "limit"):
            names = [getattr(figure, of) for figure in workload.figures if getattr(figure, of)]
            assert len(names) == len(set(names)), of

    def test_the_first_is_in_answers_where_any_is(self, workload: Any) -> None:
        in_answers = [figure.in_answers for figure in workload.figures]
        assert in_answers == sorted(in_answers, reverse=True)

    def test_a_point_without_anything_has_no_values(self, workload: Any) -> None:
        for figure in workload.figures:
            assert figure.value({}) is None, figure.name
            assert list(figure.batches({})) == [], figure.name

    def test_every_limit_on_them_is_parsed_and_judged_as_not_measured(self, workload: Any) -> None:
        bounds = {"ns": "1ms", "share": "50%", "bytes_per_s": "1MiB/s"}
        texts = [f"{figure.limit}<={bounds.get(figure.unit, '1')}" for figure in workload.figures if figure.limit]
        limits = parse_limits(texts, workload.figures)
        assert {verdict["met"] for verdict in judge(limits, {}, workload.figures)} <= {None}


HELD = {"iops": 0.0, "bytes_per_s": 0.0, "read_latency_mean_ns": None, "write_latency_mean_ns": None}


def test_ends_of_answers_have_the_keys_of_their_kind() -> None:
    points = [{"total": side(1000)}, {"total": side(2000)}, {"total": None}]
    assert end_figures(workload_named("io").figures, points) == HELD | {"iops": 1500.0, "bytes_per_s": 1500 * 8192.0}
    ended = end_figures(workload_named("tpcc").figures, [transactions(1000), transactions(2000)])
    assert ended == {"nopm": 1500.0, "tpm": pytest.approx(3450), "response_p90_ns": None}
    assert end_figures(workload_named("io").figures, [{"total": None}]) == HELD


def test_points_of_no_kind_are_io_and_those_of_an_unknown_kind_have_no_figures() -> None:
    assert figures_of({"workload": {"name": "x"}}) == figures_of({}) == workload_named("io").figures
    assert figures_of({"workload": {"kind": "of tomorrow"}}) == ()


def test_bytes_have_batches_that_follow_the_ios() -> None:
    point = {"total": side(1000), "batches": {"total": {"iops": [900.0, None, 1100.0]}}}
    assert COMMON_FIGURES["bytes_per_s"].batches(point) == pytest.approx([900 * 8192, 1100 * 8192])


class TestPooling:
    def test_rates_are_averaged(self) -> None:
        assert pooled(COMMON_FIGURES["iops"], [{"total": side(1000)}, {"total": side(4000)}]) == 2500

    def test_means_count_with_their_ios(self) -> None:
        points = [{"read": side(1000, 1e6)}, {"read": side(3000, 2e6)}, {"read": None}]
        assert pooled(COMMON_FIGURES["read_latency_mean_ns"], points) == 1.75e6

    def test_percentiles_are_those_of_the_merged_histograms(self) -> None:
        latencies = [(1_000_000,) * 80, (9_000_000,) * 20]
        points = [{"read": side(100, latencies=each)} for each in latencies]
        merged = core.Histogram()
        for each in latencies:
            for latency_ns in each:
                merged.record(latency_ns)
        for name, share in PERCENTILES.items():
            figure = COMMON_FIGURES[f"read_latency_{name.replace('.', '_')}_ns"]
            assert pooled(figure, points) == merged.percentile(100 * share)

    def test_one_point_keeps_the_percentile_it_has(self) -> None:
        assert pooled(COMMON_FIGURES["read_latency_p90_ns"], [{"read": side(1000)}]) == 2e6


class TestLimitsOfTransactions:
    FIGURES = workload_named("tpcc").figures

    def verdicts(self, *texts: str, **of: Any) -> list[tuple[str, float | None, bool | None]]:
        judged = judge(parse_limits(texts, self.FIGURES), transactions(1000, **of), self.FIGURES)
        return [(one["scope"], one["value"], one["met"]) for one in judged]

    def test_response_times_are_judged_by_transaction(self) -> None:
        assert self.verdicts("response.p90<3ms") == [("new_order", 5e6, False), ("payment", 5e6, False)]

    def test_the_cpu_is_that_of_the_server(self) -> None:
        assert self.verdicts("cpu<80%") == [("server", 0.5, True)]
        assert self.verdicts("cpu<80%", cpu_share=None) == [("server", None, None)]

    def test_throughput_is_judged_once(self) -> None:
        assert self.verdicts("nopm>=1200", "tpm>=1200") == [("all", 1000, False), ("all", 2300, True)]

    def test_io_measures_no_response_time_and_no_transactions(self) -> None:
        (verdict,) = judge(parse_limits(["response.p90<3ms"]), {"roles": {}})
        assert (verdict["scope"], verdict["met"]) == ("all", None)
