"""What is tried: a program that writes to a volume, says what it keeps, and can be asked after a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

Kind = Literal["mount", "start", "lost", "resurrected", "inconsistent", "corrupt", "file system", "check", "hangs"]
"""What may be wrong with a state."""

KIND_WORDS: dict[Kind, str] = {
    "mount": "the file system does not mount",
    "start": "the server does not start",
    "lost": "acknowledged transactions are lost",
    "resurrected": "rolled back transactions are there",
    "inconsistent": "a consistency condition is broken",
    "corrupt": "a page or an index is damaged",
    "file system": "the file system is damaged",
    "check": "the check fails",
    "hangs": "the check does not end",
}


@dataclass(frozen=True, kw_only=True)
class CrashFinding:
    """What is wrong with a state."""

    kind: Kind
    message: str


class CrashSubject(Protocol):
    """A program and its check.

    Attributes
    ----------
    title
        Program, version and settings, for people.
    """

    title: str

    def prepare(self, place: Path) -> None:
        """Make everything that is there before the load begins."""
        ...

    def load(self, place: Path, told: Callable[[str], None]) -> None:
        """Run the load; `told` is called when a client was told something, before it is told anything else."""
        ...

    def commits(self, told: Sequence[str]) -> int:
        """How many commits so many acknowledgements tell of."""
        ...

    def check(self, place: Path, told: Sequence[str]) -> CrashFinding | None:
        """Recover, and look for what is wrong. Nothing that uses the volume runs when this returns."""
        ...

    def recover(self, place: Path, told: Sequence[str]) -> None:
        """Recover as after a crash, with all that the program makes durable meanwhile, and end."""
        ...

    def close(self) -> None:
        """Remove what lies outside the volume."""
        ...
