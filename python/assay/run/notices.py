"""What a reader must know before believing the figures of a run. Works on whatever a run holds, whole or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from assay.base.tables import Record
from assay.base.units import count_of, format_bytes, format_duration, format_share
from assay.record.drive_health import notes_of
from assay.record.standstill import overdriven_words, stood_still_s, were_apart
from assay.record.state import UNKNOWN, state_words, states_of
from assay.record.steady import judged_steady
from assay.workloads.registry import figures_of

NAMES_SHOWN = 4
AT_BASELINE = "at baseline"
"""State of a served volume of a cloud whose credits are used up."""

IMPORTED = "imported"
"""State of volumes that another program measured."""

_STATES = {
    "fresh": "fresh: written once before reading; flash that has been written over for hours can be slower",
    "written": "written over by earlier runs",
    # What older runs called that.
    "preconditioned": "written over by earlier runs",
    IMPORTED: "in what state they were is not told",
    "unknown": "in a state Assay did not make and does not know",
}


class RunNotice(NamedTuple):
    """One notice: its text and how bad it is."""

    text: str
    tone: Literal["bad", "warn", "plain"]


def notices_of(points: Sequence[Record], target: Record, answers: Sequence[Record] = ()) -> list[RunNotice]:
    """Notices that follow from points and target: errors, saturation, rates, steadiness, state, caches.

    Searches rest on no saturated point; what was measured at one load alone has no other point to rest on.
    """
    searched = {point_id for answer in answers for point_id in answer.get("point_ids") or ()}
    drives = [RunNotice(*note) for note in notes_of(target.get("drives") or [])]
    return [
        *_of_points(points, searched), *drives, *_of_states(points), *_of_flash(points, target), *_of_target(target)
    ]  # fmt: skip


def _of_flash(points: Sequence[Record], target: Record) -> Iterable[RunNotice]:
    """Wear of modelled drives of flash in all points together, and the points in which heat slowed them down."""
    arrays = [(point.get("id"), point.get("array") or {}) for point in points]
    written = sum(array.get("drive_written_bytes") or 0.0 for _, array in arrays)
    programmed = sum(array.get("programmed_bytes") or 0.0 for _, array in arrays)
    if written and programmed:
        capacity = (target.get("array") or {}).get("raw_bytes")
        worn = f" ({written / capacity:.2g} drive writes)" if capacity else ""
        yield RunNotice(
            f"the modelled drives were sent {format_bytes(written)} in the measured time{worn} and programmed"
            f" {format_bytes(programmed)}: write amplification {programmed / written:.2f}",
            "plain",
        )
    hot = {point_id: share for point_id, array in arrays if (share := array.get("throttled_share"))}
    if hot:
        yield RunNotice(
            f"the modelled drives throttled to cool down in {id_list(list(hot))}, for up to"
            f" {format_share(max(hot.values()))} of the time: disk.heat and disk.cooling_rate decide",
            "warn",
        )


def _of_states(points: Sequence[Record]) -> Iterable[RunNotice]:
    """The states that runs brought their targets into; of others the files say in what state they are."""
    known = [state for state in states_of(points) if state.get("name") != UNKNOWN]
    for state in known:
        parts = list(state.get("parts") or [])
        where = f" ({', '.join(map(str, parts[:NAMES_SHOWN]))}{', ...' if len(parts) > NAMES_SHOWN else ''})"
        text = f"measured on a target that was {state_words(state)}{where if len(known) > 1 else ''}"
        yield RunNotice(text, "warn" if state.get("name") == "unsteady" else "plain")


def gravest_first(
    texts: Iterable[str], points: Sequence[Record], target: Record, answers: Sequence[Record] = ()
) -> list[str]:
    """Notices of a run, those that question its figures before those that say how it was made."""
    graves: dict[str, str | None] = dict(notices_of(points, target, answers))
    return sorted(texts, key=lambda text: ("bad", "warn", "plain", None).index(graves.get(text)))


def id_list(ids: Sequence[object]) -> str:
    """A few ids in full, many with their count."""
    shown = ", ".join(str(found) for found in ids[:6])
    return f"{shown} and {count_of(len(ids) - 6, 'more point')}" if len(ids) > 6 else shown


def _of_points(points: Sequence[Record], searched: Collection[object]) -> Iterable[RunNotice]:
    def ids(condition: Any) -> list[object]:
        return [point.get("id") for point in points if condition(point)]

    def within(key: str, inner: str) -> Any:
        return lambda point: (point.get(key) or {}).get(inner)

    failing = ids(within("errors", "count"))
    if failing:
        kinds: Counter[str] = Counter()
        for point in points:
            kinds.update(
                {str(kind): int(n) for kind, n in ((point.get("errors") or {}).get("kinds") or {}).items() if n}
            )
        listed = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common()) or "kinds not recorded"
        what = {figures[0].failed for point in points if point.get("id") in failing and (figures := figures_of(point))}
        yield RunNotice(f"{what.pop() if len(what) == 1 else 'errors'} in {id_list(failing)}: {listed}", "bad")
    hung = ids(lambda point: point.get("ended_by") == "not-answering")
    if hung:
        yield RunNotice(f"the target stopped answering in {id_list(hung)}", "bad")
    if stood_still := ids(stood_still_s):
        longest = max(stood_still_s(point) for point in points)
        yield RunNotice(
            f"the load generator stood still in {id_list(stood_still)}, for up to {format_duration(longest)} (stopped,"
            " suspended or starved of CPU): latencies of these points are not the device's, and no search rests on"
            " them",
            "warn",
        )
    if apart := ids(were_apart):
        yield RunNotice(
            f"hosts began or ended too far apart in {id_list(apart)} (together.skewed): no search rests on them;"
            " measure longer, or see what delays a host",
            "warn",
        )
    saturated = ids(
        lambda point: (
            _gives_answers(point)
            and not stood_still_s(point)
            and not were_apart(point)
            and not overdriven_words(point)
            and within("generator", "saturated")(point)
        )
    )
    if left_out := [one for one in saturated if one in searched]:
        yield RunNotice(
            f"the load generator was the bottleneck in {id_list(left_out)}: no search rests on them", "warn"
        )
    if alone := [one for one in saturated if one not in searched]:
        yield RunNotice(
            f"the load generator was the bottleneck in {id_list(alone)}: the load had too little processor time, so"
            " that the storage may do more than these points show",
            "warn",
        )
    behind = ids(lambda point: (point.get("offered") or {}).get("sustained") is False)
    if behind:
        yield RunNotice(f"the offered rate was not sustained in {id_list(behind)}", "warn")
    yield from _of_credits(points)
    yield from _of_late_arrays(points)
    yield from _of_unsteady(points)


def _of_credits(points: Sequence[Record]) -> Iterable[RunNotice]:
    """Volumes of a cloud whose credits ended within a point."""
    ended: dict[str, list[object]] = {}
    for point in points:
        for served in point.get("served") or ():
            for event in served.get("events") or ():
                if event.get("state") == AT_BASELINE:
                    ended.setdefault(str(event.get("what")), []).append(point.get("id"))
    for what, ids in ended.items():
        yield RunNotice(
            f"{what} ({id_list(list(dict.fromkeys(ids)))}): figures of such a point are of the burst and of what came"
            " after it; credits=0 shows what lasts",
            "warn",
        )


def _of_late_arrays(points: Sequence[Record]) -> Iterable[RunNotice]:
    if late := [point.get("id") for point in points if overdriven_words(point)]:
        yield RunNotice(
            f"the served array was overdriven in {id_list(late)}: this host answered later than the array's model, so"
            " that these points say nothing of the array; ask for less, or serve it on a host with more processors",
            "warn",
        )


def _of_unsteady(points: Sequence[Record]) -> Iterable[RunNotice]:
    steady = [(point.get("id"), *judged_steady(point)) for point in points]
    if unsteady := [(point_id, words) for point_id, reached, words in steady if reached is False]:
        judged = sum(reached is not None for _, reached, _ in steady)
        first = f" ({unsteady[0][0]})" if len(unsteady) > 1 else ""
        yield RunNotice(
            f"{len(unsteady)} of {judged} points reached no steady state before their time was up:"
            f" {id_list([point_id for point_id, _ in unsteady])}; {unsteady[0][1]}{first}",
            "warn",
        )


def _gives_answers(point: Record) -> bool:
    """Whether points of its kind ask as much as they can, or as they should, so that answers rest on them."""
    return any(figure.in_answers for figure in figures_of(point))


def _of_target(target: Record) -> Iterable[RunNotice]:
    states: dict[str, list[Record]] = {}
    for volume in target.get("volumes") or []:
        if volume.get("kind") not in ("null", "model", "database"):
            states.setdefault(str(volume.get("state") or "unknown"), []).append(volume)
    arrays = {volume.get("host") for volume in target.get("volumes") or [] if volume.get("kind") == "model"} - {None}
    if len(arrays) > 1:
        yield RunNotice(
            f"each of {len(arrays)} hosts had a modelled array of its own: figures are of {len(arrays)} arrays"
            " together",
            "warn",
        )
    for state, volumes in states.items():
        size = format_bytes(sum(volume.get("size_bytes") or 0 for volume in volumes))
        laid = format_bytes(sum(volume.get("bytes_laid_out") or 0 for volume in volumes))
        names = ", ".join(str(volume.get("name") or "?")[:40] for volume in volumes[:NAMES_SHOWN])
        more = f" and {len(volumes) - NAMES_SHOWN} more" if len(volumes) > NAMES_SHOWN else ""
        text = f"measured on {size} ({names}{more}), {laid} of it laid out by this run; {_STATES.get(state, state)}"
        if state == IMPORTED:
            known = "" if any(not volume.get("size_bytes") for volume in volumes) else f" of {size} in all"
            text = f"measured on {names}{more}{known}; {_STATES[state]}"
        yield RunNotice(text, "plain")
    if (states or target.get("array")) and target.get("cache_notice"):
        yield RunNotice(str(target["cache_notice"]), "plain")
