"""`assay verify`: whether the storage keeps what it acknowledged."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, NoReturn, cast

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.console import say
from assay.apps.cli.running import start
from assay.apps.cli.verb import Given, measuring
from assay.base.errors import RunFolderError, UsageError
from assay.record.run_folder import RunFolder
from assay.workloads.integrity.plan import DATABASE, IntegrityPlan
from assay.workloads.integrity.sqliosim import CONFIG_MAX_BYTES, Understood, parse_sqliosim
from assay.workloads.options import TARGET
from assay.workloads.plan import Part

PART = IntegrityPlan.model_fields["kind"].default

EXAMPLES = """
Examples:

`assay verify /data --duration 10m`

`assay verify --volume data=/data/f,log=/log/f --size data=20G,log=2G --preset nothrottle`

`assay verify --config sqliosim.cfg --map 'E:\\=/mnt/e'`

`assay verify 'faulty:/tmp/f?torn=1e-4&seed=7' --size 64M --duration 10s`
"""


@usual(
    "--preset", "--size", "--volume", "--users", "--duration", "--cycles", "--crash-journal", "--after-crash",
    "--overwrite", "--json",
)  # fmt: skip
@measuring("verify", IntegrityPlan, on=opt.WRITES_FILES)
def verify(
    given: Given,
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET", help="File, folder, device, or faulty:PATH?torn=1e-5.", show_default=False),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A sqliosim.cfg; without TARGET its files are used.")] = None,
    path_map: Annotated[
        list[str] | None, typer.Option("--map", help=r"Local folder of a Windows path of --config: 'E:\\=/mnt/e'.")
    ] = None,
    crash_journal: Annotated[
        str | None,
        typer.Option(help="Record acknowledged writes in this new file, on other storage.", rich_help_panel=DATABASE),
    ] = None,
    after_crash: Annotated[
        str | None,
        typer.Option(
            help="Check that everything in this journal is on TARGET; writes nothing.", rich_help_panel=DATABASE
        ),
    ] = None,
    volumes: Annotated[
        list[str] | None,
        typer.Option("--volume", help="Volumes by role: data=PATH,log=PATH.", rich_help_panel=TARGET),
    ] = None,
    resume_run: Annotated[Path | None, typer.Option("--resume", hidden=True)] = None,
) -> None:
    """Prove that files, devices or volumes keep what they acknowledged, under a database's I/O."""
    if resume_run is not None:
        _refuse_resume(resume_run)
    base, understood = _base(given, config, path_map or [], has_target=bool(path or volumes))
    data = given.changed(base)
    if ("timing", "io_timeout_s") in given.values and ("timing", "long_io_s") not in given.values:
        # What ends the run cannot come before what is only reported.
        data["timing"]["long_io_s"] = min(base.timing.long_io_s, data["timing"]["io_timeout_s"])
    chosen: IntegrityPlan = given.plan(data)
    if crash_journal is not None and after_crash is not None:
        raise UsageError("--crash-journal and --after-crash exclude each other: the one writes, the other checks")
    request = given.request(
        path,
        volumes=volumes or [],
        size=chosen.size,
        database=True,
        crash_journal=crash_journal,
        after_crash=after_crash,
    )
    part = Part(name=PART, title=chosen.title, plan=chosen, understood=tuple(understood))
    if not given.shown.quiet:
        for line in understood:
            say(line)
    start("verify", request, [part], given.shown)


def _refuse_resume(path: Path) -> NoReturn:
    """A stress run cannot go on: what pages must hold was known to the process alone."""
    manifest = RunFolder.open(path).manifest
    if manifest.get("verb") != "verify":
        raise RunFolderError(f"--resume {path}: is a run of {manifest.get('verb')!r}, not of 'verify'")
    command = shlex.join(["assay", *map(str, manifest.get("command", []))])
    raise UsageError(
        f"--resume {path}: a run of verify cannot go on, its expected state lived in memory; start anew with: {command}"
    )


def _base(given: Given, config: Path | None, maps: list[str], *, has_target: bool) -> tuple[IntegrityPlan, list[str]]:
    """The plan before options, and what a configuration was understood as."""
    for option, value in {"--preset": given.preset, "--plan": given.plan_file}.items():
        if config is not None and value is not None:
            raise UsageError(f"{option} and --config exclude each other")
    if maps and config is None:
        raise UsageError("--map: says where the Windows paths of a --config are, and none is given")
    lines: list[str] = []
    if config is not None:
        understood = read_config(config, maps)
        base, lines = understood.plan, [f"{config}: {line}" for line in understood.lines]
    else:
        base = cast("IntegrityPlan", given.base() or given.preset_default())
    if base.files and has_target:
        lines += [f"{config or given.plan_file}: its {len(base.files)} files are left out, a target is named"]
        base = base.model_copy(update={"files": ()})
    return base, lines


def read_config(path: Path, maps: list[str]) -> Understood:
    """A `sqliosim.cfg` from its file.

    Raises
    ------
    UsageError
        The file cannot be read, or is not understood.
    """
    try:
        with path.open("rb") as file:
            content = file.read(CONFIG_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"--config {path}: cannot be read: {error.strerror}") from None
    return parse_sqliosim(content, source=f"--config {path}", maps=maps)
