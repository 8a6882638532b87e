"""The library that figures are drawn with, or a blank in its place where the extra `charts` is not installed.

Sections build their figures either way. Without the library they keep caption and text, and the page says how to get
the drawings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.base.extras import CHARTS, are_installed


class Blank:
    """Whatever is asked of it, called or combined: itself."""

    def __init__(self, *_words: Any, **_options: Any) -> None: ...

    def __getattr__(self, name: str) -> Blank:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_words: Any, **_options: Any) -> Blank:
        return self

    def __add__(self, _other: object) -> Blank:
        return self

    __radd__ = __or__ = __and__ = __add__

    def __mro_entries__(self, _bases: tuple[object, ...]) -> tuple[type, ...]:
        return (Blank,)


if TYPE_CHECKING or are_installed(*CHARTS):
    import altair as alt
else:
    alt = Blank()

__all__ = ["alt"]
