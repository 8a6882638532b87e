"""JSON of run folders: how deep it may be nested."""

from __future__ import annotations

import pytest

from assay.record.documents import NESTING_MAX, parsed


@pytest.mark.parametrize(("begins", "ends"), [("[", "]"), ('{"a":', "}"), ('[{"a":[', "]}]")])
def test_nesting_ends_where_readers_still_go_down(begins: str, ends: str) -> None:
    levels = begins.count("[") + begins.count("{")
    most = NESTING_MAX // levels
    assert parsed((begins * most + "1" + ends * most).encode()) is not None
    for count in (most + 1, 10 * most, 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            parsed((begins * count + "1" + ends * count).encode())
