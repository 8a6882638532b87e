"""From an array of the catalogue and the options of `assay model reliability` to the question that is assessed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from assay.base.errors import UsageError
from assay.targets.arrays.model.configuration import DISKS_MAX, Configuration
from assay.targets.arrays.model.flash import program_bytes_per_s
from assay.targets.arrays.model.model_file import ModelFile, load_model, refuse_other_structures
from assay.targets.arrays.model.options import parse_model_target, read_option
from assay.targets.arrays.model.plan import DiskPlan
from assay.targets.arrays.model.reliability import (
    SET_DISKS_USUAL,
    Input,
    PolicyLayout,
    ReliabilityQuestion,
    ratio_bases,
    with_range,
)

RebuildHours = Callable[[Configuration], float]
"""Hours from the loss of a disk until it is rebuilt, of an array in one configuration."""

OF_NO_EFFECT = ("volumes", "volume_size", "fill", "state", "start")
"""Options that say what is stored and in which state the array is now; neither decides how long data last."""
TRIALS_MIN, TRIALS_MAX = 1000, 100_000_000
STATED = "stated geometry"
"""Basis of the ratios between layouts that were given as a list."""
_SETS = re.compile(r"(?:([0-9]{1,4})x)?([0-9]{1,4})\+([12])")
FAST_REVOLUTION_NS = 6_100_000
"""Revolution of a disk of 10,000 rpm, rounded up: data sheets put faster and slower disks in different classes."""


@dataclass(frozen=True, kw_only=True)
class ReliabilityOptions:
    """The options, read; None where not given."""

    array: str
    mtbf_h: float | None = None
    ber: float | None = None
    latent_rate: float | None = None
    scrub_h: float | None = None
    rebuild_h: float | None = None
    years: float = 5.0
    policies: Sequence[str] = ()
    layouts: Sequence[str] = ()
    trials: int = 200_000
    seed: int = 1
    failure_shape: float | None = None

    def __post_init__(self) -> None:
        if self.ber is not None and self.latent_rate is not None:
            raise UsageError("--ber and --latent-rate exclude each other: both say how data become unreadable")
        if self.scrub_h is not None and self.latent_rate is None:
            raise UsageError("--scrub: needs --latent-rate; a bit error rate knows no scrubs")
        if self.layouts and self.policies:
            raise UsageError("--layout and --policy exclude each other: a layout says its policy")
        if not (math.isfinite(self.years) and 0 < self.years <= 1000):
            raise UsageError(f"--years: {self.years:g} is not above 0 and at most 1000")
        if not TRIALS_MIN <= self.trials <= TRIALS_MAX:
            raise UsageError(f"--trials: {self.trials} is not from {TRIALS_MIN:,} to {TRIALS_MAX:,}")
        if not 0 <= self.seed < 2**64:
            raise UsageError(f"--seed: {self.seed} is not from 0 to 2**64 - 1")
        shape = self.failure_shape
        if shape is not None and not 0.2 <= shape <= 20:
            raise UsageError(f"--failure-shape: {shape:g} is not from 0.2 to 20")


def question_of(asked: ReliabilityOptions, rebuild_hours: RebuildHours | None = None) -> ReliabilityQuestion:
    """The question for an array of the catalogue or a file.

    Parameters
    ----------
    rebuild_hours
        The model's rebuild; without it the least a disk needs, as if nothing else were asked of it.

    Raises
    ------
    UsageError
        There is no such array, it is a black box, or its disks cannot carry any policy or one that is asked for.
    """
    name, options = parse_model_target(asked.array)
    model = load_model(name)
    refuse_other_structures(model, "model reliability")
    offered, unfit = _configurations(model, options)
    for policy in asked.policies:
        if policy in unfit:
            raise unfit[policy]
    usual = offered.get(options.get("raid", model.default_raid).lower()) or next(iter(offered.values()))
    hours = rebuild_hours or (lambda configuration: least_rebuild_h(configuration.member_plan["disk"]))

    def rebuild_of(configuration: Configuration) -> float:
        if asked.rebuild_h is not None:
            return asked.rebuild_h
        # RAID 0 does not outlive a disk, which is replaced and written anew.
        return least_rebuild_h(member["disk"]) if configuration.raid == "0" else hours(configuration)

    member = usual.member_plan
    own = {one: _layout(offered[one], rebuild_of(offered[one])) for one in offered}
    rebuilt = {one: layout.rebuild_h for one, layout in own.items() if one != "0"}
    disks, set_disks = member["disks"] - member["spares"], _set_disks(own, member["disks"] - member["spares"])
    five = own.get("50" if disks >= 2 * set_disks else "5")
    elsewhere_h = rebuilt.get(usual.raid) or next(iter(rebuilt.values()), own[usual.raid].rebuild_h)
    rebuilds = {
        "dp": own["dp"].rebuild_h if "dp" in own else elsewhere_h,
        "10": own["10"].rebuild_h if "10" in own else elsewhere_h,
        "5": five.rebuild_h if five else elsewhere_h,
    }
    bases = ratio_bases(disks, set_disks, rebuilds)
    notices = [f"RAID {one.upper()} is left out: {error}" for one, error in unfit.items()]
    if disks < set_disks and not asked.layouts:
        notices.append(f"{disks} disks make no double-parity set: the ratios are for sets of {set_disks}")
    if usual.members > 1:
        notices.append(f"the figures are for one member; data spread over {usual.members} are lost with any of them")
    added = [] if disks < set_disks else bases["same disks"]
    if asked.layouts:
        layouts = [_stated(text, own, rebuilds) for text in asked.layouts]
        bases = stated_bases(layouts)
        notices.append(f"the layouts are those of --layout, not of the {disks} disks of {model.name}")
    else:
        layouts = _chosen(
            asked.policies, own, added, PolicyLayout(policy="0", disks=disks, set_disks=0, rebuild_h=elsewhere_h)
        )
    longest_h = max(one.rebuild_h for one in (*layouts, *(one for basis in bases.values() for one in basis)))
    mtbf = _mtbf_input(asked, member["disk"])
    if longest_h >= mtbf.low:
        raise UsageError(
            f"--rebuild: {longest_h:g} h is not shorter than the MTBF, which may be as short as {mtbf.low:,.0f} h"
        )
    rebuild = _rebuild_input(asked, longest_h, modelled=rebuild_hours is not None and bool(rebuilt))
    # Beyond half of the MTBF no formula means anything.
    rebuild = replace(rebuild, high=max(min(rebuild.high, mtbf.low / 2), longest_h))
    return ReliabilityQuestion(
        array={"name": model.name, "title": model.title, "target": usual.target_text, "disks": disks},
        disk_bytes=member["disk"]["capacity_bytes"],
        years=asked.years,
        inputs=[mtbf, rebuild, *_unreadable_inputs(asked, member["disk"])],
        layouts=layouts,
        bases=bases,
        trials=asked.trials,
        seed=asked.seed,
        failure_shape=asked.failure_shape,
        notices=notices,
    )


def _configurations(
    model: ModelFile, options: Mapping[str, str]
) -> tuple[dict[str, Configuration], dict[str, UsageError]]:
    """The array under each policy it offers, and why not under those that its disks do not carry."""
    if model.parameters["disk.capacity"].source.startswith("unknown"):
        raise UsageError(
            f"model: {model.name} is a black box, whose disks and RAID are not known, nor how long data last on them;"
            " calibrate it with --structure NAME, and then ask"
        )
    for key in OF_NO_EFFECT:
        if key in options:
            read_option(key, options[key])
    kept = {key: text for key, text in options.items() if key not in OF_NO_EFFECT}
    for key in ("raid", "members"):
        if ":" in kept.get(key, ""):
            raise UsageError(
                f"model: {key}={kept[key]}: how long data last is asked of one pool; give {key} of that one"
            )
    if "raid" in kept:
        # A policy that is asked for must be one, and fit.
        _ = Configuration(model=model, options=kept).usable_bytes
    offered, unfit = {}, {}
    for one in model.policies:
        try:
            offered[one] = Configuration(model=model, options={**kept, "raid": one})
        except UsageError as error:
            unfit[one] = error
    if not offered:
        raise next(iter(unfit.values()))
    return offered, unfit


def _layout(configuration: Configuration, rebuild_h: float) -> PolicyLayout:
    member = configuration.member_plan
    raid = member["raid"]
    return PolicyLayout(
        policy=raid["policy"],
        disks=member["disks"] - member["spares"],
        set_disks=raid["set_disks"],
        rebuild_h=rebuild_h,
    )


def _stated(text: str, own: Mapping[str, PolicyLayout], rebuild_h: Mapping[str, float]) -> PolicyLayout:
    """A layout such as `7+1`, `1+1`, `6+2`, or `4x1+1` for four of them."""
    match = _SETS.fullmatch(text.strip().lower())
    sets, data, parity = (int(number or 1) for number in match.groups()) if match else (0, 0, 0)
    if not 0 < sets * (data + parity) <= DISKS_MAX or not data:
        raise UsageError(
            f"--layout: {text!r} is no layout of at most {DISKS_MAX} disks; accepted: DATA+PARITY with 1 or 2 of"
            " parity, such as 7+1, 1+1, 6+2, or 4x1+1 for four of them"
        )
    in_set = data + parity
    if parity == 2:
        return PolicyLayout(
            policy="dp", disks=sets * in_set, set_disks=in_set, rebuild_h=rebuild_h["dp"], offered="dp" in own
        )
    if data == 1:
        return PolicyLayout(policy="10", disks=2 * sets, set_disks=0, rebuild_h=rebuild_h["10"], offered="10" in own)
    five = "5" if sets == 1 else "50"
    return PolicyLayout(
        policy=five, disks=sets * in_set, set_disks=in_set, rebuild_h=rebuild_h["5"], offered=five in own
    )


def stated_bases(layouts: Sequence[PolicyLayout]) -> dict[str, tuple[PolicyLayout, ...]]:
    """What ratios can be given between stated layouts: DP : 10 : 5 where there is one of each."""
    kinds = [[one for one in layouts if one.policy in names] for names in (("dp",), ("10",), ("5", "50"))]
    return {STATED: tuple(of_kind[0] for of_kind in kinds)} if all(len(of_kind) == 1 for of_kind in kinds) else {}


def _set_disks(own: Mapping[str, PolicyLayout], disks: int) -> int:
    """Width of the parity sets to compare: the array's own, double parity first."""
    for name in ("dp", "60", "6", "50", "5"):
        if name in own:
            return own[name].set_disks
    return disks if disks >= 4 else SET_DISKS_USUAL


def _chosen(
    policies: Sequence[str], own: Mapping[str, PolicyLayout], added: Sequence[PolicyLayout], plain: PolicyLayout
) -> list[PolicyLayout]:
    """Layouts to assess: the array's own, those of the ratios it does not offer, or only the ones asked for."""
    laid_out = {one.policy for one in own.values()}
    others = [replace(one, offered=False) for one in added if one.policy not in laid_out]
    if not policies:
        return [*own.values(), *others]
    chosen = []
    for name in dict.fromkeys(policies):
        if name in own:
            chosen.append(own[name])
            continue
        found = next((one for one in (*others, *own.values()) if one.policy == name), None)
        width = added[0].set_disks if added and name in ("50", "60", "dp") else 0
        chosen.append(
            found
            or PolicyLayout(policy=name, disks=plain.disks, set_disks=width, rebuild_h=plain.rebuild_h, offered=False)
        )
    return chosen


def least_rebuild_h(disk: DiskPlan) -> float:
    """Hours to write a disk once from end to end with nothing else asked of it."""
    if disk["kind"] == "mechanical":
        rate = (disk["rate_outer_bytes_per_s"] + disk["rate_inner_bytes_per_s"]) / 2
    elif disk["kind"] == "solid-state":
        rate = program_bytes_per_s(disk["flash"])
    else:
        rate = disk["interface_bytes_per_s"]
    return float(disk["capacity_bytes"] / min(rate, disk["interface_bytes_per_s"]) / 3600)


def _mtbf_input(asked: ReliabilityOptions, disk: DiskPlan) -> Input:
    if asked.mtbf_h is not None:
        value, from_, source = asked.mtbf_h, "option", "--mtbf or --afr"
    elif disk["kind"] != "mechanical":
        value, from_, source = 2e6, "assumed", "data sheets of data-centre SSDs state about 2 million hours"
    elif disk["revolution_ns"] <= FAST_REVOLUTION_NS:
        value, from_, source = 1.6e6, "assumed", "data sheets of Savvio 15K.1 and Cheetah 15K.7: 0.55 % a year"
    else:
        value, from_, source = 1.2e6, "assumed", "data sheets of 7,200 rpm enterprise disks state about that"
    why = "4 % a year as replaced in the field (Schroeder, Gibson, FAST 07) to 0.44 % (Savvio 10K.4 data sheet)"
    return _input("mtbf", "MTBF", value, "h", from_, source, 220_000, 2e6, why)


def _rebuild_input(asked: ReliabilityOptions, longest_h: float, *, modelled: bool) -> Input:
    if asked.rebuild_h is not None:
        from_, source = "option", "--rebuild"
    elif modelled:
        from_, source = "model", "a rebuild in the array's model, the longest of its policies"
    else:
        least = "the disk written once with nothing else asked of it: no rebuild is faster"
        why = "from undisturbed to one twentieth of the rate beside host load (assumed)"
        return _input("rebuild", "rebuild", longest_h, "h", "assumed", least, longest_h, 20 * longest_h, why)
    why = "half to four times: the load beside it and the time until a spare is there (assumed)"
    return _input("rebuild", "rebuild", longest_h, "h", from_, source, longest_h / 2, 4 * longest_h, why)


def _unreadable_inputs(asked: ReliabilityOptions, disk: DiskPlan) -> list[Input]:
    if asked.latent_rate is not None:
        rate, given = asked.latent_rate, asked.scrub_h is not None
        scrub_h = asked.scrub_h if asked.scrub_h is not None else 168.0
        latent_why = (
            "a tenth to four times, the spread of read-error rates over three studies (Elerath, CACM 52(6), 2009)"
        )
        scrub_from = ("option", "--scrub") if given else ("assumed", "a scrub a week")
        return [
            _input("latent_rate", "latent defects", rate, "per h", "option", "--latent-rate", rate / 10, 4 * rate,
                   latent_why),
            _input("scrub", "scrub period", scrub_h, "h", *scrub_from, scrub_h / 2, 4 * scrub_h,
                   "half to four times (assumed)"),
        ]  # fmt: skip
    if asked.ber is not None:
        value, from_, source = asked.ber, "option", "--ber"
    elif disk["kind"] != "mechanical":
        value, from_, source = 1e-17, "assumed", "data sheets of data-centre SSDs: 1 sector in 10^17 bits"
    elif disk["revolution_ns"] <= FAST_REVOLUTION_NS:
        value, from_ = 1e-16, "assumed"
        source = "data sheets of Savvio 15K.1 and 10K.4 and of Cheetah 15K.7: 1 sector in 10^16 bits"
    else:
        value, from_, source = 1e-15, "assumed", "data sheets of 7,200 rpm enterprise disks: 1 sector in 10^15 bits"
    why = "one class of data sheets better and worse"
    return [_input("ber", "bit error rate", value, "per bit", from_, source, value / 10, min(value * 10, 0.1), why)]


def _input(
    key: str, title: str, value: float, unit: str, from_: str, source: str, low: float, high: float, why: str
) -> Input:
    stated = Input(
        key=key, title=title, value=value, unit=unit, from_=from_, source=source, low=value, high=value, why=""
    )
    return with_range(stated, low, high, why)
