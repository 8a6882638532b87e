"""A verb that Python calls: what it would print is taken, and nothing exits.

The functions of `assay.apps.api` call verbs as the command line does, so that both understand the same and measure the
same. Where a verb would print its answer, it asks here whether a caller takes it.
"""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from assay.base.tables import Record

if TYPE_CHECKING:
    from assay.base.errors import AssayError
    from assay.document.elements import Block
    from assay.document.terminal import Details


@dataclass
class Taken:
    """What a verb gives to its caller.

    Attributes
    ----------
    command
        The verb and what it was given, as the command line would have it.
    folder
        The run folder, of verbs that make one.
    error
        Why the run ended early.
    document, blocks
        What `--json` prints, and what a terminal shows.
    """

    command: Sequence[str]
    folder: Path | None = None
    error: AssayError | None = None
    document: Record = field(default_factory=dict)
    blocks: Sequence[Block | Details] = ()


_TAKEN: ContextVar[Taken | None] = ContextVar("taken", default=None)


@contextmanager
def taking(command: Sequence[str]) -> Iterator[Taken]:
    """Take what the verb that is called within gives."""
    taken = Taken(command)
    token = _TAKEN.set(taken)
    try:
        yield taken
    finally:
        _TAKEN.reset(token)


def taken_now() -> Taken | None:
    """Where a verb puts what it gives; None on the command line."""
    return _TAKEN.get()


def command_words() -> list[str]:
    """The command that runs, without the program's name."""
    taken = _TAKEN.get()
    return sys.argv[1:] if taken is None else [*taken.command]


def answer(
    document: Callable[[], Record],
    blocks: Callable[[], Sequence[Block | Details]],
    *,
    json: bool = False,
    details: bool = False,
    steps: Sequence[str] = (),
) -> None:
    """Give the answer of a verb that measures nothing: to a caller, as JSON, or to the terminal with the next steps."""
    taken = _TAKEN.get()
    if taken is not None:
        taken.document, taken.blocks = document(), blocks()
    elif json:
        print(json_module.dumps(document(), allow_nan=False, indent=1))
    else:
        from assay.apps.cli.next_step import print_next
        from assay.document.terminal import show

        show(blocks(), details=details)
        print_next(steps)
