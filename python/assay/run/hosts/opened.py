"""A part at work on several hosts: steps are those of its kind, taken by all agents at once; a point is one for all."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from assay import errors
from assay.errors import AssayError, Interrupted, IoFailed
from assay.progress import Display
from assay.results.machines import first_on_machine
from assay.results.merged import TIMES, merged, slimmed
from assay.results.shapes.point import Point
from assay.results.standstill import HOSTS_APART, judged
from assay.run.hosts.target import HostsTarget, own_name
from assay.run.hosts.team import HostLost, Member, Reply
from assay.run.hosts.wire import Message
from assay.workloads.opened import OpenWorkload, RunContext
from assay.workloads.plan import Part
from assay.workloads.spread import split_load
from assay.workloads.steps import Ask, Axis, Keep, Measure, Measured, Search, Steps
from assay.workloads.workload import Workload

if TYPE_CHECKING:
    import threading

    import pyarrow as pa

SKEW_MAX_SHARE = 0.01
"""Hosts whose windows lie farther apart, as a share of the window, mark their point: no answer rests on it."""
DEVICE_SUMS = ("device_iops", "device_bytes_per_s")
BEGIN_AFTER_NS = 50_000_000
"""All begin so much, and four round trips, after the slowest is ready."""


class OverHosts(OpenWorkload):
    """A part of any kind at work on several hosts."""

    def __init__(self, workload: Workload[Any], part: Part[Any], target: HostsTarget, context: RunContext) -> None:
        self.workload, self.part, self.target, self.context = workload, part, target, context
        self.team = target.team
        self._known: set[str] = set()
        self._step: dict[str, Any] = {}
        key = workload.document_key
        before = {one["name"]: one.get("told", {}) for one in context.folder.manifest.get("hosts") or []}
        for member in target.members:
            target.told_of[member.name] = dict(before.get(member.name) or {})
        self.told = context.folder.manifest.get(key) if key is not None else None
        finished = [point for point in context.finished.values() if point["part"] == part.name]
        self._measured: dict[str, Any] = {point["id"]: point for point in finished}

        def opening(member: Member) -> Mapping[str, Any]:
            own = target.told_of[member.name]
            return {
                "part": part.name,
                "manifest": {**({key: own.get(key)} if key is not None else {})},
                "finished": [self._own_point(member, point) for point in finished],
                "keeps_series": context.keeps_series,
                "for_study": context.for_study,
                "epoch_ns": context.epoch_ns,
            }

        self._ask_all("open", opening)

    def _ask_all(self, do: str, arguments: Any = None, told: Any = None) -> dict[str, Reply]:
        def hears(member: Member, message: Message) -> None:
            if "manifest" in message:
                self._keep_told(member, message["manifest"])
            elif told is not None:
                told(member, message)

        return self.team.ask(do, arguments, interrupt=self.context.interrupt, display=self.context.display, told=hears)

    def _keep_told(self, member: Member, keys: Mapping[str, Any]) -> None:
        """What a host tells of its share, on storage too: a run that goes on gives it back."""
        own = self.target.told_of[member.name]
        own |= keys
        key = self.workload.document_key
        if key is None or key not in keys:
            return
        self._tell()
        self.context.folder.update(hosts=self.target.hosts(), **{key: self.told})

    def _tell(self) -> None:
        """Merge what all hosts told of their shares."""
        key = self.workload.document_key
        if key is None:
            return
        all_told = [self.workload.of_host(one[key], host) for host, one in self.target.told_of.items() if one.get(key)]
        if all_told:
            self.told = self.workload.merged_told(all_told, list(self._measured.values()))

    # Steps

    def steps(self) -> Steps:
        """Take the steps of all agents together, and measure on all what they ask for."""
        outcome: Any = None
        while True:
            new = [point for point in self.context.points if point["id"] not in self._known]
            self._known |= {point["id"] for point in new}
            sent = outcome

            def going_on(member: Member, sent: Any = sent, new: Sequence[Any] = new) -> Mapping[str, Any]:
                is_point = isinstance(sent, Mapping) and "id" in sent
                return {
                    "outcome": self._own_point(member, cast(Any, sent)) if is_point else sent,
                    "points": [self._own_point(member, point) for point in new],
                }

            steps = {name: reply.value for name, reply in self._ask_all("step", going_on).items()}
            kinds = {step["kind"] for step in steps.values()}
            self.rest_s = max(step["rest_s"] for step in steps.values())
            if kinds == {"done"}:
                return
            if len(kinds) > 1:
                at = ", ".join(f"{name}: {step['kind']}" for name, step in steps.items())
                raise IoFailed(f"hosts do not take the same steps ({at}); begin a new run")
            outcome = yield self._of_all(kinds.pop(), steps)

    def _of_all(self, kind: str, steps: Mapping[str, Mapping[str, Any]]) -> Measure | Keep | Search:
        first = next(iter(steps.values()))
        if kind == "search":
            return self._search(steps)
        ask = self._asked(steps)
        if kind == "measure":
            return Measure(ask=ask)
        measured = None if all(step["held"] for step in steps.values()) else self._keeping(ask)
        return Keep(ask=ask, measured=measured, repeat=first["repeat"], judged=first["judged"])

    def _asked(self, told: Mapping[str, Mapping[str, Any]]) -> Ask:
        """One load out of those of all hosts."""
        asked = [one["asked"] for one in told.values()]
        adds = self.workload.adds
        return Ask(
            key={"hosts": [[name, one["key"]] for name, one in told.items()]},
            workload=merged([one["workload"] for one in asked], "workload", adds),
            load=merged([one["load"] for one in asked], "load", adds),
            what=dict(told),
        )

    def _search(self, steps: Mapping[str, Mapping[str, Any]]) -> Search:
        axes = [step["axis"] for step in steps.values()]
        starts = [axis["start"] for axis in axes]
        first = next(iter(steps.values()))
        axis = Axis(**{**axes[0], "start": sum(starts), "end": sum(axis["end"] for axis in axes)})
        names = list(steps)

        def ask(load: float) -> Ask:
            parts = dict(zip(names, split_load(load, starts, whole=axis.whole), strict=True))
            replies = self._ask_all("ask", lambda member: {"load": parts[member.name]})
            return self._asked({name: reply.value for name, reply in replies.items()})

        workload = merged([step["workload"] for step in steps.values()], "workload", self.workload.adds)
        return Search(axis=axis, ask=ask, workload=workload, repeats=first["repeats"])

    # Points

    def measure(self, ask: Ask, *, repeat: int, point_id: str) -> Measured:
        """Measure one load on all hosts at once.

        Raises
        ------
        Interrupted
            No point is kept.
        """

        def at_work(member: Member) -> Mapping[str, Any]:
            return {"ask": ask.what[member.name]["ask"], "repeat": repeat, "point_id": point_id}

        return self._together("measure", at_work, ask, point_id)

    def _keeping(self, ask: Ask) -> Any:
        def measured(point_id: str) -> Measured:
            return self._together("keep", lambda _member: {"point_id": point_id}, ask, point_id)

        return measured

    def _together(self, do: str, arguments: Any, ask: Ask, point_id: str) -> Measured:
        before = self.team.measure_clocks()
        meeting = _Meeting(members=self.team.members, send=lambda member, message: member.sender.send(message))
        started_ns = time.time_ns()
        try:
            replies = self._ask_all(do, arguments, told=meeting.hear)
        except HostLost as error:
            return Measured(figures=self._cut_short(started_ns), error=error)
        after = self.team.measure_clocks()
        hosts = [
            self._host(member, ask, replies[member.name], before[member.name], after[member.name].offset_ns)
            for member in self.team.members
        ]
        self._write_series(replies, point_id)
        failure = next((one for one in replies.values() if one.value["error"] is not None), None)
        if failure is not None:
            name = next(name for name, one in replies.items() if one is failure)
            kind, text = failure.value["error"]
            its_error: AssayError = getattr(errors, kind, IoFailed)(f"host {name}: {text}")
            if isinstance(its_error, Interrupted) and not self.context.keeps_interrupted:
                raise its_error
            ended_by = next(one["point"].get("ended_by", "failed") for one in hosts if one["name"] == name)
            figures = {"started_utc_ns": started_ns, "ended_by": ended_by, "measured_s": 0.0, "hosts": slimmed(hosts)}
            return Measured(figures=figures, error=its_error)
        figures = self.workload.merged(self._to_merge(hosts))
        self.virtual_ns = max(reply.value["virtual_ns"] for reply in replies.values())
        together = self._skew(hosts, meeting, figures)
        if together["skewed"]:
            generator = {"gaps": None, **(figures.get("generator") or {})}
            stood_still = judged(generator["gaps"], False)["reason"]
            figures = figures | {"generator": {**generator, "saturated": True, "reason": stood_still or HOSTS_APART}}
        return Measured(figures=figures | {"hosts": slimmed(hosts), "together": together})

    def _host(self, member: Member, ask: Ask, reply: Reply, before: Any, offset_after_ns: int) -> dict[str, Any]:
        """A host's own point, its times by this host's clock."""
        figures = dict(reply.value["figures"])
        offset_ns = 0 if figures.get("clock") == "virtual" else before.offset_ns
        for key in TIMES:
            if figures.get(key) is not None:
                figures[key] -= offset_ns
        if not self.target.shared:
            figures["volumes"] = [
                one | {"name": own_name(member.name, str(one.get("name")))} for one in figures.get("volumes") or []
            ]
        return {
            "name": member.name,
            "clock_offset_ns": before.offset_ns,
            "clock_error_ns": before.error_ns,
            "clock_drift_ns": offset_after_ns - before.offset_ns,
            "point": figures | ask.what[member.name]["asked"],
        }

    def _to_merge(self, hosts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Points of hosts with the names of each, what a machine's devices counted in one alone of those on it."""
        found: list[Mapping[str, Any]] = []
        key = self.workload.document_key
        firsts = first_on_machine(self.target.hosts())
        for host in hosts:
            point = host["point"]
            if key is not None and point.get(key):
                point = point | {key: self.workload.of_host(point[key], host["name"])}
            if firsts[host["name"]] != host["name"]:
                telemetry = dict(point.get("telemetry") or {})
                telemetry |= {key: 0.0 for key in DEVICE_SUMS if telemetry.get(key) is not None}
                point = point | {"telemetry": telemetry}
                if self.workload.runs_on == "databases":
                    point |= {"volumes": [], "roles": {}}
                    self.context.note(
                        "hosts on one machine: what its devices did is told once, as the first one saw it"
                    )
            found.append(point)
        return found

    def _skew(self, hosts: Sequence[Mapping[str, Any]], meeting: _Meeting, figures: Mapping[str, Any]) -> Any:
        """How far apart hosts began and ended, by one clock."""
        points = [host["point"] for host in hosts]
        is_virtual = figures.get("clock") == "virtual"
        windows = [meeting.windows.get(host["name"]) for host in hosts]
        ends = [
            window or (point.get("measured_from_utc_ns"), point.get("measured_to_utc_ns"))
            for window, point in zip(windows, points, strict=True)
        ]
        told = {"count": len(hosts), "start_skew_ns": None, "first_done_utc_ns": None, "last_done_utc_ns": None}
        if is_virtual or any(None in end for end in ends):
            return {**told, "window_ns": None, "skew_share": 0.0 if is_virtual else None, "skewed": False}
        begins, dones = [begin for begin, _ in ends], [done for _, done in ends]
        window_ns = max(round((figures.get("measured_s") or 0) * 1e9), 1)
        unsure_ns = max(host["clock_error_ns"] + abs(host["clock_drift_ns"]) for host in hosts)
        # What counts as a whole ends when its work is done: that hosts take differently long is what is measured.
        ended_ns = max(dones) - min(dones) if all(windows) else 0
        apart_ns = max(max(begins) - min(begins), ended_ns) + unsure_ns
        share = apart_ns / window_ns
        return {
            **told,
            "start_skew_ns": max(begins) - min(begins),
            "first_done_utc_ns": min(dones),
            "last_done_utc_ns": max(dones),
            "window_ns": window_ns,
            "skew_share": share,
            "skewed": share > SKEW_MAX_SHARE,
        }

    def _cut_short(self, started_ns: int) -> dict[str, Any]:
        """A point that a lost host ended: who it was and what all had done, and no sum."""
        hosts = [
            {"name": member.name, "lost": member.lost, "until_then": member.last or None}
            for member in self.team.members
        ]
        return {"started_utc_ns": started_ns, "ended_by": "failed", "measured_s": 0.0, "hosts": hosts}

    def _write_series(self, replies: Mapping[str, Reply], point_id: str) -> None:
        """Rows of all hosts on this host's clock, each with the name of its host."""
        writer = self.context.folder.series_writer()
        for member in self.team.members:
            batches = _rows_of(replies[member.name].rows)
            hostname = str(member.facts.get("hostname"))
            writer.write([_as_of(batch, member.name, hostname, member.clock.offset_ns) for batch in batches])
        writer.close_segment(point_id)

    def _own_point(self, member: Member, point: Point) -> dict[str, Any]:
        """One host's part of a point, with what the run says of it."""
        own = {key: point[key] for key in ("id", "key", "part", "repeat", "purpose") if key in point}
        hosts = {host["name"]: host for host in cast(Any, point).get("hosts") or []}
        return {"limits": [], "met": None, **(hosts.get(member.name) or {}).get("point", {}), **own}

    def kept(self, point: Point) -> None:
        """Tell all hosts of a point that was kept."""
        if point["ended_by"] == "failed" or self.target.is_broken:
            return
        self._known.add(point["id"])
        self._measured[point["id"]] = point
        self._ask_all("kept", lambda member: {"point": self._own_point(member, point)})

    # The end

    def close(self) -> None:
        """Leave all hosts as they should be, and take what they have to say."""
        notices: dict[str, list[str]] = {}
        for member in self.team.members:
            if member.lost is not None:
                self.context.note(f"host {member.name} was lost: {member.lost}")
        try:
            replies = self.team.ask("close", display=self.context.display, told=self._heard_at_the_end)
        except AssayError as error:
            self.context.note(str(error))
            return
        finally:
            self.context.folder.update(hosts=self.target.hosts())
        for name, reply in replies.items():
            told = reply.value
            self.target.facts_of[name] = told.get("facts") or self.target.facts_of[name]
            for notice in told["notices"]:
                notices.setdefault(notice, []).append(name)
            self._take_files(name, told["files"])
            if told["told"] is not None and self.workload.document_key is not None:
                self.target.told_of[name][self.workload.document_key] = told["told"]
        for notice, names in notices.items():
            everyone = len(names) == len(self.team.members)
            self.context.note(notice if everyone else f"host {', '.join(names)}: {notice}")
        self._tell()
        self.context.folder.update(hosts=self.target.hosts())

    def _heard_at_the_end(self, member: Member, message: Message) -> None:
        if "manifest" in message:
            self._keep_told(member, message["manifest"])

    def _take_files(self, host: str, files: Mapping[str, str]) -> None:
        """Files that a host's part made, into a folder of its own within the run folder."""
        root = self.context.folder.path / "hosts" / host
        for name, text in files.items():
            place = PurePosixPath(name)
            if place.is_absolute() or ".." in place.parts:
                continue
            path = root / Path(*place.parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("latin-1"))


@dataclass(kw_only=True)
class _Meeting:
    """Agrees on a start and on the window in which all ran, as agents ask for them."""

    members: Sequence[Member]
    send: Any
    begins: set[str] = field(default_factory=set)
    windows: dict[str, tuple[int, int]] = field(default_factory=dict)

    def hear(self, member: Member, message: Message) -> None:
        """Take what an agent asks for; answer all once all have asked."""
        if message.get("at") == "begin":
            self.begins.add(member.name)
            if len(self.begins) == len(self.members):
                self._begin()
        elif message.get("at") == "window":
            first, last = message["window"]
            offset_ns = member.clock.offset_ns
            self.windows[member.name] = first - offset_ns, last - offset_ns
            if len(self.windows) == len(self.members):
                self._meet()

    def _begin(self) -> None:
        slowest_ns = max(member.clock.error_ns for member in self.members)
        at_ns = time.time_ns() + BEGIN_AFTER_NS + 8 * slowest_ns
        for member in self.members:
            self._answer(member, {"begin_utc_ns": at_ns + member.clock.offset_ns})

    def _meet(self) -> None:
        first = max(begin for begin, _ in self.windows.values())
        last = min(end for _, end in self.windows.values())
        for member in self.members:
            if last <= first:
                refused = "hosts did not run at the same time: there is no window in which all of them did"
                self._answer(member, {"refused": refused})
            else:
                offset_ns = member.clock.offset_ns
                self._answer(member, {"window": [first + offset_ns, last + offset_ns]})

    def _answer(self, member: Member, answer: Message) -> None:
        try:
            self.send(member, {"together": answer})
        except (OSError, ValueError):
            # That it is gone is seen where its pipe ends.
            return


def _rows_of(rows: bytes) -> list[pa.RecordBatch]:
    if not rows:
        return []
    import pyarrow as pa

    with pa.ipc.open_stream(rows) as reader:
        return list(reader)


def _as_of(batch: pa.RecordBatch, name: str, hostname: str, offset_ns: int) -> pa.RecordBatch:
    """Rows as those of a host, its wall clock set to this host's."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wall = pc.equal(batch.column("clock").cast(pa.string()), "wall")
    shifted = pc.if_else(wall, pc.subtract(batch.column("t_ns"), offset_ns), batch.column("t_ns"))
    hosts = batch.column("host").cast(pa.string())
    named = pc.if_else(pc.equal(hosts, hostname), name, hosts)
    for column, values in (("t_ns", shifted), ("host", named)):
        place = batch.schema.get_field_index(column)
        field_ = batch.schema.field(place)
        values = values.dictionary_encode().cast(field_.type) if column == "host" else values
        batch = batch.set_column(place, field_, values)
    return batch


class SpreadWorkload:
    """A kind of workload on several hosts: what it does with a target their agents do; all else is its own."""

    def __init__(self, workload: Workload[Any], target: HostsTarget) -> None:
        self._workload, self._target = workload, target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workload, name)

    def lines(self, part: Part[Any], target: Any) -> list[str]:
        """The part of each host in words."""
        del target
        own = {member.name: self._target.chosen[member.name]["parts"][part.name] for member in self._target.members}
        return [f"host {name}: {line}" for name, one in own.items() for line in one["lines"]]

    def document(self, part: Part[Any], target: Any) -> dict[str, Any]:
        """What `--dry-run --json` says of the part: what all hosts have in common."""
        del target
        own = [self._target.chosen[member.name]["parts"][part.name]["document"] for member in self._target.members]
        return {key: own[0][key] for key in own[0] if all(one.get(key) == own[0][key] for one in own)}

    def examine(self, part: Part[Any], target: Any, manifest: Mapping[str, Any], display: Display) -> Part[Any]:
        """Have all hosts open their targets, and refuse what cannot be done."""
        del target
        key = self._workload.document_key
        told = {one["name"]: one.get("told", {}) for one in manifest.get("hosts") or []}

        def given(member: Member) -> Mapping[str, Any]:
            own = {key: told.get(member.name, {}).get(key)} if key is not None else {}
            return {"part": part.name, "manifest": own}

        self._take_facts(self._target.team.ask("examine", given, display=display))
        return part

    def prepare(self, part: Part[Any], target: Any, display: Display, interrupt: threading.Event) -> None:
        """Have all hosts make their targets ready, once all were examined."""
        del target
        self._take_facts(self._target.team.ask("prepare", {"part": part.name}, display=display, interrupt=interrupt))

    def _take_facts(self, replies: Mapping[str, Reply]) -> None:
        for name, reply in replies.items():
            self._target.facts_of[name] = reply.value["facts"]

    def open(self, part: Part[Any], target: Any, context: RunContext) -> OverHosts:
        """Begin a part on all hosts."""
        del target
        return OverHosts(self._workload, part, self._target, context)


def workload_at(workload: Workload[Any], target: object) -> Workload[Any]:
    """A kind of workload on a target: as it is here, or as agents do it."""
    if isinstance(target, HostsTarget):
        return cast(Workload[Any], SpreadWorkload(workload, target))
    return workload
