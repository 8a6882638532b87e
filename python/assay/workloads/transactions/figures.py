"""The figures of transactions: their throughput, what users wait, and what the storage under the databases did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

from assay.base.units import count_of, format_latency
from assay.record.common_figures import COMMON_FIGURES, RESPONSE, batches_of, latency_in, scaled_batches
from assay.record.figures import STATISTICS, Figure
from assay.record.served_figures import FAULT_FIGURES
from assay.record.shapes.point import Point
from assay.workloads.databases.figures import cpu_of_server, under
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.shapes import Transaction, number_of, oltp_of, storage_of


def _rate(key: str) -> Callable[[Point], float | None]:
    return lambda point: number_of(oltp_of(point), key)


def _transaction(point: Point, name: str) -> Transaction | None:
    """One kind of transaction; the first of the point where no name is given."""
    found = oltp_of(point).get("by_transaction") or {}
    return found.get(name or next(iter(found), ""))


@cache
def throughput_of(application: Application) -> Figure:
    """Commits of the first transaction, the throughput of an application."""
    rate = application.rate

    def told(point: Point) -> str:
        """What a database did at a given load."""
        oltp = oltp_of(point)
        held = rate.words(number_of(oltp, rate.key) or 0.0)
        by_minute = f" ({tpm_words(oltp['tpm_client'] or 0.0)})" if application.by_minute else ""
        meaning = f"{held}{by_minute} with {count_of(oltp['users'] or 0, application.client)}"
        latency_ns = latency_in(_transaction(point, application.first), "p90")
        names = list(oltp["by_transaction"] or {})
        plural = application.first_plural if application.first or len(names) < 2 else f"passes of {names[0]}"
        return meaning if latency_ns is None else f"{meaning}; {plural} p90 {format_latency(latency_ns)}"

    return Figure(
        name=rate.key,
        unit=rate.unit,
        title=rate.title,
        full=rate.full,
        better="higher",
        value=_rate(rate.key),
        words=rate.words,
        batches=partial(batches_of, direction="total", key=rate.key),
        in_answers=True,
        study=rate.key,
        limit=rate.key,
        told=told,
        failed="transactions failed",
        nothing=f"no {application.first_plural} were committed",
    )


def tpm_words(tpm: float) -> str:
    """Transactions a minute, for people."""
    return f"{tpm:,.0f} TPM"


def _all_of(application: Application) -> Figure:
    """Transactions per minute of all kinds, as the client counts them."""
    return Figure(
        name="tpm",
        unit="tpm",
        title="TPM",
        full="transactions per minute",
        better="higher",
        value=_rate("tpm_client"),
        words=tpm_words,
        batches=lambda point: scaled_batches(point, throughput_of(application), oltp_of(point).get("tpm_client")),
        in_answers=True,
        study="tpm",
        limit="tpm",
        # The mix of transactions is given.
        follows=lambda _point: application.rate.key,
    )


def _lowest(application: Application) -> Figure:
    throughput = throughput_of(application)
    return replace(
        throughput,
        name=f"{throughput.name}_lowest",
        title=f"lowest {throughput.title}",
        noun=f"{throughput.title} in the weakest moment",
        full=f"{throughput.full} in the weakest moment",
        value=lambda point: min(throughput.batches(point), default=None),
        batches=lambda _point: (),
        in_answers=False,
        compared=False,
        study=f"{throughput.name}_lowest",
        limit="",
        told=lambda _point: None,
    )


def _response(application: Application, statistic: str) -> Figure:
    """Response time of the first transaction; a limit judges every kind."""
    is_p90, first = statistic == "p90", application.first
    return replace(
        COMMON_FIGURES[f"{RESPONSE}_{statistic.replace('.', '_')}_ns"],
        noun=f"response time of {application.first_plural} ({statistic})",
        full=f"response time of {application.first_plural}, {statistic}",
        value=lambda point: latency_in(_transaction(point, first), statistic),
        at_ends=is_p90,
        compared=is_p90,
        study="response_p90" if is_p90 else "",
        scopes=lambda point, _role: [
            (name, latency_in(found, statistic), found)
            for name, found in (oltp_of(point).get("by_transaction") or {}).items()
        ],
        record=partial(_transaction, name=first),
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
        limit=f"{name}.p90",
    )


def _latency_under(role: str, side: str) -> Figure:
    name, noun = f"{role}_{side}_latency", f"{role} {side} latency"
    mean = COMMON_FIGURES[f"{side}_latency_mean_ns"]
    return under(
        role, replace(mean, name=f"{name}_mean_ns", title=f"{role} {side}s", noun=noun, full=f"mean {noun}", study=name)
    )


CPU = cpu_of_server(storage_of)
"""The server's share of its host; what the load itself takes does not count against it."""


@cache
def figures_of(application: Application) -> tuple[Figure, ...]:
    """All figures of an application, its throughput first."""
    others = list(application.transactions.items())
    own_first = [replace(_response_of(*others.pop(0)), compared=False)] if others else []
    return (
        throughput_of(application),
        _all_of(application),
        _lowest(application),
        *(_response(application, statistic) for statistic in STATISTICS),
        *own_first,
        *(_response_of(name, title.lower()) for name, title in others),
        _latency_under("data", "read"),
        _latency_under("data", "write"),
        _latency_under("log", "write"),
        *(
            under("data", replace(COMMON_FIGURES[name], compared=False))
            for name in ("iops", "bytes_per_s", "read_latency_mean_ns", "write_latency_mean_ns")
        ),
        CPU,
        *FAULT_FIGURES,
    )
