"""`assay config`: which defaults of options are set, and by which file or variable."""

from __future__ import annotations

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import App
from assay.apps.cli.settings import SETTINGS, Value, chosen, files, own_file, settings, variable_of

EXAMPLES = """
Examples:

`assay config show`

`assay config show --json`
"""

app = App(
    name="config",
    help="Show defaults of options that files and the environment set, each with its source.",
    epilog=EXAMPLES,
    no_args_is_help=True,
)


@app.callback()
def _all() -> None:
    """Show defaults of options that files and the environment set, each with its source."""


@app.command(name="show", epilog="Examples:\n\n`assay config show --json`")
def show_settings(context: typer.Context, json: opt.Json = False, debug: opt.Debug = False) -> None:
    """Show the defaults that files and the environment set, and where each comes from."""
    del debug
    from assay.apps.cli.console import print_json
    from assay.base.paths import printable
    from assay.document.elements import Bullets, Paragraph
    from assay.document.terminal import notes, show, table

    isolated = bool(context.find_root().params.get("isolated"))
    found, notices = settings(isolated=isolated)
    verbs = dict.fromkeys(["", *(one.verb for one in found)])
    held = [one for verb in verbs for one in chosen(found, verb).values() if one.verb == verb]
    if json:
        rows = [{"verb": one.verb or None, "option": one.name, "value": one.value, "from": one.source} for one in held]
        print(print_json({"schema_version": 1, "verb": "config", "settings": rows, "notices": notices}))
        return
    own = own_file()
    read = [] if isolated else [printable(path) for path, _ in files()]
    known = {name: "[VERB]" if one.of_verb else variable_of(name) for name, one in SETTINGS.items()}
    show(
        [
            Paragraph(f"{len(held)} defaults are set." if held else "No default is set.", strong=True),
            table(
                "",
                ["verb", "option", "value", "from"],
                [[one.verb or "all", f"--{one.name}", _shown(one.value), one.source] for one in held],
            ),
            Bullets([f"file: {path}" for path in read]),
            Paragraph(f"Your own file: {printable(own) if own is not None else 'none, HOME is not set'}"),
            Paragraph(f"May be set: {', '.join(f'{name} ({where})' for name, where in known.items())}"),
            notes(notices),
        ]
    )


def _shown(value: Value) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
