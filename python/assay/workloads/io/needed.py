"""A need as a plan of I/O: its rate is searched from a quarter of it to four times as much, within its limits."""

from __future__ import annotations

from typing import Any

from assay.record.shapes.need import AskedNeed

BELOW, ABOVE = 4.0, 4.0
"""Where the search begins and ends: doublings from there measure the need itself, unless less misses a limit."""


def needed_plan_data(need: AskedNeed) -> dict[str, Any]:
    """The plan in its TOML form, without times."""
    rate = need["streams"][0]["rate"]
    is_alone = len(need["streams"]) == 1
    activities = [
        {
            "name": f"{number} {one['role']}",
            "role": one["role"],
            "block_bytes": one["block_bytes"],
            "read_share": one["read_share"],
            "random_share": one["random_share"],
            "arrivals": "poisson" if one["random_share"] else "constant",
            # Of several streams the others keep their proportion to the first.
            **({} if is_alone else {"rate": one["rate"]}),
        }
        for number, one in enumerate(need["streams"], 1)
    ]
    return {
        "name": need["part"],
        "title": "The need",
        "limits": need["limits"],
        "user_limits": True,
        "search": {"axis": "rate", "start": rate / BELOW, "end": rate * ABOVE, "plateau": False},
        "activity": activities,
    }
