"""What tables of TOML and JSON hold that a person wrote, before it is checked what they are."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypeAliasType

TableValue = TypeAliasType(
    "TableValue",
    "str | int | float | bool | datetime.date | datetime.time | Sequence[TableValue] | Mapping[str, TableValue] | None",
)
"""A value under a key: a text, a number, a truth value, a date, a time, a list, a table, or nothing."""

Record = Mapping[str, Any]
"""A point, an answer or another object of JSON, whose kind knows its keys."""
