"""Parameters that options or calibration change after a file was read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from assay.base.errors import UsageError
from assay.targets.arrays.model.kinds import FLAG, WORD
from assay.targets.arrays.model.model_file import ModelFile, ModelParameter, load_model
from assay.targets.arrays.model.options import read_option
from assay.targets.arrays.model.parameters import known_of

NOT_OF_DRIVES = ("disk.usable",)
"""Parameters of a disk that say what an array does with it, whatever drive it is."""


def drive_parameters(model: ModelFile, name: str) -> dict[str, ModelParameter]:
    """The parameters of a drive of the catalogue or of a file, which replace those of a model's own drives.

    Raises
    ------
    UsageError
        There is no such drive, or it or the model's own is no drive of flash.
    """
    drive = load_model(name)
    if model.disk_kind != "solid-state" or drive.disk_kind != "solid-state" or drive.model_class != "drive":
        which = model if model.disk_kind != "solid-state" else drive
        raise UsageError(f"model: option 'drive': {which.name} has no drives of flash; name one: `assay model list`")
    return {dotted: parameter for dotted, parameter in drive.parameters.items() if is_of_drive(dotted, {"drive": name})}


def is_of_drive(dotted: str, options: Mapping[str, str]) -> bool:
    """Whether a parameter is that of the drives which options name: what they do not tell is not known."""
    return "drive" in options and dotted.startswith("disk.") and dotted not in NOT_OF_DRIVES


def parameter_of_text(dotted: str, text: str) -> ModelParameter:
    """A parameter from an option such as `disk.command_overhead=0.5ms`.

    Raises
    ------
    UsageError
        The value is not accepted.
    """
    known = known_of(dotted)
    where = f"parameter {dotted!r}"
    value: Any
    written: Any
    unit: str | None
    if known.kind in (WORD, FLAG):
        accepted = ("true", "false") if known.kind is FLAG else known.choices
        if text not in accepted:
            raise UsageError(f"model: {where}: {text!r} is unknown; accepted: {', '.join(accepted)}")
        value = written = (text == "true") if known.kind is FLAG else text
        unit = None
    else:
        try:
            value, written, unit = known.kind.from_text(text)
        except ValueError as error:
            raise UsageError(f"model: {where}: {error}") from None
        _check(dotted, value, where)
    return ModelParameter(
        value=value, written=written, unit=unit, from_="option", source=f"{dotted}={text}", plus_minus=None
    )


def parameter_of_option(dotted: str, key: str, text: str) -> ModelParameter:
    """A parameter from an option that is another way to write it, such as `cache=4G`.

    Raises
    ------
    UsageError
        The value is not accepted.
    """
    value = read_option(key, text)
    _check(dotted, value, f"option {key!r}")
    units = known_of(dotted).kind.units
    unit = next((unit for unit, factor in units.items() if factor == 1.0), None)
    return ModelParameter(
        value=value, written=value, unit=unit, from_="option", source=f"{key}={text}", plus_minus=None
    )


def parameter_of_number(dotted: str, number: float) -> ModelParameter:
    """A parameter set to a number in base units.

    Raises
    ------
    UsageError
        It is a name or truth value, or the number is no number or out of range.
    """
    known = known_of(dotted)
    where = f"parameter {dotted!r}"
    if known.kind in (WORD, FLAG):
        raise UsageError(f"model: {where} is a {known.kind.name}, not a number")
    if not math.isfinite(number):
        raise UsageError(f"model: {where}: {number} is no number")
    value = round(number) if known.kind.whole else float(number)
    _check(dotted, value, where)
    unit = next(unit for unit, factor in known.kind.units.items() if factor == 1.0)
    return ModelParameter(
        value=value, written=value, unit=unit, from_="set", source="set for this run", plus_minus=None
    )


def _check(dotted: str, value: Any, where: str) -> None:
    try:
        known_of(dotted).check(value)
    except ValueError as error:
        raise UsageError(f"model: {where}: {error}") from None


def written_value(dotted: str, value: float) -> str:
    """A value in base units as an option takes it."""
    kind = known_of(dotted).kind
    unit = next(unit for unit, factor in kind.units.items() if factor == 1.0)
    number = str(round(value)) if kind.whole else repr(float(value))
    return number if kind.bare else f"{number}{unit}"
