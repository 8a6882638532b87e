"""`assay import`: telemetry of other tools as a recording, results of other programs as a run."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.taken import command_words, taken_now

if TYPE_CHECKING:
    from assay.telemetry.importers.importer import Options

EXAMPLES = """
Examples:

`assay import perfmon.csv --volume data=D: --volume log=L:`

`assay import esx1.csv sql1.csv pgbench.log --zone +02:00`

`sadf -j /var/log/sysstat/sa23 -- -A > sar.json; assay import sar.json`

`fio --output-format=json+ --output=fio.json job.fio; assay import fio.json`
"""


Start = Annotated[
    str | None,
    typer.Option("--start", help="Begin of files without times: 2026-11-23T19:00:00+01:00."),
]
Interval = Annotated[
    str | None, typer.Option("--interval", help="Time between the reports of files without times: 10s.")
]
DateOrder = Annotated[
    str | None,
    typer.Option("--date-order", help="Order in ambiguous dates: day-first or month-first."),
]


def options_of(
    host: str,
    zone: str | None,
    volume: Sequence[str] | None,
    start: str | None,
    interval: str | None,
    date_order: str | None,
) -> Options:
    """What the options of a command say of foreign files."""
    from assay.telemetry.importers.importer import Options
    from assay.telemetry.importers.recording import (
        parse_date_order,
        parse_interval,
        parse_roles,
        parse_start,
        parse_zone,
    )

    return Options(
        host=host,
        zone_s=parse_zone(zone) if zone is not None else None,
        roles=parse_roles(volume or []),
        start_ns=parse_start(start) if start is not None else None,
        interval_ns=parse_interval(interval) if interval is not None else None,
        date_order=parse_date_order(date_order) if date_order is not None else None,
    )


@usual("--volume", "--host", "--zone", "--start", "--interval", "--title", "-o", "--json")
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Perfmon CSV or TSV, esxtop batch, sar and sadf, iostat, nfsiostat, mpstat, vmstat, pidstat, nmon,"
            " atop, collectl, PCP, /proc/diskstats, vscsiStats; logs of pgbench, HammerDB, sysbench, go-tpc and"
            " BenchBase; results of fio (JSON), DiskSpd (XML) and Iometer (CSV). Known by content.",
        ),
    ],
    volume: Annotated[
        list[str] | None, typer.Option("--volume", help="Role of a device: data=D:, log=sdb, tempdb=T:.")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Host name for files that name none.")] = "imported",
    zone: Annotated[
        str | None,
        typer.Option("--zone", help="UTC offset to assume for files without a time zone: +02:00 (this machine's)."),
    ] = None,
    start: Start = None,
    interval: Interval = None,
    date_order: DateOrder = None,
    title: opt.Title = None,
    output: opt.Output = opt.OUTPUT_DEFAULT,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Read telemetry and results of other tools into a run folder; name values taken and left out, and why."""
    del debug
    from assay.apps.cli.console import say
    from assay.apps.cli.next_step import next_steps, print_next
    from assay.record.run_folder import RunFolder
    from assay.run.imports import import_files

    taken = taken_now()
    is_quiet = json or taken is not None
    options = options_of(host, zone, volume, start, interval, date_order)
    found = import_files(
        files, into=output, options=options, command=command_words(), tell=lambda line: None if is_quiet else say(line)
    )
    if title is not None:
        with RunFolder.open(found.path) as folder:
            folder.update(title=title)
    if taken is not None:
        taken.folder = found.path
        return
    if json:
        told = {"recording": found.recording, "imported": found.imported}
        known = {key: value for key, value in told.items() if value is not None}
        print(json_module.dumps({"schema_version": 1, "run_folder": str(found.path), **known}))
        return
    for line in found.lines():
        print(line)
    for notice in found.notices:
        print(f"note: {notice}")
    print_next(next_steps({"recording": found.recording, "imported": found.imported}, found.path))
    print(f"{'run' if found.imported is not None else 'recording'}: {found.path}")
