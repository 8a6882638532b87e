"""The rules' pages: one for each family, made from the rules (`python -m assay.insight.rules.pages docs/rules`)."""

from __future__ import annotations

import sys
from pathlib import Path

from assay.insight.rules.registry import FAMILIES
from assay.insight.rules.rule import SUBJECTS, PracticeRule

TITLES = {
    "layout": "Layout",
    "host": "Hosts",
    "devices": "Block devices and file systems",
    "drives": "Drives",
    "initiator": "Initiators and multipath",
    "network": "Network",
    "virtualisation": "Virtualisation",
    "postgresql": "PostgreSQL",
    "mariadb": "MariaDB and MySQL",
    "mssql": "SQL Server",
    "arrays": "Arrays",
}

NOTE = "Made from the rules by `python -m assay.insight.rules.pages docs/rules`; see [check.md](../check.md)."


def page_of(rule: PracticeRule) -> str:
    """The page of one rule, as `assay check --explain` shows it."""
    lines = [
        f"{rule.id}: {rule.title}",
        f"  severity   {rule.severity}",
        f"  of         {SUBJECTS[rule.subject]}" + (f" ({', '.join(rule.engines)})" if rule.engines else ""),
        f"  reads      {', '.join(rule.reads)}",
        f"  wanted     {rule.wanted}",
        f"  why        {rule.why}",
        f"  fix        {rule.fix}",
        f"  source     {rule.source}",
    ]
    if rule.applies:
        lines.insert(3, f"  where      {_conditions(rule)}")
    if rule.asks:
        lines.append(f"  site.toml  {rule.asks}")
    return "\n".join(lines)


def _conditions(rule: PracticeRule) -> str:
    return ", and ".join(condition.words for condition in rule.applies)


def page(family: str) -> str:
    """The page of a family in Markdown."""
    parts = [f"# Rules: {TITLES[family]}", "", NOTE]
    for rule in FAMILIES[family]:
        parts += [
            "",
            f"## `{rule.id}`",
            "",
            f"{rule.title}. {rule.why}",
            "",
            f"- Severity: {rule.severity}. Of {SUBJECTS[rule.subject]}"
            + (f" ({', '.join(rule.engines)})" if rule.engines else "")
            + (f", where {_conditions(rule)}." if rule.applies else "."),
            f"- Reads: {', '.join(f'`{name}`' for name in rule.reads)}."
            + (f" In site.toml: `{rule.asks}`." if rule.asks else ""),
            f"- Wanted: {rule.wanted}.",
            f"- Fix: {rule.fix}",
            f"- Source: {rule.source}.",
        ]
    return "\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """All pages by file name."""
    return {f"{family}.md": page(family) for family in FAMILIES}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
