"""The state of a point of a search whose load was repeated: the mean of all repeats decides, as in the answer."""

from __future__ import annotations

from typing import Any

import pytest

from assay.document.elements import Cell, Column, Table
from assay.document.limits import MEETS, MISSES, searched_state


@pytest.mark.parametrize(
    ("load", "met", "state"),
    [(43, False, MEETS), (43, True, MEETS), (45, True, MISSES), (50, False, MISSES), (20, True, MEETS)],
)
def test_repeats_at_an_end_have_the_state_of_their_mean(load: int, met: bool, state: str) -> None:
    answer: dict[str, Any] = {"axis": "outstanding", "edge": {"outstanding": 43}, "first_failing": {"outstanding": 45}}
    limits = [{"limit": "read.mean<=20ms", "met": met, "value": 1.0}]

    assert searched_state({"load": {"outstanding": load}, "limits": limits}, answer) == state


def test_columns_of_which_nothing_is_known_are_left_out() -> None:
    rows = [[Cell("a"), Cell("-"), Cell("1")], [Cell("b"), Cell("-"), Cell("-")]]
    table = Table("t", "", [Column("Name"), Column("Cost"), Column("Count")], rows).known("-")

    assert [column.title for column in table.columns] == ["Name", "Count"]
    assert [[cell.text for cell in row] for row in table.rows] == [["a", "1"], ["b", "-"]]
