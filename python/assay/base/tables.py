"""What tables of TOML and JSON hold that a person wrote, before it is checked what they are."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import TypeAlias

TableValue: TypeAlias = (
    "str | int | float | bool | datetime.date | datetime.time | Sequence[TableValue] | Mapping[str, TableValue] | None"
)
"""A value under a key: a text, a number, a truth value, nothing, a date, a time, a list or a table."""
