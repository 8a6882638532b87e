"""What may be bought: ladders of arrays, each step larger than the one before, and what no simulation need ask."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from assay.base.errors import UsageError
from assay.base.units import count_of, format_share
from assay.insight.sizing.demand import DATA, LOG, PeakDemand, PeakStream
from assay.insight.sizing.need import Need, Offer
from assay.record.shapes.sizing import Size
from assay.targets.arrays.model.configuration import VOLUMES_USUAL, Configuration, size_text
from assay.targets.arrays.model.model_file import ModelFile, catalogue_names, load_model, refuse_other_structures

CHOICES_MOST = 400
"""Choices of an array, RAID policy, paths and volumes; the whole catalogue has some twenty."""
LOG_VOLUMES = 2
LARGE_BYTES = 3_000_000_000_000
SLOW_REVOLUTION_NS = 8_300_000
"""Nearline disks: 3 TB and more, 7,200 turns a minute and fewer."""
SINGLE_PARITY = ("5", "50")
PARITY = ("5", "50", "6", "60")
PARITY_COST = {"10": 2, "1": 2, "5": 4, "50": 4, "6": 6, "60": 6}
"""I/Os of disks that a small random write takes (the method; write-anywhere layouts write whole stripes)."""
FILL_STEP = 0.05
"""Arrays are simulated at fills of this grid, so that needs that differ little ask the same question."""
POSITIONING_LEAST = 0.4
"""No order of a disk's queue makes positioning shorter than this share of a random one's: a bound that leaves room,
and which the back-test checks against simulation (benches/sizing.py)."""
PORT_BUSY_MOST = 0.95


@dataclass(frozen=True, order=True)
class LadderStep:
    """A size of a ladder: members, and disks of each; 0 for those of the model file."""

    members: int
    disks: int


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """One array under one choice of RAID, paths and volumes, in all sizes that may be bought, the smallest first.

    Attributes
    ----------
    log_raid
        RAID policy of a member that only the log is on; None where the log shares the pool.
    """

    offer: Offer
    array: str
    raid: str
    log_raid: str | None
    paths: int | None
    volumes: int
    steps: tuple[LadderStep, ...]

    @property
    def name(self) -> str:
        """The ladder in a few words."""
        words = [self.array, f"RAID {self.raid.upper()}"]
        if self.log_raid is not None:
            words[-1] += f", log on RAID {self.log_raid.upper()}"
        if self.paths is not None:
            words.append(count_of(self.paths, "path"))
        if self.offer.volumes:
            words.append(count_of(self.volumes, "volume"))
        return ", ".join(words)

    def label(self, step: LadderStep) -> str:
        """Short name of one size of the ladder."""
        members = "1 member" if step.members == 1 else f"{step.members} members"
        return f"{self.name}, {members}" + (f" of {step.disks} disks" if step.disks else "")

    def cost(self, step: LadderStep) -> float | None:
        """Cost of one size of the ladder; None where no cost is stated."""
        if self.offer.cost is None:
            return None
        return step.members * (self.offer.cost + self.offer.disk_cost * self.disks(step) / step.members)

    def disks(self, step: LadderStep) -> int:
        """All its disks, spares included."""
        own = step.disks or int(_model(self.array).parameters["disks.count"].value)
        return own * step.members

    def rack_units(self, step: LadderStep) -> float | None:
        """Its height, where that is stated."""
        return None if self.offer.rack_units is None else self.offer.rack_units * step.members

    def power_w(self, step: LadderStep) -> float | None:
        """What it takes, where that is stated."""
        return None if self.offer.power is None else self.offer.power * step.members


@dataclass(frozen=True)
class RejectionReason:
    """Why a candidate does not hold a need.

    Attributes
    ----------
    kind
        `capacity`, `fill`, `IOPS`, `log latency`, `port rate`, `degraded`, `rebuilding`, `rebuild window`, `loss` or
        `rule`.
    share
        What is asked as a share of what it has; the least above 1 is the nearest miss.
    """

    kind: str
    text: str
    share: float = math.inf


@cache
def _model(name: str) -> ModelFile:
    return load_model(name)


def ladders(need: Need) -> tuple[list[Ladder], list[tuple[str, RejectionReason]]]:
    """All that may be bought for a need, and what a rule leaves out before anything is asked.

    Raises
    ------
    UsageError
        An array, RAID policy, number of disks or paths is unknown or impossible.
    """
    found: list[Ladder] = []
    refused: list[tuple[str, RejectionReason]] = []
    offers = need.candidate or tuple(
        Offer(array=name) for name in catalogue_names() if _model(name).structure == "group"
    )
    has_log = any(one.log_bytes for one in need.database) and need.rules.log_apart
    for offer in offers:
        model = _model(offer.array)
        refuse_other_structures(model, f"candidate {offer.array}")
        if model.parameters["disk.capacity"].source.startswith("unknown"):
            if need.candidate:
                raise UsageError(f"candidate {offer.array}: is a black box, whose disks are not known; give another")
            continue
        for raid in _policies(offer, model):
            for log_raid in (None, "10"):
                if log_raid is not None and not _splits(raid, model, offer, has_log=has_log):
                    continue
                for paths in _paths(offer, model):
                    for volumes in offer.volumes or (VOLUMES_USUAL,):
                        ladder = Ladder(
                            offer=offer, array=offer.array, raid=raid, log_raid=log_raid, paths=paths,
                            volumes=volumes, steps=_steps(offer, model, split=log_raid is not None),
                        )  # fmt: skip
                        if len(found) + len(refused) == CHOICES_MOST:
                            raise UsageError(
                                f"candidate: the need has more than {CHOICES_MOST} choices of an array, raid, paths and"
                                " volumes; give fewer"
                            )
                        reason = _rule(need, ladder, model, has_log=has_log)
                        if reason is not None:
                            refused.append((ladder.name, reason))
                        elif ladder.steps:
                            _checked(ladder)
                            found.append(ladder)
    return found, refused


def _policies(offer: Offer, model: ModelFile) -> Sequence[str]:
    asked = [one.lower() for one in offer.raid]
    for one in asked:
        if one not in model.policies:
            raise UsageError(
                f"candidate {offer.array}: raid: {model.name} does not offer RAID {one}; it has"
                f" {', '.join(model.policies)}"
            )
    return asked or [one for one in model.policies if one != "0"]


def _splits(raid: str, model: ModelFile, offer: Offer, *, has_log: bool) -> bool:
    """Whether a log may have a member of its own."""
    most = int(model.parameters["group.members"].value)
    allowed = not offer.raid or "10" in offer.raid
    return has_log and raid in PARITY and "10" in model.policies and most > 1 and allowed


def _paths(offer: Offer, model: ModelFile) -> Sequence[int | None]:
    if offer.paths:
        most = int(model.parameters["links.ports"].value)
        wrong = next((one for one in offer.paths if one > most), None)
        if wrong is not None:
            raise UsageError(f"candidate {offer.array}: paths: {wrong} are more than the {most} ports of {model.name}")
        return offer.paths
    usual, most = (int(model.parameters[key].value) for key in ("links.paths", "links.ports"))
    return [None, most] if most > usual else [None]


def _steps(offer: Offer, model: ModelFile, *, split: bool) -> tuple[LadderStep, ...]:
    most = int(model.parameters["group.members"].value)
    low, high = offer.members or (1, most)
    if high > most:
        raise UsageError(f"candidate {offer.array}: members: {high} are more than the {most} a group has")
    low = max(low, 2) if split else low
    own = int(model.parameters["disks.count"].value)
    steps = [LadderStep(members, disks) for members in range(low, high + 1) for disks in (offer.disks or (0,))]
    return tuple(sorted(steps, key=lambda one: (one.members * (one.disks or own), one.members)))


def _rule(need: Need, ladder: Ladder, model: ModelFile, *, has_log: bool) -> RejectionReason | None:
    """The rule that leaves a ladder out."""
    values = {key: parameter.value for key, parameter in model.parameters.items()}
    large = values["disk.capacity"] >= LARGE_BYTES and values.get("disk.revolution", 0) >= SLOW_REVOLUTION_NS
    if ladder.raid == "0":
        return RejectionReason("rule", "RAID 0 loses all with its first disk")
    if need.rules.raid6_large and large and ladder.raid in SINGLE_PARITY:
        return RejectionReason(
            "rule",
            f"RAID {ladder.raid} on disks of {size_text(values['disk.capacity'])}: large nearline disks take RAID 6",
        )
    in_place = model.layout_kind == "in-place"
    if need.rules.raid_by_role and has_log and in_place and ladder.raid in PARITY and ladder.log_raid is None:
        return RejectionReason("rule", f"the log would lie on RAID {ladder.raid}: logs take RAID 10")
    return None


def _checked(ladder: Ladder) -> None:
    """Refuse what cannot be built at any size.

    Raises
    ------
    UsageError
        Its smallest size is impossible.
    """
    try:
        _bare(ladder.array, ladder.raid, ladder.steps[0].disks, ladder.paths)
    except UsageError as error:
        raise UsageError(f"candidate {ladder.name}: {str(error).removeprefix('model: ')}") from None


@cache
def _bare(array: str, raid: str, disks: int, paths: int | None) -> Configuration:
    """One member without any volumes to speak of."""
    options = {"raid": raid, "volumes": "1", "volume_size": "1MiB"}
    options |= {"disks.count": str(disks)} if disks else {}
    options |= {"paths": str(paths)} if paths is not None else {}
    return Configuration(model=_model(array), options=options)


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Members of one RAID policy: what they hold, and what is asked of them."""

    role: str
    member: Configuration
    members: int
    asked_bytes: int

    @property
    def usable_bytes(self) -> int:
        """Bytes that the members can hold, what is kept free included."""
        return self.member.usable_bytes * self.members

    @property
    def free_bytes(self) -> int:
        """Bytes that stay free."""
        return self.member.kept_bytes * self.members

    @property
    def fill(self) -> float:
        """Share of the usable bytes that is asked for."""
        return self.asked_bytes / self.usable_bytes


def pools_of(ladder: Ladder, step: LadderStep, demand: PeakDemand) -> list[Pool]:
    """The pools of a size; the first has the data."""
    member = _bare(ladder.array, ladder.raid, step.disks, ladder.paths)
    if ladder.log_raid is None:
        return [Pool(role=DATA, member=member, members=step.members, asked_bytes=demand.total_bytes)]
    of_log = _bare(ladder.array, ladder.log_raid, step.disks, ladder.paths)
    return [
        Pool(role=DATA, member=member, members=step.members - 1, asked_bytes=demand.data_bytes),
        Pool(role=LOG, member=of_log, members=1, asked_bytes=demand.log_bytes),
    ]


def pool_configuration(
    need: Need, ladder: Ladder, step: LadderStep, demand: PeakDemand, pool: Pool, *, state: str = "healthy"
) -> Configuration:
    """The model of a pool with its volumes of a demand, no emptier than the method sizes by.

    Pools share hosts and links alone, so that each is asked by itself. There is a host for each member, with as many
    ports, so that it is the array that is judged.
    """
    wanted = grid_fill(need, pool.fill) * pool.usable_bytes
    held = min(wanted, pool.usable_bytes - pool.free_bytes)
    sizes: dict[str, tuple[int, float]] = {}
    if pool.role == LOG:
        sizes[LOG] = (LOG_VOLUMES, held / LOG_VOLUMES)
    else:
        log_bytes = demand.log_bytes if ladder.log_raid is None else 0
        sizes[DATA] = (ladder.volumes, (held - log_bytes) / ladder.volumes)
        if log_bytes:
            sizes[LOG] = (LOG_VOLUMES, log_bytes / LOG_VOLUMES)
    raid = ladder.raid if pool.role == DATA or ladder.log_raid is None else ladder.log_raid
    page = int(pool.member.value("group.page"))
    options = {
        "raid": raid,
        "volumes": ",".join(f"{role}:{count}" for role, (count, _) in sizes.items()),
        "volume_size": ",".join(f"{role}:{_whole(size, page)}B" for role, (_, size) in sizes.items()),
        "members": str(pool.members),
        "hosts": str(min(pool.members, sum(count for count, _ in sizes.values()))),
    }
    options |= {"disks.count": str(step.disks)} if step.disks else {}
    options |= {"paths": str(ladder.paths)} if ladder.paths is not None else {}
    options |= {"state": state} if state != "healthy" else {}
    return Configuration(model=_model(ladder.array), options=options)


def _whole(size: float, page: int) -> int:
    """A size that members can hold without room that is lost to their pages; of one below a page, whole sectors."""
    return int(size // page) * page if size >= page else max(int(size) // 512 * 512, 1 << 20)


def grid_fill(need: Need, fill: float) -> float:
    """The fill that a size is simulated at."""
    return max(need.rules.modelled_fill, min(math.ceil(fill / FILL_STEP - 1e-9) * FILL_STEP, need.rules.fill))


# What no simulation need ask


def static_reasons(
    need: Need, ladder: Ladder, step: LadderStep, demand: PeakDemand, loaded: PeakDemand
) -> Iterator[RejectionReason]:
    """Why a size cannot hold a demand, by arithmetic alone; nothing where only a simulation can tell.

    Parameters
    ----------
    loaded
        The demand with its head-room.
    """
    pools = pools_of(ladder, step, demand)
    for pool in pools:
        room = pool.usable_bytes - pool.free_bytes
        asked = size_text(pool.asked_bytes)
        if pool.asked_bytes > room:
            yield RejectionReason(
                "capacity",
                f"{asked} of {pool.role} and {size_text(room)} of room: {size_text(pool.free_bytes)} of"
                f" {size_text(pool.usable_bytes)} stay free",
                pool.asked_bytes / room,
            )
        elif pool.fill > need.rules.fill:
            # So close that whole percents would read alike.
            decimals = 1 if format_share(pool.fill) == format_share(need.rules.fill) else 0
            yield RejectionReason(
                "fill",
                f"{asked} fill {format_share(pool.fill, decimals)} of {size_text(pool.usable_bytes)}, above"
                f" {format_share(need.rules.fill, decimals)}",
                pool.fill / need.rules.fill,
            )
    for phase in loaded.phases:
        for pool in pools:
            own = [one for one in phase if len(pools) == 1 or one.role == pool.role]
            yield from _port_reason(pool, own)
            yield from _disk_reason(pool, own, demand)


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
    """The least share of the disks' time that random I/O takes, whatever order they serve it in."""
    disk, members = pool.member.member_plan["disk"], pool.members
    active = (pool.member.value("disks.count") - pool.member.value("disks.spares")) * members
    if disk["kind"] != "mechanical":
        return 0.0
    write_cost = _write_cost(pool)
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


def _write_cost(pool: Pool) -> float:
    if pool.member.model.layout_kind != "in-place":
        return 1.0
    # Blocks of a stripe that are destaged together share its parity: the cache makes half of them do so at best.
    cost = PARITY_COST.get(pool.member.policy, 1)
    return cost if cost == 2 else cost / 2


def facts_of(ladder: Ladder, step: LadderStep, demand: PeakDemand) -> Size:
    """A candidate as documents carry it."""
    pools = pools_of(ladder, step, demand)
    return {
        "label": ladder.label(step),
        "array": ladder.array,
        "title": _model(ladder.array).title,
        "raid": ladder.raid,
        "log_raid": ladder.log_raid,
        "members": step.members,
        "disks": ladder.disks(step),
        "disks_of_member": step.disks or None,
        "paths": ladder.paths,
        "volumes": ladder.volumes,
        "cost": ladder.cost(step),
        "rack_units": ladder.rack_units(step),
        "power_w": ladder.power_w(step),
        "usable_bytes": sum(pool.usable_bytes for pool in pools),
        "free_bytes": sum(pool.free_bytes for pool in pools),
        "fill": max(pool.fill for pool in pools),
    }
