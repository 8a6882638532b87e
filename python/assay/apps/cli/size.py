"""`assay size`: what to buy for a need, stated or measured, and why."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.taken import taken_now
from assay.base.errors import ExitCode, UsageError
from assay.base.units import parse_percent
from assay.document.text import DASH

if TYPE_CHECKING:
    from assay.document.elements import Block
    from assay.document.terminal import Details
    from assay.insight.sizing.answer import Sized
    from assay.insight.sizing.measured import MeasuredDemand
    from assay.insight.sizing.need import NeedAsWritten
    from assay.record.shapes.sizing import Sizing

EXAMPLES = """
Examples:

`assay size --template > need.toml; assay size need.toml`

`assay size need.toml --set growth=40% --set limits.read=10ms`

`assay size need.toml --class drive --class cloud --prices our-prices.toml`

`assay size --from assay-recording --percentile 95`

`assay size need.toml --from assay-results/RUN --derating assay-results/STUDY`

`assay size need.toml --hit-curve assay-results/CACHE-SIZE --set server.hit=97%`
"""

MEASURED = "Measured needs"

Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--class",
        help="Classes of the catalogue to ask: drive, array, cloud, study (default: all of today's); may be repeated.",
    ),
]
Prices = Annotated[
    Path | None,
    typer.Option("--prices", help="Your own prices in TOML, which replace list prices of the same name."),
]
Derating = Annotated[
    Path | None,
    typer.Option(
        "--derating",
        help="Measured derating: a run of study raw-vs-database (default: 22 %).",
        rich_help_panel=MEASURED,
    ),
]
HitCurve = Annotated[
    Path | None,
    typer.Option(
        "--hit-curve",
        help="A run of study cache-size on a database: how hits grow with memory.",
        rich_help_panel=MEASURED,
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate",
        help="Required transactions (or I/Os) per second, in the mix of --from RUN.",
        min=1e-3,
        max=1e9,
        rich_help_panel=MEASURED,
    ),
]
Volumes = Annotated[
    list[str] | None,
    typer.Option("--volume", help="Role of a device in imported files: data=D:,log=sdb.", rich_help_panel=MEASURED),
]
MeasuredFrom = Annotated[
    Path | None,
    typer.Option("--from", help="Take the load from this recording, trace or run.", rich_help_panel=MEASURED),
]


@usual("--template", "--set", "--class", "--prices", "--from", "--sensitivity", "-o", "--json")
def size(
    need: Annotated[
        Path | None,
        typer.Argument(metavar="[NEED]", help="A need in TOML; --template prints one.", show_default=False),
    ] = None,
    template: Annotated[bool, typer.Option("--template", help="Print a need to fill in.")] = False,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="What if: KEY=VALUE, such as growth=40%; may be repeated.")
    ] = None,
    measured_from: MeasuredFrom = None,
    percentile: Annotated[
        str, typer.Option("--percentile", help="Percentile taken over the busiest hours.", rich_help_panel=MEASURED)
    ] = "95",
    busiest: Annotated[int, typer.Option("--busiest", help="Number of busiest hours.", rich_help_panel=MEASURED)] = 10,
    rate: Rate = None,
    short: Annotated[
        bool, typer.Option("--short", help="Accept less than an hour of recording.", rich_help_panel=MEASURED)
    ] = False,
    volume: Volumes = None,
    derating: Derating = None,
    hit_curve: HitCurve = None,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity/--no-sensitivity", help="Find what would change the purchase.")
    ] = True,
    classes: Classes = None,
    prices: Prices = None,
    title: opt.Title = None,
    output: opt.Output = opt.OUTPUT_DEFAULT,
    json: opt.Json = False,
    report: opt.Report = True,
    quiet: opt.Quiet = False,
    details: opt.Details = False,
    debug: opt.Debug = False,
) -> None:
    """Say what to buy for a need: what costs least, is smallest or is fastest, and why others do not hold it."""
    del debug
    if template:
        from assay.insight.sizing.need import template as need_template

        print(need_template(), end="")
        return
    from assay.apps.cli.console import say
    from assay.apps.cli.model_reliability import interruptible
    from assay.insight.sizing.allowance import ALL_IOS
    from assay.insight.sizing.answer import difference
    from assay.insight.sizing.answer import size as size_need
    from assay.insight.sizing.candidates import book_for
    from assay.insight.sizing.judge import Judge

    asked, measured = _asked(need, measured_from, percentile, busiest, volume or [], short=short, rate=rate)
    asked = _with_classes(asked, classes or [])
    asked, changed = _with_studies(asked, changes, derating, hit_curve)
    book = book_for((changed or asked).need, prices)
    judge = Judge()
    # Two needs have what one has.
    ios = ALL_IOS if changed is None else ALL_IOS / 2

    def tell(text: str) -> None:
        if not quiet and not json:
            say(text)

    def work() -> tuple[Sized | None, Sized]:
        before = None  # without its what-ifs: only those of the changed need are told
        if changed is not None:
            before = size_need(asked, judge, measured=measured, what_if=False, ios=ios, book=book, tell=tell)
        return before, size_need(
            changed or asked, judge, measured=measured, what_if=sensitivity, ios=ios, book=book, tell=tell
        )

    try:
        before, sized = interruptible(work)
    except BaseException:
        judge.interrupt.set()
        raise
    answer = sized.answer
    answer["difference"] = difference(before.answer, answer, changes or ()) if before is not None else None
    _keep_and_show(answer, output, title, report=report, json=json, quiet=quiet, details=details)


def _with_classes(asked: NeedAsWritten, classes: Sequence[str]) -> NeedAsWritten:
    """The need with the classes that are asked.

    Raises
    ------
    UsageError
        There is no such class, or the need states what may be bought.
    """
    from assay.insight.sizing.need import NeedAsWritten, need_of

    if not classes:
        return asked
    if asked.need.candidate:
        raise UsageError("--class and a [[candidate]] of the need contradict each other; give one of them")
    table = {**asked.table, "classes": [name for one in classes for name in one.split(",")]}
    return NeedAsWritten(table, asked.source, need_of(table, "--class"), asked.origins)


def _with_studies(
    asked: NeedAsWritten, changes: Sequence[str] | None, derating: Path | None, hit_curve: Path | None
) -> tuple[NeedAsWritten, NeedAsWritten | None]:
    """The need with what studies found, and as it is changed."""
    if derating is not None:
        from assay.insight.sizing.measured_need import derating_of

        for keys, value, origin in derating_of(derating):
            asked = asked.with_value(keys, value, origin)
    changed = asked.with_changes(changes) if changes else None
    if hit_curve is not None:
        from assay.insight.sizing.hit_curve import cache_study, with_hit_curve

        study = cache_study(hit_curve)
        asked = with_hit_curve(asked, study)
        changed = with_hit_curve(changed, study) if changed is not None else None
    return asked, changed


def _keep_and_show(
    answer: Sizing, output: Path, title: str | None, *, report: bool, json: bool, quiet: bool, details: bool
) -> None:
    """Keep the answer as a run folder, print it, and exit as it says."""
    from assay.apps.cli.console import print_end
    from assay.apps.cli.exporting import keep_answer
    from assay.document.terminal import show
    from assay.insight.sizing.text import headline

    answer["sentence"] = headline(answer)
    folder = keep_answer("size", "sizing", answer, output, report=report, title=title)
    if (taken := taken_now()) is not None:
        taken.folder = folder
        return
    if json:
        document = {"schema_version": 1, "verb": "size", "run_folder": str(folder), **answer}
        print(json_module.dumps(document, allow_nan=False, indent=1))
    else:
        show(answer_blocks(answer, report=report, quiet=quiet), details=details)
    if not json and not quiet:
        print_end(folder, {"sizing": answer})
    if not answer["holds"]:
        raise typer.Exit(int(ExitCode.LIMIT_MISSED))


def _asked(
    need: Path | None,
    measured_from: Path | None,
    percentile: str,
    busiest: int,
    volumes: Sequence[str],
    *,
    short: bool,
    rate: float | None,
) -> tuple[NeedAsWritten, MeasuredDemand | None]:
    """The need as a file states it, as it was measured, or both."""
    from assay.base.reading import read_table
    from assay.insight.sizing.need import NeedAsWritten, need_of, read_need

    if measured_from is None:
        if rate is not None:
            raise UsageError("--rate: is the rate of a run's mix; give the run, too: --from RUN")
        if need is None:
            raise UsageError("size: needs a NEED in TOML, or --from RECORDING; `assay size --template` prints a need")
        return read_need(need), None
    from assay.insight.sizing.measured import measure
    from assay.insight.sizing.measured_need import table_of
    from assay.insight.sizing.measured_trace import need_of_trace
    from assay.traces.file import is_trace

    share = parse_percent(percentile, what="--percentile")
    if busiest < 1:
        raise UsageError(f"--busiest: {busiest} is not 1 or more")
    if is_trace(measured_from):
        if rate is not None:
            raise UsageError(f"--rate: {measured_from.name} is a trace, whose rate is measured; leave out --rate")
        measured = need_of_trace(measured_from, share, busiest, short=short)
    else:
        measured = measure(measured_from, percentile=share, busiest=busiest, short=short, volumes=volumes, rate=rate)
    table = table_of(measured, read_table(need, option="need") if need is not None else None)
    source = f"--from {measured.source}"
    return NeedAsWritten(table, source if need is None else f"{need}, {source}", need_of(table, source)), measured


def answer_blocks(answer: Sizing, *, report: bool = True, quiet: bool = False) -> list[Block | Details]:
    """The purchase and what it hangs on, with the candidates as details; need, rules and assumptions: the report."""
    from assay.document.elements import Paragraph
    from assay.document.terminal import Details, notes_and_details, table
    from assay.insight.sizing import text as words

    measured = answer["measured"]
    told = [words.sensitivity_sentence(answer)] if answer["holds"] and answer["sensitivity"] is not None else []
    told += [*words.loss_sentences(answer), *words.server_sentences(answer)]
    if measured is not None and measured["coverage"] is not None:
        told.append(f"{measured['source']}: {measured['coverage']['text']}.")
    if prices := words.price_sentence(answer):
        told.append(prices)
    blocks: list[Block | Details] = [Paragraph(words.headline(answer), strong=True)]
    chosen: dict[tuple[str, ...], list[str]] = {}
    columns, choices_shown = words.shown_choices(answer)
    for choice, *figures in choices_shown:
        chosen.setdefault(tuple(figures), []).append(choice)
    alike = [[", ".join(choices), *figures] for figures, choices in chosen.items()]
    blocks.append(table("Chosen", columns, alike).known(DASH))
    blocks += [Paragraph(text) for text in [*words.side_sentences(answer), *told]]
    if answer["difference"] is not None:
        rows = [[row["what"], row["before"], row["after"]] for row in answer["difference"]["rows"]]
        blocks.append(table(f"What if {', '.join(answer['difference']['changes'])}", ("", "before", "after"), rows))
    candidates = words.candidate_rows(answer)
    where = "--details and the report have them" if report else "--details prints them"
    listed = table("Candidates", words.CANDIDATE_COLUMNS, candidates).known(DASH)
    blocks.append(Details(f"{len(candidates)} candidates, and why others do not hold: {where}", [listed]))
    return [*blocks, *notes_and_details([] if quiet else answer["notices"], report=report)]
