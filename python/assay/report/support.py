"""One archive of a run for a colleague or a vendor: what it did and found, without the names of its owner.

Names of hosts, users, databases, volumes and folders are replaced as in a paper (`assay.report.paper.names`). The
archive holds JSON alone: nothing that was measured on or read from the storage itself.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.record import durable
from assay.record.documents import parsed
from assay.record.folder import Folder
from assay.record.run_folder import POINT_BYTES_MAX, RunFolder
from assay.report.paper.names import Names

LINES = ("points.jsonl", "log.jsonl")
"""Files of a run that hold a JSON document a line."""
LINES_BYTES_MAX = 1 << 30
"""The archive takes this much of a file and leaves out later lines, which it reports."""

IDS = frozenset({"serial", "wwn", "boot", "mark", "machine"})
"""Keys whose values tell which disk or machine it is."""

README = """\
What Assay recorded of one run, for somebody who helps with it.

run.json      what was asked, on which host and target, and how it ended
points.jsonl  every point that was measured, one a line
log.jsonl     what Assay did, one event a line
"""


@dataclass
class Packed:
    """What an archive holds.

    Attributes
    ----------
    path
        The archive.
    files
        Names of its files with their bytes.
    left_out
        What the archive lacks, and why, a sentence each.
    """

    path: Path
    files: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def pack_support(run: Path, archive: Path, *, anonymised: bool = True) -> Packed:
    """Write manifest, points and log of a run into an archive (tar, gzip).

    Parameters
    ----------
    anonymised
        Whether names of hosts, users, databases, volumes and folders are replaced.

    Raises
    ------
    RunFolderError
        It is no run folder, or its manifest is damaged.
    UsageError
        Something has the archive's name already.
    IoFailed, OutOfSpace
        The archive cannot be written; none is left.
    """
    opened = RunFolder.open(run)
    names = Names(hidden=anonymised)
    packed = Packed(archive)
    folder = Folder.open(run)
    try:
        names.learn([opened.manifest, {"log": list(_documents(folder, "log.jsonl", packed))}])
        packed.left_out.clear()
        _write(archive, _contents(opened, folder, names, packed), packed)
    finally:
        folder.close()
        opened.close()
    return packed


def _contents(opened: RunFolder, folder: Folder, names: Names, packed: Packed) -> Iterator[tuple[str, IO[bytes]]]:
    says = README + ("\nNames of hosts, users, databases, volumes and folders are replaced.\n" if names.hidden else "")
    yield "README.txt", io.BytesIO(says.encode())
    yield "run.json", io.BytesIO(json.dumps(_renamed(opened.manifest, names), indent=1).encode() + b"\n")
    for name in LINES:
        if folder.has(name):
            with tempfile.TemporaryFile() as lines:
                for document in _documents(folder, name, packed):
                    lines.write(json.dumps(_renamed(document, names)).encode() + b"\n")
                lines.seek(0)
                yield name, lines
        else:
            packed.left_out.append(f"{name} is not there")


def _renamed(document: Mapping[str, Any], names: Names) -> dict[str, Any]:
    made: dict[str, Any] = _without_ids(names.value(document), names) if names.hidden else dict(document)
    if isinstance(document.get("argv"), list):
        made["argv"] = names.command([str(word) for word in document["argv"]])
    return made


def _without_ids(value: Any, names: Names) -> Any:
    """Replace serial numbers and ids by aliases; equal ids get equal aliases."""
    if isinstance(value, dict):
        return {
            key: names.alias(key, held) if key in IDS and isinstance(held, str) else _without_ids(held, names)
            for key, held in value.items()
        }
    return [_without_ids(one, names) for one in value] if isinstance(value, list) else value


def _documents(folder: Folder, name: str, packed: Packed) -> Iterator[dict[str, Any]]:
    """Yield the documents of a file. A damaged line is left out: its names cannot be replaced."""
    try:
        file = os.fdopen(folder.open_regular(name), "rb")
    except FileNotFoundError:
        return
    except OSError as error:
        packed.left_out.append(f"{name} cannot be read: {error.strerror}")
        return
    damaged = read_bytes = 0
    with file:
        while line := file.readline(POINT_BYTES_MAX):
            read_bytes += len(line)
            if read_bytes > LINES_BYTES_MAX:
                packed.left_out.append(f"{name} has more than {LINES_BYTES_MAX >> 20} MiB: the rest is left out")
                break
            try:
                document = parsed(line)
            except ValueError:
                document = None
            if isinstance(document, dict):
                yield document
            else:
                damaged += 1
    if damaged:
        packed.left_out.append(f"{name}: {damaged} damaged {'line is' if damaged == 1 else 'lines are'} left out")


def _write(archive: Path, contents: Iterable[tuple[str, IO[bytes]]], packed: Packed) -> None:
    top = archive.name.removesuffix(".tar.gz")
    try:
        descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError(f"{printable(archive)} is there already; name another file with --output") from None
    except OSError as error:
        raise durable.failure(error, f"cannot write {printable(archive)}") from error
    try:
        with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
            for name, content in contents:
                entry = tarfile.TarInfo(f"{top}/{name}")
                entry.size = packed.files[name] = content.seek(0, os.SEEK_END)
                content.seek(0)
                tar.addfile(entry, content)
    except BaseException as error:
        archive.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise durable.failure(error, f"cannot write {printable(archive)}") from error
        raise
