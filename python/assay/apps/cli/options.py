"""Options that are no fields of plans, declared once: of the target, of output."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.base.errors import UsageError
from assay.base.secrets import password_from_stdin
from assay.record.shapes.manifest import REPEATS_MAX
from assay.record.titles import parse_title
from assay.workloads.options import OUTPUT, SAFETY, SEED, SIZE, TARGET, TIME


def _read_password(asked: bool) -> bool:
    if asked:
        password_from_stdin()
    return asked


def _without_color(asked: bool) -> bool:
    if asked:
        # What prints tables looks there as well.
        os.environ["NO_COLOR"] = "1"
    return asked


Size = Annotated[str | None, typer.Option(SIZE.flag, help=SIZE.help, rich_help_panel=SIZE.group)]
CacheSize = Annotated[
    str | None,
    typer.Option("--cache-size", help="The cache between host and disk, for --size 2x-cache.", rich_help_panel=TARGET),
]
Volumes = Annotated[
    list[str] | None,
    typer.Option("--volume", help="Volumes by role: data=PATH,log=PATH,tempdb=PATH.", rich_help_panel=TARGET),
]
Overwrite = Annotated[
    list[str] | None,
    typer.Option("--overwrite", help="Allow writing to this existing file or device.", rich_help_panel=SAFETY),
]
Create = Annotated[
    bool,
    typer.Option("--create", help="Create the target file even if its name has no suffix.", rich_help_panel=TARGET),
]
YesDestroy = Annotated[
    list[str] | None,
    typer.Option(
        "--yes-destroy", help="With --overwrite: also if the device carries a signature.", rich_help_panel=SAFETY
    ),
]
YesWrites = Annotated[
    str | None,
    typer.Option(
        "--yes-writes", help="Most bytes that --precondition may write: 8TB (1TB).", metavar="BYTES",
        rich_help_panel=SAFETY,
    ),
]  # fmt: skip
YesFormat = Annotated[
    list[str] | None,
    typer.Option(
        "--yes-format", help="With --purge format: this device may be formatted, all of it.", rich_help_panel=SAFETY
    ),
]
Output = Annotated[
    Path, typer.Option("-o", "--output", help="Parent folder of the run folder.", rich_help_panel=OUTPUT)
]
Json = Annotated[
    bool, typer.Option("--json", help="Exactly one JSON document on standard output.", rich_help_panel=OUTPUT)
]
JsonStream = Annotated[
    bool,
    typer.Option(
        "--json-stream",
        help="Lines of JSON on standard output: each point as it ends, then the run.",
        rich_help_panel=OUTPUT,
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the plan, the bytes and the time, and stop.", rich_help_panel=OUTPUT)
]
Report = Annotated[
    bool, typer.Option("--report/--no-report", help="Write report.html and report.pdf.", rich_help_panel=OUTPUT)
]
Title = Annotated[
    str | None,
    typer.Option(
        "--title",
        help="Title of the run (default: target, host, load).",
        callback=lambda text: None if text is None else parse_title(text),
        rich_help_panel=OUTPUT,
    ),
]
Export = Annotated[
    list[str] | None,
    typer.Option("--export", help="Also export: csv, fio-json, openmetrics.", rich_help_panel=OUTPUT),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print the answer alone.", rich_help_panel=OUTPUT)]
Details = Annotated[
    bool, typer.Option("--details", help="Print the details of the answer, too.", rich_help_panel=OUTPUT)
]
NoColor = Annotated[
    bool,
    typer.Option(
        "--no-color",
        help="No colours on the terminal; the variable NO_COLOR does the same.",
        callback=_without_color,
        rich_help_panel=OUTPUT,
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the Python traceback of an error.", rich_help_panel=OUTPUT)]
PasswordStdin = Annotated[
    bool,
    typer.Option(
        "--password-stdin",
        help="Read the databases' password from a line of standard input.",
        callback=_read_password,
        rich_help_panel=OUTPUT,
    ),
]
Resume = Annotated[Path | None, typer.Option("--resume", help="Go on with this run folder.", rich_help_panel=OUTPUT)]
Seed = Annotated[int | None, typer.Option(SEED.flag, help=SEED.help, rich_help_panel=SEED.group)]
Plan = Annotated[Path | None, typer.Option("--plan", help="A plan in TOML, or the JSON of --dry-run --json.")]

OUTPUT_DEFAULT = Path("assay-results")

Declared = Mapping[str, tuple[Any, Any]]
"""Type and default of parameters, by name."""

NOTHING: Declared = {}
PERMISSIONS: Declared = {"overwrite": (Overwrite, None), "yes_destroy": (YesDestroy, None)}
WRITES_FILES: Declared = {**PERMISSIONS, "create": (Create, False)}
Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--hosts",
        help="Load from these hosts at once over ssh: a,b,c; local is a process here. With --cluster: number of hosts.",
        rich_help_panel=TARGET,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", help="Load from hosts of a Ray cluster: ray://HOST:10001 or auto.", rich_help_panel=TARGET
    ),
]
Shared = Annotated[
    bool, typer.Option("--shared", help="All hosts use the same target, not one each.", rich_help_panel=TARGET)
]
Repeat = Annotated[
    int | None,
    typer.Option(
        "--repeat",
        min=1,
        max=REPEATS_MAX,
        help="Number of runs, one after the other; intervals then cover the variation between runs.",
        rich_help_panel=TIME,
    ),
]
Paired = Annotated[
    bool,
    typer.Option(
        "--paired",
        help="Measure two targets in turns, A B A B, and compare them; --repeat sets the number of turns (3).",
        rich_help_panel=TIME,
    ),
]
REPEATED: Declared = {"repeat": (Repeat, None)}
IN_TURNS: Declared = {**REPEATED, "paired": (Paired, False)}
OVER_HOSTS: Declared = {"hosts": (Hosts, None), "cluster": (Cluster, None), "shared": (Shared, False)}
WRITES_MUCH: Declared = {"yes_writes": (YesWrites, None), "yes_format": (YesFormat, None)}
ON_STORAGE: Declared = {
    "volumes": (Volumes, None),
    "size": (Size, None),
    "cache_size": (CacheSize, None),
    **WRITES_FILES,
}
ON_DATABASES: Declared = {"password_stdin": (PasswordStdin, False)}
DATABASES_IN_TURNS: Declared = {**ON_DATABASES, **IN_TURNS}
OF_OUTPUT: Declared = {
    "title": (Title, None),
    "output": (Output, OUTPUT_DEFAULT),
    "json": (Json, False),
    "json_stream": (JsonStream, False),
    "dry_run": (DryRun, False),
    "report": (Report, True),
    "export": (Export, None),
    "resume_run": (Resume, None),
    "quiet": (Quiet, False),
    "details": (Details, False),
    "no_color": (NoColor, False),
    "debug": (Debug, False),
}

SHOWN = ("title", "output", "json", "json_stream", "dry_run", "report", "quiet", "details", "paper", "repeat", "paired")
"""Parameters that say what is shown and written, and how often all is done."""

EXPORTS_KNOWN = ("csv", "fio-json", "openmetrics")


def parse_exports(values: Sequence[str]) -> list[str]:
    """Formats from `--export`, given several times or listed with commas, each once.

    Raises
    ------
    UsageError
        A format is unknown.
    """
    names = [name.strip() for value in values for name in value.split(",")]
    for name in names:
        if name not in EXPORTS_KNOWN:
            raise UsageError(f"--export: unknown format {name!r}; accepted: {', '.join(EXPORTS_KNOWN)}")
    return list(dict.fromkeys(names))
