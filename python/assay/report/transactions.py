"""Words for transactions on databases, which the summary and the sections on them share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.document.elements import Tone
from assay.document.text import DASH, joined, load_label, shorten
from assay.results.source import Record, RunFacts
from assay.units import count_of, format_latency

TRANSACTIONS = {
    "new_order": "New order",
    "payment": "Payment",
    "order_status": "Order status",
    "delivery": "Delivery",
    "stock_level": "Stock level",
}
"""Names of the transactions, in the order they are shown."""

DISCLAIMER = (
    "The workload is TPC-C-like: derived from TPC-C and not compliant with it. Its figures are not comparable with "
    "published TPC results, nor with figures at another number of warehouses. TPC-C is a trademark of the Transaction "
    "Processing Performance Council."
)


def oltp_of(facts: RunFacts) -> Record:
    """Figures of the run's transactions: those it kept, and of a run cut short those of its last point."""
    points = facts.oltp_points
    found: dict[str, Any] = dict(points[-1].get("oltp") or {}) if points else {}
    kept = {name: value for name, value in (facts.oltp or {}).items() if value not in (None, [], {})}
    return {**(facts.oltp or {}), **found, **kept}


def oltp_point(facts: RunFacts) -> Record | None:
    """Point whose figures stand for the run."""
    return facts.point(oltp_of(facts).get("point_id")) or (facts.oltp_points[-1] if facts.oltp_points else None)


def transaction_name(name: str) -> str:
    """Name of a transaction as people say it."""
    return TRANSACTIONS.get(name, name.replace("_", " "))


def throughput_sentence(facts: RunFacts) -> str | None:
    """The run's transactions in one sentence; None when none were run."""
    found = oltp_of(facts)
    if found.get("nopm") is None:
        return None
    users, warehouses = found.get("users"), found.get("warehouses")
    size = [count_of(users, "user") if users else ""]
    size.append(count_of(warehouses, "warehouse") if warehouses else "")
    latency = (found["by_transaction"].get("new_order") or {}).get("latency_ns") or {}
    tail = f"; 9 of 10 new orders were answered within {format_latency(latency['p90'])}" if latency.get("p90") else ""
    tpm = f" and {found['tpm_client']:,.0f} transactions a minute (TPM)" if found.get("tpm_client") else ""
    where = joined(text for text in size if text)
    return (
        f"{found['nopm']:,.0f} new orders a minute (NOPM){tpm}{f' with {where}' if where else ''}{tail}"
        f" [{found.get('point_id') or DASH}]."
    )


def answer_sentence(answer: Record, stopped: str) -> str:
    """What a search found, in one sentence; `stopped` says what ended it."""
    name, most = shorten(str(answer["workload"].get("name") or "transactions"), 40), answer.get("max")
    if not most:
        return f"{name}: no load was found that meets the limits ({stopped})."
    interval = answer.get("interval_95")
    span = f" (95 % interval {interval[0]:,.0f} to {interval[1]:,.0f})" if interval else ""
    return f"Holds {most['nopm']:,.0f} NOPM{span} with {load_label(most)}; {stopped} [{most.get('point_id') or DASH}]."


def server_text(database: Record) -> str:
    """Kind and version of a server."""
    kind = str(database.get("kind") or DASH)
    names = {"postgresql": "PostgreSQL", "embedded": "embedded PostgreSQL", "mariadb": "MariaDB", "mysql": "MySQL",
             "mssql": "SQL Server"}  # fmt: skip
    return shorten(f"{names.get(kind, kind)} {database.get('version') or ''}".strip(), 60)


def consistency_sentence(conditions: Sequence[Record]) -> tuple[str, Tone]:
    """Whether the consistency conditions hold, in one sentence, and whether that is good."""
    by_id = {condition.get("id") for condition in conditions}
    violated = {condition.get("id") for condition in conditions if condition.get("met") is False}
    if not violated:
        return f"All {len(by_id)} consistency conditions that were checked hold.", "good"
    are = "conditions are" if len(violated) > 1 else "condition is"
    return (
        f"{len(violated)} consistency {are} violated, of {len(by_id)} that were checked: the data are not what the "
        "transactions wrote.",
        "bad",
    )
