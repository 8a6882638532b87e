"""Options of plans, declared once on their fields: the command line, plan files and the reference page follow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Option:
    """How a field of a plan is given on the command line.

    Attributes
    ----------
    flags
        Names of the option, the long one first.
    help
        What it does, one sentence.
    group
        Heading under which `--help` lists it.
    metavar
        What stands for its value.
    """

    flags: tuple[str, ...]
    help: str
    group: str = ""
    metavar: str | None = None
