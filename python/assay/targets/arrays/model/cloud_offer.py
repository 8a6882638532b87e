"""What a provider offers: volumes in tiers, where and since when; and machines, which have limits of their own."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources

from assay.base.errors import UsageError
from assay.base.reading import nearest
from assay.base.tables import TableValue
from assay.targets.arrays.model.kinds import BYTES, COUNT, RATE, TIME, Kind

TIERS_MAX = 100
_Refusal = Callable[[str, str], UsageError]


@dataclass(frozen=True, kw_only=True)
class Tier:
    """Sizes up to a bound that have the same limits; None where the formulas of the file say.

    Attributes
    ----------
    name
        As the provider names it, such as P10.
    """

    name: str
    up_to_bytes: int
    iops: float | None
    throughput: float | None
    burst_iops: float | None
    burst_throughput: float | None


@dataclass(frozen=True, kw_only=True)
class CloudOffer:
    """Where a volume is offered so, as of which date, and its tiers in order of size."""

    region: str
    as_of: str
    tiers: tuple[Tier, ...]

    def tier_of(self, size_bytes: int) -> Tier | None:
        """The tier of a size: the smallest that holds it."""
        return next((tier for tier in self.tiers if size_bytes <= tier.up_to_bytes), None)


_TIER: Mapping[str, Kind] = {
    "up_to": BYTES,
    "iops": COUNT,
    "throughput": RATE,
    "burst_iops": COUNT,
    "burst_throughput": RATE,
}


def offer_of(table: Mapping[str, TableValue], refusal: _Refusal) -> CloudOffer:
    """The offer of a model file.

    Raises
    ------
    UsageError
        A key is missing or wrong; `refusal` makes it.
    """
    words = {}
    for key in ("region", "as_of"):
        word = table.get(key)
        if not isinstance(word, str) or not word.strip() or "\n" in word:
            raise refusal(key, "is missing or not one line of text")
        words[key] = word
    given = table.get("tiers", [])
    if not isinstance(given, list) or len(given) > TIERS_MAX:
        raise refusal("tiers", f"is no list of at most {TIERS_MAX} tables")
    tiers = tuple(_tier(f"tiers[{number}]", entry, refusal) for number, entry in enumerate(given, start=1))
    if list(tiers) != sorted(tiers, key=lambda tier: tier.up_to_bytes):
        raise refusal("tiers", "are not in order of up_to")
    return CloudOffer(region=words["region"], as_of=words["as_of"], tiers=tiers)


def _tier(key: str, entry: object, refusal: _Refusal) -> Tier:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or "up_to" not in entry:
        raise refusal(key, "has no name and up_to")
    if strange := set(entry) - {"name", *_TIER}:
        raise refusal(key, f"has {min(map(str, strange))!r}; accepted: name, {', '.join(_TIER)}")
    read: dict[str, float] = {}
    for name, kind in _TIER.items():
        if name in entry:
            try:
                read[name] = kind.from_text(str(entry[name]))[0]
            except ValueError as error:
                raise refusal(f"{key}.{name}", str(error)) from None
    return Tier(
        name=entry["name"],
        up_to_bytes=int(read["up_to"]),
        iops=read.get("iops"),
        throughput=read.get("throughput"),
        burst_iops=read.get("burst_iops"),
        burst_throughput=read.get("burst_throughput"),
    )


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What all volumes of a machine may do together.

    Attributes
    ----------
    family
        Of the volumes it may have, as model files write it.
    volumes
        Models that the limits are of; empty: all of the family.
    burst_ns
        How long full credits last at the burst.
    """

    name: str
    family: str
    volumes: tuple[str, ...]
    iops: float
    burst_iops: float
    throughput: float
    burst_throughput: float
    burst_ns: int
    source: str


@functools.cache
def machines() -> tuple[Machine, ...]:
    """All machines that Assay knows, from `machines.toml`."""
    table = tomllib.loads((resources.files(__package__) / "machines.toml").read_text())
    found = []
    for group in table["group"]:
        for name, (iops, burst_iops, throughput, burst_throughput) in group["machines"].items():
            found.append(
                Machine(
                    name=name,
                    family=group["family"],
                    volumes=tuple(group.get("volumes", ())),
                    iops=iops,
                    burst_iops=burst_iops,
                    throughput=RATE.from_number(throughput, group["unit"]),
                    burst_throughput=RATE.from_number(burst_throughput, group["unit"]),
                    burst_ns=int(TIME.from_text(group["burst_time"])[0]),
                    source=group["source"],
                )
            )
    return tuple(found)


def machine_of(text: str, family: str, volume: str) -> Machine:
    """The machine of a name, for volumes of a model.

    Raises
    ------
    UsageError
        There is none.
    """
    fitting = {
        machine.name.lower(): machine
        for machine in machines()
        if machine.family == family and (not machine.volumes or volume in machine.volumes)
    }
    if not fitting:
        raise UsageError(f"model: option 'instance': no machine is known for {volume}; leave it out")
    if text.lower() not in fitting:
        close = nearest(text.lower(), fitting)
        hint = f"did you mean {fitting[close].name!r}? " if close else ""
        known = ", ".join(machine.name for machine in fitting.values())
        raise UsageError(f"model: option 'instance': unknown {text!r}; {hint}known for {volume}: {known}")
    return fitting[text.lower()]
