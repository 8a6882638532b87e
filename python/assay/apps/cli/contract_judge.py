"""`assay contract judge`: a contract over months of a flight recording, clause by clause."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.taken import answer, taken_now
from assay.base.errors import ExitCode, UsageError
from assay.base.paths import printable

if TYPE_CHECKING:
    from assay.document.elements import Block
    from assay.document.terminal import Details
    from assay.insight.contracts.judge import JudgedClause, JudgedContract

EXAMPLES = """
Examples:

`assay contract judge contract.toml /var/lib/assay/recording`

`assay contract judge contract.toml recording -o vendor.html -o vendor.pdf`

`assay contract judge contract.toml recording --json`
"""

Contract = Annotated[
    Path, typer.Argument(metavar="CONTRACT", help="A contract in TOML; assay contract template prints one.")
]


def judge(
    contract: Contract,
    recording: Annotated[Path, typer.Argument(metavar="RECORDING", help="A folder of assay record.")],
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the page: FILE.html, FILE.pdf or FILE.md."),
    ] = None,
    json: opt.Json = False,
    details: opt.Details = False,
    debug: opt.Debug = False,
) -> None:
    """Judge a contract over a recording: minutes in breach by clause, what does not count, the worst hours."""
    del debug
    from assay.insight.contracts.contract import read_contract
    from assay.insight.contracts.document import record_of
    from assay.insight.contracts.judge import judge_recording
    from assay.record.flight import has_recording
    from assay.report.pages import check_pages, write_page

    check_pages(output or [])
    asked = read_contract(contract)
    if not has_recording(recording):
        raise UsageError(f"{printable(recording)}: is no recording; give a folder of assay record")
    found = judge_recording(asked, recording)
    for path in output or []:
        from assay import _core
        from assay.report.sections.contract import contract_document

        write_page(path, contract_document(found, str(_core.build_info()["version"])))
    answer(
        lambda: {"schema_version": 1, "verb": "contract judge", **record_of(found)},
        lambda: contract_blocks(found, output or []),
        json=json,
        details=details,
        steps=() if output else ("add -o vendor.html (a page for the vendor, with months, worst hours and evidence)",),
    )
    if taken_now() is None:
        end(found.met)


def end(met: bool | None) -> None:
    """End the command as a contract came out: 1 where a clause is breached, 5 where one is unknown.

    Raises
    ------
    typer.Exit
        Not all clauses are met.
    """
    if met is not True:
        raise typer.Exit(int(ExitCode.LIMIT_MISSED if met is False else ExitCode.LIMIT_UNKNOWN))


def contract_blocks(found: JudgedContract, pages: list[Path]) -> list[Block | Details]:
    """The verdict, every clause, and as details the months, reasons and worst hours of each clause of latency."""
    from assay.document.elements import Paragraph
    from assay.document.terminal import Details, notes_and_details
    from assay.document.text import moment
    from assay.insight.contracts.document import verdict_sentence
    from assay.report.clauses import TONES, clauses_table

    blocks: list[Block | Details] = [
        Paragraph(verdict_sentence(found.clauses), strong=True, tone=TONES[found.met]),
        Paragraph(f"{moment(found.begin_ns)} to {moment(found.end_ns)}, {', '.join(found.judged.devices[:8])} of"
                  f" {found.judged.host}"),
        clauses_table(found.clauses),
    ]  # fmt: skip
    blocks += [Paragraph(f"cannot be judged: {one.name}: {one.why}") for one in found.clauses if one.met is None]
    for clause in found.clauses:
        if clause.latency is not None:
            blocks += _latency(clause)
    blocks += notes_and_details(found.notices, report=False)
    blocks += [Paragraph(f"page: {printable(path)}") for path in pages]
    return [one for one in blocks if not isinstance(one, Details) or one.blocks]


def _latency(clause: JudgedClause) -> list[Block | Details]:
    from assay.document.elements import Paragraph
    from assay.document.terminal import Details
    from assay.report.sections.contract import months_table, reasons_table, worst_table

    judge = clause.latency
    assert judge is not None
    tables: list[Block] = [Paragraph(clause.name, strong=True), months_table("", judge)]
    tables.append(reasons_table("", judge.minutes))
    if judge.worst():
        tables.append(worst_table("", judge))
    return [Details(f"{clause.name}: months, minutes by reason, worst hours: --details prints them", tables)]
