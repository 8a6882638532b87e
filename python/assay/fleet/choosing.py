"""Choosing the target of a run over several hosts: an agent on each host examines its share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, cast

from assay.base.errors import NotSupported, OpenFailed, RefusedTarget, UsageError
from assay.base.secrets import secrets_for_wire
from assay.base.units import format_duration
from assay.fleet.from_agent import HostShare
from assay.fleet.job import SpreadWorkload
from assay.fleet.links import LOCAL, Link, ProcessLink, agent_command, named_hosts, ssh_command
from assay.fleet.member import Member
from assay.fleet.target import CHOOSE_S, HostsTarget
from assay.fleet.team import HostLost, Team, greet
from assay.record.shapes.manifest import Request
from assay.run.part import part_report
from assay.run.request import TargetRequest
from assay.run.targets import fitted_to
from assay.workloads.capabilities import over_hosts
from assay.workloads.plan import Part
from assay.workloads.registry import workload_of

CLOCKS_APART_S = 60.0
"""Clocks farther apart are refused: times of one host's log could not be found in another's."""
SSH_FAILED, NO_PROGRAM = 255, (126, 127)
"""Exit codes of ssh itself, and of a shell that finds or may start no program."""


class GivenPlace(TypedDict):
    """The place of a host among all."""

    place: int
    hosts: int
    shared: bool


class GivenShare(TypedDict):
    """What one agent is told of the run; sizes of volumes in bytes."""

    request: Request
    overwrite: list[str]
    yes_destroy: list[str]
    parts: Sequence[Mapping[str, object]]
    share: GivenPlace
    sizes: dict[str, int]


def choose_over_hosts(
    request: TargetRequest, parts: Sequence[Part[Any]], sizes: Mapping[str, int] | None = None
) -> tuple[HostsTarget, list[Part[Any]]]:
    """Start an agent on each host, and have it examine its share of the target; nothing is written anywhere.

    Returns
    -------
    HostsTarget, list of Part
        The target, and the parts as they fit it.

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
    for part in parts:
        over_hosts(workload_of(part.plan))
    team = Team(_links(request))
    try:
        target = _chosen(team, request, parts, sizes)
        return target, [fitted_to(part, target) for part in parts]
    except BaseException:
        team.end()
        raise


def _links(request: TargetRequest) -> list[tuple[str, Link]]:
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


def _chosen(
    team: Team, request: TargetRequest, parts: Sequence[Part[Any]], sizes: Mapping[str, int] | None
) -> HostsTarget:
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

    def given(member: Member) -> GivenShare:
        return _given(member, team, request, parts, sizes)

    replies = team.ask("choose", given, longest_s=CHOOSE_S)
    chosen: dict[str, HostShare] = {name: reply.value for name, reply in replies.items()}
    for name, one in chosen.items():
        if set(one.parts) != {part.name for part in parts}:
            raise OpenFailed(f"host {name}: its agent does not tell of the parts that it was asked for")
    if not request.shared:
        _refuse_same(team, chosen)
    target = HostsTarget(
        team=team,
        shared=request.shared,
        chosen=chosen,
        facts_of={name: one.target_facts for name, one in chosen.items()},
        clocks=clocks,
        named={member.name: _paths_of(given(member)) for member in team.members},
    )
    target.spread = lambda workload: SpreadWorkload(workload, target)
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
    member: Member, team: Team, request: TargetRequest, parts: Sequence[Part[Any]], sizes: Mapping[str, int] | None
) -> GivenShare:
    """What one agent is told of the run: the request with its own names in it, and its place among all."""

    def named(text: str) -> str:
        return text.replace("{host}", member.name).replace("{number}", str(member.place + 1))

    asked = replace(
        request, paths=[named(text) for text in request.paths], volumes=[named(text) for text in request.volumes]
    )
    own = f"{member.name}:"
    own_request: dict[str, list[str] | bool | None] = {
        "hosts": [],
        "cluster": None,
        "shared": False,
        "dry_run": request.dry_run,
    }
    return {
        "request": cast(Request, asked.to_dict() | own_request),
        "overwrite": [named(text) for text in request.overwrite],
        "yes_destroy": [named(text) for text in request.yes_destroy],
        "parts": [part_report(part) for part in parts],
        "share": {"place": member.place, "hosts": len(team.members), "shared": request.shared},
        "sizes": {name.removeprefix(own): size for name, size in (sizes or {}).items() if name.startswith(own)},
    }


def _paths_of(given: GivenShare) -> list[str]:
    """Paths that a host was given; what an option says before a path, such as a role, is left out."""
    request = given["request"]
    texts = [*request["paths"], *(text.partition("=")[2] for text in request["volumes"])]
    return [text for text in [*texts, *given["overwrite"], *given["yes_destroy"]] if os.path.isabs(text)]


def _refuse_same(team: Team, chosen: Mapping[str, HostShare]) -> None:
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


def refuse_alone(request: TargetRequest, parts: Sequence[Part[Any]], option: str) -> None:
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
