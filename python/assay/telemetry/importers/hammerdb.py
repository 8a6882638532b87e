"""Logs of HammerDB's transactional test: its transaction counter, its virtual users, and its time profile.

Sources: HammerDB 6.0, `src/generic/gentccmn.tcl`, `src/generic/genvu.tcl`, `modules/xtprof-1.0.tm`, its manual.
Times are as Tcl writes them by default, with the name of a zone, which says its offset for UTC and GMT alone.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import ClassVar, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import Importer, Into, NotTaken, utc_ns
from assay.telemetry.importers.zones import zone_assumed

_TIME = r"[A-Z][a-z]{2} (?P<at>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<zone>\S{1,40}) (?P<year>\d{4})"
_COUNTER_HEAD = re.compile(r"^Hammerdb Transaction Counter Log @", re.MULTILINE)
_COUNT = re.compile(rf"^(?P<count>\d{{1,15}}) (?P<server>\S.{{0,60}}) (?P<what>tpm|qph) @ {_TIME}\s*$", re.ASCII)
_COUNT_UNTIMED = re.compile(r"^\d{1,15} \S.{0,60} (tpm|qph)\s*$", re.ASCII)
_STAMP = re.compile(rf"^Timestamp \d{{1,6}} @ {_TIME}\s*$", re.ASCII)
_LOG_HEAD = re.compile(r"^(Hammerdb Log @|Vuser 1:)", re.MULTILINE)
_RESULT = re.compile(
    r"^Vuser \d{1,6}:TEST RESULT : System achieved (?P<orders>\d{1,15}) \S+ from (?P<transactions>\d{1,15}) .{1,60} TPM"
)
_RESULT_OLDER = re.compile(
    r"^Vuser \d{1,6}:TEST RESULT : System achieved (?P<transactions>\d{1,15}) .{1,60} TPM at (?P<orders>\d{1,15}) \S+"
)
_MINUTES = re.compile(r"^Vuser \d{1,6}:Timing test period of (?P<minutes>\d{1,5}) in minutes")
_PROFILE_HEAD = re.compile(rf"^.{{1,60}} [Hh]ammer[Dd][Bb] Time Profile Report @ {_TIME}\s*$", re.ASCII | re.MULTILINE)
_SUMMARY = re.compile(r"^>>>>> SUMMARY OF \d{1,6} ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : (?P<ms>\d{1,12})ms")
_PROCEDURE = re.compile(r"^>>>>> PROC: (?P<name>[A-Z_]{1,40})\s*$", re.ASCII)
_FIELD = re.compile(r"(?P<name>CALLS|AVG|MAX|P99|P95|P50): (?P<value>\d{1,12}(?:\.\d{1,3})?)(?:ms)?\b", re.ASCII)

_MINUTE_NS = 60 * 10**9
_LATENCIES = {
    "AVG": "latency_mean_ns", "P50": "latency_p50_ns", "P95": "latency_p95_ns", "P99": "latency_p99_ns",
    "MAX": "latency_max_ns",
}  # fmt: skip


class HammerDbCounter(Importer):
    """The transaction counter, which asks the server every few seconds."""

    name: ClassVar[str] = "hammerdb"
    title: ClassVar[str] = "HammerDB transaction counter (hdbtcount.log)"

    def recognises(self, head: str) -> bool:
        """Its first line, or lines of counts."""
        first = head.split("\n", 1)[0]
        return bool(_COUNTER_HEAD.match(first) or _COUNT.match(first))

    def read(self, file: TextIO, into: Into) -> None:
        """Take transactions of each interval.

        Raises
        ------
        NotTaken
            Its lines have no times.
        """
        untimed = 0
        for line in file:
            match = _COUNT.match(line)
            if match is None:
                untimed += _COUNT_UNTIMED.match(line) is not None
                continue
            if match["what"] != "tpm":
                into.taken.ignore("qph", "queries of decision support, which are no transactions")
                continue
            t_ns = _time_ns(match, into)
            interval_ns = None if t_ns is None else into.advance(into.options.host, t_ns)
            if t_ns is None or not interval_ns:
                continue
            count = int(match["count"]) * interval_ns / _MINUTE_NS
            _add([Reading("transactions", "transactions_count", "delta", count)], t_ns, interval_ns, into)
        if untimed and not into.taken.rows:
            raise NotTaken("has no times: let HammerDB write them (tc_log_timestamps of transaction_counter)")
        into.taken.counters["tpm"] = "transactions_count"
        into.taken.note(
            "HammerDB's counter is of the whole server: other sessions count, and so do transactions rolled back; on"
            " SQL Server it counts batches"
        )


class HammerDbLog(Importer):
    """The log of the virtual users, with the result of the test."""

    name: ClassVar[str] = "hammerdb"
    title: ClassVar[str] = "HammerDB log (hammerdb.log)"

    def recognises(self, head: str) -> bool:
        """Its first line, or one of the first virtual user at the beginning."""
        return _LOG_HEAD.search(head[:2000]) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take the result of each test, as one interval.

        Raises
        ------
        NotTaken
            No test ended, or the log says no times.
        """
        t_ns: int | None = None
        minutes = results = 0
        for line in file:
            if (match := _STAMP.match(line)) is not None:
                t_ns = _time_ns(match, into)
            elif (match := _MINUTES.match(line)) is not None:
                minutes = int(match["minutes"])
            elif (match := _RESULT.match(line) or _RESULT_OLDER.match(line)) is not None:
                results += 1
                if t_ns is None or not minutes or into.advance(into.options.host, t_ns) is None:
                    continue
                readings = [
                    Reading("test", "new_orders_count", "delta", float(int(match["orders"]) * minutes)),
                    Reading("test", "transactions_count", "delta", float(int(match["transactions"]) * minutes)),
                ]
                interval_ns = minutes * _MINUTE_NS
                if interval_ns <= t_ns:
                    _add(readings, t_ns, interval_ns, into)
        if not results:
            raise NotTaken("holds no result: no test ended in it, or it was of another workload")
        if not into.taken.rows:
            raise NotTaken(
                "says no times or not how long the test took: log with timestamps (vuset timestamps 1) and a timed test"
            )
        into.taken.counters["System achieved"] = "new_orders_count, transactions_count: rates times the test's minutes"
        into.taken.ignore("lines of other virtual users", "they hold no figures")


class HammerDbProfile(Importer):
    """The time profile: how long calls of each procedure took."""

    name: ClassVar[str] = "hammerdb"
    title: ClassVar[str] = "HammerDB time profile (hdbxtprofile.log)"

    def recognises(self, head: str) -> bool:
        """The head of a report."""
        return _PROFILE_HEAD.search(head[:2000]) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take the summary of all virtual users of each report.

        Raises
        ------
        NotTaken
            It has no summary.
        """
        t_ns = interval_ns = None
        procedure = ""
        fields: dict[str, dict[str, float]] = {}
        for line in file:
            if (match := _PROFILE_HEAD.match(line)) is not None:
                _hand_over(fields, t_ns, interval_ns, into)
                t_ns, interval_ns, procedure, fields = _time_ns(match, into), None, "", {}
            elif (match := _SUMMARY.match(line)) is not None:
                interval_ns, procedure, fields = int(match["ms"]) * 10**6, "", {}
            elif (match := _PROCEDURE.match(line)) is not None:
                procedure = match["name"].lower()
            elif procedure and interval_ns is not None and len(fields) < 100:
                found = {match["name"]: float(match["value"]) for match in _FIELD.finditer(line)}
                fields.setdefault(procedure, {}).update(found)
        _hand_over(fields, t_ns, interval_ns, into)
        if not into.taken.rows:
            raise NotTaken("has no summary of its virtual users: it is cut off")
        into.taken.counters |= {"CALLS": "calls_count", **_LATENCIES}
        into.taken.ignore("VIRTUAL USER", "the summary of all is taken")
        into.taken.ignore("MIN, TOTAL, P75, P25, SD, RATIO", "no use is made of them")
        into.taken.note(
            "a time profile covers the whole test with its ramp-up, and percentiles are those that HammerDB computed"
        )


def _hand_over(fields: dict[str, dict[str, float]], t_ns: int | None, interval_ns: int | None, into: Into) -> None:
    """The procedures of a report."""
    if t_ns is None or not interval_ns or interval_ns > t_ns or not fields:
        return
    if into.advance(into.options.host, t_ns) is None:
        return
    readings = []
    for procedure, found in fields.items():
        if "CALLS" in found:
            readings.append(Reading(procedure, "calls_count", "delta", found["CALLS"]))
        readings += [
            Reading(procedure, metric, "gauge", found[name] * 1e6)
            for name, metric in _LATENCIES.items()
            if name in found
        ]
    _add(readings, t_ns, interval_ns, into)


def _time_ns(match: re.Match[str], into: Into) -> int | None:
    """A time of Tcl's clock; None for one that no calendar has."""
    try:
        at = datetime.strptime(f"{match['at']} {match['year']}", "%b %d %H:%M:%S %Y")
    except ValueError:
        return None
    if match["zone"] in ("UTC", "GMT", "Z"):
        return utc_ns(at.replace(tzinfo=UTC))
    why = f"the file names its time zone {match['zone']}, which says no offset"
    return utc_ns(at.replace(tzinfo=zone_assumed(into.options, into.taken, why)))


def _add(readings: list[Reading], t_ns: int, interval_ns: int, into: Into) -> None:
    into.add(
        readings, host=into.options.host, t_ns=t_ns, interval_ns=interval_ns, tier="application", source="hammerdb"
    )
