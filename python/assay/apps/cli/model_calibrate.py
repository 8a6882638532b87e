"""`assay model calibrate`: a model fitted to a measured or published array."""

from __future__ import annotations

import json as json_module
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.console import say
from assay.base.errors import UsageError
from assay.base.extras import require

if TYPE_CHECKING:
    from assay.insight.calibration.calibrate import Fit
    from assay.insight.calibration.observations import Observation
    from assay.record.shapes.manifest import Calibration
    from assay.targets.arrays.model.configuration import Configuration

EXAMPLES = """
Examples:

`assay model calibrate mine.toml --from assay-results/20261120-101500-profile-a1b2c3 --structure "ps6100xv?raid=10"`

`assay model calibrate mine.toml --from orders.trace --structure "ps6100xv?raid=10"`

`assay model calibrate ps6100xv --from published.toml --free disk.command_overhead --to fitted.toml`

`assay profile "model:./mine.toml?raid=50&members=2&volumes=12" --block 8K --read 70`
"""
PUBLISHED = "published.toml"
BLACK_BOX = "black-box"


def calibrate(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The model file to write; or an array or file to start from.")
    ],
    source: Annotated[
        str, typer.Option("--from", help="A run folder of `assay profile`, a trace, or published figures in TOML.")
    ],
    free: Annotated[str | None, typer.Option(help="Parameters to fit (default: the ones with most effect).")] = None,
    structure: Annotated[
        str | None, typer.Option(help="NAME?OPTIONS of the array that was measured, such as ps6100xv?raid=10.")
    ] = None,
    to: Annotated[Path | None, typer.Option(help="Path of the calibrated model, if FILE is the start.")] = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Fit few parameters of a model to measured or published points, cross-validate, and write a model file."""
    del debug
    require("model calibrate", "scipy")
    with tempfile.TemporaryDirectory(prefix="assay-calibrate-") as folder:
        _calibrate(file, source, free, structure, to, Path(folder), json=json, quiet=quiet)


def _calibrate(
    file: str,
    source: str,
    free: str | None,
    structure: str | None,
    to: Path | None,
    folder: Path,
    *,
    json: bool,
    quiet: bool,
) -> None:
    from assay.insight.calibration.calibrate import calibrate as fit_model
    from assay.insight.calibration.calibrated_file import (
        calibrated_text,
        calibration_table,
        refuse_existing,
        restarted,
        write_new,
    )
    from assay.insight.calibration.observations import guess_black_box
    from assay.targets.arrays.model.options import model_target_text

    start, target = _start_and_target(file, structure, to)
    refuse_existing(target)
    observations, held = _observations(source, start, folder)
    if start.model.origin == BLACK_BOX:
        guessed = restarted(observations[0].configuration, guess_black_box(observations))
        observations = [replace(each, configuration=guessed) for each in observations]
    names = [name.strip() for name in free.split(",")] if free is not None else None
    start = observations[0].configuration
    fit = fit_model(observations, free=names, progress=_progress(quiet))
    table = calibration_table(fit, observations, source)
    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in target.stem.lower())
    write_new(target, calibrated_text(start, name.strip("-_") or "calibrated", fit, table))
    checked = [_checked(observation, fit) for observation in held]
    if json:
        document = {"schema_version": 1, "verb": "model calibrate", "file": str(target), "calibration": table}
        document |= {"parameters": _parameters(fit, start), "checked": checked}
        print(json_module.dumps(document, allow_nan=False, indent=1))
    else:
        _show(fit, start, checked, table)
    say(f"model file: {target}")
    written = str(target) if "/" in str(target) else f"./{target}"
    asked = {key: start.options[key] for key in ("volume_size",) if key in start.options}
    options = {"volumes": f"{len(start.volumes)}", **asked, "members": "2"}
    say(f'ask it: assay profile "{model_target_text(written, options)}"')


def _start_and_target(file: str, structure: str | None, to: Path | None) -> tuple[Configuration, Path]:
    """The configuration that was measured, and the file to write."""
    from assay.insight.calibration.calibrated_file import refuse_existing
    from assay.targets.arrays.model.configuration import configure
    from assay.targets.arrays.model.model_file import catalogue_names, refuse_other_structures
    from assay.targets.arrays.model.options import parse_model_target

    begins = file.partition("?")[0]
    if begins in catalogue_names() or (begins.endswith(".toml") and Path(begins).exists()):
        if structure is not None:
            if begins not in catalogue_names():
                refuse_existing(Path(begins))
            raise UsageError(f"--structure: {begins} is the structure already; name a new file, or leave it out")
        name, options = parse_model_target(file)
        start = configure(name, options)
        refuse_other_structures(start.model, "model calibrate")
        return start, to or Path(f"{Path(begins).stem}-calibrated.toml")
    if to is not None:
        raise UsageError("--to: FILE is the file to write; leave one of them out")
    if not file.endswith(".toml"):
        raise UsageError(
            f"FILE {file!r}: is no array of the catalogue ({', '.join(catalogue_names())}), and a file to write ends"
            " in .toml"
        )
    name, options = parse_model_target(structure if structure is not None else BLACK_BOX)
    start = configure(name, options)
    refuse_other_structures(start.model, "--structure")
    return start, Path(file)


def _observations(source: str, start: Configuration, folder: Path) -> tuple[list[Observation], list[Observation]]:
    """What is fitted to, and what is checked alone; stretches of a trace are kept in a folder."""
    from assay.insight.calibration.observations import observations_of_published, observations_of_run
    from assay.insight.calibration.traced import observations_of_trace
    from assay.traces.file import is_trace

    path = Path(source)
    if source == PUBLISHED and not path.exists():
        return observations_of_published(start, None)
    if source.endswith(".toml"):
        return observations_of_published(start, path)
    if is_trace(path) or source.endswith(".trace"):
        return observations_of_trace(path, start, folder), []
    return observations_of_run(path, start), []


def _progress(quiet: bool) -> Any:
    if quiet:
        return lambda _text: None
    if sys.stderr.isatty():
        return lambda text: print(f"\r{text:60}", end="", file=sys.stderr, flush=True)
    return lambda text: print(text, file=sys.stderr) if ", 1 of" in text and "1 of 1 " not in text else None


def _parameters(fit: Fit, start: Configuration) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "value": fit.values[name],
            "start": start.value(name),
            "plus_minus": fit.covariance[place][place] ** 0.5,
        }
        for place, name in enumerate(fit.free)
    ]


def _checked(observation: Observation, fit: Fit) -> dict[str, Any]:
    """A published point that was not fitted to, predicted."""
    predicted = observation.predicted(fit.values)
    name, value = next(iter(observation.figures.items()))
    return {
        "label": observation.label,
        "figure": name,
        "published": value,
        "model": predicted[name],
        "error_share": predicted[name] / value - 1,
    }


def _show(fit: Fit, start: Configuration, checked: list[dict[str, Any]], table: Calibration) -> None:
    from assay.document.elements import Paragraph
    from assay.document.terminal import show
    from assay.document.terminal import table as table_of
    from assay.targets.arrays.model.kinds import show_value
    from assay.targets.arrays.model.parameters import PARAMETERS

    fitted = []
    for each in _parameters(fit, start):
        kind = PARAMETERS[each["name"]].kind
        shown = [show_value(kind, each["value"]), f"{each['plus_minus']:.0%}", show_value(kind, each["start"])]
        fitted.append([each["name"], *shown])
    points = [
        [each["label"], f"{each['error_share']:+.1%}", f"{each['left_out_error_share']:+.1%}"]
        for each in table["observations"]
    ]
    points += [[f"{each['label']} (not fitted)", "", f"{each['error_share']:+.1%}"] for each in checked]
    show(
        [
            Paragraph(f"error of prediction (leave one out): {fit.error_share:.1%}"),
            table_of("Fitted", ("parameter", "fitted", "+-", "before"), fitted),
            table_of("Throughput", ("point", "error", "predicted from the others"), points),
        ]
    )
