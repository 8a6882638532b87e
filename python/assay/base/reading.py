"""Models from tables of TOML or JSON, with errors that name the key; and the presets that come with Assay."""

from __future__ import annotations

import difflib
import json
import reprlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from assay.base.errors import UsageError
from assay.base.fields import FieldError, FieldValueError, Place
from assay.base.paths import printable
from assay.base.units import format_bytes

Model = TypeVar("Model", bound=BaseModel)

TEXT_MAX_BYTES = 16 << 20
"""More is no plan and no study; a device would be read without end."""

DEEPEST = 100
"""Tables and lists within each other: deeper ones exhaust the recursion of their readers."""

SHOWN_MAX = 100

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = SHOWN_MAX

EXPECTED = {
    "tuple_type": "a list is expected; in TOML, several tables are written [[...]]",
    "dict_type": "a table is expected",
    "model_type": "a table is expected",
    "missing": "a value is missing",
    "int_parsing": "a whole number is expected",
    "float_parsing": "a number is expected",
}
"""What pydantic says of its own types, in the words of a plan."""


def validated(model: type[Model], data: Mapping[str, object], source: str, *, at: Place = ()) -> Model:
    """A model from a table.

    Parameters
    ----------
    model
        What the table must be.
    data
        The table.
    source
        Where it was given.
    at
        Where it stands in a plan.

    Raises
    ------
    FieldError
        A key is unknown (the nearest known one is named), or a value is not accepted.
    """
    refuse_unknown(data, model, source, at=at)
    try:
        return model.model_validate(dict(data))
    except UnicodeEncodeError as error:
        letter = error.object[error.start : error.end]
        raise FieldError(f"a text holds {letter!r}, which is no character", field=at, source=source) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field, reason = problem_of(first)
        if first["type"] == "extra_forbidden":
            *table, key = field
            inner = _model_at(model, table)
            if inner is not None:
                refuse_unknown([str(key)], inner, source, at=(*at, *table))
        raise FieldError(reason, field=(*at, *field), source=source) from None


def problem_of(error: ErrorDetails) -> tuple[Place, str]:
    """Where a value stands that pydantic refuses, and why it does."""
    cause = error.get("ctx", {}).get("error")
    own = (cause.field,) if isinstance(cause, FieldValueError) else ()
    message = EXPECTED.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")
    given = "" if error["type"] in ("value_error", "missing") else f" (given {shortened(error['input'])})"
    return (*error["loc"], *own), message + given


def refuse_unknown(data: Iterable[str], model: type[BaseModel], source: str, *, at: Place = ()) -> None:
    """Refuse keys a model does not have, with the nearest one it has; `at` is where the table stands.

    Raises
    ------
    FieldError
        There is such a key.
    """
    known = list(model.model_fields)
    for key in data:
        if key not in known:
            meant = nearest(str(key), known)
            hint = f"did you mean {meant!r}?" if meant else f"known: {', '.join(known)}"
            raise FieldError(f"unknown key {key!r}; {hint}", field=at, source=source)


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


def shortened(value: object) -> str:
    """A value as it was given, no longer than a message bears.

    Examples
    --------
    >>> shortened(1e308), len(shortened("x" * 10_000))
    ('1e+308', 100)
    """
    text = _SHORT.repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 3]}..."


def _model_at(model: type[BaseModel], loc: Sequence[int | str]) -> type[BaseModel] | None:
    """The model of a nested table, or of the tables of a list; None where the place says more than the models do."""
    found: type[BaseModel] | None = model
    for part in loc:
        if isinstance(part, str) and found is not None:
            field = found.model_fields.get(part)
            found = _model_in(field.annotation) if field is not None else None
    return found


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that values of a type are or hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def read_table(path: Path, *, option: str) -> dict[str, Any]:
    """The table of a plan: from a TOML file, or from the JSON that `--dry-run --json` prints.

    Raises
    ------
    UsageError
        The file cannot be read, or is neither; `option` is what the path was given with.
    """
    source = f"{option} {printable(path)}"
    data = table_of(read_text(path, source), source)
    if several := plans_within(data):
        raise UsageError(f"{source}: holds {len(several)} plans of a run; `assay profile` takes several, others one")
    inner = data.get("plan")
    return inner if isinstance(inner, dict) else data


def plans_within(data: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The plans in a document of `--dry-run --json` that has several and is none itself."""
    parts = data.get("parts")
    if "plan" in data or not isinstance(parts, list):
        return []
    return [plan for part in parts if isinstance(part, dict) and isinstance(plan := part.get("plan"), dict)]


def read_text(path: Path, source: str) -> str:
    """The text of a file that a person wrote.

    Raises
    ------
    UsageError
        It cannot be read, is too large or is not UTF-8; `source` says of which.
    """
    try:
        with path.open("rb") as file:
            data = file.read(TEXT_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        # A name with a null character is a ValueError.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{source}: cannot be read: {reason}") from None
    if len(data) > TEXT_MAX_BYTES:
        raise UsageError(f"{source}: is larger than {format_bytes(TEXT_MAX_BYTES)}; give another file")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{source}: cannot be read: it is not UTF-8 text") from None


def table_of(text: str, source: str) -> dict[str, Any]:
    """The table of TOML, or of JSON where the text begins with a brace.

    Raises
    ------
    UsageError
        It is neither, or nested too deep.
    """
    try:
        data: dict[str, Any] = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except ValueError as error:
        # Both decoders raise kinds of it, and so do numbers of thousands of digits.
        raise UsageError(f"{source}: {error}") from None
    except RecursionError:
        raise UsageError(f"{source}: is nested too deep") from None
    _refuse_boundless(data, source)
    return data


def _refuse_boundless(data: Any, source: str) -> None:
    """Refuse what only JSON can hold and nothing can use: tables without end in each other, numbers without end."""
    waiting = [(data, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > DEEPEST:
            raise UsageError(f"{source}: is nested too deep")
        if isinstance(value, int) and value.bit_length() > 64:
            raise UsageError(f"{source}: holds a whole number of more than 64 bits ({shortened(value)})")
        if isinstance(value, dict | list):
            waiting += [(inner, depth + 1) for inner in (value.values() if isinstance(value, dict) else value)]


def names_of_presets(package: str) -> list[str]:
    """Names of the presets in the folder `presets` of a package, if it has one."""
    folder = resources.files(package) / "presets" if package else None
    entries = folder.iterdir() if folder is not None and folder.is_dir() else ()
    return sorted(entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml"))


def preset_table(package: str, name: str) -> dict[str, Any]:
    """The table of a preset, its name included.

    Raises
    ------
    UsageError
        There is no such preset; the message lists them.
    """
    known = names_of_presets(package)
    if name not in known:
        close = nearest(name, known)
        meant = f", did you mean {close!r}?" if close else ""
        raise UsageError(f"--preset: unknown preset {name!r}{meant}; known: {', '.join(known)}")
    text = (resources.files(package) / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return {"name": name, **tomllib.loads(text)}
