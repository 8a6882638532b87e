"""No circles among the files of a crate: what a file names of its crate is in files that do not name it back.

Tests in a file are left out, and so is `lib.rs`, which lists what the crate offers: a name of it counts as one of the
file that has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CRATES = Path(__file__).parents[1] / "crates"

Module = tuple[str, ...]


def modules(crate: Path) -> dict[Module, str]:
    """Text of each file by its path of modules, without comments and tests; the crate's own is the empty path."""
    found = {}
    for path in (crate / "src").rglob("*.rs"):
        parts = path.relative_to(crate / "src").with_suffix("").parts
        module = () if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts
        if "tests" not in parts:
            text = re.sub(r"//.*", "", path.read_text())
            found[module] = re.split(r"#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))?\s+)?mod \w+ \{", text)[0]
    return found


def expanded(tree: str) -> Iterator[list[str]]:
    """Paths of a tree of names, such as `a::{b, c::{d, e}}`."""
    head, brace, rest = tree.partition("{")
    prefix = [part for part in re.split(r"::|\s+as\s+\w+", head.strip()) if part]
    if not brace:
        yield prefix
        return
    depth, start = 0, 0
    inner = rest[: rest.rindex("}")]
    for place, letter in enumerate(inner + ","):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if inner[start:place].strip():
                yield from ([*prefix, *path] for path in expanded(inner[start:place]))
            start = place + 1


def paths(module: Module, text: str, known: dict[Module, str]) -> Iterator[list[str]]:
    """Paths from the crate's root that a file names, in `use` and elsewhere."""
    uses = re.findall(r"\buse ((?:crate|super|self)\b[^;]*|\w+::[^;]*);", text)
    trees = [path for use in uses for path in expanded(use)]
    trees += [path.split("::") for path in re.findall(r"\b(?:crate|super|self)(?:::\w+)+", text)]
    trees += [path.split("::") for path in re.findall(r"\b[a-z_]\w*(?:::\w+)+", text)]
    for first, *rest in trees:
        if first == "crate":
            yield rest
        elif first == "super":
            ups = len(rest) - len(rest := [part for part in rest if part != "super"]) + 1
            yield [*module[: len(module) - ups], *rest]
        elif first == "self":
            yield [*module, *rest]
        elif (*module, first) in known:
            yield [*module, first, *rest]


def imports(crate: Path) -> dict[Module, set[Module]]:
    """The files that each file of a crate names."""
    known = modules(crate)

    def home(path: list[str], seen: frozenset[tuple[str, ...]] = frozenset()) -> Module:
        """The file that a path leads to, through what files offer of others."""
        module = max((m for m in known if tuple(path[: len(m)]) == m), key=len)
        name = path[len(module) : len(module) + 1]
        if not name or tuple(path) in seen:
            return module
        offered = re.findall(r"\bpub(?:\([a-z: ]+\))? use ([^;]*);", known[module])
        for target in (target for use in offered for target in expanded(use)):
            if target[-1] in (name[0], "*"):
                start = target[1:] if target[0] in ("crate", "self") else target
                base = () if target[0] == "crate" else module
                through = [*base, *(start[:-1] + name if target[-1] == "*" else start)]
                if (*base, start[0]) in known and (target[-1] != "*" or defines(known[(*base, start[0])], name[0])):
                    return home(through, seen | {tuple(path)})
        return module

    return {
        module: {home(path) for path in paths(module, text, known)} - {module, ()}
        for module, text in known.items()
        if module
    }


def defines(text: str, name: str) -> bool:
    return re.search(rf"\b(?:struct|enum|trait|fn|const|static|type|macro_rules!) {name}\b", text) is not None


@pytest.mark.parametrize("crate", sorted(path.parent.name for path in CRATES.glob("*/Cargo.toml")))
def test_no_files_of_a_crate_import_each_other(crate: str) -> None:
    try:
        TopologicalSorter(imports(CRATES / crate)).prepare()
    except CycleError as error:
        circle = " -> ".join("::".join(module) for module in reversed(error.args[1]))
        pytest.fail(f"crates/{crate}: {circle}")
