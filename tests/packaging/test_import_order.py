"""Imports go one way, no two modules import each other, and a kind of workload is known to its own folder alone.

Imports inside functions and those for type checkers count as all others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path("python") / "assay"

ORDER = (
    ("base",),
    ("record",),
    ("document",),
    ("targets",),
    ("traces",),
    ("telemetry",),
    ("measure",),
    ("workloads",),
    ("run",),
    ("fleet",),
    ("insight.calibration",),
    ("insight.studies",),
    ("insight.crash",),
    (
        "insight.__init__",
        "insight.comparable",
        "insight.compare",
        "insight.compare_answers",
        "insight.differences",
        "insight.history",
        "insight.repeated",
        "insight.sides",
        "insight.unmatched",
        "insight.recording",
        "insight.diagnosis",
    ),
    ("insight.rules",),
    ("insight.ranking",),
    ("insight.sizing",),
    ("insight.contracts",),
    ("report",),
    ("apps.ui",),
    ("apps.service",),
    ("apps.cli", "apps.api", "__init__", "__main__"),
)
"""What stands on one line may import what stands on it or above."""

KINDS = ("brokerage", "integrity", "io", "mailbox", "replay", "sql", "sqllog", "tpcc", "tpch")
"""Folders of workloads."""

BUILDS_ON = {"replay": "io", "sqllog": "sql"}
"""A kind that is another with something changed: I/Os come from a trace, SQL from a log of statements."""

KEYS = {*KINDS, "dss", "oltp"}
"""How results name a kind: no text of the program is just one of these."""
WORDS = {"tpcc", "tpch", "dss", "oltp", "nopm", "warehouse", "warehouses"}
"""Words of a kind that mean nothing else; no name and no text has one of them."""

SHARED = {"transactions": {"oltp"}}
"""Folders of what several kinds share, and words of these that they may use."""

VERBS_OF = {
    "dss": "tpch",
    "oltp": "tpcc",
    "profile": "io",
    "sqlio": "io",
    "trace_plan": "replay",
    "verify": "integrity",
    "__init__": "registry",
}
"""Files of verbs that are named as the verb, and the kind of each."""

UPWARD: set[tuple[str, str]] = set()
"""Imports that still go the wrong way. Only ever remove lines."""

NAMES_A_KIND = {
    "insight.calibration.bands",
    "insight.calibration.observations",
    "insight.calibration.rebuild",
    "insight.calibration.traced",
    "run.simulate",
}
"""Modules that still name a kind of workload. Only ever remove lines."""

NAMES_OF_EXTRAS = {"base.extras"}
"""Where extras of pyproject.toml are named, of which one is called as a verb is."""

NAMES_VERBS = {"__init__", "apps.api.__init__", "apps.api.measuring", "apps.cli.forms"}
"""Modules that give the verbs of kinds to Python and to the page, each by the verb's name."""

ANOTHER_IO = {
    "insight.diagnosis.causes.database",
    "insight.diagnosis.causes.queues",
    "insight.diagnosis.measures",
    "report.sections.series",
    "telemetry.collectors.postgresql",
    "telemetry.collectors.processes",
    "telemetry.collectors.psi",
    "telemetry.importers.atop",
    "telemetry.importers.pcp",
    "workloads.transactions.report.timeline",
}
"""Modules in which "io" is what PostgreSQL and the kernel call waiting for storage."""


@cache
def modules(root: Path) -> Mapping[str, ast.Module]:
    """Every module by its name below `assay`, parsed; that of a package ends in `__init__`."""
    return {
        ".".join(path.relative_to(root / PACKAGE).with_suffix("").parts): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((root / PACKAGE).rglob("*.py"))
    }


@cache
def graph(root: Path) -> Mapping[str, frozenset[str]]:
    """What each module imports of Assay."""
    found = modules(root)
    return {name: frozenset(imported(tree, found)) - {name} for name, tree in found.items()}


def imported(tree: ast.Module, found: Mapping[str, ast.Module]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their module in full"
            wanted = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for full in wanted:
            first, _, name = full.partition(".")
            if first == "assay":
                # A name that is no module is one in the module before it.
                places = (name, f"{name}.__init__", name.rpartition(".")[0], f"{name.rpartition('.')[0]}.__init__")
                yield from [place for place in places if place in found][:1]


def layer(module: str) -> int:
    return next(n for n, names in enumerate(ORDER) if any(f"{module}.".startswith(f"{name}.") for name in names))


def test_packages_import_only_what_is_below_them(root: Path) -> None:
    upward = {(name, other) for name, others in graph(root).items() for other in others if layer(other) > layer(name)}
    assert upward - UPWARD == set()


def test_a_kind_of_workload_imports_no_other(root: Path) -> None:
    across = {
        (name, other)
        for name, others in graph(root).items()
        for other in others
        if {*KINDS} >= {kind_of(name), kind_of(other)}
        and kind_of(name) != kind_of(other)
        and BUILDS_ON.get(kind_of(name)) != kind_of(other)
    }
    assert across == set()


def kind_of(module: str) -> str:
    """Folder of a workload, for the modules in one."""
    for room in ("workloads.", "apps.cli.workloads."):
        if module.startswith(room):
            return VERBS_OF.get(name := module.removeprefix(room).partition(".")[0], name)
    return ""


def test_no_two_modules_import_each_other(root: Path) -> None:
    order = TopologicalSorter(
        {name: {other for other in others if (name, other) not in UPWARD} for name, others in graph(root).items()}
    )
    try:
        order.prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


ANOTHER_SQL = {"insight.rules.facts.mssql": {"sql"}}
"""Where the word is a key of a table of rules: a statement of the rule."""


def test_a_kind_is_named_in_its_folder_and_the_registry_alone(root: Path) -> None:
    naming = {
        name: sorted(
            kinds_named(tree, keys={*KEYS} - {*(["io"] if name in ANOTHER_IO else []), *ANOTHER_SQL.get(name, ())})
            - SHARED.get(kind_of(name), set())
        )
        for name, tree in modules(root).items()
        if kind_of(name) not in (*KINDS, "registry") and name not in NAMES_OF_EXTRAS | NAMES_VERBS
    }
    assert {name: words for name, words in naming.items() if words and name not in NAMES_A_KIND} == {}
    assert {name for name in NAMES_A_KIND if not naming.get(name)} == set(), "remove these lines from the list"


def test_exceptions_that_are_no_longer_needed_are_removed(root: Path) -> None:
    assert {(name, other) for name, other in UPWARD if other not in graph(root).get(name, ())} == set()


def kinds_named(tree: ast.Module, keys: set[str]) -> set[str]:
    """Words of a kind in the names, texts and imports of a module; docstrings are free to speak of one."""
    docstrings = {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            found |= ({node.value} & keys) | (words_of(node.value) & WORDS)
        if isinstance(node, ast.ImportFrom) and kind_of((node.module or "").removeprefix("assay.")) in KINDS:
            found.add(str(node.module))
        for part in ("id", "attr", "name", "arg"):
            name = getattr(node, part, None)
            found |= words_of(name) & WORDS if isinstance(name, str) else set()
    return found


@cache
def words_of(text: str) -> set[str]:
    """Words of a text, or of a name written with underscores or capitals, but for the names of cited studies."""
    text = re.sub(r"\bEQL-(OLTP|DSS)\b", "", text)
    return set(re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower()))


def test_the_probe_sees_what_it_looks_for(tmp_path: Path) -> None:
    package = tmp_path / PACKAGE
    (package / "record").mkdir(parents=True)
    (package / "base").mkdir(parents=True)
    (package / "base" / "units.py").write_text("def f() -> None:\n    from assay import record\n")
    (package / "record" / "__init__.py").write_text("from assay.base.units import f\nOltpFacts = {'tpcc': f}\n")
    assert graph(tmp_path) == {"base.units": {"record.__init__"}, "record.__init__": {"base.units"}}
    assert kinds_named(modules(tmp_path)["record.__init__"], KEYS) == {"oltp", "tpcc"}
    for test in (test_packages_import_only_what_is_below_them, test_no_two_modules_import_each_other):
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            test(tmp_path)


def test_how_a_point_is_measured_is_written_once(root: Path) -> None:
    """What a point says of its window comes from `measure/`; importers read what others measured."""
    keys = {"steady", "generator", "offered", "batches"}
    found = [
        (name, sorted(written))
        for name, module in modules(root).items()
        if name.startswith("workloads.") and ".importers." not in name
        for node in ast.walk(module)
        if isinstance(node, ast.Dict)
        and (written := keys & {key.value for key in node.keys if isinstance(key, ast.Constant)})
    ]
    assert found == []
