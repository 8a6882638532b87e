"""Programs that Assay starts are in one list; each that is missing is named with its package before work begins."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import assay
from assay.apps.cli.doctor import RIGHTS, doctor
from assay.apps.cli.verbs import declared
from assay.base import programs
from assay.base.errors import NotSupported, UsageError
from assay.base.extras import PACKAGES
from assay.base.programs import PROGRAMS, command_on, find_program, install_command
from assay.fleet.links import ssh_command
from assay.insight.crash.mariadb import OwnMariadb
from assay.insight.rules.facts.initiators import _why_no_table
from assay.targets.arrays.live import folder
from assay.targets.arrays.live.process import ServedArray
from assay.targets.arrays.live.spec import parse_served
from assay.targets.arrays.live.volumes import refuse_mkfs
from assay.targets.databases import parse_database
from assay.targets.databases.spark.database import find_java
from assay.targets.drives.health import examine

PACKAGE = Path(assay.__file__).parent
STARTING = {"which", "find_program", "require_program", "run", "Popen", "create_subprocess_exec"}


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """A function that leaves this process all programs of the list but one."""

    def without(name: str) -> None:
        for other in PROGRAMS:
            if other != name:
                (tmp_path / other).write_text("#!/bin/sh\n")
                (tmp_path / other).chmod(0o755)
        monkeypatch.setattr(programs, "SYSTEM_FOLDERS", ())
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setattr(folder, "FUSE", Path(os.devnull))
        monkeypatch.setattr(os, "geteuid", lambda: 1000 if PROGRAMS[name].root_can else 0)

    return without


def _array() -> ServedArray:
    return ServedArray(parse_served("array:ps6100xv?at=/a"), mounted=True)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("fusermount3", folder.refuse_fuse),
        ("fusermount3", lambda: _array().refuse_host()),
        ("mkfs.ext4", refuse_mkfs),
        ("mkfs.ext4", lambda: _array().refuse_host()),
        ("mariadbd", lambda: OwnMariadb((), "", patience_s=1.0, work=Path(os.devnull))),
        ("ssh", lambda: ssh_command("db1")),
        ("java", lambda: find_java(parse_database("spark-local:/d", {}))),
        ("dmsetup", _why_no_table),
        ("nvme", lambda: examine("nvme0n1", program=None)["unread"]),
        ("smartctl", lambda: examine("sda", program=None)["unread"]),
    ],
)
def test_a_missing_program_is_named_with_its_package(
    lacking: Callable[[str], None], name: str, use: Callable[[], object]
) -> None:
    lacking(name)
    try:
        said = str(use())
    except NotSupported as error:
        said = str(error)
    assert name in said.lower()
    assert install_command([PROGRAMS[name]]) in said
    assert "\n" not in said


def test_programs_of_administrators_are_found_by_every_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mkfs.ext4").write_text("#!/bin/sh\n")
    (tmp_path / "mkfs.ext4").chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", (str(tmp_path),))
    assert find_program("mkfs.ext4") == str(tmp_path / "mkfs.ext4")


@pytest.mark.parametrize(
    ("system", "command"),
    [
        ("debian", "apt-get install openssh-client fuse3"),
        ("linuxmint ubuntu debian", "apt-get install openssh-client fuse3"),
        ("rocky rhel centos fedora", "dnf install openssh-clients fuse3"),
        ("opensuse-leap suse opensuse", "zypper install openssh-clients fuse3"),
        ("arch", "install the package openssh-client fuse3 (Debian) or openssh-clients fuse3 (RPM)"),
    ],
)
def test_the_command_is_that_of_the_distribution(system: str, command: str) -> None:
    assert command_on(system, [PROGRAMS["ssh"], PROGRAMS["fusermount3"]]) == command


def test_every_program_that_is_started_is_in_the_list() -> None:
    started = {
        first.value
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in STARTING
        for argument in node.args
        for first in (argument.elts[:1] if isinstance(argument, ast.List | ast.Tuple) else [argument])
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and " " not in first.value
    }
    programs_of_postgresql = {"postgres", "initdb"}
    assert {name for name in started if find_program(name) or name in PROGRAMS} - programs_of_postgresql <= {
        *PROGRAMS, "assay", "/bin/sh",
    }, "a shell is everywhere; others may be missing"  # fmt: skip
    assert {*PROGRAMS} <= started


def test_every_program_and_right_is_of_a_verb() -> None:
    # Data frames are asked for from Python alone.
    assert {name for verb in declared() for name in verb.uses} == {*PROGRAMS, *RIGHTS, *PACKAGES} - {"polars"}


def test_doctor_says_what_is_missing_what_it_opens_and_the_one_command(
    lacking: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking("ssh")
    monkeypatch.setattr("assay.apps.cli.doctor.are_installed", lambda _module: True)
    doctor("profile")
    said = capsys.readouterr().out
    assert said.startswith("assay profile: missing here: ssh\n")
    assert "missing: package openssh-client (openssh-clients)" in said
    assert "--hosts with other hosts" in said
    assert said.splitlines()[-1] == f"next: {install_command([PROGRAMS['ssh']])}"
    assert "java" not in said


def test_doctor_names_packages_that_are_missing_and_the_extra_that_brings_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("assay.apps.cli.doctor.are_installed", lambda module: module not in ("typst", "altair"))
    doctor("report")
    said = capsys.readouterr().out
    assert said.startswith("assay report: missing here: altair (Python), typst (Python)\n")
    assert said.splitlines()[-1] == "next: pip install 'assay-storage[charts,pdf]'"


def test_doctor_knows_verbs_that_need_nothing_and_words_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    doctor("compare")
    assert capsys.readouterr().out == "assay compare: all that it can use is here\n"
    with pytest.raises(UsageError, match="doctor benchmark: is no verb; accepted: array, assess"):
        doctor("benchmark")
