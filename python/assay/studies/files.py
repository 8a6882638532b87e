"""Studies that come with Assay, TOML files in `studies/`, and those of users.

`NAME.toml` and `NAME.KIND.toml` are variants of one study, for targets of different kinds.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.paths import printable
from assay.reading import nearest, read_text, table_of
from assay.studies.study import Study, load_study


def study_names() -> list[str]:
    """Names of the studies that come with Assay."""
    return sorted({file.partition(".")[0] for file in _study_files()})


def _study_files() -> list[str]:
    entries = resources.files("assay.studies").joinpath("presets").iterdir()
    return [entry.name for entry in entries if entry.name.endswith(".toml")]


def study_variants(name: str) -> list[Study]:
    """The variants of a study that comes with Assay, each for targets of other kinds: `NAME.toml`, `NAME.KIND.toml`."""
    files = sorted((file for file in _study_files() if file.partition(".")[0] == name), key=len)
    folder = resources.files("assay.studies").joinpath("presets")
    return [
        load_study({"name": name} | _table(Path(str(folder.joinpath(file)))), source=f"study {name}") for file in files
    ]


def read_study(name: str, target: str | None = None) -> Study:
    """A study by name, or from a file where the name ends in `.toml` or `.json`.

    Parameters
    ----------
    name
        The study, or its file.
    target
        The target it is for: decides between the variants of a study.

    Raises
    ------
    UsageError
        There is no such study, the nearest is named; or the file is not a study.
    """
    if name.endswith((".toml", ".json")):
        path = Path(name)
        return load_study({"name": path.stem} | _table(path), source=f"study {name}")
    known = study_names()
    if name not in known:
        meant = nearest(name, known)
        hint = f"did you mean {meant!r}? " if meant else ""
        raise UsageError(f"study {name!r}: unknown; {hint}known: {', '.join(known)}; a file of your own ends in .toml")
    variants = study_variants(name)
    fitting = [one for one in variants if target is not None and one.fits(target)]
    fitting.sort(key=lambda one: not one.is_for_engine(str(target)))
    return (fitting or variants)[0]


def _table(path: Path) -> dict[str, Any]:
    """The table of a TOML file, or of the JSON that `assay study show --json` prints."""
    source = f"study {printable(path)}"
    return table_of(read_text(path, source), source)
