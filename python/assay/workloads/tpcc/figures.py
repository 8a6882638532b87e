"""The figures of transactions: their throughput, what users wait, and what the storage under the databases did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from assay.results.common_figures import COMMON_FIGURES, RESPONSE, batches_of, latency_in, scaled_batches
from assay.results.figures import STATISTICS, Figure, Record
from assay.results.shapes.point import Point
from assay.units import count_of, format_latency
from assay.workloads.databases.figures import cpu_of_server, under
from assay.workloads.tpcc.shapes import oltp_of

NEW_ORDER = "new_order"
OTHERS = {"payment": "payments", "order_status": "order status", "delivery": "deliveries", "stock_level": "stock level"}
"""The other transactions, as tables head them."""


def _rate(key: str) -> Callable[[Point], float | None]:
    return lambda point: oltp_of(point).get(key)


def _transaction(point: Point, name: str) -> Record | None:
    found: Record | None = (oltp_of(point).get("by_transaction") or {}).get(name)
    return found


def _told(point: Point) -> str:
    """What a database did at a given load."""
    oltp = oltp_of(point)
    meaning = f"{NOPM.words(oltp['nopm'])} ({TPM.words(oltp['tpm_client'])}) with {count_of(oltp['users'], 'user')}"
    latency_ns = latency_in(_transaction(point, NEW_ORDER), "p90")
    return meaning if latency_ns is None else f"{meaning}; new orders p90 {format_latency(latency_ns)}"


NOPM = Figure(
    name="nopm",
    unit="nopm",
    title="NOPM",
    full="new orders per minute",
    better="higher",
    value=_rate("nopm"),
    words=lambda nopm: f"{nopm:,.0f} NOPM",
    batches=partial(batches_of, direction="total", key="nopm"),
    in_answers=True,
    study="nopm",
    limit="nopm",
    told=_told,
    failed="transactions failed",
    nothing="no new order was committed",
)
"""New orders per minute."""

TPM = Figure(
    name="tpm",
    unit="tpm",
    title="TPM",
    full="transactions per minute",
    better="higher",
    value=_rate("tpm_client"),
    words=lambda tpm: f"{tpm:,.0f} TPM",
    batches=lambda point: scaled_batches(point, NOPM, oltp_of(point).get("tpm_client")),
    in_answers=True,
    study="tpm",
    limit="tpm",
)
"""Transactions per minute of all kinds, as the client counts them."""

_LOWEST = replace(
    NOPM,
    name="nopm_lowest",
    title="lowest NOPM",
    noun="NOPM in the weakest moment",
    full="new orders per minute in the weakest moment",
    value=lambda point: min(NOPM.batches(point), default=None),
    batches=lambda _point: (),
    in_answers=False,
    compared=False,
    study="nopm_lowest",
    limit="",
    told=lambda _point: None,
)


def _response(statistic: str) -> Figure:
    """Response time of new orders; a limit judges every kind of transaction."""
    is_p90 = statistic == "p90"
    return replace(
        COMMON_FIGURES[f"{RESPONSE}_{statistic.replace('.', '_')}_ns"],
        noun=f"response time of new orders ({statistic})",
        full=f"response time of new orders, {statistic}",
        value=lambda point: latency_in(_transaction(point, NEW_ORDER), statistic),
        at_ends=is_p90,
        compared=is_p90,
        study="response_p90" if is_p90 else "",
        scopes=lambda point, _role: [
            (name, latency_in(found, statistic)) for name, found in (oltp_of(point).get("by_transaction") or {}).items()
        ],
        record=partial(_transaction, name=NEW_ORDER),
    )


def _response_of(name: str, title: str) -> Figure:
    """The 90th percentile of the response time of one kind of transaction, which the specification bounds."""
    return Figure(
        name=f"{name}_response_p90_ns",
        unit="ns",
        title=f"{title} p90",
        better="lower",
        value=lambda point: latency_in(_transaction(point, name), "p90"),
        words=format_latency,
        record=partial(_transaction, name=name),
        statistic="p90",
    )


def _latency_under(role: str, side: str) -> Figure:
    name, noun = f"{role}_{side}_latency", f"{role} {side} latency"
    mean = COMMON_FIGURES[f"{side}_latency_mean_ns"]
    return under(
        role, replace(mean, name=f"{name}_mean_ns", title=f"{role} {side}s", noun=noun, full=f"mean {noun}", study=name)
    )


CPU = cpu_of_server(lambda point: oltp_of(point).get("storage") or {})
"""The server's share of its host; what the load itself takes does not count against it."""

FIGURES: tuple[Figure, ...] = (
    NOPM,
    TPM,
    _LOWEST,
    *map(_response, STATISTICS),
    *(_response_of(name, title) for name, title in OTHERS.items()),
    _latency_under("data", "read"),
    _latency_under("data", "write"),
    _latency_under("log", "write"),
    *(
        under("data", replace(COMMON_FIGURES[name], compared=False))
        for name in ("iops", "bytes_per_s", "read_latency_mean_ns", "write_latency_mean_ns")
    ),
    CPU,
)
