"""What transactions say in the sections that all kinds share."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.tables import Record
from assay.base.units import format_latency
from assay.document.advice import limiting_text, next_texts, running_text
from assay.document.elements import Cell, Column, Paragraph, Table
from assay.document.point_cells import errors_cell, limits_cell, steady_cell
from assay.document.remarks import WORDS, Remarks, Word
from assay.document.text import DASH, joined, latency_of, latency_text, load_label, percent, shorten
from assay.record.source import RunFacts
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.figures import CPU, throughput_of
from assay.workloads.transactions.report.study import study_figures
from assay.workloads.transactions.report.timeline import waited_words
from assay.workloads.transactions.report.transactions import (
    answer_sentence,
    consistency_sentence,
    in_memory,
    oltp_answers,
    oltp_of,
    oltp_point,
    oltp_points,
    throughput_sentence,
)

OWN_WORDS: tuple[Word, ...] = (
    ("TPM", "transactions in a minute, user rollbacks included"),
    ("users", "sessions that run one transaction after the other, or the places in which a rate is served"),
    ("response", "from the first attempt's start to the answer to the commit; with a rate, from when it was due"),
    ("retried, failed", "attempts repeated after a deadlock or serialisation failure; transactions given up"),
    ("log flush", "bringing the log of a commit to storage, which the commit waits for"),
)

CPU_LIMIT = CPU.limit
"""What limits call the CPU of the server."""

SHARED_HOST = (
    "The server's CPU is busier than its limit, which is not the storage's fault: the load and the database share this"
    " host and take its processors from each other."
)
LOAD_LARGE_SHARE = 0.1
"""The load takes from the server where its threads use this share of the host: half of what `cpu<80%` leaves."""
REMOTE_LOAD = "Run the load from another host, so that the database has its processors to itself, and judge again."

BACKGROUND = {"checkpoint": "a checkpoint", "vacuum": "vacuum of all tables", "backup": "a base backup"}
"""What went on beside the transactions, as people say it."""


def transaction_remarks(facts: RunFacts, application: Application) -> Remarks:
    """Build the remarks."""
    points = oltp_points(facts, application)
    sentences = [answer_sentence(answer, application, with_ends=False) for answer in oltp_answers(facts, application)]
    held = throughput_sentence(facts, application) if points else None
    headlines = [Paragraph(text, strong=True) for text in (*sentences, *([held] if held else []))]
    if conditions := oltp_of(facts, application).get("conditions"):
        text, tone = consistency_sentence(conditions)
        headlines.append(Paragraph(text, strong=True, tone=tone))
    answers, not_storage = oltp_answers(facts, application), _not_storage(facts, application)
    throughput = throughput_of(application)

    def name(answer: Record) -> str:
        return shorten(str(answer["workload"].get("name") or application.name), 60)

    def response(point: Record) -> str | None:
        """How long nine of ten of the first transactions take."""
        record = (point["oltp"].get("by_transaction") or {}).get(application.first)
        if latency_of(record, "p90") is None:
            return None
        return f"{latency_text(record, 'p90')} for 9 of 10 {application.first_plural}"

    is_busy = _is_local(facts) and _misses(points, CPU_LIMIT, answers)
    shared = bool(not_storage) and is_busy
    # Searches of transactions whose data came from memory give no advice about storage.
    advised = [] if points and all(in_memory(point["oltp"]) for point in points) else answers
    return Remarks(
        headlines=headlines,
        limiting=[
            *([SHARED_HOST] if shared else [_busy_host(facts, application)] if is_busy else []),
            *(said for answer in advised if (said := limiting_text(answer, name(answer)))),
        ],
        running=[
            said for answer in answers if (said := running_text(facts, answer, throughput, name(answer), response))
        ],
        next_steps=[
            *([REMOTE_LOAD] if shared else []),
            *next_texts(facts, application.kind, advised, name, not_storage),
        ],
        not_storage=not_storage,
        study=_states(facts, points),
        study_figures=study_figures(facts, application),
        method=[application.disclaimer_sentences],
        points=point_table(points, application),
        words=((application.rate.title, application.rate.full), *OWN_WORDS, *WORDS),
    )


def _not_storage(facts: RunFacts, application: Application) -> dict[str, str]:
    """The limit on the server's CPU, where the load runs on the server's own host and takes much of it."""
    shares = [_load_share(facts, point) for point in oltp_points(facts, application)]
    known = [share for share in shares if share is not None]
    takes = bool(known) and max(known) >= LOAD_LARGE_SHARE
    return {CPU_LIMIT: SHARED_HOST} if takes and _is_local(facts) else {}


def _is_local(facts: RunFacts) -> bool:
    """Whether the load runs on the servers' own host."""
    databases = (facts.manifest.get("target") or {}).get("databases") or []
    return bool(databases) and all(one.get("is_local") for one in databases)


def _load_share(facts: RunFacts, point: Record) -> float | None:
    """The share of the host's processors that the threads of the load used; None where it is not known."""
    found, processors = point["oltp"], (facts.manifest.get("host") or {}).get("cpu_count")
    each, tpm = found.get("client_cpu_ns_per_transaction"), found.get("tpm_client")
    return None if each is None or tpm is None or not processors else each * tpm / 60 / 1e9 / processors


def _busy_host(facts: RunFacts, application: Application) -> str:
    """What is known where processors are busy, and the load is not shown to be why."""
    point = oltp_point(facts, application) or {}
    found: Record = {**(point.get("oltp") or {})}
    busy = (found.get("storage") or {}).get("server_cpu_share")
    load = _load_share(facts, {"oltp": found})
    without = "" if load is None else f" without the load's {percent(load)}"
    share = "" if busy is None else f": {percent(busy)}{without}"
    waited = waited_words(facts, point)
    return (
        f"The processors of this host are busier than the server's limit{share}. How much of that is the database's is"
        f" not known, for other programs run here too; {waited or 'what sessions waited for was not recorded'}."
    )


def _misses(points: Sequence[Record], metric: str, answers: Sequence[Record]) -> bool:
    """Whether a search ended at a limit on a metric, or a point misses it."""
    ends = [str(answer.get("limited_by") or "") for answer in answers]
    missed = [str(one.get("limit")) for point in points for one in point.get("limits") or [] if one.get("met") is False]
    return any(text.startswith((f"{metric}<", f"{metric} ")) for text in (*ends, *missed))


def _states(facts: RunFacts, points: list[Record]) -> list[str]:
    """The state of the databases at the levels, and what went on beside the transactions."""
    parts = facts.manifest.get("parts") or []
    titles = {part.get("name"): str(part.get("title")) for part in parts}
    notices = facts.manifest.get("notices") or []
    texts = []
    restores = {(part.get("plan") or {}).get("restores") for part in parts}
    if restores <= {"always", "possible"} and not any("the same state" in str(notice) for notice in notices):
        texts.append(
            "Every level started from the same saved state of the database, with nothing in its own cache before the"
            " warm-up."
        )
    done = {
        titles.get(str(point.get("part")), ""): joined(
            f"{one['count']:,} times {BACKGROUND.get(one['kind'], one['kind'])}" for one in beside
        )
        for point in points
        if (beside := point["oltp"].get("background"))
    }
    if done:
        listed = "; ".join(f"{title}: {counts}" for title, counts in done.items())
        texts.append(f"Finished beside the transactions of the window: {listed}.")
    return texts


def point_table(points: list[Record], application: Application) -> Table | None:
    """The table of all points; None where there is none."""
    if not points:
        return None
    columns = [
        Column("Point", weight=0.85), Column("Workload", weight=1.6), Column("Load", weight=1.3),
        *(Column(name, number=True, weight=0.95) for name in
          (application.rate.title, "TPM", "p50", "p90", "p99", "Max", "Retried", "Server CPU", "Log flush")),
        Column("Steady", weight=1.6), Column("Failed", number=True, weight=0.75), Column("Limits", weight=2.0),
    ]  # fmt: skip
    rows = []
    for point in points:
        found, point_id = point["oltp"], str(point.get("id") or DASH)
        first, storage = found["by_transaction"].get(application.first), found["storage"] or {}
        retried = sum(record.get("retried") or 0 for record in found["by_transaction"].values())
        flush_ns = storage.get("log_flush_latency_mean_ns")
        rows.append(
            [
                Cell(point_id, anchor=point_id),
                Cell(shorten(str(point["workload"].get("name") or application.name), 40)),
                Cell(load_label(point["load"])),
                *(_number(found.get(key)) for key in (application.rate.key, "tpm_client")),
                *(Cell(latency_text(first, name)) for name in ("p50", "p90", "p99", "max")),
                Cell(f"{retried:,}"),
                Cell(percent(storage.get("server_cpu_share"))),
                Cell(DASH if flush_ns is None else format_latency(flush_ns)),
                steady_cell(point),
                errors_cell(point),
                limits_cell(point),
            ]
        )
    caption = f"Points of transactions in the order they ended; response times of {application.first_plural}."
    return Table("oltp-points", caption, columns, rows, dense=True)


def _number(value: float | None) -> Cell:
    if value is None:
        return Cell(DASH)
    return Cell(f"{value:,.0f}" if value >= 100 else f"{value:,.1f}")
