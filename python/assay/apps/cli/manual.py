"""Pages for `man`, one for `assay` and one a verb, from the declarations that `--help` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup

from assay import _core
from assay.apps.cli.app import EXIT_CODES
from assay.apps.cli.commands import VALUES, default_of
from assay.apps.cli.declared import SECTIONS
from assay.apps.cli.verbs import declared
from assay.base.errors import ExitCode
from assay.workloads.options import PlanOption


def manual(root: Any) -> dict[str, str]:
    """Pages in the language of man(7), by the names of their files.

    Parameters
    ----------
    root
        The command `assay`.
    """
    verbs = {name: one for name, one in root.commands.items() if not one.hidden}
    pages = {"assay.1": [*_head("assay", root.help), *_overview(verbs, root)]}
    for name, one in verbs.items():
        pages[f"assay-{name}.1"] = [*_head(f"assay-{name}", one.help), *_verb(one, f"assay {name}")]
    return {name: "\n".join(lines) + "\n" for name, lines in pages.items()}


def _head(name: str, does: str) -> Iterator[str]:
    yield f'.TH "{name.upper()}" "1" "" "Assay {_core.build_info()["version"]}" "Assay manual"'
    yield from (".SH NAME", rf"{_text(name)} \- {_text(_first(does).rstrip('.'))}")


def _overview(verbs: Mapping[str, TyperCommand | TyperGroup], root: Any) -> Iterator[str]:
    yield from (".SH SYNOPSIS", r"\fBassay\fP [\fIOPTIONS\fP] \fIVERB\fP [\fIARGUMENTS\fP]", ".SH DESCRIPTION")
    for verb in declared():
        if verb.question:
            yield from (".TP", _text(verb.question), rf"\fB{_text(verb.answer)}\fP")
    for section in SECTIONS:
        yield f'.SS "{section}"'
        for name in (name for name, one in verbs.items() if one.rich_help_panel == section):
            yield from (".TP", rf"\fBassay {_text(name)}\fP", _text(_first(verbs[name].help or "")))
    yield from _options(root)
    yield ".SH EXIT STATUS"
    yield from (line for code in ExitCode for line in (".TP", str(code.value), _text(EXIT_CODES[code])))
    yield from (".SH SEE ALSO", ", ".join(rf"\fBassay\-{_text(name)}\fP(1)" for name in sorted(verbs)))


def _verb(command: Any, words: str) -> Iterator[str]:
    """The pages' part for a verb, or for each of its commands."""
    yield ".SH SYNOPSIS"
    commands = list(_commands(command, words))
    for name, one in commands:
        arguments = " ".join(_text(piece) for param in one.params for piece in _usage(param))
        yield from (rf"\fB{_text(name)}\fP [\fIOPTIONS\fP] {arguments}".rstrip(), ".br")
    for name, one in commands:
        yield from (f'.SH "{_text(name if len(commands) > 1 else "description").upper()}"', _text(_first(one.help)))
        yield from _options(one)
        yield from _examples(one.epilog)
    if len(commands) > 1:
        yield from _examples(command.epilog)
    yield from (".SH SEE ALSO", r"\fBassay\fP(1)")


def _commands(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    command = getattr(command, "loaded", command)
    inner = getattr(command, "commands", {})
    for name, one in inner.items():
        yield from _commands(one, f"{words} {name}")
    if not inner:
        yield words, command


def _usage(param: Any) -> list[str]:
    return [param.display_name_raw] if isinstance(param, TyperArgument) else []


def _options(command: Any) -> Iterator[str]:
    """Arguments, and options by their groups."""
    groups: dict[str, list[str]] = {}
    of_plan: Mapping[str, Sequence[PlanOption]] = getattr(command.callback, "plan_options", {})
    for param in command.params:
        if getattr(param, "hidden", False):
            continue
        if isinstance(param, TyperArgument):
            group, default, names = "Arguments", "", rf"\fI{_text(param.display_name_raw)}\fP"
        else:
            kind = param.display_type(None).strip("<>").removeprefix("list[").removesuffix("]")
            value = VALUES.get(kind, kind)
            names = ", ".join(rf"\fB{_text(name)}\fP" for name in (*param.opts, *param.secondary_opts))
            names += rf" \fI{_text(value)}\fP" if value else ""
            group = str(param.rich_help_panel or "Options")
            default = "" if param.is_flag else default_of(param, of_plan.get(param.name, ()))
        meaning = f"{param.help or ''} (default: {default})" if default else param.help or ""
        groups.setdefault(group, []).extend((".TP", names, _text(meaning)))
    for group, lines in groups.items():
        yield from (f'.SS "{group}"', *lines)


def _examples(text: str | None) -> Iterator[str]:
    lines = re.findall(r"^`(.*)`$", text or "", flags=re.MULTILINE)
    yield from ('.SS "Examples"' for _ in lines[:1])
    for line in lines:
        yield from (".PP", ".nf", rf"\fB{_text(line)}\fP", ".fi")


def _first(text: str) -> str:
    return text.partition("\n")[0]


def _text(text: str) -> str:
    r"""Text of Markdown for roff, which prints it as it is.

    Examples
    --------
    >>> print(_text("`--at` 5 \u2264 6"))
    \fB\-\-at\fP 5 \[u2264] 6
    """
    plain = " ".join(text.split()).replace(r"\\", "\\").replace("\\", r"\e").replace("-", r"\-")
    plain = "".join(letter if letter.isascii() else rf"\[u{ord(letter):04X}]" for letter in plain)
    marked = re.sub(r"`([^`]*)`", r"\\fB\1\\fP", plain)
    return rf"\&{marked}" if marked[:1] in (".", "'") else marked
