"""Ladders of cloud volumes: the sizes, IOPS and throughput that a demand asks for, in steps around them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from typing_extensions import override

from assay.base.errors import UsageError
from assay.base.units import count_of, format_duration, format_share
from assay.insight.sizing.demand import DATA, LOG, PeakDemand, PeakStream
from assay.insight.sizing.ladder import (
    Ladder,
    LadderStep,
    Pool,
    RefusedLadder,
    RejectionReason,
    Side,
    model_of,
    refuse_keys,
)
from assay.insight.sizing.need import Need, Offer
from assay.insight.sizing.price_book import PriceBook
from assay.insight.sizing.prices import AmountPrice, price_of
from assay.targets.arrays.model.cloud import Cloud
from assay.targets.arrays.model.cloud_limits import BurstLimit, VolumeLimits, volume_limits
from assay.targets.arrays.model.cloud_offer import Machine, machine_of, machines
from assay.targets.arrays.model.configuration import Configuration, size_text
from assay.targets.arrays.model.model_file import ModelFile
from assay.targets.arrays.model.parameters import GIB, MIB

COUNTS = (1, 2, 4, 8, 16, 32)
"""Volumes over which the data are striped."""
STEP_RATIO = 1.1
STEPS = range(-1, 9)
"""Sizes of a ladder: what the demand asks for by arithmetic times powers of the ratio. The first is too small."""
IOPS_GRAIN = 10
"""IOPS are asked for in such numbers."""
VARYING_LEAST = 0.9
"""No mean of simulated latencies is below this share of the stated one."""
OF_ARRAYS = ("raid", "members", "disks", "paths", "drive", "cost", "disk_cost", "rack_units", "power")


@dataclass(frozen=True, order=True)
class CloudVolume:
    """A volume as it is asked for; None where IOPS or throughput come with it."""

    size_bytes: int
    iops: int | None
    throughput: int | None


@dataclass(frozen=True, order=True)
class CloudStep(LadderStep):
    """Equal volumes of the data, and one of the log where it is apart."""

    data: CloudVolume
    log: CloudVolume | None

    @property
    def by_role(self) -> list[tuple[str, int, CloudVolume]]:
        """Role, number and kind of its volumes."""
        found = [(DATA, self.members - (self.log is not None), self.data)]
        return [*found, (LOG, 1, self.log)] if self.log is not None else found


@dataclass(frozen=True)
class WantedVolume:
    """What one volume must give: bytes of room, I/Os as the provider counts them, and bytes a second."""

    size_bytes: float
    iops: float
    bytes_per_s: float
    burst_s: float


@dataclass(frozen=True, kw_only=True)
class CloudLadder(Ladder):
    """Volumes of one product on one machine.

    Attributes
    ----------
    machine
        None: no machine limits them.
    burst_s
        How long a peak lasts, for which credits may pay; 0 for one that does not end.
    """

    machine: Machine | None
    burst_s: float

    side: ClassVar[Side] = "cloud"

    @property
    def name(self) -> str:
        """The ladder in a few words."""
        return f"{self.array} on {self.machine.name}" if self.machine else self.array

    def label(self, step: LadderStep) -> str:
        """Short name of one size of the ladder."""
        assert isinstance(step, CloudStep)
        found = []
        for role, count, one in step.by_role:
            words = [size_text(one.size_bytes) if one.size_bytes % GIB else f"{one.size_bytes // GIB:,} GiB"]
            words += [f"{one.iops:,} IOPS"] if one.iops is not None else []
            words += [f"{one.throughput // MIB:,} MiB/s"] if one.throughput is not None else []
            times = f"{count} x " if count > 1 else ""
            found.append(f"{'log ' if role == LOG else ''}{times}{', '.join(words)}")
        return f"{self.name}: {'; '.join(found)}"

    @override
    def bought(self, step: LadderStep) -> str:
        """The product: its size can be changed at any time."""
        return self.name

    @override
    def disks(self, step: LadderStep) -> int:
        """None: drives are the provider's."""
        return 0

    def price(self, step: LadderStep) -> AmountPrice:
        """List prices of all its volumes, by the month; the machine is not among them."""
        assert isinstance(step, CloudStep)
        entry = self.book.entry_of(self.array)
        if entry is None:
            return self.book.unknown(self.array)
        month = 0.0
        for _, count, one in step.by_role:
            found = price_of(
                entry, size_bytes=one.size_bytes, iops=one.iops or 0, bytes_per_s=one.throughput or 0.0, count=count
            )
            if found.by_month is None:
                return found
            month += found.by_month
        return AmountPrice(entry.currency, 0.0, month)

    def _options(self, step: CloudStep) -> dict[str, str]:
        volumes = step.by_role
        options = {
            "volumes": ",".join(f"{role}:{count}" for role, count, _ in volumes),
            "size": ",".join(f"{role}:{one.size_bytes}B" for role, _, one in volumes),
        }
        for key in ("iops", "throughput"):
            values = [(role, getattr(one, key)) for role, _, one in volumes]
            if all(value is not None for _, value in values):
                size, unit = (MIB, "MiB/s") if key == "throughput" else (1, "")
                options[key] = ",".join(f"{role}:{value // size}{unit}" for role, value in values)
        if self.machine is not None:
            options["instance"] = self.machine.name
        if not self.burst_s:
            options |= {"credits": "0"} | ({"instance_credits": "0"} if self.machine else {})
        return options

    def pools(self, step: LadderStep, demand: PeakDemand) -> list[Pool]:
        """All volumes as one pool: they share the machine."""
        assert isinstance(step, CloudStep)
        member = Cloud(model=model_of(self.array), options=self._options(step))
        return [Pool(role=DATA, member=member, members=1, asked_bytes=demand.total_bytes)]

    @override
    def configuration(
        self, need: Need, step: LadderStep, demand: PeakDemand, pool: Pool, *, state: str = "healthy"
    ) -> Configuration:
        """The volumes as they are bought."""
        return pool.member

    def load_reasons(self, pools: Sequence[Pool], loaded: PeakDemand) -> Iterator[RejectionReason]:
        """What the limits of its volumes, and of the machine, do not let through."""
        cloud = pools[0].member
        assert isinstance(cloud, Cloud)
        machine = cloud.machine_limits
        for phase in loaded.phases:
            for role in dict.fromkeys(cloud.roles):
                own = [one for one in phase if len(set(cloud.roles)) == 1 or one.role == role]
                limits = [one for one, name in zip(cloud.limits, cloud.roles, strict=True) if name == role]
                iops, moved = counted_load(cloud.model, own, at_least=True)
                yield from self._limit_reasons(
                    self.array, [one.iops for one in limits], [one.throughput for one in limits], iops, moved
                )
            if machine is not None and self.machine is not None:
                yield from self._limit_reasons(
                    self.machine.name, [machine.iops], [machine.throughput], sum(one.rate for one in phase),
                    sum(one.bytes_per_s for one in phase), "instance",
                )  # fmt: skip

    def _limit_reasons(
        self, who: str, iops: Sequence[BurstLimit], throughput: Sequence[BurstLimit], asked_iops: float,
        asked_bytes: float, kind: str = "",
    ) -> Iterator[RejectionReason]:  # fmt: skip
        for limits, asked, own in ((iops, asked_iops, "IOPS"), (throughput, asked_bytes, "throughput")):
            held = sum(one.per_s for one in limits)
            if asked <= held:
                continue
            text = f"{_rate(own, asked)} are {format_share(asked / held)} of the {_rate(own, held)} that {who} has"
            text += " without end"
            bursts = sum(one.burst_per_s for one in limits)
            if bursts > held:
                # Credits are spent evenly: load is spread over all volumes.
                lasts_s = sum(one.credits for one in limits) / (asked - held) if asked <= bursts else 0.0
                if self.burst_s and lasts_s >= self.burst_s:
                    continue
                text += f", and credits pay for {format_duration(lasts_s)}"
                text += f" of {format_duration(self.burst_s)}" if self.burst_s else ""
                own = "credits"
            yield RejectionReason(kind or own, text, asked / held)

    @override
    def busy_share(self, step: LadderStep, demand: PeakDemand) -> float:
        """Not known: a search begins with the smallest size that arithmetic allows."""
        return 0.0

    @override
    def port_shares(self, step: LadderStep, demand: PeakDemand) -> float | None:
        """None: limits of volumes and machine stand in their place."""
        return None

    def least_latency_s(self, reads: float) -> float:
        """The stated latencies, which vary."""
        of = model_of(self.array).parameters
        return float(VARYING_LEAST * (reads * of["latency.read"].value + (1 - reads) * of["latency.write"].value) / 1e9)

    def machine_sentence(self, demand: PeakDemand) -> str | None:
        """The machine that a demand takes, where none is stated."""
        if self.machine is not None:
            return None
        fitting = machines_for(model_of(self.array), demand)
        such = f", such as {fitting[0].name}" if fitting else ""
        rates = f"{demand.iops:,.0f} IOPS and {size_text(demand.bytes_per_s)}/s"
        return f"{self.array}: no machine is stated (instance); it takes one whose own limits carry {rates}{such}"

    @property
    def lost_drive(self) -> str:
        """The recovery point after the loss of a drive of the provider's."""
        return "a lost drive is the provider's to replace; a lost volume loses everything since the last snapshot"


def _rate(what: str, value: float) -> str:
    return f"{value:,.0f} IOPS" if what == "IOPS" else f"{size_text(value)}/s"


def counted_load(model: ModelFile, streams: Sequence[PeakStream], *, at_least: bool = False) -> tuple[float, float]:
    """I/Os and bytes a second of streams as a provider counts them (docs/models-cloud.md, Counting).

    Sequential I/Os count together where the provider merges, but writes of a log, of which each waits for the one
    before it.

    Parameters
    ----------
    at_least
        Count the least that is possible: writes of a log may come together.
    """

    def stated(name: str) -> float:
        parameter = model.parameters.get(name)
        return float(parameter.value) if parameter is not None else 0.0

    unit = stated("accounting.unit")
    merges, whole = bool(stated("accounting.merges")), bool(stated("accounting.whole_units"))
    iops = moved = 0.0
    for one in streams:
        units = one.block_bytes / unit if unit else 1.0
        is_merged = merges and one.random_share < 0.5 and (at_least or one.kind != LOG)
        iops += one.rate * (units if is_merged and unit else max(math.ceil(units), 1))
        moved += one.rate * (unit * math.ceil(units) if whole and not is_merged else one.block_bytes)
    return iops, moved


def with_queue(model: ModelFile, streams: Sequence[PeakStream], iops: float) -> float:
    """IOPS that a volume takes so that I/Os which arrive at random wait no longer than the limits allow.

    A volume that lets I/Os through at a rate m is a server with a fixed time: the mean wait is l / (2 m (m - l)) at l
    I/Os a second (Pollaczek and Khinchine, M/D/1), solved here for m. What arrives at equal distances does not wait.
    """
    allowed_s = min(
        (
            limit - _value(model, f"latency.{side}") / 1e9
            for one in streams
            for side, limit, share in (
                ("read", one.read_limit_s, one.read_share), ("write", one.write_limit_s, 1 - one.read_share)
            )
            if limit is not None and share > 0 and one.random_share > 0.5
        ),
        default=math.inf,
    )  # fmt: skip
    if allowed_s <= 0 or math.isinf(allowed_s):
        return iops  # nothing random; or no rate makes it answer soon enough
    return iops / 2 + math.sqrt(iops**2 / 4 + iops / (2 * allowed_s))


def _value(model: ModelFile, dotted: str) -> float:
    parameter = model.parameters.get(dotted)
    return float(parameter.value) if parameter is not None else 0.0


def volume_for(model: ModelFile, asked: WantedVolume) -> CloudVolume | None:
    """The smallest volume of a product that gives what is asked for; None where no size does."""
    assert model.offer is not None
    value = partial(_value, model)
    least = max(math.ceil(asked.size_bytes / GIB), math.ceil(value("volume.least") / GIB))
    most = int(value("volume.most") // GIB)
    if least > most or _fitting(model, most, asked) is None:
        return None
    low, high = least, least if _fitting(model, least, asked) is not None else most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fitting(model, middle, asked) is not None else (middle + 1, high)
    tier = model.offer.tier_of(low * GIB)
    if tier is not None and tier.iops is not None:
        # A disk is billed, and has the limits of, its whole tier.
        low = min(int(tier.up_to_bytes // GIB), most)
    return _fitting(model, low, asked)


def _fitting(model: ModelFile, gib: int, asked: WantedVolume) -> CloudVolume | None:
    """The volume of a size with the least IOPS and throughput that do; None where they are not offered."""
    assert model.offer is not None
    value = partial(_value, model)
    size = gib * GIB
    iops = throughput = None
    if value("throughput.asked_most"):
        floor = max(value("throughput.asked_least"), value("throughput.asked_least_per_gib") * gib)
        throughput = math.ceil(max(floor, asked.bytes_per_s) / MIB - 1e-9) * MIB
    if value("iops.asked_most"):
        floor = max(value("iops.asked_least"), value("iops.asked_least_per_gib") * gib)
        ratio = value("throughput.asked_most_per_iops") or value("throughput.per_iops")
        by_ratio = (throughput or asked.bytes_per_s) / ratio if ratio else 0.0
        if throughput is not None and throughput <= value("throughput.asked_least"):
            by_ratio = 0.0
        iops = math.ceil(max(asked.iops, by_ratio) / IOPS_GRAIN - 1e-9) * IOPS_GRAIN
        iops = max(iops, math.ceil(floor))
    try:
        limits = volume_limits(value, size, model.offer.tier_of(size), iops, throughput)
    except UsageError:
        return None
    return CloudVolume(size, iops, throughput) if _gives(limits, asked) else None


def _gives(limits: VolumeLimits, asked: WantedVolume) -> bool:
    """Whether limits let through what is asked for, without end or for as long as the peak lasts."""
    return all(
        want <= limit.per_s
        or (asked.burst_s > 0 and want <= limit.burst_per_s and limit.credits >= (want - limit.per_s) * asked.burst_s)
        for limit, want in ((limits.iops, asked.iops), (limits.throughput, asked.bytes_per_s))
    )


def step_for(need: Need, model: ModelFile, demand: PeakDemand, count: int, factor: float) -> CloudStep | None:
    """Volumes for a demand with its head-room, times a factor; None where the product has none so large."""
    loaded = demand.times(1 + need.head_room)
    split = demand.log_bytes > 0

    def volume(role: str, volumes: int, size_bytes: float) -> CloudVolume | None:
        iops = moved = 0.0
        for phase in loaded.phases:
            own = [one for one in phase if not split or one.role == role]
            each_iops, each_moved = counted_load(model, own)
            iops = max(iops, with_queue(model, own, each_iops / volumes))
            moved = max(moved, each_moved / volumes)
        size = size_bytes / need.rules.fill / volumes
        return volume_for(model, WantedVolume(size, iops * factor, moved * factor, need.burst or 0.0))

    data = volume(DATA, count, demand.data_bytes if split else demand.total_bytes)
    log = volume(LOG, 1, demand.log_bytes) if split else None
    if data is None or (split and log is None):
        return None
    return CloudStep(members=count + split, disks=0, data=data, log=log)


def cloud_ladder(
    need: Need, offer: Offer, demand: PeakDemand, book: PriceBook, machine_name: str | None
) -> CloudLadder | RefusedLadder:
    """The ladder of a product over as many volumes as cost least, or, where no price is known, as few as can be.

    Raises
    ------
    UsageError
        The candidate states what only arrays have.
    """
    refuse_keys(offer, OF_ARRAYS, "is of arrays, and this is a cloud's volume; --prices FILE gives its price")
    model = model_of(offer.array)
    machine = None
    if machine_name is not None:
        try:
            machine = machine_of(machine_name, model.family, model.name)
        except UsageError:
            reason = RejectionReason(
                "rule", f"{machine_name} is no machine that {model.name} is known to be attached to"
            )
            return RefusedLadder(offer.array, reason)
    burst_s = need.burst or 0.0
    best: tuple[float, int, CloudStep] | None = None
    for count in offer.volumes or COUNTS:
        exact = step_for(need, model, demand, count, 1.0)
        if exact is None:
            continue
        alone = CloudLadder(offer=offer, array=offer.array, book=book, steps=(exact,), machine=machine, burst_s=burst_s)
        cost = alone.cost(exact)
        if best is None or (cost if cost is not None else math.inf) < best[0]:
            best = (math.inf if cost is None else cost, count, exact)
    if best is None:
        load = demand.times(1 + need.head_room)
        most = count_of(max(offer.volumes or COUNTS), "volume")
        rates = f"{load.iops:,.0f} IOPS and {size_text(load.bytes_per_s)}/s"
        text = f"{most} do not hold {size_text(demand.total_bytes)} and give {rates}"
        return RefusedLadder(offer.array, RejectionReason("IOPS", text))
    _, count, exact = best
    made = (step_for(need, model, demand, count, STEP_RATIO**power) for power in STEPS)
    steps = tuple(dict.fromkeys(one for one in made if one is not None))
    return CloudLadder(offer=offer, array=offer.array, book=book, steps=steps, machine=machine, burst_s=burst_s)


def machines_for(model: ModelFile, demand: PeakDemand) -> list[Machine]:
    """Machines whose limits carry a demand without end, the smallest first."""
    moved = demand.bytes_per_s
    fitting = [
        one
        for one in machines()
        if one.family == model.family
        and (not one.volumes or model.name in one.volumes)
        and one.iops >= demand.iops
        and one.throughput >= moved
    ]
    return sorted(fitting, key=lambda one: (one.iops, one.throughput, one.name))
