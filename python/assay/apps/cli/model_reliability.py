"""`assay model reliability`: how long the data last under each RAID policy, and what that hangs on."""

from __future__ import annotations

import json as json_module
import math
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.console import print_end
from assay.base.errors import UsageError
from assay.base.units import format_years, parse_percent
from assay.record.shapes.study import Reliability
from assay.targets.arrays.model.reliability import HOURS_A_YEAR, Assess, assess_question, refuse_unknown_policy

EXAMPLES = """
Examples:

`assay model reliability ps6100xv`

`assay model reliability fas2040 --afr 3% --rebuild 18h --latent-rate 1.08e-4 --scrub 7d --policy dp,10,5`

`assay model reliability sata-jbod --layout 7+1,1+1,6+2`
"""

T = TypeVar("T")

DISKS, REPAIR = "Disks", "Repair"
_HOURS = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,3})?\s*([a-z]*)\s*", re.IGNORECASE)
_HOUR_UNITS = {"": 1.0, "h": 1.0, "min": 1 / 60, "d": 24.0, "y": HOURS_A_YEAR}


@usual("--mtbf", "--afr", "--ber", "--rebuild", "--scrub", "--years", "--policy", "--layout", "--json", "--report")
def reliability(
    array: Annotated[str, typer.Argument(metavar="ARRAY", help="An array of the catalogue, or a model file.")],
    mtbf: Annotated[
        str | None, typer.Option(help="Mean time between failures of a disk: 1.2e6h, 140y.", rich_help_panel=DISKS)
    ] = None,
    afr: Annotated[
        str | None, typer.Option(help="Instead of --mtbf: failures a year, 0.73%.", rich_help_panel=DISKS)
    ] = None,
    ber: Annotated[
        str | None, typer.Option(help="Unreadable data: errors per bit read, 1e-15.", rich_help_panel=DISKS)
    ] = None,
    latent_rate: Annotated[
        str | None,
        typer.Option(help="Instead of --ber: latent defects per disk and hour, 1.08e-4.", rich_help_panel=DISKS),
    ] = None,
    failure_shape: Annotated[
        float | None,
        typer.Option(help="What if disks aged: Weibull shape of their lives, 1 is no ageing.", rich_help_panel=DISKS),
    ] = None,
    rebuild: Annotated[
        str | None,
        typer.Option(help="Rebuild time of a lost disk (default: from the model).", rich_help_panel=REPAIR),
    ] = None,
    scrub: Annotated[
        str | None, typer.Option(help="With --latent-rate: period of scrubs (168h).", rich_help_panel=REPAIR)
    ] = None,
    years: Annotated[float, typer.Option(help="Service life, years.")] = 5.0,
    policy: Annotated[list[str] | None, typer.Option(help="Only these RAID policies: dp,10,5.")] = None,
    layout: Annotated[
        list[str] | None, typer.Option(help="These sets of disks instead of the array's own: 7+1,1+1,6+2.")
    ] = None,
    trials: Annotated[int, typer.Option(help="Cycles of the Monte Carlo check of each policy.")] = 200_000,
    seed: opt.Seed = None,
    title: opt.Title = None,
    output: opt.Output = opt.OUTPUT_DEFAULT,
    json: opt.Json = False,
    report: opt.Report = True,
    debug: opt.Debug = False,
) -> None:
    """Mean time to data loss and probability of loss, by RAID policy, with the inputs beside them."""
    del debug
    from assay.apps.cli.exporting import keep_answer
    from assay.insight.calibration.rebuild import rebuild_hours
    from assay.targets.arrays.model.reliability_question import ReliabilityOptions, question_of

    asked = ReliabilityOptions(
        array=array,
        mtbf_h=_mtbf(mtbf, afr),
        ber=_rate(ber, "--ber", most=1.0),
        latent_rate=_rate(latent_rate, "--latent-rate", most=1e3),
        scrub_h=None if scrub is None else parse_hours(scrub, what="--scrub"),
        rebuild_h=None if rebuild is None else parse_hours(rebuild, what="--rebuild"),
        years=years,
        policies=tuple(refuse_unknown_policy(name) for text in policy or () for name in text.split(",")),
        layouts=tuple(text for texts in layout or () for text in texts.split(",")),
        trials=trials,
        seed=1 if seed is None else seed,
        failure_shape=failure_shape,
    )
    question = question_of(asked, rebuild_hours)
    answer = interruptible(lambda: assess_question(question, compiled_assess()))
    folder = keep_answer("model-reliability", "reliability", answer, output, report=report, title=title)
    _show(answer, folder, json=json)


def _show(answer: Reliability, folder: Path, *, json: bool) -> None:
    if json:
        document = {"schema_version": 1, "verb": "model reliability", "run_folder": str(folder), "reliability": answer}
        print(json_module.dumps(document, allow_nan=False, indent=1))
    else:
        print_answer(answer)
        print_end(folder, {"reliability": answer})


def interruptible(work: Callable[[], T]) -> T:
    """What `work` returns or raises; a signal raises here at once, while compiled code that knows none goes on.

    A process that ends does not wait for it.
    """
    returned: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            returned.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return returned[0]


def compiled_assess() -> Assess:
    """The assessment of crates/array-model."""
    from assay import _core

    return _core.reliability


def parse_hours(text: str, *, what: str) -> float:
    """Hours from `1.2e6h`, `90min`, `7d`, `140y`; a bare number is hours.

    Raises
    ------
    UsageError
        It is no time, or not above 0.

    Examples
    --------
    >>> parse_hours("1.2e6h", what="--mtbf"), parse_hours("7d", what="--scrub")
    (1200000.0, 168.0)
    """
    match = _HOURS.fullmatch(text)
    factor = _HOUR_UNITS.get(match[3].lower()) if match else None
    if match is None or factor is None:
        raise UsageError(f"{what}: {text!r} is not a time; accepted: a number with min, h, d or y")
    hours = float(match[1] + (match[2] or "")) * factor
    if not 0 < hours <= 1e11:
        raise UsageError(f"{what}: {text} is not above 0 and at most 1e11 h")
    return hours


def _mtbf(mtbf: str | None, afr: str | None) -> float | None:
    if mtbf is not None and afr is not None:
        raise UsageError("--mtbf and --afr exclude each other: both say how often a disk fails")
    if mtbf is not None:
        return parse_hours(mtbf, what="--mtbf")
    if afr is None:
        return None
    share = parse_percent(afr, what="--afr")
    if not 1e-9 <= share < 1:
        raise UsageError(f"--afr: {afr} is not above 0 and below 100 %")
    return -HOURS_A_YEAR / math.log1p(-share)


def _rate(text: str | None, what: str, *, most: float) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{what}: {text!r} is not a number; accepted: such as 1e-15") from None
    if not 0 < value < most:
        raise UsageError(f"{what}: {text} is not above 0 and below {most:g}")
    return value


# Output


def print_answer(answer: Reliability) -> None:
    """Policies and their ratios on standard output; where its inputs come from is in the report."""
    from assay.document.elements import Paragraph
    from assay.document.terminal import notes, show, table
    from assay.targets.arrays.model.reliability_text import inputs_sentence, policy_columns, policy_rows, ratio_sentence

    years = format_years(answer["service_years"])
    show(
        [
            *(Paragraph(ratio_sentence(ratio, answer)) for ratio in answer["ratios"]),
            table(f"Reliability of {answer['array']['title']}", policy_columns(answer), policy_rows(answer)),
            Paragraph(f"Loss is the probability in {years}; MTTDL the mean time to data loss."),
            Paragraph(f"Inputs: {inputs_sentence(answer)}."),
            notes(answer["notices"]),
        ]
    )
