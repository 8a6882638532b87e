"""A modelled array as a target: its volumes, what results say of it, and what only storage has and a model refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.run.request import TargetRequest, refuse_model
from assay.run.simulate import simulate
from assay.targets.arrays.model.configuration import configure
from assay.targets.files.safety import examine
from assay.targets.files.spec import parse_targets
from assay.workloads.io.plan import load_plan
from assay.workloads.plan import Part
from assay.workloads.registry import workload_named

IO_KIND = workload_named("io")

INTEGRITY_KIND = workload_named("integrity")

TARGET = "model:ps6100xv?raid=50&volumes=3"


def request(target: str = TARGET, **more: Any) -> TargetRequest:
    return TargetRequest(paths=[target], **more)


def part(**activity: Any) -> Part:
    plan = load_plan({"activity": [{"block_bytes": "8K", "read_share": 0.7} | activity]}, source="test")
    return Part(name="p", title="P", plan=plan)


class TestVolumes:
    def test_one_for_each_of_the_array(self) -> None:
        specs = parse_targets([TARGET])

        assert [(spec.name, spec.kind, spec.role, spec.path) for spec in specs] == [
            ("v01", "model", "data", None), ("v02", "model", "data", None), ("v03", "model", "data", None)
        ]  # fmt: skip
        assert {spec.size_bytes for spec in specs} == {100 * 10**9}
        assert {spec.array.target_text for spec in specs if spec.array} == {TARGET}
        assert specs[0].options == {"raid": "50", "volumes": "3"}

    def test_of_another_role_where_it_is_named_for_one(self) -> None:
        assert {spec.role for spec in parse_targets([], volumes=[f"log={TARGET}"])} == {"log"}

    @pytest.mark.parametrize(
        ("paths", "volumes"),
        [
            ([TARGET, TARGET], []),
            ([TARGET, "/srv/f"], []),
            (["/srv/f", TARGET], []),
            (["null:"], [f"log={TARGET}"]),
            ([], [f"data={TARGET},log=model:ps3800xv"]),
        ],
    )
    def test_a_model_is_the_whole_target(self, paths: list[str], volumes: list[str]) -> None:
        with pytest.raises(UsageError, match="is a whole target; give it alone"):
            parse_targets(paths, volumes=volumes)

    def test_sizes_are_in_the_target(self) -> None:
        with pytest.raises(UsageError, match=r"--size: volumes of a model have theirs in the target"):
            parse_targets([TARGET], sizes="10G")

    def test_a_mistyped_scheme_names_it(self) -> None:
        with pytest.raises(UsageError, match="did you mean model:"):
            parse_targets(["modle:ps6100xv"])

    def test_a_file_may_still_be_called_so(self, tmp_path: Path) -> None:
        assert parse_targets([f"file:{tmp_path}/model:x"])[0].kind == "file"


class TestChosen:
    def test_nothing_is_examined_laid_out_or_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        target = request().choose([part()])

        assert (target.to_lay_out, target.unwritten, target.layout_bytes) == ([], [], 0)
        assert target.sizes == dict.fromkeys(("v01", "v02", "v03"), 100 * 10**9)
        assert target.array is not None
        assert target.array.target_text == TARGET
        assert list(tmp_path.iterdir()) == []

    def test_facts_say_what_it_is_and_trace_every_parameter(self) -> None:
        facts = request().choose([part()]).facts()

        assert json.loads(json.dumps(facts, allow_nan=False)) == facts
        volume = facts["volumes"][0]
        assert (volume["kind"], volume["path"], volume["role"]) == ("model", None, "data")
        assert volume["model"] == "EqualLogic PS6100XV, RAID 50, 1 member"
        assert (volume["state"], volume["bytes_laid_out"], volume["device"]) == ("fresh", 0, None)
        assert facts["array"]["parameters"]["disk.revolution"]["source"] == "15,000 revolutions per minute"
        assert "predictions" in facts["cache_notice"]

    def test_notices_of_the_array_are_those_of_the_target(self) -> None:
        target = request("model:ps6100xv?volumes=3&fill=0.8").choose([part()])

        assert ["fill=0.8 is a label only" in notice for notice in target.notices] == [True]

    def test_volumes_have_the_sectors_of_disks(self) -> None:
        assert {volume.sector_bytes for volume in request().choose([part()]).volumes} == {512}

    def test_an_examination_finds_a_volume_that_is_all_there(self) -> None:
        examined = examine(parse_targets([TARGET])[0], writes=True)

        assert (examined.exists, examined.fully_allocated, examined.created_by_assay) == (True, True, False)
        assert (examined.path, examined.size_bytes) == (None, 100 * 10**9)

    def test_volumes_take_roles_and_sizes_by_role(self) -> None:
        asked = TargetRequest(paths=["model:ps6100xv?volumes=data:8,log:2,tempdb:2&volume_size=data:100GB,log:20GB"])
        volumes = asked.choose([part()]).volumes
        assert [volume.roles for volume in volumes] == [("data",)] * 8 + [("log",)] * 2 + [("tempdb",)] * 2
        assert [volume.name for volume in volumes[7:10]] == ["data08", "log01", "log02"]
        assert [volume.size_bytes // 10**9 for volume in volumes[7:]] == [100, 20, 20, 100, 100]

    @pytest.mark.parametrize(
        ("target", "words"),
        [
            ("volumes=data:8,redo:2", "'redo' is unknown; accepted: data, log, tempdb"),
            ("volumes=data:8,data:2", "data is given twice"),
            ("volumes=8&volume_size=log:20GB", "no volumes of role log"),
            ("volumes=data:1000,log:1000", "2,000 in all"),
        ],
    )
    def test_roles_that_are_none(self, target: str, words: str) -> None:
        with pytest.raises(UsageError, match=re.escape(words)):
            TargetRequest(paths=[f"model:ps6100xv?{target}"]).choose([part()])

    def test_a_log_waits_for_the_disks_without_a_battery(self) -> None:
        plan = load_plan(
            {"name": "log", "activity": [{"role": "log", "block_bytes": "8K", "read_share": 0, "random_share": 0,
                                          "sync": "fdatasync", "queue_depth": 1}],
             "timing": {"warmup_s": 1, "duration_s": 2}}, source="test",
        )  # fmt: skip
        means = [
            simulate(configure("ps6100xv", {"volumes": "data:8,log:2", "write_back": battery}), plan)[0][0]["write"]
            for battery in ("yes", "no")
        ]
        with_battery_ns, without_ns = (mean["latency_ns"]["mean"] for mean in means)
        assert with_battery_ns < 1.5e6 < 4e6 < without_ns

    def test_sequential_and_mixed_presets_fit(self) -> None:
        for name in ("oltp", "dss", "tempdb", "log", "database"):
            assert request().choose([Part(name=name, title=name, plan=IO_KIND.preset(name))]).array is not None


class TestRefused:
    @pytest.mark.parametrize(
        ("activity", "words"),
        [
            ({"io_mode": "buffered"}, r"--buffered \(activity 'io', key io_mode\)"),
        ],
    )
    def test_waiting_in_real_time(self, activity: dict[str, Any], words: str) -> None:
        with pytest.raises(UsageError, match=words):
            request().choose([part(**activity)])

    @pytest.mark.parametrize(
        ("option", "given"),
        [
            ("--cache-size", {"cache_size": "1G"}),
            ("--overwrite", {"overwrite": ["/dev/sdb"]}),
            ("--yes-destroy", {"yes_destroy": ["/dev/sdb"]}),
            ("--size", {"size": "1G"}),
            ("--crash-journal", {"crash_journal": "j"}),
            ("--after-crash", {"after_crash": "j"}),
        ],
    )
    def test_options_of_storage(self, option: str, given: dict[str, Any]) -> None:
        with pytest.raises(UsageError, match=f"^{option}: "):
            request(**given).choose([part()])

    def test_a_backend(self) -> None:
        plan = load_plan({"activity": [{}], "backend": "threads"}, source="test")
        with pytest.raises(UsageError, match="--backend threads: a model does no I/O"):
            request().choose([Part(name="p", title="P", plan=plan)])

    def test_verification(self) -> None:
        plan = INTEGRITY_KIND.preset("default")
        with pytest.raises(UsageError, match="holds no bytes to verify"):
            request(database=True).choose([Part(name="p", title="P", plan=plan)])

    def test_by_verbs_that_need_bytes(self) -> None:
        refuse_model(["/srv/f", "null:"])
        with pytest.raises(UsageError, match="holds no bytes"):
            refuse_model(["/srv/f", TARGET])
