"""Results of fio, DiskSpd and Iometer become points as Assay measures; what cannot be used is refused in one line."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay._core import Histogram
from assay.record.figures import PERCENTILES
from assay.record.histograms import histogram_of
from assay.report.exports.fio_json import fio_bucket_ns
from assay.run.imports import read_results
from assay.telemetry.importers.importer import NotTaken, Options
from assay.telemetry.importers.registry import importer_of
from assay.workloads.capabilities import Importing
from assay.workloads.imported import ImportedRun, RunImporter, Side, histogram_of_bins, together
from assay.workloads.io.activities import IoActivity, IoWorkloadSpec, load_facts
from assay.workloads.registry import workloads

SAMPLES = Path(__file__).parent / "imported"
GOLDEN = SAMPLES / "golden"
ALL = sorted(path for path in SAMPLES.iterdir() if path.is_file())
FORMATS = [one for workload in workloads() if isinstance(workload, Importing) for one in workload.importers()]


def importer(head: str) -> RunImporter | None:
    return next((one for one in FORMATS if one.recognises(head[:65536])), None)


def format_of(name: str) -> RunImporter:
    return next(one for one in FORMATS if one.name == name)


def read(text: str, **options: Any) -> ImportedRun:
    chosen = importer(text)
    assert chosen is not None
    return read_results(text, chosen, Options(**{"zone_s": 0, **options}))


def sample(name: str, **options: Any) -> tuple[ImportedRun, list[dict[str, Any]]]:
    """A sample's run, and its points."""
    run = read((SAMPLES / name).read_text(), **options)
    return run, [point.as_point() for point in run.points]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_what_is_taken_of_each_sample_is_as_it_was(path: Path) -> None:
    """Everything but histograms, which others look at; ASSAY_UPDATE_GOLDEN=1 writes them anew."""
    run = read(path.read_text(), roles={"b.dat": "log"})
    told = {
        "program": run.program, "version": run.version, "hostname": run.hostname, "volumes": run.volumes,
        "ignored": run.taken.ignored, "notes": run.taken.notes,
        "points": [without_histograms(point.as_point()) for point in run.points],
    }  # fmt: skip
    golden = GOLDEN / f"{path.name}.json"
    if os.environ.get("ASSAY_UPDATE_GOLDEN"):
        golden.write_text(json.dumps(told, indent=1) + "\n")
    assert json.loads(golden.read_text()) == json.loads(json.dumps(told))


def without_histograms(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: without_histograms(one) for key, one in value.items() if key != "histogram"}
    return [without_histograms(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_each_sample_is_of_one_format(path: Path) -> None:
    head = path.read_text()[:65536]
    assert [one.name for one in FORMATS if one.recognises(head)] == [path.name.partition("-")[0].partition(".")[0]]
    assert importer_of(head) is None


class TestFio:
    def test_percentiles_are_those_that_fio_computes_from_the_same_bins(self) -> None:
        _, (point,) = sample("fio-json-plus.json")
        fio = json.loads((SAMPLES / "fio-json-plus.json").read_text())["jobs"][0]["read"]
        latency = point["read"]["latency_ns"]
        assert latency["mean"] == fio["lat_ns"]["mean"]
        assert latency["max"] == fio["lat_ns"]["max"]
        for name, key in (("p50", "50.000000"), ("p90", "90.000000"), ("p99", "99.000000"), ("p99_9", "99.900000")):
            # The histogram holds fio's bins within half a bin of its own, 1/2,048.
            assert latency[name] == pytest.approx(fio["lat_ns"]["percentile"][key], rel=1 / 1024), name
        histogram = histogram_of(point["read"])
        assert histogram is not None
        assert histogram.count == fio["total_ios"] == point["read"]["count"]

    def test_without_bins_percentiles_are_those_given_and_no_histogram_is_made(self) -> None:
        run, (oltp, log) = sample("fio-two-groups.json")
        jobs = json.loads((SAMPLES / "fio-two-groups.json").read_text())["jobs"]
        assert oltp["write"]["latency_ns"]["p99"] == jobs[0]["write"]["clat_ns"]["percentile"]["99.000000"]
        assert oltp["write"]["latency_ns"]["mean"] == jobs[0]["write"]["lat_ns"]["mean"]
        assert oltp["write"]["histogram"] is None
        # Percentiles of reads and writes together cannot be told from those of each.
        assert set(oltp["total"]["latency_ns"]) == {"mean", "max"}
        assert any("percentiles are of completion latency" in note for note in run.taken.notes)
        assert (log["workload"]["sync"], log["load"]["queue_depth"]) == ("fdatasync", 1)
        # This fio counts no syncs of its asynchronous engines, and has their latencies.
        assert jobs[1]["sync"]["total_ios"] == 0
        assert log["flush"]["count"] == jobs[1]["sync"]["lat_ns"]["N"] > 0

    def test_points_are_alike_with_those_of_assay(self) -> None:
        """`assay compare` matches them by what was asked."""
        _, (oltp, log) = sample("fio-two-groups.json")
        asked = IoActivity(block_bytes=8192, read_share=0.7, queue_depth=8)
        assert oltp["workload"] == IoWorkloadSpec(activities=(asked,)).facts()
        assert oltp["load"] == load_facts(asked, 1)
        asked = IoActivity(block_bytes=65536, read_share=0, random_share=0, sync="fdatasync")
        assert log["workload"] == IoWorkloadSpec(activities=(asked,)).facts()

    def test_jobs_at_once_are_activities_and_jobs_alike_are_workers(self) -> None:
        _, (point,) = sample("fio-at-once.json")
        data, log = point["workload"]["activities"]
        assert (data["name"], data["load"]) == ("data", {"queue_depth": 4, "workers": 2, "outstanding": 8})
        assert (log["name"], log["load"]) == ("log", {"queue_depth": 1, "workers": 1, "outstanding": 1})
        jobs = json.loads((SAMPLES / "fio-at-once.json").read_text())["jobs"]
        assert point["activities"][0]["read"]["iops"] == pytest.approx(sum(job["read"]["iops"] for job in jobs[:2]))
        assert point["total"]["count"] == sum(job[side]["total_ios"] for job in jobs for side in ("read", "write"))
        merged = histogram_of(point["total"])
        assert merged is not None
        assert merged.count == point["total"]["count"]

    def test_the_last_of_several_documents_of_a_run_is_taken(self) -> None:
        run, (point,) = sample("fio-status.json")
        assert any("holds 3 documents of --status-interval" in note for note in run.taken.notes)
        last = (SAMPLES / "fio-status.json").read_text().split('"fio version"')[-1]
        assert point["read"]["count"] == int(re.findall(r'"total_ios" : (\d+)', last)[0])

    def test_errors_of_jobs_are_said(self) -> None:
        run, (point,) = sample("fio-error.json")
        assert point["errors"] == {"count": 1, "kinds": {"ENOSPC": 1}}
        assert (point["ended_by"], point["total"]) == ("failed", None)
        assert "full: fio reports 1 error, the first ENOSPC" in run.taken.notes

    def test_what_changes_the_load_keeps_points_apart(self) -> None:
        run, (point,) = sample("fio-unified.json")
        assert point["workload"]["other_options"] == {"rate_iops": "500"}
        assert point["workload"]["block_bytes"] == {"4096": 60.0, "65536": 40.0}
        # Reads and writes that fio does not tell apart are told as both.
        assert (point["read"], point["write"]) == (None, None)
        assert point["total"]["count"] > 0
        assert any("wrote no percentiles" in note for note in run.taken.notes)

    def test_jobs_that_were_summed_up_with_others_are_said(self) -> None:
        document = json.loads((SAMPLES / "fio-json-plus.json").read_text())
        document["jobs"][0]["job_runtime"] *= 3
        run = read(json.dumps(document))
        assert run.points[0].load["workers"] == 3
        assert any("sums up 3 jobs (group_reporting), though numjobs is 1" in note for note in run.taken.notes)

    def test_messages_around_the_document_are_left_out_and_said(self) -> None:
        text = (SAMPLES / "fio-json-plus.json").read_text()
        run = read(f"note: both iodepth >= 1 and synchronous I/O engine\n{text}\nfio: terminating on signal 2\n")
        assert len(run.points) == 1
        assert [note.partition(" with ")[0] for note in run.taken.notes] == ["begins", "ends"]

    def test_microseconds_of_older_versions_are_nanoseconds(self) -> None:
        document = json.loads((SAMPLES / "fio-two-groups.json").read_text())
        for job in document["jobs"]:
            for side in ("read", "write"):
                one = job[side]
                for name in ("slat", "clat", "lat"):
                    one[name] = one.pop(f"{name}_ns")
                    one[name] |= {key: one[name][key] / 1000 for key in ("min", "max", "mean")}
        run = read(json.dumps({**document, "fio version": "fio-2.21"}))
        _, (oltp, _) = sample("fio-two-groups.json")
        mean = run.points[0].as_point()["read"]["latency_ns"]["mean"]
        assert mean == pytest.approx(oltp["read"]["latency_ns"]["mean"])

    def test_times_are_those_that_it_says(self) -> None:
        document = json.loads((SAMPLES / "fio-json-plus.json").read_text())
        point = read(json.dumps(document)).points[0].as_point()
        assert point["measured_to_utc_ns"] == document["timestamp_ms"] * 10**6
        document["jobs"][0]["job_start"] = 1795460400_123
        point = read(json.dumps(document)).points[0].as_point()
        assert point["measured_from_utc_ns"] == 1795460400_123 * 10**6
        assert point["measured_to_utc_ns"] - point["measured_from_utc_ns"] == round(point["measured_s"] * 1e9)
        run, points = sample("fio-two-groups.json")
        assert {point["measured_from_utc_ns"] for point in points} == {None}
        assert any("does not say when each group of jobs ran" in note for note in run.taken.notes)


class TestDiskSpd:
    def test_targets_alike_are_volumes_and_others_activities(self) -> None:
        run, (alike, apart) = sample("diskspd.xml", roles={"log.ldf": "log"})
        assert (run.program, run.version, run.hostname) == ("DiskSpd", "2.2.0", "SQL1")
        assert alike["load"] == {"queue_depth": 8, "workers": 4, "outstanding": 32}
        assert [one["name"] for one in alike["volumes"]] == ["a.dat", "b.dat"]
        assert alike["read"]["iops"] == 2800.0
        assert alike["volumes"][0]["read"]["latency_ns"] == {"mean": pytest.approx(1e6)}
        assert [one["role"] for one in apart["activities"]] == ["data", "log"]
        assert set(apart["roles"]) == {"data", "log"}
        assert apart["activities"][1]["write"]["bytes_per_s"] == 2000 * 65536

    def test_percentiles_are_those_of_the_time_span(self) -> None:
        _, (point, _) = sample("diskspd.xml")
        assert point["read"]["latency_ns"] == {
            "mean": 1e6, "p50": 9e5, "p90": 1.8e6, "p95": 2e6, "p99": 3e6, "p99_9": 6e6, "p99_99": 9e6, "max": 1.5e7,
        }  # fmt: skip
        assert point["read"]["histogram"] is None
        assert point["telemetry"] == {"cpu_share": 0.25}

    def test_without_l_there_is_no_latency(self) -> None:
        text = re.sub(r"<Latency .*?</Latency>", "", (SAMPLES / "diskspd.xml").read_text(), flags=re.DOTALL)
        run = read(re.sub(r"<Average\w*Latency\w*>.*?</\w+>", "", text))
        assert run.points[0].as_point()["read"]["latency_ns"] == {}
        assert any("measured no latency (-L does)" in note for note in run.taken.notes)

    def test_a_time_span_that_was_interrupted_is_left_out_and_said(self) -> None:
        text = (SAMPLES / "diskspd.xml").read_text()
        at = text.rindex("<TestTimeSeconds>")
        end = text.rindex("</TimeSpan>")
        run = read(text[:at] + "<Error>The test was interrupted.</Error>" + text[end:])
        assert len(run.points) == 1
        assert "time span 2 is left out: The test was interrupted." in run.taken.notes


class TestIometer:
    def test_each_table_is_a_point_with_its_disks(self) -> None:
        run, (first, second) = sample("iometer.csv")
        assert (run.program, run.version) == ("Iometer", "1.1.0")
        assert second["load"] == {"queue_depth": 8, "workers": 2, "outstanding": 16}
        assert first["read"] == {
            "count": 21000, "iops": 700.0, "bytes_per_s": 700.0 * 8192, "latency_ns": {"mean": 1.5e6, "max": 7.5e7},
            "histogram": None,
        }  # fmt: skip
        assert [one["total"]["count"] for one in second["volumes"]] == [60000, 60000]
        assert second["errors"] == {"count": 2, "kinds": {"other": 2}}
        assert "table 2, 8K 70/30: Iometer reports 2 read errors" in run.taken.notes
        # The time stamp after a table is its end.
        assert first["measured_to_utc_ns"] == 1795464060 * 10**9
        assert first["measured_s"] == 30.0

    def test_version_2006_has_fewer_columns_and_the_same_values(self) -> None:
        run, points = sample("iometer-2006.csv")
        _, newer = sample("iometer.csv")
        assert run.version == "2006.07.27"
        assert points == newer

    def test_a_table_whose_workers_have_several_depths_is_left_out(self) -> None:
        text = (SAMPLES / "iometer.csv").read_text().replace(",0,0,8,12.5", ",0,0,-1,12.5")
        run = read(text)
        assert len(run.points) == 1
        assert run.taken.ignored["table 2, 8K 70/30"] == "its workers have several queue depths"

    def test_columns_are_found_by_name(self) -> None:
        lines = (SAMPLES / "iometer.csv").read_text().splitlines()
        moved = [
            ",".join([*line.split(",")[:3], "x", *line.split(",")[3:]])
            if "IOps" in line or line.startswith(("ALL", "MANAGER", "DISK", "WORKER"))
            else line
            for line in lines
        ]
        _, points = sample("iometer.csv")
        assert [point.as_point()["read"] for point in read("\n".join(moved)).points] == [one["read"] for one in points]


FIO = '{"fio version": "fio-3.33", "jobs": [%s]}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FIO % "", "has no jobs"),
        ('{"fio version": "fio-3.33"}', "has no jobs"),
        ('{"fio version": "fio-3.33", "client_stats": []}', "has no jobs"),
        (FIO % '{"jobname": "a"}', "has no job that read or wrote anything"),
        ('{"fio version": "fio-3.33", "jobs": [', "is damaged or cut off at line 1"),
        ('{"fio version": "fio-3.33", "jobs": ' + "[" * 200_000, "is nested too deeply|is damaged"),
        (FIO % '{"jobname": "a", "read": {"total_ios": 1e300, "runtime": 1}}', "1e.300 is no value of a measurement"),
        (FIO % f'{{"jobname": "a", "read": {{"total_ios": {"9" * 5000}, "runtime": 1}}}}', "is damaged"),
        (FIO % '{"jobname": "a", "read": {"total_ios": 5, "runtime": -1}}', "read: runtime: -1.0 is no value"),
        (FIO % '{"jobname": "a", "job options": {"rw": "randtrim"}}', "read or wrote anything: trims are left out"),
        (FIO % '{"job options": {"bs": "9g"}, "read": {"total_ios": 5, "runtime": 1}}', "no block size"),
        ("<Results><System/></Results>", "has no results with the profile"),
        ("<Results><System><a></System></Results>", "is damaged or cut off at line 1"),
        ("<Results><System>" + "<a>" * 100, "is nested too deeply"),
        ("<Results><System/><TimeSpan/><Profile><TimeSpans><TimeSpan/></TimeSpans></Profile></Results>",
         "does not say how long it took"),
        ("'Test Type,Test Description\n0,x\n'Results\na,b\n", "without the column Target Type"),
        ("'Test Type,Test Description\n0,x\n", "has no results"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_in_a_line(text: str, message: str) -> None:
    with pytest.raises(NotTaken, match=message) as error:
        read(text)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000


def test_a_document_type_is_refused_before_its_entities_unfold() -> None:
    bomb = "<!DOCTYPE Results [" + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "lol"}">' for n in range(30)
    ) + "]>"  # fmt: skip
    with pytest.raises(NotTaken, match="declares a document type"):
        read_results(f"{bomb}<Results><System>&a29;</System></Results>", format_of("diskspd"), Options())


@pytest.mark.parametrize(
    "text", ["{}", '{"jobs": []}', "<html></html>", "<Profile/>", "a,b\n1,2\n", "[1, 2]", "{", "<"]
)
def test_other_documents_are_of_no_format(text: str) -> None:
    assert importer(text) is None


# Properties

LATENCIES = st.lists(st.tuples(st.integers(1, 10**11), st.integers(1, 10**6)), min_size=1, max_size=50)


@settings(max_examples=200, deadline=None)
@given(LATENCIES)
def test_a_histogram_of_fios_bins_is_as_near_as_they_are(latencies: list[tuple[int, int]]) -> None:
    bins: dict[int, int] = {}
    exact = Histogram()
    for value, count in latencies:
        # fio's last bins end at 17 seconds.
        value = min(value, 10**10)
        bins[fio_bucket_ns(value)] = bins.get(fio_bucket_ns(value), 0) + count
        exact.record(value, count)
    found = histogram_of_bins(bins.items(), sum(bins.values()))
    assert found is not None
    assert found.count == exact.count
    for share in PERCENTILES.values():
        # Half a bin of fio's is 1/128 of its value, half a bin of ours 1/2,048, and values are rounded to whole ns.
        assert found.percentile(100 * share) == pytest.approx(exact.percentile(100 * share), rel=1 / 100, abs=2)
    assert histogram_of_bins(bins.items(), sum(bins.values()) + 1) is None


@given(st.lists(st.tuples(st.integers(1, 10**9), st.floats(0, 1e12)), min_size=1, max_size=9))
def test_what_runs_together_is_the_sum_and_its_mean_lies_between(jobs: list[tuple[int, float]]) -> None:
    found = together(
        [Side(count=count, iops=float(count), bytes_per_s=1.0, latency_ns={"mean": mean}) for count, mean in jobs]
    )
    assert found is not None
    assert found.count == sum(count for count, _ in jobs)
    assert found.histogram is None
    means = [mean for _, mean in jobs]
    assert min(means) * (1 - 1e-9) <= found.latency_ns["mean"] <= max(means) * (1 + 1e-9)


# Mutations

PIECES = (
    b'"', b",", b"\n", b"[", b"{", b"}", b"]", b"9" * 400, b"\\", b"-", b"1e999", b"\xff", b"\0", b"null", b"NaN", b"<",
    b">", b"</", b"&amp;", b"&x;", b"<!DOCTYPE a [", b"0", b"'", b"true", b"1e17", b"0.5",
)  # fmt: skip


@pytest.mark.slow(reason="tests/fuzz/formats.py reads more")
def test_millions_of_bytes_of_mutated_files_of_each_format_are_read_or_refused() -> None:
    """Ten million of each are tried by `tests/fuzz/formats.py`."""
    for name in (one.name for one in FORMATS):
        originals = [path.read_bytes() for path in ALL if re.match(rf"{name}[-.]", path.name)]
        tried = taken = seed = 0
        while tried < 4_000_000:
            dice = random.Random(f"{name} {seed}")
            seed += 1
            content = bytearray(dice.choice(originals))
            for _ in range(dice.choice((1, 1, 2, 8))):
                at = dice.randrange(len(content))
                piece = dice.choice((*PIECES, bytes([dice.randrange(256)]), b""))
                content[at : at + dice.choice((0, 1, 1, 2, 50))] = piece
            tried += len(content)
            taken += is_taken(bytes(content).decode("utf-8", errors="replace"), f"{name} {seed - 1}")
        assert taken > 10, name


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_numbers_that_nothing_measures_are_refused_or_left_out() -> None:
    numbers = (
        "1e308",
        "-1",
        "0",
        "9" * 30,
        "9" * 5000,
        "1e400",
        "NaN",
        "Infinity",
        "1e-320",
        "null",
        '"x"',
        "18446744073709551616",
    )
    taken = 0
    for seed in range(1500):
        dice = random.Random(seed)
        text = dice.choice(ALL).read_text()
        spots = list(re.finditer(r"(?<![\w\"])\d+(\.\d+)?", text))
        chosen = dice.sample(spots, min(len(spots), dice.choice((1, 1, 2, 20))))
        for spot in sorted(chosen, key=lambda spot: -spot.start()):
            text = text[: spot.start()] + dice.choice(numbers) + text[spot.end() :]
        taken += is_taken(text, str(seed))
    assert taken > 150


def is_taken(text: str, seed: str) -> bool:
    """Whether a file is read; its points are as a run folder is read, or it is refused in one line."""
    chosen = importer(text)
    if chosen is None:
        return False
    try:
        run = read_results(text, chosen, Options(zone_s=0))
        json.dumps([point.as_point() for point in run.points], allow_nan=False)
    except NotTaken as error:
        refused = str(error)
        if "\n" in refused or len(refused) > 1100:
            pytest.fail(f"seed {seed}: more than a line: {refused}")
        return False
    except BaseException:
        print(f"seed {seed}: {chosen.name}")
        raise
    return True
