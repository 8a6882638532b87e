"""Files of the report: written whole, and never over what Assay did not write."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from assay.base.errors import OpenFailed, OutOfSpace, UsageError
from assay.base.paths import open_regular, printable
from assay.record.folder import Folder

MARK = '<meta name="generator" content="Assay '
"""Stands in the head of every page of Assay; a page that has it may be replaced."""
HEAD_BYTES = 4096
PDF_MARK = b"/Keywords(Assay "
"""Stands in every PDF of Assay's, near its end."""
PDF_BYTES_MAX = 256 << 20


def replace_file(path: Path, content: bytes) -> Path:
    """Write a file whole or not at all: a reader may have the last report open.

    Raises
    ------
    OpenFailed, OutOfSpace
        It cannot be written; what was there stays.
    """
    try:
        folder = Folder.open(path.parent)
        try:
            folder.replace(path.name, content)
        finally:
            folder.close()
    except OSError as error:
        kind = OutOfSpace if error.errno in (errno.ENOSPC, errno.EDQUOT) else OpenFailed
        raise kind(
            f"{printable(path)}: the report could not be written: {error.strerror}; free or name another place"
        ) from error
    return path


def refuse_foreign(path: Path, *, what: str) -> None:
    """Refuse to replace a file that is no page of Assay's.

    Parameters
    ----------
    path
        Where a page shall be written.
    what
        The option and its value, for the message.

    Raises
    ------
    UsageError
        A folder, a link, a pipe or a file that Assay did not write is there, or there is no folder to write it in.
    """
    if not path.name or not path.parent.is_dir():
        raise UsageError(f"{what}: there is no folder {printable(path.parent)}; make it first")
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            is_pdf = path.suffix == ".pdf"
            head = file.read(PDF_BYTES_MAX if is_pdf else HEAD_BYTES)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{what}: is not a file that Assay wrote; name another one") from error
    if head and (PDF_MARK if is_pdf else MARK.encode()) not in head:
        raise UsageError(f"{what}: exists and was not written by Assay; name another file, or remove it")
