"""Rules of the house that a machine can check: names once, sizes of files, functions and structs.

Lists of exceptions only ever lose lines: a test fails where one is no longer needed.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "assay"

FILE_LINES, FUNCTION_LINES, STRUCT_FIELDS = 500, 60, 24

LONG_FILES = {
    "crates/array/src/member.rs",
    "crates/array/src/model.rs",
    "crates/array/src/plan.rs",
    "crates/integrity/src/core.rs",
    "python/assay/insight/studies/study.py",
    "python/assay/record/run_folder.py",
    "python/assay/run/execute.py",
    "python/assay/targets/arrays/model/group.py",
    "python/assay/targets/databases/common/database.py",
    "python/assay/targets/databases/common/spec.py",
    "python/assay/targets/databases/embedded/cluster.py",
    "python/assay/targets/files/safety.py",
    "python/assay/targets/files/target.py",
    "python/assay/workloads/io/sqlio.py",
    "python/assay/workloads/transactions/point.py",
}
LONG_FUNCTIONS = {
    "crates/array/src/model.rs:happen",
    "crates/device/src/session.rs:start",
    "crates/mailbox/src/session.rs:run",
    "crates/oltp/src/brokerage/rows.rs:write_next",
    "crates/oltp/src/brokerage/trades.rs:of",
    "crates/oltp/src/brokerage/transactions/order.rs:run",
    "crates/oltp/src/brokerage/transactions/result.rs:run",
    "crates/oltp/src/run.rs:start",
    "crates/oltp/src/tpcc/transactions/new_order.rs:run",
    "crates/oltp/src/tpcc/transactions/payment.rs:run",
    "crates/python/src/verification.rs:of_report",
    "crates/serve/src/logged/change.rs:write",
    "crates/serve/src/logged/journal.rs:open",
    "crates/serve/src/logged/opening.rs:open_in",
    "python/assay/apps/cli/array.py:serve",
    "python/assay/apps/cli/assess.py:assess",
    "python/assay/apps/cli/check.py:check",
    "python/assay/apps/cli/model_reliability.py:reliability",
    "python/assay/apps/cli/report.py:report",
    "python/assay/apps/cli/size.py:size",
    "python/assay/apps/cli/verb.py:measuring",
    "python/assay/insight/sizing/rules.py:rules_of",
    "python/assay/targets/arrays/model/reliability_question.py:question_of",
}
LARGE_STRUCTS = {
    "python/assay/record/shapes/manifest.py:Manifest",
    "python/assay/record/shapes/point.py:Point",
    "python/assay/workloads/integrity/plan.py:IntegrityPlan",
    "python/assay/workloads/integrity/shapes.py:Integrity",
    "python/assay/workloads/mailbox/plan.py:MailboxPlan",
    "python/assay/workloads/tpch/shapes.py:Dss",
    "crates/array/src/host_flash/model.rs:HostFlashModel",
    "crates/array/src/member.rs:Member",
    "crates/integrity/src/core.rs:Core",
    "crates/integrity/src/plan.rs:VerifyPlan",
    "crates/mailbox/src/database.rs:Database",
    "crates/python/src/verification.rs:FindingReport",
}
NAMES_TWICE = {
    "Database",
    "Document",
    "Part",
    "Phase",
    "Ratio",
    "Target",
    "Workload",
}


def sources(suffix: str) -> Iterator[tuple[str, str]]:
    """Sources without tests: the path below the repository, and the text."""
    roots = [PACKAGE] if suffix == ".py" else sorted((ROOT / "crates").glob("*/src"))
    for root in roots:
        for path in sorted(root.rglob(f"*{suffix}")):
            if path.name != "tests.rs" and "tests" not in path.parts[-2:-1]:
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


@cache
def parsed() -> dict[str, ast.Module]:
    return {path: ast.parse(text) for path, text in sources(".py")}


def without_tests(text: str) -> str:
    """A file of Rust without the module of its unit tests."""
    return text.partition("#[cfg(test)]\nmod tests {")[0]


def python_functions() -> Iterator[tuple[str, int]]:
    """Functions and their lines without the docstring."""
    for path, tree in parsed().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0]
                told = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) is not None else 0
                yield f"{path}:{node.name}", node.end_lineno - node.lineno + 1 - told


def rust_blocks(kind: str) -> Iterator[tuple[str, list[str]]]:
    """Functions or structs and the lines between their braces, by the indentation that rustfmt gives."""
    for path, text in sources(".rs"):
        lines = without_tests(text).splitlines()
        for number, line in enumerate(lines):
            found = re.match(rf"( *)(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe )*{kind} (\w+)", line)
            if found is None:
                continue
            indent, name = found.groups()
            begins = next((n for n in range(number, len(lines)) if re.search(r"[{;}]$", lines[n])), None)
            if begins is None or not lines[begins].endswith("{"):
                continue
            ends = next(n for n in range(begins, len(lines)) if lines[n].rstrip() == f"{indent}}}")
            yield f"{path}:{name}", lines[number : ends + 1]


def test_files_fit_a_screen_or_ten() -> None:
    lines = {path: len(text.splitlines()) for path, text in sources(".py")}
    lines |= {path: len(without_tests(text).splitlines()) for path, text in sources(".rs")}
    assert {path for path, count in lines.items() if count > FILE_LINES} == LONG_FILES


def test_functions_fit_a_screen() -> None:
    lines = [*python_functions(), *((name, len(block)) for name, block in rust_blocks("fn"))]
    assert {name for name, count in lines if count > FUNCTION_LINES} == LONG_FUNCTIONS


def test_structs_have_parts() -> None:
    python = [
        (f"{path}:{node.name}", sum(isinstance(one, ast.AnnAssign) for one in node.body))
        for path, tree in parsed().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    rust = [
        (name, sum(re.match(r" +(pub(\([^)]*\))? )?\w+: ", line) is not None for line in block))
        for name, block in rust_blocks("struct")
    ]
    assert {name for name, count in [*python, *rust] if count > STRUCT_FIELDS} == LARGE_STRUCTS


def test_a_public_class_has_a_name_of_its_own() -> None:
    places = defaultdict(list)
    for path, tree in parsed().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    assert {name for name, paths in places.items() if len(paths) > 1} == NAMES_TWICE


def test_the_probes_see_what_they_look_for() -> None:
    names = {name for name, _ in rust_blocks("fn")}
    assert any(name.startswith("crates/load/src/worker.rs:") for name in names)
    assert len(names) > 1000
    assert dict(python_functions())["python/assay/base/units.py:format_bytes"] > 3
