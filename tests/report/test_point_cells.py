"""Cells of the tables of points."""

from __future__ import annotations

import pytest

from assay.base.tables import Record
from assay.document.point_cells import limits_cell


def judged(missed: int, volumes: int = 12) -> Record:
    """A point whose limit is judged on a role's sum and on each of its volumes; the sum and the first are missed."""
    scopes = ["data", *(f"data/v{number:02}" for number in range(1, volumes + 1))]
    return {"limits": [{"limit": "read.mean<=20ms", "scope": scope, "met": number > missed}
                       for number, scope in enumerate(scopes)]}  # fmt: skip


@pytest.mark.parametrize(
    ("missed", "where"), [(12, "on all 12 volumes"), (5, "on 5 of 12 volumes"), (1, "data/v01 read.mean")]
)
def test_volumes_that_miss_a_limit_are_counted_without_the_sum_over_all(missed: int, where: str) -> None:
    assert where in limits_cell(judged(missed)).text.replace("\N{NO-BREAK SPACE}", " ")
