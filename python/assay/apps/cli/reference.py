"""The reference of options, a page a verb, from their declarations: `python -m assay.apps.cli.reference docs`.

`python -m assay.apps.cli.reference man DIR` writes the same as pages for `man`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperOption

from assay.apps.cli.app import app
from assay.apps.cli.commands import default_of
from assay.apps.cli.completing import TABLE
from assay.apps.cli.other_tools import DISKSPD, FIO, HAMMERDB, PGBENCH
from assay.apps.cli.verbs import commands_typed
from assay.workloads.options import PlanOption

HEAD = """# Options

A page for each verb. Where an option sets a key of a [plan](plans.md), its page names the key, with the value that the
key has if neither preset, plan nor option sets it. `assay VERB --help` shows the usual options on one screen,
`assay VERB --help-all` all of them. `python -m assay.apps.cli.reference docs` writes these pages.

| verb | what it does |
|---|---|
"""

OTHER_TOOLS = """# Words of other tools

What options of other tools are called here. Who types one of them is told the same. Job files of fio and Iometer are
plans: `assay profile --plan job.fio`, and what these tools print is read by `assay import` ([import](import.md)).

"""


def reference() -> dict[str, str]:
    """Pages as Markdown, by their path below the folder of documents."""
    commands = getattr(typer.main.get_command(app), "commands", {})
    pages, rows = {}, ""
    for verb, command in sorted(commands.items()):
        sections = list(_sections(command, ["assay", verb]))
        if sections and not command.hidden:
            pages[f"options/{verb}.md"] = "\n".join([f"# Options of `assay {verb}`\n", *sections])
            rows += f"| [`assay {verb}`](options/{verb}.md) | {_first_line(command)} |\n"
    return {"options.md": HEAD + rows, **pages, "other-tools.md": OTHER_TOOLS + "\n".join(_other_tools())}


def _other_tools() -> Iterator[str]:
    """A table for each tool whose words Assay knows."""
    for tool, words in (("fio", FIO), ("DiskSpd", DISKSPD), ("pgbench", PGBENCH), ("HammerDB", HAMMERDB)):
        yield f"## {tool}\n\n| {tool} | Assay |\n|---|---|"
        yield from (f"| `{word}` | {meant.replace('|', chr(92) + '|')} |" for word, meant in words.items())
        yield ""
    yield "## In place of a verb\n\n| word | Assay |\n|---|---|"
    yield from (f"| `{word}` | `{meant}` |" for word, meant in commands_typed().items())
    yield ""


def _first_line(command: Any) -> str:
    return str((getattr(command, "loaded", command).help or "").splitlines()[0]).replace("|", "\\|")


def _sections(command: Any, words: Sequence[str]) -> Iterator[str]:
    """A section for each command that does something itself."""
    command = getattr(command, "loaded", command)
    for name, inner in getattr(command, "commands", {}).items():
        yield from _sections(inner, [*words, name])
    if hasattr(command, "commands"):
        return
    yield f"## `{' '.join(words)}`\n"
    yield f"{command.help.splitlines()[0]}\n"
    of_plan: Mapping[str, Sequence[PlanOption]] = getattr(command.callback, "plan_options", {})
    groups: dict[str, list[str]] = {}
    for option in command.params:
        if isinstance(option, TyperOption) and not option.hidden:
            group = str(option.rich_help_panel or "Options")
            groups.setdefault(group, []).append(_row(option, of_plan.get(option.name or "", ())))
    for group, rows in groups.items():
        yield f"| {group} | sets | default | meaning |\n|---|---|---|---|"
        yield "\n".join(rows) + "\n"


def _row(option: TyperOption, of_plan: Sequence[PlanOption]) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    keys = ", ".join(f"`{'.'.join(one.path)}`" for one in of_plan)
    meaning = of_plan[0].help if len(of_plan) == 1 else option.help or ""
    cells = (names, keys, default_of(option, of_plan), meaning.replace("|", "\\|"))
    return f"| {' | '.join(cells)} |"


def completion_table() -> str:
    """What `completion.tsv` holds."""
    from assay.apps.cli.completion_table import table

    return table(typer.main.get_command(app))


def main(*words: str) -> None:
    """Write the reference of options and the table of completion; after the word `man`, pages for `man` instead."""
    if words[0] == "man":
        from assay.apps.cli.manual import manual

        pages = manual(typer.main.get_command(app))
    else:
        pages = reference()
        Path(TABLE).write_text(completion_table(), encoding="utf-8")
    for name, page in pages.items():
        path = Path(words[-1]) / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
