"""Quantities are read as the field writes them, and shown so that they can be read back."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.base.units import (
    format_bytes,
    format_duration,
    format_iops,
    format_latency,
    format_throughput,
    parse_bytes,
    parse_duration,
    parse_percent,
    parse_share,
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("512", 512),
        ("8K", 8192),
        ("8k", 8192),
        ("8KiB", 8192),
        ("8KB", 8000),
        ("1.5G", 3 << 29),
        (".5M", 1 << 19),
        (" 64 K ", 65536),
        ("2T", 2 << 40),
        ("1b", 1),
        (4096, 4096),
        (4096.0, 4096),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_bytes(text: str | float, size_bytes: int) -> None:
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "duration_ns"),
    [("20ms", 20_000_000), ("30", 30 * 10**9), ("30s", 30 * 10**9), ("1.5h", 5400 * 10**9), ("5m", 300 * 10**9),
     ("2min", 120 * 10**9), ("7us", 7000), ("7µs", 7000), ("3ns", 3), ("1d", 86400 * 10**9), (0.25, 250_000_000)],
)  # fmt: skip
def test_durations(text: str | float, duration_ns: int) -> None:
    assert parse_duration(text) == duration_ns


BAD = [
    "", " ", "K", "8X", "-8K", "8 8", "1e3", "nan", "inf", "8K8K", "0x10", "9" * 400, True, None,
    [8],
    -1,
    math.nan,
    math.inf,
]  # fmt: skip


@pytest.mark.parametrize("parse", [parse_bytes, parse_duration, parse_share])
@pytest.mark.parametrize("value", BAD, ids=repr)
def test_what_is_no_quantity_is_refused_in_one_line(parse, value) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError) as error:
        parse(value, what="--size")

    assert str(error.value).startswith("--size: ")
    assert "\n" not in str(error.value)


def test_part_of_a_byte_is_refused() -> None:
    with pytest.raises(UsageError, match="not a whole number of bytes"):
        parse_bytes("1.3")


@pytest.mark.parametrize(
    ("text", "share"), [("70", 0.7), ("70%", 0.7), ("0", 0), ("100", 1), (62.5, 0.625), ("62.5%", 0.625)]
)
def test_percentages(text: str | float, share: float) -> None:
    assert parse_percent(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["130", "-5", "101%", "7K", ""])
def test_percentages_outside_0_to_100_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--read: .*0 to 100"):
        parse_percent(text, what="--read")


@pytest.mark.parametrize(("text", "readings"), [("0.7", "write 70% or 0.7%"), (0.5, "write 50% or 0.5%")])
def test_a_percentage_below_1_needs_its_sign(text: str | float, readings: str) -> None:
    with pytest.raises(UsageError, match=f"--read: {text} has two readings; {readings}"):
        parse_percent(text, what="--read")
    assert parse_percent("0.7%") == pytest.approx(0.007)


@pytest.mark.parametrize("value", [1.01, "130%", "2", "50K"])
def test_shares_outside_0_to_1_are_refused(value: str | float) -> None:
    with pytest.raises(UsageError):
        parse_share(value)


@given(st.integers(min_value=0, max_value=2**60 // 1000))
def test_bytes_written_plainly_come_back(size_bytes: int) -> None:
    assert parse_bytes(str(size_bytes)) == size_bytes
    assert parse_bytes(f"{size_bytes}K") == size_bytes * 1024


@given(st.integers(min_value=1, max_value=2**59))
def test_shown_bytes_come_back_within_four_digits(size_bytes: int) -> None:
    number, unit = format_bytes(size_bytes).split()
    factor = 1024 ** ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit)

    assert float(number) * factor == pytest.approx(size_bytes, rel=5e-4)
    assert unit == "B" or float(number) >= 1


@given(st.sampled_from([1, 3, 8, 64, 1000]), st.sampled_from(["KiB", "MiB", "GiB", "TiB"]))
def test_whole_shown_bytes_are_read_back_exactly(number: int, unit: str) -> None:
    size_bytes = parse_bytes(f"{number}{unit}")

    assert parse_bytes(format_bytes(size_bytes)) == size_bytes


@given(st.floats(min_value=1, max_value=1e13))
def test_shown_latencies_come_back_to_three_digits(latency_ns: float) -> None:
    shown = format_latency(latency_ns).replace(",", "")

    assert parse_duration(shown) == pytest.approx(latency_ns, rel=6e-3, abs=0.6)


@given(st.floats(min_value=0, max_value=1))
def test_shares_come_back_from_percent(share: float) -> None:
    assert parse_share(share) == share
    assert parse_percent(f"{share * 100:.17f}%") == pytest.approx(share)


def test_figures_are_shown_as_the_field_does() -> None:
    assert format_iops(21312.4) == "21,312"
    assert format_throughput(104_857_600) == "100 MiB/s (105 MB/s)"
    assert [format_latency(value) for value in (999, 83_412, 999_960, 20e6, 1.5e9, None)] == [
        "999 ns", "83.4 us", "1.00 ms", "20.0 ms", "1.50 s", "-",
    ]  # fmt: skip
    assert [format_duration(value) for value in (0.25, 8, 60, 75, 3720)] == [
        "0.25 s", "8 s", "1 min", "1 min 15 s", "1 h 2 min",
    ]  # fmt: skip
