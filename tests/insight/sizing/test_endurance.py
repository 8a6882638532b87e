"""The year in which the drives of a purchase are worn out."""

from __future__ import annotations

from typing import Any

import pytest

from assay.insight.sizing.candidates import ladders
from assay.insight.sizing.demand import demand_of, written_bytes_a_day
from assay.insight.sizing.endurance import random_write_amplification, wear_of
from assay.insight.sizing.growth import runs_out
from assay.insight.sizing.ladder import Ladder, LadderStep
from assay.insight.sizing.need import Need, need_of


def asked(drive: str = "d7-p5520-1920", **database: Any) -> tuple[Need, Ladder]:
    base = {"size": "200GB", "iops": 1000, "block": "8KiB", "read": "0%", "log": "0%"}
    need = need_of({"years": 3, "database": [{**base, **database}],
                    "candidate": [{"array": "nvme-md", "drive": drive}]}, "test")  # fmt: skip
    return need, ladders(need)[0][0]


def test_writes_are_those_of_the_peak_for_its_hours_without_derating() -> None:
    need, _ = asked(hours="8-18", growth="100%")
    assert written_bytes_a_day(need, 0) == pytest.approx(1000 * 8192 * 36_000)
    assert written_bytes_a_day(need, 1) == pytest.approx(2 * 1000 * 8192 * 36_000)
    need, _ = asked(log="50%", log_block="16KiB", read="50%")
    assert written_bytes_a_day(need, 0) == pytest.approx((250 * 8192 + 500 * 16384) * 86_400)


def test_drives_are_worn_out_when_what_is_programmed_reaches_what_they_are_made_for() -> None:
    need, ladder = asked(iops=2000)
    rated = random_write_amplification(0.182, 0.035)
    # A mirror at the amplification of the rating: each of four drives takes half of the writes.
    wear = wear_of(need, ladder, LadderStep(1, 4), demand_of(need, 3), 2 * rated)
    assert wear is not None
    of_drive = 2000 * 8192 * 86_400 / 2
    assert wear.used_share(1.0) == pytest.approx(of_drive * 365 / 3.504e15)
    year = runs_out(wear.used_share)
    assert year == pytest.approx(3.504e15 / (of_drive * 365), abs=0.1)
    facts = wear.facts(year)
    assert facts["drive_writes_a_day"] == pytest.approx(of_drive / 1.92e12)
    assert facts["rated_writes_a_day"] == pytest.approx(1.0)
    # Sequential writes program less for each byte, and wear less.
    gentle = wear_of(need, ladder, LadderStep(1, 4), demand_of(need, 3), 2 * 1.035)
    assert gentle is not None
    assert gentle.used_share(1.0) < wear.used_share(1.0) / 3


def test_what_is_not_known_of_a_drive_is_not_said() -> None:
    need, ladder = asked("d5-p5336-61440")
    assert wear_of(need, ladder, LadderStep(1, 4), demand_of(need, 3), 4.0) is None
    need, ladder = asked()
    assert wear_of(need, ladder, LadderStep(1, 4), demand_of(need, 3), None) is None
