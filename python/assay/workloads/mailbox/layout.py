"""Where databases and their logs lie: on volumes named for them, or dealt out to the volumes of their role."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.base.errors import UsageError
from assay.base.units import format_bytes
from assay.targets.files.spec import VolumeSpec
from assay.targets.files.volume import OpenVolume
from assay.workloads.mailbox.plan import COPIES_NEEDED, MailboxPlan, few_copies


@dataclass(frozen=True, kw_only=True)
class Seat:
    """A volume as far as placing needs it.

    Attributes
    ----------
    name
        The volume's.
    roles, places
        What it was named for.
    """

    name: str
    roles: tuple[str, ...]
    places: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Extent:
    """A part of a volume, which is named by its position."""

    volume: int
    start_bytes: int
    size_bytes: int

    @property
    def end_bytes(self) -> int:
        """Where it ends."""
        return self.start_bytes + self.size_bytes


@dataclass(frozen=True, kw_only=True)
class PlacedDatabase:
    """A database and its log in their places; servers count from 1."""

    name: str
    server: int
    passive: bool
    data: Extent
    log: Extent


def place(plan: MailboxPlan, seats: Sequence[Seat]) -> list[PlacedDatabase]:
    """Databases and logs on the volumes, one after the other on each.

    Raises
    ------
    UsageError
        Some database or log has no volume.
    """
    data = [number for number, seat in enumerate(seats) if "data" in seat.roles]
    logs = [number for number, seat in enumerate(seats) if "log" in seat.roles]
    named = {name: number for number, seat in enumerate(seats) for name in seat.places}
    if not data:
        raise UsageError("no volume for databases; give a file, folder or device, or --volume db1=PATH,log1=PATH")
    ends = [0] * len(seats)

    def extent(volume: int, size_bytes: int) -> Extent:
        start = ends[volume]
        ends[volume] += size_bytes
        return Extent(volume=volume, start_bytes=start, size_bytes=size_bytes)

    placed = []
    for number, (server, within, passive) in enumerate(_databases(plan)):
        of_data = _seat_of("data", number, named, data)
        of_log = _seat_of("log", number, named, logs) if logs else of_data
        name = f"{'passive' if passive else 'db'}{within + 1}"
        placed.append(
            PlacedDatabase(
                name=name if plan.servers == 1 else f"server{server} {name}",
                server=server,
                passive=passive,
                data=extent(of_data, plan.database_bytes),
                log=extent(of_log, plan.log_bytes),
            )
        )
    return placed


def _databases(plan: MailboxPlan) -> list[tuple[int, int, bool]]:
    """Server, number within it, and whether it is passive, of each database."""
    each = [(number, False) for number in range(plan.databases)] + [(number, True) for number in range(plan.passive)]
    return [(server, number, passive) for server in range(1, plan.servers + 1) for number, passive in each]


def _seat_of(role: str, number: int, named: Mapping[str, int], seats: Sequence[int]) -> int:
    """The volume named for a database's data or log; else those of the role in turn."""
    of_role = [name for name in named if name.startswith(role)]
    if not of_role:
        return seats[number % len(seats)]
    if f"{role}{number + 1}" in named:
        return named[f"{role}{number + 1}"]
    option = "db" if role == "data" else role
    raise UsageError(
        f"--volume: {option}{number + 1} has no volume; name one for every {option}, or none with a number"
    )


def seats_of_specs(specs: Sequence[VolumeSpec]) -> dict[str, Seat]:
    """Volumes as asked, by the name of each; those on one path are one seat."""
    found: dict[str, Seat] = {}
    by_path: dict[str, list[VolumeSpec]] = {}
    for position, spec in enumerate(specs):
        key = os.path.realpath(spec.path) if spec.path is not None else f"{spec.kind} {position}"
        by_path.setdefault(key, []).append(spec)
    for group in by_path.values():
        seat = Seat(
            name=group[0].name,
            roles=tuple(dict.fromkeys(spec.role for spec in group)),
            places=tuple(spec.place for spec in group if spec.place),
        )
        found |= {spec.name: seat for spec in group}
    return found


def seats_of_volumes(volumes: Sequence[OpenVolume]) -> list[Seat]:
    """Volumes of a target."""
    return [Seat(name=volume.name, roles=volume.roles, places=volume.places) for volume in volumes]


def sizes_needed(plan: MailboxPlan, specs: Sequence[VolumeSpec]) -> dict[str, int]:
    """Bytes that files must have for the plan, by the name of their volume; nothing for other volumes."""
    by_name = seats_of_specs(specs)
    seats = list(dict.fromkeys(by_name.values()))
    ends = _ends(place(plan, seats))
    return {
        spec.name: ends[number]
        for spec in specs
        if spec.kind == "file" and (number := seats.index(by_name[spec.name])) in ends
    }


def _ends(placed: Sequence[PlacedDatabase]) -> dict[int, int]:
    ends: dict[int, int] = {}
    for extent in (extent for one in placed for extent in (one.data, one.log)):
        ends[extent.volume] = max(ends.get(extent.volume, 0), extent.end_bytes)
    return ends


def layout_of(placed: Sequence[PlacedDatabase]) -> str:
    """What the layout is.

    It is `jbod` where each database is on a volume of its own with its log, `separate` where no log is on a volume
    with a database, else `together`.
    """
    data = [one.data.volume for one in placed]
    logs = {one.log.volume for one in placed}
    if not logs & set(data):
        return "separate"
    alone = len(set(data)) == len(data) and all(one.log.volume == one.data.volume for one in placed)
    return "jbod" if alone and len(placed) > 1 else "together"


def layout_meant(plan: MailboxPlan, placed: Sequence[PlacedDatabase]) -> str:
    """What the layout stands for: volumes say nothing of RAID, so plain disks are what a plan calls them."""
    found = layout_of(placed)
    return "together" if found == "jbod" and plan.layout != "jbod" else found


def check_layout(plan: MailboxPlan, volumes: Sequence[OpenVolume], placed: Sequence[PlacedDatabase]) -> None:
    """Refuse a layout that is not the one asked for, needs more copies, or does not fit the volumes.

    Raises
    ------
    UsageError
        The first thing that is wrong.
    """
    stands_for = layout_meant(plan, placed)
    if plan.layout not in ("auto", stands_for):
        wanted = {
            "separate": "logs on volumes of their own: --volume data=PATH,log=PATH",
            "together": "each log on a volume with databases",
            "jbod": "a volume for each database, with its log: --volume db1=PATH,db2=PATH,...",
        }[plan.layout]
        raise UsageError(f"--layout {plan.layout}: the volumes make it {stands_for}; it takes {wanted}")
    if plan.copies < COPIES_NEEDED[stands_for]:
        raise UsageError(
            f"--copies {few_copies(stands_for, plan.copies)}, or put logs on volumes of their own:"
            " --volume data=PATH,log=PATH"
        )
    for one in placed:
        for extent, what in ((one.data, f"database {one.name}"), (one.log, f"the log of {one.name}")):
            volume = volumes[extent.volume]
            if extent.end_bytes > volume.size_bytes:
                others = f" after {format_bytes(extent.start_bytes)} of others" if extent.start_bytes else ""
                raise UsageError(
                    f"{what} of {format_bytes(extent.size_bytes)}{others} is larger than its volume {volume.name} of"
                    f" {format_bytes(volume.size_bytes)}; give fewer --mailboxes, a smaller --mailbox-size, or more"
                    " volumes"
                )
    if plan.log_bytes < 4 * plan.log_file_bytes:
        raise UsageError(f"--log-size: {format_bytes(plan.log_bytes)} holds fewer than four log files; give more")
