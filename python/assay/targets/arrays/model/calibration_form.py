"""The section `[calibration]` of a model file, as `assay model calibrate` writes it and error bands read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self, cast

from pydantic import Field, model_validator

from assay.base.fields import Strict
from assay.base.reading import validated
from assay.base.tables import TableValue
from assay.record.shapes.manifest import Calibration

Number = Annotated[float, Field(allow_inf_nan=False)]
Range = tuple[Number, Number]


class CalibratedPoint(Strict):
    """One observation: its label and the model's error at it, after the fit and predicted from the others."""

    label: str
    error_share: Number
    left_out_error_share: Number


class CalibrationFile(Strict):
    """What was fitted to what, and what the fit leaves open (docs/calibration.md)."""

    source: str
    """`from` in the file."""
    structure: str
    points: Annotated[int, Field(ge=1)]
    free: tuple[str, ...]
    error_share: Annotated[Number, Field(ge=0)]
    covariance: tuple[tuple[Number, ...], ...]
    shifts: dict[str, tuple[Number, ...]]
    raid: Annotated[tuple[str, ...], Field(min_length=1)]
    members: Annotated[tuple[int, ...], Field(min_length=1)]
    fill: Range
    block_bytes: Range
    read_share: Range
    random_share: Range
    observations: tuple[CalibratedPoint, ...]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        count = len(self.free)
        square = len(self.covariance) == count and all(len(row) == count for row in self.covariance)
        if not square or any(len(shift) != count for shift in self.shifts.values()):
            raise ValueError(f"covariance and shifts do not have {count} values for each, as many as are free")
        return self


def checked_calibration(table: Mapping[str, TableValue], source: str) -> Calibration:
    """The section as it was given, after it was found to be of its form.

    Raises
    ------
    UsageError
        It is not; the message names the key.
    """
    fields = {("source" if key == "from" else key): value for key, value in table.items()}
    validated(CalibrationFile, fields, f"{source}: calibration")
    return cast(Calibration, dict(table))
