"""Sample runs, and the documents of them, made once a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from altair.utils.schemapi import debug_mode
from sample import Sample, io, small
from sample_integrity import failed_run, passed_run
from sample_oltp import run, search
from shown import facts_of

from assay.document.elements import Document
from assay.report.assemble import assemble
from assay.report.render import render_figures


@pytest.fixture(scope="session")
def document() -> Document:
    """The report of an examination."""
    return assemble(facts_of((small(), {}), series=True))


@pytest.fixture(scope="session")
def drawings(document: Document) -> dict[str, str]:
    """The figures of `document`."""
    return render_figures(document)


@pytest.fixture(scope="session")
def failed() -> Document:
    """The report of a check that found something of every kind."""
    return assemble(facts_of(failed_run()))


@pytest.fixture(scope="session")
def passed() -> Document:
    """The report of a check that found nothing."""
    return assemble(facts_of(passed_run()))


@pytest.fixture(scope="session")
def one() -> Document:
    """The report of transactions at one load."""
    return assemble(facts_of(run(), series=True))


@pytest.fixture(scope="session")
def searched() -> Document:
    """The report of a search for the most transactions."""
    return assemble(facts_of(search(), series=True))


@pytest.fixture
def one_point() -> Sample:
    sample = Sample(3)
    sample.random_point("custom", io(8192, 0.7, "8 KiB random 70/30"), 8, 20)
    return sample


@pytest.fixture
def unchecked_charts() -> Iterator[None]:
    """Charts are not held against the schema of Vega-Lite, which takes most of the time that documents take."""
    with debug_mode(False):
        yield
