"""The file a calibration writes: readable, nothing lost of what was there, and exactly the array that was fitted."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from small_array import small

from assay.base.errors import OpenFailed, RefusedTarget, UsageError
from assay.insight.calibration.calibrate import Fit
from assay.insight.calibration.calibrated_file import (
    calibrated_text,
    calibration_table,
    refuse_existing,
    restarted,
    write_new,
)
from assay.insight.calibration.observations import Observation
from assay.targets.arrays.model.configuration import Configuration, configure
from assay.targets.arrays.model.model_file import read_model
from assay.workloads.io.plan import load_plan

VALUES = {"disk.command_overhead": 612_345.0, "cache.dirty_low": 0.4321}


def fit_of(values: dict[str, float] = VALUES) -> Fit:
    return Fit(
        free=tuple(values),
        values=values,
        covariance=[[0.01 if row == column else 0.001 for column in range(len(values))] for row in range(len(values))],
        shifts={"disk.seek_full": [0.1] * len(values)},
        labels=("one", "two"),
        errors=(0.01, -0.02),
        left_out=(0.03, -0.04),
    )


def observed(structure: Configuration) -> list[Observation]:
    plan = load_plan({"activity": [{"queue_depth": 4}]}, source="test")
    volumes = [structure, structure.with_options({"volumes": "1"})]
    return [
        Observation(label=label, configuration=each, plan=plan, figures={"iops": 1.0}, noise_share=0.01)
        for label, each in zip(("one", "two"), volumes, strict=True)
    ]


def written(structure: Configuration, fit: Fit | None = None) -> str:
    fit = fit or fit_of()
    return calibrated_text(structure, "mine", fit, calibration_table(fit, observed(structure), "r"))


def asked(text: str, **options: str) -> Configuration:
    return Configuration(model=read_model(text.encode(), origin="mine.toml"), options={"volumes": "2", **options})


class TestText:
    def test_the_array_that_was_fitted(self) -> None:
        for structure in (small(), small(raid="50")):
            assert asked(written(structure)).plan() == structure.with_values(fit_of().values).plan()

    def test_units_are_kept_and_provenance_is_that_of_a_fit(self) -> None:
        data = tomllib.loads(written(small()))

        assert data["disk"]["command_overhead"] == {
            "value": 0.612345, "unit": "ms", "from": "fitted", "source": "calibrated to 2 points of r",
            "plus_minus": 0.1,
        }  # fmt: skip
        assert (data["cache"]["dirty_low"]["value"], data["cache"]["dirty_low"]["unit"]) == (0.4321, "share")
        assert (data["name"], data["default_raid"]) == ("mine", "10")

    def test_a_percentage_stays_one(self) -> None:
        data = tomllib.loads(written(small(), fit_of({"group.free_share": 0.0312})))

        assert (data["group"]["free_share"]["value"], data["group"]["free_share"]["unit"]) == (3.12, "%")

    def test_comments_and_everything_else_stay(self) -> None:
        structure = small()
        before, after = structure.model.text.splitlines(), written(structure).splitlines()

        assert "# Seagate Savvio 15K.2, ST9146852SS" in after
        lost = [line for line in before if line not in after]
        assert [line.partition(" =")[0] for line in lost] == ["name", "command_overhead", "dirty_low"]

    def test_the_section_of_the_calibration(self) -> None:
        calibration = asked(written(small())).model.calibration

        assert calibration is not None
        assert json.loads(json.dumps(calibration, allow_nan=False)) == calibration
        assert calibration == {
            "from": "r",
            "structure": "model:small.toml?volumes=2",
            "points": 2,
            "free": ["disk.command_overhead", "cache.dirty_low"],
            "error_share": pytest.approx(0.03536),
            "covariance": [[0.01, 0.001], [0.001, 0.01]],
            "shifts": {"disk.seek_full": [0.1, 0.1]},
            "raid": ["10"],
            "members": [1],
            "fill": [pytest.approx(0.062), pytest.approx(0.125)],
            "block_bytes": [8192.0, 8192.0],
            "read_share": [1.0, 1.0],
            "random_share": [1.0, 1.0],
            "observations": [
                {"label": "one", "error_share": 0.01, "left_out_error_share": 0.03},
                {"label": "two", "error_share": -0.02, "left_out_error_share": -0.04},
            ],
        }

    def test_an_earlier_calibration_is_replaced(self) -> None:
        once = asked(written(small()))
        again = written(once, fit_of({"disk.command_overhead": 500_000.0}))

        assert again.count("[calibration]") == 1
        assert (asked(again).model.calibration or {})["free"] == ["disk.command_overhead"]

    @pytest.mark.parametrize(
        "options",
        [
            {"disks.count": "8", "cache": "64M", "write_back": "no", "paths": "2", "path_policy": "least-queue-depth",
             "max_transfer": "none", "disk.seek_average": "3ms", "raid.chunk": "128KiB"},
            {"raid": "50", "raid.set_disks": "6", "disks.spares": "0"},
            {"raid": "6", "raid.policy.6.chunk": "32KiB"},
        ],
    )  # fmt: skip
    def test_options_of_the_structure_are_part_of_it(self, options: dict[str, str]) -> None:
        structure = small(**options)

        text = written(structure)

        assert asked(text).plan() == structure.with_values(fit_of().values).plan()
        for dotted, parameter in asked(text).parameters.items():
            assert parameter.from_ != "option", dotted

    def test_an_option_wins_over_what_the_file_has_for_a_policy(self) -> None:
        structure = small(raid="10", **{"raid.set_disks": "6"})

        assert asked(written(structure), raid="50").plan()["pools"][0]["member"]["raid"]["set_disks"] == 6

    def test_so_does_the_protocol_that_was_measured(self) -> None:
        structure = configure("fas3070", {"protocol": "fcoe", "volumes": "2"})

        text = written(structure, fit_of({"disk.command_overhead": 612_345.0, "links.latency": 77_000.0}))

        expected = structure.with_values({"disk.command_overhead": 612_345.0, "links.latency": 77_000.0})
        assert asked(text).plan()["links"] == expected.plan()["links"]

    def test_values_may_be_restarted(self) -> None:
        start = configure("black-box", {"volumes": "2"})

        again = restarted(start, {"links.latency": 50_000.0, "disk.channels": 7.0})

        assert (again.value("links.latency"), again.value("disk.channels")) == (50_000, 7)
        assert again.options == start.options
        before = {name: parameter.plus_minus for name, parameter in start.parameters.items()}
        assert {name: parameter.plus_minus for name, parameter in again.parameters.items()} == before


class TestWrite:
    def test_a_file_that_exists_is_never_touched(self, tmp_path: Path) -> None:
        path = tmp_path / "m.toml"
        write_new(path, "first")

        for act in (lambda: write_new(path, "second"), lambda: refuse_existing(path)):
            with pytest.raises(RefusedTarget, match=r"m\.toml: exists; nothing is overwritten") as error:
                act()
            assert error.value.exit_code == 2
        assert path.read_text() == "first"

    def test_nor_is_a_link_that_leads_nowhere(self, tmp_path: Path) -> None:
        path = tmp_path / "m.toml"
        path.symlink_to(tmp_path / "none")

        with pytest.raises(RefusedTarget):
            refuse_existing(path)
        with pytest.raises(RefusedTarget):
            write_new(path, "x")

    def test_a_missing_folder_is_said(self, tmp_path: Path) -> None:
        path = tmp_path / "none" / "m.toml"

        with pytest.raises(UsageError, match="there is no folder"):
            refuse_existing(path)
        with pytest.raises(OpenFailed, match="No such file"):
            write_new(path, "x")


def test_a_new_file_is_not_refused(tmp_path: Path) -> None:
    refuse_existing(tmp_path / "m.toml")
    found: list[Any] = list(tmp_path.iterdir())
    assert found == []
