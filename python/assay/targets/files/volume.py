"""A volume ready for load, and how the compiled core is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.base.paths import printable
from assay.base.units import parse_duration
from assay.targets.answering import ANSWER_TIMEOUT_S, answer_within
from assay.targets.files.hold import Hold
from assay.targets.files.spec import VolumeSpec


@dataclass(frozen=True, kw_only=True)
class OpenVolume:
    """A volume ready for load; `roles` are those it was named for, several when it is shared, and `places` likewise."""

    spec: VolumeSpec
    roles: tuple[str, ...]
    size_bytes: int
    sector_bytes: int
    places: tuple[str, ...] = ()
    hold: Hold | None = None
    """The file or device itself; None for `null:` and `model:`."""

    @property
    def name(self) -> str:
        """Short name, unique in the target."""
        return self.spec.name


def takes_no_time(volume: OpenVolume) -> bool:
    """Whether the volume answers at once, so that what is measured on it is the load generator alone."""
    return volume.spec.kind == "null" and not {"latency", "stall"} & volume.spec.options.keys()


def begin_io(holds: Sequence[Hold], *, writes: bool) -> None:
    """Make sure that volumes are still what was examined, and say in their marks that a run writes to them.

    Raises
    ------
    IoFailed
        Something else has a volume's place, or another program wrote to it.
    NotAnswering
        The file system does not answer.
    """

    def look() -> None:
        for hold in holds:
            hold.check()
            if writes:
                hold.begin_writing()

    if holds:
        answer_within(ANSWER_TIMEOUT_S, look, what=", ".join(printable(hold.path) for hold in holds))


def volume_plan(volume: OpenVolume) -> dict[str, Any]:
    """A volume as plans of the compiled core name it."""
    if volume.spec.kind == "null":
        kind: dict[str, Any] = {"kind": "null", "options": null_options(volume.spec.options)}
    else:
        # The core opens what is held; the path is for its messages.
        kind = {"kind": "file", "path": printable(volume.spec.path or "")}
        kind |= {"held": volume.hold.descriptor} if volume.hold is not None else {}
    return {"name": volume.name, "volume": kind, "sector_bytes": volume.sector_bytes}


def null_options(options: dict[str, str]) -> dict[str, int]:
    """The null device's options in base units."""
    names = {"latency": "latency_ns", "stall_at": "stall_at_ns", "stall": "stall_ns", "stall_every": "stall_every_ns"}
    converted = {names[key]: parse_duration(value, what=key) for key, value in options.items() if key in names}
    if "servers" in options:
        converted["servers"] = int(options["servers"])
    return converted
