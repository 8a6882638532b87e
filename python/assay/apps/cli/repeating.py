"""Commands that are done several times, and on two targets in turns; each time is a run of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import typer

from assay.apps.cli import running
from assay.apps.cli.compare import comparison_blocks
from assay.apps.cli.console import EndSignals, print_end, print_event, print_json
from assay.apps.cli.running import OutputOptions
from assay.base.errors import ANSWERS, ExitCode, RunFolderError, UsageError
from assay.base.paths import printable
from assay.document.elements import Paragraph
from assay.document.terminal import show, table
from assay.insight.differences import ComparedSide
from assay.insight.repeated import COLUMNS, repeated_figures
from assay.insight.sides import compared_run, read_sides
from assay.record.durable import made_folder
from assay.record.repeats import SIDES, sides_below
from assay.record.run_folder import RunFolder
from assay.run.part import part_from_report
from assay.run.request import PERMISSIONS, TargetRequest
from assay.run.resumed import refuse_strange_folder
from assay.targets.arrays.live.process import arrays_of_run
from assay.targets.files.spec import is_model
from assay.workloads.plan import Part

REPEATS_IN_TURNS = 3
"""Fewest runs a side of which the interval is of use: with two it is three times as wide."""
ENDS_REPEATS = frozenset({ExitCode.USAGE, ExitCode.TARGET_FAILED, ExitCode.INTEGRITY_FAILED, ExitCode.INTERRUPTED})
"""Exit codes of a run after which no other begins; a limit that is missed or unknown is no reason to stop."""

Told = Callable[[], Mapping[str, object]]


def start(
    verb: str,
    request: TargetRequest,
    parts: Sequence[Part[Any]],
    options: OutputOptions,
    told: Told | None = None,
) -> None:
    """Run new work to its end, as often as the options say, and exit.

    Raises
    ------
    UsageError
        The target cannot be measured several times, or in turns.
    """
    if not options.paired and (options.repeat or 1) == 1:
        running.start(verb, request, parts, options, told=told)
        return
    asked = _asked_in_turns(request) if options.paired else {"": request}
    if any(is_model(path) for path in request.paths):
        raise UsageError("--repeat: a model answers the same every time; leave it out")
    of = options.repeat or REPEATS_IN_TURNS
    if options.paired and of < 2:
        raise UsageError("--paired: one run each is no pair; give --repeat 2 or more")
    repeats = _Repeats(verb, of, asked, parts, told)
    with arrays_of_run():
        code = _carried_out(repeats, options, None)
        if code is not None:
            sys.exit(int(code))


def _asked_in_turns(request: TargetRequest) -> dict[str, TargetRequest]:
    """What each of two targets is asked.

    Raises
    ------
    UsageError
        They are not two.
    """
    if len(request.paths) != len(SIDES) or request.volumes:
        raise UsageError(f"--paired: give two targets, A and B (given {len(request.paths)}), and no --volume")
    return {side: replace(request, paths=[path]) for side, path in zip(SIDES, request.paths, strict=True)}


def resume(verb: str, path: Path, options: OutputOptions, context: typer.Context) -> None:
    """Go on with a run folder, or a folder of repeats, and exit.

    Raises
    ------
    RunFolderError
        It is of another verb, or another place or user may have filled it.
    UsageError
        Options were given that the run has decided already.
    """
    below = sides_below(path)
    first = RunFolder.open(below[0][0]) if below else None
    kept = None if first is None else first.manifest.get("repeats")
    if first is None or kept is None:
        running.resume(verb, path, options, context)
        return
    running.refuse_decided(context)
    made_by = first.manifest.get("verb")
    if made_by != verb:
        raise RunFolderError(
            f"--resume {printable(path)}: holds runs of {made_by!r}, and `assay {verb}` cannot go on with them"
        )
    refuse_strange_folder(first)
    first.check_goes_on()
    permitted = {name: context.params.get(name) or [] for name in PERMISSIONS}
    parts = [part_from_report(part, None, source=f"--resume {path}") for part in first.manifest["parts"]]
    asked = {side: TargetRequest.from_dict(request, **permitted) for side, request in kept["sides"].items()}
    options.group, options.paired = path, len(asked) > 1
    with arrays_of_run():
        code = _carried_out(_Repeats(verb, kept["of"], asked, parts, None), options, context)
        if code is not None:
            sys.exit(int(code))


@dataclass(frozen=True)
class _Repeats:
    """What is done several times: what each side asks, by the name of its folder."""

    verb: str
    of: int
    asked: Mapping[str, TargetRequest]
    parts: Sequence[Part[Any]]
    told: Told | None

    def facts(self) -> Mapping[str, object]:
        """What the manifest of each run says besides."""
        sides = {side: request.to_dict() for side, request in self.asked.items()}
        return {**(self.told() if self.told is not None else {}), "repeats": {"of": self.of, "sides": sides}}


def _carried_out(repeats: _Repeats, options: OutputOptions, context: typer.Context | None) -> ExitCode | None:
    """Make the runs that are not there yet, in turns, and show what they found; None where only a plan was shown."""
    options.times = repeats.of * len(repeats.asked)
    signals = None if options.dry_run else EndSignals()
    output = options.output

    def place(side: str) -> Path:
        if options.group is None:
            options.group = made_folder(output, repeats.verb)
        return options.group / side

    worst = ExitCode.DONE
    for number, side in ((number, side) for number in range(repeats.of) for side in repeats.asked):
        kept = [] if options.group is None else _runs_of(options.group, side)
        if number < len(kept) and context is not None:
            code = running.go_on(repeats.verb, kept[number], options, context, signals)
        else:
            request = replace(repeats.asked[side])
            code = running.begin(
                repeats.verb,
                request,
                repeats.parts,
                options,
                told=repeats.facts,
                place=partial(place, side),
                signals=signals,
            )
        if code is None:
            return None
        options.times = 0
        if code in ENDS_REPEATS:
            return code
        worst = max(worst, code, key=ANSWERS.index)
        if signals is not None and signals.interrupt.is_set():
            return ExitCode.INTERRUPTED
    assert options.group is not None
    _show(repeats, options.group, options)
    return worst


def _runs_of(group: Path, side: str) -> list[Path]:
    return next((runs for runs in sides_below(group) if runs[0].parent == group / side), [])


def _show(repeats: _Repeats, group: Path, options: OutputOptions) -> None:
    """Show what runs found together, and in turns what differs between the sides."""
    sides = {
        side: ComparedSide(tuple(compared_run(RunFolder.open(path)) for path in _runs_of(group, side)))
        for side in repeats.asked
    }
    found = {side: repeated_figures(runs) for side, runs in sides.items()}
    read = read_sides([group]) if options.paired else None
    compared = read.compared(paired=True) if read is not None else None
    if options.json or options.json_stream:
        document = {
            "schema_version": 1,
            "verb": repeats.verb,
            "repeats": repeats.of,
            "run_folder": str(group),
            "results": [
                {"side": side or None, **figure.to_dict()} for side, figures in found.items() for figure in figures
            ],
            "comparison": compared.to_dict() if compared is not None else None,
        }
        if options.json_stream:
            print_event("repeats", document=document)
        else:
            print(print_json(document), flush=True)
        return
    told = "" if any(found.values()) else ": fewer than two of them measured anything that says something of the target"
    show([Paragraph(f"{repeats.of} runs{' of each target' if options.paired else ''}{told}.", strong=True)])
    for side, figures in found.items():
        where = f"{side}: {' '.join(repeats.asked[side].paths)}" if side else "Over all runs"
        show([table(where, COLUMNS, [figure.row() for figure in figures])])
    if read is not None and compared is not None:
        show(comparison_blocks(compared, read.names), details=options.details)
    if not options.quiet:
        print_end(group, {"repeats": repeats.of})
