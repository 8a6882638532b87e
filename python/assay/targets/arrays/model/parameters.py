"""Every parameter of a model file: its kind, its range, and which arrays have it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from assay.targets.arrays.model.kinds import BYTES, COUNT, FLAG, RATE, RATIO, SHARE, TIME, WORD, Kind, show_value

STRUCTURES = ("group", "host-flash", "cloud")
"""Members with RAID behind controllers, hosts with flash over data nodes, a cloud's volumes: how a model is built."""
CLASSES = ("study", "drive", "array", "cloud")
"""What a model is of: an array of the published studies, drives in a server, an array of today, a cloud's volume."""
KINDS_OF_DISK = ("mechanical", "solid-state", "station")
"""Platters; flash; servers of which nothing is known but the time of an I/O."""
KINDS_OF_LAYOUT = ("in-place", "write-anywhere")
POLICIES = ("0", "1", "10", "5", "50", "6", "60", "dp")
PARTIAL_WRITES = ("read-modify", "reconstruct", "cheapest")
PATH_POLICIES = ("round-robin", "least-queue-depth")
READ_PRIORITIES = ("suspend", "next", "in-turn")
PROTOCOLS = ("iscsi", "fcoe", "fc", "sas", "nvme", "nvme-tcp")
RAID_LOGS = ("none", "ppl", "write-through", "write-back")
ORIGINS = {"data sheet": 0.02, "published": 0.02, "fitted": 0.15, "assumed": 0.30}
"""Where a value may come from, and how far the true one may then be unless the file says so, as a share of it; 0 for
`STRUCTURE`."""

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True, kw_only=True)
class Known:
    """A parameter a model file has.

    Attributes
    ----------
    low, high
        Least and most in base units, both allowed.
    only
        Kinds of disk or layout that have it; none: all.
    choices
        Names that are accepted.
    optional
        Whether a file may leave it out: `absent` holds then.
    meaning
        For `assay model show`.
    """

    kind: Kind
    meaning: str
    low: float = 0.0
    high: float = 0.0
    only: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    optional: bool = False

    @property
    def absent(self) -> Any:
        """Value of a parameter that a file leaves out: no, the first name, as large as before, or 0."""
        if self.kind is WORD:
            return self.choices[0]
        return False if self.kind is FLAG else 1.0 if self.kind is RATIO else 0

    def check(self, value: Any) -> None:
        """Refuse a value out of range.

        Raises
        ------
        ValueError
            It is.
        """
        if self.kind in (WORD, FLAG):
            return
        if not self.low <= value <= self.high:
            low, high = show_value(self.kind, self.low), show_value(self.kind, self.high)
            raise ValueError(f"{show_value(self.kind, value)} is outside {low} to {high}")


def _time(meaning: str, low: float, high: float, *only: str) -> Known:
    return Known(kind=TIME, meaning=meaning, low=low, high=high, only=only)


def _bytes(meaning: str, low: float, high: float, *only: str) -> Known:
    return Known(kind=BYTES, meaning=meaning, low=low, high=high, only=only)


def _rate(meaning: str, *only: str, low: float = 1e6, high: float = 1e13) -> Known:
    return Known(kind=RATE, meaning=meaning, low=low, high=high, only=only)


def _share(meaning: str, low: float = 0.0, high: float = 1.0, *only: str) -> Known:
    return Known(kind=SHARE, meaning=meaning, low=low, high=high, only=only)


def _count(meaning: str, low: float, high: float, *only: str) -> Known:
    return Known(kind=COUNT, meaning=meaning, low=low, high=high, only=only)


def _ratio(meaning: str) -> Known:
    return Known(kind=RATIO, meaning=meaning, low=1.0, high=100.0)


def _word(meaning: str, choices: tuple[str, ...], *only: str) -> Known:
    return Known(kind=WORD, meaning=meaning, choices=choices, only=only)


def _flag(meaning: str, *only: str) -> Known:
    return Known(kind=FLAG, meaning=meaning, only=only)


def _none(known: Known) -> Known:
    return replace(known, optional=True)


def _stated(meaning: str, high: float = 1e12) -> Known:
    """A number that a provider states, or none."""
    return Known(kind=COUNT, meaning=meaning, high=high, optional=True)


def _stated_rate(meaning: str) -> Known:
    return Known(kind=RATE, meaning=meaning, high=1e13, optional=True)


CLOUD_PARAMETERS: dict[str, Known] = {
    "volume.least": _bytes("smallest volume", MIB, 1 << 50),
    "volume.most": _bytes("largest volume", MIB, 1 << 50),
    "volume.burst_time": _none(_time("how long full credits of a tier last at its burst", 0, 1e14)),
    "iops.base": _stated("IOPS at any size"),
    "iops.per_gib": _stated("IOPS that each GiB adds"),
    "iops.per_mib": _stated("IOPS that come with each MiB/s of throughput"),
    "iops.least": _stated("no volume has fewer"),
    "iops.most": _stated("no volume has more"),
    "iops.burst": _stated("IOPS while there are credits"),
    "iops.credits": _stated("I/Os of a full bucket"),
    "iops.asked_least": _stated("fewest IOPS that can be asked for"),
    "iops.asked_least_per_gib": _stated("fewest for each GiB"),
    "iops.asked_most_per_gib": _stated("most for each GiB, where that is more than asked_least"),
    "iops.asked_most": _stated("most IOPS that can be asked for; 0: none can"),
    "throughput.base": _stated_rate("throughput at any size"),
    "throughput.per_gib": _stated_rate("throughput that each GiB adds"),
    "throughput.per_iops": _stated_rate("throughput that comes with each IOPS"),
    "throughput.most": _stated_rate("no volume has more, its burst included"),
    "throughput.more_per_iops": _stated_rate("throughput of each IOPS where that is more than most"),
    "throughput.burst_per_gib": _stated_rate("throughput of each GiB while there are credits"),
    "throughput.credits_of_size": _none(_share("bytes of a full bucket, as a share of the volume")),
    "throughput.asked_least": _stated_rate("least throughput that can be asked for"),
    "throughput.asked_least_per_gib": _stated_rate("least for each GiB"),
    "throughput.asked_most_per_gib": _stated_rate("most for each GiB"),
    "throughput.asked_most_per_iops": _stated_rate("most for each IOPS"),
    "throughput.asked_most": _stated_rate("most throughput that can be asked for; 0: none can"),
    "accounting.unit": _none(_bytes("largest I/O that counts as one; 0: of any size", 0, GIB)),
    "accounting.merges": _none(_flag("I/Os outstanding that follow each other count together, up to a unit")),
    "accounting.whole_units": _none(_flag("bytes count in whole units")),
    "accounting.window": _time("what a limit lets through in this time may come at once", 0, 1e9),
    "latency.read": _time("mean of a read that no limit holds back", 1000, 1e9),
    "latency.write": _time("mean of a write", 1000, 1e9),
    "latency.flush": _time("of a flush", 0, 1e9),
    "latency.varying": _share("share of the mean that varies, exponentially"),
    "snapshot.block": _none(_bytes("what the first touch loads; 0: volumes are not made of snapshots here", 0, GIB)),
    "snapshot.latency": _none(_time("of that beyond the volume's latency", 0, 1e9)),
    "snapshot.rate": _stated_rate("most that touching loads"),
    "snapshot.asked_least": _stated_rate("least rate of loading in the background that can be asked for"),
    "snapshot.asked_most": _stated_rate("most; 0: none can"),
}
"""What a provider states of a volume; what it does not state is 0."""

PARAMETERS: dict[str, Known] = {
    "disks.count": _count("disks of a member", 1, 1024),
    "disks.spares": _count("those of them that are spare", 0, 1023),
    "disk.capacity": _bytes("capacity of a disk", MIB, 1 << 50),
    "disk.usable": _share("share of the disks' capacity left for volumes", 0.01),
    "disk.revolution": _time("one turn of the platters", 1e6, 1e8, "mechanical"),
    "disk.seek_track": _time("seek to the next cylinder", 0, 1e8, "mechanical"),
    "disk.seek_average": _time("seek, mean over random pairs of cylinders", 0, 1e8, "mechanical"),
    "disk.seek_full": _time("seek from the first cylinder to the last", 0, 1e9, "mechanical"),
    "disk.write_settle": _time("added to the seek before a write", 0, 1e8, "mechanical"),
    "disk.rate_outer": _rate("from the outermost tracks", "mechanical", high=1e10),
    "disk.rate_inner": _rate("from the innermost tracks", "mechanical", high=1e10),
    "disk.reorder_weight": _share("how much of the rotational wait the choice of the next command knows", 0, 1,
                                  "mechanical"),
    "disk.age_credit": _share("share of its waiting by which a command is preferred", 0, 1, "mechanical"),
    "disk.read_ahead": _bytes("read on ahead into the disk's own buffer", 0, GIB, "mechanical"),
    "disk.channels": _count("what works at the same time: buses to the dies, or servers of a station", 1, 4096,
                            "solid-state", "station"),
    "disk.channel_rate": _rate("of a bus to the dies", "solid-state"),
    "disk.dies": _count("dies of flash", 1, 4096, "solid-state"),
    "disk.planes": _count("planes of a die, each of which reads on its own", 1, 16, "solid-state"),
    "disk.page": _bytes("what one read of a plane takes", 512, 16 * MIB, "solid-state"),
    "disk.cell_bits": _count("bits of a cell: pages of a plane that are programmed at once", 1, 5, "solid-state"),
    "disk.pages_per_block": _count("pages of a plane that are erased together", 1, 1 << 20, "solid-state"),
    "disk.read_time": _time("reading a page of flash, or an I/O of a station", 100, 1e8, "solid-state", "station"),
    "disk.program_time": _time("programming all planes of a die at once, or a write of a station", 100, 1e9,
                               "solid-state", "station"),
    "disk.erase_time": _time("erasing a block", 100, 1e9, "solid-state"),
    "disk.unit": _bytes("what has a place of its own: of less, the rest is read and written again", 512, 16 * MIB,
                        "solid-state"),
    "disk.over_provisioning": _share("flash beyond the capacity, as a share of it", 0.01, 4.0, "solid-state"),
    "disk.metadata": _share("programmed for the drive's own tables, as a share of all else", 0, 1, "solid-state"),
    "disk.trimmed": _share("share of the capacity, at its end, that was trimmed", 0, 0.99, "solid-state"),
    "disk.command_time": _time("between the beginnings of two commands", 0, 1e9, "solid-state"),
    "disk.write_buffer": _bytes("writes acknowledged from the drive's memory", 0, 1 << 40, "solid-state", "station"),
    "disk.power_loss_protection": _flag("that memory survives a power cut, so that a flush costs nothing",
                                        "solid-state"),
    "disk.read_priority": _word("what a read does behind a program or erase", READ_PRIORITIES, "solid-state"),
    "disk.suspend_time": _time("until a program or erase gives way to a read", 0, 1e9, "solid-state"),
    "disk.suspend_late": _none(_time("longer than that, in the mean of the half that takes longer", 0, 1e9,
                                     "solid-state")),
    "disk.suspends": _count("times that one of them gives way", 0, 1 << 20, "solid-state"),
    "disk.resume_time": _time("that a program or erase loses each time it gives way", 0, 1e9, "solid-state"),
    "disk.programming_dies": _count("dies that power lets program at a time; 0: all", 0, 4096, "solid-state"),
    "disk.slc": _bytes("written to cells used with one bit first, always", 0, 1 << 50, "solid-state"),
    "disk.slc_empty": _bytes("more of it while the drive is fresh", 0, 1 << 50, "solid-state"),
    "disk.slc_program_time": _time("programming all planes of a die with one bit", 100, 1e9, "solid-state"),
    "disk.slc_fold_rate": _rate("moved from there when the drive is idle", "solid-state", low=0),
    "disk.heat": _bytes("moved beyond what is cooled until the drive throttles; 0: it never does", 0, 1 << 50,
                        "solid-state"),
    "disk.cooling_rate": _rate("what may be moved without end", "solid-state", low=0),
    "disk.throttled": _share("share of the interface's rate that a hot drive has", 0.01, 1, "solid-state"),
    "disk.endurance": _none(_bytes("what hosts may write to it in all, at random in blocks of 4 KiB", 0, 1e21,
                                   "solid-state")),
    "disk.command_overhead": _time("of every command beside positioning and transfer", 0, 1e8),
    "disk.interface_rate": _rate("between disk and controller"),
    "disk.queue_depth": _count("commands the disk chooses among", 1, 8192),
    "raid.set_disks": _count("disks of one set; 0: all active ones", 0, 1024),
    "raid.chunk": _bytes("chunk of a stripe on one disk", 4 * KIB, GIB),
    "raid.misalignment": _bytes("volumes begin at a random multiple of it; 0: aligned", 0, GIB),
    "raid.partial_write": _word("what a write of part of a stripe reads first", PARTIAL_WRITES),
    "raid.bitmap": _none(_bytes("of a disk that a bit of software RAID's bitmap stands for; 0: none", 0, GIB)),
    "raid.bitmap_clear": _none(_time("after the last write there until the bit is clear", 0, 1e12)),
    "raid.journal": _none(_word("log that closes the write hole of software RAID", RAID_LOGS)),
    "raid.stripe_cache": _none(_count("pages of a stripe that software RAID has at work; 0: any", 0, 1 << 20)),
    "controller.cpu_per_io": _time("processor time of each I/O", 0, 1e9),
    "controller.cpu_rate": _rate("bytes a core moves"),
    "controller.cores": _count("cores that serve I/Os", 1, 4096),
    "controller.count": _none(_count("controllers that serve at the same time, each with its cores and ports", 1, 64)),
    "controller.failover": _none(_time("from the loss of a controller until another has its ports", 0, 6e11)),
    "cache.size": _bytes("controller cache of a member", MIB, 1 << 42),
    "cache.write_back": _flag("writes are acknowledged from the cache"),
    "cache.keep_reads": _flag("what was read is kept"),
    "cache.dirty_low": _share("dirty share at which destaging begins"),
    "cache.dirty_high": _share("dirty share at which destaging is at its fastest"),
    "cache.dirty_most": _share("dirty share at which writes wait"),
    "cache.destage_depth": _count("most destage writes under way per disk", 1, 4096),
    "cache.read_preference": _time("by which a read is preferred to a destage", 0, 1e9),
    "cache.sequential_after": _count("reads in a row after which the controller reads ahead", 1, 1e6),
    "cache.prefetch": _bytes("how far it reads ahead", 0, GIB),
    "layout.block": _bytes("block that is placed anew", 512, MIB, "write-anywhere"),
    "layout.write_run": _count("blocks written in a row on a disk", 1, 1 << 20, "write-anywhere"),
    "layout.read_realloc": _flag("blocks found scattered by a sequential read are written in one piece",
                                 "write-anywhere"),
    "layout.reduction": replace(
        _ratio("how many times smaller data are on the disks than hosts wrote them"),
        only=("write-anywhere",), optional=True,
    ),
    "rebuild.depth": _count("chunks under way while rebuilding", 1, 4096),
    "rebuild.rate": _none(_rate("most that a rebuild writes onto the spare; 0: as fast as it goes", low=0)),
    "links.paths": _count("usual paths per host and member", 1, 64),
    "links.ports": _count("most paths", 1, 64),
    "links.port_rate": _rate("line rate of a port"),
    "links.protocol": _word("usual protocol", PROTOCOLS),
    "links.payload": _share("share of the line rate that payload reaches", 0.01),
    "links.overhead": _bytes("bytes of a command beside its payload", 0, 64 * KIB),
    "links.latency": _time("of an I/O beyond everything else modelled, both ways", 0, 1e10),
    "links.path_policy": _word("how a path is chosen", PATH_POLICIES),
    "links.max_transfer": _bytes("larger I/Os are split by the initiator; 0: none", 0, GIB),
    "group.page": _bytes("volumes are spread over members in pages of it", 64 * KIB, 1 << 40),
    "group.members": _count("most members", 1, 1024),
    "group.free_share": _share("share of a member kept free, at most"),
    "group.free": _bytes("bytes of a member kept free, at most", 0, 1e15),
    "host.most": _count("most hosts", 1, 128),
    "host.cores": _count("cores of a host", 1, 1024),
    "host.share_normal": _share("share of the host's cores that the array's software takes", 0.01),
    "host.share_fast": _share("the same with mode=fast", 0.01),
    "host.cpu_per_io": _time("processor time of each I/O on a host", 1, 1e9),
    "host.cpu_rate": _rate("bytes a core fingerprints and compresses"),
    "host.read_rate": _rate("most that a host reads, wherever it comes from"),
    "host.memory": _bytes("memory of a host that keeps blocks", 0, 1 << 42),
    "host.memory_time": _time("of a read that memory answers", 0, 1e8),
    "host.flash": _bytes("flash of a host", MIB, 1 << 50),
    "host.flash_channels": _count("units of a host's flash that work at the same time", 1, 4096),
    "host.flash_page": _bytes("what one read or program of flash moves", 512, MIB),
    "host.flash_read_time": _time("reading a page of flash", 100, 1e8),
    "host.flash_program_time": _time("programming a page", 100, 1e9),
    "host.ports": _count("ports of a host to the data nodes", 1, 64),
    "host.port_rate": _rate("line rate of one"),
    "node.most": _count("most data nodes", 1, 10),
    "node.cores": _count("cores of the active controller of a data node", 1, 4096),
    "node.cpu_per_io": _time("processor time of each I/O at a data node", 0, 1e9),
    "node.write_rate": _rate("most that a data node takes from hosts, before reduction"),
    "node.nvram": _bytes("mirrored memory from which writes are acknowledged", MIB, 1 << 42),
    "node.nvram_time": _time("until a write is in both copies", 0, 1e9),
    "node.ports": _count("ports of a data node", 1, 64),
    "node.port_rate": _rate("line rate of one of them"),
    "node.containers_under_way": _count("containers a node writes or cleans at once", 1, 1024),
    "node.read_preference": _time("by which a read that a host waits for is preferred on disks", 0, 1e9),
    "network.payload": _share("share of the line rate that payload reaches", 0.01),
    "network.latency": _time("of a message and its answer beyond what is modelled", 0, 1e9),
    "log.container": _bytes("data of a container", 64 * KIB, GIB),
    "log.data_pieces": _count("pieces of data of a container, each on a disk of its own", 1, 64),
    "log.parity_pieces": _count("pieces of parity beside them", 0, 16),
    "log.deduplication": _ratio("how many times smaller data are without duplicates"),
    "log.compression": _ratio("how many times smaller blocks are compressed"),
    "log.occupied": _share("share of the pool that is taken when reclamation begins", 0.05, 0.98),
    "log.snapshot_change": _share("share of the blocks that is written from one snapshot to the next", 0.0001),
    "log.snapshot_entry": _bytes("what a snapshot keeps of each block written since the one before", 0, 4 * KIB),
    **CLOUD_PARAMETERS,
}  # fmt: skip

STRUCTURE = (
    "disks.count", "disks.spares", "disk.capacity", "disk.dies", "disk.planes", "disk.page", "disk.cell_bits",
    "disk.pages_per_block", "disk.unit", "disk.trimmed", "disk.suspends", "disk.programming_dies", "disk.endurance",
    "raid.set_disks", "raid.bitmap", "raid.stripe_cache", "raid.chunk", "raid.misalignment", "layout.block",
    "controller.count",
    "layout.write_run", "links.paths", "links.ports", "links.max_transfer", "group.page", "group.members",
    "group.free_share", "group.free", "host.most", "host.cores", "host.ports", "node.most", "node.ports",
    "log.container", "log.data_pieces", "log.parity_pieces",
    *(name for name in CLOUD_PARAMETERS if not name.startswith(("latency.", "snapshot."))),
)  # fmt: skip
"""What an array is built of: known or guessed, but nothing that lies a few percent off."""

POLICY_PARAMETERS = {
    "spares": "disks.spares",
    **{name: f"raid.{name}" for name in ("set_disks", "chunk", "misalignment", "partial_write", "bitmap")},
}
"""Keys of `[raid.policy.NAME]` and what each replaces under that policy."""

PROTOCOL_PARAMETERS = {
    name: f"links.{name}" for name in ("port_rate", "payload", "overhead", "latency", "max_transfer")
}
"""Keys of `[links.under.NAME]` and what each replaces under that protocol."""


def whole_name(dotted: str) -> str:
    """The parameter that a dotted name is a value of: `raid.set_disks` of `raid.policy.50.set_disks`.

    Raises
    ------
    KeyError
        There is none.
    """
    for prefix, names, keys in (
        ("raid.policy.", POLICIES, POLICY_PARAMETERS),
        ("links.under.", PROTOCOLS, PROTOCOL_PARAMETERS),
    ):
        name, _, key = dotted.removeprefix(prefix).partition(".")
        if dotted.startswith(prefix) and name in names:
            return keys[key]
    if dotted not in PARAMETERS:
        raise KeyError(dotted)
    return dotted


def known_of(dotted: str) -> Known:
    """The parameter that a dotted name is a value of.

    Raises
    ------
    KeyError
        There is none.
    """
    return PARAMETERS[whole_name(dotted)]


SECTIONS = {
    "group": ("disks", "disk", "raid", "controller", "cache", "layout", "rebuild", "links", "group"),
    "host-flash": ("disks", "disk", "host", "node", "network", "log"),
    "cloud": ("volume", "iops", "throughput", "accounting", "latency", "snapshot"),
}
"""Sections of a model file by the structure of the array."""


def applies(dotted: str, structure: str, disk_kind: str, layout_kind: str) -> bool:
    """Whether arrays of such a structure, with such disks and layout, have the parameter."""
    known = known_of(dotted)
    if dotted.partition(".")[0] not in SECTIONS[structure]:
        return False
    return not known.only or disk_kind in known.only or layout_kind in known.only
