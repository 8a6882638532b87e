"""The folder of an examination: a folder for each row, with its request, volume, log and results."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from assay.base.errors import RunFolderError, UsageError
from assay.base.paths import printable
from assay.insight.crash.requests import SubjectRequest, VolumeRequest, subject_of, volume_of

_REQUEST = "request.json"


@dataclass(frozen=True, kw_only=True)
class KnownTrial:
    """A trial that was begun."""

    folder: Path
    subject: SubjectRequest
    volume: VolumeRequest


def trial_folder(at: Path, row: int, subject: SubjectRequest, volume: VolumeRequest) -> Path:
    """The folder of a row, made if it is not there.

    Raises
    ------
    UsageError
        It is of another request, or holds something else.
    """
    folder = at / f"row-{row}"
    asked = json.dumps({"subject": asdict(subject), "volume": asdict(volume)})
    try:
        kept = (folder / _REQUEST).read_text()
    except FileNotFoundError:
        kept = None
    except OSError as error:
        raise UsageError(f"--at: {printable(folder)}: {error.strerror}; name another folder") from None
    if kept == asked:
        return folder
    if kept is not None or (folder.exists() and any(folder.iterdir())):
        raise UsageError(f"--at: {printable(folder)} holds another trial; name another folder, or remove this one")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _REQUEST).write_text(asked)
    except OSError as error:
        raise UsageError(f"--at: {printable(folder)}: {error.strerror}; name another folder") from None
    return folder


def known_trial(at: Path, row: int) -> KnownTrial:
    """A trial of a folder.

    Raises
    ------
    RunFolderError
        There is none.
    """
    folder = at / f"row-{row}"
    try:
        found = json.loads((folder / _REQUEST).read_text())
        return KnownTrial(folder=folder, subject=subject_of(found["subject"]), volume=volume_of(found["volume"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise RunFolderError(f"--at: {printable(folder)}: is no row of an examination of crashes") from None
