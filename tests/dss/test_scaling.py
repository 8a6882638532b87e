"""What is said to stop streams, by what a point's figures show."""

from __future__ import annotations

from typing import Any

from assay.workloads.tpch.scaling import scaling_sentences


def point(streams: int, seconds: float, *, names: tuple[str, ...] = ("pg",), cpu: float = 0.3, **storage: Any) -> Any:
    queries = [
        {"database": names[number % len(names)], "ended_by": "done", "seconds": 1.0, "query": 1, "stream": number}
        for number in range(22 * streams)
    ]
    device = {"roles": ["data"], "read_iops": 10.0, "read_latency_mean_ns": 1e6, "read_bytes_per_s": 1e6}
    kept = {"seconds": seconds, "buffer_hit_share": 0.99, "temp_bytes": 0.0, "devices": [device]} | storage
    return {
        "telemetry": {"cpu_share": cpu},
        "dss": {"test": "throughput", "streams": streams, "completion_s": seconds, "queries": queries, "storage": kept},
    }


def test_streams_that_bring_more_are_said_to() -> None:
    (sentence,) = scaling_sentences([point(1, 10), point(2, 11), point(4, 12)])
    assert sentence == "Queries an hour grow with the streams up to 4: 7,920 with 1, 14,400 with 2, 26,400 with 4."


def test_processors_buffer_cache_memory_and_storage_are_named_where_their_signals_show() -> None:
    def said(**last: Any) -> str:
        (sentence,) = scaling_sentences([point(1, 10), point(2, 11), point(4, 22, **last)])
        assert sentence.startswith("More than 2 streams bring nothing (queries an hour: 7,920 with 1, 14,400 with 2, ")
        return sentence

    assert said(cpu=0.97).endswith("the processors are 97% busy.")
    assert said().endswith("none of the limits that were looked for was reached.")
    busy = {"roles": ["data"], "read_iops": 500.0, "read_latency_mean_ns": 8e6, "read_bytes_per_s": 50e6}
    assert "queries wait for storage: 4.0 reads are outstanding" in said(devices=[busy])
    short = said(devices=[busy], buffer_hit_share=0.90)
    assert "the buffer cache is short: 90.0% of pages are found in it instead of 99.0%" in short
    assert short.index("buffer cache") < short.index("wait for storage")
    # Fewer hits whose pages the system's cache held, so that no device read more, are no shortage.
    assert "buffer cache" not in said(buffer_hit_share=0.90)
    assert "each writes 1.192 MiB to temporary files instead of 0 B" in said(temp_bytes=88 * 1.25e6)


def test_each_set_of_databases_has_its_sentence_and_shares_what_fewer_streams_did() -> None:
    both = ("pg", "pg-2")
    points = [point(1, 10), point(2, 11), point(2, 19, names=both), point(4, 40, names=both)]
    one, two = scaling_sentences(points)
    assert one.startswith("On pg, queries an hour grow with the streams up to 2")
    assert two.startswith(
        "On pg and pg-2, more than 1 stream brings nothing (queries an hour: 7,920 with 1, 8,337 with 2"
    )


def test_power_tests_and_single_numbers_of_streams_say_nothing() -> None:
    alone = point(1, 10)
    alone["dss"]["test"] = "power"
    assert scaling_sentences([alone, point(2, 10)]) == []
