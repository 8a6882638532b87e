"""What a paper concludes from studies, and the picture it draws of what hangs on what."""

from __future__ import annotations

from typing import Any

import pytest

from assay.insight.studies.follows import follows_of
from assay.report.figures_topology import topology_figure
from assay.report.paper.topology import topology_of

ARRAY = {
    "name": "x", "title": "X", "raid": "10", "members": 2, "options": {"hosts": "2"},
    "parameters": {
        "links.ports": {"value": 2, "unit": "count"}, "links.paths": {"value": 2, "unit": "count"},
        "links.port_rate": {"value": 1, "unit": "Gbit/s"}, "disks.count": {"value": 24, "unit": "count"},
        "disks.spares": {"value": 2, "unit": "count"}, "disk.capacity": {"value": 146, "unit": "GB"},
    },
}  # fmt: skip


def study(differs: bool | None, *, ordered: bool, values: tuple[float, ...], **more: Any) -> dict[str, Any]:
    levels = ("a", "b", "c")[: len(values)]
    interval = None if differs is None else [1.1, 1.3]
    compared = [
        {"figure": "iops", "series": "", "level": level, "differs": differs, "ratio": 1.2, "interval_95": interval}
        for level in levels[1:]
    ]
    direction = "rise" if list(values) == sorted(values) else "fall"
    trend = {"figure": "iops", "unit": "iops", "series": "", "ordered": ordered, "levels": levels, "values": values,
             "direction": direction if ordered else None}  # fmt: skip
    factors = [{"name": "f", "title": "paths", "levels": []}]
    return {"comparisons": compared, "trends": [trend], "factors": factors, "comparison": {"by": "f"}} | more


@pytest.mark.parametrize(
    ("told", "follows"),
    [
        (study(True, ordered=False, values=(1000.0, 3000.0)), ["Where IOPS decide, choose b (3,000)."]),
        (study(True, ordered=True, values=(1000.0, 2000.0, 3000.0)), ["Each step of paths pays, as far as c (3,000)."]),
        (
            study(True, ordered=True, values=(1000.0, 2000.0, 2040.0)),
            ["Go as far as b (2,000): what is beyond brings less than 5 %."],
        ),
        (
            study(True, ordered=False, values=(3000.0, 2000.0), comparison={"by": "f", "states": True}),
            ["The paths is no choice: size with 2,000 at b, not 3,000 at a."],
        ),
        (
            study(True, ordered=True, values=(3000.0, 2000.0)),
            ["Size with the figure of the level that will be reached: 2,000 at b, not 3,000 at a."],
        ),
        (
            study(False, ordered=False, values=(1000.0, 1010.0)),
            ["IOPS do not decide between a and b: choose by cost, capacity or ease of operation."],
        ),
        (
            study(None, ordered=False, values=(1000.0, 3000.0)),
            [
                (
                    "One run of each level does not tell what varies between runs: the study needs three repeats before"
                    " a choice rests on it."
                )
            ],
        ),
        ({"results": []}, []),
    ],
)
def test_what_follows_rests_on_intervals(told: dict[str, Any], follows: list[str]) -> None:
    assert follows_of(told) == follows


def test_series_of_which_the_same_is_to_be_said_share_a_sentence() -> None:
    told = study(False, ordered=False, values=(1000.0, 1010.0))
    names = ["4 KiB", "8 KiB", "16 KiB", "32 KiB"]
    told["trends"] = [{**told["trends"][0], "series": name} for name in names]
    told["comparisons"] = [{**told["comparisons"][0], "series": name} for name in names]
    (text,) = follows_of(told)
    assert text.startswith("4 KiB; 8 KiB; 16 KiB; 1 more: IOPS do not decide between a and b")


def test_a_database_is_derated_by_what_was_measured() -> None:
    (text,) = follows_of({"gaps": [{"gap_share": 0.22}, {"gap_share": None}]})
    assert text.startswith("Derate raw profiles of this storage by 22 %")


def test_published_figures_say_where_a_model_may_be_believed() -> None:
    rows = [
        {"title": "near", "kind": "figure", "error_share": -0.04},
        {"title": "far", "kind": "figure", "error_share": 0.2},
        {"title": "unknown", "kind": "figure", "error_share": None},
        {"title": "order", "kind": "order", "error_share": None, "holds": False},
    ]
    near, far, order = follows_of({"published": rows})
    assert near.endswith("in: near.")
    assert "in: far (+20 %);" in far
    assert order.endswith(": order.")


def test_an_array_shows_hosts_ports_paths_members_and_volumes() -> None:
    volumes = [{"role": "data", "size_bytes": 10**11}] * 4 + [{"role": "log", "size_bytes": 10**10}]
    drawn = topology_of({"target": {"array": ARRAY, "volumes": volumes}})
    assert drawn is not None
    assert [title for title, _ in drawn.columns] == ["hosts", "ports of each member: 2, 1 Gbit/s", "members", "volumes"]
    hosts, ports, members, own = (boxes for _, boxes in drawn.columns)
    assert [box.name for box in hosts] == ["host 1", "host 2"]
    assert hosts[0].lines == ("2 paths",)
    assert [box.name for box in ports] == [f"member {member} port {port}" for member in (1, 2) for port in (1, 2)]
    assert members[0].lines == ("RAID 10", "24 disks of 146 GB", "2 spares among them")
    assert [(box.name, *box.lines) for box in own] == [
        ("4 volumes", "data", "100 GB each"),
        ("1 volume", "log", "10 GB"),
    ]
    # Every host reaches every port; ports belong to their member.
    assert sum(1 for one, other in drawn.lines if (one[0], other[0]) == (0, 1)) == 8
    assert [other[1] for one, other in drawn.lines if one[0] == 1] == [0, 0, 1, 1]
    assert topology_figure(drawn).to_dict()["layer"]


def test_a_host_shows_each_volume_under_its_database_and_above_its_devices() -> None:
    target = {
        "databases": [{"name": "a", "kind": "postgresql"}, {"name": "a-b", "kind": "mariadb"}],
        "volumes": [
            {"name": "a-b-data", "role": "data", "device_stack": ["dm-0", "sda"]},
            {"name": "a-log", "role": "log", "device_stack": ["sdb"]},
            {"name": "f", "role": "data", "device_stack": []},
        ],
    }
    drawn = topology_of({"host": {"hostname": "h"}, "target": target})
    assert drawn is not None
    assert [title for title, _ in drawn.columns] == [
        "host",
        "databases",
        "volumes and roles",
        "devices",
        "beneath them",
    ]
    assert [one for one, other in drawn.lines if other[0] == 2] == [(1, 1), (1, 0), (0, 0)]
    assert [(one, other) for one, other in drawn.lines if other[0] > 2] == [
        ((2, 0), (3, 0)), ((3, 0), (4, 0)), ((2, 1), (3, 1)),
    ]  # fmt: skip


def test_many_members_are_one_box_and_nothing_known_is_no_picture() -> None:
    drawn = topology_of({"target": {"array": ARRAY | {"members": 16}, "volumes": []}})
    assert drawn is not None
    assert [box.name for box in drawn.columns[2][1]] == ["16 members"]
    assert topology_of({"target": {}}) is None
