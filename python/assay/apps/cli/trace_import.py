"""`assay trace import`: traces of other programs as a trace of Assay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.console import print_json

EXAMPLES = """
Examples:

`assay trace import sda.blktrace.0 sda.blktrace.1 -o orders.trace`

`assay trace import hm_0.csv.gz hm_1.csv.gz -o hm.trace`

`assay trace import Financial1.spc --format spc -o financial1.trace`
"""


def import_trace(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="blktrace, blkparse, fio iolog, MSR Cambridge, SYSTOR '17, Alibaba, Tencent, SPC, FIU, DiskSim, xperf"
            " and WPA, vscsiStats; gzip too. Several are merged by time.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The trace to write.")],
    format_: Annotated[
        str | None, typer.Option("--format", help="Format of the files, where their content does not tell it.")
    ] = None,
    size: Annotated[
        str | None, typer.Option("--size", help="Size of the largest device; an I/O beyond it is refused: 2T.")
    ] = None,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Read traces of other programs, say in one line how they read, and write them as one trace of Assay."""
    del debug
    from assay.base.units import parse_bytes
    from assay.traces.importers.importing import import_traces

    device_bytes = None if size is None else parse_bytes(size, what="--size")
    found = import_traces(files, output, form=format_, device_bytes=device_bytes)
    if json:
        told = {"format": found.title, "ios": found.ios, "reads": found.reads, "writes": found.writes,
                "devices": found.devices, "offset_max_bytes": found.offset_max_bytes,
                "span_ns": found.last_ns - found.first_ns, "notes": list(found.notes)}  # fmt: skip
        print(print_json({"schema_version": 1, "trace": str(output), "imported": told}))
        return
    print(found.line())
    for note in found.notes:
        print(f"note: {note}")
    print(f"trace: {output}")
