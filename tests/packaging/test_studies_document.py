"""docs/studies.md agrees with the code: keys, presets, and the study and the commands it shows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel
from test_documentation import command_lines
from typer.testing import CliRunner

from assay.apps.cli.app import app
from assay.insight.calibration.published import PublishedPoint
from assay.insight.studies.choice import choose_target
from assay.insight.studies.files import study_names
from assay.insight.studies.parts import study_parts
from assay.insight.studies.study import Case, StudyComparison, StudyFactor, StudyPlan, load_study
from assay.run.request import TargetRequest
from assay.run.targets import choose_targets


@pytest.fixture
def text(root: Path) -> str:
    return (root / "docs/studies.md").read_text()


def table_keys(text: str, heading: str) -> set[str]:
    """First cells of the table whose heading begins so, names between quotes."""
    rows = text.split(f"| {heading} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return {key for row in rows for key in re.findall(r"`([^`]+)`", row.split("|")[1])}


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("key", StudyPlan), ("key of `[[factor]]`", StudyFactor), ("key of `[[case]]`", Case),
        ("key of `[comparison]`", StudyComparison), ("key of `[[point]]`", PublishedPoint),
    ],
)  # fmt: skip
def test_the_document_has_every_key(text: str, heading: str, model: type[BaseModel]) -> None:
    assert table_keys(text, heading) == set(model.model_fields)


def test_the_document_has_every_preset_and_a_study_that_is_understood(text: str) -> None:
    (own,) = re.findall(r"^```toml\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)

    assert table_keys(text, "study") == set(study_names())
    study = load_study({"name": "mine"} | tomllib.loads(own), source="document")
    parts, _ = study_parts(study, target=choose_target(study, None, {}))
    target, _ = choose_targets(TargetRequest(paths=[]), parts)
    assert target.array is not None


def test_command_lines_are_understood(text: str) -> None:
    for line in command_lines(text):
        shown = CliRunner().invoke(app, [*line, "--help"])
        assert shown.exit_code == 0, f"{line}: {shown.output}"


def test_links_lead_somewhere(root: Path, text: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (root / "docs" / target.partition("#")[0]).exists(), target
