"""What becomes of a purchase as the need grows: the use of each resource by year, and the year in which it runs out."""

from __future__ import annotations

from collections.abc import Callable

from assay.base.units import format_share
from assay.insight.sizing.demand import demand_of
from assay.insight.sizing.endurance import DriveWear
from assay.insight.sizing.ladder import Ladder, LadderStep
from assay.insight.sizing.need import Need
from assay.insight.sizing.servers import SizedServers, cores_used
from assay.record.shapes.sizing import Growth, Year

YEARS_MOST = 20.0
YEARS_BEYOND = 3
"""Years that are shown after those the need is for."""
STEP_YEARS = 0.1

WEAR = "endurance of the drives"

Share = Callable[[float], float]


def shares_of(
    need: Need,
    ladder: Ladder,
    step: LadderStep,
    factor: float,
    servers: SizedServers | None,
    wear: DriveWear | None = None,
) -> dict[str, Share]:
    """By resource, the share of what there is that is used after so many years; 1 is where it runs out.

    Parameters
    ----------
    factor
        How many times the demand at the end of the need's years a healthy array holds within the limits.
    """
    held = demand_of(need, need.years).iops * factor

    def fill(year: float) -> float:
        return max(pool.fill for pool in ladder.pools(step, demand_of(need, year)))

    found: dict[str, Share] = {
        f"space, {format_share(need.rules.fill)} full": lambda year: fill(year) / need.rules.fill,
        f"space, {format_share(need.rules.add_array)} full: add an array": lambda year: (
            fill(year) / need.rules.add_array
        ),
        "I/O within the limits": lambda year: demand_of(need, year).iops / held,
    }
    if ladder.port_shares(step, demand_of(need, need.years)) is not None:
        found["ports"] = lambda year: ladder.port_shares(step, demand_of(need, year)) or 0.0
    if wear is not None:
        found[WEAR] = wear.used_share
    if servers is not None and need.server is not None:
        server = need.server
        bought = servers.count * server.cores * server.cpu_limit
        found["CPU of the servers"] = lambda year: cores_used(need, year) / bought
    return found


def growth_of(
    need: Need,
    ladder: Ladder,
    step: LadderStep,
    factor: float,
    servers: SizedServers | None,
    wear: DriveWear | None = None,
) -> Growth:
    """Use by year, and when each resource runs out."""
    shares = shares_of(need, ladder, step, factor, servers, wear)
    last = min(int(need.years) + YEARS_BEYOND, int(YEARS_MOST))
    rows: list[Year] = []
    for year in range(last + 1):
        demand = demand_of(need, year)
        rows.append(
            {
                "year": year, "bytes": demand.total_bytes, "iops": demand.iops, "bytes_per_s": demand.bytes_per_s,
                "used": {name: share(year) for name, share in shares.items()},
            }
        )  # fmt: skip
    return {
        "years": rows,
        "runs_out": [{"resource": name, "year": runs_out(share)} for name, share in shares.items()],
    }


def runs_out(share: Share) -> float | None:
    """The year in which a resource is used up, to a tenth; None if that is not within twenty years.

    Examples
    --------
    >>> runs_out(lambda year: 0.5 * 1.3**year), runs_out(lambda year: 0.5), runs_out(lambda year: 1.5)
    (2.6, None, 0.0)
    """
    if share(0.0) > 1:
        return 0.0
    if share(YEARS_MOST) <= 1:
        return None
    low, high = 0, round(YEARS_MOST / STEP_YEARS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if share(middle * STEP_YEARS) <= 1 else (low, middle)
    return round(low * STEP_YEARS, 1)
