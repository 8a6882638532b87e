"""Studies that come with Assay, TOML files in `studies/`, and those of users.

`NAME.toml` and `NAME.KIND.toml` are variants of one study, for targets of different kinds. A study of several workloads
has a table `[workload.KIND]` for each: what differs of its plan and of its comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.reading import nearest, read_text, table_of
from assay.base.tables import TableValue
from assay.insight.studies.study import StudyPlan, load_study
from assay.workloads.registry import DEFAULT_KIND


def study_names() -> list[str]:
    """Names of the studies that come with Assay."""
    return sorted({file.partition(".")[0] for file in _study_files()})


def _study_files() -> list[str]:
    entries = resources.files("assay.insight.studies").joinpath("presets").iterdir()
    return [entry.name for entry in entries if entry.name.endswith(".toml")]


def study_variants(name: str, workload: str | None = None) -> list[StudyPlan]:
    """The variants of a study that comes with Assay, each for targets of other kinds: `NAME.toml`, `NAME.KIND.toml`.

    Raises
    ------
    UsageError
        The study does not have that workload.
    """
    files = sorted((file for file in _study_files() if file.partition(".")[0] == name), key=len)
    folder = resources.files("assay.insight.studies").joinpath("presets")
    tables = [_table(Path(str(folder.joinpath(file)))) for file in files]
    if workload is not None:
        tables = [table for table in tables if workload in workloads_of(table)] or tables
    source = f"study {name}"
    return [load_study({"name": name} | with_workload(table, workload, source), source=source) for table in tables]


def workloads_of(table: Mapping[str, TableValue]) -> list[str]:
    """Kinds of the workloads that a study may run, the first unless another is asked for."""
    others = table.get("workload", {})
    plan = table.get("plan", {})
    kind = plan.get("kind", DEFAULT_KIND) if isinstance(plan, dict) else DEFAULT_KIND
    return [*others] if isinstance(others, dict) and others else [str(kind)]


def with_workload(table: Mapping[str, TableValue], workload: str | None, source: str) -> dict[str, TableValue]:
    """A study's table with the plan, the comparison and the words of one of its workloads.

    Raises
    ------
    UsageError
        The study does not have that workload.
    """
    known = workloads_of(table)
    chosen = known[0] if workload is None else workload
    if chosen not in known:
        raise UsageError(f"{source}: runs no {chosen}; its workloads: {', '.join(known)}")
    common = {key: value for key, value in table.items() if key != "workload"}
    own = table.get("workload", {})
    if not own:
        return common
    of_chosen = own[chosen] if isinstance(own, dict) else None
    if not isinstance(of_chosen, dict):
        raise UsageError(f"{source}: workload.{chosen}: accepted: a table with plan and comparison")
    merged = {key: _joined(common, of_chosen, key, f"{source}: workload.{chosen}") for key in ("plan", "comparison")}
    merged["plan"]["kind"] = chosen
    return {**common, **of_chosen, **{key: value for key, value in merged.items() if value}}


def _joined(
    common: Mapping[str, TableValue], own: Mapping[str, TableValue], key: str, where: str
) -> dict[str, TableValue]:
    """A table of the study, with the keys of one of its workloads."""
    found: dict[str, TableValue] = {}
    for holder in (common, own):
        table = holder.get(key, {})
        if not isinstance(table, dict):
            raise UsageError(f"{where}: {key}: accepted: a table")
        found |= table
    return found


def read_study(name: str, target: str | None = None, workload: str | None = None) -> StudyPlan:
    """A study by name, or from a file where the name ends in `.toml` or `.json`.

    Parameters
    ----------
    name
        The study, or its file.
    target
        The target it is for: decides between the variants of a study.
    workload
        Kind of its workload, where it has several; None: the first.

    Raises
    ------
    UsageError
        There is no such study, the nearest is named; or the file is not a study; or it does not have that workload.
    """
    if name.endswith((".toml", ".json")):
        path = Path(name)
        source = f"study {name}"
        return load_study({"name": path.stem} | with_workload(_table(path), workload, source), source=source)
    known = study_names()
    if name not in known:
        meant = nearest(name, known)
        hint = f"did you mean {meant!r}? " if meant else ""
        raise UsageError(f"study {name!r}: unknown; {hint}known: {', '.join(known)}; a file of your own ends in .toml")
    variants = study_variants(name, workload)
    fitting = [one for one in variants if target is not None and one.fits(target)]
    fitting.sort(key=lambda one: not one.is_for_engine(str(target)))
    return (fitting or variants)[0]


def _table(path: Path) -> dict[str, TableValue]:
    """The table of a TOML file, or of the JSON that `assay study show --json` prints."""
    source = f"study {printable(path)}"
    return table_of(read_text(path, source), source)
