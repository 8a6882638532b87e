"""The whole answer to a need, as one JSON object: candidates, what is chosen, why, and on which assumptions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal

from assay.base.units import format_bytes, format_iops, format_share, format_when
from assay.insight.sizing import candidates, demand, servers
from assay.insight.sizing.allowance import ALL_IOS, CERTAINTY_SHARE, HOLDS_SHARE, Allowance
from assay.insight.sizing.candidates import Ladder, LadderStep, RejectionReason, pool_configuration, pools_of
from assay.insight.sizing.certainty import Certainty, certainty_of
from assay.insight.sizing.growth import growth_of
from assay.insight.sizing.judge import Judge
from assay.insight.sizing.measured import MeasuredDemand
from assay.insight.sizing.need import Need, NeedAsWritten, NeededDatabase, stated
from assay.insight.sizing.rules import rules_of
from assay.insight.sizing.search import FACTOR_MOST, Found, Headroom, Outcome, capacity_factor, cores, search
from assay.insight.sizing.sensitivity import sensitivity
from assay.record.shapes.sizing import (
    Assumption,
    Candidate,
    Choices,
    Chosen,
    DatabaseServers,
    Difference,
    Differs,
    Nearest,
    Reason,
    Sizing,
)
from assay.targets.arrays.model.configuration import size_text

Choice = Literal["cheapest", "fewest_disks", "smallest", "fastest"]
CHOICES: tuple[Choice, ...] = ("cheapest", "fewest_disks", "smallest", "fastest")
"""What may be chosen; without a cost of every holder nothing is the cheapest."""
Tell = Callable[[str], None]


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

    Raises
    ------
    UsageError
        A candidate is unknown or impossible.
    Interrupted
        The judge's `interrupt` was set.
    """
    need = asked.need
    of_servers = servers.servers_of(need)
    outcome = search(need, judge, tell, ios=ios)
    chosen = _choices(need, outcome, judge, of_servers, ios, tell)
    what_ifs = sensitivity(outcome, judge, tell, ios=max(ios - outcome.spent_ios, 0.0)) if what_if else None
    answer: Sizing = {
        "title": need.title,
        "source": asked.source,
        "named": [*(one.name for one in need.database), *(one.name for one in need.mail)],
        "currency": need.currency,
        "years": need.years,
        "service_years": need.service_years,
        "demand": {"now": demand.facts_of(demand.demand_of(need, 0)), "sized_for": demand.facts_of(outcome.demand),
                   "head_room": need.head_room, "spread": need.spread},
        "measured": measured.facts() if measured else None,
        "holds": bool(chosen),
        "chosen": chosen,
        "cheapest_by": "cost" if outcome.has_costs else "disks, because no costs are stated",
        "smallest_by": "rack units" if outcome.has_rack_units else "members and disks, because no heights are stated",
        "candidates": _candidates(outcome),
        "nearest": _nearest(outcome),
        "why": _why(outcome, chosen),
        "rules": rules_of(outcome),
        "assumptions": _assumptions(asked, measured),
        "servers": servers.facts_of(need),
        "sensitivity": what_ifs,
        "simulations": judge.simulations,
        "given_up": outcome.given_up,
        "notices": [*_notices(asked, measured), *outcome.given_up],
        "difference": None,
    }  # fmt: skip
    return Sized(outcome, answer)


def _notices(asked: NeedAsWritten, measured: MeasuredDemand | None) -> list[str]:
    if measured is None:
        return []
    told = list(measured.notices)
    if measured.growth is None and not {("database", "growth"), ("database", "load_growth")} & stated(asked.table):
        told.append("how the data and the load grow is not known, and nothing is added for it; --set growth=30% does")
    return told


def _choices(
    need: Need, outcome: Outcome, judge: Judge, of_servers: servers.SizedServers | None, ios: float, tell: Tell
) -> Choices:
    """What is chosen, with all that is said of it: how much it holds and how sure that is are asked at once."""
    picked: dict[Choice, tuple[Ladder, LadderStep]] = {}
    bought: Choice = "cheapest" if outcome.has_costs else "fewest_disks"
    holders: dict[Choice, Found | None] = {
        bought: outcome.purchase, "smallest": outcome.smallest, "fastest": outcome.fastest
    }  # fmt: skip
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
    probability = certain.probability(factor, need.spread)
    latency_s = outcome.latencies_s.get(ladder.label(step))
    return {
        **candidates.facts_of(ladder, step, outcome.demand),
        "targets": [
            pool_configuration(need, ladder, step, outcome.demand, pool).target_text
            for pool in pools_of(ladder, step, outcome.demand)
        ],
        "latency_ns": latency_s * 1e9 if latency_s is not None and math.isfinite(latency_s) else None,
        "holds_times": factor,
        "iops_held": outcome.demand.iops * factor,
        "probability": probability,
        "model_share": certain.model_share,
        "model_basis": certain.basis,
        "rebuild_h": judge.rebuild_h(need, ladder, step, outcome.demand),
        "loss_probability": judge.loss(need, ladder, step, outcome.demand),
        "growth": growth_of(need, ladder, step, factor, of_servers),
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
    for name, reason in outcome.refused:
        rows.append({"label": name, "holds": False, "reasons": [_reason(reason)]})
    return rows


def _row(outcome: Outcome, ladder: Ladder, step: LadderStep, reasons: Sequence[RejectionReason]) -> Candidate:
    latency_s = outcome.latencies_s.get(ladder.label(step))
    return {
        **candidates.facts_of(ladder, step, outcome.demand),
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
        **candidates.facts_of(ladder, step, outcome.demand),
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
    words += [f"{name} is left out: {reason.text}." for name, reason in outcome.refused]
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


_ASSUMED: Sequence[tuple[tuple[str, ...], str, Callable[[Need], str], str]] = (
    (("years",), "years it must hold", lambda need: f"{need.years:g}", "assumed"),
    (("head_room",), "head-room of the healthy array", lambda need: format_share(need.head_room), "assumed"),
    (("spread",), "spread of the demand, one standard deviation", lambda need: format_share(need.spread), "assumed"),
    (("limits", "read"), "mean read latency", lambda need: f"{need.limits.read * 1e3:g} ms",
     "the method, EQL-OLTP study"),
    (("limits", "write"), "mean write latency", lambda need: f"{need.limits.write * 1e3:g} ms",
     "the method, EQL-OLTP study"),
    (("limits", "log"), "mean log write latency", lambda need: f"{need.limits.log * 1e3:g} ms",
     "the method, EQL-OLTP study"),
    (("limits", "rebuild"), "longest rebuild", lambda need: f"{need.limits.rebuild / 3600:g} h", "assumed"),
    (("rules", "fill"), "most of the usable capacity", lambda need: format_share(need.rules.fill),
     "the method: size with 60 to 70 %"),
    (("rules", "modelled_fill"), "least fill that is simulated", lambda need: format_share(need.rules.modelled_fill),
     "the method: never with the figure of a nearly empty array"),
)  # fmt: skip

_PUBLISHED_IOS = "EQL-OLTP study: 3,287 I/Os of 1,054 transactions"

_OF_DATABASES: Sequence[tuple[str, str, Callable[[NeededDatabase], str], str]] = (
    ("growth", "growth a year", lambda one: format_share(one.growth), "assumed"),
    ("block", "block size", lambda one: format_bytes(one.block), "the method: pages of 8 KiB"),
    ("read", "share of reads", lambda one: format_share(one.read), "the method: 70/30 stands for most"),
    ("log", "share of I/Os that write the log", lambda one: format_share(one.log), "assumed"),
    ("log_block", "size of a log write", lambda one: format_bytes(one.log_block), "assumed"),
    ("log_size", "space of the log", lambda one: size_text(one.log_bytes), "assumed: a tenth of the database"),
)


def _assumptions(asked: NeedAsWritten, measured: MeasuredDemand | None) -> list[Assumption]:
    """Everything that the need does not say and the answer hangs on, and what the method sets."""
    need, said = asked.need, stated(asked.table)
    of_measured = {"block", "read", "log", "log_block"} if measured else set()
    rows: list[Assumption] = [
        {"assumption": title, "value": value(need), "from": "stated" if keys in said else source}
        for keys, title, value, source in _ASSUMED
    ]
    if measured is not None and measured.spread is not None:
        rows[2]["from"] = "measured: the busiest hours"
    for one in need.database:
        for key, title, value, source in _OF_DATABASES:
            applies = key == "growth" or (one.ios and (key == "block" or key == "read" or one.log > 0))
            if applies:
                origin = "stated" if ("database", key) in said else source
                origin = "measured" if key in of_measured else origin
                rows.append({"assumption": f"{one.name}: {title}", "value": value(one), "from": origin})
        if one.transactions is not None:
            origin = "stated" if ("database", "ios_per_transaction") in said else _PUBLISHED_IOS
            origin = "measured" if measured else origin
            rows.append({"assumption": f"{one.name}: I/Os of a transaction", "value": f"{one.ios_per_transaction:.2f}",
                         "from": origin})  # fmt: skip
        if one.ios:
            rows.append({"assumption": f"{one.name}: derating from raw profile", "value":
                         format_share(need.rules.derating_transactions),
                         "from": _derating_from(said, "derating_transactions", asked)})  # fmt: skip
        if one.scan is not None:
            rows.append({"assumption": f"{one.name}: derating of scans",
                         "value": format_share(need.rules.derating_scans),
                         "from": _derating_from(said, "derating_scans", asked)})  # fmt: skip
    if need.server is not None and need.server.hit_curve:
        rows.append({"assumption": "hits of the servers' cache by its size",
                     "value": ", ".join(f"{format_bytes(size)} {format_share(share, 1)}"
                                        for size, share in sorted(need.server.hit_curve)),
                     "from": asked.origins.get(("server", "hit_curve"), "stated")})  # fmt: skip
    for mail in need.mail:
        rows += [
            {"assumption": f"{mail.name}: white space, deleted items and overhead of a mailbox",
             "value": format_share(demand.mailbox_bytes(mail) / mail.size - 1),
             "from": f"{mail.messages_per_day:g} messages of {format_bytes(mail.message_size)} a day, kept"
                     f" {mail.deleted_days:g} days, {format_share(mail.overhead)} beside them"},
            {"assumption": f"{mail.name}: background maintenance",
             "value": f"{mail.maintenance_reads:g} reads/s a database",
             "from": "stated" if ("mail", "maintenance_reads") in said else "the method: about 30"},
            {"assumption": f"{mail.name}: copies ask for as much as the active one", "value": f"{mail.copies}",
             "from": "stated" if ("mail", "copies") in said else "assumed"},
        ]  # fmt: skip
    rows += [
        {"assumption": "hosts", "value": "one for each member, as many ports as a controller", "from": "assumed"},
        {"assumption": "I/O of a database", "value": "spread evenly over its volumes, arrivals at random",
         "from": "assumed"},
    ]  # fmt: skip
    return rows


def _derating_from(said: set[tuple[str, ...]], key: str, asked: NeedAsWritten) -> str:
    origin = asked.origins.get(("rules", key))
    return origin or ("stated" if ("rules", key) in said else "published: EQL-OLTP and EQL-DSS studies, 2013")


def difference(before: Sizing, after: Sizing, changes: Sequence[str]) -> Difference:
    """What a what-if changes, resource by resource."""
    rows: list[Differs] = []

    def add(name: str, read: Callable[[Sizing], str]) -> None:
        was, now = read(before), read(after)
        rows.append({"what": name, "before": was, "after": now, "differs": was != now})

    add("demand", lambda one: f"{format_iops(one['demand']['sized_for']['iops'])} IOPS")
    add("data", lambda one: size_text(_bytes(one)))
    add("purchase", _purchase)
    for choice in CHOICES[2:]:
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
