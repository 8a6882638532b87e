"""A part at work on several hosts: steps are those of its kind, taken by all agents at once; a point is one for all."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from assay.base.errors import AssayError, Interrupted, IoFailed, RunFolderError, error_named
from assay.base.paths import printable
from assay.base.progress import Display
from assay.fleet.from_agent import (
    AskOf,
    AxisOf,
    Done,
    Figures,
    FromAgent,
    HostStep,
    Keeps,
    KeepsFile,
    KeepsPoint,
    Measures,
    Meets,
    PartClosed,
    Searches,
)
from assay.fleet.meeting import Meeting
from assay.fleet.member import Member
from assay.fleet.messages import Record, check_histograms, check_measured, check_told
from assay.fleet.rows import from_stream, of_host
from assay.fleet.target import HostsTarget, own_name
from assay.fleet.team import UNREADABLE, HostLost, Reply
from assay.fleet.wire import NotAMessage
from assay.record.folder import PRIVATE, Folder
from assay.record.machines import first_on_machine
from assay.record.merged import TIMES, merged, slimmed
from assay.record.shapes.point import HostPoint, Point, Together
from assay.record.standstill import HOSTS_APART, judged
from assay.workloads.capabilities import OnDatabases, document_key_of, over_hosts
from assay.workloads.job import Job, PartContext
from assay.workloads.plan import Part
from assay.workloads.spread import split_load
from assay.workloads.steps import Ask, Axis, Keep, Measure, Measured, Search, Steps
from assay.workloads.workload import AtTarget, Workload

if TYPE_CHECKING:
    import threading


SKEW_MAX_SHARE = 0.01
"""Hosts whose windows lie farther apart, as a share of the window, mark their point: no answer rests on it."""
DEVICE_SUMS = ("device_iops", "device_bytes_per_s")
SHOWN_HOSTS = 5


class FleetJob(Job):
    """A part of any kind at work on several hosts."""

    target: HostsTarget

    def __init__(self, workload: Workload[Any], part: Part[Any], target: HostsTarget, context: PartContext) -> None:
        super().__init__(part, target, context)
        self.spread, self.on_databases = over_hosts(workload), isinstance(workload, OnDatabases)
        self.document_key = document_key_of(workload)
        self.team = target.team
        self._known: set[str] = set()
        key = self.document_key
        before = {one["name"]: one.get("told", {}) for one in context.folder.manifest.get("hosts") or []}
        for member in target.members:
            target.told_of[member.name] = dict(before.get(member.name) or {})
        self.told = context.folder.manifest.get(key) if key is not None else None
        finished = [point for point in context.finished.values() if point["part"] == part.name]
        self._measured: dict[str, Point] = {point["id"]: point for point in finished}

        def opening(member: Member) -> Mapping[str, object]:
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
        def hears(member: Member, message: FromAgent, behind: bytes) -> None:
            if isinstance(message, Meets) and told is not None:
                told(member, message)
            elif isinstance(message, Meets):
                raise NotAMessage("a question to the other hosts, with no point under way")
            else:
                self._heard(member, message, behind)

        return self.team.ask(do, arguments, interrupt=self.context.interrupt, display=self.context.display, told=hears)

    def _heard(self, member: Member, message: FromAgent, behind: bytes) -> None:
        if isinstance(message, Keeps):
            self._keep_told(member, message.manifest)
        elif isinstance(message, KeepsFile):
            self._keep_file(member.name, message.file, behind)

    def _keep_told(self, member: Member, keys: Record) -> None:
        """What a host tells of its share, on storage too: a run that goes on gives it back."""
        key = self.document_key
        if key is None or set(keys) != {key}:
            raise NotAMessage("what no part of this kind keeps")
        check_told(keys)
        self.target.told_of[member.name] |= keys
        self._tell()
        self.context.folder.update(hosts=self.target.hosts(), **{key: self.told})

    def _tell(self) -> None:
        """Merge what all hosts told of their shares."""
        key = self.document_key
        if key is None:
            return
        all_told = [self.spread.of_host(one[key], host) for host, one in self.target.told_of.items() if one.get(key)]
        if all_told:
            self.told = self.spread.merged_told(all_told, list(self._measured.values()))

    # Steps

    def steps(self) -> Steps:
        """Take the steps of all agents together, and measure on all what they ask for."""
        outcome: Any = None
        while True:
            new = [point for point in self.context.points if point["id"] not in self._known]
            self._known |= {point["id"] for point in new}
            sent = outcome

            def going_on(member: Member, sent: Any = sent, new: Sequence[Point] = new) -> Mapping[str, object]:
                is_point = isinstance(sent, Mapping) and "id" in sent
                return {
                    "outcome": self._own_point(member, cast(Point, sent)) if is_point else sent,
                    "points": [self._own_point(member, point) for point in new],
                }

            steps = {name: reply.value for name, reply in self._ask_all("step", going_on).items()}
            self.rest_s = max(step.rest_s for step in steps.values())
            if all(isinstance(step, Done) for step in steps.values()):
                return
            with self._in_words(steps):
                step = self._of_all(steps)
            outcome = yield step

    def _of_all(self, steps: Mapping[str, HostStep]) -> Measure | Keep | Search:
        first = next(iter(steps.values()))
        if any(type(step) is not type(first) for step in steps.values()):
            at = ", ".join(f"{name}: {step.kind}" for name, step in steps.items())
            raise IoFailed(f"hosts do not take the same steps ({at}); begin a new run")
        if isinstance(first, Searches):
            return self._search({name: step for name, step in steps.items() if isinstance(step, Searches)})
        ask = self._asked({name: step for name, step in steps.items() if isinstance(step, AskOf)})
        if isinstance(first, Measures):
            return Measure(ask=ask)
        kept = [step for step in steps.values() if isinstance(step, KeepsPoint)]
        measured = None if all(step.held for step in kept) else self._keeping(ask)
        return Keep(ask=ask, measured=measured, repeat=kept[0].repeat, judged=kept[0].judged)

    @contextlib.contextmanager
    def _in_words(self, told: Collection[str]) -> Iterator[None]:
        """What hosts told is put together here: where it cannot be, no host alone is to blame."""
        try:
            yield
        except (*UNREADABLE, RunFolderError) as error:
            names = ", ".join(list(told)[:SHOWN_HOSTS])
            raise IoFailed(f"what hosts told does not fit together ({names}: {type(error).__name__})") from error

    def _asked(self, told: Mapping[str, AskOf]) -> Ask:
        """One load out of those of all hosts."""
        asked = [one.asked for one in told.values()]
        adds = self.spread.adds
        return Ask(
            key={"hosts": [[name, one.key] for name, one in told.items()]},
            workload=merged([one.workload for one in asked], "workload", adds),
            load=merged([one.load for one in asked], "load", adds),
            what=dict(told),
        )

    def _search(self, steps: Mapping[str, Searches]) -> Search:
        axes: list[AxisOf] = [step.axis for step in steps.values()]
        starts, names = [axis.start for axis in axes], list(steps)
        first = next(iter(steps.values()))
        loads = tuple(map(sum, zip(*(axis.steps for axis in axes), strict=False)))
        axis = Axis(**dict(axes[0]) | {"start": sum(starts), "end": sum(axis.end for axis in axes), "steps": loads})

        def ask(load: float) -> Ask:
            parts = dict(zip(names, split_load(load, starts, whole=axis.whole), strict=True))
            replies = self._ask_all("ask", lambda member: {"load": parts[member.name]})
            return self._asked({name: reply.value for name, reply in replies.items()})

        workload = merged([step.workload for step in steps.values()], "workload", self.spread.adds)
        return Search(axis=axis, ask=ask, workload=workload, repeats=first.repeats)

    # Points

    def measure(self, ask: Ask, *, repeat: int, point_id: str) -> Measured:
        """Measure one load on all hosts at once.

        Raises
        ------
        Interrupted
            No point is kept.
        """

        def at_work(member: Member) -> Mapping[str, object]:
            return {"ask": ask.what[member.name].ask, "repeat": repeat, "point_id": point_id}

        return self._together("measure", at_work, ask, point_id)

    def _keeping(self, ask: Ask) -> Any:
        def measured(point_id: str) -> Measured:
            return self._together("keep", lambda _member: {"point_id": point_id}, ask, point_id)

        return measured

    def _together(self, do: str, arguments: Any, ask: Ask, point_id: str) -> Measured:
        before = self.team.measure_clocks()
        meeting = Meeting(members=self.team.members, send=lambda member, message: member.sender.send(message))
        started_ns = time.time_ns()
        try:
            replies = self._ask_all(do, arguments, told=meeting.hear)
            after = self.team.measure_clocks()
            hosts = [
                self._host(member, ask, replies[member.name].value, before[member.name], after[member.name].offset_ns)
                for member in self.team.members
            ]
            self._write_series(replies, point_id)
        except HostLost as error:
            return self._cut_short(started_ns, error)
        failure = next((name for name, one in replies.items() if one.value.error is not None), None)
        if failure is not None:
            return self._failed(failure, replies[failure].value, hosts, started_ns)
        try:
            with self._in_words(replies):
                figures = self.spread.merged(self._to_merge(hosts))
        except IoFailed:
            try:
                self._refuse_unreadable(hosts)
            except HostLost as error:
                return self._cut_short(started_ns, error)
            raise
        self.virtual_ns = max(reply.value.virtual_ns for reply in replies.values())
        together = self._skew(hosts, meeting, figures)
        if together["skewed"]:
            generator = {"gaps": None, **(figures.get("generator") or {})}
            stood_still = judged(generator["gaps"], False)["reason"]
            figures = figures | {"generator": {**generator, "saturated": True, "reason": stood_still or HOSTS_APART}}
        return Measured(figures=figures | {"hosts": slimmed(hosts), "together": together})

    def _failed(self, name: str, failed: Figures, hosts: Sequence[HostPoint], started_ns: int) -> Measured:
        """A point that one host could not measure."""
        kind, text = failed.error or ["IoFailed", ""]
        its_error = error_named(kind)(f"host {name}: {text}")
        if isinstance(its_error, Interrupted) and not self.context.keeps_interrupted:
            raise its_error
        ended_by = next(one["point"].get("ended_by", "failed") for one in hosts if one["name"] == name)
        figures = {"started_utc_ns": started_ns, "ended_by": ended_by, "measured_s": 0.0, "hosts": slimmed(hosts)}
        return Measured(figures=figures, error=its_error)

    def _host(self, member: Member, ask: Ask, told: Figures, before: Any, offset_after_ns: int) -> HostPoint:
        """A host's own point, its times by this host's clock.

        Raises
        ------
        HostLost
            It is no point.
        """
        figures = dict(told.figures)
        with self._at(member):
            check_measured({**figures, **dict(ask.what[member.name].asked)})
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
            "point": figures | dict(ask.what[member.name].asked),
        }

    @contextlib.contextmanager
    def _at(self, member: Member) -> Iterator[None]:
        """What comes of a host's figures here is that host's.

        Raises
        ------
        HostLost
            They are none.
        """
        try:
            yield
        except NotAMessage as error:
            why = f"its agent sends what none of Assay does: {error}"
            self.team.lose(member, why)
            raise HostLost(f"host {member.name}: {why}") from None

    def _refuse_unreadable(self, hosts: Sequence[HostPoint]) -> None:
        """Find the host whose figures cannot be put together with others.

        Raises
        ------
        HostLost
            There is one.
        """
        for member, host in zip(self.team.members, hosts, strict=True):
            with self._at(member):
                check_histograms(host["point"])

    def _to_merge(self, hosts: Sequence[HostPoint]) -> list[Mapping[str, object]]:
        """Points of hosts with the names of each, what a machine's devices counted in one alone of those on it."""
        found: list[Mapping[str, object]] = []
        key = self.document_key
        firsts = first_on_machine(self.target.hosts())
        for host in hosts:
            point = host["point"]
            if key is not None and point.get(key):
                point = point | {key: self.spread.of_host(point[key], host["name"])}
            if firsts[host["name"]] != host["name"]:
                telemetry = dict(point.get("telemetry") or {})
                telemetry |= {key: 0.0 for key in DEVICE_SUMS if telemetry.get(key) is not None}
                point = point | {"telemetry": telemetry}
                if self.on_databases:
                    point |= {"volumes": [], "roles": {}}
                    self.context.note(
                        "hosts on one machine: what its devices did is told once, as the first one saw it"
                    )
            found.append(point)
        return found

    def _skew(self, hosts: Sequence[HostPoint], meeting: Meeting, figures: Record) -> Together:
        """How far apart hosts began and ended, by one clock."""
        points = [host["point"] for host in hosts]
        is_virtual = figures.get("clock") == "virtual"
        windows = [meeting.windows.get(host["name"]) for host in hosts]
        ends = [
            window or (point.get("measured_from_utc_ns"), point.get("measured_to_utc_ns"))
            for window, point in zip(windows, points, strict=True)
        ]
        told: Together = {
            "count": len(hosts),
            "start_skew_ns": None,
            "first_done_utc_ns": None,
            "last_done_utc_ns": None,
        }
        begins = [begin for begin, _ in ends if begin is not None]
        dones = [done for _, done in ends if done is not None]
        if is_virtual or min(len(begins), len(dones)) < len(ends):
            return {**told, "window_ns": None, "skew_share": 0.0 if is_virtual else None, "skewed": False}
        window_ns = max(round((figures.get("measured_s") or 0) * 1e9), 1)
        unsure_ns = max((host["clock_error_ns"] or 0) + abs(host["clock_drift_ns"] or 0) for host in hosts)
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

    def _cut_short(self, started_ns: int, error: HostLost) -> Measured:
        """A point that a lost host ended: who it was and what all had done, and no sum."""
        hosts = [
            {"name": member.name, "lost": member.lost, "until_then": member.last or None}
            for member in self.team.members
        ]
        figures = {"started_utc_ns": started_ns, "ended_by": "failed", "measured_s": 0.0, "hosts": hosts}
        return Measured(figures=figures, error=error)

    def _write_series(self, replies: Mapping[str, Reply], point_id: str) -> None:
        """Rows of all hosts on this host's clock, each with the name of its host."""
        writer = self.context.folder.series_writer()
        for member in self.team.members:
            with self._at(member):
                batches = from_stream(replies[member.name].rows)
            hostname = str(member.hostname)
            writer.write([of_host(batch, member.name, hostname, member.clock.offset_ns) for batch in batches])
        writer.close_segment(point_id)

    def _own_point(self, member: Member, point: Point) -> Point:
        """One host's part of a point, with what the run says of it."""
        own = {key: point[key] for key in ("id", "key", "part", "repeat", "purpose") if key in point}
        hosts = {host["name"]: host for host in point.get("hosts") or []}
        of_host = hosts[member.name].get("point", {}) if member.name in hosts else {}
        return cast(Point, {"limits": [], "met": None, **of_host, **own})

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
            replies = self.team.ask("close", display=self.context.display, told=self._heard)
        except AssayError as error:
            self.context.note(str(error))
            return
        finally:
            self.context.folder.update(hosts=self.target.hosts())
        key = self.document_key
        for name, reply in replies.items():
            closed: PartClosed = reply.value
            self.target.facts_of[name] = closed.target_facts or self.target.facts_of[name]
            for notice in closed.notices:
                notices.setdefault(notice, []).append(name)
            if closed.told is not None and key is not None:
                try:
                    check_told({key: closed.told})
                except NotAMessage as error:
                    self.context.note(f"host {name}: what it told at the end is left out: {error}")
                else:
                    self.target.told_of[name][key] = closed.told
        for notice, names in notices.items():
            everyone = len(names) == len(self.team.members)
            self.context.note(notice if everyone else f"host {', '.join(names)}: {notice}")
        with self._in_words(replies):
            self._tell()
        self.context.folder.update(hosts=self.target.hosts())

    def _keep_file(self, host: str, name: str, content: bytes) -> None:
        """A file that a host's part made, into a folder of its own within the run folder, for its owner alone."""
        *folders, last = name.split("/")
        try:
            folder = Folder.open(self.context.folder.path)
            for one in ("hosts", host, *folders):
                folder = folder.folder(one, make=True, mode=PRIVATE)
            folder.replace(last, content, mode=0o600)
        except OSError as error:
            self.context.note(f"host {host}: its file {name} is left out: {printable(str(error.strerror))}")


class SpreadWorkload(AtTarget[Any]):
    """A kind of workload on several hosts, whose agents do the work."""

    def __init__(self, workload: Workload[Any], target: HostsTarget) -> None:
        self._workload, self._target = workload, target

    def lines(self, part: Part[Any], target: Any) -> list[str]:
        """The part of each host in words."""
        del target
        own = {member.name: self._target.chosen[member.name].parts[part.name] for member in self._target.members}
        return [f"host {name}: {line}" for name, one in own.items() for line in one.lines]

    def document(self, part: Part[Any], target: Any) -> dict[str, object]:
        """What `--dry-run --json` says of the part: what all hosts have in common."""
        del target
        own = [self._target.chosen[member.name].parts[part.name].document for member in self._target.members]
        return {key: own[0][key] for key in own[0] if all(one.get(key) == own[0][key] for one in own)}

    def examine(self, part: Part[Any], target: Any, manifest: Any, display: Display) -> Part[Any]:
        """Have all hosts open their targets, and refuse what cannot be done."""
        del target
        key = document_key_of(self._workload)
        told = {one["name"]: one.get("told") or {} for one in manifest.get("hosts") or []}

        def given(member: Member) -> Mapping[str, object]:
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
            self._target.facts_of[name] = reply.value.target_facts

    def open(self, part: Part[Any], target: Any, context: PartContext) -> FleetJob:
        """Begin a part on all hosts."""
        del target
        return FleetJob(self._workload, part, self._target, context)
