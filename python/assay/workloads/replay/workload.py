"""The registration of replays: what the pipeline knows of them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.progress import Display
from assay.base.tables import Record, TableValue
from assay.base.units import format_bytes, format_duration, format_latency
from assay.record.shapes.point import Point
from assay.targets.files.target import StorageTarget
from assay.workloads.capabilities import Foreseen, OfServers, OfTraces, OverHosts, Reporting, Varied
from assay.workloads.job import PartContext
from assay.workloads.plan import Part
from assay.workloads.replay.figures import FIGURES
from assay.workloads.replay.plan import TRACES_MAX, ReplayPlan
from assay.workloads.replay.shapes import SHAPES, done_of
from assay.workloads.spread import Share
from assay.workloads.steps import points_of_search
from assay.workloads.workload import Conclusion, Needs, Workload, io_words

if TYPE_CHECKING:
    from assay.document.elements import Section
    from assay.record.source import RunFacts
    from assay.targets.files.spec import VolumeSpec
    from assay.workloads.replay.job import ReplayJob
    from assay.workloads.replay.overlay import Overlay
    from assay.workloads.replay.survey import Survey


OFFSETS_SHARE = 0.1
"""Copies of a trace begin within this share of its length, so that not all peaks coincide."""


class ReplayWorkload(
    Workload[ReplayPlan],
    Varied[ReplayPlan],
    Foreseen[ReplayPlan],
    OfServers,
    OfTraces,
    OverHosts[ReplayPlan],
    Reporting,
):
    """The I/Os of traces, asked for again."""

    kind = "replay"
    figures = FIGURES
    shapes = SHAPES
    plan_type = ReplayPlan
    title = "Replay"
    apart = ("layout",)

    def estimate_s(self, plan: ReplayPlan) -> tuple[float, float]:
        """Shortest and longest time its points take: a search begins at the trace's own speed."""
        found = _surveys(plan)
        seconds = max(at.at_s + one.seconds for at, one in zip(plan.traces, found, strict=True)) / plan.speed
        fewest, most = (1, 1) if plan.search.axis == "none" else points_of_search(plan.search.repeats)
        return fewest * seconds / (1 if fewest == 1 else 2), most * seconds

    def points_least(self, plan: ReplayPlan) -> int | None:
        """One."""
        return 1

    def expected_points(self, plan: ReplayPlan) -> Iterable[tuple[Record, Record]]:
        """A replay."""
        workload = {"kind": self.kind, "name": plan.title, "role": "data"}
        yield workload, {"pace": plan.pace, "speed": plan.speed, "workers": 1}

    # Studies

    def study_plan(self, data: Record, tables: Mapping[str, Record], *, seed: int, source: str) -> ReplayPlan:
        """The plan of a combination of levels, which have a name in the study alone."""
        changed = {name: {**data.get(name, {}), **table} for name, table in tables.items() if table}
        own = {key: value for key, value in data.items() if key != "name"}
        return self.load_plan({**own, "seed": seed, **changed}, source=source)

    def of_servers(self, data: Record, servers: int, *, source: str) -> dict[str, TableValue]:
        """The traces so many times, each copy begun a little later, and measured once all have begun."""
        plan = self.study_plan(data, {}, seed=0, source=source)
        seconds = max(at.at_s + one.seconds for at, one in zip(plan.traces, _surveys(plan), strict=True))
        step_s = round(OFFSETS_SHARE * seconds / servers, 3)
        copies = [
            {"path": one.path, "at_s": one.at_s + number * step_s} for number in range(servers) for one in plan.traces
        ]
        if len(copies) > TRACES_MAX:
            raise UsageError(f"{source}: {len(copies)} traces over each other are too many; at most {TRACES_MAX}")
        return {**data, "traces": copies, "timing": {"warmup_s": (servers - 1) * step_s}}

    def of_traces(self, traces: Sequence[str], *, searches: bool) -> dict[str, TableValue]:
        """A replay whose places fit every target."""
        plan: dict[str, TableValue] = {"kind": self.kind, "traces": list(traces), "fit": "fold"}
        return plan | ({"search": {"axis": "speed"}} if searches else {})

    def compared(self, traces: Sequence[str], *, searches: bool) -> Sequence[str]:
        """Times the recorded load where that is searched for, else latencies."""
        found = _surveys(ReplayPlan.model_validate({"traces": list(traces)}))
        sides = [side for side in ("read", "write") if any(one.sides[side].count for one in found)]
        latencies = [f"{side}_latency" for side in sides]
        return ["times_recorded", "iops"] if searches else latencies

    # Targets

    def needs(self, plan: ReplayPlan) -> Needs:
        """Writing, where a trace writes, and files as large as the places of the trace reach."""
        from assay.workloads.replay.places import needed_bytes

        found = _surveys(plan)

        def sizes(specs: Sequence[VolumeSpec]) -> dict[str, int]:
            names = [spec.name for spec in specs]
            return dict(zip(names, needed_bytes(found, max(len(names), 1)), strict=True))

        return Needs(
            writes=any(one.sides["write"].count for one in found),
            on_model=lambda: _refuse_backend(plan),
            sizes=sizes,
        )

    def check(self, part: Part[ReplayPlan], target: Any) -> None:
        """Refuse traces that do not fit."""
        _overlay(part.plan, target)

    def prepare(self, part: Part[ReplayPlan], target: Any, display: Display, interrupt: threading.Event) -> None:
        """Lay the target out."""
        target.make_ready(part.plan.timing.io_timeout_s, display, interrupt)

    def open(self, part: Part[ReplayPlan], target: Any, context: PartContext) -> ReplayJob:
        """Begin a part on its volumes."""
        from assay.workloads.replay.job import ReplayJob

        assert isinstance(target, StorageTarget), "a replay runs on storage"
        return ReplayJob(part, context, volumes=target.volumes, devices=target.device_names, array=target.array)

    def lines(self, part: Part[ReplayPlan], target: Any) -> list[str]:
        """The part in words: traces, window, places, and what is written."""
        from assay.workloads.replay.overlay import seat_words
        from assay.workloads.replay.places import fit_words

        laid = _overlay(part.plan, target)
        limits = ", ".join(part.plan.limits) or "none"
        speed = "" if part.plan.pace == "closed" else f"; speed {laid.speed:g}"
        words = [f"part {part.name}: {part.title}; pace {part.plan.pace}{speed}; limits: {limits};"
                 f" search: {part.plan.search.axis}"]  # fmt: skip
        for number, (at, found) in enumerate(zip(part.plan.traces, laid.found, strict=True)):
            places = "; ".join(seat_words(name, seat, laid.rooms) for name, seat in laid.seats[number].items())
            begins = f", {format_duration(at.at_s)} after the first" if at.at_s else ""
            lasts = f"{found.ios:,} I/Os in {format_duration(found.seconds)}{begins}"
            words.append(f"  {printable(found.trace.path)}: {lasts}; {places}")
        return [*words, *(f"  {line}" for line in (self.writes(part, target), fit_words(laid.seats)) if line)]

    def document(self, part: Part[ReplayPlan], target: Any) -> dict[str, object]:
        """Bytes written, and how long a replay takes."""
        from assay.workloads.replay.places import needed_bytes

        laid = _overlay(part.plan, target)
        return {
            "written_bytes": _written(laid),
            "seconds": laid.seconds,
            "ios": sum(one.ios for one in laid.found),
            "reach_bytes": needed_bytes(laid.found, len(laid.rooms)),
        }

    def writes(self, part: Part[ReplayPlan], target: Any) -> str:
        """What one replay writes: bytes of Assay's own, at the places of the trace."""
        laid = _overlay(part.plan, target)
        written = _written(laid)
        if not written or target.array is not None:
            return ""
        each = " at each speed" if part.plan.search.axis == "speed" else ""
        return f"the replay writes {format_bytes(written)}{each}, Assay's own bytes at the places of the trace"

    def written_most_bytes(self, part: Part[ReplayPlan], target: Any) -> float:
        """Nothing before the replay."""
        return 0.0

    # Several hosts

    def share(self, plan: ReplayPlan, share: Share) -> ReplayPlan:
        """I/Os of the traces are dealt to the hosts in turn; each host reads the traces at the same path.

        Raises
        ------
        UsageError
            Hosts are to share a target, and a trace writes.
        """
        if self.needs(plan).writes:
            super().share(plan, share)
        return plan.model_copy(update={"host": (share.place, share.hosts)})

    def merged(self, points: Sequence[Record]) -> dict[str, object]:
        """Figures of one point; its lateness is that of the host that was latest."""
        found = super().merged(points)
        told = [point["replay"] for point in points if point.get("replay")]
        if told:
            total, offered = found.get("total"), found.get("offered")
            late = [one["lateness"] for one in told if one.get("lateness")]
            times = None
            if total and offered and offered.get("rate"):
                times = told[0]["speed"] * min(total["iops"] / offered["rate"], 1.0)
            found["replay"] = {
                **told[0],
                "times_recorded": times,
                "lateness": max(late, key=lambda one: float(one["p99_ns"]), default=None),
                "is_replay": None if not late else all(one.get("is_replay") for one in told),
            }
        return found

    # A run

    def point_words(self, point: Point) -> list[str]:
        """What the replay came to, and how late I/Os began."""
        return (
            [*io_words(point), *_recorded_words(point), *_lateness_words(point)]
            if point["total"]
            else super().point_words(point)
        )

    def is_asked(self, point: Point) -> bool:
        """By the trace, unless its times are not kept."""
        return done_of(point).get("pace") == "timed"

    def ruined(self, point: Point) -> str | None:
        """Every I/O failed."""
        if not point["errors"]["count"] or point["total"]:
            return None
        kinds = ", ".join(kind for kind, count in point["errors"]["kinds"].items() if count)
        return f"every I/O failed ({kinds}); see the kernel log (dmesg)"

    def conclude(self, points: Sequence[Point], manifest: Record) -> Conclusion:
        """Whether points were replays, and what the mapping of places changes."""
        notices = list(dict.fromkeys(str(note) for point in points if (note := done_of(point).get("fit_note"))))
        late = [point for point in points if done_of(point).get("is_replay") is False]
        if late:
            notices.append(
                f"{len(late)} of {len(points)} points are no replay: I/Os began too late for the times of the trace"
                " (see lateness); give the host more CPU, or a lower --speed"
            )
        return Conclusion(notices=notices)

    # Report

    def sections(self, facts: RunFacts) -> Sequence[Section]:
        """The traces, lateness, and latencies beside those recorded; then figures and curves."""
        from assay.document.figure_sections import figure_sections
        from assay.workloads.replay.report import replay_section

        made = figure_sections(facts, self.kind, self.report_title, self.figures)
        own = replay_section(facts)
        return [own, *made] if own else list(made)


def _surveys(plan: ReplayPlan) -> list[Survey]:
    """Read the traces through; what reads them is imported when a plan is there."""
    from assay.workloads.replay.survey import surveys

    return surveys(plan)


def _overlay(plan: ReplayPlan, target: Any) -> Overlay:
    from assay.workloads.replay.overlay import overlay

    return overlay(plan, target.volumes)


def _written(laid: Overlay) -> int:
    return sum(one.written_bytes for one in laid.found)


def _recorded_words(point: Point) -> list[str]:
    """Mean latencies that the trace recorded, where there is one trace and it tells them."""
    traces = done_of(point).get("traces") or []
    means = [
        f"{side} {format_latency(mean)}"
        for one in (traces if len(traces) == 1 else [])
        for side, seen in (("read", one.get("read")), ("write", one.get("write")))
        if (mean := ((seen or {}).get("latency_ns") or {}).get("mean")) is not None
    ]
    return [f"recorded {', '.join(means)};"] if means else []


def _lateness_words(point: Point) -> list[str]:
    from assay.workloads.replay.report import lateness_words

    words = lateness_words(point)
    return [f"{words};"] if words else []


def _refuse_backend(plan: ReplayPlan) -> None:
    if plan.backend != "auto":
        raise UsageError(f"--backend {plan.backend}: a model does no I/O; leave it out")
