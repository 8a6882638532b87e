"""The lines of a seal: what each file held, chained by hashes, with the seals and their signatures between them.

A line is JSON with a `chain`: SHA-256 of the chain before it and of the line without it. A changed, removed, added or
moved line breaks the chain at its place. A seal of a recording that goes on is made longer, never made anew, so that
what was sealed earlier stays sealed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from assay.record.documents import parsed

BEGIN = hashlib.sha256(b"assay-seal-1").hexdigest()
PIECE_BYTES = 64 << 10
"""A file is hashed in pieces as well, so that a change is named by its place."""
PIECE_LETTERS = 16
LINES_MAX = 500_000
DOMAIN = b"assay-seal-1\n"

Line = Mapping[str, object]


@dataclass(frozen=True)
class SealedFile:
    """A file as it was sealed.

    Attributes
    ----------
    name
        Below the folder, with slashes.
    pieces
        The first 16 letters of SHA-256 of each 64 KiB.
    is_gone
        Whether a later seal found it removed, as the recorder removes what is beyond its budget.
    """

    name: str
    size: int
    sha256: str
    pieces: str
    is_gone: bool = False

    def line(self) -> dict[str, object]:
        """Its line without the chain."""
        if self.is_gone:
            return {"file": self.name, "gone": True}
        return {"file": self.name, "bytes": self.size, "sha256": self.sha256, "pieces": self.pieces}


@dataclass(frozen=True)
class Seal:
    """A seal over all lines before it.

    Attributes
    ----------
    sealed_utc_ns
        The time by the clock of the host that sealed.
    open
        Files that were being written, and were left out.
    key, signature
        Ed25519 public key and signature in hexadecimal; empty without a signature.
    chain
        The chain that the signature is of: all lines before, and this one without key and signature.
    """

    sealed_utc_ns: int
    open: tuple[str, ...]
    chain: str
    key: str = ""
    signature: str = ""

    @property
    def signed(self) -> bytes:
        """What the signature is of."""
        return DOMAIN + self.chain.encode()


@dataclass
class SealChain:
    """All that a seal says.

    Attributes
    ----------
    files
        Files by name, as they were sealed last.
    seals
        Oldest first.
    head
        The chain of the last line; whoever keeps it elsewhere notices that lines were cut off or all made anew.
    text
        The lines as they stand in the file.
    faults
        What is wrong with the lines themselves.
    """

    files: dict[str, SealedFile] = field(default_factory=dict)
    seals: list[Seal] = field(default_factory=list)
    head: str = BEGIN
    text: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def add(self, line: Line) -> str:
        """Add a line and return its chain."""
        body = json.dumps(line, separators=(",", ":"), sort_keys=True)
        self.head = chained(self.head, body)
        self.text.append(json.dumps({**line, "chain": self.head}, separators=(",", ":"), sort_keys=True))
        return self.head

    def heads(self) -> set[str]:
        """The chain after each line."""
        return {BEGIN, *(str(parsed(text.encode())["chain"]) for text in self.text)}


def chained(before: str, body: str) -> str:
    """The chain after a line.

    Examples
    --------
    >>> chained(BEGIN, "{}") != chained(BEGIN, "{ }")
    True
    """
    return hashlib.sha256(f"{before}\n{body}".encode()).hexdigest()


def read_chain(data: bytes) -> SealChain:
    """Read the lines of a seal; what is wrong with them is in `faults`, each with its line."""
    found = SealChain()
    lines = data.split(b"\n")
    if lines[-1]:
        found.faults.append(f"line {len(lines)} of the seal is cut short")
    for number, raw in enumerate(lines[:-1], 1):
        if number > LINES_MAX:
            found.faults.append(f"the seal has more than {LINES_MAX:,} lines")
            break
        try:
            line = parsed(raw)
            if not isinstance(line, dict):
                raise ValueError("it is no object")
            chain = line.pop("chain", None)
            body = json.dumps(line, separators=(",", ":"), sort_keys=True)
            if raw.decode() != json.dumps({**line, "chain": chain}, separators=(",", ":"), sort_keys=True):
                raise ValueError("it is not written as a seal writes it")
            if chain != chained(found.head, body):
                raise ValueError("the chain breaks: this line or one before it was changed, added, removed or moved")
            _take(found, line, chain)
        except (ValueError, TypeError, KeyError) as error:
            found.faults.append(f"line {number} of the seal: {error}")
            break
        found.head = chain
        found.text.append(raw.decode())
    return found


def _take(found: SealChain, line: Line, chain: str) -> None:
    """Take a line whose chain holds.

    Raises
    ------
    ValueError
        It is no line of a seal.
    """
    if "file" in line:
        one = _file(line)
        if one.is_gone and one.name not in found.files:
            raise ValueError(f"{one.name[:80]!r} is said to be gone and was never sealed")
        found.files[one.name] = one
        return
    time_ns, names = line.get("sealed_utc_ns"), line.get("open")
    if not isinstance(time_ns, int) or not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise ValueError("it is neither a file nor a seal")
    if "signature" in line:
        last = found.seals[-1] if found.seals else None
        # The signature follows the line that it signs.
        if last is None or last.signature or last.chain != found.head:
            raise ValueError("it signs nothing")
        found.seals[-1] = Seal(
            last.sealed_utc_ns, last.open, last.chain, _hex(line, "key", 64), _hex(line, "signature", 128)
        )
        return
    found.seals.append(Seal(time_ns, tuple(names), chain))


def _file(line: Line) -> SealedFile:
    name = line["file"]
    if not isinstance(name, str) or not name or len(name) > 1000:
        raise ValueError("it names no file")
    if line.get("gone") is True:
        return SealedFile(name, 0, "", "", is_gone=True)
    size = line["bytes"]
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 2**62:
        raise ValueError("it has no size")
    pieces = line["pieces"]
    if not isinstance(pieces, str) or len(pieces) != -(-size // PIECE_BYTES) * PIECE_LETTERS:
        raise ValueError("its pieces are not those of its size")
    return SealedFile(name, size, _hex(line, "sha256", 64), pieces)


def _hex(line: Line, key: str, letters: int) -> str:
    text = line.get(key)
    if not isinstance(text, str) or len(text) != letters or not set(text) <= set("0123456789abcdef"):
        raise ValueError(f"its {key} is none")
    return text


def changed_spans(before: str, after: str, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of bytes whose pieces differ: first and last byte.

    Examples
    --------
    >>> list(changed_spans("a" * 16 + "b" * 16, "a" * 16 + "c" * 16, 65540))
    [(65536, 65539)]
    """
    begin: int | None = None
    count = max(len(before), len(after)) // PIECE_LETTERS
    for place in range(count + 1):
        at = slice(place * PIECE_LETTERS, (place + 1) * PIECE_LETTERS)
        differs = place < count and before[at] != after[at]
        if differs and begin is None:
            begin = place
        elif not differs and begin is not None:
            yield begin * PIECE_BYTES, min(place * PIECE_BYTES, max(size, begin * PIECE_BYTES + 1)) - 1
            begin = None
