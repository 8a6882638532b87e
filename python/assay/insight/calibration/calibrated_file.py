"""The model file that a calibration writes: the structure's text with fitted values and a section `[calibration]`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.base.errors import OpenFailed, RefusedTarget, UsageError
from assay.insight.calibration.calibrate import Fit
from assay.insight.calibration.observations import Observation
from assay.record.shapes.manifest import Calibration
from assay.targets.arrays.model.changes import parameter_of_text
from assay.targets.arrays.model.configuration import Configuration
from assay.targets.arrays.model.model_file import ModelFile, read_model
from assay.targets.arrays.model.options import REPLACED_BY, read_option
from assay.targets.arrays.model.parameters import ORIGINS, known_of, whole_name


def calibration_table(fit: Fit, observations: Sequence[Observation], source: str) -> Calibration:
    """The section `[calibration]` (docs/calibration.md)."""
    conditions = [observation.conditions for observation in observations]
    return {
        "from": source,
        "structure": observations[0].configuration.target_text,
        "points": len(observations),
        "free": list(fit.free),
        "error_share": round(fit.error_share, 5),
        "covariance": [[float(f"{value:.6g}") for value in row] for row in fit.covariance],
        "shifts": {name: [float(f"{value:.6g}") for value in shift] for name, shift in fit.shifts.items()},
        "raid": sorted({condition["raid"] for condition in conditions}),
        "members": sorted({condition["members"] for condition in conditions}),
        "fill": _ends([each["fill"] for each in conditions]),
        "block_bytes": _ends([each["block_bytes"] for each in conditions]),
        "read_share": _ends([each["read_share"] for each in conditions]),
        "random_share": _ends([each["random_share"] for each in conditions]),
        "observations": [
            {"label": label, "error_share": round(error, 4), "left_out_error_share": round(left_out, 4)}
            for label, error, left_out in zip(fit.labels, fit.errors, fit.left_out, strict=True)
        ],
    }


def _ends(values: Sequence[float]) -> list[float]:
    return [min(values), max(values)]


def calibrated_text(structure: Configuration, name: str, fit: Fit, table: Calibration) -> str:
    """The text of the file; comments and everything that was neither fitted nor an option stay as they were."""
    document = _with_values(structure.model, fit.values)
    document["name"] = name
    document["default_raid"] = structure.raid
    _keep_options(document, structure, fit.free)
    for number, dotted in enumerate(fit.free):
        for place in _places(structure.model, dotted):
            known = _table(document, place)
            known["from"] = "fitted"
            known["source"] = f"calibrated to {table['points']} points of {table['from']}"
            known["plus_minus"] = float(f"{fit.covariance[number][number] ** 0.5:.3g}")
    for place, parameter in structure.model.parameters.items():
        if parameter.from_ == "fitted" and whole_name(place) not in fit.free:
            # What was fitted to another array is an assumption for this one.
            _table(document, place)["plus_minus"] = max(parameter.plus_minus or 0.0, ORIGINS["assumed"])
    document.pop("calibration", None)
    document["calibration"] = dict(table)
    text = _dumped(document)
    # What is written must be readable.
    read_model(text.encode(), origin=name)
    return text


def restarted(structure: Configuration, values: Mapping[str, float]) -> Configuration:
    """The same structure with other values in its file, as uncertain as they were."""
    text = _dumped(_with_values(structure.model, values))
    return replace(structure, model=read_model(text.encode(), origin=structure.model.origin))


def _with_values(model: ModelFile, values: Mapping[str, float]) -> Any:
    """The document of a model file with parameters set, in base units, each written in the unit it had."""
    import tomlkit

    document = tomlkit.parse(model.text)
    for dotted, value in values.items():
        for place in _places(model, dotted):
            unit = model.parameters[place].unit
            assert unit is not None, "only numbers are set"
            _table(document, place)["value"] = _plain(value / known_of(dotted).kind.units[unit])
    return document


def _keep_options(document: Any, structure: Configuration, fitted: Sequence[str]) -> None:
    """Write into the document what options changed of the array that was measured: the fit rests on it."""
    for key, text in structure.options.items():
        dotted = {"paths": "links.paths", "protocol": "links.protocol"}.get(key) or REPLACED_BY.get(key, key)
        if "." not in dotted or dotted in fitted:
            continue
        unit: str | None
        if "." in key:
            changed = parameter_of_text(dotted, text)
            written, unit = changed.written, changed.unit
        else:
            written, unit = read_option(key, text), "count" if key == "paths" else "B"
        origin = {"from": "assumed", "source": f"{key}={text} of what was measured"}
        known = {"value": written, **origin}
        if known_of(dotted).kind.units:
            whole = written == int(written)
            known = {"value": int(written) if whole else written, "unit": unit, **origin, "plus_minus": 0}
        for place in dict.fromkeys((dotted, *_places(structure.model, dotted))):
            _set_table(document, place, known)


def _places(model: ModelFile, dotted: str) -> list[str]:
    """Where the file has values of a parameter: its section, policies, protocols."""
    return [place for place in model.parameters if place == dotted or whole_name(place) == dotted]


def _table(document: Any, place: str) -> Any:
    for key in place.split("."):
        document = document[key]
    return document


def _set_table(document: Any, place: str, known: Mapping[str, object]) -> None:
    import tomlkit

    *sections, last = place.split(".")
    for key in sections:
        document = document.setdefault(key, tomlkit.table())
    table = tomlkit.inline_table()
    table.update(known)
    document[last] = table


def _dumped(document: Any) -> str:
    import tomlkit

    return tomlkit.dumps(document)


def _plain(number: float) -> int | float:
    rounded = float(f"{number:.6g}")
    return int(rounded) if rounded == int(rounded) else rounded


def write_new(path: Path, text: str) -> None:
    """Write a file that does not exist yet.

    Raises
    ------
    RefusedTarget
        It does.
    OpenFailed
        It cannot be written.
    """
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise RefusedTarget(f"{path}: exists; nothing is overwritten, name a new file") from None
    except OSError as error:
        raise OpenFailed(f"{path}: {error.strerror}; name a file in a folder that may be written") from None


def refuse_existing(path: Path) -> None:
    """Refuse a file that exists, or whose folder does not, before anything is computed.

    Raises
    ------
    RefusedTarget, UsageError
        It is so.
    """
    if os.path.lexists(path):
        raise RefusedTarget(f"{path}: exists; nothing is overwritten, name a new file")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}; create it, or name another file")
