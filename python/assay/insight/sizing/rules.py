"""The method's rules, each with its source and what it did to this answer."""

from __future__ import annotations

from assay.base.units import count_of, format_iops, format_share, format_when
from assay.insight.sizing.demand import demand_of, mail_servers
from assay.insight.sizing.ladder import Ladder, LadderStep
from assay.insight.sizing.need import Need
from assay.insight.sizing.search import Found, Outcome
from assay.insight.sizing.servers import servers_of
from assay.record.shapes.sizing import Rule
from assay.targets.arrays.model.configuration import size_text


def rules_of(outcome: Outcome) -> list[Rule]:
    """Every rule with its effect on the purchase, or on all that was looked at."""
    need, rules, best = outcome.need, outcome.need.rules, outcome.purchase
    rows: list[Rule] = []

    def add(rule: str, source: str, effect: str) -> None:
        rows.append({"rule": rule, "source": source, "effect": effect})

    add(
        f"fill {format_share(rules.fill)} at most",
        "the method, section 1: size with 60-70 %",
        _rejected(outcome, ("fill",)) or _fill_effect(outcome, best),
    )
    add(
        f"an emptier array is simulated {format_share(rules.modelled_fill)} full",
        "the method, section 1: never with the flattering 40 % figure",
        _flattering_effect(outcome, best),
    )
    add(
        f"above {format_share(rules.add_array)} an array is added",
        "the method, section 1",
        "the year is among those in which a resource runs out",
    )
    add(
        "5 % of a pool or 100 GB a member stay free, whichever is less",
        "the method, section 7; other arrays as their model files say",
        _free_effect(outcome, best),
    )
    if any(one.ios for one in need.database):
        plain = _iops_with(outcome, derating=0.0)
        add(
            f"a database reaches {format_share(rules.derating_transactions)} fewer I/Os than the raw profile",
            "EQL-OLTP study, 2013, or a measured raw-vs-database study",
            f"{format_iops(outcome.demand.iops)} instead of {format_iops(plain)} IOPS are asked of the array",
        )
    if any(one.scan for one in need.database):
        add(
            f"scans reach {format_share(rules.derating_scans)} less than the raw profile",
            "EQL-DSS study, 2013, or a measured raw-vs-database study",
            f"scans ask for {format_share(1 / (1 - rules.derating_scans) - 1)} more of the array",
        )
    if any(one.log_bytes for one in need.database):
        log = "has volumes of its own, judged by " if rules.log_apart else "shares the volumes of the data, judged by "
        add("the log apart", "the method, section 8", f"the log {log}{need.limits.log * 1e3:g} ms")
        add("RAID by role: no log on parity RAID", "the method, section 8",
            _left_out(outcome, "log would lie") if rules.raid_by_role else "is switched off")  # fmt: skip
    add(
        "no single parity on disks of 3 TB and more at 7,200 rpm",
        "the method, section 8: RAID 6 for large nearline disks",
        _left_out(outcome, "large nearline") if rules.raid6_large else "is switched off",
    )
    switched = [name for name in ("degraded", "rebuilding") if getattr(rules, name)]
    add(
        "the limits are met with a disk lost and while it is rebuilt",
        "the method, studies of degraded arrays",
        (
            _rejected(outcome, ("degraded", "rebuilding", "rebuild window"))
            or "nothing that holds the need healthy fails"
        )
        if switched
        else "is switched off",
    )
    if need.mail:
        add(
            "at most 10,000 mailboxes a server",
            "the method, section 5",
            ", ".join(f"{one.name}: {count_of(mail_servers(one, 0), 'server')} now" for one in need.mail),
        )
    if need.server is not None:
        add(f"CPU of a server {format_share(need.server.cpu_limit)} at most",
            "the method, section 3: below 80 % on average",
            _server_effect(need))  # fmt: skip
    return rows


def _server_effect(need: Need) -> str:
    found = servers_of(need)
    assert found is not None
    return f"asks for {count_of(found.count, 'server')}, {format_share(found.cpu_share)} busy"


def _rejected(outcome: Outcome, kinds: tuple[str, ...]) -> str:
    hit = [
        found.ladder.label(step)
        for found in outcome.found
        for step, reasons in found.rejected
        if reasons and reasons[0].kind in kinds
    ]
    return f"refuses {_some(hit)}" if hit else ""


def _left_out(outcome: Outcome, words: str) -> str:
    hit = [one.name for one in outcome.refused if words in one.reason.text]
    return f"leaves out {_some(hit)}" if hit else "leaves nothing out"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return "; ".join(names[:3]) + more


def _fill_effect(outcome: Outcome, best: Found | None) -> str:
    if best is None or best.step is None:
        return "refuses nothing"
    fill = max(pool.fill for pool in best.ladder.pools(best.step, outcome.demand))
    return f"refuses nothing; the purchase is {format_share(fill)} full {format_when(outcome.need.years)}"


def _flattering_effect(outcome: Outcome, best: Found | None) -> str:
    if best is None or best.step is None:
        return "-"
    fill = max(pool.fill for pool in best.ladder.pools(best.step, demand_of(outcome.need, 0)))
    if fill >= outcome.need.rules.modelled_fill:
        return f"none: the purchase is {format_share(fill)} full from the start"
    return f"the purchase is {format_share(fill)} full now, and is not credited with that"


def _free_effect(outcome: Outcome, best: Found | None) -> str:
    if best is None or best.step is None:
        return _rejected(outcome, ("capacity",)) or "-"
    free, usable = _free(outcome, best.ladder, best.step)
    return f"keeps {size_text(free)} of {size_text(usable)} of the purchase free"


def _free(outcome: Outcome, ladder: Ladder, step: LadderStep) -> tuple[int, int]:
    pools = ladder.pools(step, outcome.demand)
    return sum(pool.free_bytes for pool in pools), sum(pool.usable_bytes for pool in pools)


def _iops_with(outcome: Outcome, *, derating: float) -> float:
    need = outcome.need
    changed = need.model_copy(update={"rules": need.rules.model_copy(update={"derating_transactions": derating})})
    return demand_of(changed, need.years).iops
