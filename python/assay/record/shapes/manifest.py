"""The shape of a manifest (docs/results.md, Manifest)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Required

from pydantic import Field, with_config
from typing_extensions import TypedDict

from assay.record.shapes.acceptance import AcceptanceTest
from assay.record.shapes.drive import Drive
from assay.record.shapes.need import AskedNeed
from assay.record.shapes.point import Answer, Engine, VerdictLine
from assay.record.shapes.sizing import Sizing
from assay.record.shapes.study import Reliability, Study
from assay.record.shapes.terms import (
    INTEGER_MAX,
    STRICT,
    Count,
    Flag,
    Integer,
    MaybeAmount,
    MaybeCount,
    MaybeNumber,
    Name,
    Number,
    PointId,
    Text,
    Texts,
)
from assay.record.titles import TITLE_MAX


class Plan(TypedDict, total=False):
    """What reports say of a plan; all of it is checked where the run goes on (`assay.run.part`)."""

    kind: Text
    name: Text
    title: Text
    limits: Texts
    timing: PlanTiming | None
    search: PlanSearch | None
    activity: list[PlanActivity] | None
    restores: Text


class PlanTiming(TypedDict, total=False):
    """How long points of a plan are warmed up and measured."""

    warmup_s: MaybeAmount
    duration_s: MaybeAmount
    min_s: MaybeAmount
    max_s: MaybeAmount


class PlanSearch(TypedDict, total=False):
    """What a plan searches for."""

    axis: Text


class PlanActivity(TypedDict, total=False):
    """An activity of a plan of I/O."""

    random_share: list[float] | float | None
    queue_depth: list[int] | int | None
    rate: list[float] | float | None


class PublishedBeside(TypedDict, total=False):
    """A published figure that a part stands beside, in its own unit, or a ratio."""

    id: Required[str]
    source: Required[str]
    figure: Required[str]
    title: Text
    value: MaybeNumber
    within: list[float] | None
    ratio_of: Text
    fit: Flag
    note: Text
    also: list[PublishedBeside]


class Part(TypedDict, total=False):
    """A part of the run."""

    name: Required[Name]
    title: Text
    planned_s: MaybeAmount
    spent_s: MaybeAmount
    plan: Plan | None
    target: Text
    more_targets: Texts
    optional: Flag
    follows: Name | None
    continues: Flag
    published: PublishedBeside | None
    beside: Part | None


class Queue(TypedDict, total=False):
    """Settings of a device's queue."""

    scheduler: Text
    nr_requests: MaybeCount
    rotational: Flag
    write_cache: Text
    logical_block_bytes: MaybeCount
    physical_block_bytes: MaybeCount
    max_io_bytes: MaybeCount
    read_ahead_bytes: MaybeCount


class VolumeIdentity(TypedDict, total=False):
    """What tells a file or device from another, of what `--resume` compares."""

    serial: Text
    wwn: Text


class Volume(TypedDict, total=False):
    """A file or device under load; of a run over several hosts with its host."""

    name: Name | None
    path: Text
    kind: Text
    role: Text
    size_bytes: MaybeCount
    state: Text
    bytes_laid_out: MaybeCount
    created_by_assay: Flag
    file_system: Text
    mount_options: Text
    device: Text
    device_stack: Texts
    model: Text
    queue: Queue | None
    identity: VolumeIdentity | None
    host: Name | None


class Database(TypedDict, total=False):
    """A database."""

    name: Name | None
    kind: Text
    version: Text
    settings: dict[str, Any] | None
    host: Name | None


From = TypedDict("From", {"from": Text}, total=False)
"""Where something comes from."""


class Parameter(From, total=False):
    """A parameter of a modelled array: its value as it was written, in `unit`."""

    value: str | bool | int | float | None
    unit: Text
    source: Text
    plus_minus: MaybeAmount


Ends = Annotated[list[Number], Field(min_length=2, max_length=2)]
"""Least and largest of what was measured."""


class CalibrationPoint(TypedDict, total=False):
    """One observation: its label and the model's error at it, after the fit and predicted from the others."""

    label: str
    error_share: Number
    left_out_error_share: Number


class Calibration(From, total=False):
    """What an array's model was fitted to, at which conditions, and what the fit leaves open (docs/calibration.md)."""

    structure: Text
    points: MaybeCount
    free: Texts
    error_share: MaybeAmount
    covariance: list[list[Number]]
    shifts: dict[str, list[Number]]
    raid: list[str]
    members: list[Count]
    fill: Ends
    block_bytes: Ends
    read_share: Ends
    random_share: Ends
    observations: list[CalibrationPoint]


class ModelledPool(TypedDict, total=False):
    """Members of a modelled array with a policy of their own, and the volumes on them."""

    role: Text
    raid: Text
    members: MaybeCount
    usable_bytes: MaybeCount
    used_bytes: MaybeCount


class CloudLimit(TypedDict, total=False):
    """A limit of each volume of a cloud or of the machine: I/Os or bytes a second, and how long its burst lasts."""

    of: Text
    what: Text
    per_s: MaybeAmount
    burst_per_s: MaybeAmount
    burst_s: MaybeAmount


class ModelledArray(TypedDict, total=False):
    """A modelled array in force; `region` to `limits` of volumes of a cloud."""

    name: Text
    title: Text
    family: Text
    target: Text
    raid: Text
    members: MaybeCount
    options: dict[str, str | bool | int | float | None] | None
    parameters: dict[str, Parameter] | None
    calibration: Calibration | None
    raw_bytes: MaybeCount
    usable_bytes: MaybeCount
    used_bytes: MaybeCount
    fill: MaybeAmount
    pools: list[ModelledPool] | None
    region: Text
    as_of: Text
    limits: list[CloudLimit] | None


class ServedAt(TypedDict, total=False):
    """Where an array is shown as files, and what its cache keeps after a power cut."""

    folder: Text
    store: Text
    durability: Text
    realtime: Flag


class ShownArray(ModelledArray, total=False):
    """A modelled array that answers on the wall clock with real bytes."""

    served: ServedAt | None


REPEATS_MAX = 100
"""Most repeats of a command."""


class Target(TypedDict, total=False):
    """What was under load."""

    volumes: list[Volume] | None
    databases: list[Database] | None
    cache_notice: Text
    array: ModelledArray | None
    served: list[ShownArray] | None
    drives: list[Drive] | None


class Host(TypedDict, total=False):
    """The host."""

    hostname: Text
    kernel: Text
    distribution: Text
    cpu_model: Text
    cpu_count: MaybeCount
    memory_bytes: MaybeCount
    virtualization: Text
    python: Text


class RunHost(TypedDict, total=False):
    """A host of a run over several: its clock when the run began, and what its share told.

    `machine` is the same for hosts on one machine, and tells nothing else of it; so is what `servers` has for each
    database, for those on one server.
    """

    name: Required[Name]
    hostname: Text
    host: Host | None
    machine: Text
    servers: dict[str, Text]
    clock_offset_ns: Integer | None
    clock_error_ns: MaybeCount
    lost: Text
    told: dict[str, Any] | None


class Request(TypedDict, total=False):
    """What the user asked of the target: of storage paths and volumes, of databases targets."""

    paths: list[str]
    volumes: list[str]
    targets: list[str]
    size: Text
    cache_size: Text
    overwrite: list[str]
    yes_destroy: list[str]
    size_most_bytes: Count
    create: bool
    database: bool
    crash_journal: Text
    after_crash: Text


class RecordedFile(TypedDict, total=False):
    """A file of another tool that a recording was made from, and what was taken of it."""

    path: Text
    format: Text
    rows: MaybeCount
    hosts: Texts
    from_utc_ns: MaybeCount
    to_utc_ns: MaybeCount
    counters: dict[str, Text]
    ignored: dict[str, Text]
    notes: Texts


class Recording(TypedDict, total=False):
    """What other tools recorded, together, or what a flight recorder did."""

    files: list[RecordedFile] | None
    hosts: Texts
    from_utc_ns: MaybeCount
    to_utc_ns: MaybeCount
    rows: MaybeCount
    notices: Texts
    interval_s: MaybeAmount
    keep_bytes: MaybeCount
    roles: dict[str, Text]
    databases: Texts
    gaps_utc_ns: list[list[int]] | None


class ImportedFile(TypedDict, total=False):
    """A file of another program's results, and what was taken of it."""

    path: Text
    format: Text
    program: Text
    version: Text
    point_ids: list[PointId] | None
    taken: dict[str, Text] | None
    ignored: dict[str, Text] | None
    not_understood: dict[str, Text] | None
    notes: Texts


class ImportedResults(TypedDict, total=False):
    """Who measured, where Assay did not."""

    programs: Texts
    files: list[ImportedFile] | None
    notices: Texts


class CheckedRule(TypedDict, total=False):
    """A rule of best practice and what it was asked of; of one that is broken, what to do."""

    rule: Text
    family: Text
    title: Text
    severity: Text
    subject: Text
    found: Text
    wanted: Text
    why: Text
    fix: Text
    source: Text
    origin: Text
    reason: Text


class Check(TypedDict, total=False):
    """What `assay check` found."""

    targets: Texts
    findings: list[CheckedRule] | None
    passed: list[CheckedRule] | None
    not_checked: list[CheckedRule] | None
    notices: Texts


class Repeats(TypedDict):
    """Of a run that is a repeat: how many a side has, and what each side asked, by the folder of the side."""

    of: Annotated[int, Field(ge=1, le=REPEATS_MAX)]
    sides: Annotated[dict[str, Request], Field(min_length=1, max_length=2)]


class OfVerbs(TypedDict, total=False):
    """What the manifests of some verbs say besides."""

    study: Study | None
    repeats: Repeats
    reliability: Reliability
    sizing: Sizing
    recording: Recording
    imported: ImportedResults
    check: Check
    contract: AcceptanceTest


@with_config(STRICT)
class Manifest(OfVerbs, total=False):
    """Content of `run.json`."""

    schema_version: Required[Annotated[int, Field(ge=0, le=INTEGER_MAX)]]
    run_id: Annotated[str, Field(max_length=200)] | None
    title: Annotated[str, Field(max_length=TITLE_MAX)] | None
    verb: Annotated[str, Field(max_length=40)] | None
    status: Literal["running", "done", "interrupted", "failed"] | None
    error: Text
    started_utc_ns: MaybeCount
    ended_utc_ns: MaybeCount
    command: Texts
    plan: Plan | None
    parts: list[Part] | None
    request: Request
    target: Target | None
    host: Host | None
    hosts: list[RunHost] | None
    build: dict[str, Text] | None
    engine: Engine | None
    answers: list[Answer] | None
    verdict: list[VerdictLine] | None
    notices: Texts
    need: AskedNeed | None


GOES_ON = ("request", "parts", "target", "answers", "verdict", "notices", "status", "started_utc_ns")
"""What a run that is gone on with must hold."""
