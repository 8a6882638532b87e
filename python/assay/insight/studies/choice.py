"""The target of a study: whether the study makes sense on it, with the options that were given."""

from __future__ import annotations

from collections.abc import Mapping

from assay.base.errors import UsageError
from assay.insight.studies.study import StudyPlan
from assay.insight.studies.targets import has_options, target_kind, with_options
from assay.targets.databases.common.spec import SPELT


def choose_target(study: StudyPlan, text: str | None, options: Mapping[str, str]) -> str:
    """The target of a study, with the options of `--set`.

    Raises
    ------
    UsageError
        None is given and the study has none, or the study makes no sense on it.
    """
    chosen = text if text is not None else study.target
    if chosen is None:
        raise UsageError(f"study {study.name}: give a target: {_accepted(study)}")
    kind = target_kind(chosen)
    # The URL of a database may hold a password.
    shown = chosen.partition(":")[0] + ":..." if kind == "database" else chosen
    if not study.fits(chosen):
        raise UsageError(f"study {study.name} makes no sense on {shown!r}: it asks about {_accepted(study)}")
    if (options or study.varies_target) and not has_options(chosen):
        what = "--set" if options else f"study {study.name}"
        raise UsageError(f"{what} changes options of the target, and {shown!r} has none; give {_with_options(study)}")
    given = [item.partition("=")[0] for item in (text or "").partition("?")[2].split("&") if item]
    for key in given if has_options(chosen) else []:
        if given.count(key) > 1:
            raise UsageError(f"study {study.name}: option {key!r} of the target is given twice; give it once")
        _refuse_varied(study, key, f"option {key!r} of the target")
    for key in options:
        _refuse_varied(study, key, f"--set {key}")
    return with_options(chosen, options) if options else chosen


def _refuse_varied(study: StudyPlan, key: str, what: str) -> None:
    """Refuse an option for all levels that levels or cases set: theirs would win."""
    for factor in study.factor:
        if factor.of == "target" and any(key in factor.changes(level) for level in factor.levels):
            name = factor.name
            raise UsageError(f"{what}: the levels of {name} set it; choose among them with --levels {name}=...")
    if any(key in case.target for case in study.case):
        raise UsageError(f"{what}: cases of study {study.name} set it; leave it out")


def _accepted(study: StudyPlan) -> str:
    words: dict[str, str] = {
        "model": "a model (model:NAME)",
        "file": "a file, folder or device",
        "database": "a database (embedded:DIR, postgresql://...)",
        "flash": "a model of several drives of flash (model:nvme-raid)",
        "array": "databases on a served array (embedded+array:NAME)",
        **{str(kind): text for kind, text in SPELT.items()},
    }
    return " or ".join(words[kind] for kind in study.targets)


def _with_options(study: StudyPlan) -> str:
    if study.targets == ("array",):
        return "embedded+array:NAME"
    return "embedded:DIR" if study.targets == ("database",) else "model:NAME"
