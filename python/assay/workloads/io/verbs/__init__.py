"""The verbs of this kind: `assay profile` and `assay sqlio`."""

from __future__ import annotations

import typer

from assay.workloads.io.verbs import profile, sqlio


def add_verbs(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.command(name="profile", epilog=profile.EXAMPLES)(profile.profile)
    app.command(name="sqlio", epilog=sqlio.EXAMPLES, context_settings=sqlio.CONTEXT, add_help_option=False)(sqlio.sqlio)
