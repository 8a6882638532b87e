"""Ctrl-C and SIGTERM before a verb is at work, and after it: one line and exit code 130, never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)


def interrupted_when_imported(module: str, number: signal.Signals, folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code of a command that gets a signal when it has imported a module, and what it says then."""
    command = [sys.executable, "-X", "importtime", "-m", "assay", *arguments]
    sent, said = False, []
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            is_import = line.startswith("import time:")
            if is_import and not sent and line.rpartition("|")[2].strip() == module:
                process.send_signal(number)
                sent = True
            elif not is_import:
                said.append(line)
    assert sent, f"{module} was never imported"
    return process.returncode, "".join(said)


@SIGNALS
@pytest.mark.parametrize(
    "module", ["typing", "typer.core", "assay.base.errors", "assay.apps.cli.options", "assay.workloads.io"]
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_while_modules_load(tmp_path: Path, module: str, number: signal.Signals) -> None:
    code, said = interrupted_when_imported(module, number, tmp_path, "profile", "null:", "--dry-run")
    assert (code, said) == (130, "assay: interrupted\n")
    assert list(tmp_path.iterdir()) == []


@SIGNALS
@pytest.mark.parametrize("module", ["rich.segment", "rich.table"])
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_while_a_verb_loads_what_it_needs(tmp_path: Path, module: str, number: signal.Signals) -> None:
    code, said = interrupted_when_imported(module, number, tmp_path, "model", "list")
    assert (code, said) == (130, "assay: interrupted\n")


AT_EXIT = """
import atexit, os, signal, sys
atexit.register(lambda: os.kill(os.getpid(), signal.{number}))
sys.argv = ["assay", {verb!r}, "--help"]
from assay.apps.cli import main
main()
"""


@SIGNALS
@pytest.mark.parametrize("verb", ["profile", "none"])
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_while_the_interpreter_shuts_down(verb: str, number: signal.Signals) -> None:
    script = AT_EXIT.format(number=number.name, verb=verb)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == "assay: interrupted"
    assert "Traceback" not in done.stderr


IN_LIBRARY = """
import os, signal, sys
sys.argv = ["assay", "profile", "null:"]
import assay.apps.cli.workloads.profile
from assay.base.errors import UsageError

def broken(*_, **__):
    # As a library does that takes whatever goes wrong while it loads for a fault of its own.
    try:
        os.kill(os.getpid(), signal.{number})
        for _ in range(10**9):
            pass
    except KeyboardInterrupt as error:
        raise ImportError("cannot import name 'x'") from error

assay.apps.cli.workloads.profile.start = broken
from assay.apps.cli import main
main()
"""


@SIGNALS
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_even_if_a_library_makes_an_error_of_it(number: signal.Signals) -> None:
    script = IN_LIBRARY.format(number=number.name)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "assay: interrupted\n")


IN_A_TEXT = """
import sys
sys.argv = ["assay", "profile", "null:"]
import assay.apps.cli.workloads.profile

def broken(*_, **__):
    # As a signal does while a library makes a data class.
    exec("import os, signal; os.kill(os.getpid(), signal.{number})\\nfor _ in range(10**9): pass")

assay.apps.cli.workloads.profile.start = broken
from assay.apps.cli import main
main()
"""


@SIGNALS
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_even_within_code_that_is_a_text(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "broken.py").write_text(IN_A_TEXT.format(number=number.name))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-m", "broken"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "assay: interrupted\n")
