"""The targets of a run's parts: chosen together, made ready just before a part, and left when another one follows."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.base.errors import AssayError, UsageError
from assay.base.extras import missing
from assay.base.log import event
from assay.base.progress import Display
from assay.run.drives import DriveWatch
from assay.run.request import TargetRequest
from assay.targets.arrays.live.process import served_array
from assay.targets.databases import is_database, parse_databases
from assay.targets.databases.common.spelling import no_database
from assay.targets.databases.common.target import choose_databases
from assay.targets.databases.kinds import DRIVERS
from assay.targets.target import Target
from assay.telemetry.collectors import host_collectors, target_collectors
from assay.workloads.capabilities import MeasuresIo, OnDatabases
from assay.workloads.plan import Part
from assay.workloads.registry import workload_of, workloads_of
from assay.workloads.workload import workload_at

if TYPE_CHECKING:
    from assay.telemetry.recorder import Collector


def choose_targets(
    request: TargetRequest, parts: Sequence[Part[Any]], sizes: dict[str, int] | None = None
) -> tuple[Target, list[Part[Any]]]:
    """The run's target, and the parts with theirs where they have one of their own; nothing is written or opened.

    Parameters
    ----------
    request
        What was asked of the target. A password in the URL of a database is taken out of it, as out of the parts.
    parts
        All parts of the run.
    sizes
        Those that a resumed run had, by volume.

    Raises
    ------
    RefusedTarget, OutOfSpace, UsageError
        As `TargetRequest.choose` and `choose_databases` raise them.
    """
    if request.shared:
        raise UsageError("--shared: says what hosts have in common; give --hosts, too")
    shared = [part for part in parts if part.target_text is None]
    together: dict[tuple[str, ...], list[Part[Any]]] = {}
    for part in with_those_beside(parts):
        if part.target_text is not None:
            together.setdefault((part.target_text, *part.more_targets), []).append(part)
    own: dict[tuple[str, ...], Target] = {}
    shown: dict[tuple[str, ...], list[str]] = {}
    _serve_beneath(parts, request)
    for texts, those in together.items():
        asked = replace(request, paths=list(texts))
        own[texts] = _choose(asked, those)
        shown[texts] = asked.to_dict()["paths"]
    target = _choose(request, shared, sizes) if shared or not own else next(iter(own.values()))

    for part in parts:
        if part.plan.events and not (own.get((part.target_text or "", *part.more_targets)) or target).served:
            raise UsageError(
                "--events: nothing here is served by this run; give array:NAME or embedded+array:NAME, or use"
                " `assay array serve --events`"
            )

    def fitted(part: Part[Any]) -> Part[Any]:
        if part.target_text is not None:
            texts = part.target_text, *part.more_targets
            first, *more = shown[texts]
            part = replace(part, target=own[texts], target_text=first, more_targets=tuple(more))
        if part.beside is not None:
            part = replace(part, beside=fitted(part.beside))
        return fitted_to(part, part.target or target)

    return target, [fitted(part) for part in parts]


def fitted_to(part: Part[Any], target: Target) -> Part[Any]:
    """The part as it fits a target that was chosen."""
    workload = workload_of(part.plan)
    return workload.fitted(part, target) if isinstance(workload, MeasuresIo) else part


def _serve_beneath(parts: Sequence[Part[Any]], request: TargetRequest) -> None:
    """Serve arrays whose file systems parts measure beside a database: what is examined must be there."""
    texts = [part.target_text for part in with_those_beside(parts) if part.target_text is not None]
    on_arrays = [text for text in [*texts, *request.paths] if is_database(text)]
    specs = [spec.array for text in on_arrays for spec in parse_databases([text]) if spec.array is not None]
    for spec in specs:
        if any(not is_database(text) and Path(text).is_relative_to(spec.mounts) for text in texts):
            served_array(spec, mounted=True).start()


def lacking(part: Part[Any]) -> str | None:
    """Say which packages a part on a database needs that are not installed; None where all are."""
    kind = workload_of(part.plan)
    if not isinstance(kind, OnDatabases) or part.target_text is None:
        return None
    (spec,) = parse_databases([part.target_text])
    return missing(spec.display, *DRIVERS[spec.kind], *kind.modules)


def with_those_beside(parts: Iterable[Part[Any]]) -> list[Part[Any]]:
    """Parts, and what runs beside them."""
    return [one for part in parts for one in (part, part.beside) if one is not None]


def _choose(request: TargetRequest, parts: Sequence[Part[Any]], sizes: dict[str, int] | None = None) -> Target:
    # Other workloads on a database's URL are refused as any target is that is no storage.
    kinds = workloads_of(parts)
    kind = kinds[0] if len(kinds) == 1 else None
    if not isinstance(kind, OnDatabases) or not request.paths:
        return request.choose(parts, sizes)
    if strangers := [path for path in request.paths if not is_database(path)]:
        raise no_database(strangers[0])
    target = choose_databases(request.paths, kind.table_set, kind.database_kinds, modules=kind.modules)
    # One target may carry several databases.
    request.paths = list(dict.fromkeys(database.spec.recorded for database in target.databases))
    return target


@dataclass(kw_only=True)
class PartTargets:
    """The run's target, which all parts share that have none of their own, and those of the others."""

    shared: Target
    parts: Sequence[Part[Any]]
    display: Display
    interrupt: threading.Event
    notices: list[str] = field(default_factory=list)
    """Notices of targets that were left."""
    drives: DriveWatch = field(default_factory=DriveWatch)
    _used: list[Target] = field(default_factory=list)

    def of(self, part: Part[Any]) -> Target:
        """The target of a part."""
        return part.target or self.shared

    @property
    def all(self) -> list[Target]:
        """Every target of the run, once."""
        found = [self.shared]
        for part in with_those_beside(self.parts):
            if not any(self.of(part) is target for target in found):
                found.append(self.of(part))
        return found

    # Before and after a part

    def refuse_host(self, part: Part[Any]) -> None:
        """Refuse a part whose databases or served arrays this host cannot run; nothing is opened.

        Raises
        ------
        NotSupported
            A program or a right is missing.
        """
        for target in {id(target): target for target in map(self.of, with_those_beside([part]))}.values():
            if target.is_here:
                for array in target.served:
                    array.refuse_host()
                for database in target.databases:
                    database.refuse_host()

    def make_ready(self, part: Part[Any], manifest: Mapping[str, Any]) -> Part[Any]:
        """Leave the target of the part before, unless it is this one's, too; open that of the part and make it ready.

        Parameters
        ----------
        part
            The part that is to run.
        manifest
            That of the run as far as it has come.

        Returns
        -------
        Part
            As it fits the target.

        Raises
        ------
        AssayError
            It cannot be used; it was left again.
        """
        self.leave(but=[self.of(one) for one in with_those_beside([part])])
        try:
            if part.beside is not None:
                part = replace(part, beside=self._made_ready(part.beside, manifest))
            return self._made_ready(part, manifest)
        except AssayError:
            self.leave()
            raise

    def _made_ready(self, part: Part[Any], manifest: Mapping[str, Any]) -> Part[Any]:
        target = self.of(part)
        workload = workload_at(workload_of(part.plan), target)
        part = workload.examine(part, target, manifest, self.display)
        workload.prepare(part, target, self.display, self.interrupt)
        event("target ready", part=part.name)
        if not any(target is used for used in self._used):
            self._used.append(target)
        return part

    def leave(self, but: Sequence[Target] = ()) -> None:
        """Leave all targets but those."""
        for target in self.all:
            if not any(target is kept for kept in but):
                left = target.leave(self.display)
                event("target left", notices=left)
                self.notices += [notice for notice in left if notice not in self.notices]

    def settle(self) -> None:
        """Say in marks that nothing writes to the targets any more."""
        for target in self.all:
            target.settle()

    def permissions_again(self, yes_destroy: Collection[str]) -> list[str]:
        """Options that the command to go on has to repeat."""
        return [option for target in self.all for option in target.permissions_again(yes_destroy)]

    # What is recorded and told of them

    @property
    def devices(self) -> list[str]:
        """Block devices under the targets of all parts, which are recorded throughout."""
        return sorted({device for target in self.all for device in target.device_names})

    def collectors(self) -> list[Collector[Any]]:
        """What records the host throughout; nothing where no part is part of it."""
        if all(target.is_virtual or not target.is_here for target in self.all):
            return []
        self.drives.watch(self.devices)
        return [*host_collectors(self.devices), self.drives.collector]

    def own_collectors(self, part: Part[Any]) -> list[Collector[Any]]:
        """What else records while a part runs."""
        target = self.of(part)
        if not target.is_here:
            return []
        self.drives.watch(device for devices in target.devices.values() for device in devices)
        return target_collectors(target, self.devices)

    def facts(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """The manifest's `target`: the run's, with what the parts so far used besides.

        Parameters
        ----------
        before
            The manifest's `target` as it is. A run that goes on keeps the state its volumes had when it began, and the
            databases of parts that are done.
        """
        # The arrays of a study on models are variants of the first one.
        others = [target for target in self._used if target is not self.shared and not target.is_virtual]
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
        arrays = {array["target"]: array for one in [before, *told] for array in one.get("served", ())}
        drives = self.drives.facts(before.get("drives"), facts.get("drives") or ())
        databases = {database["name"]: database for database in before.get("databases", ())} | databases
        return {
            **facts,
            "volumes": list(volumes.values()),
            **({"databases": list(databases.values())} if databases else {}),
            **({"served": list(arrays.values())} if arrays else {}),
            **({"drives": drives} if drives else {}),
        }
