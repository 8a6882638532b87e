"""The shape of the JSON document of a run (docs/results.md, JSON document)."""

from __future__ import annotations

from typing import Required

from pydantic import with_config
from typing_extensions import TypedDict

from assay.record.shapes.acceptance import AcceptanceTest
from assay.record.shapes.manifest import Host, Part, Target
from assay.record.shapes.point import Answer, Engine, Point, VerdictLine
from assay.record.shapes.study import Study
from assay.record.shapes.terms import STRICT, Count, Text


@with_config(STRICT)
class Document(TypedDict, total=False):
    """What `--json` prints of a run: what there is to say of the run, and all of its points."""

    schema_version: Required[Count]
    verb: Required[str]
    status: Required[Text]
    error: Required[Text]
    run_folder: Required[str]
    target: Required[Target | None]
    host: Required[Host | None]
    build: Required[dict[str, Text] | None]
    engine: Required[Engine | None]
    parts: Required[list[Part] | None]
    points: Required[list[Point]]
    answers: Required[list[Answer] | None]
    verdict: Required[list[VerdictLine] | None]
    notices: Required[list[str] | None]
    study: Study
    contract: AcceptanceTest
