"""Limits: how they are written, when they contradict, and how a point is judged by them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.record.common_figures import DIRECTIONS, HOST, RATES, ROLES
from assay.record.figures import STATISTICS
from assay.record.judgement import judge, met
from assay.record.limits import parse_limits, show_value
from assay.record.standstill import with_overdriven

KEYS = {name: name.replace(".", "_") for name in STATISTICS}


def direction(latency_ns: float, iops: float = 1000.0) -> dict[str, Any]:
    return {"iops": iops, "bytes_per_s": iops * 8192, "latency_ns": dict.fromkeys(KEYS.values(), latency_ns)}


def point(**read_ms: float) -> dict[str, Any]:
    """A point of role data whose volumes read with these mean latencies."""
    volumes = [
        {"name": name, "role": "data", "read": direction(value * 1e6), "write": None, "total": direction(value * 1e6)}
        for name, value in read_ms.items()
    ]
    mean_ns = sum(read_ms.values()) / len(read_ms) * 1e6
    data = {"read": direction(mean_ns), "write": None, "total": direction(mean_ns)}
    return {"roles": {"data": data}, "volumes": volumes, "telemetry": {"cpu_share": 0.5, "tcp_retransmit_share": None}}


class TestReading:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("read.mean<=20ms", (None, "read", "mean", "<=", 20e6, "ns")),
            ("write.p99.9<1.5s", (None, "write", "p99.9", "<", 1.5e9, "ns")),
            ("log.write.p99.99<=500us", ("log", "write", "p99.99", "<=", 500e3, "ns")),
            ("total.iops>=5000", (None, "total", "iops", ">=", 5000.0, "iops")),
            ("data.read.throughput>100MiB/s", ("data", "read", "throughput", ">", 100 * 2.0**20, "bytes_per_s")),
            ("cpu<80%", (None, None, "cpu", "<", 0.8, "share")),
            ("tcp.retransmit<0.5%", (None, None, "tcp.retransmit", "<", 0.005, "share")),
            (" read.max <= 1 s ", (None, "read", "max", "<=", 1e9, "ns")),
            ("flush.p99<=5ms", (None, "flush", "p99", "<=", 5e6, "ns")),
        ],
    )
    def test_forms(self, text: str, expected: tuple[Any, ...]) -> None:
        (limit,) = parse_limits([text])

        found = (limit.role, limit.direction, limit.metric, limit.operator, limit.value, limit.unit)
        assert found[:4] == expected[:4]
        assert found[4] == pytest.approx(expected[4])
        assert (found[5], limit.text) == (expected[5], text)

    @given(
        role=st.none() | st.sampled_from(ROLES),
        side=st.sampled_from(DIRECTIONS),
        metric=st.sampled_from(STATISTICS),
        operator=st.sampled_from(["<=", "<", ">=", ">"]),
        value_us=st.integers(0, 10**9),
    )
    def test_every_documented_metric_is_known(
        self, role: str | None, side: str, metric: str, operator: str, value_us: int
    ) -> None:
        prefix = f"{role}." if role else ""
        (limit,) = parse_limits([f"{prefix}{side}.{metric}{operator}{value_us}us"])

        assert (limit.role, limit.direction, limit.metric, limit.value) == (role, side, metric, value_us * 1000)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("red.p99<=2ms", "unknown metric 'red.p99'; did you mean 'read.p99'"),
            ("read.p98<=2ms", "did you mean 'read.p9"),
            ("lgo.write.mean<=5ms", "did you mean 'log.write.mean'"),
            ("frobnication<3", "known: .*cpu"),
            ("read.p99<=2", "no unit; accepted: ns, us, ms, s"),
            ("read.p99<=2parsecs", "unknown unit 'parsecs'"),
            ("read.p99", "expected METRIC<=VALUE"),
            ("read.p99==2ms", "read.p99==2ms"),
            ("", "expected METRIC<=VALUE"),
            ("cpu<130%", "130% is outside 0 to 100 %"),
            ("read.iops>=many", "not a number of read IOPS"),
            ("read.iops>=nan", "nan"),
        ],
    )
    def test_what_is_none_is_refused_with_what_was_meant(self, text: str, said: str) -> None:
        with pytest.raises(UsageError, match=said):
            parse_limits([text])


class TestContradiction:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("read.mean<=2ms", "read.mean>=3ms"),
            ("read.mean<2ms", "read.mean>=2ms"),
            ("read.p99<=2ms", "read.p50>=3ms"),
            ("read.max<=1ms", "read.p99.9>1ms"),
            ("log.write.mean<=2ms", "write.mean>=3ms"),
            ("cpu<20%", "cpu>50%"),
            ("total.iops>=10", "total.iops<5"),
        ],
    )
    def test_is_refused_in_either_order(self, one: str, other: str) -> None:
        for texts in ([one, other], [other, one]):
            with pytest.raises(UsageError, match="contradict each other"):
                parse_limits(texts)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("read.mean<=2ms", "read.mean>=2ms"),
            ("read.mean<=2ms", "write.mean>=3ms"),
            ("read.p50<=2ms", "read.p99>=3ms"),
            ("log.write.mean<=2ms", "data.write.mean>=3ms"),
            ("read.mean<=2ms", "read.p99>=3ms"),
            ("read.mean<=2ms", "read.iops>=3000000"),
            ("cpu<20%", "iowait>50%"),
        ],
    )
    def test_what_one_result_can_meet_is_accepted(self, one: str, other: str) -> None:
        assert len(parse_limits([one, other])) == 2

    @given(
        bounds=st.lists(st.integers(1, 100), min_size=2, max_size=2).map(sorted),
        metrics=st.tuples(*[st.sampled_from([name for name in STATISTICS if name != "mean"])] * 2),
    )
    def test_limits_that_one_constant_latency_meets_never_contradict(
        self, bounds: list[int], metrics: tuple[str, str]
    ) -> None:
        lower, upper = bounds

        # All percentiles of a constant latency are that latency.
        assert parse_limits([f"read.{metrics[0]}<={upper}ms", f"read.{metrics[1]}>={lower}ms"])


class TestJudging:
    @given(limit_ms=st.integers(1, 100), value_ms=st.integers(1, 100), operator=st.sampled_from(["<=", "<", ">=", ">"]))
    def test_a_limit_is_met_as_it_says(self, limit_ms: int, value_ms: int, operator: str) -> None:
        (verdict,) = judge(parse_limits([f"read.mean{operator}{limit_ms}ms"]), point(f=value_ms))

        expected = {"<=": value_ms <= limit_ms, "<": value_ms < limit_ms, ">=": value_ms >= limit_ms}
        assert verdict["met"] is expected.get(operator, value_ms > limit_ms)
        assert (verdict["value"], verdict["unit"], verdict["scope"]) == (value_ms * 1e6, "ns", "data")

    def test_every_volume_is_judged_so_that_a_mean_hides_no_slow_one(self) -> None:
        verdicts = judge(parse_limits(["read.mean<=20ms"]), point(fast=1, slow=30))

        assert [(verdict["scope"], verdict["met"]) for verdict in verdicts] == [
            ("data", True),
            ("data/fast", True),
            ("data/slow", False),
        ]
        assert not met(verdicts)

    def test_what_was_not_measured_is_neither_met_nor_missed(self) -> None:
        verdicts = judge(parse_limits(["write.mean<=20ms", "log.read.mean<=1ms", "tcp.retransmit<1%"]), point(f=1))

        assert [(verdict["scope"], verdict["value"], verdict["met"]) for verdict in verdicts] == [
            ("all", None, None),
            ("log", None, None),
            ("host", None, None),
        ]
        assert met(verdicts) is None

    def test_a_point_that_its_host_served_late_judges_no_limit(self) -> None:
        late = {"lateness": {"overdriven": True, "overdriven_s": 9, "busy_s": 10}}
        figures = with_overdriven({**point(f=30), "served": [late]})

        verdicts = judge(parse_limits(["read.mean<=20ms", "cpu<40%"]), figures)

        assert [(verdict["met"], verdict["reason"]) for verdict in verdicts[:1]] == [(None, "served array overdriven")]
        assert "overdriven in 9 of 10 seconds" in str(verdicts[0]["why"])
        # The host is judged by its own limit, which it still misses.
        assert verdicts[-1]["met"] is False
        assert with_overdriven(point(f=30)) == point(f=30)

    def test_a_limit_of_a_role_is_judged_on_it_alone(self) -> None:
        both = point(f=30)
        both["roles"]["log"] = {"read": None, "write": direction(1e6), "total": direction(1e6)}

        verdicts = judge(parse_limits(["log.write.mean<=5ms", "total.mean<=20ms"]), both)
        assert [(verdict["limit"], verdict["scope"], verdict["met"]) for verdict in verdicts] == [
            ("log.write.mean<=5ms", "log", True),
            ("total.mean<=20ms", "data", False),
            ("total.mean<=20ms", "log", True),
        ]

    def test_the_host_is_judged_once(self) -> None:
        (verdict,) = judge(parse_limits(["cpu<40%"]), point(a=1, b=1))

        assert (verdict["scope"], verdict["value"], verdict["met"]) == ("host", 0.5, False)

    @pytest.mark.parametrize("metric", STATISTICS)
    def test_each_percentile_is_its_own(self, metric: str) -> None:
        measured = point(f=1)
        measured["roles"]["data"]["read"]["latency_ns"][KEYS[metric]] = 9e6

        assert judge(parse_limits([f"read.{metric}<=5ms"]), measured)[0]["met"] is False
        others = [f"read.{name}<=5ms" for name in STATISTICS if name != metric]
        assert met(judge(parse_limits(others), measured))

    @pytest.mark.parametrize("metric", RATES)
    def test_rates_are_judged_from_below(self, metric: str) -> None:
        limits = parse_limits([f"read.{metric}>={'1000' if metric == 'iops' else '8M/s'}"])

        assert [verdict["met"] for verdict in judge(limits, point(f=1))] == [metric == "iops"]

    def test_every_system_metric_is_in_the_telemetry(self) -> None:
        telemetry = dict.fromkeys(HOST.values(), 0.1)

        verdicts = judge(parse_limits([f"{name}<50%" for name in HOST]), {"telemetry": telemetry})
        assert [verdict["met"] for verdict in verdicts] == [True] * len(HOST)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [(None, "ns", "not measured"), (83_400, "ns", "83.4 us"), (0.805, "share", "80.5 %"), (21312.4, "iops", "21,312"),
     (2**30, "bytes_per_s", "1,024 MiB/s")],
)  # fmt: skip
def test_values_are_shown_with_their_unit(value: float | None, unit: str, shown: str) -> None:
    assert show_value(value, unit) == shown
