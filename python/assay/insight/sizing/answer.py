"""The whole answer to a need, as one JSON object: candidates, what is chosen, why, and on which assumptions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal

from assay.base.units import format_bytes, format_iops, format_share, format_when
from assay.insight.sizing import demand, servers
from assay.insight.sizing.allowance import ALL_IOS, CERTAINTY_SHARE, HOLDS_SHARE, Allowance
from assay.insight.sizing.assumptions import assumptions_of
from assay.insight.sizing.certainty import Certainty, certainty_of
from assay.insight.sizing.cloud_ladder import CloudLadder
from assay.insight.sizing.endurance import wear_of
from assay.insight.sizing.growth import WEAR, growth_of
from assay.insight.sizing.judge import Judge
from assay.insight.sizing.ladder import Ladder, LadderStep, RejectionReason
from assay.insight.sizing.measured import MeasuredDemand
from assay.insight.sizing.need import Need, NeedAsWritten, stated
from assay.insight.sizing.price_book import PriceBook
from assay.insight.sizing.prices import MONTHS_A_YEAR
from assay.insight.sizing.rules import rules_of
from assay.insight.sizing.search import FACTOR_MOST, Found, Headroom, Outcome, capacity_factor, cores, search
from assay.insight.sizing.sensitivity import sensitivity
from assay.insight.sizing.sides import market_of
from assay.record.shapes.sizing import (
    Candidate,
    Choices,
    Chosen,
    DatabaseServers,
    Demand,
    Difference,
    Differs,
    Nearest,
    Reason,
    Sizing,
)
from assay.targets.arrays.model.configuration import size_text

Choice = Literal["cheapest", "fewest_disks", "on_premises", "cloud", "smallest", "fastest"]
CHOICES: tuple[Choice, ...] = ("cheapest", "fewest_disks", "on_premises", "cloud", "smallest", "fastest")
"""What may be chosen; without a cost of every holder nothing is the cheapest."""
Tell = Callable[[str], None]
SURE_SHARE = 0.99
"""Of a purchase with a probability above it how much more it holds is of no interest."""


@dataclass(frozen=True)
class Sized:
    """A need and all that was found."""

    outcome: Outcome
    answer: Sizing


def size(
    asked: NeedAsWritten,
    judge: Judge,
    *,
    measured: MeasuredDemand | None = None,
    what_if: bool = True,
    ios: float = ALL_IOS,
    book: PriceBook | None = None,
    tell: Tell = lambda _: None,
) -> Sized:
    """Size a need.

    Parameters
    ----------
    measured
        What its load was measured from.
    what_if
        Whether to look for the assumptions that change the purchase.
    ios
        Simulated I/Os that all searches together may ask for.
    book
        Prices; None for those that the need states alone.

    Raises
    ------
    UsageError
        A candidate is unknown or impossible.
    Interrupted
        The judge's `interrupt` was set.
    """
    need = asked.need
    outcome = search(need, judge, tell, ios=ios, book=book)
    chosen = _choices(need, outcome, judge, servers.servers_of(need), ios, tell)
    what_ifs = sensitivity(outcome, judge, tell, ios=max(ios - outcome.spent_ios, 0.0)) if what_if else None
    return Sized(outcome, {
        "title": need.title,
        "source": asked.source,
        "named": [*(one.name for one in need.database), *(one.name for one in need.mail)],
        "currency": book.currency if book is not None else need.currency,
        "years": need.years,
        "service_years": need.service_years,
        "demand": _demand(outcome),
        "measured": measured.facts() if measured else None,
        "holds": bool(chosen),
        "chosen": chosen,
        "cheapest_by": "cost" if outcome.has_costs else "disks, because no costs are known",
        "smallest_by": "rack units" if outcome.has_rack_units else "members and disks, because no heights are stated",
        "candidates": _candidates(outcome),
        "nearest": _nearest(outcome),
        "market": market_of(outcome),
        "why": _why(outcome, chosen),
        "rules": rules_of(outcome),
        "assumptions": assumptions_of(asked, measured),
        "servers": servers.facts_of(need),
        "sensitivity": what_ifs,
        "simulations": judge.simulations,
        "given_up": outcome.given_up,
        "notices": [*_notices(asked, measured), *_of_machines(outcome), *outcome.given_up],
        "difference": None,
    })  # fmt: skip


def _demand(outcome: Outcome) -> Demand:
    need = outcome.need
    now, later = demand.demand_of(need, 0), outcome.demand
    return {"now": demand.facts_of(now), "sized_for": demand.facts_of(later), "head_room": need.head_room,
            "spread": need.spread}  # fmt: skip


def _notices(asked: NeedAsWritten, measured: MeasuredDemand | None) -> list[str]:
    if measured is None:
        return []
    told = list(measured.notices)
    if measured.growth is None and not {("database", "growth"), ("database", "load_growth")} & stated(asked.table):
        told.append("how the data and the load grow is not known, and nothing is added for it; --set growth=30% does")
    return told


def _of_machines(outcome: Outcome) -> list[str]:
    best = outcome.best(outcome.of_side("cloud"))
    if best is None or not isinstance(best.ladder, CloudLadder):
        return []
    told = best.ladder.machine_sentence(outcome.demand.times(1 + outcome.need.head_room))
    return [told] if told is not None else []


def _choices(
    need: Need, outcome: Outcome, judge: Judge, of_servers: servers.SizedServers | None, ios: float, tell: Tell
) -> Choices:
    """What is chosen, with all that is said of it: how much it holds and how sure that is are asked at once."""
    picked: dict[Choice, tuple[Ladder, LadderStep]] = {}
    bought: Choice = "cheapest" if outcome.has_costs else "fewest_disks"
    best = outcome.purchase
    holders: dict[Choice, Found | None] = {
        bought: best, "smallest": outcome.smallest, "fastest": outcome.fastest
    }  # fmt: skip
    if best is not None:
        other: Choice = "cloud" if best.ladder.side == "on-premises" else "on_premises"
        holders[other] = outcome.best(outcome.of_side("cloud" if other == "cloud" else "on-premises"))
    for choice, found in holders.items():
        if found is not None and found.step is not None:
            picked[choice] = (found.ladder, found.step)
    labels = {ladder.label(step): (ladder, step) for ladder, step in picked.values()}
    with ThreadPoolExecutor(cores(), thread_name_prefix="assay-chosen") as pool:
        asked, known = {}, judge.known()
        for label, (ladder, step) in labels.items():
            tell(f"{label}: how sure, and for how long")
            sure, much = (
                Allowance(ios=ios * min(CERTAINTY_SHARE, 2 * CERTAINTY_SHARE / len(labels))),
                Allowance(ios=ios * HOLDS_SHARE, known=known),
            )
            asked[label] = (
                pool.submit(certainty_of, need, ladder, step, outcome.demand, sure, judge.interrupt),
                pool.submit(capacity_factor, need, ladder, step, outcome.demand, judge.within(much),
                            known=1 + need.head_room),
                sure, much,
            )  # fmt: skip
        made: dict[str, Chosen] = {}
        for label, (certain, factor, *allowances) in asked.items():
            made[label] = _chosen(need, outcome, *labels[label], judge, of_servers, factor.result(), certain.result())
            outcome.spent_ios += sum(one.spent_ios for one in allowances)
            if made[label]["probability"] <= SURE_SHARE and labels[label] == picked[bought]:
                outcome.given_up += _not_sure(label, factor.result(), certain.result())
    choices: Choices = {}
    for choice, (ladder, step) in picked.items():
        choices[choice] = made[ladder.label(step)]
    return choices


def _not_sure(label: str, factor: Headroom, certain: Certainty) -> list[str]:
    told = []
    if factor.gave_up is not None:
        told.append(
            f"{label} holds at least {factor.times:.2f} times the need, and its probability is at least what is told;"
            f" more was not asked: {factor.gave_up}"
        )
    if certain.gave_up is not None:
        told.append(f"{label}: how far its own model may be off was not asked: {certain.gave_up}")
    return told


def _chosen(
    need: Need,
    outcome: Outcome,
    ladder: Ladder,
    step: LadderStep,
    judge: Judge,
    of_servers: servers.SizedServers | None,
    held: Headroom,
    certain: Certainty,
) -> Chosen:
    """All that is said of a size that may be bought."""
    factor = held.times
    wear = wear_of(need, ladder, step, outcome.demand, judge.write_amplification(need, ladder, step, outcome.demand))
    growth = growth_of(need, ladder, step, factor, of_servers, wear)
    cost = ladder.cost(step)
    month = cost / (need.service_years * MONTHS_A_YEAR) if cost else None
    probability = certain.probability(factor, need.spread)
    latency_s = outcome.latencies_s.get(ladder.label(step))
    return {
        **ladder.facts(step, outcome.demand),
        "targets": [
            ladder.configuration(need, step, outcome.demand, pool).target_text
            for pool in ladder.pools(step, outcome.demand)
        ],
        "latency_ns": latency_s * 1e9 if latency_s is not None and math.isfinite(latency_s) else None,
        "holds_times": factor,
        "holds_more": held.gave_up is not None or factor >= FACTOR_MOST,
        "iops_held": outcome.demand.iops * factor,
        "probability": probability,
        "model_share": certain.model_share,
        "model_basis": certain.basis,
        "rebuild_h": judge.rebuild_h(need, ladder, step, outcome.demand),
        "loss_probability": judge.loss(need, ladder, step, outcome.demand),
        "lost_drive": ladder.lost_drive,
        "iops_per_unit": outcome.demand.iops * factor / month if month else None,
        "bytes_per_unit": sum(pool.usable_bytes for pool in ladder.pools(step, outcome.demand)) / month
        if month
        else None,
        "endurance": wear.facts(next((one["year"] for one in growth["runs_out"] if one["resource"] == WEAR), None))
        if wear is not None
        else None,
        "growth": growth,
    }


def _candidates(outcome: Outcome) -> list[Candidate]:
    """Every size that was looked at, and every choice that a rule left out."""
    rows: list[Candidate] = []
    for found in outcome.found:
        for step, reasons in found.rejected:
            rows.append(_row(outcome, found.ladder, step, reasons))
        if found.unasked is not None and found.gave_up is not None:
            unasked = RejectionReason("not asked", str(found.gave_up))
            rows.append(_row(outcome, found.ladder, found.unasked, (unasked,)))
        if found.step is not None:
            rows.append(_row(outcome, found.ladder, found.step, ()))
        if found.unneeded is not None:
            rows.append(_row(outcome, found.ladder, found.unneeded, (_UNNEEDED,)))
    for one in outcome.refused:
        rows.append({"label": one.name, "holds": False, "reasons": [_reason(one.reason)]})
    return rows


_UNNEEDED = RejectionReason("not asked", "would not win: others that hold the need cost less, or have fewer disks")


def _row(outcome: Outcome, ladder: Ladder, step: LadderStep, reasons: Sequence[RejectionReason]) -> Candidate:
    latency_s = outcome.latencies_s.get(ladder.label(step))
    return {
        **ladder.facts(step, outcome.demand),
        "holds": not reasons,
        "latency_ns": latency_s * 1e9 if latency_s is not None and math.isfinite(latency_s) else None,
        "reasons": [_reason(one) for one in reasons],
    }


def _reason(reason: RejectionReason) -> Reason:
    share = reason.share if math.isfinite(reason.share) else None
    return {"kind": reason.kind, "text": reason.text, "share": share}


def _nearest(outcome: Outcome) -> Nearest | None:
    """What comes nearest where nothing holds the need."""
    nearest = outcome.nearest
    if outcome.holders or nearest is None:
        return None
    ladder, step, reasons = nearest
    return {
        **ladder.facts(step, outcome.demand),
        "reasons": [_reason(one) for one in reasons],
        "missing_share": max(one.share for one in reasons) - 1,
    }


def _why(outcome: Outcome, chosen: Choices) -> list[str]:
    """The reasons in sentences: of what is chosen, then of what is not."""
    words = []
    asked = outcome.demand
    words.append(
        f"Storage must hold {format_iops(asked.iops)} IOPS and {size_text(asked.total_bytes)}"
        f" {format_when(outcome.need.years)}, and {format_share(outcome.need.head_room)} more I/O while it is healthy."
    )
    if (best := purchase_of(chosen)) is not None:
        words.append(
            f"{best['label']} holds {times_text(best['holds_times'])} that within the limits, is"
            f" {format_share(best['fill'])} full, and holds the need with a probability of"
            f" {_sure(best['probability'])}."
        )
    for found in outcome.found:
        if found.rejected:
            step, reasons = found.rejected[-1] if found.step is None else _before(found)
            words.append(f"{found.ladder.label(step)} does not: {reasons[0].kind}: {reasons[0].text}.")
    words += [f"{one.name} is left out: {one.reason.text}." for one in outcome.refused]
    return words


def times_text(factor: float) -> str:
    """How many times a demand is held.

    Examples
    --------
    >>> times_text(1.5424), times_text(16.0)
    ('1.54 times', '16 times or more')
    """
    return f"{factor:.0f} times or more" if factor >= FACTOR_MOST else f"{factor:.2f} times"


def _sure(share: float) -> str:
    return "more than 99 %" if share > 0.99 else format_share(share)


def _before(found: Found) -> tuple[LadderStep, tuple[RejectionReason, ...]]:
    """The largest size of a ladder that does not hold the need, below the one that does."""
    assert found.step is not None
    order = {step: place for place, step in enumerate(found.ladder.steps)}
    below = [one for one in found.rejected if order[one[0]] < order[found.step]]
    return below[-1] if below else found.rejected[-1]


def difference(before: Sizing, after: Sizing, changes: Sequence[str]) -> Difference:
    """What a what-if changes, resource by resource."""
    rows: list[Differs] = []

    def add(name: str, read: Callable[[Sizing], str]) -> None:
        was, now = read(before), read(after)
        rows.append({"what": name, "before": was, "after": now, "differs": was != now})

    add("demand", lambda one: f"{format_iops(one['demand']['sized_for']['iops'])} IOPS")
    add("data", lambda one: size_text(_bytes(one)))
    add("purchase", _purchase)
    for choice in CHOICES[-2:]:
        add(choice, partial(_label, choice))
    add("cost", _cost)
    add("probability", lambda one: _probability(one))
    add("first to run out", _first_out)
    if any(_servers(one) for one in (before, after)):
        add("servers", _server_count)
        add("memory of a server", _server_memory)
    return {"changes": list(changes), "rows": rows}


def _label(choice: Choice, answer: Sizing) -> str:
    found = answer["chosen"].get(choice)
    return found["label"] if found else "none"


def purchase_of(chosen: Choices) -> Chosen | None:
    """What is bought: the cheapest, or without costs what has fewest disks; None where nothing holds the need."""
    return chosen.get("cheapest") or chosen.get("fewest_disks")


def _purchase(answer: Sizing) -> str:
    best = purchase_of(answer["chosen"])
    return best["label"] if best else "none"


def _cost(answer: Sizing) -> str:
    best = purchase_of(answer["chosen"])
    return cost_text(answer, best["cost"] if best else None)


def _bytes(answer: Sizing) -> int:
    sized = answer["demand"]["sized_for"]
    return int(sized["data_bytes"] + sized["log_bytes"])


def _probability(answer: Sizing) -> str:
    best = purchase_of(answer["chosen"])
    return _sure(best["probability"]) if best else "-"


def _first_out(answer: Sizing) -> str:
    best = purchase_of(answer["chosen"])
    if not best:
        return "-"
    known = [(one["year"], one["resource"]) for one in best["growth"]["runs_out"] if one["year"] is not None]
    if not known:
        return "nothing within 20 years"
    year, resource = min(known, key=lambda one: one[0])
    return f"{resource}, year {year:g}"


def _servers(answer: Sizing) -> DatabaseServers | None:
    return answer["servers"]["databases"] if answer["servers"] else None


def _server_count(answer: Sizing) -> str:
    found = _servers(answer)
    return str(found["servers"]) if found else "-"


def _server_memory(answer: Sizing) -> str:
    found = _servers(answer)
    return "-" if found is None or found["memory_bytes"] is None else format_bytes(found["memory_bytes"])


def cost_text(answer: Sizing, cost: float | None) -> str:
    """A cost with its currency; `-` where none is stated."""
    return "-" if cost is None else f"{cost:,.0f} {answer['currency']}".rstrip()
