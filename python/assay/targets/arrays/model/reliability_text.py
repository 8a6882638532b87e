"""How figures of reliability read, on the terminal and in the report."""

from __future__ import annotations

import math

from assay.record.shapes.study import Input, Ratio, Reliability, Simulated
from assay.targets.arrays.model.reliability import HOURS_A_YEAR


def three_digits(value: float) -> str:
    """A number to three significant digits, thousands separated.

    Examples
    --------
    >>> three_digits(4253.03), three_digits(0.046), three_digits(156.04), three_digits(2.5e9)
    ('4,250', '0.046', '156', '2.5 billion')
    """
    for factor, word in ((1e12, " trillion"), (1e9, " billion"), (1e6, " million")):
        if factor <= value < 1e15:
            return f"{value / factor:.3g}{word}"
    if value >= 1e15 or 0 < value < 1e-3:
        return f"{value:.2e}"
    if value >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def show_probability(share: float) -> str:
    """A probability in percent, or as one in so many where percents would be mostly zeros.

    Examples
    --------
    >>> show_probability(0.04585), show_probability(1.1e-5)
    ('4.58 %', '1 in 90,900')
    """
    if share >= 0.001:
        return f"{share * 100:.3g} %"
    return f"1 in {three_digits(1 / share)}" if share > 0 else "none"


def show_years(hours: float) -> str:
    """Hours as years."""
    return f"{three_digits(hours / HOURS_A_YEAR)} years"


def show_input(one: Input, value: float | None = None) -> str:
    """An input's value, or another of its range, with the unit.

    Examples
    --------
    >>> show_input({"value": 1.6e6, "unit": "h"}), show_input({"value": 1e-15, "unit": "per bit"})
    ('1,600,000 h', '1e-15 per bit')
    """
    shown = one["value"] if value is None else value
    if shown < 1e-3:
        digits, power = f"{shown:.2e}".split("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(power)} {one['unit']}"
    return f"{shown:,.0f} {one['unit']}" if shown >= 1000 else f"{shown:.3g} {one['unit']}"


def inputs_sentence(answer: Reliability) -> str:
    """Every input in one line, to stand beside each ratio."""
    words = [f"{one['title']} {show_input(one)} ({one['from']})" for one in answer["inputs"]]
    return "; ".join([*words, f"disks of {answer['disk_bytes'] / 1e9:,.4g} GB"])


def ratio_sentence(ratio: Ratio, answer: Reliability) -> str:
    """The ratios of one basis with what they compare, the inputs, and how far they range."""
    dp, ten, five = (f"{one['title']}: {one['groups_text']}" for one in ratio["layouts"])
    ranges = [f"{three_digits(low)} to {three_digits(high)}" for low, high in (ratio["ten_range"], ratio["five_range"])]
    inputs = ", ".join(f"{one['title']} {show_input(one)}" for one in answer["inputs"])
    return (
        f"Data losses DP : 10 : 5 on the {ratio['basis']} = 1 : {three_digits(ratio['ten'])} :"
        f" {three_digits(ratio['five'])} ({dp}; {ten}; {five}) with {inputs}; over the plausible ranges of these inputs"
        f" 1 : {ranges[0]} : {ranges[1]}."
    )


def policy_columns(answer: Reliability) -> list[str]:
    """Headings of the table by policy."""
    loss = f"loss in {answer['service_years']:g} years"
    ages = [f"{loss}, disks ageing (95 %)"] if answer["failure_shape"] is not None else []
    return ["policy", "disks", "rebuild", "MTTDL", loss, f"{loss}, Monte Carlo (95 %)", "agree", *ages]


def policy_rows(answer: Reliability) -> list[list[str]]:
    """Rows of the table by policy, as text."""
    rows = []
    for one in answer["policies"]:
        simulated = one["simulated"]
        aged = one["aged"] if answer["failure_shape"] is not None else None
        ages = [_estimate(aged)] if aged is not None else []
        rows.append(
            [
                one["title"] + ("" if one["offered"] else " (not offered)"),
                one["groups_text"],
                f"{one['rebuild_h']:.3g} h" if one["tolerates"] else "none",
                show_years(one["closed"]["mttdl_h"]),
                show_probability(one["closed"]["loss_probability"]),
                _estimate(simulated),
                "yes" if simulated["agrees"] else "NO",
                *ages,
            ]
        )
    return rows


def _estimate(found: Simulated) -> str:
    """A probability with half its 95 % interval, as a share of it."""
    low, high = found["loss_interval_95"]
    half = math.sqrt(high / low) - 1 if low > 0 else 0.0
    return f"{show_probability(found['loss_probability'])} ± {round(half * 100, 3):.2g} % of it"


def input_rows(answer: Reliability) -> list[list[str]]:
    """Rows of the table of inputs, as text."""
    return [
        [
            one["title"],
            show_input(one),
            one["from"],
            one["source"],
            f"{show_input(one, one['low'])} to {show_input(one, one['high'])}",
            one["range_source"],
        ]
        for one in answer["inputs"]
    ]
