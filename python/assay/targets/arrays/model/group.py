"""A group of members as it is asked for: a model file, options, volumes; and the plan of it for the compiled model.

Arrays of other structures build on it: what they have in common is that of a group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from assay.base.errors import UsageError
from assay.base.units import format_bytes
from assay.record.shapes.manifest import ModelledArray
from assay.targets.arrays.model.additions import SPACE_OPTIONS, add_others, add_software, add_space
from assay.targets.arrays.model.capacity import usable_bytes
from assay.targets.arrays.model.changes import (
    drive_parameters,
    is_of_drive,
    parameter_of_number,
    parameter_of_option,
    parameter_of_text,
    written_value,
)
from assay.targets.arrays.model.model_file import ModelFile, ModelParameter
from assay.targets.arrays.model.options import (
    OPTIONS,
    PORTS_MAX,
    REPLACED_BY,
    VOLUMES_MAX,
    model_target_text,
    read_option,
    refuse_unknown_options,
    spelt_out,
    with_all_disks,
)
from assay.targets.arrays.model.parameters import (
    PARAMETERS,
    POLICY_PARAMETERS,
    PROTOCOL_PARAMETERS,
    PROTOCOLS,
    applies,
    known_of,
    whole_name,
)
from assay.targets.arrays.model.plan import (
    ArrayPlan,
    FaultPlan,
    HostsPlan,
    MemberPlan,
    check_consistency,
    member_plan,
    port_bytes_per_s,
)

VOLUME_BYTES = 100_000_000_000
"""Size of a volume of the published studies."""
VOLUMES_USUAL = 12
FILL_USUAL = 0.85
"""The fill above which the method adds an array."""
PATH_TIMEOUT_NS = 15_000_000_000
"""Time-out of a link of the Windows initiator (LinkDownTime; docs/models.md, source 8)."""
FAILOVER_NS = 10_000_000_000
"""Until another controller has the ports of a lost one: assumed (docs/models.md, source 9, saw more)."""
DISKS_MAX = 4096
"""Active disks of all members, as crates/array-model/src/plan.rs has it."""
POOLED = ("raid", "members", "volumes", "volume_size")
"""Options of which pools have their own."""
FILL_LABEL_OFF = 0.10
"""A notice names a label of the fill that is off by more than this."""


@dataclass(frozen=True)
class Configuration:
    """One array, or a group of equal ones, with its volumes. Everything is checked when it is made.

    Attributes
    ----------
    options
        Options as written.
    values
        Parameters set to numbers in base units, which win over file and options.
    """

    model: ModelFile
    options: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)

    known_options: ClassVar[Mapping[str, str]] = OPTIONS
    """Options of the structure, and what they mean."""
    replaced_by: ClassVar[Mapping[str, str]] = REPLACED_BY
    """Options that are another way to write a parameter, and the parameter of each."""

    def __post_init__(self) -> None:
        refuse_unknown_options(self.options, self.known_options)
        self._check_values()
        self._check_structure()
        self._check_room()

    # Pools

    @cached_property
    def pools(self) -> tuple[Configuration, ...]:
        """Members with a policy of their own and the volumes on them, in the order of the roles; else itself alone."""
        policies, counts = self.option("raid", {}), self.option("members", {})
        volumes = self.option("volumes", {})
        pooled = [(key, roles) for key, roles in (("raid", policies), ("members", counts)) if set(roles) - {""}]
        if not pooled:
            return (self,)
        for key, roles in pooled:
            if set(roles) != set(volumes):
                raise UsageError(
                    f"model: {key}={self.options[key]}: gives each role members of its own, so"
                    f" volumes={_example(roles)} must name the same roles"
                )
        if counts and {*counts} == {""} and policies:
            raise UsageError(
                f"model: members={self.options['members']}: a member has one RAID policy; say how many of each role:"
                f" members={_example(policies)}"
            )
        sizes = self._sizes(volumes) if "volume_size" in self.options else {}
        if "fill" in self.options:
            raise UsageError("model: fill: roles have members of their own; give volumes and volume_size instead")
        found = []
        for number, role in enumerate(volumes):
            own = {key: text for key, text in self.options.items() if key not in POOLED}
            # The whole group loses one disk: a disk of its first pool.
            own = own if number == 0 else with_all_disks(own)
            own["volumes"] = f"{role}:{volumes[role]}"
            for key, values in (("raid", policies), ("members", counts), ("volume_size", sizes)):
                value = values.get(role, values.get(""))
                if value is not None:
                    own[key] = f"{value} B" if key == "volume_size" else str(value)
            found.append(replace(self, options=own))
        return tuple(found)

    @property
    def is_pooled(self) -> bool:
        """Whether roles have members of their own."""
        return self.pools[0] is not self

    # What is asked

    def with_options(self, options: Mapping[str, str | None]) -> Configuration:
        """The same array with other options; None takes one away."""
        merged = {**self.options, **options}
        return replace(self, options={key: text for key, text in merged.items() if text is not None})

    def with_values(self, values: Mapping[str, float]) -> Configuration:
        """The same array with parameters set, in base units.

        Raises
        ------
        UsageError
            A parameter is unknown, no number, or out of range.
        """
        return replace(self, values={**self.values, **values})

    def option(self, key: str, default: Any) -> Any:
        """Value of an option, or `default`."""
        return read_option(key, self.options[key]) if key in self.options else default

    @property
    def raid(self) -> str:
        """The RAID policy as the array's maker names it; those of pools in turn, joined by `+`."""
        return "+".join(self.policies)

    @property
    def policies(self) -> list[str]:
        """Every RAID policy in use, once."""
        return list(dict.fromkeys(pool.policy for pool in self.pools))

    @cached_property
    def policy(self) -> str:
        """The RAID policy of the first pool: parameters that depend on the policy are those of it."""
        if self.is_pooled:
            return self.pools[0].policy
        policy: str = self.option("raid", {"": self.model.default_raid.lower()})[""]
        if policy not in self.model.policies:
            offered = ", ".join(self.model.policies)
            if self.model.parameters["disk.capacity"].source.startswith("unknown"):
                raise UsageError(
                    f"model: option 'raid': {self.model.name} is a black box, whose RAID is not known; calibrate it"
                    " with --structure NAME, and then ask"
                )
            raise UsageError(f"model: option 'raid': {self.model.name} does not offer RAID {policy}; it has {offered}")
        return policy

    @cached_property
    def protocol(self) -> str:
        """The protocol between hosts and members."""
        usual = self.model.parameters["links.protocol"].value
        protocol = str(self.options.get("protocol", usual)).lower()
        offered = [usual, *(name for name in PROTOCOLS if f"links.under.{name}.payload" in self.model.parameters)]
        if protocol not in offered:
            raise UsageError(
                f"model: option 'protocol': {self.model.name} does not offer {protocol!r}; it has"
                f" {', '.join(dict.fromkeys(offered))}"
            )
        return protocol

    @property
    def members(self) -> int:
        """Members of the group."""
        if self.is_pooled:
            return sum(pool.members for pool in self.pools)
        return int(self.option("members", {"": 1})[""])

    @property
    def host_ports(self) -> int:
        """Ports of each host."""
        return int(self.option("host_ports", self.option("paths", self.value("links.paths"))))

    @property
    def controllers(self) -> tuple[int, int]:
        """Controllers of a member, and the ports of each."""
        ports = self.option("controller_ports", self.option("paths", self.value("links.paths")))
        return int(self.option("controllers", self.value("controller.count") or 1)), int(ports)

    @property
    def starts_warm(self) -> bool:
        """Whether caches begin as the workload would leave them."""
        return bool(self.option("start", "warm") == "warm")

    @property
    def label(self) -> str:
        """The array in a few words: name, RAID policy, members, state."""
        members = "1 member" if self.members == 1 else f"{self.members} members"
        title = f"{self.model.name} of {self.options['drive']}" if "drive" in self.options else self.model.title
        words = [title.partition(",")[0], self._policies_text, members, self.options.get("state", "")]
        return ", ".join(word for word in words if word not in ("", "healthy"))

    @property
    def _policies_text(self) -> str:
        if not self.is_pooled:
            return f"RAID {self.raid.upper()}"
        return ", ".join(f"{pool.roles[0]} on RAID {pool.raid.upper()}" for pool in self.pools)

    @property
    def target_text(self) -> str:
        """The target that asks for this; set values are written as options."""
        options = dict(self.options)
        for dotted, value in self.values.items():
            options[dotted] = written_value(dotted, value)
        return model_target_text(self.model.origin, options)

    # Parameters

    @cached_property
    def parameters(self) -> dict[str, ModelParameter]:
        """Every parameter in force, by dotted name: set values, options, policy and protocol, file."""
        return {dotted: found for dotted in PARAMETERS if self._has(dotted) and (found := self._in_force(dotted))}

    def value(self, dotted: str) -> Any:
        """Value of a parameter in force, in base units."""
        known = self.parameters.get(dotted)
        return PARAMETERS[dotted].absent if known is None else known.value

    def _has(self, dotted: str) -> bool:
        model = self.model
        return applies(dotted, model.structure, model.disk_kind, model.layout_kind)

    def _in_force(self, dotted: str) -> ModelParameter | None:
        replaced = next((key for key, whole in POLICY_PARAMETERS.items() if whole == dotted), None)
        candidates = [dotted] if replaced is None else [f"raid.policy.{self.policy}.{replaced}", dotted]
        if dotted in PROTOCOL_PARAMETERS.values():
            candidates.insert(0, f"links.under.{self.protocol}.{dotted.partition('.')[2]}")
        changed = self._changed
        files = () if is_of_drive(dotted, self.options) else (self.model.parameters,)
        found = (known[name] for name in candidates for known in (changed, *files) if name in known)
        return changed.get(dotted) or next(found, None)  # None: optional, and not given

    @cached_property
    def _changed(self) -> dict[str, ModelParameter]:
        """Parameters that options or values replace, by the dotted name they were given by."""
        changed = drive_parameters(self.model, self.options["drive"]) if "drive" in self.options else {}
        for key, text in spelt_out(self.options):
            if dotted := self.replaced_by.get(key):
                self._refuse_absent(dotted, f"option {key!r}")
                changed[dotted] = parameter_of_option(dotted, key, text)
            elif "." in key:
                self._refuse_absent(key, f"parameter {key!r}")
                changed[key] = parameter_of_text(key, text)
        for dotted, number in self.values.items():
            self._refuse_absent(dotted, f"parameter {dotted!r}")
            changed[dotted] = parameter_of_number(dotted, number)
        return changed

    def _refuse_absent(self, dotted: str, what: str) -> None:
        """Refuse parameters that this array's disks or layout do not have."""
        try:
            known = known_of(dotted)
        except KeyError:
            raise UsageError(f"model: unknown {what}; `assay model show {self.model.origin}` lists them") from None
        if not self._has(whole_name(dotted)):
            only = " or ".join(known.only) or "arrays of another structure"
            raise UsageError(f"model: {what} is for {only} only, which {self.model.name} is not")

    # Volumes

    @cached_property
    def usable_bytes(self) -> int:
        """Bytes all members can hold, what is kept free included."""
        if self.is_pooled:
            return sum(pool.usable_bytes for pool in self.pools)
        member, others = self.member_plan, self.member_plan.get("others")
        disk = member["disk"].copy()
        smallest = min(disk["capacity_bytes"], others["disk"]["capacity_bytes"] if others else disk["capacity_bytes"])
        disk["capacity_bytes"] = int(smallest * self.value("disk.usable") * self.value("layout.reduction"))
        page_bytes: int = self.value("group.page")
        return usable_bytes({**member, "disk": disk}) // page_bytes * page_bytes * self.members

    @property
    def raw_bytes(self) -> int:
        """Capacity of all disks of all members as it is sold, spares included."""
        return int(self.value("disks.count") * self.value("disk.capacity")) * self.members

    @property
    def kept_bytes(self) -> int:
        """Bytes of `usable_bytes` that volumes may not take."""
        if self.is_pooled:
            return sum(pool.kept_bytes for pool in self.pools)
        share_bytes = int(self.usable_bytes // self.members * self.value("group.free_share"))
        return min(share_bytes, int(self.value("group.free"))) * self.members

    @property
    def used_bytes(self) -> int:
        """Bytes of all volumes together."""
        return sum(size for _, size in self.volumes)

    @property
    def fill(self) -> float:
        """Share of the usable capacity that volumes take."""
        return self.used_bytes / self.usable_bytes

    @cached_property
    def volumes(self) -> list[tuple[str, int]]:
        """Names and sizes in bytes."""
        found = []
        for role, (count, size_bytes) in self._counts_and_sizes.items():
            digits = max(len(str(count)), 2)
            found += [(f"{role or 'v'}{number:0{digits}d}", size_bytes) for number in range(1, count + 1)]
        return found

    @property
    def roles(self) -> list[str | None]:
        """Role of each volume; None where the target says nothing of roles."""
        return [role or None for role, (count, _) in self._counts_and_sizes.items() for _ in range(count)]

    @cached_property
    def _counts_and_sizes(self) -> dict[str, tuple[int, int]]:
        """Number and size of the volumes of each role; of all under the empty name where there are no roles."""
        counts: dict[str, int] = self.option("volumes", None) or {}
        sizes = self._sizes(counts)
        if sum(counts.values()) > VOLUMES_MAX:
            raise UsageError(f"model: volumes: {sum(counts.values()):,} in all, and there may be {VOLUMES_MAX:,}")
        if counts:
            return {role: (count, sizes.get(role, sizes.get("", VOLUME_BYTES))) for role, count in counts.items()}
        return {"": self._count_and_size(sizes[""])}

    def _sizes(self, roles: Collection[str]) -> dict[str, int]:
        """Sizes of volumes by role, none of a role that has no volumes."""
        sizes: dict[str, int] = self.option("volume_size", {"": VOLUME_BYTES})
        if strange := set(sizes) - set(roles) - {""}:
            raise UsageError(
                f"model: volume_size: there are no volumes of role {min(strange)}; give volumes by role too"
            )
        return sizes

    def _count_and_size(self, size_bytes: int) -> tuple[int, int]:
        """Volumes by what they fill."""
        if "fill" in self.options:
            wanted_bytes = self.option("fill", 0.0) * self.usable_bytes
            count = max(round(wanted_bytes / size_bytes), 1)
            if count > VOLUMES_MAX:
                raise UsageError(
                    f"model: fill={self.options['fill']} makes {count:,} volumes of {size_text(size_bytes)}, and there"
                    f" may be {VOLUMES_MAX:,}; give a larger volume_size, or volumes"
                )
            # The bytes are what is asked for; a size that is given stays, and the count comes as near as it can.
            return count, size_bytes if "volume_size" in self.options else int(wanted_bytes / count) // 512 * 512
        fitting = int(self.usable_bytes * FILL_USUAL)
        if fitting < size_bytes and "volume_size" not in self.options:
            return 1, fitting // 512 * 512
        return max(min(VOLUMES_USUAL, fitting // size_bytes), 1), size_bytes

    @property
    def _volumes_text(self) -> str:
        return ", ".join(
            f"{count} {role} volumes of {size_text(size_bytes)}".replace("  ", " ")
            for role, (count, size_bytes) in self._counts_and_sizes.items()
        )

    @property
    def notices(self) -> list[str]:
        """What a reader of the figures should know of the options."""
        if "fill" not in self.options:
            return []
        label = self.option("fill", 0.0)
        if abs(label - self.fill) <= FILL_LABEL_OFF:
            return []
        return [
            f"fill={self.options['fill']} is a label only: {self._volumes_text} are"
            f" {self.fill:.0%} of the {size_text(self.usable_bytes)} that are usable; the volumes decide"
        ]

    # Checks

    def _check_values(self) -> None:
        for pool in self.pools:
            check_consistency(pool.value)

    def _check_structure(self) -> None:
        # Some are read late: each is refused here.
        for key in self.options:
            self.option(key, None)
        most = self.value("group.members")
        if self.members > most:
            raise UsageError(f"model: members={self.members} are more than the {most} a group of {self.model.name} has")
        disks = self.members * (self.value("disks.count") - self.value("disks.spares"))
        if disks > DISKS_MAX:
            raise UsageError(f"model: {self.members} members have {disks:,} active disks, and a model {DISKS_MAX:,}")
        most, (_, ports) = self.value("links.ports"), self.controllers
        if ports > most:
            given = "controller_ports" if "controller_ports" in self.options else "paths"
            raise UsageError(f"model: {given}={ports} are more than the {most} ports of {self.model.name}")
        self._check_links()
        self._check_space()
        if self.policy == "0" and read_option("state", self.options.get("state", "healthy")).disks != "healthy":
            raise UsageError(f"model: state={self.options['state']}: RAID 0 does not outlive the loss of a disk")

    def _check_space(self) -> None:
        for key in SPACE_OPTIONS:
            if key in self.options and self.model.layout_kind != "write-anywhere":
                raise UsageError(f"model: option {key!r} is for write-anywhere only, which {self.model.name} is not")
        if "snapshot_change" in self.options and not self.option("snapshots", 0):
            raise UsageError("model: snapshot_change: there are no snapshots; give snapshots=N too")

    def _check_links(self) -> None:
        controllers, ports = self.controllers
        if controllers * ports > PORTS_MAX:
            raise UsageError(f"model: {controllers * ports} ports of a member; there may be {PORTS_MAX}")
        fault = self.option("fault", None)
        if fault is None and (given := {"path_timeout", "failover"} & self.options.keys()):
            raise UsageError(
                f"model: {min(given)}: nothing fails; give fault=host-port@10s or fault=controller@10s too"
            )
        if fault is not None and fault[0] == "host-port" and self.host_ports == 1:
            raise UsageError("model: fault: a host has one port here, and none is left; give host_ports=2 or more")
        if self.option("packet_loss", 0.0) and self.protocol != "iscsi":
            raise UsageError(
                f"model: packet_loss: {self.protocol} does not send packets again; only iscsi does, by TCP"
            )

    def _check_room(self) -> None:
        if self.is_pooled:
            # Each pool has looked at its own room.
            return
        page_bytes = self.value("group.page")
        if not self.usable_bytes:
            raise UsageError(f"model: {self.label} has no room for one page of {size_text(page_bytes)}")
        taken = sum(-(-size // page_bytes) * page_bytes for _, size in self.volumes)
        free_bytes = self.usable_bytes - self.kept_bytes
        if taken > free_bytes:
            raise UsageError(
                f"model: {self._volumes_text} are {size_text(self.used_bytes)}, and {self.label}"
                f" may hold {size_text(free_bytes)} ({size_text(self.kept_bytes)} of {size_text(self.usable_bytes)}"
                " stay free); give fewer or smaller volumes, or more members"
            )

    # Output

    @cached_property
    def member_plan(self) -> MemberPlan:
        """The `MemberPlan` (crates/array-model/src/plan.rs) of each member of the first pool."""
        state = read_option("state", self.options.get("state", "healthy"))
        plan = member_plan(
            self.value,
            policy=self.policy,
            disk_kind=self.model.disk_kind,
            layout_kind=self.model.layout_kind,
            state=state,
            starts_warm=self.starts_warm,
            ports=self.controllers,
        )
        add_others(plan, self.value, self.option("mixed", None), self.model.disk_kind, state.flash)
        add_software(plan, self.value, self.policy)
        if self.options.keys() & {*SPACE_OPTIONS}:
            add_space(plan, self.option)
        return plan

    @property
    def read_realloc(self) -> bool:
        """Whether blocks that a sequential read found scattered are written again in one piece."""
        return bool(self.member_plan["layout"].get("read_realloc", False))

    @cached_property
    def _hosts_plan(self) -> HostsPlan:
        rate = self.option("host_port_rate", self.value("links.port_rate"))
        return {
            "count": self.option("hosts", 1),
            "ports": self.host_ports,
            "port_bytes_per_s": port_bytes_per_s(self.value, rate),
            "first_port_share": self.option("slow_path", 1.0),
            "first_port_loss": self.option("packet_loss", 0.0),
            "commands_most": self.option("initiator_limit", 0),
            "path_timeout_ns": self.option("path_timeout", PATH_TIMEOUT_NS),
        }

    @cached_property
    def _fault_plan(self) -> FaultPlan | None:
        fault = self.option("fault", None)
        if fault is None:
            return None
        usual_ns = self.value("controller.failover") or FAILOVER_NS
        return {"lost": fault[0], "at_ns": fault[1], "failover_ns": self.option("failover", usual_ns)}

    def plan(self) -> ArrayPlan:
        """The `ArrayPlan` of crates/array-model/src/plan.rs as JSON data."""
        return {
            "seed": self.option("seed", 1),
            "page_bytes": self.value("group.page"),
            "pools": [
                {"members": pool.members, "member": pool.member_plan,
                 "volumes": [{"name": name, "bytes": size_bytes} for name, size_bytes in pool.volumes]}
                for pool in self.pools
            ],
            "links": {
                "hosts": self._hosts_plan,
                "policy": self.value("links.path_policy"),
                "port_bytes_per_s": port_bytes_per_s(self.value, self.value("links.port_rate")),
                "overhead_bytes": self.value("links.overhead"),
                "latency_ns": self.value("links.latency"),
                "max_transfer_bytes": self.value("links.max_transfer"),
                "fault": self._fault_plan,
            },
        }  # fmt: skip

    def facts(self) -> ModelledArray:
        """The manifest's `target.array`: enough to trace every figure."""
        return {
            "name": self.model.name,
            "title": self.model.title,
            "family": self.model.family,
            "target": self.target_text,
            "raid": self.raid,
            "members": self.members,
            "options": dict(self.options),
            "parameters": {dotted: parameter.facts() for dotted, parameter in self.parameters.items()},
            "calibration": self.model.calibration,
            "raw_bytes": self.raw_bytes, "usable_bytes": self.usable_bytes,
            "used_bytes": self.used_bytes,
            "fill": self.fill,
            "pools": [
                {"role": pool.roles[0] or "", "raid": pool.raid, "members": pool.members,
                 "usable_bytes": pool.usable_bytes, "used_bytes": pool.used_bytes}
                for pool in self.pools
            ],
        }  # fmt: skip


def _example(roles: Iterable[str]) -> str:
    return ",".join(f"{role}:1" for role in roles if role)


def size_text(size_bytes: float) -> str:
    """Bytes in decimal units, as disks are sold."""
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.4g} {unit}"
    return format_bytes(size_bytes)
