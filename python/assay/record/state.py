"""The state in which a target was measured, in words, and whether two states may be compared (docs/precondition.md)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from assay.base.units import count_of, format_share
from assay.record.shapes.state import RunState, TargetState

UNKNOWN = "unknown"
"""Of a target that this run did not bring into a state."""

NAMES = {
    "purged": "purged: nothing was written since",
    "filled": "filled: written in sequence since it was purged, or since it was used last",
    "unsteady": "preconditioned, and not steady",
    "steady": "in steady state",
    UNKNOWN: "unknown: this run did not precondition it",
}

DISCLAIMER = (
    "The steps and the criterion follow the SNIA Solid State Storage Performance Test Specification (PTS) 2.0.2. This"
    " is not a PTS report: the run is not certified, and rounds, durations and loads differ where the text says so."
)


def state_of(point: Mapping[str, object]) -> TargetState:
    """The state of the target when a point began; unknown in older runs."""
    return cast("TargetState", point.get("state") or {"name": UNKNOWN})


def states_of(points: Iterable[Mapping[str, object]]) -> list[RunState]:
    """Every state in which points were measured, once, with the parts of the points."""
    found: list[RunState] = []
    for point in points:
        state, part = state_of(point), str(point.get("part") or "")
        known = next((one for one in found if {**one, "parts": None} == {**state, "parts": None}), None)
        if known is None:
            known = cast("RunState", {**state, "parts": []})
            found.append(known)
        parts = cast("list[str]", known["parts"])
        if part not in parts:
            parts.append(part)
    return found


def state_words(state: TargetState | RunState) -> str:
    """A state in words.

    Examples
    --------
    >>> state_words({"name": "steady", "method": "full", "purge": "discard", "fills": 2, "rounds": 6,
    ...              "excursion_share": 0.081, "slope_share": -0.02})
    'in steady state (purge: discard, 2 sequential fills, 6 rounds; excursion 8.1 %, slope 2.0 % of the average)'
    >>> state_words({"name": "steady", "method": "short", "purge": "none", "fills": 1})
    'in steady state by the shortened way, not checked by rounds (purge: none, 1 sequential fill)'
    """
    name = str(state.get("name") or UNKNOWN)
    told = NAMES.get(name, name)
    if name == UNKNOWN:
        return told
    if state.get("method") == "model":
        return f"{told.partition(':')[0]}, as the model begins"
    if state.get("method") == "short" and name == "steady":
        told += " by the shortened way, not checked by rounds"
    did = [f"purge: {state.get('purge') or 'none'}"]
    did += [count_of(fills, "sequential fill") for fills in [state.get("fills")] if fills]
    did += [count_of(rounds, "round") for rounds in [state.get("rounds")] if rounds]
    excursion, slope = state.get("excursion_share"), state.get("slope_share")
    judged = ""
    if excursion is not None and slope is not None:
        judged = f"; excursion {format_share(excursion, 1)}, slope {format_share(abs(slope), 1)} of the average"
    files = "; only its files were written, not the rest of the drive" if state.get("only_files") else ""
    return f"{told.partition(':')[0]} ({', '.join(did)}{judged}{files})"


def apart(states: Sequence[Sequence[RunState]]) -> tuple[str, str] | None:
    """Two states, of two runs, whose figures do not compare, in words; None where all do.

    A state that is not known is compared with any: nothing says that it differs.
    """
    names = [{str(state.get("name")) for state in own} - {UNKNOWN} for own in states]
    for own, others in itertools.pairwise(names):
        if own and others and not own & others:
            return NAMES.get(min(own), min(own)), NAMES.get(min(others), min(others))
    return None
