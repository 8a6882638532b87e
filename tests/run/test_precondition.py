"""Preconditioning: purge, fills, rounds until steady; what is kept of it, refused and told."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from assay.apps.service import execution
from assay.base.errors import ExitCode, Interrupted, NotSupported, RefusedTarget, UsageError
from assay.base.progress import Silent
from assay.document.elements import FactList, FigureElement, Paragraph, Table
from assay.insight.studies.parts import study_parts
from assay.insight.studies.study import load_study
from assay.record.points import current_points, preconditioning
from assay.record.run_folder import RunFolder
from assay.record.steady import steady_rounds
from assay.report.facts import load_facts
from assay.run.execute import Execution, new_folder
from assay.run.request import TargetRequest
from assay.run.targets import choose_targets
from assay.targets.files.hold import Hold
from assay.targets.files.purge import BLKDISCARD, PIECE_BYTES, discard
from assay.workloads.io.plan import load_plan
from assay.workloads.io.precondition import Precondition, precondition_words, spread, valid_share
from assay.workloads.io.report.precondition import state_section
from assay.workloads.plan import Part
from assay_command import Bench

PLAN = {
    "timing": {"warmup_s": 0, "duration_s": 0.2},
    "activity": [{"block_bytes": "4K", "read_share": 0.7, "queue_depth": 4}],
    "precondition": {"method": "full"},
}
MODEL = (
    "model:nvme-mirror?raid=0&disks.count=1&volumes=1&volume_size=0.98GB&disk.capacity=1GB&disk.dies=8"
    "&disk.pages_per_block=64"
)
"""A drive whose flash is small, so that it ages soon."""

ROUNDS = 6
"""In the first round spare blocks are still free: the window is steady without it."""

Begin = Callable[..., Execution]


class Shown(Silent):
    """Hears of points, and interrupts after so many."""

    def __init__(self, interrupt: threading.Event, after: int | None) -> None:
        self.interrupt, self.after, self.ids = interrupt, after, list[str]()

    def point_done(self, point: Any) -> None:
        self.ids.append(point["id"])
        if len(self.ids) == self.after:
            self.interrupt.set()


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    """A plan on a target that is ready to run, and to be interrupted after so many points."""

    def ready(
        target: str, plan: dict[str, Any] | None = None, *, after: int | None = None, folder: RunFolder | None = None
    ) -> Execution:
        parts = [Part(name="io", title="I/O", plan=load_plan(PLAN | (plan or {}), source="test"))]
        request = TargetRequest(paths=[target], size=None if target.startswith("model:") else "8M")
        chosen, parts = choose_targets(request, parts)
        folder = folder or new_folder(tmp_path, "profile", [], request.to_dict(), parts)
        interrupt = threading.Event()
        return execution(folder, chosen, parts, display=Shown(interrupt, after), interrupt=interrupt, with_report=False)

    return ready


def names(folder: RunFolder) -> list[str]:
    return [point["workload"]["name"] for point in preconditioning(folder.points())]


def test_a_target_is_filled_twice_and_written_in_rounds_until_steady(begin: Begin) -> None:
    run = begin(MODEL)
    assert run.run() is ExitCode.DONE

    told = preconditioning(run.folder.points())
    steps = [(point["precondition"]["step"], point["precondition"]["number"]) for point in told]
    assert steps == [("fill", 1), ("fill", 2), *(("round", number) for number in range(1, ROUNDS + 1))]
    states = ["purged", "filled", "filled", *["unsteady"] * (ROUNDS - 1)]
    assert [point["state"]["name"] for point in told] == states
    # Each fill writes all of the capacity in 128 KiB, each round a tenth at random.
    capacity = run.folder.manifest["target"]["volumes"][0]["size_bytes"]
    assert [round(point["precondition"]["written_bytes"] / capacity, 2) for point in told] == [1, 1, *[0.1] * ROUNDS]
    assert told[0]["workload"]["block_bytes"] == 131072
    assert told[2]["workload"]["block_bytes"] == 4096
    (point,) = current_points(run.folder.points())
    state = point["state"]
    assert (state["name"], state["fills"], state["rounds"], state["purge"]) == ("steady", 2, ROUNDS, "a fresh model")
    assert run.folder.manifest["states"] == [{**state, "parts": ["io"]}]
    # None of it is a result.
    assert [point["id"] for point in run.points] == [point["id"]]


def test_rounds_that_never_get_steady_end_and_are_told(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.record.steady.EXCURSION_SHARE", -1.0)
    run = begin(MODEL, {"precondition": {"method": "full", "fills": 0, "rounds_most": 6, "round_share": 0.02}})
    assert run.run() is ExitCode.DONE

    (point,) = current_points(run.folder.points())
    assert point["state"]["name"] == "unsteady"
    assert any(text.startswith("no steady state after 6 rounds") for text in run.notices)


def test_a_purged_target_is_not_steady_before_it_was_written_twice(begin: Begin) -> None:
    run = begin(MODEL, {"precondition": {"method": "full", "fills": 0, "round_share": 0.2}})
    run.run()

    (point,) = current_points(run.folder.points())
    # Half of that is written to free blocks, fast and steady for a while.
    assert point["state"]["rounds"] >= 10
    assert point["state"]["name"] == "steady"


@pytest.mark.slow(reason="three preconditionings of a model")
def test_both_ways_end_where_the_model_begins_that_is_steady(begin: Begin) -> None:
    def iops(target: str, method: str) -> float:
        writes = {"block_bytes": "4K", "read_share": 0.0, "queue_depth": 32}
        timing = {"warmup_s": 0, "duration_s": 2}
        run = begin(target, {"activity": [writes], "timing": timing, "precondition": {"method": method}})
        run.run()
        (point,) = current_points(run.folder.points())
        return float(point["total"]["iops"])

    steady, fresh = (iops(f"{MODEL}&state={age}", "none") for age in ("steady", "fresh"))
    full = iops(MODEL, "full")
    assert fresh > 2 * full
    assert iops(MODEL, "short") == pytest.approx(full, rel=0.1)
    # So small a drive has few blocks, and the model's own distribution is that of many.
    assert steady == pytest.approx(full, rel=0.2)


def test_the_shortened_way_is_one_fill_and_a_spread(begin: Begin) -> None:
    run = begin(MODEL, {"precondition": {"method": "short"}})
    run.run()

    assert names(run.folder)[0] == "sequential fill 1 of 1"
    assert [point["precondition"]["step"] for point in preconditioning(run.folder.points())][1:] == ["spread"] * 8
    (point,) = current_points(run.folder.points())
    assert (point["state"]["name"], point["state"]["method"]) == ("steady", "short")


def test_rounds_of_a_whole_plan_track_its_small_writes(begin: Begin) -> None:
    activity = {"block_bytes": ["4K", "64K"], "read_share": [0.0, 1.0], "queue_depth": 8}
    run = begin(MODEL, {"activity": [activity], "precondition": {"method": "full", "rounds": "plan", "fills": 2}})
    run.run()

    rounds = [point for point in preconditioning(run.folder.points()) if point["precondition"]["step"] == "round"]
    assert len(rounds) % 4 == 0
    assert len(rounds) >= 5 * 4
    tracked = {(point["workload"]["block_bytes"], point["workload"]["read_share"])
               for point in rounds if point["precondition"]["tracked"]}  # fmt: skip
    assert tracked == {(4096, 0.0)}
    assert len(current_points(run.folder.points())) == 4


def test_a_run_that_was_interrupted_goes_on_behind_its_last_step(begin: Begin, tmp_path: Path) -> None:
    path = str(tmp_path / "f.dat")
    first = begin(path, after=4)
    assert first.run() is ExitCode.INTERRUPTED
    done = names(first.folder)
    assert len(done) == 4

    again = begin(path, folder=first.folder)
    assert again.run() in (ExitCode.DONE, ExitCode.LIMIT_MISSED)

    held = names(again.folder)
    assert held[:4] == done
    assert held.count("sequential fill 1 of 2") == 1
    (point,) = current_points(again.folder.points())
    assert point["state"]["only_files"] is True
    assert not any("another model or plan" in text for text in again.notices)


def test_a_model_that_was_interrupted_is_brought_into_its_state_anew(begin: Begin) -> None:
    first = begin(MODEL, after=4)
    assert first.run() is ExitCode.INTERRUPTED

    again = begin(MODEL, folder=first.folder)
    assert again.run() is ExitCode.DONE
    (point,) = current_points(again.folder.points())
    assert point["state"]["fills"] == 2
    # Each step once more, and counted once.
    assert len(preconditioning(again.folder.points())) == 2 + ROUNDS
    assert len(again.folder.points()) == 4 + 2 + ROUNDS + 1


class TestCriterion:
    @pytest.mark.parametrize(
        ("values", "reached"),
        [
            ([100, 110, 90, 100, 100], True),
            ([100, 111, 90, 100, 99], False),
            ([100, 98, 96, 94, 92], True),
            ([100, 97, 94, 91, 88], False),
            ([500, 400, 100, 101, 99, 100, 100], True),
        ],
    )
    def test_excursion_and_slope_of_five_rounds(self, values: list[float], reached: bool) -> None:
        found = steady_rounds(values)
        assert found is not None
        assert found.reached is reached
        assert found.first == len(values) - 5

    def test_fewer_rounds_and_rounds_of_nothing_are_not_judged(self) -> None:
        assert steady_rounds([100.0] * 4) is None
        assert steady_rounds([0.0] * 5) is None


class TestAmounts:
    def test_a_spread_adds_up_to_about_the_spare_flash(self) -> None:
        # The law gives 1.15 of 1.07, and 1.45 of 1.28, times what is spare: writes of the spread meet each other.
        for spare in (0.07, 0.15, 0.28):
            written = sum(share for _, share in spread(spare))
            assert spare < written < 1.35 * spare

    def test_the_density_of_a_spread_leaves_the_valid_shares_of_steady_state(self) -> None:
        spare, steps = 0.15, spread(0.15)
        oldest = sum(written / region for region, written in steps)
        newest = steps[-1][1]
        # The first addresses hold the oldest blocks, the last ones those that the fill wrote last.
        assert valid_share(spare) == pytest.approx(2.718281828**-oldest, rel=0.02)
        assert newest < oldest / 4

    def test_what_is_written_at_most_is_bounded(self) -> None:
        assert Precondition(method="full").written_most_bytes(1000) == 4500
        assert Precondition(method="full", rounds="plan").written_most_bytes(1000) == 12000
        assert Precondition().written_most_bytes(1000) == 0


class TestPermission:
    def request(self, path: Path, **asked: Any) -> TargetRequest:
        return TargetRequest(paths=[str(path)], size="8M", **asked)

    @pytest.fixture(autouse=True)
    def _wears_soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("assay.run.request.WRITES_UNASKED_BYTES", 20_000_000)

    def parts(self) -> list[Part[Any]]:
        return [Part(name="io", title="I/O", plan=load_plan(PLAN, source="test"))]

    def test_many_writes_are_refused_and_the_option_named(self, tmp_path: Path) -> None:
        with pytest.raises(RefusedTarget, match="allow it with --yes-writes 1GB"):
            self.request(tmp_path / "f.dat").choose(self.parts())
        assert not (tmp_path / "f.dat").exists()

    def test_a_permission_that_covers_them_is_enough(self, tmp_path: Path) -> None:
        self.request(tmp_path / "f.dat", yes_writes="1GB").choose(self.parts())
        with pytest.raises(RefusedTarget, match="--yes-writes is"):
            self.request(tmp_path / "f.dat", yes_writes="30MB").choose(self.parts())

    def test_a_dry_run_tells_them_and_a_model_does_not_wear(self, tmp_path: Path) -> None:
        self.request(tmp_path / "f.dat", dry_run=True).choose(self.parts())
        TargetRequest(paths=[MODEL]).choose(self.parts())


class TestPurge:
    @pytest.fixture
    def hold(self, tmp_path: Path) -> Hold:
        path = tmp_path / "device"
        path.write_bytes(bytes(4096))
        return Hold.take(path, writes=True)

    def test_only_the_bytes_that_a_run_uses_are_discarded(self, hold: Hold) -> None:
        calls = []

        def ioctl(descriptor: int, request: int, argument: bytes) -> None:
            os.fstat(descriptor)
            calls.append((request, struct.unpack("QQ", argument)))

        discard(hold, PIECE_BYTES + 4096, threading.Event(), ioctl=ioctl)
        assert calls == [(BLKDISCARD, (0, PIECE_BYTES)), (BLKDISCARD, (PIECE_BYTES, 4096))]

    def test_a_device_that_refuses_is_named(self, hold: Hold) -> None:
        def ioctl(*_: object) -> None:
            raise OSError(95, "Operation not supported")

        with pytest.raises(NotSupported, match="refuses to be discarded"):
            discard(hold, 4096, threading.Event(), ioctl=ioctl)

    def test_an_interrupt_ends_it(self, hold: Hold) -> None:
        interrupt = threading.Event()
        interrupt.set()
        with pytest.raises(Interrupted):
            discard(hold, 4096, interrupt, ioctl=lambda *_: None)

    def test_a_file_is_no_device_to_discard(self, bench: Bench) -> None:
        asked = (bench.target, "--size", "8M", "--precondition", "full", "--purge", "discard", "--dry-run")
        assert "takes no discards" in bench.profile(*asked).complaint


class TestFormats:
    """A purge that formats: asked for by name, and twice."""

    PLAN: ClassVar[dict[str, Any]] = PLAN | {"precondition": {"method": "purge", "purge": "format"}}

    @pytest.fixture
    def formatted(self, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
        """The devices that were formatted; each file stands for a namespace."""
        done: list[Path] = []
        monkeypatch.setattr("assay.workloads.io.workload.refuse_format", lambda *_: None)
        monkeypatch.setattr("assay.workloads.io.measurement.format_namespace", lambda hold: done.append(hold.path))
        return done

    def parts(self) -> list[Part[Any]]:
        return [Part(name="io", title="I/O", plan=load_plan(self.PLAN, source="test"))]

    def request(self, path: Path, **asked: Any) -> TargetRequest:
        return TargetRequest(paths=[str(path)], size="8M", **asked)

    def test_it_is_refused_unless_the_device_is_named_again(self, tmp_path: Path, formatted: list[Path]) -> None:
        path = tmp_path / "f.dat"
        with pytest.raises(RefusedTarget, match=f"allow it by name with --yes-format {path}"):
            self.request(path).choose(self.parts())
        with pytest.raises(RefusedTarget):
            self.request(path, yes_format=[str(tmp_path / "g.dat")]).choose(self.parts())
        target = self.request(path, yes_format=[str(path)]).choose(self.parts())
        assert target.permissions_again([])[-2:] == ["--yes-format", str(path)]
        self.request(path, dry_run=True).choose(self.parts())
        assert formatted == []

    def test_it_comes_before_the_first_write_and_is_kept_with_the_state(
        self, tmp_path: Path, formatted: list[Path]
    ) -> None:
        path = tmp_path / "f.dat"
        parts = self.parts()
        request = self.request(path, yes_format=[str(path)])
        target, chosen = choose_targets(request, parts)
        folder = new_folder(tmp_path, "profile", [], request.to_dict(), chosen)
        interrupt = threading.Event()
        run = execution(
            folder, target, chosen, display=Shown(interrupt, None), interrupt=interrupt, with_report=False
        )  # fmt: skip
        assert run.run() is ExitCode.DONE

        assert formatted == [path]
        (point,) = current_points(run.folder.points())
        assert (point["state"]["name"], point["state"]["purge"]) == ("purged", "format")
        # No run folder keeps the permission.
        assert "yes_format" not in run.folder.manifest["request"]

    def test_the_plan_says_it(self) -> None:
        wanted = Precondition(method="full", purge="format")
        assert precondition_words(wanted, 10**12).startswith(
            "preconditioning formats the whole NVMe namespace of each volume, then writes 2.50 TB to 4.50 TB"
        )
        assert precondition_words(Precondition(purge="format"), 10**12) == ""

    def test_a_file_has_no_namespace(self, bench: Bench) -> None:
        asked = (bench.target, "--size", "8M", "--precondition", "purge", "--purge", "format")
        assert "is no whole NVMe namespace" in bench.profile(*asked, "--yes-format", bench.target).complaint


def test_a_dry_run_tells_bytes_and_time(bench: Bench) -> None:
    asked = (bench.target, "--size", "8M", "--precondition", "full", "--dry-run")
    told = bench.profile(*asked).stdout
    assert "preconditioning writes" in told
    assert "2 sequential fills and rounds until steady" in told
    document = bench.profile(*asked, "--json").document
    assert document["precondition_bytes"] == round(4.5 * 8 * 2**20)
    assert document["plan"]["precondition"]["method"] == "full"


class TestStudies:
    STUDY: ClassVar[dict[str, Any]] = {
        "name": "small", "title": "Small", "question": "?", "targets": ["model"], "target": MODEL,
        "precondition": {"method": "fill"},
        "plan": {"timing": {"warmup_s": 0, "duration_s": 0.2}, "activity": [{"queue_depth": 4}]},
        "factor": [{"name": "block", "title": "block", "of": "activity", "key": "block_bytes", "levels": ["4K", "8K"]}],
    }  # fmt: skip

    def test_the_target_is_brought_into_its_state_once_and_levels_follow_in_their_order(self) -> None:
        parts, facts = study_parts(load_study(self.STUDY | {"repeats": 2}, source="test"), target=MODEL)

        assert [part.plan.precondition.method for part in parts] == ["fill", "none", "none", "none"]
        assert [part.continues for part in parts] == [False, True, True, True]
        assert facts["order"] == [part.name for part in parts]

    def test_all_levels_find_the_state(self, tmp_path: Path) -> None:
        parts, facts = study_parts(load_study(self.STUDY, source="test"), target=MODEL)
        request = TargetRequest(paths=[MODEL])
        target, chosen = choose_targets(request, parts)
        folder = new_folder(tmp_path, "study", [], request.to_dict(), chosen, facts)
        interrupt = threading.Event()
        run = execution(
            folder, target, chosen, display=Shown(interrupt, None), interrupt=interrupt, with_report=False
        )  # fmt: skip
        assert run.run() is ExitCode.DONE

        assert [point["state"]["name"] for point in current_points(folder.points())] == ["filled", "filled"]
        (state,) = folder.manifest["states"]
        assert state["parts"] == ["block=4K", "block=8K"]

    def test_levels_of_the_target_begin_afresh(self) -> None:
        factor = {"name": "raid", "title": "RAID", "levels": ["0", "1"]}
        with pytest.raises(UsageError, match="levels that change the target begin afresh"):
            load_study(self.STUDY | {"factor": [factor]}, source="test")


def test_a_purge_alone_leaves_a_purged_target(begin: Begin) -> None:
    run = begin(MODEL, {"precondition": {"method": "purge"}})
    run.run()
    (point,) = current_points(run.folder.points())
    assert point["state"]["name"] == "purged"


def test_the_report_draws_rounds_with_their_window_and_says_the_state(begin: Begin) -> None:
    run = begin(MODEL)
    run.run()
    section = state_section(load_facts(run.folder.path))

    assert section is not None
    texts = [block.text for block in section.blocks if isinstance(block, Paragraph)]
    assert "not certified" in texts[0]
    assert "in steady state (purge: a fresh model, 2 sequential fills, 6 rounds" in texts[1]
    (figure,) = [block for block in section.blocks if isinstance(block, FigureElement)]
    assert figure.caption.endswith(": steady.")
    (steps,) = [block for block in section.blocks if isinstance(block, Table)]
    assert len(steps.rows) == 2 + ROUNDS
    # The end of the run says it as well.
    assert any(
        text.startswith("measured on a target that was in steady state") for text in run.folder.manifest["notices"]
    )


def test_a_run_that_preconditions_nothing_has_no_section(begin: Begin) -> None:
    run = begin(MODEL, {"precondition": {"method": "none"}})
    run.run()
    assert state_section(load_facts(run.folder.path)) is None
    assert [state["method"] for state in run.folder.manifest["states"]] == ["model"]


def test_a_rounds_slope_may_fall_and_the_folder_is_read_again(begin: Begin) -> None:
    run = begin(MODEL)
    run.run()
    run.folder.update(states=[{"name": "steady", "slope_share": -0.03, "parts": ["io"]}])
    assert RunFolder.open(run.folder.path).manifest["states"][0]["slope_share"] == -0.03


def test_an_examination_preconditions_before_its_first_part_of_storage(bench: Bench) -> None:
    asked = ("assess", bench.target.parent, "--quick", "--only", "oltp,log", "--precondition", "short", "--dry-run")
    document = bench.assay(*asked, "--json").document
    methods = {part["name"]: part["plan"]["precondition"]["method"] for part in document["parts"]}
    assert methods == {"oltp": "short", "log": "none"}


@pytest.mark.parametrize(("age", "name"), [("fresh", "purged"), ("written", "filled"), ("steady", "steady")])
def test_a_model_says_in_what_state_it_begins(begin: Begin, age: str, name: str) -> None:
    run = begin(f"{MODEL}&state={age}", {"precondition": {"method": "none"}})
    run.run()
    (point,) = current_points(run.folder.points())
    assert point["state"] == {"name": name, "method": "model"}


def test_repeats_of_a_study_in_steady_state_are_rounds_of_all_levels(tmp_path: Path) -> None:
    plan = {"timing": {"warmup_s": 0, "duration_s": 0.1}, "activity": [{"queue_depth": 4, "block_bytes": "4K"}]}
    factor = {"name": "reads", "title": "reads", "of": "activity", "key": "read_share", "levels": ["100%", "0%"]}
    study = TestStudies.STUDY | {"plan": plan, "factor": [factor], "repeats": 5}
    parts, facts = study_parts(load_study(study, source="test"), target=MODEL)
    request = TargetRequest(paths=[MODEL])
    target, chosen = choose_targets(request, parts)
    folder = new_folder(tmp_path, "study", [], request.to_dict(), chosen, facts)
    interrupt = threading.Event()
    run = execution(folder, target, chosen, display=Shown(interrupt, None), interrupt=interrupt, with_report=False)
    assert run.run() is ExitCode.DONE

    section = state_section(load_facts(folder.path))
    assert section is not None
    (told,) = [block.text for block in section.blocks if isinstance(block, Paragraph)][1:]
    assert told.startswith("All 10 parts: measured on a target that was filled")
    (figure,) = [block for block in section.blocks if isinstance(block, FigureElement)]
    assert figure.caption.startswith("4 KiB random write: I/Os per second in each round of all levels. The window is")
    (drive,) = [block for block in section.blocks if isinstance(block, FactList)]
    assert dict(drive.items)["Capacity under test"] == "980 MB"
