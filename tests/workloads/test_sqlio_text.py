"""The classic sqlio output is an interface: old scripts parse it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.workloads.io.sqlio import ParamLine, parse_sqlio
from assay.workloads.io.sqlio_text import (
    CpuUtilization,
    FileSize,
    SqlioMeasurements,
    format_sqlio,
    histogram_percent,
    measurements_from_point,
)


@dataclass
class Latencies:
    """A histogram that keeps every value, so that the golden texts do not depend on bin widths."""

    values: dict[int, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(self.values.values())

    @property
    def min(self) -> int:
        return min(self.values)

    @property
    def mean(self) -> float:
        return sum(value * count for value, count in self.values.items()) / self.count

    @property
    def max(self) -> int:
        return max(self.values)

    def bins(self) -> list[tuple[int, int]]:
        return sorted(self.values.items())


MS = 10**6
TITLES = "ms: 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24+"


def test_writes_with_a_parameter_file_print_the_classic_lines_in_order() -> None:
    command = parse_sqlio(["-kW", "-s30", "-o1", "-frandom", "-b8", "-BH", "-LS", "-Fparam.txt"])
    command = command.with_param_lines([ParamLine("testfile.dat", 4, 0, 2000 * 2**20)])
    latency = Latencies({400_000: 78, 3 * MS: 18, 150 * MS: 4})
    measured = SqlioMeasurements(421.88, 421.88 * 8192, latency, (FileSize("testfile.dat", 2000 * 2**20),), 2922685)
    assert format_sqlio(command, measured) == (
        "sqlio v1.5.SG\n"
        "using system counter for latency timings, 2922685 counts per second\n"
        "parameter file used: param.txt\n"
        "\tfile testfile.dat with 4 threads (0-3) using mask 0x0 (0)\n"
        "4 threads writing for 30 secs to file testfile.dat\n"
        "\tusing 8KB random IOs\n"
        "\tenabling multiple I/Os per thread with 1 outstanding\n"
        "\tbuffering set to use hardware disk cache (but not file cache)\n"
        "using specified size: 2000 MB for file: testfile.dat\n"
        "initialization done\n"
        "CUMULATIVE DATA:\n"
        "throughput metrics:\n"
        "IOs/sec:   421.88\n"
        "MBs/sec:     3.29\n"
        "latency metrics:\n"
        "Min_Latency(ms): 0\n"
        "Avg_Latency(ms): 6\n"
        "Max_Latency(ms): 150\n"
        "histogram:\n"
        f"{TITLES}\n"
        "%: 78  0  0 18  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  4\n"
    )


def test_reads_of_one_thread_without_latency_print_only_throughput() -> None:
    command = parse_sqlio(["-fsequential", "-b64", "/data/f"])
    measured = SqlioMeasurements(1000.0, 65_536_000.0, Latencies({MS: 1}), (FileSize("/data/f", 10 * 2**20),))
    assert format_sqlio(command, measured) == (
        "sqlio v1.5.SG\n"
        "1 thread reading for 30 secs from file /data/f\n"
        "\tusing 64KB sequential IOs\n"
        "using current size: 10 MB for file: /data/f\n"
        "initialization done\n"
        "CUMULATIVE DATA:\n"
        "throughput metrics:\n"
        "IOs/sec:  1000.00\n"
        "MBs/sec:    62.50\n"
    )


def test_the_default_stride_tells_stripe_and_run_and_how_the_file_grew() -> None:
    measured = SqlioMeasurements(183.16, 183.16 * 2048, None, (FileSize("testfile.dat", 8 * 2**20, 0),))
    assert format_sqlio(parse_sqlio([]), measured) == (
        "sqlio v1.5.SG\n"
        "1 thread reading for 30 secs from file testfile.dat\n"
        "\tusing 2KB IOs over 128KB stripes with 64 IOs per run\n"
        "size of file testfile.dat needs to be: 8388608 bytes\n"
        "current file size:\t0 bytes\n"
        "need to expand by:\t8388608 bytes\n"
        "expanding testfile.dat ... done.\n"
        "initialization done\n"
        "CUMULATIVE DATA:\n"
        "throughput metrics:\n"
        "IOs/sec:   183.16\n"
        "MBs/sec:     0.35\n"
    )


@pytest.mark.parametrize(
    ("iops", "block_kb", "printed"),
    # Pairs of published outputs: every one is cut off after the second decimal.
    [
        (3434.19, 8, "26.82"),
        (28807.29, 8, "225.05"),
        (7808.43, 2, "15.25"),
        (8145.77, 4, "31.81"),
        (8142.30, 4, "31.80"),
        (9758.89, 4, "38.12"),
        (183.16, 2, "0.35"),
    ],
)
def test_rates_are_cut_off_as_in_published_outputs(iops: float, block_kb: int, printed: str) -> None:
    text = format_sqlio(parse_sqlio([f"-b{block_kb}"]), SqlioMeasurements(iops, iops * block_kb * 1024, None))
    assert re.search(r"^IOs/sec: +(\S+)$", text, re.M)[1] == f"{iops:.2f}"  # type: ignore[index]
    assert re.search(r"^MBs/sec: +(\S+)$", text, re.M)[1] == printed  # type: ignore[index]


def test_several_pools_are_numbered_on_and_their_files_listed() -> None:
    command = parse_sqlio(["-kW", "-frandom", "-Fp.txt"])
    command = command.with_param_lines([ParamLine("a", 2), ParamLine("b", 1, 15), ParamLine("c", 1)])
    text = format_sqlio(command, SqlioMeasurements(1.0, 1.0, None))
    assert "\tfile a with 2 threads (0-1) using mask 0x0 (0)\n" in text
    assert "\tfile b with 1 thread (2) using mask 0xf (15)\n" in text
    assert "4 threads writing for 30 secs to files a, b and c\n" in text


@pytest.mark.parametrize(
    ("flag", "wording"),
    [("-BN", "not use file nor disk caches"), ("-BY", "use both"), ("-BH", "use hardware"), ("-BS", "use software")],
)
def test_buffering_is_told_only_when_it_was_asked_for(flag: str, wording: str) -> None:
    measured = SqlioMeasurements(1.0, 1.0, None)
    assert f"\tbuffering set to {wording}" in format_sqlio(parse_sqlio([flag]), measured)
    assert "buffering" not in format_sqlio(parse_sqlio([]), measured)


def test_initiation_latencies_come_before_the_latencies_when_they_were_measured() -> None:
    command = parse_sqlio(["-LSi"])
    measured = SqlioMeasurements(1.0, 1.0, Latencies({MS: 1}), initiation_us=(51.2, 296.9, 20169.0))
    lines = format_sqlio(command, measured).splitlines()
    start = lines.index("latency metrics:") + 1
    assert lines[start : start + 3] == [
        "Min_Init_Latency(us): 51",
        "Avg_Init_Latency(us): 296",
        "Max_Init_Latency(us): 20169",
    ]
    assert lines[start + 3].startswith("Min_Latency(ms):")
    assert "Init" not in format_sqlio(command, SqlioMeasurements(1.0, 1.0, Latencies({MS: 1})))


def test_a_run_in_which_nothing_completed_still_prints_every_line() -> None:
    text = format_sqlio(parse_sqlio(["-LS"]), SqlioMeasurements(0.0, 0.0, None))
    assert "IOs/sec:     0.00\nMBs/sec:     0.00\n" in text
    assert "Max_Latency(ms): 0\n" in text
    assert text.endswith("%:" + "  0" * 25 + "\n")


def test_the_utilization_table_has_a_column_per_processor_and_only_measured_rows() -> None:
    cpu = CpuUtilization((95.35, 95.05, 94.94), (98.99, 98.9, 98.64), (3.64, 3.85, 3.69))
    measured = SqlioMeasurements(1.0, 1.0, None, cpu=cpu)
    assert format_sqlio(parse_sqlio(["-Up"]), measured).endswith(
        "ProcessorNumber:          ALL        0        1\n"
        "PrivilegedTime(%):      95.35    95.05    94.94\n"
        "ProcessorTime(%):       98.99    98.90    98.64\n"
        "UserTime(%):             3.64     3.85     3.69\n"
    )
    assert "ProcessorNumber" not in format_sqlio(parse_sqlio(["-U"]), measured)


def test_percentages_are_rounded_per_column_and_the_last_column_is_open() -> None:
    shares = histogram_percent(Latencies({999_999: 995, MS: 4, 24 * MS - 1: 0, 24 * MS: 1}))
    assert shares == [100, *[0] * 24]
    assert histogram_percent(Latencies({5 * 10**9: 1, 24 * MS: 1, 23_999_999: 2})) == [*[0] * 23, 50, 50]


@given(st.dictionaries(st.integers(0, 60 * 10**9), st.integers(1, 10**6), min_size=1))
def test_rounding_keeps_every_column_within_half_a_percent(values: dict[int, int]) -> None:
    latency = Latencies(values)
    exact = [0.0] * 25
    for value, count in values.items():
        exact[min(value // MS, 24)] += 100 * count / latency.count
    assert all(abs(shown - share) <= 0.5 + 1e-9 for shown, share in zip(histogram_percent(latency), exact, strict=True))


def community_parse(text: str) -> list[dict[str, str]]:
    """Split on the version line and search by loose prefixes, as scripts for the classic output do."""
    patterns = {
        "threads": r"^([0-9]+) threads? (?:reading|writing)", "operation": r"threads? (\S+) for [0-9]+ secs",
        "seconds": r"for ([0-9]+) secs", "block": r"^\tusing ([0-9]+)KB", "access": r"KB (random|sequential) IOs",
        "outstanding": r"([0-9]+) outstanding$", "size_mb": r"size: ([0-9]+) MB for file",
        "iops": r"IOs/sec:\s+([0-9]+\.[0-9]+)", "mbs": r"MBs/sec:\s+([0-9]+\.[0-9]+)", "min": r"Min[^:]*: ([0-9]+)",
        "avg": r"Avg[^:]*: ([0-9]+)", "max": r"Max[^:]*: ([0-9]+)", "histogram": r"^%:\s*(.*)$",
    }  # fmt: skip
    runs = [run for run in text.split("sqlio v1.5.SG") if run]
    found = [{name: re.search(pattern, run, re.M) for name, pattern in patterns.items()} for run in runs]
    return [{name: match[1] if match else "" for name, match in run.items()} for run in found]


def test_scripts_that_split_on_the_version_line_find_every_value_of_every_run() -> None:
    size = (FileSize("/data/f", 1024 * 2**20),)
    runs = [
        (
            parse_sqlio(["-kR", "-s360", "-fsequential", "-o8", "-b64", "-LS", "-t2", "/data/f"]),
            SqlioMeasurements(7851.8, 7851.8 * 65536, Latencies({2 * MS: 1, 4 * MS: 1}), size),
        ),
        (
            parse_sqlio(["-kW", "-s60", "-frandom", "-o32", "-b8", "-LP", "/data/f"]),
            SqlioMeasurements(12345.678, 12345.678 * 8192, Latencies({100_000: 99, 30 * MS: 1}), size),
        ),
    ]
    first, second = community_parse("".join(format_sqlio(command, measured) for command, measured in runs))
    histogram = [0] * 25
    histogram[2] = histogram[4] = 50
    assert [int(share) for share in first.pop("histogram").split()] == histogram
    assert first == {
        "threads": "2", "operation": "reading", "seconds": "360", "block": "64", "access": "sequential",
        "outstanding": "8", "size_mb": "1024", "iops": "7851.80", "mbs": "490.73", "min": "2", "avg": "3", "max": "4",
    }  # fmt: skip
    assert (second["operation"], second["access"], second["iops"]) == ("writing", "random", "12345.67")
    assert (second["min"], second["avg"], second["max"]) == ("0", "0", "30")
    assert second["histogram"].split()[0] == "99"
    assert second["histogram"].split()[-1] == "1"


def test_measurements_of_a_point_come_from_its_histogram() -> None:
    core = pytest.importorskip("assay._core", reason="the compiled module is not built")
    histogram = core.Histogram()
    histogram.record(2_500_000, 3)
    histogram.record(30_500_000)
    direction = {"count": 4, "iops": 8.0, "bytes_per_s": 65536.0, "histogram": histogram.to_base64()}
    measured = measurements_from_point({"total": direction}, file_sizes=[FileSize("f", 2**20)])
    text = format_sqlio(parse_sqlio(["-LS", "-frandom", "f"]), measured)
    parsed = community_parse(text)[0]
    assert (parsed["iops"], parsed["min"], parsed["avg"], parsed["size_mb"]) == ("8.00", "2", "9", "1")


def test_a_point_without_any_io_has_no_latency() -> None:
    pytest.importorskip("assay._core", reason="the compiled module is not built")
    assert measurements_from_point({"total": None}, file_sizes=[]) == SqlioMeasurements(0.0, 0.0, None)
