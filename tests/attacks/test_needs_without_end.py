"""Needs that ask for more than can be simulated: each search has a bound in simulated I/Os, and tells what it gave up.

The attack: huge rates on flash, which no arithmetic refuses; hundreds of choices; limits that nothing or everything
meets; rates near zero. `assay size` took minutes for them, and could take hours.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.insight.sizing import answer as sizing_answer
from assay.insight.sizing import search as sizing_search
from assay.insight.sizing import sensitivity as sizing_sensitivity
from assay.insight.sizing.allowance import ALL_IOS, LEAST_IOS, Allowance, GaveUp, counted, shared
from assay.insight.sizing.answer import size
from assay.insight.sizing.certainty import Certainty
from assay.insight.sizing.demand import PeakStream
from assay.insight.sizing.judge import WARMUP_S, Judge, Seen, StreamSeen
from assay.insight.sizing.need import NeedAsWritten, need_of
from assay.insight.sizing.text import candidate_rows, nearest_sentence, sensitivity_sentence
from assay.targets.arrays.model.configuration import Configuration

DATABASE = {"name": "orders", "size": "200GB", "iops": 2000, "log": "10%"}


class Counting:
    """Stands for the models: counts what they would simulate, and holds up to a rate for each member."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cores: int = 2) -> None:
        self.ios = 0.0
        self._lock = threading.Lock()
        monkeypatch.setattr(Judge, "_simulate", self.simulate)
        monkeypatch.setattr(Judge, "rebuild_h", lambda *_: 1.0)
        monkeypatch.setattr(sizing_answer, "certainty_of", lambda *_: Certainty(0.1, "as told"))
        for module in (sizing_search, sizing_sensitivity, sizing_answer):
            monkeypatch.setattr(module, "cores", lambda: cores)

    def simulate(self, array: Configuration, phase: Sequence[PeakStream], *_: Any) -> Seen:
        rate = sum(one.rate for one in phase)
        with self._lock:
            self.ios += sum(counted(array, one.rate * WARMUP_S, one.block_bytes) for one in phase)
        mean_s = 0.001 if rate < 3000 * int(array.options["members"]) else 1.0
        return Seen(streams=tuple(StreamSeen(mean_s, mean_s, 1.0) for _ in phase))


def asked(database: dict[str, Any] | None = None, **others: Any) -> NeedAsWritten:
    table = {"years": 1, "database": [{**DATABASE, **(database or {})}], **others}
    return NeedAsWritten(table, "test", need_of(table, "test"))


ENDLESS: list[NeedAsWritten] = [
    asked({"iops": 3e7, "block": "512B", "log": "0%"}, candidate=[{"array": "nvme-mirror"}]),
    asked({"iops": 9e5, "log": "0%", "read": "100%", "block": "512B"}, candidate=[{"array": "nvme-mirror"}]),
    asked({"iops": 60_000}),
    asked(candidate=[{"array": "ps6100xv", "raid": ["10"], "volumes": [*range(1, 101)]}]),
    asked(limits={"read": "600d", "write": "600d", "log": "600d", "rebuild": "600d"}),
    asked({"iops": 1e-9}),
    asked({"scan": "100MB/s", "scan_block": "512B"}),
    asked(head_room="1000%"),
]


@pytest.mark.parametrize("need", ENDLESS, ids=range(len(ENDLESS)))
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_need_simulates_no_more_than_its_bound(need: NeedAsWritten, monkeypatch: pytest.MonkeyPatch) -> None:
    models = Counting(monkeypatch)
    size(need, Judge())
    assert models.ios <= ALL_IOS


def test_what_was_given_up_is_said_and_called_neither_held_nor_not(monkeypatch: pytest.MonkeyPatch) -> None:
    Counting(monkeypatch)
    told = size(ENDLESS[1], Judge(), ios=LEAST_IOS).answer
    assert not told["holds"]
    (unasked,) = [row for row in candidate_rows(told) if row[5] == "not known"]
    assert "not asked" in unasked[-1]
    assert any("was not asked" in text and "simulate" in text for text in told["notices"])
    assert nearest_sentence(told).startswith("No candidate that was asked holds the need")


def test_assumptions_that_were_not_asked_are_not_said_to_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    Counting(monkeypatch)
    need = asked(candidate=[{"array": "ps6100xv", "raid": ["10"], "members": [1, 4]}])
    whole = size(need, Judge()).answer
    assert whole["given_up"] == []
    assert all(one["known"] for one in whole["sensitivity"])
    few = size(need, Judge(), ios=ALL_IOS / 12).answer
    assert few["chosen"]["fewest_disks"]["label"] == whole["chosen"]["fewest_disks"]["label"]
    assert any(not one["known"] and one["purchase"] == "not known" for one in few["sensitivity"])
    assert "that was asked" in sensitivity_sentence(few)


def test_what_is_given_up_hangs_on_no_order_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for cores in (1, 4):
        with monkeypatch.context() as patch:
            Counting(patch, cores)
            told = size(ENDLESS[2], Judge(), ios=ALL_IOS / 8).answer
        answers.append({key: value for key, value in told.items() if key != "simulations"})
    assert answers[0]["given_up"]
    assert answers[0] == answers[1]


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_need_of_hardly_any_io_is_held() -> None:
    """A log of less than one write in the window reached 0 % of its rate, so that no size held the need."""
    need = asked({"iops": 0.01}, candidate=[{"array": "nvme-mirror"}], rules={"degraded": False, "rebuilding": False})
    assert size(need, Judge(), what_if=False).answer["holds"]


class Asking:
    """A search that asks for so many I/Os."""

    def __init__(self, ios: float) -> None:
        self.ios, self.gave_up = ios, None

    def __call__(self, allowance: Allowance) -> Asking:
        made: Any = Asking(self.ios)
        try:
            allowance.take_once(str(id(self)), self.ios)
        except GaveUp as error:
            made.gave_up = error
        return made  # type: ignore[no-any-return]


def test_what_some_leave_over_goes_to_those_that_had_too_little() -> None:
    searches = [Asking(10_000), Asking(250_000), Asking(10_000)]
    results, spent_ios = shared(300_000, searches, lambda works: [work() for work in works], frozenset)
    assert [one.gave_up for one in results] == [None, None, None]
    assert spent_ios == 270_000


def test_the_last_of_too_many_ask_nothing() -> None:
    searches = [Asking(LEAST_IOS)] * 5
    results, _ = shared(2 * LEAST_IOS, searches, lambda works: [work() for work in works], frozenset)
    assert [one.gave_up is None for one in results] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("need", "said"),
    [
        (asked({"growth": "10000%"}, years=20), "grows"),
        (asked(candidate=[{"array": "ps6100xv", "volumes": [1 + one % 512 for one in range(3000)]}]), "choices"),
    ],
)
def test_what_cannot_be_sized_is_refused_before_anything_is_asked(need: NeedAsWritten, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        size(need, Judge())
