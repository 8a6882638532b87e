"""What the user asked of the target."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay.base.errors import RefusedTarget, UsageError
from assay.base.paths import printable
from assay.base.units import parse_bytes
from assay.targets.arrays.live.process import served_array
from assay.targets.arrays.live.spec import ServedSpec, is_served_array, parse_served
from assay.targets.databases import is_database
from assay.targets.files.choosing import SIZE_MAX_DEFAULT_BYTES, choose_target
from assay.targets.files.spec import (
    HOLDS_NO_BYTES,
    VolumeSpec,
    absolute_path,
    absolute_target,
    is_model,
    named,
    parse_file,
    parse_targets,
    split_volumes,
)
from assay.targets.files.target import StorageTarget
from assay.workloads.plan import Part
from assay.workloads.registry import workload_of
from assay.workloads.workload import Needs

ONLY_VERIFY = "target faulty:... injects faults, which only `assay verify` looks for; give the path alone"

ON_MODEL = {
    "--cache-size": "a model has its own cache: model:NAME?cache=4G",
    **dict.fromkeys(("--overwrite", "--yes-destroy", "--yes-format"), "a model has nothing to destroy"),
    **dict.fromkeys(("--crash-journal", "--after-crash"), "a model holds no bytes that a crash could take"),
}
"""Options that a model refuses, and why."""


def refuse_model(targets: Sequence[str]) -> None:
    """Refuse models for verbs that need bytes.

    Raises
    ------
    UsageError
        A target is one.
    """
    if any(map(is_model, targets)):
        raise UsageError(HOLDS_NO_BYTES)


@dataclass(kw_only=True)
class TargetRequest:
    """What the user asked of the target, as far as a resumed run needs it again. Holds no secrets."""

    paths: list[str]
    volumes: list[str] = field(default_factory=list)
    size: str | None = None
    cache_size: str | None = None
    overwrite: list[str] = field(default_factory=list)
    yes_destroy: list[str] = field(default_factory=list)
    yes_format: list[str] = field(default_factory=list)
    """Devices that a purge may format as a whole."""
    size_most_bytes: int = SIZE_MAX_DEFAULT_BYTES
    create: bool = True
    """A file may be made whatever its name; the command line asks for a suffix or `--create`."""
    database: bool = False
    """The volumes are for an imitated database alone: a folder stands for a data file and a log file."""
    numbered: bool = False
    """Volumes may be named for one of several databases or logs: `db1=PATH,log1=PATH`."""
    crash_journal: str | None = None
    """Where acknowledged writes shall be recorded."""
    hosts: list[str] = field(default_factory=list)
    """Hosts that the load is spread over, as they were given; none for this process alone."""
    cluster: str | None = None
    """A Ray cluster whose hosts they are."""
    shared: bool = False
    """All hosts use the same target."""
    after_crash: str | None = None
    """The journal of a run that a crash ended; nothing is written then."""
    yes_writes: str | None = None
    """The most that bringing the target into a state may write, where that is much."""
    dry_run: bool = False
    """Nothing is served: the volumes of an array are told of, and not there."""

    @property
    def is_spread(self) -> bool:
        """Whether agents do the work."""
        return bool(self.hosts) or self.cluster is not None

    def choose(
        self, parts: Sequence[Part[Any]], sizes: dict[str, int] | None = None, by_path: dict[str, int] | None = None
    ) -> StorageTarget:
        """Examine the target. `sizes`, by volume, are those a resumed run had; `by_path` are those of single files."""
        needs = [workload_of(part.plan).needs(part.plan) for part in parts]
        array = self._array()
        if array is not None and self.dry_run:
            return _not_there(array)
        specs = self._sized(self._specs(needs) if array is None else self._on_array(array), needs)
        if any(spec.kind == "model" for spec in specs):
            self._refuse_on_model(needs)
        if not all(need.names_faults for need in needs):
            _refuse_faulty(specs)
        _refuse_mixed_faults(specs)
        paths = {os.path.abspath(path): size for path, size in (by_path or {}).items()}
        specs = [replace(spec, size_bytes=paths.get(str(spec.path), spec.size_bytes)) for spec in specs]
        target = choose_target(
            specs,
            overwrite=self.overwrite if array is None else [str(spec.path) for spec in specs],
            yes_destroy=self.yes_destroy,
            writes=self.after_crash is None and any(need.writes for need in needs),
            cache_bytes=parse_bytes(self.cache_size, what="--cache-size") if self.cache_size else None,
            size_most_bytes=self.size_most_bytes,
            database=self.database,
            create=self.create or any(need.files for need in needs),
            sparse=[name for need in needs for name in need.sparse(specs)] if self.database else (),
        )
        if array is not None:
            target.served = [served_array(array, mounted=False)]
            target.served[0].held += [hold.close for hold in target.holds.values()]
        target.sizes |= {name: size for name, size in (sizes or {}).items() if name in target.sizes}
        self._choose_journal(target)
        allowed = {os.path.realpath(path) for path in self.yes_format}
        target.may_format = frozenset(
            volume.spec.name for volume in target.examined if self.dry_run or str(volume.path) in allowed
        )
        for part in parts:
            workload_of(part.plan).check(part, target)
        self._refuse_many_writes(parts, target)
        return target

    def _refuse_many_writes(self, parts: Sequence[Part[Any]], target: StorageTarget) -> None:
        """Refuse to wear storage without having been told how much may be written; a model does not wear."""
        most = sum(workload_of(part.plan).written_most_bytes(part, target) for part in parts)
        allowed = parse_bytes(self.yes_writes, what="--yes-writes") if self.yes_writes else WRITES_UNASKED_BYTES
        if most > allowed and not target.is_virtual and not self.dry_run:
            asked = f"{math.ceil(most / 1e9):,}GB".replace(",", "")
            told = "--yes-writes is" if self.yes_writes else "without being asked it is"
            raise RefusedTarget(
                f"--precondition: writes up to {most / 1e12:.3g} TB to the target, and {told} {allowed / 1e12:.3g} TB"
                f" at most; flash wears by it; allow it with --yes-writes {asked}, or take less (--precondition short)"
            )

    def _array(self) -> ServedSpec | None:
        """The array that the run serves, where it is the target."""
        asked = [text for text in [*self.paths, *(path for _, path in split_volumes(self.volumes, numbered=True))]
                 if is_served_array(text)]  # fmt: skip
        if not asked:
            return None
        if len(self.paths) + len(self.volumes) > 1 or self.volumes:
            raise UsageError("target array:... is a whole target; give it alone, its volumes by volumes=N in it")
        if self.size is not None:
            raise UsageError("--size: volumes of an array have theirs in the target: array:NAME?size=20G")
        spec = parse_served(asked[0])
        self.paths = [f"array:{spec.text}"]
        return spec

    @staticmethod
    def _on_array(array: ServedSpec) -> list[VolumeSpec]:
        """The volumes of an array, which is served from here on."""
        volumes = array.volumes()
        served_array(array, mounted=False).start()
        return named([parse_file(str(array.folder / name), role) for name, role, _ in volumes])

    def _specs(self, needs: Sequence[Needs]) -> list[VolumeSpec]:
        """The volumes asked for: on the command line, or else the files that a plan names."""
        files = next((need.files for need in needs if need.files), ())
        if files and not self.paths and not self.volumes:
            if self.size is not None:
                raise UsageError("--size: the plan's files have sizes of their own; change them, or name a target")
            _refuse_same(files)
            return list(files)
        specs = parse_targets(
            self.paths, volumes=self.volumes, sizes=self.size, with_log=self.database, numbered=self.numbered
        )
        if self.database and self.size is not None and "=" not in self.size:
            # One size is that of the data; a log of its own takes a share of it.
            has_data = any(spec.role != "log" for spec in specs)
            specs = [
                replace(spec, size_bytes=None, size_rule=None) if spec.role == "log" and has_data else spec
                for spec in specs
            ]
        return specs

    @staticmethod
    def _sized(specs: list[VolumeSpec], needs: Sequence[Needs]) -> list[VolumeSpec]:
        """The volumes with the sizes that plans need, where none was asked for."""
        sizes = {name: size for need in needs for name, size in need.sizes(specs).items()}
        return [
            replace(spec, size_bytes=sizes[spec.name])
            if spec.name in sizes and spec.size_bytes is None and spec.size_rule is None
            else spec
            for spec in specs
        ]

    def _refuse_on_model(self, needs: Sequence[Needs]) -> None:
        """Refuse what only storage has: bytes, files, caches of the host and waiting in real time."""
        for option, given in (
            ("--cache-size", self.cache_size),
            ("--overwrite", self.overwrite),
            ("--yes-destroy", self.yes_destroy),
            ("--yes-format", self.yes_format),
            ("--crash-journal", self.crash_journal),
            ("--after-crash", self.after_crash),
        ):
            if given:
                raise UsageError(f"{option}: {ON_MODEL[option]}; leave it out")
        for need in needs:
            need.on_model()

    def _choose_journal(self, target: StorageTarget) -> None:
        if self.after_crash is not None:
            target.journal, target.after_crash = _existing_journal(self.after_crash), True
            missing = [volume.spec.path for volume in target.examined if not volume.exists]
            if missing:
                raise UsageError(f"--after-crash: {missing[0]} does not exist; name the target of the run that crashed")
        elif self.crash_journal is not None:
            target.journal = _new_journal(self.crash_journal, target)

    def to_dict(self) -> dict[str, Any]:
        """The request as the manifest keeps it: paths in full, and no permission to destroy anything."""
        kept = {key: value for key, value in vars(self).items() if key not in (*PERMISSIONS, "dry_run")}
        for key in ("crash_journal", "after_crash"):
            kept[key] = absolute_path(kept[key]) if kept[key] is not None else None
        return kept | {
            "paths": [text if is_database(text) else absolute_target(text) for text in self.paths],
            "volumes": [
                f"{role}={absolute_target(path)}" for role, path in split_volumes(self.volumes, numbered=self.numbered)
            ],
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any], **permitted: list[str]) -> TargetRequest:
        """A request as the manifest keeps it, with what the command line permits now (`PERMISSIONS`)."""
        known = {key: value for key, value in kept.items() if key not in PERMISSIONS}
        if "targets" in known:
            # Runs on databases once kept their targets so.
            known["paths"] = known.pop("targets")
        return cls(**known | permitted)


WRITES_UNASKED_BYTES = 1_000_000_000_000
"""Most that preconditioning writes without `--yes-writes`: a client drive of 1 TB endures some 600 times as much."""
PERMISSIONS = ("overwrite", "yes_destroy", "yes_format")
"""What a run that goes on is given anew: what is at a path may be something else by then."""


def _not_there(array: ServedSpec) -> StorageTarget:
    """The volumes of an array that is not served, for `--dry-run`."""
    from assay.targets.files.safety import examine

    volumes = array.volumes()
    specs = [VolumeSpec(name=name, kind="model", path=None, role=role) for name, role, _ in volumes]
    return StorageTarget(
        examined=[examine(spec, overwrite=(), yes_destroy=(), writes=False) for spec in specs],
        sizes={name: size for name, _, size in volumes},
        roles={name: (role,) for name, role, _ in volumes},
    )


# Faults


def _refuse_faulty(specs: Sequence[VolumeSpec]) -> None:
    if any(spec.kind == "faulty" for spec in specs):
        raise UsageError(ONLY_VERIFY)


def _refuse_mixed_faults(specs: Sequence[VolumeSpec]) -> None:
    """One device injects the faults of a run, so all volumes are on it or none."""
    faulty = [spec for spec in specs if spec.kind == "faulty"]
    if faulty and (len(faulty) != len(specs) or any(spec.options != faulty[0].options for spec in faulty)):
        raise UsageError("target faulty:... is for all volumes of a run; give each the same options")


def _refuse_same(specs: Sequence[VolumeSpec]) -> None:
    """Files of a plan may lead to one file by links, which would be written to twice."""
    seen: dict[str, Path | None] = {}
    for spec in specs:
        key = os.path.realpath(str(spec.path))
        if key in seen:
            raise UsageError(f"files of the plan: {spec.path} and {seen[key]} are the same; give each file once")
        seen[key] = spec.path


# Journals


def _new_journal(text: str, target: StorageTarget) -> Path:
    """Where a journal is to be written: nothing that is there already is lost for it."""
    path = _journal_path("--crash-journal", text)
    if not path.parent.is_dir():
        raise UsageError(
            f"--crash-journal {text}: there is no folder {path.parent}; name a file on other storage than the target"
        )
    if any(volume.path == Path(os.path.realpath(path)) for volume in target.examined):
        raise UsageError(f"--crash-journal {text}: is the target itself; name a file on other storage")
    if os.path.lexists(path):
        raise RefusedTarget(f"--crash-journal {text}: exists; check it with --after-crash, or name a new file")
    if any(volume.device_id == _device(path.parent) for volume in target.examined if volume.free_bytes is not None):
        target.notices.append(f"the journal {path} is on the target's file system: what takes one may take both")
    return path


def _journal_path(option: str, text: str) -> Path:
    path = Path(text).expanduser().absolute()
    try:
        str(path).encode()
    except UnicodeEncodeError:
        # The compiled core opens it by the path in its plan, which is text.
        raise UsageError(f"{option} {printable(path)}: a journal's path must be text in UTF-8; name another") from None
    return path


def _device(path: Path) -> tuple[int, int]:
    number = os.stat(path).st_dev
    return os.major(number), os.minor(number)


def _existing_journal(text: str) -> Path:
    path = _journal_path("--after-crash", text)
    if not path.is_file():
        raise UsageError(f"--after-crash {text}: is no file; name the journal that --crash-journal wrote")
    if not path.stat().st_size:
        raise UsageError(f"--after-crash {text}: is empty, so nothing was acknowledged; name the journal of a run")
    return path
