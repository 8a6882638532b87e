"""The shape of what `assay size` answers (docs/size.md)."""

from __future__ import annotations

from typing import Annotated, NotRequired, Required

from pydantic import Field
from typing_extensions import TypedDict

from assay.record.shapes.terms import Amount, Count, Flag, MaybeAmount, MaybeCount, MaybeNumber, Number, Text, Texts

Used = Annotated[dict[str, Amount], Field(max_length=8)]
"""Shares of what there is by resource; a figure has room for eight lines."""


class Reason(TypedDict):
    """Why a candidate does not hold the need."""

    kind: str
    text: str
    share: MaybeAmount


# The class, not its name: a name in quotes is looked up in the module that uses the type, from Python 3.14 on.
Reasons = Annotated[list[Reason], Field(min_length=1)]


class PriceUsed(TypedDict):
    """A list price that a cost rests on."""

    name: str
    region: str
    currency: str
    dated: str
    age: str
    source: str


class Endurance(TypedDict):
    """How a purchase wears its drives; the year is null where that is not within twenty."""

    written_bytes_a_day: Amount
    write_amplification: Amount
    drive_writes_a_day: Amount
    rated_writes_a_day: Amount
    worn_out_year: MaybeAmount


class Size(TypedDict):
    """A size of an array, or volumes of a cloud, that can be bought."""

    label: str
    array: str
    title: str
    side: NotRequired[Text]
    raid: str
    log_raid: Text
    members: Count
    disks: Count
    disks_of_member: MaybeCount
    paths: MaybeCount
    volumes: Count
    cost: MaybeAmount
    once: NotRequired[MaybeAmount]
    by_month: NotRequired[MaybeAmount]
    no_price: NotRequired[Text]
    rack_units: MaybeAmount
    power_w: MaybeAmount
    usable_bytes: Count
    free_bytes: Count
    fill: Amount


class Nearest(Size):
    """The size that misses the need by least."""

    reasons: Reasons
    missing_share: Number


class Candidate(TypedDict, total=False):
    """A size that was looked at; a choice that a rule left out has label, holds and reasons alone."""

    label: Required[str]
    array: str
    title: str
    side: Text
    raid: str
    log_raid: Text
    members: Count
    disks: Count
    disks_of_member: MaybeCount
    paths: MaybeCount
    volumes: Count
    cost: MaybeAmount
    once: MaybeAmount
    by_month: MaybeAmount
    no_price: Text
    rack_units: MaybeAmount
    power_w: MaybeAmount
    usable_bytes: Count
    free_bytes: Count
    fill: Amount
    holds: Required[bool]
    latency_ns: MaybeAmount
    reasons: Required[list[Reason]]


class Year(TypedDict):
    """The demand of a year, and the use of each resource."""

    year: Annotated[int, Field(ge=0, le=100)]
    bytes: NotRequired[MaybeAmount]
    iops: NotRequired[MaybeAmount]
    bytes_per_s: NotRequired[MaybeAmount]
    used: Used


class RunsOut(TypedDict):
    """The year in which a resource runs out; null where that is not within twenty years."""

    resource: str
    year: MaybeAmount


class Growth(TypedDict):
    """How long a purchase lasts."""

    years: Annotated[list[Year], Field(max_length=100)]
    runs_out: list[RunsOut]


class Chosen(Size):
    """A size that holds the need, and how sure that is."""

    targets: list[str]
    latency_ns: MaybeAmount
    holds_times: Amount
    holds_more: NotRequired[Flag]
    iops_held: Amount
    probability: Amount
    model_share: Amount
    model_basis: str
    rebuild_h: MaybeAmount
    loss_probability: MaybeAmount
    lost_drive: NotRequired[Text]
    iops_per_unit: NotRequired[MaybeAmount]
    bytes_per_unit: NotRequired[MaybeAmount]
    endurance: NotRequired[Endurance | None]
    growth: Growth


class Choices(TypedDict, total=False):
    """What is chosen: nothing, or at least what is bought: the cheapest, or without costs what has fewest disks.

    `on_premises` and `cloud` are the best of the side that is not bought.
    """

    cheapest: Chosen
    fewest_disks: Chosen
    on_premises: Chosen
    cloud: Chosen
    smallest: Chosen
    fastest: Chosen


class DemandStream(TypedDict):
    """I/O of one kind."""

    name: str
    kind: NotRequired[Text]
    role: str
    iops: Amount
    block_bytes: Amount
    read_share: Amount
    random_share: Amount


class YearDemand(TypedDict):
    """What storage must hold at one time."""

    data_bytes: Amount
    log_bytes: Amount
    iops: Amount
    bytes_per_s: NotRequired[MaybeAmount]
    phases: list[list[DemandStream]]


class Demand(TypedDict):
    """What storage must hold now and at the end of the need's years."""

    now: YearDemand
    sized_for: YearDemand
    head_room: Amount
    spread: Amount


class MeasuredVolume(TypedDict):
    """The measured load of a volume or role."""

    name: str
    role: str
    iops: Amount
    bytes_per_s: NotRequired[MaybeAmount]
    read_share: Amount
    block_bytes: Amount


class Coverage(TypedDict):
    """How much of a week was recorded."""

    seconds: NotRequired[MaybeAmount]
    hours_of_week: NotRequired[MaybeCount]
    share: NotRequired[MaybeAmount]
    days: NotRequired[MaybeCount]
    text: str


class MeasuredLoad(TypedDict):
    """What the load was measured from."""

    source: str
    percentile: Amount
    volumes: list[MeasuredVolume]
    roles: dict[str, MeasuredVolume] | None
    spread: NotRequired[MaybeAmount]
    size_bytes: NotRequired[MaybeCount]
    growth: NotRequired[MaybeNumber]
    coverage: Coverage | None
    transactions_per_s: NotRequired[MaybeAmount]
    cpu_per_transaction_s: NotRequired[MaybeAmount]
    notices: NotRequired[Texts]


class Rule(TypedDict):
    """A rule of the method and what it did."""

    rule: str
    source: str
    effect: str


Assumption = TypedDict("Assumption", {"assumption": str, "value": str, "from": str})
"""What the answer rests on, and where it is from."""


class WhatIf(TypedDict):
    """What is bought if one assumption is another."""

    assumption: str
    stated: str
    to: str
    purchase: str
    changes: bool
    cost: NotRequired[MaybeAmount]
    known: NotRequired[bool]


class DatabaseServers(TypedDict):
    """Servers of the databases."""

    servers: Count
    cores_of_server: Count
    transactions_per_s: Amount
    cores: Amount
    cpu_share: Amount
    cpu_limit: Amount
    memory_bytes: MaybeAmount
    memory: str


class MailServers(TypedDict):
    """Servers of mailboxes."""

    name: str
    mailboxes: Count
    servers: Count
    mailboxes_per_server: Count
    copies: NotRequired[MaybeCount]
    mailbox_bytes: Amount


class Servers(TypedDict):
    """Servers that the need takes."""

    databases: DatabaseServers | None
    mail: list[MailServers]


class Differs(TypedDict):
    """A resource before and after a change of the need."""

    what: str
    before: str
    after: str
    differs: NotRequired[Flag]


class Difference(TypedDict):
    """What a change of the need changes."""

    changes: list[str]
    rows: list[Differs]


class SidesCompared(TypedDict):
    """The best on one's own premises beside the best of a cloud; null where a price is not known.

    `break_even_once` is the price at which both cost the same over the service years, where the own one is not known.
    """

    on_premises: str
    cloud: str
    disks: Count
    once: MaybeAmount
    cloud_by_month: MaybeAmount
    break_even_years: MaybeAmount
    break_even_once: MaybeAmount


class Market(TypedDict):
    """The purchase beside others: both sides, why the two next are not bought, and the list prices that were used."""

    sides: SidesCompared | None
    next_best: list[str]
    prices: list[PriceUsed]


class SizedNeed(TypedDict):
    """What was sized: its name, source, currency and years."""

    title: str
    source: str
    sentence: NotRequired[str]
    named: list[str]
    currency: str
    years: Annotated[float, Field(ge=0, le=100)]
    service_years: Annotated[float, Field(ge=0, le=100)]


class Sizing(SizedNeed):
    """The answer of `assay size`."""

    demand: Demand
    measured: MeasuredLoad | None
    holds: bool
    chosen: Choices
    cheapest_by: str
    smallest_by: str
    candidates: list[Candidate]
    nearest: Nearest | None
    market: NotRequired[Market]
    why: list[str]
    rules: list[Rule]
    assumptions: list[Assumption]
    servers: Servers | None
    sensitivity: list[WhatIf] | None
    simulations: Count
    given_up: NotRequired[list[str]]
    notices: list[str]
    difference: Difference | None
