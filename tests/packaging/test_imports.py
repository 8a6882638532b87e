"""The command line starts quickly because it imports large libraries only where they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "polars", "scipy", "numpy", "altair", "pyarrow", "duckdb", "vl_convert", "typst", "jinja2", "psycopg", "pymysql",
    "sqlglot", "starlette", "uvicorn",
)  # fmt: skip

REPORT_IMPORTED = """
import sys
try:
    {statement}
except SystemExit as end:
    assert not end.code, f"exit code {{end.code}}"
finally:
    print("imported:", *[name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


def imported_by(statement: str) -> list[str]:
    script = REPORT_IMPORTED.format(statement=statement, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("imported:")
    return last.split()[1:]


@pytest.mark.parametrize("verb", ["", "assess", "profile", "verify", "oltp", "compare", "report", "serve", "sqlio"])
def test_help_imports_no_large_library(verb: str) -> None:
    arguments = ["assay", *filter(None, [verb]), "--help"]
    assert imported_by(f"sys.argv = {arguments!r}; from assay.cli import main; main()") == []


def test_version_imports_no_large_library() -> None:
    assert imported_by("sys.argv = ['assay', '--version']; from assay.cli import main; main()") == []


def test_the_package_itself_imports_no_large_library() -> None:
    assert imported_by("import assay") == []


def test_the_probe_sees_a_large_library() -> None:
    assert "pyarrow" in imported_by("import assay.results.series")
