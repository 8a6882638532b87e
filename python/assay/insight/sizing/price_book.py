"""In which currency, of which region and over how long an answer counts costs, and the prices that it knows."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.reading import nearest
from assay.insight.sizing.prices import AmountPrice, PriceEntry, PriceList, read_prices

USUAL_CURRENCY = "USD"
"""Currency of the public list prices that come with Assay, but one."""


@dataclass(frozen=True)
class PriceBook:
    """Prices in one currency.

    Attributes
    ----------
    currency
        Empty where a need states costs in none, and no list price is compared with them.
    region
        Region of cloud volumes; None takes the newest price of any.
    service_years
        Years over which what is paid by the month is counted.
    """

    currency: str = ""
    region: str | None = None
    service_years: float = 5.0
    prices: PriceList = field(default_factory=lambda: PriceList([]), compare=False)
    today: datetime.date = field(default_factory=lambda: datetime.datetime.now(tz=datetime.UTC).date(), compare=False)

    def entry_of(self, name: str) -> PriceEntry | None:
        """The price of a product in the currency and region; None where none is known."""
        own = [one for one in self.prices.entries if one.name == name and one.currency == self.currency]
        if self.region is not None:
            own = [one for one in own if one.region == self.region or one.kind == "drive"]
        return max(own, key=lambda one: one.dated, default=None)

    def unknown(self, name: str) -> AmountPrice:
        """Nothing known of what a product costs, and why."""
        others = [one for one in self.prices.entries if one.name == name]
        if not others:
            why = f"no public list price of {name} is known"
        elif self.region is not None and all(one.region != self.region for one in others):
            why = f"no price of {name} in {self.region} is known"
        else:
            listed = ", ".join(sorted({one.currency for one in others}))
            why = f"{name} is listed in {listed}, and not in {self.currency or 'a currency that the need states'}"
        return AmountPrice(self.currency, None, None, why)


def price_book_of(
    *,
    currency: str,
    region: str | None,
    service_years: float,
    prices: Path | None,
    products: Collection[str],
    has_own_costs: bool,
) -> PriceBook:
    """The prices for a need.

    Parameters
    ----------
    currency
        That the need states, or empty.
    prices
        A file of the user's own prices.
    products
        Names that may have a price.
    has_own_costs
        Whether the need states costs of its own: without a currency list prices are not compared with them.

    Raises
    ------
    UsageError
        The file is refused, names an unknown product, or has several currencies and the need states none; no price is
        known of the region.
    """
    known = read_prices(prices)
    if prices is not None:
        own = read_prices(prices, shipped=False).entries
        what = f"--prices {printable(prices)}"
        for entry in own:
            if entry.name not in products:
                close = nearest(entry.name, sorted(products))
                hint = f"; did you mean {close!r}?" if close else "; `assay model list` shows the catalogue"
                raise UsageError(f"{what}: {entry.name!r} is no product of the catalogue or the need{hint}")
        currencies = sorted({entry.currency for entry in own})
        if not currency and len(currencies) > 1:
            raise UsageError(
                f"{what}: prices are in {' and '.join(currencies)}, and costs in two currencies cannot be compared;"
                f' state one in the need: currency = "{currencies[0]}"'
            )
        currency = currency or currencies[0]
    if not currency and not has_own_costs:
        currency = USUAL_CURRENCY
    regions = sorted({entry.region for entry in known.entries if entry.kind != "drive"})
    if region is not None and region not in regions:
        raise UsageError(
            f"region: no price in {region!r} is known; known: {', '.join(regions)}; --prices FILE has others"
        )
    return PriceBook(currency=currency, region=region, service_years=service_years, prices=known)
