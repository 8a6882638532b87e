"""Seals of recordings and runs: what every file held, so that a change, an addition or a removal is named."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from assay.base.errors import RunFolderError, UsageError
from assay.base.paths import printable
from assay.record.flight_segments import is_aside, segments_in, segments_of
from assay.record.folder import Folder
from assay.record.seal_chain import (
    PIECE_BYTES,
    PIECE_LETTERS,
    Seal,
    SealChain,
    SealedFile,
    changed_spans,
    read_chain,
)

NAME = "seal.jsonl"
SEAL_BYTES_MAX = 512 << 20
FILES_MAX = 100_000
DEEPEST = 4
SPANS_SHOWN = 3
REMOVED, ADDED = "was removed", "was added"

_LOCKS = (".lock", "recorder.lock")

Sign = Callable[[bytes], tuple[str, str]]
"""Key and signature of bytes, in hexadecimal."""
Verify = Callable[[str, str, bytes], bool]
"""Whether a key and a signature are of bytes."""


@dataclass
class CheckedSeal:
    """What a check of a seal found.

    Attributes
    ----------
    faults
        Everything that was changed, added, removed or moved, a sentence each.
    intact
        Files that are as they were sealed.
    gone
        Files that a later seal found removed.
    unsealed
        Files that were still written when the folder was sealed, and those that came after them.
    """

    chain: SealChain
    faults: list[str] = field(default_factory=list)
    intact: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    unsealed: list[str] = field(default_factory=list)

    @property
    def last(self) -> Seal | None:
        """The newest seal."""
        return self.chain.seals[-1] if self.chain.seals else None


def seal_folder(path: Path, *, now_ns: int, sign: Sign | None = None) -> CheckedSeal:
    """Seal all files of a recording or run; a seal that is there is checked and made longer.

    Parameters
    ----------
    now_ns
        The time that the seal states, UTC.
    sign
        Signs the chain.

    Returns
    -------
    CheckedSeal
        With the longer seal; where faults were found, nothing is sealed.

    Raises
    ------
    UsageError
        The folder holds nothing to seal, or something that is no file.
    RunFolderError
        It cannot be read or written.
    """
    folder = _opened(path)
    found = _compared(folder, _chain_in(folder))
    # What came since is sealed now, and the recorder removes the oldest segments for its budget.
    expected = {f"{name}: {REMOVED}" for name in found.chain.files if _is_pruned(name, folder)}
    found.faults = [text for text in found.faults if text not in expected and not text.endswith(f": {ADDED}")]
    if found.faults:
        return found
    written = set(_written_now(folder))
    names = [name for name in _files(folder) if name not in written]
    if not names:
        raise UsageError(f"{printable(path)}: holds no file to seal")
    chain = found.chain
    for name in found.chain.files:
        if name not in names and not chain.files[name].is_gone:
            _add(chain, SealedFile(name, 0, "", "", is_gone=True))
    for name in names:
        if name not in found.intact:
            _add(chain, _hashed(folder, name))
    line: dict[str, object] = {"sealed_utc_ns": now_ns, "open": sorted(written)}
    seal = Seal(now_ns, tuple(sorted(written)), chain.add(line))
    if sign is not None:
        key, signature = sign(seal.signed)
        chain.add({**line, "key": key, "signature": signature})
        seal = Seal(seal.sealed_utc_ns, seal.open, seal.chain, key, signature)
    chain.seals.append(seal)
    try:
        folder.replace(NAME, ("\n".join(chain.text) + "\n").encode())
    except OSError as error:
        raise RunFolderError(f"{printable(path / NAME)}: cannot be written: {error.strerror}") from None
    found.intact, found.unsealed = names, sorted(written)
    found.gone = [name for name, one in chain.files.items() if one.is_gone]
    return found


def check_seal(path: Path, *, verify: Verify | None = None, head: str = "") -> CheckedSeal:
    """Compare a folder with its seal.

    Parameters
    ----------
    verify
        Verifies signatures; without it, they are not looked at.
    head
        A chain that was kept elsewhere: the seal must hold it.

    Raises
    ------
    UsageError
        The folder has no seal.
    RunFolderError
        It cannot be read.
    """
    folder = _opened(path)
    chain = _chain_in(folder)
    if not chain.text and not chain.faults:
        raise UsageError(f"{printable(path)}: has no seal; assay contract seal makes one")
    found = _compared(folder, chain)
    if not chain.seals and not found.faults:
        found.faults.append("the seal ends before it seals anything")
    if head and head not in chain.heads():
        found.faults.append(f"the seal does not hold the chain {head[:64]}: it was cut off or made anew")
    for number, seal in enumerate(chain.seals, 1):
        if seal.signature and verify is not None and not verify(seal.key, seal.signature, seal.signed):
            found.faults.append(f"the signature of seal {number} is not of its key and chain")
    return found


def _compared(folder: Folder, chain: SealChain) -> CheckedSeal:
    found = CheckedSeal(chain, list(chain.faults))
    names = _files(folder)
    for name, sealed in chain.files.items():
        if sealed.is_gone:
            (found.faults if name in names else found.gone).append(
                f"{name}: is here again, and was gone when the folder was sealed" if name in names else name
            )
        elif name not in names:
            found.faults.append(f"{name}: {REMOVED}")
        else:
            own = _hashed(folder, name)
            if own == sealed:
                found.intact.append(name)
            else:
                found.faults.append(f"{name}: was changed{_where(sealed, own)}")
    last = chain.seals[-1] if chain.seals else None
    for name in names:
        if name not in chain.files:
            if last is None or _is_after(name, last):
                found.unsealed.append(name)
            else:
                found.faults.append(f"{name}: {ADDED}")
    return found


def _where(sealed: SealedFile, own: SealedFile) -> str:
    spans = list(changed_spans(sealed.pieces, own.pieces, max(sealed.size, own.size)))
    text = ", ".join(f"{begin:,} to {end:,}" for begin, end in spans[:SPANS_SHOWN])
    more = f" and {len(spans) - SPANS_SHOWN} more ranges" if len(spans) > SPANS_SHOWN else ""
    sizes = f" from {sealed.size:,} to {own.size:,} bytes" if sealed.size != own.size else ""
    return f"{sizes}, within bytes {text}{more}" if text else sizes


def _is_after(name: str, seal: Seal) -> bool:
    """Whether a file was still written when a folder was sealed, or is a segment that came after one that was."""
    if name in seal.open:
        return True
    stem, _, number = name.removesuffix(".sqlite").removesuffix(".sqlite-wal").rpartition("-")
    opened = [one.removesuffix(".sqlite").rpartition("-") for one in seal.open if one.endswith(".sqlite")]
    return any(stem == other and number.isdecimal() and number >= last for other, _, last in opened)


def _is_pruned(name: str, folder: Folder) -> bool:
    """Whether a segment that is not there was older than all of its level that are."""
    gone = next((one for one in segments_of([name]) if one.name == name), None)
    if gone is None:
        return False
    numbers = [one.number for one in segments_in(folder) if one.level == gone.level]
    return bool(numbers) and min(numbers) > gone.number


def _add(chain: SealChain, one: SealedFile) -> None:
    chain.add(one.line())
    chain.files[one.name] = one


def _opened(path: Path) -> Folder:
    try:
        return Folder.open(path)
    except OSError as error:
        raise RunFolderError(f"{printable(path)}: cannot be read: {error.strerror}") from None


def _chain_in(folder: Folder) -> SealChain:
    try:
        return read_chain(folder.read(NAME, SEAL_BYTES_MAX))
    except FileNotFoundError:
        return SealChain()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UsageError(f"{printable(folder.path / NAME)}: is a link; remove it") from None
        raise RunFolderError(f"{printable(folder.path / NAME)}: cannot be read: {error.strerror}") from None


def _files(folder: Folder) -> list[str]:
    """Files below a folder that a seal covers.

    Raises
    ------
    UsageError
        Something below it is no file and no folder, or there are too many files.
    RunFolderError
        It cannot be read.
    """
    try:
        found = sorted(_below(folder, "", 0))
    except OSError as error:
        raise RunFolderError(f"{printable(folder.path)}: cannot be read: {error.strerror}") from None
    if len(found) > FILES_MAX:
        raise UsageError(f"{printable(folder.path)}: holds more than {FILES_MAX:,} files; seal a recording or a run")
    return found


def _below(folder: Folder, before: str, depth: int) -> Iterator[str]:
    import stat

    for name in folder.names():
        shown = f"{before}{name}"
        state = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
        if stat.S_ISDIR(state.st_mode):
            if depth >= DEEPEST:
                raise UsageError(f"{printable(folder.path / name)}: lies too deep to be sealed")
            inner = folder.folder(name)
            try:
                yield from _below(inner, f"{shown}/", depth + 1)
            finally:
                inner.close()
        elif not stat.S_ISREG(state.st_mode):
            raise UsageError(f"{printable(folder.path / name)}: is no regular file, and is not sealed; remove it")
        elif not _is_passing(name, shown, state.st_size):
            yield shown


def _is_passing(name: str, shown: str, size: int) -> bool:
    """Whether a file holds nothing: locks, SQLite's shared memory, logs that are empty, the seal itself."""
    return shown in (NAME, *_LOCKS) or name.endswith("-shm") or (name.endswith("-wal") and not size)


def _written_now(folder: Folder) -> Iterator[str]:
    """Files that a recorder writes at this moment: the newest segment of each level, its log, and the manifest."""
    descriptor = -1
    with suppress(OSError):
        descriptor = folder.open_regular("recorder.lock")
    if descriptor < 0:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        newest = {one.level: one.name for one in segments_in(folder)}
        for name in newest.values():
            yield from (name, f"{name}-wal", f"{name}-journal")
        yield from (name for name in folder.names() if is_aside(name) and name.endswith("-wal"))
        yield "run.json"
    finally:
        os.close(descriptor)


def _hashed(folder: Folder, name: str) -> SealedFile:
    """A file as it is.

    Raises
    ------
    RunFolderError
        It cannot be read.
    """
    *above, last = name.split("/")
    holders = [folder]
    try:
        for part in above:
            holders.append(holders[-1].folder(part))
        whole, pieces, size = hashlib.sha256(), [], 0
        with os.fdopen(holders[-1].open_regular(last), "rb") as file:
            while data := file.read(PIECE_BYTES):
                whole.update(data)
                pieces.append(hashlib.sha256(data).hexdigest()[:PIECE_LETTERS])
                size += len(data)
    except OSError as error:
        raise RunFolderError(f"{printable(folder.path / name)}: cannot be read: {error.strerror}") from None
    finally:
        for one in holders[1:]:
            one.close()
    return SealedFile(name, size, whole.hexdigest(), "".join(pieces))
