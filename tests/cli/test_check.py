"""`assay check` as a command: exit codes, formats, files, targets, and one line for what is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from assay.insight.rules.registry import RULES
from assay.insight.rules.rule import SEVERITIES
from assay_command import Bench

FULL = "model:ps6100xv?raid=50&fill=0.9"
"""A warning, and no error."""

BROKEN = "model:ps6100xv?raid=10&state=degraded"
"""An error."""

ARRAYS = ("--only", "arrays")
RUNS = Path(__file__).parents[1] / "fixtures" / "runs"


# Exit codes


@pytest.mark.parametrize(
    ("target", "fail_on", "code"),
    [
        (FULL, "error", 0), (FULL, "warning", 1), (FULL, "note", 1), (FULL, "never", 0), (BROKEN, "error", 1),
        (BROKEN, "never", 0), ("model:ps6100xv?raid=10", "note", 0),
    ],
)  # fmt: skip
def test_findings_at_or_above_a_severity_exit_with_1(bench: Bench, target: str, fail_on: str, code: int) -> None:
    assert bench.assay("check", target, *ARRAYS, "--fail-on", fail_on).code == code


def test_by_default_errors_alone_exit_with_1(bench: Bench) -> None:
    assert bench.assay("check", FULL, *ARRAYS).code == 0
    assert bench.assay("check", BROKEN, *ARRAYS).code == 1


def test_the_format_does_not_change_the_exit_code(bench: Bench) -> None:
    for form in ("text", "json", "junit", "sarif"):
        assert bench.assay("check", BROKEN, *ARRAYS, "--format", form).code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nowhere"],
            "nowhere: does not exist; name the word host for this machine, a folder, a device, a file of settings",
        ),
        (["/dev/null"], "/dev/null: is no storage; name a folder, a file or a block device"),
        (["model:nope"], "unknown array 'nope'"),
        (["embedded:none"], "is not there; assay check changes nothing, and makes none"),
        (["--format", "xml"], "--format xml: accepted: text, json, junit, sarif"),
        (["--fail-on", "bad"], "--fail-on bad: accepted: error, warning, note, never"),
        (["--only", "layout-log-appart"], "no rule 'layout-log-appart'; did you mean layout-log-apart?"),
        (["--skip", "zzz"], "no rule 'zzz'; assay check --list names them"),
        (["--only", "layout", "--skip", "layout"], "--only and --skip leave no rule"),
        (["--explain", "layout-log-appart"], "no rule 'layout-log-appart'; did you mean layout-log-apart?"),
        (["--explain", "zzz"], "no rule 'zzz'; assay check --list names them"),
        (["--volume", "data"], "--volume data: accepted: ROLE=PATH, of data, log, tempdb, backup"),
        (["--volume", "data=nowhere"], "--volume data=nowhere: accepted"),
        (["--volume", "dat=."], "--volume dat=.: accepted"),
        (["--profile", "."], "has no run.json, so it is not a run folder"),
        (["--site", "nowhere.toml"], "nowhere.toml: cannot be read: No such file or directory"),
    ],
)
def test_what_is_asked_wrong_is_one_line_and_exits_with_2(bench: Bench, arguments: list[str], message: str) -> None:
    outcome = bench.assay("check", *arguments)

    assert outcome.code == 2
    assert message in outcome.complaint
    assert outcome.stdout == ""


def test_a_site_that_contradicts_what_was_read_is_one_line_and_exits_with_2(bench: Bench) -> None:
    site = bench.folder / "site.toml"
    site.write_text(f'[[array]]\nname = "{FULL}"\nfill = 0.5\n')

    outcome = bench.assay("check", FULL, "--site", site)

    assert outcome.code == 2
    assert "fill = 0.5 contradicts 0.9, which was read from the target's options" in outcome.complaint


def test_a_server_that_is_away_exits_with_3(bench: Bench) -> None:
    outcome = bench.assay("check", "postgresql://tester:t0ps3cret@127.0.0.1:1/postgres")

    assert outcome.code == 3
    assert "t0ps3cret" not in outcome.complaint


# Pages


def test_a_rule_is_explained_and_listed(bench: Bench) -> None:
    page = bench.assay("check", "--explain", "host-swappiness").stdout
    listed = bench.assay("check", "--list").stdout.splitlines()

    assert all(
        word in page for word in ("severity", "where      the host has swap", "reads", "wanted", "why", "fix", "source")
    )
    assert [line.split()[0] for line in listed] == [rule.id for rule in RULES]
    assert {line.split()[1] for line in listed} == set(SEVERITIES)


def test_the_template_of_a_site_is_printed(bench: Bench) -> None:
    site = bench.folder / "site.toml"
    site.write_text(bench.assay("check", "--site-template").stdout)

    assert bench.assay("check", FULL, "--site", site).code == 0


# Formats and files


def test_each_format_is_whole_on_standard_output(bench: Bench) -> None:
    told = bench.assay("check", FULL, "--json")
    document = told.document
    log = json.loads(bench.assay("check", FULL, "--format", "sarif").stdout)
    suites = ElementTree.fromstring(bench.assay("check", FULL, "--format", "junit").stdout)
    text = bench.assay("check", FULL).stdout

    (finding,) = document["findings"]
    assert finding["rule"] == "array-fill"
    assert document["targets"] == [FULL]
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["array-fill"]
    assert len(suites.findall(".//failure")) == 1
    assert text.startswith("1 warning; ")
    assert "\nwarning: array-fill: " in text


def test_what_the_check_wrote_it_writes_again(bench: Bench) -> None:
    output = bench.folder / "check.json"
    assert bench.assay("check", FULL, "--json", "-o", output).code == 0
    first = output.read_text()
    assert bench.assay("check", BROKEN, "--json", "-o", output, *ARRAYS).code == 1

    assert json.loads(first)["targets"] == [FULL]
    assert json.loads(output.read_text())["targets"] == [BROKEN]


def mine(path: Path, _: Bench) -> Path:
    path.write_text("precious")
    return path


def changed(path: Path, bench: Bench) -> Path:
    assert bench.assay("check", FULL, "-o", path).code == 0
    path.write_text("precious")
    return path


def copied_over(path: Path, bench: Bench) -> Path:
    assert bench.assay("check", FULL, "-o", path).code == 0
    with path.open("r+b") as file:
        file.write(b"precious")
        file.truncate(8)
    return path


def a_link(path: Path, bench: Bench) -> Path:
    (bench.folder / "real").write_text("precious")
    path.symlink_to(bench.folder / "real")
    return path


def empty(path: Path, _: Bench) -> Path:
    path.touch()
    return path


@pytest.mark.parametrize("make", [mine, changed, copied_over, a_link, empty])
def test_a_file_of_others_is_refused_and_stays(bench: Bench, make: Callable[[Path, Bench], Path]) -> None:
    path = make(bench.folder / "check.txt", bench)
    before = path.read_bytes()

    outcome = bench.assay("check", FULL, "-o", path)

    assert outcome.code == 2
    assert "nothing is overwritten, name a new file" in outcome.complaint
    assert path.read_bytes() == before


def test_a_data_file_of_assay_is_no_file_of_the_check(bench: Bench) -> None:
    data = bench.folder / "assay.dat"
    assert bench.measure(data, "--size", "16M", "--search", "none", "--read", "100", "--queue-depth", "1").code == 0
    size = data.stat().st_size

    assert bench.assay("check", FULL, "-o", data).code == 2
    assert data.stat().st_size == size


def test_standard_output_takes_findings_and_a_folder_does_not(bench: Bench) -> None:
    assert "1 warning; " in bench.assay("check", FULL, "-o", "-").stdout
    assert "1 warning; " in bench.assay("check", FULL, "-o", "/dev/stdout").stdout
    assert bench.assay("check", FULL, "-o", "/dev/null").code == 0
    assert bench.assay("check", FULL, "-o", bench.folder).code == 2
    outcome = bench.assay("check", FULL, "-o", bench.folder / "none" / "check.txt")
    assert outcome.code == 2
    assert "No such file or directory" in outcome.complaint


# Targets


def test_this_host_and_a_folder_are_checked(bench: Bench) -> None:
    document = bench.assay("check", "host", bench.folder, "--json", "--fail-on", "never").document

    passed = {one["rule"] for one in document["passed"]}
    found = {one["rule"] for one in document["findings"]}
    gaps = {one["rule"] for one in document["not_checked"]}
    assert "host-overcommit-mode" in passed | found
    # A folder that is named is taken as one of data.
    assert "mount-layered" in passed | found
    assert {"network-jumbo-hops", "array-fill"} <= gaps
    assert len({*passed, *found, *gaps, *document["not_applicable"]}) == len(RULES)


def test_folders_by_role_on_one_device_are_found(bench: Bench) -> None:
    data, log = bench.folder / "data", bench.folder / "log"
    data.mkdir()
    log.mkdir()

    document = bench.assay(
        "check", "--volume", f"data={data}", "--volume", f"log={log}", "--only", "layout", "--json"
    ).document

    known = {one["rule"]: one for one in (*document["findings"], *document["not_checked"])}
    (told,) = (known["layout-log-apart"],)
    assert "holds both" in told.get("found", "") or "no single device counts" in told.get("reason", "")


def test_a_block_device_is_checked(bench: Bench, loop_device: Callable[[int], Path]) -> None:
    device = loop_device(16 << 20)

    document = bench.assay("check", device, "--json", "--only", "devices", "--fail-on", "never").document

    subjects = {one["subject"] for one in (*document["passed"], *document["findings"])}
    assert device.name in subjects


def test_memory_is_no_place_for_data(bench: Bench, mounted: Callable[..., Path]) -> None:
    folder = mounted("-t", "tmpfs", "-o", "size=4m", "none")

    document = bench.assay("check", folder, "--json", "--only", "devices").document

    assert {one["rule"] for one in document["findings"] if one["severity"] == "error"} == {"mount-layered"}


def test_a_file_system_mounted_wrong_is_found_and_then_mended(
    bench: Bench, loop_device: Callable[[int], Path], mounted: Callable[..., Path], run_tool: Callable[..., str]
) -> None:
    device = loop_device(64 << 20)
    run_tool("mkfs.ext4", "-q", device)
    folder = mounted("-o", "strictatime,discard,data=writeback", device)
    asked = ("check", folder, "--json", "--only", "mount-atime,mount-online-discard,mount-data-writeback,mount-free")

    found = {one["rule"] for one in bench.assay(*asked).document["findings"]}
    assert found == {"mount-atime", "mount-online-discard", "mount-data-writeback"}

    run_tool("umount", folder)
    run_tool("mount", "-o", "noatime", device, folder)
    assert bench.assay(*asked).document["findings"] == []

    space = os.statvfs(folder)
    (folder / "full").write_bytes(bytes(int(space.f_bavail * 0.93) * space.f_bsize))
    assert [one["rule"] for one in bench.assay(*asked).document["findings"]] == ["mount-free"]


@pytest.mark.parametrize("run", ["profile", "oltp", "verify"])
def test_a_run_is_checked(bench: Bench, run: str) -> None:
    outcome = bench.assay("check", RUNS / run, "--json")

    assert outcome.code == 0
    assert all(str(RUNS / run) in one["origin"] for one in outcome.document["findings"])
    assert "says what its host was when it ran" in outcome.document["notices"][0]


def test_a_check_changes_nothing(bench: Bench) -> None:
    (bench.folder / "data").mkdir()
    before = sorted(os.listdir(bench.folder))

    bench.assay("check", "host", "data", "--volume", "log=data")

    assert sorted(os.listdir(bench.folder)) == before
    assert os.listdir(bench.folder / "data") == []
