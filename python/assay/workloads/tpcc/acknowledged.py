"""Orders that users were told of, looked for in a database: one that is not there was acknowledged and lost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from assay.targets.databases import Database

_ORDERS = "SELECT o_w_id, o_d_id, o_id, o_c_id FROM orders WHERE o_entry_d BETWEEN %s AND %s"
"""Orders in a time, by all that names one: an order after the power cut may reuse the number of a lost order."""

EARLIER_S = 60


def missing_orders(
    database: Database, acknowledged: Sequence[Sequence[int]], from_utc_ns: int, to_utc_ns: int
) -> list[Sequence[int]]:
    """Those of the acknowledged orders that the database lacks.

    Parameters
    ----------
    acknowledged
        Of each order its database, warehouse, district, number, customer and time.
    from_utc_ns, to_utc_ns
        When they were entered, by the clock of this host.
    """
    edges = (_moment(from_utc_ns - EARLIER_S * 10**9), _moment(to_utc_ns))
    there = {tuple(int(value) for value in row) for row in database.query(_ORDERS, edges)}
    return [one for one in acknowledged if tuple(one[1:5]) not in there]


def _moment(utc_ns: int) -> datetime:
    return datetime.fromtimestamp(utc_ns / 1e9, UTC).replace(tzinfo=None)
