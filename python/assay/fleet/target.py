"""The target of a run over several hosts: the share of each, chosen and held by its agent."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from assay.base.errors import AssayError, NotAnswering, NotSupported, OpenFailed, RefusedTarget, UsageError
from assay.base.progress import SILENT, Display
from assay.base.secrets import secrets_for_wire
from assay.base.units import format_duration
from assay.fleet.from_agent import Chosen
from assay.fleet.identity import servers
from assay.fleet.links import LOCAL, Link, ProcessLink, agent_command, named_hosts, ssh_command
from assay.fleet.member import Member
from assay.fleet.team import HostLost, Team, greet
from assay.run.part import part_report
from assay.run.request import Request
from assay.workloads.plan import Part

CLOCKS_APART_S = 60.0
"""Clocks farther apart are refused: times of one host's log could not be found in another's."""
CHOOSE_S = 600.0
PERMISSIONS = ("--overwrite", "--yes-destroy")
SSH_FAILED, NO_PROGRAM = 255, (126, 127)
"""Exit codes of ssh itself, and of a shell that finds or may start no program."""


@dataclass(kw_only=True)
class HostsTarget:
    """What all hosts of a run have, as their agents told of it."""

    team: Team
    shared: bool
    chosen: dict[str, Chosen]
    facts_of: dict[str, dict[str, Any]]
    clocks: dict[str, Any]
    notices: list[str] = field(default_factory=list)
    is_here: bool = False
    databases: tuple[()] = ()
    served: tuple[()] = ()
    devices: dict[str, list[str]] = field(default_factory=dict)
    device_names: list[str] = field(default_factory=list)
    told_of: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What workloads told of each host, by its name."""
    named: dict[str, list[str]] = field(default_factory=dict)
    """Paths that the command line names on each host."""
    is_broken: bool = False
    """Whether a host was lost: the others are left, and nothing more is asked of them."""

    @property
    def members(self) -> list[Member]:
        """Its hosts."""
        return self.team.members

    @property
    def runs_on(self) -> Literal["storage", "databases"]:
        """What the hosts have: volumes or databases."""
        return "databases" if any(one.is_databases for one in self.chosen.values()) else "storage"

    @property
    def is_virtual(self) -> bool:
        """Whether all hosts run models."""
        return all(one.is_virtual for one in self.chosen.values())

    @property
    def layout_bytes(self) -> int | None:
        """How much laying out writes, on all hosts."""
        sizes = [one.layout_bytes for one in self.chosen.values()]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of volumes."""
        return {
            _own(member.name, name): size
            for member in self.members
            for name, size in self.chosen[member.name].sizes.items()
        }

    def lines(self) -> list[str]:
        """Hosts with their volumes or databases."""
        how = "share one target" if self.shared else "have a target each"
        lines = [f"{len(self.members)} hosts, which {how}"]
        for member in self.members:
            lines += [f"host {member.name}: {line}" for line in self.chosen[member.name].lines]
        return lines

    def document(self) -> dict[str, Any]:
        """Hosts with their volumes or databases, for `--dry-run --json`."""
        hosts = [
            {"name": member.name, "hostname": member.hostname} | _without_names(self.chosen[member.name].document)
            for member in self.members
        ]
        return {"shared": self.shared, "hosts": hosts}

    def facts(self) -> dict[str, Any]:
        """The manifest's `target`: all hosts' volumes and databases, named after their hosts."""
        found: dict[str, Any] = {}
        for member in self.members:
            facts = self.facts_of[member.name]
            found.setdefault("cache_notice", facts.get("cache_notice"))
            if "array" in facts:
                found.setdefault("array", facts["array"])
            for key in ("volumes", "databases"):
                if facts.get(key):
                    own = [
                        one | {"name": _own(member.name, str(one.get("name"))), "host": member.name}
                        for one in facts[key]
                    ]
                    found.setdefault(key, []).extend(own)
        return found

    def hosts(self) -> list[dict[str, Any]]:
        """The manifest's `hosts`: what each is, its clock when the run began, and what its share told."""
        return [
            {
                "name": member.name,
                "hostname": member.hostname,
                "host": None if member.facts is None else member.facts.host,
                "machine": None if member.facts is None else member.facts.machine,
                "servers": servers(self.chosen[member.name].identities),
                "clock_offset_ns": self.clocks[member.name].offset_ns,
                "clock_error_ns": self.clocks[member.name].error_ns,
                "lost": member.lost,
                "told": self.told_of.get(member.name, {}),
            }
            for member in self.members
        ]

    # A run

    def begin_run(self, run: str) -> None:
        """Tell the id of the run to all."""
        self.team.ask("begin_run", {"run": run})

    def refuse_others(self, run: str, volumes: Sequence[Mapping[str, Any]]) -> None:
        """Refuse to go on where a host's target is not that of the run.

        Raises
        ------
        RefusedTarget
            It is another one.
        """
        self.team.ask(
            "again",
            lambda member: {"run": run, "volumes": [one for one in volumes if one.get("host") == member.name]},
            longest_s=CHOOSE_S,
        )

    def leave(self, display: Display) -> list[str]:
        """Leave the targets of all hosts until a part needs them again."""
        try:
            replies = self.team.ask("leave", display=display)
        except AssayError as error:
            self.is_broken = True
            return [str(error)] if isinstance(error, HostLost) else []
        notices = []
        for name, reply in replies.items():
            self.facts_of[name] = reply.value.facts
            notices += [f"host {name}: {notice}" for notice in reply.value.notices]
        return notices

    def settle(self) -> None:
        """Say in marks that the run has ended, and end all agents."""
        with contextlib.suppress(AssayError):
            self.team.ask("settle", longest_s=CHOOSE_S)
        self.team.end()

    def permissions_again(self, yes_destroy: Collection[str]) -> list[str]:
        """Options that the command to go on has to repeat."""
        if self.team.is_ended:
            return list(self._permissions)
        with contextlib.suppress(AssayError, NotAnswering):
            replies = self.team.ask("permissions", {"yes_destroy": list(yes_destroy)}, longest_s=CHOOSE_S)
            pairs = [pair for name, reply in replies.items() for pair in self._permitted(name, reply.value)]
            self._permissions = [word for pair in dict.fromkeys(pairs) for word in pair]
        return list(self._permissions)

    def _permitted(self, host: str, options: Sequence[str]) -> list[tuple[str, str]]:
        """Options of a host that name what the command line named there: a host asks for no permission of its own."""
        pairs = list(zip(options[::2], options[1::2], strict=False))
        return [(option, path) for option, path in pairs if option in PERMISSIONS and _is_named(path, self.named[host])]

    _permissions: list[str] = field(default_factory=list)


def _is_named(path: str, named: Sequence[str]) -> bool:
    """Whether a path is one of these, or lies in a folder that is."""
    return os.path.isabs(path) and ".." not in path.split("/") and any(Path(path).is_relative_to(one) for one in named)


def _without_names(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a host tells of itself, but for its names, which are told here."""
    return {key: value for key, value in document.items() if key not in ("name", "hostname")}


def _own(host: str, name: str) -> str:
    return f"{host}:{name}"


def own_name(host: str, name: str) -> str:
    """Name of a host's volume or database among those of all."""
    return _own(host, name)


# Choosing


def choose_over_hosts(
    request: Request, parts: Sequence[Part[Any]], sizes: Mapping[str, int] | None = None
) -> HostsTarget:
    """Start an agent on each host, and have it examine its share of the target; nothing is written anywhere.

    Raises
    ------
    UsageError
        Hosts are none, or a part cannot be spread.
    OpenFailed
        A host cannot be reached.
    RefusedTarget
        A host has another Assay, its clock is far off, a volume must not be written to or was given twice.
    """
    refuse_alone(request, parts, "--hosts" if request.cluster is None else "--cluster")
    team = Team(_links(request))
    try:
        return _chosen(team, request, parts, sizes)
    except BaseException:
        team.end()
        raise


def _links(request: Request) -> list[tuple[str, Link]]:
    if request.cluster is not None:
        from assay.fleet.cluster import cluster_links

        return cluster_links(request.cluster, request.hosts)
    links: list[tuple[str, Link]] = []
    try:
        for name, host in named_hosts(request.hosts):
            links.append((name, ProcessLink(agent_command() if host == LOCAL else ssh_command(host))))
    except BaseException:
        for _, link in links:
            link.end(kill=True)
        raise
    return links


def _chosen(team: Team, request: Request, parts: Sequence[Part[Any]], sizes: Mapping[str, int] | None) -> HostsTarget:
    _greeted(team)
    clocks = team.measure_clocks()
    for member in team.members:
        ahead_s = clocks[member.name].offset_ns / 1e9
        if abs(ahead_s) > CLOCKS_APART_S:
            way = "ahead of" if ahead_s > 0 else "behind"
            raise RefusedTarget(
                f"host {member.name}: its clock is {format_duration(abs(ahead_s))} {way} this host's; set it, as by"
                " NTP, so that times of both can be compared"
            )
    words, typed = secrets_for_wire()
    team.ask("secrets", {"words": words, "typed": typed})

    def given(member: Member) -> dict[str, Any]:
        return _given(member, team, request, parts, sizes)

    replies = team.ask("choose", given, longest_s=CHOOSE_S)
    chosen: dict[str, Chosen] = {name: reply.value for name, reply in replies.items()}
    for name, one in chosen.items():
        if set(one.parts) != {part.name for part in parts}:
            raise OpenFailed(f"host {name}: its agent does not tell of the parts that it was asked for")
    if not request.shared:
        _refuse_same(team, chosen)
    target = HostsTarget(
        team=team,
        shared=request.shared,
        chosen=chosen,
        facts_of={name: one.facts for name, one in chosen.items()},
        clocks=clocks,
        named={member.name: _paths_of(given(member)) for member in team.members},
    )
    for member in team.members:
        target.notices += [f"host {member.name}: {notice}" for notice in chosen[member.name].notices]
    return target


def _greeted(team: Team) -> None:
    try:
        greet(team)
    except HostLost as error:
        member = next(member for member in team.members if member.lost is not None)
        code = getattr(member.link, "exit_code", None)
        why = (member.lost or "").removeprefix("its agent ended ")
        why = why if why.startswith("(") else f"({why})"
        if code == SSH_FAILED:
            raise OpenFailed(
                f"host {member.name}: cannot be reached {why}; see that `ssh {member.name} true` works without asking"
            ) from error
        if code in NO_PROGRAM:
            raise RefusedTarget(
                f"host {member.name}: has no Assay {why}; install it there, or give {member.name}:/PATH/TO/assay"
            ) from error
        raise OpenFailed(
            f"host {member.name}: no agent of Assay begins there {why}; install the same version there"
        ) from error


def _given(
    member: Member, team: Team, request: Request, parts: Sequence[Part[Any]], sizes: Mapping[str, int] | None
) -> dict[str, Any]:
    """What one agent is told of the run: the request with its own names in it, and its place among all."""

    def named(text: str) -> str:
        return text.replace("{host}", member.name).replace("{number}", str(member.place + 1))

    asked = replace(
        request, paths=[named(text) for text in request.paths], volumes=[named(text) for text in request.volumes]
    )
    own = f"{member.name}:"
    return {
        "request": asked.to_dict() | {"hosts": [], "cluster": None, "shared": False, "dry_run": request.dry_run},
        "overwrite": [named(text) for text in request.overwrite],
        "yes_destroy": [named(text) for text in request.yes_destroy],
        "parts": [part_report(part) for part in parts],
        "share": {"place": member.place, "hosts": len(team.members), "shared": request.shared},
        "sizes": {name.removeprefix(own): size for name, size in (sizes or {}).items() if name.startswith(own)},
    }


def _paths_of(given: Mapping[str, Any]) -> list[str]:
    """Paths that a host was given; what an option says before a path, such as a role, is left out."""
    request = given["request"]
    texts = [*request["paths"], *(text.partition("=")[2] for text in request["volumes"])]
    return [text for text in [*texts, *given["overwrite"], *given["yes_destroy"]] if os.path.isabs(text)]


def _refuse_same(team: Team, chosen: Mapping[str, Chosen]) -> None:
    """What two hosts were given twice under two names, or under one."""
    seen: dict[tuple[str, ...], str] = {}
    for member in team.members:
        for name, words in chosen[member.name].identities.items():
            shown = f"{name} of host {member.name}"
            before = seen.setdefault(tuple(words), shown)
            if before != shown:
                raise RefusedTarget(
                    f"{before} and {shown} are the same; give each host its own, as by {{host}} in the name, or"
                    " --shared"
                )


def refuse_alone(request: Request, parts: Sequence[Part[Any]], option: str) -> None:
    """Refuse what only one host can do, on both sides.

    Raises
    ------
    UsageError, NotSupported
        A part does something that others could not do, too.
    """
    if request.crash_journal or request.after_crash:
        raise UsageError(f"{option}: a crash journal is one host's; leave it out")
    for part in parts:
        alone = {
            "has a target of its own": part.target_text is not None,
            "runs beside another": part.beside is not None,
            "follows another": part.follows is not None,
            "goes on with another": part.continues,
            "has events of an array": bool(part.plan.events),
        }
        why = next((words for words, is_so in alone.items() if is_so), None)
        if why is not None:
            raise NotSupported(f"{option}: part {part.name} {why}, which only one host can do; run it on one")


def end_hosts(target: object) -> None:
    """End the agents of a target that has some."""
    if isinstance(target, HostsTarget):
        target.leave(SILENT)
        target.settle()
