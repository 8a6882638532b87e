"""A public class has a name of its own. The list of exceptions only ever loses lines."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "assay"

NAMES_TWICE = {
    "Database",
    "Document",
    "Part",
    "Phase",
    "Ratio",
    "Target",
    "Workload",
}
"""Names of a shape in results that a class of the program has, too."""


def names_twice(package: Path) -> set[str]:
    places = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    return {name for name, paths in places.items() if len(paths) > 1}


def test_a_public_class_has_a_name_of_its_own() -> None:
    assert names_twice(PACKAGE) == NAMES_TWICE


def test_the_probe_sees_what_it_looks_for(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("class Two: ...\nclass _Own: ...\n")
    (tmp_path / "other.py").write_text("class Two: ...\nclass _Own: ...\n")
    assert names_twice(tmp_path) == {"Two"}
