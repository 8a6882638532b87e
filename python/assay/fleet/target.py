"""The target of a run over several hosts: the share of each, chosen and held by its agent."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from assay.base.errors import AssayError, NotAnswering, RefusedTarget
from assay.base.paths import printable
from assay.base.progress import SILENT, Display
from assay.fleet.from_agent import HostShare
from assay.fleet.identity import servers
from assay.fleet.member import ClockOffset, Member
from assay.fleet.team import HostLost, Team
from assay.record.run_folder import RunFolder
from assay.record.shapes.drive import Drive
from assay.record.shapes.manifest import RunHost, Target
from assay.workloads.workload import AtTarget, Workload

CHOOSE_S = 600.0
PERMISSIONS = ("--overwrite", "--yes-destroy")


@dataclass(kw_only=True)
class HostsTarget:
    """What all hosts of a run have, as their agents told of it."""

    team: Team
    shared: bool
    spread: Callable[[Workload[Any]], AtTarget[Any]] = field(init=False)
    """Gives a kind of workload as the agents do it."""
    chosen: dict[str, HostShare]
    facts_of: dict[str, Target]
    clocks: dict[str, ClockOffset]
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
            own_name(member.name, name): size
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
        found: Target = {}
        seen: set[tuple[str | None, str]] = set()
        for member in self.members:
            facts = self.facts_of[member.name]
            # Hosts on one machine have the same drives.
            machine = member.facts.machine if member.facts is not None else None
            own = [one for one in facts.get("drives") or [] if (machine or member.name, one["name"]) not in seen]
            seen |= {(machine or member.name, one["name"]) for one in own}
            if own:
                named = [one | Drive(name=own_name(member.name, one["name"])) for one in own]
                found["drives"] = [*(found.get("drives") or []), *named]
            found.setdefault("cache_notice", facts.get("cache_notice"))
            if "array" in facts:
                found.setdefault("array", facts["array"])
            if volumes := facts.get("volumes"):
                found["volumes"] = (found.get("volumes") or []) + [
                    {**one, "name": own_name(member.name, str(one.get("name"))), "host": member.name} for one in volumes
                ]
            if databases := facts.get("databases"):
                found["databases"] = (found.get("databases") or []) + [
                    {**one, "name": own_name(member.name, str(one.get("name"))), "host": member.name}
                    for one in databases
                ]
        return dict(found)

    def hosts(self) -> list[RunHost]:
        """The manifest's `hosts`: what each is, its clock when the run began, and what its share told."""
        return [
            {
                "name": member.name,
                "hostname": member.hostname,
                "host": None if member.facts is None else member.facts.host_facts,
                "machine": None if member.facts is None else member.facts.machine,
                "servers": dict(servers(self.chosen[member.name].identities)),
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

    def refuse_others(self, folder: RunFolder) -> None:
        """Refuse to go on where the hosts or the target of one are not those of the run.

        A point is measured by all hosts together: with another number of hosts it could not be taken over.

        Raises
        ------
        RefusedTarget
            They are others.
        """
        before, now = len(folder.manifest.get("hosts") or self.members), len(self.members)
        if before != now:
            raise RefusedTarget(
                f"--resume {printable(folder.path)}: the run began with {before} hosts, and there are {now} now; bring"
                " back those that are missing, or begin a new run"
            )
        run, volumes = folder.path.name, folder.manifest["target"]["volumes"]
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
            self.facts_of[name] = reply.value.target_facts
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


def _without_names(document: Mapping[str, object]) -> dict[str, object]:
    """What a host tells of itself, but for its names, which are told here."""
    return {key: value for key, value in document.items() if key not in ("name", "hostname")}


def own_name(host: str, name: str) -> str:
    """Name of a host's volume or database among those of all."""
    return f"{host}:{name}"


def end_hosts(target: object) -> None:
    """End the agents of a target that has some."""
    if isinstance(target, HostsTarget):
        target.leave(SILENT)
        target.settle()
