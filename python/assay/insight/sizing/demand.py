"""What a need asks of storage in a year: streams of I/O by role, bytes by role, and which of them coincide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from assay.base.errors import UsageError
from assay.insight.sizing.need import Mail, Need, NeededDatabase
from assay.record.shapes.sizing import YearDemand

LOG, DATA = "log", "data"
TRANSACTIONS, SCANS, MAIL, MAINTENANCE = "transactions", "scans", "mail", "maintenance"

BYTES_MOST, IOPS_MOST = 1 << 60, 1e12
"""No storage that can be sized holds more."""

MAIL_PAGE_BYTES = 32 * 1024
MAINTENANCE_BLOCK_BYTES = 256 * 1024
"""Pages of a mail database, and what its background maintenance reads at once."""


PeakForm = tuple[str, str, int, float, float, float | None, float | None]
"""All but name, rate and hours of a stream."""


@dataclass(frozen=True, kw_only=True)
class PeakStream:
    """I/O of one kind.

    Attributes
    ----------
    rate
        I/Os a second that the raw profile of the storage must hold: derated where `kind` is of a database.
    read_limit_s, write_limit_s
        Largest mean latency; None where only the rate counts.
    """

    name: str
    kind: str
    role: str
    rate: float
    block_bytes: int
    read_share: float
    random_share: float
    read_limit_s: float | None
    write_limit_s: float | None
    hours: frozenset[int]

    @property
    def bytes_per_s(self) -> float:
        """Bytes read and written a second."""
        return self.rate * self.block_bytes

    @property
    def form(self) -> PeakForm:
        """All but name, rate and hours: streams of one form are asked for together."""
        return (self.kind, self.role, self.block_bytes, self.read_share, self.random_share, self.read_limit_s,
                self.write_limit_s)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PeakDemand:
    """What storage must hold at one time.

    Attributes
    ----------
    phases
        Streams that coincide: one tuple for each set of hours that no other set covers.
    """

    phases: tuple[tuple[PeakStream, ...], ...]
    data_bytes: int
    log_bytes: int

    @property
    def total_bytes(self) -> int:
        """Bytes of all roles."""
        return self.data_bytes + self.log_bytes

    @property
    def has_log(self) -> bool:
        """Whether a log has volumes of its own."""
        return self.log_bytes > 0

    @property
    def iops(self) -> float:
        """Most I/Os a second of any phase."""
        return max((sum(stream.rate for stream in phase) for phase in self.phases), default=0.0)

    @property
    def bytes_per_s(self) -> float:
        """Most bytes a second of any phase."""
        return max((sum(stream.bytes_per_s for stream in phase) for phase in self.phases), default=0.0)

    def times(self, factor: float) -> PeakDemand:
        """The same with so many times the load, and the same bytes."""
        phases = tuple(tuple(replace(one, rate=one.rate * factor) for one in phase) for phase in self.phases)
        return replace(self, phases=phases)


def demand_of(need: Need, year: float) -> PeakDemand:
    """The demand after so many years of growth."""
    streams: list[PeakStream] = []
    data = log = 0.0
    for database in need.database:
        size, load = growth_factors(database, year)
        streams += [one for one in _database_streams(need, database, load) if one.rate > 0]
        own_log = database.log_bytes * size
        data += (database.size + database.tempdb_bytes) * size
        if need.rules.log_apart:
            log += own_log
        else:
            data += own_log
    for mail in need.mail:
        size, load = growth_factors(mail, year)
        streams += _mail_streams(need, mail, load)
        data += mailbox_bytes(mail) * mail.mailboxes * mail.copies * size
    return PeakDemand(phases=_phases(streams), data_bytes=round(data), log_bytes=round(log))


def written_bytes_a_day(need: Need, year: float) -> float:
    """Bytes that hosts write in a day after so many years, if each peak lasts for its hours; no derating is in it."""
    written = 0.0
    for database in need.database:
        _, load = growth_factors(database, year)
        data = database.ios * (1 - database.log) * (1 - database.read) * database.block
        written += (data + database.ios * database.log * database.log_block) * load * len(database.hours) * 3600
    for mail in need.mail:
        _, load = growth_factors(mail, year)
        ios = mail.mailboxes * mail.iops_per_mailbox * mail.copies * load
        written += ios * (1 - mail.read) * MAIL_PAGE_BYTES * len(mail.hours) * 3600
    return written


def refuse_beyond(need: Need) -> None:
    """Refuse a need that no storage can be sized for.

    Raises
    ------
    UsageError
        It asks for more than a whole industry makes, now or once it has grown.
    """
    asked = demand_of(need, need.years)
    if asked.total_bytes > BYTES_MOST or asked.iops > IOPS_MOST:
        raise UsageError(
            f"the need grows to {asked.total_bytes:.3g} bytes and {asked.iops:.3g} I/Os per s in {need.years:g} years,"
            f" and at most {BYTES_MOST:.3g} and {IOPS_MOST:.3g} can be sized; give a smaller size, load or growth"
        )


def growth_factors(one: NeededDatabase | Mail, year: float) -> tuple[float, float]:
    """By how much size and load have grown."""
    load = one.load_growth if isinstance(one, NeededDatabase) and one.load_growth is not None else one.growth
    return (1 + one.growth) ** year, (1 + load) ** year


def mailbox_bytes(mail: Mail) -> float:
    """Space of one mailbox: its quota, white space of a day's mail, deleted items, and what is beside them."""
    day = mail.messages_per_day * mail.message_size
    return (mail.size + day + day * mail.deleted_days) * (1 + mail.overhead)


def mail_servers(mail: Mail, year: float) -> int:
    """Servers of the mailboxes; of copies each has its own."""
    boxes = mail.mailboxes * growth_factors(mail, year)[1]
    return -(-round(boxes) // mail.mailboxes_per_server) * mail.copies


def _database_streams(need: Need, database: NeededDatabase, load: float) -> list[PeakStream]:
    limits, hours = need.limits, frozenset(database.hours)
    raw = load / (1 - need.rules.derating_transactions)
    log_role = LOG if need.rules.log_apart else DATA
    transactions = PeakStream(
        name=database.name, kind=TRANSACTIONS, role=DATA, rate=database.ios * (1 - database.log) * raw,
        block_bytes=database.block, read_share=database.read, random_share=1.0, read_limit_s=limits.read,
        write_limit_s=limits.write, hours=hours,
    )  # fmt: skip
    log = PeakStream(
        name=f"{database.name} log", kind=LOG, role=log_role, rate=database.ios * database.log * load,
        block_bytes=database.log_block, read_share=0.0, random_share=0.0, read_limit_s=None,
        write_limit_s=limits.log, hours=hours,
    )  # fmt: skip
    scanned = (database.scan or 0.0) * load / (1 - need.rules.derating_scans)
    scans = PeakStream(
        name=f"{database.name} scans", kind=SCANS, role=DATA, rate=scanned / database.scan_block,
        block_bytes=database.scan_block, read_share=1.0, random_share=0.0, read_limit_s=None, write_limit_s=None,
        hours=hours,
    )  # fmt: skip
    return [transactions, log, scans]


def _mail_streams(need: Need, mail: Mail, load: float) -> list[PeakStream]:
    hours = frozenset(mail.hours)
    databases = -(-round(mail.mailboxes * load) // mail.mailboxes_per_server) * mail.databases_per_server * mail.copies
    boxes = PeakStream(
        name=mail.name, kind=MAIL, role=DATA, rate=mail.mailboxes * mail.iops_per_mailbox * mail.copies * load,
        block_bytes=MAIL_PAGE_BYTES, read_share=mail.read, random_share=1.0, read_limit_s=need.limits.read,
        write_limit_s=need.limits.write, hours=hours,
    )  # fmt: skip
    maintenance = PeakStream(
        name=f"{mail.name} maintenance", kind=MAINTENANCE, role=DATA, rate=mail.maintenance_reads * databases,
        block_bytes=MAINTENANCE_BLOCK_BYTES, read_share=1.0, random_share=0.0, read_limit_s=None,
        write_limit_s=None, hours=frozenset(range(24)),
    )  # fmt: skip
    return [boxes, maintenance] if maintenance.rate else [boxes]


def _phases(streams: Sequence[PeakStream]) -> tuple[tuple[PeakStream, ...], ...]:
    """Sets of streams that coincide in some hour, without those that another one covers; alike streams are joined."""
    sets = {frozenset(place for place, one in enumerate(streams) if hour in one.hours) for hour in range(24)}
    widest = sorted((one for one in sets if one and not any(one < other for other in sets)), key=sorted)
    return tuple(_joined([streams[place] for place in sorted(places)]) for places in widest)


def _joined(streams: Sequence[PeakStream]) -> tuple[PeakStream, ...]:
    found: dict[PeakForm, PeakStream] = {}
    for one in streams:
        known = found.get(one.form)
        found[one.form] = (
            one if known is None else replace(known, name=f"{known.name}, {one.name}", rate=known.rate + one.rate)
        )
    return tuple(found.values())


class StreamActivity(TypedDict, total=False):
    """A stream as an activity of a plan; `rate` is of I/Os a second, and shares are from 0 to 1."""

    name: str
    role: str
    rate: float
    arrivals: str
    block_bytes: int
    read_share: float
    random_share: float


def activities_of(phase: Sequence[PeakStream]) -> list[StreamActivity]:
    """Streams as the activities of a plan; arrivals of transactions are random, as those of many users."""
    return [
        {
            "name": one.kind,
            "role": one.role,
            "rate": one.rate,
            "arrivals": "poisson" if one.random_share else "constant",
            "block_bytes": one.block_bytes,
            "read_share": one.read_share,
            "random_share": one.random_share,
        }
        for one in phase
    ]


def facts_of(demand: PeakDemand) -> YearDemand:
    """The demand as documents carry it."""
    return {
        "data_bytes": demand.data_bytes,
        "log_bytes": demand.log_bytes,
        "iops": demand.iops,
        "bytes_per_s": demand.bytes_per_s,
        "phases": [
            [
                {
                    "name": one.name, "kind": one.kind, "role": one.role, "iops": one.rate,
                    "block_bytes": one.block_bytes, "read_share": one.read_share, "random_share": one.random_share,
                }
                for one in phase
            ]
            for phase in demand.phases
        ],
    }  # fmt: skip
