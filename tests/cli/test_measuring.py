"""What the presets and options measure, end to end on real files and on a device whose behaviour is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from document_contract import check_document

if TYPE_CHECKING:
    from assay_command import Bench

MIB = 1 << 20
ONE = ("--queue-depth", "1")


@pytest.mark.timing
class TestOpenLoop:
    def test_the_rate_asked_for_is_achieved(self, bench: Bench) -> None:
        (point,) = bench.measure("null:?latency=200us&servers=8", "--rate", "2000").document["points"]

        assert point["offered"]["sustained"]
        assert point["total"]["iops"] == pytest.approx(2000, rel=0.05)
        assert (point["load"]["rate"], point["load"]["arrivals"]) == (2000, "constant")

    def test_a_rate_beyond_the_device_is_said_not_to_be_sustained(self, bench: Bench) -> None:
        (point,) = bench.measure("null:?latency=1ms&servers=1", "--rate", "3000").document["points"]

        assert not point["offered"]["sustained"]
        assert point["offered"]["unfinished"] > 0
        assert point["total"]["iops"] < 1100

    def test_a_stall_shows_in_the_tail_that_a_closed_loop_hides(self, bench: Bench) -> None:
        stalling, time = "null:?latency=200us&stall_at=500ms&stall=500ms", ("--warmup", "0s", "--duration", "2s")
        opened = bench.profile(stalling, "--rate", "1000", *time, "--json").document["points"][0]
        closed = bench.profile(stalling, *ONE, *time, "--json").document["points"][0]

        # A quarter of the arrivals falls into the stall and waits for its end; the closed loop has one I/O in it.
        assert opened["total"]["latency_ns"]["p99"] > 350e6
        assert opened["total"]["latency_ns"]["p90"] > 150e6
        assert closed["total"]["latency_ns"]["p99"] < 10e6
        assert closed["total"]["latency_ns"]["max"] > 450e6
        # The device itself was no slower: the wait is between intended start and submission or in the stall.
        assert opened["service_latency_ns"]["p50"] < 10e6

    def test_a_search_on_rate_ends_at_what_the_device_holds(self, bench: Bench) -> None:
        search = ("--search", "rate", "--rate", "500", "--block", "8K", "--read", "100", "--repeats", "0")
        # Its service takes so long that a busy machine's scheduling is no part of the figures.
        document = bench.measure("null:?latency=20ms&servers=40", *search, "--limit", "read.mean<=40ms").document

        (answer,) = document["answers"]
        # 40 servers of 20 ms serve 2,000 I/Os per second at most.
        assert 1000 <= answer["max"]["rate"] <= 2600
        assert answer["max"]["rate"] < answer["first_failing"]["rate"]
        check_document(document)


class TestSearch:
    @pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
    def test_large_blocks_end_the_axis_where_memory_does(self, bench: Bench) -> None:
        search = ("--search", "queue-depth", "--block", "64M", "--read", "100", "--repeats", "0")

        # A model's answer depends on no other program.
        outcome = bench.profile("model:ps6100xv?raid=10&volumes=1", *search, "--limit", "read.mean<=1000s",
                                "--duration", "2s", "--warmup", "0s", "--json")  # fmt: skip

        (answer,) = outcome.document["answers"]
        assert (outcome.code, answer["limited_by"]) == (0, "axis end")
        assert max(point["load"]["outstanding"] for point in outcome.document["points"]) == 8


class TestRoles:
    PRESET = ("--preset", "database", "--size", "32M", "--warmup", "0s", "--json")

    def test_a_database_on_three_files(self, bench: Bench, tmp_path: Any) -> None:
        bursts = tmp_path / "plan.toml"
        bursts.write_text(with_quick_bursts())
        volumes = ",".join(f"{role}={bench.target.with_name(role + '.dat')}" for role in ("data", "log", "tempdb"))

        outcome = bench.profile("--volume", volumes, "--plan", bursts, "--size", "32M", "--json")

        (point,) = outcome.document["points"]
        check_document(outcome.document)
        assert outcome.code in (0, 1, 5)
        assert {volume["name"]: volume["role"] for volume in point["volumes"]} == {
            "data.dat": "data",
            "log.dat": "log",
            "tempdb.dat": "tempdb",
        }
        assert set(point["roles"]) == {"data", "log", "tempdb"}
        assert [activity["name"] for activity in point["activities"]] == ["reads", "checkpoint", "log", "tempdb"]
        assert point["bursts"]["count"] >= 2
        assert 0 < point["bursts"]["share_of_time"] < 1
        during, between = point["bursts"]["read_during"], point["bursts"]["read_between"]
        assert during["count"] + between["count"] == point["roles"]["data"]["read"]["count"]
        assert not any("share the volume" in notice for notice in outcome.document["notices"])

    def test_a_database_on_one_shared_file_says_so(self, bench: Bench) -> None:
        outcome = bench.profile(bench.target, *self.PRESET, "--duration", "0.5s")

        (point,) = outcome.document["points"]
        (notice,) = [notice for notice in outcome.document["notices"] if "share the volume" in notice]
        assert "data, log, tempdb" in notice
        assert point["bursts"]["count"] >= 1
        assert all(point["roles"][role]["total"]["count"] for role in ("data", "log", "tempdb"))
        scopes = {(limit["limit"], limit["scope"]) for limit in point["limits"]}
        assert ("log.write.mean<=5ms", "log") in scopes

    def test_roles_that_share_several_volumes_are_said_once(self, bench: Bench) -> None:
        asked = ("--preset", "database", "--warmup", "0s", "--duration", "1s", "--json")
        outcome = bench.profile("model:ps6100xv?volumes=data:3,log:1", *asked)

        (notice,) = [notice for notice in outcome.document["notices"] if " share " in notice]
        assert "data, tempdb share 3 volumes (data01, ...), each in a part of its own" in notice

    @pytest.mark.parametrize("sync", ["fdatasync", "fsync"])
    def test_log_writes_are_followed_by_flushes(self, bench: Bench, sync: str) -> None:
        log = ("--preset", "log", "--block", "8K", "--workers", "1", "--sync", sync, "--sync-every", "4")
        (point,) = bench.measure(bench.target, "--size", "16M", *log).document["points"]

        assert point["workload"]["sync"] == sync
        assert point["flush"]["count"] == pytest.approx(point["write"]["count"] / 4, rel=0.1, abs=2)

    def test_log_writes_that_are_durable_by_themselves_need_no_flush(self, bench: Bench) -> None:
        log = ("--preset", "log", "--block", "8K", "--workers", "1")
        (point,) = bench.measure(bench.target, "--size", "16M", *log).document["points"]

        assert (point["workload"]["sync"], point["flush"]) == ("dsync", None)
        assert point["write"]["count"] > 0


class TestVolumes:
    def test_every_volume_has_figures_and_limits_of_its_own(self, bench: Bench) -> None:
        other = bench.target.with_name("g.dat")
        limit = ("--limit", "read.mean<=10s")
        (point,) = bench.measure(bench.target, other, "--size", "16M", "--queue-depth", "2", *limit).document["points"]

        assert [volume["name"] for volume in point["volumes"]] == ["f.dat", "g.dat"]
        assert all(volume["total"]["count"] > 0 for volume in point["volumes"])
        assert point["load"] == {"queue_depth": 2, "workers": 2, "outstanding": 4}
        assert [verdict["scope"] for verdict in point["limits"]] == ["data", "data/f.dat", "data/g.dat"]


class TestBackends:
    def test_threads_measure_the_same_and_are_said_to(self, bench: Bench) -> None:
        load = ("--size", "16M", "--queue-depth", "4", "--read", "70")
        threads = bench.measure(bench.target, *load, "--backend", "threads").document
        ring = bench.measure(bench.target, *load).document

        assert threads["engine"]["backend"] == "threads"
        assert any("I/O went through threads" in notice for notice in threads["notices"])
        for document in (threads, ring):
            check_document(document)
            (point,) = document["points"]
            assert point["errors"]["count"] == 0
            assert point["read"]["count"] / point["total"]["count"] == pytest.approx(0.7, abs=0.05)

    def test_the_features_in_force_are_told(self, bench: Bench) -> None:
        engine = bench.measure(bench.target, "--size", "16M", *ONE).document["engine"]

        if engine["backend"] == "threads":
            pytest.skip(f"io_uring cannot be used here: {engine['degraded']}")
        assert engine["features"]

    def test_buffered_io_is_labelled(self, bench: Bench) -> None:
        (point,) = bench.measure(bench.target, "--size", "16M", *ONE, "--buffered").document["points"]

        assert (point["workload"]["io_mode"], "buffered" in point["workload"]["name"]) == ("buffered", True)


class TestHonesty:
    def test_it_says_on_how_many_bytes_and_in_which_state(self, bench: Bench) -> None:
        notices = bench.measure(bench.target, "--size", "16M", *ONE).document["notices"]

        said = "; ".join(notices)
        for word in ("measured on 16 MiB (f.dat)", "fresh", "caches between host and disk are not excluded"):
            assert word in said

    def test_the_cache_span_is_measured_when_asked_for(self, bench: Bench) -> None:
        # On a model, whose time is virtual: a span takes seconds.
        target = "model:ps6100xv?volumes=1&volume_size=64MiB"
        document = bench.measure(target, *ONE, "--read", "100", "--cache-span").document

        check_document(document)
        assert [step["span_bytes"] for step in document["cache_span"]["steps"]] == [16 * MIB, 64 * MIB]

    def test_twice_a_stated_cache_sets_the_size(self, bench: Bench) -> None:
        options = ("--size", "2x-cache", "--cache-size", "12M", *ONE)
        document = bench.measure(bench.target, *options).document

        assert document["target"]["volumes"][0]["size_bytes"] == bench.target.stat().st_size == 24 * MIB


def with_quick_bursts() -> str:
    """The database preset with bursts that come several times a second."""
    return """
        limits = ["log.write.mean<=5s"]
        [timing]
        warmup_s = 0
        duration_s = 1
        [[activity]]
        name = "reads"
        queue_depth = 2
        [[activity]]
        name = "checkpoint"
        read_share = 0.0
        burst_interval_s = 0.3
        burst_bytes = "256K"
        [[activity]]
        name = "log"
        role = "log"
        block_bytes = 512
        read_share = 0.0
        random_share = 0.0
        sync = "dsync"
        [[activity]]
        name = "tempdb"
        role = "tempdb"
        block_bytes = "64K"
        read_share = 0.5
    """
