"""The command line starts quickly because it imports large libraries, and its own verbs, only where they are used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from assay.apps.cli.verbs import declared

HEAVY = (
    "polars", "scipy", "numpy", "altair", "arro3", "duckdb", "vl_convert", "typst", "jinja2", "psycopg", "pymysql",
    "sqlglot", "starlette", "uvicorn", "mcp",
)  # fmt: skip

REPORT_IMPORTED = """
import sys
try:
    {statement}
except SystemExit as end:
    assert not end.code, f"exit code {{end.code}}"
finally:
    print("imported:", *[name for name in sys.modules if name.startswith({wanted})], file=sys.stderr)
"""


def imported_by(statement: str, wanted: tuple[str, ...] = HEAVY) -> list[str]:
    """Modules that a statement imports: those whose names begin like one of these."""
    script = REPORT_IMPORTED.format(statement=statement, wanted=wanted)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("imported:")
    return last.split()[1:]


@pytest.mark.parametrize("verb", ["", "assess", "profile", "verify", "oltp", "compare", "report", "ui", "sqlio"])
def test_help_imports_no_large_library(verb: str) -> None:
    arguments = ["assay", *filter(None, [verb]), "--help"]
    assert imported_by(f"sys.argv = {arguments!r}; from assay.apps.cli import main; main()") == []


def called(*words: str) -> str:
    return f"sys.argv = {['assay', *words]!r}; from assay.apps.cli import main; main()"


KINDS = tuple(
    f"assay.workloads.{name}."
    for name in ("io", "integrity", "mailbox", "replay", "tpcc", "tpch", "brokerage", "sql", "sqllog")
)


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_list_of_verbs_import_no_verb(option: str) -> None:
    verbs = tuple({verb.place.partition(":")[0] for verb in declared()})
    assert imported_by(called(option), (*HEAVY, *KINDS, *verbs, "pydantic", "assay.run")) == []


@pytest.mark.parametrize("words", [("array", "status", "--help"), ("check", "--help"), ("report", "--help")])
def test_verbs_without_a_plan_import_no_kind_of_workload(words: tuple[str, ...]) -> None:
    assert imported_by(called(*words), (*HEAVY, *KINDS, "assay.run")) == []


def test_a_verb_imports_its_own_kind_of_workload_alone(tmp_path: Path) -> None:
    words = ("profile", str(tmp_path / "f.dat"), "--size", "8M", "--dry-run", "--json")
    kinds = {name.split(".")[2] for name in imported_by(called(*words), KINDS)}
    assert kinds == {"io"}
    assert imported_by(called(*words)) == []


def test_completion_imports_nothing_of_assay_but_itself() -> None:
    asked = f"sys.stdin = open('/dev/null'); {called('__complete', 'zsh')}"
    assert imported_by(asked, ("typer", "rich", "json", "assay.")) == [
        "assay.apps", "assay.base", "assay.base.command_line", "assay.apps.cli", "assay.apps.cli.completing",
    ]  # fmt: skip


def test_the_package_itself_imports_no_large_library() -> None:
    assert imported_by("import assay") == []


def test_the_probe_sees_a_large_library() -> None:
    assert "arro3" in imported_by("import assay.record.series")
