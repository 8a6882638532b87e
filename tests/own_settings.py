"""Tests see no settings of who runs them: neither the environment's nor those of a file in the home folder."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

OF_TESTS = ("ASSAY_UPDATE_GOLDEN", "ASSAY_SEED", "ASSAY_FUZZ_", "ASSAY_TEST_", "ASSAY_CRASH_STATES")
"""What the suite itself reads."""
# A program that works on this repository would get answers for programs, which only their own tests ask for.
OF_PROGRAMS = ("AI_AGENT", "CLAUDECODE")


def hide_settings(environ: MutableMapping[str, str]) -> None:
    """Take away what would change the command's defaults; commands that tests start inherit the environment."""
    for name in list(environ):
        if name in OF_PROGRAMS or (name.startswith("ASSAY_") and not name.startswith(OF_TESTS)):
            del environ[name]
    # Nothing can lie below the null device, so no file of settings is found, whatever HOME a test sets.
    environ["XDG_CONFIG_HOME"] = os.devnull
