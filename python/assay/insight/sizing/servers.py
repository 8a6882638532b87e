"""How many servers a need takes: CPU from what a transaction costs, memory from the hit curve, mailboxes by number."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from assay.base.errors import UsageError
from assay.base.units import format_share
from assay.insight.sizing.demand import growth_factors, mail_servers, mailbox_bytes
from assay.insight.sizing.need import Need
from assay.record.shapes.sizing import DatabaseServers, MailServers, Servers


@dataclass(frozen=True, kw_only=True)
class SizedServers:
    """Servers of the databases.

    Attributes
    ----------
    cores
        That the transactions keep busy.
    cpu_share
        Of all servers together.
    memory_bytes
        Of each; None where no share of hits is stated.
    """

    count: int
    transactions: float
    cores: float
    cpu_share: float
    memory_bytes: int | None
    memory_text: str


def transactions_of(need: Need, year: float) -> float:
    """Transactions a second of all databases."""
    total = 0.0
    for database in need.database:
        _, load = growth_factors(database, year)
        stated = database.transactions
        total += (database.ios / database.ios_per_transaction if stated is None else stated) * load
    return total


def cores_used(need: Need, year: float) -> float:
    """Cores that the transactions keep busy."""
    return transactions_of(need, year) * (need.server.cpu_per_transaction if need.server else 0.0)


def servers_of(need: Need) -> SizedServers | None:
    """Servers at the end of the need's years; None where the need says nothing of them.

    Raises
    ------
    UsageError
        A share of hits is asked for, and nothing says how hits grow with memory.
    """
    server = need.server
    if server is None:
        return None
    cores = cores_used(need, need.years)
    count = max(math.ceil(cores / (server.cores * server.cpu_limit) - 1e-9), 1)
    memory, text = None, "the need states no share of hits (hit) and no curve of them (hit_curve) under [server]"
    if server.hit_curve:
        text = "the need states no share of hits (hit) under [server], such as 97%"
    if server.hit is not None:
        if len(server.hit_curve) < 2:
            raise UsageError(
                "server.hit asks for a hit_curve of two sizes of memory or more; state one, or give --hit-curve RUN"
            )
        cache = cache_for(server.hit_curve, server.hit)
        if cache is None:
            best = max(share for _, share in server.hit_curve)
            text = f"the hit curve ends at {format_share(best, 1)}, below the {format_share(server.hit, 1)} asked for"
        else:
            memory = round(cache / server.memory_share)
            own = format_share(server.memory_share)
            text = f"{format_share(server.hit, 1)} of hits, with {own} of the memory for the database"
    return SizedServers(
        count=count,
        transactions=transactions_of(need, need.years),
        cores=cores,
        cpu_share=cores / (count * server.cores),
        memory_bytes=memory,
        memory_text=text,
    )


def cache_for(curve: tuple[tuple[int, float], ...], hit: float) -> int | None:
    """The cache that reaches a share of hits, by misses that fall with a power of it between two sizes.

    Examples
    --------
    >>> curve = ((16, 0.90), (64, 0.95))
    >>> cache_for(curve, 0.90), cache_for(curve, 0.95), cache_for(curve, 0.929), cache_for(curve, 0.99)
    (16, 64, 32, None)
    """
    ordered = sorted(curve)
    if hit <= ordered[0][1]:
        return ordered[0][0]
    for (less, below), (more, above) in itertools.pairwise(ordered):
        if below < hit <= above:
            if above >= 1:
                return more
            power = math.log((1 - below) / (1 - above)) / math.log(more / less)
            return round(float(less * ((1 - below) / (1 - hit)) ** (1 / power)))
    return None


def facts_of(need: Need) -> Servers | None:
    """Servers as documents carry them; None where nothing is known of any."""
    found = servers_of(need)
    mail: list[MailServers] = [
        {
            "name": one.name,
            "mailboxes": round(one.mailboxes * growth_factors(one, need.years)[1]),
            "servers": mail_servers(one, need.years),
            "mailboxes_per_server": one.mailboxes_per_server,
            "copies": one.copies,
            "mailbox_bytes": mailbox_bytes(one),
        }
        for one in need.mail
    ]
    if found is None and not mail:
        return None
    databases: DatabaseServers | None = None
    if found is not None and need.server is not None:
        databases = {
            "servers": found.count,
            "cores_of_server": need.server.cores,
            "transactions_per_s": found.transactions,
            "cores": found.cores,
            "cpu_share": found.cpu_share,
            "cpu_limit": need.server.cpu_limit,
            "memory_bytes": found.memory_bytes,
            "memory": found.memory_text,
        }
    return {"databases": databases, "mail": mail}
