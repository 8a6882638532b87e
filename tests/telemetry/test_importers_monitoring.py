"""What monitoring systems export: Prometheus, CloudWatch, Azure Monitor. Values by hand, in base units."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.run.imports import import_files
from assay.telemetry.importers import json_documents
from assay.telemetry.importers.importer import NotTaken, Options
from foreign_files import taken, values, written

SAMPLES = Path(__file__).parent / "imported"


def answer(*series: dict[str, Any]) -> str:
    """An answer of Prometheus."""
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": list(series)}})


def counted(name: str, amounts: Sequence[float | str], start_s: float = 1795460400, **labels: str) -> dict[str, Any]:
    """A series, a sample every 15 s."""
    labels = {"instance": "db1:9100", "device": "sda", **labels}
    points = [[start_s + 15 * n, str(amount)] for n, amount in enumerate(amounts)]
    return {"metric": {"__name__": name, **labels}, "values": points}


READS, READ_TIME = "node_disk_reads_completed_total", "node_disk_read_time_seconds_total"


class TestPrometheus:
    def test_counters_become_what_they_counted_and_resets_are_seen(self) -> None:
        found, rows = taken(SAMPLES / "prometheus.json")
        assert (found.format, found.hosts) == ("prometheus", ["db1"])
        t_ns = [1795460400_500_000_000 + 15 * 10**9 * n for n in range(5)]
        assert rows["db1", "sda", "read_ios_count"] == [(t_ns[1], 1500.0), (t_ns[2], 3000.0), (t_ns[4], 3000.0)]
        assert values(rows, "db1", "sda", "read_latency_mean_ns") == [20e6] * 3
        assert values(rows, "db1", "sda", "write_ios_count") == [0.0, 150.0, 150.0]
        assert values(rows, "db1", "sda", "write_latency_mean_ns") == pytest.approx([10e6] * 2)
        assert values(rows, "db1", "sda", "read_bytes") == [12288e3, 24576e3, 24576e3]
        assert values(rows, "db1", "sda", "busy_share") == pytest.approx([0.8, 1.0, 1.0])
        assert values(rows, "db1", "sda", "queue_mean_count") == pytest.approx([2.0, 4.1, 4.1])
        assert values(rows, "db1", "sda", "queue_now_count") == [0.0, 3.0, 4.0, 5.0]
        assert f"{READS} after a reset" in found.ignored
        assert f"{READ_TIME} of the first sample" in found.ignored

    def test_processors_are_shares_and_their_mean(self) -> None:
        _, rows = taken(SAMPLES / "prometheus.json")
        assert values(rows, "db1", "cpu/0", "iowait_share") == pytest.approx([0.4] * 4)
        assert values(rows, "db1", "cpu/0", "busy_share") == pytest.approx([0.2] * 4)
        assert values(rows, "db1", "cpu", "iowait_share") == pytest.approx([0.2] * 4)
        assert values(rows, "db1", "cpu", "busy_share") == pytest.approx([0.1] * 4)
        assert values(rows, "db1", "psi-io", "some_share") == pytest.approx([0.4] * 4)
        assert values(rows, "db1", "memory", "available_bytes")[:3] == [2**30, 2**30, 2**29]

    def test_a_processor_that_lacks_a_sample_does_not_stand_for_all(self, tmp_path: Path) -> None:
        def idle(cpu: str, share: float) -> dict[str, Any]:
            return counted("node_cpu_seconds_total", [15 * share * n for n in range(6)], cpu=cpu, mode="idle")

        series = [idle("0", 0.0), idle("1", 1.0), idle("2", 0.5)]
        del series[0]["values"][2]
        _, rows = taken(written(tmp_path, answer(*series)))
        # Without the sample two of the intervals are one of 30 s, which the others do not have.
        assert values(rows, "db1", "cpu", "idle_share") == pytest.approx([0.5, 0.75, 0.75, 0.5, 0.5])
        assert values(rows, "db1", "cpu", "busy_share") == pytest.approx([0.5, 0.25, 0.25, 0.5, 0.5])

    def test_times_that_nothing_took_are_no_latency_of_zero(self) -> None:
        found, rows = taken(SAMPLES / "prometheus.json")
        assert values(rows, "db1", "shop", "page_requests_count") == [1500.0] * 4
        assert values(rows, "db1", "shop", "page_reads_count") == [500.0] * 4
        assert ("db1", "shop", "read_latency_mean_ns") not in rows
        assert "nothing was timed" in found.ignored["pg_stat_database_blk_read_time"]

    def test_expressions_without_a_name_are_left_out_or_refused(self, tmp_path: Path) -> None:
        found, _ = taken(SAMPLES / "prometheus.json")
        assert "cannot be known" in found.ignored['an expression with {device="sda", instance="db1:9100"}']
        rated = counted("x", [0.5, 0.7])
        del rated["metric"]["__name__"]
        with pytest.raises(NotTaken, match=r"an expression has no name.*node_disk_reads_completed_total"):
            taken(written(tmp_path, answer(rated)))

    def test_a_time_without_its_count_is_left_out_by_name(self, tmp_path: Path) -> None:
        text = answer(counted(READ_TIME, [1, 2, 3]), counted("node_disk_io_now", [0, 1, 2]))
        found, rows = taken(written(tmp_path, text))
        assert f"only together with {READS}" in found.ignored[READ_TIME]
        # No mean of the queue was asked for, so that of the moment stands for it.
        assert values(rows, "db1", "sda", "queue_mean_count") == [0.0, 1.0, 2.0]

    def test_answers_in_one_file_or_in_several_are_one(self, tmp_path: Path) -> None:
        parts = [answer(counted(READS, [0, 300, 600])), answer(counted(READ_TIME, [0, 3, 9]))]
        later = answer(counted(READS, [600, 900], start_s=1795460430))
        _, rows = taken(written(tmp_path, "\n".join([*parts, later])))
        assert values(rows, "db1", "sda", "read_ios_count") == [300.0] * 3
        assert values(rows, "db1", "sda", "read_latency_mean_ns") == [10e6, 20e6]
        files = [written(tmp_path, text, f"{n}.json") for n, text in enumerate(parts)]
        found = import_files(files, into=tmp_path / "results", options=Options(), command=[])
        assert found.recording is not None
        assert found.recording["files"][0]["counters"][READ_TIME] == "block read_latency_mean_ns"
        with pytest.raises(NotTaken, match="two values of node_disk_reads_completed_total at 2026-11-23 19:00:30 UTC"):
            taken(written(tmp_path, parts[0] + answer(counted(READS, [601], start_s=1795460430))))

    def test_many_answers_share_what_a_recording_keeps(self, tmp_path: Path) -> None:
        files = [
            written(tmp_path, answer(counted(f"node_disk_{name}_total", range(101))), f"{name}.json")
            for name in ("reads_completed", "writes_completed", "read_bytes", "written_bytes", "reads_merged")
        ]
        options = Options(values_max=600)
        found = import_files(files, into=tmp_path / "results", options=options, command=[])
        assert found.recording is not None
        assert found.recording["rows"] == 500

    def test_two_jobs_that_ask_one_exporter_are_an_error(self, tmp_path: Path) -> None:
        text = answer(counted(READS, [0, 300], job="a"), counted(READS, [0, 301], job="b"))
        with pytest.raises(NotTaken, match=r'two series .* of sda on db1: .*job="a".* and .*job="b"'):
            taken(written(tmp_path, text))

    def test_windows_volumes_count_where_no_disk_was_asked_for(self, tmp_path: Path) -> None:
        def disk(kind: str, label: str, name: str) -> list[dict[str, Any]]:
            prefix, labels = f"windows_{kind}_disk_", {"instance": "SQL1:9182", label: name}
            return [
                counted(f"{prefix}reads_total", [0, 150, 300], **labels),
                counted(f"{prefix}read_latency_seconds_total", [0, 3, 6], **labels),
                counted(f"{prefix}idle_seconds_total", [0, 3, 6], **labels),
            ]

        _, rows = taken(written(tmp_path, answer(*disk("logical", "volume", "D:"))))
        assert values(rows, "SQL1", "D:", "read_latency_mean_ns") == [20e6, 20e6]
        assert values(rows, "SQL1", "D:", "busy_share") == pytest.approx([0.8, 0.8])
        both = answer(*disk("logical", "volume", "D:"), *disk("physical", "disk", "1"))
        found, _ = taken(written(tmp_path, both))
        assert found.counters["windows_logical_disk_reads_total"] == "volume read_ios_count"
        assert found.counters["windows_physical_disk_reads_total"] == "block read_ios_count"

    def test_samples_that_are_missing_leave_a_gauge_without_values(self, tmp_path: Path) -> None:
        series = counted("node_disk_io_now", [1, 2, 3, 4])
        series["values"][3][0] += 600
        _, rows = taken(written(tmp_path, answer(series, counted(READS, [0, 15, 30, 45, 60]))))
        assert len(rows["db1", "sda", "queue_mean_count"]) == 4

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"status":"error","errorType":"bad_data","error":"parse error"}', "an error of Prometheus: parse error"),
            ('{"status":"success","data":{"resultType":"vector","result":[]}}', "a vector, .*api/v1/query_range"),
            ('{"status":"success","data":{"resultType":"matrix","result":[{"met', "no whole JSON document"),
            ('{"status":"success","data":{"resultType":"matrix","result":[]}}', "holds no series that is known"),
        ],
    )
    def test_what_is_no_answer_to_a_range_query_is_refused(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(NotTaken, match=message):
            taken(written(tmp_path, text))

    def test_a_file_that_is_too_long_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(json_documents, "LETTERS_MAX", 2**16)
        with pytest.raises(NotTaken, match="ask for fewer metrics, or for a longer step"):
            taken(written(tmp_path, answer(counted(READS, range(10_000)))))


def at(minutes: float) -> int:
    """UTC nanoseconds so long after the beginning of the samples."""
    return (1795460400 + round(minutes * 60)) * 10**9


class TestCloudWatch:
    def test_sums_are_counts_of_their_period_which_ends_after_its_time(self) -> None:
        found, rows = taken(SAMPLES / "cloudwatch-statistics.json")
        assert (found.format, found.hosts) == ("cloudwatch", ["imported"])
        reads = [(at(5), 30000.0), (at(10), 60000.0), (at(15), 0.0), (at(20), 30000.0)]
        assert rows["imported", "volume", "read_ios_count"] == reads
        # Points stand in any order; 600 s of 30,000 reads.
        latency = [(at(5), 20e6), (at(10), 25e6), (at(20), 1e6)]
        assert rows["imported", "volume", "read_latency_mean_ns"] == latency
        assert values(rows, "imported", "volume", "queue_mean_count") == [2.0, 5.0, 0.0, 0.1]
        assert values(rows, "imported", "volume", "busy_share") == pytest.approx([0.9, 1.0, 0.0, 0.1])
        assert values(rows, "imported", "volume", "burst_balance_share") == pytest.approx([0.12, 0.0, 0.0, 0.04])
        assert found.ignored["VolumeReadOps (average)"] == "its sum says it"
        assert found.ignored["VolumeQueueLength (maximum)"] == "its average says it"
        assert "which volume or instance" in found.notes[0]

    def test_labels_say_volume_and_statistic_or_what_needs_them_is_left_out(self) -> None:
        found, rows = taken(SAMPLES / "cloudwatch-data.json")
        assert rows["imported", "vol-0a1b2c", "write_ios_count"] == [(at(1), 6000.0), (at(2), 12000.0), (at(3), 0.0)]
        assert values(rows, "imported", "vol-0a1b2c", "write_latency_mean_ns") == [2e6, 5e6]
        # Time over I/Os is the same for sums and for means; how many I/Os there were is not known.
        assert values(rows, "imported", "vol-0d4e5f", "write_latency_mean_ns") == [5e6] * 3
        assert ("imported", "vol-0d4e5f", "write_ios_count") not in rows
        assert "only the sum counts: " in found.ignored["VolumeWriteOps"]
        assert "${PROP('Stat')}" in found.ignored["VolumeWriteOps"]
        assert values(rows, "orders-db", "volume", "read_ios_count") == [30000.0, 31230.0, 28800.0]
        assert values(rows, "orders-db", "volume", "read_latency_mean_ns") == pytest.approx([12.3e6, 25e6, 2e6])
        assert values(rows, "orders-db", "cpu", "busy_share") == pytest.approx([0.35, 0.4, 0.2])
        assert found.ignored["latency of orders"] == "no use is made of it"

    def test_one_value_does_not_say_how_long_its_period_is(self, tmp_path: Path) -> None:
        point = {"Timestamp": "2026-11-23T19:00:00Z", "Sum": 300.0, "Unit": "Count"}
        text = json.dumps({"Label": "VolumeReadOps", "Datapoints": [point]})
        with pytest.raises(NotTaken, match="holds no sample that can be used"):
            taken(written(tmp_path, text))
        _, rows = taken(written(tmp_path, text), interval_ns=60 * 10**9)
        assert rows["imported", "volume", "read_ios_count"] == [(at(1), 300.0)]

    def test_answers_of_one_metric_each_are_one_recording(self, tmp_path: Path) -> None:
        documents = (SAMPLES / "cloudwatch-statistics.json").read_text().replace("}\n{", "}\0{").split("\0")
        files = [written(tmp_path, text, f"{n}.json") for n, text in enumerate(documents)]
        found = import_files(files, into=tmp_path / "results", options=Options(), command=[])
        assert found.recording is not None
        assert found.recording["files"][0]["counters"]["VolumeTotalReadTime"] == "block read_latency_mean_ns"

    def test_what_is_not_known_is_refused_with_what_is(self, tmp_path: Path) -> None:
        text = json.dumps({"Label": "Duration", "Datapoints": [{"Timestamp": 1795460400, "Average": 1}]})
        with pytest.raises(NotTaken, match="no metric that is known: Duration; it knows those of EBS volumes"):
            taken(written(tmp_path, text))


class TestAzureMonitor:
    def test_metrics_of_a_machine_and_its_disks(self) -> None:
        found, rows = taken(SAMPLES / "azure-monitor.json")
        assert (found.format, found.hosts) == ("azure-monitor", ["sql1"])
        assert rows["sql1", "data disk 0", "read_ios_count"] == [(at(1), 30000.0), (at(2), 28830.0)]
        assert values(rows, "sql1", "data disk 0", "read_bytes") == [4096000.0 * 60, 3936256.0 * 60]
        assert values(rows, "sql1", "data disk 0", "iops_consumed_share") == pytest.approx([1.0, 0.96, 0.12])
        assert values(rows, "sql1", "data disk 0", "latency_mean_ns") == pytest.approx([48e6, 45.5e6, 2e6])
        assert values(rows, "sql1", "os disk", "burst_balance_share") == pytest.approx([0.9, 0.0, 0.0])
        assert values(rows, "sql1", "cpu", "busy_share") == pytest.approx([0.12, 0.15, 0.08])
        assert values(rows, "sql1", "network", "in_bytes") == [6e6, 1.2e6, 0.0]
        assert found.ignored["VmAvailabilityMetric"] == "no use is made of it"
        assert found.ignored["Data Disk Read Operations/Sec without a value"] == "nothing was recorded there"

    def test_a_managed_disk_and_a_database_are_what_they_are_of(self, tmp_path: Path) -> None:
        def metric(resource: str, name: str) -> dict[str, Any]:
            points = [{"timeStamp": f"2026-11-23T19:0{n}:00Z", "average": 100.0} for n in range(2)]
            return {
                "id": f"/subscriptions/s/resourceGroups/g/providers/{resource}/providers/Microsoft.Insights/metrics/x",
                "name": {"value": name}, "timeseries": [{"metadatavalues": [], "data": points}],
            }  # fmt: skip

        metrics = [
            metric("Microsoft.Compute/disks/sql1-data", "Composite Disk Read Operations/sec"),
            metric("Microsoft.DBforPostgreSQL/flexibleServers/pg1", "disk_iops_consumed_percentage"),
        ]
        _, rows = taken(written(tmp_path, json.dumps({"interval": "PT5M", "value": metrics})), host="sql1")
        assert rows["sql1", "sql1-data", "read_ios_count"] == [(at(5), 30000.0), (at(6), 30000.0)]
        assert values(rows, "pg1", "storage", "iops_consumed_share") == [1.0, 1.0]
