"""What a run says of its target: whose array the figures are of, where the load came from several hosts."""

from __future__ import annotations

import pytest

from assay.run.notices import notices_of


@pytest.mark.parametrize(("hosts", "count"), [([None, None], 0), (["a", "a"], 0), (["a", "b"], 1)])
def test_arrays_of_several_hosts_are_told_as_several(hosts: list[str | None], count: int) -> None:
    volumes = [{"name": f"{host}:v01", "kind": "model", "host": host} for host in hosts]

    told = [note.text for note in notices_of([], {"volumes": volumes}, [])]

    assert [text.startswith("each of 2 hosts had a modelled array of its own") for text in told] == [True] * count
