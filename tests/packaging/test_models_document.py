"""The pages of models and docs/results.md agree with the code: options, parameters, keys, figures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_documentation import command_lines, section, table
from typer.testing import CliRunner

import assay
from assay.apps.cli.app import app
from assay.apps.cli.model_calibrate import calibrate as calibrate_command
from assay.apps.cli.model_reliability import reliability as reliability_command
from assay.insight.calibration import bands, calibrate, observations
from assay.targets.arrays.model.configuration import configure
from assay.targets.arrays.model.kinds import BYTES, COUNT, FLAG, RATE, RATIO, SHARE, TIME, WORD
from assay.targets.arrays.model.model_file import load_model
from assay.targets.arrays.model.options import CLOUD_OPTIONS, HOST_FLASH_OPTIONS, OPTIONS, REPLACED_BY
from assay.targets.arrays.model.parameters import ORIGINS, PARAMETERS
from assay.workloads.mailbox import job
from assay.workloads.modelled import summarise_model

UNITS = {
    "time": (TIME,), "bytes": (BYTES,), "bytes per time": (RATE,), "share": (SHARE,), "count": (COUNT,),
    "ratio": (RATIO,),
    "": (WORD, FLAG),
}  # fmt: skip


@pytest.fixture
def text(root: Path) -> str:
    return "".join(
        (root / "docs" / name).read_text()
        for name in (
            "models.md",
            "models-flash.md",
            "models-host-flash.md",
            "model-files.md",
            "models-cloud.md",
            "calibration.md",
        )
    )


def rows_under(text: str, first_cell: str) -> list[list[str]]:
    """Cells of the rows of the table whose first column is named so."""
    (body,) = re.findall(rf"^\| {re.escape(first_cell)} \|.*\n\|---.*\n((?:\|.*\n)+)", text, flags=re.MULTILINE)
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in body.splitlines()]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_options_of_the_target_are_those_of_the_code(text: str) -> None:
    rows = table(section(text, "Target"))
    assert set(rows) == {*OPTIONS, "SECTION.KEY"}
    (sentence,) = re.findall(r"^`cache`, .*? are other ways to write .*?\.$", text, flags=re.MULTILINE | re.DOTALL)
    assert set(quoted(sentence)) == {*REPLACED_BY, *REPLACED_BY.values()}
    array = configure("ps6100xv")
    assert (rows["members"][0], rows["seed"][0], rows["hosts"][0]) == ("1", "1", "1")
    plan = array.plan()
    assert (plan["pools"][0]["members"], plan["seed"], plan["links"]["hosts"]["count"]) == (1, 1, 1)
    assert rows["state"][0].strip("`") == plan["pools"][0]["member"]["state"]["kind"]
    assert (rows["start"][0] == "`warm`") == plan["pools"][0]["member"]["cache"]["starts_warm"]


def test_options_of_hosts_with_flash_are_those_of_the_code(text: str) -> None:
    rows = rows_under(text, "option of hosts with flash")
    assert sorted(name for cells in rows for name in quoted(cells[0])) == sorted(HOST_FLASH_OPTIONS)


def test_options_of_cloud_volumes_are_those_of_the_code(text: str) -> None:
    rows = rows_under(text, "option of a cloud volume")
    assert sorted(name for cells in rows for name in quoted(cells[0])) == sorted(CLOUD_OPTIONS)


def parameter_rows(text: str) -> Iterator[tuple[str, str]]:
    of_clouds = rows_under(text, "parameter of a cloud volume")
    for cells in [*rows_under(section(text, "File"), "parameter"), *of_clouds]:
        for name in quoted(cells[0]):
            units = [unit.strip() for unit in cells[1].split(",")]
            # A row of several parameters has one unit, or one for each.
            place = quoted(cells[0]).index(name)
            yield name, units[place] if len(units) > 1 else units[0]


def test_parameters_and_their_units_are_those_of_the_code(text: str) -> None:
    rows = dict(parameter_rows(text))
    kinds = {name: rows.pop(name) for name in ("disk.kind", "layout.kind")}
    assert kinds == {"disk.kind": "", "layout.kind": ""}
    assert set(rows) == set(PARAMETERS)
    for name, unit in rows.items():
        assert PARAMETERS[name].kind in UNITS[unit], name


def test_uncertainties_by_provenance_are_those_of_the_code(text: str) -> None:
    stated = re.search(
        r"([0-9.]+) for data sheet and published, ([0-9.]+) for fitted and\s+([0-9.]+) for assumed", text
    )
    assert stated is not None
    sheet, fitted, assumed = (float(share) for share in stated.groups())
    assert {"data sheet": sheet, "published": sheet, "fitted": fitted, "assumed": assumed} == ORIGINS


def test_limits_of_runs_are_those_of_the_model(root: Path, text: str) -> None:
    source = (root / "crates/array-model/src/write_anywhere.rs").read_text()
    least, shift = (int(re.findall(pattern, source)[0]) for pattern in (r"RUN_MIN: u32 = (\d+);", r"= 1 << (\d+);"))
    assert f"a power of two from {least} to {1 << shift:,}" in text


def test_keys_of_a_calibration_are_those_of_a_calibrated_file(text: str) -> None:
    calibration = load_model("ps6100xv").calibration
    assert calibration is not None
    keys = [key for cells in rows_under(text, "key of `[calibration]`") for key in quoted(cells[0])]
    assert sorted(keys) == sorted(calibration)
    (cells,) = (cells for cells in rows_under(text, "key of `[calibration]`") if cells[0] == "`observations`")
    assert set(quoted(cells[1])) == set(calibration["observations"][0])


@pytest.mark.parametrize(
    ("document", "command", "shared"),
    [
        ("docs/calibration.md", calibrate_command, {"quiet", "debug"}),
        ("docs/reliability.md", reliability_command, {"array", "seed", "output", "json", "report", "debug"}),
    ],
)
def test_options_of_commands_are_those_of_the_code(
    root: Path, document: str, command: object, shared: set[str]
) -> None:
    text = (root / document).read_text()
    options = {"source": "--from", "file": "`FILE`"}
    names = [name for name in inspect.signature(command).parameters if name not in shared]  # type: ignore[arg-type]
    for name in names:
        assert options.get(name, f"--{name.replace('_', '-')}") in text, name
    if command is calibrate_command:
        shown = [quoted(cells[0])[0].lstrip("-") for cells in rows_under(section(text, "Calibration"), "option")]
        assert sorted(shown) == sorted({"source": "from", "file": "FILE"}.get(name, name) for name in names)


def test_figures_of_calibration_and_error_bands_are_those_of_the_code(text: str) -> None:
    def share(value: float) -> str:
        return f"{value:.0%}".replace("%", " %")

    shares = [cells[0] for cells in rows_under(section(text, "Error bands"), "share")]
    assert shares == [
        f"error of prediction, at least {share(calibrate.MODEL_SHARE)}",
        share(bands.UNCALIBRATED_SHARE), f"{share(bands.OTHER_POLICY_SHARE)} more",
        f"{share(bands.DOUBLE_PARITY_SHARE)} more", f"{share(bands.MORE_MEMBERS_SHARE)} more",
        f"{share(bands.OTHER_BLOCK_SHARE)} more", f"{share(bands.OTHER_MIX_SHARE)} more",
        f"{share(bands.OTHER_FILL_SHARE)} more", f"{share(bands.OTHER_ORDER_SHARE)} more",
    ]  # fmt: skip
    calibration = " ".join(section(text, "Calibration").split())
    words = {2: "two", 3: "three", 8: "eight", 10: "ten"}
    for sentence in (
        f"at most one parameter for every {words[calibrate.POINTS_PER_PARAMETER]} points,"
        f" and {words[calibrate.FREE_MAX]} in all",
        f"at least {share(observations.MEASURED_MIN)}, and {share(calibrate.MODEL_SHARE)} of the model;"
        f" for published figures it is {share(observations.PUBLISHED_SHARE)}",
        f"by a factor of {words[int(calibrate.FACTOR_MAX)]} at most",
        f"each over at least {observations.FEWEST_IOS} I/Os",
        f"repeats that differ by more than {share(observations.SAME_SHARE)}",
        f"off by more than {share(calibrate.EXPLAINS_SHARE)} on average",
    ):
        assert sentence in calibration
    assert calibrate.GAIN_MIN == 0.1
    assert "A further one must take away a tenth of what is left" in calibration
    assert job.SETTLING_MAX_S == 300
    assert "the warm-up is prolonged, by five minutes at most" in " ".join(text.split())


def test_command_lines_are_understood(text: str) -> None:
    lines = list(command_lines(text))
    assert lines
    for line in lines:
        shown = CliRunner().invoke(app, [*line, "--help"])
        assert shown.exit_code == 0, f"{line}: {shown.output}"


def test_results_of_a_model_are_those_documented(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["profile", "model:ps6100xv?volumes=1&state=rebuilding", "--block", "8K", "--read", "70"]
    command += ["--warmup", "2s", "--duration", "2s", "--search", "none"]
    ended = CliRunner().invoke(app, [*command, "--no-report", "--quiet", "-o", "out"])
    assert ended.exit_code == 0, ended.output
    (folder,) = (tmp_path / "out").iterdir()
    run = assay.load(folder)
    results = (root / "docs/results.md").read_text()

    documented = {}
    for line in results.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| storage | model |"):
            level = "disk" if "disk3" in cells[2] or cells[2].startswith("disk") else cells[2].split(" ")[0].strip(",")
            documented |= {(level, metric): cells[4] for metric in quoted(cells[3])}
    recorded = {}
    for (entity, metric, kind), _ in run.rows.of(source="model").apart("entity", "metric", "kind"):
        level = "member" if "/" not in entity else entity.partition("/")[2].rstrip("0123456789")
        recorded[level, metric] = kind
    # This array writes in place and saw no stream.
    assert documented == recorded | {("member", "ahead_piece_bytes"): "gauge"}
    assert run.rows.distinct("clock") == ["virtual"]

    (block,) = re.findall(r'^    "array": \{("disk_busy_share".*?)\}', results, flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r'"([a-z_]+)"', block) == list(summarise_model([], 0, 0, configure("ps6100xv")))
