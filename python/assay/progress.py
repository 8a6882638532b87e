"""Where progress goes: what a run tells its display."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Shown(Protocol):
    """Progress of whatever is under way."""

    @property
    def line(self) -> str:
        """All of it in one line."""
        ...


@dataclass(frozen=True)
class Step:
    """One of many steps, of which not every one need be seen."""

    line: str


class Display(Protocol):
    """Where progress goes."""

    def layout(self, name: str, done_bytes: float, total_bytes: float) -> None:
        """Show bytes being laid out."""

    def point(self, progress: Shown) -> None:
        """Show what is being measured or verified."""

    def tell(self, text: str) -> None:
        """Show a line that must not be missed."""

    def phase(self, text: str) -> None:
        """Show what is being done now."""

    def point_done(self, point: Mapping[str, Any]) -> None:
        """Show a finished point."""


class Silent:
    """A display that shows nothing."""

    def layout(self, name: str, done_bytes: float, total_bytes: float) -> None:
        """Show nothing."""

    def point(self, progress: Shown) -> None:
        """Show nothing."""

    def tell(self, text: str) -> None:
        """Show nothing."""

    def phase(self, text: str) -> None:
        """Show nothing."""

    def point_done(self, point: Mapping[str, Any]) -> None:
        """Show nothing."""


SILENT = Silent()
