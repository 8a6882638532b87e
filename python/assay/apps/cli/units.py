"""Units of systemd: shown, and written beside each other; nothing is ever started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from assay.base.errors import AssayError, UsageError
from assay.base.paths import printable

OnlyPrint = Annotated[bool, typer.Option("--print", help="Show what would be written, and write nothing.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace units that are there.")]


def write_units(units: Mapping[Path, str], start: str, *, only_print: bool, overwrite: bool) -> None:
    """Print units, or write them and say how they are started.

    Parameters
    ----------
    units
        Texts by their paths.
    start
        The commands that start them.

    Raises
    ------
    UsageError
        One is there already, or cannot be written.
    """
    if only_print:
        print("\n".join(units.values()), end="")
        return
    for path in units:
        if os.path.lexists(path) and not overwrite:
            raise UsageError(f"{printable(path)}: is there already; look at it, and replace it with --overwrite")
    from assay.record.folder import replace_file

    for path, text in units.items():
        try:
            # A link that has the name is replaced, not followed: another user may have put it there.
            replace_file(Path(os.path.abspath(path)), text.encode())
        except AssayError as error:
            raise UsageError(f"{error}; run as root, or see --print") from None
        print(f"written: {path}")
    print(f"start it with: {start}")
