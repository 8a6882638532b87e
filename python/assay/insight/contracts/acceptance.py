"""An acceptance test of a contract, judged from the points of its run: each clause met, missed or unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from assay.base.paths import printable
from assay.base.reading import read_text, table_of
from assay.base.tables import Record
from assay.base.units import format_decimal, format_duration, format_iops, format_latency, format_throughput
from assay.document.text import joined
from assay.insight.calibration.rebuild import mean_over_outer
from assay.insight.contracts.asked_loads import (
    DEGRADED,
    LOSS,
    REBUILD,
    STATE_WORDS,
    AskedLoads,
    does_not_count,
    load_words,
    promised_rate,
)  # fmt: skip
from assay.insight.contracts.contract import LatencyClause, StorageContract, contract_of
from assay.insight.contracts.document import verdict_sentence
from assay.insight.contracts.judge import JudgedClause
from assay.insight.contracts.others import ClauseFinding, RecordedFacts
from assay.insight.contracts.words import (
    iops_least,
    iops_words,
    latency_words,
    single_words,
    throughput_words,
)  # fmt: skip
from assay.record.common_figures import COMMON_FIGURES
from assay.record.figures import PERCENTILES
from assay.record.histograms import histogram_of
from assay.record.intervals import percentile_interval, relative_error
from assay.record.judgement import judge, together, unknown_words
from assay.record.limits import parse_limits
from assay.record.shapes.acceptance import (
    AcceptanceClause,
    AcceptanceEvidence,
    AcceptanceLoad,
    AcceptanceMount,
    AcceptanceTest,
)  # fmt: skip
from assay.record.shapes.point import Answer, Point
from assay.record.student import quantile
from assay.run.needed import NOT_STORAGE
from assay.targets.arrays.model.configuration import configure
from assay.targets.arrays.model.options import parse_model_target
from assay.targets.files.spec import is_model
from assay.workloads.capabilities import Verifying
from assay.workloads.registry import workloads

TEST_STATES = {True: "met", False: "missed", None: "unknown"}
"""What a test calls clauses; of a recording those that are not met are breached."""
ANY_LOAD = "it is promised for every load, and a test measures one; give the clause iops or iops_per_tb"
NOT_REACHED = "larger loads were not tried"
NOT_A_TEST = "a test of minutes says nothing of it; assay contract judge judges it over a recording"
NOT_MEASURED = "it was not measured to its end"
USED_ROWS = "a served array rebuilds the rows that volumes lie on; a whole disk takes longer"
BETWEEN = "at rest it is within the limit, under load it is not, and the contract does not say which is meant"


def read_terms(path: Path) -> tuple[str, StorageContract]:
    """A contract, and the text of its file.

    Raises
    ------
    UsageError
        The file cannot be read, or is no contract; the message names line or key.
    """
    source = f"contract {printable(path)}"
    text = read_text(path, source)
    return text, contract_of(table_of(text, source), str(path))


def begun(
    source: str, terms: str, contract: StorageContract, asked: AskedLoads, mounts: Sequence[AcceptanceMount]
) -> AcceptanceTest:
    """What the manifest says of a test before anything is measured."""
    return {
        "source": source, "terms": terms, "title": contract.title, "vendor": contract.vendor,
        "reference": contract.reference, "loads": asked.loads, "lacking": asked.lacking, "mounts": [*mounts],
    }  # fmt: skip


def judged_test(manifest: Record, points: Sequence[Point], answers: Sequence[Answer]) -> AcceptanceTest:
    """The test of a run with every clause judged, and the verdict in a sentence.

    Raises
    ------
    UsageError
        The manifest's contract is none.
    """
    test: AcceptanceTest = manifest["contract"]
    contract = contract_of(table_of(test["terms"], test["source"]), test["source"])
    clauses = [*_Findings(contract, test, manifest, points, answers).clauses()]
    return {**test, "clauses": clauses, "sentence": verdict_sentence(judged_clauses(clauses), TEST_STATES[False])}


def judged_clauses(clauses: Iterable[AcceptanceClause]) -> list[JudgedClause]:
    """Clauses as pages of contracts show them."""
    return [
        JudgedClause(one["kind"], one["name"], one["promise"], one["met"], one["found"], one["why"]) for one in clauses
    ]


@dataclass(frozen=True)
class _Findings:
    """A contract, and what was measured for it."""

    contract: StorageContract
    test: AcceptanceTest
    manifest: Record
    points: Sequence[Point]
    answers: Sequence[Answer]

    def clauses(self) -> Iterator[AcceptanceClause]:
        """Every clause, in the order of the contract's file."""
        contract = self.contract
        for latency in contract.latency:
            yield self._latency(latency)
        for iops in contract.iops:
            reason = does_not_count(contract, iops)
            least, promise = iops_least(contract, iops), iops_words(contract, iops)
            yield self._most("iops", iops.name, promise, least, reason)
        for moved in contract.throughput:
            yield self._most("throughput", moved.name, throughput_words(moved), moved.least)
        facts = RecordedFacts(contract)
        if contract.capacity is not None:
            yield self._single("capacity", self._capacity(facts))
        if contract.rebuild is not None:
            yield self._rebuild(contract.rebuild.most)
        if contract.availability is not None:
            yield self._single("availability", ClauseFinding(None, "not tested", NOT_A_TEST))
        if contract.power is not None:
            yield self._single("power", facts.power_finding())
        if contract.loss is not None:
            yield self._single("loss", self._loss())

    def _loads(self, clause: str) -> list[AcceptanceLoad]:
        return [one for one in self.test["loads"] if one["clause"] == clause]

    def _of_part(self, part: str) -> list[Point]:
        return [one for one in self.points if one["part"] == part and one["ended_by"] != "interrupted"]

    def _single(self, kind: str, found: ClauseFinding) -> AcceptanceClause:
        return {
            "kind": kind, "name": kind, "promise": single_words(self.contract, kind), "met": found.met,
            "found": found.found, "why": found.why, "evidence": [],
        }  # fmt: skip

    # Latency

    def _latency(self, clause: LatencyClause) -> AcceptanceClause:
        found = _clause("latency", clause.name, latency_words(self.contract, clause))
        if reason := does_not_count(self.contract, clause):
            return found | {"found": "not tested", "why": f"{reason}, so that nothing of it would count"}
        evidence = [
            _latency_evidence(clause, point, load)
            for load in self._loads(clause.name)
            for point in self._of_part(load["part"])
        ]
        if not evidence:
            return found | {"found": "not measured", "why": NOT_MEASURED}
        counted = [one for one in evidence if one["state"] == "whole" or self.contract.test.degraded == "counts"]
        met, why = together(one["met"] for one in counted), ""
        if met and promised_rate(self.contract, clause) is None:
            met, why = None, ANY_LOAD
        elif met is None:
            why = next(one["why"] for one in counted if one["met"] is None)
        return found | {"met": met, "why": why, "evidence": evidence, "found": self._latency_found(clause, evidence)}

    def _latency_found(self, clause: LatencyClause, evidence: Sequence[AcceptanceEvidence]) -> str:
        said = []
        for state in ("whole", "degraded"):
            own = [one for one in evidence if one["state"] == state]
            if not own:
                continue
            worst = max(own, key=lambda one: (one["met"] is False, one["value"] or 0.0))
            text = f"{clause.statistic} {_measured_words(worst)} at {worst['asked']}"
            text += f", {worst['served']}" if worst.get("served") else ""
            said.append(text if state == "whole" else f"{STATE_WORDS[state]}: {text}")
        if DEGRADED in self.test["lacking"] and self.contract.test.degraded != "no":
            said.append("not tested with a disk lost")
        return "; ".join(said)

    # I/Os and bytes a second

    def _most(self, kind: str, name: str, promise: str, least: float, reason: str = "") -> AcceptanceClause:
        found = _clause(kind, name, promise)
        if reason:
            return found | {"found": "not tested", "why": f"{reason}, so that nothing of it would count"}
        parts = {one["part"] for one in self._loads(name)}
        answer = next((one for one in self.answers if one["part"] in parts), None)
        if answer is None:
            return found | {"found": "not measured", "why": NOT_MEASURED}
        best = answer["max"]
        if best is None or best.get("iops") is None:
            ended_by = answer.get("limited_by") or "nothing was measured"
            if ended_by in NOT_STORAGE:
                return found | {"found": "not measured", "why": "; ".join(NOT_STORAGE[ended_by])}
            return found | {"met": False, "found": f"no load was served: {ended_by}"}
        return self._reached(found, answer, least)

    def _reached(self, clause: AcceptanceClause, answer: Answer, least: float) -> AcceptanceClause:
        best = answer["max"]
        assert best is not None
        point = next((one for one in self.points if one["id"] == best.get("point_id")), None)
        iops = best.get("iops") or 0.0
        total: Record = (point["total"] if point is not None else None) or {}
        scale, unit = 1.0, "iops"
        if clause["kind"] == "throughput":
            scale, unit = (total.get("bytes_per_s") or 0.0) / (total.get("iops") or math.inf), "bytes_per_s"
        interval, band = _scaled(answer.get("interval_95"), scale), _scaled(answer.get("band_90"), scale)
        met, why = _reaches(iops * scale, interval, band, least, str(answer.get("limited_by") or ""), unit)
        asked = f"{best.get('outstanding') or best.get('queue_depth'):,} outstanding"
        one: AcceptanceEvidence = {
            "asked": asked, "state": "whole", "value": iops * scale, "unit": unit, "interval_95": interval, "met": met,
            "why": why, "point_id": best.get("point_id"),
        }  # fmt: skip
        found = f"at most {_measured_words(one)} with {asked}"
        if band:
            found += f"; the model's 90 % band {value_words(band[0], unit)} to {value_words(band[1], unit)}"
        return clause | {"met": met, "why": why, "evidence": [one], "found": found}

    # Once in a contract

    def _capacity(self, facts: RecordedFacts) -> ClauseFinding:
        assert self.contract.capacity is not None
        if self.contract.capacity.mounts:
            sizes = {one["path"]: float(one["size_bytes"]) for one in self.test["mounts"] if one["size_bytes"]}
            if lacking := [path for path in self.contract.capacity.mounts if path not in sizes]:
                return ClauseFinding(None, "not all sizes were read", f"{joined(lacking)} is not mounted on this host")
            return facts.capacity_finding(sizes)
        target = self.manifest.get("target") or {}
        array = target.get("array") or next(iter(target.get("served") or ()), None)
        volumes = target.get("volumes") or []
        if array is not None and array.get("usable_bytes"):
            size, words = float(array["usable_bytes"]), "usable, as the model lays it out"
        elif volumes and all(one.get("kind") == "device" for one in volumes):
            size, words = math.fsum(one.get("size_bytes") or 0 for one in volumes), "in the devices under test"
        else:
            return facts.capacity_finding({})
        return ClauseFinding(size >= self.contract.capacity.least, f"{format_decimal(size)} {words}")

    def _loss(self) -> ClauseFinding:
        if reason := self.test["lacking"].get(LOSS):
            return ClauseFinding(None, "not tested", reason)
        checked = next((one for one in workloads() if isinstance(one, Verifying)), None)
        if checked is None or not self.manifest.get(checked.document_key):
            return ClauseFinding(None, "not measured", NOT_MEASURED)
        told = checked.conclude([], self.manifest)
        line = next(iter([*told.first, *told.last]))
        found = f"{line['meaning']}; no power was cut" if line["met"] else str(line["meaning"])
        return ClauseFinding(line["met"], found, NOT_MEASURED if line["met"] is None else "")

    def _rebuild(self, most_s: float) -> AcceptanceClause:
        found = _clause("rebuild", REBUILD, single_words(self.contract, "rebuild"))
        if reason := self.test["lacking"].get(REBUILD):
            return found | {"found": "not tested", "why": reason}
        evidence = [
            self._rebuild_evidence(point, most_s, load["part"])
            for load in self._loads(REBUILD)
            for point in self._of_part(load["part"])
        ]
        if not evidence or any(one["value"] is None for one in evidence):
            why = next((one["why"] for one in evidence if one["value"] is None), NOT_MEASURED)
            return found | {"found": "not measured", "why": why, "evidence": evidence}
        mets = [one["met"] for one in evidence]
        met = False if mets[0] is False else mets[-1] or None
        why = "" if met is not None else BETWEEN if False in mets else evidence[-1]["why"]
        said = "; ".join(f"{format_duration(one['value'] or 0.0)} {one['asked']}" for one in evidence)
        return found | {"met": met, "why": why, "evidence": evidence, "found": said}

    def _rebuild_evidence(self, point: Point, most_s: float, part: str) -> AcceptanceEvidence:
        load: Record = point["load"]
        asked = "at rest" if part == "rebuild-at-rest" else f"under {format_iops(load.get('rate') or 0.0)} IOPS"
        asked += f", of which {_unserved(point).partition(' of ')[0]} were served" if _unserved(point) else ""
        one: AcceptanceEvidence = {
            "asked": asked, "state": "rebuilding", "value": None, "unit": "s", "interval_95": None, "met": None,
            "why": "the rebuild did not end, or did not begin, while it was measured", "point_id": point["id"],
        }  # fmt: skip
        value = (point.get("array") or {}).get("rebuild_s")
        if value is not None:
            value /= self._mean_over_outer(part)
            return one | {"value": value, "met": value <= most_s, "why": ""}
        seen_s = _rebuilt_s(point)
        if seen_s is None:
            return one
        met = False if seen_s > most_s else None
        return one | {"asked": f"{asked}, the rows in use", "value": seen_s, "met": met, "why": USED_ROWS}

    def _mean_over_outer(self, part: str) -> float:
        """Mean rate of a disk over that of its outermost tracks, which are rebuilt first."""
        text = next((one.get("target") for one in self.manifest["parts"] if one["name"] == part), None)
        return mean_over_outer(configure(*parse_model_target(text))) if text and is_model(text) else 1.0


def _clause(kind: str, name: str, promise: str) -> AcceptanceClause:
    return {"kind": kind, "name": name, "promise": promise, "met": None, "found": "", "why": "", "evidence": []}


# Measurements


def _latency_evidence(clause: LatencyClause, point: Point, load: AcceptanceLoad) -> AcceptanceEvidence:
    """A point of a clause of latency: its statistic over all volumes, with its interval, against the limit."""
    name = f"{clause.direction}_latency_{clause.statistic.replace('.', '_')}_ns"
    figure = replace(COMMON_FIGURES[name], scopes=None)
    limits = parse_limits([f"{clause.direction}.{clause.statistic}<={clause.most:.0f}ns"])
    (judged,) = judge(limits, point, [figure])
    value, met, why = judged.get("value"), judged["met"], ""
    interval = None if value is None else latency_interval(point, clause.direction, clause.statistic)
    if met is None:
        why = unknown_words(judged.get("reason"), judged.get("why")).removeprefix("unknown: ")
    elif count := point["errors"]["count"]:
        met, why = False, f"{count:,} I/Os failed"
    elif unserved := _unserved(point):
        # I/Os wait longer the longer the point lasts: no interval is that of the storage.
        met, why, interval = False, f"the storage does not serve the load that it is promised for: {unserved}", None
    elif interval is not None and interval[0] <= clause.most < interval[1]:
        met, why = None, f"the 95 % interval, {interval_words(interval, 'ns')}, holds the limit"
    return {
        "asked": _point_words(point), "state": load["state"], "value": value, "unit": "ns",
        "interval_95": interval, "met": met, "why": why, "point_id": point["id"], "served": _unserved(point),
    }  # fmt: skip


def _unserved(point: Point) -> str:
    """How much of an open load was served, where that is less than was asked for; empty elsewhere."""
    offered, total = point.get("offered"), point.get("total")
    if not offered or offered.get("sustained") is not False:
        return ""
    served = total["iops"] if total else 0.0
    return f"{format_iops(served)} of {format_iops(offered.get('rate') or 0.0)} IOPS were served"


def _point_words(point: Point) -> str:
    workload: Record = point["workload"]
    load: Record = point["load"]
    block, read, random = (float(workload.get(key) or 0.0) for key in ("block_bytes", "read_share", "random_share"))
    return load_words(load.get("rate"), load.get("outstanding"), block, read, random)


def latency_interval(point: Point, direction: str, statistic: str) -> list[float] | None:
    """95 % interval of a latency of a point, from its batches and its histogram; None where they are too few."""
    figure = COMMON_FIGURES[f"{direction}_latency_{statistic.replace('.', '_')}_ns"]
    value, spread = figure.value(point), relative_error(figure.batches(point))
    if value is None or spread is None:
        return None
    error, freedom = spread
    if statistic == "mean":
        half = quantile(freedom, 0.975) * error
        return [value * max(1 - half, 0.0), value * (1 + half)]
    histogram = histogram_of(figure.record(point))
    if statistic not in PERCENTILES or histogram is None:
        return None
    found = percentile_interval(histogram.bins(), error, PERCENTILES[statistic])
    return None if found is None else [min(found[0], value), max(found[1], value)]


def _scaled(interval: Sequence[float] | None, scale: float) -> list[float] | None:
    return None if interval is None else [end * scale for end in interval]


def _reaches(
    value: float, interval: list[float] | None, band: list[float] | None, least: float, ended_by: str, unit: str
) -> tuple[bool | None, str]:
    """Whether a rate reaches the least that is promised, and why that is unknown."""
    for name, ends in (("95 % interval", interval), ("model's 90 % band", band)):
        if ends is not None and ends[0] < least <= ends[1]:
            return None, f"the {name}, {interval_words(ends, unit)}, holds the limit"
    if value >= least:
        return True, ""
    if ended_by in NOT_STORAGE:
        return None, "; ".join(NOT_STORAGE[ended_by])
    return (None, NOT_REACHED) if ended_by == "axis end" else (False, "")


def _rebuilt_s(point: Point) -> float | None:
    """How long a served array rebuilt a disk; None where that did not end within the point."""
    for served in point.get("served") or ():
        events = served.get("events") or []
        began = next((one["t_ns"] for one in events if one.get("state") == "rebuilding"), None)
        ended = next(
            (one["t_ns"] for one in events if began and one["t_ns"] > began and one.get("state") == "healthy"), None
        )
        if began is not None and ended is not None:
            return (ended - began) / 1e9
    return None


# Words

_WORDS = {"ns": format_latency, "iops": format_iops, "bytes_per_s": format_throughput, "s": format_duration}


def value_words(value: float | None, unit: str) -> str:
    """A value of a measurement.

    Examples
    --------
    >>> value_words(4684.0, "iops"), value_words(2e6, "ns"), value_words(None, "s")
    ('4,684 IOPS', '2.00 ms', 'unknown')
    """
    if value is None:
        return "unknown"
    text = _WORDS[unit](value)
    return f"{text} IOPS" if unit == "iops" else text


def interval_words(interval: Sequence[float], unit: str) -> str:
    """An interval of a measurement."""
    return f"{_WORDS[unit](interval[0])} to {_WORDS[unit](interval[1])}"


def _measured_words(one: AcceptanceEvidence) -> str:
    text, interval = value_words(one["value"], one["unit"]), one["interval_95"]
    return f"{text} (95 % interval {interval_words(interval, one['unit'])})" if interval else text
