"""Calling a verb from Python: its options as keywords, its answer as an object."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.apps.cli.taken import Taken, taking
from assay.base.errors import IoFailed, UsageError
from assay.base.reading import nearest
from assay.base.tables import Record
from assay.record.load import Run
from assay.record.load import load as read_run

if TYPE_CHECKING:
    from assay.document.elements import Block
    from assay.document.terminal import Details

Texts = Sequence[str]
Options = Mapping[str, object]
PathLike = str | os.PathLike[str]


@dataclass(frozen=True, repr=False)
class VerbAnswer:
    """What a verb that measures nothing answers.

    Attributes
    ----------
    verb
        The verb.
    document
        The answer as `--json` prints it.
    blocks
        The answer as the terminal prints it.
    """

    verb: str
    document: Record
    blocks: Sequence[Block | Details]

    def __repr__(self) -> str:
        """The first sentence of the answer."""
        return f"<assay {self.verb}: {next(iter(_sentences(self.blocks)), 'nothing to say')}>"

    def _repr_html_(self) -> str:
        """All of the answer, for notebooks."""
        from assay.document.elements import Document, Section
        from assay.document.terminal import unfolded
        from assay.report.html import html_piece

        section = Section("answer", "", [*unfolded(self.blocks, details=True)])
        return html_piece(Document(title="", facts_line="", sections=[section], footer=""))


def _sentences(blocks: Iterable[Block | Details]) -> Iterable[str]:
    return (block.text for block in blocks if not hasattr(block, "blocks") and block.kind == "paragraph")


def load(path: PathLike) -> Run:
    """Read a run, going on or ended, as data frames.

    Parameters
    ----------
    path
        The run folder.

    Returns
    -------
    Run
        Its manifest, points, answers, verdict and series; a notebook shows the first page of its report.

    Raises
    ------
    RunFolderError
        It is not a run folder, a newer Assay wrote it, or a file in it is damaged.
    """
    return read_run(path, first_page=_first_page)


def _first_page(path: Path) -> str:
    from assay.report import first_page

    return first_page(path)


def called(words: Texts, arguments: Iterable[PathLike], options: Options) -> Taken:
    """Call a verb.

    Parameters
    ----------
    words
        The verb: `["oltp", "tpcc"]`.
    arguments
        What stands on the command line without an option.
    options
        Options by name with underscores; a list for one that is given several times, or takes several levels.

    Raises
    ------
    UsageError
        An option is unknown or not accepted.
    AssayError
        What the command line would report.
    """
    command = _command(words)
    if any(param.name == "quiet" for param in command.params):
        options = {**options, "quiet": True}
    return _called(command, words, [*_options(command, words, options), "--", *(os.fspath(one) for one in arguments)])


def run_of_line(line: Texts) -> Run:
    """The run that a command line has made, the verb first; see `run_of`."""
    words = [*itertools.takewhile(lambda word: not word.startswith("-"), line)]
    while not _is_verb(words):
        words.pop()
    return finished(_called(_command(words), words, line[len(words) :]))


def _is_verb(words: Texts) -> bool:
    try:
        return bool(words) and not hasattr(_command(words), "commands")
    except (KeyError, AttributeError):
        return False


def _called(command: Any, words: Texts, rest: Texts) -> Taken:
    from typer.exceptions import TyperException

    with taking([*words, *rest]) as taken:
        try:
            command.main(args=[*rest], prog_name=" ".join(["assay", *words]), standalone_mode=False)
        except TyperException as error:
            raise UsageError(error.format_message()) from None
    return taken


def run_of(words: Texts, arguments: Iterable[PathLike], options: Options) -> Run:
    """The run that a verb has made.

    Raises
    ------
    AssayError
        What ended it early; what was measured until then is in the run folder.
    """
    return finished(called(words, arguments, options))


def finished(taken: Taken) -> Run:
    """The run of a verb that was called; see `run_of`."""
    if taken.error is not None:
        raise taken.error
    if taken.folder is None:
        raise IoFailed(f"assay {' '.join(taken.command)}: ended without a run")
    return load(taken.folder)


def answer_of_verb(words: Texts, arguments: Iterable[PathLike], options: Options) -> VerbAnswer:
    """What a verb that measures nothing answers."""
    taken = called(words, arguments, options)
    return VerbAnswer(" ".join(words), taken.document, taken.blocks)


def _command(words: Texts) -> Any:
    import typer

    from assay.apps.cli.app import app

    command: Any = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]
        command = getattr(command, "loaded", command)
    return command


def _options(command: Any, words: Texts, options: Options) -> Iterable[str]:
    """Options as the command line has them."""
    known = {flag: param for param in command.params for flag in (*param.opts, *param.secondary_opts)}
    for name, value in options.items():
        flag = f"--{name.rstrip('_').replace('_', '-')}"
        if flag not in known:
            meant = nearest(flag, known)
            hint = f"; did you mean {meant.lstrip('-').replace('-', '_')}?" if meant else ""
            raise UsageError(f"assay {' '.join(words)}: there is no option {name!r}{hint}")
        param = known[flag]
        if value is None or value == () or value == []:
            continue
        if isinstance(value, bool):
            yield from [flag] if value else param.secondary_opts[:1]
        elif isinstance(value, list | tuple) and param.multiple:
            yield from (f"{flag}={one}" for one in value)
        else:
            yield f"{flag}={','.join(map(str, value)) if isinstance(value, list | tuple) else value}"
