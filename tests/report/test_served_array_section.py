"""What a report says of a served array: events, states, the dip, missing pieces, and what was outside the run."""

from __future__ import annotations

from typing import Any

from sample import Sample
from sample_oltp import OltpSample, run
from shown import cells, facts_of, section, texts

from assay.document.elements import FigureElement
from assay.report.assemble import assemble
from assay.report.figures_served import mark_labels, span_labels
from assay.report.sections.array import served_blocks

S = 10**9
EVENTS = (
    (30, "node0/disk3: pulled", "degraded"),
    (30, "restoring begins: 40 pieces are missing and can be computed", "rebuilding"),
    (50, "restored: no piece is missing any more", "degraded"),
)


class ServedSample(OltpSample):
    """Transactions on hosts with flash whose pool lacks pieces for twenty seconds."""

    prefix = ""

    def second(self, point: dict[str, Any], second: int) -> list[dict[str, Any]]:
        rows = super().second(point, second)
        array = {"tier": "storage", "source": "array", "entity": f"{self.prefix}array", "role": "", "kind": "gauge"}
        missing = 40.0 - 2 * (second - 30) if 30 <= second < 50 else 0.0
        return [*rows, rows[-1] | array | {"metric": "missing_pieces_count", "value": missing}]


def served(*events: tuple[int, str, str]) -> tuple[Sample, dict[str, Any]]:
    plain, manifest = run(gap=False)
    sample = ServedSample(5)
    sample.points, sample.verdict = plain.points, plain.verdict
    (point,) = sample.points
    began_ns = point["started_utc_ns"]
    point["served"] = [
        {
            "events": [{"t_ns": began_ns + at_s * S, "what": what, "state": state} for at_s, what, state in events],
            "phases": [
                {"state": state, "from_utc_ns": began_ns + from_s * S, "to_utc_ns": began_ns + to_s * S, "per_s": per_s}
                for state, from_s, to_s, per_s in (
                    ("healthy", 0, 30, 400.0),
                    ("rebuilding", 30, 50, 100.0),
                    ("degraded", 50, 75, 400.0),
                )
            ],
            "dip": {"event": events[0][1], "before_per_s": 400.0, "least_per_s": 90.0, "depth_share": 0.775,
                    "length_s": 21.0, "fell_at_utc_ns": began_ns + 31 * S},
            "volumes": [], "lateness": {},
        }
    ]  # fmt: skip
    return sample, manifest


def test_the_dip_is_told_in_one_sentence_and_each_state_has_its_rate() -> None:
    document = assemble(facts_of(served(*EVENTS), series=True))
    assert texts(section(document, "served-array"))[0] == (
        "Before the first event (node0/disk3: pulled) the load came to 400 transactions per second. It fell by 77.5 %,"
        " to 90 a second over 3 s at the least, and had recovered 21 s after the event."
    )
    assert [row[0] for row in cells(document, "phases")] == ["healthy", "rebuilding", "degraded"]
    assert [row[3] for row in cells(document, "phases")] == ["100 %", "25 %", "100 %"]
    assert [row[1] for row in cells(document, "fault-events")] == ["30 s", "30 s", "50 s"]


def test_a_load_that_fell_long_after_the_first_event_is_said_to_have_fallen_later() -> None:
    document = assemble(facts_of(served((11, "node0/disk3: pulled", "degraded"), *EVENTS)))
    assert "It fell by 77.5 % 20 s later, to 90 a second" in texts(section(document, "served-array"))[0]


def test_the_figure_has_a_panel_of_missing_pieces_and_its_caption_tells_the_colours() -> None:
    document = assemble(facts_of(served(*EVENTS), series=True))
    figure = next(block for block in section(document, "served-array").blocks if isinstance(block, FigureElement))
    assert figure.caption.endswith("Shaded: warm-up (grey), degraded (yellow), rebuilding (blue).")
    drawn = figure.chart.to_json()
    assert "missing pieces" in drawn
    # Each event has its line, and those at one time have one label.
    assert '"label": "1-2"' in drawn


def test_of_several_arrays_each_to_which_something_happened_is_shown_by_its_name() -> None:
    for prefix in ("data/", "log/"):
        sample, manifest = served(*EVENTS)
        assert isinstance(sample, ServedSample)
        sample.prefix = prefix
        (point,) = sample.points
        (one,) = point["served"]
        volumes = [{"name": "data01"}]
        point["served"] = [
            one | {"folder": "/srv/data", "events": [], "volumes": volumes},
            one | {"folder": "/srv/log", "volumes": volumes},
        ]
        document = assemble(facts_of((sample, manifest), series=True))
        told = section(document, "served-array")
        (sentence,) = (text for text in texts(told) if "Before the first event" in text)
        assert sentence.startswith("Array log: Before the first event (node0/disk3: pulled) the load came to 400 ")
        (figure,) = (block for block in told.blocks if isinstance(block, FigureElement))
        assert figure.name == f"faults-{point['id']}-2"
        # What happened to one array is not drawn for the other.
        assert ("missing pieces" in figure.chart.to_json()) == (prefix == "log/")
        assert [row[1] for row in cells(document, "served-volumes")] == ["data/data01", "log/data01"]


def test_what_was_lost_in_the_run_is_not_told_to_be_outside_of_it() -> None:
    def outside(*events: tuple[int, str, str]) -> str:
        return next(text for text in texts(section(assemble(facts_of(served(*events))), "method")) if "outside" in text)

    cut = (40, "power cut: 0 acknowledged bytes lost with the cache", "no power")
    integrity = "Integrity (whether what was acknowledged is kept)"
    assert (
        outside(*EVENTS) == f"{integrity}, the loss of power and other hosts on the same storage are outside this run."
    )
    assert outside(*EVENTS, cut) == f"{integrity} and other hosts on the same storage are outside this run."
    assert "a rebuild after a failed disk" in outside(cut)


def test_labels_that_would_touch_become_one_and_no_label_lies_on_another() -> None:
    marks = [{"t_s": at_s, "number": number} for number, at_s in enumerate((59, 59, 62, 85, 85, 88, 100), start=1)]
    assert [mark["label"] for mark in mark_labels(marks, 113)] == ["1-3", "4-6", "7"]
    # A label that grew may reach the one before it.
    near = [{"t_s": at_s, "number": number} for number, at_s in enumerate((50, 53.5, 54), start=1)]
    assert [mark["label"] for mark in mark_labels(near, 113)] == ["1-3"]
    spans = [{"start_s": 0, "end_s": 23, "kind": "warm-up"}, {"start_s": 0, "end_s": 12, "kind": "degraded"}]
    assert [label["label"] for label in span_labels(spans, 113)] == ["degraded", "warm-up"]
    assert span_labels(spans, 113)[1]["t_s"] > 10


def test_what_an_array_has_several_of_has_its_own_name() -> None:
    group = {"members": 2, "parameters": {"disk.capacity": {}}}
    hosts = {"members": 1, "parameters": {"node.cores": {}}}
    assert ("Members", "2") in served_blocks(group)[0].items  # type: ignore[union-attr]
    assert ("Data nodes", "1") in served_blocks(hosts)[0].items  # type: ignore[union-attr]
