"""What a run says of its target: whose array the figures are of, where several hosts made the load; ended credits."""

from __future__ import annotations

import pytest

from assay.run.notices import notices_of


@pytest.mark.parametrize(("hosts", "count"), [([None, None], 0), (["a", "a"], 0), (["a", "b"], 1)])
def test_arrays_of_several_hosts_are_told_as_several(hosts: list[str | None], count: int) -> None:
    volumes = [{"name": f"{host}:v01", "kind": "model", "host": host} for host in hosts]

    told = [note.text for note in notices_of([], {"volumes": volumes}, [])]

    assert [text.startswith("each of 2 hosts had a modelled array of its own") for text in told] == [True] * count


def test_a_volume_that_ran_out_of_credits_is_told_with_its_points() -> None:
    event = {"t_ns": 1, "what": "v01: burst credits of IOPS are used up: 279 IOPS from now on", "state": "at baseline"}
    back = {"t_ns": 2, "what": "v01: has burst credits of IOPS again", "state": "healthy"}
    points = [{"id": f"p{number}", "served": [{"events": [event, back]}]} for number in (1, 2)]

    (told,) = [note.text for note in notices_of([*points, {"id": "p3", "served": [{"events": [back]}]}], {}, [])]

    assert told.startswith(
        "v01: burst credits of IOPS are used up: 279 IOPS from now on (p1, p2): figures of such a point"
    )
