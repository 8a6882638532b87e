"""Numbers that servers give as texts."""

from __future__ import annotations

from typing import Any

Setting = str | int | float | bool | None
"""A setting of a server, as runs keep it."""


def number(value: Any) -> Any:
    """A number where a text is one.

    Examples
    --------
    >>> number("16"), number("0.9"), number("on"), number("nan")
    (16, 0.9, 'on', 'nan')
    """
    if not isinstance(value, str) or not value[-1:].isdecimal():
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
