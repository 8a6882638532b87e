"""The targets of a run's parts: each is made ready just before its part, and left when another target follows."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError
from assay.progress import Display
from assay.run.part import AnyTarget, Part
from assay.targets.storage.target import Target, lay_out, settle
from assay.telemetry.collectors import host_collectors
from assay.workloads.tpcc.plan import TpccPlan
from assay.workloads.tpcc.target import DatabaseTarget

if TYPE_CHECKING:
    from assay.telemetry.recorder import Collector

Facts = dict[str, Any]


@dataclass(kw_only=True)
class PartTargets:
    """The run's target, which all parts share that have none of their own, and those of the others."""

    shared: AnyTarget
    parts: Sequence[Part]
    display: Display
    interrupt: threading.Event
    notices: list[str] = field(default_factory=list)
    """What is to be said of targets that were left."""
    _used: list[AnyTarget] = field(default_factory=list)
    _laid_out: list[Target] = field(default_factory=list)

    def of(self, part: Part) -> AnyTarget:
        """The target of a part."""
        return part.target or self.shared

    @property
    def all(self) -> list[AnyTarget]:
        """Every target of the run, once."""
        found = [self.shared]
        for part in self.parts:
            if not any(self.of(part) is target for target in found):
                found.append(self.of(part))
        return found

    # Before and after a part

    def make_ready(self, part: Part, actions_done: Sequence[str] = ()) -> Part:
        """Leave the target of the part before, unless it is this one's, too; open or lay out that of the part.

        Parameters
        ----------
        part
            The part that is to run.
        actions_done
            Of a part on databases, those that are not to be done again.

        Returns
        -------
        Part
            With its plan as it fits the target.

        Raises
        ------
        AssayError
            It cannot be used; it was left again.
        """
        target = self.of(part)
        self.leave(but=target)
        try:
            if isinstance(target, DatabaseTarget):
                assert isinstance(part.plan, TpccPlan), "databases are the target of transactions alone"
                fitted = target.prepare(part.plan.without(actions_done), self.display.phase)
                part = replace(part, plan=fitted.model_copy(update={"actions": part.plan.actions}))
            else:
                self.lay_out(target)
        except AssayError:
            self.leave()
            raise
        if not any(target is used for used in self._used):
            self._used.append(target)
        return part

    def lay_out(self, target: Target) -> None:
        """Fill what is to be read from and holds no data yet, once in a run.

        Raises
        ------
        OutOfSpace, IoFailed, NotAnswering, Interrupted
            As `assay.targets.storage.target.lay_out` raises them.
        """
        if any(target is done for done in self._laid_out) or not target.to_lay_out:
            return
        self._laid_out.append(target)
        self.display.phase("laying out")
        plan = next(part.plan for part in self.parts if self.of(part) is target)
        assert not isinstance(plan, TpccPlan), "transactions run on databases alone"
        timeout_s = plan.timing.io_timeout_s
        lay_out(target, io_timeout_s=timeout_s, interrupt=self.interrupt, progress=self.display.layout)

    def leave(self, but: AnyTarget | None = None) -> None:
        """Stop the servers that the run started; that one does not stop is said, and takes nothing from the figures."""
        for target in self.all:
            if target is but or not isinstance(target, DatabaseTarget) or not target.is_open:
                continue
            self.display.phase("leaving the databases")
            self.notices += [notice for notice in target.all_notices if notice not in self.notices]
            try:
                target.close()
            except AssayError as error:
                self.notices.append(str(error))

    def settle(self) -> None:
        """Say in the marks of files that nothing writes to them any more."""
        for target in self.all:
            if isinstance(target, Target):
                plans = [part.plan for part in self.parts if self.of(part) is target]
                settle(
                    target,
                    max((plan.timing.io_timeout_s for plan in plans if not isinstance(plan, TpccPlan)), default=0),
                )

    # What is recorded and told of them

    @property
    def devices(self) -> list[str]:
        """Block devices under files and devices of all parts, which are recorded throughout."""
        storage = [target for target in self.all if isinstance(target, Target)]
        return sorted({device for target in storage for device in devices_of(target)})

    def collectors(self) -> list[Collector[Any]]:
        """What records the host throughout; nothing where all parts are on models, which record themselves."""
        return host_collectors(self.devices) if any(target.array is None for target in self.all) else []

    def own_collectors(self, part: Part) -> list[Collector[Any]]:
        """What else records while a part runs: its databases, and those of their devices that nothing else does."""
        target = self.of(part)
        return target.collectors(self.devices) if isinstance(target, DatabaseTarget) else []

    def facts(self, before: Mapping[str, Any]) -> Facts:
        """The manifest's `target`: the run's, with what the parts so far used besides.

        Parameters
        ----------
        before
            The manifest's `target` as it is. A run that goes on keeps the state its volumes had when it began, and the
            databases of parts that are done.
        """
        # The arrays of a study on models are variants of the first one.
        others = [target for target in self._used if target is not self.shared and target.array is None]
        facts = self.shared.facts()
        told = [facts, *(target.facts() for target in others)]
        volumes = {(volume["name"], volume["path"]): volume for one in told for volume in one["volumes"]}
        databases = {database["name"]: database for one in told for database in one.get("databases", ())}
        for volume in before["volumes"]:
            key = volume["name"], volume["path"]
            if key in volumes and not volumes[key]["bytes_laid_out"]:
                volumes[key] |= {name: volume[name] for name in ("state", "bytes_laid_out")}
            elif key not in volumes and volume["kind"] == "database":
                volumes[key] = volume
        databases = {database["name"]: database for database in before.get("databases", ())} | databases
        return (
            facts | {"volumes": list(volumes.values())} | ({"databases": list(databases.values())} if databases else {})
        )


def devices_of(target: AnyTarget) -> list[str]:
    """Block devices under a target by kernel name; none under models."""
    if target.array is not None:
        return []
    return sorted({volume["device"] for volume in target.facts()["volumes"] if volume["device"]})
