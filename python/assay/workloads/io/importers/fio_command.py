"""Commands of fio in a text, as people paste them with what came of them: they say every option of a job."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from assay.workloads.io.importers import fio_options
from assay.workloads.io.importers.asked import words
from assay.workloads.io.importers.fio_options import ALIASES

LETTERS_MAX = 8000
_COMMAND = re.compile(r"(?:^|[\s$#>%;/])fio\s+(-.*)$")
_FLAGS = words(
    "time_based thread group_reporting stonewall norandommap new_group exitall minimal readonly refill_buffers"
)
"""Options that stand alone on a command line; others may have their value in the next word."""


class Commands:
    """Commands that a text has shown so far, by the names of their jobs."""

    def __init__(self) -> None:
        self._pending: str | None = None
        self._found: dict[str, dict[str, str]] = {}

    def line(self, shown: str) -> bool:
        """Whether a line belongs to a command; one goes on where a backslash ends its line."""
        match = _COMMAND.search(shown) if self._pending is None else None
        if match is None and self._pending is None:
            return False
        text = f"{self._pending or ''} {shown if match is None else match[1]}".strip()
        if text.endswith("\\") and len(text) < LETTERS_MAX:
            self._pending = text[:-1]
            return True
        self._pending = None
        options = options_of_command(text)
        if options is not None:
            self._found[options["name"]] = options
        return True

    def of(self, name: str, shown: Mapping[str, object]) -> dict[str, str] | None:
        """The options of a job, if the last command with its name asked for what fio says that it did.

        Parameters
        ----------
        shown
            Pattern, blocks, engine and depth, as fio's line of the job has them.
        """
        options = self._found.pop(name, None)
        if options is None:
            return None
        whole = {**options, "ioengine": options.get("ioengine") or str(shown["ioengine"])}
        said = {name: value for name, value in whole.items() if name not in ("bs", "bssplit", "bsrange")}
        said |= {name: str(shown[name]) for name in ("bs", "bsrange") if name in shown}
        agrees = (
            fio_options.pattern(whole).replace("readwrite", "rw") == shown["rw"]
            and whole["ioengine"].partition(":")[0] == shown["ioengine"]
            and (whole.get("iodepth") or "1") == shown["iodepth"]
            and ("bsrange" in shown or fio_options.block_bytes(whole) == fio_options.block_bytes(said))
        )
        if "bs" in shown and not {"bssplit", "bsrange"} & whole.keys():
            whole["bs"] = str(shown["bs"])
        return whole if agrees else None


def options_of_command(text: str) -> dict[str, str] | None:
    """Options of a command with one job; None where it has a job file, several jobs, or variables.

    Examples
    --------
    >>> options_of_command("--name=a -rw randread --direct=1 --time_based | tee x")
    {'name': 'a', 'rw': 'randread', 'direct': '1', 'time_based': ''}
    >>> options_of_command("--output-format=json job.fio"), options_of_command("--name=$NAME")
    (None, None)
    """
    try:
        given = shlex.split(text[:LETTERS_MAX])
    except ValueError:
        return None
    found: dict[str, str] = {}
    given = given[: next((at for at, word in enumerate(given) if re.match(r"[|&;>]|\d>", word)), len(given))]
    while given:
        word = given.pop(0)
        name, mark, value = word.lstrip("-").partition("=")
        name = ALIASES.get(name, name)
        if not word.startswith("-") or name in found or "$" in word or "`" in word:
            return None
        if not mark and name not in _FLAGS and _has_value(given):
            value = given.pop(0)
        found[name] = value
    return found if found.get("name") else None


def _has_value(given: Sequence[str]) -> bool:
    return bool(given) and not given[0].startswith("-")
