"""Messages of errors that end a command, as the sources in Python and Rust spell them."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from assay.base import errors

ROOT = Path(__file__).parents[1]
VALUE = "\0"
"""Stands in a message where a value is put in."""
INNER = ("record/", "fleet/", "telemetry/flight/", "insight/rules/facts/site.py")
"""Where every ValueError is told behind another message: `is damaged: ...`, `accepted: ...`."""
NO_END = "telemetry/collectors/"
"""Where errors say why a source cannot be recorded: the recorder tells it and goes on."""

WITHIN = {"NotAMessage"}
"""Errors whose text another error takes up: what another host sent is told with the host's name."""
LABEL = rf"^[^ {VALUE}]*( ?{VALUE}|, line {VALUE})?: "
"""What a message is about: an option, a file, a line of it."""

Values = dict[str, list[ast.expr]]


@cache
def messages() -> Mapping[str, str]:
    """Every message, and the place that raises it."""
    folder = ROOT / "python/assay"
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))}
    makers = _makers(list(trees.values()))
    found: dict[str, str] = {}
    for path, tree in trees.items():
        if (place := str(path.relative_to(folder))).startswith(NO_END):
            continue
        for text, line in raised(tree, makers - {"ValueError"} if place.startswith(INNER) else makers):
            found.setdefault(text, f"{place}:{line}")
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        for text in re.findall(r'#\[error\("((?:[^"\\]|\\.)*)"', path.read_text(encoding="utf-8")):
            found.setdefault(re.sub(r"\{[^}]*\}", VALUE, text), str(path.relative_to(ROOT)))
    # A message with fewer than two words behind its label passes the message of another error on.
    words = {text: re.findall(r"\b[a-z]{2,}\b", re.sub(LABEL, "", text)) for text in found}
    return {text: place for text, place in found.items() if len(words[text]) > 1}


def _makers(trees: list[ast.Module]) -> set[str]:
    """Names of errors that end a command, and of functions that return one made from a text of their caller."""
    makers = {"ValueError", "FieldValueError"} | {
        name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, errors.AssayError)
    }
    nodes = [node for tree in trees for node in ast.walk(tree)]
    for _ in range(2):
        classes = makers - {"ValueError"}
        for node in nodes:
            match node:
                case ast.ClassDef(name=name, bases=bases) if name not in WITHIN:
                    makers |= {name} if any(_name(base) in classes for base in bases) else set()
                case ast.FunctionDef(name=name, returns=ast.expr() as returns):
                    makers |= {name} if any(_name(one) in classes for one in ast.walk(returns)) else set()
    return makers


def raised(tree: ast.Module, makers: set[str]) -> Iterator[tuple[str, int]]:
    """Yield the messages of a module, with their lines."""
    constants = _assigned(tree.body)
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            values = constants | _assigned(ast.walk(scope))
            # A function is known by its name alone, so that only what ends the scope at once is taken as one of these.
            raises = [one.exc for one in ast.walk(scope) if isinstance(one, ast.Raise)]
            ends = [*raises, *(one.value for one in ast.walk(scope) if isinstance(one, ast.Return))]
            for call in ast.walk(scope):
                if not isinstance(call, ast.Call) or (name := _name(call.func)) not in makers:
                    continue
                if name[0].isupper() or call in ends:
                    parts = [found for one in call.args if (found := _texts(one, values))]
                    for texts in itertools.product(*parts) if parts else ():
                        yield ": ".join(texts), call.lineno


def _assigned(nodes: Iterator[ast.AST] | list[ast.stmt]) -> Values:
    found: Values = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found


def _texts(node: ast.expr, values: Values, depth: int = 0) -> list[str]:
    """Return the texts that an expression may be."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(str(one.value) if isinstance(one, ast.Constant) else VALUE for one in parts)]
        case ast.BinOp(left=left, right=right):
            sides = [_texts(side, values, depth) or [VALUE] for side in (left, right)]
            return [first + second for first, second in itertools.product(*sides)]
        case ast.IfExp(body=body, orelse=orelse):
            return _texts(body, values, depth) + _texts(orelse, values, depth)
        case ast.Name(id=name) if depth < 3:
            return [text for one in values.get(name, []) for text in _texts(one, values, depth + 1)]
    return []


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
