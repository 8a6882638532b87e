"""The two worked examples of CONTRIBUTING.md do what they say."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.apps.cli.app import app
from assay.record.run_folder import RunFolder
from assay.run.imports import import_files
from assay.telemetry.importers import registry as importers
from assay.telemetry.importers.importer import Options
from assay.workloads import registry as workloads

ROOT = Path(__file__).parents[2]

VMSTAT = """procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 UTC
 2  0      0 812345  12345 223456    0    0    11    22  333  444  5  1 94  0  0 2026-03-01 10:00:00
 1  0      0 812345  12345 223456    0    0     0    64  310  420 20 10 60  9  1 2026-03-01 10:00:05
 0  1      0 812345  12345 223456    0    0     0     0  300  400  2  1 97  0  0 2026-03-01 10:00:10
"""


def example(file: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the code of an example defines."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.DOTALL)
    (code,) = [block for block in blocks if block.startswith(f"# python/assay/{file}\n")]
    module = ModuleType(f"example_{Path(file).stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, file, "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def test_the_workload_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "_KINDS", workloads._KINDS.copy())
    workloads.register(example("workloads/desk/workload.py", monkeypatch)["DeskWorkload"]())
    words = ["desk", "null:", "--clients", "4", "-o", str(tmp_path), "--json", "--quiet"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    (point,) = json.loads(done.stdout)["points"]
    assert point["desk"] == {"served_per_s": 40.0}


def test_the_importer_reads_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vmstat = example("telemetry/importers/vmstat.py", monkeypatch)["Vmstat"]()
    monkeypatch.setattr(importers, "IMPORTERS", (*importers.IMPORTERS, vmstat))
    file = tmp_path / "vmstat.txt"
    file.write_text(VMSTAT)
    made = import_files([file], into=tmp_path / "results", options=Options(zone_s=0), command=["import"])
    with RunFolder.open(made.path) as folder:
        rows = folder.series().to_pylist()
    user = [row["value"] for row in rows if row["metric"] == "user_share"]
    assert user == pytest.approx([0.20, 0.02])
    assert {row["source"] for row in rows} == {"host"}


def test_the_diffs_stand_where_they_say() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for block in re.findall(r"```diff\n(.*?)```", text, flags=re.DOTALL):
        first, *lines = block.splitlines()
        source = (ROOT / first.removeprefix(" # ")).read_text()
        for line in lines:
            if not line.startswith("+"):
                assert line[1:] in source
