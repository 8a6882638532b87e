"""JSON of a known form with something wrong in it."""

from __future__ import annotations

import random
from typing import Any

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, -0.5, 2**62, 1e300, "", "p1", "x" * 5000, "\x1b[2J", "\ud800"),
    *([], {}, [[]], {"a": {}}, [None], [1, 2]),
)  # fmt: skip


def mutated(value: Any, chance: random.Random) -> Any:
    """JSON with one value in it changed, left out, or of another key."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        if chance.random() < 0.1:
            return {one: value[one] for one in value if one != key}
        if chance.random() < 0.1:
            return {**value, chance.choice(("name", "id", "kind", "x")): chance.choice(VALUES)}
        return {**value, key: mutated(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        return [*value[:place], mutated(value[place], chance), *value[place + 1 :]]
    return chance.choice(VALUES)
