"""Diagnosis: one clock, signals that must agree, causes found on models and in files, healthy ones called healthy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.base.errors import UsageError
from assay.insight.diagnosis.causes.registry import CAUSES
from assay.insight.diagnosis.diagnose import Diagnosis, diagnose
from assay.insight.diagnosis.inputs import parse_tiers, sources_of
from assay.insight.diagnosis.observed import SAMPLES_MIN, Observations, ObservedSource, observe, unrecorded
from assay.insight.diagnosis.signals import CauseSignals, Threshold, worst_share
from assay.telemetry.importers.importer import Options
from assay_command import Bench
from series_rows import series_of
from series_rows import series_rows as rows

SECOND = 10**9
SAMPLES = Path(__file__).parents[1] / "telemetry" / "imported"

NAMES = {
    "drive-errors", "drive-throttles",
    "device-stands-still", "reads-one-by-one", "slow-writes", "throughput-limit", "unrecorded-storage", "single-core",
    "host-cpu", "guest-cpu", "memory-pressure", "throttled-queue", "lost-path", "slow-path", "network-loss",
    "log-flush", "cache-too-small", "lock-wait", "latch-wait", "checkpoint-storm", "file-growth", "backup-or-vacuum",
    "noisy-neighbour", "burst-decline", "degraded-raid", "full-cache", "slow-disk", "split-io", "generator-saturated",
}  # fmt: skip


def of(*parts: list[dict[str, Any]], manifest: dict[str, Any] | None = None, points: Sequence[Any] = ()) -> Diagnosis:
    frame = series_of([row for part in parts for row in part])
    return diagnose([ObservedSource(name="made", manifest=manifest or {}, points=points, series=frame)])


def test_every_cause_has_the_name_that_scripts_know() -> None:
    assert {cause.name for cause in CAUSES} == NAMES


def test_deltas_become_rates_and_slow_sources_cover_their_interval() -> None:
    frame = series_of(
        [
            *rows("block", "sda", "read_ios_count", [10.0, 20.0, 30.0, 40.0], kind="delta"),
            *rows("process", "fio", "read_bytes", [400.0], kind="delta", step_s=4),
        ]
    )
    observed = observe([ObservedSource(name="made", manifest={}, series=frame)])

    tracks = {track.metric: track.values.tolist() for track in observed.tracks}
    assert tracks == {"read_ios_count": [10.0, 20.0, 30.0, 40.0], "read_bytes": [100.0] * 4}


def test_only_measured_time_of_a_run_counts() -> None:
    busy = [1.0] * 10 + [0.1] * 10
    point = {"measured_from_utc_ns": 10 * SECOND, "measured_to_utc_ns": 20 * SECOND}
    frame = series_of(rows("host", "cpu", "user_share", busy))
    observed = observe([ObservedSource(name="made", manifest={}, points=[point], series=frame)])

    (track,) = observed.tracks
    assert int(observed.counted.sum()) == 10
    assert np.nanmax(track.values) == pytest.approx(0.1)


def test_a_gap_stays_a_gap() -> None:
    frame = series_of(rows("host", "cpu", "user_share", [0.5, None, None, 0.5]))
    observed = observe([ObservedSource(name="made", manifest={}, series=frame)])

    assert np.isfinite(observed.tracks[0].values).tolist() == [True, False, False, True]


def test_one_strong_signal_is_likely_and_says_what_would_confirm_it() -> None:
    found = of(rows("host", "cpu", "user_share", [0.95] * 30))

    (cause,) = found.record()["causes"]
    assert cause["cause"] == "host-cpu"
    assert cause["confidence"] == pytest.approx(0.25)
    assert "run queue" in cause["confirm"]
    assert [cell.state for cell in found.cells if cell.resource == "cpu" and cell.host == "db1"] == ["hot"]


def test_two_independent_signals_are_one() -> None:
    found = of(rows("host", "cpu", "user_share", [0.95] * 30), rows("host", "psi-cpu", "some_share", [0.5] * 30))

    assert found.first == "host-cpu"
    (cause,) = found.record()["causes"]
    assert cause["confidence"] == pytest.approx(0.5)
    assert cause["minutes"] == pytest.approx(0.5)
    assert all(one["source"] for one in cause["evidence"])
    assert cause["against"]
    assert cause["advice"]


@pytest.mark.parametrize(("own_share", "cause"), [(0.02, "host-cpu"), (0.97, "generator-saturated")])
def test_what_fills_the_processors_beside_a_generator_is_told_from_the_generator(own_share: float, cause: str) -> None:
    generator = {"saturated": True, "reason": None, "fullest_worker_share": own_share, "schedule_lag_p99_ns": 5e6}
    point = {"measured_from_utc_ns": 0, "measured_to_utc_ns": 30 * SECOND, "generator": generator}

    found = of(
        rows("host", "cpu", "user_share", [0.98] * 30),
        rows("host", "psi-cpu", "some_share", [0.6] * 30),
        rows("block", "vda", "queue_mean_count", [0.1] * 30, tier="storage"),
        points=[point],
    )

    assert found.first == cause


def of_server(metric: str, values: Sequence[float | None], *, kind: str = "delta") -> list[dict[str, Any]]:
    return rows("postgresql", "shop", metric, values, kind=kind, tier="database")


@pytest.mark.parametrize(("every_s", "cause"), [(5, "checkpoint-storm"), (60, "not-judged")])
def test_a_log_of_whole_pages_is_a_storm_where_checkpoints_come_often(every_s: int, cause: str) -> None:
    pages, log = [400.0] * 120, [4e6] * 120

    found = of(
        of_server("checkpoints_count", [float(second % every_s == 0) for second in range(120)]),
        of_server("log_full_pages_count", pages),
        of_server("log_bytes", log),
    )

    assert found.first == cause


def test_backups_that_are_seen_every_other_second_ran_meanwhile() -> None:
    seen = [0.0] * 30 + [1.0, 0.0] * 15
    slow = [100e3] * 30 + [900e3] * 30

    found = of(
        of_server("backups_running_count", seen, kind="gauge"), of_server("read_latency_mean_ns", slow, kind="gauge")
    )

    assert found.first == "backup-or-vacuum"


def test_segments_that_come_twice_are_lost_on_the_way_here() -> None:
    def net(metric: str, value: float, kind: str = "delta") -> list[dict[str, Any]]:
        return rows("net", "tcp", metric, [value] * 30, kind=kind)

    lost = [*net("retransmit_share", 0.02, "gauge"), *net("segments_out_count", 2000), *net("segments_in_count", 2000)]

    assert of(lost, net("duplicates_in_count", 1)).record()["causes"][0]["confidence"] == pytest.approx(0.25)
    assert of(lost, net("duplicates_in_count", 20)).record()["causes"][0]["confidence"] == pytest.approx(0.5)


def test_signals_at_different_times_do_not_agree() -> None:
    found = of(
        rows("host", "cpu", "user_share", [0.95] * 30 + [0.1] * 30),
        rows("host", "psi-cpu", "some_share", [0.0] * 30 + [0.5] * 30),
    )

    # Busy processors alone are likely; that tasks wait at other times adds nothing.
    assert [cause.confidence for cause in found.causes] == [pytest.approx(0.125)]


def test_too_few_samples_give_no_verdict() -> None:
    few = SAMPLES_MIN - 1
    found = of(rows("host", "cpu", "user_share", [0.95] * few), rows("host", "psi-cpu", "some_share", [0.5] * few))

    assert found.first == "not-judged"
    assert not found.is_enough
    assert found.record()["causes"][0]["confidence"] == 0.0


def test_ten_bad_minutes_of_a_day_are_found() -> None:
    busy = [0.1] * 1000
    waits = [0.0] * 1000
    busy[400:440], waits[400:440] = [0.97] * 40, [0.6] * 40
    found = of(
        rows("host", "cpu", "user_share", busy, step_s=15), rows("host", "psi-cpu", "some_share", waits, step_s=15)
    )

    assert found.first == "host-cpu"
    assert found.record()["causes"][0]["minutes"] == pytest.approx(10.0)


def test_what_another_cause_explains_stands_after_it() -> None:
    count = 30
    found = of(
        rows("postgresql", "shop", "waits_lock_share", [0.8] * count, tier="database"),
        rows("postgresql", "shop", "sessions_active_count", [12.0] * count, tier="database"),
        rows("postgresql", "shop/orders", "lock_waiting_count", [10.0] * count, tier="database"),
        rows("block", "sda", "queue_mean_count", [0.1] * count, tier="storage"),
    )

    assert found.first == "lock-wait"
    texts = " ".join(one["text"] for one in found.record()["causes"][0]["evidence"])
    assert "shop/orders" in texts


def test_two_recordings_without_common_time_are_named() -> None:
    first = series_of(rows("host", "cpu", "user_share", [0.1] * 10))
    second = replace(first, t_ns=first.t_ns + 3600 * SECOND)
    sources = [ObservedSource(name=name, manifest={}, series=frame) for name, frame in (("a", first), ("b", second))]

    assert "a and b share no time" in diagnose(sources).notices[0]


def test_tiers_are_those_that_are_given() -> None:
    assert parse_tiers(["web=web1,web2"]) == {"web1": "web", "web2": "web"}
    for wrong in (["web"], ["=a"], ["web="], ["web=a", "app=a"]):
        with pytest.raises(UsageError):
            parse_tiers(wrong)
    frame = series_of(rows("host", "cpu", "user_share", [0.1] * 10, host="web1"))
    found = diagnose([ObservedSource(name="made", manifest={}, series=frame)], {"web1": "web"})
    assert ("web", "web1") in {(cell.tier, cell.host) for cell in found.cells}


def of_array(missing: Sequence[float], reads: Sequence[float], *events: dict[str, Any], state: str) -> Diagnosis:
    """A run on a served array of four disks, the second of which reads what is said."""

    def disk(number: int, values: Sequence[float]) -> list[dict[str, Any]]:
        return [
            row
            for side in ("read", "write")
            for row in rows("array", f"member0/disk{number}", f"{side}_ios_count", values, kind="delta", tier="storage")
        ]

    seconds = len(missing)
    window = {"from_utc_ns": 0, "to_utc_ns": seconds * SECOND, "state": state, "events": events}
    point = {"measured_from_utc_ns": 0, "measured_to_utc_ns": seconds * SECOND, "served": [window]}
    return of(
        rows("array", "member0", "degraded_count", missing, tier="storage"),
        rows("array", "member0", "rebuilt_bytes", [0.0] * seconds, kind="delta", tier="storage"),
        *(disk(number, [50.0] * seconds) for number in (0, 2, 3)),
        disk(1, reads),
        points=[point],
    )


PULLED = {"t_ns": 10 * SECOND, "what": "member0/disk1: pulled", "state": "degraded"}


def test_a_disk_that_is_pulled_from_a_served_array_is_named_with_its_time() -> None:
    found = of_array([0.0] * 10 + [1.0] * 20, [50.0] * 10 + [0.0] * 20, PULLED, state="healthy")

    (cause,) = found.record()["causes"]
    assert cause["cause"] == "degraded-raid"
    assert (cause["from_utc_ns"], cause["to_utc_ns"]) == (10 * SECOND, 30 * SECOND)
    assert [one["of"] for one in cause["evidence"]] == ["state", "log", "silent"]
    assert cause["advice"].startswith("Replace member0/disk1 ")
    texts = [one["text"] for one in cause["evidence"]]
    assert "between 1970-01-01 00:00:10 UTC and 1970-01-01 00:00:30 UTC" in texts[0]
    assert texts[1] == "member0: the array's log says: member0/disk1: pulled (1970-01-01 00:00:10 UTC)"


def test_of_two_served_arrays_the_one_that_lacks_a_disk_is_named() -> None:
    events = {"/srv/data": [PULLED], "/srv/log": []}
    served = [
        {"folder": folder, "from_utc_ns": 0, "to_utc_ns": 30 * SECOND, "state": "healthy", "events": own}
        for folder, own in events.items()
    ]
    point = {"measured_from_utc_ns": 0, "measured_to_utc_ns": 30 * SECOND, "served": served}
    found = of(
        rows("array", "data/member0", "degraded_count", [0.0] * 10 + [1.0] * 20, tier="storage"),
        rows("array", "log/member0", "degraded_count", [0.0] * 30, tier="storage"),
        points=[point],
    )

    (cause,) = found.record()["causes"]
    assert cause["advice"].startswith("Replace data/member0/disk1 ")
    texts = [one["text"] for one in cause["evidence"]]
    assert texts[1] == "data/member0: the array's log says: data/member0/disk1: pulled (1970-01-01 00:00:10 UTC)"


def test_points_on_arrays_in_folders_of_their_own_have_one_array_each() -> None:
    points = [
        {
            "measured_from_utc_ns": from_s * SECOND,
            "measured_to_utc_ns": (from_s + 90) * SECOND,
            "served": [{"folder": folder, "from_utc_ns": from_s * SECOND, "to_utc_ns": (from_s + 90) * SECOND,
                        "state": "healthy", "events": events}],
        }
        for folder, from_s, events in (("/srv/raid=10", 0, [PULLED]), ("/srv/raid=50", 90, []))
    ]  # fmt: skip
    missing = rows("array", "member0", "degraded_count", [0.0] * 10 + [1.0] * 80 + [0.0] * 90, tier="storage")
    (cause,) = of(missing, points=points).record()["causes"]
    assert cause["advice"].startswith("Replace member0/disk1 ")
    assert [one["of"] for one in cause["evidence"]] == ["state", "log"]


def test_a_served_array_that_lacked_a_disk_before_the_run_is_found_and_the_disk_is_not_guessed() -> None:
    found = of_array([1.0] * 30, [0.0] * 30, state="degraded")

    (cause,) = found.record()["causes"]
    assert cause["cause"] == "degraded-raid"
    assert [one["of"] for one in cause["evidence"]] == ["state", "log"]
    assert cause["advice"].startswith("Replace the disk of member0 ")


def test_half_a_minute_of_ten_without_a_disk_is_told_with_little_confidence() -> None:
    back = {"t_ns": 50 * SECOND, "what": "member0/disk1: rebuilt", "state": "healthy"}
    missing = [0.0] * 10 + [1.0] * 40 + [0.0] * 550
    found = of_array(missing, [50.0] * 10 + [0.0] * 40 + [50.0] * 550, PULLED, back, state="healthy")

    (cause,) = found.record()["causes"]
    assert cause["confidence"] == pytest.approx(0.75 * 40 / 600, abs=1e-3)
    assert "member0/disk1: rebuilt (1970-01-01 00:00:50 UTC)" in cause["evidence"][1]["text"]


def test_a_served_array_with_all_its_disks_is_not_accused() -> None:
    slow = {"t_ns": 10 * SECOND, "what": "member0/disk1: 20 times slower", "state": "healthy"}
    # A disk that is not asked for anything is no missing disk.
    found = of_array([0.0] * 30, [50.0] * 10 + [0.0] * 20, slow, state="healthy")

    assert not found.causes
    assert "degraded-raid" not in dict(found.not_looked_for)


def of_queries_on_an_array(read_ns: float, disk_busy: float, *, sessions: float = 1.0) -> Diagnosis:
    """A minute of queries on a served array, with every session waiting for I/O."""
    steps = 60
    ios = sessions * SECOND / read_ns
    volume, disk = "volume/data01", "member0/disk1"
    return of(
        rows("host", "cpu", "user_share", [0.2] * steps),
        rows("postgresql", "server", "waits_io_share", [1.0] * steps),
        rows("postgresql", "server", "sessions_active_count", [sessions] * steps),
        rows("array", volume, "read_latency_mean_ns", [read_ns] * steps, tier="storage"),
        rows("array", volume, "read_ios_count", [ios] * steps, kind="delta", tier="storage"),
        rows("array", disk, "busy_share", [disk_busy] * steps, tier="storage"),
        rows("array", disk, "read_ios_count", [disk_busy * 150] * steps, kind="delta", tier="storage"),
    )


def test_queries_that_wait_for_one_read_after_another_on_a_served_array_are_found() -> None:
    found = of_queries_on_an_array(5e6, 0.6)

    assert found.first == "reads-one-by-one"
    assert "sessions wait for I/O: 100 %" in found.answer[0]
    assert "effective_io_concurrency" in found.answer[2]


def test_queries_that_wait_for_the_busy_disks_of_a_served_array_are_found() -> None:
    found = of_queries_on_an_array(60e6, 0.98, sessions=8)

    assert found.first == "slow-disk"
    assert {one.of for one in found.causes[0].signals} >= {"latency", "utilisation"}
    assert ("storage", "hot") in {(cell.tier, cell.state) for cell in found.cells if cell.resource == "disk"}


def test_a_needed_signal_that_is_absent_prevents_a_cause() -> None:
    frame = series_of(rows("host", "cpu", "user_share", [0.9] * 10))
    observed: Observations = observe([ObservedSource(name="made", manifest={}, series=frame)])
    bound = Threshold(value=0.5, unit="share", source="a test")
    signals = CauseSignals(observed)
    signals.add("one", "one", observed.tracks[0], bound)
    signals.add("two", "two", observed.tracks[0].values, bound)
    signals.add("three", "three", None, bound, required=True)

    with unrecorded():
        assert signals.agree("any", resource="cpu", advice="", against=[]) is None
        assert worst_share(observed, observed.tracks[0].above(0.5)) == 1.0


def test_a_path_that_is_lost_for_seconds_is_named() -> None:
    lost = [0.0] * 30 + [1.0] * 3 + [0.0] * 30
    silent = [100.0] * 30 + [0.0] * 3 + [100.0] * 30
    found = of(
        rows("multipath", "dm-0", "paths_failed_count", lost, tier="storage"),
        rows("path", "dm-0/sdb", "read_ios_count", silent, kind="delta", tier="storage"),
        rows("path", "dm-0/sdc", "read_ios_count", [150.0] * 63, kind="delta", tier="storage"),
    )

    (cause,) = found.record()["causes"]
    assert cause["cause"] == "lost-path"
    assert "dm-0/sdb" in cause["advice"]
    assert "dm-0/sdc" not in json.dumps(cause)


def test_a_lost_path_is_named_though_no_load_shows_that_it_is_silent() -> None:
    lost = [0.0] * 30 + [1.0] * 30
    (cause,) = of(
        rows("multipath", "dm-0", "paths_failed_count", lost, tier="storage"),
        rows("multipath", "dm-0/sdb", "failed_share", lost, tier="storage"),
        rows("multipath", "dm-0/sdc", "failed_share", [0.0] * 60, tier="storage"),
        rows("path", "dm-0/sdb", "write_ios_count", [0.0] * 60, kind="delta", tier="storage"),
        rows("path", "dm-0/sdb", "read_ios_count", [0.0] * 60, kind="delta", tier="storage"),
        rows("path", "dm-0/sdc", "read_ios_count", [0.0] * 60, kind="delta", tier="storage"),
        rows("path", "dm-0/sdd", "read_ios_count", [1.0] * 60, kind="delta", tier="storage"),
    ).record()["causes"]
    assert cause["cause"] == "lost-path"
    assert "dm-0/sdb" in cause["advice"]
    assert "dm-0/sdc" not in json.dumps(cause)


def test_the_lost_paths_of_all_multipath_devices_are_named() -> None:
    parts = []
    for device, path in (("dm-0", "sda"), ("dm-1", "sdc")):
        parts += [
            rows("multipath", device, "paths_failed_count", [0.0] * 30 + [1.0] * 30, tier="storage"),
            rows("path", f"{device}/{path}", "read_ios_count", [9.0] * 30 + [0.0] * 30, kind="delta", tier="storage"),
            rows("path", f"{device}/other", "read_ios_count", [9.0] * 60, kind="delta", tier="storage"),
        ]

    (cause,) = of(*parts).record()["causes"]
    assert all(name in cause["advice"] for name in ("dm-0/sda", "dm-1/sdc"))
    assert "other" not in cause["advice"].split(",")[0]


def test_a_path_without_io_that_runs_is_not_lost() -> None:
    found = of(
        rows("multipath", "dm-0", "paths_failed_count", [0.0] * 30, tier="storage"),
        rows("path", "dm-0/sdb", "read_ios_count", [0.0] * 30, kind="delta", tier="storage"),
        rows("path", "dm-0/sdc", "read_ios_count", [150.0] * 30, kind="delta", tier="storage"),
    )
    assert found.first != "lost-path"


MODELS = {
    "throttled-queue": ("ps6100xv?volumes=4&initiator_limit=1", "8"),
    "slow-path": ("ps6100xv?volumes=4&slow_path=0.05", "8"),
    "network-loss": ("ps6100xv?volumes=4&packet_loss=0.01", "8"),
    "degraded-raid": ("ps6100xv?raid=10&volumes=4&state=degraded", "8"),
    "none": ("nvme-mirror?volumes=2", "8"),
}


OF_PATHS = pytest.mark.slow(reason="a slow path is found by the same series")


@pytest.mark.parametrize(
    "cause",
    [
        pytest.param("throttled-queue", marks=OF_PATHS),
        "slow-path",
        pytest.param("network-loss", marks=OF_PATHS),
        "degraded-raid",
        "none",
    ],
)
def test_what_is_wrong_with_a_model_is_found(bench: Bench, cause: str) -> None:
    target, depth = MODELS[cause]
    made = bench.assay(
        "profile", f"model:{target}", "--block", "8K", "--read", "70", "--queue-depth", depth, "--duration", "12s",
        "--no-report", "-o", bench.results,
    )  # fmt: skip
    assert made.code == 0, made.stderr
    (run,) = bench.results.iterdir()

    outcome = bench.assay("diagnose", run, "--json")

    assert outcome.code == 0, outcome.stderr
    assert outcome.document["causes"][0]["cause"] == cause


def test_a_file_is_diagnosed_without_being_kept(bench: Bench) -> None:
    before = {path.name for path in bench.folder.iterdir()}
    outcome = bench.assay("diagnose", SAMPLES / "perfmon.csv", SAMPLES / "esxtop.csv", "--json")

    assert outcome.code == 0, outcome.stderr
    assert {path.name for path in bench.folder.iterdir()} == before
    assert {"matrix", "causes", "notices", "not_looked_for"} <= set(outcome.document)


def test_standard_input_is_diagnosed_and_the_first_three_lines_are_the_answer(bench: Bench) -> None:
    text = (Path(__file__).parent / "cases" / "device-stands-still.txt").read_bytes()
    page = bench.folder / "hurts.html"
    command = [sys.executable, "-m", "assay", "diagnose", "-", "--zone", "+00:00", "--html", str(page)]

    done = subprocess.run(command, input=text, capture_output=True, check=True)

    what, when, do = done.stdout.decode().splitlines()[:3]
    assert what.startswith("Cause found (confidence 75 %): device-stands-still")
    assert when.startswith("When: since 2021-03-02 10:00:07 UTC")
    assert do.startswith("Do: ")
    assert "assumed: standard input: is iostat, of db1" in done.stdout.decode()
    assert "The evidence over time" in page.read_text()


@pytest.mark.parametrize(("since_s", "rows"), [(None, 60), (20.0, 20)])
def test_only_the_last_time_of_a_file_counts(tmp_path: Path, since_s: float | None, rows: int) -> None:
    lines = "".join(f"progress: {1_700_000_000 + at}.0 s, 100.0 tps, lat 3.2 ms stddev 1.1\n" for at in range(61))
    (tmp_path / "progress.txt").write_text(lines)

    found = diagnose(sources_of([tmp_path / "progress.txt"], Options(), since_s=since_s).sources)

    assert int(found.observed.counted.sum()) == rows


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing"], "missing: cannot be read"),
        ([SAMPLES / "perfmon.csv", SAMPLES / "perfmon.csv"], "is given twice"),
        ([SAMPLES / "perfmon.csv", "--tier", "web=nowhere"], "no host 'nowhere' was recorded"),
        ([SAMPLES / "perfmon.csv", "--tier", "web"], "--tier 'web': accepted"),
        ([Path("/proc")], "/proc"),
        ([SAMPLES / "perfmon.csv", "--live", "10s"], "without inputs"),
        ([SAMPLES / "perfmon.csv", "--database", "postgresql://db1/shop"], "with --live"),
        ([], "no input is given"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(bench: Bench, arguments: list[str | Path], message: str) -> None:
    outcome = bench.assay("diagnose", *arguments)

    assert outcome.code == 2
    assert message in outcome.stderr
    said = [line for line in outcome.stderr.strip().splitlines() if not line.startswith("reading ")]
    assert len(said) == 1


@pytest.mark.parametrize("is_one", [True, False])
def test_loads_of_different_workloads_are_in_no_order(is_one: bool) -> None:
    def point(place: int, load: dict[str, int], block: int) -> dict[str, Any]:
        return {
            "workload": {"kind": "io", "block_bytes": block}, "load": load,
            "measured_from_utc_ns": place * 10 * SECOND, "measured_to_utc_ns": (place + 1) * 10 * SECOND,
            "read": {"latency_ns": {"mean": 1e6 * (place + 1)}, "count": 100},
        }  # fmt: skip

    points = [point(place, {"outstanding": 2**place}, 8192 if is_one else 8192 << place) for place in range(4)]

    told = of(rows("host", "cpu", "user_share", [0.1] * 20 + [0.9] * 20), points=points).record()["load"]

    assert (told is not None) is is_one
    if told is not None:
        assert (told["axis"], told["cells"][0]["first_load"]) == ("outstanding", 4.0)


def of_volume(source: str, entity: str, **metrics: Sequence[float]) -> list[dict[str, Any]]:
    return [
        row
        for metric, values in metrics.items()
        for row in rows(
            source, entity, metric, list(values), kind="delta" if metric.endswith("_count") else "gauge", tier="storage"
        )
    ]


FALLEN = [3000.0] * 40 + [300.0] * 40


@pytest.mark.parametrize(
    ("source", "entity"), [("block", "nvme1n1"), ("array", "volume/data01"), ("model", "v01")],
)  # fmt: skip
def test_a_fall_is_certain_where_the_volume_itself_says_that_its_credits_are_gone(source: str, entity: str) -> None:
    credits = [max(1.0 - second / 40, 0.0) for second in range(80)]

    found = of(of_volume(source, entity, ios_count=FALLEN, burst_balance_share=credits))

    (cause,) = [one for one in found.record()["causes"] if one["cause"] == "burst-decline"]
    assert found.first == "burst-decline"
    assert cause["confidence"] == 1.0
    assert any(f"{entity}: burst credit left" in one["text"] for one in cause["evidence"])


def test_a_fall_is_certain_where_more_is_asked_for_than_the_limit_from_then_on_alone() -> None:
    late, always = [0.0] * 40 + [1.0] * 40, [1.0] * 80

    told = of(of_volume("block", "nvme1n1", ios_count=FALLEN, iops_exceeded_share=late))
    silent = of(of_volume("block", "nvme1n1", ios_count=FALLEN, iops_exceeded_share=always))

    assert told.first == "burst-decline"
    # What never changes says nothing of a fall: that it is at its limit is all that is known.
    assert silent.first == "throughput-limit"


def test_credits_that_last_are_no_cause_of_a_fall() -> None:
    found = of(of_volume("block", "nvme1n1", ios_count=FALLEN, burst_balance_share=[0.9] * 80))

    assert found.first != "burst-decline"
