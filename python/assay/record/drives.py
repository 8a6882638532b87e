"""Shapes of drives for whom pydantic is too large, as the recorder: at runtime a shape is a dictionary."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.record.shapes.drive import (
        Drive,
        DriveAtomicWrites,
        DriveError,
        DriveFormat,
        DriveHealth,
        DriveLink,
    )
else:
    Drive = DriveAtomicWrites = DriveError = DriveFormat = DriveHealth = DriveLink = dict

__all__ = ["Drive", "DriveAtomicWrites", "DriveError", "DriveFormat", "DriveHealth", "DriveLink"]
