"""An integrity part from plan to run folder, with a core that reports what the test wrote."""

from __future__ import annotations

import json
import os
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_core import MIB, ScriptedCore, ended, finding, phase, report, tick

from assay import _core
from assay.base.errors import ExitCode, IoFailed, NotAnswering, NotSupported, OutOfSpace
from assay.base.progress import Shown
from assay.record.load import load
from assay.record.run_folder import RunFolder
from assay.run import execute
from assay.run.execute import Execution, new_folder, run_document
from assay.run.request import TargetRequest
from assay.targets.files.hold import FileIdentity, Hold
from assay.targets.files.spec import FAULTS
from assay.workloads.integrity import watch as integrity_watch
from assay.workloads.plan import Part
from assay.workloads.registry import workload_named

INTEGRITY_KIND = workload_named("integrity")

PHASES = ["prepare", "stress", "checkpoint", "audit"]


class Seen:
    """A display that remembers."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.lines: list[str] = []
        self.points: list[str] = []

    def layout(self, name: str, done_bytes: float, total_bytes: float) -> None: ...

    def phase(self, text: str) -> None: ...

    def point(self, progress: Shown) -> None:
        self.lines.append(progress.line)

    def status(self, status: Any) -> None: ...

    def tell(self, text: str) -> None:
        self.told.append(text)

    def point_done(self, point: dict[str, Any]) -> None:
        self.points.append(point["workload"]["name"])


class Stage:
    """An execution of `verify` on a file, with a scripted core."""

    def __init__(self, folder: Path, core: ScriptedCore, **plan: Any) -> None:
        self.core, self.target = core, folder / "f"
        self.seen, self.interrupt = Seen(), threading.Event()
        self.part = Part(name="integrity", title="T", plan=INTEGRITY_KIND.load_plan(plan, source="plan"),
                         understood=("line 1",))  # fmt: skip
        self.request = TargetRequest(paths=[str(self.target)], size="16M", database=True)
        target = self.request.choose([self.part])
        self.folder = new_folder(folder / "runs", "verify", ["verify"], self.request.to_dict(), [self.part])
        self.execution = self.execution_on(target)

    def execution_on(self, target: Any) -> Execution:
        return Execution(folder=self.folder, target=target, parts=[self.part], display=self.seen,
                         interrupt=self.interrupt)  # fmt: skip

    def run(self) -> ExitCode:
        return self.execution.run()

    def again(self) -> ExitCode:
        """Go on with the folder, as `assess --resume` does."""
        self.folder.close()
        self.folder = RunFolder.open(self.folder.path)
        self.execution = self.execution_on(self.request.choose([self.part]))
        return self.execution.run()

    @property
    def integrity(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder.path / "run.json").read_text())["integrity"]
        return found

    @property
    def log(self) -> ET.Element:
        return ET.parse(self.folder.path / "errors.xml").getroot()


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Stage]:
    def make(*reports: dict[str, Any], **plan: Any) -> Stage:
        core = ScriptedCore(*reports)
        monkeypatch.setattr(_core, "Verification", core, raising=False)
        monkeypatch.setattr(_core, "verify_memory", lambda _: 1 << 20, raising=False)
        return Stage(tmp_path, core, **plan)

    return make


def test_a_clean_run_passes_and_leaves_a_point_for_each_phase(stage: Callable[..., Stage]) -> None:
    run = stage(report(ticks=[tick(0), tick(1, file=1)]), ended())

    assert run.run() is ExitCode.DONE

    assert run.seen.points == PHASES
    assert [point["workload"]["phase"] for point in run.folder.points()] == PHASES
    found = run.integrity
    assert (found["passed"], found["audited"], sum(found["findings"].values())) == (True, True, 0)
    assert [one["point_id"] for one in found["phases"]] == [point["id"] for point in run.folder.points()]
    assert [one["seconds"] for one in found["phases"]] == pytest.approx([1, 1, 0.1, 0.9])
    assert found["understood"] == ["line 1"]
    assert set(found["findings"]) == set(FAULTS)
    assert run_document(run.folder)["integrity"] == found
    assert run.folder.manifest["verdict"][0]["met"] is True
    assert [(file["name"], file["log"]) for file in found["files"]] == [("f", False), ("f-log", True)]


def test_the_core_is_asked_for_the_files_of_the_plan(stage: Callable[..., Stage]) -> None:
    run = stage(ended(), seed=5, timing={"stress_s": 2})
    run.run()

    asked = run.core.asked
    assert asked["plan"]["seed"] == 5
    assert asked["plan"]["stress_ns"] == 2 * 10**9
    assert (asked["backend"], asked["faulty"], asked["journal"]) == ("auto", None, None)
    assert f"{asked['plan']['run_id']:016x}" == run.integrity["run_identity"]
    data, log = asked["plan"]["files"]
    assert (data["path"], data["base_bytes"], data["size_bytes"]) == (str(run.target), 8 * MIB, 8 * MIB)
    assert (log["path"], log["base_bytes"], log["size_bytes"]) == (str(run.target), 0, 8 * MIB)


def test_the_files_are_reserved_and_marked_but_not_filled(stage: Callable[..., Stage]) -> None:
    run = stage(ended())
    run.run()

    assert run.target.stat().st_size == 16 * MIB
    again = run.request.choose([run.part])
    assert again.examined[0].created_by_assay
    assert not again.examined[0].fully_allocated


def test_frames_and_series_are_those_of_any_run(stage: Callable[..., Stage]) -> None:
    run = stage(report(ticks=[tick(0), tick(0, file=1)]), ended())
    run.run()

    loaded = load(run.folder.path)
    assert loaded.points["workload"].to_list() == PHASES
    assert loaded.points["ended_by"].to_list() == ["time"] * 4
    rows = loaded.series.filter(source="assay").filter(metric="read_ios_count")
    assert sorted(rows["entity"].to_list()) == ["f", "f-log"]
    assert sorted(rows["role"].to_list()) == ["data", "log"]


class TestFindings:
    def test_any_finding_ends_with_4(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(findings=[finding()]), ended())

        assert run.run() is ExitCode.INTEGRITY_FAILED
        found = run.integrity
        assert (found["passed"], found["audited"]) == (False, True)
        assert (found["findings"]["torn"], found["persistent"]["torn"], found["transient"]["torn"]) == (1, 1, 0)
        assert run.folder.manifest["status"] == "done"
        assert run.folder.manifest["verdict"][0]["met"] is False

    def test_details_are_as_documented(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(findings=[finding(elsewhere={"file": 1, "page": 4})]), ended())
        run.run()

        (detail,) = run.integrity["details"]
        assert (detail["id"], detail["file"], detail["evidence"]) == ("F0001", "f", "evidence/F0001")
        assert detail["expected"]["file"] == "f"
        assert detail["units"][1]["file"] == "f"
        assert detail["elsewhere"] == {"file": "f-log", "page": 4}
        assert detail["found_utc_ns"] - detail["expected"]["written_utc_ns"] == 10**9
        assert "expected_image" not in detail

    def test_the_evidence_holds_images_differences_and_history(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(findings=[finding(other_images=["AAAA"])]), ended())
        run.run()

        folder = run.folder.path / "evidence/F0001"
        assert (folder / "expected.bin").read_bytes() == b"\x01" * 8192
        assert (folder / "received.bin").read_bytes() == b"\x01" * 512 + b"\x02" * 7680
        assert (folder / "received-1.bin").read_bytes() == b"\0\0\0"
        lines = (folder / "differences.txt").read_text().splitlines()
        assert lines[0] == "torn (persistent) in f, page 3, offset 24576"
        assert "units 1 to 15: older of file f, page 3, generation 1" in lines
        assert len([line for line in lines if line.startswith(("00", "01"))]) == 7680 / 16
        last = (folder / "history.txt").read_text().splitlines()[-1]
        assert last.split() == ["1.000000", "1.001000", "write", "random", "f,", "3,", "1,", "2,", "ok"]

    def test_a_finding_that_changes_replaces_the_former(self, stage: Callable[..., Stage]) -> None:
        former = finding(kind="lost", also=["misdirected_write"])
        run = stage(report(findings=[former]), report(findings=[finding(kind="misdirected_write")]), ended())
        run.run()

        found = run.integrity
        assert (found["findings"]["lost"], found["findings"]["misdirected_write"]) == (0, 1)
        assert [detail["kind"] for detail in found["details"]] == ["misdirected_write"]
        assert [line.split()[1] for line in run.seen.told] == ["lost,", "misdirected_write"]
        first, _total = (entry for entry in run.log if entry.get("TYPE") == "ERROR")
        assert str(first[0].text).count("misdirected_write") == 1

    def test_of_many_alike_the_first_are_told_and_all_are_counted(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(findings=[finding(number) for number in range(1, 251)]), ended())
        run.run()

        found = run.integrity
        assert (found["findings"]["torn"], len(found["details"]), found["details_left_out"]) == (250, 25, 225)
        assert len(list((run.folder.path / "evidence").iterdir())) == 25
        assert [line.partition(" ")[0] for line in run.seen.told] == ["FOUND"] * 3 + ["more"]

    def test_a_transient_one_counts_as_well(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(findings=[finding(kind="corrupt", persistent=False)]), ended())

        assert run.run() is ExitCode.INTEGRITY_FAILED
        assert run.integrity["transient"]["corrupt"] == 1

    def test_they_weigh_more_than_an_interrupt(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(findings=[finding()]), report())
        run.seen.tell = lambda _: run.interrupt.set()  # type: ignore[method-assign]

        assert run.run() is ExitCode.INTEGRITY_FAILED
        assert run.core.is_stopped
        assert run.folder.manifest["status"] == "interrupted"

    def test_they_weigh_more_than_a_failure(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(findings=[finding()]), report(state="failed", error="OutOfSpace", detail="no room"))

        assert run.run() is ExitCode.INTEGRITY_FAILED
        assert isinstance(run.execution.error, OutOfSpace)

    def test_each_is_told_at_once_in_one_line(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(findings=[finding()]), ended())
        run.run()

        (line,) = run.seen.told
        assert line == ("FOUND torn (persistent) in f, page 3, offset 24576: units 1-15 hold the older generation 1")
        assert run.seen.lines[-1].endswith("1 findings")


class TestErrorLog:
    def test_it_has_sqliosims_form(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(findings=[finding(), finding(2, "long_io"), finding(3, "io_error", errno=5)]), ended())
        run.run()

        assert run.log.tag == "ERRORLOG"
        for entry in run.log:
            assert set(entry.keys()) == {
                "TYPE", "TIME", "DATE", "TID", "User", "File", "Line", "Func", "HRESULT", "SYSTEXT"
            }  # fmt: skip
            assert [child.tag for child in entry] == ["EXTENDED_DESCRIPTION"]
        errors = [entry for entry in run.log if entry.get("TYPE") == "ERROR"]
        assert errors[0].get("HRESULT") == "0x80070467"
        assert str(errors[0][0].text).startswith("Buffer validation failed on f Page: 3, offset 0x200")
        assert [entry.get("TYPE") for entry in run.log].count("WARNING") == 1

    def test_it_ends_with_a_summary_of_each_file(self, stage: Callable[..., Stage]) -> None:
        run = stage(ended())
        run.run()

        texts = [str(entry[0].text) for entry in run.log]
        summaries = [text for text in texts if "Final Summary" in text]
        assert len(summaries) == 2
        assert f"Final Summary for file {run.target} **********" in summaries[0]
        assert "Target IO Duration (ms) = 100, Running Average IO Duration (ms) = 2" in summaries[0]
        assert "Reads = 10, Scatter Reads = 3, Writes = 5, Gather Writes = 1, Total IO Time (ms) = 30" in summaries[0]

    def test_it_is_whole_while_the_run_goes_on(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(findings=[finding()]), report(), report(), ended())
        seen: list[int] = []
        run.seen.point = lambda _: seen.append(len(run.log))  # type: ignore[method-assign]
        run.run()

        assert min(seen) >= 2


LONG = {"file": 1, "op": "write", "page": 9, "pages": 4, "age_ns": 16 * 10**9, "user": "log"}


class TestLongIo:
    def test_it_is_told_once_while_it_is_outstanding(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(long_outstanding=[LONG]), report(long_outstanding=[LONG]), ended())
        run.run()

        assert run.seen.told == ["OUTSTANDING for 16.0 s: write of 4 pages from page 9 of f-log by log"]
        assert any("1 I/Os outstanding for up to 16 s" in line for line in run.seen.lines)

    def test_the_same_page_again_is_another(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(long_outstanding=[LONG]), report(), report(long_outstanding=[LONG]), ended())
        run.run()

        assert len(run.seen.told) == 2


class TestEarlyEnds:
    def test_an_interrupt_stops_the_core_and_keeps_what_was_measured(self, stage: Callable[..., Stage]) -> None:
        cut = [phase("prepare", 0, 1), phase("stress", 1, 1.5)]
        run = stage(report(phases=cut[:1]), report(phases=cut[:1]), ended(*cut, audited=False))
        run.seen.point_done = lambda _: run.interrupt.set()  # type: ignore[method-assign]

        assert run.run() is ExitCode.INTERRUPTED
        assert run.core.is_stopped
        assert [point["ended_by"] for point in run.folder.points()] == ["time", "interrupted"]
        assert (run.integrity["passed"], run.integrity["audited"]) == (False, False)
        assert run.folder.manifest["verdict"][0]["met"] is None
        assert not run.execution.can_go_on

    def test_a_full_file_system_is_named(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(), report(state="failed", error="OutOfSpace", detail="f: no room for 8 MiB more"))

        assert run.run() is ExitCode.TARGET_FAILED
        assert isinstance(run.execution.error, OutOfSpace)
        assert str(run.execution.error) == "f: no room for 8 MiB more"

    def test_a_target_that_hangs_is_not_touched_again(
        self, stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = stage(report(), report(state="not-answering", detail="a read"))
        size_bytes = 16 * MIB
        hangs, answers = threading.Event(), threading.Event()
        identity = Hold.identity

        def hang() -> None:
            os.truncate(run.target, size_bytes + 4096)
            hangs.set()

        def identity_in_time(hold: Hold, *arguments: Any) -> FileIdentity:
            if hangs.is_set():
                answers.wait()
            return identity(hold, *arguments)

        run.seen.point = lambda _: hang()  # type: ignore[method-assign]
        monkeypatch.setattr(Hold, "identity", identity_in_time)
        monkeypatch.setattr(execute, "ANSWER_TIMEOUT_S", 0.1)

        assert run.run() is ExitCode.TARGET_FAILED
        answers.set()
        assert isinstance(run.execution.error, NotAnswering)
        assert run.target.stat().st_size == size_bytes + 4096

    @pytest.mark.parametrize("replaced", [False, True])
    def test_a_file_that_disappears_ends_the_run(
        self, stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch, replaced: bool
    ) -> None:
        monkeypatch.setattr(integrity_watch, "LOOK_EVERY_S", 0.02)
        run = stage(report())

        def vanish(_: Shown) -> None:
            if run.target.exists() and run.target.stat().st_size:
                run.target.rename(run.target.with_name("elsewhere"))
                if replaced:
                    run.target.write_bytes(b"")

        run.seen.point = vanish  # type: ignore[method-assign]

        assert run.run() is ExitCode.TARGET_FAILED
        assert isinstance(run.execution.error, IoFailed)
        assert ("is another file by now" if replaced else "is no longer there") in str(run.execution.error)
        assert not run.target.exists() or run.target.stat().st_size == 0

    def test_files_made_for_a_core_that_does_not_start_are_removed(
        self, stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = stage(ended())

        def refuse(_: str) -> None:
            raise NotSupported("no direct I/O here")

        monkeypatch.setattr(_core, "Verification", refuse)

        assert run.run() is ExitCode.TARGET_FAILED
        assert not run.target.exists()

    def test_findings_count_even_if_their_evidence_cannot_be_kept(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(findings=[finding()]), ended())
        (run.folder.path / "evidence").write_text("in the way")

        assert run.run() is ExitCode.INTEGRITY_FAILED
        assert "cannot write" in str(run.execution.error)
        assert run.core.is_stopped


class TestSizes:
    def test_what_grew_has_its_size_back_at_the_end(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(), ended())
        run.seen.point = lambda _: os.truncate(run.target, 20 * MIB)  # type: ignore[method-assign]
        run.run()

        assert run.target.stat().st_size == 16 * MIB
        assert run.request.choose([run.part]).examined[0].created_by_assay

    def test_after_a_persistent_finding_everything_stays(self, stage: Callable[..., Stage]) -> None:
        run = stage(report(findings=[finding()]), ended())
        run.seen.point = lambda _: os.truncate(run.target, 20 * MIB)  # type: ignore[method-assign]
        run.run()

        assert run.target.stat().st_size == 20 * MIB

    def test_files_are_removed_at_the_end_where_the_plan_says_so(self, stage: Callable[..., Stage]) -> None:
        run = stage(ended(), delete_at_shutdown=True)
        run.run()

        assert not run.target.exists()


class TestGoingOn:
    def test_a_part_that_is_finished_is_not_run_again(self, stage: Callable[..., Stage]) -> None:
        run = stage(ended())
        run.run()
        polls, found = run.core.polls, run.integrity

        assert run.again() is ExitCode.DONE
        assert run.core.polls == polls
        assert run.integrity == found
        assert len(run.folder.points()) == 4

    def test_one_that_was_cut_short_starts_anew(self, stage: Callable[..., Stage]) -> None:
        run = stage(ended(phase("prepare", 0, 1), audited=False))
        run.interrupt.set()
        run.run()
        run.interrupt.clear()
        run.core.reports = [ended()]

        assert run.again() is ExitCode.DONE
        assert run.integrity["passed"]


def test_faults_that_were_injected_are_in_the_document(tmp_path: Path, stage: Callable[..., Stage]) -> None:
    run = stage(report(injected={"torn": 3}, observable={"torn": 2}, masked={"torn": 1}), ended())
    run.core.reports[-1] |= {"injected": {"torn": 3}, "observable": {"torn": 2}, "masked": {"torn": 1}}
    request = TargetRequest(paths=[f"faulty:{tmp_path}/g?torn=1e-5&seed=7"], size="16M", database=True)
    run.execution = run.execution_on(request.choose([run.part]))
    run.run()

    assert run.core.asked["faulty"] == {
        **dict.fromkeys(FAULTS, 0.0), "seed": 7, "torn": 1e-5, "long_io_delay_ns": 16 * 10**9
    }  # fmt: skip
    assert run.integrity["injected"] == dict.fromkeys(FAULTS, 0) | {"torn": 3}
    assert run.integrity["masked"]["torn"] == 1
