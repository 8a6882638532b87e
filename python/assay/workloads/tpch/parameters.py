"""Substitution parameters of the queries: ranges of the specification (clause 2.4), drawn from a seed.

Names are those of the generated rows (clause 4.2.2.13 and 4.2.3).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal


class Date(str):
    """A day, as `1995-03-15`."""

    __slots__ = ()


Value = Date | str | int | Decimal

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = {
    "ALGERIA": 0, "ARGENTINA": 1, "BRAZIL": 1, "CANADA": 1, "EGYPT": 4, "ETHIOPIA": 0, "FRANCE": 3, "GERMANY": 3,
    "INDIA": 2, "INDONESIA": 2, "IRAN": 4, "IRAQ": 4, "JAPAN": 2, "JORDAN": 4, "KENYA": 0, "MOROCCO": 0,
    "MOZAMBIQUE": 0, "PERU": 1, "CHINA": 2, "ROMANIA": 3, "SAUDI ARABIA": 4, "VIETNAM": 2, "RUSSIA": 3,
    "UNITED KINGDOM": 3, "UNITED STATES": 1,
}  # fmt: skip
"""Each nation with its region."""
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
SYLLABLES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
"""Of types of parts."""
CONTAINERS = (
    ("SM", "LG", "MED", "JUMBO", "WRAP"),
    ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"),
)
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
COLOURS = (
    "almond", "antique", "aquamarine", "azure", "beige", "bisque", "black", "blanched", "blue", "blush", "brown",
    "burlywood", "burnished", "chartreuse", "chiffon", "chocolate", "coral", "cornflower", "cornsilk", "cream", "cyan",
    "dark", "deep", "dim", "dodger", "drab", "firebrick", "floral", "forest", "frosted", "gainsboro", "ghost",
    "goldenrod", "green", "grey", "honeydew", "hot", "indian", "ivory", "khaki", "lace", "lavender", "lawn", "lemon",
    "light", "lime", "linen", "magenta", "maroon", "medium", "metallic", "midnight", "mint", "misty", "moccasin",
    "navajo", "navy", "olive", "orange", "orchid", "pale", "papaya", "peach", "peru", "pink", "plum", "powder", "puff",
    "purple", "red", "rose", "rosy", "royal", "saddle", "salmon", "sandy", "seashell", "sienna", "sky", "slate",
    "smoke", "snow", "spring", "steel", "tan", "thistle", "tomato", "turquoise", "violet", "wheat", "white", "yellow",
)  # fmt: skip
WORDS = (("special", "pending", "unusual", "express"), ("packages", "requests", "accounts", "deposits"))
"""Of comments on orders."""

COUNTRY_CODE_FIRST = 10
"""Country code of the first nation; others follow in the order of `n_nationkey`."""

Parameters = Mapping[str, Value]


def parameters(number: int, *, seed: int, scale: float) -> Parameters:
    """Parameters of a query, drawn from a seed.

    Parameters
    ----------
    number
        1 to 22.
    seed
        That of the stream; each query of a stream draws by itself.
    scale
        Query 11 looks for a share of the stock that falls with it.
    """
    return _DRAWN[number](random.Random(f"{seed}/{number}"), scale)


def _day(year: int, month: int, day: int = 1) -> Date:
    return Date(date(year + (month - 1) // 12, (month - 1) % 12 + 1, day).isoformat())


def _months(year: int, month: int, count: int) -> dict[str, Value]:
    return {"first_day": _day(year, month), "end_day": _day(year, month + count)}


def _month_of(draw: random.Random, first: tuple[int, int], last: tuple[int, int]) -> tuple[int, int]:
    """A month between two, both included."""
    number = draw.randint(first[0] * 12 + first[1] - 1, last[0] * 12 + last[1] - 1)
    return number // 12, number % 12 + 1


def _brand(draw: random.Random) -> str:
    return f"Brand#{draw.randint(1, 5)}{draw.randint(1, 5)}"


def _q1(draw: random.Random, _scale: float) -> Parameters:
    return {"last_day": _before_end(draw.randint(60, 120))}


def _before_end(days: int) -> Date:
    return Date((date(1998, 12, 1) - timedelta(days=days)).isoformat())


def _q2(draw: random.Random, _scale: float) -> Parameters:
    return {
        "size": draw.randint(1, 50),
        "type_pattern": f"%{draw.choice(SYLLABLES[2])}",
        "region": draw.choice(REGIONS),
    }


def _q3(draw: random.Random, _scale: float) -> Parameters:
    return {"segment": draw.choice(SEGMENTS), "day": _day(1995, 3, draw.randint(1, 31))}


def _q4(draw: random.Random, _scale: float) -> Parameters:
    return _months(*_month_of(draw, (1993, 1), (1997, 10)), 3)


def _q5(draw: random.Random, _scale: float) -> Parameters:
    return {"region": draw.choice(REGIONS), **_months(draw.randint(1993, 1997), 1, 12)}


def _discounts(percent: int) -> dict[str, Value]:
    return {
        "discount_low": Decimal(percent - 1).scaleb(-2),
        "discount_high": Decimal(percent + 1).scaleb(-2),
    }


def _q6(draw: random.Random, _scale: float) -> Parameters:
    return {
        **_months(draw.randint(1993, 1997), 1, 12),
        **_discounts(draw.randint(2, 9)),
        "quantity": draw.randint(24, 25),
    }


TWO_YEARS: Parameters = {"first_day": Date("1995-01-01"), "last_day": Date("1996-12-31")}


def _q7(draw: random.Random, _scale: float) -> Parameters:
    nation, other = draw.sample(sorted(NATIONS), 2)
    return {"nation": nation, "other": other, **TWO_YEARS}


def _q8(draw: random.Random, _scale: float) -> Parameters:
    nation = draw.choice(sorted(NATIONS))
    kind = " ".join(draw.choice(part) for part in SYLLABLES)
    return {"nation": nation, "region": REGIONS[NATIONS[nation]], "type": kind, **TWO_YEARS}


def _q9(draw: random.Random, _scale: float) -> Parameters:
    return {"colour_pattern": f"%{draw.choice(COLOURS)}%"}


def _q10(draw: random.Random, _scale: float) -> Parameters:
    return _months(*_month_of(draw, (1993, 2), (1995, 1)), 3)


def _fraction(scale: float) -> Decimal:
    return (Decimal("0.0001") / Decimal(f"{scale:g}")).quantize(Decimal("0.0000000001"))


def _q11(draw: random.Random, scale: float) -> Parameters:
    return {"nation": draw.choice(sorted(NATIONS)), "fraction": _fraction(scale)}


def _q12(draw: random.Random, _scale: float) -> Parameters:
    mode, other = draw.sample(MODES, 2)
    return {"mode": mode, "other": other, **_months(draw.randint(1993, 1997), 1, 12)}


def _q13(draw: random.Random, _scale: float) -> Parameters:
    first, second = (draw.choice(words) for words in WORDS)
    return {"words_pattern": f"%{first}%{second}%"}


def _q14(draw: random.Random, _scale: float) -> Parameters:
    return _months(*_month_of(draw, (1993, 1), (1997, 12)), 1)


def _q15(draw: random.Random, _scale: float) -> Parameters:
    return _months(*_month_of(draw, (1993, 1), (1997, 10)), 3)


def _q16(draw: random.Random, _scale: float) -> Parameters:
    kind = f"{draw.choice(SYLLABLES[0])} {draw.choice(SYLLABLES[1])}%"
    sizes = draw.sample(range(1, 51), 8)
    return {"brand": _brand(draw), "type_pattern": kind, **_numbered("size", sizes)}


def _numbered(name: str, values: Sequence[int | str]) -> dict[str, Value]:
    return {f"{name}_{number}": value for number, value in enumerate(values, 1)}


def _q17(draw: random.Random, _scale: float) -> Parameters:
    return {"brand": _brand(draw), "container": " ".join(draw.choice(part) for part in CONTAINERS)}


def _q18(draw: random.Random, _scale: float) -> Parameters:
    return {"quantity": draw.randint(312, 315)}


def _ranges(brands: list[str], lows: list[int]) -> Parameters:
    return {
        **_numbered("brand", brands),
        **_numbered("low", lows),
        **_numbered("high", [low + 10 for low in lows]),
    }


def _q19(draw: random.Random, _scale: float) -> Parameters:
    lows = [draw.randint(1, 10), draw.randint(10, 20), draw.randint(20, 30)]
    return _ranges([_brand(draw) for _ in lows], lows)


def _q20(draw: random.Random, _scale: float) -> Parameters:
    return {
        "colour_pattern": f"{draw.choice(COLOURS)}%",
        "nation": draw.choice(sorted(NATIONS)),
        **_months(draw.randint(1993, 1997), 1, 12),
    }


def _q21(draw: random.Random, _scale: float) -> Parameters:
    return {"nation": draw.choice(sorted(NATIONS))}


def _q22(draw: random.Random, _scale: float) -> Parameters:
    codes = draw.sample(range(COUNTRY_CODE_FIRST, COUNTRY_CODE_FIRST + len(NATIONS)), 7)
    return _numbered("code", [str(code) for code in codes])


_DRAWN: Mapping[int, Callable[[random.Random, float], Parameters]] = {
    1: _q1, 2: _q2, 3: _q3, 4: _q4, 5: _q5, 6: _q6, 7: _q7, 8: _q8, 9: _q9, 10: _q10, 11: _q11, 12: _q12, 13: _q13,
    14: _q14, 15: _q15, 16: _q16, 17: _q17, 18: _q18, 19: _q19, 20: _q20, 21: _q21, 22: _q22,
}  # fmt: skip

VALIDATION: Mapping[int, Parameters] = {
    1: {"last_day": _before_end(90)},
    2: {"size": 15, "type_pattern": "%BRASS", "region": "EUROPE"},
    3: {"segment": "BUILDING", "day": Date("1995-03-15")},
    4: _months(1993, 7, 3),
    5: {"region": "ASIA", **_months(1994, 1, 12)},
    6: {**_months(1994, 1, 12), **_discounts(6), "quantity": 24},
    7: {"nation": "FRANCE", "other": "GERMANY", **TWO_YEARS},
    8: {"nation": "BRAZIL", "region": "AMERICA", "type": "ECONOMY ANODIZED STEEL", **TWO_YEARS},
    9: {"colour_pattern": "%green%"},
    10: _months(1993, 10, 3),
    11: {"nation": "GERMANY", "fraction": _fraction(1)},
    12: {"mode": "MAIL", "other": "SHIP", **_months(1994, 1, 12)},
    13: {"words_pattern": "%special%requests%"},
    14: _months(1995, 9, 1),
    15: _months(1996, 1, 3),
    16: {
        "brand": "Brand#45",
        "type_pattern": "MEDIUM POLISHED%",
        **_numbered("size", [49, 14, 23, 45, 19, 3, 36, 9]),
    },
    17: {"brand": "Brand#23", "container": "MED BOX"},
    18: {"quantity": 300},
    19: _ranges(["Brand#12", "Brand#23", "Brand#34"], [1, 10, 20]),
    20: {"colour_pattern": "forest%", "nation": "CANADA", **_months(1994, 1, 12)},
    21: {"nation": "SAUDI ARABIA"},
    22: _numbered("code", ["13", "31", "23", "29", "30", "18", "17"]),
}
"""Parameters of the published answers (clause 2.4, query validation)."""
