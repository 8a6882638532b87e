"""Which assumption changes the purchase: each is moved to the ends of its plausible range, all others as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from assay.base.units import format_share
from assay.insight.sizing.allowance import ALL_IOS, Allowance, GaveUp, shared
from assay.insight.sizing.candidates import ladders
from assay.insight.sizing.demand import demand_of
from assay.insight.sizing.judge import Judge
from assay.insight.sizing.ladder import Ladder, LadderStep
from assay.insight.sizing.need import Need
from assay.insight.sizing.search import Found, Outcome, at_once, cores, least
from assay.record.shapes.sizing import WhatIf

LADDERS_MOST = 3
"""Ladders that compete for a changed need: those that cost least for the need as it is."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """An assumption at one end of its range.

    Attributes
    ----------
    harder
        Whether what does not hold the need does not hold the changed one either; None where that is not known.
    """

    assumption: str
    stated: str
    to: str
    need: Need
    harder: bool | None


def changes(need: Need) -> Iterator[Change]:
    """Every assumption of a need at both ends of its range."""
    rules = need.rules
    growths = [*(one.growth for one in need.database), *(one.growth for one in need.mail)]
    if (any(growths) or any(one.load_growth for one in need.database)) and need.years:
        stated = ", ".join(dict.fromkeys(format_share(growth) for growth in growths))
        for factor, text in ((0.5, "half of it"), (1.5, "one and a half times it")):
            yield Change(
                assumption="growth a year", stated=stated, to=text, need=_growing(need, factor), harder=factor > 1
            )
        for years in (max(need.years - 1, 0), need.years + 1):
            changed = need.model_copy(update={"years": years})
            yield Change(assumption="years it must hold", stated=f"{need.years:g}", to=f"{years:g}", need=changed,
                         harder=years > need.years)  # fmt: skip
    for factor, text in ((0.8, "20 % less"), (1.2, "20 % more")):
        yield Change(assumption="demand", stated="as given", to=text, need=_loaded(need, factor), harder=factor > 1)
    for room in sorted({0.0, need.head_room + 0.2} - {need.head_room}):
        changed = need.model_copy(update={"head_room": room})
        yield Change(assumption="head-room", stated=format_share(need.head_room), to=format_share(room), need=changed,
                     harder=room > need.head_room)  # fmt: skip
    if any(one.ios for one in need.database) and rules.derating_transactions:
        for derating in (0.0, min(rules.derating_transactions * 1.5, 0.9)):
            changed = _with_rules(need, derating_transactions=derating)
            yield Change(
                assumption="derating from raw profile to database",
                stated=format_share(rules.derating_transactions),
                to=format_share(derating),
                need=changed,
                harder=derating > rules.derating_transactions,
            )
    for fill in (0.6, 0.85):
        if fill != rules.fill:
            changed = _with_rules(need, fill=fill, modelled_fill=min(rules.modelled_fill, fill))
            yield Change(assumption="fill", stated=format_share(rules.fill), to=format_share(fill), need=changed,
                         harder=fill < rules.fill)  # fmt: skip
    shares = ", ".join(dict.fromkeys(format_share(one.read) for one in need.database if one.ios))
    for reads in (-0.1, 0.1):
        if shares:
            yield Change(assumption="share of reads", stated=shares,
                         to="10 points fewer" if reads < 0 else "10 points more", need=_reading(need, reads),
                         harder=None)  # fmt: skip
    if rules.degraded or rules.rebuilding:
        changed = _with_rules(need, degraded=False, rebuilding=False)
        yield Change(assumption="holds with a disk lost", stated="yes", to="no", need=changed, harder=False)


@dataclass(frozen=True)
class Bought:
    """What is bought for a changed need."""

    change: Change
    found: tuple[Ladder, LadderStep] | None
    gave_up: GaveUp | None = None

    @property
    def words(self) -> str:
        """The purchase."""
        return "not known" if self.gave_up is not None else _label(self.found)

    @property
    def bought(self) -> str | None:
        """What tells one purchase from another: of a cloud the product, whose size can be changed at any time."""
        return None if self.found is None else self.found[0].bought(self.found[1])


def sensitivity(
    outcome: Outcome, judge: Judge, tell: Callable[[str], None] = lambda _: None, *, ios: float = ALL_IOS
) -> list[WhatIf]:
    """What is bought for each change, and whether that differs from what is bought for the need.

    Parameters
    ----------
    ios
        Simulated I/Os that all changes together may ask for; `outcome` is told which of them gave up.
    """
    chosen = outcome.purchase
    if chosen is None or chosen.step is None:
        return []
    before = chosen.ladder.bought(chosen.step)
    searches = [partial(_bought, change, outcome, judge) for change in changes(outcome.need)]
    with ThreadPoolExecutor(cores(), thread_name_prefix="assay-what-if") as pool:
        run = partial(
            at_once, pool, judge, tell=lambda one: tell(f"{one.change.assumption} {one.change.to}: {one.words}")
        )
        bought, _ = shared(ios, searches, run, judge.known)
    outcome.given_up += [
        f"what is bought if {one.change.assumption} is {one.change.to} is not known: {one.gave_up}"
        for one in bought
        if one.gave_up is not None
    ]
    return [
        {
            "assumption": one.change.assumption, "stated": one.change.stated, "to": one.change.to,
            "purchase": one.words, "changes": one.gave_up is None and one.bought != before,
            "cost": one.found[0].cost(one.found[1]) if one.found else None, "known": one.gave_up is None,
        }
        for one in bought
    ]  # fmt: skip


def _bought(change: Change, outcome: Outcome, judge: Judge, allowance: Allowance) -> Bought:
    try:
        return Bought(change, purchase_of(change, outcome, judge.within(allowance)))
    except GaveUp as error:
        return Bought(change, None, error)


def _label(found: tuple[Ladder, LadderStep] | None) -> str:
    return "none of those that hold the need now" if found is None else found[0].label(found[1])


def purchase_of(change: Change, outcome: Outcome, judge: Judge) -> tuple[Ladder, LadderStep] | None:
    """The purchase for a changed need, of the ladders that cost least; sizes that cannot win are not asked.

    Raises
    ------
    GaveUp
        The judge's allowance does not reach.
    """
    need, demand = change.need, demand_of(change.need, change.need.years)
    order = sorted(outcome.holders, key=lambda one: outcome.cost_key(one.ladder, _step(one)))[:LADDERS_MOST]
    known = {one.name: one for one in ladders(need, outcome.book)[0]}
    best: tuple[Ladder, LadderStep] | None = None
    for held in order:
        ladder = known.get(held.ladder.name)
        if ladder is None:
            continue
        places = [
            place
            for place, step in enumerate(ladder.steps)
            if (best is None or outcome.cost_key(ladder, step) < outcome.cost_key(*best))
            and (
                not change.harder
                or ladder.side == "cloud"
                or step >= _step(held)
                or ladder.disks(step) >= ladder.disks(_step(held))
            )
        ]
        if not places:
            continue
        steps = ladder.steps[places[0] : places[-1] + 1]
        # What holds the need holds an easier one; volumes of a cloud are asked for anew.
        holder = _step(held) if change.harder is False and ladder.side != "cloud" else None
        if best is not None and holder not in steps and judge.reasons(need, ladder, steps[-1], demand):
            # Its largest size that costs less does not hold it, and so no smaller one.
            continue
        if not change.harder and best is None and ladder.side != "cloud":
            # Only smaller sizes are in question.
            steps = tuple(one for one in steps if change.harder is None or one <= _step(held)) or steps
        found = least(need, replace(ladder, steps=steps), demand, judge, known=holder)
        if found.gave_up is not None:
            raise found.gave_up
        if found.step is not None:
            best = (ladder, found.step)
    return best


def _step(found: Found) -> LadderStep:
    assert found.step is not None
    return found.step


def _with_rules(need: Need, **values: float) -> Need:
    return need.model_copy(update={"rules": need.rules.model_copy(update=values)})


def _growing(need: Need, factor: float) -> Need:
    databases = tuple(
        one.model_copy(
            update={
                "growth": one.growth * factor,
                "load_growth": None if one.load_growth is None else one.load_growth * factor,
            }
        )
        for one in need.database
    )
    mail = tuple(one.model_copy(update={"growth": one.growth * factor}) for one in need.mail)
    return need.model_copy(update={"database": databases, "mail": mail})


def _loaded(need: Need, factor: float) -> Need:
    databases = []
    for one in need.database:
        values = {key: getattr(one, key) for key in ("iops", "transactions", "scan")}
        databases.append(
            one.model_copy(update={key: value * factor for key, value in values.items() if value is not None})
        )
    mail = [one.model_copy(update={"iops_per_mailbox": one.iops_per_mailbox * factor}) for one in need.mail]
    return need.model_copy(update={"database": tuple(databases), "mail": tuple(mail)})


def _reading(need: Need, points: float) -> Need:
    databases = tuple(one.model_copy(update={"read": min(max(one.read + points, 0.0), 1.0)}) for one in need.database)
    return need.model_copy(update={"database": databases})
