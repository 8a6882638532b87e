"""Heat maps of latency: what a recording's histograms add up to, step by step, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from asking_pages import Site
from assay.apps.ui.heat import HeatQuestion, heat_of
from assay.apps.ui.lines import FiguresQuestion, parse_question
from assay.apps.ui.recordings import lines_of
from assay.apps.ui.runs import id_of
from assay.base.errors import UsageError
from assay.record.latency_buckets import bounds_ns, bucket_metric, percentile_ns
from assay.record.run_folder import RunFolder
from assay.telemetry.columns import Reading
from assay.telemetry.flight.writer import KEEP_MIN_BYTES, FlightWriter

BEGIN_S = 1_780_000_000
QUESTION = {"from_s": BEGIN_S, "to_s": BEGIN_S + 600, "steps": 10, "host": "h", "entity": "vda", "direction": "read"}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Ten minutes: 99 reads a second of 100 us, and from the sixth minute on one a second of 10 ms."""
    folder = tmp_path / "recording"
    RunFolder.create_at(folder, "record", {"parts": [], "status": "done", "recording": {"hosts": ["h"]}}).close()
    with FlightWriter(folder, keep_bytes=KEEP_MIN_BYTES, host="h") as writer:
        writer.begin({"host": "h", "interval_s": "1.0", "told": "{}"})
        for second in range(1, 601):
            slow = [Reading("vda", bucket_metric("read", "device", 27), "delta", 1.0)] if second > 300 else []
            readings = [Reading("vda", bucket_metric("read", "device", 14), "delta", 99.0), *slow,
                        Reading("vda", bucket_metric("write", "device", 3), "delta", 7.0),
                        Reading("vdb", bucket_metric("read", "device", 3), "delta", 7.0)]  # fmt: skip
            writer.add(readings, t_ns=(BEGIN_S + second) * 10**9, interval_ns=10**9, tier="storage", source="block")
        writer.commit()
    return folder


def test_counts_add_up_exactly_in_every_step(recording: Path) -> None:
    found = heat_of(recording, HeatQuestion.model_validate(QUESTION))
    assert len(found["t"]) == 10
    assert found["step_s"] == 60.0
    assert len(found["counts"]) == 27 - 14 + 1
    assert found["counts"][0] == [99.0 * 60] * 10
    assert found["counts"][-1] == [0.0] * 5 + [60.0] * 5
    assert found["ios_per_s"] == [99.0] * 5 + [100.0] * 5
    assert (found["begin_ns"][0], found["end_ns"][0]) == bounds_ns(14)
    # One read in a hundred is slow: p99 is that of the others, and p99.9 is not.
    assert found["p99"][-1] == pytest.approx(bounds_ns(14)[1])
    assert found["p99_9"][0] is not None
    assert found["p99_9"][0] < bounds_ns(14)[1]
    assert bounds_ns(27)[0] < (found["p99_9"][-1] or 0.0) < bounds_ns(27)[1]


def test_samples_that_are_rarer_than_steps_leave_no_gaps(recording: Path) -> None:
    found = heat_of(recording, HeatQuestion.model_validate({**QUESTION, "to_s": BEGIN_S + 100, "steps": 300}))
    assert len(found["t"]) == 100
    assert set(found["ios_per_s"]) == {99.0}


def test_a_time_without_histograms_is_empty(recording: Path) -> None:
    for changed in ({"entity": "vdc"}, {"host": "other"}, {"side": "queue"}, {"from_s": 1, "to_s": 2}):
        found = heat_of(recording, HeatQuestion.model_validate({**QUESTION, **changed}))
        assert found["counts"] == []
        assert set(found["p99"]) == {None}


def test_a_percentile_of_the_last_bucket_is_its_begin() -> None:
    assert percentile_ns({61: 5.0}, 0.5) == bounds_ns(61)[0]
    assert percentile_ns({0: 1.0, 61: 0.0}, 1.0) == 1000.0


@pytest.mark.parametrize("hours", [1, 24])
def test_percentiles_over_time_are_the_highest_and_never_a_mean(tmp_path: Path, hours: int) -> None:
    folder = tmp_path / "recording"
    RunFolder.create_at(folder, "record", {"parts": [], "status": "done", "recording": {"hosts": ["h"]}}).close()
    with FlightWriter(folder, keep_bytes=KEEP_MIN_BYTES, host="h") as writer:
        writer.begin({"host": "h", "interval_s": "10.0", "told": "{}"})
        for step in range(1, 361):
            readings = [Reading(device, "read_device_latency_p99_ns", "gauge", value + (9e6 if step == 100 else 0.0))
                        for device, value in (("array/sda", 1e6), ("array/sdb", 3e6))]  # fmt: skip
            t_ns = (BEGIN_S + 10 * step) * 10**9
            writer.add(readings, t_ns=t_ns, interval_ns=10**10, tier="storage", source="block")
        writer.commit()
    query = {"host": "h", "source": "block", "metric": "read_device_latency_p99_ns", "under": ""}
    asked = {"from_s": BEGIN_S, "to_s": BEGIN_S + hours * 3600, "steps": 6, "queries": [query]}
    (panel,) = lines_of(folder, parse_question(FiguresQuestion, json.dumps(asked)))["panels"]
    (line,) = panel["lines"]
    known = [value for value in line["values"] if value is not None]
    assert {*known} <= {3e6, 12e6}
    assert max(known) == 12e6


@pytest.mark.parametrize(
    "changed",
    [{"steps": 1}, {"steps": 301}, {"direction": "trim"}, {"side": "both"}, {"entity": ""}, {"entity": "x" * 301},
     {"from_s": 5, "to_s": 5}, {"from_s": -1}, {"to_s": 1e300}, {"more": 1}, {"host": None}],
)  # fmt: skip
def test_a_question_of_another_shape_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"^q"):
        parse_question(HeatQuestion, json.dumps({**QUESTION, **changed}))


def test_the_page_asks_for_it(recording: Path, results: Path) -> None:
    site = Site(recording.parent, results).entered()
    asked = quote(json.dumps(QUESTION))
    answered = site.ask(f"/api/runs/{id_of(recording)}/heat?q={asked}")
    assert answered.status == 200
    assert answered.document["ios_per_s"][0] == 99.0
    assert site.ask(f"/api/runs/{id_of(recording)}/heat").status == 422
    assert site.ask(f"/api/runs/{id_of(recording)}/heat?q=%7B").status == 422
    assert site.ask(f"/api/runs/{id_of(results / 'oltp')}/heat?q={asked}").status == 404
    assert site.ask(f"/api/runs/none/heat?q={asked}").status == 404
