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

LOADAVG = """\
2026-11-23T19:00:00+00:00 0.50 0.40 0.30 2/345 678
2026-11-23T19:00:10+00:00 2.50 0.60 0.31 2/345 680
2026-11-23T19:00:20+00:00 3.00 0.80 0.32 2/345 681
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
    loadavg = example("telemetry/importers/loadavg.py", monkeypatch)["LoadAverage"]()
    monkeypatch.setattr(importers, "IMPORTERS", (*importers.IMPORTERS, loadavg))
    file = tmp_path / "loadavg.txt"
    file.write_text(LOADAVG)
    made = import_files([file], into=tmp_path / "results", options=Options(), command=["import"])
    with RunFolder.open(made.path) as folder:
        rows = folder.series().records()
    assert [(row["metric"], row["value"]) for row in rows] == [("load_count", 2.5), ("load_count", 3.0)]
    assert made.recording is not None
    assert made.recording["files"][0]["values"] == {"taken": 2, "left_out": 7, "not_understood": 0}


def test_the_diffs_stand_where_they_say() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for block in re.findall(r"```diff\n(.*?)```", text, flags=re.DOTALL):
        first, *lines = block.splitlines()
        source = (ROOT / first.removeprefix(" # ")).read_text()
        for line in lines:
            if not line.startswith("+"):
                assert line[1:] in source
