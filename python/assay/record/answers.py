"""Answers of searches in words: where to run, how far the limits hold, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from assay.base.tables import Record
from assay.base.units import count_of, format_bytes
from assay.record.common_figures import share_words
from assay.record.figures import Figure
from assay.record.limits import bounded_figures, parse_limits
from assay.record.points import MEMORY_AXIS

if TYPE_CHECKING:
    from assay.record.shapes.point import End


KNEE_SHARE = 0.95
"""The knee is the smallest load with this share of the most throughput; more load buys waiting, hardly throughput."""


def load_words(load: float, axis: str) -> str:
    """A load on an axis.

    Examples
    --------
    >>> load_words(96, "outstanding"), load_words(1, "users"), load_words(2500.0, "rate")
    ('at 96 outstanding', 'with 1 user', 'at 2,500 arrivals per s')
    >>> load_words(3.4142, "speed")
    'at speed 3.41'
    >>> load_words(73.41, "outstanding"), load_words(1 << 26, "memory_bytes")
    ('at 73.4 outstanding', 'with 64 MiB of memory')
    """
    number = f"{load:,.1f}".removesuffix(".0")
    if axis == "rate":
        return f"at {number} arrivals per s"
    if axis == "speed":
        return f"at speed {load:.3g}"
    if axis == MEMORY_AXIS:
        return f"with {format_bytes(load)} of memory"
    if axis == "outstanding":
        return f"at {number} outstanding"
    return f"with {count_of(int(load), axis.removesuffix('s'))}" if load == int(load) else f"with {number} {axis}"


KNOWN_SHARE = 0.5
"""How much is held is not known where the 95 % interval reaches below this share of it."""
LONGER = "measure longer points, or repeat them"
"""What makes an interval narrower."""


def is_vague(value: float | None, interval_95: Sequence[float] | None) -> bool:
    """Whether a value may as well be less than half of what it says.

    Examples
    --------
    >>> is_vague(2352.0, [0.0, 5204.0]), is_vague(3251.0, [3062.0, 3427.0]), is_vague(3251.0, None)
    (True, False, False)
    """
    return value is not None and interval_95 is not None and interval_95[0] < KNOWN_SHARE * value


def repeats_against(end: Record | None, *, holds: bool = True) -> str:
    """How many repeats at a load met every limit; empty where they agree with the answer, or were not counted.

    Examples
    --------
    >>> repeats_against({"repeats": 6, "repeats_met": 2}), repeats_against({"repeats": 6, "repeats_met": 6})
    ('2 of 6 repeats', '')
    """
    of, held = (end or {}).get("repeats"), (end or {}).get("repeats_met")
    return f"{held} of {count_of(of, 'repeat')}" if of and held != (of if holds else 0) else ""


def repeats_words(answer: Record) -> list[str]:
    """Where repeats at the loads of an answer disagree with it: the mean of all of them decides.

    Examples
    --------
    >>> best, failing = ({"outstanding": at, "repeats": 6, "repeats_met": met} for at, met in ((43, 2), (45, 0)))
    >>> repeats_words({"axis": "outstanding", "max": best, "edge": best, "first_failing": failing})
    ['at 43 outstanding 2 of 6 repeats met every limit, the mean of all does']
    """
    axis, told = str(answer["axis"]), []
    for name in ("max", "edge", "first_failing"):
        end, holds = answer.get(name), name != "first_failing"
        if end and (counted := repeats_against(end, holds=holds)):
            how = "does" if holds else "does not"
            told.append(f"{load_words(end[axis], axis)} {counted} met every limit, the mean of all {how}")
    return list(dict.fromkeys(told))


def answer_words(answer: Record, figure: Figure, latencies: Sequence[Figure]) -> str:
    """What follows the most throughput in a sentence: the knee with its latency, the edge, and what is not sure.

    Parameters
    ----------
    answer
        The answer. One of an older Assay has neither knee nor edge, which gives no words.
    figure
        What was searched for.
    latencies
        What users of a load wait (`Figure.at_ends`).
    """
    axis, best, knee, edge = str(answer["axis"]), answer["max"], answer.get("knee"), answer.get("edge")
    told = []
    if knee:
        waits = ", ".join(f"{one.title} {one.words(value)}" for one in latencies if (value := knee.get(one.name)))
        held = f"knee {figure.words(knee[figure.name])} {load_words(knee[axis], axis)}"
        told.append(("the knee as well" if knee[axis] == best[axis] else held) + (f" ({waits})" if waits else ""))
    if edge and edge[axis] != best[axis]:
        told.append(edge_words(answer))
    return "".join(f"; {text}" for text in [*repeats_words(answer), *told, *_doubts(answer, axis)])


def least_words(answer: Record, figures: Iterable[Figure]) -> str:
    """The answer of a search over memory: what its limits found with the least of it, and with the next less.

    Parameters
    ----------
    figures
        Those of the kind.
    """
    own = [*figures]
    bounded, limits = bounded_figures(own), parse_limits(answer.get("limits") or (), own)

    def told(end: Record, *, missed: bool, otherwise: str) -> str:
        known = [(limit, figure, end[figure.name]) for limit in limits
                 if end.get((figure := bounded[limit.name]).name) is not None]  # fmt: skip
        words = [figure.words(value) for limit, figure, value in known if limit.met_by(value) is not missed]
        return " and ".join(words) or otherwise

    edge, failing = answer.get("edge"), answer.get("first_failing")
    fails = ""
    if failing:
        less = told(failing, missed=True, otherwise=f"a limit is missed ({answer.get('limited_by')})")
        fails = f"with {format_bytes(failing[MEMORY_AXIS])} {less}"
    if not edge:
        return f"no memory that was tried meets the limits: {fails}"
    holds = told(edge, missed=False, otherwise="the limits are met")
    return (
        f"{holds} from {format_bytes(edge[MEMORY_AXIS])} of memory on; {fails or 'that was the least that was tried'}"
    )


def edge_words(answer: Record) -> str:
    """How far the limits are met: the edge of an answer that has one.

    Examples
    --------
    >>> edge_words({"axis": "outstanding", "edge": {"outstanding": 640}})
    'limits met up to 640 outstanding'
    """
    axis = str(answer["axis"])
    return f"limits met up to {load_words(answer['edge'][axis], axis).partition(' ')[2]}"


def end_value(end: End | None, figure: Figure) -> float | None:
    """A figure at a load of a search; None where the load is not known, or the figure was not measured there."""
    return cast("Mapping[str, float | None]", end).get(figure.name) if end else None


def answer_marks(answer: Record) -> dict[Any, str]:
    """What a curve writes beside the points of an answer, by their ids: most, knee, edge, or several of them.

    Examples
    --------
    >>> answer_marks({"max": {"point_id": "p4"}, "knee": {"point_id": "p3"}, "edge": {"point_id": "p4"}})
    {'p4': 'most, edge', 'p3': 'knee'}
    """
    marks: dict[Any, str] = {}
    for key, mark in (("max", "most"), ("knee", "knee"), ("edge", "edge")):
        if answer.get(key):
            point_id = answer[key].get("point_id")
            marks[point_id] = f"{marks[point_id]}, {mark}" if point_id in marks else mark
    return marks


def _doubts(answer: Record, axis: str) -> list[str]:
    """That a step of load or the noise is wider than the resolution, and where the limit is then crossed."""
    crossing, step_share = answer.get("crossing"), answer.get("step_share")
    doubts = []
    if step_share is not None and step_share > answer["resolution_share"]:
        doubts.append(f"one step of load is {share_words(step_share)} at the edge")
    if answer.get("undecided"):
        doubts.append("repeats did not decide the edge")
    if doubts and crossing:
        interval = " to ".join(load_words(end, axis).split(" ")[1] for end in crossing.get("interval_95") or ())
        within = f" (95 % interval {interval})" if interval else ""
        doubts.append(f"limit crossed {load_words(crossing[axis], axis)}{within}")
    return doubts


def named_part(title: str | None, name: str) -> str:
    """What was asked, with the title of its part before, where the name does not begin with it.

    Examples
    --------
    >>> named_part("Queries on DuckDB", "TPC-H-like, tpch"), named_part("Database mix", "Database mix, 4 workers")
    ('Queries on DuckDB: TPC-H-like, tpch', 'Database mix, 4 workers')
    """
    return name if not title or name.casefold().startswith(title.casefold()) else f"{title}: {name}"


def names_of(answer: Record, parts: Iterable[Record]) -> tuple[str, str]:
    """What the line of an answer may be called: by its workload alone, and with its part before."""
    name = str(answer["workload"].get("name"))
    title = next((part.get("title") for part in parts if part.get("name") == answer.get("part")), None)
    return name, named_part(title, name)


def without_brackets(text: str) -> str:
    """A text to stand in brackets.

    Examples
    --------
    >>> without_brackets("100 MiB/s (105 MB/s)")
    '100 MiB/s, 105 MB/s'
    """
    return text.replace(" (", ", ").removesuffix(")")
