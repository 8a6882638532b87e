"""`assay model`: the catalogue of modelled arrays, and files of one's own."""

from __future__ import annotations

import json as json_module
import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.apps.cli import model_calibrate, model_reliability
from assay.apps.cli import options as opt
from assay.apps.cli.commands import App
from assay.apps.cli.console import print_json, say
from assay.base.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from assay.targets.arrays.model.configuration import Configuration
    from assay.targets.arrays.model.model_file import ModelFile

EXAMPLES = """
Examples:

`assay model list`

`assay model show "ps6100xv?raid=50&members=2"`

`assay model show ps6100xv --toml > mine.toml`

`assay model validate mine.toml`

`assay model calibrate mine.toml --from assay-results/20261120-101500-profile-a1b2c3 --structure "ps6100xv?raid=10"`

`assay profile "model:./mine.toml?raid=50" --block 8K --read 70`
"""

app = App(
    name="model",
    help="Modelled arrays: the catalogue, and files of your own.",
    epilog=EXAMPLES,
    no_args_is_help=True,
)


@app.command(name="list", epilog="Examples:\n\n`assay model list --json`\n\n`assay model list --class cloud`")
def list_models(
    model_class: Annotated[
        str | None, typer.Option("--class", metavar="CLASS", help="Only these: study, drive, array or cloud.")
    ] = None,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """List the catalogue: disks, RAID policies, and whether fitted to measured or published points; clouds' volumes."""
    del debug
    from assay.targets.arrays.model.model_file import catalogue_names, load_model
    from assay.targets.arrays.model.parameters import CLASSES

    if model_class is not None and model_class not in CLASSES:
        raise UsageError(f"--class {model_class!r} is unknown; accepted: {', '.join(CLASSES)}")
    models = [load_model(name) for name in catalogue_names()]
    models = [model for model in models if model_class in (None, model.model_class)]
    if json:
        _print_json({"models": [_listed(model) for model in models]})
        return
    arrays = [model for model in models if model.offer is None]
    rows = []
    for model in arrays:
        policies = ", ".join(policy.upper() for policy in model.policies) or "none: containers"
        rows.append([model.name, model.title, _disks(model), policies, _calibrated(model)])
    if rows:
        _print_table(("name", "array", "disks", "RAID", "calibrated"), rows)
    offers = [
        [model.name, model.title, _sizes(model), model.offer.as_of, model.offer.region]
        for model in models
        if model.offer is not None
    ]
    if offers:
        _print_table(("name", "volume of a cloud", "sizes", "as of", "region"), offers)


@app.command(name="show", epilog='Examples:\n\n`assay model show ps6100xv`\n\n`assay model show "ps6100xv?raid=50"`')
def show(
    name: Annotated[
        str, typer.Argument(metavar="NAME[?OPTIONS]", help="Array of the catalogue, or path of a model file.")
    ],
    toml: Annotated[bool, typer.Option("--toml", help="Print the file, to start one of your own.")] = False,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Show every parameter of an array with its unit and where it comes from, and what it holds under each policy."""
    del debug
    from assay.targets.arrays.model.configuration import configure
    from assay.targets.arrays.model.options import parse_model_target

    origin, options = parse_model_target(name)
    if toml and (options or json):
        raise UsageError("--toml: prints the file as it is; leave out --json and the options after NAME")
    array = configure(origin, options)
    if toml:
        print(array.model.text, end="")
        return
    if json:
        usable = {policy: other.usable_bytes for policy, other in _policies(array)} or {array.raid: array.usable_bytes}
        meanings = {dotted: _meaning(dotted) for dotted in array.parameters}
        _print_json({"array": array.facts(), "plan": array.plan(), "usable_bytes": usable, "meanings": meanings})
        return
    _print_array(array)


@app.command(name="validate", epilog="Examples:\n\n`assay model validate mine.toml`")
def validate(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Model files.")],
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Check model files: every parameter, unit and provenance, and that the disks carry each RAID policy offered."""
    del debug
    results = [_validated(file) for file in files]
    if json:
        _print_json({"files": results})
    else:
        for result in results:
            if result["error"] is None:
                origins = ", ".join(f"{count} {origin}" for origin, count in result["origins"].items())
                print(f"{result['file']}: {result['name']} is valid: {result['parameters']} parameters ({origins})")
            else:
                say(f"assay: {result['error']}")
    if any(result["error"] for result in results):
        sys.exit(int(ExitCode.USAGE))


def _validated(file: str) -> dict[str, Any]:
    from assay import _core
    from assay.targets.arrays.model.configuration import configuration_of
    from assay.targets.arrays.model.model_file import read_model_file

    try:
        model = read_model_file(file)
        for options in [{"raid": policy} for policy in model.policies] or [{}]:
            # What the compiled model refuses is no array either.
            _core.ModelledArray(json_module.dumps(configuration_of(model, options).plan()))
    except UsageError as error:
        message = str(error)
        # A contradiction between parameters does not know which file it is in.
        error_text = message if file in message else f"{file}: {message}"
        return {"file": file, "name": None, "error": error_text, "parameters": 0, "origins": {}}
    origins = Counter(parameter.from_ for parameter in model.parameters.values())
    return {
        "file": file,
        "name": model.name,
        "error": None,
        "parameters": len(model.parameters),
        "origins": dict(origins.most_common()),
    }


def _listed(model: ModelFile) -> dict[str, Any]:
    disks = {name: model.parameters.get(f"disks.{name}") for name in ("count", "spares")}
    return {
        "name": model.name,
        "title": model.title,
        "family": model.family,
        "class": model.model_class,
        "disks": disks["count"] and disks["count"].value,
        "spares": disks["spares"] and disks["spares"].value,
        "structure": model.structure,
        "region": model.offer and model.offer.region,
        "as_of": model.offer and model.offer.as_of,
        "disk_kind": model.disk_kind,
        "layout": model.layout_kind,
        "policies": list(model.policies),
        "default_raid": model.default_raid,
        "calibrated": model.calibration is not None,
    }


def _disks(model: ModelFile) -> str:
    count, spares = (model.parameters[key].value for key in ("disks.count", "disks.spares"))
    kind = "mechanical" if model.disk_kind == "mechanical" else "flash"
    return f"{count} {kind}" + (f", {spares} spare" if spares else "")


def _sizes(model: ModelFile) -> str:
    from assay.base.units import format_bytes

    least, most = (int(model.parameters[f"volume.{bound}"].value) for bound in ("least", "most"))
    return f"{format_bytes(least)} to {format_bytes(most)}"


def _calibrated(model: ModelFile) -> str:
    return "yes" if model.calibration is not None else "no"


def _policies(array: Configuration) -> list[tuple[str, Configuration]]:
    """The array under every policy it offers that its other options allow."""
    found = []
    for policy in array.model.policies:
        try:
            found.append((policy, array.with_options({"raid": policy})))
        except UsageError:
            continue
    return found


def _print_array(array: Configuration) -> None:
    from assay.targets.arrays.model.configuration import size_text
    from assay.targets.arrays.model.kinds import show_value
    from assay.targets.arrays.model.parameters import PARAMETERS

    print(f"{array.model.name}: {array.model.title}")
    print(f"target: {array.target_text}")
    count, size_bytes = len(array.volumes), array.volumes[0][1]
    if array.model.offer is not None:
        counted, offer = "1 volume" if count == 1 else f"{count} volumes", array.model.offer
        print(f"{array.label}: {counted} of {size_text(size_bytes)}; {offer.region}, as of {offer.as_of}")
    else:
        print(f"{array.label}: {count} volumes of {size_text(size_bytes)}, {array.fill:.0%} of the usable capacity")
    for policy, other in _policies(array):
        print(f"usable under RAID {policy.upper()}: {size_text(other.usable_bytes)}")
    if not array.model.policies and array.model.offer is None:
        print(f"usable in containers of {array.raid} pieces: {size_text(array.usable_bytes)}")
    for notice in array.notices:
        print(f"note: {notice}")
    rows = []
    for dotted, parameter in array.parameters.items():
        within = "" if parameter.plus_minus is None else f"{parameter.plus_minus:.0%}"
        value = show_value(PARAMETERS[dotted].kind, parameter.value)
        rows.append([dotted, value, within, parameter.from_, f"{parameter.source} [{_meaning(dotted)}]"])
    _print_table(("parameter", "value", "+-", "from", "source [meaning]"), rows)


def _meaning(dotted: str) -> str:
    from assay.targets.arrays.model.parameters import PARAMETERS

    return PARAMETERS[dotted].meaning


def _print_table(columns: tuple[str, ...], rows: list[list[str]]) -> None:
    from assay.document.terminal import show, table

    show([table("", columns, rows)])


def _print_json(document: dict[str, Any]) -> None:

    print(print_json({"schema_version": 1, "verb": "model", **document}))


app.command(name="reliability", epilog=model_reliability.EXAMPLES)(model_reliability.reliability)
app.command(name="calibrate", epilog=model_calibrate.EXAMPLES)(model_calibrate.calibrate)
