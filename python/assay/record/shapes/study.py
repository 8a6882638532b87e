"""The shapes of what a study compares (docs/studies.md) and of the reliability of an array (docs/reliability.md)."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, Required

from pydantic import Field
from typing_extensions import TypedDict

from assay.record.shapes.point import BesideQueries
from assay.record.shapes.terms import (
    Amount,
    Count,
    Flag,
    Integer,
    Interval,
    MaybeAmount,
    MaybeCount,
    MaybeNumber,
    Name,
    Number,
    PointId,
    Text,
    Texts,
)


class FactorLevel(TypedDict):
    """A level of a factor."""

    key: str
    label: str


class Factor(TypedDict):
    """What is varied."""

    name: str
    title: str
    of: NotRequired[Text]
    ordered: bool
    levels: list[FactorLevel]


class Compared(TypedDict, total=False):
    """What is compared with what."""

    figure: Required[Name]
    by: Required[str]
    baseline: Required[str]
    answer: Text
    answer_for: Texts
    also: list[Name] | None
    verb: Required[str]
    fall: Text
    capacity: bool
    states: bool


class PublishedText(TypedDict):
    """What a published study says on the same question."""

    source: str
    text: str


class Value(TypedDict):
    """A figure of a level."""

    value: MaybeNumber
    unit: str
    interval_95: NotRequired[Interval]


class Capacity(TypedDict):
    """What an array holds at a level, in bytes, and how many disks of a group may fail, whichever they are."""

    raw_bytes: Integer
    usable_bytes: Integer
    survives: NotRequired[MaybeCount]


class CapacityUse(Capacity):
    """What an array holds, and I/Os per second for each terabyte of what volumes may use."""

    iops_per_usable_tb: MaybeAmount


class Result(TypedDict):
    """A level's figures."""

    part: Name
    levels: dict[str, str]
    title: str
    workload: str
    load: Text
    place: Integer
    series: str
    limited_by: Text
    reason: str
    values: dict[str, Value]
    band_90: Interval
    band_basis: Text
    point_ids: list[PointId]
    capacity: NotRequired[CapacityUse]


class Comparison(TypedDict):
    """A level against the baseline."""

    part: Name
    place: Integer
    figure: Name
    unit: str
    series: str
    level: str
    baseline: str
    value: MaybeNumber
    baseline_value: MaybeNumber
    ratio: MaybeAmount
    interval_95: Interval
    differs: Flag
    band_90: NotRequired[Interval]
    baseline_band_90: NotRequired[Interval]
    band_basis: NotRequired[Text]
    reason: Text
    sentence: Text


class Trend(TypedDict, total=False):
    """How a figure goes over all levels of one series; `clear_steps` are those beyond their interval."""

    figure: Name
    unit: Text
    series: Text
    ordered: Flag
    direction: Text
    steps: MaybeCount
    clear_steps: MaybeCount
    values: list[MaybeNumber] | None
    levels: Texts
    most: Text
    least: Text
    most_levels: Texts
    least_levels: Texts
    sentence: Text


class PublishedFigure(TypedDict, total=False):
    """A published figure beside the model's."""

    kind: Required[Literal["figure", "ratio", "order"]]
    id: Required[str]
    title: Required[str]
    source: Required[str]
    unit: Required[str]
    published: Required[Annotated[float, Field(gt=0, le=1e24)] | None]
    within: list[float] | None
    model: Required[MaybeNumber]
    interval_95: Required[Interval]
    band_90: Required[Interval]
    error_share: Required[MaybeNumber]
    fit: Required[Flag]
    reason: Required[Text]
    note: Text
    model_text: Text
    holds: Flag


class RawGap(TypedDict, total=False):
    """A database beside the storage under it."""

    part: Required[Name]
    follows: Required[Name]
    point_ids: Required[list[PointId]]
    block_bytes: Required[Amount]
    read_share: Required[Amount]
    database_iops: Required[MaybeAmount]
    raw_iops: Required[MaybeAmount]
    database_bytes_per_s: MaybeAmount
    raw_bytes_per_s: MaybeAmount
    sequential: Flag
    gap_share: MaybeNumber
    buffer_hit_share: MaybeNumber
    read_bytes_per_transaction: MaybeAmount
    written_bytes_per_transaction: MaybeAmount
    log_bytes_per_transaction: MaybeAmount
    sentences: Required[Annotated[list[str], Field(min_length=1)]]


class BesideLoad(TypedDict, total=False):
    """A load beside the one that was measured."""

    part: Required[Name]
    title: Required[str]
    point_ids: Required[list[PointId]]
    load: Required[str]
    target: Texts
    alone: Required[BesideQueries]
    together: Required[BesideQueries]
    slowdown: MaybeAmount
    slowdown_95: Interval
    cpu_share: MaybeAmount
    sentences: Required[Annotated[list[str], Field(min_length=1)]]


class PublishedOrder(TypedDict, total=False):
    """Figures that fall in an order."""

    id: Required[str]
    title: Required[str]
    source: Required[str]
    points: Required[list[str]]
    note: Required[Text]


class Study(TypedDict, total=False):
    """What is varied, and what it changed."""

    name: Required[str]
    title: Required[str]
    question: Required[str]
    said: list[PublishedText] | None
    target: Text
    repeats: Annotated[int, Field(ge=0, le=10**6)] | None
    seed: Integer | None
    factors: Required[list[Factor]]
    comparison: Required[Compared | None]
    levels: Required[dict[str, dict[str, str]]]
    capacities: dict[str, Capacity]
    order: Required[list[Name]]
    orders: list[PublishedOrder] | None
    results: list[Result] | None
    comparisons: list[Comparison] | None
    trends: list[Trend] | None
    sentences: Texts
    published: list[PublishedFigure] | None
    gaps: list[RawGap] | None
    beside: list[BesideLoad] | None


# Reliability

Positive = Annotated[float, Field(gt=0, le=1e24)]
Range = Annotated[list[Positive], Field(min_length=2, max_length=2)]
Label = Annotated[str, Field(max_length=200)]
"""A word or two beside an axis of a figure."""
Probability = Annotated[float, Field(ge=0, le=1)]


class Closed(TypedDict):
    """What the closed forms give: mean hours to data loss of one group and of all, and the probability of one."""

    group_mttdl_h: NotRequired[MaybeAmount]
    mttdl_h: Amount
    loss_probability: Probability


class Simulated(TypedDict):
    """What the simulation gives."""

    loss_probability: Probability
    loss_interval_95: Annotated[list[Amount], Field(min_length=2, max_length=2)]
    agrees: NotRequired[bool]


class Policy(TypedDict):
    """A RAID policy."""

    policy: NotRequired[Text]
    title: str
    offered: bool
    rebuild_h: Amount
    groups_text: str
    groups: NotRequired[MaybeCount]
    group_disks: NotRequired[MaybeCount]
    tolerates: Count
    data_disks: Count
    unreadable: NotRequired[MaybeAmount]
    closed: Closed
    simulated: Simulated
    aged: Simulated | None


Input = TypedDict(
    "Input",
    {
        "key": str, "title": Label, "value": Positive, "unit": Label, "low": Positive, "high": Positive, "source": str,
        "range_source": str, "from": NotRequired[str],
    },
)  # fmt: skip
"""What the figures hang on."""


class ByInput(TypedDict):
    """A ratio over the range of one input."""

    input: str
    ten: Range
    five: Range


class Layout(TypedDict):
    """What a ratio compares."""

    policy: NotRequired[Text]
    title: str
    groups_text: str
    groups: NotRequired[MaybeCount]
    group_disks: NotRequired[MaybeCount]
    tolerates: NotRequired[MaybeCount]
    data_disks: Count
    unreadable: NotRequired[MaybeAmount]
    closed: NotRequired[Closed | None]


class Ratio(TypedDict):
    """Loss rates over each other."""

    basis: str
    layouts: Annotated[list[Layout], Field(min_length=3, max_length=3)]
    ten: Positive
    five: Positive
    ten_range: Range
    five_range: Range
    by_input: list[ByInput]


class Curve(TypedDict):
    """Losses at a value of an input."""

    input: str
    value: Positive
    policy: NotRequired[Text]
    stated: bool
    loss_probability: Probability


class Array(TypedDict, total=False):
    """The array in question; `disks` are those in use of a member."""

    name: Text
    title: Required[str]
    target: Text
    disks: MaybeCount


class Reliability(TypedDict, total=False):
    """The answer of `assay model reliability`."""

    array: Required[Array]
    inputs: Required[list[Input]]
    policies: Required[Annotated[list[Policy], Field(min_length=1)]]
    ratios: Required[list[Ratio]]
    curves: Required[list[Curve]]
    notices: Required[list[str]]
    disk_bytes: Required[Amount]
    service_years: Required[Positive]
    failure_shape: Required[Number | None]
    trials: Required[Count]
    seed: Required[Integer]
