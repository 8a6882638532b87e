"""The checkout, and the environments that packages are installed into."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout these tests belong to; an installed package has none of the files they look at."""
    if not (ROOT / "Makefile").is_file():
        pytest.skip("not a checkout of the repository")
    return ROOT


@pytest.fixture(scope="session")
def make_environment(tmp_path_factory: pytest.TempPathFactory):
    """A function that makes an empty virtual environment and returns its folder of programs."""

    def make(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name) / "venv"
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        return folder / "bin"

    return make


def run(
    command: Sequence[str | os.PathLike[str]], *, folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, whatever its exit code."""
    return subprocess.run(
        [os.fspath(part) for part in command],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="session")
def execute():
    """The function `run`."""
    return run
