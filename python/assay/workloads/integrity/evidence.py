"""Evidence of a finding: what was expected, what came back, where they differ, and what happened before.

Each finding has a folder `evidence/FNNNN` (docs/integrity.md). It is written as soon as the finding is known, and again
when more is known of it; every file is on stable storage before the function returns. Images are bytes of the target,
so that the folders are open to their owner alone, whatever the umask says.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypedDict

from assay.base.paths import plain, printable
from assay.record import durable
from assay.record.folder import PRIVATE, Folder
from assay.workloads.integrity.shapes import Finding

FOLDER_NAME = "evidence"
BYTES_A_LINE = 16


class NamedOperation(TypedDict, total=False):
    """An operation near a finding, with the name of its file; times in nanoseconds since the run began."""

    at_ns: int
    ended_ns: int | None
    op: str
    user: str
    file: str | None
    page: int
    pages: int
    generation: int
    result: int


class Evidence(TypedDict, total=False):
    """Images of a finding, base64, and the operations before it."""

    expected_image: str | None
    received_image: str | None
    other_images: list[str]
    history: list[NamedOperation]


def write_evidence(run_path: Path, finding: Finding, raw: Evidence) -> str:
    """Write the folder of a finding.

    Parameters
    ----------
    run_path
        The run folder.
    finding
        The finding as docs/integrity.md has it.
    raw
        What the compiled core reports beside it: images in base64, and the history.

    Returns
    -------
    str
        The folder, relative to the run folder.

    Raises
    ------
    OutOfSpace, IoFailed
        Writing failed.
    """
    if not re.fullmatch(r"F[0-9]{1,12}", str(finding["id"])):
        raise ValueError(f"{finding['id']!r} is not the id of a finding")
    name = str(finding["id"])
    expected, received = _image(raw.get("expected_image")), _image(raw.get("received_image"))
    images = {"expected.bin": expected, "received.bin": received}
    images |= {
        f"received-{number}.bin": _image(other) for number, other in enumerate(raw.get("other_images") or [], start=1)
    }
    files = {image: content for image, content in images.items() if content is not None}
    files["differences.txt"] = _text(difference_lines(finding, expected, received))
    files["history.txt"] = _text(history_lines(finding, raw.get("history") or []))
    try:
        run = Folder.open(run_path)
        # The bytes may be those of a file that only its owner may read.
        folder = run.folder(FOLDER_NAME, make=True, mode=PRIVATE).folder(name, make=True, mode=PRIVATE)
        for file, content in files.items():
            folder.replace(file, content, mode=0o600)
    except OSError as error:
        raise durable.failure(error, f"cannot write {printable(run_path / FOLDER_NAME / name)}") from error
    return f"{FOLDER_NAME}/{name}"


def difference_lines(finding: Finding, expected: bytes | None, received: bytes | None) -> Iterator[str]:
    """What is wrong in words, then the differing bytes side by side, sixteen a line; equal lines are left out.

    Examples
    --------
    >>> finding = {"kind": "corrupt", "persistent": True, "file": "f", "page": 3, "offset_bytes": 24576}
    >>> list(difference_lines(finding, bytes(4), bytes([0, 1, 0, 0])))[-1]
    '000000  00 00 00 00                                      00 01 00 00'
    """
    yield headline(finding)
    yield plain(str(finding.get("explanation") or ""))
    expectation = finding.get("expected")
    if expectation:
        yield (
            f"expected: file {plain(str(expectation['file']))}, page {expectation['page']},"
            f" generation {expectation['generation']}, written by {plain(str(expectation['writer']))},"
            f" checksum {expectation['checksum']}"
        )
    for unit in finding.get("units") or []:
        of = f" of file {plain(str(unit['file']))}, page {unit['page']}" if unit.get("file") is not None else ""
        generation = f", generation {unit['generation']}" if unit.get("generation") is not None else ""
        yield f"units {unit['first']} to {unit['last']}: {unit['state']}{of}{generation}"
    if expected is None or received is None:
        yield "no images were kept"
        return
    yield ""
    width = 3 * BYTES_A_LINE - 1
    yield f"{'offset':<6}  {'expected':<{width}}  received"
    skipped = False
    for start in range(0, max(len(expected), len(received)), BYTES_A_LINE):
        left, right = (image[start : start + BYTES_A_LINE] for image in (expected, received))
        if left == right:
            skipped = True
            continue
        if skipped and start:
            yield "..."
        skipped = False
        yield f"{start:06x}  {left.hex(' '):<{width}}  {right.hex(' ')}"


def history_lines(finding: Finding, history: Iterable[NamedOperation]) -> Iterator[str]:
    """The last operations near the page, a line each, times in seconds since the run began."""
    yield headline(finding)
    yield f"{'begun_s':>14} {'ended_s':>14}  {'operation':<10} {'user':<12} file, page, pages, generation, result"
    for entry in history:
        ended_ns = entry.get("ended_ns")
        ended = "-" if ended_ns is None else f"{ended_ns / 1e9:.6f}"
        rest = ", ".join(plain(str(entry.get(key))) for key in ("file", "page", "pages", "generation", "result"))
        yield f"{entry['at_ns'] / 1e9:>14.6f} {ended:>14}  {entry['op']!s:<10} {entry['user']!s:<12} {rest}"


def headline(finding: Finding) -> str:
    """A finding in one line: what, whether it stayed, and where.

    Examples
    --------
    >>> headline({"kind": "lost", "persistent": False, "file": "assay.dat", "page": 7, "offset_bytes": 57344})
    'lost (transient) in assay.dat, page 7, offset 57344'
    """
    lasting = "persistent" if finding.get("persistent") else "transient"
    others = finding.get("also")
    also = f", or {', '.join(map(str, others))}" if others else ""
    where = f" in {plain(str(finding['file']))}" if finding.get("file") is not None else ""
    where += f", page {finding['page']}" if finding.get("page") is not None else ""
    where += f", offset {finding['offset_bytes']}" if finding.get("offset_bytes") is not None else ""
    return f"{finding['kind']}{also} ({lasting}){where}"


def _image(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)


def _text(lines: Iterable[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode("utf-8", errors="backslashreplace")
