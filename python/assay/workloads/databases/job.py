"""A part on databases at work: load, run, check, save, restore, drop, in the order the plan gives them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from assay.base.errors import Interrupted, UsageError
from assay.base.units import format_duration
from assay.targets.databases import LAID_OUT, Database
from assay.targets.databases.common.target import DatabaseTarget
from assay.targets.databases.kinds import take_down
from assay.workloads.databases.loading import drop_loaded, load_tables
from assay.workloads.databases.plan import Action, DatabasesPlan
from assay.workloads.job import Job, PartContext
from assay.workloads.plan import Part
from assay.workloads.steps import Steps

P = TypeVar("P", bound=DatabasesPlan)


class DatabaseJob(Job, Generic[P]):
    """A part at work on its databases; its kind runs and checks."""

    plan: P
    target: DatabaseTarget
    document_key: ClassVar[str]
    """Key of the manifest under which the kind tells of a run as a whole."""
    disclaimer: ClassVar[str] = ""
    nothing_done: ClassVar[Mapping[str, object]] = {"actions_done": {}, "load": None}
    """What there is to say before anything was done."""

    told: dict[str, Any]
    """What there is to say of the part as a whole."""

    def __init__(self, part: Part[P], target: DatabaseTarget, context: PartContext) -> None:
        super().__init__(part, target, context)
        self.told = dict(context.folder.manifest.get(self.document_key) or self.nothing_done)

    @abstractmethod
    def run(self) -> Steps:
        """Do what the action `run` stands for."""

    @abstractmethod
    def check(self) -> None:
        """Do what the action `check` stands for."""

    @property
    def scale_told(self) -> int:
        """How much is loaded, as people are told."""
        return self.target.scale_total

    def dropped(self) -> Mapping[str, object]:
        """What there is to say once the tables are gone."""
        return {"load": None}

    def steps(self) -> Steps:
        """Do the actions; only `run` measures points.

        Raises
        ------
        Interrupted, AssayError
            What was finished is in `told` and in the run folder.
        """
        done = actions_done(self.context.folder.manifest, self.document_key, self.part.name)
        if self.disclaimer:
            self.context.note(self.disclaimer)
        work: dict[Action, Callable[[], object]] = {
            "load": self._load,
            "check": self.check,
            "save": self._save,
            "restore": self._restore,
            "drop": self._drop,
        }
        for action in self.plan.actions:
            # Points of a finished run are taken from the folder, which gives its answer again.
            if action in done and action != "run":
                continue
            if self.context.interrupt.is_set():
                raise Interrupted("interrupted")
            self.target.hold()
            if action == "run":
                yield from self.run()
            else:
                work[action]()
            done = list(dict.fromkeys([*done, action]))
            self.keep(actions_done=self.told["actions_done"] | {self.part.name: done})

    def keep(self, **figures: object) -> None:
        """Add keys to what the part tells, in the run folder too."""
        self.told |= figures
        self.context.folder.update(**{self.document_key: self.told})

    # Actions

    def _load(self) -> None:
        target, size = self.target, self.target.databases[0].table_set.size
        loaded = load_tables(target, self.plan, display=self.context.display, interrupt=self.context.interrupt)
        target.refresh()
        if loaded is None:
            if not self.told.get("load"):
                self.keep(load=None)
                self.context.note(f"{size.words(self.scale_told)} had been loaded before")
            return
        self.keep(load={**loaded, target.databases[0].table_set.scale: self.scale_told})
        self.context.display.tell(
            f"loaded {size.words(self.scale_told)}: {loaded['rows']:,} rows at"
            f" {loaded['rows_per_s']:,.0f} rows/s, {format_duration(loaded['seconds'])} in all"
        )

    def _save(self) -> None:
        for database in self.target.databases:
            refuse_laid_out(database)
            self.context.display.phase(f"saving the state of {database.name}")
            database.save()

    def _restore(self) -> None:
        for database in self.target.databases:
            self.context.display.phase(f"restoring the state of {database.name}")
            database.restore()

    def _drop(self) -> None:
        for database in self.target.databases:
            self.context.display.phase(f"dropping the tables of {database.name}")
            drop_loaded(database)
        for database in self.target.databases:
            take_down(database)
        self.told |= self.dropped()

    def start_from_saved(self) -> None:
        """Bring back the saved state; the first time, keep the present one.

        Raises
        ------
        NotSupported
            The database can neither be saved nor restored here.
        """
        for database in self.target.databases:
            saved, there = database.saved() or {}, database.schema()
            if (saved.get(database.table_set.scale), saved.get("seed")) != (there.scale, there.seed):
                refuse_laid_out(database)
                self.context.display.phase(f"saving the state of {database.name}, from which every point starts")
                database.save()
                if there.state == "ran":
                    self.context.note(f"every point starts from {database.name} as earlier runs had left it")
            elif there.state != "loaded":
                self.context.display.phase(f"restoring the state of {database.name}")
                database.restore()


def refuse_laid_out(database: Database) -> None:
    """Refuse to take tables for the plain ones that an earlier run laid out in another way."""
    if database.schema().state == LAID_OUT:
        raise UsageError(
            f"{database.name}: an earlier run laid its tables out in another way; bring the plain ones back with the"
            " action: restore, or drop them and load again"
        )


def actions_done(manifest: Mapping[str, Any], document_key: str, part: str) -> list[str]:
    """What a run has done of a part on databases, by its manifest."""
    return list((manifest.get(document_key) or {}).get("actions_done", {}).get(part, ()))
