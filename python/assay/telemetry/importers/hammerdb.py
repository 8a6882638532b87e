"""Logs of HammerDB's transactional test: its transaction counter, its virtual users, and its time profile.

Sources: HammerDB 6.0, `src/generic/gentccmn.tcl`, `src/generic/genvu.tcl`, `modules/xtprof-1.0.tm`, its manual.
Times are as Tcl writes them by default, with the name of a zone, which says its offset for UTC and GMT alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.clock import Untimed
from assay.telemetry.importers.importer import Importer, Into, NotTaken, utc_ns
from assay.telemetry.importers.taken import NO_USE, TakenFile
from assay.telemetry.importers.zones import zone_assumed

_TIME = r"[A-Z][a-z]{2} (?P<at>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<zone>\S{1,40}) (?P<year>\d{4})"
_COUNTER_HEAD = re.compile(r"^Hammerdb Transaction Counter Log @", re.MULTILINE)
_COUNT = re.compile(rf"^(?P<count>\d{{1,15}}) (?P<server>\S.{{0,60}}) (?P<what>tpm|qph) @ {_TIME}\s*$", re.ASCII)
_COUNT_UNTIMED = re.compile(r"^(?P<count>\d{1,15}) \S.{0,60} (?P<what>tpm|qph)\s*$", re.ASCII)
_STAMP = re.compile(rf"^Timestamp \d{{1,6}} @ {_TIME}\s*$", re.ASCII)
_LOG_HEAD = re.compile(r"^(Hammerdb Log @|HammerDB CLI v\d|Vuser \d{1,6}:|TEST RESULT : System)", re.MULTILINE)
_RESULT = re.compile(
    r"^(?:Vuser \d{1,6}:)?TEST RESULT : System achieved (?P<orders>\d{1,15}) \S+ from (?P<transactions>\d{1,15})"
    r" .{1,60} TPM"
)
_RESULT_OLDER = re.compile(
    r"^(?:Vuser \d{1,6}:)?TEST RESULT : System achieved (?P<transactions>\d{1,15})"
    r" .{1,60} TPM at (?P<orders>\d{1,15}) \S+"
)
_MINUTES = re.compile(r"^(?:Vuser \d{1,6}:)?Timing test period of (?P<minutes>\d{1,5}) in minutes")
_RAMP = re.compile(r"^(?:Vuser \d{1,6}:)?Beginning rampup time of (?P<minutes>\d{1,5}) minutes?")
_RESULT_LIKE = re.compile(r"TEST RESULT :")
_PROFILE_HEAD = re.compile(rf"^.{{1,60}} [Hh]ammer[Dd][Bb] Time Profile Report @ {_TIME}\s*$", re.ASCII | re.MULTILINE)
_SUMMARY = re.compile(r"^>>>>> SUMMARY OF \d{1,6} ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : (?P<ms>\d{1,12})ms")
_PROCEDURE = re.compile(r"^>>>>> PROC: (?P<name>[A-Z_]{1,40})\s*$", re.ASCII)
_FIELD = re.compile(r"(?P<name>[A-Z][A-Z0-9]{0,9}): (?P<value>\d{1,15}(?:\.\d{1,9})?)(?:ms|%)?(?=[A-Z]|\s|$)", re.ASCII)
"""A field of a procedure; copying loses the tabs between them."""
_FIELDS_NOT_USED = frozenset({"MIN", "TOTAL", "P75", "P25", "SD", "RATIO"})

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
        return bool(_COUNTER_HEAD.match(first) or _COUNT.match(first) or _COUNT_UNTIMED.match(first))

    def read(self, file: TextIO, into: Into) -> None:
        """Take transactions of each interval.

        Raises
        ------
        NotTaken
            Its lines have no times.
        """
        taken, host = into.taken, into.options.host
        untimed = Untimed(into, "tc_log_timestamps of HammerDB's transaction counter")
        for line in file:
            match = _COUNT.match(line)
            plain = _COUNT_UNTIMED.match(line) if match is None else None
            if match is None and plain is None:
                if line[:1].isdigit():
                    taken.not_understood("lines of the counter", line)
                continue
            found = match or plain
            if found is None or found["what"] != "tpm":
                taken.ignore("qph", "queries of decision support, which are no transactions", 1)
                continue
            t_ns = _time_ns(match, into) if match is not None else untimed.next_ns()
            interval_ns = None if t_ns is None else into.advance(host, t_ns)
            if t_ns is None or not interval_ns:
                taken.ignore("tpm of the first line", "it does not say when its interval began", 1)
                continue
            taken.take("tpm", "transactions_count")
            count = int(found["count"]) * interval_ns / _MINUTE_NS
            _add([Reading("transactions", "transactions_count", "delta", count)], t_ns, interval_ns, into)
        into.taken.note(
            "HammerDB's counter is of the whole server: other sessions count, and so do transactions rolled back; on"
            " SQL Server it counts batches"
        )


class HammerDbLog(Importer):
    """The log of the virtual users, with the result of the test."""

    name: ClassVar[str] = "hammerdb"
    title: ClassVar[str] = "HammerDB log (hammerdb.log)"

    def recognises(self, head: str) -> bool:
        """Its first line, that of the console, or one of a virtual user."""
        return _LOG_HEAD.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take the result of each test, as one interval.

        Raises
        ------
        NotTaken
            No test ended, or the log says no times.
        """
        stamp_ns: int | None = None
        end_ns = into.options.start_ns or 0
        minutes = ramp = results = 0
        taken = into.taken
        for line in file:
            if (match := _STAMP.match(line)) is not None:
                stamp_ns = _time_ns(match, into)
            elif (match := _RAMP.match(line)) is not None:
                ramp = int(match["minutes"])
            elif (match := _MINUTES.match(line)) is not None:
                minutes = int(match["minutes"])
            elif (match := _RESULT.match(line) or _RESULT_OLDER.match(line)) is not None:
                results += 1
                if stamp_ns is None and into.options.start_ns is not None and results > 1:
                    taken.ignore("later tests", "the log does not say when they began", 2)
                    continue
                end_ns += (ramp + minutes) * _MINUTE_NS
                self._result(match, minutes, end_ns if stamp_ns is None else stamp_ns, into)
                if stamp_ns is None and into.options.start_ns is None:
                    taken.note(
                        "says no times: its test is placed by its ramp-up and length alone (--start says when that"
                        " began; vuset timestamps 1 lets HammerDB write times)"
                    )
            elif _RESULT_LIKE.search(line):
                taken.not_understood("results of a test", line)
        if not results:
            raise NotTaken("holds no result: no test ended in it, or it was of another workload")
        if not taken.rows:
            raise NotTaken("does not say how long the test took: run a timed test (driver timed)")
        taken.ignore("lines of other virtual users", "they hold no figures")

    def _result(self, match: re.Match[str], minutes: int, t_ns: int, into: Into) -> None:
        """Hand over the result of a test as one interval."""
        interval_ns = minutes * _MINUTE_NS
        if not 0 < interval_ns <= t_ns or into.advance(into.options.host, t_ns) is None:
            into.taken.ignore("System achieved, of a test without a time or length", "its interval is not known", 2)
            return
        into.taken.take("System achieved", "new_orders_count, transactions_count: rates times the test's minutes", 2)
        readings = [
            Reading("test", "new_orders_count", "delta", float(int(match["orders"]) * minutes)),
            Reading("test", "transactions_count", "delta", float(int(match["transactions"]) * minutes)),
        ]
        _add(readings, t_ns, interval_ns, into)


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
        report = _Report()
        taken = into.taken
        for line in file:
            if (match := _PROFILE_HEAD.match(line)) is not None:
                report.hand_over(into)
                report = _Report(t_ns=_time_ns(match, into))
            elif (match := _SUMMARY.match(line)) is not None:
                report.interval_ns, report.procedure, report.fields = int(match["ms"]) * 10**6, "", {}
            elif (match := _PROCEDURE.match(line)) is not None:
                report.procedure = match["name"].lower()
            elif report.procedure and line[:1].isupper():
                report.take(line, taken)
            elif report.interval_ns is None:
                values = sum(1 for _ in _FIELD.finditer(line))
                if values:
                    taken.ignore("VIRTUAL USER", "the summary of all is taken", values)
        report.hand_over(into)
        if not taken.rows:
            raise NotTaken("has no summary of its virtual users: it is cut off")
        taken.ignore("VIRTUAL USER", "the summary of all is taken")
        taken.note(
            "a time profile covers the whole test with its ramp-up, and percentiles are those that HammerDB computed"
        )


@dataclass
class _Report:
    """One report of a time profile."""

    t_ns: int | None = None
    interval_ns: int | None = None
    procedure: str = ""
    fields: dict[str, dict[str, float]] = field(default_factory=dict)

    def take(self, line: str, taken: TakenFile) -> None:
        """Read a line of `name: value` fields; other text is counted as not understood."""
        found = list(_FIELD.finditer(line))
        if self.interval_ns is None:
            taken.ignore("VIRTUAL USER", "the summary of all is taken", len(found))
            return
        for one in found:
            name = one["name"]
            if name not in _LATENCIES and name != "CALLS":
                taken.ignore(name, NO_USE if name in _FIELDS_NOT_USED else "it is not known", 1)
            elif len(self.fields) < 100 and name not in self.fields.setdefault(self.procedure, {}):
                self.fields[self.procedure][name] = float(one["value"])
            else:
                taken.not_understood(f"{name} twice", line)
        rest = _FIELD.sub("", line).strip()
        if ":" in rest:
            taken.not_understood("fields of a procedure", rest, rest.count(":"))

    def hand_over(self, into: Into) -> None:
        """The procedures of the report."""
        values = sum(len(found) for found in self.fields.values())
        t_ns, interval_ns = self.t_ns, self.interval_ns
        if not values:
            return
        if t_ns is None or not interval_ns or interval_ns > t_ns or into.advance(into.options.host, t_ns) is None:
            into.taken.ignore("reports without a time", "nothing says when they were", values)
            return
        readings = []
        for procedure, found in self.fields.items():
            for name, value in found.items():
                metric = "calls_count" if name == "CALLS" else _LATENCIES[name]
                into.taken.take(name, metric)
                is_count = name == "CALLS"
                readings.append(
                    Reading(procedure, metric, "delta" if is_count else "gauge", value * (1 if is_count else 1e6))
                )
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
