"""What a model is calibrated with: points of a run or published figures, each with the plan that asks for the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, cast

from assay.base.errors import UsageError
from assay.base.reading import validated
from assay.insight.calibration.published import PublishedPoint, read_published
from assay.record.limits import parse_limits
from assay.record.points import current_points
from assay.record.run_folder import RunFolder
from assay.record.shapes.access import accesses_of
from assay.record.shapes.point import Point
from assay.run.simulate import simulate
from assay.targets.arrays.model.configuration import Configuration
from assay.workloads.io.activities import IoActivity
from assay.workloads.io.plan import IoPlan, IoSearch, load_plan

TIMING = {"warmup_s": 2, "duration_s": 6}
"""Virtual time of a point: tens of thousands of I/Os on an array of disks, so that its mean is within about 1 %."""
ENOUGH_IOS, SECONDS_MAX = 4000, 60.0
"""I/Os a replayed point should have, and the longest virtual time spent on them."""
FEWEST_IOS = 200
"""A mean of fewer latencies says little."""
MEASURED_MIN = 0.01
"""No measurement is taken for better than this share."""
FIRST_DEPTH, DEPTH_MAX = 4, 512
"""Where the look for a latency limit begins, and where it ends, in I/Os outstanding per volume."""
LOOKS_MAX = 5
PUBLISHED_SHARE = 0.04
"""What the steps of queue depth leave open in a published answer (reference of the method: 4 %)."""
SAME_SHARE = 0.25
"""Two measurements of the same that differ by more contradict each other."""


class AskedActivity(TypedDict, total=False):
    """An activity of a plan of I/O with its load; sizes in bytes, rates in I/Os a second, shares from 0 to 1."""

    block_bytes: int | dict[str, float]
    read_share: float
    random_share: float
    skew: str
    streams: int
    stride_bytes: int
    align_bytes: int
    region: list[float]
    queue_depth: int
    rate: float
    arrivals: str
    burst_interval_s: float
    burst_bytes: int
    burst_spread: float
    wave_period_s: float
    wave_share: float
    wave_peak: float
    outstanding: int
    workers: int


class Conditions(TypedDict):
    """What was varied of an observation; `fill` and shares are from 0 to 1."""

    raid: str
    members: int
    fill: float
    block_bytes: float
    read_share: float
    random_share: float


class _AtDepth(TypedDict):
    iops: float
    bytes_per_s: float
    worst_ns: float


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One measured or published point.

    Attributes
    ----------
    figures
        What was found: `iops`, `bytes_per_s`, `read_ns`, `write_ns`.
    noise_share
        How far the figures may be from a repetition, one standard deviation.
    """

    label: str
    configuration: Configuration
    plan: IoPlan
    figures: Mapping[str, float]
    noise_share: float
    limit_ns: float | None = None
    """The latency that reads and writes each may reach on average, of figures found by a search."""
    near: dict[str, int] = field(default_factory=dict)
    """Queue depth near the limit, where the next look begins."""

    def predicted(self, values: Mapping[str, float]) -> dict[str, float]:
        """The same figures of the model with parameters set, in base units."""
        configuration = self.configuration.with_values(values)
        if self.limit_ns is not None:
            found = self._at_limit(configuration, self.limit_ns)
        else:
            # What was measured decides whether a mean says enough; its counterpart is needed however few it rests on.
            found = point_figures(simulate(configuration, self.plan)[0][0], fewest=1)
        return {name: found.get(name, math.nan) for name in self.figures}

    def _at_limit(self, configuration: Configuration, limit_ns: float) -> dict[str, float]:
        """Throughput half a step of queue depth below where latency reaches the limit.

        A tester who raises the queue depth in whole steps stops anywhere between the limit and a step below it. In the
        logarithms latency is nearly a straight line over the load: two loads next to the limit tell where it is.
        """
        depth = self.near.get("depth", FIRST_DEPTH)
        for _ in range(LOOKS_MAX):
            low, high = (self._at_depth(configuration, each) for each in (depth, depth + 1))
            rise = max(math.log(high["worst_ns"] / low["worst_ns"]) / math.log((depth + 1) / depth), 0.05)
            at = depth * math.exp(math.log(limit_ns / low["worst_ns"]) / rise)
            wanted = max(int(min(at, 4 * depth, DEPTH_MAX)), 1)
            if wanted == depth or depth < at <= depth + 2:
                break
            depth = wanted
        self.near["depth"] = depth
        share = math.log(max(at - 0.5, 0.25) / depth) / math.log((depth + 1) / depth)
        return {
            "iops": low["iops"] * (high["iops"] / low["iops"]) ** share,
            "bytes_per_s": low["bytes_per_s"] * (high["bytes_per_s"] / low["bytes_per_s"]) ** share,
        }

    def _at_depth(self, configuration: Configuration, depth: int) -> _AtDepth:
        activity = {**self.plan.activity[0], "queue_depth": depth}
        plan = self.plan.model_copy(update={"activity": (activity,), "limits": (), "search": IoSearch()})
        point = simulate(configuration, plan)[0][0]
        total = point["total"]
        assert total is not None
        means = [side["latency_ns"]["mean"] for side in (point["read"], point["write"]) if side]
        worst_ns = max(mean for mean in means if mean is not None)
        return {"iops": total["iops"], "bytes_per_s": total["bytes_per_s"], "worst_ns": worst_ns}

    @property
    def judged(self) -> str:
        """The figure whose error is told: throughput, or latency where the throughput was given."""
        given = self.plan.activity[0].get("rate") is not None
        wanted = ("read_ns", "write_ns", "iops") if given else ("iops", "bytes_per_s")
        return next(name for name in wanted if name in self.figures)

    @property
    def conditions(self) -> Conditions:
        """What was varied, for the file and for error bands."""
        activity = self.plan.activity[0]
        return {
            "raid": self.configuration.raid,
            "members": self.configuration.members,
            "fill": round(self.configuration.fill, 3),
            "block_bytes": mean_block_bytes(activity),
            "read_share": activity.get("read_share", 1.0),
            "random_share": activity.get("random_share", 1.0),
        }


def mean_block_bytes(activity: Mapping[str, object]) -> float:
    """Mean block size of a plan's activity."""
    blocks = validated(IoActivity, dict(activity), "activity").blocks
    return sum(size * weight for size, weight in blocks.items()) / sum(blocks.values())


def point_figures(point: Point, *, fewest: int = FEWEST_IOS) -> dict[str, float]:
    """Throughput and mean latencies of a point, these where they rest on at least `fewest` I/Os."""
    figures: dict[str, float | None] = {"iops": point["total"]["iops"]} if point["total"] else {}
    for name, direction in (("read_ns", point["read"]), ("write_ns", point["write"])):
        if direction and direction["count"] >= fewest:
            figures[name] = direction["latency_ns"]["mean"]
    return {name: value for name, value in figures.items() if value}


def observations_of_run(path: Path, structure: Configuration) -> list[Observation]:
    """The points of a run, as if `structure` had had its volumes.

    Raises
    ------
    UsageError
        It holds no point that a model could be asked for, or points that contradict each other.
    RunFolderError
        It is no run folder.
    """
    folder = RunFolder.open(path)
    if any(part.get("target") for part in folder.manifest.get("parts") or []):
        raise UsageError(f"--from {path}: is a study of several targets; give a run of `assay profile` on the array")
    volumes = (folder.manifest.get("target") or {}).get("volumes")
    if not volumes or not all(volume.get("size_bytes") for volume in volumes):
        raise UsageError(f"--from {path}: the run has no volumes with their sizes")
    sizes = [volume["size_bytes"] for volume in volumes]
    placed = structure.with_options({"fill": None, "volumes": str(len(sizes)), "volume_size": f"{min(sizes)}"})
    return observations_of_points(current_points(folder.whole_points()), placed, f"--from {path}")


def observations_of_points(points: Sequence[Point], placed: Configuration, source: str) -> list[Observation]:
    """Observations of an array whose volumes are those of `placed`; repeats are one observation.

    Raises
    ------
    UsageError
        There is no point that a model could be asked for, or points contradict each other.
    """
    found = [_of_point(point, placed, source) for point in points if _is_usable(point)]
    if not found:
        raise UsageError(
            f"{source}: no point of one activity without errors and with a load generator that kept up; run `assay"
            " profile` on the array"
        )
    return _merge_repeats(found, source)


def _is_usable(point: Point) -> bool:
    workload = point["workload"]
    is_plain = workload["kind"] == "io" and "activities" not in workload and accesses_of(point)["sync"] == "none"
    whole = point["ended_by"] in ("steady", "time") and not point["errors"]["count"]
    return bool(is_plain and whole and point["total"] and not point["generator"].get("saturated"))


def _of_point(point: Point, placed: Configuration, source: str) -> Observation:
    workload, load = point["workload"], point["load"]
    activity = activity_of(point, len(placed.volumes))
    # A slow load needs longer for a mean that says as much.
    iops = point["total"]["iops"] if point["total"] else 0.0
    seconds = min(max(TIMING["duration_s"], ENOUGH_IOS / max(iops, 1.0)), SECONDS_MAX)
    timing = {**TIMING, "duration_s": seconds}
    plan = load_plan({"name": "point", "timing": timing, "activity": [activity]}, source=source)
    steady = point.get("steady")
    half_width = (steady.get("half_width_share") if steady else None) or 0.0
    described = load["queue_depth"] if "queue_depth" in load else f"{load.get('rate', 0):,.0f}/s"
    return Observation(
        label=f"{workload['name']}, load {described}",
        configuration=placed,
        plan=plan,
        figures=point_figures(point),
        noise_share=max(half_width / 1.96, MEASURED_MIN),
    )


def activity_of(point: Point, volumes: int) -> AskedActivity:
    """The activity of a plan that asks for a point again, its load included."""
    workload: Mapping[str, object] = point["workload"]
    load = point["load"]
    keys = ("block_bytes", "read_share", "random_share", "skew", "streams", "stride_bytes", "align_bytes", "region")
    access = {key: workload[key] for key in keys if workload.get(key) is not None}
    loads = ("queue_depth", "rate", "arrivals", "burst_interval_s", "burst_bytes", "burst_spread",
             "wave_period_s", "wave_share", "wave_peak")  # fmt: skip
    asked: Mapping[str, object] = load
    activity = cast(AskedActivity, access | {key: asked[key] for key in loads if key in asked})
    outstanding, workers = load.get("outstanding") or 0, load.get("workers") or 1
    if outstanding % workers:
        del activity["queue_depth"]
        activity["outstanding"] = outstanding
    activity["workers"] = max(round(workers / volumes), 1)
    return activity


def _merge_repeats(found: Sequence[Observation], source: str) -> list[Observation]:
    """One observation for each condition and load, its figures the means of repeats.

    Raises
    ------
    UsageError
        Repeats differ too much to be measurements of the same.
    """
    groups: dict[str, list[Observation]] = {}
    for observation in found:
        groups.setdefault(observation.plan.model_dump_json(), []).append(observation)
    merged = []
    for group in groups.values():
        names = set.intersection(*(set(observation.figures) for observation in group))
        for name in sorted(names):
            values = [observation.figures[name] for observation in group]
            if max(values) > (1 + SAME_SHARE) * min(values):
                raise UsageError(
                    f"{source}: points contradict each other: {group[0].label} gave {name} of"
                    f" {min(values):,.0f} and of {max(values):,.0f}; measure again, longer"
                )
        figures = {
            name: math.exp(sum(math.log(observation.figures[name]) for observation in group) / len(group))
            for name in names
        }
        merged.append(
            Observation(
                label=group[0].label,
                configuration=group[0].configuration,
                plan=group[0].plan,
                figures=figures,
                noise_share=max(observation.noise_share for observation in group),
            )
        )
    return merged


def observations_of_published(
    structure: Configuration, path: Path | None
) -> tuple[list[Observation], list[Observation]]:
    """Published figures of an array: those to fit to, and those to check by.

    Raises
    ------
    UsageError
        The file is not of this form, or has none of this array to fit to.
    """
    fitted: list[Observation] = []
    held: list[Observation] = []
    for point in read_published(path).point:
        if point.array == structure.model.name and point.can_be_fitted_to:
            (fitted if point.fit else held).append(_of_published(point, structure))
    if not fitted:
        raise UsageError(f"--from {path or 'published.toml'}: no point of {structure.model.name} is marked fit = true")
    _refuse_contradictions(fitted, str(path or "published.toml"))
    return fitted, held


def _of_published(point: PublishedPoint, structure: Configuration) -> Observation:
    options = {key: str(value) for key, value in point.target.items()}
    plan = {"name": point.id, "timing": {**TIMING, **point.timing}, "activity": [point.activity]}
    assert point.value is not None
    return Observation(
        label=point.title,
        configuration=structure.with_options(options),
        plan=load_plan(plan, source=f"published point {point.id}"),
        figures={point.figure: point.value},
        noise_share=PUBLISHED_SHARE,
        limit_ns=_latency_limit(point),
    )


def _latency_limit(point: PublishedPoint) -> float | None:
    """The one mean latency that the point's limits name for reads and writes."""
    limits = [limit for limit in parse_limits(point.limits) if limit.metric == "mean"]
    if not point.limits:
        return None
    values = {limit.value for limit in limits}
    if len(values) != 1 or len(limits) != len(point.limits):
        raise UsageError(f"published point {point.id}: only one limit of mean latency can be fitted to")
    return values.pop()


def _refuse_contradictions(found: Sequence[Observation], source: str) -> None:
    seen: dict[str, Observation] = {}
    for observation in found:
        plan = observation.plan.model_dump(mode="json") | {"name": ""}
        key = f"{observation.configuration.target_text} {plan}"
        before = seen.setdefault(key, observation)
        for name, value in observation.figures.items():
            other = before.figures.get(name, value)
            if max(value, other) > (1 + SAME_SHARE) * min(value, other):
                raise UsageError(
                    f"--from {source}: points contradict each other: {before.label!r} and {observation.label!r} ask"
                    f" the same and give {name} of {other:,.0f} and {value:,.0f}"
                )


def guess_black_box(observations: Sequence[Observation]) -> dict[str, float]:
    """Where the fit of a black box begins: the shortest latencies, and the I/Os under way at the highest rate.

    The latter is Little's law: throughput times latency.
    """
    reads = [each.figures["read_ns"] for each in observations if "read_ns" in each.figures]
    writes = [each.figures["write_ns"] for each in observations if "write_ns" in each.figures]
    latency_ns = min([*writes, *(read_ns / 2 for read_ns in reads)])
    served_ns = max(min(reads, default=2 * latency_ns) - latency_ns, 100.0)
    servers = max(each.figures["iops"] for each in observations) * served_ns / 1e9
    return {
        "links.latency": latency_ns,
        "disk.read_time": served_ns,
        "disk.program_time": served_ns,
        "disk.channels": float(min(max(round(servers), 1), 4096)),
    }
