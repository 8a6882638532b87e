"""Documents of sample runs, whole: what each section says, and what each figure draws."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden import check_golden, outline
from sample_study import study_run

from assay.report.assemble import assemble
from assay.report.facts import load_facts


@pytest.mark.parametrize("name", ["document", "passed", "failed", "one", "searched"])
def test_the_document_is_as_it_was_looked_at(name: str, request: pytest.FixtureRequest) -> None:
    names = {"document": "assess", "passed": "verify-passed", "failed": "verify-failed", "one": "oltp",
             "searched": "oltp-search"}  # fmt: skip
    check_golden(f"{names[name]}.txt", outline(request.getfixturevalue(name)))


def test_the_document_of_a_study_is_as_it_was_looked_at(tmp_path: Path) -> None:
    check_golden("study.txt", outline(assemble(load_facts(study_run(tmp_path, "raid-policy")))))
