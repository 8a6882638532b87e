"""`assay check`: best practice for hosts, storage, networks, databases and arrays."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.taken import answer, taken_now
from assay.base.errors import ExitCode, UsageError
from assay.base.paths import printable
from assay.document.elements import Paragraph, Tone

if TYPE_CHECKING:
    from assay.document.elements import Block
    from assay.document.terminal import Details
    from assay.insight.rules.outputs import CheckDocument
    from assay.insight.rules.rule import BrokenRule, Findings, PracticeRule

EXAMPLES = """
Examples:

`assay check`

`assay check host /mnt/data postgresql://monitor@db1/postgres --volume log=/mnt/log --profile assay-results/RUN`

`assay check 'model:ps6100xv?raid=50&fill=0.9' --format sarif -o check.sarif`

`assay check --site-template > site.toml; assay check host --site site.toml`

`assay check --explain layout-log-apart`
"""

FORMATS = ("text", "json", "junit", "sarif")
STANDARD_OUTPUT = ("-", "/dev/stdout")
FAIL_ON = ("error", "warning", "note", "never")
NEXT = ("assay assess DIR (what the storage under a folder holds, configured like this)",)
FINDINGS_SHOWN = 6
"""Findings that are printed without --details."""
TONES: dict[str, Tone] = {"error": "bad", "warning": "warn", "note": "plain"}


@usual("--volume", "--profile", "--site", "--only", "--skip", "--fail-on", "--format", "--explain", "--list", "--json")
def check(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TARGET...]",
            help="host, a path of storage, a file of settings, a database's URL, model:NAME or run folder (host).",
            show_default=False,
        ),
    ] = None,
    volume: Annotated[
        list[str] | None, typer.Option("--volume", help="Role of a path: data=/mnt/x, log=/mnt/y.")
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option("--profile", help="A run of assay profile, for rules that compare with measured figures."),
    ] = None,
    site: Annotated[
        Path | None, typer.Option("--site", help="site.toml: facts that cannot be read, such as switches and arrays.")
    ] = None,
    site_template: Annotated[bool, typer.Option("--site-template", help="Print a site.toml to fill in.")] = False,
    only: Annotated[str | None, typer.Option("--only", help="Only these rules or families.")] = None,
    skip: Annotated[str | None, typer.Option("--skip", help="Not these rules or families.")] = None,
    fail_on: Annotated[
        str, typer.Option("--fail-on", help="Lowest severity that gives exit code 1: error, warning, note, never.")
    ] = "error",
    form: Annotated[str, typer.Option("--format", help="text, json, junit or sarif.")] = "text",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the result to this file, or over an older one.")
    ] = None,
    explain: Annotated[str | None, typer.Option("--explain", help="Show the page of a rule.")] = None,
    list_rules: Annotated[bool, typer.Option("--list", help="List all rules.")] = False,
    json: opt.Json = False,
    details: opt.Details = False,
    debug: opt.Debug = False,
) -> None:
    """Compare settings with best practice, and say what to change and why; an unknown setting never passes."""
    del debug
    from assay.insight.rules.registry import chosen_rules, rule_named

    form = "json" if json else form
    if form not in FORMATS:
        raise UsageError(f"--format {form}: accepted: {', '.join(FORMATS)}")
    if fail_on not in FAIL_ON:
        raise UsageError(f"--fail-on {fail_on}: accepted: {', '.join(FAIL_ON)}")
    rules = chosen_rules(only, skip)
    if site_template:
        from assay.insight.rules.facts.site import template

        print(template(), end="")
        return
    if explain is not None:
        from assay.insight.rules.pages import page_of

        print(page_of(rule_named(explain)))
        return
    if list_rules:
        for rule in rules:
            print(f"{rule.id:38} {rule.severity:8} {rule.title}")
        return
    from assay.insight.rules.gather import subjects_of
    from assay.insight.rules.outputs import document
    from assay.insight.rules.rule import check as judge

    subjects, notices = subjects_of(targets or [], volumes=volume or [], profile=profile, site=site)
    told = judge(subjects, rules)
    found = document(told, targets or ["host"], notices)
    if (form == "text" and output is None) or taken_now() is not None:
        answer(lambda: found, lambda: finding_blocks(told, notices), details=details, steps=NEXT)
    else:
        _write(_text(form, told, rules, found, notices), output)
    if fail_on != "never" and told.at_least(fail_on):  # type: ignore[arg-type]
        raise typer.Exit(int(ExitCode.LIMIT_MISSED))


def _text(form: str, told: Findings, rules: Sequence[PracticeRule], found: CheckDocument, notices: list[str]) -> str:
    from assay.insight.rules.outputs import junit, sarif

    if form == "json":
        return json_module.dumps(found, indent=1) + "\n"
    if form == "text":
        return findings_text(told, notices)
    return junit(told) if form == "junit" else sarif(told, rules) + "\n"


def _write(text: str, output: Path | None) -> None:
    if output is None or str(output) in STANDARD_OUTPUT:
        print(text, end="")
        return
    from assay.insight.rules.written import write_findings

    write_findings(text, output)
    print(f"written: {printable(output)}", file=sys.stderr)


def findings_text(told: Findings, notices: list[str]) -> str:
    """All of it without colours."""
    from assay.base.paths import plain

    lines = [_counts(told), *_findings(told.findings), *_gaps(told), *_notes(notices)]
    return "\n".join(plain(line.text) for line in lines) + "\n"


def finding_blocks(told: Findings, notices: list[str]) -> list[Block | Details]:
    """How many findings there are, the worst of them, and as details the others and what is not known."""
    from assay.document.terminal import Details

    shown, others = told.findings[:FINDINGS_SHOWN], told.findings[FINDINGS_SHOWN:]
    blocks: list[Block | Details] = [_counts(told), *_findings(shown)]
    if others:
        blocks.append(Details(f"{len(others)} more findings: --details prints them", _findings(others)))
    if told.not_checked:
        what = f"{len(told.not_checked)} rules were not checked: --details says why"
        blocks.append(Details(what, _gaps(told)))
    return [*blocks, *_notes(notices)]


def _counts(told: Findings) -> Paragraph:
    counts = {severity: sum(one.rule.severity == severity for one in told.findings) for severity in TONES}
    found = (
        ", ".join(f"{count} {name}{'s' if count != 1 else ''}" for name, count in counts.items() if count)
        or "no findings"
    )
    found += f"; {len(told.passed)} passed, {len(told.not_checked)} not checked, {len(told.not_applicable)}"
    return Paragraph(f"{found} rules do not apply", strong=True)


def _gaps(told: Findings) -> list[Paragraph]:
    reasons: dict[str, list[str]] = {}
    for gap in told.not_checked:
        reasons.setdefault(gap.reason, []).append(gap.rule.id)
    asked = [name for reason in list(reasons) if "site.toml" in reason for name in reasons.pop(reason)]
    gaps = [f"{', '.join(dict.fromkeys(names))}: {reason}" for reason, names in reasons.items()]
    if asked:
        gaps.insert(0, f"a site.toml can say it (assay check --site-template): {', '.join(dict.fromkeys(asked))}")
    return [Paragraph(f"not checked: {gap}", tone="quiet") for gap in gaps]


def _notes(notices: list[str]) -> list[Paragraph]:
    return [Paragraph(f"note: {notice}") for notice in notices]


def _findings(findings: Sequence[BrokenRule]) -> list[Paragraph]:
    return [line for one in findings for line in _finding(one)]


def _finding(one: BrokenRule) -> list[Paragraph]:
    rule = one.rule
    return [
        Paragraph(f"{rule.severity}: {rule.id}: {one.subject.name}: {rule.title}", tone=TONES[rule.severity]),
        Paragraph(f"  found {one.found} ({one.origin}); wanted {rule.wanted}"),
        Paragraph(f"  {rule.why} {rule.fix} [{rule.source}]"),
    ]
