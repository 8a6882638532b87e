"""Public list prices of volumes and drives, with the user's own over them: read, checked, and asked for an amount.

A price that is not known is said to be so; nothing is estimated.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from assay.base.errors import UsageError
from assay.base.fields import Strict
from assay.base.paths import printable
from assay.base.reading import nearest, read_table, validated
from assay.base.units import count_of, format_bytes
from assay.insight.sizing.quantities import Size, Throughput

MONTHS_A_YEAR = 12

Money = Annotated[float, Field(ge=0, lt=1e12)]
Name = Annotated[str, Field(pattern=r"\A[a-z0-9][a-z0-9._-]{0,63}\z")]


class FixedSize(Strict):
    """A size that is sold, and its price by month; what is not above `above` is billed as a smaller one."""

    size: Size
    above: Size | None = None
    price: Money


class PriceEntry(Strict):
    """The price of one thing in one region.

    Attributes
    ----------
    per_size, size_unit
        Price by month of each unit of size.
    billed_as
        Sizes to which a volume is rounded up for the bill; above the last one its multiples.
    per_iops, per_throughput
        Price by month of each IOPS and each unit of throughput beyond those that are included; None: not known.
    iops_most
        IOPS up to which the price holds.
    sizes
        Of `kind = "sizes"` what is sold.
    price, size
        Of a drive, once.
    """

    name: Name
    kind: Literal["volume", "sizes", "drive"]
    region: Name
    currency: Annotated[str, Field(pattern=r"\A[A-Z]{3}\z")]
    dated: datetime.date
    source: Annotated[str, Field(min_length=3, max_length=400)]
    size_unit: Size | None = None
    billed_as: tuple[Size, ...] = ()
    per_size: Money | None = None
    iops_included: Annotated[int, Field(ge=0, lt=10**9)] = 0
    per_iops: Money | None = None
    iops_most: Annotated[int, Field(gt=0, lt=10**9)] | None = None
    throughput_unit: Throughput | None = None
    throughput_included: Throughput | None = None
    per_throughput: Money | None = None
    sizes: tuple[FixedSize, ...] = ()
    price: Money | None = None
    size: Size | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        of_kind: dict[str, dict[str, object]] = {
            "volume": {"size_unit": self.size_unit, "per_size": self.per_size},
            "sizes": {"sizes": self.sizes or None},
            "drive": {"price": self.price, "size": self.size},
        }
        needed = of_kind[self.kind]
        if lacking := [key for key, value in needed.items() if value is None]:
            raise ValueError(f"a {self.kind} says no {' and no '.join(lacking)}")
        if self.per_throughput is not None and self.throughput_unit is None:
            raise ValueError("per_throughput says no throughput_unit")
        for own in ([one.size for one in self.sizes], list(self.billed_as)):
            if own != sorted(set(own)):
                raise ValueError("sizes fall or are given twice; give the smaller number first")
        return self

    @property
    def words(self) -> str:
        """Whose price it is, of when and where."""
        return f"list price of {self.dated:%Y-%m-%d} in {self.region} ({self.source})"


class AmountPrice(NamedTuple):
    """What an amount costs.

    Attributes
    ----------
    once, by_month
        None where it is not known.
    why
        Why it is not.
    """

    currency: str
    once: float | None
    by_month: float | None
    why: str = ""

    def over(self, years: float) -> float | None:
        """All of it over years; None where it is not known."""
        if self.once is None or self.by_month is None:
            return None
        return self.once + self.by_month * MONTHS_A_YEAR * years


class PriceList:
    """Prices by name and region.

    Parameters
    ----------
    entries
        Of those with the same name and region the last one counts.
    """

    def __init__(self, entries: Sequence[PriceEntry]) -> None:
        self._entries = {(entry.name, entry.region): entry for entry in entries}

    @property
    def entries(self) -> list[PriceEntry]:
        """All prices, by name and region."""
        return [self._entries[key] for key in sorted(self._entries)]

    def of(self, name: str, region: str | None = None) -> PriceEntry:
        """The price of a thing; without a region that of the only one, or the newest.

        Raises
        ------
        UsageError
            There is none.
        """
        own = [entry for entry in self.entries if entry.name == name]
        if not own:
            names = sorted({entry.name for entry in self.entries})
            meant = nearest(name, names)
            hint = f"; did you mean {meant!r}?" if meant else ""
            raise UsageError(f"no price of {name!r}{hint}; known: {', '.join(names)}")
        if region is None:
            return max(own, key=lambda entry: entry.dated)
        found = self._entries.get((name, region))
        if found is None:
            raise UsageError(f"no price of {name} in {region!r}; known: {', '.join(entry.region for entry in own)}")
        return found


def price_of(
    entry: PriceEntry, *, size_bytes: int, iops: float = 0, bytes_per_s: float = 0, count: int = 1
) -> AmountPrice:
    """What so many volumes or drives of a size cost, each with these IOPS and bytes a second."""
    each = _of_one(entry, size_bytes, iops, bytes_per_s)
    return each._replace(
        once=None if each.once is None else each.once * count,
        by_month=None if each.by_month is None else each.by_month * count,
    )


def _of_one(entry: PriceEntry, size_bytes: int, iops: float, bytes_per_s: float) -> AmountPrice:
    def unknown(why: str) -> AmountPrice:
        return AmountPrice(entry.currency, None, None, f"{entry.name}: {why}; give a price of your own")

    if entry.kind == "drive":
        assert entry.price is not None
        assert entry.size is not None
        if size_bytes > entry.size:
            return unknown(f"the drive has {format_bytes(entry.size)}")
        return AmountPrice(entry.currency, entry.price, 0.0)
    if entry.kind == "sizes":
        fitting = next((one for one in entry.sizes if (one.above or 0) < size_bytes <= one.size), None)
        if fitting is None:
            return unknown(f"no price of a size for {format_bytes(size_bytes)} is known")
        return AmountPrice(entry.currency, 0.0, fitting.price)
    assert entry.per_size is not None
    assert entry.size_unit is not None
    more_iops = max(iops - entry.iops_included, 0.0)
    more_bytes = max(bytes_per_s - (entry.throughput_included or 0.0), 0.0)
    if more_iops and entry.per_iops is None:
        return unknown(f"no price of IOPS above {entry.iops_included:,} is known")
    if entry.iops_most is not None and iops > entry.iops_most:
        return unknown(f"no price above {entry.iops_most:,} IOPS is known")
    if more_bytes and entry.per_throughput is None:
        return unknown(f"no price of more than {format_bytes(entry.throughput_included or 0)}/s is known")
    month = _billed(entry, size_bytes) / entry.size_unit * entry.per_size + more_iops * (entry.per_iops or 0.0)
    if more_bytes and entry.throughput_unit is not None:
        month += more_bytes / entry.throughput_unit * (entry.per_throughput or 0.0)
    return AmountPrice(entry.currency, 0.0, month)


def _billed(entry: PriceEntry, size_bytes: int) -> int:
    """Bytes that are billed for a volume of a size."""
    if not entry.billed_as:
        return size_bytes
    largest = entry.billed_as[-1]
    return next((one for one in entry.billed_as if one >= size_bytes), -(-size_bytes // largest) * largest)


def age_words(entry: PriceEntry, today: datetime.date) -> str:
    """How old a price is, in words."""
    months = max((today.year - entry.dated.year) * MONTHS_A_YEAR + today.month - entry.dated.month, 0)
    return f"{count_of(months, 'month')} old" if months else "of this month"


def read_prices(own: Path | None = None, *, option: str = "--prices", shipped: bool = True) -> PriceList:
    """The prices that come with Assay, and those of a file over them, or those of a file alone.

    Raises
    ------
    UsageError
        The file cannot be read, or says something that is no price.
    """
    entries: list[PriceEntry] = []
    if shipped:
        text = resources.files("assay.insight.sizing").joinpath("prices.toml").read_text(encoding="utf-8")
        entries = _entries(tomllib.loads(text), "prices.toml")
    if own is not None:
        entries += _entries(read_table(own, option=option), f"{option} {printable(own)}")
    return PriceList(entries)


class _PriceFile(Strict):
    """A file of prices."""

    price: tuple[PriceEntry, ...] = Field(min_length=1)


def _entries(table: Mapping[str, object], source: str) -> list[PriceEntry]:
    """Prices of one file.

    Raises
    ------
    UsageError
        A name stands there twice for a region, or something is no price.
    """
    entries = list(validated(_PriceFile, table, source).price)
    keys = [(entry.name, entry.region) for entry in entries]
    twice = next((key for place, key in enumerate(keys) if key in keys[:place]), None)
    if twice is not None:
        raise UsageError(f"{source}: the price of {twice[0]} in {twice[1]} is given twice; give it once")
    return entries
