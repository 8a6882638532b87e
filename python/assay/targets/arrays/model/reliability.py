"""How long an array's data last under each RAID policy, and how far that hangs on what is not known for certain.

The formulas and the simulation are those of crates/array-model/src/reliability. This file makes their inputs, with
provenance and plausible ranges, the layouts, and the ratios DP : 10 : 5 over those ranges (docs/reliability.md).
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict

from assay.base.errors import UsageError
from assay.base.reading import nearest
from assay.base.units import count_of
from assay.record.shapes.study import Array, ByInput, Closed, Curve, Policy, Ratio, Reliability, Simulated
from assay.record.shapes.study import Input as InputFacts

Assess = Callable[[str], str]
"""The compiled assessment: a `Request` of crates/array-model/src/reliability as JSON to its `Outcome`."""

HOURS_A_YEAR = 8760.0
POLICY_TITLES = {"0": "RAID 0", "1": "RAID 1", "10": "RAID 10", "5": "RAID 5", "50": "RAID 50", "6": "RAID 6",
                 "60": "RAID 60", "dp": "RAID-DP"}  # fmt: skip
SET_DISKS_USUAL = 16
"""Width of the parity sets that ratios are for where the array has too few disks for one: 14+2, usual with RAID-DP."""
CURVE_STEPS = 9
"""Values of an input over its range that loss probabilities are computed at."""


@dataclass(frozen=True, kw_only=True)
class Input:
    """A number the answer hangs on.

    Attributes
    ----------
    key
        `mtbf`, `rebuild`, `ber`, `latent_rate` or `scrub`.
    unit
        `h`, `per bit` or `per h`.
    from_
        `data sheet`, `assumed`, `model`, or `option` where the user gave it.
    low, high
        Ends of the plausible range, which holds the value; `why` says where the range is from.
    """

    key: str
    title: str
    value: float
    unit: str
    from_: str
    source: str
    low: float
    high: float
    why: str

    def facts(self) -> InputFacts:
        """The input as documents carry it."""
        return {
            "key": self.key, "title": self.title, "value": self.value, "unit": self.unit, "from": self.from_,
            "source": self.source, "low": self.low, "high": self.high, "range_source": self.why,
        }  # fmt: skip


class LayoutRequest(TypedDict):
    """A layout as the compiled assessment takes it; rebuilds in hours."""

    policy: str
    disks: int
    set_disks: int
    rebuild_h: float


class DiskGroups(TypedDict):
    """What the disks of a layout make: groups, the disks of each, and the lost ones each survives."""

    groups: int
    group_disks: int
    tolerates: int


class AssessedLayout(DiskGroups):
    """What the closed forms of the compiled assessment tell of a layout."""

    policy: str
    data_disks: int
    unreadable: float
    closed: Closed


class SimulatedLayout(AssessedLayout):
    """What the compiled assessment tells of a layout that it simulated."""

    simulated: Simulated
    aged: Simulated | None


class RatioSpan(TypedDict):
    """The least and the largest of the ratios 10 to DP and 5 to DP."""

    ten: list[float]
    five: list[float]


@dataclass(frozen=True, kw_only=True)
class PolicyLayout:
    """Disks under one policy; `set_disks` 0 is all of them, `offered` whether the array's maker offers it."""

    policy: str
    disks: int
    set_disks: int
    rebuild_h: float
    offered: bool = True

    def request(self, factor: float) -> LayoutRequest:
        """The layout as the compiled assessment takes it, rebuilds `factor` times as long."""
        return {
            "policy": self.policy, "disks": self.disks, "set_disks": self.set_disks,
            "rebuild_h": self.rebuild_h * factor,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ReliabilityQuestion:
    """The question about an array.

    Attributes
    ----------
    array
        Name and title, for readers of the answer.
    inputs
        `mtbf`, `rebuild`, and `ber` or `latent_rate` with `scrub`. The value of `rebuild` is what its range is for;
        hours are those of each layout.
    layouts
        What to assess.
    bases
        What the ratios DP : 10 : 5 compare, by name: three layouts in that order.
    failure_shape
        Weibull shape of disks' lives, for what would be if their failure rate changed with age; None: not asked.
    """

    array: Array
    disk_bytes: int
    years: float
    inputs: Sequence[Input]
    layouts: Sequence[PolicyLayout]
    bases: Mapping[str, Sequence[PolicyLayout]]
    trials: int = 200_000
    seed: int = 1
    failure_shape: float | None = None
    notices: Sequence[str] = field(default_factory=list)

    def request(
        self, layouts: Sequence[PolicyLayout], values: Mapping[str, float], *, trials: int = 0, ages: bool = False
    ) -> str:
        """The request for some layouts with some inputs replaced."""
        stated = {one.key: one.value for one in self.inputs}
        used = {**stated, **values}
        if "ber" in used:
            unreadable = {"kind": "bit-errors", "rate": used["ber"]}
        else:
            unreadable = {"kind": "latent-defects", "rate_per_h": used["latent_rate"], "scrub_h": used["scrub"]}
        # Restores as Elerath and Pecht found them: shape 2 beyond a least time of a third of the mean.
        ageing = {"failure_shape": self.failure_shape, "restore_shape": 2.0, "restore_least": 1 / 3}
        return json.dumps(
            {
                "inputs": {
                    "mtbf_h": used["mtbf"],
                    "disk_bytes": self.disk_bytes,
                    "unreadable": unreadable,
                    "service_h": self.years * HOURS_A_YEAR,
                },
                "layouts": [layout.request(used["rebuild"] / stated["rebuild"]) for layout in layouts],
                "trials": trials,
                "seed": self.seed,
                "ageing": ageing if ages and self.failure_shape is not None else None,
            }
        )


def refuse_unknown_policy(policy: str) -> str:
    """Policy as the compiled assessment names it.

    Raises
    ------
    UsageError
        There is no such policy.
    """
    name = policy.strip().lower().removeprefix("raid").lstrip("- ")
    if name not in POLICY_TITLES:
        close = nearest(name, list(POLICY_TITLES))
        hint = f"did you mean {close!r}? " if close else ""
        raise UsageError(f"--policy: unknown RAID policy {policy!r}; {hint}accepted: {', '.join(POLICY_TITLES)}")
    return name


def ratio_bases(disks: int, set_disks: int, rebuild_h: Mapping[str, float]) -> dict[str, tuple[PolicyLayout, ...]]:
    """Layouts for the ratios DP : 10 : 5, once on the same disks and once with the same data.

    Parameters
    ----------
    disks
        Disks in use.
    set_disks
        Disks of a double-parity set; as many sets as the disks make are compared.
    rebuild_h
        Hours of a rebuild by policy (`dp`, `10`, `5`).

    Examples
    --------
    >>> bases = ratio_bases(16, 16, {"dp": 8.3, "10": 8.3, "5": 8.3})
    >>> [(layout.policy, layout.disks) for layout in bases["same data"]]
    [('dp', 16), ('10', 28), ('5', 15)]
    """
    sets = max(disks // set_disks, 1)
    used, five = sets * set_disks, "5" if sets == 1 else "50"

    def three(pairs: int, five_disks: int) -> tuple[PolicyLayout, ...]:
        return (
            PolicyLayout(policy="dp", disks=used, set_disks=set_disks, rebuild_h=rebuild_h["dp"]),
            PolicyLayout(policy="10", disks=2 * pairs, set_disks=0, rebuild_h=rebuild_h["10"]),
            PolicyLayout(policy=five, disks=sets * five_disks, set_disks=five_disks, rebuild_h=rebuild_h["5"]),
        )

    bases = {"same disks": three(used // 2, set_disks)}
    if set_disks >= 4:  # three disks make no RAID 5 of one disk fewer
        bases["same data"] = three(sets * (set_disks - 2), set_disks - 1)
    return bases


def assess_question(question: ReliabilityQuestion, assess: Assess) -> Reliability:
    """The whole answer as one JSON object; docs/reliability.md has its keys.

    Raises
    ------
    UsageError
        The disks cannot carry a policy, or an input has a value that no disk has.
    """
    text = assess(question.request(question.layouts, {}, trials=question.trials, ages=True))
    outcome: list[SimulatedLayout] = json.loads(text)["layouts"]
    policies: list[Policy] = [
        {
            "policy": layout.policy,
            "title": POLICY_TITLES[layout.policy],
            "offered": layout.offered,
            "rebuild_h": layout.rebuild_h,
            "groups_text": groups_text(found),
            **found,
        }
        for layout, found in zip(question.layouts, outcome, strict=True)
    ]
    return {
        "array": question.array.copy(),
        "disk_bytes": question.disk_bytes,
        "service_years": question.years,
        "inputs": [one.facts() for one in question.inputs],
        "trials": question.trials,
        "seed": question.seed,
        "failure_shape": question.failure_shape,
        "policies": policies,
        "ratios": [_ratios(question, basis, assess) for basis in question.bases],
        "curves": _curves(question, assess),
        "notices": [*question.notices, *_disagreement(policies)],
    }


def _disagreement(policies: Sequence[Policy]) -> list[str]:
    """What to say of policies whose closed form the simulation does not bear out."""
    titles = [one["title"] for one in policies if not one["simulated"]["agrees"]]
    if not titles:
        return []
    return [
        f"{', '.join(titles)}: the closed form is not in the interval of the simulation; it holds only while a rebuild"
        " is short against the time between failures. Rely on the simulation, and not on the ratios"
    ]


def _assessed(
    question: ReliabilityQuestion, layouts: Sequence[PolicyLayout], values: Mapping[str, float], assess: Assess
) -> list[AssessedLayout]:
    """What the closed forms tell of layouts, with some inputs replaced."""
    found: list[AssessedLayout] = json.loads(assess(question.request(layouts, values)))["layouts"]
    return found


def _ratios(question: ReliabilityQuestion, basis: str, assess: Assess) -> Ratio:
    """Ratios of one basis: with the stated inputs, with each input at the ends of its range, over all combinations."""

    def at(values: Mapping[str, float]) -> tuple[float, float]:
        found = _assessed(question, question.bases[basis], values, assess)
        dp, ten, five = (one["closed"]["mttdl_h"] for one in found)
        return dp / ten, dp / five

    def span(pairs: Sequence[tuple[float, float]]) -> RatioSpan:
        ten, five = zip(*pairs, strict=True)
        return {"ten": [min(ten), max(ten)], "five": [min(five), max(five)]}

    stated = at({})
    by_input: list[ByInput] = []
    for one in question.inputs:
        pairs = [at({one.key: end}) for end in (one.low, one.high)]
        by_input.append({"input": one.key, **span([*pairs, stated])})
    corners = itertools.product(
        *([(one.key, end) for end in (one.low, one.value, one.high)] for one in question.inputs)
    )
    together = span([at(dict(corner)) for corner in corners])
    found = _assessed(question, question.bases[basis], {}, assess)
    return {
        "basis": basis,
        "layouts": [
            {"policy": layout.policy, "title": POLICY_TITLES[layout.policy], "groups_text": groups_text(one), **one}
            for layout, one in zip(question.bases[basis], found, strict=True)
        ],
        "ten": stated[0],
        "five": stated[1],
        "ten_range": together["ten"],
        "five_range": together["five"],
        "by_input": by_input,
    }


def _curves(question: ReliabilityQuestion, assess: Assess) -> list[Curve]:
    """Loss probability of every layout over the range of each input, the others as stated."""
    rows: list[Curve] = []
    for one in question.inputs:
        for value in steps(one.low, one.value, one.high):
            found = _assessed(question, question.layouts, {one.key: value}, assess)
            rows += [
                {
                    "input": one.key,
                    "value": value,
                    "policy": layout.policy,
                    "stated": value == one.value,
                    "loss_probability": result["closed"]["loss_probability"],
                }
                for layout, result in zip(question.layouts, found, strict=True)
            ]
    return rows


def steps(low: float, value: float, high: float) -> list[float]:
    """Values evenly spread over a range on a logarithmic scale, the stated one among them.

    Examples
    --------
    >>> [round(step, 6) for step in steps(1.0, 3.0, 1.0e4)]
    [1.0, 3.0, 3.162278, 10.0, 31.622777, 100.0, 316.227766, 1000.0, 3162.27766, 10000.0]
    """
    if high <= low:
        return [value]
    share = [step / (CURVE_STEPS - 1) for step in range(CURVE_STEPS)]
    even = [low * (high / low) ** part for part in share]
    return sorted({value, *(step for step in even if not math.isclose(step, value, rel_tol=1e-9))})


def groups_text(found: DiskGroups) -> str:
    """What the disks of a layout make.

    Examples
    --------
    >>> groups_text({"groups": 2, "group_disks": 11, "tolerates": 2, "data_disks": 18})
    '2 sets of 9+2'
    >>> groups_text({"groups": 11, "group_disks": 2, "tolerates": 1, "data_disks": 11})
    '11 mirrored pairs'
    """
    groups, disks, parity = found["groups"], found["group_disks"], found["tolerates"]
    if parity == 0:
        return f"{disks} disks" if disks != 1 else "1 disk"
    if disks == 2:
        return f"{groups} mirrored pairs" if groups != 1 else "1 mirrored pair"
    return f"{count_of(groups, 'set')} of {disks - parity}+{parity}"


def with_range(one: Input, low: float, high: float, why: str) -> Input:
    """The input with a plausible range, made wide enough to hold the value."""
    return replace(one, low=min(low, one.value), high=max(high, one.value), why=why)
