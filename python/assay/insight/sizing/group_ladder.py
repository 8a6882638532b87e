"""Ladders of members with RAID: arrays, and drives of a server in software RAID."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from assay.base.errors import UsageError
from assay.base.units import count_of, format_share
from assay.insight.sizing.demand import DATA, LOG, PeakDemand, PeakStream
from assay.insight.sizing.ladder import (
    Ladder,
    LadderStep,
    Pool,
    RefusedLadder,
    RejectionReason,
    Side,
    model_of,
)
from assay.insight.sizing.need import Need, Offer
from assay.insight.sizing.price_book import PriceBook
from assay.insight.sizing.prices import AmountPrice, price_of
from assay.record.shapes.sizing import Size
from assay.targets.arrays.model.configuration import VOLUMES_USUAL, Configuration, size_text
from assay.targets.arrays.model.flash import program_bytes_per_s
from assay.targets.arrays.model.model_file import ModelFile

LOG_VOLUMES = 2
LARGE_BYTES = 3_000_000_000_000
SLOW_REVOLUTION_NS = 8_300_000
"""Nearline disks: 3 TB and more, 7,200 turns a minute and fewer."""
SINGLE_PARITY = ("5", "50")
PARITY = ("5", "50", "6", "60")
PARITY_COST = {"10": 2, "1": 2, "5": 4, "50": 4, "6": 6, "60": 6}
"""I/Os of disks that a small random write takes (the method; write-anywhere layouts write whole stripes)."""
DISK_WRITES = {"10": 2, "1": 2, "5": 2, "50": 2, "6": 3, "60": 3, "dp": 3}
"""Writes among them: the block and its copy, or the block and its parities."""
FILL_STEP = 0.05
"""Arrays are simulated at fills of this grid, so that needs that differ little ask the same question."""
POSITIONING_LEAST = 0.4
"""No order of a disk's queue makes positioning shorter than this share of a random one's: a bound that leaves room,
and which the back-test checks against simulation (benches/sizing.py)."""
PORT_BUSY_MOST = 0.95
DRIVES_OF_SERVER = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24)
"""Drives of a software RAID that are asked: a usual server has 24 bays of U.2."""
DRIVES_LEAST = {"5": 3, "6": 4, "10": 2}


@dataclass(frozen=True, kw_only=True)
class GroupLadder(Ladder):
    """One array under one choice of RAID, paths and volumes.

    Attributes
    ----------
    log_raid
        RAID policy of a member that only the log is on; None where the log shares the pool.
    """

    raid: str
    log_raid: str | None
    paths: int | None
    volumes: int

    side: ClassVar[Side] = "on-premises"
    states: ClassVar[tuple[str, ...]] = ("healthy", "degraded", "rebuilding")

    @property
    def name(self) -> str:
        """The ladder in a few words."""
        drive = self.offer.drive
        words = [f"{self.array} with {drive}" if drive else self.array, f"RAID {self.raid.upper()}"]
        if self.log_raid is not None:
            words[-1] += f", log on RAID {self.log_raid.upper()}"
        if self.paths is not None:
            words.append(count_of(self.paths, "path"))
        if self.offer.volumes:
            words.append(count_of(self.volumes, "volume"))
        return ", ".join(words)

    @property
    def title(self) -> str:
        """The product, as its model file names it."""
        drive = self.offer.drive
        return f"{model_of(drive).title}, in Linux md" if drive else model_of(self.array).title

    def label(self, step: LadderStep) -> str:
        """Short name of one size of the ladder."""
        if self.offer.drive and step.members == 1:
            return f"{step.disks} x {self.offer.drive}, md RAID {self.raid.upper()}"
        members = "1 member" if step.members == 1 else f"{step.members} members"
        return f"{self.name}, {members}" + (f" of {step.disks} disks" if step.disks else "")

    def rank(self, step: LadderStep) -> tuple[float, ...]:
        """Disks, members, paths, volumes, and the terabytes that are sold."""
        raw = _bare(self.array, self.offer.drive, self.raid, step.disks, self.paths).raw_bytes * step.members
        return (self.disks(step), step.members, self.paths or 0, self.volumes, raw)

    def disks(self, step: LadderStep) -> int:
        """All its disks, spares included."""
        own = step.disks or int(model_of(self.array).parameters["disks.count"].value)
        return own * step.members

    @property
    def priced_name(self) -> str:
        """Drives have the price of the drive; the server around them is the candidate's `cost`."""
        return self.offer.drive or self.array

    def price(self, step: LadderStep) -> AmountPrice:
        """Costs that the need states, and list prices of what it says nothing of."""
        offer, book = self.offer, self.book
        entry = book.entry_of(self.priced_name)
        listed = None
        if entry is not None and (offer.cost is None or not offer.disk_cost):
            # A drive's price is of each disk, an array's of each member.
            of_drive = offer.drive is not None
            capacity = int(model_of(self.priced_name).parameters["disk.capacity"].value) if of_drive else 0
            listed = price_of(entry, size_bytes=capacity, count=self.disks(step) if of_drive else step.members)
        if offer.cost is not None:
            own = step.members * (offer.cost + offer.disk_cost * self.disks(step) / step.members)
            more = listed.once if listed is not None and offer.drive and not offer.disk_cost else None
            return AmountPrice(book.currency, own + (more or 0.0), 0.0)
        return book.unknown(self.priced_name) if listed is None else listed

    def pools(self, step: LadderStep, demand: PeakDemand) -> list[Pool]:
        """The pools of a size; the first has the data."""
        member = _bare(self.array, self.offer.drive, self.raid, step.disks, self.paths)
        if self.log_raid is None:
            return [Pool(role=DATA, member=member, members=step.members, asked_bytes=demand.total_bytes)]
        of_log = _bare(self.array, self.offer.drive, self.log_raid, step.disks, self.paths)
        return [
            Pool(role=DATA, member=member, members=step.members - 1, asked_bytes=demand.data_bytes),
            Pool(role=LOG, member=of_log, members=1, asked_bytes=demand.log_bytes),
        ]

    def configuration(
        self, need: Need, step: LadderStep, demand: PeakDemand, pool: Pool, *, state: str = "healthy"
    ) -> Configuration:
        """The model of a pool with its volumes of a demand, no emptier than the method sizes by.

        Pools share hosts and links alone, so that each is asked by itself. There is a host for each member, with as
        many ports, so that it is the array that is judged.
        """
        wanted = grid_fill(need, pool.fill) * pool.usable_bytes
        held = min(wanted, pool.usable_bytes - pool.free_bytes)
        sizes: dict[str, tuple[int, float]] = {}
        if pool.role == LOG:
            sizes[LOG] = (LOG_VOLUMES, held / LOG_VOLUMES)
        else:
            log_bytes = demand.log_bytes if self.log_raid is None else 0
            sizes[DATA] = (self.volumes, (held - log_bytes) / self.volumes)
            if log_bytes:
                sizes[LOG] = (LOG_VOLUMES, log_bytes / LOG_VOLUMES)
        raid = self.raid if pool.role == DATA or self.log_raid is None else self.log_raid
        page = int(pool.member.value("group.page"))
        options = {
            "raid": raid,
            "volumes": ",".join(f"{role}:{count}" for role, (count, _) in sizes.items()),
            "volume_size": ",".join(f"{role}:{_whole(size, page)}B" for role, (_, size) in sizes.items()),
            "members": str(pool.members),
            "hosts": str(min(pool.members, sum(count for count, _ in sizes.values()))),
        }
        options |= _chosen(self.offer.drive, step.disks, self.paths)
        options |= {"state": state} if state != "healthy" else {}
        return Configuration(model=model_of(self.array), options=options)

    def load_reasons(self, pools: Sequence[Pool], loaded: PeakDemand) -> Iterator[RejectionReason]:
        """What its ports do not carry, and what its disks cannot do in whatever order."""
        for phase in loaded.phases:
            for pool in pools:
                own = pool.own(phase, pools)
                yield from _port_reason(pool, own)
                yield from _disk_reason(pool, own, loaded)

    def busy_share(self, step: LadderStep, demand: PeakDemand) -> float:
        """The largest share of any pool's disks in any phase."""
        pools = self.pools(step, demand)
        return max(
            (disk_share(pool, pool.own(phase, pools), demand) for pool in pools for phase in demand.phases), default=0.0
        )

    def port_shares(self, step: LadderStep, demand: PeakDemand) -> float | None:
        """Share of the ports' payload, in the fullest pool and phase."""
        pools = self.pools(step, demand)
        return max((port_share(pool, pool.own(phase, pools)) for phase in demand.phases for pool in pools), default=0.0)

    def least_latency_s(self, reads: float) -> float:
        """The way to the array and, for reads of flash, its read time; disks with arms may answer from a cache."""
        member = _bare(self.array, self.offer.drive, self.raid, self.steps[0].disks, self.paths)
        each_ns = member.value("links.latency") + member.value("controller.cpu_per_io")
        if member.model.disk_kind == "solid-state" and not member.value("cache.keep_reads"):
            each_ns += member.value("disk.command_overhead") + reads * member.value("disk.read_time")
        return float(each_ns) / 1e9

    @property
    def lost_drive(self) -> str:
        """The recovery point after the loss of a disk."""
        if self.raid == "0":
            return "a lost drive loses everything since the last backup"
        survived = "two lost drives lose" if self.raid in ("6", "60", "dp") else "a lost drive loses"
        return f"{survived} nothing (RPO 0); more than that loses everything since the last backup"

    def facts(self, step: LadderStep, demand: PeakDemand) -> Size:
        """A candidate as documents carry it."""
        found = super().facts(step, demand)
        found.update({"raid": self.raid, "log_raid": self.log_raid, "paths": self.paths, "volumes": self.volumes})
        return found


def _chosen(drive: str | None, disks: int, paths: int | None) -> dict[str, str]:
    """Options of a member beside its RAID policy and volumes."""
    options = {"drive": drive} if drive else {}
    options |= {"disks.count": str(disks)} if disks else {}
    return options | ({"paths": str(paths)} if paths is not None else {})


@cache
def _bare(array: str, drive: str | None, raid: str, disks: int, paths: int | None) -> Configuration:
    """One member without any volumes to speak of."""
    options = {"raid": raid, "volumes": "1", "volume_size": "1MiB", **_chosen(drive, disks, paths)}
    return Configuration(model=model_of(array), options=options)


# Which ladders there are


def policies(offer: Offer, model: ModelFile) -> Sequence[str]:
    """RAID policies of a candidate.

    Raises
    ------
    UsageError
        One is not offered.
    """
    asked = [one.lower() for one in offer.raid]
    for one in asked:
        if one not in model.policies:
            raise UsageError(
                f"candidate {offer.array}: raid: {model.name} does not offer RAID {one}; it has"
                f" {', '.join(model.policies)}"
            )
    return asked or [one for one in model.policies if one != "0"]


def splits(raid: str, model: ModelFile, offer: Offer, *, has_log: bool) -> bool:
    """Whether a log may have a member of its own."""
    most = int(model.parameters["group.members"].value)
    allowed = not offer.raid or "10" in offer.raid
    return has_log and raid in PARITY and "10" in model.policies and most > 1 and allowed


def paths_of(offer: Offer, model: ModelFile) -> Sequence[int | None]:
    """Numbers of paths of a candidate; None is the model's own.

    Raises
    ------
    UsageError
        The array has fewer ports.
    """
    if offer.paths:
        most = int(model.parameters["links.ports"].value)
        wrong = next((one for one in offer.paths if one > most), None)
        if wrong is not None:
            raise UsageError(f"candidate {offer.array}: paths: {wrong} are more than the {most} ports of {model.name}")
        return offer.paths
    usual, most = (int(model.parameters[key].value) for key in ("links.paths", "links.ports"))
    return [None, most] if most > usual else [None]


def steps_of(offer: Offer, model: ModelFile, raid: str, *, split: bool) -> tuple[LadderStep, ...]:
    """Sizes of a candidate, those of fewest disks first.

    Raises
    ------
    UsageError
        A group has fewer members.
    """
    most = int(model.parameters["group.members"].value)
    low, high = offer.members or ((1, 1) if offer.drive else (1, most))
    if high > most:
        raise UsageError(f"candidate {offer.array}: members: {high} are more than the {most} a group has")
    low = max(low, 2) if split else low
    own = int(model.parameters["disks.count"].value)
    disks: Sequence[int] = offer.disks or (0,)
    if offer.drive and not offer.disks:
        least, odd = DRIVES_LEAST.get(raid, 2), raid != "10"
        disks = [count for count in DRIVES_OF_SERVER if count >= least and (odd or count % 2 == 0)]
    steps = [LadderStep(members, count) for members in range(low, high + 1) for count in disks]
    return tuple(sorted(steps, key=lambda one: (one.members * (one.disks or own), one.members)))


def rule_of(need: Need, ladder: GroupLadder, model: ModelFile, *, has_log: bool) -> RejectionReason | None:
    """The rule that leaves a ladder out."""
    if ladder.raid == "0":
        return RejectionReason("rule", "RAID 0 loses all with its first disk")
    values = {key: parameter.value for key, parameter in model.parameters.items()}
    if model.disk_kind != "mechanical":
        # The rules below are of arms and platters; flash is judged by simulation alone.
        drive = model_of(ladder.offer.drive) if ladder.offer.drive else model
        is_safe = drive.parameters.get("disk.power_loss_protection")
        if has_log and is_safe is not None and not is_safe.value:
            return RejectionReason("rule", "its drives have no power-loss protection, and every commit waits for flash")
        return None
    large = values["disk.capacity"] >= LARGE_BYTES and values.get("disk.revolution", 0) >= SLOW_REVOLUTION_NS
    if need.rules.raid6_large and large and ladder.raid in SINGLE_PARITY:
        return RejectionReason(
            "rule",
            f"RAID {ladder.raid} on disks of {size_text(values['disk.capacity'])}: large nearline disks take RAID 6",
        )
    in_place = model.layout_kind == "in-place"
    if need.rules.raid_by_role and has_log and in_place and ladder.raid in PARITY and ladder.log_raid is None:
        return RejectionReason("rule", f"the log would lie on RAID {ladder.raid}: logs take RAID 10")
    return None


def group_ladders(need: Need, offer: Offer, book: PriceBook, *, has_log: bool) -> Iterator[GroupLadder | RefusedLadder]:
    """All choices of a candidate, those that a rule leaves out as the rule's reason.

    Raises
    ------
    UsageError
        A choice is unknown or impossible.
    """
    model = model_of(offer.array)
    for raid in policies(offer, model):
        for log_raid in (None, "10"):
            if log_raid is not None and not splits(raid, model, offer, has_log=has_log):
                continue
            for paths in paths_of(offer, model):
                for volumes in offer.volumes or (VOLUMES_USUAL,):
                    ladder = GroupLadder(
                        offer=offer, array=offer.array, book=book, raid=raid, log_raid=log_raid, paths=paths,
                        volumes=volumes, steps=steps_of(offer, model, raid, split=log_raid is not None),
                    )  # fmt: skip
                    reason = rule_of(need, ladder, model, has_log=has_log)
                    if reason is not None:
                        yield RefusedLadder(ladder.name, reason)
                    elif ladder.steps:
                        _checked(ladder)
                        yield ladder


def _checked(ladder: GroupLadder) -> None:
    """Refuse what cannot be built at any size.

    Raises
    ------
    UsageError
        Its smallest size is impossible.
    """
    try:
        _bare(ladder.array, ladder.offer.drive, ladder.raid, ladder.steps[0].disks, ladder.paths)
    except UsageError as error:
        raise UsageError(f"candidate {ladder.name}: {str(error).removeprefix('model: ')}") from None


def _whole(size: float, page: int) -> int:
    """A size that members can hold without room that is lost to their pages; of one below a page, whole sectors."""
    return int(size // page) * page if size >= page else max(int(size) // 512 * 512, 1 << 20)


def grid_fill(need: Need, fill: float) -> float:
    """The fill that a size is simulated at."""
    return max(need.rules.modelled_fill, min(math.ceil(fill / FILL_STEP - 1e-9) * FILL_STEP, need.rules.fill))


# What no simulation need ask


def port_share(pool: Pool, streams: Sequence[PeakStream]) -> float:
    """Share of the ports' payload that streams take, in the fuller direction."""
    links = pool.member.plan()["links"]
    controllers, ports = pool.member.controllers
    rate = links["port_bytes_per_s"] * min(controllers * ports, pool.member.host_ports) * pool.members
    read = sum(one.bytes_per_s * one.read_share for one in streams)
    written = sum(one.bytes_per_s * (1 - one.read_share) for one in streams)
    return float(max(read, written) / rate)


def _port_reason(pool: Pool, streams: Sequence[PeakStream]) -> Iterator[RejectionReason]:
    share = port_share(pool, streams)
    if share > 1:
        moved = sum(one.bytes_per_s for one in streams) / 1e6
        yield RejectionReason(
            "port rate", f"{moved:,.0f} MB/s are {format_share(share)} of what its ports carry", share
        )


def _disk_reason(pool: Pool, streams: Sequence[PeakStream], demand: PeakDemand) -> Iterator[RejectionReason]:
    share = disk_share(pool, streams, demand)
    if share > 1:
        iops = sum(one.rate for one in streams)
        yield RejectionReason(
            "IOPS", f"{iops:,.0f} IOPS are at least {format_share(share)} of what its disks can do", share
        )


def disk_share(pool: Pool, streams: Sequence[PeakStream], demand: PeakDemand) -> float:
    """The least share of the disks' time that I/O takes, whatever order they serve it in."""
    disk, members = pool.member.member_plan["disk"], pool.members
    active = (pool.member.value("disks.count") - pool.member.value("disks.spares")) * members
    write_cost = _write_cost(pool)
    if disk["kind"] == "solid-state":
        return flash_share(pool, streams, active)
    if disk["kind"] != "mechanical":
        return 0.0
    hits = min(pool.member.value("cache.size") * members / max(demand.total_bytes, 1), 1.0)
    positioning_s = POSITIONING_LEAST * (disk["seek_average_ns"] + disk["revolution_ns"] / 2) / 1e9
    busy_s = 0.0
    for one in streams:
        transfer_s = one.block_bytes / disk["rate_outer_bytes_per_s"]
        if one.random_share < 0.5:
            busy_s += one.rate * transfer_s
            continue
        each_s = disk["command_overhead_ns"] / 1e9 + positioning_s + transfer_s
        ios = one.rate * (one.read_share * (1 - hits) + (1 - one.read_share) * write_cost)
        busy_s += ios * each_s
    return float(busy_s / active)


def flash_share(pool: Pool, streams: Sequence[PeakStream], active: int) -> float:
    """The least share of drives' flash that I/O takes: bytes over the interface, and bytes that all dies program.

    Reads pass the interface at its published rate at most, and a write is programmed once at least (the block and its
    copy, or the block and a parity), at the published rate of sequential writes; garbage is not counted.
    """
    disk = pool.member.member_plan["disk"]
    assert disk["kind"] == "solid-state"
    copies = DISK_WRITES.get(pool.member.policy, 1) if pool.member.policy in ("1", "10") else 1
    read = sum(one.bytes_per_s * one.read_share for one in streams)
    written = sum(one.bytes_per_s * (1 - one.read_share) for one in streams) * copies
    programs = program_bytes_per_s(disk["flash"])
    return float(max(read / disk["interface_bytes_per_s"], written / programs) / active)


def _write_cost(pool: Pool) -> float:
    if pool.member.model.layout_kind != "in-place":
        return 1.0
    # Blocks of a stripe that are destaged together share its parity: the cache makes half of them do so at best.
    cost = PARITY_COST.get(pool.member.policy, 1)
    return cost if cost == 2 else cost / 2
