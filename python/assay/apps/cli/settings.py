"""Defaults of options that files and the environment set: which options may have one, and from where each value came.

`assay.toml` in the working folder or above is the weakest, then come `~/.config/assay/config.toml`, the environment
and what is typed. A working folder may be somebody else's: unpacked, cloned, shared. Its file therefore sets nothing
that leads a run elsewhere, makes it longer or larger, permits writing, names a program or a host, or hides a caveat.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from assay.apps.cli.completing import verb_names
from assay.base.errors import UsageError
from assay.base.paths import open_regular, printable

Value = bool | str | int | list[str]

NAME = "assay.toml"
FILE_MAX_BYTES = 64 << 10
LIST_MAX = 50
TEXT_MAX = 500

FOLDER, USER, ENVIRONMENT = "folder", "user", "environment"
"""Who sets a value: the file of the working folder, the user's own file, a variable."""


def _exports(texts: list[str]) -> None:
    from assay.apps.cli.options import parse_exports

    parse_exports(texts)


@dataclass(frozen=True)
class SettableOption:
    """An option that may have a default of the user's.

    Attributes
    ----------
    kind
        Type of its value.
    is_harmless
        Whether the file of a working folder may set it.
    of_verb
        Whether it means something else for each verb, and is set in the table of a verb alone.
    check
        Refuses a value, before any verb looks at it.
    """

    kind: type
    is_harmless: bool = False
    of_verb: bool = False
    check: Callable[[list[str]], object] | None = None


SETTINGS: Mapping[str, SettableOption] = {
    "export": SettableOption(list, is_harmless=True, check=_exports),
    "limit": SettableOption(list, is_harmless=True, of_verb=True),
    "no-color": SettableOption(bool, is_harmless=True),
    "report": SettableOption(bool, is_harmless=True),
    "smallest": SettableOption(str, is_harmless=True),
    "output": SettableOption(str),
    "quiet": SettableOption(bool),
    **{
        name: SettableOption(kind, of_verb=True)
        for name, kind in {
            "backend": str, "budget": str, "duration": str, "every": str, "io-timeout": str, "keep": str,
            "max-time": str, "min-time": str, "repeat": int, "rest": str, "size": str, "warmup": str,
        }.items()
    },
}  # fmt: skip
"""By the option without its dashes."""


@dataclass(frozen=True)
class SetValue:
    """A value that was set.

    Attributes
    ----------
    verb
        The verb it is for; empty for all.
    by
        Who set it.
    source
        Where, for people.
    """

    verb: str
    name: str
    value: Value
    by: str
    source: str


_QUICK = frozenset({"quick"})
GIVES_WAY: Mapping[str, frozenset[str]] = {
    "budget": _QUICK,
    "duration": _QUICK | {"cycles", "max-time", "min-time"},
    "max-time": _QUICK | {"duration"},
    "min-time": _QUICK | {"duration"},
    "repeat": _QUICK | {"repeats"},
    "rest": _QUICK,
    "warmup": _QUICK,
}
"""Options that say something else of the same: where one of them is typed, a default of this one does not hold."""

USED: dict[str, str] = {}
"""Where the defaults of the command that runs came from, by option: an error that names the option says it, too."""


def settings(*, isolated: bool = False, environ: Mapping[str, str] = os.environ) -> tuple[list[SetValue], list[str]]:
    """All values that are set, the weakest first, and what has to be said of files that are not read.

    Raises
    ------
    UsageError
        A file cannot be understood, or sets what it may not.
    """
    notices: list[str] = []
    found: list[SetValue] = []
    if not isolated:
        for path, by in files(environ):
            found += _of_file(path, by, notices)
    return [*found, *_of_environment(environ)], notices


def files(environ: Mapping[str, str] = os.environ) -> Iterator[tuple[Path, str]]:
    """The files that are there: the nearest of the working folder, and the user's own."""
    try:
        folder = os.getcwd()
    except OSError:
        folder = "/"
    for above in (Path(folder), *Path(folder).parents):
        if os.path.lexists(above / NAME):
            yield above / NAME, FOLDER
            break
    if (own := own_file(environ)) and os.path.exists(own):
        yield own, USER


def own_file(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The user's own file, by the XDG Base Directory Specification; None without a home."""
    base = environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(base):
        return Path(base, "assay", "config.toml")
    home = environ.get("HOME", "")
    return Path(home, ".config", "assay", "config.toml") if os.path.isabs(home) else None


def chosen(found: Iterable[SetValue], verb: str) -> dict[str, SetValue]:
    """What holds for a verb: the strongest value of each option, where a table of the verb wins within its file."""
    ranked = sorted(found, key=lambda one: ((FOLDER, USER, ENVIRONMENT).index(one.by), bool(one.verb)))
    return {one.name: one for one in ranked if one.verb in ("", verb)}


def give_defaults(context: Any, words: Iterable[str]) -> None:
    """Give the options of a command the defaults that are set, before the words that were typed are read.

    Raises
    ------
    UsageError
        A file or a variable sets what it may not.
    """
    USED.clear()
    options = {one.opts[-1].removeprefix("--"): one for one in context.command.params if _takes(one)}
    if not options:
        return
    found, notices = settings(isolated=bool(context.find_root().params.get("isolated")))
    for notice in notices:
        print(f"note: {notice}", file=sys.stderr)
    held = chosen(found, context.command_path.removeprefix(context.find_root().command_path).split()[0])
    typed = {word.partition("=")[0].removeprefix("--") for word in words if word.startswith("--")}
    given = {name: one for name, one in held.items() if name in options and not typed & GIVES_WAY.get(name, set())}
    context.default_map = {options[name].name: one.value for name, one in given.items()}
    context.meta[__name__] = given


def tell_used(context: Any) -> None:
    """Note which defaults hold, what was typed having been read; say what the file of the working folder sets."""
    given: Mapping[str, SetValue] = context.meta.get(__name__, {})
    # A plan that is named says all that a plan can say.
    said = getattr(context.command.callback, "plan_options", {}) if context.params.get("plan") is not None else {}
    for one in given.values():
        name = one.name.replace("-", "_")
        source = context.get_parameter_source(name)
        if source is not None and source.name == "DEFAULT_MAP" and name not in said:
            USED[one.name] = one.source
    if told := [f"--{name}" for name in USED if given[name].by == FOLDER]:
        print(f"note: {given[told[0][2:]].source.rpartition(',')[0]} sets {', '.join(told)}", file=sys.stderr)


def _takes(option: Any) -> bool:
    """Whether a setting is meant for an option: the same name can have another meaning for a verb."""
    setting = SETTINGS.get(option.opts[-1].removeprefix("--"))
    # An argument of the same name is no option.
    if setting is None or getattr(option, "hidden", True) or not option.opts[-1].startswith("--"):
        return False
    is_alike = (option.is_flag, option.multiple) == (setting.kind is bool, setting.kind is list)
    return is_alike and (option.name != "output" or option.default == Path("assay-results"))


def blamed(message: str) -> str:
    """The message of an error, with the place of the option's value where that was not typed."""
    named = re.match(r"(?:Invalid value for ')?(?:--)?([a-z-]+)", message)
    source = USED.get(named[1], "") if named is not None else ""
    return f"{source}: {message}" if source else message


def _of_file(path: Path, by: str, notices: list[str]) -> Iterator[SetValue]:
    """The values of a file."""
    text = _text(path, by, notices)
    if text is None:
        return
    import tomllib

    shown = printable(path)
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{shown}: {error or 'is nested too deep'}; --isolated goes on without it") from None
    for key, value in table.items():
        tables = {key: value} if isinstance(value, dict) else {"": {key: value}}
        for verb, inner in tables.items():
            if verb and verb not in verb_names():
                _refuse(shown, text, "", verb, f"unknown table {verb!r}; a table has the name of a verb")
            for name, one in inner.items():
                place = f"{shown}, line {_line(text, verb, name)}"
                yield SetValue(verb, name, _checked(verb, name, one, by, place), by, place)


def _text(path: Path, by: str, notices: list[str]) -> str | None:
    """The text of a file; None for a file of another user, of which the user is told."""
    shown = printable(path)
    try:
        # Users link their own files to where they keep them; what a working folder links to is not of that folder.
        descriptor = open_regular(path if by == FOLDER else os.path.realpath(path))
    except OSError as error:
        raise UsageError(f"{shown}: cannot be read: {error.strerror}; --isolated goes on without it") from None
    with open(descriptor, "rb") as file:
        if os.fstat(descriptor).st_uid not in (0, os.geteuid()):
            notices.append(f"{shown} is not read: it belongs to another user")
            return None
        data = file.read(FILE_MAX_BYTES + 1)
    if len(data) > FILE_MAX_BYTES:
        raise UsageError(f"{shown}: is larger than {FILE_MAX_BYTES >> 10} KiB; --isolated goes on without it")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{shown}: is no UTF-8 text; --isolated goes on without it") from None


def _of_environment(environ: Mapping[str, str]) -> Iterator[SetValue]:
    """The values of variables such as ASSAY_OUTPUT; options that differ by verb have none."""
    for name, setting in SETTINGS.items():
        variable = variable_of(name)
        text = environ.get(variable, "")
        if not text or setting.of_verb:
            continue
        value: object = text
        if setting.kind is list:
            value = [part.strip() for part in text.split(",") if part.strip()]
        elif setting.kind is bool:
            known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
            value = known.get(text.lower(), text)
        yield SetValue("", name, _checked("", name, value, ENVIRONMENT, variable), ENVIRONMENT, variable)


def variable_of(name: str) -> str:
    """The variable of an option.

    Examples
    --------
    >>> variable_of("no-color")
    'ASSAY_NO_COLOR'
    """
    return f"ASSAY_{name.upper().replace('-', '_')}"


def _checked(verb: str, name: str, value: object, by: str, place: str) -> Value:
    """A value that may be set there; messages hold no value, which may be a secret in the wrong place.

    Raises
    ------
    UsageError
        It may not.
    """
    setting = SETTINGS.get(name)
    allowed = [one for one, known in SETTINGS.items() if by != FOLDER or known.is_harmless]
    if setting is None:
        from assay.base.reading import nearest

        meant = nearest(name, allowed)
        hint = f"did you mean {meant!r}?" if meant else f"known: {', '.join(allowed)}"
        raise UsageError(f"{place}: unknown key {printable(name[:60])!r}; {hint}")
    if by == FOLDER and not setting.is_harmless:
        raise UsageError(f"{place}: {name} is for your own file, not for that of a folder; known: {', '.join(allowed)}")
    if setting.of_verb and not verb:
        raise UsageError(f"{place}: {name} differs by verb; put it into a table, such as [profile]")
    texts = value if isinstance(value, list) else [value]
    is_right = isinstance(value, setting.kind) and (setting.kind is bool or not isinstance(value, bool))
    if not is_right or (setting.kind is list and not all(isinstance(text, str) for text in texts)):
        _refuse_type(place, name, setting)
    if len(texts) > LIST_MAX or any(len(str(text)) > TEXT_MAX or not str(text).isprintable() for text in texts):
        raise UsageError(f"{place}: {name} is too long, or holds letters that are not printable")
    if setting.check is not None:
        try:
            setting.check(list(map(str, texts)))
        except UsageError as error:
            raise UsageError(f"{place}: {error}") from None
    checked: Value = value  # type: ignore[assignment]
    return checked


def _refuse_type(place: str, name: str, setting: SettableOption) -> NoReturn:
    words = {bool: "true or false", str: "a text in quotes", int: "a whole number", list: 'a list, such as ["csv"]'}
    raise UsageError(f"{place}: {name} is {words[setting.kind]}")


def _refuse(shown: str, text: str, verb: str, key: str, reason: str) -> NoReturn:
    raise UsageError(f"{shown}, line {_line(text, verb, key)}: {reason}")


def _line(text: str, verb: str, key: str) -> int:
    """The line at which a key of a table stands, counted from 1; the line of the table where the key is not found."""
    table, at = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        if heading := re.match(r"\s*\[\s*[\"']?([^\]\"']*?)[\"']?\s*\]", line):
            table = heading[1]
            at = number if table in (verb, key) else at
        elif table == verb and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
            return number
    return at
