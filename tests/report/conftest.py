"""Sample runs written once a session, and their documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample import Sample, io, small, write_run

from assay.document.elements import Document
from assay.report.assemble import assemble
from assay.report.facts import load_facts


@pytest.fixture(scope="session")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs"), small())


@pytest.fixture(scope="session")
def document(run_path: Path) -> Document:
    return assemble(load_facts(run_path))


@pytest.fixture
def one_point() -> Sample:
    sample = Sample(3)
    sample.random_point("custom", io(8192, 0.7, "8 KiB random 70/30"), 8, 20)
    return sample
