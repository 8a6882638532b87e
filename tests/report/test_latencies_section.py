"""Latencies of a recording: the table of both times, and the heat maps of the busiest devices."""

from __future__ import annotations

from typing import Any

import pytest

from assay.document.elements import FigureElement, Section, Table
from assay.document.text import DASH
from assay.record.latency_buckets import bucket_metric
from assay.record.source import RunFacts
from assay.report.sections.latencies import latencies_section
from series_rows import series_of
from series_rows import series_rows as rows


def counted(device: str, direction: str, side: str, bucket: int, ios: list[float]) -> list[dict[str, Any]]:
    return rows("block", device, bucket_metric(direction, side, bucket), ios, kind="delta", tier="storage")


def section(*parts: list[dict[str, Any]]) -> Section:
    (found,) = latencies_section(RunFacts({}, [], series_of([row for part in parts for row in part])))
    return found


def test_both_times_are_told_of_each_device_and_direction_the_busiest_first() -> None:
    found = section(
        counted("vda", "read", "queue", 5, [90.0, 0.0]),
        counted("vda", "read", "queue", 25, [0.0, 10.0]),
        counted("vda", "read", "device", 17, [50.0, 50.0]),
        counted("vdb", "write", "device", 21, [400.0, 0.0]),
        rows("block", "vda", "read_ios_count", [50.0, 50.0], kind="delta", tier="storage"),
    )
    (table,) = (block for block in found.blocks if isinstance(block, Table))
    texts = [[cell.text for cell in row] for row in table.rows]
    assert [row[:3] for row in texts] == [["vdb", "write", "400"], ["vda", "read", "100"]]
    assert texts[0][3:6] == [DASH] * 3
    # 90 of 100 reads waited for about 5 us, the last ten for about 5 ms; the device took about 0.3 ms of each.
    assert texts[1][3:] == ["4.92 us", "5.62 ms", "5.78 ms", "309 us", "361 us", "362 us"]
    figures = [block for block in found.blocks if isinstance(block, FigureElement)]
    assert [figure.name for figure in figures] == [
        "latencies-vdb-write-device", "latencies-vda-read-queue", "latencies-vda-read-device",
    ]  # fmt: skip
    assert "p50 4.92 us" in figures[1].alternative


def test_a_cell_of_a_heat_map_is_a_step_and_a_bucket() -> None:
    pytest.importorskip("altair")
    found = section(counted("vda", "read", "device", 17, [3.0, 0.0, 5.0]))
    (figure,) = (block for block in found.blocks if isinstance(block, FigureElement))
    specification: Any = figure.chart.to_dict()
    (data,) = specification["datasets"].values()
    cells = {(cell["from"], cell["to"]): cell["ios"] for cell in data}
    assert cells == {(0.0, 1.0): 3.0, (2.0, 3.0): 5.0}


def test_recordings_without_histograms_have_no_such_section() -> None:
    series = series_of(rows("block", "vda", "read_ios_count", [50.0], kind="delta", tier="storage"))
    assert latencies_section(RunFacts({}, [], series)) == []
    assert latencies_section(RunFacts({}, [], None)) == []
