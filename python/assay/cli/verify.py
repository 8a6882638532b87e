"""`assay verify`: whether the storage keeps what it acknowledged."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from assay.cli import options as opt
from assay.cli.console import say
from assay.cli.running import OutputOptions, start
from assay.errors import RunFolderError, UsageError
from assay.reading import nearest
from assay.results.run_folder import RunFolder
from assay.run.request import Request
from assay.units import parse_bytes, parse_duration
from assay.workloads.integrity.plan import (
    IntegrityPlan,
    load_integrity_plan,
    read_integrity_plan,
    read_integrity_preset,
)
from assay.workloads.integrity.sqliosim import CONFIG_MOST_BYTES, Understood, parse_sqliosim
from assay.workloads.workload import Part

EXAMPLES = """
Examples:

`assay verify /data --duration 10m`

`assay verify --volume data=/data/f,log=/log/f --size data=20G,log=2G --preset nothrottle`

`assay verify --config sqliosim.cfg --map 'E:\\=/mnt/e'`

`assay verify 'faulty:/tmp/f?torn=1e-4&seed=7' --size 64M --duration 10s`
"""

USER_KINDS = ("random", "audit", "read-ahead", "bulk-update", "shrink")
DATABASE = "Imitated database"

OPTION_OF_KEY = {
    "timing.stress_s": "--duration",
    "timing.long_io_s": "--long-io",
    "timing.io_timeout_s": "--io-timeout",
    "memory_bytes": "--memory",
    "cycles": "--cycles",
    "seed": "--seed",
    "backend": "--backend",
    **{f"{kind.replace('-', '_')}.users": f"--users {kind}=N" for kind in USER_KINDS},
}
"""The option of each key of a plan, for messages."""


def verify(
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET", help="File, folder, device, or faulty:PATH?torn=1e-5.", show_default=False),
    ] = None,
    preset: Annotated[str | None, typer.Option(help="default, hwcache, nothrottle, seqwrites, sparse.")] = None,
    config: Annotated[Path | None, typer.Option(help="A sqliosim.cfg; without TARGET its files are used.")] = None,
    path_map: Annotated[
        list[str] | None, typer.Option("--map", help=r"Where a Windows path of --config is here: 'E:\\=/mnt/e'.")
    ] = None,
    plan: Annotated[Path | None, typer.Option(help="A plan in TOML, or the JSON of --dry-run --json.")] = None,
    volume: Annotated[
        list[str] | None,
        typer.Option("--volume", help="Volumes by role: data=PATH,log=PATH.", rich_help_panel=opt.TARGET),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            "--size", help="Size of each data file at first; by role: data=10G,log=1G.", rich_help_panel=opt.TARGET
        ),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="Buffer pool of the imitated engine.", rich_help_panel=DATABASE)
    ] = None,
    users: Annotated[
        list[str] | None,
        typer.Option(help=f"Users by kind: {','.join(f'{kind}=N' for kind in USER_KINDS)}.", rich_help_panel=DATABASE),
    ] = None,
    buffered: Annotated[
        bool,
        typer.Option("--buffered", help="Through the page cache instead of O_DIRECT.", rich_help_panel=DATABASE),
    ] = False,
    stop_on_error: Annotated[
        bool, typer.Option("--stop-on-error", help="End at the first finding.", rich_help_panel=DATABASE)
    ] = False,
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
    backend: opt.Backend = None,
    seed: opt.Seed = None,
    duration: Annotated[
        str | None, typer.Option(help="Length of the stress phase of a cycle (300s).", rich_help_panel=opt.TIME)
    ] = None,
    cycles: Annotated[
        int | None, typer.Option(help="How often all phases are run (1); 0: until Ctrl-C.", rich_help_panel=opt.TIME)
    ] = None,
    long_io: Annotated[
        str | None, typer.Option(help="An I/O outstanding longer is reported (15s).", rich_help_panel=opt.TIME)
    ] = None,
    io_timeout: Annotated[
        str | None,
        typer.Option("--io-timeout", help="An older outstanding I/O ends the run (120s).", rich_help_panel=opt.TIME),
    ] = None,
    overwrite: opt.Overwrite = None,
    yes_destroy: opt.YesDestroy = None,
    output: opt.Output = opt.OUTPUT_DEFAULT,
    json: opt.Json = False,
    dry_run: opt.DryRun = False,
    report: opt.Report = True,
    export: opt.Export = None,
    resume_run: Annotated[Path | None, typer.Option("--resume", hidden=True)] = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Prove that files, devices or volumes keep what they acknowledged, under a database's I/O."""
    del debug
    if resume_run is not None:
        _refuse_resume(resume_run)
    shown = OutputOptions(output=output, json=json, dry_run=dry_run, report=report, export=export or [], quiet=quiet)
    has_target = bool(path or volume)
    base, understood = _base(preset, plan, config, path_map or [], has_target=has_target)
    timing = {
        "stress_s": _seconds(duration, "--duration"),
        "long_io_s": _seconds(long_io, "--long-io"),
        "io_timeout_s": _seconds(io_timeout, "--io-timeout"),
    }
    chosen = apply_options(
        base,
        timing={key: value for key, value in timing.items() if value is not None},
        users=_users(users or []),
        other={
            key: value
            for key, value in {
                "memory_bytes": parse_bytes(memory, what="--memory") if memory else None,
                "cycles": cycles,
                "seed": seed,
                "backend": backend,
                "stop_on_error": stop_on_error or None,
                "no_buffering": False if buffered else None,
            }.items()
            if value is not None
        },
    )
    if crash_journal is not None and after_crash is not None:
        raise UsageError("--crash-journal and --after-crash exclude each other: the one writes, the other checks")
    request = Request(
        paths=path or [],
        volumes=volume or [],
        size=size or chosen.size,
        overwrite=overwrite or [],
        yes_destroy=yes_destroy or [],
        database=True,
        crash_journal=crash_journal,
        after_crash=after_crash,
    )
    part = Part(name="integrity", title=chosen.title, plan=chosen, understood=tuple(understood))
    if not quiet:
        for line in understood:
            say(line)
    start("verify", request, [part], shown)


def _refuse_resume(path: Path) -> NoReturn:
    """A stress run cannot go on: what pages must hold was known to the process alone."""
    manifest = RunFolder.open(path).manifest
    if manifest.get("verb") != "verify":
        raise RunFolderError(f"--resume {path}: is a run of {manifest.get('verb')!r}, not of 'verify'")
    command = shlex.join(["assay", *map(str, manifest.get("command", []))])
    raise UsageError(
        f"--resume {path}: a run of verify cannot go on, its expected state lived in memory; start anew with: {command}"
    )


def _base(
    preset: str | None, plan: Path | None, config: Path | None, maps: list[str], *, has_target: bool
) -> tuple[IntegrityPlan, list[str]]:
    """The plan before options, and what a configuration was understood as."""
    given = [
        option
        for option, value in {"--preset": preset, "--plan": plan, "--config": config}.items()
        if value is not None
    ]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other")
    if maps and config is None:
        raise UsageError("--map: says where the Windows paths of a --config are, and none is given")
    if plan is not None:
        base, lines = read_integrity_plan(plan), []
    elif config is not None:
        understood = read_config(config, maps)
        base, lines = understood.plan, [f"{config}: {line}" for line in understood.lines]
    else:
        base, lines = read_integrity_preset(preset or "default"), []
    if base.files and has_target:
        lines += [f"{config or plan}: its {len(base.files)} files are left out, a target is named"]
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
            content = file.read(CONFIG_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"--config {path}: cannot be read: {error.strerror}") from None
    return parse_sqliosim(content, source=f"--config {path}", maps=maps)


def apply_options(
    base: IntegrityPlan, *, timing: dict[str, Any], users: dict[str, int], other: dict[str, Any]
) -> IntegrityPlan:
    """The plan with the options that were given.

    Raises
    ------
    UsageError
        A value is not accepted; the message names the option.
    """
    data = base.model_dump(mode="json", exclude_unset=True) | other
    if timing.get("io_timeout_s") and "long_io_s" not in timing:
        # What ends the run cannot come before what is only reported.
        timing = {**timing, "long_io_s": min(base.timing.long_io_s, timing["io_timeout_s"])}
    data["timing"] = {**data.get("timing", {}), **timing}
    for kind, count in users.items():
        key = kind.replace("-", "_")
        data[key] = {**data.get(key, {}), "users": count}
    try:
        return load_integrity_plan(data, source="options")
    except UsageError as error:
        message = str(error).removeprefix("options: ")
        key, colon, rest = message.partition(": ")
        raise UsageError(f"{OPTION_OF_KEY[key]}: {rest}" if colon and key in OPTION_OF_KEY else message) from None


def _users(values: list[str]) -> dict[str, int]:
    """Counts by kind from values of `--users`."""
    counts: dict[str, int] = {}
    for item in (item.strip() for value in values for item in value.split(",")):
        kind, separator, text = item.partition("=")
        if kind not in USER_KINDS:
            meant = nearest(kind, USER_KINDS)
            hint = f"did you mean {meant!r}? " if meant else ""
            raise UsageError(f"--users {item!r}: unknown kind; {hint}accepted: {', '.join(USER_KINDS)}")
        if not separator or not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise UsageError(f"--users {item!r}: accepted: KIND=N with a whole number, as in random=8")
        if kind in counts:
            raise UsageError(f"--users: {kind} is given twice; give it once")
        counts[kind] = int(text)
    return counts


def _seconds(text: str | None, what: str) -> float | None:
    return None if text is None else parse_duration(text, what=what) / 1e9
