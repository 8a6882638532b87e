"""`assay record`: the flight recorder, its systemd unit, and its last hour in the terminal."""

from __future__ import annotations

import json as json_module
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import App, ScreenGroup, usual
from assay.apps.cli.units import OnlyPrint, Overwrite, write_units
from assay.base.errors import AssayError, IoFailed, UsageError
from assay.base.paths import printable
from assay.base.units import parse_bytes, parse_duration

EXAMPLES = """
Examples:

`assay record /var/lib/assay/recording --volume data=/mnt/data --volume log=/mnt/log`

`assay record rec --database postgresql://monitor@db1/postgres --for 1h --metrics 127.0.0.1:9600`

`assay record show rec; assay report rec; assay diagnose rec`

`assay record install /var/lib/assay/recording --keep 5GB`

`assay record show --help; assay record install --help`
"""

FOLDER = Path("assay-recording")

Directory = Annotated[Path, typer.Argument(metavar="[DIR]", help="Folder of the recording; it goes on where it ended.")]
Volumes = Annotated[
    list[str] | None, typer.Option("--volume", help="Role of a path's device: data=/mnt/x, log=/dev/sdb.")
]
Databases = Annotated[
    list[str] | None, typer.Option("--database", help="postgresql://, mariadb:// or mssql:// URL; may be repeated.")
]
Keep = Annotated[str, typer.Option("--keep", help="Largest size of the recording on disk.")]
Every = Annotated[str, typer.Option("--every", help="Time between samples.")]
Metrics = Annotated[str | None, typer.Option("--metrics", help="Serve OpenMetrics at this address: 127.0.0.1:9600.")]
Anywhere = Annotated[bool, typer.Option("--metrics-anywhere", help="Allow an address that others reach.")]
Processes = Annotated[
    bool,
    typer.Option("--processes/--no-processes", help="Record programs by their I/O (needs root or CAP_SYS_PTRACE)."),
]
Latencies = Annotated[
    bool,
    typer.Option("--latencies", help="Record histograms of times above devices and in them (needs root, see trace)."),
]


Contract = Annotated[
    Path | None,
    typer.Option("--contract", help="What the storage was promised to do: kept as contract.toml beside it."),
]


class RecordCommand(ScreenGroup):
    """`assay record DIR` beside `assay record show DIR`: what names no command is the folder to record into.

    Help without a command is that of recording, whose options are asked for most.
    """

    default = "start"
    """The command that is meant where none is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command in that is left out."""
        first = args[0] if args else ""
        if first not in self.commands:
            args = [self.default, *args]
        return super().parse_args(ctx, args)


app = App(
    name="record",
    cls=RecordCommand,
    help="Record host, storage and databases for as long as needed, within a fixed budget of disk.",
    epilog=EXAMPLES,
)


@app.command(name="start", epilog=EXAMPLES)
@usual(
    "--volume", "--database", "--keep", "--every", "--for", "--metrics", "--latencies", "--title", "--json",
)  # fmt: skip
def start(
    directory: Directory = FOLDER,
    volume: Volumes = None,
    database: Databases = None,
    keep: Keep = "2GB",
    every: Every = "1s",
    length: Annotated[str | None, typer.Option("--for", help="Stop after this time: 1h (until stopped).")] = None,
    metrics: Metrics = None,
    metrics_anywhere: Anywhere = False,
    processes: Processes = True,
    latencies: Latencies = False,
    contract: Contract = None,
    title: opt.Title = None,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Record until stopped; seconds become minutes and quarter hours as they grow old."""
    del debug
    from assay.targets.databases import is_database

    if is_database(url := str(directory).replace(":/", "://", 1)):
        raise UsageError(f"{url.partition(':')[0]}:... is a server; give it as --database, with or without a folder")
    settings = _settings(
        directory, volume or [], database or [], keep=keep, every=every, length=length, metrics=metrics,
        anywhere=metrics_anywhere, processes=processes,
    )  # fmt: skip
    if contract is not None:
        from assay.insight.contracts.contract import read_contract

        read_contract(contract)
    if latencies:
        refuse_tracing()
        settings["latencies"] = True
    from assay.apps.cli.next_step import next_steps

    settings |= {"json": json, "title": title}
    settings["next"] = [] if json else next_steps({"recording": {}}, directory)
    # What a recording holds is for its owner alone.
    os.umask(0o077)
    _prepare(directory, settings)
    if contract is not None:
        from assay.insight.contracts.this_month import keep_contract

        keep_contract(contract, directory)
    ends = f"for {length}; Ctrl-C ends it earlier" if length else "until stopped; stop with Ctrl-C"
    print(f"recording every {every}, at most {keep}, into {printable(directory)} {ends}", file=sys.stderr, flush=True)
    _become(settings)


def _settings(
    directory: Path,
    volumes: list[str],
    databases: list[str],
    *,
    keep: str,
    every: str,
    length: str | None,
    metrics: str | None,
    anywhere: bool,
    processes: bool,
) -> dict[str, Any]:
    """What the recorder is told, checked.

    Raises
    ------
    UsageError
        A value is wrong.
    """
    from assay.targets.databases import is_database, parse_databases
    from assay.telemetry.flight.metrics import parse_address
    from assay.telemetry.flight.writer import KEEP_MIN_BYTES

    keep_bytes = parse_bytes(keep, what="--keep")
    if keep_bytes < KEEP_MIN_BYTES:
        raise UsageError(f"--keep {keep}: is too little; {KEEP_MIN_BYTES >> 20} MiB are the least")
    interval_s = parse_duration(every, what="--every") / 1e9
    if not 0.1 <= interval_s <= 60:
        raise UsageError(f"--every {every}: accepted: from 100ms to 60s")
    for text in databases:
        if not is_database(text) or text.startswith(("embedded:", "duckdb:")):
            raise UsageError(f"--database {text}: accepted: postgresql://, mariadb:// and mssql:// URLs")
    roles = _roles(volumes)
    for spec in parse_databases(databases) if databases else []:
        roles = _with_roles_of(spec, roles)
    return {
        "folder": os.path.abspath(directory),
        "keep_bytes": keep_bytes,
        "interval_s": interval_s,
        "for_s": parse_duration(length, what="--for") / 1e9 if length else None,
        "roles": roles,
        "databases": databases,
        "metrics": list(parse_address(metrics, anywhere=anywhere)) if metrics else None,
        "processes": processes,
    }


def refuse_tracing() -> None:
    """See that this process may use the kernel's tracing of block I/O.

    Raises
    ------
    NotSupported
        It may not, or this kernel cannot.
    """
    from assay.traces.capture.devices import captured_devices
    from assay.traces.capture.ftrace import TraceInstance

    with TraceInstance(captured_devices([])):
        pass


def _roles(texts: list[str]) -> dict[str, str]:
    """Roles of devices, of `data=/mnt/x`.

    Raises
    ------
    UsageError
        It has another form, the path is missing, or no single device counts its I/O.
    """
    from assay.targets.files.spec import ROLES
    from assay.targets.host import device_of, roles_by_device

    devices: dict[str, list[str]] = {}
    for text in texts:
        role, mark, path = text.partition("=")
        if not mark or not path or role not in ROLES:
            raise UsageError(
                f"--volume {text!r}: accepted: ROLE=PATH, of {', '.join(ROLES)}: data=/mnt/x, log=/dev/sdb"
            )
        if not os.path.exists(path):
            raise UsageError(f"--volume {text!r}: {path} is not there")
        device = device_of(path)
        if device is None:
            raise UsageError(f"--volume {text!r}: no single block device counts the I/O on {path}")
        devices.setdefault(role, []).append(device)
    return roles_by_device(devices)


def _with_roles_of(spec: Any, roles: dict[str, str]) -> dict[str, str]:
    """Roles of a local database's devices beside those given; a server that is away is tried again later."""
    from assay.targets.databases import open_database
    from assay.targets.databases.common.table_set import NO_TABLES
    from assay.targets.host import devices_by_role, roles_by_device

    database = open_database(spec, NO_TABLES)
    try:
        database.open()
        try:
            found = roles_by_device(devices_by_role([database.storage_paths()])) if database.is_local else {}
        finally:
            database.close()
    except UsageError:
        raise
    except AssayError as error:
        print(f"note: {error}; it is tried again each minute", file=sys.stderr)
        return roles
    return {**found, **roles}


def _prepare(directory: Path, settings: dict[str, Any]) -> None:
    """Make the folder, or see that it holds a recording which goes on.

    Raises
    ------
    UsageError
        It holds something else.
    """
    from assay import _core
    from assay.record.flight import has_recording
    from assay.record.run_folder import MANIFEST_NAME, RunFolder
    from assay.targets.host import host_facts
    from assay.telemetry.flight.writer import own_folder

    host = host_facts()
    told = {
        "interval_s": settings["interval_s"],
        "keep_bytes": settings["keep_bytes"],
        "roles": settings["roles"],
        "databases": [_shown(text) for text in settings["databases"]],
    }
    manifest = {
        "command": sys.argv[1:],
        "build": _core.build_info(),
        "host": host,
        "target": {"volumes": [], "databases": []},
        "parts": [],
        "status": "done",
        **({"title": settings["title"]} if settings.get("title") else {}),
        "recording": {"files": [], "hosts": [host["hostname"]], "notices": [], **told},
    }
    if _holds_something(directory):
        if not (directory / MANIFEST_NAME).exists():
            raise UsageError(f"{printable(directory)}: holds files that are no recording; give an empty or new folder")
        folder = RunFolder.open(directory)
        if folder.manifest.get("verb") != "record":
            raise UsageError(f"{printable(directory)}: holds a run, no recording; give another folder")
        if not has_recording(directory) or folder.manifest.get("host", {}).get("hostname") in (None, host["hostname"]):
            return
        raise UsageError(f"{printable(directory)}: holds the recording of another host; give another folder")
    own_folder(directory).close()
    with RunFolder.create_at(directory, "record", manifest):
        return


def _holds_something(directory: Path) -> bool:
    """Whether a folder holds anything; one that is missing is made.

    Raises
    ------
    UsageError
        It cannot be made or read.
    """
    try:
        directory.mkdir(0o700, parents=True, exist_ok=True)
        return any(directory.iterdir())
    except (FileExistsError, NotADirectoryError):
        raise UsageError(
            f"{printable(directory)}: is no folder; a recording goes into one, such as {FOLDER}; --volume data=/dev/sdb"
            " gives a device its role"
        ) from None
    except OSError as error:
        raise UsageError(f"{printable(directory)}: cannot be recorded into: {error.strerror}") from None


def _shown(text: str) -> str:
    from assay.targets.databases import parse_database

    return parse_database(text).display


def record_for(directory: Path, length: str, databases: list[str]) -> None:
    """Record this machine and servers for a while, in a process of its own; Ctrl-C ends it earlier.

    Raises
    ------
    UsageError
        A value is wrong.
    IoFailed
        The recorder failed.
    """
    settings = _settings(
        directory, [], databases, keep="2GB", every="1s", length=length, metrics=None, anywhere=False, processes=True
    )  # fmt: skip
    settings["json"] = False
    _prepare(directory, settings)
    print(f"recording for {length}; Ctrl-C answers earlier", file=sys.stderr, flush=True)
    command, environment, settings_file = _recorder(settings)
    process = subprocess.Popen(command, env=environment, pass_fds=[settings_file], stdout=sys.stderr)
    while True:
        try:
            code = process.wait()
            break
        except KeyboardInterrupt:
            # The recorder gets the same signal, and ends what it has begun.
            continue
    if code not in (0, 130):
        raise IoFailed(f"--live: the recorder ended with code {code}; see what it said above")


def _become(settings: dict[str, Any]) -> None:
    """Go on as the recorder's own process, which holds nothing of this one."""
    command, environment, _ = _recorder(settings)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, environment)


def _recorder(settings: dict[str, Any]) -> tuple[list[str], dict[str, str], int]:
    """Command and environment of the recorder's process, and the open file that holds its settings."""
    from assay.base.secrets import secrets_for_child

    settings_file = os.memfd_create("assay-record", 0)
    os.write(settings_file, json_module.dumps(settings).encode())
    os.lseek(settings_file, 0, os.SEEK_SET)
    os.set_inheritable(settings_file, True)
    command = [sys.executable, "-P", "-m", "assay.telemetry.flight.process", str(settings_file)]
    return command, {**os.environ, **secrets_for_child()}, settings_file


@app.command(name="show")
def show(
    directory: Directory = FOLDER,
    last: Annotated[str, typer.Option("--last", help="Length of the drawn end: 1h.")] = "1h",
    debug: opt.Debug = False,
) -> None:
    """Draw the last hour in the terminal."""
    del debug
    from assay.apps.cli.record_show import draw

    draw(directory, parse_duration(last, what="--last"))


@app.command(name="install")
def install(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="Folder of the recording, below /var/lib.")] = Path(
        "/var/lib/assay/recording"
    ),
    volume: Volumes = None,
    database: Databases = None,
    keep: Keep = "2GB",
    every: Every = "1s",
    metrics: Metrics = None,
    processes: Processes = True,
    contract: Contract = None,
    unit: Annotated[
        Path,
        typer.Option("--unit", help="Path of the unit.", show_default="assay-record.service in /etc/systemd/system"),
    ] = Path("/etc/systemd/system/assay-record.service"),
    only_print: OnlyPrint = False,
    overwrite: Overwrite = False,
    debug: opt.Debug = False,
) -> None:
    """Write a systemd unit that records from boot on, with no right that it does not need."""
    del debug
    from assay.telemetry.flight.unit import unit_text

    if metrics is not None:
        from assay.telemetry.flight.metrics import parse_address

        parse_address(metrics, anywhere=False)
    parse_bytes(keep, what="--keep")
    parse_duration(every, what="--every")
    arguments = [word for text in volume or [] for word in ("--volume", text)]
    arguments += [word for text in database or [] for word in ("--database", text)]
    arguments += ["--keep", keep, "--every", every, *(["--metrics", metrics] if metrics else [])]
    arguments += [] if processes else ["--no-processes"]
    if contract is not None:
        from assay.insight.contracts.contract import read_contract

        read_contract(contract)
        arguments += ["--contract", os.path.abspath(contract)]
    text = unit_text(directory, arguments, processes=processes, databases=database or [])
    start = f"systemctl daemon-reload && systemctl enable --now {unit.name}"
    write_units({unit: text}, start, only_print=only_print, overwrite=overwrite)
