"""`assay size`: what to buy for a need, stated or measured, and why."""

from __future__ import annotations

import json as json_module
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.apps.cli import options as opt
from assay.base.errors import ExitCode, UsageError
from assay.base.units import format_share, format_when, parse_percent

if TYPE_CHECKING:
    from assay.insight.sizing.answer import Sized
    from assay.insight.sizing.measured import MeasuredDemand
    from assay.insight.sizing.need import NeedAsWritten

EXAMPLES = """
Examples:

`assay size --template > need.toml; assay size need.toml`

`assay size need.toml --set growth=40% --set limits.read=10ms`

`assay size --from assay-recording --percentile 95`

`assay size need.toml --from assay-results/RUN --derating assay-results/STUDY`

`assay size need.toml --hit-curve assay-results/CACHE-SIZE --set server.hit=97%`
"""

MEASURED = "Measured needs"


def size(
    need: Annotated[
        Path | None,
        typer.Argument(metavar="[NEED]", help="A need in TOML; --template prints one.", show_default=False),
    ] = None,
    template: Annotated[bool, typer.Option("--template", help="Print a need to fill in.")] = False,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="What if: KEY=VALUE, such as growth=40%; may be repeated.")
    ] = None,
    measured_from: Annotated[
        Path | None,
        typer.Option("--from", help="Take the load from this recording or run.", rich_help_panel=MEASURED),
    ] = None,
    percentile: Annotated[
        str, typer.Option("--percentile", help="Of the busiest hours.", rich_help_panel=MEASURED)
    ] = "95",
    busiest: Annotated[int, typer.Option("--busiest", help="How many hours these are.", rich_help_panel=MEASURED)] = 10,
    short: Annotated[
        bool, typer.Option("--short", help="Accept less than an hour of recording.", rich_help_panel=MEASURED)
    ] = False,
    volume: Annotated[
        list[str] | None,
        typer.Option("--volume", help="Of files: what a device is for: data=D:, log=sdb.", rich_help_panel=MEASURED),
    ] = None,
    derating: Annotated[
        Path | None,
        typer.Option(
            "--derating",
            help="A run of study raw-vs-database, instead of the published 22 %.",
            rich_help_panel=MEASURED,
        ),
    ] = None,
    hit_curve: Annotated[
        Path | None,
        typer.Option(
            "--hit-curve",
            help="A run of study cache-size on a database: how hits grow with memory.",
            rich_help_panel=MEASURED,
        ),
    ] = None,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity/--no-sensitivity", help="Look for what would change the purchase.")
    ] = True,
    output: opt.Output = opt.OUTPUT_DEFAULT,
    json: opt.Json = False,
    report: opt.Report = True,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Say what to buy for a need: the cheapest, the smallest and the fastest that hold it, and why others do not."""
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
    from assay.insight.sizing.judge import Judge

    asked, measured = _asked(need, measured_from, percentile, busiest, volume or [], short=short)
    if derating is not None:
        from assay.insight.sizing.measured import derating_of

        for keys, value, origin in derating_of(derating):
            asked = asked.with_value(keys, value, origin)
    changed = asked.with_changes(changes) if changes else None
    if hit_curve is not None:
        from assay.insight.sizing.hit_curve import cache_study, with_hit_curve

        study = cache_study(hit_curve)
        asked = with_hit_curve(asked, study)
        changed = with_hit_curve(changed, study) if changed is not None else None
    judge = Judge()
    # Two needs have what one has.
    ios = ALL_IOS if changed is None else ALL_IOS / 2

    def tell(text: str) -> None:
        if not quiet and not json:
            say(text)

    def work() -> tuple[Sized | None, Sized]:
        # Without its what-ifs: only those of the changed need are told.
        before = None
        if changed is not None:
            before = size_need(asked, judge, measured=measured, what_if=False, ios=ios, tell=tell)
        return before, size_need(changed or asked, judge, measured=measured, what_if=sensitivity, ios=ios, tell=tell)

    try:
        before, sized = interruptible(work)
    except BaseException:
        judge.interrupt.set()
        raise
    answer = sized.answer
    answer["difference"] = difference(before.answer, answer, changes or ()) if before is not None else None
    folder = _keep(answer, output, report=report)
    if json:
        document = {"schema_version": 1, "verb": "size", "run_folder": str(folder), **answer}
        print(json_module.dumps(document, allow_nan=False, indent=1))
    else:
        print_answer(answer)
    say(f"run folder: {folder}")
    if not answer["holds"]:
        from assay.insight.sizing.text import nearest_sentence

        say(nearest_sentence(answer))
        raise typer.Exit(int(ExitCode.LIMIT_MISSED))


def _asked(
    need: Path | None, measured_from: Path | None, percentile: str, busiest: int, volumes: Sequence[str], *, short: bool
) -> tuple[NeedAsWritten, MeasuredDemand | None]:
    """The need as a file states it, as it was measured, or both."""
    from assay.base.reading import read_table
    from assay.insight.sizing.need import NeedAsWritten, need_of, read_need

    if measured_from is None:
        if need is None:
            raise UsageError("size: needs a NEED in TOML, or --from RECORDING; `assay size --template` prints a need")
        return read_need(need), None
    from assay.insight.sizing.measured import measure, table_of

    share = parse_percent(percentile, what="--percentile")
    if busiest < 1:
        raise UsageError(f"--busiest: {busiest} is not 1 or more")
    measured = measure(measured_from, percentile=share, busiest=busiest, short=short, volumes=volumes)
    table = table_of(measured, read_table(need, option="need") if need is not None else None)
    source = f"--from {measured.source}"
    return NeedAsWritten(table, source if need is None else f"{need}, {source}", need_of(table, source)), measured


def _keep(answer: Mapping[str, Any], output: Path, *, report: bool) -> Path:
    from assay import _core
    from assay.record.run_folder import RunFolder

    manifest = {"command": sys.argv[1:], "build": _core.build_info(), "sizing": answer, "parts": [], "answers": [],
                "verdict": []}  # fmt: skip
    with RunFolder.create(output, "size", {**manifest, "notices": answer["notices"]}) as folder:
        if report:
            from assay.report.write import write_report

            write_report(folder.path)
        folder.update(status="done", ended_utc_ns=time.time_ns())
        return folder.path


def print_answer(answer: Mapping[str, Any]) -> None:
    """The purchase, its reasons and what it hangs on, on standard output."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from assay.base.paths import plain
    from assay.insight.sizing import text as words

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)

    def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        if not rows:
            return
        table = Table(title=title, title_justify="left")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(Text(plain(cell)) for cell in row))
        console.print(table)

    def say_line(text: str) -> None:
        console.print(Text(plain(text)))

    measured = answer["measured"]
    if measured is not None:
        if measured["coverage"] is not None:
            say_line(f"{measured['source']}: {measured['coverage']['text']}.")
        title = f"Measured load, {measured['percentile'] * 100:g}th percentile of the busiest hours"
        show(title if measured["coverage"] else "Measured load", words.VOLUME_COLUMNS, words.volume_rows(answer))
    show(f"Need: {answer['title']}, {format_when(answer['years'])}", words.DEMAND_COLUMNS, words.demand_rows(answer))
    show("Candidates", words.CANDIDATE_COLUMNS, words.candidate_rows(answer))
    show("Rules of the method", words.RULE_COLUMNS, words.rule_rows(answer))
    show("Assumptions", words.ASSUMPTION_COLUMNS, words.assumption_rows(answer))
    best = answer["chosen"].get("cheapest")
    if best is not None:
        show("What would change the purchase", words.SENSITIVITY_COLUMNS, words.sensitivity_rows(answer))
        show(f"Growth: {best['label']}", words.GROWTH_COLUMNS, words.growth_rows(best))
    show("Chosen", words.CHOICE_COLUMNS, words.choice_rows(answer))
    for line in words.server_sentences(answer):
        say_line(line)
    if answer["difference"] is not None:
        rows = [[row["what"], row["before"], row["after"]] for row in answer["difference"]["rows"]]
        show(f"What if {', '.join(answer['difference']['changes'])}", ("", "before", "after"), rows)
    if best is not None:
        say_line(words.headline(answer))
        say_line(
            f"It rests on the model ({best['model_basis']}; one standard deviation"
            f" {format_share(best['model_share'])}), and on a demand that may be off by"
            f" {format_share(answer['demand']['spread'])}."
        )
        if answer["sensitivity"] is not None:
            say_line(words.sensitivity_sentence(answer))
    for notice in answer["notices"]:
        say_line(f"note: {notice}")
