"""What a run says of its transactions, and words for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.base.tables import Record
from assay.base.units import count_of, format_latency
from assay.document.elements import Tone
from assay.document.limits import limited_text, nothing_held_text
from assay.document.text import DASH, interval_text, joined, load_label, shorten
from assay.record.answers import answer_words
from assay.record.source import RunFacts, records
from assay.record.standstill import bounded_words
from assay.workloads.databases.in_memory import transactions_in_memory
from assay.workloads.databases.shapes import Storage
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.figures import figures_of, throughput_of


def oltp_points(facts: RunFacts, application: Application) -> list[Record]:
    """Points of transactions, whose `oltp` is there."""
    return [{**point, "oltp": _shaped(point.get("oltp"))} for point in facts.points_of(application.kind)]


def oltp_answers(facts: RunFacts, application: Application) -> list[Record]:
    """Answers of the searches."""
    return [*facts.answers_of(application.kind, application.rate.key)]


def oltp_of(facts: RunFacts, application: Application) -> Record:
    """Figures of the run's transactions: those it kept, and of a run cut short those of its last point."""
    points, told = oltp_points(facts, application), facts.told("oltp")
    if told is None and not points:
        return {}
    found = _shaped(told)
    last: dict[str, Any] = dict(points[-1]["oltp"]) if points else {}
    kept = {name: value for name, value in found.items() if value not in (None, [], {})}
    return {**found, **last, **kept}


def oltp_point(facts: RunFacts, application: Application) -> Record | None:
    """Point whose figures stand for the run."""
    points = oltp_points(facts, application)
    return facts.point(oltp_of(facts, application).get("point_id")) or (points[-1] if points else None)


def _shaped(found: Any) -> Record:
    """Transactions whose lists hold only records, and whose mappings are there."""
    made: dict[str, Any] = {**found} if isinstance(found, Mapping) else {}
    for name in ("gaps", "databases", "statements", "tables", "conditions"):
        made[name] = records(made.get(name))
    by_type = made.get("by_transaction")
    made["by_transaction"] = {
        name: record
        for name, record in (by_type.items() if isinstance(by_type, Mapping) else ())
        if isinstance(record, Mapping)
    }
    for name in ("errors", "storage", "load", "schedule"):
        made[name] = made[name] if isinstance(made.get(name), Mapping) else None
    if made["storage"] is not None:
        made["storage"] = {**made["storage"], "devices": records(made["storage"].get("devices"))}
    return made


def throughput_sentence(facts: RunFacts, application: Application) -> str | None:
    """The run's transactions in one sentence; None when none were run."""
    found = oltp_of(facts, application)
    rate = application.rate
    if found.get(rate.key) is None:
        return None
    users, scale = found.get("users"), found.get(application.tables.scale)
    size = [count_of(users, application.client) if users else ""]
    size.append(application.tables.size.words(scale) if scale else "")
    latency = (found["by_transaction"].get(application.first) or {}).get("latency_ns") or {}
    tail = (
        f"; 9 of 10 {application.first_plural} were answered within {format_latency(latency['p90'])}"
        if latency.get("p90")
        else ""
    )
    tpm = ""
    if application.by_minute and found.get("tpm_client"):
        tpm = f" and {found['tpm_client']:,.0f} transactions a minute (TPM)"
    where = joined(text for text in size if text)
    held = in_memory(found, application.work)
    tail += f"; its data fit in memory: {held}, so that it says little of how the storage reads" if held else ""
    told = f"{rate.number(found[rate.key])} {rate.said}{tpm}{f' with {where}' if where else ''}{tail}"
    told = bounded_words(facts.point(found.get("point_id")) or {}, told)
    return f"{told[:1].upper()}{told[1:]} [{found.get('point_id') or DASH}]."


def in_memory(found: Record, work: str = "transaction") -> str:
    """How few reads a point's work asked of storage, where memory answered them; empty where storage did."""
    storage: Storage = found.get("storage") or {}
    count = (found.get("tpm_client") or 0.0) / 60 * (storage.get("seconds") or 0.0)
    return transactions_in_memory(storage, count, work)


def answer_sentence(answer: Record, application: Application, *, with_ends: bool = True) -> str:
    """What a search found, in one sentence; `with_ends` adds knee, edge and what ended the search."""
    throughput = throughput_of(application)
    name, most = shorten(str(answer["workload"].get("name") or "transactions"), 40), answer.get("max")
    if not most:
        return nothing_held_text(answer, name, throughput.failed)
    span = interval_text(answer.get("interval_95"), "{:,.0f}".format)
    further = ""
    if with_ends:
        ended = limited_text(answer, errors="with more load transactions fail")
        at_ends = [figure for figure in figures_of(application) if figure.at_ends]
        further = f"{answer_words(answer, throughput, at_ends)}; {ended}"
    held = f"{throughput.words(most[throughput.name])}{span} with {load_label(most)}{further}"
    return f"Holds {held} [{most.get('point_id') or DASH}]."


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
