"""Forms of what the page may start, and the command that a filled form makes.

The command line hands the forms over, made of its own options. What a browser sends is a choice among listed values or
the text of a typed option: it names no path, no option and no program. The command itself checks what options take.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from assay.base.paths import plain, printable

TEXT_MAX = 300
LINES_MAX = 20
TRACES_MAX = 200
TRACE = ".trace"
MODEL_OPTIONS = "_options"
"""Ending of the field that holds options of a modelled target."""

_OPTIONS = re.compile(r"[A-Za-z0-9_.,:%+=&-]*")

FieldKind = Literal["flag", "choice", "text", "lines", "target", "trace"]
FieldValue = str | bool | list[str]


class WrongForm(Exception):
    """A browser sent what no form of the page makes; the text says what."""


class FieldChoice(TypedDict):
    """A value of a field, and how a list shows it."""

    value: str
    text: str


class FormField(TypedDict):
    """A field of a form.

    `flag` is the option that it gives, and empty for an argument of the command; `off` switches a flag off. `takes` are
    the kinds of targets that fit: `place`, `model`, `null`. A field without places takes no path in its text.
    """

    name: str
    label: str
    help: str
    group: str
    kind: FieldKind
    flag: str
    off: str
    choices: list[FieldChoice]
    takes: list[str]
    is_usual: bool
    is_required: bool
    is_without_places: bool


class StartForm(TypedDict):
    """What may be started: the words of the command, and its fields, arguments in the command's order."""

    name: str
    words: list[str]
    title: str
    fields: list[FormField]


class StartSettings(TypedDict):
    """What the command line hands over: forms, folders that runs may use, names of modelled arrays."""

    forms: list[StartForm]
    places: list[str]
    models: list[str]


class StartForms:
    """The forms with the choices that there are at this moment.

    Parameters
    ----------
    settings
        Forms, places and models.
    outputs
        Folders that results may go to.
    """

    def __init__(self, settings: StartSettings, outputs: Sequence[Path]) -> None:
        self._settings = settings
        self._outputs = [Path(path) for path in outputs]

    def shown(self) -> list[StartForm]:
        """All forms, with the targets and traces that fit."""
        return [
            {**form, "fields": [{**one, "choices": self._choices(one)} for one in form["fields"]]}
            for form in self._settings["forms"]
        ]

    def outputs(self) -> list[FieldChoice]:
        """Folders that results may go to."""
        return [{"value": str(at), "text": printable(path)} for at, path in enumerate(self._outputs)]

    def command(self, filled: object) -> list[str]:
        """The words of the command that a filled form makes, without the program's name.

        Raises
        ------
        WrongForm
            The form is none of these, or a value is none that its field takes.
        """
        name, values, output = _read(filled)
        form = next((one for one in self._settings["forms"] if one["name"] == name), None)
        if form is None:
            raise WrongForm(f"form: {plain(name)[:40]!r} is unknown")
        known = {one["name"] for one in form["fields"]}
        known |= {f"{one['name']}{MODEL_OPTIONS}" for one in form["fields"] if "model" in one["takes"]}
        unknown = [key for key in values if key not in known]
        if unknown:
            raise WrongForm(f"{plain(unknown[0])[:40]}: is no field of {' '.join(form['words'])}")
        options: list[str] = []
        arguments: list[str] = []
        for field in form["fields"]:
            (options if field["flag"] else arguments).extend(self._words(field, values))
        where = self._output(output)
        return [*form["words"], *options, f"--output={where}", *(["--", *arguments] if arguments else [])]

    def _output(self, number: str) -> Path:
        if not number.isdecimal() or not number.isascii() or int(number[:6]) >= len(self._outputs):
            raise WrongForm("results: choose one of the listed folders")
        return self._outputs[int(number[:6])]

    def _words(self, field: FormField, values: Mapping[str, FieldValue]) -> list[str]:
        """The words that a field adds; none where it is left empty."""
        value = values.get(field["name"], "")
        if value in ("", False, []):
            if field["is_required"]:
                raise WrongForm(f"{field['label']}: choose a value")
            return []
        if field["kind"] == "flag":
            if value is not True:
                raise WrongForm(f"{field['label']}: is switched on or off")
            return [field["flag"]]
        if field["kind"] == "lines":
            given = value if isinstance(value, list) else [value]
            if len(given) > LINES_MAX:
                raise WrongForm(f"{field['label']}: at most {LINES_MAX} values are taken")
            return [f"{field['flag']}={_text(field, one)}" for one in given]
        text = _text(field, value)
        if field["kind"] == "text":
            return [f"{field['flag']}={text}"]
        if text not in {one["value"] for one in self._choices(field)}:
            raise WrongForm(f"{field['label']}: choose one of the listed values")
        if field["off"] and text == field["off"]:
            return [text]
        if field["flag"] and text == field["flag"]:
            return [text]
        meant = self._meaning(field, text, values)
        return [f"{field['flag']}={meant}"] if field["flag"] else [meant]

    def _meaning(self, field: FormField, value: str, values: Mapping[str, FieldValue]) -> str:
        """What a listed value stands for on the command line."""
        if field["kind"] == "trace":
            return str(self._traces()[value])
        if field["kind"] != "target":
            return value
        options = values.get(f"{field['name']}{MODEL_OPTIONS}", "")
        if value.startswith("place:") and not options:
            return self._settings["places"][int(value.removeprefix("place:"))]
        if not options:
            return value
        if not value.startswith("model:"):
            raise WrongForm("options of the model: only a modelled array takes them")
        if not isinstance(options, str) or len(options) > TEXT_MAX or not _OPTIONS.fullmatch(options):
            raise WrongForm(
                "options of the model: accepted: NAME=VALUE, several joined by &; such as raid=10&volumes=12"
            )
        _refuse_places("options of the model", options)
        return f"{value}?{options}"

    def _choices(self, field: FormField) -> list[FieldChoice]:
        if field["kind"] == "trace":
            return [{"value": number, "text": printable(path)} for number, path in self._traces().items()]
        if field["kind"] != "target":
            return field["choices"]
        made: dict[str, Callable[[], list[FieldChoice]]] = {
            "place": lambda: [
                {"value": f"place:{at}", "text": printable(path)} for at, path in enumerate(self._settings["places"])
            ],
            "null": lambda: [{"value": "null:", "text": "null: (completes at once)"}],
            "model": lambda: [
                {"value": f"model:{name}", "text": f"model: {name}"} for name in self._settings["models"]
            ],
        }
        return [choice for kind in field["takes"] for choice in made[kind]()]

    def _traces(self) -> dict[str, Path]:
        """Traces in the places and the folders of results, by a number made of their path."""
        found: dict[str, Path] = {}
        for folder in dict.fromkeys([*map(Path, self._settings["places"]), *self._outputs]):
            try:
                with os.scandir(folder) as entries:
                    names = sorted(
                        one.name for one in entries if one.name.endswith(TRACE) and one.is_file(follow_symlinks=False)
                    )
            except OSError:
                continue
            for name in names[: TRACES_MAX - len(found)]:
                path = folder / name
                found[hashlib.sha256(os.fsencode(path)).hexdigest()[:16]] = path
        return found


def _read(filled: object) -> tuple[str, Mapping[str, FieldValue], str]:
    """What a browser sent: a form's name, values by the names of its fields, and the number of the results' folder.

    Raises
    ------
    WrongForm
        It is something else.
    """
    wrong = WrongForm("a filled form has the keys form, values and output")
    if not isinstance(filled, dict) or not {"form", "values"} <= filled.keys() <= {"form", "values", "output"}:
        raise wrong
    name, values, output = filled["form"], filled["values"], filled.get("output", "0")
    if not isinstance(name, str) or not isinstance(values, dict) or not isinstance(output, str):
        raise wrong
    for value in values.values():
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(one, str) or (one is value and isinstance(one, bool)) for one in texts):
            raise WrongForm("a value of a form is a text, a list of texts, true or false")
    return name, values, output


def _text(field: FormField, value: object) -> str:
    """A text of one line.

    Raises
    ------
    WrongForm
        It is none, or too long, or names a place where the field takes none.
    """
    if not isinstance(value, str):
        raise WrongForm(f"{field['label']}: takes a text")
    text = value.strip()
    if not text or len(text) > TEXT_MAX or not text.isprintable():
        raise WrongForm(f"{field['label']}: takes one line of at most {TEXT_MAX} letters")
    if field["is_without_places"]:
        _refuse_places(field["label"], text)
    return text


def _refuse_places(label: str, text: str) -> None:
    """Refuse a path where a name of the catalogue is meant.

    Raises
    ------
    WrongForm
        The text has a folder or names a file of a model.
    """
    if "/" in text or "\\" in text or ".toml" in text.lower():
        raise WrongForm(f"{label}: takes no path; name a drive or an array of the catalogue")
