"""Models from tables of TOML or JSON, with errors that name the key; and the presets that come with Assay."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from assay.errors import UsageError

Model = TypeVar("Model", bound=BaseModel)

EXPECTED = {
    "tuple_type": "a list is expected; in TOML, several tables are written [[...]]",
    "dict_type": "a table is expected",
    "model_type": "a table is expected",
    "missing": "a value is missing",
}
"""What pydantic says of its own types, in the words of a plan."""


def validated(model: type[Model], data: Mapping[str, Any], source: str) -> Model:
    """A model from a table.

    Raises
    ------
    UsageError
        A key is unknown (the nearest known one is named), or a value is not accepted; `source` says where.
    """
    refuse_unknown(data, model, source)
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        loc = first["loc"]
        if first["type"] == "extra_forbidden":
            refuse_unknown({str(loc[-1]): None}, _model_at(model, loc[:-1]), f"{source}: {_shown(loc[:-1])}")
        message = EXPECTED.get(first["type"]) or str(first["msg"]).removeprefix("Value error, ")
        shown = "" if first["type"] in ("value_error", "missing") else f" (given {first['input']!r})"
        raise UsageError(f"{source}: {_shown(loc) + ': ' if loc else ''}{message}{shown}") from None


def refuse_unknown(data: Iterable[str], model: type[BaseModel], source: str) -> None:
    """Refuse keys a model does not have, with the nearest one it has.

    Raises
    ------
    UsageError
        There is such a key.
    """
    known = list(model.model_fields)
    for key in data:
        if key not in known:
            meant = nearest(str(key), known)
            hint = f"did you mean {meant!r}?" if meant else f"known: {', '.join(known)}"
            raise UsageError(f"{source}: unknown key {key!r}; {hint}")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, whatever its case.

    Examples
    --------
    >>> nearest("cachehitration", ["CacheHitRatio", "CPUCount"])
    'CacheHitRatio'
    """
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[close[0]] if close else None


def _model_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> type[BaseModel]:
    """The model of a nested table, or of the tables of a list."""
    for part in loc:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            inner = (annotation, *get_args(annotation))
            model = next(one for one in inner if isinstance(one, type) and issubclass(one, BaseModel))
    return model


def _shown(loc: tuple[int | str, ...]) -> str:
    """`timing.min_s`, `files 2.path`: tables of a list are counted from 1."""
    return "".join(f" {part + 1}" if isinstance(part, int) else f".{part}" for part in loc).removeprefix(".")


def read_table(path: Path, *, option: str) -> dict[str, Any]:
    """The table of a plan: from a TOML file, or from the JSON that `--dry-run --json` prints.

    Raises
    ------
    UsageError
        The file cannot be read, or is neither; `option` is what the path was given with.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"{option} {path}: cannot be read: {reason}") from None
    try:
        data: dict[str, Any] = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{option} {path}: {error}") from None
    inner = data.get("plan")
    return inner if isinstance(inner, dict) else data


def names_of_presets(folder: str) -> list[str]:
    """Names of the presets in a folder beside this file."""
    entries = (resources.files("assay.workloads") / folder).iterdir()
    return sorted(entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml"))


def preset_table(folder: str, name: str) -> dict[str, Any]:
    """The table of a preset, its name included.

    Raises
    ------
    UsageError
        There is no such preset; the message lists them.
    """
    known = names_of_presets(folder)
    if name not in known:
        close = nearest(name, known)
        meant = f", did you mean {close!r}?" if close else ""
        raise UsageError(f"--preset: unknown preset {name!r}{meant}; known: {', '.join(known)}")
    text = (resources.files("assay.workloads") / folder / f"{name}.toml").read_text(encoding="utf-8")
    return {"name": name, **tomllib.loads(text)}
