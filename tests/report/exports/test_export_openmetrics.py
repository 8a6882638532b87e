"""The OpenMetrics export: every line is checked against the rules of OpenMetrics 1.0."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from assay.report.exports.openmetrics import export_openmetrics

Points = Callable[..., dict[str, Any]]

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
VALUE = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|Inf)|NaN"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
METADATA = re.compile(rf"# (?P<what>TYPE|UNIT|HELP) (?P<name>{NAME}) (?P<text>(?:[^\\\n]|\\[\\n\"])*)")
TIME = r"[0-9]+(?:\.[0-9]+)?"
SAMPLE = re.compile(
    rf"(?P<name>{NAME})(?:\{{(?P<labels>(?:{LABEL})(?:,{LABEL})*)?\}})? (?P<value>{VALUE})(?: (?P<time>{TIME}))?"
)
SUFFIXES = {
    "counter": {"_total", "_created"},
    "gauge": {""},
    "info": {"_info"},
    "histogram": {"_bucket", "_count", "_sum", "_created"},
    "summary": {"", "_count", "_sum", "_created"},
}


def text_of(manifest: dict[str, Any], points: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    export_openmetrics(manifest, points, out)
    return out.getvalue()


def strictly_parsed(text: str) -> dict[str, list[tuple[str, dict[str, str], float, str | None]]]:
    """Check the grammar and the rules between lines; return the samples of every family."""
    assert text.endswith("# EOF\n")
    families: dict[str, dict[str, str]] = {}
    samples: dict[str, list[tuple[str, dict[str, str], float, str | None]]] = defaultdict(list)
    current = ""
    for line in text.removesuffix("# EOF\n").splitlines():
        if line.startswith("#"):
            metadata = METADATA.fullmatch(line)
            assert metadata, line
            if metadata["name"] != current:
                current = metadata["name"]
                assert current not in families, f"{current} is interleaved or repeated"
                families[current] = {}
            assert not samples[current], f"metadata of {current} after its samples"
            assert metadata["what"] not in families[current], line
            families[current][metadata["what"]] = metadata["text"]
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, line
        kind = families[current]["TYPE"]
        assert sample["name"].startswith(current), line
        assert sample["name"].removeprefix(current) in SUFFIXES[kind], line
        pairs = re.findall(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"', sample["labels"] or "")
        labels = dict(pairs)
        assert len(labels) == len(pairs), f"label repeated: {line}"
        assert all(labels.values()), f"an empty label is the same as none: {line}"
        samples[current].append((sample["name"], labels, float(sample["value"]), sample["time"]))
    for name, metadata_of in families.items():
        check_family(name, metadata_of, samples[name])
    return samples


def check_family(
    name: str, metadata: dict[str, str], samples: list[tuple[str, dict[str, str], float, str | None]]
) -> None:
    kind, unit = metadata["TYPE"], metadata.get("UNIT")
    assert metadata["HELP"]
    assert samples, f"{name} has no sample"
    assert not name.endswith(("_total", "_info", "_count", "_sum", "_bucket", "_created"))
    if unit:
        assert name.endswith(f"_{unit}")
        assert kind != "info"
    seen = [(sample, tuple(sorted(labels.items()))) for sample, labels, _, _ in samples]
    assert len(set(seen)) == len(seen), f"{name} has one sample twice"
    groups: dict[tuple[tuple[str, str], ...], list[tuple[str, dict[str, str], float, str | None]]] = {}
    last = None
    for entry in samples:
        own = {key: label for key, label in entry[1].items() if key not in ("le", "quantile")}
        group = tuple(sorted(own.items()))
        assert group == last or group not in groups, f"{name}: a metric's samples are interleaved"
        groups.setdefault(group, []).append(entry)
        last = group
    for entries in groups.values():
        assert len({time for *_, time in entries}) == 1
        check_values(name, kind, entries)


def check_values(name: str, kind: str, entries: list[tuple[str, dict[str, str], float, str | None]]) -> None:
    if kind == "info":
        assert all(value == 1 for _, _, value, _ in entries)
    if kind == "counter":
        assert all(value >= 0 for _, _, value, _ in entries)
    if kind == "summary":
        quantiles = [(float(labels["quantile"]), value) for _, labels, value, _ in entries if "quantile" in labels]
        assert quantiles == sorted(quantiles)
        assert all(0 <= quantile <= 1 for quantile, _ in quantiles)
    if kind == "histogram":
        buckets = [(float(labels["le"]), value) for _, labels, value, _ in entries if "le" in labels]
        assert buckets == sorted(buckets)
        assert [count for _, count in buckets] == sorted(count for _, count in buckets)
        assert buckets[-1][0] == float("inf")
        values = {sample.removeprefix(name): value for sample, _, value, _ in entries}
        assert values["_count"] == buckets[-1][1]
        assert values["_sum"] >= 0


def test_a_run_is_valid_by_the_strict_grammar(manifest: dict[str, Any], make_point: Points) -> None:
    open_loop = make_point("p0003", load={"rate": 5000.0, "arrivals": "poisson", "workers": 1})
    open_loop["service_latency_ns"] = open_loop["total"]["latency_ns"]
    mix = make_point("p0004", block_bytes={"512": 0.5, "4096": 0.5})
    families = strictly_parsed(text_of(manifest, [make_point(), make_point("p0002", read_share=1.0), open_loop, mix]))
    assert len(families) == 13


def test_values_are_seconds_bytes_and_counts(manifest: dict[str, Any], make_point: Points) -> None:
    point = make_point()
    families = strictly_parsed(text_of(manifest, [point]))
    reads = {name: value for name, labels, value, _ in families["assay_ios"] if labels["direction"] == "read"}
    assert reads == {"assay_ios_total": 700}
    moved = [value for _, labels, value, _ in families["assay_transferred_bytes"] if labels["direction"] == "write"]
    assert moved == [300 * 8192]
    p99 = [
        value for _, labels, value, _ in families["assay_latency_quantile_seconds"]
        if labels["direction"] == "read" and labels.get("quantile") == "0.99"
    ]  # fmt: skip
    assert p99 == [pytest.approx(point["read"]["latency_ns"]["p99"] / 1e9)]
    buckets = {
        labels["le"]: value for name, labels, value, _ in families["assay_latency_seconds"]
        if labels["direction"] == "read" and name.endswith("_bucket")
    }  # fmt: skip
    assert {"1e-05", "0.001", "1.0", "10.0", "+Inf"} <= set(buckets)
    # 1 - 1/e of exponential latencies lie below their mean of 1 ms.
    assert buckets["0.001"] / buckets["+Inf"] == pytest.approx(0.632, abs=0.06)


def test_a_point_s_samples_carry_the_time_at_which_it_ended(manifest: dict[str, Any], make_point: Points) -> None:
    families = strictly_parsed(text_of(manifest, [make_point()]))
    assert {time for *_, time in families["assay_ios"]} == {"1795169716.000"}
    assert {time for *_, time in families["assay_run"]} == {"1795169700.123"}


def test_quotes_backslashes_and_line_feeds_in_labels_are_escaped(manifest: dict[str, Any], make_point: Points) -> None:
    text = text_of(manifest, [make_point(name='a "b" c:\\d\ne')])
    strictly_parsed(text)
    assert r'workload="a \"b\" c:\\d\ne"' in text


def test_only_judged_limits_appear_and_unmeasured_values_do_not(manifest: dict[str, Any], make_point: Points) -> None:
    point = make_point()
    point["generator"] |= {"cpu_share": None, "saturated": None}
    families = strictly_parsed(text_of(manifest, [point]))
    met = {labels["limit"]: value for _, labels, value, _ in families["assay_limit_met"]}
    assert met == {"read.mean<=20ms": 1, "write.mean<=1ms": 0}
    assert "assay_generator_cpu_ratio" not in families
    assert "assay_service_latency_seconds" not in families


def test_a_run_without_points_is_valid(manifest: dict[str, Any]) -> None:
    assert set(strictly_parsed(text_of(manifest, []))) == {"assay_run"}


def test_the_reference_parser_accepts_it(manifest: dict[str, Any], make_point: Points) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="prometheus_client is not installed")
    text = text_of(manifest, [make_point(name='a "b" c:\\d\ne'), make_point("p0002", read_share=0.0)])
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    assert families["assay_latency_seconds"].type == "histogram"
    assert families["assay_latency_seconds"].unit == "seconds"
    (label,) = {sample.labels["workload"] for sample in families["assay_point"].samples} - {'8 KiB "random" 70/30'}
    assert label == 'a "b" c:\\d\ne'
