"""Volumes of a cloud as they are asked for: sizes, what is provisioned, a machine; and their plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from assay.base.errors import UsageError
from assay.record.shapes.manifest import CloudLimit, ModelledArray
from assay.targets.arrays.model.cloud_limits import BurstLimit, VolumeLimits, limit_of, volume_limits
from assay.targets.arrays.model.cloud_offer import CloudOffer, Machine, machine_of
from assay.targets.arrays.model.group import VOLUME_BYTES, Configuration, size_text
from assay.targets.arrays.model.kinds import FLAG, show_value
from assay.targets.arrays.model.model_file import ModelParameter
from assay.targets.arrays.model.options import CLOUD_OPTIONS
from assay.targets.arrays.model.parameters import PARAMETERS
from assay.targets.arrays.model.plan import ArrayPlan, CloudVolumePlan, LimitPlan, MachinePlan, SnapshotPlan

READ_LATE = ("seed", "credits", "instance_credits", "from_snapshot", "background", "iops", "throughput")


@dataclass(frozen=True)
class Cloud(Configuration):
    """Volumes of one machine, each with the provider's limits. Everything is checked when it is made."""

    known_options: ClassVar[Mapping[str, str]] = CLOUD_OPTIONS
    replaced_by: ClassVar[Mapping[str, str]] = {}

    @property
    def offer(self) -> CloudOffer:
        """Where and since when the volume is offered so."""
        assert self.model.offer is not None
        return self.model.offer

    # What an array of members is asked too

    @cached_property
    def pools(self) -> tuple[Configuration, ...]:
        """Itself: volumes share nothing but the machine."""
        return (self,)

    @cached_property
    def policy(self) -> str:
        """None that is told: the provider keeps the copies."""
        return ""

    @property
    def policies(self) -> list[str]:
        """None."""
        return []

    @property
    def raid(self) -> str:
        """None."""
        return ""

    @cached_property
    def protocol(self) -> str:
        """The provider's own."""
        return "own"

    @property
    def members(self) -> int:
        """Volumes: each is served by itself."""
        return len(self.volumes)

    @property
    def host_ports(self) -> int:
        """One: the machine's limits are those of all its ports."""
        return 1

    @property
    def controllers(self) -> tuple[int, int]:
        """None that is told; one, with one port."""
        return 1, 1

    @property
    def read_realloc(self) -> bool:
        """No."""
        return False

    @property
    def label(self) -> str:
        """The volume in a few words: its limits, and the machine."""
        limits = self.limits[0]
        words = [self.model.title.partition(",")[0], *(_rate(what, limit.per_s) for what, limit in _named(limits))]
        return ", ".join([*words, self.machine.name] if self.machine else words)

    def _in_force(self, dotted: str) -> ModelParameter:
        known = self._changed.get(dotted) or self.model.parameters.get(dotted)
        if known is not None:
            return known
        kind = PARAMETERS[dotted].kind
        unit = next((unit for unit, factor in kind.units.items() if factor == 1.0), None)
        value: Any = False if kind is FLAG else 0
        source = "the provider states none"
        return ModelParameter(value=value, written=value, unit=unit, from_="published", source=source, plus_minus=0.0)

    # Volumes

    @cached_property
    def usable_bytes(self) -> int:
        """Bytes of the volumes: what is asked for is there."""
        return self.used_bytes

    @property
    def raw_bytes(self) -> int:
        """The same: copies are the provider's."""
        return self.used_bytes

    @property
    def kept_bytes(self) -> int:
        """None."""
        return 0

    def _sizes(self, roles: Any) -> dict[str, int]:
        for other in ("size", "volume_size"):
            if other in self.options:
                sizes: dict[str, int] = self.option(other, None)
                if strange := set(sizes) - set(roles) - {""}:
                    raise UsageError(
                        f"model: {other}: there are no volumes of role {min(strange)}; give volumes by role too"
                    )
                return sizes
        return {"": max(VOLUME_BYTES, int(self.value("volume.least")))}

    def _count_and_size(self, size_bytes: int) -> tuple[int, int]:
        return 1, size_bytes

    # Limits

    @cached_property
    def machine(self) -> Machine | None:
        """The machine that has the volumes; None: none limits them."""
        name = self.options.get("instance")
        return machine_of(name, self.model.family, self.model.name) if name else None

    @cached_property
    def limits(self) -> list[VolumeLimits]:
        """The limits of each volume."""
        iops, throughput = self._by_role("iops"), self._by_role("throughput")
        tiers = self.offer.tier_of
        return [
            volume_limits(self.value, size, tiers(size), iops.get(role or "", iops.get("")),
                          throughput.get(role or "", throughput.get("")))
            for (_, size), role in zip(self.volumes, self.roles, strict=True)
        ]  # fmt: skip

    def _by_role(self, key: str) -> dict[str, float]:
        """What is asked for by role, under the empty name for all."""
        asked: dict[str, float] = self.option(key, {})
        if strange := set(asked) - {role or "" for role in self.roles} - {""}:
            raise UsageError(f"model: {key}: there are no volumes of role {min(strange)}; give volumes by role too")
        return asked

    @cached_property
    def machine_limits(self) -> VolumeLimits | None:
        """The limits of the machine."""
        machine = self.machine
        if machine is None:
            return None
        burst_s = machine.burst_ns / 1e9
        return VolumeLimits(
            iops=limit_of(machine.iops, machine.burst_iops, 0, burst_s),
            throughput=limit_of(machine.throughput, machine.burst_throughput, 0, burst_s),
        )

    @property
    def notices(self) -> list[str]:
        """What a reader of the figures should know: what is assumed, and how long bursts last."""
        found = [
            f"{dotted} of {self.model.name}, {show_value(PARAMETERS[dotted].kind, parameter.value)}, is assumed:"
            f" {parameter.source}"
            for dotted in ("latency.read", "latency.write")
            if (parameter := self.parameters[dotted]).from_ == "assumed"
        ]
        if len(found) == 2 and self.parameters["latency.read"] == self.parameters["latency.write"]:
            found = [found[0].replace("latency.read", "latency")]
        share = self.option("credits", 1.0)
        for what, limit in _named(self.limits[0]):
            if limit.burst_per_s > limit.per_s:
                found.append(_bursting("each volume", what, limit, share, "credits=0"))
        if self.value("iops.asked_most") and not self.value("iops.base") and "iops" not in self.options:
            found.append(f"iops is not given, and the provider wants it: the fewest, {self.limits[0].iops.per_s:,}")
        return [*found, *self._notices_of_machine()]

    def _notices_of_machine(self) -> list[str]:
        """Where the machine's limit is below that of its volumes."""
        found = []
        share = self.option("instance_credits", 1.0)
        for number, (what, limit) in enumerate(_named(self.machine_limits) if self.machine_limits else ()):
            of_volumes = sum(_named(limits)[number][1].burst_per_s for limits in self.limits)
            if of_volumes <= limit.per_s:
                continue
            assert self.machine is not None
            if limit.burst_per_s > limit.per_s:
                found.append(_bursting(self.machine.name, what, limit, share, "instance_credits=0"))
            else:
                found.append(f"{self.machine.name} allows {_rate(what, limit.per_s)}, less than its volumes")
        return found

    # Checks

    def _check_values(self) -> None:
        """Nothing contradicts here that `limits` does not refuse."""

    def _check_structure(self) -> None:
        if "size" in self.options and "volume_size" in self.options:
            raise UsageError("model: size and volume_size are the same; give one of them")
        for key in READ_LATE:
            self.option(key, None)
        if self.option("from_snapshot", False) and not self.value("snapshot.block"):
            raise UsageError(f"model: option 'from_snapshot': how {self.model.name} loads a snapshot is not known")
        if "background" in self.options:
            self._check_background(self.option("background", 0.0))
        if "instance_credits" in self.options and self.machine is None:
            raise UsageError("model: option 'instance_credits': there is no instance; give instance=NAME too")

    def _check_background(self, rate: float) -> None:
        least, most = self.value("snapshot.asked_least"), self.value("snapshot.asked_most")
        if not self.option("from_snapshot", False):
            raise UsageError("model: option 'background': there is no snapshot to load; give from_snapshot=yes too")
        if not least <= rate <= most:
            kind = PARAMETERS["snapshot.rate"].kind
            accepted = f"{show_value(kind, least)} to {show_value(kind, most)}" if most else "none can be asked for"
            raise UsageError(
                f"model: option 'background': {self.options['background']} is not offered; accepted: {accepted}"
            )

    def _check_room(self) -> None:
        # Made here, so that what the provider does not offer is refused.
        assert self.limits
        assert self.machine_limits or self.machine is None

    # Output

    def _limit(self, limit: BurstLimit, share_option: str) -> LimitPlan:
        return {
            "per_s": float(limit.per_s),
            "burst_per_s": float(limit.burst_per_s),
            "credits": limit.credits,
            "start_share": float(self.option(share_option, 1.0)),
            "window_ns": self.value("accounting.window"),
        }

    @cached_property
    def _snapshot_plan(self) -> SnapshotPlan | None:
        if not self.option("from_snapshot", False):
            return None
        return {
            "block_bytes": self.value("snapshot.block"),
            "latency_ns": self.value("snapshot.latency"),
            "bytes_per_s": float(self.value("snapshot.rate")),
            "background_bytes_per_s": float(self.option("background", 0.0)),
        }

    def _volume_plan(self, name: str, size_bytes: int, limits: VolumeLimits) -> CloudVolumePlan:
        value = self.value
        return {
            "name": name,
            "bytes": size_bytes,
            "operations": self._limit(limits.iops, "credits"),
            "transfer": self._limit(limits.throughput, "credits"),
            "accounting": {
                "unit_bytes": value("accounting.unit"),
                "merges": value("accounting.merges"),
                "whole_units": value("accounting.whole_units"),
            },
            "latency": {
                "read_ns": value("latency.read"),
                "write_ns": value("latency.write"),
                "flush_ns": value("latency.flush"),
                "varying_share": float(value("latency.varying")),
            },
            "snapshot": self._snapshot_plan,
        }

    def facts(self) -> ModelledArray:
        """The manifest's `target.array`, with the limits in force."""
        owners = [("each volume", self.limits[0], "credits")]
        if self.machine is not None and self.machine_limits is not None:
            owners.append((self.machine.name, self.machine_limits, "instance_credits"))
        limits: list[CloudLimit] = [
            {"of": owner, "what": what, "per_s": limit.per_s, "burst_per_s": limit.burst_per_s,
             "burst_s": limit.burst_s(self.option(share, 1.0))}
            for owner, both, share in owners
            for what, limit in _named(both)
        ]  # fmt: skip
        facts = super().facts()
        return {**facts, "pools": [], "region": self.offer.region, "as_of": self.offer.as_of, "limits": limits}

    def plan(self) -> ArrayPlan:
        """The `CloudPlan` of crates/array-model/src/cloud/plan.rs as JSON data."""
        machine: MachinePlan | None = None
        if (limits := self.machine_limits) is not None:
            machine = {
                "operations": self._limit(limits.iops, "instance_credits"),
                "transfer": self._limit(limits.throughput, "instance_credits"),
            }
        volumes = [
            self._volume_plan(name, size, limits)
            for (name, size), limits in zip(self.volumes, self.limits, strict=True)
        ]
        return {"cloud": {"seed": self.option("seed", 1), "volumes": volumes, "machine": machine}}


def _named(limits: VolumeLimits) -> tuple[tuple[str, BurstLimit], tuple[str, BurstLimit]]:
    return ("IOPS", limits.iops), ("throughput", limits.throughput)


def _bursting(who: str, what: str, limit: BurstLimit, share: float, option: str) -> str:
    """How long a burst lasts, and what is left of it then."""
    credits = "full credits" if share == 1.0 else f"{100 * share:.4g} % of its credits"
    return (
        f"{who} bursts to {_rate(what, limit.burst_per_s)} for {limit.burst_s(share):,.0f} s with {credits}, then has"
        f" {_rate(what, limit.per_s)}; every point begins with these credits, and {option} shows what lasts"
    )


def _rate(what: str, per_s: int) -> str:
    return f"{per_s:,} IOPS" if what == "IOPS" else f"{size_text(per_s)}/s"
