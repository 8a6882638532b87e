"""Lines of a figure: from groups to members to disks, and a recording read at the level its time needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.apps.ui.lines import LINES_MAX, FigureQuery, FiguresQuestion, grouped, parse_question
from assay.apps.ui.recordings import catalogue_of, lines_of
from assay.base.errors import UsageError
from assay.record.flight import MINUTE_NS, read_recording
from assay.record.flight_window import SECONDS_SPAN_NS, catalogue, told, window
from assay.record.rolled import SeriesKey
from assay.telemetry.columns import Reading
from assay.telemetry.flight.writer import KEEP_MIN_BYTES, FlightWriter

SECOND = 10**9
BEGIN_NS = 1_800_000_000 * SECOND // (15 * MINUTE_NS) * (15 * MINUTE_NS)


def query(metric: str = "busy_share", under: str = "") -> FigureQuery:
    return FigureQuery(host="h", source="model", metric=metric, under=under)


class TestGroups:
    disks = (
        ("group0/member0/disk0", "gauge", [0.2, None]),
        ("group0/member0/disk1", "gauge", [0.4, 0.6]),
        ("group0/member1/disk0", "gauge", [0.9, 0.9]),
    )

    def lines(self, under: str) -> dict[str, list[float | None]]:
        own = [one for one in self.disks if query(under=under).takes("h", "model", "busy_share", one[0])]
        return {line["entity"]: line["values"] for line in grouped(query(under=under), own)}

    def test_a_group_is_the_mean_of_its_disks_shares(self) -> None:
        assert self.lines("") == {"group0": [0.5, 0.75]}

    def test_it_opens_into_its_members(self) -> None:
        assert self.lines("group0") == {"group0/member0": [pytest.approx(0.3), 0.6], "group0/member1": [0.9, 0.9]}

    def test_a_member_opens_into_its_disks(self) -> None:
        assert list(self.lines("group0/member0")) == ["group0/member0/disk0", "group0/member0/disk1"]

    def test_a_name_that_begins_alike_is_another(self) -> None:
        assert not query(under="member1").takes("h", "model", "busy_share", "member10/disk0")

    def test_ios_add_up(self) -> None:
        own = [("m/a", "delta", [1.0]), ("m/b", "delta", [2.0])]
        assert grouped(query("read_ios_count"), own)[0]["values"] == [3.0]

    def test_a_group_with_figures_of_its_own_stands_for_itself(self) -> None:
        own = [("m", "gauge", [0.7]), ("m/a", "gauge", [0.1])]
        (line,) = grouped(query(), own)
        assert (line["values"], line["opens"]) == ([0.7], True)

    def test_of_many_the_largest_are_shown(self) -> None:
        own = [(f"d{number:02}", "delta", [float(number)]) for number in range(30)]
        shown = [line["entity"] for line in grouped(query("read_bytes"), own)]
        assert shown == [f"d{number}" for number in range(29, 29 - LINES_MAX, -1)]


@pytest.mark.parametrize(
    "data",
    [
        {}, {"from_s": 1, "to_s": 1, "queries": []}, {"from_s": "x", "to_s": 2, "queries": []},
        {"from_s": 0, "to_s": float("inf"), "queries": []}, {"from_s": 0, "to_s": 1, "queries": [1]},
        {"from_s": 0, "to_s": 1, "queries": [{"host": "h"}]}, {"from_s": 0, "to_s": 1, "queries": {"a": 1}},
        {"from_s": 0, "to_s": 1, "queries": [{"host": "h", "source": "s", "metric": "m"}] * 25},
        {"from_s": float("nan"), "to_s": 1, "queries": []}, {"queries": 5}, {"path": "/etc"}, [], None, 7,
        {"from_s": 0, "to_s": 1, "queries": [], "path": "/etc"}, {"from_s": -1, "to_s": 1, "queries": []},
        {"from_s": 0, "to_s": 1, "steps": -5, "queries": []}, {"from_s": 0, "to_s": 1, "steps": 1201, "queries": []},
        {"from_s": 0, "to_s": 1, "steps": 2.5, "queries": []}, {"from_s": "0", "to_s": 1, "queries": []},
        {"from_s": 0, "to_s": 1e-10, "queries": []}, {"from_s": 0, "to_s": 1e11, "queries": []},
        {"from_s": 0, "to_s": 1, "queries": [{"host": "h", "source": "s", "metric": ""}]},
        {"from_s": 0, "to_s": 1, "queries": [{"host": "h", "source": "s", "metric": "m" * 301}]},
        {"from_s": 0, "to_s": 1, "queries": [{"host": ["h"], "source": "s", "metric": "m"}]},
    ],
)  # fmt: skip
def test_a_question_of_another_form_is_refused(data: object) -> None:
    with pytest.raises(UsageError, match=r"\Aq[.:]"):
        parse_question(FiguresQuestion, json.dumps(data))


@pytest.mark.parametrize("text", ["", "{", "[" * 200_000, '{"a":' * 5_000, "9" * 5_000, "\ud800", '{"from_s": 1e999}'])
def test_a_text_that_is_no_question_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"\Aq[.:]") as refused:
        parse_question(FiguresQuestion, text)
    assert len(str(refused.value)) <= 300
    assert str(refused.value).isprintable()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty minutes of two disks by the second: 100 and 200 reads in each."""
    folder = tmp_path_factory.mktemp("recording")
    with FlightWriter(folder, keep_bytes=KEEP_MIN_BYTES, host="h") as writer:
        writer.begin({"host": "h", "interval_s": "1.0", "told": "{}"})
        for second in range(1, 40 * 60 + 1):
            readings = [
                Reading("sda", "read_ios_count", "delta", 100.0, "data"),
                Reading("sdb", "read_ios_count", "delta", 200.0, "log"),
                Reading("sda", "busy_share", "gauge", 0.25 if second <= 1200 else 0.75, "data"),
            ]
            writer.add(readings, t_ns=BEGIN_NS + second * SECOND, interval_ns=SECOND, tier="storage", source="block")
            if second % 60 == 5:
                writer.commit()
        writer.commit()
    return folder


def test_every_level_gives_the_same_rates(recording: Path) -> None:
    def reads(_: object, one: SeriesKey) -> bool:
        return one.metric == "read_ios_count"

    for length_ns in (600 * SECOND, 40 * MINUTE_NS, SECONDS_SPAN_NS + MINUTE_NS, 5 * 24 * 60 * MINUTE_NS):
        end_ns = BEGIN_NS + 40 * MINUTE_NS
        _, lines = window(recording, end_ns - length_ns, end_ns, 50, reads)
        for line in lines:
            wanted = {"sda": 100.0, "sdb": 200.0}[line.series.entity]
            known = [value for value in line.values if value is not None]
            assert known
            assert known == pytest.approx([wanted] * len(known), rel=0.02)


def test_it_is_what_the_whole_recording_holds(recording: Path) -> None:
    table = read_recording(recording).records()
    total = sum(row["value"] for row in table if row["entity"] == "sda" and row["metric"] == "read_ios_count")
    times, lines = window(recording, BEGIN_NS, BEGIN_NS + 40 * MINUTE_NS, 240, lambda _, one: one.entity == "sda")
    (reads,) = [line for line in lines if line.series.metric == "read_ios_count"]
    step_s = (times[1] - times[0]) / 1e9
    assert sum(value * step_s for value in reads.values if value is not None) == pytest.approx(total)


def test_a_zoom_shows_when_it_changed(recording: Path) -> None:
    from_s = BEGIN_NS / 1e9 + 1190
    asked = {"from_s": from_s, "to_s": from_s + 20, "steps": 20,
             "queries": [{"host": "h", "source": "block", "metric": "busy_share"}]}  # fmt: skip
    found = lines_of(recording, FiguresQuestion.model_validate(asked, strict=False))
    (line,) = found["panels"][0]["lines"]
    assert line["values"] == [0.25] * 10 + [0.75] * 10
    assert len(found["t"]) == 20


def test_a_name_that_was_not_recorded_is_refused(recording: Path) -> None:
    asked = {"from_s": 0, "to_s": 1, "queries": [{"host": "h", "source": "block", "metric": "x\n" + "y" * 200}]}
    with pytest.raises(UsageError, match=r"q: queries.0: no series x\\ny+ of block was recorded on h"):
        lines_of(recording, parse_question(FiguresQuestion, json.dumps(asked)))


def test_what_was_never_recorded_is_a_gap(recording: Path) -> None:
    _, (line, *_) = window(recording, BEGIN_NS - 60 * SECOND, BEGIN_NS + 60 * SECOND, 12, lambda *_: True)
    assert line.values[:6] == [None] * 6
    assert None not in line.values[6:]


def test_the_catalogue_names_sources_metrics_and_entities(recording: Path) -> None:
    (group,) = told(catalogue(recording))
    assert (group["tier"], group["host"], group["source"]) == ("storage", "h", "block")
    assert {one["metric"]: one["entities"] for one in group["metrics"]} == {
        "busy_share": ["sda"],
        "read_ios_count": ["sda", "sdb"],
    }
    assert catalogue_of(recording)["to_s"] == BEGIN_NS / 1e9 + 2400
