"""Title, facts and foot of a run's report: what it is of, when it was made, and by which Assay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assay.document.elements import Document, Section
from assay.document.first_use import explained
from assay.document.text import DASH, moment, shorten
from assay.record.figures import Figure
from assay.record.shapes.manifest import Manifest
from assay.record.titles import run_title

RUN_ID_LETTERS = 80


def version_of(manifest: Manifest) -> str:
    """The version of Assay that made a run; empty where the manifest does not say."""
    return str((manifest.get("build") or {}).get("version") or "")


def headed(
    facts: Iterable[str], sections: Sequence[Section], manifest: Manifest, figures: Iterable[Figure] = ()
) -> Document:
    """The document of one run.

    Parameters
    ----------
    facts
        Of the line below the title; empty ones are left out.
    sections
        What it says.
    manifest
        Says which run it is of.
    figures
        Whose abbreviations are explained.
    """
    version = version_of(manifest) or "of unknown version"
    run_id = str(manifest.get("run_id") or DASH)
    return Document(
        title=run_title(manifest),
        facts_line=" · ".join(word for word in facts if word),
        sections=explained(sections, figures),
        footer=f"Assay {version} · run {shorten(run_id, RUN_ID_LETTERS)}",
        version=version,
        run_id=run_id,
        started=moment(manifest.get("started_utc_ns")),
    )
