"""`assay verify` on real files: what it proves, what it leaves behind, and how it ends."""

from __future__ import annotations

import json
import signal
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from document_contract import check_document

from assay.record.load import load
from assay_command import command

if TYPE_CHECKING:
    from assay_command import Bench

SHORT = ("--size", "16M", "--duration", "0.5s", "--seed", "3")
PHASES = ["prepare", "stress", "checkpoint", "audit"]
LONGER = ("--size", "32M", "--duration", "60s")
PLANNED = pytest.mark.slow(reason="the plan of each preset is compared in tests/workloads, and others are run here")
PROVED = pytest.mark.slow(reason="crates/integrity proves that each is found; here four are told, kept and counted")


def findings(document: dict[str, object]) -> dict[str, int]:
    integrity = document["integrity"]
    assert isinstance(integrity, dict)
    return {name: count for name, count in integrity["findings"].items() if count}


class TestClean:
    @pytest.mark.parametrize("backend", ["io-uring", "threads"])
    def test_a_folder_passes(self, bench: Bench, backend: str) -> None:
        outcome = bench.verify(bench.target.parent, *SHORT, "--backend", backend, "--json")

        document = outcome.document
        assert (outcome.code, document["status"], findings(document)) == (0, "done", {})
        assert (document["integrity"]["passed"], document["integrity"]["audited"]) == (True, True)
        check_document(document)
        assert sorted(path.name for path in bench.target.parent.iterdir()) == ["assay-log.dat", "assay.dat"]
        assert document["integrity"]["pages_verified"] >= document["integrity"]["pages"] > 0

    @pytest.mark.parametrize(
        "options",
        [
            pytest.param((), id="default"),
            pytest.param(("--preset", "hwcache"), id="hwcache", marks=PLANNED),
            pytest.param(("--preset", "nothrottle"), id="nothrottle", marks=PLANNED),
            pytest.param(("--preset", "seqwrites"), id="seqwrites", marks=PLANNED),
            pytest.param(("--preset", "sparse", "--cycles", "1"), id="sparse"),
            pytest.param(("--buffered",), id="buffered"),
            pytest.param(("--cycles", "2"), id="two cycles"),
            pytest.param(("--users", "random=1,audit=0,read-ahead=0,bulk-update=0"), id="one user"),
            pytest.param(("--duration", "0s"), id="no stress"),
        ],
    )
    def test_a_file_passes_whatever_the_load(self, bench: Bench, options: Sequence[str]) -> None:
        outcome = bench.verify(bench.target, *SHORT, *options, "--json")

        document = outcome.document
        assert (outcome.code, findings(document), document["integrity"]["passed"]) == (0, {}, True)
        check_document(document)
        assert document["points"] == [json.loads(line) for line in bench.point_lines()]

    def test_roles_may_have_volumes_of_their_own(self, bench: Bench) -> None:
        folder = bench.target.parent

        outcome = bench.verify("--volume", f"data={folder}/d.dat,log={folder}/l.dat", *SHORT, "--json")

        files = outcome.document["integrity"]["files"]
        assert outcome.code == 0
        assert [(Path(file["path"]).name, file["log"]) for file in files] == [("d.dat", False), ("l.dat", True)]

    def test_a_device_keeps_its_size(self, bench: Bench, loop_device: object) -> None:
        device = loop_device(32 << 20)  # type: ignore[operator]

        outcome = bench.verify(device, "--overwrite", device, "--duration", "1s", "--json")

        document = outcome.document
        assert (outcome.code, document["integrity"]["passed"]) == (0, True)
        assert [(file["log"], file["size_bytes"] >> 20) for file in document["integrity"]["files"]] == [
            (False, 24), (True, 8)
        ]  # fmt: skip

    def test_phases_are_points_series_and_frames(self, bench: Bench) -> None:
        assert bench.verify(bench.target, *SHORT, "--quiet").stderr == ""

        loaded = load(bench.run)
        assert loaded.points["workload"].to_list() == PHASES
        assert loaded.points["read_iops"].to_list()[3] > 0
        entities = set(loaded.series.filter(source="assay")["entity"].to_list())
        assert {"f.dat", "f.dat-log"} <= entities
        assert loaded.verdict["met"].to_list() == [True]

    def test_it_can_be_run_again_on_its_own_files_and_so_can_profile(self, bench: Bench) -> None:
        for _ in range(2):
            assert bench.verify(bench.target.parent, *SHORT).code == 0
        assert (bench.target.parent / "assay.dat").stat().st_size == 16 << 20
        assert bench.measure(bench.target.parent / "assay.dat", "--queue-depth", "1").code == 0

    def test_the_report_and_exports_are_written(self, bench: Bench) -> None:
        exports = ("--export", "csv,fio-json,openmetrics")
        outcome = bench.assay("verify", bench.target, *SHORT, *exports, "-o", bench.results)

        assert outcome.code == 0
        for name in ("report.html", "report.pdf", "points.csv", "fio.json", "errors.xml"):
            assert (bench.run / name).exists(), name
        assert "pages were right when read at the end" in " ".join(outcome.stdout.split())

    def test_the_same_seed_asks_for_the_same(self, bench: Bench) -> None:
        first = bench.verify(bench.target, *SHORT, "--dry-run", "--json").document
        second = bench.verify(bench.target, *SHORT, "--dry-run", "--json").document

        assert first == second
        assert bench.made() == []


class TestFaults:
    @pytest.mark.parametrize(
        "kind",
        [
            "torn", "misdirected_read", "log_break", "io_error",
            *(pytest.param(kind, marks=PROVED) for kind in ("lost", "misdirected_write", "corrupt", "short_read")),
        ],
    )  # fmt: skip
    def test_the_alarm_rings_for_each(self, bench: Bench, kind: str) -> None:
        target = f"faulty:{bench.target.parent}?{kind}=0.01&seed=7"

        outcome = bench.verify(target, *SHORT, "--json")

        document = outcome.document
        integrity = document["integrity"]
        assert (outcome.code, integrity["passed"]) == (4, False)
        assert kind in findings(document)
        assert integrity["findings"] == integrity["observable"]
        assert sum(integrity["injected"].values()) == integrity["injected"][kind]
        detail = integrity["details"][0]
        assert (bench.run / detail["evidence"] / "differences.txt").exists()
        errors = ET.parse(bench.run / "errors.xml").getroot()
        assert any(entry.get("TYPE") == "ERROR" for entry in errors)
        assert "a test of Assay itself" in outcome.stderr

    def test_a_long_io_is_told_while_it_is_outstanding(self, bench: Bench) -> None:
        target = f"faulty:{bench.target}?long_io=0.0005&long_io_delay=2s&seed=7"

        outcome = bench.verify(target, *SHORT, "--long-io", "0.5s", "--json")

        assert outcome.code == 4
        assert set(findings(outcome.document)) == {"long_io"}
        assert any(line.startswith("OUTSTANDING for") for line in outcome.stderr.splitlines())

    def test_without_faults_the_faulty_device_is_clean(self, bench: Bench) -> None:
        outcome = bench.verify(f"faulty:{bench.target}", *SHORT, "--json")

        assert (outcome.code, findings(outcome.document)) == (0, {})
        assert sum(outcome.document["integrity"]["injected"].values()) == 0

    def test_stop_on_error_stops_at_the_first(self, bench: Bench) -> None:
        outcome = bench.verify(f"faulty:{bench.target}?corrupt=0.05&seed=7", *LONGER, "--stop-on-error", "--json")

        assert outcome.code == 4
        assert (outcome.document["integrity"]["stopped_on_error"], outcome.document["status"]) == (True, "done")

    @pytest.mark.parametrize("verb", ["profile", "assess", "sqlio"])
    def test_other_verbs_refuse_it_in_one_line(self, bench: Bench, verb: str) -> None:
        options = ["-kR", "-s1"] if verb == "sqlio" else []

        outcome = bench.assay(verb, *options, f"faulty:{bench.target}?torn=0.1")

        assert outcome.code == 2
        assert "only `assay verify` looks for" in outcome.complaint
        assert bench.made() == []

    def test_a_page_overwritten_by_hand_is_found(self, bench: Bench) -> None:
        arguments = ("verify", bench.target.parent, *LONGER, "--duration", "2s", "--no-report", "--json", "--users",
                     "random=0,bulk-update=0,shrink=0", "-o", bench.results)  # fmt: skip
        with bench.started(*arguments) as running:
            running.wait_until(bench.point_lines)
            with (bench.target.parent / "assay.dat").open("r+b") as file:
                file.seek(100 * 8192 + 700)
                file.write(b"by hand")
            outcome = running.end()

        assert outcome.code == 4
        (detail,) = outcome.document["integrity"]["details"]
        assert (detail["kind"], detail["page"], detail["persistent"]) == ("corrupt", 100, True)
        assert detail["differing_bytes"] <= 7
        received = (bench.run / detail["evidence"] / "received.bin").read_bytes()
        assert received[700:707] == b"by hand"


class TestEarlyEnds:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_an_interrupt_keeps_what_was_verified(self, bench: Bench, number: signal.Signals) -> None:
        with bench.started("verify", bench.target, *LONGER, "--no-report", "--json", "-o", bench.results) as running:
            running.wait_until(bench.point_lines)
            running.process.send_signal(number)
            outcome = running.end()

        assert outcome.code == 130
        assert outcome.document["status"] == "interrupted"
        assert [point["ended_by"] for point in outcome.document["points"]] == ["time", "interrupted"]
        assert "--resume" not in outcome.stderr
        integrity = outcome.document["integrity"]
        assert (integrity["passed"], integrity["audited"], findings(outcome.document)) == (False, False, {})

    def test_going_on_is_refused_with_the_command_to_start_anew(self, bench: Bench) -> None:
        bench.verify(bench.target, *SHORT)

        outcome = bench.assay("verify", "--resume", bench.run)

        assert outcome.code == 2
        assert "expected state lived in memory" in outcome.complaint
        assert f"assay verify {bench.target} --size 16M --duration 0.5s" in outcome.complaint

    def test_only_a_run_of_verify_is_named_so(self, bench: Bench) -> None:
        bench.measure("null:?latency=1ms", "--queue-depth", "1")

        assert "is a run of 'profile'" in bench.assay("verify", "--resume", bench.run).complaint
        assert "does not exist" in bench.assay("verify", "--resume", "nowhere").complaint

    @pytest.mark.parametrize("replaced", [False, True])
    def test_a_target_that_disappears_ends_the_run(self, bench: Bench, replaced: bool) -> None:
        with bench.started("verify", bench.target, *LONGER, "--no-report", "--json", "-o", bench.results) as running:
            running.wait_until(bench.point_lines)
            bench.target.unlink()
            if replaced:
                bench.target.write_bytes(b"mine")
            outcome = running.end()

        assert outcome.code == 3
        assert outcome.document["status"] == "failed"
        said = "is another file by now" if replaced else "is no longer there"
        assert said in [line for line in outcome.stderr.splitlines() if line.startswith("assay: ")][-1]
        assert not replaced or bench.target.read_bytes() == b"mine"

    def test_a_target_that_fills_up_ends_the_run(self, bench: Bench, mounted: object, tmp_path: Path) -> None:
        point: Path = mounted("-t", "tmpfs", "-o", "size=48m", "none")  # type: ignore[operator]
        config = tmp_path / "sqliosim.cfg"
        config.write_text(
            "[CONFIG]\nTestCycleDuration=2\nNoBuffering=FALSE\nUseScatterGather=FALSE\n"
            f"[File1]\nFileName={point}/a.mdx\nInitialSize=100\nSparse=TRUE\n"
            f"[File2]\nFileName={point}/a.ldx\nInitialSize=8\nLogFile=TRUE\n"
        )

        outcome = bench.verify("--config", config, "--buffered", "--quiet", "--json")

        assert outcome.code == 3
        assert outcome.document["status"] == "failed"
        assert "no space is left" in outcome.stderr.splitlines()[-1]

    def test_less_memory_than_needed_is_named_before_anything_is_made(self, bench: Bench, tmp_path: Path) -> None:
        config = tmp_path / "sqliosim.cfg"
        config.write_text(
            f"[File1]\nFileName={bench.target}\nInitialSize=30000000\nSparse=TRUE\n"
            f"[File2]\nFileName={bench.target}.log\nInitialSize=8\nLogFile=TRUE\n"
        )

        outcome = bench.verify("--config", config, "--quiet")

        assert outcome.code == 3
        for word in ("expected state", "of memory", "may be had", "give --size"):
            assert word in outcome.complaint
        assert bench.made() == []


def config_text(folder: Path, *, data: str = "a.mdx", size: int = 16) -> str:
    return (
        "[CONFIG]\nTestCycles=1\nTestCycleDuration=1\nStopOnError=FALSE\nUseScatterGather=TRUE\n"
        f"[File1]\nFileName={folder}/{data}\nInitialSize={size}\n"
        f"[File2]\nFileName={folder}/a.ldx\nInitialSize=8\nLogFile=TRUE\n"
    )


class TestConfig:
    def test_its_files_are_the_target(self, bench: Bench, tmp_path: Path) -> None:
        (tmp_path / "sqliosim.cfg").write_text(config_text(bench.target.parent))

        outcome = bench.verify("--config", "sqliosim.cfg", "--json")

        integrity = outcome.document["integrity"]
        assert (outcome.code, integrity["passed"]) == (0, True)
        assert [Path(file["path"]).name for file in integrity["files"]] == ["a.mdx", "a.ldx"]
        for line in ("[CONFIG] TestCycleDuration=1: ", "InitialSize=16"):
            assert any(line in said for said in integrity["understood"])
            assert line in outcome.stderr

    def test_windows_paths_are_mapped(self, bench: Bench, tmp_path: Path) -> None:
        text = config_text(Path("X")).replace("X/", "E:\\sql\\")
        (tmp_path / "sqliosim.cfg").write_text(text)

        refused = bench.verify("--config", "sqliosim.cfg", "--quiet")
        assert (refused.code, "--map" in refused.complaint) == (2, True)
        outcome = bench.verify("--config", "sqliosim.cfg", "--map", f"E:\\sql={bench.target.parent}", "--json")
        assert outcome.code == 0
        assert sorted(path.name for path in bench.target.parent.iterdir()) == ["a.ldx", "a.mdx"]

    def test_a_target_replaces_its_files(self, bench: Bench, tmp_path: Path) -> None:
        (tmp_path / "sqliosim.cfg").write_text(config_text(Path("/no-such-folder")))

        outcome = bench.verify(bench.target, *SHORT, "--config", "sqliosim.cfg", "--json")

        assert outcome.code == 0
        assert "its 2 files are left out, a target is named" in outcome.stderr

    def test_options_win(self, bench: Bench, tmp_path: Path) -> None:
        (tmp_path / "sqliosim.cfg").write_text(config_text(bench.target.parent))

        plan = bench.verify("--config", "sqliosim.cfg", "--duration", "7s", "--dry-run", "--json").document["plan"]

        assert plan["timing"]["stress_s"] == 7
        assert [file["size_bytes"] >> 20 for file in plan["files"]] == [16, 8]


class TestPlans:
    def test_what_dry_run_prints_is_taken_back(self, bench: Bench, tmp_path: Path) -> None:
        asked = ("--duration", "7s", "--users", "random=3", "--size", "64M", "--cycles", "2")
        first = bench.verify(bench.target, *asked, "--dry-run", "--json")
        (tmp_path / "plan.json").write_text(first.stdout)

        again = bench.verify(bench.target, "--plan", "plan.json", "--size", "64M", "--dry-run", "--json")

        assert again.document["plan"] == first.document["plan"]
        assert first.document["plan"]["random"]["users"] == 3
        assert first.document["estimate"] == {"shortest_s": 14, "longest_s": 14, "layout_bytes": 0}
        assert [file["log"] for file in first.document["files"]] == [False, True]

    def test_dry_run_says_it_in_words_and_makes_nothing(self, bench: Bench) -> None:
        outcome = bench.verify(bench.target, "--size", "64M", "--duration", "5m", "--dry-run")

        assert outcome.code == 0
        for words in ("56 MiB", "8 MiB", "stress for 5 min", "preparing writes 64 MiB", "of memory", "may grow to"):
            assert words in outcome.stdout
        assert bench.made() == []

    def test_without_an_end_the_time_is_that_of_the_user(self, bench: Bench) -> None:
        outcome = bench.verify(bench.target, "--size", "64M", "--cycles", "0", "--dry-run", "--json")

        assert outcome.document["estimate"]["longest_s"] is None


def test_help_is_there_with_examples(bench: Bench) -> None:
    outcome = bench.assay("verify", "--help-all")

    assert outcome.code == 0
    for word in ("--config", "--map", "--crash-journal", "--after-crash", "faulty:", "sqliosim.cfg"):
        assert word in outcome.stdout


def test_it_works_without_a_terminal_of_any_width(bench: Bench) -> None:
    assert command("verify")
    assert bench.assay("verify").code == 2
