"""One's own drives beside a cloud's volumes: what each costs, and when the one has paid for itself."""

from __future__ import annotations

from assay.base.units import count_of, format_years
from assay.insight.sizing.ladder import Ladder, LadderStep
from assay.insight.sizing.prices import MONTHS_A_YEAR
from assay.insight.sizing.search import Found, Outcome
from assay.record.shapes.sizing import Market, PriceUsed, SidesCompared

NEXT_TOLD = 2


def market_of(outcome: Outcome) -> Market:
    """The purchase beside others."""
    return {"sides": comparison_of(outcome), "next_best": next_sentences(outcome), "prices": prices_of(outcome)}


def prices_of(outcome: Outcome) -> list[PriceUsed]:
    """List prices of what holds the need, each once."""
    found = {one.ladder.priced_name: one.ladder.price_used for one in outcome.holders}
    return [price for price in found.values() if price is not None]


def comparison_of(outcome: Outcome) -> SidesCompared | None:
    """The best of both sides, and the break-even; None where one of them holds nothing."""
    own, cloud = (outcome.best(outcome.of_side(side)) for side in ("on-premises", "cloud"))
    if own is None or cloud is None or own.step is None or cloud.step is None:
        return None
    bought, rented = own.ladder.price(own.step), cloud.ladder.price(cloud.step)
    years: float | None = None
    most: float | None = None
    if bought.once is not None and bought.by_month is not None and rented.by_month is not None:
        saved = rented.by_month - bought.by_month
        years = bought.once / (saved * MONTHS_A_YEAR) if saved > 0 else None
    elif rented.by_month is not None:
        most = rented.over(outcome.need.service_years)
    return {
        "on_premises": own.ladder.label(own.step), "cloud": cloud.ladder.name,
        "disks": own.ladder.disks(own.step), "once": bought.once, "cloud_by_month": rented.by_month,
        "break_even_years": years, "break_even_once": most,
    }  # fmt: skip


def comparison_sentence(told: SidesCompared, currency: str, service_years: float) -> str:
    """Both sides in a sentence."""
    over = f"over {format_years(service_years)}"
    if told["cloud_by_month"] is None:
        return f"{told['on_premises']} and {told['cloud']} cannot be compared: the price of the latter is not known."
    rented = f"{told['cloud']} costs {told['cloud_by_month']:,.0f} {currency} a month"
    if (most := told["break_even_once"]) is not None:
        each = f", {most / told['disks']:,.0f} a drive" if told["disks"] else ""
        return (
            f"{rented}. {told['on_premises']} has no public price: {over} it costs less if it is bought for less than"
            f" {most:,.0f} {currency}{each}, its share of a server, power and hands included."
        )
    assert told["once"] is not None
    bought = f"{told['on_premises']} costs {told['once']:,.0f} {currency} once"
    years = told["break_even_years"]
    if years is None:
        return f"{rented}; {bought} and is never the cheaper one."
    return f"{rented}; {bought}, and has paid for itself after {years:.1f} years of service."


def next_sentences(outcome: Outcome) -> list[str]:
    """Why the two next are not bought, and what would be the cheaper one if it held the need."""
    best = outcome.purchase
    if best is None or best.step is None:
        return []
    rows: list[tuple[tuple[float, ...], Found, LadderStep]] = []
    for one in outcome.found:
        step = one.step or one.unneeded
        if one is not best and step is not None:
            rows.append((outcome.cost_key(one.ladder, step), one, step))
    rows.sort(key=lambda row: row[0])
    told = [_why_not(outcome, best.ladder, best.step, one, step) for _, one, step in rows[:NEXT_TOLD]]
    own = outcome.cost_key(best.ladder, best.step)
    failing = [
        (outcome.cost_key(one.ladder, step), one.ladder.label(step), reasons[0])
        for one in outcome.found
        for step, reasons in one.rejected[-1:]
        if one.step is None and outcome.cost_key(one.ladder, step) < own
    ]
    if failing:
        _, label, reason = min(failing, key=lambda row: row[2].share)
        told.append(f"{label} would {'cost' if outcome.has_costs else 'take'} less, but: {reason.text}.")
    return told


def _why_not(outcome: Outcome, best: Ladder, bought: LadderStep, found: Found, step: LadderStep) -> str:
    ladder, years = found.ladder, format_years(outcome.need.service_years)
    least = "" if found.step is not None else "at least "
    label = ladder.label(step)
    cost, own = ladder.cost(step), best.cost(bought)
    if outcome.has_costs and own is not None:
        if cost is None:
            return f"{label}: {ladder.price(step).why}."
        text = f"{label} costs {least}{cost:,.0f} {ladder.book.currency} over {years}"
        return f"{text}, {cost / own:.2f} times as much." if own else f"{text}."
    if ladder.side == "cloud":
        return f"{label}: {ladder.price(step).why}."
    return f"{label} takes {least}{count_of(ladder.disks(step), 'drive')} and holds the need no better."
