"""Runs for the page to show."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from asking_pages import Site

FIXTURES = Path(__file__).parents[1] / "fixtures" / "runs"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with three runs, of storage, a database and a check."""
    folder = tmp_path / "results"
    shutil.copytree(FIXTURES, folder)
    return folder


@pytest.fixture
def site(results: Path) -> Site:
    """The page over these runs, with its cookie."""
    return Site(results).entered()
