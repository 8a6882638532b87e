"""Small changes that a seed decides: of trees of values, of text, of bytes, and of lists of words."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable
from typing import Any

NUMBERS = (
    0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 10**30, 10**400, 1e308, -1e308, 5e-324, 0.1, float("nan"), float("inf"),
)  # fmt: skip
WORDS = (
    "", " ", "\0", "\n", "-", "--", "%", "0", "-1", "1e308", "nan", "inf", "1e-400", "9" * 400, "x" * 5000, "../../x",
    "/dev/null", "/dev/zero", "caf\udce9", "\x1b[31m", "\u202e", "\ud800", "ü", "null:", "a=b", "a,b", "{}", "[]",
    "8K:1+4K:1", "read.p99<=1ms", "5h", "1P", "100%", "zipf:0.99",
)  # fmt: skip
LETTERS = "abcdefghij_-=+?&%:/.,@#<>'\"\\{}[]()0123456789 \t\n\x00\x1b\x7fé\udce9"


def value(dice: random.Random) -> Any:
    """Something that may stand anywhere and rarely belongs there."""
    kinds: list[Callable[[], Any]] = [
        lambda: dice.choice(NUMBERS),
        lambda: dice.choice(WORDS),
        lambda: dice.choice((True, False, None)),
        lambda: [value(dice) for _ in range(dice.randrange(4))],
        lambda: {dice.choice(WORDS): value(dice) for _ in range(dice.randrange(3))},
        lambda: nested(dice.choice((5, 50, 150, 400))),
    ]
    return dice.choice(kinds)()


def nested(depth: int) -> Any:
    """Lists within each other."""
    found: Any = []
    for _ in range(depth):
        found = [found]
    return found


def tree(dice: random.Random, original: Any) -> Any:
    """A tree of tables and lists with a few of its places changed."""
    changed = copy.deepcopy(original)
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        places = list(_places(changed))
        if not places:
            return value(dice)
        holder, key = dice.choice(places)
        _change(dice, holder, key)
    return changed


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, (dict, list)):
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            found += [(holder, key) for key in keys]
            waiting += [holder[key] for key in keys]
    return found


def _change(dice: random.Random, holder: Any, key: Any) -> None:
    what = dice.randrange(6)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, dict):
        holder[text(dice, str(key))] = holder.pop(key)
    elif what == 2 and isinstance(holder[key], str):
        holder[key] = text(dice, holder[key])
    elif what == 3 and isinstance(holder[key], (int, float)) and not isinstance(holder[key], bool):
        holder[key] = dice.choice((-holder[key], holder[key] * 1000, str(holder[key]), *NUMBERS))
    elif what == 4 and isinstance(holder, list):
        holder[key:key] = [holder[key]] * dice.choice((1, 3, 200))
    else:
        holder[key] = value(dice)


def text(dice: random.Random, original: str) -> str:
    """A text with a few of its letters changed."""
    letters = list(original)
    for _ in range(dice.choice((1, 1, 2, 6))):
        at = dice.randrange(len(letters) + 1)
        what = dice.randrange(5)
        if what == 0:
            letters[at : at + dice.randrange(1, 6)] = []
        elif what == 1:
            letters[at:at] = dice.choice(WORDS)
        elif what == 2:
            letters[at:at] = letters[at : at + dice.randrange(1, 40)] * dice.choice((1, 2, 50))
        else:
            letters[at : at + 1] = dice.choice(LETTERS)
    return "".join(letters)


def data(dice: random.Random, original: bytes) -> bytes:
    """Bytes with a few of them changed."""
    changed = bytearray(original)
    for _ in range(dice.choice((1, 1, 3, 10))):
        at = dice.randrange(len(changed) + 1)
        what = dice.randrange(4)
        if what == 0:
            del changed[at : at + dice.randrange(1, 64)]
        elif what == 1:
            changed[at:at] = bytes(dice.randrange(256) for _ in range(dice.randrange(1, 9)))
        elif what == 2:
            changed[at : at + 1] = bytes([dice.randrange(256)])
        else:
            del changed[at:]
    return bytes(changed)


PIECES = (
    b'"', b",", b";", b"\t", b"\n", b"\r", b"[", b"]", b"{", b"}", b"<", b">", b"9" * 400, b"\\\\", b"-", b"1e999",
    b"\xff", b"\0", b"null", b"[1]", b"{}", b'"x"', b"true", b"%", b":",
)  # fmt: skip
"""What stands where something else should in a file of another tool."""
AMOUNTS = (
    b"1e308", b"-1", b"0", b"9" * 30, b"9" * 400, b"1e400", b"nan", b"-inf", b"1e-320", b"0.5", b"1.2.3",
    b"9223372036854775807", b"18446744073709551616", b"4294967296", b"253402300800", b"99999999999", b"1,5", b"99%",
)  # fmt: skip
"""Numbers that no counter has, that no integer of 64 bits holds, or that are none."""


def amounts(dice: random.Random, original: bytes) -> bytes:
    """A file of another tool with some of its numbers changed: most of it is still of its format."""
    content = original
    spots = list(re.finditer(rb"\d+(\.\d+)?", content))
    chosen = dice.sample(spots, min(len(spots), dice.choice((1, 1, 2, 5, 30))))
    for spot in sorted(chosen, key=lambda spot: -spot.start()):
        amount = b"9" * 5000 if dice.random() < 0.01 else dice.choice(AMOUNTS)
        content = content[: spot.start()] + amount + content[spot.end() :]
    return content


def foreign(dice: random.Random, original: bytes) -> bytes:
    """A file of another tool with its numbers or any of its bytes changed, once or repeated."""
    if dice.random() < 0.5:
        return amounts(dice, original)
    content = bytearray(original * dice.choice((1, 1, 4)))
    for _ in range(dice.randint(1, 12)):
        at = dice.randrange(len(content))
        piece = dice.choice((dice.choice(PIECES), bytes([dice.randrange(256)]), b"", bytes(content[at : at + 500])))
        content[at : at + dice.choice((0, 1, 1, 2, 50))] = piece
        if not content:
            content += b"x"
    return bytes(content)


def words(dice: random.Random, original: list[str]) -> list[str]:
    """A list of words with a few of them changed, left out, repeated or added."""
    changed = list(original)
    for _ in range(dice.choice((1, 1, 2, 3))):
        at = dice.randrange(len(changed) + 1)
        what = dice.randrange(5)
        if what == 0:
            changed[at : at + 1] = []
        elif what == 1:
            changed.insert(at, dice.choice(WORDS))
        elif what == 2 and at < len(changed):
            changed.insert(at, changed[at])
        elif at < len(changed):
            changed[at] = text(dice, changed[at])
    return [as_argument(word) for word in changed]


def as_argument(word: str) -> str:
    """A word as a command line can hold it: any bytes but a null."""
    return word.replace("\0", "").replace("\ud800", "")
