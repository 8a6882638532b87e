"""What a paper is made from: runs, studies, recordings and sizings, each with a number that its points carry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.tables import Record
from assay.base.units import format_duration
from assay.insight.differences import on_virtual_clock
from assay.insight.recording import recorded_s
from assay.record.shapes.manifest import Manifest
from assay.record.source import RunFacts
from assay.record.titles import run_titles
from assay.report.assemble import ReportInputs, examined
from assay.report.facts import load_facts
from assay.report.paper.findings import read_findings
from assay.report.paper.names import Names
from assay.report.paper.targets import refuse_different
from assay.report.sections.study import study_of

Kind = Literal["study", "run", "sizing", "recording", "reliability", "check"]

RECORDING_LEAST_S = 3600.0
"""A shorter recording has no busy hour, and says nothing of a load that a purchase is defended with."""


@dataclass(frozen=True)
class PaperSource:
    """A run of a paper.

    Attributes
    ----------
    number
        `R1`, `R2`, ...: its points are called `R1.p0001`.
    facts
        Its facts, with points so called.
    path
        Its folder as it was named.
    title
        What it is called, unlike any other of the paper.
    """

    number: str
    facts: RunFacts
    path: Path
    title: str
    kind: Kind = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", kind_of(self.facts))

    @property
    def manifest(self) -> Manifest:
        """Its manifest."""
        return self.facts.manifest

    @cached_property
    def made(self) -> ReportInputs:
        """What its workloads have to say."""
        return examined(self.facts)

    @property
    def measured(self) -> bool | None:
        """Whether its figures were measured; False of a model's predictions, None of what has no figures of storage."""
        if self.kind in ("check", "reliability"):
            return None
        return self.kind != "sizing" and not on_virtual_clock(self.facts.points)

    @property
    def study(self) -> Record | None:
        """What it says of its study."""
        return study_of(self.facts)


def kind_of(facts: RunFacts) -> Kind:
    """What a run folder holds."""
    manifest = facts.manifest
    if manifest.get("verb") == "check":
        return "check"
    if "reliability" in manifest:
        return "reliability"
    if "sizing" in manifest:
        return "sizing"
    if "recording" in manifest and manifest.get("imported") is None:
        return "recording"
    return "run" if study_of(facts) is None else "study"


def read_sources(
    paths: Sequence[Path], *, names: Names, several_targets: bool, short: bool, checks: Sequence[Path] = ()
) -> list[PaperSource]:
    """Read the runs of a paper.

    Parameters
    ----------
    paths
        Their folders, in the order in which the paper speaks of them.
    checks
        Files of findings that `assay check --format json` wrote; they are numbered after the runs.
    names
        What stands for the names in them.
    several_targets
        Whether they may be of different targets.
    short
        Whether a recording may be shorter than an hour.

    Raises
    ------
    RunFolderError
        One is no run folder.
    UsageError
        One is named twice, a recording is short, they are of different targets, or a file holds no findings.
    """
    same = [path.resolve() for path in paths]
    for number, path in enumerate(same):
        if path in same[:number]:
            raise UsageError(f"{printable(paths[number])}: is given twice; name each run once")
    read = [load_facts(path) for path in paths]
    for path, facts in zip(paths, read, strict=True):
        if kind_of(facts) == "recording" and not short:
            _refuse_short(path, facts)
    if not several_targets:
        refuse_different([(f"R{number}", facts.manifest) for number, facts in enumerate(read, 1)])
    read += [read_findings(path) for path in checks]
    paths = [*paths, *checks]
    names.learn(facts.manifest for facts in read)
    read = [names.facts(facts) for facts in read]
    titles = run_titles([facts.manifest for facts in read])
    return [
        PaperSource(f"R{number}", lettered(facts, f"R{number}"), path, title)
        for number, (path, facts, title) in enumerate(zip(paths, read, titles, strict=True), 1)
    ]


def covered_s(facts: RunFacts) -> float:
    """Time of which a recording knows something."""
    return recorded_s(facts.series) if facts.series is not None else 0.0


def _refuse_short(path: Path, facts: RunFacts) -> None:
    covered = covered_s(facts)
    if covered < RECORDING_LEAST_S:
        raise UsageError(
            f"{printable(path)}: the recording covers {format_duration(covered)}, which no paper can rest on; record an"
            " hour at least, a week if you can, or give --short"
        )


def lettered(facts: RunFacts, number: str) -> RunFacts:
    """Facts in which every point carries the number of its run, wherever it is named."""
    known = {str(point.get("id")) for point in facts.points}
    word = re.compile(r"(?<![\w.])p\d{4,}(?!\w)")

    def named(value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            if key == "histogram" or "p" not in value:
                return value
            return word.sub(lambda match: f"{number}.{match[0]}" if match[0] in known else match[0], value)
        if isinstance(value, Mapping):
            return {name: named(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [named(item, key) for item in value]
        return value

    return replace(facts, manifest=named(facts.manifest), points=named(facts.points))
