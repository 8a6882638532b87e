"""`assay trace show`: what the load of a trace asks of storage, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.console import print_json
from assay.base.errors import UsageError
from assay.base.paths import printable

if TYPE_CHECKING:
    from assay.traces.character.whole import TraceCharacter

EXAMPLES = """
Examples:

`assay trace show orders.trace`

`assay trace show orders.trace -o orders.html -o orders.pdf`
"""


def show_trace(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A trace, captured or imported.")],
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the page: FILE.html, FILE.pdf or FILE.md."),
    ] = None,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Say what a load asks for: rates, mix, sizes, bursts, skew, working set, latencies, and who asked."""
    del debug
    from assay import _core
    from assay.document.elements import FigureElement
    from assay.document.terminal import show
    from assay.report.pages import check_pages, write_page
    from assay.report.sections.trace import trace_document
    from assay.traces.character.whole import characterise
    from assay.traces.file import read_trace

    check_pages(output or [])
    opened = read_trace(trace)
    found = characterise(opened)
    if not found.ios:
        raise UsageError(f"{printable(trace)}: holds no I/O")
    document = trace_document(opened, found, str(_core.build_info()["version"]))
    for path in output or []:
        write_page(path, document)
    if json:
        print(print_json({"schema_version": 1, "trace": str(trace), "load": _told(found)}))
        return
    # The sentences beside them say what figures show.
    show(one for section in document.sections for one in section.blocks if not isinstance(one, FigureElement))
    for path in output or []:
        print(f"page: {path}")


def _told(found: TraceCharacter) -> dict[str, object]:
    """The figures as JSON."""
    from dataclasses import asdict

    return {
        "ios": found.ios, "span_ns": found.span_ns, "counts": found.counts, "read_bytes": found.read_bytes,
        "write_bytes": found.write_bytes,
        "sizes": {name: {str(size): count for size, count in sorted(sizes.items())}
                  for name, sizes in zip(("reads", "writes"), found.sizes, strict=True)},
        "sequential_share": dict(zip(("reads", "writes"), found.sequential, strict=True)),
        "stream_ios_mean": found.run_ios, "bursts": [asdict(one) for one in found.bursts],
        "skew": None if found.skew is None else asdict(found.skew),
        "reuse": None if found.reuse is None else asdict(found.reuse),
        "latency_ns": found.waits, "outstanding_mean": found.outstanding_mean,
        "devices": {name: asdict(one) for name, one in found.devices.items()},
        "processes": {name: asdict(one) for name, one in found.processes.items()},
    }  # fmt: skip
