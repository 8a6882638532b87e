"""A modelled array under a runner: what decides a point's key, its telemetry, and what a point says of the array."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.targets.arrays.model.configuration import Configuration, configure
from assay.telemetry.columns import SeriesColumns
from assay.workloads.modelled import ModelRun, add_telemetry, summarise_model
from series_rows import batches_of, rows_of


def array(**options: str) -> Configuration:
    return configure("ps6100xv", {"disks.count": "6", "disks.spares": "0", "volumes": "2", **options})


def model(**options: str) -> ModelRun:
    return ModelRun(configuration=array(**options), epoch_ns=0)


class TestKey:
    def test_the_same_array_has_the_same(self) -> None:
        assert model().key == model().key
        assert model(**{"disk.command_overhead": "567723ns"}).key == model().key

    @pytest.mark.parametrize(
        "options",
        [
            {"raid": "5"}, {"seed": "2"}, {"members": "2"}, {"volumes": "3"}, {"paths": "3"}, {"start": "cold"},
            {"state": "degraded"}, {"cache": "1G"}, {"write_back": "no"}, {"disk.command_overhead": "567724ns"},
        ],
    )  # fmt: skip
    def test_all_that_changes_figures_changes_it(self, options: dict[str, str]) -> None:
        assert model(**options).key != model().key

    def test_it_is_the_plan(self) -> None:
        assert json.loads(model().key) == array().plan()


def test_an_impossible_array_is_refused_when_it_is_built() -> None:
    with pytest.raises(UsageError, match="seek_average"):
        model(**{"disk.seek_full": "50ms"})


def test_an_array_goes_on_with_another_way_to_read() -> None:
    options = {"volumes": "2"}
    run = ModelRun(configuration=configure("fas3070", options), epoch_ns=0, goes_on=True)
    again = configure("fas3070", {**options, "read_realloc": "yes"})

    run.goes_on_with(again)

    assert run.configuration is again
    assert json.loads(run.key)["pools"][0]["member"]["layout"]["read_realloc"] is True


def row(t_ns: int, entity: str, metric: str, value: float, source: str = "model") -> dict[str, Any]:
    return {"t_ns": t_ns, "entity": entity, "metric": metric, "value": value, "source": source,
            "kind": "gauge"}  # fmt: skip


class TestTelemetry:
    def test_rows_are_in_the_schema_and_in_virtual_time(self) -> None:
        rows = [["m1", "read_hit_share", "gauge", 0.25], ["m1/d02", "busy_share", "gauge", 1]]
        report = {"telemetry": [{"at_ns": 10**9, "interval_ns": 10**9, "rows": rows}]}

        columns = SeriesColumns()
        add_telemetry(columns, report, 5)
        first, second = rows_of(columns.take())

        assert (first["t_ns"], first["interval_ns"], first["clock"]) == (10**9 + 5, 10**9, "virtual")
        assert (first["tier"], first["source"], first["entity"], first["role"]) == ("storage", "model", "m1", "")
        assert (second["entity"], second["metric"], second["kind"], second["value"]) == (
            "m1/d02", "busy_share", "gauge", 1.0
        )  # fmt: skip
        add_telemetry(columns, {}, 5)
        assert columns.take() == []

    def test_means_over_the_window_and_the_fullest(self) -> None:
        rows = [
            row(100, "member1/disk1", "busy_share", 0.9),  # at the window's beginning: before it
            row(101, "member1/disk1", "busy_share", 0.2),
            row(200, "member1/disk1", "busy_share", 0.4),
            row(150, "member1/disk2", "busy_share", 0.6),
            row(201, "member1/disk2", "busy_share", 1.0),  # after it
            row(150, "member1/disk2", "busy_share", 1.0, source="diskstats"),
            row(150, "member1", "dirty_bytes", 10.0),
            row(200, "member2", "dirty_bytes", 20.0),
            row(150, "member1", "rebuilt_bytes", 5.0),
            row(200, "member1", "rebuilt_bytes", 7.0),
        ]

        found = summarise_model(batches_of(rows), 100, 200, configure("ps6100xv"))

        assert found["disk_busy_share"] == pytest.approx(0.4)
        assert found["fullest_disk_busy_share"] == pytest.approx(0.6)
        assert found["dirty_bytes"] == 15.0
        assert found["rebuilt_bytes"] == 12.0
        assert found["read_hit_share"] is None
        assert found["fullest_port_busy_share"] is None
