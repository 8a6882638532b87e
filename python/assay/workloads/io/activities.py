"""I/O workloads: one or several activities at once, each one role's access under one load."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Self, TypedDict, cast

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from assay.base.fields import Bytes, Seconds, Share, Strict, percent, unnamed
from assay.base.units import format_bytes, parse_bytes
from assay.workloads.options import Option

if TYPE_CHECKING:
    from assay.record.shapes.access import Access, Accesses
    from assay.record.shapes.point import Load

Role = Literal["data", "log", "tempdb"]

DEEPEST_QUEUE = 4096
"""Most I/Os a worker may have outstanding."""

DEFAULT_OPEN_DEPTH = 256
"""Most I/Os an open-loop worker has outstanding unless the plan says otherwise."""


def _block_mix(value: Any) -> int | dict[str, float]:
    """`8K` or a mix `{8K = 80, 64K = 20}`; the text form of a mix is `8K:80+64K:20`."""
    if isinstance(value, str) and ":" in value:
        value = dict(part.partition(":")[::2] for part in value.split("+"))
    if isinstance(value, dict):
        if not value:
            raise ValueError("a mix of no blocks; write it as {8K = 80, 64K = 20}")
        return {str(_block(size)): _weight(weight) for size, weight in value.items()}
    return _block(value)


def _block(value: Any) -> int:
    size_bytes = unnamed(parse_bytes)(value)
    if not 0 < size_bytes < 1 << 30:
        raise ValueError(f"{value!r} is no block size; accepted: a multiple of the sector, below 1 GiB")
    return size_bytes


def _weight(value: Any) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError):
        weight = math.nan
    if not 0 < weight < math.inf:
        raise ValueError(f"{value!r} is no weight of a mix; accepted: a number above 0")
    return weight


def _region_of_percentages(text: str) -> tuple[float, float]:
    """The region from `0-50`, as the option takes it."""
    start, dash, end = text.partition("-")
    if not dash:
        raise ValueError(f"{text!r}; accepted: START-END in percent, as in 0-50")
    return percent(start), percent(end)


def _forward(region: tuple[float, float]) -> tuple[float, float]:
    if region[0] >= region[1]:
        raise ValueError(f"starts at {region[0]} and ends at {region[1]}")
    return region


class ActivityAccess(Strict):
    """Which I/Os are asked for."""

    block_bytes: Annotated[
        int | dict[str, float],
        BeforeValidator(_block_mix),
        Option("--block", "Block sizes: 8K,64K; a mix: 8K:80+64K:20."),
    ] = 8192
    read_share: Annotated[Share, Option("--read", "Read shares in percent: 100,70.", parse=percent)] = 1.0
    random_share: Annotated[
        Share, Option("--random", "Random shares in percent; the rest is sequential.", parse=percent)
    ] = 1.0
    skew: Annotated[
        str,
        AfterValidator(lambda skew: parse_skew(skew) and skew),
        Option("--skew", "uniform, zipf:0.99, hot:0.8/0.2."),
    ] = "uniform"
    streams: Annotated[int, Field(ge=1, le=4096), Option("--streams", "Independent sequential streams per worker.")] = 1
    align_bytes: Annotated[Bytes | None, Option("--align", "Alignment of offsets (the block).")] = None
    stride_bytes: Bytes | None = None
    region: Annotated[
        tuple[Share, Share],
        AfterValidator(_forward),
        Option("--region", "Part of the volume in percent: 0-50.", parse=_region_of_percentages),
    ] = (0.0, 1.0)
    compressible_share: Annotated[
        Share, Option("--compressible", "Percent of written bytes that compress.", parse=percent)
    ] = 0.0
    duplicate_share: Annotated[
        Share, Option("--duplicate", "Percent of written blocks that repeat.", parse=percent)
    ] = 0.0
    io_mode: Annotated[
        Literal["direct", "buffered"],
        Option("--buffered", "Through the page cache instead of O_DIRECT.", values=("buffered",)),
    ] = "direct"
    sync: Annotated[
        Literal["none", "dsync", "fdatasync", "fsync"],
        Option("--sync", "Durability of writes: none, dsync, fdatasync, fsync."),
    ] = "none"
    sync_every: Annotated[int, Field(ge=1), Option("--sync-every", "With fdatasync, fsync: after every N writes.")] = 1

    @property
    def blocks(self) -> dict[int, float]:
        """Block sizes and their weights."""
        if isinstance(self.block_bytes, int):
            return {self.block_bytes: 1.0}
        return {int(size): weight for size, weight in self.block_bytes.items()}

    @property
    def largest_block_bytes(self) -> int:
        """The largest block of the mix."""
        return max(self.blocks)


WAVE_KEYS = ("wave_period_s", "wave_share", "wave_peak")
LOAD_KEYS = frozenset(
    {"queue_depth", "outstanding", "rate", "arrivals", "burst_interval_s", "burst_bytes", "burst_spread", "workers"}
    | {*WAVE_KEYS}
)
"""Keys of an activity that say how hard is asked."""


class IoActivity(ActivityAccess):
    """One role's access under one load: `queue_depth`, `outstanding`, `rate`, or bursts."""

    name: str = "io"
    role: Annotated[Role, Option("--role", "data, log or tempdb.")] = "data"
    volume: str | None = None
    """Name of the one volume to use, instead of all of the role."""
    workers: Annotated[int, Field(ge=1, le=1024), Option("--workers", "Workers per volume.")] = 1
    queue_depth: Annotated[
        Annotated[int, Field(ge=1, le=DEEPEST_QUEUE)] | None,
        Option("--queue-depth", "Outstanding I/Os per worker: 1,4,16."),
    ] = None
    outstanding: Annotated[
        Annotated[int, Field(ge=1, le=DEEPEST_QUEUE * 1024)] | None,
        Option("--outstanding", "Outstanding I/Os in total, spread over all workers: 73,74."),
    ] = None
    rate: Annotated[
        Annotated[float, Field(gt=0, le=1e9)] | None,
        Option("--rate", "Open loop: I/Os per second, latency from the intended start."),
    ] = None
    arrivals: Annotated[
        Literal["constant", "poisson", "waves"], Option("--arrivals", "Arrivals of --rate: constant or poisson.")
    ] = "constant"
    wave_period_s: Annotated[Seconds, Field(gt=0)] | None = None
    wave_share: Annotated[Share, Field(gt=0)] | None = None
    wave_peak: Annotated[float, Field(ge=1)] | None = None
    """Arrivals in waves: in this share of each period the rate is so many times the mean, lower in the rest."""
    burst_interval_s: Annotated[Seconds | None, Option("--burst-interval", "Time from one checkpoint to the next.")] = (
        None
    )
    burst_bytes: Annotated[Bytes | None, Option("--burst-bytes", "Bytes that a checkpoint writes.")] = None
    burst_spread: Annotated[
        Share, Option("--burst-spread", "Percent of the interval a checkpoint takes.", parse=percent)
    ] = 0.5

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.burst_interval_s is None) != (self.burst_bytes is None):
            raise ValueError("burst_interval_s and burst_bytes go together")
        if self.rate is not None and self.burst_bytes is not None:
            raise ValueError("rate and burst_bytes exclude each other")
        waves = (self.wave_period_s, self.wave_share, self.wave_peak)
        if (self.arrivals == "waves") != all(one is not None for one in waves) or (
            self.arrivals != "waves" and any(one is not None for one in waves)
        ):
            raise ValueError("arrivals = waves, wave_period_s, wave_share and wave_peak go together")
        if self.wave_share is not None and self.wave_peak is not None and self.wave_share * self.wave_peak > 1:
            raise ValueError("wave_share times wave_peak is above 1: more I/Os than there are would come in the peak")
        if self.outstanding is not None and (self.queue_depth is not None or self.is_open):
            raise ValueError("outstanding excludes queue_depth, rate and burst_bytes")
        return self

    @property
    def is_open(self) -> bool:
        """Whether I/Os arrive on a schedule of their own."""
        return self.rate is not None or self.burst_bytes is not None

    @property
    def depth(self) -> int:
        """Most I/Os outstanding per worker, unless they are given in total."""
        return self.queue_depth or (DEFAULT_OPEN_DEPTH if self.is_open else 1)

    def depth_on(self, volumes: int) -> int:
        """Most I/Os outstanding per worker, on this number of volumes."""
        return self.depth if self.outstanding is None else -(-self.outstanding // (self.workers * volumes))

    def asked(self) -> Access:
        """The access as points have it, without the load."""
        return cast("Access", self.model_dump(mode="json", exclude={*LOAD_KEYS}))

    def describe(self) -> str:
        """Short name: block, order, mix."""
        sizes = " + ".join(format_bytes(size) for size in sorted(self.blocks))
        if len(self.blocks) > 3:
            sizes = f"{format_bytes(min(self.blocks))} - {format_bytes(max(self.blocks))}"
        order = {0.0: "sequential", 1.0: "random"}.get(self.random_share, f"{self.random_share * 100:.0f} % random")
        read = round(self.read_share * 100)
        mix = {100: "read", 0: "write"}.get(read, f"{read}/{100 - read}")
        text = f"{sizes} {order} {mix}"
        if self.sync != "none":
            text += f" {self.sync}" + (f" every {self.sync_every}" if self.sync_every > 1 else "")
        if self.workers > 1:
            text += f", {self.workers} workers"
        if self.io_mode == "buffered":
            text += ", buffered"
        return text


class IoWorkloadSpec(Strict):
    """Activities that run at once."""

    activities: Annotated[tuple[IoActivity, ...], Field(min_length=1)]
    name: str = ""

    @property
    def title(self) -> str:
        """The workload's name, or what its only activity does."""
        return self.name or ", ".join(activity.describe() for activity in self.activities)

    @property
    def writes(self) -> bool:
        """Whether any activity writes."""
        return any(activity.read_share < 1 for activity in self.activities)

    def with_load(self, axis: str, load: float, workers: int) -> IoWorkloadSpec:
        """The same workload with its first activity under another load, in total over its workers.

        Rates of the others follow a rate that the first had.
        `axis` is `outstanding` or `rate`. What divides evenly among the workers is a queue depth.
        """
        change: dict[str, float | None] = {"rate": load}
        if axis == "outstanding":
            depth, left_over = divmod(int(load), workers)
            in_total: dict[str, float | None] = {"queue_depth": None, "outstanding": int(load)}
            change = in_total if left_over else {"queue_depth": depth, "outstanding": None}
        before, *others = self.activities
        if axis == "rate" and before.rate is not None:
            # Several rates are of one demand: they keep their proportion.
            times = load / before.rate
            others = [one if one.rate is None else one.model_copy(update={"rate": one.rate * times}) for one in others]
        return self.model_copy(update={"activities": (before.model_copy(update=change), *others)})

    def fitted(self, sector_bytes: int) -> IoWorkloadSpec | None:
        """The workload without blocks that are no multiple of the sector; None when an activity has no block left."""
        fitted = []
        for activity in self.activities:
            kept = {str(size): weight for size, weight in activity.blocks.items() if size % sector_bytes == 0}
            if not kept:
                return None
            change: dict[str, int | dict[str, float]] = {}
            if len(kept) < len(activity.blocks):
                change["block_bytes"] = kept
            if activity.align_bytes is not None and activity.align_bytes % sector_bytes:
                change["align_bytes"] = sector_bytes
            fitted.append(activity.model_copy(update=change))
        return self.model_copy(update={"activities": tuple(fitted)})

    def facts(self) -> Accesses:
        """The `workload` object of a point: everything but the load."""
        first = self.activities[0]
        if len(self.activities) == 1:
            asked = first.model_dump(mode="json", exclude={*LOAD_KEYS, "name"})
            facts = cast("Accesses", {"kind": "io", "name": self.title, **asked})
            facts["align_bytes"] = first.align_bytes or min(first.blocks)
            return facts
        return {
            "kind": "io",
            "name": self.title,
            "activities": [{**activity.asked(), "load": load_facts(activity, 1)} for activity in self.activities],
        }


def load_facts(activity: IoActivity, volumes: int) -> Load:
    """The `load` object of a point: workers in total over the activity's volumes."""
    workers = activity.workers * volumes
    if activity.burst_bytes is not None:
        return {
            "burst_interval_s": activity.burst_interval_s,
            "burst_bytes": activity.burst_bytes,
            "burst_spread": activity.burst_spread,
            "workers": workers,
        }
    if activity.rate is not None:
        waves = {
            "wave_period_s": activity.wave_period_s,
            "wave_share": activity.wave_share,
            "wave_peak": activity.wave_peak,
        }
        asked = {"rate": activity.rate, "arrivals": activity.arrivals, "workers": workers}
        return cast("Load", {**asked, **waves} if activity.arrivals == "waves" else asked)
    if activity.outstanding is not None:
        # Of what is left over, workers have one more by turns.
        depth = activity.outstanding // workers
        return {"queue_depth": depth, "workers": workers, "outstanding": activity.outstanding}
    return {"queue_depth": activity.depth, "workers": workers, "outstanding": activity.depth * workers}


class Skew(TypedDict):
    """How accesses are spread, in the generator's form: `uniform`, `zipf` with its theta, `hot` with both shares."""

    kind: str
    theta: NotRequired[float]
    access_share: NotRequired[float]
    space_share: NotRequired[float]


def parse_skew(skew: str) -> Skew:
    """The generator's form of `uniform`, `zipf:THETA`, `hot:ACCESS/SPACE`.

    Raises
    ------
    ValueError
        It is none of these, or a number is out of range.
    """
    number = r"([0-9]*\.?[0-9]+)"
    if skew == "uniform":
        return {"kind": "uniform"}
    if (match := re.fullmatch(f"zipf:{number}", skew)) and 0 < float(match[1]) < 100:
        return {"kind": "zipf", "theta": float(match[1])}
    if (match := re.fullmatch(f"hot:{number}/{number}", skew)) and float(match[1]) <= 1 and 0 < float(match[2]) <= 1:
        return {"kind": "hot", "access_share": float(match[1]), "space_share": float(match[2])}
    raise ValueError(f"{skew!r}; accepted: uniform, zipf:THETA as in zipf:0.99, hot:ACCESS/SPACE as in hot:0.8/0.2")
