"""The texts of a paper: templates that say what each section says, which the user may put others in place of.

A template is text with fields (Jinja2, sandboxed). Blank lines divide its paragraphs; a line that begins with `# ` is a
heading, one with `! ` stands out, lines with `- ` are a list, and `{{ show("name") }}` on a line of its own is a table
or a figure. What a field gives is text and never any of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from assay.base.errors import UsageError
from assay.base.paths import plain, printable
from assay.base.reading import nearest, read_text
from assay.document.elements import Block, Bullets, Heading, Paragraph
from assay.document.references import see

_LITERAL = "\ue002"
"""Stands before everything that a field gives."""
_BLOCK, _BLOCK_END = "\ue003", "\ue004"

STYLE = "paper.css"


class _Mark(str):
    """Text that a template's own function made: it may be more than text."""


def shipped() -> dict[str, str]:
    """The templates that come with Assay, by file name."""
    folder = files("assay.report").joinpath("templates", "paper")
    found = {
        one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith((".txt", ".css"))
    }
    return dict(sorted(found.items()))


def write_templates(folder: Path) -> list[Path]:
    """Write the templates that come with Assay into a folder of the user's, to change them.

    Raises
    ------
    UsageError
        One of them is there already, or the folder cannot be made.
    """
    from assay.report.files import replace_file

    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = [name for name in shipped() if (folder / name).exists()]
    except OSError as error:
        raise UsageError(f"--new-template {printable(folder)}: cannot be made: {error.strerror}") from error
    if there:
        raise UsageError(f"--new-template {printable(folder)}: has {there[0]} already; name another folder")
    return [replace_file(folder / name, text.encode()) for name, text in shipped().items()]


class Texts:
    """The templates of a paper.

    Parameters
    ----------
    folder
        Where the user keeps some in place of those that come with Assay.

    Raises
    ------
    UsageError
        It is no folder, or a file in it is no template that Assay knows.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._sources = shipped()
        self._own: set[str] = set()
        self._folder = folder
        if folder is not None:
            self._read(folder)

    def _read(self, folder: Path) -> None:
        if not folder.is_dir():
            raise UsageError(
                f"--template {printable(folder)}: is no folder; `assay report --new-template DIR` writes one to start"
                " from"
            )
        for path in sorted(folder.iterdir()):
            if path.suffix not in (".txt", ".css"):
                continue
            if path.name not in self._sources:
                meant = nearest(path.name, self._sources)
                hint = f"did you mean {meant}?" if meant else f"known: {', '.join(self._sources)}"
                raise UsageError(f"--template {printable(folder)}: {plain(path.name)} is no template; {hint}")
            self._sources[path.name] = read_text(path, f"--template {printable(path)}")
            self._own.add(path.name)

    @property
    def style(self) -> str:
        """CSS besides that of all reports."""
        return self._sources[STYLE]

    def blocks(self, name: str, fields: Mapping[str, object], shown: Mapping[str, Sequence[Block]]) -> list[Block]:
        """What a template says.

        Parameters
        ----------
        name
            Of the template, without its ending.
        fields
            What it may name.
        shown
            Tables and figures that it may show, by name; each name may stand for several.

        Raises
        ------
        UsageError
            The template is wrong, or names what there is not.
        """
        from jinja2 import StrictUndefined, TemplateError
        from jinja2.sandbox import SandboxedEnvironment

        file = f"{name}.txt"

        def show(block: str) -> _Mark:
            if block not in shown:
                raise UsageError(f"{self._where(file)}: there is nothing to show of the name {plain(str(block))!r};"
                                 f" known: {', '.join(shown) or 'nothing'}")  # fmt: skip
            return _Mark(f"{_BLOCK}{block}{_BLOCK_END}")

        environment = SandboxedEnvironment(
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False, finalize=_literal
        )
        environment.globals.clear()
        try:
            template = environment.from_string(self._sources[file])
            text = template.render({**fields, "show": show, "see": lambda other: _Mark(see(str(other)))})
        except TemplateError as error:
            raise UsageError(f"{self._where(file, error)}: {self._said(error, fields)}") from error
        except (TypeError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
            raise UsageError(f"{self._where(file, error)}: {plain(str(error))}") from error
        return _parsed(text, shown)

    def _where(self, file: str, error: Exception | None = None) -> str:
        folder = f"--template {printable(self._folder)}: " if file in self._own and self._folder else ""
        line = getattr(error, "lineno", None)
        trace = error.__traceback__ if error is not None else None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == "<template>":
                line = trace.tb_lineno
            trace = trace.tb_next
        return f"{folder}{file}" + (f" line {line}" if line else "")

    def _said(self, error: Exception, fields: Mapping[str, object]) -> str:
        from jinja2 import UndefinedError

        message = plain(str(error.args[0] if error.args else error))
        if not isinstance(error, UndefinedError):
            return message
        words = message.split("'")
        # jinja2 names the field first, or last where it is one of something.
        name = words[1] if message.endswith("is undefined") else words[-2] if len(words) > 2 else message
        meant = nearest(name, fields)
        hint = f"did you mean {meant!r}?" if meant else f"known: {', '.join(fields)}"
        return f"unknown field {name!r}; {hint}"


def _literal(value: Any) -> Any:
    return value if isinstance(value, _Mark) else f"{_LITERAL}{value}"


def _parsed(text: str, shown: Mapping[str, Sequence[Block]]) -> list[Block]:
    blocks: list[Block] = []
    for part in text.split("\n\n"):
        lines = [line.strip() for line in part.split("\n") if line.strip()]
        if not lines:
            continue
        if all(line.startswith("- ") for line in lines):
            blocks.append(Bullets([_plain(line[2:]) for line in lines]))
            continue
        blocks += _paragraph(lines, shown)
    # A heading with nothing below it says nothing.
    pairs = zip(blocks, [*blocks[1:], Heading("")], strict=True)
    return [block for block, after in pairs if not (isinstance(block, Heading) and isinstance(after, Heading))]


def _paragraph(lines: Sequence[str], shown: Mapping[str, Sequence[Block]]) -> list[Block]:
    blocks: list[Block] = []
    words: list[str] = []

    def end() -> None:
        said = _plain(" ".join(words))
        if said:
            blocks.append(Paragraph(said))
        words.clear()

    for line in lines:
        if line.startswith("# "):
            end()
            blocks.append(Heading(_plain(line[2:])))
        elif line.startswith("! "):
            end()
            blocks.append(Paragraph(_plain(line[2:]), strong=True))
        elif line.startswith("- "):
            end()
            last = blocks[-1] if blocks else None
            if isinstance(last, Bullets):
                last.items.append(_plain(line[2:]))
            else:
                blocks.append(Bullets([_plain(line[2:])]))
        elif line.startswith(_BLOCK) and line.endswith(_BLOCK_END):
            end()
            blocks += shown[line[len(_BLOCK) : -len(_BLOCK_END)]]
        else:
            words.append(line)
    end()
    return blocks


def _plain(text: str) -> str:
    return text.replace(_LITERAL, "").strip()
