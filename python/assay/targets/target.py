"""What the pipeline asks of anything that is put under load."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from assay.base.progress import Display
    from assay.targets.arrays.live.process import ServedArray
    from assay.targets.databases import Database


class Target(Protocol):
    """Volumes, databases, or whatever else a workload runs on."""

    notices: list[str]

    @property
    def is_here(self) -> bool:
        """Whether this process does the work on it; else agents do, on their hosts."""
        ...

    @property
    def runs_on(self) -> Literal["storage", "databases"]:
        """What it is."""
        ...

    @property
    def databases(self) -> Sequence[Database]:
        """Databases among it, whose servers are asked what they do."""
        ...

    @property
    def devices(self) -> Mapping[str, Sequence[str]]:
        """Block devices under its databases by role."""
        ...

    @property
    def served(self) -> Sequence[ServedArray]:
        """Arrays under it that the run serves."""
        ...

    @property
    def is_virtual(self) -> bool:
        """Whether it runs on a clock of its own: nothing of this host is part of what is measured."""
        ...

    @property
    def device_names(self) -> list[str]:
        """Block devices under it, by kernel name, that are recorded throughout a run."""
        ...

    @property
    def layout_bytes(self) -> int | None:
        """How much laying it out writes; None where nothing is laid out."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """The manifest's `target`."""
        ...

    def lines(self) -> list[str]:
        """What it is, for `--dry-run`."""
        ...

    def document(self) -> Mapping[str, Any]:
        """What it is, for `--dry-run --json`."""
        ...

    def begin_run(self, run: str) -> None:
        """Take the id of the run, for the marks of files that it writes to."""
        ...

    def leave(self, display: Display) -> list[str]:
        """Leave it until a part needs it again; gives what is to be said of it."""
        ...

    def settle(self) -> None:
        """Say in its marks that the run has ended."""
        ...

    def permissions_again(self, yes_destroy: Collection[str]) -> list[str]:
        """Options that the command to go on with a run has to repeat."""
        ...
